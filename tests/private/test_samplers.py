"""The laws of the noise are exact: each word is settled rightly, and many have the right distribution."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import exp

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import chi2

from privsyn.errors import InputError
from privsyn.private.noise_laws import FAR, GAUSSIAN, LAPLACE, epsilon_of
from privsyn.private.randomness import os_entropy, seeded_bits
from privsyn.private.samplers import gaussian, laplace
from privsyn.private.samplers.discrete_gaussian import discrete_gaussian, exponential_units
from privsyn.private.samplers.gaussian import BLOCK, FEWEST, LARGEST_SIGMA, rounded_gaussian
from privsyn.private.samplers.laplace import discrete_laplace

CHANCE = 1e-8
"""Probability with which a test of a distribution fails although the distribution is right."""

DRAWS = 10**6
SCALES = [0.3, 1.0, 7.3, 1000.5, 1e6]


class Script:
    """A source of bits that reads out the words it was given, and knows how many it has read."""

    def __init__(self, words):
        self.words = iter(words)
        self.read = 0

    def __call__(self, size):
        self.read += size
        return np.array([next(self.words) for _ in range(size)], dtype=np.uint64)


def gaussian_tail(magnitude, sigma):
    """P(|x| >= magnitude) of the rounded Gaussian to 300 bits: P(|Z| > magnitude - 1/2)."""
    if magnitude == 0:
        return Fraction(1)
    with mpmath.workprec(320):
        edge = mpmath.mpf(magnitude) - mpmath.mpf(0.5)
        units = mpmath.erfc(edge / (mpmath.mpf(sigma) * mpmath.sqrt(2))) * mpmath.mpf(2) ** 300
        return Fraction(int(mpmath.nint(units)), 2**300)


def laplace_tail(magnitude, scale):
    """P(|x| >= magnitude) to 300 bits: the law of the distribution, summed over both signs."""
    if magnitude == 0:
        return Fraction(1)
    with mpmath.workprec(360):
        p = mpmath.exp(-1 / mpmath.mpf(scale))
        return Fraction(int(mpmath.nint(2 * p**magnitude / (1 + p) * mpmath.mpf(2) ** 300)), 2**300)


SAMPLERS = {"gaussian": (rounded_gaussian, gaussian_tail), "laplace": (discrete_laplace, laplace_tail)}
each = pytest.mark.parametrize(("sampler", "tail"), SAMPLERS.values(), ids=SAMPLERS)


def lies_in(tail, magnitude, scale, low, high):
    """Whether every U in [low, high] gives this magnitude; no U is at an end that 300 bits cannot tell."""
    above = Fraction(2) if magnitude == 0 else tail(magnitude, scale)
    return tail(magnitude + 1, scale) <= low and high <= above


def interval(k, *more):
    """The U that the words drawn so far allow."""
    numerator, known = k, 63
    for word in more:
        numerator, known = numerator << 64 | word, known + 64
    return Fraction(numerator, 2**known), Fraction(numerator + 1, 2**known)


# --- every word is settled rightly -------------------------------------------------------------------------


def test_the_tail_sums_to_the_law_of_the_discrete_laplace():
    """The reference: P(x) = (1 - p) / (1 + p) p^|x| for every x, and no other law has these tails."""
    for scale, x in product((0.5, 2.0), range(1, 6)):
        with mpmath.workprec(360):
            p = mpmath.exp(-1 / mpmath.mpf(scale))
            at_x = (1 - p) / (1 + p) * p**x
            assert abs(float(laplace_tail(x, scale) - laplace_tail(x + 1, scale)) - 2 * float(at_x)) < 1e-15
            assert abs(float(1 - laplace_tail(1, scale)) - float((1 - p) / (1 + p))) < 1e-15


@pytest.mark.slow
def test_the_librarys_inverse_keeps_within_its_bound():
    rng = np.random.default_rng(1)
    near_the_tail = [int(2**power) for power in rng.uniform(35, 63, 1500)]
    near_the_middle = [2**63 - int(2**power) for power in rng.uniform(1, 62, 500)]
    seam = int(np.exp(-2) * 2**64)  # where the library changes its approximation
    ks = [FEWEST, *near_the_tail, *near_the_middle, *range(seam - 2**12, seam + 2**12, 2**8)]
    computed = -ndtri((np.array(ks, dtype=np.int64) + 0.5) * 2.0**-64)
    for k, x in zip(ks, computed.tolist(), strict=True):
        with mpmath.workdps(
            40
        ):  # one step of Newton's method from x: its own error is of the order of x_error^2
            for end in (0, 0.5, 1):
                u = (mpmath.mpf(k) + end) / mpmath.mpf(2) ** 63
                error = abs(mpmath.erfc(mpmath.mpf(x) / mpmath.sqrt(2)) - u) / (2 * mpmath.npdf(x))
                assert error < (1e-14 if end == 0.5 else gaussian.TOLERANCE)


def test_the_error_of_double_precision_of_a_logarithm_keeps_within_its_bound():
    rng = np.random.default_rng(1)
    for scale in (1.0, 1000.5):
        for k in [FEWEST, *(int(2**power) for power in rng.uniform(35, 63, 300))]:
            ours = -np.log((k + 0.5) * 2.0**-64 * (1 + np.exp(-1 / scale)))
            with mpmath.workdps(40):
                for end in (0, 1):
                    u = (mpmath.mpf(k) + end) / mpmath.mpf(2) ** 63
                    truth = -mpmath.log(u * (1 + mpmath.exp(-1 / mpmath.mpf(scale))) / 2)
                    assert abs(truth - mpmath.mpf(float(ours))) < laplace.TOLERANCE


@pytest.mark.slow
@each
@pytest.mark.parametrize("scale", [0.2, *SCALES, LARGEST_SIGMA])
def test_words_from_all_over_the_range_agree_with_mpmath(sampler, tail, scale):
    ks = [j << 54 for j in range(0, 512, 3)] + [(1 << power) - 1 for power in range(64)]
    second = 0x5555_5555_5555_5555
    for k in ks:
        bits = Script([2 * k, second])
        drawn = int(sampler(scale, 1, bits)[0])
        assert lies_in(tail, drawn, scale, *interval(k, second))
        assert bits.read == 2 or lies_in(tail, drawn, scale, *interval(k)), "decided although in doubt"


AT_TAILS = [
    *(("gaussian", scale, magnitude) for scale, magnitude in [(0.3, 1), (0.3, 2), (1.0, 1), (1.0, 5)]),
    *(("gaussian", scale, magnitude) for scale, magnitude in [(7.3, 1), (7.3, 31)]),
    *(("gaussian", scale, magnitude) for scale in (1000.5, 1e6) for magnitude in (1, 2, 3, 1001)),
    *(("laplace", scale, magnitude) for scale, magnitude in [(0.2, 1), (0.2, 3), (1.0, 1), (1.0, 5)]),
    *(("laplace", scale, magnitude) for scale, magnitude in [(7.3, 1), (7.3, 40), (1e6, 7)]),
]


@pytest.mark.parametrize(("law", "scale", "magnitude"), AT_TAILS)
def test_a_word_at_a_tail_is_decided_by_further_words(law, scale, magnitude):
    sampler, tail = SAMPLERS[law]
    k, rest = divmod(tail(magnitude, scale) * 2**63, 1)
    first, rest = divmod(rest * 2**64, 1)
    second = int(rest * 2**64)
    cases = [
        ([k - 1, 7], magnitude),  # doubtful, but only to double precision
        ([k + 1, 7], magnitude - 1),
        ([k, first - 1], magnitude),  # a smaller tail lies further out
        ([k, first + 1], magnitude - 1),
        ([k, first, second - 1], magnitude),
        ([k, first, second + 1], magnitude - 1),
    ]
    for (start, *more), expected in cases:
        for sign in (0, 1):
            bits = Script([2 * start + sign, *more])
            assert sampler(scale, 1, bits)[0] == (-1) ** sign * expected
            assert bits.read == 1 + len(more)


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 1000.5])
@pytest.mark.parametrize("more", [[2**63], [1], [0], [2**64 - 1]])
def test_the_last_interval_has_no_end_and_is_always_looked_into(sigma, more):
    spare = [2**62 + 12345] * 3
    bits = Script([0, *more, *spare])
    drawn = int(rounded_gaussian(sigma, 1, bits)[0])
    read = bits.read - 1
    assert read >= 1
    assert lies_in(gaussian_tail, drawn, sigma, *interval(0, *[*more, *spare][:read]))


@each
def test_only_the_smallest_words_are_doubtful_by_themselves(sampler, tail):
    for k, words in ((FEWEST - 1, 2), (FEWEST, 1)):
        bits = Script([2 * k, 7])
        sampler(1.0, 1, bits)
        assert bits.read == words


@each
def test_next_to_no_scale_is_next_to_no_noise(sampler, tail):
    for scale in (5e-324, 1e-200, 1e-3):
        assert sampler(scale, 2, Script([0, 2**64 - 1, 1, 1])).tolist() == [0, 0]


def test_doubt_is_as_rare_as_the_tolerance_says():
    bits, draws = seeded_bits(np.random.default_rng(5)), 200_000
    for sigma, most in ((1000.0, 3), (1e6, 100)):  # 0.04 and 40 expected; the seed is fixed
        read = 0

        def counting(size):
            nonlocal read
            read += size
            return bits(size)

        rounded_gaussian(sigma, draws, counting)
        assert read - draws <= most
    assert read - draws >= 10  # and the count does count


# --- many words have the right distribution ----------------------------------------------------------------


def gaussian_likelihood(drawn, sigma):
    """Chi-square p-value of `drawn` under round(N(0, sigma^2)), over some 64 bins of integers."""
    edges = np.unique(np.rint(sigma * ndtri(np.linspace(0, 1, 65)[1:-1]))) + 0.5
    with mpmath.workdps(30):
        cumulative = [float(mpmath.ncdf(edge / sigma)) for edge in edges]
    expected = len(drawn) * np.diff([0.0, *cumulative, 1.0])
    counts = np.histogram(drawn, bins=[-np.inf, *edges, np.inf])[0]
    kept = expected > 100
    counts, expected = (np.append(x[kept], x[~kept].sum()) for x in (counts, expected))
    if expected[-1] < 100:  # too few outside to be a bin of their own
        counts, expected = (np.append(x[1:-1], x[0] + x[-1]) for x in (counts, expected))
    return float(chi2.sf(np.sum((counts - expected) ** 2 / expected), len(counts) - 1))


def laplace_likelihood(drawn, scale):
    """Chi-square p-value under the discrete Laplace, over bins of integers on both sides of 0."""
    reach = scale * np.log(np.linspace(1, 40, 24)[1:])
    ends = np.unique(np.append([1], np.ceil(reach).astype(int) + 1))
    p = np.exp(-1 / scale)
    above = np.array([p**j / (1 + p) for j in ends.tolist()])
    right = above - np.append(above[1:], 0.0)
    expected = len(drawn) * np.concatenate([right[::-1], [1 - 2 * above[0]], right])
    edges = np.concatenate([-np.inf, *[[]], -(ends[::-1] - 0.5), ends - 0.5, np.inf], axis=None)
    counts = np.histogram(drawn, bins=edges)[0]
    return float(chi2.sf(np.sum((counts - expected) ** 2 / expected), len(counts) - 1))


def discrete_gaussian_likelihood(drawn, sigma):
    """Chi-square p-value under the discrete Gaussian: its probabilities, summed in bins of integers."""
    reach = int(40 * min(sigma, 2_000) + 2)
    stride = max(1, int(sigma / 2_000))  # the density hardly changes over a stride: midpoints sum it to 1e-9
    x = np.arange(-reach, reach + 1, dtype=np.float64) * stride
    shares = np.exp(-((x / sigma) ** 2) / 2)
    shares /= shares.sum()
    bins = np.unique(np.searchsorted(np.cumsum(shares), np.linspace(0, 1, 61)[1:-1]))
    edges = np.concatenate([[-np.inf], x[bins] + stride / 2, [np.inf]])
    expected = len(drawn) * np.add.reduceat(shares, np.concatenate([[0], bins + 1]))
    counts = np.histogram(drawn, edges)[0]
    return float(chi2.sf(np.sum((counts - expected) ** 2 / expected), len(counts) - 1))


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize(
    ("sampler", "likelihood", "wrong"),
    [
        (rounded_gaussian, gaussian_likelihood, 0.1),
        (discrete_laplace, laplace_likelihood, 0.03),
        (discrete_gaussian, discrete_gaussian_likelihood, 0.05),
    ],
)
def test_draws_follow_their_law_and_no_other(sampler, likelihood, wrong, scale):
    assert likelihood(sampler(scale, DRAWS, os_entropy), scale) > CHANCE
    for factor in (1 - wrong, 1 + wrong):  # a test that cannot fail is no test
        assert likelihood(sampler(factor * scale, DRAWS, os_entropy), scale) < CHANCE


def test_a_doubtful_acceptance_is_decided_by_further_words():
    """At sigma 1 the proposal 2 of scale 2 is accepted with probability exp(-(2 - 1/2)^2 / 2)."""
    with mpmath.workprec(360):
        chance = Fraction(int(mpmath.nint(mpmath.exp(mpmath.mpf(-9) / 8) * mpmath.mpf(2) ** 300)), 2**300)
    k, rest = divmod(chance * 2**63, 1)
    first = int(rest * 2**64)
    proposal = int((laplace_tail(2, 2.0) + laplace_tail(3, 2.0)) / 2 * 2**63) * 2  # and its sign
    assert discrete_laplace(2.0, 1, Script([proposal])) == 2
    for further, drawn in ((first - 1, 2), (first + 1, -2)):
        # The first of 18 proposals is 2 and in doubt; the others are -2, and a U of 0 accepts them.
        bits = Script([proposal, *[proposal + 1] * 17, 2 * k, *[0] * 17, further])
        assert discrete_gaussian(1.0, 1, bits)[0] == drawn
        assert bits.read == 37


def test_zero_is_drawn_once_and_not_once_for_each_sign():
    """P(0) = (1 - p) / (1 + p); with a sign drawn for the geometric alone it would be 1 - p."""
    p = np.exp(-1 / 2.0)
    zeros = int((discrete_laplace(2.0, DRAWS, os_entropy) == 0).sum())
    truth = DRAWS * (1 - p) / (1 + p)
    assert abs(zeros - truth) < 6 * np.sqrt(truth)  # six sigma: 2e-9
    assert abs(DRAWS * (1 - p) - truth) > 60 * np.sqrt(truth)


@each
def test_draws_do_not_depend_on_each_other(sampler, tail):
    drawn = sampler(1000.0, DRAWS, os_entropy).astype(float)
    for lag in (1, 2, BLOCK):
        assert abs(np.corrcoef(drawn[lag:], drawn[:-lag])[0, 1]) < 6 / np.sqrt(DRAWS)  # six sigma: 2e-9 each


@each
def test_the_lowest_bit_is_the_sign_and_blocks_join_without_a_seam(sampler, tail):
    size = 2 * BLOCK + 5
    words = np.random.default_rng(3).integers(0, 2**63, size, dtype=np.uint64) * np.uint64(2)
    positive = sampler(7.3, size, Script(words.tolist()))
    negative = sampler(7.3, size, Script((words + np.uint64(1)).tolist()))
    assert positive.dtype == np.int64
    assert (positive >= 0).all()
    assert (positive == -negative).all()
    parts = [sampler(7.3, len(part), Script(part.tolist())) for part in np.array_split(words, 7)]
    assert (positive == np.concatenate(parts)).all()
    assert sampler(7.3, 0, os_entropy).shape == (0,)


@pytest.mark.parametrize(("sampler", "name"), [(rounded_gaussian, "sigma"), (discrete_laplace, "scale")])
@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, 2 * LARGEST_SIGMA])
def test_a_scale_that_cannot_be_is_refused(sampler, name, scale):
    with pytest.raises(InputError, match=name):
        sampler(scale, 1, os_entropy)


# --- costs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sensitivity", [1.0, 3.0, 65.0, 120.0])
def test_no_outcome_is_likelier_on_a_neighbour_by_more_than_its_epsilon(sensitivity):
    """The exact ratio of probabilities, P(x) / P(x - Delta), in 40 digits."""
    scale = LAPLACE.scale(0.7, sensitivity)
    with mpmath.workdps(40):
        most = mpmath.exp(mpmath.mpf(0.7))
        p = mpmath.exp(-1 / mpmath.mpf(scale))
        ratios = [p ** abs(x) / p ** abs(x - int(sensitivity)) for x in range(-200, 201)]
        assert max(ratios) <= most
        assert max(ratios) > most * (1 - 1e-10)


def test_the_scale_is_rounded_up_and_its_cost_too():
    rng = np.random.default_rng(4)
    for epsilon, tables in zip(np.exp(rng.uniform(-8, 4, 500)), rng.integers(1, 500, 500), strict=True):
        scale = LAPLACE.scale(float(epsilon), float(tables))
        exact = epsilon_of(scale, float(tables))
        assert exact <= Fraction(float(epsilon))
        assert exact > Fraction(float(epsilon)) * (1 - Fraction(1, 2**39))
        assert exact <= Fraction(LAPLACE.cost(scale, float(tables))) <= exact * (1 + Fraction(1, 2**52))


def test_the_variance_is_that_of_the_law():
    for scale in (0.4, 1.0, 20.0):
        x = np.arange(-2000, 2001)
        weights = np.exp(-np.abs(x) / scale)
        assert LAPLACE.variance(scale) == pytest.approx((weights * x**2).sum() / weights.sum(), rel=1e-9)
    assert [LAPLACE.variance(scale) for scale in (1e-5, 1e-3, 0.02, 0.04)] == [1e-9] * 4


@pytest.mark.parametrize("risk", [0.3, 1e-3, 1e-9])
def test_noise_exceeds_its_deviations_with_the_risk_that_was_asked(risk):
    scale = 1000.0
    far = LAPLACE.deviations(risk) * np.sqrt(LAPLACE.variance(scale))
    assert np.exp(-far / scale) / 2 == pytest.approx(risk, rel=1e-4)


def test_tables_that_share_a_cost_have_the_noise_of_single_tables():
    for law in (GAUSSIAN, LAPLACE):
        together = law.variance(law.scale(0.3, law.joint(12)))
        assert together == pytest.approx(law.variance(law.scale(0.3 / 12, 1.0)), rel=1e-9)
        assert together == pytest.approx(1 / (2 * law.rho(0.3 / 12)), rel=1e-3)


def test_a_laplace_cell_is_called_significant_as_rarely_as_a_gaussian_one():
    sigma = LAPLACE.tail(100.0)
    edge = int(np.ceil(FAR * sigma))
    p = np.exp(-1 / 100.0)
    assert p**edge / (1 + p) == pytest.approx(3.4e-6, rel=0.03)


def test_seeded_bits_are_enough_for_any_scale():
    for scale in (1e-3, 0.1, LARGEST_SIGMA):
        assert len(discrete_laplace(scale, 100, seeded_bits(np.random.default_rng(0)))) == 100


def test_a_power_of_e_far_below_a_unit_is_none():
    """In units of 2^-32: e^-64 is less than one, and e^-1 is 1,580,030,168.6 of them."""
    assert exponential_units(Fraction(65), 0) == 0
    assert exponential_units(Fraction(1), 0) == pytest.approx(exp(-1) * 2**32, abs=2)
