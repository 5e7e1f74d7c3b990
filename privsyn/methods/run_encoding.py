"""The codec of the rows of a run, and of a plan of one, from one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.steps import NO_HEAPS, Heaps, with_cuts
from privsyn.table.schema.schema import Schema
from privsyn.table.totals.totals import Totals


@dataclass(frozen=True, eq=False)
class RunEncoding:
    """What decides how the rows of a run, or of a plan of one, are encoded.

    Parameters
    ----------
    schema : OpenSchema
    columns : data frame
        Any rows with the names and dtypes of the columns. No cell is read.
    target : str, optional
    totals : Totals
    fine : bool
        Whether the method counts fine cells.
    """

    schema: OpenSchema
    columns: Any
    target: str | None
    totals: Totals
    fine: bool

    def codec(
        self,
        schema: Schema | None = None,
        heaps: Mapping[str, Heaps] = NO_HEAPS,
        without_gaps: tuple[str, ...] | None = None,
    ) -> Codec:
        """Return the codec under a complete schema.

        Parameters
        ----------
        schema : Schema, optional
            Default: values and bounds that `fit` would find are assumed.
        heaps : mapping of a column to Heaps, optional
        without_gaps : tuple of str, optional
            Default: those that are counted without gaps where no released count decides.
        """
        schema = self.schema.fill({}, {}) if schema is None else schema
        if without_gaps is None:
            without_gaps = self.schema.without_gaps_by_default(schema)
        return Codec.for_table(
            schema,
            self.columns,
            fine=self.fine,
            heaps=with_cuts(heaps, self.totals.cuts(schema, self.columns)),
            unsplit=(self.target, schema.weight, *self.schema.compared, *self.totals.columns),
            compared=self.schema.compared,
            without_gaps=without_gaps,
        )
