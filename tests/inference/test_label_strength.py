"""Tables with the target depart as far as the true ones are expected to, whatever the noise."""

from __future__ import annotations

import numpy as np
import pytest

from privsyn.inference.label_strength import with_strength
from privsyn.inference.measured_columns import Estimate
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement

TABLES, SHAPE, COUNT = 2_000, (4, 3), 1_000.0  # expected count of each cell


def simulated(dispersion, sigma, ordered=0):
    """Return the true departures of tables, their estimates by the posterior mean, and the gain."""
    rng = np.random.default_rng(0)
    truth = np.sqrt(dispersion * COUNT) * rng.normal(size=(TABLES, *SHAPE))
    for axis in (1, 2):
        truth -= truth.mean(axis=axis, keepdims=True)
    noise, gain = sigma * rng.normal(size=truth.shape), dispersion * COUNT / (dispersion * COUNT + sigma**2)
    estimates = []
    for index in range(TABLES):
        seen = truth[index] + noise[index]
        domain = Domain((f"x{index}", "y"), SHAPE, (0, ordered))
        centred = seen - seen.mean(axis=0) - seen.mean(axis=1, keepdims=True) + seen.mean()
        table = Marginal(domain, COUNT + gain * centred)
        margins = tuple(table.project((name,)) for name in domain.names)
        measured = Measurement(Marginal(domain, COUNT + seen), max(sigma**2, 1e-6))
        variance = np.full(SHAPE, gain * sigma**2)
        estimates.append(Estimate(table, measured=measured, margins=margins, posterior_variance=variance))
    return truth, estimates, gain


def departures(estimates):
    return np.array([estimate.table.counts - COUNT for estimate in estimates])


@pytest.mark.parametrize("sigma", [0.0, 30.0, 60.0])
def test_tables_with_the_target_depart_as_far_as_the_true_ones(sigma):
    """The energy of 12,000 free departures has a relative standard deviation of .02."""
    truth, estimates, gain = simulated(0.5, sigma)
    before, after = departures(estimates), departures(with_strength(estimates, "y"))
    assert (before**2).sum() / (truth**2).sum() == pytest.approx(gain, rel=0.1)
    assert (after**2).sum() / (truth**2).sum() == pytest.approx(1.0, rel=0.1)
    assert np.corrcoef(before.ravel(), after.ravel())[0, 1] == pytest.approx(1.0)


@pytest.mark.parametrize("sigma", [30.0, 60.0])
def test_posterior_variances_become_the_expected_squared_errors_of_the_new_counts(sigma):
    truth, estimates, _ = simulated(0.5, sigma)
    free = (1 - 1 / 4) * (1 - 1 / 3)  # of the cells, if margins are fixed
    for tables in (estimates, with_strength(estimates, "y")):
        expected = free * np.mean([table.posterior_variance for table in tables])
        assert ((departures(tables) - truth) ** 2).mean() == pytest.approx(expected, rel=0.1)


def test_margins_stay_and_no_count_is_negative():
    _, estimates, _ = simulated(20.0, 500.0)
    for old, new in zip(estimates[:50], with_strength(estimates[:50], "y")[:50], strict=True):
        assert (new.table.counts >= 0).all()
        for side in old.margins:
            assert new.table.project(side.attributes).counts == pytest.approx(side.counts, rel=1e-3)


@pytest.mark.parametrize(("target", "ordered"), [(None, 0), ("z", 0), ("y", 3)])
def test_tables_without_the_target_stay_and_so_do_those_of_a_number(target, ordered):
    _, estimates, _ = simulated(0.5, 60.0, ordered)
    assert with_strength(estimates, target) == tuple(estimates)
