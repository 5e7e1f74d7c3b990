"""Reads questions in words: which table each is about, and why one cannot be asked.

Names of columns may have the table before a dot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

from privsyn.errors import InputError, about, did_you_mean, safe_repr, spelled
from privsyn.release.accuracy.accuracy import Accuracy
from privsyn.release.questions.question import Question
from privsyn.release.table_model import TableModel
from privsyn.table.database.database import Database
from privsyn.table.database.derived_columns import rows_of, same_in_all_rows
from privsyn.table.schema.condition import QUOTED, bare_name

Names = Mapping[str, Collection[str]]
"""The names of the columns of each table."""

DOTTED = re.compile(r"(?<![\w.])(\w+)\.(\w+)")
NAME = re.compile(r"(?<![\w.])[^\W\d]\w*(?![\w(])")
BY = re.compile(r"\s+by\s+")
KEYWORDS = {"and", "or", "not", "in", "is", "missing", "True", "False", "None", "implies", "iff"}
"""Words of a condition that name no column."""


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
        question = Question.read(text, self.database)
        if self.counts_all(question):
            table = question.table or self.database.single
            if table is None:
                raise InputError(f"say of which table, as in {self.database.named[0]}: {question.text}")
            return replace(question, table=table)
        question = self._with_sums(self._undotted(question))
        self._check_private(question)
        if not question.table and self.database.named:
            question = replace(question, table=self._table_of(question))
        elif question.table:
            self._check_table(question)
        if question.statistic in ("share", "number") and not question.second:
            self._check_joined(question)
        return question

    def counts_all(self, question: Question) -> bool:
        """Return whether a question asks how many rows a table has, and not about a column of that name."""
        tables = [question.table] if question.table else [*self.tables]
        return question.may_count_all and all("rows" not in self.tables[t].codec.names for t in tables)

    def column_by(self, by: str, table: str) -> tuple[str, str]:
        """Return the table, which is that of the rows or one above it, and the column of groups of rows.

        Raises
        ------
        InputError
            If no such table has the column, or several have it.
        """
        above = (table, *self.database.above(table))
        by = self._with_sums(Question(by, table, "mean", by)).subject
        of_table, column = table_in(by, self._names)
        by = f"{of_table}: {column}" if of_table else by
        home, column = self.accuracy.home(table, bare_name(by))
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
        column = bare_name(column)
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
                *self.database.tables[table].computed,
            )
            for table in self.database.named
        }

    def _with_sums(self, question: Question) -> Question:
        """Return a question in which a column that is computed from rows below has the name of its counts.

        Of ``total == sum(lines.amount)`` the counts are those of ``sum(lines.amount)``. A column of another
        table that has the same name is meant where the question does not name the table of the sum.
        """
        subject, second = question.subject, question.second
        for table in self.database.named:
            for column, summary in self.database.tables[table].computed.items():
                homes = [home for home, columns in self._names.items() if column in columns]
                if homes == [table] or question.table == table:
                    subject, second = (renamed(text, column, str(summary)) for text in (subject, second))
        return replace(question, subject=subject, second=second)

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
        for rule in (copied[word] for word in words_of(bare_name(question.subject)) if word in copied):
            table, column = rule.above
            subject = column if bare_name(question.subject) == rule.column else question.subject
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
            return bare_name(rest) in (*model.codec.names, *model.computed_above, *constant)
        with suppress(InputError):
            self.accuracy.condition(table, rest)
            return True
        return False


def table_in(text: str, names: Names) -> tuple[str, str]:
    """Return the table that stands before all columns of a text, as in a schema, and the text without it.

    The table is "" if there is none, or if there are several.

    >>> names = {"patients": ["sex", "region"], "visits": ["cost"]}
    >>> table_in("patients.sex == 'f' and patients.region != 'visits.cost'", names)
    ('patients', "sex == 'f' and region != 'visits.cost'")
    >>> table_in("cost > 2.5", names)
    ('', 'cost > 2.5')
    """
    all_names = {name for columns in names.values() for name in columns}
    matches = [match for match in DOTTED.finditer(_without_quoted(text)) if match[0] not in all_names]
    tables = {match[1] for match in matches if match[2] in names.get(match[1], ())}
    if len(tables) != 1 or len({match[1] for match in matches}) > 1:
        return "", text
    for match in reversed(matches):
        text = text[: match.start()] + text[match.start(2) :]
    return tables.pop(), text


def renamed(text: str, column: str, name: str) -> str:
    """Return a text in which a column has another name, in backticks; what stands in quotes is left.

    >>> renamed("total > 10 and `total` < 20 and kind == 'total'", "total", "sum(lines.amount)")
    "`sum(lines.amount)` > 10 and `sum(lines.amount)` < 20 and kind == 'total'"
    """
    word = rf"`{re.escape(column)}`|(?<![\w.`]){re.escape(column)}(?![\w(`])"
    pattern = re.compile(rf"(?P<column>{word})|{QUOTED.pattern}")
    return pattern.sub(lambda match: f"`{name}`" if match["column"] else match[0], text)


def why_no_table(text: str, names: Names) -> str:
    """Return why no table has all columns that a condition or a column names.

    >>> names = {"patients": ["sex"], "visits": ["cost", "ward"]}
    >>> why_no_table("wards == 'eyes'", names)
    "no table has a column 'wards'; did you mean 'ward'?"
    >>> why_no_table("sex == 'f' and ward == 'eyes'", names)
    'one question is about one table, and joins one above it by among: sex of patients, ward of visits'
    """
    if len(parts := BY.split(_without_quoted(text))) > 1:
        return f"leave out by, and give {spelled('by')}={parts[-1].strip()}"
    homes = {word: [table for table, columns in names.items() if word in columns] for word in words_of(text)}
    for word, tables in homes.items():
        if not tables and word in names:
            is_below = any(rows_of(word) in columns for columns in names.values())
            number = f"mean of {rows_of(word)}" if is_below else "count the rows of a sample"
            return f"{word!r} is a table, no column: ask of its columns, or {number}"
        if not tables:
            all_names = [name for columns in names.values() for name in columns]
            meant = did_you_mean(word, all_names) or f"; there are the tables {', '.join(names)}"
            return f"no table has a column {word!r}{meant}"
    if len(homes) < 2:
        ask = f": ask of {', '.join(homes)}" if homes else f" of the tables {', '.join(names)}"
        return f"{text!r} is no column{ask}"
    words = ", ".join(f"{word} of {' and '.join(tables)}" for word, tables in homes.items())
    return f"one question is about one table, and joins one above it by among: {words}"


def words_of(text: str) -> list[str]:
    """Return the words outside quotes that may be names, in their order.

    >>> words_of("sex == 'f' and year(born) > 1990")
    ['sex', 'born']
    """
    return [word for word in NAME.findall(_without_quoted(text)) if word not in KEYWORDS]


def _without_quoted(text: str) -> str:
    """Return a text of the same length without what stands in quotes or backticks."""
    return QUOTED.sub(lambda match: " " * len(match[0]), text)
