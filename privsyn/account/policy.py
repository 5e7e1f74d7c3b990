"""The policy of a table's owner: what all runs together may spend on it, and which runs are allowed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from math import inf
from pathlib import Path
from typing import Any

from privsyn.account.budget_file import Run, Spent, beside, exists, rounded_down
from privsyn.arguments import check_between, check_finite
from privsyn.errors import InputError, about, did_you_mean, spelled
from privsyn.files import check_file, read_text
from privsyn.table.io.formats import file_of
from privsyn.table.schema.yaml_file import parse

POLICY_FILE = "privsyn.policy.yaml"

ROUNDING = 1e-12
"""Relative error of a sum of decimals as doubles, which is no excess of a limit."""


@dataclass(frozen=True)
class Policy:
    """What may be spent on a table, as the YAML file of its owner says.

    Parameters
    ----------
    file : Path
    epsilon, delta : float
        The most of all releases together.
    epsilon_of_a_release : float, optional
    unit : str, optional
        The column of persons that each run must protect.
    contact : str, optional
        Whom to ask for more, in any words.
    """

    file: Path
    epsilon: float
    delta: float
    epsilon_of_a_release: float | None = None
    unit: str | None = None
    contact: str | None = None

    def __post_init__(self) -> None:
        check_between("epsilon", self.epsilon)
        if not 0 <= check_finite("delta", self.delta) < 1:
            raise InputError("delta must be at least 0 and below 1")
        if self.epsilon_of_a_release is not None:
            check_between("epsilon_of_a_release", self.epsilon_of_a_release)
        for name in ("unit", "contact"):
            if not isinstance(getattr(self, name), str | None):
                raise InputError(f"{name} must be text: put it in quotes")

    @classmethod
    def read(cls, file: Path) -> Policy:
        """Read a policy file."""
        check_file(file)
        text = read_text(file)
        allowed = [limit.name for limit in fields(cls) if limit.name != "file"]
        with about(str(file)):
            plain = parse(text)
            if not isinstance(plain, Mapping):
                raise InputError("a policy is a mapping such as {epsilon: 2, delta: 1e-8}")
            for key in plain:
                if key not in allowed:
                    meant = did_you_mean(key, allowed) or f": allowed are {', '.join(allowed)}"
                    raise InputError(f"{str(key)!r} is not known here{meant}")
            for key in ("epsilon", "delta"):
                if key not in plain:
                    raise InputError(f"{key!r} is missing")
            return cls(file, **plain)

    def to_plain(self) -> dict[str, Any]:
        """Return the limits, and the name of the file."""
        plain = {name: value for name, value in asdict(self).items() if name != "contact"}
        return plain | {"file": self.file.name}

    def left(self, runs: Iterable[Run]) -> tuple[float, float]:
        """Return the epsilon and the delta that are left after these runs."""
        spent = Spent.of(runs)
        epsilon, delta = self.epsilon - spent.epsilon, self.delta - spent.delta
        return (
            epsilon if epsilon > ROUNDING * self.epsilon else 0.0,
            delta if delta > ROUNDING * self.delta else 0.0,
        )

    def check(self, run: Run, before: Iterable[Run]) -> None:
        """Refuse a run that the policy does not allow after others; it says what is left and what to do.

        What one run promises is added to what the others promise together: this holds for any run. Runs that
        protect different units have no joint promise.
        """
        complaint = next(self._complaints(run, [earlier for earlier in before if not earlier.seeded]), None)
        if complaint is not None:
            ask = "" if self.contact is None else f"; or ask {self.contact}"
            raise InputError(f"{self.file}: {complaint}{ask}")

    def _complaints(self, run: Run, previous: list[Run]) -> Iterator[str]:
        """Yield why a run is not allowed after `previous`, which are private."""
        if run.seeded:
            yield f"a run with a seed is not private: leave out {spelled('seed')}"
        if self.unit not in (None, run.unit):
            yield f"all rows of one {self.unit!r} must be protected: give {spelled('unit')} {self.unit}"
        if mixed := [earlier for earlier in previous if earlier.protects != run.protects]:
            before = f"a run before protects {mixed[0].protects}"
            yield f"{before}, and this one protects {run.protects}: protect the same"
        epsilon, delta = self.left(previous)
        if epsilon and run.epsilon > (largest := self.epsilon_of_a_release or inf) * (1 + ROUNDING):
            limit = f"allows epsilon {largest:g} for a release"
            yield f"{limit}: {_ask_for('epsilon', run.epsilon, min(largest, epsilon))}"
        if run.epsilon > epsilon * (1 + ROUNDING):
            limit = f"allows epsilon {self.epsilon:g} in all, and {rounded_down(epsilon)} is left"
            yield f"{limit}: {_ask_for('epsilon', run.epsilon, epsilon)}"
        if run.delta > delta * (1 + ROUNDING):
            limit = f"allows delta {self.delta:g} in all, and {rounded_down(delta)} is left"
            yield f"{limit}: {_ask_for('delta', run.delta, delta)}"


def _ask_for(name: str, amount: float, largest: float) -> str:
    """Say what was asked for, and what may be."""
    may = "no more can be released" if name == "epsilon" else f"give {spelled(name)} 0, for pure epsilon"
    if largest:
        may = f"give {spelled(name)} {rounded_down(largest)} or less"
    return f"this run asks for {amount:g}: {may}"


def policy_of(data: Path, file: Path | None = None) -> Policy | None:
    """Return the policy for a table: the one beside it, the one in it if it is a folder, or `file`."""
    paths = [beside(data).with_name(POLICY_FILE), file_of(data) / POLICY_FILE]
    policies = [path for path in paths if exists(path)] + ([] if file is None else [file])
    distinct = list({os.path.realpath(path): path for path in policies}.values())
    if len(distinct) > 1:
        raise InputError(f"{distinct[0]} and {distinct[1]}: both are policies of {data}: keep one of them")
    return Policy.read(distinct[0]) if distinct else None
