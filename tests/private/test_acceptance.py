"""No row moves an excess further than its sensitivity; it is above 0 exactly if a criterion is not met."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, norm
from strategies import StubNoise

from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.recoding import Merging
from privsyn.private.acceptance import MOST_UNITS, UNIT, Acceptance, Distance, Sums, Verdict, margins
from privsyn.private.contribution import Contribution
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import SeededGaussian, SeededLaplace
from privsyn.private.noise_laws import GAUSSIAN, LAPLACE, shared_gaussian

DOMAIN = Domain(("a", "b"), (2, 3))
UNMERGED = Merging(
    DOMAIN, DOMAIN, tuple(np.arange(size) for size in (2, 3)), tuple(np.ones(size) for size in (2, 3))
)
MOST = 4  # rows of a tiny table
SURE = 1e-7

expected_counts = st.lists(st.integers(0, 9), min_size=6, max_size=6).filter(any)
weights = st.lists(st.integers(-UNIT, UNIT), min_size=6, max_size=6)


def distance(expected, allowed):
    return Distance("d", UNMERGED, ("a", "b"), np.array(expected).reshape(2, 3), allowed)


def tables():
    """Every table of up to `MOST` rows over six cells, as counts."""
    for size in range(MOST + 1):
        for rows in combinations_with_replacement(range(6), size):
            yield np.bincount(np.array(rows, int), minlength=6).reshape(2, 3)


def furthest(excess):
    """How far one more row moves the excess, over all tiny tables."""
    steps = np.eye(6, dtype=int).reshape(6, 2, 3)
    return max(abs(excess.of(table + step) - excess.of(table)) for table in tables() for step in steps)


@pytest.mark.slow
@given(expected_counts, st.integers(0, UNIT))
def test_no_row_moves_a_distance_further_than_its_sensitivity(expected, allowed):
    assert furthest(distance(expected, allowed)) <= distance(expected, allowed).sensitivity


def test_a_row_where_none_is_expected_moves_a_distance_by_all_of_it():
    """The first row off the released cells: the distance of no rows is 0, of one row 1."""
    excess = distance([5, 0, 0, 0, 0, 0], 100)
    nobody, one = np.zeros((2, 3), int), np.eye(6, dtype=int)[1].reshape(2, 3)
    assert excess.of(one) - excess.of(nobody) == UNIT - 100
    five = 5 * np.eye(6, dtype=int)[1].reshape(2, 3)
    closer = five + np.eye(6, dtype=int)[0].reshape(2, 3)
    assert excess.of(five) - excess.of(closer) == pytest.approx(100, abs=1)
    some = distance([1, 1000, 0, 0, 0, 0], 100)  # the row that takes a distance down by nearly all
    assert some.of(np.eye(6, dtype=int)[0].reshape(2, 3) * 3) - some.of(
        np.array([3, 1, 0, 0, 0, 0]).reshape(2, 3)
    ) == pytest.approx(100, abs=UNIT // 100)


@given(weights, weights)
def test_no_row_moves_a_larger_sum_further_than_its_sensitivity(above, below):
    excess = Sums("s", UNMERGED, ("a", "b"), *(np.array(side).reshape(2, 3) for side in (above, below)))
    assert furthest(excess) <= excess.sensitivity


@pytest.mark.parametrize("units", [np.iinfo(np.int64).min, -MOST_UNITS - 1, MOST_UNITS + 1])
def test_a_row_that_adds_more_units_than_allowed_is_refused(units):
    """The smallest integer has no absolute value: its sensitivity was stated as 1."""
    few, many = np.zeros((2, 3), int), np.full((2, 3), units)
    for sides in ((few, many), (many, few)):
        with pytest.raises(ValueError, match="more units"):
            Sums("s", UNMERGED, ("a", "b"), *sides)


@given(expected_counts, expected_counts, st.integers(0, UNIT - 1))
def test_a_distance_is_exceeded_exactly_if_the_shares_are_further_apart(counts, expected, allowed):
    n, t = sum(counts), sum(expected)
    apart = sum(abs(Fraction(a, n) - Fraction(b, t)) for a, b in zip(counts, expected, strict=True)) / 2
    excess = distance(expected, allowed).of(np.array(counts).reshape(2, 3))
    assert (excess > 0) == (apart > Fraction(allowed, UNIT))


def test_a_distance_of_less_than_a_unit_is_rounded_up():
    """Two rows in equal shares; what was released has one row more in one of two million."""
    expected = [10**6 + 1, 10**6, 0, 0, 0, 0]
    assert distance(expected, 0).of(np.array([1, 1, 0, 0, 0, 0]).reshape(2, 3)) == 1
    assert distance(expected, 0).of(np.array(expected).reshape(2, 3)) == 0


def test_a_distance_of_many_rows_does_not_overflow():
    many = 10**9 * np.ones((2, 3), np.int64)
    assert distance((many // 7).ravel(), 0).of(many) == 0
    assert distance([1, 0, 0, 0, 0, 0], 0).of(many) == UNIT * 5 * 10**9


def test_the_answer_is_the_excess_with_the_noise_of_the_ledger():
    records = Records(DOMAIN, np.array([[0, 0], [1, 2], [1, 2]]))
    tests = (distance([1, 0, 0, 0, 0, 2], 7), distance([3, 0, 0, 0, 0, 0], 0))
    for k in (1, 3):
        private = PrivateTable(records, StubNoise(), Contribution(k))
        (first, _), (second, _) = private.excesses(tests, 0.5)
        assert (first, second) == (-21, 2 * UNIT)
        assert [spend.sensitivity for spend in private.spends] == [k * (UNIT + 7), k * UNIT]
        assert sum(spend.rho for spend in private.spends) == pytest.approx(0.5 * k**2)


@pytest.mark.parametrize("risk", [0.2, 0.05, 1e-6])
@pytest.mark.parametrize("scale", [1.5, 40.0, 3e6])
def test_noise_exceeds_its_quantile_with_at_most_the_stated_probability(scale, risk):
    q = GAUSSIAN.quantile(scale, risk)
    assert norm.sf(q + 0.5, scale=scale) <= risk
    assert norm.sf(q - 1.5, scale=scale) > risk
    q, p = LAPLACE.quantile(scale, risk), np.exp(-1 / scale)
    assert p ** (q + 1) / (1 + p) <= risk
    assert q == 0 or p**q / (1 + p) > risk * (1 - 1e-9)  # the least such number
    assert shared_gaussian(4, 1).quantile(scale, risk) == GAUSSIAN.quantile(2 * scale, risk)


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "rho"), [(SeededGaussian, 0.01), (SeededLaplace, 0.1)])
def test_500_verdicts_are_wrong_as_often_as_stated(noise, rho):
    """A table that is just above its bound, and one at the error that is called safe."""
    runs, risk = 500, 0.05
    rows = 2000
    source = noise(3)

    def accepted(far):
        """How often a table is accepted whose excess is `far`: it may be above 0 or below."""
        allowed = int(0.2 * UNIT)
        # Rows in the first cell alone, of which a part lies in the second.
        table = np.zeros((rows, 2), int)
        excess = distance([1, 0, 0, 0, 0, 0], allowed)
        off = round(far / UNIT + 0.2 * rows)
        table[:off, 1] = 1
        private = PrivateTable(Records(DOMAIN, table), source)
        exact = excess.of(np.array([rows - off, off, 0, 0, 0, 0]).reshape(2, 3))
        answers = [private.excesses([excess], rho)[0] for _ in range(runs)]
        sure, _ = margins(private.law, answers[0][1], risk, 1)
        return exact, sum(value <= -sure for value, _ in answers)

    exact, wrong = accepted(UNIT)
    assert 0 < exact <= 2 * UNIT
    assert wrong <= binom.ppf(1 - SURE, runs, risk)
    assert wrong >= binom.ppf(SURE, runs, risk / 3)  # not far below either: that would waste budget
    law, sensitivity = source.law, UNIT * 1.2
    sure, safe = margins(law, law.scale(rho, sensitivity), risk, 1)
    exact, right = accepted(-(sure + safe) - UNIT)
    assert exact <= -(sure + safe)
    assert runs - right <= binom.ppf(1 - SURE, runs, risk)


def test_a_verdict_comes_back_from_plain_data_and_says_what_it_is_about():
    verdicts = (
        Verdict("one", met=True, bound=0.1, estimate=0.05, safe=0.02),
        Verdict("two", met=False, bound=0.1, estimate=0.05, safe=0.0),
        Verdict("three", met=False, bound=0.1, problem="no row"),
    )
    acceptance = Acceptance(0.1, 0.05, verdicts)
    assert Acceptance.from_plain(acceptance.to_plain()) == acceptance
    assert not acceptance.met
    assert Acceptance(0.1, 0.05, verdicts[:1]).met
    assert [str(verdict) for verdict in verdicts] == [
        "one: met (noisy estimate 0.05; an error up to 0.02 is safe)",
        "two: NOT MET (noisy estimate 0.05; too much noise to tell: raise share or epsilon, or allow a"
        " larger error)",
        "three: NOT MET: no row",
    ]
    assert str(acceptance).startswith("NOT ACCEPTED: ")
    for share, risk, criteria in ((1.0, 0.05, verdicts), (0.1, 0.5, verdicts), (0.1, 0.05, ())):
        with pytest.raises(ValueError, match="a verdict is on criteria"):
            Acceptance(share, risk, criteria)
    for key, value in (("met", 1), ("estimate", "0.05"), ("safe", []), ("bound", None), ("problem", None)):
        plain = acceptance.to_plain()
        plain["criteria"][0][key] = value
        with pytest.raises(TypeError):
            Acceptance.from_plain(plain)
