"""Accuracy: error bars of a release, as tables. They follow from released counts and cost no privacy."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import hypot, sqrt
from typing import Any

import pandas as pd

from privsyn.errors import InputError, printable, safe_repr
from privsyn.inference.fitted import TWO_SIDED
from privsyn.inference.ordered.number_intervals import Interval
from privsyn.marginals.tolerances import TINY_COUNT
from privsyn.progress import Progress
from privsyn.release.accuracy.table_accuracy import TableAccuracy
from privsyn.release.questions.estimates import Group
from privsyn.table.database.database import Database
from privsyn.table.database.derived_columns import same_in_all_rows, sums_above
from privsyn.table.schema.condition import Condition, bare_name

QUOTED = r"""'[^']*'|"[^"]*"|`[^`]*`"""
"""A quoted value or name in a condition."""

COUNT = re.compile(rf"{QUOTED}|(?P<count>\bcount\b(?!\())")
"""The word count in a condition, but not in a quoted value or name."""


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy(Mapping[str, "Accuracy"]):
    """Expected errors of a release against the private tables, and confidence intervals for their counts.

    They cover the one-way table of every column, every measured table of two or more columns, means,
    quantiles and correlations of ordered columns, and shares and means under conditions. They do not include
    the sampling error of a synthetic table.

    With several tables, a column or condition begins with the name of its table, as in ``"visits: days"``,
    and the answers in form of tables have a column ``table``. Shares and means are of the rows of one table.
    The number of rows of a child table below each row, as in ``count(visits)``, is a column like others.
    ``accuracy["visits"]`` is the accuracy of one table.

    Parameters
    ----------
    by_table : mapping of a table to its TableAccuracy
    database : Database
        Public: the tables and how they are linked.

    Examples
    --------
    >>> from privsyn import Categorical, PrivSyn, Schema
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 500, "smokes": ["no", "no", "no", "yes"] * 250})
    >>> schema = Schema({"sex": Categorical(["F", "M"]), "smokes": Categorical(["no", "yes"])})
    >>> accuracy = PrivSyn(1.0, 1e-6, schema, seed=0).fit(people).accuracy_
    >>> accuracy.tables["columns"].tolist()
    [('sex',), ('smokes',), ('sex', 'smokes')]
    >>> bool((accuracy.counts("smokes")["low"] <= [750, 250]).all())
    True

    Of linked tables:

    >>> from privsyn import Database, Numerical, Table
    >>> patients = pd.DataFrame({"patient": range(2000)})
    >>> visits = pd.DataFrame({"patient": range(1000), "days": [1, 2, 3, 4] * 250})
    >>> days = Schema({"days": Numerical(0, 9, integer=True)})
    >>> database = Database({
    ...     "patients": Table(Schema({}), key="patient"),
    ...     "visits": Table(days, parent="patients", link="patient"),
    ... })
    >>> model = PrivSyn(5.0, 1e-9, database, seed=0).fit({"patients": patients, "visits": visits})
    >>> some = model.accuracy_.share("visits: count >= 1")
    >>> bool(some["low"] <= 0.5 <= some["high"])
    True
    >>> round(model.accuracy_.mean("visits: days")["estimate"], 1)
    2.5
    """

    by_table: Mapping[str, TableAccuracy]
    database: Database

    def __getitem__(self, table: str) -> Accuracy:
        return Accuracy({table: self.by_table[table]}, Database.of_one(name=table))

    def __iter__(self) -> Iterator[str]:
        return iter(self.database.shown)

    def __len__(self) -> int:
        return len(self.database.shown)

    @property
    def not_found(self) -> tuple[str, ...]:
        """Columns, each with its table if there are several, of which no value and no bound was found.

        Summaries of the rows of a person are columns too, although no synthetic table has them.
        """
        return tuple(
            self.database.shown_column(table, column)
            for table, accuracy in self.by_table.items()
            for column in accuracy.not_found
        )

    @cached_property
    def tables(self) -> pd.DataFrame:
        """One row for each table of counts, with its columns, number of columns, cells and errors.

        ``sigma`` is the standard deviation of the noise in a cell, in rows. ``expected_error`` is the
        expected total variation between the estimate and the private table: the share of rows that would
        have to change. It includes the effect of constraints on the estimate. It excludes the effects of
        constraints and of sampling on a synthetic table; `privsyn.report` includes both. It is missing, and
        ``covered`` is False, where a column is one of `not_found`.
        """
        return self._together({table: self.by_table[table].tables for table in self})

    def counts(self, *columns: str) -> pd.DataFrame:
        """Return one row for each cell of a table: its values, the estimated count, and a 95 % interval.

        The interval, from ``low`` to ``high``, contains the true count with probability 0.95; after a run
        with a delta of 0, with 0.95 to 0.97. It comes from the noisy counts of this table alone. ``estimate``
        also uses all other counts and the constraints, and is usually more accurate. Where it lies outside,
        the interval is extended to it. The interval of one column is valid even if private rows break
        constraints. Tables of more columns omit rows that break a constraint on them. If persons may have
        many rows, it is for all rows; how uncertain their number is, and the choice of rows, make it wider.

        A label of several values that were counted together begins with their number. Values so rare that
        they were counted with another one, and missing cells, are named in ``counted_with`` beside it; there
        is this column only if there are any. No sample has them. The lower end of the interval allows for
        as many of them as noise may hide.

        Parameters
        ----------
        *columns : str
            The columns of one table of counts, in any order; `tables` lists all tables. Numbers are in the
            groups in which they were counted; a pair often has fewer groups than a single column.

        Raises
        ------
        InputError
            If no table of these columns was measured.
        """
        named = [self._column(column) for column in columns]
        tables = {table for table, _ in named} or {*self}
        if len(tables) != 1:
            raise InputError(f"give columns of one table, as in {next(iter(self))}: ...")
        return self.by_table[tables.pop()].counts(*(name for _, name in named))

    @cached_property
    def means(self) -> pd.DataFrame:
        """One row for each ordered column: the estimated mean, and a 95 % interval.

        The interval covers the mean of the private numbers, clipped to the bounds. It comes from the noisy
        counts of the column, alone and in pairs. The mean of the numbers of a cell may be anywhere in it, in
        each cell independently. The interval is extended to the estimate where this, which uses all answers
        and the constraints, lies outside. ``within_cells`` is how far the mean can move at most; it is large
        where bounds are far beyond the numbers. With bounds that were found, intervals hold less often: see
        docs/inference.md#how-far-off-may-it-be. Times are cells of the table.
        ``covered`` is False if the column follows from others, or its bounds were not found, or rare numbers
        far apart were pooled.
        """
        return self._together({table: self.by_table[table].means for table in self})

    @cached_property
    def quantiles(self) -> pd.DataFrame:
        """One row for each ordered column and quantile: the share, the estimate, and a 95 % interval.

        The interval ends where cells end. It contains the quantile of the private numbers, clipped to the
        bounds, with a probability of at least 0.95, for every private table if the bounds were given.
        """
        return self._together({table: self.by_table[table].quantiles for table in self})

    @cached_property
    def correlations(self) -> pd.DataFrame:
        """One row for each pair of ordered columns: Spearman's correlation, and a 95 % interval.

        The interval comes from the noisy counts of this pair alone. It assumes that inside the groups in
        which the pair was counted, dependence is that of a Gaussian copula. The finer the groups, the less
        this matters. Of a pair that was not measured, the noisy concordance and the noisy distance from
        independence give the interval, and the estimate is that of one synthetic table. A pair has
        ``covered`` False if a constraint links both columns, or if nothing excludes any correlation.
        """
        return self._together({table: self.by_table[table].correlations for table in self})

    @cached_property
    def weighted(self) -> pd.DataFrame:
        """One row for each listed value, and each mean of numbers, of a table whose rows have weights.

        ``of`` is the condition of the share, or "mean". ``in_rows``, ``in_rows_low`` and ``in_rows_high`` are
        those of the rows of the sample, and ``estimate``, ``low`` and ``high`` those in which each row counts
        by its weight, with 95 % intervals. ``noise`` is the squared ratio of their widths: how many times the
        noise of the answer for the rows that for the population has. Columns of more than 50 listed values
        are left out, and so are times; ask for these by `share`.

        Raises
        ------
        InputError
            If no table has a column of kind `Weight`.
        """
        tables = [table for table in self if self.by_table[table].model.codec.schema.weight is not None]
        return self._together({table: self.by_table[table].weighted for table in tables or [*self][:1]})

    def share(
        self,
        condition: str,
        where: str | None = None,
        *,
        weighted: bool = False,
        progress: Progress | None = None,
    ) -> pd.Series:
        """Return the share of rows that meet a condition: ``estimate``, ``low``, ``high`` and ``covered``.

        With `where` it is a rate: the share of the rows that meet `where`. The 95 % interval is for the
        private table. It follows from the noisy counts of the smallest measured table that holds the columns,
        and of the columns alone; the estimate uses all answers, and the interval is extended to it. A column
        that follows from others is answered by these. Of two columns that were not counted together, the
        noisy distance of the pair from independence and the counts of both columns bound the share; the
        estimate is that of one synthetic table.

        ``covered`` is False, and there is no interval, for three and more columns that were not counted
        together; if noise hides the number of rows that meet `where`; if a number in a condition is beyond
        the bounds of its column, to which numbers are clipped; and if persons have many rows, and noise hides
        how the column depends on their number.

        Parameters
        ----------
        condition : str
            Comparisons of columns with values, such as ``"age >= 65 and not sex == 'Female'"``. Names with
            spaces are put in backticks. A missing cell meets ``is missing`` only. With several tables it
            begins with a table, as in ``"visits: ward == 'surgery'"``; ``"visits: count >= 3"`` is the share
            of the rows of the parent that have three or more visits.
        where : str, optional
            A condition on columns of the same table, or of a table above it, which then stands before it:
            ``share("visits: ward == 'eyes'", "patients: age >= 65")``. Default: all rows.
        weighted : bool
            Whether each row counts by its weight, the column of kind `Weight`: the share of the population,
            in place of the share of the rows.
        progress : callable, optional
            Called as ``progress(stage, done, total)``, while a synthetic table is made for an estimate.

        Raises
        ------
        InputError
            If it is no condition on the columns, or begins with no table where there are several.
        """
        table, text = self.resolved(condition)
        return self.by_table[table].share(
            self.rows_that_meet(table, text), self._group(table, where), weighted=weighted, progress=progress
        )

    def mean(
        self,
        column: str,
        where: str | None = None,
        *,
        weighted: bool = False,
        progress: Progress | None = None,
    ) -> pd.Series:
        """Return the mean of a column of numbers over the rows that meet a condition, as `share` does.

        If the noise hides how many rows the group has, ``covered`` is False. Without a condition it is the
        mean of `means`, if the column has one.

        Parameters
        ----------
        column : str
            With several tables, a table and its column: ``"visits: days"``, or ``"visits: count"`` for the
            visits of a patient, which is the ratio of the numbers of rows.
        where : str, optional
            A condition on other columns of this table, or of a table above it, as for `share`; with
            ``"visits: count"``, on columns of the parent. Such an interval also has the rows beyond the
            largest number that noise shows.
        weighted : bool
            As for `share`.
        progress : callable, optional
        """
        table, name = self._column(column)
        children = {f"count({child})": child for child in self.database.children(table)}
        if where is None and not weighted and name in children:
            mean, error = self._mean_number(table, children[name])
            interval = Interval(mean, max(mean - error, 0.0), mean + error)
            return pd.Series({**vars(interval), "covered": True}, dtype=object)
        group, (home, its) = self._group(table, where), self.home(table, name)
        above = None if home == table else self.by_table[home].above(home)
        result = self.by_table[table].mean(its, group, weighted=weighted, progress=progress, above=above)
        if name in children and result["covered"]:
            result = self._with_rows_beyond(result, *self._mean_number(table, children[name]))
        return result

    def why_unknown(self, text: str, where: str | None = None, *, weighted: bool = False) -> str:
        """Return why `share` or `mean` has no interval for a condition or column, in words."""
        table, rest = self.resolved(text)
        home, column = self.home(table, bare_name(rest))
        if column in self.by_table[home].model.codec.names:
            above = None if home == table else self.by_table[home].above(home)
            subject = Group(Condition(frozenset({column}), ()), above)
        else:
            subject = self.rows_that_meet(table, rest)
        return self.by_table[table].why_unknown(subject, self._group(table, where), weighted=weighted)

    def home(self, table: str, column: str) -> tuple[str, str]:
        """Return the table that has the counts of a column of a table, and the name of the column there.

        It is the parent if all rows of one parent have the same value, also of a sum of columns.
        """
        name = same_in_all_rows(self.database, table).get(column)
        return (table, column) if name is None else (str(self.database.tables[table].parent), name)

    def condition(self, table: str, text: str) -> Condition:
        """Return the condition that a text means, about columns of a table and constant ones of its parent's.

        The constant ones, which are the same in all rows of one parent, have their names in the table.
        """
        homes = {column: self.home(table, column) for column in same_in_all_rows(self.database, table)}
        coded = {name: accuracy.model.codec.schema.coded for name, accuracy in self.by_table.items()}
        constant = {column: coded[home][its] for column, (home, its) in homes.items()}
        return Condition.read(text, {**coded[table], **self.by_table[table].model.computed_above, **constant})

    def rows_that_meet(self, table: str, text: str) -> Group:
        """Return the rows of a table that meet a condition on its columns.

        Raises
        ------
        InputError
            If it is no condition, or joins columns that are the same in all rows of a parent with others.
        """
        condition, names = self.condition(table, text), same_in_all_rows(self.database, table)
        of_parent = condition.columns & names.keys()
        if not of_parent:
            self.by_table[table].model.check_not_computed_above(condition.columns)
            return Group(condition)
        parent = str(self.database.tables[table].parent)
        if rest := condition.columns - of_parent:
            raise InputError(
                f"{min(of_parent)!r} is the same in all rows that belong together, and {min(rest)!r} is not:"
                " no counts join them in one condition; compute it from a sample"
            )
        return Group(condition.renamed(names), self.by_table[parent].above(parent))

    def _mean_number(self, table: str, child: str) -> tuple[float, float]:
        """Return how many rows of a child table a row has on average, and half of the 95 % interval."""
        rows, parents = self.by_table[child].model.fitted, self.by_table[table].model.fitted
        mean = rows.total / parents.total  # and its variance by the delta method
        variance = rows.error_of_total**2 + (mean * parents.error_of_total) ** 2
        return mean, TWO_SIDED * sqrt(variance) / parents.total

    @staticmethod
    def _with_rows_beyond(result: pd.Series, mean: float, error: float) -> pd.Series:
        """Return the mean number of child rows in a group, whose interval also has the rows that noise hides.

        A number of rows above the largest one that noise shows was counted as that one. So the mean of a
        group lacks rows. What `error` says of the mean of all, relative to it, holds for that of the group.
        """
        estimate = result["estimate"]
        beyond = estimate * error / max(mean, TINY_COUNT)
        low = estimate - hypot(estimate - result["low"], beyond)
        high = estimate + hypot(result["high"] - estimate, beyond)
        return pd.Series({**result, "low": max(low, 0.0), "high": high}, dtype=object)

    def agreement(self, rows: Any) -> pd.DataFrame:
        """Return where a sample differs from this release by more than chance, the worst first.

        Each line has ``columns``, ``what`` is compared, its value in the ``rows`` and in the ``release``, and
        the widened interval from ``low`` to ``high``; for counts the share of rows in other cells.
        Give a sample, not private rows: it shows their exact values. With several tables, give some tables of
        a sample by their names; links between tables are not compared.

        Raises
        ------
        InputError
            If the rows do not have the columns and dtypes of a sample.
        """
        frames, rows_by_name = {}, self.database.by_name(rows)
        for table in self:
            if table in rows_by_name:
                with self.database.naming_errors(table):
                    frames[table] = self.by_table[table].agreement(rows_by_name[table])
        if not frames:
            raise InputError("give the tables of a sample, by their names: " + ", ".join(self))
        return self._together(frames)

    def _together(self, frames: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        """Return the frames of all tables as one, whose first column is the table, if it has a name."""
        named = [
            frame.assign(table=name)[["table", *frame.columns]]
            if (name := self.database.shown_name(table))
            else frame
            for table, frame in frames.items()
        ]
        return pd.concat(named, ignore_index=True)

    def _about(self, text: str) -> tuple[str, str]:
        """Return the table that a text is about, and the rest of the text.

        ``count`` in a child table means ``count(child)``, a column of its parent. So the parent is returned.
        """
        table, colon, rest = text.partition(":") if isinstance(text, str) else ("", "", "")
        table, rest = table.strip(), rest.strip()
        if not colon or table not in self.database.named:
            if self.database.single is not None:
                return self.database.single, text
            raise InputError(
                f"{safe_repr(text)}: begin with a table, as in {next(iter(self))}: ...; there are "
                + ", ".join(self)
            )
        parent = self.database.tables[table].parent
        if parent is not None and "count" not in self.by_table[table].model.codec.names:
            of_parent = COUNT.sub(lambda match: f"count({table})" if match["count"] else match[0], rest)
            table = table if of_parent == rest else parent
            rest = of_parent
        return table, rest

    def resolved(self, text: str) -> tuple[str, str]:
        """Return the table that a condition or column is about, and the text without it.

        ``visits: count >= 3`` is about a column of the parent of visits.
        """
        table, rest = self._about(text)
        return table, self._quoted(table, rest)

    def _group(self, table: str, where: str | None) -> Group | None:
        """Return the rows of a table that meet a condition on it, or on a table above it if it names this."""
        if where is None:
            return None
        home, text = table, where
        name, colon, rest = where.partition(":") if isinstance(where, str) else ("", "", "")
        if (
            colon
            and name.strip() in self.database.named
            and name.strip() in (table, *self.database.above(table))
        ):
            home, text = name.strip(), rest.strip()
        group = self.rows_that_meet(home, self._quoted(home, text))
        return (
            group if home == table else Group(group.condition, group.above or self.by_table[home].above(home))
        )

    def _column(self, text: str) -> tuple[str, str]:
        """Return the table and the column that a text names."""
        table, name = self._about(text)
        return table, bare_name(name.strip()) if isinstance(name, str) else name

    def _quoted(self, table: str, text: str) -> str:
        """Return a condition with names such as count(visits) and visits.country in backticks."""
        if not isinstance(text, str):  # what reads conditions refuses it
            return text
        children = self.database.children(table)
        of_children = {its for child in children for its in same_in_all_rows(self.database, child).values()}
        names = {*sums_above(self.database, table)}
        names |= {
            name
            for name in self.by_table[table].model.codec.names
            if "(" in name or (name in of_children and not name.isidentifier())
        }
        if not names:
            return text
        longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        in_text = re.compile(rf"{QUOTED}|(?P<name>(?<![\w.])(?:{longest_first})(?!\w))")
        return in_text.sub(lambda match: f"`{match[0]}`" if match["name"] else match[0], text)

    def __repr__(self) -> str:
        return "\n".join(self.database.headed(table, repr(self.by_table[table])) for table in self)

    def _repr_html_(self) -> str:
        return "".join(self.by_table[table]._repr_html_() for table in self)

    def __str__(self) -> str:
        names = self.tables["columns"].map(lambda names: printable(" x ".join(names)))
        return self.tables.assign(columns=names).to_string(index=False, float_format="{:.4f}".format)
