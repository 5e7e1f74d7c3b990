"""Ledger: every question to the private table, its cost, and the promise that covers the costs.

A ledger may be published. It contains settings and what follows from noisy answers, and nothing else depends
on a row. The questions (`Spend`) are separate from their price (`privsyn.private.accounting`), so that
anybody can compute the price again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum, inf, sqrt
from textwrap import shorten
from typing import Any, TypeVar

from privsyn.errors import printable, replace_errors
from privsyn.private.accounting import Accounting, epsilon_for, rho_for
from privsyn.private.spend import ONE_WAYS, Spend

T = TypeVar("T")

NOT_PRIVATE = (
    "NOT PRIVATE: THE NOISE OF THIS RUN CAN BE REPEATED FROM ITS SEED AND SUBTRACTED. DO NOT PUBLISH."
)

NO_LEDGER = "not a ledger that privsyn wrote, or changed since then: save it again"

CURVE = (1e-12, 1e-9, 1e-6, 1e-5, 1e-3)
"""The deltas, besides the promised one, at which `Ledger.to_dict` states epsilon."""

SLACK = 1e-9
"""Largest excess of the spends over the budget, relative to it: the parts of a budget are rounded."""

LINES = 8
"""Number of spends that are printed one by one. The others are printed as one line."""

WIDTH = 52
"""Printed characters of a question."""


@dataclass(frozen=True)
class Ledger:
    """All questions of one run and its privacy promise. A ledger that overspends cannot be made.

    Parameters
    ----------
    spends : tuple of Spend
        In the order of the questions.
    promised_epsilon, promised_delta : float
        The promise: the run is (epsilon, delta)-differentially private.
    accounting : "gaussian", "zcdp" or "classical"
        How rho is converted to epsilon and delta; see `privsyn.private.accounting`.
    randomness : str
        Distribution and source of the noise.
    private : bool
        False if the noise can be repeated. Then the promise does not hold.
    public_inputs : tuple of str
        What is assumed to be public, in plain sentences.
    version : str
        The version of privsyn that ran.
    unit : str, optional
        The column that identifies the person, if the promise protects all rows of a person. Default: it
        protects one row.
    rows_per_unit : int, optional
        With `unit`, the most rows kept per person.

    Raises
    ------
    ValueError
        If the spends cost more than the promise allows.

    Notes
    -----
    All noise is Gaussian, but a threshold is not a Gaussian mechanism. With probability 1 - delta_t it
    reveals nothing that only one record has. This event depends on noise that nothing else depends on, and
    given this event the whole run is Gaussian. Let y and x be the probabilities of an outcome on one table
    and on its neighbour in such runs. The Gaussian profile says y <= e^epsilon x + delta_g. If the
    neighbour's true probability is (1 - delta_t) x, then y - e^epsilon (1 - delta_t) x = (1 - delta_t) (y -
    e^epsilon x) + delta_t y <= delta_g + delta_t. If delta_t is added to y instead, the same bound is
    immediate. So the deltas of thresholds are reserved, and the Gaussian part is accounted at the rest of
    delta.

    Examples
    --------
    >>> counts = Spend("one-way counts", answers=12, sensitivity=2.0, sigma=8.0)
    >>> ledger = Ledger((counts,), promised_epsilon=1.0, promised_delta=1e-5, accounting="gaussian",
    ...     randomness="operating system", private=True, public_inputs=(), version="1.0")
    >>> ledger.rho, f"{ledger.budget:.4f}", f"{ledger.epsilon(1e-5):.3f}", f"{ledger.epsilon(1e-9):.3f}"
    (0.03125, '0.0359', '1.000', '1.502')
    """

    spends: tuple[Spend, ...]
    promised_epsilon: float
    promised_delta: float
    accounting: Accounting
    randomness: str
    private: bool
    public_inputs: tuple[str, ...]
    version: str
    unit: str | None = None
    rows_per_unit: int | None = None

    def __post_init__(self) -> None:
        if (self.unit is None) != (self.rows_per_unit is None):
            raise ValueError(
                f"unit {self.unit!r} with rows_per_unit {self.rows_per_unit!r}: give both or neither"
            )
        if self.rows_per_unit is not None and self.rows_per_unit < 1:
            raise ValueError(f"rows_per_unit must be at least 1; got {self.rows_per_unit}")
        object.__setattr__(self, "spends", tuple(self.spends))
        object.__setattr__(self, "public_inputs", tuple(self.public_inputs))
        if 0 < self.promised_delta <= self.reserved:
            raise ValueError(
                f"thresholds take delta {self.reserved:.6g} of {self.promised_delta:.6g} promised"
            )
        if self.rho > self.budget * (1 + SLACK):
            raise ValueError(f"spent rho {self.rho:.6g} of the {self.budget:.6g} promised")

    @property
    def neighbours(self) -> str:
        """How two tables differ that the promise makes hard to tell apart."""
        if self.rows_per_unit is None:
            return "add or remove one record"
        rows = "1 row" if self.rows_per_unit == 1 else f"{self.rows_per_unit} rows"
        return f"add or remove all rows of one person (at most {rows} each kept)"

    @property
    def rho(self) -> float:
        """The cost of all spends together, which is their sum."""
        return fsum(spend.rho for spend in self.spends)

    @property
    def reserved(self) -> float:
        """The delta of all thresholds together, reserved before the first question."""
        return fsum(spend.delta for spend in self.spends)

    @property
    def budget(self) -> float:
        """The rho that the promise allows, fixed before the first question."""
        return rho_for(self.promised_epsilon, self.promised_delta - self.reserved, self.accounting)

    @property
    def mu(self) -> float:
        """The sensitivity over sigma of one Gaussian answer that costs the whole budget."""
        return sqrt(2 * self.budget)

    def epsilon(self, delta: float) -> float:
        """Return the epsilon that holds at `delta`, rounded up: the price of the budget, not of the spends.

        How much is spent may depend on noisy answers (a run may find nothing worth asking). The theorem of
        adaptive composition is about a bound that is fixed in advance. It says nothing about a sum that
        turned out smaller. Epsilon is infinite at a delta that thresholds use up.
        """
        if 0 < delta <= self.reserved:
            return inf
        return epsilon_for(max(self.rho, self.budget), delta - self.reserved, self.accounting)

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain data for JSON. If the run is not private, the first entry says so."""
        deltas = sorted(delta for delta in {*CURVE, self.promised_delta} if delta > self.reserved)
        fields = {
            "promise": {"epsilon": self.promised_epsilon, "delta": self.promised_delta},
            "private": self.private,
            "neighbours": self.neighbours,
            "unit": self.unit,
            "rows_per_unit": self.rows_per_unit,
            "accounting": self.accounting,
            "rho": self.rho,
            "budget": self.budget,
            "reserved_delta": self.reserved,
            "mu": self.mu,
            "curve": [{"delta": delta, "epsilon": self.epsilon(delta)} for delta in deltas],
            "randomness": self.randomness,
            "public_inputs": list(self.public_inputs),
            "spends": [
                {
                    "what": spend.what,
                    "answers": spend.answers,
                    "sensitivity": spend.sensitivity,
                    "sigma": spend.sigma,
                    "rho": spend.rho,
                    "delta": spend.delta,
                }
                for spend in self.spends
            ],
            "version": self.version,
        }
        warning = {} if self.private else {"warning": NOT_PRIVATE}
        return warning | fields

    def to_json(self) -> str:
        """Return the ledger as JSON, for people and programs."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Ledger:
        """Return the ledger that `to_dict` wrote. Costs and curve are computed again, not read.

        Raises
        ------
        InputError
            If it is not a ledger, or it spends more than it promises.
        """
        with replace_errors(NO_LEDGER, (ArithmeticError, AttributeError, KeyError, TypeError, ValueError)):
            return _read(plain)

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Read what `to_json` wrote; an `InputError` as for `from_dict`."""
        with replace_errors(NO_LEDGER, (RecursionError, ValueError)):
            return cls.from_dict(json.loads(text))

    def __str__(self) -> str:
        rows = self._table()
        width = max(len(what) for what, *_ in rows)
        promise = f"epsilon {self.promised_epsilon!r}, delta {self.promised_delta!r}"
        thresholds = f"reserved for thresholds: delta {self.reserved:.4g}"
        lines = [
            f"{promise}; neighbours: {self.neighbours}",
            *([] if self.unit is None else [f"a person: all rows with one {self.unit!r}"]),
            f"{self.randomness}; {self.accounting} accounting; privsyn {self.version}",
            *(f"{what:<{width}}" + "".join(f"{cell:>12}" for cell in cells) for what, *cells in rows),
            *([thresholds] if self.reserved else []),
            *(f"public: {sentence}" for sentence in self.public_inputs),
        ]
        return "\n".join(map(printable, lines if self.private else [NOT_PRIVATE, *lines]))

    def _table(self) -> list[tuple[str, ...]]:
        """Return the cells to print: a header, the first spends, one row for the others, and the total."""
        total = self.rho
        rows: list[tuple[str, ...]] = [("what", "sensitivity", "sigma", "rho", "share")]
        spends = sorted(self.spends, key=_place)
        for spend in spends[:LINES]:
            what = shorten(spend.what, WIDTH, placeholder=" ...")
            share = f"{spend.rho / total:.1%}"
            rows.append((what, f"{spend.sensitivity:.4g}", f"{spend.sigma:.4g}", f"{spend.rho:.4g}", share))
        if rest := spends[LINES:]:
            rho = fsum(spend.rho for spend in rest)
            rows.append((f"and {len(rest)} more", "", "", f"{rho:.4g}", f"{rho / total:.1%}"))
        return [*rows, ("total", "", "", f"{total:.4g}", f"of {self.budget:.4g}")]


