"""The command of a run, and what its budget file says."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from privsyn.app.choices import OUTPUTS, SCHEMA, Choices
from privsyn.budget.account import totals
from privsyn.budget.policy import POLICY_FILE, Policy, policy_of
from privsyn.budget.runs import beside, runs_in


@dataclass(frozen=True)
class Command:
    """The command that makes the table of a person's choices.

    Parameters
    ----------
    choices : Choices
    """

    choices: Choices

    @property
    def text(self) -> str:
        """The command for a shell, in the folder of the table."""
        return shlex.join(["privsyn", *self.arguments(self.choices.name, self.budget.name)])

    def arguments(self, data: str, budget: str, policy: str = "") -> list[str]:
        """Return what follows ``privsyn`` for the run, in the folder of its results.

        Parameters
        ----------
        data : str
            The private table.
        budget, policy : str
            The budget file, and the policy file if it is not beside the table.
        """
        choices = self.choices
        options = {"--schema": SCHEMA} if choices.schema() is not None else {}
        options |= {"--epsilon": f"{choices.epsilon:.15g}", "--delta": f"{choices.delta:.15g}"}
        options |= {"--unit": choices.unit or "", "--target": choices.target or ""}
        options |= {"--rows": "" if choices.rows is None else str(choices.rows)}
        options |= OUTPUTS | {"--budget": budget, "--policy": policy}
        options |= {"--seed": "" if choices.seed is None else str(choices.seed)}
        pairs = [] if choices.declares else choices.important  # else the schema has them
        given = [(option, value) for option, value in options.items() if value]
        given += [("--important", ",".join(pair)) for pair in pairs]
        return ["synth", data, choices.out, *(part for pair in given for part in _option(*pair))]

    @property
    def budget(self) -> Path:
        """The budget file: beside the table; of an upload in the start folder."""
        return self.choices.home / beside(Path(self.choices.data)).name

    @property
    def policy(self) -> Policy | None:
        """The policy for the table: that beside its budget file."""
        return policy_of(self.budget.with_name(self.choices.path.name))

    def run(self) -> list[str]:
        """Return the arguments of the run with whole paths."""
        home = self.choices.home
        is_beside = self.policy is None or home == self.choices.path.parent
        given = "" if is_beside else str(home / POLICY_FILE)
        return [*self.arguments(self.choices.data, str(self.budget), given), "--progress", "json"]

    def spent(self) -> tuple[list[str], list[str]]:
        """Return a line for each run on the table before; and what they spent and what a policy leaves."""
        runs = runs_in(self.budget)
        return [str(run) for run in runs], totals(runs, self.policy)


def _option(name: str, value: str) -> list[str]:
    """Return an option with its value, which may begin with a dash."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value]
