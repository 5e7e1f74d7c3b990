"""Personality: what names and cells say of whether the rows of a table are persons.

Not private: it looks at the names of tables and columns, and at cells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from privsyn.errors import plural
from privsyn.table.drafting.keys import KeyedTable, Link
from privsyn.table.encoding.dtypes import family
from privsyn.table.schema.subjects import OF_PEOPLE, SUBJECTS, personality_by_names

CONTACTS = re.compile(
    r"(?i)address|(?:^|_)adresse?(?:$|_)|street|stra(?:ß|ss)e|(?:^|_)rue(?:$|_)|phone|(?:^|_)(?:tel|mobile|fax|cell)"
    r"(?:$|_)|telefon|e-?mail|(?:^|_)iban(?:$|_)"
)
"""Names of columns with which a row can be traced to a person: a table with one is not proposed as public."""

LIKE_CONTACTS = re.compile(
    r"[^@\s]+@[^@\s]+\.\w+|\+\d[\d ()/.-]{6,}|(?!\d{4}-\d\d-\d\d)(?=.*[ ()/-])\(?\d[\d ()/-]{6,}\d|"
    r"(?=.*\d)(?i:.*(?:\b(?:street|st|road|rd|avenue|ave|lane|drive|court|boulevard|blvd|rue|via|calle|plaza)\b|"
    r"stra(?:ß|ss)e\b|str\.|platz\b|weg\b|gasse\b|allee\b).*)"
)
"""Cells that may be e-mail addresses, telephone numbers, or streets with a number."""

LIKE_NAMES = re.compile(r"(?:[A-ZÄÖÜÉ][\w.'-]+,? ){1,3}[A-ZÄÖÜÉ][\w'-]+")
"""Cells that may be names of persons: two words or more with capitals."""

NAMES = re.compile(r"(?i)(?:^|_)names?$|name$|(?:^|_)(?:label|title)$")
"""Names of columns that may have names of persons, if their cells look so."""

WHO = "WHO ARE THE PERSONS?"
"""How the question begins where names and links leave it open."""

LEAST_SHARE_OF_CONTACTS = 0.5
"""Least share of the different cells of a column that look like contacts or names, if it has these."""


def personality(table: KeyedTable) -> int:
    """Return how likely rows are the persons; see `personality_by_names`."""
    return personality_by_names(table.name, _names(table), map(str, table.frame.columns))


def is_personal(table: KeyedTable) -> bool:
    """Return whether the rows of a table may be persons, by its name and those of its columns."""
    return personality(table) > 0 or any(map(SUBJECTS.search, _names(table)))


def question_on_persons(
    root: str, roots: Mapping[str, int], tables: Mapping[str, KeyedTable], likely: Sequence[Link]
) -> str:
    """Return the question who the persons are, if it is not clear; else "".

    Where no name says that rows are persons, they may also be the rows to which nothing leads, as flights.

    Parameters
    ----------
    root : str
        The table whose rows are taken for the persons.
    roots : mapping of a table that could be the root to the number of rows below it
    tables : mapping of a name to a KeyedTable
    likely : sequence of Link
    """
    rivals = [name for name in roots if name != root and (roots[name] or is_personal(tables[name]))]
    named = [f"{name} ({plural(roots[name], 'row')} below it)" for name in rivals]
    reason = f"Names and links speak for {root}."
    if not any(map(is_personal, tables.values())):
        reason = f"No name says so. {root} was taken because of its {plural(roots[root], 'row')} below."
        led_to = {link.parent for link in likely}
        leading = dict.fromkeys(link.table for link in likely if link.table not in {root, *led_to, *rivals})
        named += [f"{name} (each of its {plural(len(tables[name].frame), 'row')} alone)" for name in leading]
    if not named:
        return ""
    return (
        f"READ: {WHO} {reason} It could also be: {', '.join(named)}. The promise is for the rows"
        " of one table: draft again with --persons NAME to take another one."
    )


def _names(table: KeyedTable) -> list[str]:
    """Return the names that say what the rows of a table are: its own, and that of its key."""
    return [table.name, *(key for key in table.keys[:1] if isinstance(key, str))]


def traces(table: KeyedTable) -> list[str]:
    """Return the columns of a table with names, addresses or the like, by their names and their cells.

    >>> import pandas as pd
    >>> shops = pd.DataFrame({"id": [1, 2], "where": ["Mill Road 12", "Mill Road 14"], "size": ["S", "L"]})
    >>> traces(KeyedTable("shops", shops))
    ['where']
    """
    columns = []
    for name in map(str, table.frame.columns):
        is_named = bool(CONTACTS.search(name) or OF_PEOPLE.search(name))
        if not is_named and family(table.frame[name].dtype) in ("text", "object") and name in table.cells:
            cells = [cell for cell in table.frame[name].dropna().unique().tolist() if isinstance(cell, str)]
            for pattern in (LIKE_CONTACTS, *([LIKE_NAMES] if NAMES.search(name) else [])):
                matches = sum(bool(pattern.fullmatch(cell)) for cell in cells)
                is_named |= matches > LEAST_SHARE_OF_CONTACTS * len(cells)
        if is_named:
            columns.append(name)
    return columns
