"""Tables of counts over a few attributes: Marginal, Measurement (with noise), and Grouping of codes.

Codes are joined to groups, such as neighbouring bins of a number to groups of about equal mass. Dependence
between numbers is usually smooth, so sums over many cells show most of it. A sum has the noise of only one
cell. `LEVELS` are nested: each level halves the groups of the level before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import cpu_count
from typing import Any

import numpy as np
import numpy.typing as npt

from privsyn.marginals.domain import Attributes, Codes, Counts, Domain, Floats, Integers, Ints, keep

LEVELS = (2, 4, 8, 16, 32)
"""Number of groups of an attribute with ordered codes. The finest level keeps all codes."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """The groups in which the codes of some attributes are counted.

    Parameters
    ----------
    groups : tuple of integer arrays of shape (codes,), one per attribute, optional
        The group of each code. If there are none, codes are not joined, which costs nothing.

    Examples
    --------
    >>> halves = Grouping((np.array([0, 0, 1, 1]),))
    >>> halves.join(np.array([1, 2, 3, 4])).tolist(), NO_GROUPS.join(np.array([1, 2])).tolist()
    ([3, 7], [1, 2])
    """

    groups: tuple[Codes, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.groups)

    def join(self, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the cells of a table, summed over joined codes along every axis that has groups."""
        for axis, group in enumerate(self.groups):
            steps = group[1:] - group[:-1]
            if (steps == 1).all():  # each code is a group of its own
                continue
            if (steps < 0).any():
                order = np.argsort(group, kind="stable")
                cells, group = cells.take(order, axis), group[order]
            cells = np.add.reduceat(cells, firsts(group), axis=axis)
        return cells

    def scale(self, cells: Floats, sums: Floats, threshold: float = 0.0) -> Floats:
        """Return cells scaled to the sums of their groups; groups with a sum of at most `threshold` stay."""
        now = self.join(cells)
        ratio = np.divide(sums, now, out=np.ones_like(now), where=now > threshold)
        return cells * ratio[np.ix_(*self.groups)]

    def domain(self, codes: Domain) -> Domain:
        """Return the domain of the groups of a domain of codes."""
        if not self.groups:
            return codes
        sizes = tuple(int(group.max()) + 1 for group in self.groups)
        counts = zip(self.groups, codes.ordered, strict=True)
        ordered = tuple(int(group[count - 1]) + 1 if count else 0 for group, count in counts)
        return Domain(codes.names, sizes, ordered)

    def of_codes(self, shape: Sequence[int]) -> tuple[Codes, ...]:
        """Return the group of each code along each axis of a table of codes."""
        return self.groups or tuple(np.arange(size, dtype=np.int32) for size in shape)

    def project(self, axes: Sequence[int]) -> Grouping:
        """Return the groups of the codes along some axes."""
        return Grouping(tuple(self.groups[axis] for axis in axes)) if self.groups else self

    def then(self, later: Grouping) -> Grouping:
        """Return the grouping of codes whose groups are joined again."""
        if not (self and later):
            return self or later
        return Grouping(tuple(second[first] for first, second in zip(self.groups, later.groups, strict=True)))


NO_GROUPS = Grouping()


def common_refinement(groups: Sequence[Integers]) -> Ints:
    """Return the coarsest groups of codes that are finer than all of these.

    Parameters
    ----------
    groups : sequence of integer arrays of shape (codes,)

    Examples
    --------
    >>> common_refinement([np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])]).tolist()
    [0, 1, 2, 2]
    """
    return np.unique(np.stack(groups), axis=1, return_inverse=True)[1].reshape(-1)


