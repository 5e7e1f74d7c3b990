"""Subjects: what names of tables and columns say of whether the rows of a table are persons."""

from __future__ import annotations

import re
from collections.abc import Iterable

SUBJECTS = re.compile(
    r"(?i)person|people|patient|customer|client|kunde|user|member|mitglied|student|pupil|sch(?:ü|ue)ler|subject|"
    r"respondent|citizen|resident|einwohner|tenant|household|haushalt|famil|insured|versichert|guest|rider|passenger|"
    r"donor|account|konto|applicant|buyer|debtor|employer|voter|child(?:ren)?$|personne|paciente|cliente|empleado"
)
"""Names of tables or keys of rows that may be the persons whom the data are about."""

STAFF = re.compile(
    r"(?i)employee|worker|mitarbeiter|angestellt|doctor|physician|nurse|teacher|lecturer|staff|driver|seller|clerk"
)
"""Names of rows of persons who serve others. If both are there, the others are rather the persons."""

CLASSES = re.compile(
    r"(?i)(?:type|kind|role|status|class|category|group|segment|level|tier|art|typ|gruppe)s?$"
)
"""Ends of the names of tables of classes, as of customer_type."""

OF_PEOPLE = re.compile(
    r"(?i)surname|(?:first|last|full|given|family|maiden)_?names?|vorname|nachname|birth|geburt|(?:^|_)born(?:$|_)|"
    r"(?:^|_)dob(?:$|_)|(?:^|_)ssn(?:$|_)|passport"
)
"""Names of columns that only persons have."""


def personality_by_names(table: str, names: Iterable[str], columns: Iterable[str]) -> int:
    """Return how likely rows are the persons: 2 by the table's name, 1 if they serve others, else 0.

    Parameters
    ----------
    table : str
    names : iterable of str
        Those that say what the rows are: that of the table, and that of its key.
    columns : iterable of str
        Those of the columns.

    Examples
    --------
    >>> [personality_by_names(name, [name], ["x"]) for name in ("patients", "nurses", "customer_type")]
    [2, 1, 0]
    """
    named = [] if CLASSES.search(table) else [*names]
    if any(map(SUBJECTS.search, named)):
        return 2
    return int(any(map(STAFF.search, named)) or any(map(OF_PEOPLE.search, columns)))
