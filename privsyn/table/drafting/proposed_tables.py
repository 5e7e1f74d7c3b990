"""What a person reviews of the tables of a draft: the lines of a schema file for each. Not private."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import indent
from typing import Any

from privsyn.table.drafting.noted_draft import Draft
from privsyn.table.io.csv_table import PLAIN
from privsyn.table.io.formats import SEPARATOR, Location
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.kinds.keys import Key, plain_key
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_comments import comment
from privsyn.table.schema.yaml_file import dump, to_yaml


@dataclass(frozen=True)
class ProposedTable:
    """What a person reviews of one private table of a draft. NOT PRIVATE: for the owner's eyes only.

    Parameters
    ----------
    name : str
    links : mapping
        Key, parent, link and order, as in a schema file.
    children : str
        How many rows a row of the parent may have, as ``1..4``. "" if the rows show nothing.
    remarks : tuple of str
        On its rows, its key, its link and its order.
    summaries : mapping of a name to an expression
        Of rows below, which it could have.
    lookups : mapping of a column to a table
        That could be public.
    draft : Draft, optional
        Its columns and constraints. None if it has keys alone.
    """

    name: str
    links: Mapping[str, Any]
    children: str
    remarks: tuple[str, ...]
    summaries: Mapping[str, str]
    lookups: Mapping[str, str]
    draft: Draft | None

    def text(self, csv: CsvFormat, stem: str | None) -> tuple[str, dict[str, str]]:
        """Return the lines of a schema file, and the text of each file of a look-up by its name."""
        lines = "".join(map(comment, self.remarks))
        for name, value in self.links.items():
            lines += f"{name}: {dump(value, flow=None)}".removesuffix("...\n")
        if self.children:
            lines += "# READ: the rows of each row above. Remove the # if that is so of all that may come:\n"
            lines += f"#children: {self.children}\n"
        if self.summaries:
            lines += (
                "# What analysts join for is kept best as a summary, which costs budget as a column does:\n"
            )
            lines += behind_sign("derive", self.summaries)
        if self.lookups:
            lines += "# With the public tables at the end:\n" + behind_sign("lookups", self.lookups)
        body, files = "columns: {}\n", dict[str, str]()
        if csv != PLAIN:
            body = to_yaml(Schema({}, csv=csv)) + body
        if self.draft is not None:
            body, files = self.draft.text("constraints:\n", stem)
        title = dump({self.name: None}, flow=False).replace(" null", "")
        return title + indent(lines + body, "  "), files


@dataclass(frozen=True)
class ProposedLookup:
    """A table of a draft that could be public, if everybody may know it and no row of it is a person.

    Parameters
    ----------
    name, location : str
    key : str or tuple of str
    by : list of str
        The columns that lead to it, as ``visits.drug``.
    is_declared : bool
        Whether somebody said that it is public.
    lookups : mapping of a column to a table
        To which other public tables its columns lead.
    """

    name: str
    location: str
    key: Key
    by: list[str]
    is_declared: bool = False
    lookups: Mapping[str, str] = field(default_factory=dict)

    def text(self, folder: Path) -> str:
        """Return the lines of a schema file; the path in them begins at `folder`."""
        plain = plain_public(self.location, self.key, folder)
        if self.is_declared:
            plain |= {"lookups": dict(self.lookups)} if self.lookups else {}
            line = behind_sign(self.name, plain).removeprefix("#")
            return comment(f"{self.name} is public, as --public says: it is published as it is.") + line
        note = (
            f"READ: {', '.join(self.by)} lead{'s' if len(self.by) == 1 else ''} to {self.name}. If everybody"
            " may know that table and no row of it is a person, remove the # below, and that of each line of"
            " lookups. It is published as it is."
        )
        return comment(note) + behind_sign(self.name, plain)


def plain_public(location: str, key: Key, folder: Path) -> dict[str, Any]:
    """Return what a schema file in `folder` declares of a public table.

    >>> plain_public("shop/drugs.csv", "drug", Path("shop"))
    {'public': 'drugs.csv', 'key': 'drug'}
    """
    where = Location.of(location)
    file = Path(os.path.relpath(where.file, folder))
    return {
        "public": f"{file}{SEPARATOR}{where.inside}" if where.inside else str(file),
        "key": plain_key(key),
    }


def behind_sign(name: str, value: object) -> str:
    """Return plain data in one line, which stays one whatever its length, behind a #."""
    return f"#{name}: {' '.join(dump(value, flow=True).split())}\n"
