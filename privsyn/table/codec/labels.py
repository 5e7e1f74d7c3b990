"""Label codes and groups of codes for readers, from public facts and the released merging of codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from privsyn.marginals.domain import Floats, Integers
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.encoders import Encoder
from privsyn.table.encoding.words import MISSING

NAMED = 3
"""Most values that a label of a group names."""


class Label(str):
    """A text for readers: a value or range, and what was counted with it but is never drawn.

    >>> label = Label("Rome", "few missing cells")
    >>> label, label.value, label.rest
    ('Rome, with few missing cells', 'Rome', 'few missing cells')
    """

    value: str
    rest: str

    def __new__(cls, value: str, rest: str = "") -> Self:
        """Return the value alone if nothing was counted with it."""
        label = super().__new__(cls, f"{value}, with {rest}" if rest else value)
        label.value, label.rest = value, rest
        return label


def labels(
    codec: Codec, groups: Sequence[Integers], shares: Sequence[Floats] | None = None
) -> tuple[tuple[Label, ...], ...]:
    """Return a label for each group of codes of each column.

    The label of a group of several values begins with their number.

    Parameters
    ----------
    codec : Codec
    groups : sequence of integer arrays of shape (codes,)
        For each column, the group of each code, from 0 up.
    shares : sequence of float arrays of shape (codes,), optional
        For each column, the weight of each code within its group. A rare value has weight 0: it was counted
        with another value, and is never drawn.

    Examples
    --------
    >>> import pandas as pd
    >>> from privsyn import Categorical, Numerical, Schema
    >>> schema = Schema({"age": Numerical(0, 99, bins=4), "city": Categorical(["Bern", "Rome", "Ulm"])})
    >>> codec = Codec.for_table(schema, pd.DataFrame({"age": [1.5], "city": ["Rome"]}))
    >>> labels(codec, [np.array([0, 0, 0, 1, 2]), np.array([1, 0, 1, 1])])
    (('0 to 74.25', '74.25 to 99', '(missing)'), ('Rome', '3 rare values together: Bern, Ulm, (missing)'))
    >>> labels(codec, [np.zeros(5, int), np.zeros(4, int)])
    (('all values: 0 to 99, (missing)',), ('all values: Bern, Rome, Ulm, …',))
    """
    code_shares = [None] * len(groups) if shares is None else shares
    return tuple(map(labels_of, codec.encoders, groups, code_shares))


def labels_of(encoder: Encoder, group: Integers, share: Floats | None = None) -> tuple[Label, ...]:
    """Return a label for each group of codes of one column; the arguments are those of `labels`."""
    weights = np.ones(len(group)) if share is None else share
    labels_of_groups = []
    for codes, weight in _grouped(group, weights):
        words = encoder.words(codes)
        common, rare = encoder.words(codes[weight > 0]), encoder.words(codes[weight == 0])
        if len(words) == 1:
            label = Label(words[0])
        elif len(common) == 1 and rare:
            label = Label(common[0], "few missing cells" if rare == [MISSING] else _together(rare))
        else:
            label = Label(f"all values: {_few(words)}" if len(codes) == len(group) else _together(words))
        labels_of_groups.append(label)
    return tuple(labels_of_groups)


def members(codec: Codec, groups: Sequence[Integers]) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Return the values, or ranges of neighbouring values, in each group of each column."""
    return tuple(
        tuple(tuple(encoder.words(codes)) for codes, _ in _grouped(group, np.ones(len(group))))
        for encoder, group in zip(codec.encoders, groups, strict=True)
    )


def _grouped(group: Integers, share: Floats) -> list[tuple[Integers, Floats]]:
    """Return the codes of each group, and their weights."""
    every = [np.flatnonzero(group == index) for index in range(int(group.max()) + 1)]
    return [(codes, share[codes]) for codes in every]


def _together(words: list[str]) -> str:
    """
    >>> _together(["a", "b", "c", "d"]), _together(["a"])
    ('4 rare values together: a, b, c, …', '1 rare value: a')
    """
    return (
        f"{len(words)} rare values together: {_few(words)}" if len(words) > 1 else f"1 rare value: {words[0]}"
    )


def _few(words: list[str]) -> str:
    """Return at most `NAMED` labels as text."""
    return f"{', '.join(words[:NAMED])}{', …' if len(words) > NAMED else ''}"
