"""The law of the discrete Laplace noise is exact, and its costs are rationals."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

from privsyn.errors import InputError
from privsyn.private.gaussian_sampler import BLOCK, FEWEST, LARGEST_SIGMA, os_entropy, seeded_bits
from privsyn.private.laplace_sampler import TOLERANCE, discrete_laplace
from privsyn.private.noise import ExactLaplace, SeededLaplace
from privsyn.private.noise_laws import FAR, GAUSSIAN, LAPLACE, epsilon_of, laplace_scale

CHANCE = 1e-8
"""Probability with which a test of a distribution fails although the distribution is right."""

DRAWS = 10**6
SCALES = [0.2, 1.0, 7.3, 1000.5, 1e6]


class Script:
    """A source of bits that reads out the words it was given, and knows how many it has read."""

    def __init__(self, words):
        self.words = iter(words)
        self.read = 0

    def __call__(self, size):
        self.read += size
        return np.array([next(self.words) for _ in range(size)], dtype=np.uint64)


def tail(j, scale):
    """P(|x| >= j) to 300 bits: from the law of the distribution, summed over j, j + 1, ... and both signs."""
    if j == 0:
        return Fraction(1)
    with mpmath.workprec(360):
        p = mpmath.exp(-1 / mpmath.mpf(scale))
        return Fraction(int(mpmath.nint(2 * p**j / (1 + p) * mpmath.mpf(2) ** 300)), 2**300)


def interval(k, *more):
    """The U that the words drawn so far allow."""
    numerator, known = k, 63
    for word in more:
        numerator, known = numerator << 64 | word, known + 64
    return Fraction(numerator, 2**known), Fraction(numerator + 1, 2**known)


def lies_in(magnitude, scale, low, high):
    """Whether every U in [low, high) gives this magnitude."""
    return tail(magnitude + 1, scale) <= low and high <= tail(magnitude, scale)


# --- every word is settled rightly -------------------------------------------------------------------------


def test_the_tail_sums_to_the_law_of_the_discrete_laplace():
    """The reference: P(x) = (1 - p) / (1 + p) p^|x| for every x, and no other law has these tails."""
    for scale, x in product((0.5, 2.0), range(1, 6)):
        with mpmath.workprec(360):
            p = mpmath.exp(-1 / mpmath.mpf(scale))
            at_x = (1 - p) / (1 + p) * p**x
            assert abs(float(tail(x, scale) - tail(x + 1, scale)) - 2 * float(at_x)) < 1e-15
            assert abs(float(1 - tail(1, scale)) - float((1 - p) / (1 + p))) < 1e-15


@pytest.mark.parametrize("scale", [*SCALES, LARGEST_SIGMA])
def test_words_from_all_over_the_range_agree_with_mpmath(scale):
    ks = [j << 54 for j in range(0, 512, 3)] + [(1 << power) - 1 for power in range(64)]
    second = 0x5555_5555_5555_5555
    for k in ks:
        bits = Script([2 * k, second])
        drawn = int(discrete_laplace(scale, 1, bits)[0])
        assert lies_in(drawn, scale, *interval(k, second))
        assert bits.read == 2 or lies_in(drawn, scale, *interval(k)), "decided although in doubt"


@pytest.mark.parametrize(
    ("scale", "j"), [(0.2, 1), (0.2, 3), (1.0, 1), (1.0, 5), (7.3, 1), (7.3, 40), (1e6, 7)]
)
def test_a_word_at_a_tail_is_decided_by_further_words(scale, j):
    k, rest = divmod(tail(j, scale) * 2**63, 1)
    first, rest = divmod(rest * 2**64, 1)
    second = int(rest * 2**64)
    cases = [
        ([k - 1, 7], j),  # doubtful, but only to double precision
        ([k + 1, 7], j - 1),
        ([k, first - 1], j),  # a smaller tail lies further out
        ([k, first + 1], j - 1),
        ([k, first, second - 1], j),
        ([k, first, second + 1], j - 1),
    ]
    for (start, *more), magnitude in cases:
        for sign in (0, 1):
            bits = Script([2 * start + sign, *more])
            assert discrete_laplace(scale, 1, bits)[0] == (-1) ** sign * magnitude
            assert bits.read == 1 + len(more)


def test_only_the_smallest_words_are_doubtful_alone():
    for k, words in ((FEWEST - 1, 2), (FEWEST, 1)):
        bits = Script([2 * k, 7])
        discrete_laplace(1.0, 1, bits)
        assert bits.read == words


def test_the_error_of_double_precision_keeps_within_its_bound():
    rng = np.random.default_rng(1)
    for scale in (1.0, 1000.5):
        for k in [FEWEST, *(int(2**power) for power in rng.uniform(35, 63, 300))]:
            ours = -np.log((k + 0.5) * 2.0**-64 * (1 + np.exp(-1 / scale)))
            with mpmath.workdps(40):
                for end in (0, 1):
                    u = (mpmath.mpf(k) + end) / mpmath.mpf(2) ** 63
                    truth = -mpmath.log(u * (1 + mpmath.exp(-1 / mpmath.mpf(scale))) / 2)
                    assert abs(truth - mpmath.mpf(float(ours))) < TOLERANCE


def test_next_to_no_scale_is_next_to_no_noise():
    for scale in (5e-324, 1e-200, 1e-3):
        assert discrete_laplace(scale, 2, Script([0, 2**64 - 1, 1, 1])).tolist() == [0, 0]


# --- many words have the right distribution ----------------------------------------------------------------


def likelihood_of(drawn, scale, zeros=None):
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


@pytest.mark.slow
@pytest.mark.parametrize("scale", SCALES)
def test_draws_follow_the_discrete_laplace_and_no_other(scale):
    drawn = discrete_laplace(scale, DRAWS, os_entropy)
    assert likelihood_of(drawn, scale) > CHANCE
    for wrong in (0.97, 1.03):  # a test that cannot fail is no test
        assert likelihood_of(discrete_laplace(wrong * scale, DRAWS, os_entropy), scale) < CHANCE


def test_zero_is_drawn_once_and_not_once_for_each_sign():
    """P(0) = (1 - p) / (1 + p); with a sign drawn for the geometric alone it would be 1 - p."""
    p = np.exp(-1 / 2.0)
    zeros = int((discrete_laplace(2.0, DRAWS, os_entropy) == 0).sum())
    truth = DRAWS * (1 - p) / (1 + p)
    assert abs(zeros - truth) < 6 * np.sqrt(truth)  # six sigma: 2e-9
    assert abs(DRAWS * (1 - p) - truth) > 60 * np.sqrt(truth)


def test_our_noise_is_distributed_like_that_of_opendp():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    scale, size = 7.3, 20_000
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    theirs = np.array(dp.m.make_laplace(*space, scale=scale)([0] * size), dtype=np.int64)
    values = np.arange(-20, 21)

    def histogram(draws):
        return np.append((draws[:, None] == values).sum(axis=0), (np.abs(draws) > 20).sum())

    def likelihood(tried):
        ours = histogram(ExactLaplace().draw(tried, size))
        return float(chi2_contingency([histogram(theirs), ours]).pvalue)

    assert likelihood(scale) > CHANCE
    assert likelihood(0.8 * scale) < CHANCE
    assert likelihood(1.25 * scale) < CHANCE


def test_draws_do_not_depend_on_each_other():
    drawn = discrete_laplace(1000.0, DRAWS, os_entropy).astype(float)
    for lag in (1, 2, BLOCK):
        assert abs(np.corrcoef(drawn[lag:], drawn[:-lag])[0, 1]) < 6 / np.sqrt(DRAWS)


def test_the_lowest_bit_is_the_sign_and_blocks_join_without_a_seam():
    size = 2 * BLOCK + 5
    words = np.random.default_rng(3).integers(0, 2**63, size, dtype=np.uint64) * np.uint64(2)
    positive = discrete_laplace(7.3, size, Script(words.tolist()))
    negative = discrete_laplace(7.3, size, Script((words + np.uint64(1)).tolist()))
    assert (positive >= 0).all()
    assert (positive == -negative).all()
    parts = [discrete_laplace(7.3, len(part), Script(part.tolist())) for part in np.array_split(words, 7)]
    assert (positive == np.concatenate(parts)).all()


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, 2 * LARGEST_SIGMA])
def test_a_scale_that_cannot_be_is_refused(scale):
    with pytest.raises(InputError, match="scale"):
        discrete_laplace(scale, 1, os_entropy)


def test_a_seed_repeats_the_noise_and_the_ledger_says_that_it_is_not_private():
    one, other = SeededLaplace(3), SeededLaplace(3)
    assert (one.draw(50.0, 20) == other.draw(50.0, 20)).all()
    assert not one.private
    assert "discrete Laplace" in one.name
    assert "NOT PRIVATE" in one.name
    assert (ExactLaplace().draw(1000.0, 50) != ExactLaplace().draw(1000.0, 50)).any()


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
        assert laplace_scale(LAPLACE.variance(scale)) == pytest.approx(scale)
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
