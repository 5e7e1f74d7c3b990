"""Places in regions: what is known of a region is what its places have, unless answers show more."""

import numpy as np
import pytest

from privsyn.inference.hierarchy import Hierarchy, differs, pool, summed
from privsyn.inference.measured_columns import Estimate, MeasuredColumns
from privsyn.inference.pairs import estimate_pairs
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.structural_zeros import StructuralZeros, product

AREAS, REGIONS, ROWS = 24, 4, 48_000
DOMAIN = Domain(("area", "ill", "region"), (AREAS, 2, REGIONS))
REGION_OF = np.repeat(np.arange(REGIONS), AREAS // REGIONS)
ZEROS = StructuralZeros(((Domain(("area", "region"), (AREAS, REGIONS)), np.eye(REGIONS)[REGION_OF]),))
RATES = np.array([0.05, 0.1, 0.15, 0.2])


def table(shares):
    """Exact counts of areas by ill."""
    return ROWS / AREAS * np.stack([1 - shares, shares], axis=1)


def estimated(shares, sigma, seed=0):
    """The rates of areas that are estimated from one noisy answer about areas by ill."""
    rng = np.random.default_rng(seed)
    pair = DOMAIN.project(("area", "ill"))
    answer = Measurement(Marginal(pair, table(shares) + rng.normal(0, sigma, (AREAS, 2))), sigma**2)
    region = np.full(REGIONS, ROWS / REGIONS)
    ones = [("area", table(shares).sum(axis=1)), ("ill", table(shares).sum(axis=0)), ("region", region)]
    one_ways = tuple(Measurement(Marginal(DOMAIN.project((n,)), counts), 1.0) for n, counts in ones)
    codes = tuple(np.arange(size, dtype=np.int32) for size in DOMAIN.sizes)
    unmerged = Merging(DOMAIN, DOMAIN, codes, tuple(np.ones(size) for size in DOMAIN.sizes))
    columns = MeasuredColumns(unmerged, ZEROS, one_ways=one_ways, margins_known=True)
    sides = tuple(Marginal(DOMAIN.project((name,)), counts) for name, counts in ones[:2])
    estimate = Estimate(product(pair, sides), measured=answer, margins=sides)
    (result,) = estimate_pairs(columns, (estimate,), rng).estimates
    return result.table.counts[:, 1] / result.table.counts.sum(axis=1), columns, estimate


def test_areas_without_evidence_are_like_their_region_and_not_like_the_whole():
    shares = RATES[REGION_OF]
    rates, _, _ = estimated(shares, 150.0)  # an area has 100 to 400 ill
    assert np.abs(rates - shares).max() < 0.035  # the regions are 0.15 apart
    of_regions = rates.reshape(REGIONS, -1)
    assert np.ptp(of_regions, axis=1).max() < 0.4 * np.ptp(of_regions.mean(axis=1))


@pytest.mark.parametrize("seed", range(3))
def test_areas_keep_their_spread_where_it_stands_out_of_the_noise(seed):
    offsets = np.tile([-0.04, 0.04, -0.02, 0.02, 0.03, -0.03], REGIONS)
    shares = RATES[REGION_OF] + offsets
    rates, _, _ = estimated(shares, 40.0, seed)  # of deviations of 62
    within = (rates.reshape(REGIONS, -1) - rates.reshape(REGIONS, -1).mean(axis=1, keepdims=True)).std()
    assert 0.75 < within / offsets.std() < 1.25
    assert np.corrcoef(rates, shares)[0, 1] > 0.75


def test_sums_over_the_inner_codes_have_the_counts_and_the_variances_of_the_outer_ones():
    _, columns, estimate = estimated(RATES[REGION_OF], 10.0)
    link = np.eye(REGIONS)[REGION_OF]
    sums = summed(estimate.measured, "area", "region", link, columns.domain)
    assert sums.attributes == ("ill", "region")
    expected = estimate.measured.marginal.counts.reshape(REGIONS, -1, 2).sum(axis=1).T
    np.testing.assert_allclose(sums.marginal.counts, expected)
    np.testing.assert_allclose(sums.variance, 6 * 100.0)
    _, pooling = pool(columns, (estimate,), columns.alone)
    np.testing.assert_allclose(pooling.links["area"], link)


def test_columns_of_which_none_lies_in_another_have_no_hierarchy():
    domain = Domain(("a", "b"), (3, 2))
    assert not Hierarchy.of(StructuralZeros(((domain, np.array([[1, 1], [1, 1], [0, 1]])),))).outer
    ages = Domain(("age", "adult"), (9, 2), (9, 0))
    assert not Hierarchy.of(StructuralZeros(((ages, np.eye(2)[np.arange(9) // 5]),))).outer


def test_noise_and_the_chance_of_rows_are_no_difference():
    rng = np.random.default_rng(0)
    expected = table(RATES[REGION_OF])
    domain = DOMAIN.project(("area", "ill"))

    def answers(counts, sigma):
        for _ in range(200):
            yield Measurement(Marginal(domain, counts() + rng.normal(0, sigma, counts().shape)), sigma**2)

    def rows():  # each area draws its rows by the rate of its region
        ill = rng.binomial(ROWS // AREAS, RATES[REGION_OF])
        return np.stack([ROWS // AREAS - ill, ill], axis=1).astype(float)

    assert sum(differs(answer, expected, "area") for answer in answers(lambda: expected, 50.0)) < 8
    assert sum(differs(answer, expected, "area") for answer in answers(rows, 5.0)) < 8
    apart = table(RATES[REGION_OF] + np.tile([-0.04, 0.04], AREAS // 2))
    assert sum(differs(answer, expected, "area") for answer in answers(lambda: apart, 20.0)) > 190
