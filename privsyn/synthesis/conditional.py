"""Records of which some attributes are given: the rest as the tables have it in such records.

They begin as records made of the tables that have what is given, or come nearest. Then the other attributes
are moved by annealing until every table that holds all that is given has its own counts beside it; the other
tables stay as they were. Nothing private is asked: this is arithmetic on what was released.
"""

from __future__ import annotations

import numpy as np

from privsyn.marginals.counting import count
from privsyn.marginals.domain import Attributes, Records
from privsyn.marginals.marginal import Marginal, lift
from privsyn.marginals.nearest_rows import nearest_rows
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.synthesis.annealing import finish


def complete(
    given: Records,
    pool: Records,
    tables: tuple[Marginal, ...],
    rng: np.random.Generator,
    possible: StructuralZeros = NO_ZEROS,
) -> Records:
    """One record for each row of `given`, which it keeps.

    Parameters
    ----------
    given : Records over some attributes of the pool
    pool : Records made of the tables
    tables : tuple of Marginal, non-negative and agreeing
    rng : numpy.random.Generator
    possible : Possible

    Examples
    --------
    In the table half of the women smoke and no man does; of ten women that are asked for, five do:

    >>> from privsyn.marginals.domain import Domain
    >>> domain = Domain(("sex", "smokes"), (2, 2))
    >>> table = Marginal(domain, np.array([[30.0, 30.0], [40.0, 0.0]]))
    >>> pool = Records(domain, np.repeat([[0, 0], [0, 1], [1, 0]], [30, 30, 40], axis=0))
    >>> women = Records(domain.project(("sex",)), np.zeros((10, 1), int))
    >>> int(complete(women, pool, (table,), np.random.default_rng(0)).codes[:, 1].sum())
    5
    """
    axes = pool.domain.axes(given.domain.names)
    alike = nearest_rows(list(pool.codes[:, axes].T), np.ones(len(pool)), list(given.codes.T), rng)
    codes = np.array(pool.codes[alike])
    codes[:, axes] = given.codes
    start = Records(pool.domain, codes)
    wanted = tuple(_beside(table, given, start) for table in tables)
    wanted = tuple(table for table in wanted if table.total > 0)
    return finish(start, wanted, rng, possible=possible, still=given.domain.names)


def _beside(table: Marginal, given: Records, start: Records) -> Marginal:
    """What a table is to hold: its own counts beside what is given; without that, those at the start."""
    names: Attributes = given.domain.names
    now = Marginal(table.domain, count(start, table.attributes).astype(np.float64))
    if not set(names) <= set(table.attributes):
        return now
    had, wanted = table.project(names), Marginal(given.domain, count(given, names).astype(np.float64))
    known = lift(had, table.domain) > 0
    per = np.divide(
        lift(wanted, table.domain), lift(had, table.domain), out=np.zeros(known.shape), where=known
    )
    return Marginal(table.domain, np.where(known, table.counts * per, now.counts))
