"""The exponential mechanism draws each candidate with its probability, to the last bit."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.stats import chi2

from privsyn.private.randomness import seeded_bits
from privsyn.private.samplers.exponential import exponential

CHANCE = 1e-8
"""Probability with which a test of draws may fail although they follow the law."""
SETS, DRAWS = 12, 10_000


def closed_form(scores, scale):
    weights = np.exp((np.array(scores) - max(scores)) / scale)
    return weights / weights.sum()


@pytest.mark.slow
def test_draws_on_random_scores_follow_the_closed_form_and_no_other():
    rng = np.random.default_rng(62)
    for _ in range(SETS):
        scores = rng.integers(-8, 8, rng.integers(2, 12)) / 2.0
        scale = float(rng.uniform(0.5, 4))
        bits = seeded_bits(rng)
        exact = [Fraction(score) for score in scores.tolist()]
        draws = [exponential(exact, Fraction(scale), bits) for _ in range(DRAWS)]
        counts = np.bincount(draws, minlength=len(scores))
        assert likelihood(counts, closed_form(scores, scale)) > CHANCE / SETS
    assert likelihood(counts, closed_form(scores, 2 * scale)) < CHANCE


def likelihood(counts, shares):
    """Chi-square p-value; candidates that are expected less than 20 times count together."""
    expected = shares * counts.sum()
    rare = expected < 20
    counts, expected = (np.append(x[~rare], x[rare].sum()) for x in (counts, expected))
    if expected[-1] < 20:
        counts, expected = (np.append(x[:-2], x[-2:].sum()) for x in (counts, expected))
    return float(chi2.sf(np.sum((counts - expected) ** 2 / expected), len(counts) - 1))


def cumulative(scores, scale, last):
    """P(candidate <= last) to 300 bits."""
    with mpmath.workprec(360):
        weights = [mpmath.exp(mpmath.mpf(score) / mpmath.mpf(scale)) for score in scores]
        return Fraction(
            int(mpmath.nint(sum(weights[: last + 1]) / sum(weights) * mpmath.mpf(2) ** 300)), 2**300
        )


@pytest.mark.parametrize("scale", [0.7, 3.0])
@pytest.mark.parametrize("last", [0, 1, 2])
def test_a_word_at_an_edge_is_decided_by_further_words(scale, last):
    scores = [3, 1, 0, 2]
    exact = [Fraction(score) for score in scores]
    k, rest = divmod(cumulative(scores, scale, last) * 2**63, 1)
    first, rest = divmod(rest * 2**64, 1)
    second = int(rest * 2**64)
    for words, expected in [
        ([2 * k, first - 1], last),
        ([2 * k, first + 1], last + 1),
        ([2 * k, first, second - 1], last),
        ([2 * k, first, second + 1], last + 1),
    ]:
        source = iter(words)
        drawn = exponential(
            exact, Fraction(scale), lambda size, source=source: np.array([next(source)], np.uint64)
        )
        assert drawn == expected
        assert next(source, None) is None


def test_double_precision_and_exact_arithmetic_draw_the_same(monkeypatch):
    rng = np.random.default_rng(1)
    cases = [
        ([Fraction(int(s)) for s in rng.integers(0, 9, 6)], Fraction(int(rng.integers(1, 9))))
        for _ in range(40)
    ]

    def draws():
        return [
            exponential(*case, seeded_bits(np.random.default_rng(seed))) for seed, case in enumerate(cases)
        ]

    fast = draws()
    monkeypatch.setattr("privsyn.private.samplers.exponential.MOST_CANDIDATES", 0)
    assert draws() == fast


def test_a_candidate_far_behind_is_never_drawn_and_a_single_one_always():
    bits = seeded_bits(np.random.default_rng(3))
    assert {exponential([Fraction(0), Fraction(10**6)], Fraction(1), bits) for _ in range(100)} == {1}
    assert exponential([Fraction(-(10**9))], Fraction(1), bits) == 0
