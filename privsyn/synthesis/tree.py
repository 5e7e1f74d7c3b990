"""Stage 4, the start: draw records attribute by attribute along a tree of strong pairs."""

from __future__ import annotations

import numpy as np

from privsyn.marginals.counting import code_type
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.graphs import strongest_tree
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.statistics import mutual_information, pairs_within
from privsyn.marginals.types import Codes, Floats
from privsyn.synthesis._kernels import round_with_offset


def tree_start(
    domain: Domain,
    one_ways: tuple[Marginal, ...],
    tables: tuple[Marginal, ...],
    n: int,
    rng: np.random.Generator,
) -> Records:
    """Return `n` records drawn along a maximum spanning tree of the pairs that the tables hold.

    One-way counts and the counts of pairs on the tree are met to within rounding. Only the other pairs
    remain to be fitted. An attribute in no table is drawn independently.

    Parameters
    ----------
    domain : Domain
    one_ways : tuple of Marginal, one per attribute, in the domain's order
    tables : tuple of Marginal
        Non-negative, agreeing counts.
    """
    pairs = pairs_within(tables)
    weights = {pair: mutual_information(table) for pair, table in pairs.items()}
    columns: dict[str, Codes] = {}
    for parent, child in strongest_tree(domain.names, weights):
        if parent is None:
            columns[child] = draw_by_quota(one_ways[domain.axes((child,))[0]].counts, n, rng)
        else:
            table = pairs[parent, child] if (parent, child) in pairs else pairs[child, parent]
            columns[child] = draw_given(table.project((parent, child)), columns[parent], rng)
    return stack(domain, columns, n)


def independent_start(
    domain: Domain, one_ways: tuple[Marginal, ...], n: int, rng: np.random.Generator
) -> Records:
    """Return `n` records with independent attributes, each with its own counts: the published start."""
    columns = {name: draw_by_quota(m.counts, n, rng) for name, m in zip(domain.names, one_ways, strict=True)}
    return stack(domain, columns, n)


def stack(domain: Domain, columns: dict[str, Codes], n: int) -> Records:
    """Return records from columns, in the domain's order; `n` rows even if there is no column."""
    codes = np.empty((n, len(domain)), np.int32, order="F")
    for place, name in enumerate(domain.names):
        codes[:, place] = columns[name]
    return Records(domain, codes)


def draw_by_quota(weights: Floats, n: int, rng: np.random.Generator) -> Codes:
    """Return `n` codes in random order, each as often as its weight implies, to within one.

    Parameters
    ----------
    weights : array of shape (size,)
        Non-negative, in any unit; equal weights are used if all are 0.

    Examples
    --------
    >>> codes = draw_by_quota(np.array([3.0, 1.0]), 8, np.random.default_rng(0))
    >>> np.bincount(codes).tolist()
    [6, 2]
    """
    weights = weights if weights.sum() > 0 else np.ones(len(weights))
    quota = round_with_offset(weights * (n / weights.sum()), rng.random())
    codes = np.repeat(np.arange(len(weights), dtype=np.int32), quota)
    # Floating-point rounding can make the quotas miss n by one row.
    codes = np.resize(codes, n) if len(codes) else np.full(n, int(np.argmax(weights)), np.int32)
    rng.shuffle(codes)
    return codes


def draw_given(table: Marginal, given: Codes, rng: np.random.Generator) -> Codes:
    """Return a second attribute for rows whose first is known, by quota within each value of the first.

    Parameters
    ----------
    table : Marginal over two attributes, the known one first
        Non-negative counts.
    given : array of shape (n,)
        Codes of the known attribute.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> same = Marginal(Domain(("a", "b"), (2, 2)), np.array([[5.0, 0.0], [0.0, 5.0]]))
    >>> draw_given(same, np.array([0, 1, 1, 0], np.int32), np.random.default_rng(0)).tolist()
    [0, 1, 1, 0]
    """
    drawn = np.empty(len(given), np.int32)
    overall = table.counts.sum(axis=0)
    # numpy sorts codes of 8 or 16 bits without comparing them
    rows = np.argsort(given.astype(code_type(len(table.counts))), kind="stable")
    ends = np.cumsum(np.bincount(given, minlength=len(table.counts)))
    for value, (start, end) in enumerate(zip(np.r_[0, ends[:-1]], ends, strict=True)):
        if end > start:
            weights = table.counts[value]
            drawn[rows[start:end]] = draw_by_quota(
                weights if weights.sum() > 0 else overall, end - start, rng
            )
    return drawn
