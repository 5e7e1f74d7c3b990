"""About: the publisher's words on a table, for its pages and for catalogues. Public; no cell is read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

from privsyn.errors import InputError, about, replace_errors, safe_repr
from privsyn.table.kinds.column_settings import check_keys, normalise

URL = re.compile(r"https?://[^\s/]+\S*")
EMAIL = re.compile(r"[^\s@]+@[^\s@]+\.[^\s@]+")
SPDX = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]*")
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
DAY = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")

BODY = re.compile(rf"([^<>]+) <({EMAIL.pattern}|{URL.pattern})>")

FORMS = {
    "homepage": (URL, "a URL such as https://example.org/visits"),
    "identifier": (re.compile(r"\S+"), "a DOI, a URL or another name without blanks"),
    "contact": (re.compile(f"{EMAIL.pattern}|{URL.pattern}"), "an e-mail address or a URL"),
    "access_body": (BODY, "a name and a contact, such as Findata <info@findata.example>"),
    "licence": (
        re.compile(f"{SPDX.pattern}|{URL.pattern}"),
        "an SPDX identifier such as CC-BY-4.0, or a URL",
    ),
}
"""The form of a setting, and what a message says of it."""

DATES = ("issued", "temporal")

USUAL_LICENCES = (
    *("CC0-1.0", "CC-BY-4.0", "CC-BY-SA-4.0", "CC-BY-NC-4.0", "CC-BY-ND-4.0", "CC-BY-NC-SA-4.0"),
    *("ODbL-1.0", "ODC-By-1.0", "PDDL-1.0", "OGL-UK-3.0", "DL-DE-BY-2.0", "DL-DE-ZERO-2.0", "etalab-2.0"),
)
"""SPDX identifiers of licences for data, accepted in any case of letters. Others stay as they are."""

OF_A_TABLE = ("title", "description")
"""What may be about one of several tables. The rest is about all of them."""


@dataclass(frozen=True, kw_only=True)
class About:
    """Say in the publisher's words what a table is, who publishes it and how it may be used.

    The pages show it, and catalogues are written from it. It is published as it is.

    Parameters
    ----------
    title : str, optional
        One line.
    description : str, optional
        It may have several lines.
    publisher : str, optional
        The name of the office or person who publishes the synthetic table.
    contact : str, optional
        An e-mail address or a URL.
    licence : str, optional
        An SPDX identifier, such as ``CC-BY-4.0``, or the URL of the licence.
    issued : str or date, optional
        The date of publication, such as ``2026-11-29``; a year, or a year and a month, will do.
    keywords : str or list of str, optional
    language : str or list of str, optional
        Codes of BCP 47, such as ``en`` or ``de-AT``, of the text in the cells.
    spatial : str or list of str, optional
        The places that the private table covers, as names or URLs.
    temporal : str, optional
        The dates that it covers: ``2015``, or ``2015-01-01/2015-12-31``.
    identifier : str, optional
        Such as a DOI. Without blanks.
    homepage : str, optional
        The URL of the page that offers the synthetic table.
    health : str or list of str, optional
        For HealthDCAT-AP: the categories of health data, such as ``EHRS``, or their URLs.
    access_body : str, optional
        For HealthDCAT-AP: the health data access body and its contact, ``Findata <info@findata.example>``.

    Raises
    ------
    InputError
        If a value is not of its form.

    Examples
    --------
    >>> About(title="Visits 2025", publisher="Office of Health", licence="CC-BY-4.0", issued="2026-11").line
    'Visits 2025. Office of Health, 2026-11. Licence: CC-BY-4.0.'
    """

    title: str | None = None
    description: str | None = None
    publisher: str | None = None
    contact: str | None = None
    licence: str | None = None
    issued: Any = None  # text; a date is replaced
    keywords: Any = ()  # a tuple of texts; a text or a list is replaced
    language: Any = ()
    spatial: Any = ()
    temporal: str | None = None
    identifier: str | None = None
    homepage: str | None = None
    health: Any = ()
    access_body: str | None = None

    def __post_init__(self) -> None:
        with about("about"):
            self._read()

    def _read(self) -> None:
        """Bring each setting into its one form; refuse what is not of its form."""
        for name in LISTS:
            normalise(self, **{name: _texts(name, getattr(self, name))})
        for name in TEXTS:
            setting = getattr(self, name)
            if name in DATES and isinstance(setting, date):
                setting = setting.isoformat()[:10]
            elif name in DATES and type(setting) is int:  # YAML reads a year as a number
                setting = str(setting)
            if setting is not None:
                normalise(self, **{name: _text(name, setting, lines=name == "description")})
        for name, (pattern, form) in FORMS.items():
            text = getattr(self, name)
            if text is not None and not pattern.fullmatch(text):
                raise InputError(f"{name} is {form}; got {safe_repr(text)}")
        usual = {licence.lower(): licence for licence in USUAL_LICENCES}
        if self.licence is not None:
            normalise(self, licence=usual.get(self.licence.lower(), self.licence))
        for language in self.language:
            if not LANGUAGE.fullmatch(language):
                raise InputError(f"language is a code such as en or de-AT; got {safe_repr(language)}")
        if self.issued is not None:
            _check_day("issued", self.issued)
        if self.temporal is not None:
            days = self.temporal.split("/")
            for day in days:
                _check_day("temporal", day)
            if len(days) > 2 or days != sorted(days):
                got = safe_repr(self.temporal)
                raise InputError(f"temporal is a date, or a start and an end as in 2015/2016; got {got}")

    @property
    def line(self) -> str:
        """Title, publisher, date and licence in one line; the parts that are given."""
        source = ", ".join(filter(None, (self.publisher, self.issued)))
        licence = self.licence and f"Licence: {self.licence}"
        parts = (part for part in (self.title, source, licence) if part)
        return " ".join(part if part[-1] in ".!?" else f"{part}." for part in parts)

    @property
    def access_body_parts(self) -> tuple[str | None, str | None]:
        """The name of the health data access body and its contact.

        >>> About(access_body="Findata <info@findata.example>").access_body_parts
        ('Findata', 'info@findata.example')
        """
        match = BODY.fullmatch(self.access_body or "")
        return (match[1], match[2]) if match else (None, None)

    @property
    def of_all_tables(self) -> list[str]:
        """The settings that are given, and that one of several tables cannot have."""
        return [name for name in self.to_plain() if name not in OF_A_TABLE]

    def to_plain(self) -> dict[str, Any]:
        """Return what is given, as plain data for YAML and JSON.

        >>> About(title="Visits", keywords="health").to_plain()
        {'title': 'Visits', 'keywords': ['health']}
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: list(value) if name in LISTS else value for name, value in values.items() if value}


