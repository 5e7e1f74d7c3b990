"""The columns alone: one-way counts, measured twice, and the codes in which all later tables are counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from math import sqrt
from statistics import harmonic_mean
from types import MappingProxyType

import numpy as np

from privsyn.inference.consistency import combine_measurements, estimate_total, norm_sub
from privsyn.inference.measured_columns import FewCells, MeasuredColumns, PublicFacts
from privsyn.inference.ordered.binning import LEVELS, NO_CELLS, Axis, expected_cells, in_runs
from privsyn.inference.ordered.support import (
    GroupedCells,
    counts_of_levels,
    likely_shares,
    occurring,
    occurring_groups,
    with_counts,
)
from privsyn.inference.ordered.tails import Tails
from privsyn.inference.rare_values import THRESHOLD, merge_cells, merge_rare
from privsyn.inference.selection import near_pairs
from privsyn.marginals.channel import Channels
from privsyn.marginals.domain import Attributes, Floats, Mask
from privsyn.marginals.known_totals import EXACT
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.tolerances import SMALLEST, TINY_SHARE
from privsyn.methods.budget import TREND_GROUPS, Split, first_share, label_share
from privsyn.methods.missing_cells import FALSE_DISCOVERY, OF_OPEN, missing_thresholds
from privsyn.private.contribution import ONE_ROW_EACH
from privsyn.private.measure import PrivateTable
from privsyn.private.noise_laws import Law

Levels = Sequence[tuple[Floats, Floats]]
"""Counts and variances of cells, of their runs, of the runs of these; see `expected_cells`."""

FEWEST_GROUPS = 6  # groups of a column in fine cells, whatever the noise; not tuned
ANY = 2**31  # values: no attribute has more
IMPORTANT_COLUMN = 3.0  # budget of a column of an important set, over what it has else
HALVES = 2  # groups of a number that show its trend with the target
DROWNED = 0.5  # noise of a cell with the target, over its mean count, above which numbers lose own counts
MOST_OWN = 0.25  # share of these of all numbers, in what the first count leaves, beside the target's tables
OF_CLASSES = 1 / 3  # share of the classes of a target in the first count: they decide how all is split
OF_NUMBERS = 3.0
"""Weight of an error in a table with the number of rows below a row: it also moves the tables of these rows
with the columns of the row."""
OF_PATHS = 0.3
"""The same with the first value, or the number of changes, of a column that lasts in the rows below. Tables
of these rows show much of the same."""
OF_ABOVE = 0.3  # budget of a given attribute, relative to one of the row itself
NOWHERE = 1e-9  # width of a cell that does not occur
FAR = 0.01  # share of the records: the noise of the first count may put as many far from all others
NO_FREQUENT: FewCells = (NO_CELLS, np.zeros(0), np.zeros(0))
MANY_VALUES = 500  # an attribute with more has its rare values pooled: its pairs would be too large to count


def measure_columns(
    private: PrivateTable, rho: float, facts: PublicFacts
) -> tuple[PrivateTable, MeasuredColumns, Split]:
    """Return the private table in merged codes, these with the one-ways, counted twice, and the split.

    The first count determines the budget of the second, its split over the columns, and which fine cells are
    joined: a sum of many cells is far noisier than one count of the group. Both counts together determine the
    rare values. Columns whose counts are public are not asked.
    """
    facts, totals = _beside_totals(facts), facts.totals
    public = {name for name in private.domain if totals.covers((name,))}
    counted_columns = [name for name in private.domain if name not in public]
    cost = rho * first_share(len(private.domain), len(counted_columns), pure=private.law.name == "laplace")
    first, cells, levels = _count_first(private, cost, facts, public)
    # From the first count alone:
    total = totals.total if totals else estimate_total(first)
    unbiased = tuple(map(Channels.for_domain(facts.retention, private.domain).unbiased, first))
    split, shares = _split(private, rho, facts, unbiased, total, cells)
    if pairs_with_weights(private.domain.names, facts):
        split = split.for_weights()
    costs = dict(zip(counted_columns, (split.one_ways * shares).tolist(), strict=True))
    axes = grouped(facts.axes, costs, total, private.law, facts.unjoined)
    joined = totals.divide(merge_cells(unbiased, total, axes, cells))
    private, one_ways = private.merge(joined), tuple(map(joined.merge_counts, first))
    if split.one_ways:
        second = {
            again.attributes: again for again in private.one_ways(split.one_ways, shares, public=public)
        }
        one_ways = tuple(
            combine_measurements(one_way, second[one_way.attributes])
            if one_way.attributes in second
            else one_way
            for one_way in one_ways
        )
    spared = MANY_VALUES if split.asks_pairs else ANY
    pooled, measured_columns = _pooled(one_ways, joined, levels, facts, private.law, spared)
    return private.merge(pooled), measured_columns, split


def pairs_with_weights(names: Attributes, facts: PublicFacts) -> tuple[Attributes, ...]:
    """Return the pair of each column with the weights of rows; none if rows have no weights."""
    columns = tuple(name for name in names if name not in facts.context_weights)
    pairs = () if facts.weight is None else near_pairs(columns, 0, facts.weight)
    return tuple(pair for pair in pairs if not facts.totals.covers(pair))


def _beside_totals(facts: PublicFacts) -> PublicFacts:
    """Return the facts for columns of which exact counts are public: all their values are in use.

    A column whose counts are all known is not joined into groups either.
    """
    totals = facts.totals
    if not totals:
        return facts
    return replace(
        facts,
        axes={name: axis for name, axis in facts.axes.items() if not totals.covers((name,))},
        doubtful=[name for name in facts.doubtful if name not in totals.attributes],
        nullable=[name for name in facts.nullable if name not in totals.attributes],
    )


def _pooled(
    one_ways: tuple[Measurement, ...],
    joined: Merging,
    levels: Mapping[str, Levels],
    facts: PublicFacts,
    law: Law,
    spared: int,
) -> tuple[Merging, MeasuredColumns]:
    """Return how rare values are pooled, and the measured columns in these codes. No row is read.

    Parameters
    ----------
    one_ways : tuple of Measurement
        Of both counts together, in joined cells.
    joined : Merging
        Which fine cells are joined.
    levels : mapping of str to Levels
        The counts of each column in fine cells at each level, from the first count.
    facts : PublicFacts
    law : Law
    spared : int
        As for `merge_rare`.
    """
    channels = Channels.for_domain(facts.retention, joined.original).merge(joined)
    unbiased = tuple(map(channels.unbiased, one_ways))
    total = facts.totals.total if facts.totals else estimate_total(one_ways)
    nullable = set(facts.nullable).difference(facts.retention)
    rate = FALSE_DISCOVERY if nullable.isdisjoint(facts.doubtful) else OF_OPEN
    thresholds = missing_thresholds(unbiased, total, nullable, law, facts.target, discovery=rate)
    # An order of values and distances has two parts, and randomised cells have another noise.
    two = {name for name, axis in facts.axes.items() if axis.second}
    ended = set(levels).intersection(facts.doubtful).difference(facts.retention, two)
    axes, occurs, joined = _found_axes(unbiased, facts, law, joined, {name: levels[name] for name in ended})
    emptied = []  # with exact zeros where no record is
    for one_way in one_ways:
        some, domain = occurs[one_way.attributes[0]], one_way.marginal.domain
        counts, variance = (np.where(some, x, 0.0) for x in (one_way.marginal.counts, one_way.variance))
        emptied.append(Measurement(Marginal(domain, counts), variance, one_way.grouping))
    pooled = merge_rare(
        tuple(map(channels.unbiased, emptied)),
        total,
        spared=spared,
        doubtful=facts.doubtful,
        nullable=thresholds,
        occurs=occurs,
        starts={name: np.unique(joined.group_of[name][axis.starts]) for name, axis in facts.axes.items()},
    )
    pooled = facts.totals.merge(joined).divide(pooled)
    merging = joined.then(pooled)
    return pooled, MeasuredColumns(
        merging,
        facts.zeros_after(merging),
        Tails(merging, axes, ended, facts.ranked),
        Channels.for_domain(facts.retention, merging.original).merge(merging),
        facts.target,
        tuple(map(pooled.merge_counts, emptied)),
        important=facts.important,
        attribute_weights={**facts.context_weights, **facts.weights},
        totals=facts.totals,
    )


def _split(
    private: PrivateTable,
    rho: float,
    facts: PublicFacts,
    first: tuple[Measurement, ...],
    total: float,
    cells: Mapping[str, Floats],
) -> tuple[Split, Floats]:
    """Return the split of the budget over the questions, and that of the second count over the columns.

    They follow from the first count, its `total` and the expected counts of fine cells; no row is read. The
    second count has the columns whose counts are not public.
    """
    counted_columns = tuple(one_way for one_way in first if not facts.totals.covers(one_way.attributes))
    names = [one_way.attributes[0] for one_way in counted_columns]
    fewest = merge_cells(first, total, facts.axes, cells)
    merged = merge_rare(tuple(map(fewest.merge_counts, first)), total, spared=MANY_VALUES).merged
    informative = dict(
        zip(names, informative_cells(counted_columns, total, facts.ranked).tolist(), strict=True)
    )
    split = Split.for_domain(rho, merged, total, informative, law=private.law, ranked=facts.ranked)
    if not counted_columns:
        return split, np.zeros(0)
    reaches = {name: reach(cells[name], facts.axes[name]) for name in cells}
    shares = column_shares(counted_columns, total, reaches, facts.ranked)
    if facts.context_weights:
        less = np.where(np.isin(names, [*facts.context_weights]), OF_ABOVE, 1.0) * shares
        shares = less / less.sum()
    if split.pairs and facts.important:
        named = np.isin(names, [name for columns in facts.important for name in columns])
        more = np.where(named, IMPORTANT_COLUMN, 1.0) * shares
        split, shares = split.for_important(float(more.sum())), more / more.sum()
    return _label_first(private, facts, split, shares, first, total)


def _label_first(
    private: PrivateTable,
    facts: PublicFacts,
    split: Split,
    shares: Floats,
    first: tuple[Measurement, ...],
    total: float,
) -> tuple[Split, Floats]:
    """Return the split with a part for the tables of each column with the target, and the columns' shares.

    A nominal column is a margin of such a table: a sum of one noisy count for each class. The larger the
    part, the less the column is asked alone. Numbers are counted with the target in few groups, so they keep
    their own counts: all together at most `MOST_OWN` of what the first count leaves, and less where the cells
    of these tables drown in noise. Columns whose values may not occur or are pooled lose nothing, nor does
    any column if the target is a number or tables count other rows of a person than columns do.

    Parameters
    ----------
    private : PrivateTable
        Its domain, law and contribution are public.
    facts : PublicFacts
    split, shares
        Without a target.
    first : tuple of Measurement
        The first count of each attribute, without bias.
    total : float
        Estimated number of records.
    """
    domain = private.domain
    columns = tuple(name for name in domain if name not in facts.context_weights)
    pairs = [pair for pair in near_pairs(columns, 0, facts.target) if not facts.totals.covers(pair)]
    if not pairs or facts.important:  # sets that matter most are not asked last
        return split, shares
    target = np.isin(domain.names, [str(facts.target)])
    features = np.isin(domain.names, pairs) & ~target
    numbers = {name for name in domain if domain.ordered_of[name] > 2}
    pooled = {name for name in domain if domain.size_of[name] > MANY_VALUES} - numbers
    apart = {*facts.doubtful, *facts.context_weights, *pooled}
    if facts.target in apart | numbers or private.contribution != ONE_ROW_EACH:
        apart.update(domain)
    counted_columns = [name for name in domain if not facts.totals.covers((name,))]
    margin, costs = ~np.isin(counted_columns, [*apart, *numbers]), split.one_ways * shares
    alone = np.isin(counted_columns, [*numbers - apart])
    rest = split.rest - float(costs[~margin].sum())
    if rest <= TINY_SHARE * split.rest:
        return split, shares
    sigma = 1 / sqrt(2 * private.law.rho(rest / len(pairs)))
    cells = informative_cells(first, total, facts.ranked, groups=HALVES)
    noise = (
        sigma
        * float(cells[features].mean())
        / rows_of_class(first[int(np.argmax(target))], total, facts.ranked)
    )
    share = label_share(noise) if len(domain) > 2 else 1.0
    if not share:
        return split, shares
    limit = MOST_OWN * split.rest / max(float(costs[alone].sum()), SMALLEST)
    parts = np.select([margin, alone], [1 - share, min(DROWNED / max(noise, DROWNED), limit)], 1.0)
    label = share * rest + float(costs @ np.where(alone, 1 - parts, 0.0))
    costs = parts * costs
    one_ways = float(costs.sum())
    return split.for_label(label, one_ways), costs / max(one_ways, SMALLEST)


def _has_halves(target: str | None, ordered: int, ranked: Collection[str]) -> bool:
    """Return whether a target is a number or a time: its halves are counted, and not its values."""
    return ordered > HALVES and target not in ranked


def _found_axes(
    one_ways: tuple[Measurement, ...],
    facts: PublicFacts,
    law: Law,
    joined: Merging,
    levels: Mapping[str, Levels],
) -> tuple[dict[str, Axis], dict[str, Mask], Merging]:
    """Return the layouts of the cells that occur, which codes of each attribute do, and the shares of cells.

    Whole numbers that are counted one by one are `occurring` or not. Of columns in groups of fine cells, the
    groups at both ends are, and of the last ones some cells; see `likely_shares`. The one-ways decide, and
    the counts by which bounds were found. No row is read. Tails reach no cell that is as narrow as those
    that do not occur.
    """
    axes, occurs, shares = dict(facts.axes), {}, list(joined.shares)
    for index, one_way in enumerate(one_ways):
        (name,), (ordered,) = one_way.attributes, one_way.marginal.domain.ordered
        occurs[name] = np.ones(len(one_way.marginal.counts), np.bool_)
        if name not in facts.doubtful or name not in axes:
            continue
        counts, variances = one_way.marginal.counts[:ordered], one_way.variance[:ordered]
        widths = axes[name].widths
        cells = slice(len(widths))
        group, share = joined.groups[index][cells], np.array(shares[index])
        combined = with_counts(counts, variances, group, share[cells], facts.bounds_counts.get(name))
        if len(widths) == ordered and (widths == 1).all():
            occurs[name][:ordered] = occurring(*combined, law.deviations, len(one_ways))
            axes[name] = replace(axes[name], widths=np.where(occurs[name][:ordered], 1.0, NOWHERE))
        elif name in levels:
            some = occurring_groups(*combined, law.deviations, len(one_ways))
            cell_counts = [
                *counts_of_levels(levels[name]),
                *([facts.bounds_counts[name]] if name in facts.bounds_counts else []),
            ]
            grouped_cells = GroupedCells(group, share[cells], widths)
            share[cells] = likely_shares(counts, variances, some, grouped_cells, cell_counts)
            occurs[name][:ordered], shares[index] = some, share
            held = some[group] & (share[cells] > 0)
            axes[name] = replace(axes[name], widths=np.where(held, widths, NOWHERE))
    return axes, occurs, replace(joined, shares=tuple(shares))


def column_shares(
    one_ways: tuple[Measurement, ...],
    total: float,
    reaches: Mapping[str, float] = MappingProxyType({}),
    ranked: Collection[str] = (),
) -> Floats:
    """Return each column's share of a budget, with which the columns' errors together are smallest.

    k counts with noise of standard deviation s have an L1 error in proportion to k s, and s to the inverse
    root of the budget. So the best shares are in proportion to k^(2/3), where k is that of
    `informative_cells`. In a column with a long tail, noise at its end moves the mean more than that: one
    record moves it by `reach` standard deviations over the number of records. There k is the reach.

    Parameters
    ----------
    one_ways : tuple of Measurement
        Released counts of each column, without bias.
    total : float
        Estimated number of records.
    reaches : mapping of an attribute to its reach, optional
    ranked : collection of attributes, optional
        See `informative_cells`.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> from privsyn.marginals.marginal import Marginal
    >>> a = Measurement(Marginal(Domain(("a",), (2,)), np.array([60.0, 40.0])), 9.0)
    >>> b = Measurement(Marginal(Domain(("b",), (20,)), np.array([6.0] * 16 + [-2.0] * 4)), 9.0)
    >>> column_shares((a, b), 100.0).round(2).tolist()
    [0.2, 0.8]
    >>> column_shares((a, b), 100.0, {"a": 16.0}).round(2).tolist()
    [0.5, 0.5]
    """
    smallest = [max(reaches.get(one_way.attributes[0], 0.0), 2.0) for one_way in one_ways]
    weights = np.maximum(informative_cells(one_ways, total, ranked), smallest) ** (2 / 3)
    return np.asarray(weights / weights.sum())


def reach(expected: Floats, axis: Axis) -> float:
    """Return the distance of the farther end of a column from its median, in standard deviations.

    The standard deviation is that of the records nearest to the median: all but `FAR`, which may be noise.
    The reach is at most the number of groups, or a column of which only one cell was seen would get all.

    Parameters
    ----------
    expected : array of shape (cells,)
        Expected counts, at least 0.
    axis : Axis

    Examples
    --------
    >>> [round(reach(np.array([50.0, 50, 0]), Axis(np.array([1.0, 1, end]), 32)), 2) for end in (1, 9, 99)]
    [4.0, 20.0, 32.0]
    """
    ends, shares = np.cumsum([0.0, *axis.widths]), expected / max(float(expected.sum()), TINY_SHARE)
    median = float(np.interp(0.5, np.cumsum([0.0, *shares]), ends))
    away = np.abs((ends[1:] + ends[:-1]) / 2 - median)
    nearest = np.argsort(away, kind="stable")
    below = np.cumsum(shares[nearest])
    near = np.diff(np.minimum(below, 1 - FAR), prepend=0.0)
    deviation = sqrt(float(near @ away[nearest] ** 2) / (1 - FAR))
    return min(max(median, float(ends[-1]) - median) / max(deviation, TINY_SHARE), float(axis.groups))


def grouped(
    axes: Mapping[str, Axis],
    costs: Mapping[str, float],
    total: float,
    law: Law,
    ungrouped: Collection[str] = (),
) -> dict[str, Axis]:
    """Return the layouts with as many groups of equally many records as will stand out of the noise.

    More groups would add noise to every sum of groups, such as the distribution function, and show no detail.
    Cells of numbers of child rows are few, and the first hold most records. Joined, these would be divided by
    the noise of the first count.

    Parameters
    ----------
    axes : mapping of an attribute to its Axis
    costs : mapping of an attribute to the budget of its counts in groups; with 0 they are not counted again
    total : float
        Estimated number of records.
    law : Law
    ungrouped : collection of attributes, optional
        An attribute of at most as many cells as groups stays as it is.

    Examples
    --------
    With noise of 10 records, 30 records stand out:

    >>> from privsyn.private.noise_laws import GAUSSIAN
    >>> axes = {"a": Axis(np.ones(64), 32)}
    >>> [grouped(axes, {"a": 0.005}, total, GAUSSIAN)["a"].groups for total in (1e2, 6e2, 1e4)]
    [6, 20, 32]
    """
    layouts = {}
    for name, axis in axes.items():
        clear = total * sqrt(2 * law.rho(costs[name])) / THRESHOLD
        groups = min(max(int(clear), FEWEST_GROUPS), axis.groups)
        few = name in ungrouped and len(axis.widths) <= axis.groups
        layouts[name] = replace(axis, groups=groups) if costs[name] and not few else axis
    return layouts


def informative_cells(
    one_ways: tuple[Measurement, ...],
    total: float,
    ranked: Collection[str] = (),
    groups: int = TREND_GROUPS,
) -> Floats:
    """Return the number of cells of each column that stand out of the noise of its counts.

    Values that drown in the noise count for nothing: norm-sub sets them to 0. A column of numbers or times
    counts for at most `groups`, because its pairs show their trend in few groups.

    Parameters
    ----------
    one_ways : tuple of Measurement
        Released counts of each column, without bias.
    total : float
        Estimated number of records.
    ranked : collection of attributes, optional
        The attributes of listed values that have an order: each value counts.
    """
    cells = np.empty(len(one_ways))
    for index, one_way in enumerate(one_ways):
        ordered = 0 if one_way.attributes[0] in ranked else one_way.marginal.domain.ordered[0]
        consistent = norm_sub(one_way.marginal.counts, total)[ordered:]
        cells[index] = np.count_nonzero(consistent) + min(ordered, groups)
    return cells


def rows_of_class(target: Measurement, total: float, ranked: Collection[str] = ()) -> float:
    """Return the harmonic mean of the records of each class: noise over it is the mean relative noise.

    A model learns from how the classes differ, so the noise in the cells of a rare class hides as much as if
    all classes were as rare. Classes that may be noise do not count, but for the two largest: a class that
    noise hides is at most about as large as its noise. The halves of a number are classes too.

    Parameters
    ----------
    target : Measurement
        The released counts of the attribute that models predict, without bias.
    total : float
        Estimated number of records.
    ranked : collection of attributes, optional
        See `informative_cells`.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> from privsyn.marginals.marginal import Marginal
    >>> domain = Domain(("sick",), (3,))
    >>> for counts in ([500.0, 500.0, 0.0], [900.0, 100.0, 0.0], [980.0, 18.0, 2.0]):
    ...     round(rows_of_class(Measurement(Marginal(domain, np.array(counts)), 100.0), 1000.0), 1)
    500.0
    180.0
    35.4
    """
    if _has_halves(target.attributes[0], target.marginal.domain.ordered[0], ranked):
        return total / float(informative_cells((target,), total, ranked, groups=HALVES)[0])
    counts, deviation = norm_sub(target.marginal.counts, total), np.sqrt(target.variance)
    clear = max(int(np.count_nonzero(counts > THRESHOLD * deviation)), HALVES)
    classes = np.sort(np.maximum(counts, deviation))[-clear:]
    return harmonic_mean(np.maximum(classes, SMALLEST).tolist())


def with_frequent(one_way: Measurement, frequent: FewCells) -> Measurement:
    """Return the counts of a column, combined with those of frequent numbers that were released before.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> from privsyn.marginals.marginal import Marginal
    >>> price = Measurement(Marginal(Domain(("price",), (3,)), np.array([5.0, 70.0, 5.0])), 300.0)
    >>> both = with_frequent(price, (np.array([1]), np.array([90.0]), np.array([100.0])))
    >>> both.marginal.counts.tolist(), both.variance.tolist()
    ([5.0, 85.0, 5.0], [300.0, 75.0, 300.0])
    """
    cells, rows, variances = frequent
    counts, variance = one_way.marginal.counts.copy(), np.array(one_way.variance)
    share = variance[cells] / np.maximum(variance[cells] + variances, TINY_SHARE)  # of the released counts
    counts[cells] += share * (rows - counts[cells])
    variance[cells] *= 1 - share
    return Measurement(Marginal(one_way.marginal.domain, counts), variance, one_way.grouping)


def _count_first(
    private: PrivateTable, rho: float, facts: PublicFacts, public: Collection[str]
) -> tuple[tuple[Measurement, ...], dict[str, Floats], dict[str, Levels]]:
    """Return the one-ways, and of columns in fine cells the expected counts and the levels; see `binning`.

    A level is the same private table in merged codes. So each is a question of known sensitivity, and columns
    that are not merged are counted at each level. The counts of `public` columns are not asked. The classes
    of a target get `OF_CLASSES` of the cost for a question of their own, of sensitivity 1.
    """
    domain, classes = private.domain, np.zeros(0)
    ordered = domain.ordered_of.get(str(facts.target), 0)
    if len(domain) > 1 and not _has_halves(facts.target, ordered, facts.ranked):
        classes = np.array([float(name == facts.target) for name in domain if name not in public])
    of_classes = OF_CLASSES * rho if classes.any() else 0.0
    fine = {name: axis for name, axis in facts.axes.items() if domain.ordered_of[name] > axis.groups}
    # Three Laplace answers of a third of the cost have thrice the variance of one answer together.
    count = LEVELS if fine and private.law.name == "gaussian" else 1
    counted: list[tuple[Measurement, ...]] = []
    for _ in range(count):
        private = private.merge(in_runs(private.domain, fine)) if counted else private
        counted.append(private.one_ways((rho - of_classes) / count, public=public))
    again = private.one_ways(of_classes, classes, public=public) if of_classes else ()
    total = facts.totals.total if facts.totals else estimate_total((*counted[-1], *again))
    one_ways, cells, seen = [], {}, dict[str, Levels]()
    answers = zip(*counted, strict=True)
    for name in domain:
        if name in public:
            counts = facts.totals.counts((name,)).counts
            one_ways.append(Measurement(Marginal(domain.project((name,)), counts), EXACT))
            continue
        levels = list(next(answers))
        if name not in fine:
            levels += again if name == facts.target else ()
            one_ways.append(reduce(combine_measurements, levels))
            continue
        frequent = facts.frequent.get(name, NO_FREQUENT)
        levels[0] = with_frequent(levels[0], frequent)
        one_ways.append(levels[0])
        measured, unordered = [], 0.0
        for level in levels:
            ordered, counts = level.marginal.domain.ordered[0], level.marginal.counts
            measured.append((counts[:ordered], level.variance[:ordered]))
            unordered += float(counts[ordered:].sum())
        seen[name] = measured
        rows = max(total - max(unordered / len(levels), 0.0), 1.0)
        cells[name] = expected_cells(measured, fine[name].widths, rows, frequent[0])
    return tuple(one_ways), cells, seen
