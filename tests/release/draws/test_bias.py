"""Means of groups from shrunk draws: the noisy counts show the bias, and the interval includes it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from privsyn import Categorical, Numerical, PrivSyn, Schema
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.release.draws.bias import PRIOR, Bias
from privsyn.release.estimates import Estimates

SCHEMA = Schema(
    {
        "group": Categorical(["a", "b", "c"], nullable=False),
        "pay": Numerical(0, 9, integer=True),
    }
)
ROWS, DRAWS, RUNS = 1000, 4, 300
COLUMNS = frozenset({"group", "pay"})


def dependent(seed=0):
    """Pay is higher by 3 in group a. One in twenty has none."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], ROWS, p=[0.2, 0.4, 0.4])
    pay = pd.Series(rng.integers(0, 7, ROWS) + 3 * (group == "a"), dtype="Int64")
    return pd.DataFrame({"group": group, "pay": pay.where(rng.random(ROWS) > 0.05)})


def independent(seed):
    """The same columns, shuffled: draws that have lost all dependence."""
    real = dependent()
    return real.assign(pay=real["pay"].sample(frac=1.0, random_state=seed).to_numpy())


@pytest.fixture(scope="module")
def release():
    return PrivSyn(500.0, 1e-6, SCHEMA, seed=0, allow_weak_privacy=True).fit(dependent()).release_


def with_noise(release, sigma, rng):
    """The certainty of the pair with more noise."""
    (certainty,) = (c for c in release.fitted.certainties if set(c.attributes) == COLUMNS)
    measured = certainty.measured
    counts = measured.marginal.counts + rng.normal(0, sigma, measured.marginal.domain.shape)
    noisy = Marginal(measured.marginal.domain, counts)
    return replace(certainty, measured=Measurement(noisy, np.array(sigma**2), measured.grouping))


def truth():
    real = dependent()
    return float(real.loc[real["group"] == "a", "pay"].mean())


def test_without_noise_the_variance_grows_by_the_squared_bias(release):
    frames = [independent(seed) for seed in range(DRAWS)]
    rows = pd.concat(frames)
    numbers = rows["pay"].to_numpy(float, na_value=np.nan)
    met = (rows["group"] == "a").to_numpy() & ~np.isnan(numbers)
    added = Bias(release.codec, release.fitted, release.fitted.certainties).variance(
        frames, COLUMNS, numbers, met
    )
    assert added**0.5 == pytest.approx(truth() - numbers[met].mean(), rel=0.1)


@pytest.mark.slow
def test_intervals_hold_although_no_draw_has_the_dependence(release):
    """Without the measured counts none of these intervals holds."""
    rng, frames = np.random.default_rng(1), [independent(seed) for seed in range(DRAWS)]
    held = 0
    for _ in range(RUNS):
        known = [with_noise(release, 5.0, rng)]
        bias = Bias(release.codec, release.fitted, known)
        found = Estimates(release.codec, lambda *_: frames, [COLUMNS], bias).mean("pay", "group == 'a'")
        held += found["low"] <= truth() <= found["high"]
    assert held >= binom.ppf(1e-7, RUNS, 0.95)
    alone = Estimates(release.codec, lambda *_: frames, [COLUMNS], Bias(release.codec, release.fitted, []))
    assert alone.mean("pay", "group == 'a'")["high"] < truth()


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [1.0, 30.0, 1000.0])
def test_draws_without_a_bias_get_hardly_wider_and_at_most_by_the_prior(release, sigma):
    """The squared addition is on average at most V l^2: below the noise variance, and below prior / 4."""
    rng, frames = np.random.default_rng(2), [dependent()] * DRAWS
    numbers = dependent()["pay"].to_numpy(float, na_value=np.nan)
    met = (dependent()["group"] == "a").to_numpy() & ~np.isnan(numbers)
    every, where = np.tile(numbers, DRAWS), np.tile(met, DRAWS)
    added = []
    for _ in range(RUNS):
        known = with_noise(release, sigma, rng)
        bias = Bias(release.codec, release.fitted, [known])
        added.append(bias.variance(frames, COLUMNS, every, where))
    places = bias._places(known.measured, frames)
    _, noise = Bias._moved(known.measured, places, every, where, DRAWS)
    prior = PRIOR**2 * np.nanvar(numbers)
    if noise > prior:  # nothing is known of the group
        assert set(added) == {np.inf}
        return
    expected = noise * (prior / (prior + noise)) ** 2
    # A squared normal variable has a relative standard deviation of sqrt(2): within 6 standard errors.
    assert np.mean(added) == pytest.approx(expected, rel=6 * (2 / RUNS) ** 0.5)
    assert np.mean(added) < prior / 4 * 1.5


def test_a_condition_beyond_all_measured_tables_adds_nothing(release):
    frames = [dependent()] * 2
    bias = Bias(release.codec, release.fitted, release.fitted.certainties)
    numbers, met = np.ones(2 * ROWS), np.ones(2 * ROWS, bool)
    assert bias.variance(frames, COLUMNS | {"town"}, numbers, met) == 0
    assert bias.variance(frames, COLUMNS, numbers, met) == 0  # numbers that are all the same


@pytest.mark.slow
def test_the_mean_of_a_group_smaller_than_its_noise_has_no_interval():
    """A few rich rows among thousands: draws show the mean of similar rows, far below theirs."""
    rng = np.random.default_rng(0)
    rare = np.arange(4000) < 60
    table = pd.DataFrame(
        {"lake": np.where(rare, "y", "n"), "pay": np.where(rare, 95, rng.integers(0, 50, 4000))}
    )
    columns = {"lake": Categorical(["y", "n"], nullable=False)}
    columns["pay"] = Numerical(0, 100, integer=True, nullable=False)
    accuracy = PrivSyn(0.3, 1e-9, Schema(columns), seed=0).fit(table).accuracy_
    few = accuracy.mean("pay", where="lake == 'y'")
    assert (few["covered"], bool(np.isnan(few["low"]))) == (False, True)
    many = accuracy.mean("pay", where="lake == 'n'")
    assert many["covered"]
    assert 0 <= many["low"] < table.pay[~rare].mean() < many["high"] <= 100
