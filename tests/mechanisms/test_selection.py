"""The exponential mechanism: the factor of the theorem, and as good as its interval says."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from privsyn.mechanisms import Exponential


def probabilities(mechanism, scores):
    weights = np.exp(np.array(scores) / mechanism.scale)
    return weights / weights.sum()


@pytest.mark.parametrize("monotone", [False, True])
def test_probabilities_of_neighbours_differ_by_at_most_e_to_the_epsilon_and_nearly_so(monotone):
    mechanism = Exponential(epsilon=1.0, sensitivity=2.0, monotone=monotone)
    scores = np.array([3.0, 0.0, 1.0, 7.0])
    changes = product((0.0, 2.0) if monotone else (-2.0, 2.0), repeat=4)
    ratios = [
        np.abs(np.log(probabilities(mechanism, scores + change) / probabilities(mechanism, scores))).max()
        for change in changes
    ]
    assert 0.9 < max(ratios) <= 1.0
    half = Exponential(epsilon=1.0, sensitivity=2.0, monotone=not monotone)
    assert half.scale == pytest.approx(mechanism.scale * (2 if monotone else 0.5))


def test_the_range_of_losses_is_within_epsilon():
    mechanism = Exponential(epsilon=1.0)
    scores = np.array([3.0, 0.0, 1.0])
    for change in product((-1.0, 0.0, 1.0), repeat=3):
        losses = np.log(probabilities(mechanism, scores) / probabilities(mechanism, scores + change))
        assert np.ptp(losses) <= 1.0
    assert mechanism.promise.bounded_range
    assert mechanism.promise.rho == pytest.approx(1 / 8)


def test_candidates_have_names_or_positions():
    mechanism = Exponential(epsilon=50.0, seed=1)
    assert mechanism.release({"a": 1, "b": 9, "c": 3}) == "b"
    assert mechanism.release([1, 9, 3]) == mechanism.release(np.array([1.0, 9.0, 3.0])) == 1


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float32, np.float64])
def test_scores_of_numpy_are_exact_numbers_that_do_not_wrap_around(kind):
    mechanism = Exponential(epsilon=0.3)
    assert mechanism.release(np.array([0, 20_000], kind)) == 1


def test_no_score_is_an_error():
    mechanism = Exponential(epsilon=1.0, sensitivity=1e-300)
    for score in (None, pd.NA, "many", float("nan"), float("-inf"), -(10**400), 1j):
        assert mechanism.release([score, 9]) == 1


def test_scores_that_are_equal_are_drawn_equally():
    mechanism = Exponential(epsilon=1.0, seed=3)
    counts = np.bincount([mechanism.release([5, 5, 5, 5]) for _ in range(4_000)])
    assert counts.min() > 880


def test_the_best_score_is_no_further_away_than_the_interval_says():
    mechanism = Exponential(epsilon=1.0, seed=5)
    scores = [0.0] * 99 + [10.0]
    gaps = [10.0 - scores[mechanism.release(scores)] for _ in range(2_000)]
    low, high = mechanism.interval(0.9, 0.0, candidates=100)
    assert np.mean([low <= gap <= high for gap in gaps]) >= 0.88
    assert high == pytest.approx(2 * np.log(100 / 0.1))


@pytest.mark.parametrize("settings", [{"epsilon": 0}, {"epsilon": 1, "sensitivity": 0}])
def test_what_cannot_be_is_refused(settings):
    with refuses():
        Exponential(**settings)
    with refuses("no candidate"):
        Exponential(epsilon=1).release([])


def test_a_score_that_is_no_number_counts_as_0_and_raises_no_error():
    mechanism = Exponential(epsilon=50.0, seed=1)
    assert mechanism.release([-3.0, float("nan"), -2.0]) == 1
    assert mechanism.release([-3.0, float("inf"), -float("inf")]) == 1


def test_the_spend_is_the_epsilon():
    for monotone in (False, True):
        spend = Exponential(epsilon=0.3, sensitivity=4, monotone=monotone).spend
        assert spend.cost == pytest.approx(0.3)
        assert spend.sensitivity == (4 if monotone else 8)


def test_candidates_of_a_series_are_its_labels():
    counts = pd.Series({"tea": 0, "coffee": 1000})
    assert Exponential(epsilon=1).release(counts) == "coffee"
