"""Both methods spend their budget, all of it and no more, and learn nothing but from answers."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations
from math import fsum, sqrt

import numpy as np
import pytest
import reference
from reference import binary
from strategies import StubNoise

from privsyn.inference import selection, weights
from privsyn.inference.measured_columns import Estimate, MeasuredColumns, PublicFacts
from privsyn.inference.pairs import Pairs
from privsyn.inference.prior.smoothing import Waves
from privsyn.inference.weights import TARGET
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.methods import default
from privsyn.methods.budget import FIRST_COUNT
from privsyn.methods.columns import OF_CLASSES
from privsyn.methods.methods import DEFAULT, METHODS, PUBLISHED
from privsyn.methods.paper import learn as published
from privsyn.methods.paper.learn import NEGLIGIBLE, combine, dense_marg
from privsyn.private import measure
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import SeededGaussian, SeededLaplace

both = pytest.mark.parametrize("learn", [method.learn for method in METHODS.values()], ids=METHODS)
HUGE = 1e9  # a budget with which the noise is next to nothing


def dependent(n=600, d=6, seed=0):
    """Each attribute is mostly the one before it; the second is always the first."""
    rng = np.random.default_rng(seed)
    columns = [rng.choice(3, n, p=[0.5, 0.3, 0.2])]
    for j in range(1, d):
        fresh = rng.random(n) < (0 if j == 1 else 0.3)
        columns.append(np.where(fresh, rng.integers(0, 3, n), columns[-1]))
    return Records(Domain(tuple("abcdef"[:d]), (3,) * d, (3,) + (0,) * (d - 1)), np.stack(columns, axis=1))


def independent(d=3):
    """Every combination of values equally often."""
    domain = binary("abcdef"[:d])
    return Records(domain, np.array(list(np.ndindex(*domain.shape)) * 20))


def constant(d=3):
    return Records(Domain(tuple("abcdef"[:d]), (4,) * d), np.full((80, d), 2))


def many_values():
    """So many that the first look keeps fewer of them apart than both do."""
    rng = np.random.default_rng(4)
    shares = 1 / np.arange(1, 701)
    columns = [rng.choice(700, 20_000, p=shares / shares.sum()), *rng.integers(8, size=(2, 20_000))]
    return Records(Domain(("word", "a", "b"), (700, 8, 8)), np.column_stack(columns))


TABLES = {
    "one attribute": dependent(d=1),
    "two attributes": dependent(d=2),
    "three attributes": dependent(d=3),
    "six attributes": dependent(d=6),
    "independent attributes": independent(),
    "constant attributes": constant(),
    "no rows": dependent(n=0, d=3),
    "one row": dependent(n=1, d=3),
    "many values beside few": many_values(),
}
each_table = pytest.mark.parametrize("table", TABLES)
each_budget = pytest.mark.parametrize("rho", [1e-4, 0.02, 0.1, HUGE])


def run(learn, records, rho, noise=None, told=None, target=None):
    """What is learnt, and the private table that answered."""
    private = PrivateTable(records, noise or SeededGaussian(5))
    report = (told if told is not None else []).append
    fitted = learn(private, rho, np.random.default_rng(0), lambda *step: report(step), PublicFacts(target))
    return fitted, private


@cache
def seeded_run(learn, table, rho):
    """What is learnt of one of `TABLES`, and the private table that answered; worked out once."""
    return run(learn, TABLES[table], rho)


# --- the budget --------------------------------------------------------------------------------------------


@pytest.mark.slow
@both
@each_table
@each_budget
def test_the_whole_budget_is_spent_and_no_more(learn, table, rho):
    _, private = seeded_run(learn, table, rho)
    assert fsum(spend.rho for spend in private.spends) == pytest.approx(rho, rel=1e-9)


def test_the_published_shares_are_a_tenth_a_tenth_and_the_rest():
    _, private = run(published.learn, dependent(), 0.5)
    one_ways, dependences, *tables = [spend.rho / 0.5 for spend in private.spends]
    assert (one_ways, dependences, fsum(tables)) == pytest.approx((0.1, 0.1, 0.8))


@pytest.mark.parametrize("records", [independent(), constant(), dependent(d=1)])
def test_where_nothing_depends_the_published_method_counts_the_attributes_once_more(records):
    fitted, private = run(published.learn, records, HUGE, StubNoise())
    assert fitted.marginals == ()
    again = [spend.what for spend in private.spends if spend.what.startswith("counts")]
    assert again == [f"counts over {name}" for name in records.domain]


# --- what is learnt ----------------------------------------------------------------------------------------


@pytest.mark.slow
@both
@each_table
@each_budget
def test_what_is_learnt_is_not_negative_and_has_one_total(learn, table, rho):
    fitted, private = seeded_run(learn, table, rho)
    assert fitted.merging.original == private.domain
    assert [table.attributes for table in fitted.one_ways] == [(name,) for name in TABLES[table].domain]
    for counted in (*fitted.one_ways, *fitted.marginals):
        assert (counted.counts >= 0).all()
        assert counted.total == pytest.approx(fitted.total, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learn", "share", "cell"),
    [(default.learn, 0.05, 0.0), (published.learn, 1e-6, NEGLIGIBLE)],
    ids=["default", "published"],
)
@each_table
@each_budget
def test_tables_agree_with_the_one_ways(learn, share, cell, table, rho):
    """To a share of the records, and to so many records for each cell.

    In the default the rounds of proportional fitting end before margins agree to the last. In the published
    method the last negative cells, each negligible, are set to 0, and the table is rescaled for them.
    """
    fitted, _ = seeded_run(learn, table, rho)
    one_way = dict(zip(TABLES[table].domain, fitted.one_ways, strict=True))
    for counted in fitted.marginals:
        for name in counted.attributes:
            gap = counted.project((name,)).counts - one_way[name].counts
            assert np.abs(gap).max() <= share * fitted.total + cell * counted.domain.cells


@pytest.mark.slow
@both
@each_table
def test_without_noise_the_true_counts_are_learnt(learn, table):
    records = TABLES[table]
    fitted, _ = run(learn, records, HUGE, StubNoise())
    merged = fitted.merging.merge(records)
    assert fitted.total == pytest.approx(max(len(records), 1))
    for counted in (*fitted.one_ways, *fitted.marginals):
        true = reference.count(merged, counted.attributes).counts
        assert np.abs(counted.counts - true).sum() <= (0.001 * len(records) if len(records) else 1 + 1e-9)


@both
def test_without_noise_every_dependence_is_learnt(learn):
    records = dependent(d=3)
    fitted, _ = run(learn, records, HUGE, StubNoise())
    held = {pair for table in fitted.marginals for pair in combinations(table.attributes, 2)}
    assert held == set(combinations("abc", 2))


@both
def test_the_total_is_the_private_estimate_and_not_the_row_count(learn):
    """With sigma_1 in the hundreds it is equal by chance with less than 1 %: three seeds, three misses."""
    records = dependent()
    totals = [run(learn, records, 1e-5, SeededGaussian(seed))[0].total for seed in range(3)]
    assert len(set(totals)) == 3
    assert len(records) not in totals


@pytest.mark.slow
@both
@each_table
def test_nothing_is_learnt_but_from_answers(learn, table, monkeypatch):
    """Two tables that have nothing but the domain in common, and every answer painted over: no difference."""

    def paint(exact, sigma, noise):
        noise.draw(sigma, exact.size)
        return 50 + 25 * (np.arange(exact.size) % 3).reshape(exact.shape)

    monkeypatch.setattr(measure, "release", paint)
    records = TABLES[table]
    other = Records(records.domain, np.zeros((1234, len(records.domain)), int))
    runs = [run(learn, rows, 0.1, StubNoise()) for rows in (records, other)]
    (one, private), (two, other_private) = runs
    assert private.spends == other_private.spends
    assert one.total == two.total
    assert one.merging.merged == two.merging.merged
    for name in ("groups", "shares"):
        assert all(map(np.array_equal, getattr(one.merging, name), getattr(two.merging, name)))
    for name in ("one_ways", "marginals"):
        tables, others = getattr(one, name), getattr(two, name)
        assert [t.attributes for t in tables] == [t.attributes for t in others]
        assert all(np.array_equal(a.counts, b.counts) for a, b in zip(tables, others, strict=True))


@both
def test_the_same_noise_and_the_same_seed_teach_the_same(learn):
    one, two = (run(learn, dependent(), 0.02, SeededGaussian(1))[0] for _ in range(2))
    for a, b in zip((*one.one_ways, *one.marginals), (*two.one_ways, *two.marginals), strict=True):
        assert np.array_equal(a.counts, b.counts)


# --- the published method, step for step -------------------------------------------------------------------


def test_the_published_method_measures_what_dense_marg_and_combine_choose():
    records, rho = dependent(), 0.3
    fitted, _ = run(published.learn, records, rho, StubNoise())
    merged = fitted.merging.merge(records)
    dependences = PrivateTable(merged, StubNoise()).indifs(1.0)
    chosen = combine(dense_marg(dependences, merged.domain, 0.8 * rho), merged.domain)
    assert chosen
    assert [table.attributes for table in fitted.marginals] == list(chosen)


def test_the_published_method_does_not_look_at_the_order_of_values():
    codes = np.repeat(np.arange(8), [400, 1, 400, 1, 1, 400, 1, 400])[:, np.newaxis]
    records = Records(Domain(("a",), (8,), (8,)), codes)
    fitted, _ = run(published.learn, records, 0.1, StubNoise())
    assert fitted.merging.merged == Domain(("a",), (4,), (0,))


# --- the default -------------------------------------------------------------------------------------------


@pytest.mark.slow
@both
def test_more_budget_teaches_more(learn):
    """Mean distance from the true pairs over 5 seeds, at budgets a thousandfold apart: far from chance."""
    records = dependent(d=3)

    def error(rho):
        distances = []
        for seed in range(5):
            fitted, _ = run(learn, records, rho, SeededGaussian(seed))
            merged = fitted.merging.merge(records)
            tables = {t.attributes: t.counts for t in fitted.one_ways}
            for pair in combinations("abc", 2):
                holder = next((t for t in fitted.marginals if set(pair) <= set(t.attributes)), None)
                product = np.outer(*(tables[(name,)] for name in pair)) / fitted.total
                counts = product if holder is None else holder.project(pair).counts
                distances.append(np.abs(counts - reference.count(merged, pair).counts).sum())
        return np.mean(distances)

    assert error(10.0) < error(0.01) / sqrt(10)


@pytest.mark.slow
def test_tables_with_the_target_get_more_of_the_budget():
    def share(target):
        _, private = run(default.learn, dependent(), 0.05, target=target)
        counts = [spend for spend in private.spends if spend.what.startswith("counts over")]
        told = fsum(spend.rho for spend in counts if "c" in spend.what.split(" (")[0][len("counts over ") :])
        return told / fsum(spend.rho for spend in counts)

    assert share("c") > 1.3 * share(None)
    assert share("e") < share(None)


@pytest.mark.parametrize(("noise", "exponent"), [(SeededGaussian, 2 / 3), (SeededLaplace, 1 / 2)])
def test_pairs_with_the_target_are_a_question_of_their_own_with_less_noise(noise, exponent):
    asked = {}
    for target in ("c", None):
        _, private = run(default.learn, dependent(), 0.5, noise(5), target=target)
        spends = [spend for spend in private.spends if spend.what.startswith("distance")]
        asked[target] = {spend.what.split(", ")[1]: (spend.answers, spend.cost) for spend in spends}
    (five, dear), (ten, cheap) = asked["c"]["pairs with the target"], asked["c"]["pairs"]
    assert (five, ten) == (5, 10)
    assert dear / five == pytest.approx(TARGET**exponent * cheap / ten)
    fifteen, whole = asked[None]["pairs"]
    assert fifteen == 15
    assert whole > (dear + cheap) * (1 - 1e-9)  # with much noise, tables with the target are paid for first
    assert asked[None].keys() <= {"pairs", "sets of columns"}


@pytest.mark.parametrize(("rho", "answers"), [(0.5, 14 + 10 + 5), (0.2, 14)])
def test_sets_of_four_and_five_are_scored_where_noise_leaves_their_scores_clear(rho, answers):
    """Noise in each of 29 scores, over 600 rows: .07 for rho .5, .11 for .2."""
    _, private = run(default.learn, dependent(), rho, target="c")
    scores = [spend.answers for spend in private.spends if "sets of columns" in spend.what]
    assert sum(scores) == answers


def test_with_much_noise_columns_are_counted_with_the_target_and_numbers_alone_too():
    _, private = run(default.learn, dependent(), 5e-4, target="c")
    *counts, number = (f"one-way counts of {name}" for name in ("every attribute", "c", "a"))
    assert [spend.what for spend in private.spends[:3]] == [*counts, number]
    tables = [spend.what for spend in private.spends[3:]]
    names = [what.removeprefix("counts over ").split(", ")[:2] for what in tables]
    assert all("c" in pair for pair in names)
    assert {name for pair in names for name in pair} == set("abcdef")


def test_the_rarer_a_class_the_more_is_spent_on_columns_with_the_target():
    """Noise is .07 of the mean count of a cell if classes are equal; with a class of a twentieth it is .3.

    Noise hides a class of a fiftieth.
    """

    def spent(share):
        domain, rng = Domain(tuple("abcdef"), (8, 8, 2, 8, 8, 8)), np.random.default_rng(0)
        rows = rng.integers(0, domain.shape, (4000, 6))
        rows[:, 2] = np.arange(4000) < share * 4000
        _, private = run(default.learn, Records(domain, rows), 0.01, target="c")
        counts = (spend for spend in private.spends if spend.what.startswith("counts over"))
        return fsum(spend.cost for spend in counts if "c" in spend.what.split(" (")[0][len("counts over ") :])

    all_but_first = 0.01 - FIRST_COUNT * 0.01
    assert [spent(share) for share in (0.05, 0.95, 0.02)] == pytest.approx([all_but_first] * 3)
    assert spent(0.5) < 0.85 * all_but_first


def test_numbers_lose_own_counts_where_tables_with_the_target_drown_in_noise(monkeypatch):
    """The noise is 0.4955 of the mean count."""

    def cost_alone(drowned):
        monkeypatch.setattr("privsyn.methods.columns.DROWNED", drowned)
        _, private = run(default.learn, dependent(), 5e-4, target="c")
        costs = {spend.what: spend.cost for spend in private.spends}
        assert fsum(costs.values()) == pytest.approx(5e-4)
        return costs["one-way counts of a"]

    assert cost_alone(0.5) == cost_alone(4.0)
    assert cost_alone(0.1) == pytest.approx(0.1 / 0.4955 * cost_alone(0.5), rel=1e-3)


def test_own_counts_of_numbers_have_at_most_a_share_beside_tables_with_the_target(monkeypatch):
    def costs(most):
        monkeypatch.setattr("privsyn.methods.columns.MOST_OWN", most)
        _, private = run(default.learn, dependent(), 5e-4, target="c")
        paid = {spend.what: spend.cost for spend in private.spends}
        assert fsum(paid.values()) == pytest.approx(5e-4)
        first = paid["one-way counts of every attribute"] + paid["one-way counts of c"]
        return first, paid["one-way counts of a"]

    first, alone = costs(0.01)
    assert alone == pytest.approx(0.01 * (5e-4 - first))
    assert costs(0.5) == costs(1.0) > (first, alone)


def test_classes_have_a_part_of_the_first_count_and_a_number_has_none():
    """A target that is a number has no question of its own in the first count, nor has a single column."""
    _, private = run(default.learn, dependent(), 1e-3, target="c")
    joint, classes = private.spends[:2]
    assert classes.cost == pytest.approx(OF_CLASSES * FIRST_COUNT * 1e-3)
    assert joint.cost + classes.cost == pytest.approx(FIRST_COUNT * 1e-3)
    assert (classes.what, classes.sensitivity) == ("one-way counts of c", 1.0)
    for d, target in ((6, "a"), (1, "a"), (6, None)):
        records = dependent(d=d)
        _, private = run(default.learn, records, 1e-3, target=target)
        assert private.spends[0].cost == pytest.approx(FIRST_COUNT * 1e-3)


def test_a_number_is_counted_with_classes_in_about_eight_groups_even_if_each_drowns():
    rng = np.random.default_rng(0)
    classes, number = rng.integers(0, 2, 2000), rng.integers(0, 32, 2000)
    records = Records(Domain(("y", "x"), (2, 32), (0, 32)), np.stack([classes, number], axis=1))
    _, private = run(default.learn, records, 1e-4, target="y")
    (answers,) = (spend.answers for spend in private.spends if spend.what.startswith("counts over y, x"))
    assert 2 * 6 <= answers <= 2 * 8  # values that noise hides leave fewer


def test_important_sets_are_not_asked_after_all_columns_with_the_target():
    private = PrivateTable(dependent(), SeededGaussian(5))
    facts = PublicFacts("c", important=(("b", "d"),))
    default.learn(private, 5e-4, np.random.default_rng(0), lambda *_: None, facts)
    assert "counts over b, d" in {spend.what for spend in private.spends}


def spent_on(private, holds):
    """Share of what tables cost that goes to those whose attributes `holds` says yes to."""
    costs = {s.what: s.rho for s in private.spends if s.what.startswith("counts over")}
    names = {what: what.removeprefix("counts over ").split(" (look")[0].split(", ") for what in costs}
    return fsum(rho for what, rho in costs.items() if holds(names[what])) / fsum(costs.values())


def test_small_tables_get_more_only_if_a_target_is_named(monkeypatch):
    """Two pairs that depend alike, of 4 and of 144 cells, beside a target."""
    rng = np.random.default_rng(3)
    small, large = rng.integers(0, 2, 4000), rng.integers(0, 12, 4000)
    same = rng.random((2, 4000)) < 0.5
    columns = [small, np.where(same[0], small, 1 - small), large, np.where(same[1], large, (large + 1) % 12)]
    records = Records(Domain(tuple("abcde"), (2, 2, 12, 12, 2)), np.stack([*columns, small], axis=1))

    def share(target):
        _, private = run(default.learn, records, 0.02, target=target)
        return spent_on(private, lambda names: set(names) <= set("ab"))

    weighted = share("e"), share(None)
    monkeypatch.setattr(weights, "SMALL_FIRST", 0.0)
    assert weighted[0] > 1.1 * share("e")
    assert weighted[1] == share(None)


def test_an_error_in_a_bigger_table_weighs_less(monkeypatch):
    """An exclusive or, 40 % of its values wrong, beside a chain: the set and the pairs are worth a look."""
    monkeypatch.setattr(default, "residual_sets", lambda measured_columns: ())
    rng = np.random.default_rng(4)
    a, b, wrong = rng.integers(0, 2, 4000), rng.integers(0, 2, 4000), rng.random(4000) < 0.4
    columns = [a, b, a ^ b ^ wrong]
    for _ in range(3):
        columns.append(np.where(rng.random(4000) < 0.7, columns[-1], rng.integers(0, 2, 4000)))
    records = Records(binary("abcdef"), np.stack(columns, axis=1))

    def share():
        return spent_on(run(default.learn, records, 0.02)[1], lambda names: len(names) > 2)

    weighted = share()
    monkeypatch.setattr(default, "BIGGER", 1.0)
    assert 0 < weighted < 0.95 * share()


def test_all_triples_of_few_cells_are_measured_and_of_many_cells_some():
    """The residuals of binary columns cost an eighth of their counts, those of ten codes nearly as much."""
    rng = np.random.default_rng(6)
    for size, asked in ((2, 6 + 15 + 20), (10, 0)):
        columns = [rng.integers(0, size, 4000)]
        for _ in range(5):
            columns.append(np.where(rng.random(4000) < 0.7, columns[-1], rng.integers(0, size, 4000)))
        records = Records(Domain(tuple("abcdef"), (size,) * 6), np.stack(columns, axis=1))
        fitted, private = run(default.learn, records, 0.02)
        assert sum(spend.what.startswith("residual") for spend in private.spends) == asked
        assert fsum(spend.rho for spend in private.spends) == pytest.approx(0.02)
        if asked:
            assert sum(len(table.domain) == 3 for table in fitted.marginals) == 20


def test_a_triple_that_is_measured_by_its_residual_is_exact_without_noise():
    """Any table of three binary columns, here one with an exclusive or, is its residuals together."""
    rng = np.random.default_rng(7)
    a, b = rng.integers(0, 2, (2, 4000))
    wrong = rng.random(4000) < 0.1
    records = Records(binary("abcd"), np.stack([a, b, a ^ b ^ wrong, rng.integers(0, 2, 4000)], axis=1))
    fitted, private = run(default.learn, records, 1e9)
    assert any(spend.what == "residual over a, b, c" for spend in private.spends)
    for table in fitted.marginals:
        assert np.abs(table.counts - reference.count(records, table.attributes).counts).max() < 1
    for certainty in fitted.certainties:
        exact = reference.count(records, certainty.attributes).counts
        assert np.abs(certainty.measured.marginal.counts - exact).max() < 0.1


# --- progress ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@both
@each_table
def test_progress_grows_and_ends_at_its_total(learn, table):
    told = []
    run(learn, TABLES[table], 0.02, told=told)
    *rounds, begin, end = told
    assert (begin, end) == (("estimating", 0, 1), ("estimating", 1, 1))
    stages, done, totals = zip(*rounds, strict=True)
    assert set(stages) == {"measuring"}
    rounds = 4 if learn is default.learn else 3
    assert set(totals) == {rounds}
    assert (PUBLISHED.stages, DEFAULT.stages) == (3, 4)
    assert sorted(set(done)) == list(done)
    assert done[-1] == totals[-1]


# --- the second look ---------------------------------------------------------------------------------------


def again(private, measured, *left):
    """Look again at pairs of which only that is known what their measurement left uncertain."""
    measured_columns = MeasuredColumns(reference.unmerged(private.domain))
    pairs = tuple(
        Estimate(m.marginal, measured=m, posterior_variance=of) for m, of in zip(measured, left, strict=True)
    )
    _, found, bigger = default._measure_again(
        private, measured_columns, Pairs(1.0, (), pairs, Waves(())), (), 1.0, PublicFacts()
    )
    assert bigger == ()
    return [pair.measured for pair in found]


def test_both_looks_at_a_pair_are_averaged_by_their_precision():
    records = dependent(d=2)
    private = PrivateTable(records, StubNoise())
    once = private.marginals((("a", "b"),), np.array([0.5]))
    shifted = replace(once[0], marginal=Marginal(once[0].marginal.domain, once[0].marginal.counts + 12.0))
    (twice,) = again(private, (shifted,), np.full((3, 3), 1.0))
    np.testing.assert_allclose(twice.variance, 1 / (1 / once[0].variance + 2.0))
    np.testing.assert_allclose(twice.marginal.counts, once[0].marginal.counts + 12.0 / 3)


def test_what_is_certain_is_not_looked_at_again():
    records = dependent(d=3)
    private = PrivateTable(records, StubNoise())
    pairs = private.marginals((("a", "b"), ("b", "c")), np.array([0.5, 0.5]))
    first, second = again(private, pairs, np.full((3, 3), 1e-9), np.full((3, 3), 99.0))
    assert first is pairs[0]
    assert second is not pairs[1]


def test_of_very_many_pairs_those_that_pay_most_are_measured(monkeypatch):
    """With a cap of three of fifteen: the pair that is one attribute twice is among them; all is spent."""
    monkeypatch.setattr(selection, "MOST_PAIRS", 3)
    fitted, private = run(default.learn, dependent(), 0.1)
    pairs = [table.attributes for table in fitted.marginals if len(table.attributes) == 2]
    assert len(pairs) <= 3
    assert ("a", "b") in pairs
    assert fsum(spend.rho for spend in private.spends) == pytest.approx(0.1, rel=1e-11)


def test_pairs_of_numbers_weigh_more_than_pairs_of_listed_values():
    """They have few components, each of which shows in correlations and models."""
    domain = Domain(("age", "income", "sex", "job"), (4, 4, 4, 4), (4, 4, 0, 0))
    tables = (("age", "income"), ("age", "sex"), ("sex", "job"))
    of_numbers, of_one, of_none = weights.weights_of(domain, tables, None)
    assert of_numbers > of_one > of_none


def signs(n=8000, seed=0):
    """The class says whether both numbers are on the same side of their medians, which no pair shows."""
    x, y = np.random.default_rng(seed).integers(0, 32, (2, n))
    codes = np.stack([x, y, (x < 16) ^ (y < 16), (x + y) % 2], axis=1)
    return Records(Domain(("x", "y", "class", "other"), (32, 32, 2, 2), (32, 32, 0, 0)), codes)


@pytest.mark.parametrize("target", [None, "class"])
def test_a_class_that_follows_from_two_numbers_together_is_learnt(target):
    """A table of all codes has 2,048 cells, 4 records in each. With noise of 10 records it shows little."""
    fitted, private = run(default.learn, signs(), 0.05, target=target)
    (table,) = (t for t in fitted.marginals if set(t.attributes) == {"x", "y", "class"})
    counts = table.project(("x", "y", "class")).counts
    same = np.subtract.outer(np.arange(32) < 16, (np.arange(32) < 16).astype(int)) == 0
    assert counts[..., 1][~same].sum() + counts[..., 0][same].sum() > 0.95 * table.total
    assert "counts over x, y, class, 8 x 8 x 2 groups" in {spend.what for spend in private.spends}


def test_no_table_of_three_columns_is_measured_where_pairs_show_all():
    """Noise in the pairs is no reason to measure bigger tables."""
    rng = np.random.default_rng(1)
    kind = rng.integers(0, 4, 3000)
    numbers = (rng.integers(0, 32, (3, 3000)) + 4 * kind) // 2
    records = Records(Domain(tuple("xyzk"), (24, 24, 24, 4), (24, 24, 24, 0)), np.stack([*numbers, kind], 1))
    _, private = run(default.learn, records, 0.01, target="k")
    assert spent_on(private, lambda names: len([n for n in names if "groups" not in n]) > 2) < 0.02
