"""Pool: records of a release, from which records with some attributes given are drawn.

The other attributes are as in the tables. The start is the nearest records of a pool made from the tables.
Annealing then moves the other attributes. Each table that holds all given attributes is fitted to its
conditional counts. Other tables keep their counts. This reads only released counts and costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privsyn.inference.fitted import Fitted
from privsyn.marginals.counting import count
from privsyn.marginals.domain import Array, Attributes, Numbers, Records
from privsyn.marginals.marginal import Marginal, lift
from privsyn.marginals.nearest_rows import nearest_rows
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.synthesis.annealing import finish
from privsyn.synthesis.synthesise import ENOUGH
from privsyn.synthesis.targets import Targets
from privsyn.table.codec.codec import Codec

EACH = 1000
"""Records made for each combination of given values, to estimate the numbers that occur with it."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Records of a release, with all that is needed to make more and to decode them.

    Parameters
    ----------
    codec : Codec
    fitted : Fitted
    tables : tuple of Marginal
        The marginals from which records are made.
    records : Records
        In merged codes.
    rng : numpy.random.Generator
    """

    codec: Codec
    fitted: Fitted
    tables: tuple[Marginal, ...]
    records: Records
    rng: np.random.Generator

    def complete(self, wanted: Records) -> Records:
        """Return a record for each of `wanted`, which have codes of some attributes."""
        zeros = self.codec.possible(self.fitted.merging)
        return complete(wanted, self.records, self.tables, self.rng, zeros)

    def with_values(self, held: Numbers, n: int) -> tuple[Records, Array, Array]:
        """Return records with the given values, and the combination of each record and of each row."""
        merging = self.fitted.merging
        if not held:
            return self.records, np.zeros(len(self.records), np.int64), np.zeros(n, np.int64)
        cells, axes = self.codec.cells(), merging.original.axes(tuple(held))
        merged = [
            merging.groups[axis][cells[name].find(numbers)]
            for axis, (name, numbers) in zip(axes, held.items(), strict=True)
        ]
        distinct, kind = np.unique(np.stack(merged, axis=1), axis=0, return_inverse=True)
        kinds = np.repeat(np.arange(len(distinct)), max(EACH, -(-ENOUGH // len(distinct))))
        wanted = Records(merging.merged.project(tuple(held)), distinct[kinds])
        return self.complete(wanted), kinds, kind.ravel()

    def numbers(self, records: Records) -> Numbers:
        """Return the numbers of all columns of records."""
        merging = self.fitted.merging
        return self.codec.numbers(merging.restore(records, self.rng), self.rng, merging)


def complete(
    fixed: Records,
    pool: Records,
    tables: tuple[Marginal, ...],
    rng: np.random.Generator,
    possible: StructuralZeros = NO_ZEROS,
) -> Records:
    """Return one record for each row of `fixed`, with the values that it fixes.

    Parameters
    ----------
    fixed : Records over some attributes of the pool
    pool : Records made from the tables
    tables : tuple of Marginal, non-negative and agreeing
    rng : numpy.random.Generator
    possible : StructuralZeros

    Examples
    --------
    In the table half of the women smoke and no man does. Of ten women, five then smoke:

    >>> from privsyn.marginals.domain import Domain
    >>> domain = Domain(("sex", "smokes"), (2, 2))
    >>> table = Marginal(domain, np.array([[30.0, 30.0], [40.0, 0.0]]))
    >>> pool = Records(domain, np.repeat([[0, 0], [0, 1], [1, 0]], [30, 30, 40], axis=0))
    >>> women = Records(domain.project(("sex",)), np.zeros((10, 1), int))
    >>> int(complete(women, pool, (table,), np.random.default_rng(0)).codes[:, 1].sum())
    5
    """
    axes = pool.domain.axes(fixed.domain.names)
    alike = nearest_rows(list(pool.codes[:, axes].T), np.ones(len(pool)), list(fixed.codes.T), rng)
    codes = np.array(pool.codes[alike])
    codes[:, axes] = fixed.codes
    start = Records(pool.domain, codes)
    wanted = tuple(_beside(table, fixed, start) for table in tables)
    wanted = tuple(table for table in wanted if table.total > 0)
    return finish(start, Targets((), wanted, possible), rng, still=fixed.domain.names)


def _beside(table: Marginal, fixed: Records, start: Records) -> Marginal:
    """Return the target of a table: its counts given `fixed` if it has these attributes, else of `start`."""
    names: Attributes = fixed.domain.names
    now = Marginal(table.domain, count(start, table.attributes).astype(np.float64))
    if not set(names) <= set(table.attributes):
        return now
    had, wanted = table.project(names), Marginal(fixed.domain, count(fixed, names).astype(np.float64))
    is_known = lift(had, table.domain) > 0
    per = np.divide(
        lift(wanted, table.domain), lift(had, table.domain), out=np.zeros(is_known.shape), where=is_known
    )
    return Marginal(table.domain, np.where(is_known, table.counts * per, now.counts))
