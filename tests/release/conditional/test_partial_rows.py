"""Samples with something given: it stays, the rest is as the release has it in such rows, at no cost."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import date
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from command import run
from refusals import refuses
from strategies import Incomparable
from table.enforcement import test_constraints

from privsyn import (
    Categorical,
    Datetime,
    Determined,
    Forbidden,
    Increasing,
    InputError,
    MissingWhen,
    Numerical,
    PrivSyn,
    Schema,
    Total,
)
from privsyn.errors import AbsentWarning
from privsyn.release.conditional.conditions import parse_given, read_given
from privsyn.table.schema.draws import Cells

N = 4000


@pytest.fixture(scope="module")
def model():
    """City decides country and most of the job; the job most of the pay."""
    rng = np.random.default_rng(0)
    city = rng.choice(list(test_constraints.COUNTRY), N, p=[0.4, 0.3, 0.2, 0.09, 0.01])
    job = np.where(rng.random(N) < 0.7, np.where(city == "Oslo", "clerk", "cook"), "baker")
    first = rng.integers(0, 900, N)
    table = pd.DataFrame(
        {
            "city": pd.Categorical(city),
            "country": [test_constraints.COUNTRY[c] for c in city],
            "job": job,
            "pay": (rng.gamma(3, 8, N) * np.where(job == "clerk", 2, 1)).clip(0, 200).round(1),
            "bonus": np.where(rng.random(N) < 0.2, np.nan, rng.integers(0, 20, N)),
            "all": 0.0,
            "from": pd.Timestamp("2020-01-01") + pd.to_timedelta(first, "D"),
            "to": pd.Timestamp("2020-01-01") + pd.to_timedelta(first + rng.integers(0, 90, N), "D"),
        }
    )
    schema = Schema(
        {
            "city": Categorical(list(test_constraints.COUNTRY), nullable=False),
            "country": Categorical(),
            "job": Categorical(["clerk", "cook", "baker"], nullable=False),
            "pay": Numerical(0, 200, decimals=1, nullable=False),
            "bonus": Numerical(0, 20, integer=True),
            "all": Numerical(),
            "from": Datetime("2020-01-01", "2023-01-01", nullable=False),
            "to": Datetime("2020-01-01", "2023-01-01", nullable=False),
        },
        constraints=[
            Determined("country", "city", test_constraints.COUNTRY),
            Total("all", ["pay", "bonus"]),
            Increasing(["from", "to"]),
            MissingWhen("bonus", {"job": "baker"}),
            Forbidden({"city": "Paris", "job": "clerk"}),
        ],
    )
    return PrivSyn(20.0, 1e-9, schema, seed=1).fit(table)


def sound(sample):
    return (
        sample.country.eq(sample.city.astype(str).map(test_constraints.COUNTRY)).all()
        and (sample["from"] <= sample["to"]).all()
        and sample.bonus[sample.job == "baker"].isna().all()
        and ((sample.pay + sample.bonus - sample["all"]).abs().fillna(0) < 0.001).all()
        and not ((sample.city == "Paris") & (sample.job == "clerk")).any()
    )


def released(model, given, other):
    """By the release's own table: shares of another column's merged values beside each value of one."""
    fitted = model.release_.fitted
    (table,) = [t for t in fitted.marginals if set(t.attributes) == {given, other}]
    counts = table.project((given, other)).counts
    return counts / counts.sum(axis=1, keepdims=True)


@pytest.mark.slow
def test_what_is_given_stays_and_the_rest_is_as_released(model):
    """10,000 rows are moved until they fit: far nearer than the 0.05 a sample of 1,000 may be off.

    1,000 of the rows are drawn: each share is off by more than 0.08 with a chance below 2 exp(-2 * 1000 *
    0.08^2) < 6e-6 by Hoeffding even for independent draws, summed over few values; 0.1 leaves 5e-9.
    """
    for place, city in enumerate(["Oslo", "Bergen"]):
        sample = model.sample(1000, given={"city": city})
        assert len(sample) == 1000
        assert (sample.city == city).all()
        assert sound(sample)
        expected = released(model, "city", "job")[place]
        shares = [(sample.job == job).mean() for job in ("clerk", "cook", "baker")]
        assert np.abs(shares - expected).max() < 0.1
    overall = released(model, "city", "job")
    assert np.abs(overall[0] - overall[1]).max() > 0.3, "the test could not fail"


@pytest.mark.slow
def test_partial_rows_are_completed_in_their_order(model):
    partial = pd.DataFrame(
        {
            "job": ["cook", None, "baker", None] * 50,
            "from": [pd.Timestamp("2021-05-01"), None, None, pd.Timestamp("2022-12-31")] * 50,
            "pay": [20.5, 31.0, np.nan, np.nan] * 50,
        }
    )
    sample = model.sample(given=partial, seed=1)
    assert sound(sample)
    assert not sample[["job", "pay", "from"]].isna().any().any()
    for name in partial:
        assert (sample[name] == partial[name])[partial[name].notna()].all()
    assert sample.equals(model.sample(given=partial, seed=1))


def test_a_real_number_that_is_given_stays_to_the_last_bit():
    """Not only one that lies on the fine grid that reals are drawn from; the bounds are numbers as well."""
    schema = Schema({"x": Numerical(-1.0, 1 / 3), "y": Categorical(["a", "b"])})
    real = pd.DataFrame({"x": np.linspace(-1, 1 / 3, 500), "y": ["a", "b"] * 250})
    model = PrivSyn(1.0, 1e-9, schema, seed=1).fit(real)
    wanted = pd.DataFrame({"x": [-1.0, -0.3, 0.1, 0.3, 1 / 3]})
    assert model.sample(given=wanted, seed=1).x.tolist() == wanted.x.tolist()


def test_what_is_looked_up_can_be_given(model):
    sample = model.sample(2000, given={"country": "Norway"}, seed=1)
    assert (sample.country == "Norway").all()
    assert sound(sample)
    assert 0.45 < (sample.city == "Oslo").mean() < 0.7  # 0.4 of 0.7


@pytest.mark.parametrize("column", ["job", "country"])
def test_classes_are_balanced(model, column):
    sample = model.sample(999, balance=column, seed=2)
    assert sound(sample)
    assert np.ptp(sample[column].value_counts()) <= 1


def test_a_condition_is_the_mapping_that_it_means(model):
    """Also of the values that a negation leaves: these are listed."""
    asked = {
        "pay": {"low": 20, "high": 40},
        "city": [city for city in test_constraints.COUNTRY if city != "Oslo"],
    }
    made = model.sample(300, given=asked, seed=1)
    pd.testing.assert_frame_equal(model.sample(300, given="20 <= pay <= 40 and city != 'Oslo'", seed=1), made)
    assert inside(made["pay"], 20, 40)
    assert 1 < len(set(made["city"])) < 5
    assert "Oslo" not in set(made["city"])
    missing = model.sample(50, given="bonus is missing", seed=1)
    assert missing["bonus"].isna().all()
    assert model.sample(50, given="bonus is not missing", seed=1)["bonus"].notna().all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"given": {"town": "Rome"}}, "there is no column 'town'"),
        ({"given": {"city": "Atlantis"}}, "'city': 'Atlantis' is not one of its values"),
        ({"given": {"pay": 900}}, "'pay': 900 lies outside its bounds"),
        ({"given": {"bonus": 3.5}}, "'bonus': 3.5 is not one of its numbers"),
        ({"given": {"pay": "much"}}, "'pay': 'much' is not a number"),
        ({"given": {"from": [date(1999, 1, 1)]}}, "'from': .* outside its bounds"),
        ({"given": {"pay": [1, 900]}}, "'pay': 900 lies outside its bounds"),
        ({"given": {"city": ["Rome", None]}}, "'city': a list has no missing value"),
        ({"given": {"city": []}}, "'city': the list is empty"),
        ({"given": {"city": ["Rome", "Atlantis"]}}, "'Atlantis' is not one of its values"),
        (
            {"given": {"city": ("Rome", "Oslo")}},
            "'city': its values are text, and a tuple is a range .* a list",
        ),
        (
            {"given": {"bonus": range(3)}},
            "'bonus': give a value, .*; got a range",
        ),
        ({"given": {"bonus": iter([3])}}, "'bonus': give a value, a range .* or a list of values"),
        (
            {"given": {"city": pd.Series(["Rome", "Oslo"] * 10)}},
            "as many values as rows .*data frame",
        ),
        (
            {"given": {"city": np.array(["Rome", "Oslo"] * 10)}},
            "as many values as rows .*data frame",
        ),
        ({"given": pd.Series({"city": "Rome"})}, "a Series is no table: give a mapping"),
        ({"given": [{"city": "Rome"}]}, "given is a mapping"),
        ({"given": "pay < 20 or pay > 40"}, "given: 'pay < 20 or .*give one range"),
        ({"given": "pay <"}, "given: it cannot be read: write comparisons"),
        ({"given": "town == 'Rome'"}, "given: the schema has no column 'town'"),
        ({"given": {"city": "Paris", "job": "clerk"}}, "keeps the constraints on"),
        ({"given": {"city": "Rome", "country": "Norway"}}, "'country' contradicts 'city'"),
        ({"given": {"from": "2022-01-01", "to": "2021-01-01"}}, "keeps the constraints on"),
        ({"given": {"all": 30}}, "give pay and bonus instead"),
        ({"given": {"city": None}}, "in the release, no cell of 'city' is missing"),
        ({"given": {"country": np.nan}}, "in the release, no cell of 'country' is missing"),
        ({"given": {"pay": pd.NA, "from": ("2021-01-01", None)}}, "no cell of 'pay' is missing"),
        ({"given": {"to": pd.NaT}}, "in the release, no cell of 'to' is missing"),
        ({"given": {"all": None}}, "no cell of 'all' is missing"),
        ({"given": {"bonus": None}, "balance": "bonus"}, "this column is given"),
        ({"given": 3}, "given is a mapping"),
        ({"given": pd.DataFrame({"city": ["Rome"]}), "n": 2}, "leave out n"),
        ({"given": {"pay": (40, 30)}}, "'pay': the low end of a range is above its high end"),
        ({"given": {"pay": (300, None)}}, "'pay': none of its values lies in the range"),
        ({"given": {"bonus": (3.2, 3.8)}}, "'bonus': none of its values lies in the range"),
        ({"given": {"pay": (None, None)}}, "'pay': a range has low, high or both"),
        ({"given": {"pay": (1, 2, 3)}}, "'pay': a range has low, high or both"),
        ({"given": {"pay": {"from": 3}}}, "'pay': a range has low, high or both"),
        ({"given": {"pay": (Incomparable(2), [3])}}, "'pay': a list is not a number"),
        ({"given": {"city": (1, 2)}}, "'city': its values are text, and a tuple is a range .* a list"),
        ({"given": {"pay": ()}}, "'pay': a range has low, high or both"),
        ({"given": {"all": (1, 2)}}, "'all': is computed, so it takes no range or list"),
        ({"given": {"country": ["Norway", "Italy"]}}, "'country': is computed, so it takes no range or list"),
        ({"given": {"town": (1, 2)}}, "there is no column 'town'"),
        ({"given": {"from": ("2022-06-01", None), "to": (None, "2022-01-01")}}, "keeps the constraints on"),
        ({"balance": "pay", "given": {"pay": (20, 30)}}, "this column is given"),
        ({"balance": "pay"}, "needs a column of listed values, or of at most 1,000"),
        ({"balance": "town"}, "is not one of the columns"),
        ({"balance": ["job"]}, "balance must be the name of one column; got a list"),
        ({"balance": 3, "given": {"city": "Rome"}}, "balance must be the name of one column; got 3"),
        ({"balance": ["job"], "given": {"city": "Rome"}}, "balance must be the name of one column"),
        ({"balance": "city", "given": {"city": "Rome"}}, "this column is given"),
    ],
)
def test_what_cannot_be_is_refused(model, asked, complaint):
    with pytest.raises(InputError, match=complaint):
        model.sample(**{"n": 20, **asked} if "n" not in asked else asked)


@pytest.mark.parametrize(
    "several", [list, set, frozenset, np.array, pd.Series, pd.Index, pl.Series, pa.array]
)
def test_each_row_has_one_of_several_values(model, several):
    asked = {"city": several(["Rome", "Oslo"]), "bonus": several([3, 4, 9])}
    sample = model.sample(300, given=asked, seed=1)
    assert set(sample.city) == {"Rome", "Oslo"}
    assert set(sample.bonus) == {3, 4, 9}
    assert sound(sample)
    pd.testing.assert_frame_equal(
        model.sample(300, given="city in ['Rome', 'Oslo'] and bonus in [3, 4, 9]", seed=1), sample
    )


@pytest.mark.slow
def test_one_of_several_numbers_is_as_frequent_as_released(model):
    """Of 20,000 rows a share is off by more than 0.03 with a chance below 2 exp(-36)."""
    plain = model.sample(20_000, seed=3)["bonus"]
    shares = model.sample(20_000, given={"bonus": [2, 5, 11]}, seed=4)["bonus"].value_counts(normalize=True)
    expected = plain[plain.isin([2, 5, 11])].value_counts(normalize=True)
    assert shares.sub(expected).abs().max() < 0.06


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_a_table_of_any_library_has_a_value_for_each_row(model, convert):
    partial = pd.DataFrame({"city": ["Rome", "Oslo", None], "bonus": [None, 3.0, 4.0]})
    sample = model.sample(given=convert(partial), seed=1)
    pd.testing.assert_frame_equal(sample, model.sample(given=partial, seed=1))
    assert sample.city[:2].tolist() == ["Rome", "Oslo"]


@pytest.mark.parametrize("column", ["city", "pay", "bonus", "from"])
@pytest.mark.parametrize("value", ["Ann Lee", 918273645, Decimal("sNaN"), Incomparable(2), ["Ann Lee"]])
def test_no_cell_of_a_data_frame_is_in_a_complaint_nor_behind_it(model, column, value):
    """Rows to be completed may be of people."""
    frame = pd.DataFrame({column: pd.Series([value], dtype=object)})
    with refuses(f"^given: column {column!r}") as raised:
        model.sample(given=frame)
    assert "Ann" not in str(raised.value)
    assert "918273645" not in str(raised.value)


def test_a_target_of_0_and_1_without_a_schema_is_balanced():
    """As scikit-learn has it: whole numbers, no list of values."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"ill": (rng.random(4000) < 0.1).astype(int), "x": rng.choice(["a", "b"], 4000)})
    model = PrivSyn(5.0, 1e-9, seed=0).fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AbsentWarning)
        assert model.sample(100, balance="ill", seed=0)["ill"].value_counts().to_dict() == {0: 50, 1: 50}


