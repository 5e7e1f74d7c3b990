"""Draws of a release: repeatable, made from the release alone; and what is estimated from them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from command import run
from refusals import refuses

from privsyn import Categorical, Identifier, InputError, Numerical, PrivSyn, Schema

ROWS = 2000
SCHEMA = Schema(
    {
        "age": Numerical(16, 100, integer=True, nullable=False),
        "sex": Categorical(["Female", "Male"], nullable=False),
        "my pay": Numerical(0, 20_000, nullable=False),
    }
)


def people():
    rng = np.random.default_rng(0)
    age, male = rng.integers(16, 90, ROWS), rng.random(ROWS) < 0.4
    pay = age * 100 * rng.uniform(0.5, 1.5, ROWS) + 2000 * male
    return pd.DataFrame({"age": age, "sex": np.where(male, "Male", "Female"), "my pay": pay})


@pytest.fixture(scope="module")
def model():
    return PrivSyn(2.0, 1e-9, SCHEMA, seed=1).fit(people())


@pytest.mark.slow("each case")
@pytest.mark.parametrize("threads", [1, 4])
def test_threads_change_no_table_and_a_reader_may_stop(model, monkeypatch, threads):
    monkeypatch.setattr("privsyn.release.draws.frames.cpu_count", lambda: threads)
    made = model.draws(6, 300, seed=3)
    for k, table in enumerate(made):
        pd.testing.assert_frame_equal(table, made[k])
    first = iter(made)
    pd.testing.assert_frame_equal(next(first), made[0])
    first.close()
    assert len(list(made.frames())) == 6


@pytest.mark.slow
def test_a_draw_does_not_depend_on_when_it_is_made(model):
    draws = model.release_.draws(4, 200)
    last = draws[-1]
    assert len(draws) == 4
    assert [len(table) for table in draws[1:3]] == [200, 200]
    pd.testing.assert_frame_equal(last, list(draws)[3])
    assert not draws[0].equals(draws[1])


@pytest.mark.parametrize(("m", "n"), [(1, None), (0, None), (2.5, None), (2, 0), (2, -1)])
def test_too_few_tables_or_rows_are_refused(model, m, n):
    with pytest.raises(InputError):
        model.draws(m, n)


def test_a_share_has_an_interval_that_is_as_wide_as_the_noise(model):
    """Of one column, where `counts` has an interval from known noise. 20 draws: 16 % in the width."""
    counts = model.accuracy_.counts("sex").set_index("sex")
    known = (counts["high"] - counts["low"])["Female"] / ROWS
    found = model.accuracy_.share("sex == 'Female'")
    assert found["covered"]
    assert 0.3 < (found["high"] - found["low"]) / known < 2.0
    assert abs(found["estimate"] - 0.6) < 0.05


@pytest.mark.slow
def test_conditions_may_join_columns_and_quote_names(model):
    table = people()
    found = model.accuracy_.share("age >= 60 and sex == 'Male'")
    assert abs(found["estimate"] - ((table["age"] >= 60) & (table["sex"] == "Male")).mean()) < 0.05
    three = model.accuracy_.share("age >= 60 and sex == 'Male' and `my pay` > 5000")
    assert not three["covered"]
    assert 0 < three["estimate"] < 1
    assert np.isnan([three["low"], three["high"]]).all()
    male = model.accuracy_.mean("my pay", "sex == 'Male'")
    assert male["low"] < male["estimate"] < male["high"]
    assert abs(male["estimate"] - table.loc[table["sex"] == "Male", "my pay"].mean()) < 600
    assert model.accuracy_.share("age > 89")["low"] >= 0


def test_a_quote_in_the_name_of_a_column_begins_no_text():
    """The condition then seemed to be about no column, and was evaluated on draws of any."""
    frame = pd.DataFrame({"sex": ["Female", "Male"] * 500, "driver's age": [20, 40] * 500})
    schema = Schema({"sex": Categorical(["Female", "Male"]), "driver's age": Numerical(0, 99)})
    accuracy = PrivSyn(5.0, 1e-9, schema, seed=0).fit(frame).accuracy_
    for where in ("`driver's age` > 30 and sex == 'Male'", r"sex != 'it\'s' and `driver's age` > 30"):
        found = accuracy.share(where)
        assert found["covered"]
        assert found["estimate"] == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    "where",
    [
        "age +",
        "age",
        "height > 3",
        "@people > 1",
        "__import__('os')",
        "",
        "index > 3",
        "sex == 'Male' and `ilevel_0` > 3",
    ],
)
def test_what_is_no_condition_is_refused_in_one_line(model, where):
    with refuses("no condition"):
        model.accuracy_.share(where)


def test_a_condition_that_cannot_be_used_is_explained_and_says_what_can(model):
    asked = model.accuracy_
    with pytest.raises(
        InputError, match=r"is no condition: .* no column 'sx' that is counted; did you mean 'sex'\?$"
    ):
        asked.share("sx == 'Male' and age > 30")
    with pytest.raises(InputError, match=r"no condition.* of columns with values"):
        asked.share("age.isna()")
    with pytest.raises(InputError, match="column 'sex' has no numbers: `share` estimates"):
        asked.mean("sex")
    assert not asked.mean("age", "age > 89 and age < 20")["covered"]  # no draw has such a row


def test_generated_identifiers_have_no_mean():
    schema = Schema({"id": Identifier(), "age": Numerical(0, 99)})
    rows = pd.DataFrame({"id": range(500), "age": np.arange(500) % 99})
    model = PrivSyn(2.0, 1e-9, schema, seed=1).fit(rows)
    with pytest.raises(InputError, match="column 'id' is generated"):
        model.accuracy_.mean("id")


@pytest.mark.slow
def test_a_value_that_was_not_found_has_at_most_the_share_of_the_others():
    """Its rows are counted as "(other)": Bari was estimated as 0 to 0.0006 of the rows, and has 2 %."""
    days = pd.date_range("2024-01-01", periods=1000)
    cities = ["Rome"] * 500 + ["Oslo"] * 480 + ["Bari"] * 20
    table = pd.DataFrame({"city": cities, "x": [1, 2] * 500, "first day": days})
    accuracy = PrivSyn(1.0, 1e-9, seed=0).fit(table).accuracy_
    assert accuracy.share("city == 'Rome'")["covered"]
    assert accuracy.share("city in ['Rome', 'Oslo', '(other)'] and x > 1")["covered"]
    assert accuracy.share("`first day` > '2025-01-01' and city == 'Rome'")["covered"]
    for where in ("city == 'Bari'", "city != 'Bari'", "`city` in ['Rome', 'Bari'] and x > 1"):
        share = accuracy.share(where)
        assert share["covered"], where
        assert share["low"] <= len(table.query(where)) / len(table) <= share["high"], where
    assert not accuracy.mean("x", "city == 'Bari' or x > 0")["covered"]


def test_the_command_line_writes_all_draws_to_one_file(model, tmp_path, capsys):
    model.save(tmp_path / "m.privsyn")
    out = tmp_path / "out.parquet"
    done = run(capsys, "sample", tmp_path / "m.privsyn", out, "--draws", 3, "--rows", 100, "--seed", 1)
    assert done.code == 0, done.err
    written = pd.read_parquet(out)
    assert list(written.columns) == ["draw", "age", "sex", "my pay"]
    assert written["draw"].value_counts().to_dict() == {1: 100, 2: 100, 3: 100}
    pd.testing.assert_frame_equal(
        written[written["draw"] == 2].drop(columns="draw").reset_index(drop=True),
        model.release_.draws(3, 100, seed=1)[1],
        check_dtype=False,
    )
    refused = run(
        capsys, "sample", tmp_path / "m.privsyn", tmp_path / "x.csv", "--draws", 3, "--given", "sex=Male"
    )
    assert refused.code == 2
    assert not (tmp_path / "x.csv").exists()


def test_a_column_called_draw_is_refused(tmp_path):
    schema = Schema({"draw": Categorical([0, 1], nullable=False)})
    model = PrivSyn(1.0, 1e-9, schema, seed=0).fit(pd.DataFrame({"draw": [0, 1] * 50}))
    with pytest.raises(InputError, match="'draw'"):
        model.draws(2).to_file(tmp_path / "out.csv")
    assert not list(tmp_path.iterdir())


CODE = [
    "sex.to_csv('was run')",
    "sex.__class__.__name__ == 'Series'",
    "age[0] > 1",
    "sex == '`' or sex.to_csv('was run') or '`' == sex",
    "''' ' ''' + sex.to_csv('was run') == ' '",
    "f\"{sex.to_csv('was run')}\" == sex",
    "sex == 'it\\'s' or sex.to_csv('was run') == 'x'",
    "(lambda: True)()",
    "age > 1\nsex.to_csv('was run')",
]


@pytest.mark.parametrize("where", CODE)
def test_a_condition_is_never_run_as_code(model, where, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="no condition"):
        model.accuracy_.share(where)
    assert not list(tmp_path.iterdir())


def test_two_columns_are_not_compared_and_the_error_names_what_to_write(model):
    with pytest.raises(
        InputError, match=r"not with another: .* take the mean over the tables of draws\(20\)"
    ):
        model.accuracy_.share("age < `my pay`")


@pytest.mark.parametrize(
    "where",
    ["age in [30, 40]", "not (age > 30)", 'sex == "it\'s # Female" or 3 > age', "20 <= age < 60"],
)
def test_a_condition_compares_columns_with_values(model, where):
    assert 0 <= model.accuracy_.share(where)["estimate"] <= 1
