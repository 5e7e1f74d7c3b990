"""The short audit of linked tables: was the person there, with all rows that belong to it, in every table?

A run is made twice: on the tables with or without the person, as a coin decides, and on the others, with the
answers of the first. So each question has the exact answers of both. The attacker knows these and the random
order of the rows, and guesses as in `audit.distinguishing`. The noise is the real one.
"""

from __future__ import annotations

import secrets
from dataclasses import replace
from math import sqrt

import numpy as np
import pandas as pd
import pytest
from replay import Answers
from scipy.stats import chi2

from audit.distinguishing import ROUNDING, Round, lower_bound
from privsyn import Categorical, Database, PrivSyn, Schema, Table
from privsyn.owners.party import Alone
from privsyn.private.accounting import epsilon_for, rho_for
from privsyn.private.randomness import os_entropy

CLAIM, DELTA = 2.0, 1e-5
ERROR = 1e-7  # of one bound
RUNS = 12
RESIDUALS = 30  # of one run, at least
MOVES = 0.95  # of the claim, at least, in the run in which the person moves the answers most
EPSILON = epsilon_for(CLAIM**2 / 2, DELTA, "gaussian")
MU = sqrt(2 * rho_for(EPSILON, DELTA, "gaussian"))


def column(name):
    return Schema({name: Categorical([0, 1], nullable=False)})


DATABASE = Database(
    {
        "homes": Table(column("a"), key="home"),
        "trips": Table(column("b"), key="trip", parent="homes", link="home", order="number"),
        "stops": Table(column("c"), parent="trips", link="trip"),
    }
)


def tables_of(homes, trips, stops, value, first=0):
    """Homes with as many trips each, which have as many stops each, with one value everywhere."""
    root = pd.DataFrame({"home": np.arange(homes) + first, "a": value})
    below = pd.DataFrame({"home": root["home"].repeat(trips).to_numpy(), "b": value})
    below["trip"], below["number"] = np.arange(len(below)) + 1000 * first, np.tile(np.arange(trips), homes)
    return {
        "homes": root,
        "trips": below,
        "stops": pd.DataFrame({"trip": below["trip"].repeat(stops).to_numpy(), "c": value}),
    }


OTHERS, PERSON = tables_of(100, 6, 1, 0), tables_of(1, 30, 3, 1, first=500)
TABLES = {
    False: OTHERS,
    True: {name: pd.concat([rows, PERSON[name]], ignore_index=True) for name, rows in OTHERS.items()},
}


def fitted(tables, answers, words):
    """Fit with known words for the rows; those of all others are the same, as the person's follow."""
    left = iter(words)
    with answers.run(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(Alone, "bits", lambda _: lambda size: next(left)[:size])
        patch.setattr(Alone, "generator", lambda _: np.random.default_rng(int(words[0][0])))
        return PrivSyn(EPSILON, DELTA, DATABASE).fit(tables).ledger_


def play():
    """One run, and what its answers tell."""
    inside = secrets.randbelow(2) == 1
    words = [os_entropy(max(map(len, TABLES[True].values()))) for _ in range(1 + len(DATABASE.names))]
    first = Answers()
    ledger = fitted(TABLES[inside], first, words)
    second = Answers(first.released)
    assert replace(fitted(TABLES[not inside], second, words), run=ledger.run) == ledger
    evidence, squares, residuals = 0.0, 0.0, []
    released = iter(first.released)
    for spend, own, other in zip(ledger.spends, first.exact, second.exact, strict=True):
        for exact, others in zip(own, other, strict=True):
            q0, q1 = (others, exact) if inside else (exact, others)
            step, answer = (q1 - q0).ravel().astype(float), next(released)
            evidence += float(step @ (answer - (q0 + q1) / 2).ravel()) / spend.sigma**2
            squares += float(step @ step) / spend.sigma**2
            if step.any():
                variance = float(step @ step) * (spend.sigma**2 + ROUNDING)
                residuals.append(float(step @ (answer - exact).ravel()) / sqrt(variance))
    return Round(inside, evidence, sqrt(squares), tuple(residuals))


@pytest.mark.slow
def test_a_person_with_all_rows_below_it_is_told_no_better_than_is_claimed():
    """How far the person moves the answers is certain, not likely: in no run further than is claimed."""
    rounds = [play() for _ in range(RUNS)]
    assert MOVES * MU < max(played.moved for played in rounds) <= MU * (1 + 1e-9)
    assert lower_bound(sum(played.right for played in rounds), RUNS, error=ERROR) <= MU
    residuals = [residual for played in rounds for residual in played.residuals]
    assert len(residuals) >= RUNS * RESIDUALS
    assert chi2.ppf(ERROR, len(residuals)) < np.square(residuals).sum() < chi2.isf(ERROR, len(residuals))
