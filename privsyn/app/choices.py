"""What a person has chosen so far: the tables, the promise, the result. It is a schema file and a command."""

from __future__ import annotations

import zlib
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from privsyn.app.column_entries import Entry
from privsyn.app.table_choices import LEFT_OUT, PRIVATE, PUBLIC, TableChoices
from privsyn.errors import InputError, about, plural, replace_errors
from privsyn.evaluation.attacks.trade_off import TradeOff
from privsyn.private.noise_laws import law_of
from privsyn.private.run_ledger import RunLedger
from privsyn.settings import Settings
from privsyn.studies.planning.plan import Plan
from privsyn.studies.planning.planner import plan
from privsyn.table.database.database import Database
from privsyn.table.database.yaml_form import database_from_plain, declared_from_plain
from privsyn.table.drafting.linked import LinkedDraft
from privsyn.table.drafting.noted_draft import Draft
from privsyn.table.drafting.proposed_tables import plain_public
from privsyn.table.drafting.review import draft_to_review
from privsyn.table.drafting.roles import Roles
from privsyn.table.io.csv_table import PLAIN, first_line
from privsyn.table.io.formats import CSV, NOTHING, SEPARATOR, Location, every_table
from privsyn.table.kinds.csv_format import DELIMITERS, CsvFormat
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import dump, to_yaml

FORMATS = {".csv": "CSV", ".parquet": "Parquet", ".xlsx": "Excel"}
"""The formats of the synthetic table, by the ending of its file."""

DATABASES = {
    "": "a folder of files: Parquet if the tables are, else CSV",
    ".sqlite": "SQLite",
    ".duckdb": "DuckDB",
}
"""The formats of linked synthetic tables."""

OUTPUTS = {
    "--model": "model.privsyn",
    "--ledger": "ledger.json",
    "--public-report": "public.html",
    "--sheet": "sheet.md",
}
"""The files of a run besides the table, by option. All may be published."""

SCHEMA, COMMAND = "schema.yaml", "command.txt"
"""The files that say how the run was made."""

RUN_SCHEMA = "run-schema.yaml"
"""The schema of linked tables for the run itself: the paths of public tables begin in another folder."""

DRAFTED = "# Drafted from the private rows; the publisher confirmed {columns} as public.\n"
"""How a schema file begins that was not typed alone."""

ABOUT = {
    "title": "Title",
    "publisher": "Publisher",
    "licence": "Licence, such as CC-BY-4.0",
    "contact": "Contact: e-mail or web address",
}
"""The publisher's words that the page asks for, as in `about:` of a schema file."""

CSV_SETTINGS = (
    ("delimiter", "Between cells", ((",", "comma"), (";", "semicolon"), ("tab", "tab"), ("|", "bar"))),
    ("point", "Decimal sign", ((".", "point"), (",", "comma"))),
    ("thousands", "Between thousands", (("", "nothing"), (".", "point"), (",", "comma"), (" ", "space"))),
    (
        "header",
        "Names that are numbers",
        ((False, "are refused, as in a row"), (True, "are names, such as years")),
    ),
)
"""Settings of a CSV: the name, words for it, and each choice with its words."""

EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0)
"""The steps of the slider."""

ALL_EPSILONS = tuple(round(10 ** (step / 40 - 2), 4) for step in range(161))
"""From 0.01 to 100: the page shows the best guess at the next of these above a typed epsilon."""

DELTA = 1e-9


