"""How `privsyn synth` records a run in the budget file of its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privsyn.cli.common.terminal import say

if TYPE_CHECKING:
    from privsyn.budget.account import Account
    from privsyn.budget.policy import Policy
    from privsyn.progress import Progress
    from privsyn.synthesizer import PrivSyn


def account_of(
    data: Path, out: Path, settings: Mapping[str, Any], budget: Path | None, policy: Path | None
) -> Account:
    """Return where a run is recorded, and refuse one that the policy or the file does not allow.

    A policy makes the file obligatory. Without one, a file beside the table is used if there is one.
    Nothing of the table is read.
    """
    from privsyn.budget.account import Account
    from privsyn.budget.policy import policy_of
    from privsyn.budget.runs import Run, beside, exists, name_of
    from privsyn.errors import InputError

    if budget is not None and budget.suffix != ".jsonl":
        raise InputError(f"--budget {budget}: is JSON Lines: let its name end in .jsonl")
    usual, limits = beside(data), policy_of(data, policy)
    kept = exists(usual)
    if budget is not None and kept and budget.resolve() != usual.resolve():
        raise InputError(f"--budget {budget}: {usual} is kept already: leave out --budget")
    path = budget or (usual if kept or limits is not None else None)
    epsilon, seeded = settings["epsilon"], settings["seed"] is not None
    unit, root = _person_of(settings, limits)
    if epsilon is None:  # respondents randomised all columns: nothing is asked of a private row
        path = None
        if budget is not None:
            raise InputError("--budget: give --epsilon: without it nothing is asked, so nothing is spent")
    homes = {usual.resolve()} | (set() if policy is None else {policy.resolve().with_name(usual.name)})
    if path is not None and limits is not None and path.resolve() not in homes:
        # else each run could name a new, empty budget file
        raise InputError(f"--budget {path}: {limits.file} needs it beside the table: leave out --budget")
    limit = None if limits is None else limits.to_plain()
    names = name_of(data), name_of(out)
    run = Run(epsilon or 0.0, settings["delta"], unit, seeded, *names, limit, root=root)
    account = Account(path, run, limits)
    account.check()
    return account


def _person_of(settings: Mapping[str, Any], limits: Policy | None) -> tuple[str | None, str | None]:
    """Return the column of the persons that a run protects, and its table if tables are linked.

    Its ledger will say the same.

    A policy counts the noise of runs. It does not know what respondents lose who randomised some columns.
    """
    from privsyn.errors import InputError
    from privsyn.table.schema.database_file import as_database
    from privsyn.table.schema.yaml_file import as_schema

    if (database := as_database(settings["schema"])) is not None:
        return database.tables[database.root].key, database.root
    schema = as_schema(settings["schema"])
    if limits is not None and settings["epsilon"] is not None and schema is not None and schema.randomised:
        raise InputError(f"{limits.file}: does not count columns that respondents randomised: leave out keep")
    return settings["unit"], None


def fit_recorded(
    settings: Mapping[str, Any],
    table: Any,
    account: Account,
    shown: Callable[[], AbstractContextManager[Progress | None]],
    rehearse: Callable[..., None] = lambda unit: None,
) -> PrivSyn:
    """Return a model fitted to a table, and record the run: its beginning before the first question.

    Parameters
    ----------
    settings : mapping
        As for `PrivSyn`.
    table : path or mapping of paths
    account : Account
    shown : callable
        Returns what shows progress.
    rehearse : callable, optional
        Refuses a run with this `unit`, if its results could not be written.
    """
    import privsyn

    with shown() as bars:
        fitted = privsyn.PrivSyn(**settings, progress=account.watch(bars))
        rehearse(unit=fitted.unit)
        fitted.fit(table)
    return fitted


def end_recorded(fitted: PrivSyn, account: Account) -> None:
    """Write the ledger of a run into its budget file."""
    from privsyn.errors import InputError

    try:
        account.end(fitted.ledger_)
    except InputError as error:  # epsilon is spent: no result is lost for want of a line
        say(f"privsyn: {error}: the run counts in full there", err=True)
