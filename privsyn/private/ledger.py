"""Ledger: every question to the private table, its cost, and the promise that covers the costs.

A ledger may be published. It contains settings and what follows from noisy answers, and nothing else depends
on a row. The questions (`Spend`) are separate from their price (`privsyn.private.accounting`), so that
anybody can compute the price again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, inf, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri_exp

from privsyn.errors import printable, replace_errors
from privsyn.private.acceptance import Acceptance
from privsyn.private.accounting import Accounting, epsilon_for, rho_for
from privsyn.private.composition import Composition, compose
from privsyn.private.laws import epsilon_of
from privsyn.private.ledger_text import (
    from_plain,
    names_of,
    not_randomised,
    randomised_cells,
    to_html,
    to_lines,
    to_plain,
)
from privsyn.private.randomised_response import LocalPromise, local_epsilon
from privsyn.private.spend import Spend

NOT_PRIVATE = (
    "NOT PRIVATE: THE NOISE OF THIS RUN CAN BE REPEATED FROM ITS SEED AND SUBTRACTED. DO NOT PUBLISH."
)

UNCHANGED = "NOT PRIVATE: NOT RANDOMISED, EXACT IN THE TABLE: {}. DO NOT PUBLISH."

NO_LEDGER = "not a ledger that privsyn wrote, or changed since then: save it again"

SLACK = 1e-9
"""Largest excess of the spends over the budget, relative to it: the parts of a budget are rounded."""


@dataclass(frozen=True)
class Ledger:
    """All questions of one run and its privacy promise. A ledger that overspends cannot be made.

    Parameters
    ----------
    spends : tuple of Spend
        In the order of the questions.
    promised_epsilon, promised_delta : float
        The promise: the run is (epsilon, delta)-differentially private.
    accounting : "gaussian", "zcdp", "classical" or "pure"
        How rho is converted to epsilon and delta; see `privsyn.private.accounting`. With "pure", delta is 0,
        all noise is Laplace, and the costs are epsilons.
    randomness : str
        Distribution and source of the noise.
    private : bool
        False if the noise can be repeated: then the promise does not hold. Also false if columns are
        `unchanged`: then it holds for the randomised cells alone.
    public_inputs : tuple of str
        What is assumed to be public, in plain sentences.
    version : str
        The version of privsyn that ran.
    unit : str, optional
        The column that identifies the person, if the promise protects all rows of a person. Default: it
        protects one row.
    rows_per_unit : int, optional
        With `unit`, the most rows kept per person.
    elsewhere : str, optional
        Who promises what, if all counts were measured elsewhere: this ledger then has no spends, and its
        epsilon and delta are 0. It says nothing of its own about privacy.
    local : tuple of LocalPromise, optional
        The columns that the respondents randomised. If there are no spends, all columns are, and the promise
        is that of randomised response.
    unchanged : tuple of str, optional
        Columns of a randomised table that nobody randomised. Their cells are in it, exact.
    acceptance : Acceptance, optional
        The verdict on the criteria that the release had to meet.

    Raises
    ------
    ValueError
        If the spends cost more than the promise allows.

    Notes
    -----
    All noise is Gaussian or all is Laplace. The Laplace answers of a run are together as private as the sum
    of their epsilons, for any order and any dependence of later questions on earlier answers, because the
    ratios of the probabilities multiply. This sum is exact, in rational numbers. The rest is about Gaussian
    noise, where a threshold is not a Gaussian mechanism. With probability 1 - delta_t it
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
    elsewhere: str | None = None
    local: tuple[LocalPromise, ...] = ()
    unchanged: tuple[str, ...] = ()
    acceptance: Acceptance | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "local", tuple(self.local))
        object.__setattr__(self, "unchanged", tuple(self.unchanged))
        if self.unchanged and (self.private or not self.all_local):
            raise ValueError("only a randomised table has unchanged columns, and it is not private")
        if (self.unit is None) != (self.rows_per_unit is None):
            raise ValueError(
                f"unit {self.unit!r} with rows_per_unit {self.rows_per_unit!r}: give both or neither"
            )
        if self.rows_per_unit is not None and self.rows_per_unit < 1:
            raise ValueError(f"rows_per_unit must be at least 1; got {self.rows_per_unit}")
        object.__setattr__(self, "spends", tuple(self.spends))
        object.__setattr__(self, "public_inputs", tuple(self.public_inputs))
        if self.elsewhere is not None and (self.spends or self.promised_epsilon or self.promised_delta):
            raise ValueError("a promise made elsewhere, beside one of this run")
        pure = self.accounting == "pure"
        if any((spend.law == "laplace") is not pure for spend in self.spends):
            raise ValueError(f"{self.accounting} accounting of noise with another law")
        if pure and (self.promised_delta or self.reserved):
            raise ValueError("pure accounting with a delta above 0")
        if 0 < self.promised_delta <= self.reserved:
            raise ValueError(
                f"thresholds take delta {self.reserved:.6g} of {self.promised_delta:.6g} promised"
            )
        if pure and sum(epsilon_of(spend.sigma, spend.sensitivity) for spend in self.spends) > Fraction(
            self.promised_epsilon
        ):
            raise ValueError(f"spent epsilon {self.cost!r} of the {self.promised_epsilon!r} promised")
        if self.all_local and (not pure or self.unit is not None or self.cost > self.promised_epsilon):
            raise ValueError("randomised response does not keep this promise")
        if not pure and self.rho > self.budget * (1 + SLACK):
            raise ValueError(f"spent rho {self.rho:.6g} of the {self.budget:.6g} promised")

    @property
    def neighbours(self) -> str:
        """How two tables differ that the promise makes hard to tell apart."""
        if self.all_local:
            exact = f"; {not_randomised(self)}" if self.unchanged else ""
            return f"change {randomised_cells(self)}, before randomisation{exact}"
        if self.rows_per_unit is None:
            return "add or remove one record"
        rows = "1 row" if self.rows_per_unit == 1 else f"{self.rows_per_unit} rows"
        return f"add or remove all rows of one person (at most {rows} each kept)"

    @property
    def warning(self) -> str | None:
        """Why the run is not private; None if it is."""
        if self.private:
            return None
        return UNCHANGED.format(names_of(self.unchanged)) if self.unchanged else NOT_PRIVATE

    @property
    def cost(self) -> float:
        """The cost of all spends together, which is their sum: rho, or epsilon with pure accounting."""
        if self.all_local:
            return self.local_epsilon
        return fsum(spend.cost for spend in self.spends)

    @property
    def all_local(self) -> bool:
        """Whether the respondents randomised all columns, so that no question was put to a private table."""
        return bool(self.local) and not self.spends

    @property
    def local_epsilon(self) -> float:
        """The epsilon of all randomised columns of one record together; 0 if there is none."""
        return local_epsilon(self.local) if self.local else 0.0

    @property
    def rho(self) -> float:
        """The cost of all spends together in zCDP: their sum, or epsilon^2 / 2 with pure accounting."""
        return self.cost**2 / 2 if self.accounting == "pure" else self.cost

    @property
    def reserved(self) -> float:
        """The delta of all thresholds together, reserved before the first question."""
        return fsum(spend.delta for spend in self.spends)

    @property
    def budget(self) -> float:
        """The cost that the promise allows, fixed before the first question: rho; epsilon if delta is 0."""
        if self.elsewhere is not None:
            return 0.0
        return rho_for(self.promised_epsilon, self.promised_delta - self.reserved, self.accounting)

    @property
    def mu(self) -> float:
        """The sensitivity over sigma of one Gaussian answer that is as private as the whole budget.

        With pure accounting it is 2 Phi^-1(e^epsilon / (1 + e^epsilon)): between its ends and its corner,
        the trade-off function of randomised response lies above that of this Gaussian answer.
        """
        if self.accounting == "pure":
            return -2 * float(ndtri_exp(-np.logaddexp(0.0, self.budget)))
        return sqrt(2 * self.budget)

    def epsilon(self, delta: float) -> float:
        """Return the epsilon that holds at `delta`, rounded up: the price of the budget, not of the spends.

        How much is spent may depend on noisy answers (a run may find nothing worth asking). The theorem of
        adaptive composition is about a bound that is fixed in advance. It says nothing about a sum that
        turned out smaller. Epsilon is infinite at a delta that thresholds use up, and if the promise was made
        elsewhere.
        """
        if self.elsewhere is not None or 0 < delta <= self.reserved:
            return inf
        return epsilon_for(max(self.cost, self.budget), delta - self.reserved, self.accounting)

    @staticmethod
    def compose(
        ledgers: Iterable[Ledger], delta: float | None = None, *, disjoint: bool = False
    ) -> Composition:
        """Return what several releases from one table promise together, by several theorems.

        Parameters
        ----------
        ledgers : iterable of Ledger
            All protect the same: a row, or all rows of one person in the same column. They may protect
            different numbers of rows per person.
        delta : float, optional
            The delta of the joint promise. Default: the sum of all deltas. A larger one lowers epsilon.
        disjoint : bool
            Your statement that no person's row is in the tables of two releases (disjoint filters). It cannot
            be checked.

        Raises
        ------
        InputError
            If a ledger is not private or is of a randomised table, or ledgers protect different units.

        Examples
        --------
        >>> def release(epsilon):
        ...     return Ledger((), epsilon, 1e-9, "gaussian", "operating system", True, (), "1.0")
        >>> joint = Ledger.compose([release(1.0), release(0.5)])
        >>> joint.best.theorem, f"{joint.epsilon:.3f}", joint.delta
        ('exact', '1.106', 2e-09)
        """
        return compose(ledgers, delta, disjoint=disjoint)

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain data for JSON. If the run is not private, the first entry says so."""
        return ({} if self.warning is None else {"warning": self.warning}) | to_plain(self)

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
            return cls(**from_plain(plain))

    @classmethod
    def from_json(cls, text: str) -> Ledger:
        """Read what `to_json` wrote; an `InputError` as for `from_dict`."""
        with replace_errors(NO_LEDGER, (RecursionError, ValueError)):
            return cls.from_dict(json.loads(text))

    def _repr_html_(self) -> str:
        return to_html(self)

    def __str__(self) -> str:
        lines = to_lines(self)
        return "\n".join(map(printable, lines if self.warning is None else [self.warning, *lines]))
