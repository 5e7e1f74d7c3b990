"""Make up for the trends that records fall short of.

Drawn pairs contradict each other, because each has its own noise. Records that fit them all have other
trends, in house sales weaker ones. So records are made twice: the targets of the second time exceed the drawn
trends by what the first records fell short of them. This meets trends that some records can have; where no
records follow all pairs, a part of the shortfall stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from privsyn.inference.fitted import Fitted
from privsyn.inference.ordered.tilt import Trend, ranks_of
from privsyn.marginals.counting import count
from privsyn.marginals.domain import Records
from privsyn.marginals.grouping import NO_GROUPS
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Floats

FARTHEST = 3.0  # standard deviations: a number beyond counts as this one, so that no tilt is steep
ENOUGH = 0.1  # standard deviations of the trend of independent records: a gap that does not matter


def made_up(drawn: Fitted, records: Records, numbers: Mapping[str, Floats]) -> Fitted:
    """Return drawn tables whose pairs have trends beyond their own by what the records fell short.

    Parameters
    ----------
    drawn : Fitted
    records : Records
        Made from the drawn tables, in merged codes.
    numbers : mapping of an attribute to an array of shape (ordered codes,)
        Mean number of the records of each code.
    """
    one_ways = {side.attributes[0]: side for side in drawn.one_ways}
    functions = {name: _functions(side, numbers.get(name)) for name, side in one_ways.items()}
    marginals = []
    for table in drawn.marginals:
        if len(table.domain) == 2 and max(table.domain.ordered) > 1:
            a, b = (functions[name] for name in table.attributes)
            found = count(records, table.attributes) * (table.total / len(records))
            wanted = a.T @ (2 * table.counts - found) @ b
            enough = np.full(wanted.shape, ENOUGH * np.sqrt(table.total))
            sides = tuple(one_ways[name] for name in table.attributes)
            table = Trend((a, b), (a, b), NO_GROUPS, wanted, enough).impose(table, sides)
        marginals.append(table)
    return replace(drawn, marginals=tuple(marginals))


def _functions(side: Marginal, numbers: Floats | None) -> Floats:
    """Return the ranks of an attribute and what its numbers add to them, or an indicator for each value."""
    ranks = ranks_of(side)
    if numbers is None or not side.domain.ordered[0] > 1:
        return ranks
    size = len(numbers)
    share = side.counts[:size] / max(float(side.counts[:size].sum()), 1.0)
    places = numbers - share @ numbers
    scale = float(np.sqrt(share @ places**2))
    if not scale > 0:
        return ranks
    places = np.clip(places / scale, -FARTHEST, FARTHEST)
    rank = ranks[:size, 0]
    places = places - share @ places - (share @ (places * rank)) * rank
    left = float(np.sqrt(share @ places**2))
    return np.column_stack([ranks, np.pad(places / left, (0, len(ranks) - size))]) if left > 0 else ranks