def test_numbers_without_a_row_are_named():
    table = pd.DataFrame({"grade": [1, 2, 2, 4] * 500})
    model = PrivSyn(50.0, 1e-9, Schema({"grade": Numerical(1, 5, integer=True)}), seed=0).fit(table)
    with pytest.warns(AbsentWarning, match="'grade': left out.*: 3, 5$"):
        sample = model.sample(90, balance="grade", seed=0)
    assert sample["grade"].value_counts().to_dict() == {1: 30, 2: 30, 4: 30}
    assert model.release_.absent("grade") == (3, 5)


def test_on_the_command_line(model, tmp_path, capsys):
    model.save(tmp_path / "model.privsyn")
    ran = [capsys, "sample", tmp_path / "model.privsyn", tmp_path / "out.csv", "--rows", "60"]
    done = run(*ran, "--given", "city=Rome", "--given", "pay=20.5", "--balance", "job")
    assert done.code == 0, done.err
    sample = pd.read_csv(tmp_path / "out.csv")
    assert (sample.city == "Rome").all()
    assert (sample.pay == 20.5).all()
    assert sample.job.value_counts().tolist() == [20, 20, 20]
    assert run(*ran, "--given", "city").code == 2
    assert run(*ran, "--given", "pay=much").code == 2


def test_rows_to_be_completed_build_the_cells_of_a_column_once(model, monkeypatch):
    """They were built for each distinct value: 27 s for 1,000 values in a table of 100 columns."""
    built = []
    unmerged = Cells.unmerged
    monkeypatch.setattr(
        Cells, "unmerged", lambda *cells, **more: built.append(cells) or unmerged(*cells, **more)
    )
    codec = replace(model.release_.codec)
    numbers = read_given(codec, pd.DataFrame({"pay": np.arange(0, 200, 0.1).round(1)}), None, 0).numbers[
        "pay"
    ]
    assert len(np.unique(numbers)) == 2000
    assert len(built) == 1


