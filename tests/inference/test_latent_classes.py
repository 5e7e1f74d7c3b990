"""The mixture of products comes nearer to the truth than the noisy pairs and than independence."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from privsyn.inference import _kernels
from privsyn.inference import pairs as latent
from privsyn.inference.consistency import norm_sub
from privsyn.inference.pairs import latent_class_pairs, parameters
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal

N = 10_000.0
DOMAIN = Domain(tuple("abcde"), (3, 4, 2, 5, 3))
seeds = st.integers(0, 2**32 - 1)


def mixture(seed, domain=DOMAIN, classes=3):
    """One-ways and pairs of a population of a few classes, within which attributes are independent."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(classes, 5.0))
    values = {
        name: rng.dirichlet(np.full(size, 0.5), classes) + 1e-6
        for name, size in zip(domain.names, domain.sizes, strict=True)
    }

    def table(*names):
        factors = [values[name] / values[name].sum(axis=1, keepdims=True) for name in names]
        letters = "xy"[: len(names)]
        terms = ",".join(["k", *(f"k{letter}" for letter in letters)])
        return Marginal(domain.project(names), N * np.einsum(f"{terms}->{letters}", shares, *factors))

    return tuple(table(name) for name in domain), tuple(table(a, b) for a, b in combinations(domain.names, 2))


def noisy(tables, sigma, seed):
    rng = np.random.default_rng([seed, 1])
    return tuple(
        Marginal(t.domain, norm_sub(t.counts + rng.normal(0, sigma, t.counts.shape), t.total)) for t in tables
    )


def fit(one_ways, pairs, seed=0, domain=DOMAIN):
    return latent_class_pairs(domain, one_ways, pairs, np.random.default_rng(seed))


def error(fitted, pairs):
    return sum(np.abs(f - p.counts).sum() for f, p in zip(fitted, pairs, strict=True)) / N


def independent(one_ways, pairs):
    one_way = {table.attributes[0]: table.counts for table in one_ways}
    return [np.multiply.outer(*(one_way[name] for name in pair.attributes)) / N for pair in pairs]


def test_a_mixture_is_found_again():
    """Without noise, in less than a 25th of what independence errs."""
    for seed in range(3):
        one_ways, pairs = mixture(seed)
        assert error(fit(one_ways, pairs), pairs) < error(independent(one_ways, pairs), pairs) / 25


@pytest.mark.parametrize("sigma", [50.0, 200.0])
def test_it_errs_less_than_the_noisy_tables_and_than_independence(sigma):
    """Mean over 40 populations, each compared with itself: over eight standard errors from no difference;
    were there none, so much would come with probability under 1e-9 (Student's t, 39 degrees of freedom).
    And not by so much that something else must be wrong."""
    domain = Domain(tuple("abcdefgh"), (3, 4, 2, 5, 3, 4, 3, 2))
    gains = {"noise": [], "independence": []}
    errors = []
    for seed in range(40):
        one_ways, pairs = mixture(seed, domain)
        seen = noisy(pairs, sigma, seed)
        errors.append(error(fit(one_ways, seen, domain=domain), pairs))
        gains["noise"].append(error([t.counts for t in seen], pairs) - errors[-1])
        gains["independence"].append(error(independent(one_ways, pairs), pairs) - errors[-1])
    for gain in gains.values():
        assert np.mean(gain) > 8 * np.std(gain, ddof=1) / np.sqrt(len(gain))
        assert np.mean(errors) > 0.1 * np.mean(gain)


@pytest.mark.parametrize("sigma", [50.0, 400.0])
def test_the_mean_of_mixtures_errs_less_than_one(monkeypatch, sigma):
    """Mean over 40 populations, each compared with itself: eight standard errors, as in the test above. Four
    mixtures share most of their errors, so the gain is at most a tenth."""
    domain = Domain(tuple("abcdef"), (6, 5, 8, 4, 7, 5))
    errors = {1: [], latent.MIXTURES: []}
    for seed in range(40):
        one_ways, pairs = mixture(seed, domain)
        seen = noisy(pairs, sigma, seed)
        for starts, errors_of_starts in errors.items():
            monkeypatch.setattr(latent, "MIXTURES", starts)
            errors_of_starts.append(error(fit(one_ways, seen, domain=domain), pairs))
    one, mean = map(np.array, errors.values())
    assert (one - mean).mean() > 8 * np.std(one - mean, ddof=1) / np.sqrt(len(one))
    assert (one - mean).mean() < 0.1 * one.mean()


