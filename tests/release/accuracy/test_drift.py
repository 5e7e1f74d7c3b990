"""New rows of the same population are hardly ever called drift, and changed ones are."""

import json
from dataclasses import replace
from math import isnan

import numpy as np
import pandas as pd
import pytest
from command import run
from refusals import refuses

from privsyn import Categorical, Database, Datetime, Increasing, Numerical, PrivSyn, Schema, Table
from privsyn.release.accuracy.drift import Shares

LISTED, GRADES = ("a", "b", "c"), ("low", "mid", "high")
DAYS = Datetime("2020-01-01", "2021-12-31", nullable=False)
SCHEMA = Schema(
    {
        "kind": Categorical(LISTED),
        "grade": Categorical(GRADES, ordered=True),
        "pay": Numerical(0, 999, integer=True, nullable=False),
        "begun": DAYS,
        "ended": DAYS,
    },
    constraints=[Increasing(["begun", "ended"])],
)


def people(rows, seed):
    """Pay depends on the kind."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, rows)
    begun = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 400, rows), "D")
    columns = {
        "kind": pd.Categorical.from_codes(kind, LISTED),
        "grade": pd.Categorical.from_codes(rng.integers(0, 3, rows), GRADES, ordered=True),
        "pay": (300 + 100 * kind + rng.normal(0, 60, rows)).clip(0, 999).astype(int),
        "begun": begun,
        "ended": begun + pd.to_timedelta(rng.integers(1, 90, rows), "D"),
    }
    return pd.DataFrame(columns)


@pytest.fixture(scope="module", params=[(3.0, 1e-6), (20.0, 0.0)], ids=["Gaussian", "Laplace"])
def release(request):
    return PrivSyn(*request.param, SCHEMA, seed=0).fit(people(4000, 0)).release_


def test_rows_of_the_same_population_are_no_drift(release):
    """By the bound each check is an alarm with a probability below 0.01. The seeds make all runs alike."""
    smallest = [release.drift(people(1000, seed))["p_value"].min() for seed in range(1, 11)]
    assert min(smallest) > 0.01


def with_a_new_value(rows):
    texts = rows["kind"].astype(str).where(rows.index % 10 > 0, "z")
    return rows.assign(kind=pd.Categorical(texts))


@pytest.mark.parametrize(
    ("change", "columns", "where"),
    [
        (lambda rows: rows.assign(pay=(rows["pay"] + 40).clip(0, 999)), ("pay",), "pay <= "),
        (lambda rows: rows[rows["grade"] != "mid"], ("grade",), "grade "),
        (lambda rows: rows[rows["kind"] != "b"], ("kind",), "kind = b"),
        (lambda rows: rows.assign(pay=rows["pay"].to_numpy()[::-1]), ("kind", "pay"), "kind = "),
        (lambda rows: rows.assign(ended=rows["begun"]), ("ended",), "ended"),
    ],
)
def test_what_changed_most_comes_first(release, change, columns, where):
    drift = release.drift(change(people(2000, 1)))
    first = drift.iloc[0]
    assert (first["columns"], first["where"][: len(where)]) == (columns, where)
    assert first["p_value"] < 1e-6
    assert drift["p_value"].is_monotonic_increasing


def test_a_value_that_is_not_listed_counts_as_missing_also_in_a_column_of_categories(release):
    """Cast to the categories of a sample, it would be missing before it is coded: the same, by luck."""
    drift = release.drift(with_a_new_value(people(4000, 1)))
    assert drift.loc[drift["columns"] == ("kind",), "p_value"].item() < 0.01
    as_text = people(4000, 1).astype({"kind": "str"})
    pd.testing.assert_frame_equal(release.drift(as_text), release.drift(people(4000, 1)))


def test_columns_that_the_rows_lack_are_named_and_not_compared(release):
    drift = release.drift(people(1000, 1).drop(columns=["kind", "begun"]).assign(more=1))
    reasons = {names: why for names, p, why in drift[["columns", "p_value", "where"]].values if isnan(p)}
    assert reasons == {
        ("kind",): "no such column in the rows",
        ("begun",): "no such column in the rows",
        ("ended",): "no column in the rows from which it is measured",
    }
    compared = {name for names in drift["columns"][drift["p_value"].notna()] for name in names}
    assert compared == {"grade", "pay"}


def test_rows_that_cannot_be_compared_are_refused(release):
    for rows in (pd.DataFrame({"other": [1, 2]}), people(0, 1)):
        with refuses("at least one row"):
            release.drift(rows)
    with refuses("column 'pay' has other cells"):
        release.drift(people(50, 1).assign(pay="much"))


@pytest.mark.slow
def test_releases_of_persons_with_many_rows_and_of_several_tables_are_refused():
    rows = people(400, 0)
    with_persons = PrivSyn(9.0, 1e-6, SCHEMA, unit="who", seed=0).fit(rows.assign(who=rows.index // 2))
    with refuses("'who' may have many rows"):
        with_persons.release_.drift(rows)
    tables = {"a": rows.assign(key=rows.index), "b": rows[["kind"]].assign(key=rows.index)}
    kinds = Schema({"kind": SCHEMA.columns["kind"]})
    database = Database({"a": Table(SCHEMA, key="key"), "b": Table(kinds, parent="a", link="key")})
    with refuses("drift is for one table"):
        PrivSyn(9.0, 1e-6, database, seed=0).fit(tables).release_.drift(rows)


@pytest.mark.parametrize("laplace", [False, True])
@pytest.mark.parametrize(
    ("share", "rows", "total", "scale"),
    [(0.02, 50, 300, 4.0), (0.3, 100, 9000, 9.0), (0.3, 2000, 300, 0.5), (0.3, 2000, 3000, 90.0)],
)
def test_bounds_hold_and_those_of_normal_noise_are_not_far_too_large(
    release, laplace, share, rows, total, scale
):
    """Of 200,000 cells without drift. Six standard deviations have a probability below 1e-6."""
    rng, cells = np.random.default_rng(0), 200_000
    noise = rng.laplace(0, scale / np.sqrt(2), cells) if laplace else rng.normal(0, scale, cells)
    seen = rng.binomial(rows, share, cells) / rows
    noisy = (rng.binomial(total, share, cells) + noise) / total
    fitted = replace(release.table().fitted, total=float(total))
    bounds = Shares(("x",), False, seen, noisy, np.full(cells, (scale / total) ** 2)).bounds(
        rows, fitted, laplace=laplace
    )
    for level in (0.1, 0.01):
        most = level + 6 * np.sqrt(level / cells)
        assert (0.0 if laplace else level / 50) <= (bounds <= level).mean() < most


def test_the_command_ends_with_1_if_there_is_drift(release, tmp_path, capsys):
    release.save(tmp_path / "m.privsyn")
    people(1000, 1).to_csv(tmp_path / "same.csv", index=False)
    people(2000, 1).assign(pay=999).drop(columns="kind").to_csv(tmp_path / "other.csv", index=False)
    model, drift = tmp_path / "m.privsyn", tmp_path / "drift.json"
    done = run(capsys, "drift", model, tmp_path / "same.csv", "--json", drift)
    assert done.code == 0
    assert done.out.startswith("no drift: the smallest p-value is ")
    assert min(line["p_value"] for line in json.loads(drift.read_text())) > 0.01
    done = run(capsys, "drift", model, tmp_path / "other.csv")
    assert done.code == 1
    lines = done.out.splitlines()
    assert "columns and sets of columns differ" in lines[0]
    assert lines[1].startswith("  pay ")
    assert lines[-1] == "  kind: not compared: no such column in the rows"
    assert run(capsys, "drift", model, tmp_path / "none.csv").code == 2
