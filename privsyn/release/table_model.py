"""TableModel: a fitted table with what its counts say: expected errors, losses and an outlook."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from privsyn.release.accuracy.outlook import Outlook
from privsyn.release.accuracy.table_accuracy import TableAccuracy
from privsyn.release.fitted_table import FittedTable
from privsyn.release.losses.kinds import Loss
from privsyn.release.losses.of_table import losses_of


@dataclass(frozen=True, eq=False, repr=False)
class TableModel(FittedTable):
    """The model of one table of a release, with its expected errors, losses and outlook.

    The parameters are those of `FittedTable`.
    """

    @cached_property
    def accuracy_(self) -> TableAccuracy:
        """Expected errors of all measurements, and intervals for counts. They cost no privacy."""
        return TableAccuracy(self)

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """What the run did to each column, the largest share of lost cells first. It costs no privacy."""
        return losses_of(self)

    def outlook(self, target: str | None = None) -> str:
        """Return one sentence on how good the synthetic rows are likely to be; see `Release.outlook`."""
        if target is not None:
            self.codec.schema.check_coded("target", target)
        return str(Outlook.of(self, target))