@pytest.mark.parametrize("processors", [1, 3, None])
def test_threads_change_nothing(monkeypatch, processors):
    usual = fit(*mixture(0))
    monkeypatch.setattr(latent, "cpu_count", lambda: processors)
    for counts, same in zip(fit(*mixture(0)), usual, strict=True):
        np.testing.assert_array_equal(counts, same)


@settings(deadline=None, max_examples=10)
@given(seeds)
def test_every_round_fits_better(seed):
    """The likelihood of the pairs by one mixture, but for the trace by which every value is kept open."""
    one_ways, pairs = mixture(seed)
    pairs = noisy(pairs, 200.0, seed)
    likelihoods = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(latent, "MIXTURES", 1)
        for rounds in (0, 1, 2, 3, 5, 10, 30):
            patch.setattr(latent, "CLASS_ITERATIONS", rounds)
            fitted = fit(one_ways, pairs, seed)
            likelihoods.append(
                sum((p.counts / N * np.log(f / N + 1e-12)).sum() for p, f in zip(pairs, fitted, strict=True))
            )
    assert all(later > earlier - 1e-6 for earlier, later in pairwise(likelihoods))
    assert likelihoods[-1] > likelihoods[0] + 1e-3


@pytest.mark.slow
@settings(deadline=None)
@given(seeds, st.integers(1, 4), st.integers(1, 5), st.integers(1, 3))
def test_each_cell_of_each_pair_is_shared_out_over_the_classes(seed, rows, columns, classes):
    rng = np.random.default_rng(seed)
    sizes = (rows, columns, 2)
    shares = rng.dirichlet(np.ones(classes))
    distributions = [rng.dirichlet(np.ones(size), classes).T for size in sizes]
    # Between and around the attributes lie others, which stay as they are.
    other = np.ones((1, classes))
    values = np.concatenate([x for distribution in distributions for x in (other, distribution)] + [other])
    starts = [1, rows + 2, rows + columns + 3]
    expected = np.ones_like(values)
    pairs, tables = [(0, 1), (2, 0)], []
    for a, b in pairs:
        table = rng.dirichlet(np.full(sizes[a] * sizes[b], 0.3)).reshape(sizes[a], sizes[b])
        table[table < 0.01] = 0.0
        tables.append(table)
        for axis, more in zip(
            (a, b), reference.class_evidence([distributions[a], distributions[b]], shares, table), strict=True
        ):
            expected[starts[axis] : starts[axis] + sizes[axis]] += more
    evidence = np.ones_like(values)
    _kernels.add_class_evidence(
        values,
        shares,
        np.concatenate([table.ravel() for table in tables]),
        np.array([[starts[a], starts[b]] for a, b in pairs]),
        np.array([table.shape for table in tables]),
        evidence,
    )
    np.testing.assert_allclose(evidence, expected, rtol=1e-9)


def test_a_value_that_nobody_has_stays_nobodys():
    domain = Domain(tuple("ab"), (3, 2))
    table = Marginal(domain, np.array([[5000.0, 0.0], [0.0, 5000.0], [0.0, 0.0]]))
    one_ways = tuple(table.project((name,)) for name in domain)
    (fitted,) = fit(one_ways, (table,), domain=domain)
    np.testing.assert_allclose(fitted, table.counts, atol=1.0)
    assert np.isfinite(fitted).all()
    assert fitted[2].sum() < 1e-3


def test_the_parameters_are_those_that_move_the_table(monkeypatch):
    """As many directions as the derivative of the whole table has, for two classes of three attributes."""
    monkeypatch.setattr(latent, "CLASSES", 2)
    domain = Domain(tuple("abc"), (3, 4, 2))
    rng = np.random.default_rng(0)
    sizes = [2, *domain.sizes, *domain.sizes]

    def table(numbers):
        parts = np.split(np.abs(numbers), np.cumsum(sizes)[:-1])
        shares, *values = (part / part.sum() for part in parts)
        return sum(
            share * np.einsum("a,b,c->abc", *values[3 * k : 3 * k + 3]).ravel()
            for k, share in enumerate(shares)
        )

    point, step = rng.uniform(1, 2, sum(sizes)), 1e-5
    slopes = [(table(point + step * e) - table(point - step * e)) / (2 * step) for e in np.eye(len(point))]
    assert parameters(domain) == np.linalg.matrix_rank(np.array(slopes), tol=1e-6)
