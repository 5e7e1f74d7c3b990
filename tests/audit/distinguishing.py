"""The distinguishing game: an attacker who knows both tables guesses from a release which of them was fitted.

All answers of a run are together one Gaussian experiment. The attacker knows both tables, and so for every
question that was asked the exact answers q0 and q1 that they give, whatever made the method ask it. The best
guess goes by the likelihood ratio (Neyman and Pearson), whose logarithm adds up over the questions:

    sum of (answer - (q0 + q1) / 2) (q1 - q0) / sigma^2,

above 0: "the person is in". Whether the person is in, a fair coin decides for each run. Under mu-Gaussian
differential privacy no guess is right with a probability above Phi(mu / 2) (Dong, Roth and Su, 2019), so runs
in which it is right more often than that refute the claim, whatever the law of the answers: `lower_bound`
rests on one count of independent runs.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial, partialmethod
from math import fsum, sqrt
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta

from audit.games import Game
from privsyn.methods import learning
from privsyn.methods.complete_schema import discover
from privsyn.methods.persons import Persons
from privsyn.methods.reading import Opened
from privsyn.private import contribution as private_contribution
from privsyn.private import find_values, measure
from privsyn.private.contribution import Contribution
from privsyn.private.find_values import Finder
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import release
from privsyn.private.noise_laws import GAUSSIAN
from privsyn.private.randomness import Noise, os_entropy
from privsyn.private.spend import QueryLog
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.io.source import RawTable

coded, count, by_year = Opened.coded, Persons.count, OpenSchema.by_year

SPENT = 1 - 1e-9  # of the budget: then nothing more can be asked
ROUNDING = 1 / 12  # the variance that rounding to whole numbers adds to that of the noise


@dataclass(frozen=True)
class Round:
    """What one run told the attacker.

    Parameters
    ----------
    inside : bool
        The truth.
    evidence : float
        Logarithm of the likelihood ratio; above 0 the person is guessed to be in.
    moved : float
        By how many standard deviations of the noise the person moves all answers together: the mu of this
        run. It needs no statistics: for every run it may not exceed the claim.
    residuals : tuple of float
        Of every question that the person moves, the noise in that direction, in standard deviations. Whatever
        was asked before, it is a standard normal number: half of the variance that the ledger claims shows
        in far fewer of them than in guesses.
    """

    inside: bool
    evidence: float
    moved: float
    residuals: tuple[float, ...]

    @property
    def right(self) -> bool:
        """Whether the guess was."""
        return self.inside == (self.evidence > 0)


class Silence:
    """No noise: marks the twin, whose exact answers the attacker works out alone."""

    law = GAUSSIAN


@dataclass(frozen=True)
class Exchange:
    """A question's answer on the fitted table, and the exact answers of that table and of the other."""

    answer: np.ndarray
    exact: np.ndarray
    others: np.ndarray
    sigma: float