def inside(cells, low, high):
    return cells.notna().all() and (cells >= low).all() and (cells <= high).all()


DAY = pd.Timestamp


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "ranges"),
    [
        ({"pay": (20, 40.05), "bonus": (5, 9)}, {"pay": (20, 40), "bonus": (5, 9)}),
        (
            {"pay": {"low": 20, "high": np.float32(40)}, "to": (np.datetime64("2021-06-01"), None)},
            {"pay": (20, 40), "to": (DAY("2021-06-01"), DAY("2023-01-01"))},
        ),
        (
            {"pay": (None, 30), "from": ("2021-02-01", "2021-02-03")},
            {"pay": (0, 30), "from": (DAY("2021-02-01"), DAY("2021-02-03"))},
        ),
        ({"pay": (199.0, 500)}, {"pay": (199.0, 200)}),
    ],
)
def test_all_rows_lie_in_the_given_ranges(model, given, ranges):
    sample = model.sample(500, given=given, seed=3)
    assert len(sample) == 500
    for column, (low, high) in ranges.items():
        assert inside(sample[column], low, high)
        assert len(set(sample[column])) > 1
    assert sound(sample)
    assert (sample.dtypes == model.sample(5).dtypes).all()


@pytest.mark.slow
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
@pytest.mark.parametrize("more", [{}, {"pay": (20, 60)}, {"city": "Rome"}])
def test_all_rows_have_a_missing_cell_if_that_is_given(model, missing, more):
    sample = model.sample(500, given={"bonus": missing, **more}, seed=3)
    assert sample.bonus.isna().all()
    assert sound(sample)
    assert "pay" not in more or inside(sample.pay, 20, 60)
    assert "city" not in more or set(sample.city) == {"Rome"}


