"""`privsyn budget`: what was spent on a table, and which releases of it are withdrawn."""

from __future__ import annotations

from typing import Annotated

import typer

from privsyn.cli.common import options
from privsyn.cli.common.terminal import say


def budget(
    data: options.Data,
    budget: options.BudgetFile = None,
    policy: options.PolicyFile = None,
    withdraw: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Record that what the run with this id published is withdrawn."),
    ] = None,
    reason: Annotated[
        str | None, typer.Option(metavar="TEXT", help="With --withdraw: why. It must quote no row.")
    ] = None,
) -> None:
    """Print what was spent on DATA, by whom and when, and what its policy leaves. It reads no row."""
    from privsyn.account.account import summary
    from privsyn.account.account import withdraw as record
    from privsyn.account.budget_file import exists, runs_in
    from privsyn.account.files import BudgetFiles
    from privsyn.account.policy import policy_of
    from privsyn.errors import InputError
    from privsyn.table.io.formats import file_of

    if (withdraw is None) != (reason is None):
        raise InputError("--withdraw RUN and --reason TEXT: give both, or neither")
    limits = policy_of(data, policy)
    files = BudgetFiles.of(data, None, limits) if budget is None else BudgetFiles(budget)
    path = files.path
    if withdraw is not None and reason is not None:
        holders = [
            file for file in files.counted if any(run.id.startswith(withdraw) for run in runs_in(file))
        ]
        record(holders[0] if len(holders) == 1 else path, withdraw, reason)
    elif not exists(path):
        if not file_of(data).exists():
            raise InputError(f"{data}: there is no such table, and {path} was never begun: check the name")
        say(f"{path}: there is no such file, so nothing was recorded; `privsyn synth` begins one")
    say(*summary(files, limits))
