"""How `privsyn synth` and `privsyn owner` record a run in the budget file of its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privsyn.cli.common.terminal import say

if TYPE_CHECKING:
    from privsyn.account.account import Account
    from privsyn.progress import Progress
    from privsyn.synthesizer import PrivSyn


@dataclass(frozen=True)
class BudgetPlace:
    """Where a run is to be recorded.

    Parameters
    ----------
    file : Path, optional
        Default: beside the table.
    declined : bool
        Whether it is not to be recorded.
    """

    file: Path | None = None
    declined: bool = False

    def check(self) -> None:
        """Refuse options that contradict each other, and a budget file whose name does not end in .jsonl."""
        from privsyn.errors import InputError

        if self.file is not None and self.declined:
            raise InputError("--budget and --no-budget exclude each other: give one of them")
        if self.file is not None and self.file.suffix != ".jsonl":
            raise InputError(f"--budget {self.file}: is JSON Lines: let its name end in .jsonl")


def account_of(
    data: Path,
    out: Path | None,
    settings: Mapping[str, Any],
    budget_place: BudgetPlace,
    policy: Path | None,
    *,
    resumed: str | None = None,
) -> Account:
    """Return where a run is recorded, and refuse a run that the policy or the files do not allow.

    Nothing of the table is read. `resumed` is the id of a run that was begun before: it is counted once.
    """
    from privsyn.account.account import Account
    from privsyn.account.budget_file import Run, name_of
    from privsyn.account.files import BudgetFiles
    from privsyn.account.policy import policy_of
    from privsyn.errors import InputError
    from privsyn.table.database.yaml_form import as_database
    from privsyn.table.kinds.keys import key_in_words

    budget_place.check()
    limits = policy_of(data, policy)
    epsilon, seeded = settings["epsilon"], settings.get("seed") is not None
    database = as_database(settings["schema"])
    schemas = [table.schema for table in database.tables.values()]
    has_randomised = any(schema is not None and schema.randomised for schema in schemas)
    if limits is not None and epsilon is not None and has_randomised:
        # A policy counts the noise of runs. It does not know what respondents lose who randomised columns.
        raise InputError(f"{limits.file}: does not count columns that respondents randomised: leave out keep")
    unit = key_in_words(database.tables[database.root].key) or settings["unit"]  # as the ledger will say
    root = database.shown_name(database.root) or None
    if epsilon is None and budget_place.file is not None:
        raise InputError("--budget: give --epsilon: without it nothing is asked, so nothing is spent")
    if limits is not None and budget_place.declined:
        raise InputError(f"--no-budget: {limits.file} needs the budget file: leave out --no-budget")
    files = None
    if epsilon is not None and not budget_place.declined:  # else nothing is asked of a private row
        files = BudgetFiles.of(data, budget_place.file, limits)
    limit = None if limits is None else limits.to_plain()
    name = "" if out is None else name_of(out)
    promise = (epsilon or 0.0, settings["delta"], unit)
    other_roots = dict(database.other_persons)
    run = Run(*promise, seeded, name_of(data), name, limit, root=root, other_roots=other_roots)
    run = run if resumed is None else replace(run, id=resumed)
    account = Account(files, run, limits)
    account.check()
    return account


def refuse_sweep(data: Path) -> None:
    """Refuse a sweep of a table that has a policy: its runs are seeded, and nothing would count them."""
    from privsyn.account.policy import policy_of
    from privsyn.errors import InputError

    if (limits := policy_of(data)) is not None:
        raise InputError(
            f"{limits.file}: allows no sweep of {data}: its runs are seeded, so they are not private: take a"
            " public table"
        )


def check_recordable(data: Path | None, account: Account) -> None:
    """Refuse a run whose budget file cannot be written; a table in a file that is not there comes first."""
    from privsyn.account.budget_file import exists
    from privsyn.errors import InputError
    from privsyn.table.io.formats import file_of

    if account.files is not None:
        if data is not None and not exists(file_of(data)):
            raise InputError(f"{data}: there is no such file")
        account.files.check_writable()


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
    if fitted.epsilon is not None:
        ledger = replace(fitted.ledger_, recorded=account.path is not None)
        fitted.release_ = fitted.release_.with_ledger(ledger)
    return fitted


def end_recorded(fitted: PrivSyn, account: Account) -> None:
    """Write the ledger of a run into its budget file."""
    from privsyn.errors import InputError

    try:
        account.end(fitted.ledger_)
    except InputError as error:  # epsilon is spent: no result is lost for want of a line
        say(f"privsyn: {error}: the run counts in full there", err=True)
