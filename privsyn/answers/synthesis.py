"""Stage 4 as a whole: from agreeing tables to records, in two ways."""

from __future__ import annotations

from itertools import count

import numpy as np

from privsyn.answers.appending import Peeled, components, peel
from privsyn.answers.arrays import Codes
from privsyn.answers.domain import Attributes, Domain, Records
from privsyn.answers.finishing import finish
from privsyn.answers.gum import gradually_update
from privsyn.answers.marginal import Marginal
from privsyn.answers.possible import NOTHING_KNOWN, Possible
from privsyn.answers.sampling import draw_given
from privsyn.answers.tree import independent_start, stack, tree_start
from privsyn.progress import Progress

PAPER_ROUNDS = 100

ENOUGH = 10_000
"""Records that are made together at least: few cannot hold many tables."""


def synthesise(
    domain: Domain,
    one_ways: tuple[Marginal, ...],
    tables: tuple[Marginal, ...],
    n: int,
    rng: np.random.Generator,
    *,
    sweeps: int | None = None,
    progress: Progress | None = None,
    possible: Possible = NOTHING_KNOWN,
) -> Records:
    """`n` records that have the tables' counts, scaled to `n`, as nearly as may be.

    Parameters
    ----------
    domain : Domain
    one_ways : tuple of Marginal, one for each attribute, in the domain's order
    tables : tuple of Marginal
        Non-negative and agreeing with each other and with the one-ways.
    n : int
    rng : numpy.random.Generator
    sweeps : int, optional
        Of annealed moves; as many as fit in a usual time, if left out.
    progress : callable, optional
    possible : Possible
        Structural zeros.
    """
    if progress is not None:
        progress("synthesising", 0, 1)
    start = tree_start(domain, one_ways, tables, n, rng)
    records = finish(start, tables, rng, sweeps=sweeps, possible=possible)
    if progress is not None:
        progress("synthesising", 1, 1)
    return records


def synthesise_as_published(
    domain: Domain,
    one_ways: tuple[Marginal, ...],
    tables: tuple[Marginal, ...],
    n: int,
    rng: np.random.Generator,
    progress: Progress | None = None,
) -> Records:
    """`n` records the published way: each component by itself, from independent columns.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 5.3: separate and join; appending.
    """
    parts = {
        names: peel(tuple(table for table in tables if table.attributes[0] in names))
        for names in components(domain.names, tables)
    }
    total = max(PAPER_ROUNDS * sum(bool(peeled.core) for peeled in parts.values()), 1)
    rounds = count(1)  # of all components: what is done never falls back

    def tell(done: int) -> None:
        if progress is not None:
            progress("synthesising", done, total)

    tell(0)
    columns: dict[str, Codes] = {}
    for names, peeled in parts.items():
        columns |= _component(names, peeled, one_ways, n, rng, lambda *_: tell(next(rounds)), domain)
    if next(rounds) <= total:  # of no rows, or without a core, no round was told of
        tell(total)
    return stack(domain, columns, n)


def _component(
    names: Attributes,
    peeled: Peeled,
    one_ways: tuple[Marginal, ...],
    n: int,
    rng: np.random.Generator,
    progress: Progress,
    domain: Domain,
) -> dict[str, Codes]:
    """The columns of attributes that hang together: GUM on the core, then the leaves, then a shuffle."""
    late = {leaf.attributes[1] for leaf in peeled.leaves}
    core = tuple(name for name in names if name not in late)
    start = independent_start(
        domain.project(core), tuple(one_ways[axis] for axis in domain.axes(core)), n, rng
    )
    records = gradually_update(start, peeled.core, rng, rounds=PAPER_ROUNDS, progress=progress)
    order = rng.permutation(n)
    columns = {name: records.codes[order, place] for place, name in enumerate(core)}
    for leaf in peeled.leaves:
        anchor, name = leaf.attributes
        columns[name] = draw_given(leaf, columns[anchor], rng)
    return columns
