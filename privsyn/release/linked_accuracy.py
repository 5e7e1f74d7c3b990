"""LinkedAccuracy: error bars of a release of several linked tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import pandas as pd

from privsyn.errors import InputError, about, safe_repr
from privsyn.inference.fitted import TWO_SIDED, Fitted
from privsyn.inference.ordered.number_intervals import Interval
from privsyn.progress import Progress
from privsyn.release.accuracy import Accuracy

COUNT = re.compile(r"""'[^']*'|"[^"]*"|`[^`]*`|(?P<count>\bcount\b(?!\())""")
"""The word count in a condition, but not in a quoted value or name."""


@dataclass(frozen=True, eq=False, repr=False)
class LinkedAccuracy(Mapping[str, Accuracy]):
    """The accuracy of each of several linked tables, by its name.

    Shares and means are of the rows of one table. The number of rows of a child table below each row, as in
    ``count(visits)``, is a column like others.

    Parameters
    ----------
    by_table : mapping of str to Accuracy
    parents : mapping of str to str
        The table to which the rows of each child table belong.

    Examples
    --------
    >>> from privsyn import Database, Numerical, PrivSyn, Schema, Table
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

    by_table: Mapping[str, Accuracy]
    parents: Mapping[str, str]

    def __getitem__(self, table: str) -> Accuracy:
        return self.by_table[table]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_table)

    def __len__(self) -> int:
        return len(self.by_table)

    def share(self, where: str, *, progress: Progress | None = None) -> pd.Series:
        """Return the share of the rows of a table that meet a condition, as `Accuracy.share`.

        Parameters
        ----------
        where : str
            A table and a condition on its columns, as in ``"visits: ward == 'surgery'"``. ``"visits: count
            >= 3"`` is the share of the rows of the parent that have three or more visits.
        progress : callable, optional

        Raises
        ------
        InputError
            If it does not begin with a table, or is no condition on its columns.
        """
        table, condition = self._about(where)
        return self[table].share(condition, progress=progress)

    def mean(self, column: str, where: str | None = None, *, progress: Progress | None = None) -> pd.Series:
        """Return the mean of a column of numbers over the rows that meet a condition, as `Accuracy.mean`.

        Parameters
        ----------
        column : str
            A table and its column: ``"visits: days"``, or ``"visits: count"`` for the visits of a patient,
            which is the ratio of the numbers of rows.
        where : str, optional
            A condition on other columns of this table; with ``"visits: count"``, on columns of the parent.
        progress : callable, optional
        """
        table, name = self._about(column)
        for child, parent in self.parents.items():
            if where is None and (parent, name) == (table, f"`count({child})`"):
                return self._mean_child_rows(self[child].fitted, self[parent].fitted)
        condition = None if where is None else self._quoted(table, where)
        return self[table].mean(name.strip("`"), condition, progress=progress)

    def agreement(self, tables: Mapping[str, Any]) -> pd.DataFrame:
        """Return where a sample of the tables differs from this release, as `Accuracy.agreement`.

        The first column is the ``table``. Links between tables are not compared.

        Parameters
        ----------
        tables : mapping of a table to its rows
            A sample, or some of its tables.

        Raises
        ------
        InputError
            If the rows do not have the columns and dtypes of a sample.
        """
        found = []
        for name, own in self.items():
            if name in tables:
                with about(f"table {name!r}"):
                    found.append(own.agreement(tables[name]).assign(table=name))
        if not found:
            raise InputError("give the tables of a sample, by their names: " + ", ".join(self))
        return pd.concat([of[["table", *of.columns[:-1]]] for of in found], ignore_index=True)

    @staticmethod
    def _mean_child_rows(children: Fitted, parents: Fitted) -> pd.Series:
        """Return the mean number of child rows, and its interval, by the delta method."""
        mean = children.total / parents.total
        variance = children.error_of_total**2 + (mean * parents.error_of_total) ** 2
        error = TWO_SIDED * sqrt(variance) / parents.total
        found = Interval(mean, max(mean - error, 0.0), mean + error)
        return pd.Series({**vars(found), "covered": True}, dtype=object)

    def _about(self, text: str) -> tuple[str, str]:
        """Return the table that a text is about, and the rest of the text.

        ``count`` in a child table means ``count(child)``, a column of its parent. So the parent is returned.
        """
        table, colon, rest = text.partition(":")
        table, rest = table.strip(), rest.strip()
        if not colon or table not in self:
            raise InputError(
                f"{safe_repr(text)}: begin with a table, as in {next(iter(self))}: ...; there are "
                + ", ".join(self)
            )
        if table in self.parents and "count" not in self[table].codec.names:
            of_parent = COUNT.sub(lambda found: f"count({table})" if found["count"] else found[0], rest)
            table = table if of_parent == rest else self.parents[table]
            rest = of_parent
        return table, self._quoted(table, rest)

    def _quoted(self, table: str, text: str) -> str:
        """Return a condition with names such as count(visits) in backticks."""
        for name in self[table].codec.names:
            if "(" in name and f"`{name}`" not in text:
                text = text.replace(name, f"`{name}`")
        return text

    def __repr__(self) -> str:
        return "\n".join(f"{name}: {accuracy!r}" for name, accuracy in self.items())