class Witnessed:
    """A private table that puts every question to its twin too, and ends the run when the budget is spent.

    What a method computes after its last answer cannot change what was released: the run is cut off there.
    """

    def __init__(self, asked: PrivateTable, twin: PrivateTable, rho: float) -> None:
        self._asked, self._twin, self._rho = asked, twin, rho

    def __getattr__(self, name: str) -> Any:
        asked, twin = getattr(self._asked, name), getattr(self._twin, name)
        return partial(self._both, asked, twin) if callable(asked) else asked

    def _both(
        self, asked: Callable[..., Any], twin: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Any:
        answer, others = asked(*arguments, **options), twin(*arguments, **options)
        if isinstance(answer, PrivateTable):  # recoded: from now on that one is asked
            return Witnessed(answer, others, self._rho)
        if fsum(spend.rho for spend in self._asked.spends) >= self._rho * SPENT:
            raise SpentError
        return answer


class Beside:
    """A table of which question 0 asks; with what the other table says, it is written to `looks`."""

    def __init__(self, table: RawTable, other: Callable[[], RawTable], looks: list[Any]) -> None:
        self._table, self._other, self._looks = table, other, looks
        self.require_again, self.once = table.require_again, table.once

    def tally(self, counted: Any, add: Any) -> Any:
        """What the table says."""
        exact, others = self._table.tally(counted, add), self._other().tally(counted, add)
        self._looks += zip(exact, others, strict=True)
        return exact


class SpentError(Exception):
    """All of the budget is spent, as it should be."""


def play(game: Game) -> Round:
    """One run, its noise from the operating system's entropy, and what its answers tell."""
    inside, exchanges = _coin(), []
    with _witness(game, exchanges, inside=inside), suppress(SpentError):
        game.model().fit(game.table(inside=inside))
    assert exchanges, "no question was seen: the spy looks in the wrong place"
    evidence = squares = 0.0
    residuals = []
    for e in exchanges:
        q0, q1 = (e.others, e.exact) if inside else (e.exact, e.others)
        step = (q1 - q0).astype(float)
        evidence += float(step @ (e.answer - (q0 + q1) / 2)) / e.sigma**2
        squares += float(step @ step) / e.sigma**2
        if step.any():
            variance = float(step @ step) * (e.sigma**2 + ROUNDING)
            residuals.append(float(step @ (e.answer - e.exact)) / sqrt(variance))
    return Round(inside, evidence, sqrt(squares), tuple(residuals))


def sample(game: Game) -> tuple[bool, float]:
    """One run to its end: the truth, and how many cells of a synthetic table are the person's.

    A table is made also where noise hides how many rows there are: the refusal is no refuge.
    """
    inside = _coin()
    model = game.model().fit(game.table(inside=inside))
    rows = model.sample(model.release_.estimated_rows)
    return inside, float((rows == game.person[rows.columns].iloc[0]).to_numpy().sum())


def _coin() -> bool:
    return secrets.randbelow(2) == 1


@contextmanager
def _witness(game: Game, exchanges: list[Exchange], *, inside: bool) -> Iterator[None]:
    """Every answer of a fit goes, with the exact answers of both tables, to `exchanges`."""
    twins, pending, looks = [], [], []

    @cache
    def other() -> Opened:
        return Opened.of(game.table(inside=not inside), None, game.model(), os_entropy)

    def count_both(persons: Persons, log: QueryLog, noise: Noise, rho: float) -> Any:
        numbers = count(persons, log, noise, rho)
        count(other().persons, QueryLog(), Silence(), rho)
        return numbers

    def both(finder: Finder, method: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
        answer = method(finder, *arguments, **settings)
        others = [twin_of(each) for each in arguments]
        assert any(twin is not each for twin, each in zip(others, arguments, strict=True))
        method(Finder(Silence(), finder.rows_per_unit), *others, **settings)
        return answer

    def twin_of(counts: Any) -> Any:
        """The counts of the other table, or else the same argument."""
        return next((twin for exact, twin in looks if exact is counts), counts)

    def years_of_both(open_schema: OpenSchema, counts: Any) -> Any:
        years = by_year(open_schema, counts)
        looks.append((years, by_year(open_schema, twin_of(counts))))
        return years

    def discover_both(
        open_schema: Any, table: Any, chosen: Any, *, finder: Finder, one_row: Any, **budget: Any
    ) -> Any:
        beside = Beside(table, lambda: other().bounded(finder.rows_per_unit), looks)
        one = one_row and Beside(one_row, lambda: other().bounded(1), looks)
        return discover(open_schema, beside, chosen, finder=finder, one_row=one, **budget)

    def code_both(opened: Opened, *known: Any) -> Any:
        # Without a schema each run has a codec of its own; with persons, classes of their numbers of rows.
        if inside not in game.twins or not game.settings or opened.persons is not None:
            game.twins[inside] = coded(other(), *known)
        twins.append(game.twins[inside])
        return coded(opened, *known)

    def table(rows: Any, noise: Noise, contribution: Contribution, log: QueryLog) -> Any:
        asked = PrivateTable(rows, noise, contribution, log)
        return Witnessed(asked, PrivateTable(twins.pop(), Silence(), contribution), game.mu**2 / 2)

    def spy(exact: Any, sigma: float, noise: Any) -> Any:
        if isinstance(noise, Silence):
            answer, others = pending.pop(0)
            exchanges.append(Exchange(answer.ravel(), others.ravel(), exact.ravel(), sigma))
            return answer
        answer = release(exact, sigma, noise)
        pending.append((answer, exact))
        return answer

    with (
        patch.object(Opened, "coded", code_both),
        patch.object(Persons, "count", count_both),
        patch.object(learning, "PrivateTable", table),
        patch.object(measure, "release", spy),
        patch.object(private_contribution, "release", spy),
        patch.object(find_values, "release", spy),
        patch.object(OpenSchema, "by_year", years_of_both),
        patch.object(Finder, "voters", partialmethod(both, Finder.voters)),
        patch.object(Finder, "values", partialmethod(both, Finder.values)),
        patch.object(Finder, "numbers", partialmethod(both, Finder.numbers)),
        patch.object(Finder, "cells", partialmethod(both, Finder.cells)),
        patch.object(learning, "discover", discover_both),
    ):
        yield


def rows_bound(samples: list[tuple[bool, float]], *, error: float) -> float:
    """`lower_bound` from samples: the first half says at how many cells to guess, the second is counted."""
    half = len(samples) // 2
    threshold = float(np.median([cells for _, cells in samples[:half]]))
    right = sum(inside == (cells > threshold) for inside, cells in samples[half:])
    return lower_bound(right, len(samples) - half, error=error)


def lower_bound(right: int, runs: int, *, error: float) -> float:
    """The mu that a mechanism has at least, but for a chance of `error`, if so many guesses were right.

    The share of right guesses has its lower bound by Clopper and Pearson.

    Examples
    --------
    >>> round(lower_bound(6915, 10_000, error=1e-3), 2)
    0.92
    >>> lower_bound(50, 100, error=1e-3), lower_bound(0, 100, error=1e-3)
    (0.0, 0.0)
    """
    least = beta.ppf(error, right, runs - right + 1) if right else 0.0
    return max(0.0, 2 * float(ndtri(least)))
