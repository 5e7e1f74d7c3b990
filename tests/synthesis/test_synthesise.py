"""From exact tables to records: what depended in the tables depends in the records, by both methods."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import reference

from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.methods.paper.gum import synthesise_as_published
from privsyn.synthesis.synthesise import synthesise
from privsyn.synthesis.targets import Targets

SHAPES = {
    "pair": ["ab"],
    "chain": ["ab", "bc", "cd"],
    "star": ["ab", "ac", "ad", "ae"],
    "forest": ["ab", "de"],
    "cycle": ["ab", "bc", "cd", "da"],
    "cycle with leaves": ["ab", "bc", "ca", "ad", "de"],
    "clique": ["abc", "cd"],
    "two cliques": ["abc", "bcd", "de"],
    "all pairs": [*map("".join, combinations("abcde", 2))],
}


def private_records(n=2000):
    """b is a; c is mostly a; d is drawn from c and a; e is constant."""
    rng = np.random.default_rng(0)
    a = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    c = np.where(rng.random(n) < 0.2, rng.integers(0, 4, n), a)
    d = (c + (rng.random(n) < 0.3) * a) % 3
    return Records(Domain(tuple("abcde"), (4, 4, 4, 3, 2)), np.stack([a, a, c, d, np.ones_like(a)], axis=1))


PRIVATE = private_records()
N = len(PRIVATE)


def tables_of(records, sets):
    return tuple(reference.count(records, tuple(attributes)) for attributes in sets)


SYNTHESISERS = {"default": synthesise, "published": synthesise_as_published}


def synthesised(method, sets, n, seed=0, records=PRIVATE, progress=None):
    targets = Targets(tables_of(records, records.domain.names), tables_of(records, sets))
    return SYNTHESISERS[method](targets, n, np.random.default_rng(seed), progress=progress)


both = pytest.mark.parametrize("method", ["default", "published"])
shapes = pytest.mark.parametrize("shape", SHAPES)


@both
@shapes
def test_what_was_equal_is_equal(method, shape):
    records = synthesised(method, SHAPES[shape], 10_000)
    assert (records.domain, len(records)) == (PRIVATE.domain, 10_000)
    assert (records.codes[:, 0] == records.codes[:, 1]).mean() > 0.99


@pytest.mark.slow
@both
@shapes
def test_every_table_is_met(method, shape):
    """To a total variation of one in a hundred, where independent columns would be 0.7 off."""
    n = 10_000
    records = synthesised(method, SHAPES[shape], n)
    for table in tables_of(PRIVATE, [*"abcde", *SHAPES[shape]]):
        assert reference.distance(records, table) < 0.02 * n


@pytest.mark.parametrize("shape", ["pair", "chain", "star", "forest"])
def test_the_tables_of_a_forest_are_met_exactly_by_appending(shape):
    records = synthesised("published", SHAPES[shape], N)
    for table in tables_of(PRIVATE, SHAPES[shape]):
        assert reference.distance(records, table) == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
@both
@shapes
@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_few_rows_are_as_many_as_asked_for(method, shape, n):
    records = synthesised(method, SHAPES[shape], n)
    assert (records.domain, len(records)) == (PRIVATE.domain, n)


@both
def test_attributes_that_no_table_links_are_independent(method):
    """a is b, d is e in the tables, and the groups have nothing to do with each other.

    Hypergeometric, mean n / 2 and variance n / 4: within 5.5 standard deviations but for 4e-8."""
    n = 4000
    half = np.arange(n) % 2
    equal = Records(Domain(tuple("abde"), (2,) * 4), np.stack([half] * 4, axis=1))
    codes = synthesised(method, ["ab", "de"], n, records=equal).codes
    assert np.array_equal(codes[:, 0], codes[:, 1])
    assert np.array_equal(codes[:, 2], codes[:, 3])
    assert abs((codes[:, 0] == codes[:, 2]).sum() - n / 2) < 5.5 * np.sqrt(n / 4)


@both
@pytest.mark.parametrize("sets", [*SHAPES.values(), ["ab", "bc", "ca", "de"], []])
@pytest.mark.parametrize("n", [0, 100])
def test_what_is_done_grows_and_ends_at_the_total(method, sets, n):
    told = []
    synthesised(method, sets, n, progress=lambda *report: told.append(report))
    stages, done, totals = zip(*told, strict=True)
    assert set(stages) == {"synthesising"}
    assert len(set(totals)) == 1
    assert done[0] == 0
    assert (np.diff(done) > 0).all()
    assert done[-1] == totals[-1]


def test_rounds_of_all_components_are_counted_together():
    told = []
    domain = Domain(tuple("abcdef"), (2,) * 6)
    records = Records(domain, np.random.default_rng(0).integers(0, 2, (50, 6)))
    sets = ["ab", "bc", "ca", "de", "ef", "fd"]
    synthesised("published", sets, 50, records=records, progress=lambda *report: told.append(report[1:]))
    assert told == [(done, 200) for done in range(201)]


def excess_of_rare_class(sets, seed):
    """Return the variance of the sum of ten scores in a class of 20 %, over the sum of their variances.

    Each column is in a table with the class, and the tables of `sets` of two columns say nothing more. So the
    scores are independent within a class, and the ratio is 1 but for chance.
    """
    rng, n, codes = np.random.default_rng(seed), 4000, 20
    tables, scores = [], []
    for name in "abcdefghij":
        usual = rng.dirichlet(np.ones(codes))
        rare = usual * np.exp(rng.normal(0, 0.7, codes))
        rare /= rare.sum()
        domain = Domain((name, "y"), (codes, 2))
        tables.append(Marginal(domain, n * np.stack([0.8 * usual, 0.2 * rare], axis=1)))
        scores.append(np.log(rare / usual))
    shares = {table.attributes[0]: table.counts / table.counts.sum(axis=0) for table in tables}
    for a, b in sets:
        counts = n * shares[a] @ np.diag([0.8, 0.2]) @ shares[b].T
        tables.append(Marginal(Domain((a, b), (codes, codes)), counts))
    one_ways = (*(table.project(table.attributes[:1]) for table in tables[:10]), tables[0].project(("y",)))
    targets = Targets(one_ways, tuple(tables), label="y")
    records = synthesise(targets, n, np.random.default_rng(seed))
    rows = records.codes[records.codes[:, -1] == 1]
    covariance = np.cov([score[column] for score, column in zip(scores, rows.T, strict=False)])
    return covariance.sum() / np.trace(covariance)


@pytest.mark.parametrize("sets", [[], ["ab"]], ids=["star", "and a pair"])
def test_columns_of_a_class_are_independent_if_no_table_says_otherwise(sets):
    # Over 800 rows the ratio scatters by about 0.06, so the mean of eight by about 0.02. Five times as much
    # has a probability below 1e-6. Without a label the mean is 1.16.
    excess = [excess_of_rare_class(sets, seed) for seed in range(8)]
    assert np.mean(excess) == pytest.approx(1, abs=0.1)
