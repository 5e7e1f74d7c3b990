"""Pairs of neighbouring tables, one for each question: what an attacker has to tell apart.

A pair is worth its place if the person's rows move some question by all of its sensitivity; a new one is one
more entry of `GAMES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from privsyn import Categorical, Numerical, PrivSyn, Schema
from privsyn.methods.methods import METHODS
from privsyn.private.accounting import Accounting, epsilon_for, rho_for

MU = 1.5  # claimed in every game: near 1 the fewest runs tell most, and noise is not yet lost in its rounding
DELTA = 1e-5


@dataclass(frozen=True)
class Game:
    """Was the person in the table?

    Parameters
    ----------
    name : str
        The question under attack.
    others : pandas.DataFrame
        Everybody else.
    person : pandas.DataFrame
        The rows of the one who is added.
    settings : mapping
        Of `PrivSyn`, but for epsilon and delta.
    method : "default" or "published"
    moves : float
        Least part of the claimed mu by which the person moves the answers, in the run that moved them most.
    claim : float
        The mu that every run claims.
    twins : dict
        The coded rows of the other table, by whether the person is in the fitted one: the same in all runs.
    """

    name: str
    others: pd.DataFrame
    person: pd.DataFrame
    settings: Mapping[str, Any] = field(hash=False)
    method: str = "default"
    moves: float = 0.999
    claim: float = MU
    twins: dict[bool, Any] = field(default_factory=dict, init=False, repr=False)

    def table(self, *, inside: bool) -> pd.DataFrame:
        """The table with the person inside, or without."""
        return self._both if inside else self.others

    @cached_property
    def _both(self) -> pd.DataFrame:
        return pd.concat([self.others, self.person], ignore_index=True)

    def model(self) -> PrivSyn:
        """A model that claims `claim`."""
        return PrivSyn(self._epsilon, DELTA, method=self.method, **self.settings)

    @cached_property
    def mu(self) -> float:
        """What the promise comes to as one Gaussian answer: `claim`, up to rounding."""
        return float((2 * rho_for(self._epsilon, DELTA, self._accounting)) ** 0.5)

    @cached_property
    def _epsilon(self) -> float:
        return epsilon_for(self.claim**2 / 2, DELTA, self._accounting)

    @property
    def _accounting(self) -> Accounting:
        return METHODS[self.method].accounting or "gaussian"


def _rows(columns: str, rows: int, value: int) -> pd.DataFrame:
    return pd.DataFrame({name: [value] * rows for name in columns})


BINARY = {"schema": Schema({name: Categorical([0, 1], nullable=False) for name in "abc"})}
MANY = {
    "schema": Schema(
        {
            "a": Categorical(range(60), nullable=False),
            "b": Numerical(0, 15, integer=True, bins=16, nullable=False),
        }
    )
}

# Ten people alike, and one who differs in everything: each one-way, each distance from expected counts and
# each table moves by 1.
ALIKE, ODD = _rows("abc", 10, 0), _rows("abc", 1, 1)

# InDif moves by nearly 4 if n people share one pair of values and one person has neither; but a value that
# nobody else has is pooled before InDif is asked. So here 20 others have each value, but never two of them.
APART = pd.concat([_rows("abc", 20_000, 0), *(_rows("abc", 20, 0).assign(**{name: 1}) for name in "abc")])

# Question 0. Five others share the values of the odd one: too few to be found in the first round, so that
# votes move in both. And one number that is far from all others, which lie at 0 and 1.
SHARED = (
    pd.concat([_rows("abc", 200, 0), _rows("abc", 5, 1)]).astype(str).replace({"0": "usual", "1": "rare"})
)
SMALL = pd.DataFrame({name: [0, 1] * 200 for name in "abc"})

IN_ORDER = {
    "schema": Schema(
        dict.fromkeys("ab", Numerical(0, 15, integer=True, bins=16, nullable=False)), constraints=["a <= b"]
    )
}
ORDERED = pd.DataFrame({name: np.arange(2000) % 16 for name in "ab"})

GAMES = (
    Game("one who differs in everything", ALIKE, ODD, BINARY),
    # The counts of a are public, in both tables those with the person. All of the budget is for the others.
    Game(
        "columns beside known totals",
        ALIKE,
        ODD,
        BINARY | {"totals": pd.DataFrame({"a": [0, 1], "count": [10, 1]})},
    ),
    # If the noise has a value pooled nevertheless (a run in a hundred), the person moves InDif by nothing.
    Game("dependence (InDif)", APART.reset_index(drop=True), ODD, BINARY, "published", moves=0.94),
    Game(
        "a value that nobody shares, pooled",
        _rows("ab", 10, 0),
        pd.DataFrame({"a": [59], "b": [15]}),
        MANY,
        "published",
        moves=0.94,
    ),
    # Five rows, of which three are kept: as many as the promise is for. Enough others have so many rows that
    # this is the bound in every run.
    Game(
        "a person with five rows, three kept",
        _rows("abc", 400, 0).assign(who=np.arange(400) // 4),
        _rows("abc", 5, 1).assign(who=100),
        {**BINARY, "unit": "who", "rows_per_unit": 3},
        "published",
        moves=0.94,
    ),
    # In tables of several columns the squares of a person's counts are bounded, and nobody names a bound.
    Game(
        "a person of twenty rows, and squares",
        _rows("abc", 800, 0).assign(who=np.arange(800) // 8),
        _rows("abc", 20, 1).assign(who=100),
        {**BINARY, "unit": "who"},
        moves=0.97,
    ),
    # Nearly all of the budget goes to one criterion, whose test moves by all that a row can move it.
    Game(
        "a criterion that the release must meet",
        _rows("abc", 1000, 0),
        ODD,
        BINARY | {"accept": {"share": 0.99, "criteria": [{"margin": ["a"], "error": 1e-4}]}},
        moves=0.97,
    ),
    # Part of delta is set aside for the threshold, so a little less is claimed of the Gaussian part.
    Game("values to be found", SHARED, SHARED.tail(1), {}, moves=0.98),
    Game("bounds to be found, and an extreme number", SMALL, _rows("abc", 1, 10**9), {}),
    # Without gaps but that of the person, so that in all runs they are found to spread less than the numbers.
    Game("columns in order, and their gaps", ORDERED, pd.DataFrame({"a": [0], "b": [15]}), IN_ORDER),
)
