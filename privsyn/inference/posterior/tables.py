"""Draws of all tables together: one-ways first, then pairs with these margins, then bigger tables.

The margins of a pair are known better from all tables together than from the pair. So a pair adds only what
its margins leave open. The noise in that part is independent of the noise in the pair's margins.
All noise is taken as normal, also where it is discrete Laplace: sums of many cells nearly are.

Drawn pairs contradict each other, because each has its own noise. Records that fit them all have other
trends, in house sales weaker ones. So records are made twice: the targets of the second time exceed the drawn
trends by what the first records fell short of them. This meets trends that some records can have; where no
records follow all pairs, a part of the shortfall stays.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from privsyn.inference.fitted import Fitted
from privsyn.inference.higher_order import margins_inside
from privsyn.inference.ordered.tilt import Trend, ranks_of
from privsyn.inference.posterior.cells import draw_cells
from privsyn.inference.posterior.margins import draw_margins, noise_of
from privsyn.inference.posterior.places import DrawnPlaces
from privsyn.marginals.counting import count
from privsyn.marginals.domain import Records
from privsyn.marginals.grouping import NO_GROUPS
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.marginals.types import Floats

FARTHEST = 3.0  # standard deviations: a number beyond counts as this one, so that no tilt is steep
ENOUGH = 0.1  # standard deviations of the trend of independent records: a gap that does not matter


@dataclass(frozen=True, eq=False)
class Posterior:
    """The tables that the private one could have, given the noisy answers.

    Parameters
    ----------
    fitted : Fitted
    possible : StructuralZeros
    numbers : mapping of an attribute to an array of shape (ordered codes,), optional
        Mean number of the records of each code.
    """

    fitted: Fitted
    possible: StructuralZeros = NO_ZEROS
    numbers: Mapping[str, Floats] = field(default_factory=dict)

    def draw(self, rng: np.random.Generator) -> Fitted:
        """Return the tables of one draw. They agree, are not negative, and have the released total."""
        fitted, first = self.fitted, len(self.fitted.one_ways)
        measured = [certainty.measured for certainty in fitted.certainties]
        drawn = draw_margins(measured[:first], fitted.one_ways, self._factors, rng, self.numbers)
        margins = self.possible.settle(drawn)
        order = sorted(range(len(fitted.marginals)), key=lambda i: len(fitted.marginals[i].attributes))
        tables: dict[int, Marginal] = {}
        for i in order:
            table = fitted.marginals[i]
            smaller = [t for t in tables.values() if len(t.attributes) < len(table.attributes)]
            sides = margins_inside(table.attributes, tuple(smaller), margins)
            tables[i] = self._drawn(measured[first + i], table, sides, rng)
        return replace(
            fitted,
            merging=DrawnPlaces.draw(fitted.merging, rng),
            one_ways=margins,
            marginals=tuple(tables[i] for i in range(len(tables))),
        )

    @cached_property
    def _factors(self) -> list[Floats]:
        return [noise_of(self.fitted, self.possible, name) for name in self.fitted.merging.merged.names]

    def _drawn(
        self,
        measured: Measurement,
        released: Marginal,
        sides: tuple[Marginal, ...],
        rng: np.random.Generator,
    ) -> Marginal:
        """Return one table drawn from its posterior, with the given margins."""
        noise = rng.standard_normal(measured.variance.shape) * np.sqrt(measured.variance)
        answers = Measurement(
            Marginal(measured.marginal.domain, measured.marginal.counts + noise),
            measured.variance,
            measured.grouping,
        )
        drawn = draw_cells(released, answers, sides, rng)
        return fit_margins(self.possible.fit(drawn, sides), sides) if self.possible.masks else drawn


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
