"""From an opened table to what is learnt of it: discover what the schema leaves open, ask, estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from privsyn.inference.all_rows import only, reweighted
from privsyn.inference.fitted import Fitted
from privsyn.marginals.domain import Floats
from privsyn.methods.complete_schema import Discovered, discover
from privsyn.methods.persons import ONE_CLASS, RowClasses
from privsyn.methods.randomise import learn_randomised
from privsyn.methods.reading import Opened
from privsyn.private.contribution import ONE_ROW_EACH, Contribution
from privsyn.private.find_values import Finder
from privsyn.private.measure import PrivateTable
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.beyond import Beyond

if TYPE_CHECKING:
    from privsyn.private.randomness import Noise
    from privsyn.private.spend import QueryLog
    from privsyn.progress import Progress


@dataclass(frozen=True, eq=False)
class Inquiry:
    """What all questions of a run have in common, and the estimates from their answers.

    Parameters
    ----------
    noise : Noise
    log : QueryLog
    rng : numpy.random.Generator
        For computations on answers; it draws no noise.
    report : callable
    """

    noise: Noise
    log: QueryLog
    rng: np.random.Generator
    report: Progress

    def for_table(self, table: str) -> Inquiry:
        """Return the same for the questions to a table, each of which names the table if it has a name."""
        return replace(self, log=self.log.about(table)) if table else self


@dataclass(frozen=True, eq=False)
class Learned:
    """What was learnt of one table.

    Parameters
    ----------
    codec : Codec
    fitted : Fitted
        Of the counted rows. Besides the columns it has attributes of the person and of linked rows.
    private : PrivateTable, optional
        For further questions. Default: the respondents randomised all cells, and none is private.
    row_classes : RowClasses
    contribution : Contribution
    discovered : Discovered, optional
        What was found of what the schema leaves open. Default: it was not asked.
    """

    codec: Codec
    fitted: Fitted
    private: PrivateTable | None = None
    row_classes: RowClasses = ONE_CLASS
    contribution: Contribution = ONE_ROW_EACH
    discovered: Discovered | None = None

    @property
    def not_found(self) -> tuple[str, ...]:
        """Columns of which no value and no bound exceeded the noise."""
        return () if self.discovered is None else self.discovered.not_found

    @property
    def beyond(self) -> Mapping[str, tuple[Beyond, Beyond]]:
        """What the released counts show below and above the bounds of each column that were found."""
        return {} if self.discovered is None else self.discovered.beyond

    @property
    def of_all_rows(self) -> Learned:
        """The same with the model of all rows of each person, in place of the counted rows."""
        if self.contribution.of_columns is None:
            return self
        row_classes = self.row_classes
        zeros = self.codec.possible(self.fitted.merging)
        fitted = reweighted(
            *(self.fitted, row_classes.name, row_classes.rows),
            composition=row_classes.composition,
            zeros=zeros,
        )
        return replace(self, fitted=fitted)

    def cells_of(self, column: str) -> tuple[Floats, Floats]:
        """Return the estimated number of rows in each fine cell of a column of numbers, and its middle."""
        return self.fitted.counts_of(column), self.middles_of(column)

    def middles_of(self, column: str) -> Floats:
        """Return the number that each code of a column of numbers stands for, the middle of its cell."""
        lows, highs = self.codec.encoder_of[column].extents
        return (lows + highs) / 2

    def sum_of(self, column: str) -> tuple[float, float]:
        """Return the estimated sum of a column of numbers over the rows of the model, and its variance."""
        counts, numbers = self.cells_of(column)
        axis = self.fitted.merging.original.names.index(column)
        group, share = self.fitted.merging.groups[axis], self.fitted.merging.shares[axis]
        certainty = self.fitted.one_way_certainty(column)
        of_merged = np.bincount(group, numbers * share)
        variance = np.broadcast_to(certainty.measured.variance, of_merged.shape)
        alone = np.maximum(variance - (certainty.common**2).sum(axis=-1), 0.0)
        together = of_merged @ certainty.common if certainty.common.size else np.zeros(1)
        return float(counts @ numbers), float(of_merged**2 @ alone + together @ together)

    @property
    def own(self) -> Fitted:
        """The model of the columns of the table alone."""
        return only(self.fitted, self.codec.domain.names)


def learn_table(
    opened: Opened,
    row_classes: RowClasses,
    contribution: Contribution,
    inquiry: Inquiry,
    *,
    rho: float,
    delta: float,
) -> Learned:
    """Discover what the schema leaves open, ask the table and estimate its model, within a budget.

    Parameters
    ----------
    opened : Opened
    row_classes : RowClasses
        Classes of the number of rows of a person.
    contribution : Contribution
        What one person may add to an answer.
    inquiry : Inquiry
    rho : float
        Budget of a person for all questions to this table.
    delta : float
        Delta of the thresholds for values.
    """
    noise, log = inquiry.noise, inquiry.log
    rows = opened.bounded(contribution.limit)
    finder = Finder(noise, contribution.limit, log)
    one_row = None if contribution.limit == 1 else opened.bounded(1)
    discovered = discover(
        opened.schema,
        rows,
        opened.settings,
        rho=rho,
        delta=delta,
        finder=finder,
        one_row=one_row,
    )
    codec = opened.codec(discovered.schema, discovered.heaps, discovered.without_gaps)
    row_classes = row_classes.apart(codec.domain.names)
    contribution = replace(contribution, classes=row_classes.name)
    private = PrivateTable(opened.coded(codec, contribution, row_classes), noise, contribution, log)
    # Of a person with k rows, each row has 1/k^2 of the budget, or 1/k.
    remainder = noise.law.of_row(rho * (1 - discovered.share), contribution.limit)
    frequent = {name: numbers.scaled(contribution.of_person) for name, numbers in discovered.frequent.items()}
    facts = opened.facts(codec, discovered.counted, row_classes, frequent)
    fitted = opened.settings.algorithm.learn(private, remainder, inquiry.rng, inquiry.report, facts)
    return Learned(codec, fitted, private, row_classes, contribution, discovered)


def learn_randomised_table(opened: Opened, inquiry: Inquiry) -> Learned:
    """Count a table of which the respondents randomised every column, and estimate its model."""
    codec = opened.codec(opened.schema.schema)
    rows, facts = opened.coded(codec), opened.facts(codec)
    return Learned(codec, learn_randomised(rows, inquiry.rng, inquiry.report, facts))


def table_for_tests(opened: Opened, learned: Learned, inquiry: Inquiry) -> PrivateTable:
    """Return the private table that the tests of criteria compare with a synthetic one; see `tested_of`."""
    tested = learned.row_classes.tested
    if learned.private is not None and tested == learned.contribution:
        return learned.private
    return PrivateTable(opened.coded(learned.codec, tested), inquiry.noise, tested, inquiry.log)
