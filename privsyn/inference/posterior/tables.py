"""Draws of all tables together: one-ways first, then pairs with these margins, then bigger tables.

The margins of a pair are known better from all tables together than from the pair. So a pair adds only what
its margins leave open. The noise in that part is independent of the noise in the pair's margins.
All noise is taken as normal, also where it is discrete Laplace: sums of many cells nearly are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from privsyn.inference.fitted import Fitted
from privsyn.inference.higher_order import margins_inside
from privsyn.inference.posterior.cells import draw_cells
from privsyn.inference.posterior.margins import draw_margins, noise_of
from privsyn.inference.posterior.places import DrawnPlaces
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.marginals.types import Floats


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