def _place(spend: Spend) -> tuple[bool, float]:
    """Sort one-ways first, in their order, because all else builds on them; then the most expensive."""
    one_ways = spend.what.startswith(ONE_WAYS)
    return not one_ways, 0.0 if one_ways else -spend.rho


def _read(fields: Mapping[str, Any]) -> Ledger:
    """Return the ledger of plain data; raise one of several errors if the data have another shape."""
    if not (
        type(fields["private"]) is bool and all(isinstance(text, str) for text in fields["public_inputs"])
    ):
        raise TypeError
    spends = tuple(
        Spend(
            line["what"],
            int(line["answers"]),
            float(line["sensitivity"]),
            float(line["sigma"]),
            float(line["delta"]),
        )
        for line in fields["spends"]
    )
    return Ledger(
        spends,
        promised_epsilon=float(fields["promise"]["epsilon"]),
        promised_delta=float(fields["promise"]["delta"]),
        accounting=fields["accounting"],
        randomness=str(fields["randomness"]),
        private=fields["private"],
        public_inputs=tuple(fields["public_inputs"]),
        version=str(fields["version"]),
        unit=_optional(str, fields["unit"]),
        rows_per_unit=_optional(int, fields["rows_per_unit"]),
    )


def _optional(kind: type[T], value: object) -> T | None:
    """Return `value`, which must be None or exactly of this type."""
    if value is not None and type(value) is not kind:
        raise TypeError
    return value
