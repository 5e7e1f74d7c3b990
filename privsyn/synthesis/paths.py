r"""Paths: columns that seldom change along the rows of a parent, such as where a person lives.

A table over neighbours cannot hold such a column: a row that moves alone makes two changes or none. So the
column of a parent's rows is a *path*: a first value, a number of changes, the rows in which they happen, and
the values after them. The first value and the number of changes are columns of the parent, and drawn before
its rows. The rest is drawn:

- The rows of the changes are drawn with equal chances among the rows after the first.
- The value after a change from b is c with a probability in proportion to :math:`T_{g(b) c}` for
  :math:`c \ne b`, by the table T of the column and its previous value. Without the table it is in proportion
  to the count of c.

Annealing then moves a change to another row, draws the value of a run again, or exchanges the first value
with another one in all rows of the parent. No move alters the number of changes. A move is taken with
probability min(1, exp(-d / heat)), where d is the change of
:math:`\sum_T w_T \sum_c (N_c - T_c)^2 / (T_c + 1)` over all tables and all rows of the parent.

First values have noise of their own. If none of them moved, rows could not have what their tables say of a
column and one of the parent. But first values say something, too. So *tables of first values*, which count
one row of each parent, are among the tables. Their targets are the counts at the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from privsyn.marginals.domain import Attributes, Domain, Floats, Integers, Ints, Mask, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.synthesis import _kernels
from privsyn.synthesis.annealing import TEMPERATURE, dependence_weights
from privsyn.synthesis.chains import NEXT, Chains, Previous
from privsyn.synthesis.synthesise import draw_by_quota


@dataclass(frozen=True, eq=False)
class Path:
    """A column whose first value and number of changes are known for the rows of each parent.

    Parameters
    ----------
    attribute : str
    first, changes : integer arrays of shape (rows,)
        The code in the first row of each row's parent, and how often it changes among the rows of the parent:
        less often than there are rows.
    keeps_first : bool
        Whether the first values stay, whatever tables say.
    """

    attribute: str
    first: Integers
    changes: Integers
    keeps_first: bool = False

    def start(
        self,
        one_way: Marginal,
        tables: Sequence[Marginal],
        chains: Chains,
        rng: np.random.Generator,
    ) -> Integers:
        """Return the code of each row, drawn before any other column.

        Parameters
        ----------
        one_way : Marginal
        tables : sequence of Marginal
            If one of them is over the column and its previous value, it says what follows what.
        chains : Chains
        rng : numpy.random.Generator
        """
        codes, after = np.array(self.first, np.int64), self._after(one_way, tables, chains.previous)
        changed = self._changed(chains, rng) & np.take(after.any(axis=1), codes)
        order = np.argsort(chains.positions, kind="stable")
        for rows in np.split(order, np.cumsum(np.bincount(chains.positions)))[1:-1]:
            codes[rows] = codes[rows - 1]
            moving = rows[changed[rows]]
            before = codes[moving]
            for code in np.unique(before).tolist():
                at = moving[before == code]
                codes[at] = draw_by_quota(after[code], len(at), rng)
        return codes

    def _changed(self, chains: Chains, rng: np.random.Generator) -> Mask:
        """Return in which rows the value changes; never in the first row of a parent."""
        score = np.where(chains.positions == 0, np.inf, rng.random(len(self.first)))
        rank = np.empty(len(score), np.int64)
        rank[np.lexsort((score, chains.parents))] = chains.positions
        return (rank < self.changes) & (chains.positions > 0)

    def _after(
        self, one_way: Marginal, tables: Sequence[Marginal], previous: Mapping[str, Previous]
    ) -> Floats:
        """Return the weight of each code after a change from each code."""
        weights = np.tile(one_way.counts + TINY_COUNT, (one_way.domain.cells, 1))
        for name, attribute in previous.items():
            pair = {name, self.attribute}
            table = next((table for table in tables if set(table.attributes) == pair), None)
            if (attribute.column, attribute.lag) == (self.attribute, 1) and table is not None:
                following = table.project((name, self.attribute)).counts[attribute.groups]
                weights = weights * TINY_COUNT + following
        np.fill_diagonal(weights, 0.0)
        return weights


def with_changes_of(
    paths: Mapping[str, Integers], tables: Sequence[Marginal], chains: Chains
) -> tuple[Marginal, ...]:
    """Return the tables; one of a path's column and its previous value has as many changes as the path.

    The paths have the numbers of changes that columns of the parents say, with less noise than the table.

    Parameters
    ----------
    paths : mapping of a column to its codes
    tables : sequence of Marginal
    chains : Chains
    """
    agreed = list(tables)
    for index, table in enumerate(tables):
        for name, previous in chains.previous.items():
            column = previous.column
            if column in paths and previous.lag == 1 and set(table.attributes) == {column, name}:
                later = np.flatnonzero(chains.positions > 0)
                changes = int(np.count_nonzero(paths[column][later] != paths[column][later - 1]))
                agreed[index] = _with_changes(table, column, previous, len(later) - changes, changes)
    return tuple(agreed)


def _with_changes(table: Marginal, column: str, before: Previous, stays: int, changes: int) -> Marginal:
    """Return a table of a column and its previous value, scaled to the numbers of stays and of changes.

    A group of several previous codes counts as a stay of each of them.
    """
    axis, rows = table.attributes.index(column), stays + changes
    counts = np.moveaxis(np.array(table.counts), axis, 0)
    same = np.zeros(counts.shape, np.bool_)
    same[np.arange(len(counts)), before.groups] = True
    later = counts[:, : before.none]  # a view: rows with a previous row
    share = rows / max(float(later.sum()), TINY_COUNT)
    for mask, number in ((same[:, : before.none], stays), (~same[:, : before.none], changes)):
        later[mask] *= number / share / max(float(later[mask].sum()), TINY_COUNT)
    return Marginal(table.domain, np.moveaxis(counts, 0, axis))


def tables_of_firsts(
    sets: Sequence[Attributes], is_first: str, domain: Domain, codes: Integers
) -> list[tuple[Marginal, Floats, Floats]]:
    """Return tables over the first rows of all parents: each with the target and the weight of each cell.

    The counts at the start are the targets. Later rows are counted in cells that weigh nothing.

    Parameters
    ----------
    sets : sequence of tuple of str
        The attributes of each table.
    is_first : str
        An attribute: 1 in the first row of a parent, 0 in others.
    domain : Domain
        Of all attributes of a row.
    codes : array of shape (attributes, rows)
        In the order of the domain, at the start.
    """
    tables, first = [], np.flatnonzero(codes[domain.axes((is_first,))[0]])
    for names in sets:
        part = domain.project(names)
        cells = np.ravel_multi_index([codes[axis][first] for axis in domain.axes(names)], part.shape)
        counts = np.bincount(cells, minlength=part.cells).astype(np.float64)
        tables.append(Marginal(part, counts.reshape(part.shape)))
    result = []
    weights = dependence_weights(tuple(tables)) if tables else ()
    for table, weight in zip(tables, weights, strict=True):
        targets = np.stack([np.zeros(table.domain.shape), table.counts])
        paid = np.stack([np.zeros(table.domain.shape), weight / (table.counts + 1)])
        all_rows = Marginal(domain.project((is_first, *table.attributes)), targets)
        result.append((all_rows, targets.ravel(), paid.ravel()))
    return result


def alike_until_changed(paths: Sequence[Path], merged: Records, records: Records, parents: Ints) -> Records:
    """Return records in which a path keeps its original code as long as it keeps its merged code.

    Parameters
    ----------
    paths : sequence of Path
    merged, records : Records
        The same rows, in merged codes and in original ones, which were drawn for each row alone.
    parents : integer array of shape (rows,)
        Rows of the same parent stand together.
    """
    if not paths or not len(parents):
        return records
    codes = np.array(records.codes)
    for path in paths:
        (axis,) = merged.domain.axes((path.attribute,))
        begins = np.diff(parents, prepend=-1) != 0
        begins[1:] |= np.diff(merged.codes[:, axis]) != 0
        codes[:, axis] = codes[np.flatnonzero(begins)[np.cumsum(begins) - 1], axis]
    return Records(records.domain, codes)


@dataclass(frozen=True, eq=False)
class PathMoves:
    """The moves of a path, and the tables that they change.

    Parameters
    ----------
    path : Path
    earlier : mapping of an attribute to a lag
        The column, with lag 0, and its values in earlier rows.
    ends : integer array of shape (parents, 2)
        The first row of each parent whose value may move, and the row after its last.
    domain : Domain
        Of all attributes of a row.
    tables : tuple of Marginal
        Those over the column or its earlier values.
    targets, weights : arrays of shape (cells of all tables,)
    groups, strides : integer arrays
        See `_kernels.move_changes`.
    """

    path: Path
    earlier: Mapping[str, int]
    ends: Ints
    domain: Domain
    tables: tuple[Marginal, ...]
    targets: Floats
    weights: Floats
    groups: Ints
    strides: Ints

    @classmethod
    def of(
        cls,
        path: Path,
        chains: Chains,
        domain: Domain,
        tables: Sequence[tuple[Marginal, Floats, Floats]],
    ) -> PathMoves:
        """Return the moves of a path.

        Parameters
        ----------
        path : Path
        chains : Chains
        domain : Domain
            Of all attributes of a row.
        tables : sequence of (Marginal, array, array)
            A table over some of them, and the target and the weight of each cell.
        """
        before = {
            name: previous for name, previous in chains.previous.items() if previous.column == path.attribute
        }
        lag_of = {path.attribute: 0} | {name: previous.lag for name, previous in before.items()}
        holding = [part for part in tables if not lag_of.keys().isdisjoint(part[0].attributes)]
        size = domain.size_of[path.attribute]
        groups = np.zeros((1 + len(NEXT), size + 1), np.int64)
        groups[0] = np.arange(size + 1)
        for previous in before.values():
            groups[previous.lag] = np.append(previous.groups, previous.none)
        strides = np.zeros((1 + len(NEXT), len(holding)), np.int64)
        for index, (table, _, _) in enumerate(holding):
            for name, stride in _strides(table.domain).items():
                if name in lag_of:
                    strides[lag_of[name], index] = stride
        moves = (path.changes > 0) & (chains.remaining > 0) if path.keeps_first else True
        begins = np.flatnonzero((chains.positions == 0) & moves)
        return cls(
            path,
            lag_of,
            np.stack([begins, begins + chains.remaining[begins] + 1], axis=1),
            domain,
            tuple(table for table, _, _ in holding),
            np.concatenate([[], *(targets for _, targets, _ in holding)]),
            np.concatenate([[], *(weights for _, _, weights in holding)]),
            groups,
            strides,
        )

    def take(self, codes: Integers, cooling: float, rng: np.random.Generator) -> None:
        """Move the changes of all parents, in place.

        Parameters
        ----------
        codes : array of shape (attributes, rows)
            In the order of `domain`. Earlier values of the column are up to date.
        cooling : float
            The heat, over that at the start.
        rng : numpy.random.Generator
        """
        if not (len(self.ends) and self.tables):
            return
        (axis,) = self.domain.axes((self.path.attribute,))
        cells = np.zeros((codes.shape[1], len(self.tables)), np.uint32)  # without what the path adds
        counts, begin = [], 0
        for index, table in enumerate(self.tables):
            along, beside = (np.zeros(codes.shape[1], np.int64) for _ in range(2))
            for name, stride in _strides(table.domain).items():
                part = along if name in self.earlier else beside
                part += stride * codes[self.domain.axes((name,))[0]].astype(np.int64)
            cells[:, index] = begin + beside
            counts.append(np.bincount(along + beside, minlength=table.domain.cells))
            begin += table.domain.cells
        path, heat = codes[axis].astype(np.int64), TEMPERATURE * cooling * len(self.tables)
        _kernels.move_changes(
            path,
            self.path.keeps_first,
            self.ends,
            cells,
            self.groups,
            self.strides,
            np.concatenate(counts).astype(np.float64),
            self.targets,
            self.weights,
            heat,
            rng,
        )
        codes[axis] = path


def _strides(domain: Domain) -> dict[str, int]:
    """Return what a code of each attribute adds to the number of a cell."""
    return {name: prod(domain.sizes[axis + 1 :]) for axis, name in enumerate(domain.names)}
