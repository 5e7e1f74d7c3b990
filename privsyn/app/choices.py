"""What a person has chosen so far: the table, its columns, the promise. It is a schema file and a command."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from privsyn.app.column_entries import OPEN, Entry, entries_of
from privsyn.errors import about, replace_errors
from privsyn.private.noise_laws import law_of
from privsyn.private.run_ledger import RunLedger
from privsyn.settings import Settings
from privsyn.studies.planning.plan import Plan
from privsyn.studies.planning.planner import plan
from privsyn.studies.publication.relationships import power
from privsyn.table.drafting.candidates import Proposal
from privsyn.table.drafting.draft import draft_schema
from privsyn.table.drafting.relations import long_look_up
from privsyn.table.drafting.review import PERSON, draft_to_review
from privsyn.table.io.csv_table import PLAIN, first_line
from privsyn.table.io.formats import CSV, SEPARATOR, Location
from privsyn.table.kinds.column_settings import changed_settings
from privsyn.table.kinds.csv_format import DELIMITERS, CsvFormat
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import constraint_lines, from_plain, parse, to_plain, to_yaml

FORMATS = {".csv": "CSV", ".parquet": "Parquet", ".xlsx": "Excel"}
"""The formats of the synthetic table, by the ending of its file."""

OUTPUTS = {
    "--model": "model.privsyn",
    "--ledger": "ledger.json",
    "--public-report": "public.html",
    "--sheet": "sheet.md",
}
"""The files of a run besides the table, by option. All may be published."""

SCHEMA, COMMAND = "schema.yaml", "command.txt"
"""The files that say how the run was made."""

DRAFTED = """\
# Drafted from the private rows; the publisher confirmed each column as public.
"""
"""How a schema file begins that was not typed alone."""

CSV_SETTINGS = (
    ("delimiter", "Between cells", ((",", "comma"), (";", "semicolon"), ("tab", "tab"), ("|", "bar"))),
    ("point", "Decimal sign", ((".", "point"), (",", "comma"))),
    ("thousands", "Between thousands", (("", "nothing"), (".", "point"), (",", "comma"), (" ", "space"))),
)
"""Settings of a CSV: the name, words for it, and each choice with its words."""

EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
"""The steps of the slider."""

ALL_EPSILONS = tuple(round(10 ** (step / 40 - 2), 4) for step in range(161))
"""From 0.01 to 100: the page shows the best guess at the next of these above a typed epsilon."""

DELTA = 1e-9

LABELS = ("Value labels in the file: a program may have made them from the rows.",)
"""The remark on values that are known before a row is read. A person must confirm them like drafted ones."""


@dataclass
class Choices:
    """The choices of a person, from the table to the format of the result.

    Parameters
    ----------
    path : Path
        The file of the private table.
    inside : str
        The name of the table in a database or workbook, or nothing.
    csv : CsvFormat
        How a CSV file is written.
    home : Path, optional
        The folder of the budget file and the policy. Default: the folder of the table.

    Attributes
    ----------
    entries : list of Entry
        One for each column.
    proposals : list of Proposal
        Constraints that the rows keep.
    look_ups : int
        Number of proposals left out: look-ups of many keys, which no person can check on a screen.
    accepted : set of int
        The places of the proposals that the person ticked.
    rules : str
        Constraints that the person typed, one a line.
    marks : tuple of str
        Texts in the rows that usually mean a missing cell.
    missing : tuple of str
        Those that the person ticked.
    important : list of list of str
        Sets of columns whose relation matters most.
    unit, target : str, optional
        The column of persons, and the column to be predicted.
    public : Path, optional
        A table that anybody may read, in the start folder.
    protects : bool
        Whether the person said whom the promise protects.
    epsilon, delta : float
    ending : str
        The format of the synthetic table.
    rows : int, optional
        The number of synthetic rows; the private estimate if it is None.
    seed : int, optional
        Makes a run repeatable, for tests alone: no screen offers it.

    Raises
    ------
    InputError
        If the names of the columns cannot be read.
    """

    path: Path
    inside: str = ""
    csv: CsvFormat = PLAIN
    home: Path = Path()
    entries: list[Entry] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    look_ups: int = 0
    accepted: set[int] = field(default_factory=set)
    rules: str = ""
    marks: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    important: list[list[str]] = field(default_factory=list)
    unit: str | None = None
    target: str | None = None
    public: Path | None = None
    protects: bool = False
    epsilon: float = 1.0
    delta: float = DELTA
    ending: str = ".csv"
    rows: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        """Read the names and types of the columns; no row."""
        if self.entries:  # a copy
            return
        self.home = self.path.parent if self.home == Path() else self.home
        if self.is_csv and self.csv == PLAIN:
            self.csv = format_of_header(self.path)
        schema = draft_schema(self.data, read=False, csv=self.csv)
        declared = _columns(schema)
        if not Location.of(self.data).format.typed:  # only identifiers are known, by their names
            declared = {name: plain for name, plain in declared.items() if plain["kind"] == "identifier"}
        entries = entries_of(declared, list(schema.columns))
        self.entries = [
            replace(entry, drafted=True, remarks=LABELS) if entry.values else entry for entry in entries
        ]

    @property
    def data(self) -> str:
        """The table as the command line takes it."""
        return f"{self.path}{SEPARATOR}{self.inside}" if self.inside else str(self.path)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [entry.name for entry in self.entries]

    @property
    def drafted(self) -> bool:
        """Whether a column was drafted from the rows."""
        return any(entry.drafted for entry in self.entries)

    @property
    def persons(self) -> list[str]:
        """The columns whose names look like identifiers of persons."""
        return [name for name in self.names if PERSON.search(name)]

    @property
    def is_csv(self) -> bool:
        """Whether it is a CSV file."""
        return Location.of(self.data).format is CSV

    @property
    def name(self) -> str:
        """The table as a person would type it in its folder."""
        return f"{self.path.name}{SEPARATOR}{self.inside}" if self.inside else self.path.name

    def draft(self) -> None:
        """Draft the columns and propose constraints. It READS THE ROWS: a person must confirm each line."""
        draft = draft_to_review(self.data, csv=self.csv)
        self.entries = entries_of(_columns(draft.schema), self.names, draft.notes, drafted=True)
        self.proposals = [proposal for proposal in draft.proposals if not long_look_up(proposal)]
        self.look_ups = len(draft.proposals) - len(self.proposals)
        self.accepted = set()
        self.marks, self.missing = tuple(draft.schema.missing), ()

    @property
    def declares(self) -> bool:
        """Whether a column is declared that its name does not make an identifier anyway."""
        return any(entry.kind not in (OPEN, "identifier") for entry in self.entries)

    def problem(self, entry: Entry) -> str:
        """Return what is wrong with a column, or nothing."""
        if entry.name == self.unit:  # it is not synthesised
            return ""
        if entry.kind == OPEN and self.declares:
            return "of which kind is it? Declare all columns, or none"
        return entry.problem

    def needs_person(self, entry: Entry) -> bool:
        """Return whether a person must look at a column before a run."""
        drafted = entry.drafted and not entry.confirmed and entry.name != self.unit
        return drafted or self.problem(entry) != ""

    def waiting(self) -> list[Entry]:
        """Return the columns at which a person must look before a run."""
        return [entry for entry in self.entries if self.needs_person(entry)]

    def schema(self) -> Schema | None:
        """Return the schema that all entries declare; None if they declare nothing.

        Raises
        ------
        InputError
            If an entry or a constraint cannot work.
        """
        columns: dict[str, Any] = {}
        for entry in self.entries if self.declares else ():
            if entry.name == self.unit:  # it is not synthesised
                continue
            with about(f"column {entry.name!r}"):
                plain_column = entry.plain()
            if plain_column is not None:
                columns[entry.name] = plain_column
        rules: list[Any] = [self.proposals[number].plain for number in sorted(self.accepted)]
        typed = [line.strip().removeprefix("- ") for line in self.rules.splitlines() if line.strip()]
        rules += [parse(text) if text.startswith("{") else text for text in typed]
        plain: dict[str, Any] = {"columns": columns, "constraints": rules, "missing": list(self.missing)}
        plain["important"] = self.important if columns else []  # else they are options of the command
        plain["csv"] = changed_settings("csv", self.csv)
        plain = {key: value for key, value in plain.items() if value}
        return from_plain({"columns": {}} | plain) if plain else None

    def schema_text(self) -> str:
        """Return the schema file, or nothing if no column is declared."""
        schema = self.schema()
        return "" if schema is None else (DRAFTED if self.drafted else "") + to_yaml(schema)

    def settings(self) -> Settings:
        """Return the settings of the run.

        Raises
        ------
        InputError
            If they cannot work.
        """
        return Settings(
            self.epsilon,
            self.delta,
            self.schema(),
            unit=self.unit,
            target=self.target,
            important=None if self.declares else self.important,
            public=self.public,
            seed=self.seed,
        )

    def plan(self) -> Plan:
        """Return the errors to expect for several numbers of rows, from public facts alone.

        Raises
        ------
        InputError
            If no run can be planned with these settings.
        """
        return plan(self.data, self.epsilon, self.delta, self.schema(), unit=self.unit, target=self.target)

    @property
    def out(self) -> str:
        """The file name of the synthetic table."""
        return f"synthetic{self.ending}"

    def proposed(self) -> list[tuple[str, str]]:
        """Return each proposal as it would stand in a schema file, and what the rows showed."""
        lines = ("\n".join(constraint_lines([proposal.plain])) for proposal in self.proposals)
        return [
            (line, "; ".join(proposal.remarks)) for line, proposal in zip(lines, self.proposals, strict=True)
        ]


def format_of_header(path: Path) -> CsvFormat:
    """Return the format of a CSV as its header shows: the delimiter that occurs most often, and an encoding.

    The names of the columns are public. Where they do not show it, it is the plain one, and a person may
    change it.
    """
    with replace_errors(
        f"{path.name}: the names of its columns cannot be read", (OSError, EOFError, zlib.error)
    ):
        header = first_line(path)
    try:
        text, encoding = header.decode("utf-8-sig"), PLAIN.encoding
    except UnicodeDecodeError:
        text, encoding = header.decode("cp1252", "replace"), "cp1252"
    return CsvFormat(
        delimiter=max(DELIMITERS, key=text.count) if text else PLAIN.delimiter, encoding=encoding
    )


def _columns(schema: Schema) -> dict[str, Any]:
    return to_plain(schema).get("columns", {})


@cache
def best_guess(epsilon: float, delta: float) -> float:
    """Return how often at most an attacker is right who guesses whether a person is in the table.

    The attacker knows all other rows, and half of the people asked about are in the table.

    >>> f"{best_guess(1.0, 1e-9):.2f}", f"{best_guess(1.0, 0.0):.2f}"
    ('0.54', '0.73')
    """
    law = law_of(delta)
    return power(RunLedger((), epsilon, delta, law.accounting, "", True, ()), None)


def percent_of_guesses(epsilon: float, delta: float) -> int:
    """Return the best guess at this epsilon in percent.

    >>> percent_of_guesses(1.0, 1e-9), percent_of_guesses(50.0, 1e-9)
    (54, 100)
    """
    return round(100 * best_guess(epsilon, delta))
