"""The command of a run, and what its budget file says."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from privsyn.account.account import runs_of, totals
from privsyn.account.files import BudgetFiles
from privsyn.account.policy import Policy, policy_of
from privsyn.app.choices import OUTPUTS, RUN_SCHEMA, SCHEMA, Choices
from privsyn.table.io.formats import is_csv


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
        public = self.choices.public
        beside = "" if public is None else os.path.relpath(public, self.choices.home)
        return shlex.join(["privsyn", *self.arguments(self.choices.name, beside)])

    def arguments(
        self, data: str, public: str = "", budget: str = "", policy: str = "", schema: str = SCHEMA
    ) -> list[str]:
        """Return what follows ``privsyn`` for the run, in the folder of its results.

        Parameters
        ----------
        data, public : str
            The private table, and the public one, if there is one.
        budget, policy : str
            The budget file and the policy file if they are not beside the table, as of an upload.
        schema : str
            The schema file, if one is needed.
        """
        choices = self.choices
        options = {"--schema": schema} if choices.schema() is not None else {}
        options |= {"--epsilon": f"{choices.epsilon:.15g}", "--delta": f"{choices.delta:.15g}"}
        options |= {"--unit": choices.unit or "", "--order": choices.order or ""}
        options |= {"--target": choices.target or ""}
        options |= {"--public": public}
        options |= {"--rows": "" if choices.rows is None else str(choices.rows)}
        options |= OUTPUTS | {"--budget": budget, "--policy": policy}
        options |= {"--seed": "" if choices.seed is None else str(choices.seed)}
        values = [(option, value) for option, value in options.items() if value]
        values += [("--important", ",".join(pair)) for pair in choices.important_options]
        flags = ["--identifiers"] if choices.together else []
        flags += ["--excel-safe"] if is_csv(choices.out) or choices.ending == "" else []
        return ["synth", data, choices.out, *(part for pair in values for part in _option(*pair)), *flags]

    @property
    def uploaded(self) -> bool:
        """Whether the table is an upload, whose budget file and policy are in the start folder."""
        return self.choices.home != self.choices.path.parent

    @property
    def files(self) -> BudgetFiles:
        """The budget files of the table; an upload has the budget files of its name in the start folder."""
        return BudgetFiles.of(self._at_home, None, self.policy)

    @property
    def policy(self) -> Policy | None:
        """The policy for the table: that beside its budget file."""
        return policy_of(self._at_home)

    @property
    def _at_home(self) -> Path:
        return self.choices.home / self.choices.name if self.uploaded else Path(self.choices.data)

    def run(self) -> list[str]:
        """Return the arguments of the run with whole paths."""
        budget = policy = ""
        if self.uploaded:
            budget = str(self.files.path)
            policy = "" if self.policy is None else str(self.policy.file)
        public = "" if self.choices.public is None else str(self.choices.public)
        schema = RUN_SCHEMA if self.choices.linked else SCHEMA
        return [
            *self.arguments(self.choices.data, public, budget, policy, schema),
            "--progress",
            "json",
            "--verbose",
        ]

    def spent(self) -> tuple[list[str], list[str]]:
        """Return a line for each run on the table before; and what they spent and what a policy leaves."""
        runs = runs_of(self.files.counted)
        return [str(run) for run in runs], totals(runs, self.policy)


def _option(name: str, value: str) -> list[str]:
    """Return an option with its value, which may begin with a dash."""
    return [f"{name}={value}"] if value.startswith("-") else [name, value]
