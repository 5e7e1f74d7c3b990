"""Names of columns and tables in questions: with the table before a dot, and those that no table has."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from privsyn.errors import did_you_mean, spelled
from privsyn.table.database.derived_columns import rows_of
from privsyn.table.schema.condition import QUOTED

Names = Mapping[str, Collection[str]]
"""The names of the columns of each table."""

DOTTED = re.compile(r"(?<![\w.])(\w+)\.(\w+)")
NAME = re.compile(r"(?<![\w.])[^\W\d]\w*(?![\w(])")
BY = re.compile(r"\s+by\s+")
KEYWORDS = {"and", "or", "not", "in", "is", "missing", "True", "False", "None", "implies", "iff"}
"""Words of a condition that name no column."""


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
