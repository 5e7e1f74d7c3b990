"""Expected errors are those of normal noise, by the parts it is made of."""

import numpy as np
import pytest

from privsyn.inference.fitted import (
    Certainty,
    Fitted,
    expected_distance,
    one_way_certainty,
    table_certainties,
)
from privsyn.inference.higher_order import measured_as
from privsyn.inference.measured_columns import Estimate
from privsyn.inference.rare_values import merge_rare
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement

PAIR = Domain(("a", "b"), (4, 5))
EVEN = Marginal(PAIR, np.full((4, 5), 50.0))
EXACT = tuple(Measurement(EVEN.project((name,)), 0.0) for name in "ab")


def certainty(measured, left, table, one_ways):
    """Return the certainty of a table alone."""
    return table_certainties([Estimate(table, measured=measured, posterior_variance=left)], one_ways)[0]


def test_of_a_one_way_it_is_the_error_of_noise_whose_total_is_known():
    """20,000 draws: their mean is within 1.5 % of expected but with probability 1e-7 (its sd is 0.3 %)."""
    measured = Measurement(Marginal(Domain(("a",), (8,)), np.full(8, 100.0)), 25.0)
    noise = np.random.default_rng(0).normal(0, 5, (20_000, 8))
    noise -= noise.mean(axis=1, keepdims=True)
    found = np.abs(noise).sum(axis=1).mean() / 2 / 800
    assert one_way_certainty(measured, measured.marginal).error == pytest.approx(found, rel=0.015)


@pytest.mark.slow
def test_expected_distance_is_that_from_true_counts_that_may_lie_behind_the_answers():
    """200,000 draws of true counts, each normal about its answer and not negative: the mean's sd is 0.2 %."""
    answers, sigma = np.array([300.0, 4.0, -6.0, 0.0]), np.array([20.0, 5.0, 5.0, 8.0])
    counts = np.array([250.0, 12.0, 0.0, 36.0])  # of the answers' total: nothing is known better
    measured = Measurement(Marginal(Domain(("a",), (4,)), answers), sigma**2 / (1 - 1 / 4))
    rng, drawn = np.random.default_rng(0), np.full((200_000, 4), -1.0)
    while (negative := drawn < 0).any():
        drawn[negative] = (answers + sigma * rng.normal(size=drawn.shape))[negative]
    found = np.abs(drawn - counts).sum(axis=1).mean() / 2 / 298
    assert expected_distance(measured, counts) == pytest.approx(found, rel=0.01)


def test_no_distance_is_above_one_or_below_zero_however_far_an_answer_lies():
    for answer in (-1e9, -1e3, 0.0, 1e9):
        measured = Measurement(Marginal(Domain(("a",), (2,)), np.array([answer, 50.0])), 25.0)
        assert 0 <= expected_distance(measured, np.array([0.0, 50.0])) <= 1


def test_of_a_table_with_exact_margins_it_is_the_error_of_noise_without_its_margins():
    """As above: 20,000 draws of 20 cells, sd 0.2 %."""
    noise = np.random.default_rng(1).normal(0, 5, (20_000, 4, 5))
    for axis in (1, 2):
        noise -= noise.mean(axis=axis, keepdims=True)
    found = np.abs(noise).sum(axis=(1, 2)).mean() / 2 / EVEN.total
    certain = certainty(Measurement(EVEN, 25.0), np.full((4, 5), 25.0), EVEN, EXACT)
    assert certain.error == pytest.approx(found, rel=0.015)


def test_an_error_of_a_margin_goes_to_the_table_in_proportion():
    """Every cell of a row has its share of the row's error: total variation is the margin's."""
    one_way = Measurement(EVEN.project(("a",)), 9.0)
    certain = certainty(Measurement(EVEN, 25.0), np.zeros((4, 5)), EVEN, (one_way, EXACT[1]))
    margin = np.sqrt(2 / np.pi) * 4 * 3.0 / 2 / EVEN.total
    assert certain.error == pytest.approx(margin)


def test_each_table_has_its_own_error_in_the_order_of_the_tables():
    """Whatever other tables, of its shape or another, are computed with it."""
    other = EVEN.project(("b", "a"))
    tables = (EVEN, other, EVEN, EVEN)
    measured = [Measurement(table, sigma**2) for table, sigma in zip(tables, (1, 2, 4, 8), strict=True)]
    estimates = [
        Estimate(t, measured=m, posterior_variance=m.variance) for t, m in zip(tables, measured, strict=True)
    ]
    alone = [table_certainties([each], EXACT)[0].error for each in estimates]
    together = [certain.error for certain in table_certainties(estimates, EXACT)]
    assert together == pytest.approx(alone)


def test_what_a_measurement_leaves_is_less_than_its_noise_and_than_what_was_unknown():
    found = measured_as(Estimate(EVEN, dispersion=2.0), Measurement(EVEN, 25.0))
    assert found.posterior_variance == pytest.approx(1 / (1 / 100 + 1 / 25))


@pytest.mark.parametrize("error", [-0.1, np.nan, np.inf])
def test_an_error_that_is_none_is_refused(error):
    with pytest.raises(ValueError, match="error"):
        Certainty(EXACT[0], error)


def test_what_was_heard_is_finite():
    nowhere = Measurement(Marginal(Domain(("a",), (2,)), np.array([1.0, np.nan])), 1.0)
    with pytest.raises(ValueError, match="finite"):
        Certainty(nowhere, 0.1)


def test_certainties_are_those_of_the_tables():
    merging = merge_rare(EXACT, EVEN.total)
    one_ways = tuple(m.marginal for m in EXACT)
    certain = tuple(map(one_way_certainty, EXACT, one_ways))
    Fitted(merging, one_ways, (), EVEN.total, certain)
    for wrong in (certain[:1], certain[::-1]):
        with pytest.raises(ValueError, match="certainties"):
            Fitted(merging, one_ways, (), EVEN.total, wrong)