def test_rows_with_a_missing_cell_are_as_the_release_has_them(model, plain):
    """Bakers have no bonus, so they are more frequent there: each with a chance of 1e-8 to be off so far."""
    sample, plain = model.sample(20_000, given={"bonus": None}, seed=4), plain[plain.bonus.isna()]
    for job in ("clerk", "cook", "baker"):
        assert (
            abs((sample.job == job).mean() - (plain.job == job).mean()) < far(len(sample), len(plain)) + 0.03
        )
    assert (sample.job == "baker").mean() > 0.5


@pytest.fixture(scope="module")
def gaps():
    """Of each column that is counted, a third of the cells is missing."""
    rng = np.random.default_rng(0)
    number, lost = rng.integers(0, 500, N), rng.random((N, 5)) < 1 / 3
    minutes = pd.to_timedelta(number * 719, "min")
    table = pd.DataFrame(
        {
            "real": rng.random(N) * 9,
            "at": pd.Timestamp("2020-01-01") + minutes,
            "from": pd.Timestamp("2020-01-01") + minutes,
            "to": pd.Timestamp("2020-01-01") + 2 * minutes,
            "place": rng.choice(["Oslo", "Rome"], N),
        }
    ).mask(lost)
    table["again"], table["land"] = table.real, table.place.map({"Oslo": "Norway", "Rome": "Italy"})
    table["sex"] = rng.choice(["F", "M"], N)
    bounds = ("2020-01-01 00:00", "2022-12-31 00:00")
    schema = Schema(
        {
            "real": Numerical(0.0, 9.0),
            "at": Datetime(*bounds, unit="s"),
            "from": Datetime(*bounds, unit="s"),
            "to": Datetime(*bounds, unit="s"),
            "place": Categorical(["Oslo", "Rome"]),
            "again": Numerical(),
            "land": Categorical(),
            "sex": Categorical(["F", "M"], nullable=False),
        },
        constraints=[
            "again == real",
            Increasing(["from", "to"]),
            Determined("land", "place", {"Oslo": "Norway", "Rome": "Italy"}),
        ],
    )
    return PrivSyn(50.0, 1e-9, schema, seed=1).fit(table)


