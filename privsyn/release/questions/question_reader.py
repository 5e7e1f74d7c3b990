"""Reads questions in words: which table each is about, and why one cannot be asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from privsyn.errors import InputError, about, did_you_mean, safe_repr, spelled
from privsyn.release.accuracy.accuracy import Accuracy
from privsyn.release.questions.names_in_questions import table_in, why_no_table, words_of
from privsyn.release.questions.question import Question
from privsyn.release.table_model import TableModel
from privsyn.table.database.database import Database
from privsyn.table.database.derived_columns import same_in_all_rows


@dataclass(frozen=True, eq=False)
class QuestionReader:
    """Reads questions about the tables of a release.

    Parameters
    ----------
    database : Database
    tables : mapping of a table to its TableModel
    accuracy : Accuracy
    check : callable
        Raises an `InputError` if the question that a refusal advises cannot be answered either.
    """

    database: Database
    tables: Mapping[str, TableModel]
    accuracy: Accuracy
    check: Callable[[str], object]

    def read(self, text: str) -> Question:
        """Return a question with the table that it is about.

        Raises
        ------
        InputError
            If the text is no question, or no table, or several, can answer it.
        """
        is_name = isinstance(text, str) and any(
            self.reads(f"{table}: {text}", is_condition=False) for table in self.database.named
        )
        if is_name:
            raise InputError(f"is no question, but a column: ask mean of {text}, or share of {text} == VALUE")
        question = self._undotted(Question.read(text, self.database))
        self._check_private(question)
        if not question.table and self.database.named:
            question = replace(question, table=self._table_of(question))
        elif question.table:
            self._check_table(question)
        if question.statistic in ("share", "number") and not question.second:
            self._check_joined(question)
        return question

    def column_by(self, by: str, table: str) -> tuple[str, str]:
        """Return the table, which is that of the rows or one above it, and the column of groups of rows.

        Raises
        ------
        InputError
            If no such table has the column, or several have it.
        """
        above = (table, *self.database.above(table))
        of_table, column = table_in(by, self._names)
        by = f"{of_table}: {column}" if of_table else by
        home, column = self.accuracy.home(table, by.strip("`"))
        if home != table:
            return home, column
        name, colon, _ = by.partition(":")
        if not self.database.named or (colon and name.strip() in self.database.named):
            texts = [by]
        else:
            texts = [text for name in above if self.reads(text := f"{name}: {by}", is_condition=False)]
        if len(texts) != 1:
            problem = "several tables have" if texts else "no table above has"
            raise InputError(f"{problem} the column {safe_repr(by)}: begin with a table, as in {table}: ...")
        of_table, column = self.accuracy.resolved(texts[0])
        column = column.strip("`")
        if of_table not in above:
            raise InputError(f"table {of_table!r} is not above {table!r}")
        self.tables[of_table].check_not_computed_above([column])
        if column not in self.tables[of_table].codec.names:
            meant = did_you_mean(column, self.tables[of_table].codec.names)
            raise InputError(f"there is no column {safe_repr(column)}{meant}")
        return of_table, column

    @cached_property
    def _names(self) -> dict[str, tuple[str, ...]]:
        """The columns of each table that a question may name."""
        return {
            table: (
                *self.tables[table].codec.names,
                *self.tables[table].computed_above,
                *same_in_all_rows(self.database, table),
            )
            for table in self.database.named
        }

    def _undotted(self, question: Question) -> Question:
        """Return a question in which a table that stands before a dot stands before a colon."""
        if not question.table:
            table, subject = table_in(question.subject, self._names)
            question = replace(question, table=table, subject=subject)
        table, second = table_in(question.second, self._names)
        if table and not (question.statistic == "correlation" and table == question.table):
            second = f"{table}: {second}"
        rest = second.partition(":")[2].strip() if table else second
        homes = [home for home, columns in self._names.items() if rest in columns]
        is_condition = any(
            self.reads(f"{home}: {rest}", is_condition=True) for home in homes
        )  # of truth values
        if question.statistic != "correlation" and homes and not is_condition:
            raise InputError(
                f"{rest!r} is a column, no condition: give {spelled('by')}={rest} for each of its values, or"
                f" name one, as in among {rest} == VALUE"
            )
        return replace(question, second=second)

    def _check_table(self, question: Question) -> None:
        """Refuse a question behind the name of a table that another table answers, and say which."""
        self._check_not_copied(question)
        for table in [question.table, *self.database.named]:
            if self._has(question, table):
                if table == question.table:
                    return
                advice = question.of_table(table)
                with about(f"{question.table!r} has no such column, and {table!r} has"):
                    self.check(advice)  # an advice that is refused says why
                    raise InputError(f'ask "{advice}"')

    def _check_not_copied(self, question: Question) -> None:
        """Refuse a column that has the cells of one above, with which it is counted; say which to ask."""
        copied = self.database.tables[question.table].copied
        for rule in (copied[word] for word in words_of(question.subject.strip("`")) if word in copied):
            table, column = rule.above
            subject = column if question.subject.strip("`") == rule.column else question.subject
            advice = question.of_table(table, subject)
            of_table = f"{rule.column!r} of {question.table!r}"
            with about(f"{of_table} is a copy ({rule}), counted in {table!r} alone"):
                self.check(advice)
                raise InputError(f'ask "{advice}"')

    def _check_private(self, question: Question) -> None:
        """Refuse columns of public tables alone: no question is asked of these."""
        private = {*self._names, *(name for columns in self._names.values() for name in columns)}
        for word in words_of(f"{question.subject} {question.second}"):
            for name, table in self.database.public.items():
                if word in table.public.frame and word not in private:
                    leading = [
                        f"{home}.{column}"
                        for home in self.database.named
                        for column, lookup in self.database.tables[home].lookups.items()
                        if lookup == name
                    ]
                    ask = f"ask of {', '.join(leading)}, or " if leading else ""
                    raise InputError(
                        f"{word!r} is a column of the public table {name}, and questions are about private"
                        f" ones: {ask}join {name} to a sample"
                    )

    def _has(self, question: Question, table: str) -> bool:
        """Return whether a table has the columns that a question is about."""
        columns = [question.subject] + [question.second] * (question.statistic == "correlation")
        is_condition = question.statistic in ("share", "number")
        return all(self.reads(f"{table}: {text}", is_condition=is_condition) for text in columns)

    def _check_joined(self, question: Question) -> None:
        """Refuse a condition on columns that are constant and on others; say what is answered, if it is."""
        table, text = self.accuracy.resolved(question.about(question.subject))
        constant, columns = same_in_all_rows(self.database, table).keys(), set[str]()
        with suppress(InputError):  # whatever else it is, another check refuses it
            columns = {*self.accuracy.condition(table, text).columns}
        if not columns & constant or columns <= constant or len(question.facts) < 2:
            return
        parts: tuple[list[str], list[str]] = [], []
        for fact in question.facts:
            if not self.reads(question.about(fact), is_condition=True):
                return  # parentheses reach over several facts
            condition = self.accuracy.condition(*self.accuracy.resolved(question.about(fact)))
            if condition.columns & constant and condition.columns - constant:
                return
            parts[bool(condition.columns & constant)].append(fact)
        subject, among = map(" and ".join, parts)
        advice = question.about(f"share of {subject} among {among}")
        self.check(advice)
        constant_column, column = min(columns & constant), min(columns - constant)
        raise InputError(
            f"{constant_column!r} is the same in all rows that belong together, and {column!r} is not: no"
            f' counts join them in one condition; ask "{advice}"'
        )

    def _table_of(self, question: Question) -> str:
        """Return the only table that has the columns of a question without a table."""
        tables = [table for table in self.database.named if self._has(question, table)]
        if (single := self.database.single) is not None:
            return tables[0] if tables and single not in tables else single
        if len(tables) != 1:
            shown_tables = ", ".join(self.database.shown)
            if not tables:
                self._check_condition(question)
                between = f" and {question.second}" if question.statistic == "correlation" else ""
                why = why_no_table(f"{question.subject}{between}", self._names)
                raise InputError(why)
            raise InputError(
                f"{' and '.join(tables)} have these columns: begin with a table, as in {tables[-1]}:"
                f" {question.text}; there are {shown_tables}"
            )
        return tables[0]

    def _check_condition(self, question: Question) -> None:
        """Refuse a condition that no table reads, though one has all columns that it names; say why."""
        words = words_of(question.subject)
        homes = [table for table, columns in self._names.items() if words and {*words} <= {*columns}]
        if question.statistic in ("share", "number"):
            for home in homes:
                self.accuracy.condition(*self.accuracy.resolved(f"{home}: {question.subject}"))

    def reads(self, text: str, *, is_condition: bool) -> bool:
        """Return whether a text behind the name of a table is a condition on it, or one of its columns."""
        table, rest = self.accuracy.resolved(text)
        model = self.tables[table]
        if not is_condition:
            constant = same_in_all_rows(self.database, table)
            return rest.strip("`") in (*model.codec.names, *model.computed_above, *constant)
        with suppress(InputError):
            self.accuracy.condition(table, rest)
            return True
        return False
