"""Risks: how often attacks succeed on rows the synthetic table was made from, and on rows it was not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, isnan, nan
from typing import Any

from scipy.stats import binomtest, norm

from privsyn.errors import plural, printable
from privsyn.evaluation.scores import NOT_PRIVATE, told_of

LIMITS = "Such attacks can show a leak; they cannot show safety: the promise is in the ledger."

ERROR = 0.025
"""On either side of an interval of 95 %."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Rate:
    """So many of so many attacks succeeded.

    >>> Rate(30, 40).value
    0.75
    """

    successes: int
    attacks: int

    def __post_init__(self) -> None:
        if not 0 <= self.successes <= self.attacks:
            raise ValueError(f"{self.successes} of {self.attacks} attacks")

    @property
    def value(self) -> float:
        """The share of successes; NaN if there was no attack."""
        return self.successes / self.attacks if self.attacks else nan

    @property
    def interval(self) -> Interval:
        """Wilson's, of 95 %: it is honest where nothing or everything succeeds, too."""
        if not self.attacks:
            return nan, nan
        low, high = binomtest(self.successes, self.attacks).proportion_ci(0.95, method="wilson")
        return float(low), float(high)


@dataclass(frozen=True)
class Risk:
    """One kind of attack: on rows of the private table, on rows held out, and a guess without the table.

    Parameters
    ----------
    train : Rate
        On rows that the synthetic table was made from.
    control : Rate
        On other rows of the same kind. What succeeds there was learnt about people at large, not about those
        in the private table: no leak.
    naive : Rate
        A guess that sees single columns of the synthetic table and no row of it, on rows it was made from.
        An attack that does no better is too weak for its risk to say much. No attacks where none can be made.
    """

    train: Rate
    control: Rate
    naive: Rate

    @property
    def value(self) -> float:
        """(train - control)/(1 - control): of what there was to win by knowing the rows, the share won.

        0 where rows of the private table are as safe as any other's, below it by chance alone, 1 where every
        attack on them succeeds. The rates are taken in the middle of their intervals.
        """
        return self._estimate()[0]

    @property
    def interval(self) -> Interval:
        """Of 95 %, the errors of both rates propagated (Giomi et al. 2023, Section 4.2)."""
        value, error = self._estimate()
        return max(-1.0, value - error), min(1.0, value + error)

    def above_zero_by(self, errors: float) -> bool:
        """Whether the risk is more than so many times half its interval."""
        value, error = self._estimate()
        return value > errors * error

    def _estimate(self) -> tuple[float, float]:
        (train, of_train), (control, of_control) = (
            ((low + high) / 2, (high - low) / 2) for low, high in (self.train.interval, self.control.interval)
        )
        room = 1 - control
        # The derivatives of 1 - (1 - train)/(1 - control) by both rates, each times its error.
        return (train - control) / room, hypot(of_train / room, of_control * (1 - train) / room**2)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        rates = {"train": self.train, "control": self.control, "naive": self.naive}
        return {
            name: {"successes": rate.successes, "attacks": rate.attacks, "interval": rate.interval}
            for name, rate in rates.items()
            if rate.attacks
        } | {"risk": self.value, "interval": self.interval}


@dataclass(frozen=True)
class Risks:
    """What attacks found. They read the real table: NOT PRIVATE.

    Parameters
    ----------
    real_rows, synthetic_rows, control_rows : int
    columns, left_out : tuple of str
        Those that the attacks saw; those that they did not because they are called like identifiers.
    attacks : mapping of str to Risk
        By what was tried, in words: ``"link two halves of a row"``, ``"infer income"``, and so on.
    """

    real_rows: int
    synthetic_rows: int
    control_rows: int
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    attacks: Mapping[str, Risk]

    @property
    def leaks(self) -> tuple[str, ...]:
        """The attacks that succeed more often on rows of the private table than chance explains.

        Who tries many finds something by chance: here a run in forty does, however many attacks it tries.
        """
        surely = norm.isf(ERROR / len(self.attacks)) / norm.isf(ERROR)
        return tuple(name for name, risk in self.attacks.items() if risk.above_zero_by(surely))

    @property
    def verdict(self) -> str:
        """What to think of it, in two sentences."""
        tried = plural(len(self.attacks), "attack")
        if not self.leaks:
            return (
                f"Of {tried}, none did better on rows of the real table than on rows held out, beyond chance."
                f" {LIMITS}"
            )
        worst = max(self.leaks, key=lambda name: self.attacks[name].value)
        return (
            f"A LEAK: of {tried}, {len(self.leaks)} did better on rows of the real table than on rows held"
            f" out; most of all: {worst}, risk {self.attacks[worst].value:.1%}. {LIMITS}"
        )

    def row(self) -> dict[str, float]:
        """One tidy row for a table of experiments: the risk of each attack; not private."""
        return {"private": False} | {name: risk.value for name, risk in self.attacks.items()}

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data for JSON; it begins by saying that it is not private."""
        return {
            "warning": NOT_PRIVATE,
            "verdict": self.verdict,
            "real_rows": self.real_rows,
            "synthetic_rows": self.synthetic_rows,
            "control_rows": self.control_rows,
            "columns": list(self.columns),
            "left_out": list(self.left_out),
            "attacks": {name: risk.to_dict() for name, risk in self.attacks.items()},
        }

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def __str__(self) -> str:
        attacks = [(printable(name), risk) for name, risk in self.attacks.items()]
        width = max(len(name) for name, _ in attacks)
        heads = "attacks", "real rows", "held out", "naive", "risk", "95 %"
        lines = [
            NOT_PRIVATE,
            f"{self.synthetic_rows:,} synthetic rows against {self.real_rows:,} real ones they were made"
            f" from and {self.control_rows:,} held out; {len(self.columns)} columns",
            *told_of(self.left_out),
            " " * width + "".join(f"{head:>11}" for head in heads[:-1]) + f"{heads[-1]:>19}",
            *(f"{name:<{width}}{_cells(risk)}" for name, risk in attacks),
            self.verdict,
        ]
        return "\n".join(map(printable, lines))


def _cells(risk: Risk) -> str:
    rates = (rate.value for rate in (risk.train, risk.control, risk.naive))
    low, high = risk.interval
    shares = "".join(f"{'' if isnan(value) else f'{value:.1%}':>11}" for value in (*rates, risk.value))
    return f"{risk.train.attacks:>11,}{shares}{f'{low:.1%} to {high:.1%}':>19}"
