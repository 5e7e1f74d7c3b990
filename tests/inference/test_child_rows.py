"""Numbers of child rows: a column of the parent and the numbers of rows per person are one estimate."""

from dataclasses import replace

import numpy as np
import pytest

from privsyn.inference.child_rows import FAR, agreed, largest_in_column
from privsyn.inference.consistency import norm_sub
from privsyn.inference.fitted import Fitted, one_way_certainty
from privsyn.inference.rows_per_person import RowsPerPerson
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.private.contribution import MOST, classes

NUMBERS = np.arange(7.0)
COUNTS = np.array([50.0, 400, 300, 200, 100, 40, 10])


def model(counts, *, others=True, variance=100.0):
    """Return a model with a column of numbers and, with `others`, another one and the pair."""
    number = Domain(("number",), (len(counts),), (len(counts),))
    color = Domain(("color",), (2,)) if others else Domain((), ())
    whole = number.joined(color)
    tables = [Marginal(number, counts)]
    if others:
        tables.append(Marginal(color, np.array([0.25, 0.75]) * counts.sum()))
    pair = (Marginal(whole, np.outer(counts, [0.25, 0.75])),) if others else ()
    certainties = tuple(
        one_way_certainty(Measurement(table, np.full(table.counts.shape, variance)), table)
        for table in (*tables, *pair)
    )
    identity = Merging(
        whole,
        whole,
        tuple(np.arange(size, dtype=np.int32) for size in whole.sizes),
        tuple(np.ones(size) for size in whole.sizes),
    )
    return Fitted(identity, tuple(tables), pair, float(counts.sum()), certainties)


def rows_of(persons, sigma=10.0):
    begins = classes(MOST)
    noisy = np.zeros(len(begins), np.int64)
    noisy[: len(persons)] = persons
    return RowsPerPerson.of(begins, noisy, sigma**2)


def test_two_answers_that_are_equally_sure_are_averaged():
    other = np.array([420.0, 280, 220, 80, 40, 10])
    fitted, rows = agreed(model(COUNTS), "number", NUMBERS, rows_of(other))
    middle = (COUNTS[1:5] + other[:4]) / 2
    np.testing.assert_allclose(fitted.one_way("number").counts[1:5], middle, atol=2)
    np.testing.assert_allclose(rows.persons[:4], middle, atol=2)


def test_all_tables_have_the_same_total_and_the_same_column():
    fitted, _ = agreed(model(COUNTS), "number", NUMBERS, rows_of(np.array([700.0, 300, 100, 0, 0, 0])))
    assert fitted.total == pytest.approx(COUNTS.sum())
    (pair,) = fitted.marginals
    np.testing.assert_allclose(pair.project(("number",)).counts, fitted.one_way("number").counts)
    np.testing.assert_allclose(pair.project(("color",)).counts, fitted.one_way("color").counts)


def test_codes_without_rows_in_a_pair_get_them_there_too():
    """Noise left no parent with three child rows or more; the rows per person say there are some."""
    counts = np.where(NUMBERS < 3, COUNTS, 0.0)
    fitted, _ = agreed(model(counts), "number", NUMBERS, rows_of(COUNTS[1:]))
    (pair,) = fitted.marginals
    assert fitted.one_way("number").counts[3] > 50
    np.testing.assert_allclose(pair.project(("number",)).counts, fitted.one_way("number").counts)


def test_codes_merged_by_noise_are_divided_as_the_persons_are():
    merged = model(np.array([50.0, 700, 350]))
    coarse = replace(
        merged.merging,
        original=Domain(("number", "color"), (7, 2), (7, 2)),
        groups=(np.array([0, 1, 1, 2, 2, 2, 2], np.int32), merged.merging.groups[1]),
        shares=(np.array([1, 0.5, 0.5, 0.25, 0.25, 0.25, 0.25]), merged.merging.shares[1]),
    )
    fitted, _ = agreed(replace(merged, merging=coarse), "number", NUMBERS, rows_of(COUNTS[1:]))
    shares = fitted.merging.shares[0]
    assert shares[1] == pytest.approx(4 / 7, abs=0.03)
    assert shares[3] > shares[4] > shares[5]