def groups_at(one_way: Marginal, level: int) -> Codes:
    """Return the group of each code at a level; each code without an order keeps its own group.

    Parameters
    ----------
    one_way : Marginal
        Non-negative counts.
    level : int
        Number of groups, with about equally many records.

    Examples
    --------
    >>> from privsyn.marginals.marginal import Marginal
    >>> age = Domain(("age",), (7,), ordered=(6,))  # the last code is the missing ones'
    >>> groups_at(Marginal(age, np.array([2.0, 2, 2, 0, 6, 3, 9])), 4).tolist()
    [0, 0, 1, 1, 2, 3, 4]
    """
    ordered = one_way.domain.ordered[0]
    counts = one_way.counts[:ordered]
    if ordered <= level or counts.sum() <= 0:
        return np.arange(len(one_way.counts), dtype=np.int32)
    # A code with more than half of the records counts for half at every level, so the others have groups too.
    if rest := counts.sum() - counts.max():
        counts = np.minimum(counts, rest)
    middles = (np.cumsum(counts) - counts / 2) / counts.sum()
    groups = np.minimum((level * middles).astype(np.int64), level - 1)
    labels = np.zeros(ordered, np.int64)
    np.cumsum(groups[1:] > groups[:-1], out=labels[1:])  # skip groups that hold no code
    nominal = labels[-1] + 1 + np.arange(len(one_way.counts) - ordered)
    return np.concatenate([labels, nominal]).astype(np.int32)


def firsts(group: Codes) -> npt.NDArray[np.intp]:
    """Return the first code of each group; groups increase along the codes.

    >>> firsts(np.array([0, 0, 1, 2, 2])).tolist()
    [0, 2, 3]
    """
    return np.concatenate([[0], 1 + (group[1:] != group[:-1]).nonzero()[0]])


@dataclass(frozen=True, eq=False)
class Marginal:
    """A table of counts over a domain.

    Parameters
    ----------
    domain : Domain
    counts : array of shape ``domain.shape``
        In records. Read-only. Noise can make them fractional or negative.

    Examples
    --------
    >>> table = Marginal(Domain(("a", "b"), (2, 3)), np.array([[1, 2, 3], [4, 5, 6]]))
    >>> table.project(("b",)).counts.tolist()
    [5.0, 7.0, 9.0]
    >>> table.project(()).counts.tolist()
    21.0
    """

    domain: Domain
    counts: Counts

    def __post_init__(self) -> None:
        keep(self, "counts", dtype=np.float64)
        if self.counts.shape != self.domain.shape:
            raise ValueError(f"counts {self.counts.shape} over a domain of {self.domain.shape}")

    @property
    def attributes(self) -> Attributes:
        """Names of the attributes, in the order of the axes."""
        return self.domain.names

    @property
    def total(self) -> float:
        """Sum of all cells, in records."""
        return float(self.counts.sum())

    @property
    def residual(self) -> Marginal:
        """The counts centred along every axis: what the table adds to tables over fewer attributes."""
        counts = self.counts
        for axis in range(counts.ndim):
            counts = counts - counts.mean(axis=axis, keepdims=True)
        return Marginal(self.domain, counts)

    def project(self, attributes: Attributes) -> Marginal:
        """Return the counts over `attributes`, in the order given, with all others summed out."""
        if attributes == self.attributes:
            return self
        axes = self.domain.axes(attributes)
        summed_axes = tuple(axis for axis in range(len(self.domain)) if axis not in axes)
        summed = self.counts.sum(axis=summed_axes)
        ranks = tuple(sorted(axes).index(axis) for axis in axes)
        return Marginal(self.domain.project(attributes), np.transpose(summed, ranks))

    def join(self, grouping: Grouping) -> Marginal:
        """Return the counts in groups of codes."""
        return Marginal(grouping.domain(self.domain), grouping.join(self.counts)) if grouping else self

    def spread(self, delta: Marginal) -> Marginal:
        """Add a correction over some of the attributes, evenly over the cells that share them.

        This is the counterpart of `project`: ``m.spread(delta).project(delta.attributes)`` is
        ``m.project(delta.attributes) + delta``.

        Examples
        --------
        >>> flat = Marginal(Domain(("a", "b"), (2, 2)), np.zeros((2, 2)))
        >>> flat.spread(Marginal(Domain(("a",), (2,)), np.array([4.0, -2.0]))).counts.tolist()
        [[2.0, 2.0], [-1.0, -1.0]]
        """
        share = delta.domain.cells / self.domain.cells
        return Marginal(self.domain, self.counts + lift(delta, self.domain) * share)


