"""Whether tables of a command stand in each other's place, by the budget files beside them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import permutations
from pathlib import Path


def check_places(tables: Mapping[str, Path]) -> None:
    """Refuse a private table in the place of the synthetic one, which a run made from it.

    A run writes the names of both, without their folders, into the budget file beside the private table. So
    names that several of the tables have are no sign of it. No row is read.

    Parameters
    ----------
    tables : mapping of REAL, SYNTHETIC and the name of another table of real rows to their paths
    """
    from privsyn.account.budget_file import beside, kept_in, name_of, runs_in
    from privsyn.errors import InputError

    outputs: dict[str, set[str]] = {role: set() for role in tables}
    for role, path in tables.items():
        with suppress(InputError):  # whoever spends reads it again
            outputs[role] = {run.out for run in runs_in(kept_in(beside(path)))}
    names = [name_of(path) for path in tables.values()]
    for (role, path), (source, private) in permutations(tables.items(), 2):
        is_made = name_of(path) in outputs[source] and names.count(name_of(path)) == 1
        if role == "SYNTHETIC":  # two tables may have had outputs of one name
            is_made &= source != "REAL" and name_of(path) not in outputs["REAL"]
        if is_made:
            raise InputError(
                f"{path} has the name of a table made from {private}, by the budget file beside {private}:"
                f" give {private} as REAL and {path} as SYNTHETIC, or rename {path} if it is another table"
            )
