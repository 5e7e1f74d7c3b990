"""TradeOff: how well the best test can tell whether a person is in the private table, given a promise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from privsyn.errors import InputError, replace_errors

MOST_EPSILON = 700.0
"""e to the power of a larger epsilon is no double. So large an epsilon promises nothing."""

NO_LEDGER = "this is no ledger: give the file of `privsyn synth --ledger`, or `ledger_` of a model"


@dataclass(frozen=True)
class TradeOff:
    r"""The largest share of members that a test recognises at each rate of false alarms.

    For a rate :math:`r`, epsilon and delta allow
    :math:`\min(e^\varepsilon r + \delta, 1 - e^{-\varepsilon} (1 - \delta - r))` (Kairouz, Oh and Viswanath,
    2015). A run that is as private as one Gaussian answer with mu, but for delta, allows
    :math:`\Phi(\Phi^{-1}(r) + \mu) + \delta` (Dong, Roth and Su, 2019).

    Parameters
    ----------
    epsilon : float
        Without effect if `mu` is given.
    delta : float
    mu : float, optional
        By how many standard deviations a person moves one Gaussian answer.

    Examples
    --------
    >>> pure = TradeOff(1.0)
    >>> round(pure.guess, 3), round(pure.recognised(0.01), 4), round(TradeOff(2.0).guess, 3)
    (0.731, 0.0272, 0.881)
    >>> round(TradeOff(mu=1.0).guess, 3), round(TradeOff(1.0, 0.5).advantage, 3)
    (0.691, 0.731)
    """  # style: allow

    epsilon: float = 0.0
    delta: float = 0.0
    mu: float | None = None

    @classmethod
    def of_ledger(cls, plain: Mapping[str, Any], *, steps: int = 1) -> TradeOff:
        """Return what a run allows, by its ledger as plain data.

        Rows that are made since earlier releases show also what these say of a person, so the promise of all
        of them counts: as one Gaussian answer if all of these runs were Gaussian, else by the joint epsilon
        and delta.

        Parameters
        ----------
        plain : mapping
            As `to_dict` of a ledger returns it, or a ledger file has it.
        steps : int
            How many neighbours apart the tables are: 2 if one person leaves and another one comes. Each step
            has the delta of its thresholds.

        Raises
        ------
        InputError
            If it is no ledger, or promises nothing.

        Examples
        --------
        >>> plain = {"promise": {"epsilon": 1.0, "delta": 0.0}, "private": True, "accounting": "pure"}
        >>> TradeOff.of_ledger(plain, steps=2)
        TradeOff(epsilon=2.0, delta=0.0, mu=None)
        """
        if isinstance(plain, Mapping) and ("elsewhere" in plain or plain.get("private") is False):
            raise InputError("the run of this ledger was not private, or says nothing: it bounds no guess")
        with replace_errors(NO_LEDGER, (AttributeError, KeyError, TypeError, ValueError)):
            joint = plain.get("since", plain)
            promise = cls.of_promise(joint["promise"])
            epsilon = steps * promise.epsilon
            if joint is not plain and "mu" not in joint:
                deltas = sum(promise.delta * promise.odds**step for step in range(steps))
                return cls(epsilon, min(deltas, 1.0))
            if plain["accounting"] == "pure":
                return cls(epsilon)
            delta, mu = steps * float(joint["reserved_delta"]), steps * float(joint["mu"])
            if not (delta >= 0 and mu >= 0):
                raise ValueError("not a number from 0")
            return cls(epsilon, delta, mu)

    @classmethod
    def of_promise(cls, plain: Mapping[str, Any]) -> TradeOff:
        """Return what an epsilon and a delta allow; raise ValueError if they promise nothing."""
        epsilon, delta = float(plain["epsilon"]), float(plain["delta"])
        if not (epsilon > 0 and 0 <= delta < 1):
            raise ValueError("not a promise")
        return cls(epsilon, delta)

    @property
    def odds(self) -> float:
        """How many times as probable one person can make a result: e to the power of epsilon."""
        return exp(min(self.epsilon, MOST_EPSILON))

    def recognised(self, rate: float) -> float:
        """Return the largest share of members that is recognised at a rate of false alarms."""
        if self.mu is not None:
            return min(float(ndtr(ndtri(rate) + self.mu)) + self.delta, 1.0)
        return min(self.odds * rate + self.delta, 1 - (1 - self.delta - rate) / self.odds, 1.0)

    @property
    def corner(self) -> float:
        """The rate of false alarms with the largest advantage.

        There the share of members who are not recognised, without delta, equals it. It is smaller if `mu` and
        delta recognise all members at a smaller rate.
        """
        if self.mu is None:
            return (1 - self.delta) / (1 + self.odds)
        return float(ndtr(min(-self.mu / 2, ndtri(1 - self.delta) - self.mu)))

    @property
    def advantage(self) -> float:
        """The largest difference between the share of recognised members and the rate of false alarms."""
        if self.mu is None:
            return self.recognised(self.corner) - self.corner
        # Not by `recognised`: the corner of a large mu is no double above 0, at which nobody is recognised.
        return min(float(ndtr(self.mu / 2)) + self.delta, 1.0) - self.corner

    @property
    def auc(self) -> float:
        """The area under the curve of recognised members over false alarms, which no score exceeds.

        >>> round(TradeOff(1.0).auc, 3), round(TradeOff(mu=1.0).auc, 3)
        (0.731, 0.76)
        """
        if self.mu is not None:
            return min(float(ndtr(self.mu / sqrt(2))) + self.delta, 1.0)
        rates = [0.0, self.corner, 1 - self.delta, 1.0]
        return float(np.trapezoid([*map(self.recognised, rates)], rates))

    @property
    def guess(self) -> float:
        """The largest probability of a right guess, if half of the people asked about are members."""
        return (1 + self.advantage) / 2
