"""Two saved models must have the same bytes; if they have not, the message says which parts differ."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

STAGES = ("heard", "noise", "groups", "shares", "one_way", "marginal", "common")
"""Kinds of arrays of a saved table, in the order in which a fit computes them; see `named_arrays`."""

MOST_LINES = 12


def assert_same_model(first: bytes, second: bytes, hint: str = "") -> None:
    """Fail with the parts that differ, the earliest stage of the fit first, unless two models are equal."""
    if first != second:
        lines = differences(first, second) or ["the same parts, packed in different bytes"]
        more = [f"and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
        message = "\n".join(["the models differ:", *lines[:MOST_LINES], *more, hint])
        pytest.fail(message.strip(), pytrace=False)


def differences(first: bytes, second: bytes) -> list[str]:
    """Return a line for each part of two saved models that differs: arrays by stage, then JSON by path.

    >>> files = [io.BytesIO(), io.BytesIO()]
    >>> for file, cell in zip(files, (1.0, 1.5), strict=True):
    ...     np.savez(file, **{"0.marginal_0": np.array([[cell, 2.0]]), "0.heard_1": np.array([3.0])})
    >>> differences(*(file.getvalue() for file in files))
    ['0.marginal_0: 1 of 2 cells, first [0, 0]: 1.0 and 1.5, at most 0.33 of the cell']
    """
    one, two = (dict(parts_of(content)) for content in (first, second))
    lines = []
    for name in sorted(one.keys() | two.keys(), key=stage_of):
        if name not in one or name not in two:
            lines.append(f"{name}: only in the {'first' if name in one else 'second'}")
        elif isinstance(one[name], np.ndarray):
            lines += difference_of_arrays(name, one[name], two[name])
        elif (one[name], type(one[name])) != (two[name], type(two[name])):
            lines.append(f"{name}: {one[name]!r:.60} and {two[name]!r:.60}")
    return lines


def parts_of(content: bytes) -> Iterator[tuple[str, Any]]:
    """Yield each array of a saved model by its name, and each value of its JSON by its path."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        for member in file.namelist():
            inside = file.read(member)
            if member.endswith(".npy"):
                yield member.removesuffix(".npy"), np.load(io.BytesIO(inside), allow_pickle=False)
            elif member.endswith(".npz"):
                yield from parts_of(inside)
            else:
                yield from leaves(member, json.loads(inside))


def leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield each value in nested lists and mappings by its path, and the order of the keys of a mapping."""
    if isinstance(value, dict):
        yield f"{path} (keys)", list(value)
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(f"{path}/{key}", inner)
    else:
        yield path, value


def stage_of(name: str) -> tuple[int, str]:
    """Return the key that sorts arrays by the stage that computes them, and JSON behind them."""
    kind = name.partition(".")[2].rstrip("_0123456789")
    return (STAGES.index(kind) if kind in STAGES else len(STAGES)), name


def difference_of_arrays(name: str, one: np.ndarray, two: np.ndarray) -> list[str]:
    """Return a line that says how two arrays differ: in type, shape, order in memory or cells."""
    forms = [(array.dtype.str, array.shape, bool(array.flags.f_contiguous)) for array in (one, two)]
    if forms[0] != forms[1]:
        return [f"{name}: {forms[0]} and {forms[1]} (type, shape, first axis contiguous)"]
    unequal = np.atleast_1d(one.view(f"V{one.itemsize}") != two.view(f"V{two.itemsize}"))
    if not unequal.any():
        return []
    at = [int(index) for index in np.argwhere(unequal)[0]]
    a, b = (np.atleast_1d(array).astype(np.float64) for array in (one, two))
    with np.errstate(invalid="ignore", divide="ignore"):
        far = np.nanmax(np.abs(a - b)[unequal] / np.maximum(np.abs(a), np.abs(b))[unequal])
    cells = f"{np.count_nonzero(unequal)} of {one.size} cells"
    return [f"{name}: {cells}, first {at}: {a[*at]} and {b[*at]}, at most {far:.2g} of the cell"]
