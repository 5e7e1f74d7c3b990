"""Answers of a release to questions in words, each with a verdict. They cost no privacy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from math import hypot, inf, isnan, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from privsyn.errors import InputError, about, did_you_mean, in_digits, safe_repr
from privsyn.inference.ordered.number_intervals import Interval, squarable_unit
from privsyn.release.accuracy.accuracy import Accuracy
from privsyn.release.accuracy.verdicts import (
    BY_SCHEMA,
    KNOWN,
    ONE_VALUE,
    POINT,
    RARE,
    SMALL_CORRELATION,
    SMALL_SHARE,
    SMALL_TIME,
    WITHIN,
    RowsStatistic,
    Tolerance,
    verdict_of,
)
from privsyn.release.losses.kinds import AT_BOUNDS, full_name
from privsyn.release.questions.answer import Answer, as_in_rows, interval_of, why_at_an_end
from privsyn.release.questions.drawn_rows import ROWS, DrawnRows
from privsyn.release.questions.groups import conditions_by
from privsyn.release.questions.independent_shares import independent_share
from privsyn.release.questions.question import Question
from privsyn.release.questions.question_reader import QuestionReader, words_of
from privsyn.release.questions.uncounted_values import why_unlisted, why_unreleased
from privsyn.release.table_model import TableModel
from privsyn.table.database.database import Database
from privsyn.table.schema.condition import NO_CONDITION, Condition, bare_name, quoted

MEDIAN = 0.5

MOST_SHOWN = 200
"""Characters of a question in a message."""


class Subpopulation(NamedTuple):
    """The rows of a table, or of one above it, that meet a condition; `where` as `Accuracy` reads it."""

    table: str
    condition: Condition
    where: str | None


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers questions from released answers alone.

    Parameters
    ----------
    database : Database
    tables : mapping of a table to its TableModel
    accuracy : Accuracy
    most_rows : int
        The most synthetic rows of a table that are drawn to stand beside an answer.
    """

    database: Database
    tables: Mapping[str, TableModel]
    accuracy: Accuracy
    most_rows: int = ROWS

    @cached_property
    def _reader(self) -> QuestionReader:
        return QuestionReader(self.database, self.tables, self.accuracy, self.answer)

    @cached_property
    def _drawn(self) -> DrawnRows:
        return DrawnRows(self.database, self.tables, self.most_rows)

    def answer(self, text: str) -> Answer:
        """Return the answer to a question; an `InputError` that begins with it if it cannot be read."""
        with about(shown(text)):
            question = self._reader.read(text)
            if self._reader.counts_all(question):
                return self._all_rows(question)
            if question.statistic in ("share", "number"):
                answer = self._share(question)
            elif question.statistic == "correlation":
                answer = self._correlation(question)
            else:
                answer = self._mean_or_median(question)
            table, _ = self.accuracy.resolved(question.about(question.subject))
            reason = answer.reason + self._hidden(table, question)
            if not question.weighted and self.tables[table].codec.schema.weight is not None:
                reason += ", of the sample without weights"
            return replace(answer, reason=reason)

    def _hidden(self, table: str, question: Question) -> str:
        """Return how synthetic rows show the hidden columns that a question names; "" if it names none."""
        words = {*words_of(f"{question.subject} {question.second}")}
        return "".join(
            f"; the synthetic rows have no column {column}: their number is that of {summary}"
            for home in (table, *self.database.above(table))
            for column, summary in self._drawn.hidden(home).items()
            if column in words and column not in self.database.tables[home].computed
        )

    def answers_by(self, text: str, by: str) -> tuple[Answer, ...]:
        """Return the answers to a question for each group of rows that a column makes; see `Release.ask`."""
        with about(shown(text)):
            question = self._reader.read(text)
            if question.statistic not in ("share", "mean") or question.second:
                raise InputError("`by` divides the rows of a share or a mean, in the place of among")
            table, _ = self.accuracy.resolved(question.about(question.subject))
            of_table, column = self._reader.column_by(by, table)
            is_hidden = of_table != table and column in self.tables[table].codec.names
            named = f"{of_table}: " if is_hidden or self.database.single is None else ""
            groups = [named + group for group in conditions_by(self.tables[of_table], column)]
        return tuple(self.answer(f"{question.text} among {group}") for group in groups)

    def _all_rows(self, question: Question) -> Answer:
        """Answer how many rows a table has."""
        model = self.tables[question.table]
        total = model.fitted.total
        interval = Interval(total, *model.fitted.interval_of_total(laplace=model.has_laplace_noise))
        tolerance, rows = Tolerance(WITHIN * total, 0.0), RowsStatistic(total, 0.0)
        verdict, reason = verdict_of(interval, tolerance, rows, nan, several=False)
        return Answer(question.text, total, interval.low, interval.high, verdict, total, nan, reason)

    def _share(self, question: Question) -> Answer:
        """Answer how many rows meet a condition, or which share of those that meet another one."""
        table, text = self.accuracy.resolved(question.about(question.subject))
        model, group, frame = self.tables[table], self._group(question, table), self._drawn.frame(table)
        home, condition = self._condition(table, text)
        about, weighted = question.about(question.subject), question.weighted
        result = self.accuracy.share(about, group.where, weighted=weighted)
        among = self._drawn.met(table, group.table, group.condition)
        weights = self._drawn.weights(table)[among] if weighted else None
        rows = RowsStatistic.of(self._drawn.met(table, home, condition)[among], weights)
        several, within = True, NO_CONDITION  # a condition on another table does not depend on these columns
        if group.table == home or group.condition is NO_CONDITION:
            columns = condition.columns | group.condition.columns
            several, within = weighted or len(columns) > 1, group.condition
        independent: Any = nan
        if several and home == table:
            independent = independent_share(model, condition, within, frame)
        elif several:
            independent = self.accuracy.share(about)["estimate"]
        linked = model.links is not None
        interval, small = as_in_rows(interval_of(result), rows, linked=linked), SMALL_SHARE
        among_rows = "the" if group.condition is NO_CONDITION else "these"
        rare = RARE.format(f"{in_digits(100 * interval.high)}%", among_rows)
        scale = POINT.format(f"{SMALL_SHARE:g} of the estimate")
        at_end = why_at_an_end(interval, (0.0, 1.0))
        if interval.low == interval.high:  # bounds may make it certain, and other numbers count at them
            at_end += "".join(self._cut(home, column) for column in sorted(condition.columns))
        if question.statistic == "number":
            total = model.fitted.total
            error = model.fitted.reach_of_total(laplace=model.has_laplace_noise)
            estimate, low, high = interval.estimate, interval.low, interval.high
            below, above = (hypot(total * (estimate - end), estimate * error) for end in (low, high))
            estimate *= total
            interval, small = Interval(estimate, max(estimate - below, 0.0), estimate + above), small * total
            scale = POINT.format(f"{SMALL_SHARE:.0%} of the rows of the estimate")
            rows, independent = RowsStatistic(*(total * number for number in rows)), total * independent
        near = max(small, WITHIN * abs(interval.estimate))
        tolerance = Tolerance(near, small, scale, rare)
        verdict, reason = verdict_of(interval, tolerance, rows, independent, several=several)
        reason = self._why_certain(reason, home, condition.columns, group)
        if isnan(interval.low):
            reason = self._why_no_interval(table, question, group)
        elif why := why_unreleased(self.tables[home], condition):
            reason = why
        ends, reason = (interval.estimate, interval.low, interval.high), reason + at_end
        return Answer(question.text, *ends, verdict, rows.number, independent, reason)

    def _why_certain(self, reason: str, table: str, columns: Set[str], group: Subpopulation) -> str:
        """Return the reason of an answer: of a certain one the schema, if no totals have its columns."""
        names = columns | group.condition.columns
        totals = self.tables[table].fitted.totals.tables
        by_totals = any(names <= {*total.marginal.attributes} for total in totals)
        return BY_SCHEMA if reason == KNOWN and not by_totals else reason

    def _cut(self, table: str, column: str) -> str:
        """Return that numbers beyond the bounds of a column count at them, with how many; "" if none are."""
        model = self.tables[table]
        cut = [
            loss
            for loss in model.losses
            if loss.kind in AT_BOUNDS and loss.column == full_name(model, column)
        ]
        return f"; of numbers cut to their bounds: {'; '.join(loss.text for loss in cut)}" if cut else ""

    def _mean_or_median(self, question: Question) -> Answer:
        """Answer the mean or the median of a column."""
        table, column = self.accuracy.resolved(question.about(bare_name(question.subject)))
        name, (home, column) = bare_name(question.subject), self.accuracy.home(table, bare_name(column))
        model, group, frame = self.tables[home], self._group(question, table), self._drawn.frame(home)
        independent: Any = nan
        at_end = ""
        if question.statistic == "mean":
            result = self.accuracy.mean(question.about(name), group.where, weighted=question.weighted)
        else:
            self._check_home(table, [name], question)
            result = self._median(table, column)
        is_group = bool(question.second) and (group.table != home or column not in group.condition.columns)
        if question.weighted or is_group:
            independent = self.accuracy.mean(question.about(name))["estimate"]
        among = self._drawn.met(table, group.table, group.condition)
        numbers = model.codec.numbers_of(column, frame)[self._drawn.index(table, home)][among]
        present = ~np.isnan(numbers)
        weights = self._drawn.weights(home)[among][present] if question.weighted else None
        numbers = numbers[present]
        rows = RowsStatistic.of(numbers, weights)
        if len(numbers) and question.statistic == "median":
            unit = squarable_unit(numbers, numbers)
            rows = rows._replace(number=unit * float(np.median(numbers / unit)))
        cells = result["estimate"], result["low"], result["high"]
        shown: Any = rows.number
        if not model.codec.has_times(column):
            interval = as_in_rows(interval_of(result), rows, linked=model.links is not None)
            cells = interval.estimate, *cells[1:]
            kind = model.codec.schema.coded.get(column)
            low = float(kind.bounds[0]) if kind is not None and kind.has_numbers else 0.0
            bounds = (low, float(kind.bounds[1])) if kind is not None and kind.has_numbers else (0.0, inf)
            at_end = why_at_an_end(interval, bounds)
            near = small = WITHIN * min(abs(interval.estimate), abs(interval.estimate - low))
            number = float(independent)
        else:
            times = pd.Series([*cells, independent], dtype=frame[column].dtype)
            *ends, number = model.codec.read(pd.DataFrame({column: times}))[column].tolist()
            first, last = model.codec.schema.coded[column].bounds
            interval, near = Interval(*ends), SMALL_TIME * (last - first)
            small = near
            shown = model.codec.interval(column, *[rows.number] * 3)[0] if len(numbers) else pd.NaT
        several = question.weighted or bool(question.second)
        scale = f"{SMALL_TIME:.0%} of the range of the column"  # of a time; numbers are narrow
        tolerance = Tolerance(near, small, scale)
        verdict, reason = verdict_of(interval, tolerance, rows, number, several=several)
        reason = self._why_certain(reason, home, frozenset({column}), group)
        if reason == BY_SCHEMA and (question.statistic == "median" or model.codec.has_times(column)):
            reason = ONE_VALUE
        if not result["covered"] and question.statistic == "mean":
            reason = self._why_no_interval(table, question, group)
        if question.statistic == "mean":
            reason += at_end + self._cut(home, column)
        elif isnan(interval.low):
            reason += self._by_distance(home, [column])
        return Answer(question.text, *cells, verdict, shown, independent, reason)

    def _by_distance(self, table: str, columns: Sequence[str]) -> str:
        """Return which of the columns are counted by their distance, and from which others; "" if none is."""
        gaps = self.tables[table].codec.gaps
        return "".join(
            f"; {column} is counted by its distance from {' and '.join(gaps[column].side.columns)}"
            for column in columns
            if column in gaps
        )

    def _why_no_interval(self, table: str, question: Question, group: Subpopulation) -> str:
        """Return why an estimate has no interval."""
        text = question.about(bare_name(question.subject))
        unreleased = [why_unreleased(self.tables[group.table], group.condition)]
        if question.statistic in ("share", "number"):
            home, condition = self._condition(table, self.accuracy.resolved(text)[1])
            unreleased.insert(0, why_unreleased(self.tables[home], condition))
        why = next(filter(None, unreleased), "")
        return why or self.accuracy.why_unknown(text, group.where, weighted=question.weighted)

    def _median(self, table: str, column: str) -> pd.Series:
        """Return the median of a column with its interval."""
        self.tables[table].check_not_computed_above([column])
        quantiles = self.tables[table].accuracy_.quantiles
        rows = quantiles[(quantiles["column"] == column) & (quantiles["share"] == MEDIAN)]
        if rows.empty:
            why = (
                did_you_mean(column, quantiles["column"].unique())
                or "; `median of` is for columns of numbers and times"
            )
            raise InputError(f"there is no median of {safe_repr(column)}{why}")
        return rows.iloc[0]

    def _correlation(self, question: Question) -> Answer:
        """Answer Spearman's correlation of two columns."""
        names = []
        for text in (question.subject, question.second):
            table, name = self.accuracy.resolved(question.about(bare_name(text)))
            names.append(bare_name(name))
        model = self.tables[table]
        model.check_not_computed_above(names)
        self._check_home(table, names, question)
        correlations = model.accuracy_.correlations
        rows = correlations[[set(pair) == set(names) for pair in correlations["columns"]]]
        if rows.empty:
            listed = {name for pair in correlations["columns"] for name in pair}
            meant = [did_you_mean(name, listed) for name in names if name not in listed]
            why = next(filter(None, meant), "; give two columns of numbers or times")
            raise InputError(f"there is no such correlation{why}")
        interval, frame = interval_of(rows.iloc[0]), self._drawn.frame(table)
        ranks = pd.DataFrame({name: model.codec.numbers_of(name, frame) for name in names}).dropna().rank()
        rows_statistic = RowsStatistic(nan, nan)
        if len(ranks) > 1:
            rows_statistic = RowsStatistic(float(np.corrcoef(ranks.to_numpy().T)[0, 1]), 1 / sqrt(len(ranks)))
        interval = as_in_rows(interval, rows_statistic, linked=model.links is not None)
        near = max(SMALL_CORRELATION, WITHIN * abs(interval.estimate))
        tolerance = Tolerance(near, SMALL_CORRELATION, POINT.format(f"{SMALL_CORRELATION:g} of the estimate"))
        verdict, reason = verdict_of(interval, tolerance, rows_statistic, 0.0, several=True)
        if isnan(interval.low):
            reason += self._by_distance(table, names)
        ends = interval.estimate, interval.low, interval.high
        return Answer(question.text, *ends, verdict, rows_statistic.number, 0.0, reason)

    def _check_home(self, table: str, columns: Sequence[str], question: Question) -> None:
        """Refuse columns whose counts are those of a table above, where each of its rows counts once."""
        homes = {
            column: home for column in columns if (home := self.accuracy.home(table, column)[0]) != table
        }
        for column, home in homes.items():
            advice = "take several draws"
            if len(homes) == len(columns) == 1:
                its = quoted(self.accuracy.home(table, column)[1])
                advice = f"ask {question.of_table(home, its)}"
            raise InputError(f"{column!r} was counted by {home}, each once, and not by {table}: {advice}")

    def _condition(self, table: str, text: str) -> tuple[str, Condition]:
        """Return a condition on rows of a table, and the table with its columns; refuse values of no row."""
        group = self.accuracy.rows_that_meet(table, text)
        home = group.table or table
        if why := why_unlisted(self.tables[home], group.condition):
            raise InputError(why)
        return home, group.condition

    def _group(self, question: Question, table: str) -> Subpopulation:
        """Return the rows among which a question asks for rows of a table."""
        if not question.second:
            return Subpopulation(table, NO_CONDITION, None)
        above = (table, *self.database.above(table))
        name, colon, _ = question.second.partition(":")
        is_named = bool(colon) and name.strip() in self.database.named
        text = question.second if is_named else question.about(question.second)
        if not is_named and self.database.named and not self._reader.reads(text, is_condition=True):
            readable = [
                name for name in above if self._reader.reads(f"{name}: {question.second}", is_condition=True)
            ]
            text = f"{readable[0]}: {question.second}" if len(readable) == 1 else text
        of_table, text = self.accuracy.resolved(text)
        if of_table not in above and not is_named:  # of a number of child rows, the parent is meant
            of_table, text = self.accuracy.resolved(f"{table}: {question.second}")
        if of_table not in above:
            raise InputError(
                f"table {of_table!r} is not above {table!r}: count rows below under `derive`, as in"
                f" ever({of_table}.COLUMN == VALUE), and ask about this column"
            )
        home, condition = self._condition(of_table, text)
        return Subpopulation(home, condition, text if of_table == table else f"{of_table}: {text}")


def shown(question: object) -> str:
    """Return a question in quotes; of one that is no text or too long, the beginning or the type."""
    return (
        repr(question) if isinstance(question, str) and len(question) <= MOST_SHOWN else safe_repr(question)
    )
