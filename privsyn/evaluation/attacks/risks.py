"""Risks: success rates of attacks on rows of the private table, and on held-out rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, isnan
from typing import Any

import numpy as np
from scipy.stats import fisher_exact

from privsyn.errors import plural, printable
from privsyn.evaluation.attacks.membership import Membership
from privsyn.evaluation.attacks.rate import Interval, Rate
from privsyn.evaluation.comparison import left_out_line
from privsyn.evaluation.scores import NOT_PRIVATE
from privsyn.inference.fitted import MISSED

MARK = "*"
"""Beside an interval that lies above 0."""

LIMITS = "Such attacks can show a leak, but never safety. The guarantee is in the ledger."


@dataclass(frozen=True)
class Risk:
    """One kind of attack: on private rows, on held-out rows, and a baseline that sees no synthetic row.

    Parameters
    ----------
    train : Rate
        On rows of the private table.
    control : Rate
        On held-out rows of the same population. Success there is knowledge about the population. It is no
        leak.
    naive : Rate
        A guess from single columns of the synthetic table, on rows of the private table. An attack that is no
        better is too weak to show much. It has zero attacks if no guess is possible.
    """

    train: Rate
    control: Rate
    naive: Rate

    @property
    def value(self) -> float:
        """Return the excess success (train - control)/(1 - control), from the midpoints of the intervals.

        0 if private rows are as safe as held-out ones (or less, by chance); 1 if every attack on them
        succeeds.
        """
        return self._estimate()[0]

    @property
    def interval(self) -> Interval:
        """Return the 95 % interval, by propagation of both errors (Giomi et al. 2023, Section 4.2)."""
        value, error = self._estimate()
        return max(-1.0, value - error), min(1.0, value + error)

    def above_zero_by(self, errors: float) -> bool:
        """Whether the risk is more than `errors` times half the width of its interval."""
        value, error = self._estimate()
        return value > errors * error

    @property
    def chance(self) -> float:
        """Return the probability, if both rates are equal, of at least these successes on private rows.

        By Fisher's exact test, which also holds where nearly every attack succeeds.
        """
        rates = (self.train, self.control)
        table = np.array([(rate.successes, rate.attacks - rate.successes) for rate in rates])
        return float(fisher_exact(table, alternative="greater").pvalue)

    def _estimate(self) -> tuple[float, float]:
        (train, of_train), (control, of_control) = (
            ((low + high) / 2, (high - low) / 2) for low, high in (self.train.interval, self.control.interval)
        )
        remainder = 1 - control
        # The derivatives of 1 - (1 - train)/(1 - control) by both rates, each multiplied by its error.
        return (train - control) / remainder, hypot(
            of_train / remainder, of_control * (1 - train) / remainder**2
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        rates = {"train": self.train, "control": self.control, "naive": self.naive}
        return {
            name: {"successes": rate.successes, "attacks": rate.attacks, "interval": rate.interval}
            for name, rate in rates.items()
            if rate.attacks
        } | {"risk": self.value, "interval": self.interval}


@dataclass(frozen=True)
class Risks:
    """The results of all attacks. They read the real table: NOT PRIVATE.

    Parameters
    ----------
    real_rows, synthetic_rows, control_rows : int
        Numbers of rows, or of persons if persons were attacked.
    columns, left_out : tuple of str
        Columns that were attacked; columns left out because their names look like identifiers.
    attacks : mapping of str to Risk
        By a description of the attack: ``"link two halves of a row"``, ``"infer income"``, and so on.
    whom : "row" or "person"
        What was attacked.
    membership : Membership, optional
        The game behind the attacks that tell members, if it was played.
    not_attacked : tuple of str
        Which other kinds of persons were not attacked, and why.
    remark : str
        What is wrong with the tables, if real and held-out rows differ.
    """

    real_rows: int
    synthetic_rows: int
    control_rows: int
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    attacks: Mapping[str, Risk]
    whom: str = "row"
    membership: Membership | None = None
    not_attacked: tuple[str, ...] = ()
    remark: str = ""

    @property
    def leaks(self) -> tuple[str, ...]:
        """Return the attacks that succeed more often on private rows than chance explains.

        The threshold is corrected for the number of attacks (Bonferroni): without a leak, at most one run in
        forty reports one.
        """
        threshold = MISSED / 2 / max(len(self.attacks), 1)
        return tuple(name for name, risk in self.attacks.items() if risk.chance <= threshold)

    @property
    def above_zero(self) -> tuple[str, ...]:
        """Return the attacks of which the printed interval, which is not corrected, lies above 0."""
        return tuple(name for name, risk in self.attacks.items() if risk.above_zero_by(1.0))

    @property
    def verdict(self) -> str:
        """Return a conclusion in two sentences, or three."""
        tried = plural(len(self.attacks), "attack")
        if not self.leaks:
            marked = ""
            if number := len(self.above_zero):
                chance = f"{len(self.attacks) * MISSED / 2:.1f}"
                marked = (
                    f" {plural(number, 'interval')} above 0 {'is' if number == 1 else 'are'} marked {MARK}:"
                    f" {tried} give {chance} such by chance alone, and the verdict allows for it."
                )
            return (
                f"Of {tried}, none did significantly better on real {self.whom}s than on held-out"
                f" {self.whom}s.{marked} {LIMITS}"
            )
        worst = max(self.leaks, key=lambda name: self.attacks[name].value)
        return (
            f"A LEAK: of {tried}, {len(self.leaks)} did significantly better on real {self.whom}s than on"
            f" held-out {self.whom}s. Highest risk: {worst}, {self.attacks[worst].value:.1%}. {LIMITS}"
        )

    def row(self) -> dict[str, float]:
        """Return one flat row for a table of experiments: the risk of each attack; not private."""
        return {"private": False} | {name: risk.value for name, risk in self.attacks.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON; the first entry says that it is not private."""
        return {
            "warning": NOT_PRIVATE,
            "verdict": self.verdict,
            **vars(self),
            "attacks": {name: risk.to_dict() for name, risk in self.attacks.items()},
            "membership": None if self.membership is None else self.membership.to_dict(),
        }

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def __str__(self) -> str:
        attacks = [(printable(name), risk) for name, risk in self.attacks.items()]
        width = max(len(name) for name, _ in attacks)
        heads = "attacks", f"real {self.whom}s", "held out", "naive", "risk", "95 %"
        wide = len(heads[1]) + 2
        lines = [
            NOT_PRIVATE,
            f"{self.synthetic_rows:,} synthetic {self.whom}s, {self.real_rows:,} real ones,"
            f" {self.control_rows:,} held out; {plural(len(self.columns), 'column')}",
            *left_out_line(self.left_out),
            *self.not_attacked,
            *filter(None, [self.remark]),
            " " * width + "".join(f"{head:>{wide}}" for head in heads[:-1]) + f"{heads[-1]:>19}",
            *(f"{name:<{width}}{_cells(risk, wide)}" for name, risk in attacks),
            self.verdict,
            *(() if self.membership is None else self.membership.lines(self.whom)),
        ]
        return "\n".join(map(printable, lines))


def _cells(risk: Risk, wide: int) -> str:
    rates = (rate.value for rate in (risk.train, risk.control, risk.naive))
    low, high = risk.interval
    shares = "".join(f"{'' if isnan(value) else f'{value:.1%}':>{wide}}" for value in (*rates, risk.value))
    mark = f" {MARK}" if risk.above_zero_by(1.0) else ""
    return f"{risk.train.attacks:>{wide},}{shares}{f'{low:.1%} to {high:.1%}':>19}{mark}"
