"""`privsyn budget`: what was spent on a table."""

from __future__ import annotations

from privsyn.cli.common import options
from privsyn.cli.common.terminal import say


def budget(data: options.Data, budget: options.BudgetFile = None, policy: options.PolicyFile = None) -> None:
    """Print what was spent on DATA, by whom and when, and what its policy leaves. It reads no row."""
    from privsyn.budget.account import summary
    from privsyn.budget.policy import policy_of
    from privsyn.budget.runs import beside, exists

    path, limits = budget or beside(data), policy_of(data, policy)
    if not exists(path):
        say(f"{path}: there is no such file, so nothing was recorded; `privsyn synth --budget` begins one")
    say(*summary(path, limits))
