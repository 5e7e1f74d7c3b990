"""What a person entered about each column: kept as it was typed, and read only when it is checked."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from privsyn.errors import InputError, about
from privsyn.table.schema.columns import COLUMNS, Column, Ordinal
from privsyn.table.schema.yaml_file import dump, from_plain, parse

Form = Mapping[str, Sequence[str]]
"""What a form sent: the values of each field by its name."""


def field(form: Form, name: str, default: str = "") -> str:
    """Return the value of a field that has one."""
    return form.get(name, [default])[0]


OPEN = ""
"""The kind of a column about which nothing is declared. A schema declares all columns or none."""

KINDS = {
    OPEN: "let privsyn find out",
    "categorical": "categories",
    "numerical": "numbers",
    "datetime": "dates",
    "time": "times of day",
    "duration": "lengths of time",
    "identifier": "identifier: replaced",
    "text": "free text: left out",
}
"""The kinds that the form offers, in plain words."""

ORDERED = tuple(kind for kind, class_ in COLUMNS.items() if issubclass(class_, Ordinal))
"""The kinds with bounds."""

SHOWN = ("kind", "low", "high", "values", "nullable")
"""The settings that have a place of their own in the form; all others are typed as YAML."""


NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
QUESTION = re.compile(r"\b[A-Z]{4,}\b")
"""A word of a remark that asks a person something, as CODES?, UNIQUE or REPEATED."""

PERSONS = "choose it above as the column that names the persons"


@dataclass(frozen=True)
class Entry:
    r"""One row of the form: a column and what was typed about it.

    Parameters
    ----------
    name : str
    kind : str
        One of `KINDS`, or another kind that a schema file declared.
    low, high : str
        The bounds, for kinds in an order.
    values : str
        The values of categories, one a line.
    nullable : bool
        Whether a cell may be missing.
    more : str
        Other settings, as a mapping in YAML without its braces.
    drafted : bool
        Whether it was read from the rows, so that a person must confirm it.
    bounds : pair of str
        The bounds of the draft, if it had any: a person sees what others leave out.
    confirmed : bool
    together : bool
        Whether it was confirmed by one button with others.
    unnamed : bool
        Whether the schema leaves out its values, so that the run finds them under privacy.
    remarks : tuple of str
        What the rows showed, or what the name suggests.

    Examples
    --------
    >>> Entry("age", "numerical", low="0", high="120", more="integer: true").plain()
    {'kind': 'numerical', 'low': 0, 'high': 120, 'integer': True}
    >>> Entry("sex", "categorical", values="F\nM\n", nullable=False).plain()
    {'kind': 'categorical', 'values': ['F', 'M'], 'nullable': False}
    """

    name: str
    kind: str = OPEN
    low: str = ""
    high: str = ""
    values: str = ""
    nullable: bool = True
    more: str = ""
    drafted: bool = False
    bounds: tuple[str, str] = ("", "")
    confirmed: bool = False
    together: bool = False
    unnamed: bool = False
    remarks: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, plain: Mapping[str, Any] | None, **settings: Any) -> Entry:
        """Return the entry that would have been typed for a column of a schema in plain data."""
        if plain is None:
            return cls(name, **settings)
        more = {key: value for key, value in plain.items() if key not in SHOWN}
        bounds = _typed(plain.get("low")), _typed(plain.get("high"))
        return cls(
            name,
            plain["kind"],
            *bounds,
            "\n".join(map(_typed, plain.get("values") or ())),
            plain.get("nullable", True),
            dump(more, flow=True).strip()[1:-1] if more else "",
            bounds=bounds,
            **settings,
        )

    @property
    def is_open(self) -> bool:
        """Whether the run finds values or bounds under privacy."""
        if self.kind in ORDERED:
            return not (self.low.strip() and self.high.strip())
        return self.kind == OPEN or (self.kind == "categorical" and (self.unnamed or not self.values.strip()))

    @property
    def names_values(self) -> bool:
        """Whether values of the table stand in its list, unless the person leaves them out."""
        return self.kind == "categorical" and self.values.strip() != ""

    def may_be_named_in(self, rule: object) -> bool:
        r"""Return whether a rule may name a value that the schema leaves out.

        >>> hidden = Entry("ward", "categorical", values="eye", unnamed=True)
        >>> hidden.may_be_named_in("age < 9 implies ward == eye"), hidden.may_be_named_in("ward == clinic")
        (True, False)
        >>> Entry("code", "categorical", values="1\n2.50", unnamed=True).may_be_named_in("code == 2.5")
        True
        """
        if not (self.unnamed and self.names_values and self.name in str(rule)):
            return False
        if not isinstance(rule, str):
            return True
        numbers = {float(number) for number in NUMBER.findall(rule)}
        values = [line.strip() for line in self.values.splitlines() if line.strip()]
        texts = {value.strip("'\"") for value in values} | {str(_parsed(value)) for value in values}
        return any(text in rule for text in texts) or not numbers.isdisjoint(
            number for number in map(_parsed, values) if isinstance(number, int | float)
        )

    @property
    def asks(self) -> bool:
        """Whether a remark on it is a question, which begins with a word in capitals."""
        return any(map(QUESTION.search, self.remarks))

    @property
    def has_own_texts(self) -> bool:
        """Whether nearly every row has a text of its own, of which the draft lists none."""
        unlisted = self.kind == "categorical" and not self.names_values
        return unlisted and any("UNIQUE" in remark for remark in self.remarks)

    @property
    def problem(self) -> str:
        """What is wrong with it, or nothing."""
        try:
            self.column()
        except InputError as error:
            return str(error).removeprefix(f"column {self.name!r}: ")
        return ""

    def plain(self) -> dict[str, Any] | None:
        """Return the column in plain data; None if nothing is declared.

        Raises
        ------
        InputError
            If what was typed cannot be read.
        """
        if self.kind == OPEN:
            return None
        column: dict[str, Any] = {"kind": self.kind}
        if self.kind in ORDERED:
            ends = {"low": self.low.strip(), "high": self.high.strip()}
            column |= {end: _read(end, text) for end, text in ends.items() if text}
        elif self.names_values and not self.unnamed:
            lines = (line.strip() for line in self.values.splitlines())
            column["values"] = [_read("values", line) for line in lines if line]
        if not self.nullable and self.kind in (*ORDERED, "categorical"):
            column["nullable"] = False
        return {**column, **extra_settings(self.more, "step: 0.01, decimals: 2")}

    def column(self) -> Column | None:
        """Return the column that it declares; None if nothing is declared.

        Raises
        ------
        InputError
            If what was typed cannot work.
        """
        with about(f"column {self.name!r}"):
            plain = self.plain()
        return None if plain is None else from_plain({"columns": {self.name: plain}}).columns[self.name]

    def changed(self, form: Form, number: int) -> Entry:
        """Return it with what the form says; fields that it lacks stay as they are.

        The names of the fields end in the place of the column, as in ``low-3``.
        """
        typed: dict[str, Any] = {
            setting.name: form[f"{setting.name}-{number}"][0]
            for setting in fields(self)
            if setting.type == "str" and f"{setting.name}-{number}" in form
        }
        if typed.get("kind", self.kind) not in {*KINDS, *COLUMNS}:
            del typed["kind"]
        typed |= {name: f"{name}-{number}" in form for name in ("nullable", "confirmed")}
        return replace(self, **typed, together=self.together and typed["confirmed"])


def extra_settings(text: str, example: str) -> dict[str, Any]:
    """Return settings that were typed as a mapping in YAML without its braces.

    >>> extra_settings("integer: true", "step: 0.01"), extra_settings(" ", "step: 0.01")
    ({'integer': True}, {})
    """
    with about("other settings"):
        settings = parse(f"{{{text}}}") if text.strip() else {}
        if not isinstance(settings, Mapping) or any(value is None for value in settings.values()):
            raise InputError(f"write them as {example}")
        return dict(settings)


def entries_of(
    plain: Mapping[str, Any],
    names: Sequence[str],
    notes: Mapping[str, Sequence[str]] | None = None,
    *,
    drafted: bool = False,
) -> list[Entry]:
    """Return an entry for each column: what is declared in plain data, and the remarks on it."""
    remarks = notes or {}
    return [
        Entry.of(
            name,
            plain.get(name),
            drafted=drafted and name in plain,
            remarks=tuple(map(in_the_form, remarks.get(name, ()))),
        )
        for name in names
    ]


def in_the_form(remark: str) -> str:
    """Return a remark on a schema file, or a line of a run, in the words of the page.

    >>> in_the_form("READ: UNIQUE, nearly every row has a text. If it names the row: {kind: identifier}.")
    "UNIQUE, nearly every row has a text. If it names the row: the kind 'identifier: replaced'."
    >>> in_the_form("the cells are invented: give them in a schema (`privsyn schema` drafts it)")
    'the cells are invented: give them in a schema ("Draft from the rows" drafts it)'
    """
    text = remark.removeprefix("READ: ")
    text = text.replace("`privsyn schema` drafts", '"Draft from the rows" drafts')
    text = re.sub(r"; `privsyn sample` draws .*", "", text)
    text = text.replace(" below link", " under other settings")
    text = text.replace("draft again with --persons NAME", "choose it above and draft again,")
    file_of_keys = r"add a file whose only column has each cell of \1 once, and choose its table above."
    text = re.sub(r"draft again with --persons \S+\.(\S+)\.$", file_of_keys, text)
    text = re.sub(r"[Ll]eave this line out and add --unit \S+?(?=[:.;]( |$))", PERSONS, text)
    return re.sub(
        r"\{kind: (\w+)(?:, values: \[ \])?\}",
        lambda match: f"the kind {KINDS.get(match[1], match[1])!r}",
        text,
    )


def _typed(value: Any) -> str:
    """Return a value as it is typed: text that YAML would read as something else stands in quotes.

    >>> _typed("no"), _typed(3), _typed("3"), _typed(None)
    ('no', '3', "'3'", '')
    """
    if value is None:
        return ""
    for text in (str(value), *(dump([value], flow=True).strip()[1:-1],)):
        try:
            if parse(f"[{text}]") == [value] and type(parse(f"[{text}]")[0]) is type(value):  # type: ignore[index]
                return text
        except InputError:
            continue
    return dump([value], flow=True).strip()[1:-1]


def _read(subject: str, text: str) -> Any:
    """Return a typed value: a number, true or false, or text. What YAML cannot read is text as it stands."""
    try:
        value = parse(text)
    except InputError:
        return text
    with about(subject):
        if isinstance(value, list) or (isinstance(value, dict) and set(value) != {"float"}):
            return text
    return text if value is None else value


def _parsed(value: str) -> Any:
    """Return a value of a list as the schema will read it; the text itself if it is no value."""
    try:
        return parse(value)
    except InputError:
        return value
