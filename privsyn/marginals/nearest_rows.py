"""Nearest rows: equal rows if there are any, else rows that agree in as many leading columns as possible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from privsyn.marginals.domain import Array, Floats


def nearest_rows(
    listed: Sequence[Array], weights: Floats, wanted: Sequence[Array], rng: np.random.Generator
) -> npt.NDArray[np.intp]:
    """Return for each wanted row the index of a listed one that agrees in the most leading columns.

    Among equally near rows one is drawn by weight. Both tables are given column by column.

    Examples
    --------
    Two listed rows hold a 1; only the second has weight:

    >>> columns, weights = [np.array([1.0, 1.0, 5.0])], np.array([0.0, 1.0, 1.0])
    >>> nearest_rows(columns, weights, [np.array([1.0, 5.0])], np.random.default_rng(0)).tolist()
    [1, 2]
    """
    n = len(weights)
    prefixes = np.zeros((len(listed) + 1, n + len(wanted[0])), np.int64)  # ranks of the first j columns
    for j, (column, sought) in enumerate(zip(listed, wanted, strict=True)):
        ranks = np.unique(np.concatenate([column, sought]), return_inverse=True)[1]
        prefixes[j + 1] = np.unique(prefixes[j] * len(ranks) + ranks, return_inverse=True)[1]
    order = np.argsort(prefixes[-1, :n], kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(weights[order])])
    picked = np.zeros(len(wanted[0]), np.intp)
    for prefix in prefixes:  # longer prefixes come later and overwrite
        keys, aims = prefix[:n][order], prefix[n:]
        first, end = np.searchsorted(keys, aims), np.searchsorted(keys, aims, side="right")
        aimed = sums[first] + rng.random(len(first)) * (sums[end] - sums[first])
        drawn = np.clip(np.searchsorted(sums, aimed, side="right") - 1, first, np.maximum(end - 1, first))
        picked = np.where(first < end, drawn, picked)
    return order[picked]
