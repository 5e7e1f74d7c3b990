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
    from privsyn.budget.account import summary
    from privsyn.budget.account import withdraw as record
    from privsyn.budget.policy import policy_of
    from privsyn.budget.runs import beside, exists
    from privsyn.errors import InputError

    if (withdraw is None) != (reason is None):
        raise InputError("--withdraw RUN and --reason TEXT: give both, or neither")
    path, limits = budget or beside(data), policy_of(data, policy)
    if withdraw is not None and reason is not None:
        record(path, withdraw, reason)
    elif not exists(path):
        say(f"{path}: there is no such file, so nothing was recorded; `privsyn synth --budget` begins one")
    say(*summary(path, limits))
