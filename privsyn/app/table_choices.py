"""What a person has chosen about one table: its columns, its constraints, and how its rows are linked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from privsyn.app.column_entries import OPEN, Entry, entries_of, extra_settings
from privsyn.errors import InputError, about, plural
from privsyn.table.database.life_sentences import read_life
from privsyn.table.drafting.candidates import Proposal
from privsyn.table.drafting.draft import draft_schema
from privsyn.table.drafting.noted_draft import Draft
from privsyn.table.drafting.proposed_tables import ProposedLookup, ProposedTable
from privsyn.table.drafting.relations import long_look_up
from privsyn.table.drafting.remarks import PERSON
from privsyn.table.io.csv_table import PLAIN
from privsyn.table.io.formats import NOTHING, DeclaredTable, Location
from privsyn.table.kinds.column_settings import changed_settings
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.kinds.keys import Key, plain_key
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.expressions import parse_expression
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import constraint_lines, parse, to_plain

PRIVATE, PUBLIC, LEFT_OUT = "private", "public", "left out"
"""What becomes of a table. A public one is published as it is; of one that is left out nothing is made."""

FEW_COLUMNS = 12
"""Columns of a table that are shown at once: of more, those without a question are folded."""

LABELS = ("Value labels in the file: a program may have made them from the rows.",)
"""The remark on values that are known before a row is read. A person must confirm them like drafted ones."""


NO_NAMES = re.compile(r"(?i)size|count|number of|income|amount|type|status|group|age\b|since|date")
"""Parts of names of columns that say something about persons, and name none."""

OWN_TEXTS = (
    "Nearly every row has a text of its own, so it is left out. The kind 'categories' finds common texts, for"
    " a part of the budget."
)
"""The remark on free text, which costs budget without any use unless a person asks for it."""


class ProposedRule(NamedTuple):
    """A constraint that the rows keep, for a person to accept or not.

    Parameters
    ----------
    line : str
        As it would stand in a schema file.
    words : str
        What it says. Nothing if the line is a sentence already.
    remark : str
        How many rows show it, how many break it, and what else the owner should know.
    """

    line: str
    words: str
    remark: str

    @classmethod
    def of(cls, proposal: Proposal, columns: Mapping[str, Coded], parent: str = "") -> ProposedRule:
        """Return a proposal on these columns, or on the rows of a `parent`. A line may be a sentence already.

        >>> ProposedRule.of(Proposal("a <= b", 9), {}).remark
        '9 rows, none breaks it'
        >>> ProposedRule.of(Proposal("term is unique", 90, 1), {}, "one pupil")[1:]
        ('No two rows of one pupil have the same term.', '90 rows, 1 breaks it')
        """
        constraint, words = proposal.constraint, list[str]()
        with suppress(InputError):  # a sentence about other tables
            if isinstance(constraint, str) and (life := read_life(constraint)) is not None:
                words = [life.explain(parent)]
            elif isinstance(constraint, str):
                words = [part.explain() for part in parse_expression(constraint, columns)]
            else:
                words = [constraint.explain()]
        broken = f"{proposal.broken:,} break it" if proposal.broken else "none breaks it"
        broken = "1 breaks it" if proposal.broken == 1 else broken
        remark = "; ".join([f"{plural(proposal.rows or 0, 'row')}, {broken}", *filter(None, [proposal.note])])
        return cls("\n".join(constraint_lines([proposal.plain])), " ".join(words), remark)


@dataclass
class TableChoices:
    """The choices about one table.

    Parameters
    ----------
    name : str
        Nothing for one table alone.
    data : str
        The table as the command line takes it.
    csv : CsvFormat
        How a CSV file is written.
    declared : DeclaredTable
        What a database says of its keys.

    Attributes
    ----------
    use : str
        `PRIVATE`, `PUBLIC` or `LEFT_OUT`.
    links : dict
        Key, parent, link, order and dealt as in a schema file, where chosen. Of one table alone, "link" is
        the column of persons, and "order" that by which the rows of a person are in order.
    more : str
        Other settings of the links, as a mapping in YAML without its braces.
    linked_by_draft, confirmed : bool
        Whether the links were read from the rows, and whether the person confirmed them.
    seen : bool
        Whether the person has gone on from its columns.
    remarks : tuple of str
        What the rows show about the links, or why the table is left out.
    may_be_public : bool
        Whether the person may say that everybody may know this table.
    summaries, lookups : dict of str
        Proposed summaries of rows below, by name, and the tables to which columns lead.
    taken : set of str
        The names of the summaries that the person ticked.
    entries : list of Entry
        One for each column.
    proposals : list of Proposal
        Constraints that the rows keep.
    steady, constant : tuple of str
        Of one table alone, the columns that are the same in all rows of each person, and those of them that
        the person ticked.
    read_by : tuple of str
        Of one table alone, the columns of persons and of their order with which rules were looked for.
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

    Raises
    ------
    InputError
        If the names of the columns cannot be read.
    """

    name: str
    data: str
    csv: CsvFormat = PLAIN
    declared: DeclaredTable = NOTHING
    use: str = PRIVATE
    links: dict[str, Any] = field(default_factory=dict)
    more: str = ""
    linked_by_draft: bool = False
    confirmed: bool = False
    seen: bool = False
    remarks: tuple[str, ...] = ()
    may_be_public: bool = True
    summaries: dict[str, str] = field(default_factory=dict)
    lookups: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    entries: list[Entry] = field(default_factory=list)
    proposals: list[Proposal] = field(default_factory=list)
    steady: tuple[str, ...] = ()
    constant: tuple[str, ...] = ()
    read_by: tuple[str, ...] = ()
    look_ups: int = 0
    accepted: set[int] = field(default_factory=set)
    rules: str = ""
    marks: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    important: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Read the names and types of the columns; no row."""
        schema = draft_schema(self.data, read=False, csv=self.csv)
        typed = _columns(schema)
        if not Location.of(self.data).format.typed:  # only identifiers are known, by their names
            typed = {name: plain for name, plain in typed.items() if plain["kind"] == "identifier"}
        entries = entries_of(typed, list(schema.columns))
        self.entries = [
            replace(entry, drafted=True, remarks=LABELS) if entry.values else entry for entry in entries
        ]
        if self.name:
            (columns, (parent, _)), *_ = (*self.declared.links.items(), ((), ("", ())))
            links = {"key": plain_key(self.declared.key), "parent": parent, "link": plain_key(columns)}
            self.links = {setting: value for setting, value in links.items() if value}

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [entry.name for entry in self.entries]

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that name rows, of which new ones are made: they are no data."""
        columns = (self.links.get("key"), self.links.get("link"))
        listed = (column if isinstance(column, list) else [column] for column in columns if column)
        return (*(name for names in listed for name in names), *self.links.get("dealt", {}))

    @property
    def of_persons(self) -> tuple[str, ...]:
        """Of one table alone: the column of persons, and that of the order of their rows, where chosen."""
        return tuple(self.links[setting] for setting in ("link", "order") if setting in self.links)

    @property
    def parent(self) -> str:
        """The row of which its rows are, in words."""
        return f"one row of {self.links.get('parent', '')}" if self.name else f"one {self.links.get('link')}"

    @property
    def constraints(self) -> list[Any]:
        """The constraints that the person ticked or typed.

        Raises
        ------
        InputError
            If one is not YAML.
        """
        typed = [line.strip().removeprefix("- ") for line in self.rules.splitlines() if line.strip()]
        ticked: list[Any] = [self.proposals[number].plain for number in sorted(self.accepted)]
        return ticked + [parse(text) if text.startswith("{") else text for text in typed]

    @property
    def drafted(self) -> bool:
        """Whether a column or a link was drafted from the rows."""
        return self.linked_by_draft or any(entry.drafted for entry in self.entries)

    @property
    def persons(self) -> list[str]:
        """The columns whose names look like identifiers of persons."""
        return [name for name in self.names if PERSON.search(name) and not NO_NAMES.search(name)]

    def take_draft(self, draft: Draft | None) -> None:
        """Take what was drafted of the columns from the rows; None of a table that has keys alone."""
        schema = Schema({}) if draft is None else draft.schema
        notes = {} if draft is None else draft.notes
        entries = entries_of(_columns(schema), self.names, notes, drafted=True)
        if self.name:  # a column without a kind numbers the rows, or is a key: it is no data
            entries = [replace(entry, kind="text") if entry.kind == OPEN else entry for entry in entries]
        self.entries = [
            replace(entry, kind="text", remarks=(OWN_TEXTS, *entry.remarks)) if entry.has_own_texts else entry
            for entry in entries
        ]
        self.accepted, self.constant = set(), ()
        self.take_rules(draft)
        self.marks, self.missing = tuple(schema.missing), ()

    def take_rules(self, draft: Draft | None) -> None:
        """Take the rules of a draft that a person can check on a screen. Rules that were ticked stay so."""
        ticked = [self.proposals[number].plain for number in self.accepted]
        proposals = [] if draft is None else [*draft.proposals, *draft.apart]
        self.proposals = [proposal for proposal in proposals if not long_look_up(proposal)]
        self.look_ups = len(proposals) - len(self.proposals)
        self.accepted = {n for n, proposal in enumerate(self.proposals) if proposal.plain in ticked}
        self.steady = () if draft is None else draft.constant
        self.constant = tuple(name for name in self.constant if name in self.steady)
        self.read_by = self.of_persons

    def name_persons(self, links: dict[str, Any]) -> None:
        """Take the columns of persons and of their order; drop the rules that were read of other persons."""
        self.links = links
        if self.of_persons == self.read_by:
            return
        ticked = [self.proposals[number].plain for number in self.accepted]
        self.proposals = [
            proposal
            for proposal in self.proposals
            if not isinstance(proposal.constraint, str) or read_life(proposal.constraint) is None
        ]
        self.accepted = {n for n, proposal in enumerate(self.proposals) if proposal.plain in ticked}
        self.steady = self.constant = self.read_by = ()

    def take_links(self, proposed: ProposedTable) -> None:
        """Take what was drafted of a private table of several: its links, and its columns."""
        links = dict(proposed.links)
        self.lookups = {**links.pop("lookups", {}), **proposed.lookups}
        self.use, self.links, self.remarks = PRIVATE, links, proposed.remarks
        if proposed.children:
            setting = (
                f"If no row above may ever have others, other settings take children: {proposed.children}"
            )
            self.remarks = (*proposed.remarks, setting)
        self.linked_by_draft, self.confirmed, self.may_be_public = True, False, False
        self.summaries, self.taken, self.more = dict(proposed.summaries), set(), ""
        self.take_draft(proposed.draft)

    def take_lookup(self, proposed: ProposedLookup) -> None:
        """Leave out a table that could be public, unless the person has said that it is."""
        self.leave_out(f"Columns that lead to it: {', '.join(proposed.by)}.", proposed.key)
        self.use = PUBLIC if proposed.is_declared else LEFT_OUT
        self.lookups = dict(proposed.lookups)

    def leave_out(self, remark: str, key: Key = "") -> None:
        """Leave the table out; one with a key could be public, if the person says so."""
        self.use, self.links, self.remarks = LEFT_OUT, {"key": plain_key(key)} if key else {}, (remark,)
        self.linked_by_draft, self.confirmed, self.may_be_public = False, False, bool(key)
        self.summaries, self.lookups, self.taken, self.more = {}, {}, set(), ""

    @property
    def declares(self) -> bool:
        """Whether a column is declared that its name does not make an identifier anyway."""
        columns = (entry for entry in self.entries if entry.name not in self.keys)
        return any(entry.kind not in (OPEN, "identifier") for entry in columns)

    def problem(self, entry: Entry) -> str:
        """Return what is wrong with a column, or nothing."""
        if entry.name in self.keys:  # it is not synthesised
            return ""
        if entry.kind == OPEN and self.declares:
            return "of which kind is it? Declare all columns, or none"
        return entry.problem

    def needs_person(self, entry: Entry) -> bool:
        """Return whether a person must look at a column before a run."""
        drafted = entry.drafted and not entry.confirmed and entry.name not in self.keys
        return self.use == PRIVATE and (drafted or self.problem(entry) != "")

    def plain_columns(self) -> list[Entry]:
        """Return the columns of a wide table about which the screen asks nothing, which it folds."""
        if len(self.entries) <= FEW_COLUMNS:
            return []
        return [
            entry
            for entry in self.entries
            if not (self.needs_person(entry) and (entry.asks or self.problem(entry)))
        ]

    def confirm(self, *, plain: bool) -> None:
        """Confirm all columns as public, or only those about which the screen asks nothing."""
        names = [entry.name for entry in (self.plain_columns() if plain else self.entries)]
        self.entries = [
            replace(entry, confirmed=True, together=entry.together or not entry.confirmed)
            if entry.name in names
            else entry
            for entry in self.entries
        ]

    def waiting(self) -> list[Entry]:
        """Return the columns at which a person must look before a run."""
        return [entry for entry in self.entries if self.needs_person(entry)]

    def plain_links(self) -> dict[str, Any]:
        """Return how its rows are linked, as plain data of a schema file.

        Raises
        ------
        InputError
            If the other settings cannot be read.
        """
        links = {setting: columns for setting, columns in self.links.items() if columns}
        if summaries := {name: text for name, text in self.summaries.items() if name in self.taken}:
            links["derive"] = summaries
        return links | extra_settings(self.more, "children: 1.., constant: [city]")

    def plain(self) -> dict[str, Any]:
        """Return its columns and constraints, as plain data of a schema file; nothing if none is declared.

        Raises
        ------
        InputError
            If an entry or a constraint cannot work.
        """
        columns: dict[str, Any] = {}
        for entry in self.entries if self.declares else ():
            if entry.name in self.keys:  # it is not synthesised
                continue
            with about(f"column {entry.name!r}"):
                plain_column = entry.plain()
            if plain_column is not None:
                columns[entry.name] = plain_column
        rules = self.constraints
        for entry in self.entries:
            if any(entry.may_be_named_in(rule) for rule in rules):
                raise InputError(f"a rule may name values of {entry.name!r}: untick the rule, or the column")
        plain: dict[str, Any] = {"columns": columns, "constraints": rules, "missing": list(self.missing)}
        # Without columns, those of one table alone are options of the command.
        plain["important"] = self.important if columns or self.name else []
        plain["csv"] = changed_settings("csv", self.csv)
        plain["constant"] = list(self.constant)
        return {setting: value for setting, value in plain.items() if value}

    def proposed(self) -> list[ProposedRule]:
        """Return each proposed constraint, in the order of `proposals`."""
        columns = dict[str, Coded]()
        for entry in self.entries if self.proposals else ():
            with suppress(InputError):  # the screen says what is wrong with it
                if isinstance(column := entry.column(), Coded):
                    columns[entry.name] = column
        return [ProposedRule.of(proposal, columns, self.parent) for proposal in self.proposals]


def _columns(schema: Schema) -> Mapping[str, Any]:
    columns: Mapping[str, Any] = to_plain(schema).get("columns", {})
    return columns