@dataclass
class Choices:
    """The choices of a person, from the tables to the format of the result. One table is a list of one.

    Parameters
    ----------
    path : Path
        The file of the private table, or the folder or database of several linked tables.
    inside : str
        The name of the one table in a database or workbook, or nothing.
    csv : CsvFormat
        How CSV files are written.
    home : Path, optional
        The folder of the budget file and the policy. Default: the folder of `path`.

    Attributes
    ----------
    tables : dict of TableChoices
        By name. One table alone has the name "".
    at : str
        The table that is shown.
    target : str, optional
        The column to be predicted, of one table.
    public : Path, optional
        A table that anybody may read and that is like the private one, in the start folder.
    protects : bool
        Whether the person said whom the promise protects.
    about : dict of str
        What the publisher says, by the names of `ABOUT`; without what is empty.
    epsilon, delta : float
    ending : str
        The format of the synthetic table.
    rows : int, optional
        The number of synthetic rows, or persons; the private estimate if it is None.
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
    tables: dict[str, TableChoices] = field(default_factory=dict)
    at: str = ""
    target: str | None = None
    public: Path | None = None
    protects: bool = False
    about: dict[str, str] = field(default_factory=dict)
    epsilon: float = 1.0
    delta: float = DELTA
    ending: str = ".csv"
    rows: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        """Read the names and types of the columns; no row."""
        self.home = self.path.parent if self.home == Path() else self.home
        several = {} if self.inside else every_table(self.path)
        locations = several or {"": (self.data, NOTHING)}
        files = [Location.of(location) for location, _ in locations.values()]
        if self.csv == PLAIN and (written := [file for file in files if file.format is CSV]):
            self.csv = format_of_header(written[0].file)
        for name, (location, declared) in locations.items():
            with about(f"table {name!r}") if name else nullcontext():
                self.tables[name] = TableChoices(name, location, self.csv, declared)
        self.at = next(iter(self.tables))
        self.ending = next(iter(self.formats))

    @property
    def linked(self) -> bool:
        """Whether there are several tables."""
        return "" not in self.tables

    @property
    def table(self) -> TableChoices:
        """The table that is shown."""
        return self.tables[self.at]

    @property
    def private(self) -> dict[str, TableChoices]:
        """The tables of which synthetic ones are made."""
        return {name: table for name, table in self.tables.items() if table.use == PRIVATE}

    @property
    def persons(self) -> str:
        """The table whose rows are the persons; nothing if it is one table alone, or not clear."""
        second = self.second_persons
        roots = [name for name, table in self.private.items() if not table.links.get("parent")]
        first = [name for name in roots if name not in second]
        return first[0] if len(first) == 1 else ""

    @property
    def second_persons(self) -> set[str]:
        """The tables of other persons, to whose rows rows are dealt: they have no parent."""
        return {
            target
            for name, table in self.private.items()
            for target in table.links.get("dealt", {}).values()
            if target != name and target in self.private and not self.private[target].links.get("parent")
        }

    @property
    def unit(self) -> str | None:
        """The column of persons, of one table alone."""
        return None if self.linked else self.table.links.get("link")

    @property
    def order(self) -> str | None:
        """The column by which the rows of a person are in order, of one table alone."""
        return None if self.linked else self.table.links.get("order")

    @property
    def together(self) -> bool:
        """Whether rows of a synthetic person belong together: an order and rules from row to row need it."""
        if self.unit is None:
            return False
        schema = self.schema()
        return self.order is not None or isinstance(schema, Database)

    @property
    def who(self) -> str:
        """Whom the promise protects, in words."""
        if self.linked:
            second = sorted(self.second_persons)
            persons = " or of ".join([self.persons, *second])
            rows = f"one row of {persons}, with all rows that belong to it in all tables"
            return (
                f"{rows}, but not what other rows say of a row of {' or '.join(second)}" if second else rows
            )
        return f"all rows of one {self.unit}" if self.unit else "one row"

    @property
    def data(self) -> str:
        """The tables as the command line takes them."""
        return f"{self.path}{SEPARATOR}{self.inside}" if self.inside else str(self.path)

    @property
    def listed(self) -> str:
        """The tables and their order, by which a form says what it is about."""
        return ", ".join([self.data, *self.tables])

    @property
    def drafted(self) -> bool:
        """Whether a column or a link was drafted from the rows."""
        return any(table.drafted for table in self.tables.values())

    @property
    def is_csv(self) -> bool:
        """Whether a table is a CSV file."""
        return any(Location.of(table.data).format is CSV for table in self.tables.values())

    @property
    def name(self) -> str:
        """The tables as a person would type them in their folder."""
        return f"{self.path.name}{SEPARATOR}{self.inside}" if self.inside else self.path.name

    def draft(self, persons: str | None = None) -> None:
        """Draft columns, constraints and links. It READS THE ROWS: a person must confirm each of them.

        Tables that the person has ticked as public stay so, and are linked.

        Parameters
        ----------
        persons : str, optional
            Of several tables: the one whose rows are the persons. Default: names and links say which.
        """
        if not self.linked:
            self.table.take_draft(self._draft_of_one())
            return
        locations = {name: (table.data, table.declared) for name, table in self.tables.items()}
        ticked = [name for name, table in self.tables.items() if table.use == PUBLIC]
        public = [name for name in ticked if name != persons]
        draft = LinkedDraft.read(locations, self.csv, Roles(persons, public), only_files=True)
        lookups = {lookup.name: lookup for lookup in draft.public}
        for name, table in self.tables.items():
            if name in draft.private:
                table.take_links(draft.private[name])
            elif name in lookups:
                table.take_lookup(lookups[name])
            else:
                keys = draft.keyed[name].keys if name in draft.keyed else ()
                table.leave_out(draft.layout.outside[name], keys[0] if keys else "")
        order = [*draft.private, *self.tables]  # each after its parent, and others last
        self.tables = {name: self.tables[name] for name in dict.fromkeys(order)}
        self.at = draft.layout.root

    def draft_rules(self) -> None:
        """Look again for rules, now that persons and their order may be named. It READS THE ROWS."""
        self.table.take_rules(self._draft_of_one())

    def _draft_of_one(self) -> Draft:
        return draft_to_review(self.data, unit=self.unit, order=self.order, csv=self.csv)

    def problem_of_links(self) -> str:
        """Return what is wrong with the links of several tables, or nothing."""
        if not self.linked:
            return ""
        for name, table in self.private.items():
            if table.linked_by_draft and not table.confirmed:
                return f"look at the links of {name!r} first: confirm what may be public, or change it"
        try:
            database_from_plain({"tables": self._plain_links(None)})
        except InputError as error:
            return str(error)
        return ""

    def waiting(self) -> list[Entry]:
        """Return the columns at which a person must look before a run."""
        return [entry for table in self.tables.values() for entry in table.waiting()]

    @property
    def complete(self) -> bool:
        """Whether nothing of tables, links and columns needs a person any more."""
        return not self.waiting() and not self.problem_of_links()

    def show(self, name: str) -> None:
        """Show another of the private tables."""
        if name in self.private:
            self.at = name

    def _plain_links(self, folder: Path | None) -> dict[str, dict[str, Any]]:
        """Return the tables with their links, as plain data of a schema file in `folder`."""
        plain: dict[str, dict[str, Any]] = {}
        for name, table in self.tables.items():
            if table.use == LEFT_OUT:
                continue
            if table.use == PRIVATE:
                with about(f"table {name!r}"):
                    plain[name] = table.plain_links()
            else:
                key = table.links.get("key", "")
                plain[name] = {"public": table.data, "key": key}
                if folder is not None:
                    plain[name] = plain_public(table.data, key, folder)
            looked_up = {
                column: lookup
                for column, lookup in table.lookups.items()
                if self.tables[lookup].use == PUBLIC
            }
            plain[name] |= {"lookups": looked_up} if looked_up else {}
        return plain

    def plain(self, folder: Path | None = None) -> dict[str, Any]:
        """Return what is declared, as plain data; nothing if nothing is.

        Parameters
        ----------
        folder : Path, optional
            The folder of the schema file: the paths of public tables begin there. Default: whole paths.

        Raises
        ------
        InputError
            If an entry, a constraint or a setting cannot work.
        """
        above: dict[str, Any] = {"about": self.about} if self.about else {}
        if not self.linked:
            plain = above | self.table.plain()
            return {"columns": {}} | plain if plain else {}
        tables = self._plain_links(folder)
        for name, table in self.private.items():
            with about(f"table {name!r}"):
                tables[name] |= table.plain()
            if set(table.names) <= {*table.keys}:
                tables[name].setdefault("columns", {})
        return above | {"tables": tables}

    def schema(self) -> Schema | Database | None:
        """Return what all entries and links declare; None if they declare nothing.

        Raises
        ------
        InputError
            If it cannot work.
        """
        plain = self.plain()
        if self.linked:
            return database_from_plain(plain)
        if not plain:
            return None
        declared = declared_from_plain(plain)
        return declared if declared.about_persons else declared.schema

    def schema_text(self, folder: Path | None = None) -> str:
        """Return the schema file in a folder, or nothing if nothing is declared. Default: the home folder."""
        schema = self.schema()  # raises if it cannot work
        if schema is None:
            return ""
        text = to_yaml(schema) if isinstance(schema, Schema) else dump(self.plain(folder or self.home))
        return (DRAFTED.format(columns=self._confirmed()) if self.drafted else "") + text

    def _confirmed(self) -> str:
        """Return how the person confirmed what was drafted: one by one, or many by one button."""
        together = sum(
            entry.drafted and entry.together and entry.name not in table.keys
            for table in self.private.values()
            for entry in table.entries
        )
        if not together:
            return "each column and each link"
        return f"{plural(together, 'column')} together, and each other column and each link"

    def settings(self) -> Settings:
        """Return the settings of the run.

        Raises
        ------
        InputError
            If they cannot work.
        """
        if problem := self.problem_of_links():
            raise InputError(problem)
        schema = self.schema()
        if not self.linked and self.unit is None and isinstance(schema, Database):
            raise InputError(
                f"{schema.about_persons[0]}: this is about the rows of one person: choose one person with all"
                " rows, and the column that names the persons"
            )
        return Settings(
            self.epsilon,
            self.delta,
            schema,
            **self._options,
            public=self.public,
            seed=self.seed,
        )

    @property
    def _options(self) -> dict[str, Any]:
        """The options that a run and its plan have in common."""
        return {
            "unit": self.unit,
            "identifiers": self.together,
            "order": self.order,
            "target": self.target,
            "important": self.important_options or None,
        }

    @property
    def important_options(self) -> list[list[str]]:
        """The sets of columns that matter most, where no schema has them."""
        return [] if self.linked or self.table.declares else self.table.important

    def plan(self) -> Plan:
        """Return the errors to expect for several numbers of rows, from public facts alone.

        Raises
        ------
        InputError
            If no run can be planned with these settings.
        """
        schema = self.schema()
        table = None if self.linked else self.data
        return plan(
            table,
            self.epsilon,
            self.delta,
            schema,
            **self._options,
        )

    @property
    def formats(self) -> dict[str, str]:
        """The formats of the result, by the ending of its file; of a folder it is nothing."""
        return DATABASES if self.linked else FORMATS

    @property
    def out(self) -> str:
        """The file or folder of the synthetic tables."""
        return f"synthetic{self.ending}"


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


@cache
def best_guess(epsilon: float, delta: float) -> float:
    """Return how often at most an attacker is right who guesses whether a person is in the table.

    The attacker knows all other rows, and half of the people asked about are in the table.

    >>> f"{best_guess(1.0, 1e-9):.2f}", f"{best_guess(1.0, 0.0):.2f}"
    ('0.54', '0.73')
    """
    law = law_of(delta)
    ledger = RunLedger((), epsilon, delta, law.accounting, "", True, ())
    return TradeOff.of_ledger(ledger.to_dict()).guess


def percent_of_guesses(epsilon: float, delta: float) -> int:
    """Return the best guess at this epsilon in percent.

    >>> percent_of_guesses(1.0, 1e-9), percent_of_guesses(50.0, 1e-9)
    (54, 100)
    """
    return round(100 * best_guess(epsilon, delta))
