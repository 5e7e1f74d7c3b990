"""The gradual update method (GUM), which turns tables of counts into records.

GUM starts from any records and visits the tables, the one with the largest error first. It moves some rows
from cells with too many rows to cells with too few. Each visit corrects only a part of the error, so that
visits to different tables do not undo each other.

As published (Section 5.3), each component of connected attributes is made by GUM. Attributes that lie in a
single pair are left out and appended afterwards.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import count

import numpy as np

from privsyn.marginals.domain import Attributes, Codes, Records
from privsyn.marginals.marginal import Marginal
from privsyn.methods.paper import _kernels
from privsyn.methods.paper.parameters import PAPER, Parameters
from privsyn.progress import Progress, no_progress
from privsyn.synthesis.synthesise import draw_given, independent_start, stack
from privsyn.synthesis.targets import Targets


def gradually_update(
    start: Records,
    tables: tuple[Marginal, ...],
    rng: np.random.Generator,
    *,
    parameters: Parameters = PAPER,
    progress: Progress = no_progress,
) -> Records:
    """Move the records towards the tables and return the best state.

    Parameters
    ----------
    start : Records
        The first state. Its number of rows is kept.
    tables : tuple of Marginal
        Non-negative, consistent counts with a positive total. They are scaled to the number of rows.
    parameters : Parameters
        Their rounds, step and duplication.

    Returns
    -------
    Records
        The state with the smallest sum over tables of absolute differences in counts, among the states at the
        start of each round and at the end.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 5.2 and 5.3.
    """
    targets = [
        _kernels.Target(
            np.array(start.domain.axes(table.attributes), np.int64),
            np.array(table.domain.strides, np.int64),
            table.counts.ravel() * (len(start) / table.total),
        )
        for table in tables
    ]
    codes = np.array(start.codes, order="F")
    best, best_error = start.codes, np.inf
    for round_ in range(parameters.rounds + 1):
        errors = np.empty(len(targets))
        for index, target in enumerate(targets):
            cells = _kernels.cell_of_rows(codes, target.columns, target.strides)
            errors[index] = np.abs(_kernels.count_cells(cells, len(target.counts)) - target.counts).sum()
        if errors.sum() < best_error:
            best, best_error = codes.copy(order="F"), float(errors.sum())
        if round_ == parameters.rounds or not len(targets) or not len(codes):
            break
        step, copied = parameters.step_of(round_), parameters.copied_in(round_)
        for index in np.argsort(-errors, kind="stable"):
            _kernels.update_table(codes, targets[index], step, copied, rng)
        progress("synthesising", round_ + 1, parameters.rounds)
    return Records(start.domain, best)


@dataclass(frozen=True)
class Peeled:
    """Tables, split into a core for GUM and leaves that can be appended exactly.

    Parameters
    ----------
    core : tuple of Marginal
    leaves : tuple of Marginal over (anchor, leaf)
        In the order of appending: each anchor exists before its leaf.
    """

    core: tuple[Marginal, ...]
    leaves: tuple[Marginal, ...]


def components(names: Attributes, tables: tuple[Marginal, ...]) -> list[Attributes]:
    """Return the sets of attributes that tables connect, each in the order of `names`."""
    import networkx as nx

    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(names)
    for table in tables:
        nx.add_path(graph, table.attributes)
    return [tuple(name for name in names if name in part) for part in nx.connected_components(graph)]


def peel(tables: tuple[Marginal, ...]) -> Peeled:
    """Remove attributes that lie in a single table, if it is a pair, until none is left.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 5.3, "appending".

    Examples
    --------
    A chain a - b - c is peeled to its last attribute, and nothing is left for GUM:

    >>> import numpy as np
    >>> from privsyn.marginals.domain import Domain
    >>> ab = Marginal(Domain(("a", "b"), (1, 1)), np.ones((1, 1)))
    >>> bc = Marginal(Domain(("b", "c"), (1, 1)), np.ones((1, 1)))
    >>> peeled = peel((ab, bc))
    >>> peeled.core, [leaf.attributes for leaf in peeled.leaves]
    ((), [('c', 'b'), ('b', 'a')])
    """
    core = list(tables)
    leaves: list[Marginal] = []
    while True:
        tables_of = Counter(name for table in core for name in table.attributes)
        pairs = (
            (index, *pair)
            for index, table in enumerate(core)
            if len(table.attributes) == 2
            for pair in (table.attributes[::-1], table.attributes)
        )
        leaf = next(((index, pair) for index, *pair in pairs if tables_of[pair[1]] == 1), None)
        if leaf is None:
            break
        index, (anchor, name) = leaf
        leaves.append(core.pop(index).project((anchor, name)))
    return Peeled(tuple(core), tuple(reversed(leaves)))


def synthesise_as_published(
    targets: Targets,
    n: int,
    rng: np.random.Generator,
    *,
    progress: Progress | None = None,
    parameters: Parameters = PAPER,
) -> Records:
    """Make `n` records the published way: each component separately, from independent columns.

    The published algorithm ignores structural zeros, except where tables contain them.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 5.3: separate and join; appending.
    """
    domain, report = targets.domain, progress or no_progress
    parts = {
        names: peel(tuple(table for table in targets.tables if table.attributes[0] in names))
        for names in components(domain.names, targets.tables)
    }
    total = max(parameters.rounds * sum(bool(peeled.core) for peeled in parts.values()), 1)
    rounds = count(1)  # counted over all components, so that progress never falls back

    def report_round(*_: object) -> None:
        report("synthesising", next(rounds), total)

    report("synthesising", 0, total)
    columns: dict[str, Codes] = {}
    for names, peeled in parts.items():
        late = {leaf.attributes[1] for leaf in peeled.leaves}
        core = domain.project(tuple(name for name in names if name not in late))
        start = independent_start(
            core, tuple(targets.one_ways[axis] for axis in domain.axes(core.names)), n, rng
        )
        records = gradually_update(start, peeled.core, rng, parameters=parameters, progress=report_round)
        order = rng.permutation(n)
        columns |= {name: records.codes[order, position] for position, name in enumerate(core.names)}
        for leaf in peeled.leaves:
            anchor, name = leaf.attributes
            columns[name] = draw_given(leaf, columns[anchor], rng)
    if next(rounds) <= total:  # without rows, rounds or a core, none was reported
        report("synthesising", total, total)
    return stack(domain, columns, n)
