"""What the owner says of the tables of a draft: whose rows are persons, and which are public."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from privsyn.errors import InputError


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


NO_ROLES = Roles()
