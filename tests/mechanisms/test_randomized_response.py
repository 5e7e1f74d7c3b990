"""Randomized response: two coins, k values, and an estimate without bias."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest
from refusals import refuses

from privsyn.mechanisms import RandomizedResponse

RESPONDENTS = 40_000


def test_two_coins_are_an_epsilon_of_ln_3():
    coins = RandomizedResponse()
    assert coins.keep_probability == 0.5
    assert coins.promise.epsilon == pytest.approx(log(3), rel=1e-12)
    assert coins.spend.epsilon == coins.promise.epsilon >= log(3)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 3.0, 9.0])
@pytest.mark.parametrize("values", ["ab", "abcdefghij"])
def test_an_epsilon_is_kept_and_used(epsilon, values):
    mechanism = RandomizedResponse(epsilon=epsilon, values=values)
    assert epsilon * (1 - 1e-9) < mechanism.promise.epsilon <= epsilon
    odds = mechanism.keep_probability + (1 - mechanism.keep_probability) / len(values)
    assert odds == pytest.approx(exp(epsilon) / (exp(epsilon) + len(values) - 1), rel=1e-9)


def test_shares_are_estimated_without_bias_within_the_interval():
    rng = np.random.default_rng(1)
    truth = rng.choice(list("abc"), RESPONDENTS, p=[0.6, 0.3, 0.1]).tolist()
    mechanism = RandomizedResponse(epsilon=1, values="abc", seed=2)
    released = mechanism.release(truth)
    estimate = mechanism.estimate(released)
    low, high = mechanism.interval(0.999, respondents=RESPONDENTS)
    exact = np.array([truth.count(value) / RESPONDENTS for value in "abc"])
    assert np.all((low <= exact - estimate) & (exact - estimate <= high))
    assert high < 0.05
    assert estimate.sum() == pytest.approx(1)


def test_answers_keep_their_form_and_an_answer_that_is_no_value_gives_no_error():
    mechanism = RandomizedResponse(epsilon=30, values=("yes", "no"))
    assert mechanism.release("no") == "no"
    assert mechanism.release(["no", "yes", "perhaps"]) == ["no", "yes", "yes"]
    assert RandomizedResponse(epsilon=30).release([True, False]) == [True, False]
    assert set(RandomizedResponse(epsilon=60, values=("yes", "no")).release([["no"], {}, None])) == {"yes"}


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 1, "keep": 0.5},
        {"keep": 1.0},
        {"keep": 0},
        {"epsilon": -1},
        {"values": "a"},
        {"values": "aa"},
        {"values": 1},
        {"values": [[1], [2]]},
    ],
)
def test_what_cannot_be_is_refused(settings):
    with refuses():
        RandomizedResponse(**settings)


def test_k_values_have_numbers_if_they_have_no_names():
    mechanism = RandomizedResponse(epsilon=30, values=4)
    assert mechanism.choices == (0, 1, 2, 3)
    assert mechanism.release([3, 0, 2]) == [3, 0, 2]
    assert mechanism.spend.values == 4