def test_the_share_of_a_class_in_a_merged_code_is_as_unsure_as_a_share_from_0_to_1(monkeypatch):
    """Two codes divide the class of 12 to 17 rows: a count has the variance (N h (1 - h))^2 more."""
    persons, numbers = np.array([50.0, 0, 0, 400, 200]), np.arange(5.0)
    numbers[3:] = 12.0, 16.0
    seen = {}
    update = RowsPerPerson.with_persons

    def with_persons(rows, parts, counts, variance):
        seen.update(rows=rows, parts=parts, variance=variance)
        return update(rows, parts, counts, variance)

    monkeypatch.setattr(RowsPerPerson, "with_persons", with_persons)
    noisy = np.zeros(12, np.int64)
    noisy[11] = 600
    agreed(model(persons), "number", numbers, rows_of(noisy))
    h = 12.0**-2 / (12.0**-2 + 16.0**-2)
    assert seen["rows"].begins[11] == 12
    np.testing.assert_allclose(seen["parts"][-2:, 11], [h, 1 - h])
    expected = 100.0 + (seen["rows"].persons[11] * h * (1 - h)) ** 2
    np.testing.assert_allclose(seen["variance"][-2:], expected)


def test_nobody_vanishes_because_a_code_is_drawn_as_one_number():
    """A merged code is shared out by noisy counts. A share of 0 once took all persons of a class."""
    one = model(np.array([50.0, 400, 300, 350]))
    coarse = replace(
        one.merging,
        original=Domain(("number", "color"), (7, 2), (7, 2)),
        groups=(np.array([0, 1, 2, 3, 3, 3, 3], np.int32), one.merging.groups[1]),
        shares=(np.array([1, 1, 1, 1.0, 0, 0, 0]), one.merging.shares[1]),
    )
    _, rows = agreed(replace(one, merging=coarse), "number", NUMBERS, rows_of(COUNTS[1:]))
    np.testing.assert_allclose(rows.persons[2:5], COUNTS[3:6], atol=10)


def test_nobody_gets_more_rows_than_either_answer_knows_of():
    _, rows = agreed(model(COUNTS), "number", NUMBERS, rows_of(COUNTS[1:]))
    assert rows.persons[rows.begins > 10].sum() == 0
    assert rows.largest <= 15


def test_an_interval_stays_around_the_answer_and_reaches_the_estimate():
    before = model(COUNTS)
    fitted, _ = agreed(before, "number", NUMBERS, rows_of(np.array([500.0, 200, 200, 100, 40, 10])))
    old_low, old_high = before.one_way_certainty("number").intervals()
    low, high = fitted.one_way_certainty("number").intervals()
    assert (low <= old_low).all()
    assert (high >= old_high).all()
    estimate = fitted.one_way("number").counts
    assert (low <= estimate + 0.5).all()
    assert (estimate - 0.5 <= high).all()


def test_the_last_persons_without_rows_make_room_for_persons_with_rows():
    fitted, rows = agreed(
        model(np.array([500.0, 100, 100])), "number", np.arange(3.0), rows_of([400, 300], 1.0)
    )
    assert fitted.total == pytest.approx(700)
    assert rows.persons[:2].sum() == pytest.approx(700, abs=20)
    assert fitted.one_way("number").counts[0] < 50


def test_the_rows_of_grandchildren_follow_the_column_of_their_parents():
    rows = rows_of([400, 100, 50])
    more = rows.with_all(1400.0, 1.0)
    assert more.total == pytest.approx(1400, abs=5)
    assert rows.total == pytest.approx(750)
    unsure = rows.with_all(1400.0, 1e12)
    assert unsure.total == pytest.approx(750, abs=1)


def test_one_row_stays_one_row_whatever_the_rounding():
    """A total of 0.9999999999999999 was refused, and the fit with it: 11 times of 50."""
    for shares in np.random.default_rng(0).dirichlet(np.ones(7), 50):
        counts = shares / shares.sum()
        counts *= 1 + (counts.sum() < 1) * 3e-16
        fitted, _ = agreed(model(counts), "number", NUMBERS, rows_of(np.zeros(6, np.int64)))
        assert fitted.total >= 1


def test_a_column_of_persons_reaches_further_than_its_noise_shows():
    """Of 5,000 persons an eighth has more than 6 rows each, few of each number: the histogram ended at 6."""
    persons = 5000 * 0.25 * 0.75 ** np.arange(12)
    rows = rows_of(np.rint(np.where(np.arange(12) < 5, persons, 0)).astype(int), sigma=55.0)
    assert rows.largest == 6
    assert largest_in_column(rows) > 6
    assert largest_in_column(rows_of(np.zeros(6, np.int64))) == FAR