@pytest.mark.slow("each case")
@pytest.mark.parametrize(
    ("column", "more"),
    [
        ("real", {"to": ("2020-03-01", None)}),
        ("at", {"real": (1, 2)}),
        ("from", {"at": ("2020-03-01", "2020-03-01")}),
        ("to", {"from": ("2020-03-01", "2020-04-01")}),
        ("from", {"to": ("2020-03-01", None)}),
        ("place", {"from": ("2020-03-01", "2020-04-01")}),
        ("real", {"sex": "F", "place": "Rome"}),
        ("again", {}),
        ("land", {}),
    ],
)
def test_a_missing_cell_can_be_given_of_every_kind_of_column(gaps, column, more):
    sample = gaps.sample(60, given={column: None, **more}, seed=3)
    assert sample[column].isna().all()
    assert sample.again.equals(sample.real)
    assert (sample["from"] <= sample.to)[sample["from"].notna() & sample.to.notna()].all()
    assert sample.land.isna().equals(sample.place.isna())
    assert "real" not in more or inside(sample.real, 1, 2)
    assert "at" not in more or set(sample["at"].dt.date) == {date(2020, 3, 1)}
    assert "from" not in more or inside(sample["from"], DAY("2020-03-01"), DAY("2020-04-02"))
    assert "to" not in more or inside(sample.to, DAY("2020-03-01"), DAY("2022-12-31"))
    assert "sex" not in more or set(sample.sex) == {"F"}