LISTS = ("keywords", "language", "spatial", "health")
TEXTS = tuple(field.name for field in fields(About) if field.name not in LISTS)


TO_FILL = """\
# In your words; the public page and catalogues show them. Remove the # of those that you fill in.
#about:
#  title: What the table is, in one line
#  description: Which rows it has, from where and when
#  publisher: Office or person
#  contact: data@example.org  # or a URL
#  licence:  # such as CC-BY-4.0, or a URL
#  issued:  # the date of publication, such as 2026-11-29
"""
"""The lines of a draft to be filled in. Nothing of them is read from rows."""


def read_about(plain: object) -> About | None:
    """Return what is about a table, from plain data of a schema file; None if nothing is.

    >>> read_about({"title": "Visits"}).title
    'Visits'
    """
    if isinstance(plain, Mapping):
        with about("about"):
            check_keys(plain, (*TEXTS, *LISTS))
        plain = About(**plain)
    if plain is not None and not isinstance(plain, About):
        raise InputError("'about:' is a mapping such as {title: Visits, publisher: Office of Health}")
    return plain if plain != About() else None


def _text(name: str, text: object, *, lines: bool = False) -> str:
    """Return a text without blanks around it; refuse what is none, or has several lines."""
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"{name} is a text; got {safe_repr(text)}")
    if not lines and not text.strip().isprintable():
        raise InputError(f"{name} is one line without control characters: shorten it")
    return text.strip()


def _texts(name: str, texts: object) -> tuple[str, ...]:
    listed = (texts,) if isinstance(texts, str) else () if texts is None else texts
    if not isinstance(listed, list | tuple):
        raise InputError(f"{name} is a text or a list of texts; got {safe_repr(texts)}")
    return tuple(dict.fromkeys(_text(name, text) for text in listed))


def _check_day(name: str, day: str) -> None:
    """Refuse what is no date, year, or year and month."""
    first_day = day + "-01-01"[len(day) - 4 :] if DAY.fullmatch(day) else ""
    with replace_errors(f"{name} has a date such as 2026-11-29 or 2026; got {safe_repr(day)}", ValueError):
        date.fromisoformat(first_day)
