"""The law of the noise is exact: each word is settled rightly, and many have the right distribution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import chi2

from privsyn.errors import InputError
from privsyn.private.gaussian_sampler import (
    BLOCK,
    FEWEST,
    LARGEST_SIGMA,
    TOLERANCE,
    os_entropy,
    rounded_gaussian,
    seeded_bits,
)

CHANCE = 1e-8
"""Probability with which a test of a distribution fails although the distribution is right."""

DRAWS = 10**6


class Script:
    """A source of bits that reads out the words it was given, and knows how many it has read."""

    def __init__(self, words: Iterable[int]) -> None:
        self.words: Iterator[int] = iter(words)
        self.read = 0

    def __call__(self, size: int) -> np.ndarray:
        self.read += size
        return np.array([next(self.words) for _ in range(size)], dtype=np.uint64)


def tail(edge: float, sigma: float) -> Fraction:
    """P(|Z| > edge) to 300 bits."""
    with mpmath.workprec(320):
        units = mpmath.erfc(mpmath.mpf(edge) / (mpmath.mpf(sigma) * mpmath.sqrt(2))) * mpmath.mpf(2) ** 300
        return Fraction(int(mpmath.nint(units)), 2**300)


def lies_in(magnitude: int, sigma: float, low: Fraction, high: Fraction) -> bool:
    """Whether every U in [low, high] makes |Z| round to `magnitude`."""
    above = Fraction(2) if magnitude == 0 else tail(magnitude - 0.5, sigma)
    return tail(magnitude + 0.5, sigma) < low and high < above


def interval(k: int, *more: int) -> tuple[Fraction, Fraction]:
    """The U that the words drawn so far allow."""
    numerator, known = k, 63
    for word in more:
        numerator, known = numerator << 64 | word, known + 64
    return Fraction(numerator, 2**known), Fraction(numerator + 1, 2**known)


# --- every word is settled rightly -------------------------------------------------------------------------


@pytest.mark.slow
def test_the_librarys_inverse_keeps_within_its_bound() -> None:
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
                assert error < (1e-14 if end == 0.5 else TOLERANCE)


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.3, 1000.5, 1e6, LARGEST_SIGMA])
def test_words_from_all_over_the_range_agree_with_mpmath(sigma: float) -> None:
    ks = [j << 54 for j in range(0, 512, 3)] + [(1 << power) - 1 for power in range(64)]
    second = 0x5555_5555_5555_5555
    for k in ks:
        bits = Script([2 * k, second])
        drawn = int(rounded_gaussian(sigma, 1, bits)[0])
        assert lies_in(drawn, sigma, *interval(k, second))
        assert bits.read == 2 or lies_in(drawn, sigma, *interval(k)), "decided although in doubt"


@pytest.mark.parametrize(
    ("sigma", "edge"),
    [(0.3, 0.5), (0.3, 1.5), (1.0, 0.5), (1.0, 4.5), (7.3, 0.5), (7.3, 30.5)]
    + [(sigma, edge) for sigma in (1000.5, 1e6) for edge in (0.5, 1.5, 2.5, 1000.5)],
)
def test_a_word_that_straddles_a_half_integer_is_decided_by_further_words(sigma: float, edge: float) -> None:
    below, above = int(edge - 0.5), int(edge + 0.5)
    k, rest = divmod(tail(edge, sigma) * 2**63, 1)
    first, rest = divmod(rest * 2**64, 1)
    second = int(rest * 2**64)
    cases: list[tuple[list[int], int]] = [
        ([k - 1, 7], above),  # doubtful, but only to double precision
        ([k + 1, 7], below),
        ([k, first - 1], above),  # a smaller tail lies further out
        ([k, first + 1], below),
        ([k, first, second - 1], above),
        ([k, first, second + 1], below),
    ]
    for (start, *more), magnitude in cases:
        for sign in (0, 1):
            bits = Script([2 * start + sign, *more])
            assert rounded_gaussian(sigma, 1, bits)[0] == (-1) ** sign * magnitude
            assert bits.read == 1 + len(more)


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 1000.5])
@pytest.mark.parametrize("more", [[2**63], [1], [0], [2**64 - 1]])
def test_the_last_interval_has_no_end_and_is_always_looked_into(sigma: float, more: list[int]) -> None:
    spare = [2**62 + 12345] * 3
    bits = Script([0, *more, *spare])
    drawn = int(rounded_gaussian(sigma, 1, bits)[0])
    read = bits.read - 1
    assert read >= 1
    assert lies_in(drawn, sigma, *interval(0, *[*more, *spare][:read]))


def test_only_the_smallest_words_are_doubtful_by_themselves() -> None:
    for k, words in ((FEWEST - 1, 2), (FEWEST, 1)):
        bits = Script([2 * k, 7])
        rounded_gaussian(1.0, 1, bits)
        assert bits.read == words


def test_next_to_no_sigma_is_next_to_no_noise() -> None:
    for sigma in (5e-324, 1e-200, 1e-3):
        assert rounded_gaussian(sigma, 2, Script([0, 2**64 - 1, 1, 1])).tolist() == [0, 0]


def test_doubt_is_as_rare_as_the_tolerance_says() -> None:
    bits, draws = seeded_bits(np.random.default_rng(5)), 200_000
    for sigma, most in ((1000.0, 3), (1e6, 100)):  # 0.04 and 40 expected; the seed is fixed
        read = 0

        def counting(size: int) -> np.ndarray:
            nonlocal read
            read += size
            return bits(size)

        rounded_gaussian(sigma, draws, counting)
        assert read - draws <= most
    assert read - draws >= 10  # and the count does count


# --- many words have the right distribution ----------------------------------------------------------------


def likelihood_of(drawn: np.ndarray, sigma: float) -> float:
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


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [0.3, 1.0, 7.3, 1000.5, 1e6])
def test_draws_follow_the_rounded_gaussian_and_no_other(sigma: float) -> None:
    assert likelihood_of(rounded_gaussian(sigma, DRAWS, os_entropy), sigma) > CHANCE
    for wrong in (0.9, 1.1):  # a test that cannot fail is no test
        assert likelihood_of(rounded_gaussian(wrong * sigma, DRAWS, os_entropy), sigma) < CHANCE


def test_draws_do_not_depend_on_each_other() -> None:
    drawn = rounded_gaussian(1000.0, DRAWS, os_entropy).astype(float)
    for lag in (1, 2, BLOCK):
        assert abs(np.corrcoef(drawn[lag:], drawn[:-lag])[0, 1]) < 6 / np.sqrt(DRAWS)  # six sigma: 2e-9 each


def test_the_lowest_bit_is_the_sign() -> None:
    words = np.random.default_rng(2).integers(0, 2**63, 1000, dtype=np.uint64) * np.uint64(2)
    positive = rounded_gaussian(7.3, 1000, Script(words.tolist()))
    negative = rounded_gaussian(7.3, 1000, Script((words + np.uint64(1)).tolist()))
    assert (positive >= 0).all()
    assert (positive == -negative).all()


def test_blocks_join_without_a_seam() -> None:
    size = 2 * BLOCK + 5
    words = np.random.default_rng(3).integers(0, 2**64, size, dtype=np.uint64)
    whole = rounded_gaussian(7.3, size, Script(words.tolist()))
    assert whole.dtype == np.int64
    parts = [rounded_gaussian(7.3, len(part), Script(part.tolist())) for part in np.array_split(words, 7)]
    assert (whole == np.concatenate(parts)).all()
    assert rounded_gaussian(7.3, 0, os_entropy).shape == (0,)


@pytest.mark.parametrize("sigma", [0.0, -1.0, np.nan, np.inf, 2 * LARGEST_SIGMA])
def test_a_sigma_that_cannot_be_is_refused(sigma: float) -> None:
    with pytest.raises(InputError, match="sigma"):
        rounded_gaussian(sigma, 1, os_entropy)
