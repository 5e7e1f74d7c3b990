"""Noise that several owners add: its law, its price, and what the sum of the shares promises."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import gammaln, ndtr
from scipy.stats import chi2

from privsyn.errors import InputError
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.private import noise as noise_module
from privsyn.private.accounting import delta_for, rho_of
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import SharedNoise, release
from privsyn.private.noise_laws import FAR, GAUSSIAN, LAPLACE, share_sigma, shared_gaussian, shared_laplace
from privsyn.private.randomness import os_entropy
from privsyn.private.row_totals import RowTotals
from privsyn.private.samplers.gaussian import LARGEST_SIGMA
from privsyn.private.samplers.polya import _library_tails, _tail_units, _tails, laplace_share, polya

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


def test_counts_without_the_rows_of_a_lost_owner_are_scaled_with_their_noise(monkeypatch):
    """To the rows of all, by released totals: 60 rows before, 40 of them afterwards."""
    monkeypatch.setattr(noise_module, "rounded_gaussian", lambda sigma, size, bits: np.zeros(size, np.int64))
    domain = Domain(("a", "b"), (3, 4))
    rng = np.random.default_rng(3)
    codes = np.stack([rng.integers(0, size, 60) for size in domain.sizes], axis=1)
    lost = 0
    source = SharedNoise(3, 2, lambda size, scale, noisy: noisy(), totals=RowTotals(lambda: lost))
    every, fewer = (PrivateTable(Records(domain, codes[:rows]), source) for rows in (60, 40))
    pair, signs = ("a", "b"), {"a": np.array([-1, 0, 1]), "b": np.array([-1, -1, 1, 1])}
    before = every.one_ways(0.1)
    assert [table.marginal.total for table in before] == [60, 60]
    lost = 1
    (table,) = fewer.marginals((pair,), np.array([0.02]))
    assert table.marginal.total == pytest.approx(60)
    assert table.variance.max() == pytest.approx(1.5**2 * 1.5 * fewer.spends[-1].sigma ** 2)
    assert np.allclose(table.marginal.counts, 1.5 * np.histogram2d(*codes[:40].T, bins=domain.sizes)[0])
    (sums, variance) = fewer.concordances((pair,), signs, 0.02)
    product = signs["a"][codes[:40, 0]] * signs["b"][codes[:40, 1]]
    assert sums[0] == pytest.approx(1.5 * product.sum())
    assert variance == pytest.approx(1.5**2 * 1.5 * fewer.spends[-1].sigma ** 2)
    (residual,) = fewer.residuals((pair,), np.array([0.02]))
    assert residual.marginal.total == pytest.approx(0)
    assert residual.variance.max() == pytest.approx(1.5**3 * fewer.spends[-1].sigma ** 2 / 12**2)


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


# --- Laplace -----------------------------------------------------------------------------------------------


def polya_masses(scale, r, size):
    """P(0), ..., P(size - 1) of the Polya law: the reference, from gamma functions."""
    j = np.arange(size)
    return np.exp(
        gammaln(r + j) - gammaln(r) - gammaln(j + 1) - j / scale + r * np.log(-np.expm1(-1 / scale))
    )


def differences(masses, times):
    """The law of the sum of `times` differences of two variables with these masses, and where 0 stands."""
    law = np.convolve(masses, masses[::-1])
    total = law
    for _ in range(times - 1):
        total = np.convolve(total, law)
    return total, times * (len(masses) - 1)


def laplace_masses(scale, width):
    """Probabilities of the discrete Laplace for -width .. width."""
    p = np.exp(-1 / scale)
    return (1 - p) / (1 + p) * p ** np.abs(np.arange(-width, width + 1))


@pytest.mark.parametrize("owners", [3, 10])
@pytest.mark.parametrize("scale", [0.4, 1.0, 6.5])
def test_the_shares_of_all_honest_owners_sum_to_the_discrete_laplace(owners, scale):
    """To 1e-12 in every probability; with r = 1 / (h + 1) they differ."""
    width = int(45 * scale) + 20

    def error(r):
        total, zero = differences(polya_masses(scale, r, width), owners)
        middle = total[zero - width // 2 : zero + width // 2 + 1]
        return np.abs(middle - laplace_masses(scale, width // 2)).max()

    assert error(1 / owners) < 1e-12
    assert error(1 / (owners + 1)) > 1e-3


def share_likelihood(drawn, scale, owners):
    """Chi-square p-value of shares under their law, over integers and the two tails."""
    law, zero = differences(polya_masses(scale, 1 / owners, int(45 * scale) + 20), 1)
    expected = law * len(drawn)
    common = np.flatnonzero(expected > 50)
    seen = Counter(drawn.tolist())
    counts = np.array([seen[place - zero] for place in common.tolist()])
    tails = [expected[: common[0]].sum(), expected[common[-1] + 1 :].sum()]
    outside = [(drawn < common[0] - zero).sum(), (drawn > common[-1] - zero).sum()]
    counts, expected = np.append(counts, sum(outside)), np.append(expected[common], sum(tails))
    if expected[-1] < 20:
        counts, expected = counts[:-1], expected[:-1]
    return float(chi2.sf(np.sum((counts - expected) ** 2 / expected), len(counts) - 1))


@pytest.mark.parametrize("owners", [3, 10])
@pytest.mark.parametrize("scale", [0.4, 7.3, 200.0])
def test_shares_of_laplace_noise_follow_their_law_and_no_other(owners, scale):
    """Two-sided: neither too far from the law nor too near. Each side fails in 1e-8 of all runs."""
    size = 10**6
    likelihood = share_likelihood(laplace_share(scale, owners, size, os_entropy), scale, owners)
    assert 1e-8 < likelihood < 1 - 1e-8
    one_polya = polya(scale, owners, size, os_entropy)
    for wrong in (
        laplace_share(scale, owners + 1, size, os_entropy),
        laplace_share(0.93 * scale, owners, size, os_entropy),
        one_polya,
    ):
        assert share_likelihood(wrong, scale, owners) < 1e-8


@pytest.mark.parametrize("owners", [3, 10])
def test_shares_that_are_drawn_sum_to_the_discrete_laplace(owners):
    scale, size = 7.3, 200_000
    draws = sum(laplace_share(scale, owners, size, os_entropy) for _ in range(owners))
    width = int(-np.log(50 / size * 14) * scale)
    expected = laplace_masses(scale, width) * size
    seen = Counter(draws.tolist())
    counts = np.array([seen[x] for x in range(-width, width + 1)])
    counts, expected = np.append(counts, size - counts.sum()), np.append(expected, size - expected.sum())
    statistic = np.sum((counts - expected) ** 2 / expected)
    assert RARE / 2 < chi2.sf(statistic, len(expected) - 1) < 1 - RARE / 2


def laplace_divergence(scale, r, delta):
    """The largest log of a ratio of probabilities of the difference of two Polya variables and its shift."""
    law, zero = differences(polya_masses(scale, r, int(45 * scale) + 20), 1)
    middle = law[zero - int(5 * scale) : zero + int(5 * scale) + 1]
    return np.abs(np.log(middle[delta:] / middle[:-delta])).max()


@pytest.mark.parametrize("honest", [2, 3])
@pytest.mark.parametrize("delta", [1, 3])
def test_honest_laplace_shares_keep_epsilon_and_fewer_do_not(honest, delta):
    """With more shares than the promise needs it holds too: further shares are post-processing."""
    scale = 10.0
    for owners in range(honest, 2 * honest):
        assert laplace_divergence(scale, owners / honest, delta) <= delta / scale * (1 + 1e-9)
    assert laplace_divergence(scale, 1.0, delta) == pytest.approx(delta / scale)
    assert laplace_divergence(scale, (honest - 1) / honest, delta) > 1.2 * delta / scale


@pytest.mark.parametrize(("owners", "honest"), [(3, 2), (3, 3), (5, 3), (10, 6)])
@pytest.mark.parametrize("scale", [0.5, 20.0])
def test_nothing_that_the_law_states_is_narrower_than_the_noise_of_all_owners(owners, honest, scale):
    law, excess = shared_laplace(owners, honest), owners / honest
    masses, zero = differences(polya_masses(scale, excess, int(60 * scale) + 60), 1)
    x = np.arange(len(masses)) - zero
    assert law.variance(scale) == pytest.approx((masses * x**2).sum(), rel=1e-9)
    assert law.rho(0.5) == pytest.approx(LAPLACE.rho(0.5) / excess)
    assert law.cost(scale, 1.0) == LAPLACE.cost(scale, 1.0)
    above = np.cumsum(masses[::-1])[::-1]  # P(x >= place - zero)
    for risk in (0.2, 1e-3, 1e-6):
        assert above[zero + law.quantile(scale, risk) + 1] <= risk
    if scale > 1:  # both are about a continuous law, which differs by a share of 1 / scale
        for risk in (0.025, 1e-3, 1e-6):
            far = law.deviations(risk) * law.variance(scale) ** 0.5
            assert above[zero + int(far) + 1] <= risk * (1 + 1 / scale)
            assert far < 1.5 * LAPLACE.deviations(risk) * LAPLACE.variance(scale) ** 0.5
        assert above[zero + int(FAR * law.tail(scale)) + 1] <= ndtr(-FAR) * (1 + 1 / scale)


def test_laplace_answers_of_several_owners_have_the_variance_that_the_law_states():
    scale, size = 20.0, 200_000
    source = SharedNoise(5, 3, lambda size, scale, noisy: sum(noisy() for _ in range(5)), pure=True)
    noisy = release(np.full(size, 7), scale, source)
    law = shared_laplace(5, 3)
    # The kurtosis of the sum is 3 + 3 / (5 / 3): the variance of the sample variance is 3.8 v^2 / n.
    assert noisy.var() / law.variance(scale) == pytest.approx(1, abs=5.4 * (3.8 / size) ** 0.5)
    assert abs(noisy.mean() - 5 * 7) < 5.4 * (law.variance(scale) / size) ** 0.5
    assert "any 3 of them add the noise of the scale below" in source.name
    assert "1.291 times its standard deviation" in source.name


# --- every word of a Polya variable is settled rightly -----------------------------------------------------


def exact_tail(j, scale, owners):
    """P(x >= j) to 300 bits: 1 less the sum of the probabilities below j."""
    with mpmath.workprec(400):
        r, p = mpmath.mpf(1) / owners, mpmath.exp(-1 / mpmath.mpf(scale))
        mass, below = (1 - p) ** r, mpmath.mpf(0)
        for i in range(j):
            below += mass
            mass *= p * (r + i) / (i + 1)
        return Fraction(int(mpmath.nint((1 - below) * mpmath.mpf(2) ** 300)), 2**300)


def script(*words):
    """Return a source that reads these words out, one or more at a time, and the words that are left."""
    rest = list(words)

    def bits(size):
        drawn, rest[:size] = rest[:size], []
        return np.array(drawn, dtype=np.uint64)

    return bits, rest


@pytest.mark.parametrize(
    ("scale", "owners", "j"),
    [(0.2, 3, 1), (0.2, 2, 3), (1.0, 3, 1), (1.0, 10, 5), (7.3, 3, 1), (7.3, 2, 40), (1000.5, 10, 300)],
)
def test_a_word_at_a_tail_of_a_polya_variable_is_decided_by_further_words(scale, owners, j):
    k, rest = divmod(exact_tail(j, scale, owners) * 2**63, 1)
    first, rest = divmod(rest * 2**64, 1)
    second = int(rest * 2**64)
    cases = [
        ([k - 1, 7], j),  # doubtful, but only to double precision
        ([k + 1, 7], j - 1),
        ([k, first - 1], j),
        ([k, first + 1], j - 1),
        ([k, first, second - 1], j),
        ([k, first, second + 1], j - 1),
    ]
    for (start, *more), expected in cases:
        bits, left = script(2 * start, *more)
        assert polya(scale, owners, 1, bits)[0] == expected
        assert not left


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.3, 1000.5, 1e6, LARGEST_SIGMA])
def test_words_from_all_over_the_range_agree_with_exact_tails(scale):
    """Compared with the tail by mpmath's own hypergeometric function."""

    def tail(j):
        with mpmath.workdps(60):
            r, p = mpmath.mpf(1) / 3, mpmath.exp(-1 / mpmath.mpf(scale))
            if j == 0:
                return mpmath.mpf(2)
            mass = mpmath.gammaprod([r + j], [r, j + 1]) * p**j * (1 - p) ** r
            if scale < 1:
                return mass * mpmath.hyp2f1(r + j, 1, j + 1, p)
            return 1 - mass * j / r * mpmath.hyp2f1(r + j, 1, r + 1, 1 - p)

    for k in [j << 54 for j in range(1, 512, 37)] + [(1 << power) - 1 for power in range(0, 64, 7)]:
        bits, _ = script(2 * k, 0x5555_5555_5555_5555)
        (drawn,) = polya(scale, 3, 1, bits).tolist()
        with mpmath.workdps(60):
            low, high = mpmath.mpf(k) / 2**63, mpmath.mpf(k + 1) / 2**63
            assert tail(drawn + 1) < high
            assert low < tail(drawn)


