"""Which values are pooled, and what becomes of missing cells that the noise hides."""

import numpy as np
import pytest

from privsyn.inference.rare_values import merge_rare
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement

SIGMA = 10.0


def merged(counts, **settings):
    marginal = Marginal(Domain(("a",), (len(counts),)), np.array(counts, float))
    return merge_rare(
        (Measurement(marginal, SIGMA**2),), float(sum(counts)), nullable={"a": 20.0}, **settings
    )


def of_many(present, rows=2000, values=1500):
    """Return the merging of a column of many listed values, few rows each, beside one of two values."""
    rng = np.random.default_rng(0)
    columns = []
    for size, some in ((values, present), (2, 2)):
        counts = np.where(np.arange(size) < some, rows / some, 0.0) + rng.normal(0, SIGMA, size)
        columns.append(
            Measurement(Marginal(Domain((f"of {size}",), (size,)), counts), np.full(size, SIGMA**2))
        )
    return merge_rare(tuple(columns), float(rows), spared=500)


def test_very_many_rare_values_are_a_pool_if_the_common_ones_leave_rows():
    """Their own sum has a noise of 390 rows: less than 1,160 rows would not be told from none."""
    merging = of_many(1500, rows=1000)
    pool = np.bincount(merging.groups[0]).argmax()
    assert merging.shares[0][merging.groups[0] == pool].sum() == pytest.approx(1)
    assert (merging.shares[0] > 0).sum() > 50


def test_a_spike_stays_alone_if_noise_lies_between_it_and_other_numbers():
    """Years of renovation, mostly 0. The last code is clear alone, but not with the empty ones before it."""
    counts = np.array([20515.0, 27, -20, -122, 4, 37, 27, -28, 111, -66, -66, -63, 919])
    one_way = Measurement(Marginal(Domain(("year",), (13,), ordered=(13,)), counts), 75.0**2)
    assert merge_rare((one_way,), 21_600.0).groups[0].tolist() == [0, *[1] * 12]


def test_values_without_rows_are_dropped_however_many():
    assert 10 <= (of_many(10).shares[0] > 0).sum() <= 12  # noise makes one or two values common


@pytest.mark.parametrize("settings", [{"spared": 9}, {"spared": 9, "doubtful": ("a",)}, {"spared": 2}])
@pytest.mark.parametrize(
    ("missing", "drawn"), [(-4.0, False), (15.0, False), (19.9, False), (20.1, True), (25.0, True)]
)
@pytest.mark.parametrize("others", [(500.0, 400.0, 25.0, 28.0), (500.0, 400.0), (15.0, 15.0), (500.0,)])
def test_missing_cells_are_drawn_from_their_threshold_on(settings, missing, drawn, others):
    merging = merged((*others, missing), **settings)
    assert (merging.shares[0][-1] > 0) == drawn
    assert np.allclose(np.bincount(merging.groups[0], merging.shares[0]), 1)
