"""What the owner says of the tables of a draft: whose rows are persons, and which are public."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from privsyn.errors import InputError
from privsyn.table.drafting.keys import KeyedTable, Link
from privsyn.table.kinds.keys import key_in_words


class Roles(NamedTuple):
    """What the owner says of tables before they are drafted.

    Parameters
    ----------
    persons : str, optional
        The table whose rows are the persons; or a column that names them, as ``ratings.user_id``, if no
        table has them. Default: names and links say which.
    public : collection of str
        The tables that everybody may know. Default: none; some are proposed.
    also : collection of str
        Further tables whose rows are persons. Default: none; the columns that lead there are left out.
    """

    persons: str | None = None
    public: Collection[str] = ()
    also: Collection[str] = ()

    @property
    def table_of_persons(self) -> str:
        """The table of the persons, or of the column that names them; "" by default."""
        return (self.persons or "").partition(".")[0]

    def check(self, tables: Collection[str]) -> None:
        """Refuse names of other tables, and tables with two roles that exclude each other."""
        persons = self.table_of_persons
        options = [("--persons", self.persons and persons, self.persons)]
        options += [("--public", name, name) for name in self.public]
        for option, table, name in (*options, *(("--also", name, name) for name in self.also)):
            if table is not None and table not in tables:
                raise InputError(f"{option} {name!r} is none of the tables {', '.join(tables)}")
        if persons in self.public:
            belongs = "" if persons == self.persons else ", or belong to them"
            raise InputError(f"--public {persons!r}: its rows are the persons{belongs}, so it is not public")
        if twice := sorted({*self.also} & {persons, *self.public}):
            raise InputError(f"--also {twice[0]!r}: it is named by --persons or --public too")

    def check_keys(self, tables: Mapping[str, KeyedTable]) -> None:
        """Refuse a public table without a key, and one of further persons without a key of one column."""
        if keyless := next((name for name in self.public if not tables[name].keys), None):
            raise InputError(f"--public {keyless!r}: the table has no key, which a look-up table needs")
        for name in self.also:
            if not any(isinstance(key, str) for key in tables[name].keys):
                raise InputError(
                    f"--also {name!r}: the table has no key of one column, to which others could lead"
                )

    def check_links(self, links: Collection[Link], private: Collection[str], dealt: Collection[str]) -> None:
        """Refuse a public table with keys of a private one, and further persons to whom no private one leads.

        A key whose cells alone look alike may be a chance, so its name or the database says that it leads
        there.

        Parameters
        ----------
        links : collection of Link
            The likeliest one of each column.
        private : collection of str
            The private tables.
        dealt : collection of str
            The tables of further persons to which private ones lead.
        """
        for link in links:
            if link.table in self.public and link.parent in private and (link.declared or link.close):
                column = key_in_words(link.column)
                raise InputError(
                    f"--public {link.table!r}: its column {column!r} has keys of {link.parent}, whose rows"
                    " are protected, and a public table is published as it is: leave the column out of a copy"
                    f" of {link.table}, or leave out --public {link.table}"
                )
        for name in self.also:
            if name not in dealt:
                leading = sorted({link.table for link in links if link.parent == name} - {name})
                only = f", only {', '.join(leading)}" if leading else ""
                raise InputError(
                    f"--also {name!r}: no private table leads to it{only}: synthesise {name} in a run of its"
                    " own"
                )


NO_ROLES = Roles()
