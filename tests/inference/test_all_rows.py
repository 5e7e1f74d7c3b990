"""The rows that bounds keep stand for all rows."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, PrivSyn, Schema
from privsyn.inference.all_rows import Weights, reweighted
from privsyn.inference.fitted import Certainty, Fitted, one_way_certainty
from privsyn.inference.rows_per_person import RowsOfGroups, RowsPerPerson
from privsyn.inference.single_rows import SingleCodes, SingleRows
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.methods.reading import Opened
from privsyn.private.contribution import MOST, classes
from privsyn.private.noise_laws import GAUSSIAN

SCHEMA = Schema({"kind": Categorical(["x", "y", "z"]), "late": Categorical([0, 1])})
NUMBERS = {"alike": np.full(3000, 10), "skewed": 1 + np.random.default_rng(1).geometric(0.3, 6000)}


def visits(numbers):
    """A table of persons with these numbers of rows; those with many have other rows than those with few."""
    rng, who = np.random.default_rng(0), np.repeat(np.arange(len(numbers)), numbers)
    kind = (rng.random(len(who)) * np.minimum(numbers[who], 3)).astype(int)
    late = rng.integers(0, 2, len(who))
    return pd.DataFrame({"who": who, "kind": np.array(["x", "y", "z"])[kind], "late": late})


@pytest.mark.slow
@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("settings", [{}, {"method": "published"}, {"delta": 0}], ids=str)
def test_the_sample_has_as_many_rows_as_the_table_and_not_as_were_kept(settings, numbers):
    table = visits(numbers)
    model = PrivSyn(**{"epsilon": 5.0, "schema": SCHEMA, "unit": "who", "seed": 0} | settings).fit(table)
    kept = np.minimum(numbers, model.ledger_.rows_per_unit).sum() / len(table)
    assert kept < 0.95
    assert model.counted_ == pytest.approx(kept, abs=0.02)
    assert len(model.sample()) == pytest.approx(len(table), rel=0.02)
    of_columns = model.release_.fitted.one_ways[0]
    assert of_columns.total == pytest.approx(model.release_.fitted.total)


@pytest.mark.slow
def test_intervals_hold_for_all_rows_and_contain_the_estimates():
    """Of seeded runs, so nothing is left to chance. With the noise of the kept rows alone a fifth held."""
    numbers = 1 + np.random.default_rng(1).negative_binomial(1.2, 0.3, 4000)
    table, held, cells = visits(numbers), 0, 0
    table["kind"] = table["kind"].where(table["late"] == 1, "z")
    for seed in range(8):
        accuracy = PrivSyn(3.0, schema=SCHEMA, unit="who", seed=seed).fit(table).accuracy_
        for name, column in SCHEMA.columns.items():
            found = accuracy.counts(name)
            truth = [(table[name] == value).sum() for value in column.values]
            held, cells = held + found["low"].le(truth).mul(found["high"].ge(truth)).sum(), cells + len(found)
            assert found["low"].le(found["estimate"] + 1e-6).all()
            assert found["high"].ge(found["estimate"] - 1e-6).all()
    assert held / cells >= 0.9


def test_the_variance_of_all_rows_has_the_noise_the_number_of_rows_and_the_sampling():
    """One column of two values, all persons in one class: 300 and 100 kept rows stand for 800."""
    domain = Domain(("a",), (2,))
    counts = Marginal(domain, np.array([300.0, 100.0]))
    certainty = one_way_certainty(Measurement(counts, np.full(2, 50.0)), counts)
    merging = Merging(domain, domain, (np.arange(2, dtype=np.int32),), (np.ones(2),))
    kept = Fitted(merging, (counts,), (), 400.0, (certainty,))
    for spread, factor in ((0.0, 800.0), (4000.0, 2000.0)):  # 800 (2 - 1), or 4000 (1 - 1/2)
        rows = RowsOfGroups(np.array([800.0]), np.array([[90.0**2]]), np.array([spread]))
        whole = reweighted(kept, "none", rows)
        assert whole.one_ways[0].counts == pytest.approx([600, 200])
        shares = np.array([0.75, 0.25])
        expected = 4 * 50 + (90 * shares) ** 2 + factor * shares
        assert whole.certainties[0].measured.variance == pytest.approx(expected)
        assert whole.certainties[0].error > certainty.error  # the sampling, and not the number of rows
    known = reweighted(kept, "none", RowsOfGroups.exact(np.array([400.0])))
    assert known.certainties[0].measured.variance == pytest.approx([50, 50])
    assert known.certainties[0].error == pytest.approx(certainty.error)


def test_codes_of_one_group_may_have_other_classes_of_persons():
    """The ratio of all rows to kept rows is 1.5 in one group and 2.5 in the other: 2, give or take 0.5."""
    domain = Domain(("a",), (4,))
    before = Marginal(domain, np.array([100.0, 300.0, 200.0, 200.0]))
    after = Marginal(domain, before.counts * [1.5, 1.5, 2.5, 2.5])
    certainty = one_way_certainty(Measurement(before, np.full(4, 50.0)), before)
    rows = RowsOfGroups.exact(np.array([1600.0]))
    alone = Weights("none", np.array([800.0]), rows, {}, {})
    joined = replace(alone, groups={"a": np.array([0, 0, 1, 1], np.int32)})
    more = joined.certainty(certainty, before, after).measured.variance
    more = more - alone.certainty(certainty, before, after).measured.variance
    of_others = np.array([0.75, 0.25, 0.5, 0.5])  # the share of the group in its other codes
    assert more == pytest.approx(0.5**2 * before.counts**2 * of_others)


def test_the_error_of_a_mean_is_that_of_redrawn_counts_and_not_of_independent_codes():
    """Groups of two codes, counted with three classes of persons, whose numbers of rows err, too.

    Both are redrawn 20,000 times. The variance of a mean then has a standard error of 1 % of itself, and what
    is left out to first order is some 2 %. So a difference of 8 % is no chance: its probability is < 1e-8.
    """
    rng, numbers = np.random.default_rng(0), np.array([9e3, 1.5e4, 4e4])
    domain, sigma, values = Domain(("a", "rows"), (4, 3)), 40.0, np.array([1.0, 2.0, 5.0, 7.0])
    counts = np.array([[4e3, 1e3, 5e2], [2e3, 1e3, 5e2], [2e3, 2e3, 2e3], [1e3, 1e3, 3e3]])
    covariance = np.array([[1e4, 0, 0], [0, 4e4, 3e4], [0, 3e4, 1e6]])
    grouping = Grouping((np.array([0, 0, 1, 1], np.int32), np.arange(3, dtype=np.int32)))
    of_groups, kept = grouping.join(counts), counts.sum(axis=0)
    pair = Marginal(domain, counts)
    one_ways = tuple(pair.project((name,)) for name in domain.names)
    answer = Marginal(grouping.domain(domain), of_groups)
    codes = tuple(np.arange(size, dtype=np.int32) for size in domain.sizes)
    merging = Merging(domain, domain, codes, tuple(map(np.ones, domain.sizes)))
    exact = [one_way_certainty(Measurement(each, np.zeros(each.counts.shape)), each) for each in one_ways]
    noisy_pair = Certainty(Measurement(answer, np.full(of_groups.shape, sigma**2), grouping), 0.0)
    fitted = Fitted(merging, one_ways, (pair,), float(counts.sum()), (*exact, noisy_pair))
    whole = reweighted(fitted, "rows", RowsOfGroups(numbers, covariance, np.zeros(3)))
    common, estimate = whole.certainties[0].common, whole.one_ways[0].counts
    mean = float(values @ estimate / estimate.sum())
    weights = (values - mean) / estimate.sum()

    drawn = rng.multivariate_normal(numbers, covariance, 20_000)
    cells = of_groups + sigma * rng.standard_normal((20_000, 2, 3))
    shares = np.repeat(cells, 2, axis=1) * counts / np.repeat(of_groups, 2, axis=0)  # of the codes of a group
    ratio = (shares * (drawn / kept)[:, np.newaxis]).sum(axis=2) / shares.sum(axis=2)
    redrawn = ratio * counts.sum(axis=1)
    means = redrawn @ values / redrawn.sum(axis=1)
    assert np.sum((weights @ common) ** 2) == pytest.approx(means.var(), rel=0.08)
    # Independent codes would show another error.
    assert weights**2 @ (common**2).sum(axis=1) != pytest.approx(means.var(), rel=0.25)


@pytest.mark.parametrize("counted", [False, True], ids=["alone", "with classes"])
def test_a_value_of_one_row_of_a_life_is_as_frequent_as_persons_and_not_as_rows(counted):
    """Of 1,000 persons with one row and 1,000 with ten, of whom two are kept, each third one has died.

    Where noise hides how deaths depend on the number of rows, they are not taken to be in as many of the rows
    that were left out as in those that were kept: 667 of 11,000 rows, and not 1,467.
    """
    rows, kept, persons = np.array([1e3, 1e4]), np.array([1e3, 2e3]), np.array([1e3, 1e3])
    rows = replace(RowsOfGroups.exact(rows), single=SingleRows(persons, persons * [1, 0.2]))
    domain = Domain(("outcome", "rows"), (2, 2))
    dead = np.array([1000 / 3, 200 / 3])
    pair = Marginal(domain, np.outer([1 - dead.sum() / 3000, dead.sum() / 3000], kept))
    one_ways = tuple(pair.project((name,)) for name in domain.names)
    exact = [one_way_certainty(Measurement(table, np.zeros(2)), table) for table in one_ways]
    noisy = Certainty(Measurement(pair, np.full((2, 2), 1e8)), 0.0)
    codes = tuple(np.arange(2, dtype=np.int32) for _ in range(2))
    merging = Merging(domain, domain, codes, (np.ones(2), np.ones(2)))
    tables = ((pair,), (*exact, noisy)) if counted else ((), tuple(exact))
    fitted = Fitted(merging, one_ways, tables[0], 3000.0, tables[1])
    as_rows = reweighted(fitted, "rows", rows).one_way("outcome").counts[1]
    assert as_rows == pytest.approx(4400 / 3)
    once = {"outcome": SingleCodes.of(np.array([False, True]))}
    whole = reweighted(fitted, "rows", rows.with_single_codes(once))
    assert whole.one_way("outcome").counts == pytest.approx([11_000 - 2000 / 3, 2000 / 3], rel=1e-3)
    if counted:
        assert whole.marginals[0].counts[1] == pytest.approx([1000 / 3] * 2, rel=2e-3)
        clear = (*exact, Certainty(Measurement(pair, np.ones((2, 2))), 0.0))  # measured: as frequent as rows
        measured = reweighted(replace(fitted, certainties=clear), "rows", rows.with_single_codes(once))
        assert measured.one_way("outcome").counts[1] == pytest.approx(4400 / 3, rel=0.02)


# --- how many rows there are -------------------------------------------------------------------------------

BEGINS, SIGMA = classes(MOST), 55.0  # epsilon 1, a hundredth of the budget


def noisy(numbers, rng):
    """The histogram and its noise, and the estimate with the noisy number of all rows."""
    exact = np.histogram(numbers, [*BEGINS.tolist(), np.inf])[0]
    alone = RowsPerPerson.of(BEGINS, np.rint(exact + rng.normal(0, SIGMA, len(exact))).astype(int), SIGMA**2)
    variance = (alone.largest * SIGMA) ** 2
    total = np.minimum(numbers, alone.largest).sum() + rng.normal(0, np.sqrt(variance))
    return alone, alone.with_total(total, variance)


@pytest.mark.parametrize("persons", [4000, 10_000])
def test_the_total_makes_up_for_the_tail_that_is_lost_in_the_histogram(persons):
    rng = np.random.default_rng(persons)
    numbers = 1 + rng.negative_binomial(1.2, 0.3, persons)
    both = [noisy(numbers, rng) for _ in range(100)]
    errors = np.array([[rows.total / numbers.sum() - 1 for rows in pair] for pair in both])
    alone, with_total = np.sqrt((errors**2).mean(axis=0))
    assert with_total < 0.8 * alone
    deviations = np.array([np.sqrt(rows.covariance.sum()) for _, rows in both])
    assert (np.abs(errors[:, 1]) * numbers.sum() < 1.96 * deviations).mean() > 0.88


def test_noise_in_a_class_of_many_rows_makes_no_persons():
    """In 1 of some 300 runs there were up to 2,000 times too many rows."""
    counts = np.zeros(len(BEGINS), int)
    counts[:3] = 1800, 800, 600
    counts[-2] = 6 * SIGMA
    rows = RowsPerPerson.of(BEGINS, counts, SIGMA**2)
    assert rows.persons[3:].sum() == 0
    assert rows.largest == 4
    counts[:3] = 900, 400, 300  # few persons, who may be geometric
    assert RowsPerPerson.of(BEGINS, counts, SIGMA**2).persons[BEGINS > 12].sum() == 0


FEW = 1500 * (9 / 10) ** (BEGINS - 1) - 1500 * (9 / 10) ** (np.append(BEGINS[1:], 10**6) - 1)


def test_persons_whom_the_noise_hides_are_geometric_with_the_mean_that_is_known():
    """The noise is as large as the largest class, so no class stands out, and hardly the sum of any."""
    rows = RowsPerPerson.of(BEGINS, np.rint(FEW).astype(int), 95.0**2)
    assert rows.persons.sum() == pytest.approx(1500, rel=0.02)
    assert rows.total == pytest.approx(15_000, rel=0.1)
    assert 20 <= rows.largest <= 60
    for total in (12_000.0, 18_000.0):
        known = rows.with_all(total, 1.0).with_sum_of_persons(1500.0, 1.0)
        assert known.persons.sum() == pytest.approx(1500, rel=0.01)
        assert known.total == pytest.approx(total, rel=0.01)
        mean = total / 1500
        expected = 1500 * ((1 - 1 / mean) ** (BEGINS - 1))
        beyond = np.cumsum(known.persons[::-1])[::-1]
        np.testing.assert_allclose(beyond[:12], expected[:12], atol=0.06 * 1500)


def test_numbers_of_rows_that_stand_out_of_the_noise_are_not_geometric():
    assert RowsPerPerson.of(BEGINS, np.rint(FEW).astype(int), 95.0**2).geometric
    assert not RowsPerPerson.of(BEGINS, np.rint(FEW).astype(int), 2.0**2).geometric
    others = np.zeros(len(BEGINS), int)
    others[4:7] = 500  # the noise is as before, but no geometric distribution is near
    assert not RowsPerPerson.of(BEGINS, others, 95.0**2).geometric
    assert not RowsPerPerson.of(BEGINS, np.zeros(len(BEGINS), int), 95.0**2).geometric


def test_a_parent_has_fewer_rows_than_a_person_if_their_shape_is_hidden():
    """Of 6000 parents with 2.5 rows each, 95 have more than 12."""
    rows = RowsPerPerson.of(BEGINS, np.rint(FEW).astype(int), 95.0**2)
    assert rows.largest_of(6000.0) == 13
    assert rows.largest_of(0.0) == rows.largest_of(rows.persons.sum()) > 20  # a parent each
    clear = RowsPerPerson.of(BEGINS, np.rint(FEW).astype(int), 2.0**2)
    assert clear.largest_of(6000.0) == clear.largest


def test_hidden_numbers_of_rows_have_no_classes():
    whom = SimpleNamespace(
        puts_persons_together=True, persons=None, settings=SimpleNamespace(rows_per_unit=None)
    )
    for sigma, groups in ((95.0, 1), (2.0, 5)):
        rows = RowsPerPerson.of(BEGINS, np.rint(FEW).astype(int), sigma**2)
        sizes, contribution = Opened.classes_and_contribution(whom, rows, GAUSSIAN, 0.01, 20)
        assert len(sizes.begins) == groups
        assert sizes.rows.numbers.sum() == pytest.approx(rows.total)
        assert contribution.limit > 1


@pytest.mark.parametrize(("persons", "sigma"), [(np.full(300, 8), 60.0), (np.arange(1, 17).repeat(20), 28.0)])
def test_intervals_hold_though_noise_hides_most_persons(persons, sigma):
    """A window of classes may stand out of the noise while the classes after it hold most rows, unseen.

    200 draws: of intervals of 95 % fewer than 170 hold with probability below 1e-6.
    """
    rng, exact = np.random.default_rng(4), np.bincount(np.searchsorted(BEGINS, persons, "right") - 1)
    exact, held, estimates = np.pad(exact, (0, len(BEGINS) - len(exact))), 0, []
    for _ in range(200):
        noisy = exact + np.rint(rng.normal(0, sigma, len(BEGINS))).astype(int)
        rows = RowsPerPerson.of(BEGINS, noisy, sigma**2)
        error = rows.largest * sigma
        total = np.minimum(persons, rows.largest).sum() + rng.normal(0, error)
        every = rows.with_total(total, error**2).in_one_group
        held += abs(every.numbers[0] - persons.sum()) <= 1.96 * np.sqrt(every.covariance[0, 0])
        estimates.append(every.numbers[0] / persons.sum())
    assert held >= 170
    assert np.quantile(estimates, 0.1) > 0.3  # without them a third of the runs made a tenth of the rows
