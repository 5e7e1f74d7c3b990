"""Questions about a release in words, such as ``share of severe among age >= 65``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.table.database.database import Database
from privsyn.table.schema.condition import LONGEST_TEXT, QUOTED

FORMS = (
    "[weighted] share of CONDITION [among CONDITION]",
    "number of CONDITION",
    "number of rows",
    "[weighted] mean of COLUMN [among CONDITION]",
    "median of COLUMN",
    "correlation of COLUMN and COLUMN",
)
"""What can be asked."""

WEIGHTED = "share", "mean"
"""The statistics in which rows may count by their weights."""

QUESTION = re.compile(
    r"(?:(?P<table>[^:'\"`]+?)\s*:\s*)?(?P<weighted>weighted\s+)?"
    r"(?P<statistic>share|number|mean|median|correlation)\s+of\s+(?P<rest>\S.*)",
    re.DOTALL | re.IGNORECASE,
)

TABLE = re.compile(r"([^:'\"`<>=]+?)\s*:\s*")
"""The name of a table before a condition or a column."""

AMONG, AND, OR, WHERE = (re.compile(rf"\s+{word}\s+") for word in ("among", "and", "or", "where"))
"""The words between two parts of a question. In quotes or backticks they are part of a value or a name."""


@dataclass(frozen=True)
class Question:
    """A question about the rows of one table.

    Parameters
    ----------
    text : str
        The question in the words of the user.
    table : str
        The table that the user names, before the statistic or the subject; or "".
    statistic : str
        ``share``, ``number``, ``mean``, ``median`` or ``correlation``.
    subject : str
        A condition or a column.
    second : str
        The condition on the rows that are meant, or the second column of a correlation. "" if there is none.
    weighted : bool
        Whether rows count by their weights.

    Examples
    --------
    >>> question = Question.read("share of age >= 65 among job == 'among us'", Database.of_one())
    >>> question.subject, question.second
    ('age >= 65', "job == 'among us'")
    """

    text: str
    table: str
    statistic: str
    subject: str
    second: str = ""
    weighted: bool = False

    @classmethod
    def read(cls, text: object, database: Database) -> Self:
        """Return the question that a text asks; an `InputError` that says what to write if it asks none."""
        words = text.strip().removesuffix("?").rstrip() if isinstance(text, str) else ""
        match = QUESTION.fullmatch(words) if len(words) <= LONGEST_TEXT else None
        if match is None:
            raise InputError(f"is no question: ask {', '.join(FORMS[:-1])} or {FORMS[-1]}")
        table, statistic, rest = match["table"] or "", match["statistic"].lower(), match["rest"]
        behind = TABLE.match(rest)
        if not table and behind is not None and behind[1] in database.named:
            table, rest = behind[1], rest[behind.end() :]
        if table and not database.named:
            raise InputError("there is one table: leave out what stands before the colon")
        if table and table not in database.named:
            meant = did_you_mean(table, database.named)
            listed = ", ".join(database.named)
            raise InputError(f"there is no table {safe_repr(table)}{meant or f'; there are {listed}'}")
        if len(_parts(rest, WHERE)) > 1:
            raise InputError("write among in the place of where: mean of COLUMN among CONDITION")
        parts = _parts(rest, AND if statistic == "correlation" else AMONG)
        lengths = {"correlation": (2,), "share": (1, 2), "mean": (1, 2)}.get(statistic, (1,))
        if len(parts) not in lengths or not all(parts):
            raise InputError(f"the form is {next(form for form in FORMS if f'{statistic} of' in form)}")
        if match["weighted"] and statistic not in WEIGHTED:
            raise InputError(f"there is no weighted {statistic}: ask a weighted share or a weighted mean")
        subject, *second = parts
        return cls(match[0], table, statistic, subject, "".join(second), weighted=bool(match["weighted"]))

    def about(self, text: str) -> str:
        """Return a condition or column behind the name of the table, as `Accuracy` reads it."""
        return f"{self.table}: {text}" if self.table else text

    def of_table(self, table: str, subject: str = "") -> str:
        """Return the same question about another table, and another subject if one is given.

        >>> Question("", "", "median", "age").of_table("persons", "born")
        'persons: median of born'
        """
        between = " and " if self.statistic == "correlation" else " among "
        rest = f"{between}{self.second}" if self.second else ""
        weighted = "weighted " if self.weighted else ""
        return f"{table}: {weighted}{self.statistic} of {subject or self.subject}{rest}"

    @property
    def may_count_all(self) -> bool:
        """Whether it asks how many rows there are, if no column has that name."""
        return (self.statistic, self.subject) == ("number", "rows")

    @property
    def facts(self) -> list[str]:
        """The conditions that the subject joins by and; one if an or joins any."""
        return [self.subject] if len(_parts(self.subject, OR)) > 1 else _parts(self.subject, AND)


def _parts(text: str, word: re.Pattern[str]) -> list[str]:
    """Return the parts of a text between the places of a word outside quotes."""
    masked = QUOTED.sub(lambda match: "_" * len(match[0]), f"{text} ")
    ends = [0, *(end for match in word.finditer(masked) for end in match.span()), len(text)]
    return [text[start:end].strip() for start, end in zip(ends[::2], ends[1::2], strict=True)]