def unstacked(domains: Sequence[Domain], counts: Counts) -> list[Marginal]:
    """Return a table of each row of `counts`, which becomes read-only: its rows are not copied.

    A wide table has half a million pairs; each alone would be copied and checked.

    Parameters
    ----------
    domains : sequence of Domain, one per table
        Of one shape.
    counts : array of shape (tables, ...), of float64
        The caller gives it up.

    Raises
    ------
    ValueError
        If a domain has another shape than the rows of `counts`.

    Examples
    --------
    >>> one, two = unstacked([Domain(("a",), (2,)), Domain(("b",), (2,))], np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> two.attributes, two.counts.tolist()
    (('b',), [3.0, 4.0])
    """
    if len(domains) != len(counts) or {counts.shape[1:]} != {domain.shape for domain in domains}:
        raise ValueError(f"counts {counts.shape} over {len(domains)} domains, not all of that shape")
    counts.setflags(write=False)
    tables = [object.__new__(Marginal) for _ in domains]
    for table, domain, row in zip(tables, domains, counts, strict=True):
        table.__dict__.update(domain=domain, counts=row)
    return tables


def lift(table: Marginal, domain: Domain) -> Counts:
    """Return the counts of `table`, in a shape that broadcasts over the larger `domain`.

    Examples
    --------
    >>> lift(Marginal(Domain(("b",), (3,)), np.arange(3)), Domain(("a", "b"), (2, 3))).shape
    (1, 3)
    """
    names = tuple(name for name in domain.names if name in table.attributes)
    shape = [size if name in table.attributes else 1 for name, size in domain.size_of.items()]
    return table.project(names).counts.reshape(shape)


def alike(kinds: Sequence[Hashable], cells: Sequence[int], limit: int) -> Iterator[list[int]]:
    """Yield the indices of tables of one kind, with at most `limit` cells together, or of one table alone.

    >>> list(alike(["pair", "triple", "pair", "pair"], [4, 8, 4, 4], 10))
    [[0, 2], [3], [1]]
    """
    indices_of_kinds: dict[Hashable, list[int]] = {}
    for index, kind in enumerate(kinds):
        indices_of_kinds.setdefault(kind, []).append(index)
    for indices in indices_of_kinds.values():
        step = max(limit // cells[indices[0]], 1)
        yield from (indices[start : start + step] for start in range(0, len(indices), step))


def for_alike(
    function: Callable[[list[int]], None], kinds: Sequence[Hashable], cells: Sequence[int], limit: int
) -> None:
    """Call a function with the indices of each group of `alike`, in threads.

    The function stores its results by place, so they do not depend on the order of the calls.
    """
    groups = list(alike(kinds, cells, limit))
    if len(groups) < 2:
        list(map(function, groups))
        return
    with ThreadPoolExecutor(cpu_count()) as pool:
        list(pool.map(function, groups))


@dataclass(frozen=True, eq=False)
class Measurement:
    """A marginal released with noise.

    Parameters
    ----------
    marginal : Marginal
        Noisy counts.
    variance : float or array that broadcasts to the counts
        Noise variance of each cell, in records squared; 0 for an exact count.
    grouping : Grouping, optional
        The groups of codes that were counted. Default: the codes.
    """

    marginal: Marginal
    variance: Counts
    grouping: Grouping = NO_GROUPS

    def __post_init__(self) -> None:
        variance = np.broadcast_to(np.array(self.variance, dtype=np.float64), self.marginal.domain.shape)
        if not (np.isfinite(variance) & (variance >= 0)).all():
            raise ValueError("a variance is a finite number of at least 0")
        object.__setattr__(self, "variance", variance)

    @property
    def attributes(self) -> Attributes:
        """Names of the attributes, in the order of the axes."""
        return self.marginal.attributes

    def project(self, attributes: Attributes) -> Measurement:
        """Return the sum over the other attributes; counts and variances both add up."""
        if attributes == self.attributes:
            return self
        variance = Marginal(self.marginal.domain, self.variance).project(attributes).counts
        grouping = self.grouping.project(self.marginal.domain.axes(attributes))
        return Measurement(self.marginal.project(attributes), variance, grouping)
