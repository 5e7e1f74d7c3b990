"""Pool: records of a release, from which rows with given values are drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privsyn.inference.fitted import Fitted
from privsyn.marginals.domain import Records
from privsyn.marginals.marginal import Marginal
from privsyn.synthesis.conditional import complete
from privsyn.table.codec.codec import Codec
from privsyn.table.enforcement.rules import Numbers


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

    def numbers(self, records: Records) -> Numbers:
        """Return the numbers of all columns of records."""
        merging = self.fitted.merging
        return self.codec.numbers(merging.restore(records, self.rng), self.rng, merging)
