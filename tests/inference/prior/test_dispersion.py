"""How far tables lie from what is expected of them: found again on tables drawn with a known dispersion."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privsyn.inference import _kernels
from privsyn.inference.prior import dispersion as module
from privsyn.inference.prior.dispersion import (
    DISPERSIONS,
    SETTLING_ITERATIONS,
    departure_likelihood,
    deviation_likelihoods,
    log_possible,
    pooled_dispersions,
)
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement

STEP = np.log(DISPERSIONS[1] / DISPERSIONS[0])  # of the grid
SHAPES = [(2, 2), (4, 5), (12, 15), (3, 4, 5)]
counts = st.floats(0, 1e15)
magnitudes = st.floats(-1e15, 1e15)


def expected_counts(rng, shape, n=50_000.0):
    """Of independent attributes whose values are not all alike, but none is rare."""
    product = np.array(n)
    for size in shape:
        product = np.multiply.outer(product, rng.dirichlet(np.full(size, 100.0)))
    return product


def deviation_likelihood(deviation, expected, variance):
    """Return the log-likelihoods of one table."""
    domain = Domain(tuple(map(str, range(deviation.ndim))), deviation.shape)
    measured = Measurement(Marginal(domain, deviation + expected), variance)
    return deviation_likelihoods([measured], [expected])[0]


def peak(likelihoods):
    """ln of the dispersion for which most speaks."""
    return np.log(DISPERSIONS[np.sum(likelihoods, axis=0).argmax()])


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dispersion", [0.5, 5.0, 300.0])
@pytest.mark.parametrize("sigma", [1.0, 30.0])
def test_deviations_tell_the_dispersion(shape, dispersion, sigma):
    """Enough tables for 2000 degrees of freedom, those of the margins not counted.

    The standard error of ln(dispersion) is then near sqrt(2 / 2000) = .03 times 1 + sigma^2 / (dispersion x
    count), .24 at most, and the peak on the grid is at most half a step (.23) off. Within half a step
    and six standard errors: wrong with probability under 1e-8.
    """
    rng = np.random.default_rng(0)
    tables = -(-2000 // int(np.prod([size - 1 for size in shape])))
    noise = sigma**2 / (dispersion * 50_000 / np.prod(shape))
    likelihoods = []
    for _ in range(tables):
        expected = expected_counts(rng, shape)
        deviation = rng.normal(0, np.sqrt(dispersion * expected + sigma**2))
        likelihoods.append(deviation_likelihood(deviation, expected, sigma**2))
    assert abs(peak(likelihoods) - np.log(dispersion)) < STEP / 2 + 6 * np.sqrt(2 / 2000) * (1 + noise)


def test_the_sum_of_deviations_is_that_of_a_loop_over_cells():
    rng = np.random.default_rng(0)
    expected, uncertainty = rng.exponential(100.0, (2, 3, 7))
    expected[0, 0] = uncertainty[0, 0] = 0.0
    slow = [
        [sum(sqrt(d * cell + other) for cell, other in zip(*table, strict=True)) for d in DISPERSIONS]
        for table in zip(expected, uncertainty, strict=True)
    ]
    found = _kernels.sums_of_deviations(expected, uncertainty, DISPERSIONS)
    np.testing.assert_allclose(found, slow, rtol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dispersion", [0.5, 5.0, 300.0])
def test_departures_tell_the_dispersion(shape, dispersion):
    """Of 400 tables, each with noise of 50 records: to a step of the grid.

    A departure of c cells has a relative standard deviation of .76 / sqrt(c) at most, two c give that of
    the dispersion, .76 for 2 x 2; the noise adds 50 / 400 of it at most. Over 400 tables that is a standard
    error of .04 in ln(dispersion); half a step of the grid and six of them are a step.
    """
    rng = np.random.default_rng(0)
    likelihoods = []
    for _ in range(400):
        expected = expected_counts(rng, shape)
        departure = np.abs(rng.normal(0, np.sqrt(dispersion * expected))).sum() + rng.normal(0, 50)
        likelihoods.append(departure_likelihood(departure, 50.0, expected, np.zeros(shape)))
    assert abs(peak(likelihoods) - np.log(dispersion)) < STEP


@pytest.mark.parametrize("uncertainty", [10.0, 1e4])
def test_what_the_one_ways_do_not_know_is_not_taken_for_dispersion(uncertainty):
    """Departures grown by the noise of what was expected speak for the same dispersion; without telling of
    the noise they speak for more. Standard errors as above."""
    rng = np.random.default_rng(0)
    told, untold = [], []
    for _ in range(400):
        expected = expected_counts(rng, (4, 5))
        departure = np.abs(rng.normal(0, np.sqrt(5.0 * expected + uncertainty))).sum()
        told.append(departure_likelihood(departure, 50.0, expected, np.full((4, 5), uncertainty)))
        untold.append(departure_likelihood(departure, 50.0, expected, np.zeros((4, 5))))
    assert abs(peak(told) - np.log(5.0)) < STEP
    assert peak(untold) >= peak(told)
    assert uncertainty < 5000 or peak(untold) > np.log(5.0) + STEP / 2


@pytest.mark.parametrize("sigma", [1.0, 100.0])
def test_whatever_the_dispersion_some_departure_is_certain(sigma):
    """The likelihoods of all departures add up to the same for every dispersion."""
    expected = np.full((4, 5), 100.0)
    departures = np.linspace(-1e4, 1e4, 20_001)
    likelihoods = [departure_likelihood(d, sigma, expected, np.ones((4, 5))) for d in departures]
    sums = np.exp(likelihoods).sum(axis=0)[DISPERSIONS < 100]
    np.testing.assert_allclose(sums, sums[0], rtol=1e-3)


def test_noise_may_differ_between_cells():
    """One half of the tables is drowned in noise, and the other tells; even noise is as one number."""
    rng = np.random.default_rng(0)
    variance = np.repeat([1.0, 1e8], 6)[:, np.newaxis] * np.ones((12, 15))
    likelihoods = []
    for _ in range(30):
        expected = expected_counts(rng, (12, 15))
        deviation = rng.normal(0, np.sqrt(5.0 * expected))
        deviation[6:] -= deviation[6:].mean(axis=0)
        deviation[:6] -= deviation[:6].mean(axis=0)
        likelihoods.append(deviation_likelihood(deviation, expected, variance))
    assert abs(peak(likelihoods) - np.log(5.0)) < 2 * STEP
    even = deviation_likelihood(deviation, expected, np.full((12, 15), 9.0))
    np.testing.assert_allclose(even, deviation_likelihood(deviation, expected, 9.0))


def test_margins_do_not_tell():
    """A deviation that lies in the margins alone is none."""
    deviation = np.add.outer(np.array([10.0, -5.0, 3.0]), np.array([1.0, 2.0, 3.0, 4.0]))
    expected = np.full((3, 4), 100.0)
    np.testing.assert_allclose(
        deviation_likelihood(deviation, expected, 4.0), deviation_likelihood(0 * deviation, expected, 4.0)
    )


@pytest.mark.parametrize("shape", [(1, 5), (5, 1), (1, 1), (3, 1, 4)])
def test_a_table_that_its_margins_settle_says_nothing(shape):
    deviation = np.random.default_rng(0).normal(size=shape)
    likelihood = deviation_likelihood(deviation, np.ones(shape), 1.0)
    np.testing.assert_allclose(likelihood, 0, atol=1e-12)


def test_noise_hides_the_dispersion():
    """The noisier, the flatter the likelihood."""
    expected, deviation = np.full((4, 5), 100.0), np.random.default_rng(0).normal(0, 30, (4, 5))
    for likelihoods in (
        [deviation_likelihood(deviation, expected, variance) for variance in (1.0, 1e4, 1e12)],
        [departure_likelihood(500.0, sigma, expected, 0 * expected) for sigma in (1.0, 1e4, 1e8)],
    ):
        ranges = [np.ptp(likelihood[DISPERSIONS < 100]) for likelihood in likelihoods]
        assert ranges[0] > 10 * ranges[1]
        assert ranges[2] < 1e-3


def test_a_departure_of_less_than_nothing_speaks_for_the_least_dispersion():
    """Of noise alone, and five standard deviations of that."""
    likelihood = departure_likelihood(-500.0, 100.0, np.full((4, 5), 100.0), np.zeros((4, 5)))
    assert likelihood.argmax() == 0


def test_a_departure_is_not_taken_at_its_word():
    """Without any noise it still leaves open twice and half the dispersion: cells do not all spread alike."""
    expected = np.full((10, 10), 500.0)
    departure = np.sqrt(2 / np.pi) * np.sqrt(5.0 * expected).sum()
    likelihood = departure_likelihood(departure, 1e-6, expected, np.zeros((10, 10)))
    assert DISPERSIONS[likelihood.argmax()] == pytest.approx(5.0, rel=0.4)
    open_still = DISPERSIONS[likelihood > likelihood.max() - 4]
    assert open_still.min() < 3
    assert open_still.max() > 8
    assert open_still.max() / open_still.min() < 20


@given(magnitudes, st.floats(1e-3, 1e9), counts, counts)
@example(5.0, 1e-3, 0.0, 0.0)
@example(-1e15, 1e-3, 0.0, 0.0)
@example(1e15, 1e-3, 1e15, 1e15)
def test_departures_are_finite_whatever_the_numbers(departure, sigma, expected, uncertainty):
    cells = np.array([[expected, 0.0], [1.0, expected]])
    likelihood = departure_likelihood(departure, sigma, cells, np.full((2, 2), uncertainty))
    assert likelihood.shape == DISPERSIONS.shape
    assert np.isfinite(likelihood).all()


@given(magnitudes, counts, st.floats(1e-9, 1e18))
@example(1e15, 0.0, 1e-9)
@example(0.0, 0.0, 1e-9)
def test_deviations_are_finite_whatever_the_numbers(deviation, expected, variance):
    cells = np.array([[expected, 0.0], [1.0, expected]])
    likelihood = deviation_likelihood(np.array([[deviation, 0.0], [1.0, 2.0]]), cells, variance)
    assert likelihood.shape == DISPERSIONS.shape
    assert np.isfinite(likelihood).all()


# Pooling


def about(dispersion, width):
    """A log-likelihood that is normal in ln(dispersion)."""
    return -0.5 * (np.log(DISPERSIONS / dispersion) / width) ** 2


def test_the_less_is_known_the_nearer_to_the_usual():
    usual = [about(10.0, 0.3)] * 20
    drawn = [pooled_dispersions([*usual, about(1000.0, width)])[-1] for width in (0.2, 0.5, 1.0, 3.0, 100.0)]
    assert drawn == sorted(drawn, reverse=True)
    assert drawn[0] > 500
    assert drawn[-1] == pytest.approx(10.0, rel=0.3)


def test_pooled_dispersions_are_posterior_means_under_the_estimated_prior():
    """All normal, ln(dispersion) from N(ln 30, 1), each known to 1: the standard result is half way.

    From 400 tables the weight and the mean are told with a standard error of .035 each; within seven of
    them: wrong with probability under 1e-11.
    """
    rng = np.random.default_rng(0)
    true = rng.normal(np.log(30.0), 1.0, 400)
    seen = true + rng.normal(0, 1.0, 400)
    pooled = np.log(pooled_dispersions([about(np.exp(x), 1.0) for x in seen]))
    slope, intercept = np.polyfit(seen - np.log(30.0), pooled - np.log(30.0), 1)
    assert abs(slope - 0.5) < 0.25
    assert abs(intercept) < 0.25
    assert ((pooled - true) ** 2).mean() < 0.75 * ((seen - true) ** 2).mean()


def test_weak_evidence_on_many_tables_settles_at_their_dispersion():
    """One deviation of each of 1,500 tables, with twice as much noise variance as signal.

    The mean square of the deviations estimates the signal with a relative standard error of 3 / sqrt(750), or
    0.11. The bounds are five and nine standard errors away: wrong with a probability below 1e-6.
    """
    noise, true = 1e5, 50.0
    deviations = np.random.default_rng(0).normal(0.0, np.sqrt(1000 * true + noise), 1500)
    variances = 1000 * DISPERSIONS + noise
    scores = [-0.5 * (np.log(variances) + deviation**2 / variances) for deviation in deviations]
    settled = np.median(pooled_dispersions(scores, iterations=SETTLING_ITERATIONS))
    assert 0.45 * true < settled < 2 * true
    assert np.median(pooled_dispersions(scores)) < 0.5 * settled


@given(st.lists(st.integers(0, len(DISPERSIONS) - 1), min_size=1, max_size=60), st.booleans())
@example([4, 4, 4], False)
def test_certain_tables_are_pooled_without_rounding_trouble(places, alike):
    """Where each likelihood leaves one dispersion possible, rounding must not make a variance negative."""
    places = [places[0]] * len(places) if alike else places
    likelihoods = [np.where(np.arange(len(DISPERSIONS)) == place, 0.0, -1e6) for place in places]
    np.testing.assert_allclose(pooled_dispersions(likelihoods), DISPERSIONS[places])


@given(st.lists(st.lists(st.floats(-1e30, 0.0), min_size=36, max_size=36), min_size=1, max_size=5))
def test_pooled_dispersions_lie_on_the_grid_whatever_the_likelihoods(likelihoods):
    dispersions = pooled_dispersions([np.array(likelihood) for likelihood in likelihoods])
    assert dispersions.shape == (len(likelihoods),)
    assert (
        (dispersions >= DISPERSIONS[0] * (1 - 1e-9)) & (dispersions <= DISPERSIONS[-1] * (1 + 1e-9))
    ).all()


def test_of_very_many_tables_evenly_spaced_ones_say_what_is_typical(monkeypatch):
    centres = np.exp(np.random.default_rng(0).normal(1.0, 1.0, 5000))
    scores = [about(centre, 1.0) for centre in centres]
    exact = np.log(pooled_dispersions(scores))
    monkeypatch.setattr(module, "MOST_POOLED", 1000)
    assert 1e-6 < np.abs(np.log(pooled_dispersions(scores)) - exact).max() < 0.1
    monkeypatch.setattr(module, "MOST_POOLED", 5000)
    assert np.array_equal(np.log(pooled_dispersions(scores)), exact)


@pytest.mark.parametrize("shape", [(2, 2), (2, 7), (5, 5), (6, 3)])
def test_a_table_whose_columns_determine_each_other_has_the_largest_possible_dispersion(shape):
    """The sum of (x - mu)^2 / mu is then n (min - 1), and no more dispersion is possible."""
    size, n = min(shape), 600.0
    table = np.zeros(shape)
    for code in range(max(shape)):
        table[min(code, shape[0] - 1), min(code, shape[1] - 1)] += n / max(shape)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / n
    departs = expected > 0
    squares = ((table - expected)[departs] ** 2 / expected[departs]).sum()
    assert squares == pytest.approx(n * (size - 1))
    dispersion = squares / ((shape[0] - 1) * (shape[1] - 1))
    possible = DISPERSIONS[np.isfinite(log_possible(expected))]
    assert dispersion <= possible[-1] < dispersion * np.exp(STEP) * (1 + 1e-9)
