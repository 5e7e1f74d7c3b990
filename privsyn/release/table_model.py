"""TableModel: a fitted table with what its counts say: expected errors, losses and an outlook."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from privsyn.private.find_values import bounds_noise
from privsyn.progress import Progress
from privsyn.release.accuracy.outlook import Outlook
from privsyn.release.accuracy.table_accuracy import TableAccuracy
from privsyn.release.fitted_table import FittedTable
from privsyn.release.losses.kinds import Loss
from privsyn.release.losses.of_table import losses_of
from privsyn.table.io.write import stacked

MOST_ROWS = 20_000  # synthetic rows from which shares are estimated that no table of counts shows


@dataclass(frozen=True, eq=False, repr=False)
class TableModel(FittedTable):
    """The model of one table of a release, with its expected errors, losses and outlook.

    The parameters are those of `FittedTable`.
    """

    @cached_property
    def accuracy_(self) -> TableAccuracy:
        """Expected errors of all measurements, and intervals for counts. They cost no privacy."""
        laplace = self.ledger.accounting == "pure" and not self.ledger.all_local
        noise = bounds_noise(self.ledger, self.codec.names, self.title)
        unpublished = (name for name in self.codec.names if self.columns and name not in self.columns)
        return TableAccuracy(
            self.codec,
            self.fitted,
            laplace,
            self._some_rows,
            self.not_found,
            tuple(unpublished),
            noise,
            self.links,
        )

    def _some_rows(self, progress: Progress | None) -> pd.DataFrame:
        return stacked(self.blocks(min(round(self.fitted.total), MOST_ROWS), 0, progress))

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """What the run did to each column, the largest share of lost cells first. It costs no privacy."""
        return losses_of(self)

    def outlook(self, target: str | None = None) -> str:
        """Return one sentence on how good the synthetic rows are likely to be; see `Release.outlook`."""
        if target is not None:
            self.codec.schema.check_coded("target", target)
        return str(Outlook.of(self, target))
