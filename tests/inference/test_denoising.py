"""The posterior of a measured table: its limits, its margins, and what it gains."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import reference
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privsyn.inference import _kernels, consistency
from privsyn.inference.consistency import denoise, norm_sub
from privsyn.marginals.domain import Domain
from privsyn.marginals.ipf import FITTINGS, fit_margins
from privsyn.marginals.marginal import Marginal, Measurement

N = 10_000.0
PAIRS = [(2, 2), (1, 7), (7, 1), (5, 8), (3, 4)]
TRIPLES = [(2, 2, 2), (3, 1, 4), (4, 3, 5)]
shapes = st.sampled_from([*PAIRS, *TRIPLES])
seeds = st.integers(0, 2**32 - 1)
dispersions = st.sampled_from([0.0, 0.3, 3.0, 30.0])
sigmas = st.sampled_from([0.0, 1.0, 30.0, 1000.0])
slow = settings(deadline=None)


class Draw:
    """A table drawn about its expectation, that with the table's margins, and a measurement of it.

    Margins are all tables of one attribute less. With `holes`, one attribute has a value that nobody has,
    and one cell is expected to be empty.
    """

    def __init__(self, seed, shape, dispersion, sigma, *, evenness=3.0, holes=False):
        self.rng = np.random.default_rng(seed)
        domain = Domain(tuple("abc"[: len(shape)]), shape)
        product = np.array(N)
        for size in shape:
            shares = self.rng.dirichlet(np.full(size, evenness))
            if holes and size > 2:
                shares[self.rng.integers(size)] = 0.0
            product = np.multiply.outer(product, shares / shares.sum())
        counts = np.maximum(self.rng.normal(product, np.sqrt(dispersion * product)), 1e-3 * product)
        self.truth = Marginal(domain, counts * N / counts.sum())
        sets = combinations(domain.names, len(domain) - 1)
        self.margins = tuple(self.truth.project(attributes) for attributes in sets)
        if holes:
            product.flat[self.rng.integers(domain.cells)] = 0.0
        self.expected = fit_margins(Marginal(domain, product), self.margins).counts
        noisy = counts + self.rng.normal(0, sigma, shape)
        self.measurement = Measurement(Marginal(domain, noisy), sigma**2)
        self.dispersion = dispersion

    @property
    def denoised(self):
        return denoise(self.measurement, self.expected, self.dispersion, self.margins)

    def missed(self, table):
        """The farthest that a margin is off, in parts of the total."""
        return max(np.abs(table.project(m.attributes).counts - m.counts).max() / N for m in self.margins)


def error(counts, truth):
    return np.abs(counts - truth.counts).sum() / truth.total


@slow
@given(seeds, shapes, dispersions, sigmas)
def test_margins_are_kept_and_no_cell_is_negative(seed, shape, dispersion, sigma):
    draw = Draw(seed, shape, dispersion, sigma)
    assert draw.denoised.counts.min() >= 0
    assert draw.missed(draw.denoised) < 1e-6


@slow
@given(seeds, shapes, dispersions, sigmas)
@example(0, (5, 8), 0.0, 0.0)
def test_empty_margins_and_cells_that_are_expected_empty_are_no_trouble(seed, shape, dispersion, sigma):
    """No warning, no infinity; a value that nobody has stays so."""
    draw = Draw(seed, shape, dispersion, sigma, holes=True)
    counts = draw.denoised.counts
    assert np.isfinite(counts).all()
    assert (counts >= 0).all()
    for margin in draw.margins:
        empty = margin.counts == 0
        assert (draw.denoised.project(margin.attributes).counts[empty] == 0).all()


@slow
@given(seeds, shapes)
def test_without_noise_a_measurement_that_contradicts_the_margins_is_fitted_to_them(seed, shape):
    """Each cell keeps within what the margins take off: the largest contradiction of any."""
    draw = Draw(seed, shape, 3.0, 0.0)
    off = draw.truth.counts * draw.rng.uniform(0.99, 1.01, shape)
    kept = denoise(Measurement(Marginal(draw.truth.domain, off), 0.0), draw.expected, 3.0, draw.margins)
    assert draw.missed(kept) < 1e-6
    contradictions = [
        np.abs(Marginal(draw.truth.domain, off).project(m.attributes).counts - m.counts).max()
        for m in draw.margins
    ]
    assert np.abs(kept.counts - off).max() <= 3 * len(shape) * max(contradictions) + 1e-3


@slow
@given(seeds, shapes)
def test_what_is_certain_is_not_measured_anew(seed, shape):
    draw = Draw(seed, shape, 0.0, 100.0)
    np.testing.assert_allclose(draw.denoised.counts, draw.expected, atol=1e-3)


@slow
@given(seeds, shapes, st.sampled_from([0.1, 1.0]), st.sampled_from([3.0, 30.0, 100.0]))
def test_it_is_the_posterior_mean_given_the_margins(seed, shape, dispersion, sigma):
    """Where that is positive in every cell. To a part in 100,000 of what it adds to the expectation."""
    draw = Draw(seed, shape, dispersion, sigma, evenness=10.0)
    mean = reference.posterior(draw.measurement, draw.expected, dispersion, draw.margins)
    if mean.min() > 1:
        moved = np.abs(mean - draw.expected).max()
        np.testing.assert_allclose(draw.denoised.counts, mean, atol=1e-3 + 1e-5 * moved)


def test_cells_of_uneven_noise_are_believed_unevenly():
    domain = Domain(("a", "b"), (2, 3))
    rng = np.random.default_rng(0)
    expected = np.full((2, 3), 100.0)
    noisy = Measurement(Marginal(domain, rng.normal(100, 20, (2, 3))), rng.uniform(1, 1000, (2, 3)))
    margins = tuple(Marginal(domain, expected).project((name,)) for name in "ab")
    mean = reference.posterior(noisy, expected, 2.0, margins)
    np.testing.assert_allclose(denoise(noisy, expected, 2.0, margins).counts, mean, atol=1e-4)


@pytest.mark.parametrize(("shape", "dispersion", "sigma"), [((5, 8), 10.0, 50.0), ((4, 3, 5), 5.0, 20.0)])
def test_it_errs_less_than_the_measurement_and_less_than_the_expectation(shape, dispersion, sigma):
    """Mean over 60 tables drawn from the prior, each compared with itself.

    The mean difference lies further from 0 than eight of its standard errors, on the right side: were
    the two alike, that would happen with probability under 1e-9 (Student's t, 59 degrees of freedom).
    And not by so much that something else must be wrong: an error of 0 is out of reach.
    """
    draws = [Draw(seed, shape, dispersion, sigma) for seed in range(60)]
    ours = np.array([error(draw.denoised.counts, draw.truth) for draw in draws])
    noisy = np.array([error(norm_sub(draw.measurement.marginal.counts, N), draw.truth) for draw in draws])
    blind = np.array([error(draw.expected, draw.truth) for draw in draws])
    for other in (noisy, blind):
        gain = other - ours
        assert gain.mean() > 8 * gain.std(ddof=1) / np.sqrt(len(gain))
        assert ours.mean() > 0.3 * other.mean()


@pytest.mark.parametrize("wrong", [0.1, 10.0])
def test_the_right_dispersion_errs_least(wrong):
    """Ten times too much or too little is worse, by eight standard errors, as above."""
    draws = [Draw(seed, (5, 8), 10.0, 50.0) for seed in range(60)]
    gain = np.array(
        [
            error(denoise(d.measurement, d.expected, wrong * d.dispersion, d.margins).counts, d.truth)
            - error(d.denoised.counts, d.truth)
            for d in draws
        ]
    )
    assert gain.mean() > 8 * gain.std(ddof=1) / np.sqrt(len(gain))


def test_zeros_of_two_equal_columns_are_found():
    """Off the diagonal there is noise alone, and half of it is cut off: that must not come off the diagonal.

    Scaling all cells down to the margins, as fitting alone would, errs 2.7 times as much as norm-sub, and
    subtracting evenly as much as norm-sub; here the margins are noisy, too, and at odds with the diagonal.
    """
    ours, plain, missed = [], [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        domain = Domain(("a", "b"), (8, 8))
        truth = Marginal(domain, N * np.diag(rng.dirichlet(np.full(8, 2.0))))
        measurement = Measurement(Marginal(domain, truth.counts + rng.normal(0, 10, (8, 8))), 100.0)
        margins = tuple(
            Marginal(one.domain, norm_sub(one.counts + rng.normal(0, 10, 8), N))
            for one in (truth.project((name,)) for name in "ab")
        )
        expected = np.multiply.outer(*(margin.counts for margin in margins)) / N
        dispersion = ((truth.counts - expected) ** 2 / np.maximum(expected, 1)).mean()
        denoised = denoise(measurement, expected, dispersion, margins)
        ours.append(error(denoised.counts, truth))
        plain.append(error(norm_sub(measurement.marginal.counts, N), truth))
        missed += [np.abs(denoised.project(m.attributes).counts - m.counts).max() for m in margins]
    assert np.mean(ours) < 1.5 * np.mean(plain)
    assert np.mean(missed) < 1


@pytest.mark.parametrize(("sigma", "largest"), [(2.0, 0.01), (10.0, 0.12)])
def test_noise_that_is_cut_off_hardly_weakens_a_correlation(sigma, largest):
    """10,000 records near the diagonal of 32 x 32 cells; cut off one by one, it loses 0.04 and 0.23."""
    rng = np.random.default_rng(0)
    domain = Domain(("a", "b"), (32, 32), (32, 32))
    codes = np.arange(32)
    weights = np.exp(-((codes[:, np.newaxis] - codes) ** 2) / 18)
    even = tuple(Marginal(domain.project((name,)), np.full(32, 312.5)) for name in "ab")
    truth = fit_margins(Marginal(domain, weights), even)
    expected = np.full((32, 32), 312.5 / 32)

    def correlation(counts):
        return float(counts.ravel() @ np.outer(codes - 15.5, codes - 15.5).ravel()) / 10_000 / 85.25

    found = [
        denoise(Measurement(Marginal(domain, noisy), sigma**2), expected, 100.0, even).counts
        for noisy in truth.counts + rng.normal(scale=sigma, size=(20, 32, 32))
    ]
    assert abs(np.mean([*map(correlation, found)]) - correlation(truth.counts)) < largest


def test_without_coarse_levels_an_ordered_pair_is_denoised_like_an_unordered_one(monkeypatch):
    monkeypatch.setattr(consistency, "LEVELS", ())
    noisy = np.random.default_rng(0).normal(10.0, 9.0, (4, 8))
    found = []
    for ordered in ((4, 8), (0, 0)):
        domain = Domain(("a", "b"), (4, 8), ordered)
        margins = tuple(
            Marginal(domain.project((name,)), np.full(size, 320.0 / size))
            for name, size in zip("ab", (4, 8), strict=True)
        )
        measured = Measurement(Marginal(domain, noisy), 81.0)
        found.append(denoise(measured, np.full((4, 8), 10.0), 3.0, margins).counts)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("seed", range(5))
def test_sums_are_met_as_by_the_slow_twin(seed):
    rng = np.random.default_rng(seed)
    counts, freedom = rng.normal(3, 4, (6, 5)), rng.random((6, 5))
    groups = (np.array([0, 0, 1, 1, 2, 2]), np.array([0, 0, 0, 1, 1]))
    limits = [
        ((np.arange(6), np.zeros(5, int)), np.full((6, 1), 15.0)),
        ((np.zeros(6, int), np.arange(5)), np.full((1, 5), 18.0)),
        (groups, np.full((3, 2), 15.0)),
    ]
    starts = np.cumsum([0, 6, 5, 6])
    labels = [
        start + np.ravel_multi_index(np.ix_(*places), sums.shape).ravel()
        for start, (places, sums) in zip(starts, limits, strict=False)
    ]
    found, targets = counts.ravel().copy(), np.concatenate([sums.ravel() for _, sums in limits])
    required = _kernels.RequiredSums(np.array(labels), targets[None], starts)
    _kernels.remove_negatives(found[None], freedom.reshape(1, -1), required, 7, 0.0)
    np.testing.assert_allclose(
        found.reshape(6, 5), reference.remove_negatives(counts, freedom, limits, 7), rtol=1e-9, atol=1e-9
    )


@slow
@given(seeds, st.sampled_from([(2, 2), (1, 4), (3, 4), (2, 3, 2)]))
def test_fitting_is_that_of_deming_and_stephan(seed, shape):
    draw = Draw(seed, shape, 3.0, 0.0, holes=True)
    start = Marginal(draw.truth.domain, draw.rng.uniform(0.5, 2.0, shape))
    fitted = fit_margins(start, draw.margins)
    np.testing.assert_allclose(fitted.counts, reference.fit_margins(start, draw.margins, FITTINGS), atol=1e-6)
    assert draw.missed(fitted) < 1e-6


@slow
@given(seeds, st.integers(2, 6), st.integers(2, 6))
def test_fitting_keeps_the_odds_ratios(seed, rows, columns):
    rng = np.random.default_rng(seed)
    start = Marginal(Domain(("a", "b"), (rows, columns)), rng.uniform(0.1, 10.0, (rows, columns)))
    a, b = rng.uniform(1, 100, rows), rng.uniform(1, 100, columns)
    margins = (
        Marginal(start.domain.project(("a",)), a),
        Marginal(start.domain.project(("b",)), b * a.sum() / b.sum()),
    )
    fitted = fit_margins(start, margins)
    before, after = (np.log(t.counts) for t in (start, fitted))
    for logs in (before, after):
        logs -= logs[:1] + logs[:, :1] - logs[0, 0]
    np.testing.assert_allclose(after, before, atol=1e-9)


def test_records_that_no_cell_can_take_go_to_the_others():
    """A value that no cell allows: nothing to scale, no division by 0, and the total stays."""
    start = Marginal(Domain(("a", "b"), (2, 2)), np.array([[0.0, 0.0], [1.0, 3.0]]))
    a = Marginal(start.domain.project(("a",)), np.array([4.0, 4.0]))
    assert fit_margins(start, (a,)).counts.tolist() == [[0.0, 0.0], [2.0, 6.0]]
    a = Marginal(start.domain.project(("a",)), np.array([8.0, 0.0]))
    assert fit_margins(start, (a,)).counts.tolist() == [[0.0, 0.0], [4.0, 4.0]]
