"""Make records as published: components, GUM, appended leaves (Section 5.3)."""

from __future__ import annotations

from itertools import count

import numpy as np

from privsyn.marginals.domain import Attributes, Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.marginals.types import Codes
from privsyn.methods.paper.appending import Peeled, components, peel
from privsyn.methods.paper.gum import gradually_update
from privsyn.progress import Progress, no_progress
from privsyn.synthesis.tree import draw_given, independent_start, stack

PAPER_ROUNDS = 100


def synthesise_as_published(
    domain: Domain,
    one_ways: tuple[Marginal, ...],
    tables: tuple[Marginal, ...],
    n: int,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
    zeros: StructuralZeros = NO_ZEROS,
) -> Records:
    """Make `n` records the published way: each component separately, from independent columns.

    The published algorithm ignores `zeros`, except where `tables` contain them.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 5.3: separate and join; appending.
    """
    del zeros
    report = progress or no_progress
    parts = {
        names: peel(tuple(table for table in tables if table.attributes[0] in names))
        for names in components(domain.names, tables)
    }
    total = max(PAPER_ROUNDS * sum(bool(peeled.core) for peeled in parts.values()), 1)
    rounds = count(1)  # counted over all components, so that progress never falls back

    def report_round(*_: object) -> None:
        report("synthesising", next(rounds), total)

    report("synthesising", 0, total)
    columns: dict[str, Codes] = {}
    for names, peeled in parts.items():
        columns |= _component(names, peeled, one_ways, n, rng, report_round, domain)
    if next(rounds) <= total:  # without rows or without a core, no round was reported
        report("synthesising", total, total)
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
    """Return the columns of one connected component: GUM on the core, a shuffle, then the leaves."""
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
