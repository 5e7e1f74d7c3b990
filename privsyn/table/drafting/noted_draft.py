"""Draft: the drafted schema of a table, with remarks on its columns and proposed constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from privsyn.table.drafting.candidates import Proposal
from privsyn.table.drafting.relations import proposal_lines
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_comments import wrapped
from privsyn.table.schema.yaml_file import to_yaml


@dataclass(frozen=True)
class Draft:
    """A draft with what the rows show. NOT PRIVATE: for the owner's eyes only.

    Parameters
    ----------
    schema : Schema
        Without constraints.
    notes : mapping of a column to texts
        The remarks on it.
    proposals : list of Proposal
        Constraints that rows keep.
    constant : tuple of str
        The columns that are the same in all rows of each person.
    apart : tuple of Proposal
        Other constraints that rows keep, but that no run takes beside `constant`.
    nobodys : str
        How many rows belong to no person, in words; "" if none.
    """

    schema: Schema
    notes: Mapping[str, tuple[str, ...]]
    proposals: list[Proposal]
    constant: tuple[str, ...] = ()
    apart: tuple[Proposal, ...] = ()
    nobodys: str = ""

    def text(self, header: str, stem: str | None) -> tuple[str, dict[str, str]]:
        """Return the draft in YAML, and the text of each file of a look-up by its name.

        Parameters
        ----------
        header : str
            What stands above the proposals.
        stem : str, optional
            How the names of files of look-ups begin; without one, none is written.
        """
        lines, files = proposal_lines(self.proposals, stem)
        notes = {
            name: "\n".join(line for remark in remarks for line in wrapped(remark))
            for name, remarks in self.notes.items()
            if remarks
        }
        return to_yaml(self.schema, notes) + (header + lines if lines else ""), files