@pytest.mark.slow
def test_a_computed_column_that_is_missing_contradicts_a_value_that_it_is_computed_from(gaps):
    with pytest.raises(InputError, match="'again' contradicts 'real'"):
        gaps.sample(9, given={"again": None, "real": 3.5})


@pytest.mark.slow
@pytest.mark.parametrize(("ends", "low", "high"), [((1, 2), 1, 2), ((9, None), 9, 9), ((None, 0), 0, 0)])
def test_a_range_of_reals_includes_its_ends_and_gives_no_warning(gaps, ends, low, high):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert inside(gaps.sample(50, given={"real": ends}, seed=1).real, low, high)


@pytest.fixture(scope="module")
def plain(model):
    """Rows with nothing given, to compare with."""
    return model.sample(40_000, seed=5)


def far(ours, theirs, *, chance=1e-8):
    """How far two shares of independent rows are apart but with this chance, by Hoeffding."""
    return np.sqrt(np.log(4 / chance) / 2) * (1 / np.sqrt(ours) + 1 / np.sqrt(theirs))


def test_numbers_in_a_range_are_as_frequent_as_the_release_has_them(model, plain):
    """In five parts of the range of pay, and jobs within it: each with a chance of 1e-8 to be off so far."""
    sample = model.sample(20_000, given={"pay": (10, 60)}, seed=4)
    plain = plain[plain.pay.between(10, 60)]
    edges = np.linspace(10, 60, 6)
    ours, theirs = (np.histogram(f.pay, edges)[0] / len(f) for f in (sample, plain))
    assert np.abs(ours - theirs).max() < far(len(sample), len(plain))
    assert np.ptp(theirs) > 4 * far(len(sample), len(plain)), "the test could not fail"
    for job in ("clerk", "cook", "baker"):
        assert abs((sample.job == job).mean() - (plain.job == job).mean()) < far(len(sample), len(plain))