def test_the_tails_of_double_precision_keep_within_their_bound():
    """Those of the table and of the library, in the range that decides without further words."""
    for scale, owners in ((0.3, 2), (7.3, 3), (200.0, 10), (2000.0, 3)):
        tails = _tails(scale, owners)
        for j in np.unique(np.geomspace(1, 20 * scale, 12).astype(int)).tolist():
            exact = _tail_units(j, scale, owners, 200) / 2**232
            assert tails.values[j] == pytest.approx(exact, rel=1e-12)
            assert _library_tails(scale, owners, np.array([j]))[0] == pytest.approx(exact, rel=1e-13)


def test_little_scale_is_little_noise_and_a_wrong_scale_is_refused():
    for scale in (5e-324, 1e-200, 1e-3):
        assert laplace_share(scale, 3, 50, os_entropy).tolist() == [0] * 50
    for scale in (0.0, -1.0, np.nan, np.inf, 2 * LARGEST_SIGMA):
        with pytest.raises(InputError, match="scale"):
            laplace_share(scale, 3, 1, os_entropy)


def test_a_tail_far_below_a_unit_is_none():
    """P(x >= j) <= e^(-j / scale): at 65 scales it is below the units of 2^-32."""
    assert _tail_units(65 * 3 + 1, 3.0, 2, 0) == 0
    assert _tail_units(1, 3.0, 2, 0) > 0


def test_nothing_is_scaled_while_the_number_of_rows_is_unknown():
    assert RowTotals(lambda: 0).factor == 1
    assert RowTotals(lambda: 1, {0: (1.0, -3.0), 1: (1.0, 20.0)}).factor == 1


def test_the_share_of_an_owner_is_drawn_from_the_operating_system():
    assert SharedNoise(3, 2, lambda size, scale, noisy: noisy()).bits is os_entropy
