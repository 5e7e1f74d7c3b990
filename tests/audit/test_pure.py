"""The short audit of pure epsilon: a lower bound on epsilon from right guesses, under the claim and near it.

The noise is the real one, from the operating system. Under epsilon-differential privacy no guess whether the
person is in the table is right with a probability above e^epsilon / (1 + e^epsilon).
"""

from __future__ import annotations

import secrets
from math import exp, log

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, binom

from privsyn import Categorical, PrivSyn, Schema
from privsyn.methods.budget import FOR_ROWS
from privsyn.private import contribution, measure
from privsyn.private.noise import release

EPSILON = 2.0  # the fewest runs tell as much
ERROR = 1e-7  # of one bound
RUNS = 600
USED = 0.4  # of the claim, at least: these runs show the share of right guesses, 0.881, to within 0.19
COLUMN = Schema({"a": Categorical([0, 1], nullable=False)})
COLUMNS = Schema({name: Categorical([0, 1], nullable=False) for name in "abc"})


def lower_bound(right, runs):
    """The epsilon that a mechanism has at least, but for a chance of `ERROR`, by its right guesses."""
    least = beta.ppf(ERROR, right, runs - right + 1) if right else 0.0
    return max(0.0, log(least / (1 - least))) if 0 < least < 1 else 0.0


def guessed():
    """One run on a table with or without the person; whether the released count gives them away.

    One column has one question, with all of epsilon. The count of the person's value is 50 or 51.
    """
    inside = secrets.randbelow(2) == 1
    table = pd.DataFrame({"a": [0] * 50 + [1] * (50 + inside)})
    fitted = PrivSyn(EPSILON, 0, COLUMN).fit(table).release_.fitted
    return inside == (fitted.certainties[0].measured.marginal.counts[1] > 50.5)


@pytest.mark.slow
def test_guesses_show_no_more_than_epsilon_and_most_of_it():
    right = sum(guessed() for _ in range(RUNS))
    assert USED * EPSILON < lower_bound(right, RUNS) <= EPSILON


def test_the_audit_hardly_fails_by_chance_and_finds_noise_of_half_the_scale():
    truth = exp(EPSILON) / (1 + exp(EPSILON))
    assert lower_bound(int(binom.ppf(ERROR, RUNS, truth)), RUNS) > USED * EPSILON
    half = exp(2 * EPSILON) / (1 + exp(2 * EPSILON))
    assert lower_bound(int(binom.ppf(ERROR, RUNS, half)), RUNS) > EPSILON


@pytest.mark.parametrize("k", [1, 3])
def test_the_person_moves_all_answers_of_a_run_by_epsilon_and_no_more(k, monkeypatch):
    """Two runs with the same answers: the sum of |q' - q| / scale is the epsilon that is used."""
    others = pd.DataFrame({name: [0] * 30 for name in "abc"}).assign(who=range(30))
    person = pd.DataFrame({name: [1] * k for name in "abc"}).assign(who=99)
    looks = {}

    def run(frame, answers):
        seen = looks.setdefault(len(frame), [])

        def spy(exact, scale, noise):
            seen.append((exact.ravel(), scale))
            return release(exact, scale, noise) if answers is None else answers[len(seen) - 1]

        for module in (measure, contribution):
            monkeypatch.setattr(module, "release", spy)
        PrivSyn(EPSILON, 0, COLUMNS, unit="who", rows_per_unit=k, seed=1).fit(frame)
        return seen

    kept = []

    def keep(exact, scale, noise):
        kept.append(release(exact, scale, noise))
        return kept[-1]

    for module in (measure, contribution):
        monkeypatch.setattr(module, "release", keep)
    both = pd.concat([others, person], ignore_index=True)
    PrivSyn(EPSILON, 0, COLUMNS, unit="who", rows_per_unit=k, seed=1).fit(others)
    without, within = run(others, kept), run(both, kept)
    moved = sum(np.abs(q - p).sum() / s for (p, s), (q, _) in zip(without, within, strict=True))
    # The number of all rows is asked of up to as many rows of a person as noise may hide: more than k.
    least = EPSILON if k == 1 else EPSILON * (1 - FOR_ROWS / 2)
    assert least * (1 - 1e-6) < moved <= EPSILON
