"""Rows that differ from their release by more than chance are reported, and no others."""

import warnings

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Datetime, InputError, Numerical, PrivSyn, Schema
from privsyn.errors import DisagreementWarning
from privsyn.marginals.domain import Records
from privsyn.release.accuracy.agreement import FEW, Agreement
from privsyn.release.table_model import TableModel

SCHEMA = Schema(
    {"age": Numerical(0, 99, integer=True), "pay": Numerical(0, 999, integer=True, nullable=False)}
)


def people(rows=4000):
    """Pay rises with age; a fifth of the ages are missing."""
    rng = np.random.default_rng(0)
    age = rng.integers(20, 80, rows)
    pay = (age * 8 + rng.normal(0, 60, rows)).clip(0, 999).astype(int)
    return pd.DataFrame({"age": pd.array(np.where(rng.random(rows) < 0.2, -1, age), "Int64"), "pay": pay})


@pytest.fixture(scope="module")
def model():
    table = people()
    table.loc[table.age < 0, "age"] = pd.NA
    return PrivSyn(5.0, 1e-6, SCHEMA, seed=0).fit(table)


@pytest.mark.slow
def test_rows_drawn_from_the_estimates_are_hardly_ever_reported(model):
    """By the bounds each of 300 tables is reported with a probability below 0.01. They are wide: fewer are.

    More than 20 of 300 have a probability below 1e-10 (binomial).
    """
    release, rng = model.release_, np.random.default_rng(1)
    fitted, domain = release.fitted, release.fitted.merging.merged
    (table,) = fitted.marginals
    shares = table.counts.ravel() / table.counts.sum()
    reported = 0
    for _ in range(300):
        cells = rng.choice(len(shares), size=4000, p=shares)
        codes = np.stack(np.unravel_index(cells, table.counts.shape), axis=1)
        rows = Agreement(release.codec, fitted)
        rows.add_records(Records(domain, codes.astype(np.int32)))
        reported += bool(rows.disagreements())
    assert reported <= 20


def test_a_sample_that_follows_its_release_gives_no_warning(model):
    with warnings.catch_warnings():
        warnings.simplefilter("error", DisagreementWarning)
        rows = model.sample(seed=1)
        assert sum(len(block) for block in model.sample_blocks(seed=1)) == len(rows)
    assert model.accuracy_.agreement(rows).empty


@pytest.mark.parametrize(
    ("change", "what", "columns"),
    [
        (lambda rows: rows.assign(age=rows.age.mask(rows.index % 10 == 0)), "missing", ("age",)),
        (lambda rows: rows.assign(pay=(rows.pay + 60).clip(0, 999)), "mean", ("pay",)),
        (lambda rows: rows.assign(pay=rows.pay.to_numpy()[::-1]), "rank correlation", ("age", "pay")),
        (lambda rows: rows.assign(pay=(rows.pay // 250) * 250 + 125), "counts", ("pay",)),
    ],
)
def test_what_differs_most_is_reported_first(model, change, what, columns):
    """The sample has a seed, so each change is the same in every run."""
    found = model.accuracy_.agreement(change(model.sample(seed=1)))
    first = found.iloc[0]
    assert (first["columns"], first.what) == (columns, what)
    assert not first.low <= first.rows <= first.high
    assert first.low <= first.release <= first.high


def test_few_rows_and_rows_of_another_kind_are_not_compared(model):
    few = model.sample(FEW - 1, seed=1).assign(pay=0)
    assert model.accuracy_.agreement(few).empty
    assert not model.accuracy_.agreement(model.sample(1000, seed=1).assign(pay=0)).empty
    with warnings.catch_warnings():
        warnings.simplefilter("error", DisagreementWarning)
        assert (model.sample(500, given={"pay": (0, 99)}, seed=1).pay <= 99).all()
    with pytest.raises(InputError, match="the rows have no column"):
        model.accuracy_.agreement(pd.DataFrame({"pay": [1] * FEW}))


def test_a_sample_that_differs_from_its_release_warns_of_the_worst_three_in_one_line(model, monkeypatch):
    """Were all rows alike, columns and pair would be wrong."""
    monkeypatch.setattr(
        TableModel,
        "_records",
        lambda model, tables, n, rng, progress=None: Records(
            model.fitted.merging.merged, np.zeros((n, len(model.fitted.merging.merged)), np.int32)
        ),
    )
    with pytest.warns(DisagreementWarning) as raised:
        model.sample(seed=1)
    (line,) = [str(one.message) for one in raised]
    assert line.startswith("the rows differ from the release by more than chance: ")
    assert "\n" not in line
    assert line.count("in the rows") <= 3


def test_rows_agree_alike_after_they_were_written_and_read_again(tmp_path):
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, 3000), "D")
    table = pd.DataFrame({"a": rng.integers(0, 50, 3000), "b": rng.choice(["x", "y"], 3000), "day": days})
    table.to_csv(tmp_path / "t.csv", index=False)
    model = PrivSyn(1.0, 1e-6, seed=0).fit(tmp_path / "t.csv")
    rows = model.sample(seed=1).assign(a=7)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    found = model.accuracy_.agreement(rows)
    assert len(found)
    for again in (tmp_path / "rows.csv", pd.read_csv(tmp_path / "rows.csv")):
        pd.testing.assert_frame_equal(model.accuracy_.agreement(again), found)
    with pytest.raises(InputError, match="the rows have no column 'a'"):
        model.accuracy_.agreement(rows.drop(columns="a"))
    with pytest.raises(InputError, match="column 'day' has other cells than a sample"):
        model.accuracy_.agreement(rows.assign(day="soon"))


def test_means_of_times_are_reported_as_times():
    """Means of times are times in the table of disagreements."""
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.random.default_rng(0).integers(0, 300, 3000), "D")
    table = pd.DataFrame({"day": days, "sex": ["f", "m"] * 1500})
    columns = {
        "day": Datetime("2020-01-01", "2020-12-31", nullable=False),
        "sex": Categorical(["f", "m"], nullable=False),
    }
    model = PrivSyn(5.0, 1e-6, Schema(columns), seed=0).fit(table)
    rows = model.sample(seed=1)
    found = model.accuracy_.agreement(rows.assign(day=rows.day + pd.Timedelta(days=60)))
    first = found[found["columns"] == ("day",)].iloc[0]
    assert first.what == "mean"
    assert first.rows.round("D") > first.high > first.release > first.low > pd.Timestamp("2020-01-01")
