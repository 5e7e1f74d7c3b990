"""The columns alone: one-way counts from two looks, and the codes in which all later tables are counted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from privsyn.inference.binning import Axis
from privsyn.inference.consistency import combine_measurements, estimate_total
from privsyn.inference.hierarchy import LEVELS, expected_cells, in_runs
from privsyn.inference.rare_values import merge_rare
from privsyn.marginals.channel import Channels
from privsyn.marginals.marginal import Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Floats
from privsyn.methods.budget import FIRST_LOOK, Split
from privsyn.methods.facts import PublicFacts
from privsyn.private.measure import PrivateTable

ANY = 2**31  # values: no attribute has more
MANY_VALUES = 500  # an attribute with more has its rare values pooled: its pairs would be too large to count


def measure_columns(
    private: PrivateTable, rho: float, facts: PublicFacts
) -> tuple[PrivateTable, Merging, tuple[Measurement, ...], Split]:
    """Return the private table in merged codes, the merging, the one-ways from two looks, and the split.

    The first look determines the budget of the second, and which fine cells are joined: a sum of many cells
    is far noisier than one count of the group. Both looks together determine the rare values.
    """
    share = FIRST_LOOK if len(private.domain) > 1 else 1.0
    first, cells = _first_look(private, rho * share, facts.axes)
    total = estimate_total(first)
    channels = Channels.for_domain(facts.kept, private.domain)
    unbiased = tuple(map(channels.unbiased, first))
    # From the first look alone:
    kept = merge_rare(unbiased, total, spared=MANY_VALUES, axes=facts.axes, cells=cells).merged
    split = Split.for_domain(rho, kept, total, predict=facts.target is not None, law=private.law)
    joined = merge_rare(unbiased, total, spared=ANY, axes=facts.axes, cells=cells)
    private, channels = private.merge(joined), channels.merge(joined)
    one_ways = tuple(map(joined.merge_counts, first))
    if split.one_ways:
        one_ways = combine_measurements(one_ways, private.one_ways(split.one_ways))
    spared = MANY_VALUES if split.pairs else ANY
    unbiased = tuple(map(channels.unbiased, one_ways))
    pooled = merge_rare(unbiased, estimate_total(one_ways), spared=spared, doubtful=facts.doubtful)
    one_ways = tuple(map(pooled.merge_counts, one_ways))
    return private.merge(pooled), joined.then(pooled), one_ways, split


def _first_look(
    private: PrivateTable, rho: float, axes: Mapping[str, Axis]
) -> tuple[tuple[Measurement, ...], dict[str, Floats]]:
    """Return the one-ways, and the expected counts of columns in fine cells; see `hierarchy`.

    A level is the same private table in merged codes. So each is a question of known sensitivity, and columns
    that are not merged are counted at each level.
    """
    domain = private.domain
    ordered = dict(zip(domain.names, domain.ordered, strict=True))
    fine = {name: axis for name, axis in axes.items() if ordered[name] > axis.groups}
    # Three Laplace answers of a third of the cost have thrice the variance of one answer together.
    count = LEVELS if fine and private.law.name == "gaussian" else 1
    looks: list[tuple[Measurement, ...]] = []
    for _ in range(count):
        private = private.merge(in_runs(private.domain, fine)) if looks else private
        looks.append(private.one_ways(rho / count))
    total = estimate_total(looks[-1])
    one_ways, cells = [], {}
    for name, *levels in zip(domain.names, *looks, strict=True):
        if name not in fine:
            one_ways.append(reduce(lambda a, b: combine_measurements((a,), (b,))[0], levels))
            continue
        one_ways.append(levels[0])
        counts = [level.marginal.domain.ordered[0] for level in levels]
        known = [(m.marginal.counts[:k], m.variance[:k]) for m, k in zip(levels, counts, strict=True)]
        others = sum(m.marginal.counts[k:].sum() for m, k in zip(levels, counts, strict=True)) / len(levels)
        cells[name] = expected_cells(known, fine[name].widths, max(total - max(others, 0.0), 1.0))
    return tuple(one_ways), cells
