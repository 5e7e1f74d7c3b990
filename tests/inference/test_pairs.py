"""Pairs: what is expected before they are measured, and what is made of the measurements."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import reference

from privsyn import Categorical, PrivSyn, Schema
from privsyn.inference import pairs as stage
from privsyn.inference.measured_columns import Estimate, MeasuredColumns
from privsyn.inference.pairs import MARGIN_NOISE, estimate_pairs, independent_pairs, score_pairs
from privsyn.inference.prior.dispersion import departure_likelihood, pooled_dispersions
from privsyn.inference.prior.smoothing import Waves
from privsyn.marginals.channel import Channels
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal, Measurement

DOMAIN = Domain(tuple("abcd"), (4, 3, 4, 3))


def hidden(n=5000, seed=0):
    """Four attributes that lean on one hidden value."""
    rng = np.random.default_rng(seed)
    value = rng.integers(0, 3, n)
    columns = [np.where(rng.random(n) < 0.6, value, rng.integers(0, size, n)) for size in DOMAIN.sizes]
    return Records(DOMAIN, np.stack(columns, axis=1))


def measured(records, sets, sigma, rng):
    tables = [reference.count(records, tuple(attributes)) for attributes in sets]
    return tuple(
        Measurement(Marginal(t.domain, t.counts + rng.normal(0, sigma, t.domain.shape)), np.array(sigma**2))
        for t in tables
    )


def estimated(one_ways, pairs, rng):
    estimates = tuple(Estimate(m.marginal, measured=m) for m in pairs)
    return estimate_pairs(MeasuredColumns(reference.unmerged(DOMAIN), one_ways=one_ways), estimates, rng)


def error(tables, records):
    return sum(np.abs(t.counts - reference.count(records, t.attributes).counts).sum() for t in tables)


def test_expected_pairs_have_the_one_ways_as_their_margins():
    records = hidden()
    one_way = {name: reference.count(records, (name,)) for name in DOMAIN}
    expected = independent_pairs(DOMAIN, tuple(one_way.values()))
    assert [pair.attributes for pair in expected] == list(combinations("abcd", 2))
    for pair in expected:
        a, b = (one_way[name].counts for name in pair.attributes)
        assert pair.counts == pytest.approx(np.outer(a, b) / len(records))


def test_the_noise_of_the_one_ways_makes_expected_counts_uncertain_as_it_does():
    """Against 20,000 draws: a variance is then known to 1 %, and 8 % is eight standard deviations."""
    rng = np.random.default_rng(0)
    a, b = np.array([600.0, 300, 100]), np.array([700.0, 300])
    pair = Marginal(Domain(("a", "b"), (3, 2)), np.outer(a, b) / 1000)
    sigmas = {"a": 20.0, "b": 5.0}
    one_way = {
        name: Measurement(Marginal(pair.domain.project((name,)), counts), np.array(sigmas[name] ** 2))
        for name, counts in (("a", a), ("b", b))
    }
    noisy_a, noisy_b = (c + rng.normal(0, s, (20_000, len(c))) for c, s in ((a, 20.0), (b, 5.0)))
    drawn = (noisy_a[:, :, None] * noisy_b[:, None, :] / 1000).var(axis=0)
    (found,) = stage._uncertainty([pair], pair.counts[np.newaxis], one_way)
    np.testing.assert_allclose(found / stage.MARGIN_NOISE, drawn, rtol=0.08)


def test_what_the_one_ways_do_not_know_is_not_taken_for_dependence():
    """The same departure, beside exact one-ways and beside noisy ones."""
    records = hidden()
    exact = tuple(reference.count(records, (name,)) for name in DOMAIN)
    expected = independent_pairs(DOMAIN, exact)
    departures = np.full(len(expected), 300.0)
    sure, unsure = (
        pooled_dispersions(
            score_pairs(
                MeasuredColumns(reference.unmerged(DOMAIN), one_ways=tuple(one_ways)),
                departures,
                10.0,
                expected,
                Waves(exact),
            )
        )
        for one_ways in ([Measurement(m, variance) for m in exact] for variance in (1.0, 100.0**2))
    )
    assert (sure > 3 * unsure).all()


def test_estimates_are_better_than_what_was_measured_and_than_independence():
    records, rng = hidden(), np.random.default_rng(1)
    one_ways = measured(records, DOMAIN.names, 10.0, rng)
    noisy = measured(records, list(combinations("abcd", 2)), 40.0, rng)
    found = estimated(one_ways, noisy, rng)
    independent = independent_pairs(DOMAIN, found.one_ways)
    assert error(found.tables, records) < 0.85 * error([m.marginal for m in noisy], records)
    assert error(found.tables, records) < 0.2 * error(independent, records)


@pytest.mark.slow
def test_classes_bring_what_a_pair_alone_does_not_tell(monkeypatch):
    """One pair is all but unmeasured; the others tell of the value behind them all."""
    records = hidden()

    def worst(seed):
        rng = np.random.default_rng(seed)
        one_ways = measured(records, DOMAIN.names, 5.0, rng)
        noisy = (
            *measured(records, ["ab", "ac", "ad", "bc", "bd"], 10.0, rng),
            *measured(records, ["cd"], 1e3, rng),
        )
        found = estimated(one_ways, noisy, rng)
        return error(found.tables[-1:], records)

    with_classes = np.mean([worst(seed) for seed in range(10)])
    monkeypatch.setattr(
        stage,
        "latent_class_pairs",
        lambda domain, one_ways, pairs, rng: tuple(
            np.outer(*(pair.project((name,)).counts for name in pair.attributes)) / pair.total
            for pair in pairs
        ),
    )
    assert with_classes < 0.85 * np.mean([worst(seed) for seed in range(10)])


def test_what_is_left_is_less_than_the_noise_and_less_than_was_expected():
    records, rng = hidden(), np.random.default_rng(2)
    noisy = measured(records, ["ab", "cd"], 30.0, rng)
    found = estimated(measured(records, DOMAIN.names, 5.0, rng), noisy, rng)
    for pair, m in zip(found.estimates, noisy, strict=True):
        assert pair.posterior_variance.shape == m.marginal.domain.shape
        assert (pair.posterior_variance > 0).all()
        assert (pair.posterior_variance <= m.variance).all()


@pytest.mark.parametrize("ordered", [(), (0, 5, 0, 0, 4, 0)])
def test_pairs_scored_together_have_the_scores_of_each_alone(ordered, monkeypatch):
    """Bit for bit: scores do not depend on which pairs are computed together."""
    rng = np.random.default_rng(1)
    domain = Domain(tuple("abcdef"), (3, 5, 3, 2, 4, 5), ordered)
    counts = [rng.dirichlet(np.ones(size)) * 900 for size in domain.sizes]
    margins = tuple(Marginal(domain.project((n,)), c) for n, c in zip(domain.names, counts, strict=True))
    measured = tuple(Measurement(m, rng.uniform(1, 9, m.domain.shape)) for m in margins)
    pairs, waves = independent_pairs(domain, margins), Waves(margins)
    channels, blocks = Channels.for_domain({"c": 0.7}, domain), reference.unmerged(domain)
    monkeypatch.setattr("privsyn.inference.measured_columns.GROUPS", 9)  # each code is a block of its own
    measured_columns = MeasuredColumns(blocks, channels=channels, one_ways=measured)
    departures = rng.uniform(0, 300, len(pairs))
    monkeypatch.setattr(stage, "CELLS_AT_ONCE", 30)  # two or three of a shape
    found = score_pairs(measured_columns, departures, 5.0, pairs, waves)
    for departure, pair, scores in zip(departures, pairs, found, strict=True):
        names, signal = pair.attributes, channels.signal(pair.attributes)
        spectra = [waves.along(name, blocks.project((name,)).groups[0]) for name in names]
        a, b = (np.einsum("ik,k,ik->i", s.vectors, s.variances, s.vectors) for s in spectra)
        prior = pair.total * np.outer(a, b) if max(pair.domain.ordered) else pair.counts
        noise_a, noise_b = (measured[axis].variance for axis in domain.axes(names))
        share_a, share_b = pair.counts.sum(axis=1) / pair.total, pair.counts.sum(axis=0) / pair.total
        noise = MARGIN_NOISE * (np.outer(noise_a, share_b**2) + np.outer(share_a**2, noise_b))
        alone = departure_likelihood(departure, 5.0, signal * prior, noise + (1 - signal) * pair.counts)
        assert (scores == alone).all()


def dependence_of_rows(copied, epsilon, seeds):
    """The mean total variation between two columns of rows and the product of their margins."""
    rng, letters = np.random.default_rng(3), list("abcdef")
    first, other = rng.choice(6, (2, 1000), p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05])
    codes = {"u": first, "v": np.where(rng.random(1000) < copied, first, other)}
    frame = pd.DataFrame({name: np.array(letters)[column] for name, column in codes.items()})
    schema = Schema({name: Categorical(letters, nullable=False) for name in codes})
    distances = []
    for seed in range(seeds):
        rows = PrivSyn(epsilon, 1e-9, schema, seed=seed).fit(frame).sample(20_000, seed=seed)
        shares = pd.crosstab(rows["u"], rows["v"]).to_numpy() / len(rows)
        independent = np.outer(shares.sum(axis=1), shares.sum(axis=0))
        distances.append(np.abs(shares - independent).sum() / 2)
    return np.mean(distances)


def test_noise_that_hides_every_count_makes_no_dependence():
    """Chance alone moves .011 of 20,000 rows. The runs are seeded: nothing is left to chance."""
    assert dependence_of_rows(0.0, 0.01, seeds=30) < 0.04
    assert dependence_of_rows(0.5, 5.0, seeds=2) > 0.35