def test_the_number_of_persons_without_columns_errs_as_their_classes_do():
    """300 draws: the standard deviation of 300 errors is within a fifth of the true one, p < 1e-6.

    The column of numbers is noisier, and has far more codes than there are classes with persons.
    """
    rng, persons, number = np.random.default_rng(2), COUNTS[1:], np.arange(40.0)
    exact = np.pad(COUNTS, (0, 33))
    errors, expected = [], []
    for _ in range(300):
        column = model(np.maximum(exact + rng.normal(0, 60, 40), 0), others=False, variance=60.0**2)
        noisy = np.rint(persons + rng.normal(0, 20, len(persons))).astype(int)
        fitted, _ = agreed(column, "number", number, rows_of(noisy, sigma=20.0))
        errors.append(fitted.total - COUNTS.sum())
        expected.append(fitted.error_of_total)
    assert 0.8 * np.std(errors) < np.mean(expected) < 2 * np.std(errors)
    assert fitted.noise_of_total == fitted.error_of_total
    assert 60 * np.sqrt(40) > 2 * fitted.error_of_total  # the sum of all codes errs far more


@pytest.mark.parametrize(
    ("persons", "sigma", "least"),
    [
        (np.full(300, 8), 60.0, 170),
        (np.arange(1, 17).repeat(20), 28.0, 170),
        (np.full(200, 20), 55.0, 170),
        (np.full(300, 120), 55.0, 170),
        (np.r_[np.arange(1, 6).repeat([980, 585, 328, 137, 43]), np.arange(30, 90, 2)], 17.0, 116),
    ],
)
def test_a_column_of_numbers_says_nothing_of_rows_beyond_its_bound(persons, sigma, least):
    """It counts exactly how many persons have its largest number or more, not how many rows these have.

    200 draws: of intervals of 95 % fewer than 170 hold with probability below 1e-6. Before, 154 and 162 held.
    Of 30 persons with 30 to 88 rows, whom noise may hide beside many with few, 147 hold, and 0 did. Fewer
    than 116 have probability below 1e-6.
    """
    rng, exact = np.random.default_rng(4), np.bincount(np.searchsorted(classes(MOST), persons, "right") - 1)
    exact, held, widths = np.pad(exact, (0, len(classes(MOST)) - len(exact))), 0, []
    for _ in range(200):
        noisy = np.rint(exact + rng.normal(0, sigma, len(exact))).astype(int)
        rows = rows_of(noisy, sigma)
        error = rows.largest * sigma
        seen = np.minimum(persons, rows.largest).sum() + rng.normal(0, error)
        rows = rows.with_total(seen, error**2)
        most = largest_in_column(rows)
        counts = np.bincount(np.minimum(persons, most), minlength=most + 1) + rng.normal(0, 10, most + 1)
        column = model(norm_sub(counts, max(counts.sum(), 1.0)), others=False)
        _, every = agreed(column, "number", np.arange(most + 1.0), rows)
        _, limited = agreed(column, "number", np.arange(most + 1.0), rows, limited=True)
        group = every.in_one_group
        widths.append(1.96 * np.sqrt(group.covariance[0, 0]))
        held += abs(group.numbers[0] - persons.sum()) <= widths[-1]
        assert limited.in_one_group.covariance[0, 0] <= group.covariance[0, 0]
    assert held >= least, held


def test_a_public_limit_costs_no_interval():
    """A class that noise hid between others could not be filled, and persons beyond the limit stayed.

    200 draws: of intervals of 95 % fewer than 170 hold with probability below 1e-6. Before, 181 held, but the
    column's own noise is 20 sqrt(204) rows, and they erred by 628.
    """
    rng, exact, held = np.random.default_rng(5), np.r_[0.0, np.full(7, 1500 / 7)], 0
    number, errors = np.arange(9.0), []
    for _ in range(200):
        noisy = np.rint(np.pad(exact, (0, len(classes(MOST)) - 8)) + rng.normal(0, 55, len(classes(MOST))))
        rows = rows_of(noisy.astype(int), 55.0)
        seen, error = np.minimum(number[1:], rows.largest) @ exact, rows.largest * 55.0
        rows = rows.with_total(seen + rng.normal(0, error), error**2)
        counts = np.r_[0.0, exact] + rng.normal(0, 20, 9)
        column = model(norm_sub(counts, counts.sum()), others=False, variance=400.0)
        _, limited = agreed(column, "number", number, rows, limited=True)
        group = limited.in_one_group
        errors.append(group.numbers[0] - number[1:] @ exact)
        held += abs(errors[-1]) <= 1.96 * np.sqrt(group.covariance[0, 0])
        assert not limited.persons[limited.begins > 8].any()
    assert held >= 170, held
    assert np.std(errors) < 1.3 * 20 * np.sqrt(204)  # 200 draws: p < 1e-6 if it were the noise