def test_a_range_beside_two_looked_up_values_keeps_both():
    where = {"Oslo": ("Norway", "Europe"), "Rome": ("Italy", "Europe"), "Lima": ("Peru", "America")}
    schema = Schema(
        {
            "city": Categorical(list(where)),
            "land": Categorical(),
            "part": Categorical(),
            "n": Numerical(0, 9),
        },
        constraints=[
            Determined("land", "city", {city: land for city, (land, _) in where.items()}),
            Determined("part", "city", {city: part for city, (_, part) in where.items()}),
        ],
    )
    rng = np.random.default_rng(0)
    city = rng.choice(list(where), 900)
    real = pd.DataFrame({"city": city, "land": "", "part": "", "n": rng.integers(0, 9, 900)})
    model = PrivSyn(20.0, 1e-9, schema, seed=1).fit(real)
    for given in ({"land": "Italy", "part": "Europe"}, {"part": "Europe", "land": "Italy"}):
        assert set(model.sample(50, given={**given, "n": (3, 6)}).city) == {"Rome"}
    with pytest.raises(InputError, match="no 'city' leads to"):
        model.sample(50, given={"land": "Peru", "part": "Europe", "n": (3, 6)})
    sample = model.sample(90, given={"n": (3, 6)}, balance="land", seed=1)
    assert sample.land.value_counts().tolist() == [30, 30, 30]
    assert inside(sample.n, 3, 6)


def test_ranges_of_several_columns_keep_the_constraints_between_them(model):
    """In one month the days of both must be in order, too."""
    month = ("2021-03-01", "2021-03-31")
    sample = model.sample(2000, given={"from": month, "to": month}, seed=7)
    assert inside(sample["from"], *map(pd.Timestamp, month))
    assert inside(sample["to"], *map(pd.Timestamp, month))
    assert sound(sample)
    assert sample["from"].nunique() > 15


def test_a_range_with_balanced_classes_and_what_is_looked_up(model):
    sample = model.sample(300, given={"pay": (20, 40), "country": "Norway"}, balance="job", seed=8)
    assert inside(sample.pay, 20, 40)
    assert (sample.country == "Norway").all()
    assert sample.job.value_counts().tolist() == [100, 100, 100]
    assert sound(sample)


def test_a_range_that_the_release_has_no_row_of_is_filled_evenly():
    schema = Schema({"x": Numerical(0, 100, integer=True), "y": Categorical(["a", "b"])})
    real = pd.DataFrame({"x": [1, 2, 3] * 300, "y": ["a", "b", "a"] * 300})
    sample = PrivSyn(50.0, 1e-9, schema, seed=1).fit(real).sample(2000, given={"x": (80, 84)}, seed=1)
    assert set(sample.x) == {80, 81, 82, 83, 84}


