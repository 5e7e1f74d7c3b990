"""Noise that several owners add: its law, its price, and what the sum of the shares promises."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chi2

from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.private import noise as noise_module
from privsyn.private.accounting import delta_for, rho_of
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import SharedNoise, release
from privsyn.private.noise_laws import GAUSSIAN, share_sigma, shared_gaussian

RARE = 1e-7
"""Probability that a test of randomness fails although the law is right."""


def alone(size, scale, noisy):
    """The sum over a single owner: what it sends."""
    return noisy()


def pmf(sigma, width):
    """Probabilities of round(Z), Z normal, for -width .. width."""
    edges = np.arange(-width, width + 2) - 0.5
    half = np.where(edges < 0, ndtr(edges / sigma), -ndtr(-edges / sigma))  # differences of small tails
    gaps = np.diff(half)
    gaps[width] += 1  # the change of the formula at 0 took 1 away
    return gaps


def summed(sigma, times, width):
    law = pmf(sigma, width)
    total = law
    for _ in range(times - 1):
        total = np.convolve(total, law)
    return total


@pytest.mark.parametrize(("honest", "sigma"), [(2, 0.6), (3, 4.0)])
def test_the_sum_of_shares_has_the_law_of_the_exact_convolution(honest, sigma):
    source = SharedNoise(2 * honest - 1, honest, alone)
    draws = sum(source.draw(sigma, 100_000) for _ in range(honest))
    share = share_sigma(sigma, honest)
    law = summed(share, honest, int(12 * share) + 2)
    middle = len(law) // 2
    seen = Counter(draws.tolist())
    expected = law * len(draws)
    common = np.flatnonzero(expected > 20)
    counts = np.array([seen[place - middle] for place in common] + [0])
    wanted = np.append(expected[common], len(draws) - expected[common].sum())
    counts[-1] = len(draws) - counts.sum()
    statistic = ((counts - wanted) ** 2 / np.maximum(wanted, 1e-9)).sum()
    assert chi2.sf(statistic, len(common)) > RARE / 2  # neither too far
    assert chi2.cdf(statistic, len(common)) > RARE / 2  # nor too near


def divergences(share, honest, epsilons):
    """The exact hockey-stick divergences between the sums of two neighbouring tables: moved by `honest`."""
    law = summed(share, honest, int(14 * share) + 4)
    moved = np.concatenate([np.zeros(honest), law])
    still = np.concatenate([law, np.zeros(honest)])
    return [np.maximum(moved - np.exp(epsilon) * still, 0).sum() for epsilon in epsilons]


EPSILONS = (0.01, 0.1, 0.3, 0.7, 1.5)


@pytest.mark.parametrize("honest", [2, 3, 4])
@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.0, 7.0])
def test_the_shares_of_the_honest_keep_the_promise_without_slack(honest, sigma):
    rho = rho_of(sigma, 1.0)
    allowed = [delta_for(rho, epsilon, "gaussian") for epsilon in EPSILONS]
    found = divergences(share_sigma(sigma, honest), honest, EPSILONS)
    assert all(delta <= most + 1e-13 for delta, most in zip(found, allowed, strict=True))


def test_shares_that_are_two_percent_too_small_break_the_promise():
    allowed = [delta_for(rho_of(7.0, 1.0), epsilon, "gaussian") for epsilon in EPSILONS]
    found = divergences(0.98 * share_sigma(7.0, 2), 2, EPSILONS)
    assert any(delta > most for delta, most in zip(found, allowed, strict=True))


def test_the_sigma_of_a_share_is_rounded_up():
    for sigma in np.random.default_rng(0).uniform(0.1, 1e6, 200).tolist():
        for honest in (2, 3, 5, 63):
            assert Fraction(share_sigma(sigma, honest)) ** 2 >= honest * Fraction(sigma) ** 2


@pytest.mark.parametrize(("owners", "honest"), [(3, 2), (3, 3), (5, 3), (5, 5)])
def test_the_law_states_the_variance_that_is_in_the_answers(owners, honest):
    sigma, size = 20.0, 200_000
    source = SharedNoise(owners, honest, lambda size, scale, noisy: sum(noisy() for _ in range(owners)))
    noisy = release(np.zeros(size, np.int64), sigma, source)
    law = shared_gaussian(owners, honest)
    assert f"any {honest} of them add the sigma below" in source.name
    # The variance of a sample variance is 2 v^2 / n; 5.4 of its deviations have probability below 1e-7.
    assert noisy.var() / (law.variance(sigma) + 1 / 12) == pytest.approx(1, abs=5.4 * (2 / size) ** 0.5)
    assert abs(noisy.mean()) < 5.4 * (law.variance(sigma) / size) ** 0.5
    assert law.cost(sigma, 1.0) == GAUSSIAN.cost(sigma, 1.0)
    assert law.rho(0.5) == pytest.approx(1 / (2 * law.variance(GAUSSIAN.scale(0.5, 1.0))))
    assert law.tail(sigma) ** 2 == pytest.approx(law.variance(sigma))


def test_later_arithmetic_knows_the_noise_that_is_in_the_answers():
    domain = Domain(("a", "b"), (3, 4))
    records = Records(domain, np.zeros((50, 2), np.int64))
    of_three = SharedNoise(3, 2, lambda size, scale, noisy: noisy() + noisy() + noisy())
    private = PrivateTable(records, of_three)
    (measured,) = private.marginals((("a", "b"),), np.array([0.02]))
    *_, first = private.one_ways(0.02)
    spends = private.spends
    assert np.allclose(measured.variance, 1.5 * spends[0].sigma ** 2)
    assert np.allclose(first.variance, 1.5 * spends[1].sigma ** 2)
    assert [spend.cost for spend in spends] == pytest.approx([0.02] * 2)
    assert private.rho_of(0.3) == pytest.approx(0.2)


def test_halves_are_rounded_to_even_numbers():
    totals = np.array([-3, -2, -1, 0, 1, 2, 3, 5])
    source = SharedNoise(3, 2, lambda size, scale, noisy: totals)
    assert source.answer(np.zeros(8, np.int64), 1.0).tolist() == [-2, -1, 0, 0, 0, 1, 2, 2]
    source = SharedNoise(5, 3, lambda size, scale, noisy: totals)
    assert source.answer(np.zeros(8, np.int64), 1.0).tolist() == [-1, -1, 0, 0, 0, 1, 1, 2]


@pytest.mark.parametrize("question", ["one_ways", "marginals"])
def test_one_more_row_moves_the_sum_by_at_most_its_sensitivity(question, monkeypatch):
    """With the noise off, at the place where the numbers leave the owner: in units of 1 / honest."""
    monkeypatch.setattr(noise_module, "rounded_gaussian", lambda sigma, size, bits: np.zeros(size, np.int64))
    domain = Domain(("a", "b", "c"), (3, 4, 2))
    rng = np.random.default_rng(3)
    codes = np.stack([rng.integers(0, size, 60) for size in domain.sizes], axis=1)
    sent = []

    def total(size, scale, noisy):
        sent[-1].append(noisy())
        return sent[-1][-1]

    for rows in (60, 59):
        sent.append([])
        private = PrivateTable(Records(domain, codes[:rows]), SharedNoise(5, 3, total))
        if question == "one_ways":
            private.one_ways(0.1)
        else:
            private.marginals((("a", "b"),), np.array([0.1]))
        (spend,) = private.spends
    with pytest.raises(ValueError, match="not a sum"):
        private.departures((Marginal(domain.project(("a", "b")), np.full((3, 4), 5.0)),), 0.1)
    moved = np.linalg.norm(np.concatenate(sent[0]) - np.concatenate(sent[1]))
    assert moved == pytest.approx(3 * spend.sensitivity)
    assert share_sigma(spend.sigma, 3) / 3 * 3**0.5 >= spend.sigma  # of three shares, in records
