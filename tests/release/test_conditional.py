"""Samples with something given: it stays, the rest is as the release has it in such rows, at no cost."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from command import run
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
from privsyn.release.conditional import read_given
from privsyn.table.enforcement.draws import Cells

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
    learnt = model.release_.learnt
    (table,) = [t for t in learnt.marginals if set(t.attributes) == {given, other}]
    counts = table.project((given, other)).counts
    return counts / counts.sum(axis=1, keepdims=True)


def test_what_is_given_stays_and_the_rest_is_as_released(model):
    """10,000 rows are moved until they fit: far nearer than the 0.05 a sample of 1,000 may be off.

    1,000 of the rows are drawn: each share is off by more than 0.08 with a chance below 2 exp(-2 * 1000 *
    0.08^2) < 6e-6 by Hoeffding even for independent draws, summed over few values; 0.1 leaves 5e-9.
    """
    for place, city in enumerate(["Oslo", "Bergen", "Rome"]):
        sample = model.sample(1000, given={"city": city})
        assert len(sample) == 1000
        assert (sample.city == city).all()
        assert sound(sample)
        expected = released(model, "city", "job")[place]
        shares = [(sample.job == job).mean() for job in ("clerk", "cook", "baker")]
        assert np.abs(shares - expected).max() < 0.1
    overall = released(model, "city", "job")
    assert np.abs(overall[0] - overall[1]).max() > 0.3, "the test could not fail"


def test_types_stay(model):
    assert (model.sample(50, given={"job": "cook"}).dtypes == model.sample(50).dtypes).all()


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


def test_given_and_balanced_together(model):
    sample = model.sample(500, given={"city": "Rome"}, balance="job", seed=2)
    assert (sample.city == "Rome").all()
    assert np.ptp(sample.job.value_counts()) <= 1
    assert sound(sample)


def test_nothing_more_is_spent(model):
    before = model.ledger_.to_json()
    model.sample(10, given={"city": "Rome"})
    assert model.ledger_.to_json() == before


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(model, rows):
    assert len(model.sample(rows, given={"city": "Rome"})) == rows
    assert len(model.sample(rows, balance="job")) == rows
    assert len(model.sample(rows, given={"city": None})) == rows


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        ({"given": {"town": "Rome"}}, "there is no column 'town'"),
        ({"given": {"city": "Atlantis"}}, "'city': 'Atlantis' is not one of its values"),
        ({"given": {"pay": 900}}, "'pay': 900 lies outside its bounds"),
        ({"given": {"bonus": 3.5}}, "'bonus': 3.5 is not one of its numbers"),
        ({"given": {"pay": "much"}}, "'pay': 'much' is not a number"),
        ({"given": {"city": ["Rome"]}}, "one value a row"),
        ({"given": {"city": "Paris", "job": "clerk"}}, "keeps the constraints on"),
        ({"given": {"city": "Rome", "country": "Norway"}}, "'country' is not what follows from 'city'"),
        ({"given": {"from": "2022-01-01", "to": "2021-01-01"}}, "keeps the constraints on"),
        ({"given": {"all": 30}}, "give pay and bonus instead"),
        ({"given": 3}, "given is a mapping"),
        ({"given": pd.DataFrame({"city": ["Rome"]}), "n": 2}, "leave out n"),
        ({"balance": "pay"}, "wants a column of listed values"),
        ({"balance": "town"}, "there is no such column"),
        ({"balance": ["job"]}, "a list: there is no such column"),
        ({"balance": 3, "given": {"city": "Rome"}}, "balance 3: there is no such column"),
        ({"balance": ["job"], "given": {"city": "Rome"}}, "there is no such column"),
        ({"balance": "city", "given": {"city": "Rome"}}, "this column is given"),
    ],
)
def test_what_cannot_be_is_refused(model, asked, complaint):
    with pytest.raises(InputError, match=complaint):
        model.sample(**{"n": 20, **asked} if "n" not in asked else asked)


@pytest.mark.parametrize("column", ["city", "pay", "bonus", "from"])
@pytest.mark.parametrize("value", ["Ann Lee", 918273645, Decimal("sNaN"), Incomparable(2), ["Ann Lee"]])
def test_no_cell_of_a_data_frame_is_in_a_complaint_nor_behind_it(model, column, value):
    """Rows to be completed may be of people."""
    frame = pd.DataFrame({column: pd.Series([value], dtype=object)})
    with pytest.raises(InputError, match=f"^given: column {column!r}") as raised:
        model.sample(given=frame)
    assert "Ann" not in str(raised.value)
    assert "918273645" not in str(raised.value)
    assert raised.value.__context__ is None
    assert raised.value.__cause__ is None


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
    monkeypatch.setattr(Cells, "unmerged", lambda *cells: built.append(cells) or unmerged(*cells))
    codec = replace(model.release_.codec)
    numbers = read_given(codec, pd.DataFrame({"pay": np.arange(0, 200, 0.1).round(1)}), None, 0)["pay"]
    assert len(np.unique(numbers)) == 2000
    assert len(built) == len(codec.domain)