def test_a_range_of_listed_numbers_and_the_end_of_a_day():
    schema = Schema(
        {
            "year": Categorical([1990, 2000, 2010]),
            "seen": Datetime("2020-01-01 00:00", "2020-01-03 23:59:59", unit="s"),
        }
    )
    rng = np.random.default_rng(0)
    real = pd.DataFrame(
        {
            "year": rng.choice([1990, 2000, 2010], 900),
            "seen": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 3 * 86400, 900), "s"),
        }
    )
    model = PrivSyn(20.0, 1e-9, schema, seed=1).fit(real)
    assert set(model.sample(200, given={"year": (1995, None)}, seed=1).year) == {2000, 2010}
    for day in ("2020-01-02", date(2020, 1, 2)):
        seen = model.sample(500, given={"seen": (day, day)}, seed=1).seen
        assert set(seen.dt.date) == {date(2020, 1, 2)}
        assert seen.dt.hour.max() > 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n=3..7", (3, 7)),
        ("n=-7.5..-3", (-7.5, -3)),
        ("n=..7", (None, 7)),
        ("n=", None),
        ("code=", None),
        ("empty=", ""),
        ("code=a..b", "a..b"),
        ("year=1995..", (1995, None)),
        ("year=2000", 2000),
        ("day=2020-01-01..2020-02-01", ("2020-01-01", "2020-02-01")),
        ("n >= 3", {"low": 3}),
        ("code in ['c']", "c"),
        ("code=='a..b'", "a..b"),
    ],
)
def test_ranges_on_the_command_line_are_read_as_the_column_has_them(text, expected):
    schema = Schema(
        {
            "n": Numerical(-9, 9),
            "code": Categorical(["a..b", "c"]),
            "empty": Categorical(["", "c"]),
            "year": Categorical([1990, 2000]),
            "day": Datetime("2020-01-01", "2020-12-31"),
        }
    )
    assert list(parse_given(schema.coded, [text]).values()) == [expected]


@pytest.fixture(scope="module")
def races():
    """Six listed races, of which two hardly occur: their noisy counts may come out as none."""
    rng = np.random.default_rng(0)
    listed = ["Asian", "Black", "Native", "Other", "White", "Islander"]
    real = pd.DataFrame(
        {"race": rng.choice(listed, 3000, p=[0.1, 0.2, 0.0, 0.05, 0.65, 0.0]), "n": rng.integers(0, 9, 3000)}
    )
    schema = Schema({"race": Categorical(listed, nullable=False), "n": Numerical(0, 9, integer=True)})
    models = (PrivSyn(1.0, 1e-9, schema, seed=seed).fit(real) for seed in range(20))
    return next(model for model in models if model.release_.absent("race"))


def test_classes_that_the_release_has_no_row_of_are_named(races, tmp_path, capsys):
    absent = set(races.release_.absent("race"))
    assert absent
    assert absent <= {"Native", "Islander"}
    with pytest.warns(AbsentWarning, match=f"^balance 'race': left out, .*'{min(absent)}'"):
        sample = races.sample(1200, balance="race", seed=1)
    assert set(sample.race) == {"Asian", "Black", "Native", "Other", "White", "Islander"} - absent
    assert np.ptp(sample.race.value_counts()) <= 1
    assert not absent & set(races.sample(20_000, seed=2).race)
    races.save(tmp_path / "model.privsyn")
    ran = [capsys, "sample", tmp_path / "model.privsyn", tmp_path / "out.csv", "--rows", "60"]
    balanced = run(*ran, "--balance", "race")
    assert "balance 'race': left out, for the release counts no row of them" in balanced.out
    assert all(repr(race) in balanced.out for race in absent)
    assert "left out" not in run(*ran).out


def test_looked_up_classes_that_no_row_leads_to_are_absent():
    where = {"Oslo": "Norway", "Rome": "Italy", "Atlantis": "Sea"}
    schema = Schema(
        {"city": Categorical(list(where)), "country": Categorical()},
        constraints=[Determined("country", "city", where)],
    )
    real = pd.DataFrame({"city": ["Oslo", "Rome"] * 500, "country": ["Norway", "Italy"] * 500})
    releases = (PrivSyn(9.0, 1e-9, schema, seed=seed).fit(real).release_ for seed in range(20))
    release = next(release for release in releases if release.absent("city"))
    assert release.absent("city") == ("Atlantis",)
    assert release.absent("country") == ("Sea",)
