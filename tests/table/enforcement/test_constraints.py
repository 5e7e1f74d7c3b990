"""Constraints: every row keeps them, by whatever method; contradictions are found when the schema is read."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from datetime import date, datetime, time, timedelta

import numpy as np
import pandas as pd
import pytest
from command import run
from hypothesis import example, given
from hypothesis import strategies as st
from refusals import refuses

from privsyn import (
    Allowed,
    Categorical,
    Datetime,
    Determined,
    Duration,
    Elapsed,
    Forbidden,
    Increasing,
    InputError,
    Lookup,
    MissingWhen,
    Numerical,
    PrivSyn,
    Schema,
    Time,
    Total,
    load,
    plan,
    read_schema,
)
from privsyn.table.drafting.draft import check_schema
from privsyn.table.encoding.grid import Grid
from privsyn.table.enforcement.increasing import IncreasingRule
from privsyn.table.schema.constraint import constraint_from_plain
from privsyn.table.schema.draws import Cells, DrawnRows
from privsyn.table.schema.yaml_file import from_plain, to_plain, to_yaml

COUNTRY = {"Oslo": "Norway", "Bergen": "Norway", "Rome": "Italy", "Milan": "Italy", "Paris": "France"}
COLUMNS = {
    "city": Categorical(list(COUNTRY)),
    "country": Categorical(["Norway", "Italy", "France"]),
    "start": Datetime("2015-01-01", "2018-12-31"),
    "end": Datetime("2015-01-01", "2018-12-31"),
    "seen": Datetime("2015-01-01 00:00", "2018-12-31 23:59", nullable=False),
    "gross": Numerical(0, 500, decimals=2),
    "tax": Numerical(0, 200, decimals=2, nullable=False),
    "net": Numerical(-200, 500, decimals=2),
    "married": Categorical(["yes", "no", "was"], nullable=False),
    "age": Numerical(10, 90, integer=True, nullable=False),
    "spouse_age": Numerical(16, 90, integer=True),
    "floor": Numerical(0.0, 1.0),
    "roof": Numerical(0.0, 1.0, nullable=False),
    "left": Time("06:00", "20:00", unit="m", nullable=False),
    "trip": Duration("-1:00:00", "3:00:00", unit="m"),
}


def table(n=2000, seed=0):
    """Rows that keep some constraints mostly and others not at all."""
    rng = np.random.default_rng(seed)
    city = rng.choice(list(COUNTRY), n)
    start = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 1400, n), "D")
    gross, tax = rng.gamma(2, 40, n).clip(0, 500).round(2), rng.gamma(1, 15, n).clip(0, 200).round(2)
    frame = pd.DataFrame(
        {
            "city": city,
            "country": [COUNTRY[c] for c in city],
            "start": start,
            "end": start + pd.to_timedelta(rng.geometric(0.02, n), "D"),
            "seen": start + pd.to_timedelta(rng.integers(-(10**6), 10**7, n), "s"),
            "gross": gross,
            "tax": tax,
            "net": gross - tax,
            "married": rng.choice(["yes", "no", "was"], n),
            "age": rng.integers(10, 91, n),
            "spouse_age": rng.integers(16, 91, n).astype(float),
            "floor": rng.random(n),
            "roof": rng.random(n),
            "left": [time(hour, 30) for hour in rng.integers(6, 20, n)],
            "trip": pd.to_timedelta(rng.integers(-60, 180, n), "min"),
        }
    )
    for name in ("city", "start", "end", "gross", "floor", "trip"):  # not country, which breaks its rule
        frame.loc[rng.random(n) < 0.05, name] = None
    return frame


def either(frame, *names):
    return frame[list(names)].isna().any(axis=1)


PAIRS = [["Oslo", "yes"], ["Oslo", "no"], ["Rome", "was"], ["Paris", "yes"]]
TRIPLES = [[year, "yes", city] for year in (20, 40, 60) for city in ("Oslo", "Paris")] + [[30, "no", "Rome"]]

# A name, the constraints, and for each row whether it keeps them, said in another way than the program does.
SETS = {
    "forbidden": (
        [Forbidden({"age": {"high": 17}, "married": ["yes", "was"]})],
        lambda f: ~((f.age <= 17) & f.married.isin(["yes", "was"])),
    ),
    "forbidden missing": (
        [Forbidden({"city": None, "married": "yes"})],
        lambda f: ~(f.city.isna() & (f.married == "yes")),
    ),
    "allowed": (
        [Allowed(["city", "married"], PAIRS)],
        lambda f: (
            f.city.isna() | np.array([pair in PAIRS for pair in f[["city", "married"]].values.tolist()], bool)
        ),
    ),
    "allowed, with numbers": (
        [Allowed(["age", "married", "city"], TRIPLES)],
        lambda f: (
            f.city.isna()
            | np.array([row in TRIPLES for row in f[["age", "married", "city"]].values.tolist()], bool)
        ),
    ),
    "determined": (
        [Determined("country", "city", COUNTRY)],
        lambda f: f.country.eq(f.city.map(COUNTRY)) | (f.country.isna() & f.city.isna()),
    ),
    "increasing": ([Increasing(["start", "end"])], lambda f: either(f, "start", "end") | (f.start <= f.end)),
    "strictly, days and seconds, and reals": (
        [Increasing(["start", "seen"], strict=True), Increasing(["floor", "roof"], strict=True)],
        lambda f: (f.start.isna() | (f.start < f.seen)) & (f.floor.isna() | (f.floor < f.roof)),
    ),
    "total": (
        [Total("net", {"gross": 1, "tax": -1})],
        lambda f: np.where(f.gross.isna(), f.net.isna(), (f.gross - f.tax - f.net).abs() < 0.001),
    ),
    "missing": (
        [MissingWhen("spouse_age", {"married": "no"}, only=True)],
        lambda f: f.spouse_age.isna() == (f.married == "no"),
    ),
    "times of day and lengths of time": (
        [
            Forbidden({"left": {"low": time(18)}, "trip": {"low": timedelta(hours=1)}}),
            MissingWhen("trip", {"left": {"high": "08:00"}}),
        ],
        lambda f: (
            ~(f.left.map(lambda at: at >= time(18)) & (f.trip >= pd.Timedelta("1h")))
            & (f.trip.isna() | f.left.map(lambda at: at > time(8)))
        ),
    ),
    "all at once": (
        [
            Determined("country", "city", COUNTRY),
            Increasing(["start", "end"]),
            Forbidden({"country": "Italy", "married": "was"}),
            Total("net", {"gross": 1, "tax": -1}),
            Increasing(["tax", "gross"]),
            Forbidden({"net": {"low": 300}}),
            MissingWhen("spouse_age", {"married": ["no", "was"]}, only=True),
            Forbidden({"age": {"high": 17}, "married": "yes"}),
            Increasing(["age", "spouse_age"]),
        ],
        lambda f: (
            (f.country.eq(f.city.map(COUNTRY)) | (f.country.isna() & f.city.isna()))
            & (either(f, "start", "end") | (f.start <= f.end))
            & ~(f.country.eq("Italy") & f.married.eq("was"))
            & np.where(f.gross.isna(), f.net.isna(), (f.gross - f.tax - f.net).abs() < 0.001)
            & (f.gross.isna() | (f.tax <= f.gross))
            & ~(f.net >= 300)
            & (f.spouse_age.isna() == (f.married != "yes"))
            & ~((f.age <= 17) & (f.married == "yes"))
            & ~(f.age > f.spouse_age)
        ),
    ),
}


def about(constraints):
    """Return the rows and the schema of the columns that the constraints name."""
    names = [name for name in COLUMNS if any(name in rule.columns for rule in constraints)]
    return table()[names], Schema({name: COLUMNS[name] for name in names}, constraints=constraints)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["default", "published"])
@pytest.mark.parametrize("name", SETS)
def test_every_row_keeps_the_constraints(name, method, tmp_path):
    constraints, kept = SETS[name]
    real, schema = about(constraints)
    assert not kept(real).all() or name in ("increasing",), "the input would keep it anyway"
    model = PrivSyn(1.0, 1e-9, schema, seed=1, method=method).fit(real)
    model.save(tmp_path / "model")
    for rows in (0, 1, 5_000):
        sample = load(tmp_path / "model").sample(rows, seed=rows)
        assert np.asarray(kept(sample)).all()
        assert list(sample) == list(real)
        assert (sample.dtypes == real.dtypes).all()


def test_a_column_that_is_computed_is_not_asked_about():
    constraints = [Determined("country", "city", COUNTRY), Total("net", {"gross": 1, "tax": -1})]
    real, schema = about(constraints)
    model = PrivSyn(9.0, 1e-9, schema, seed=1).fit(real)
    asked = " ".join(spend.what for spend in model.ledger_.spends)
    assert "city" in asked
    assert "country" not in asked
    assert "net" not in asked


def test_public_zeros_steer_the_estimate():
    constraints, _ = SETS["forbidden"]
    real, schema = about(constraints)
    model = PrivSyn(9.0, 1e-9, schema, seed=1).fit(real)
    fitted = model.release_.fitted
    (held,) = [t for t in model.release_.table()._tables if set(t.attributes) == {"age", "married"}]
    ages = fitted.merging.groups[fitted.merging.original.axes(("age",))[0]]
    young = set(ages[:8].tolist()) - set(ages[8:].tolist())  # groups of nobody above 17
    assert young
    assert (held.project(("age", "married")).counts[sorted(young)][:, [0, 2]] == 0).all()


def test_dates_keep_their_margins():
    """Bringing numbers in order must not crowd them at one end of their groups."""
    rng = np.random.default_rng(0)
    start = rng.integers(0, 900, 20_000)
    days = pd.DataFrame({"start": start, "end": start + rng.geometric(0.05, len(start)) - 1})
    columns = {name: Numerical(0, 1200, integer=True, nullable=False) for name in days}
    schema = Schema(columns, constraints=[Increasing(["start", "end"])])
    sample = PrivSyn(5.0, 1e-9, schema, seed=1).fit(days).sample(20_000, seed=1)
    for name in days:
        real, ours = (np.histogram(f[name], 60, (0, 1200))[0] / len(f) for f in (days, sample))
        assert np.abs(real - ours).sum() / 2 < 0.04  # 0.09 when a row's own numbers are brought in order


def test_what_is_left_open_follows_from_the_constraints():
    schema = Schema(
        {
            "city": Categorical(),
            "country": Categorical(),
            "gross": Numerical(0, 10, integer=True),
            "tax": Numerical(0, 5, integer=True),
            "net": Numerical(),
        },
        constraints=[Determined("country", "city", COUNTRY), Total("net", {"gross": 1, "tax": -1})],
    )
    assert schema.columns["city"].values == tuple(COUNTRY)
    assert schema.columns["country"].values == ("Norway", "Italy", "France")
    assert (schema.columns["net"].low, schema.columns["net"].high) == (-5, 10)


def test_constraints_on_what_is_found_under_privacy():
    """Values that a constraint names are public; found bounds leave room for the order."""
    real = table(5000)[["city", "start", "end", "gross", "tax", "net"]]
    schema = Schema(
        {
            "city": Categorical(),
            "start": Datetime(),
            "end": Datetime("2016-01-01", "2018-12-31"),
            "gross": Numerical(),
            "tax": Numerical(0, 200, decimals=2, nullable=False),
            "net": Numerical(),
        },
        constraints=[
            Forbidden({"city": ["Atlantis", "Rome"], "tax": {"low": 20}}),
            Increasing(["start", "end"]),
            Total("net", {"gross": 1, "tax": -1}),
        ],
    )
    sample = PrivSyn(5.0, 1e-9, schema, seed=1).fit(real).sample(3000)
    assert not (sample.city.isin(["Atlantis", "Rome"]) & (sample.tax >= 20)).any()
    assert (either(sample, "start", "end") | (sample.start <= sample.end)).all()
    assert ((sample.gross - sample.tax - sample.net).abs().fillna(0) < 0.001).all()


@pytest.mark.parametrize("name", SETS)
def test_a_schema_is_written_and_read_and_copied(name, tmp_path):
    schema = Schema(COLUMNS, constraints=SETS[name][0])
    (tmp_path / "schema.yaml").write_text(to_yaml(schema), encoding="utf-8")
    again = read_schema(tmp_path / "schema.yaml")
    assert again == from_plain(json.loads(json.dumps(to_plain(schema))))
    assert to_plain(again) == to_plain(schema)
    assert again == schema or "times of day" in name  # which are text when they are read, and say the same
    assert pickle.loads(pickle.dumps(schema)) == copy.deepcopy(schema) == schema


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ({"age": np.int64(17)}, {"age": 17}),
        ({"age": [np.int64(17), np.float32(18)]}, {"age": (17, 18)}),
        ({"age": {"low": np.int64(80), "high": np.float64(85)}}, {"age": {"low": 80, "high": 85}}),
        ({"age": {"low": None, "high": 17}}, {"age": {"high": 17}}),
        ({"rooms": {"low": None, "high": np.int8(2)}}, {"rooms": {"high": 2}}),
        ({"rooms": {"low": 2, "high": None}}, {"rooms": {"low": 2}}),
        ({"married": np.str_("no")}, {"married": "no"}),
        ({"start": {"low": np.datetime64("2018-01-01", "ns")}}, {"start": {"low": datetime(2018, 1, 1)}}),
        ({"trip": np.timedelta64(60 * 10**9, "ns")}, {"trip": timedelta(minutes=1)}),
    ],
)
def test_a_condition_says_the_same_in_types_of_numpy_and_with_an_open_end(said, plain):
    columns = COLUMNS | {"rooms": Categorical([1, 2, 3])}
    schema = Schema(columns, constraints=[Forbidden(said)])
    assert schema == Schema(columns, constraints=[Forbidden(plain)])
    assert from_plain(json.loads(json.dumps(to_plain(schema)))).constraints
    assert all(type(value).__module__ != "numpy" for value in schema.constraints[0].when.values())


@pytest.mark.parametrize(
    ("constraints", "complaint"),
    [
        ([Forbidden({"town": "Oslo"})], "constraint 1: the schema has no column 'town'"),
        ([Forbidden({"cty": "Oslo"})], r"the schema has no column 'cty'; did you mean 'city'\?"),
        ([Forbidden({"city": "Cork"})], "constraint 1: column 'city': 'Cork' is not one of its values"),
        ([Increasing(["start", "age"])], "all numerical, or all dates"),
        ([Increasing(["city", "married"])], "all numerical, or all dates"),
        ([Allowed(["age"], [[5]])], "'age': 5 lies outside its bounds"),
        ([Total("loss", ["gross", "tax"])], "by its parts 'loss' goes from 0.0 to 700.0"),
        ([Total("city", ["gross"])], "'city' is not numerical"),
        ([Determined("country", "city", {"Oslo": "Norway"})], "the mapping has no 'country' for 'city'"),
        ([Total("net", {"gross": 1}), Total("net", {"tax": 1})], "'net' is computed by two constraints"),
        ([MissingWhen("age", {"married": "no"})], "'age' has nullable=False and so cannot be missing"),
        ([Total("net", {"roof": 0.5}), Total("roof", {"net": 0.001})], "in a circle"),
        ([Forbidden({"age": {"low": 0}})], "no row can keep constraint 1 on age: correct"),
        (
            [Allowed(["city", "married"], PAIRS[:1]), Forbidden({"married": ["yes"]})],
            "constraints 1, 2 on city, married: correct or delete one of them",
        ),
        ("increasing", "constraints are a list"),
        ([3], "constraint 1: 3 is not a constraint"),
    ],
)
def test_contradictions_are_found_before_a_row_is_read(constraints, complaint):
    columns = COLUMNS | {
        "city": Categorical(list(COUNTRY), nullable=False),
        "loss": Numerical(-99, -1, decimals=2),
    }
    if "country" in str(complaint):
        columns["country"] = Categorical(["Norway", "Italy", "France"], nullable=False)
    with refuses(complaint):
        plan(schema=Schema(columns, constraints=constraints))


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Forbidden({}), "when: give a mapping"),
        (lambda: Forbidden({"a": {"above": 1}}), "a range has low, high or both"),
        (lambda: Forbidden({"a": {"low": None}}), "a range has low, high or both"),
        (lambda: Allowed("ab", []), "a list of column names"),
        (lambda: Allowed(["a", "a"], [[1, 2]]), "different column names"),
        (lambda: Allowed(["a", "b"], [[1]]), "in each row a value"),
        (lambda: Allowed(["a"], [[None]]), "do not list missing values"),
        (lambda: Allowed(["a"], 3), "a list of lists"),
        (lambda: Allowed(["a"], [[[1]]]), "single values"),
        (lambda: Determined("b", "a", [[1, 2], [1, 3]]), "gives one key two values"),
        (lambda: Increasing(["a"]), "at least two"),
        (lambda: Total("a", {"b": "much"}), "the factor of part"),
        (lambda: Allowed(["a", "b"], pd.DataFrame({"a": [1]})), "need the columns a, b"),
    ],
)
def test_what_cannot_be_a_constraint_is_refused(make, complaint):
    with pytest.raises(InputError, match=complaint):
        make()


def test_a_type_that_holds_no_missing_cell_is_not_computed_from_one_that_may_lack():
    schema = Schema(
        {"city": Categorical(["a", "b"]), "code": Numerical(1, 2)},
        constraints=[Determined("code", "city", {"a": 1, "b": 2})],
    )
    with pytest.raises(InputError, match="say nullable=False of 'city'"):
        PrivSyn(1.0, 1e-9, schema).fit(pd.DataFrame({"city": ["a"], "code": [1]}))


@pytest.mark.parametrize("method", ["default", "published"])
def test_parts_of_a_date_are_of_the_calendar(method):
    days = pd.DataFrame({"day": pd.date_range("2015-07-01", "2017-08-31")})
    days["year"], days["month"] = days.day.dt.year, days.day.dt.month_name()
    days["of_month"], days["week"] = days.day.dt.day, days.day.dt.isocalendar().week.astype(int)
    parts = ["year", "month", "of_month", "week"]
    real = days[parts].sample(3000, replace=True, random_state=0, ignore_index=True)
    schema = Schema(
        {
            "year": Categorical([2015, 2016, 2017], nullable=False),
            "month": Categorical(list(dict.fromkeys(days.month)), nullable=False),
            "of_month": Numerical(1, 31, nullable=False),
            "week": Numerical(1, 53, nullable=False),
        },
        constraints=[Determined("week", parts[:3], days[parts])],
    )
    sample = PrivSyn(1.0, 1e-9, schema, seed=1, method=method).fit(real).sample(5000, seed=1)
    assert len(sample.merge(days[parts], on=parts)) == 5000


@pytest.mark.slow
@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("rows", [0, 1, 1000])
def test_what_is_fitted_under_constraints_can_be_loaded(rows, kept, tmp_path):
    """Public zeros once cost tables up to a thousandth of their total, which no reader accepted."""
    values = {"a": "xyz", "b": "uv", "e": "klm"}
    columns = {name: Categorical(list(listed), nullable=False) for name, listed in values.items()}
    schema = Schema(columns, constraints=[Allowed(["a", "e"], [["x", "k"], ["y", "l"]])])
    rng = np.random.default_rng(0)
    a = rng.choice(["x", "y"], rows) if kept else np.full(rows, "z")
    table = pd.DataFrame({"a": a, "b": rng.choice(["u", "v"], rows), "e": np.where(a == "x", "k", "l")})
    for seed in range(4):
        model = PrivSyn(0.1, 1e-9, schema, seed=seed).fit(table.astype(object))
        model.save(tmp_path / "m.privsyn")
        assert len(load(tmp_path / "m.privsyn").sample(9)) == 9
        fitted = model.release_.fitted
        assert all(
            t.total == pytest.approx(fitted.total, rel=1e-8) for t in (*fitted.one_ways, *fitted.marginals)
        )


def distances(
    tmp_path, text="origin,dest,distance,note\nOslo,Rome,2008.5,x\nRome,Oslo,2008.5,y\nOslo,Bergen,305,z\n"
):
    (tmp_path / "distances.csv").write_text(text)
    return str(tmp_path / "distances.csv")


TRIPS = {
    "origin": Categorical(["Oslo", "Rome"], nullable=False),
    "dest": Categorical(["Oslo", "Rome", "Bergen"], nullable=False),
    "distance": Numerical(0, 3000, decimals=1, nullable=False),
}


def test_a_column_of_a_public_table_is_never_asked_and_follows_in_every_row(tmp_path):
    path = distances(tmp_path)
    written = to_plain(Schema(TRIPS)) | {
        "constraints": [{"lookup": path, "by": ["origin", "dest"], "gives": "distance"}]
    }
    schema = from_plain(written)
    assert schema == Schema(TRIPS, constraints=[Lookup(path, by=["origin", "dest"], gives="distance")])
    frame = pd.read_csv(path)
    assert schema == Schema(TRIPS, constraints=[Lookup(frame, ["origin", "dest"], ["distance"])])
    assert from_plain(to_plain(schema)) == schema
    rng = np.random.default_rng(0)
    known = frame.iloc[rng.integers(0, 3, 3000)][["origin", "dest", "distance"]].reset_index(drop=True)
    known.loc[:200, "dest"] = "Rome"  # pairs without an entry break the constraint
    model = PrivSyn(2.0, 1e-9, schema, seed=1).fit(known)
    assert model.release_.codec.domain.names == ("origin", "dest")
    made = model.sample(2000, seed=1).merge(frame, on=["origin", "dest"], how="left")
    assert (made.distance_x == made.distance_y).all()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("origin,dest\nOslo,Rome\n", "has no column 'distance'"),
        ("origin,dest,distance\nOslo,Rome,far\n", "'far' in column 'distance' of the table is no number"),
        ("origin,dest,distance\nOslo,Rome\n", "more or fewer cells than its header"),
        ("origin,dest,distance\nOslo,Rome,\n", "do not list missing values"),
        ("origin,dest,distance\nOslo,Rome,1\nOslo,Rome,2\n", "gives one key two values of 'distance'"),
        ("origin,dest,distance\nOslo,Paris,1\n", "'Paris'"),
        ("origin,dest,distance\n", "at least one row"),
    ],
)
def test_a_public_table_that_fits_no_column_is_refused_in_one_line(tmp_path, text, complaint):
    with pytest.raises(InputError, match=complaint):
        plan(
            schema=Schema(
                TRIPS, constraints=[Lookup(distances(tmp_path, text), ["origin", "dest"], "distance")]
            )
        )


def test_a_public_table_is_found_beside_its_schema_and_is_not_the_private_one(tmp_path, capsys):
    distances(tmp_path)
    (path,) = tmp_path.glob("*.csv")
    rule = {"lookup": path.name, "by": ["origin", "dest"], "gives": "distance"}
    schema = tmp_path / "schema.yaml"
    schema.write_text(to_yaml(Schema(TRIPS)) + f"constraints:\n  - {json.dumps(rule)}\n")
    assert read_schema(schema).constraints[0].column == "distance"
    done = run(capsys, "synth", path, tmp_path / "out.csv", "--schema", schema, "--epsilon", "1")
    assert done.code == 2
    assert "the private table: give a public one" in done.err


def test_a_public_table_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        Schema(TRIPS, constraints=[Lookup(str(tmp_path / "none.csv"), ["origin"], ["distance"])])
    with pytest.raises(InputError, match="give the path of a CSV file, or a data frame"):
        Schema(TRIPS, constraints=[Lookup(3, ["origin"], ["distance"])])


def test_a_number_of_days_between_two_dates_is_never_asked_and_follows_in_every_row():
    rng = np.random.default_rng(0)
    booked = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 2000), "D")
    table = pd.DataFrame({"booked": booked, "seen": booked + pd.to_timedelta(rng.integers(0, 40, 2000), "D")})
    table["days"] = (table.seen - table.booked).dt.days
    dates = {name: Datetime("2024-01-01", "2024-12-31", nullable=False) for name in ("booked", "seen")}
    schema = Schema(
        {**dates, "days": Numerical(integer=True, nullable=False)},
        constraints=["booked <= seen", "days == seen - booked"],
    )
    assert (schema.columns["days"].low, schema.columns["days"].high) == (-365, 365)
    model = PrivSyn(2.0, 1e-9, schema, seed=1).fit(table)
    assert model.release_.codec.domain.names == ("booked", "seen - booked")
    made = model.sample(2000, seed=1)
    assert (made.days == (made.seen - made.booked).dt.days).all()
    assert made.days.between(0, 365).all()


@pytest.mark.parametrize("end", [Datetime(), Datetime("2024-01-01", "2026-12-31")])
@pytest.mark.parametrize("also", [[], ["booked < seen"], ["seen is missing iff state == 'open'"]])
def test_a_date_follows_from_another_and_from_days_that_have_bounds(tmp_path, end, also):
    """Days are counted as a column of their own: dates that noise sets far apart would make long ones."""
    rng = np.random.default_rng(0)
    booked = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 2000), "D")
    state = rng.choice(["open", "done", "done"], 2000)
    days = pd.Series(1 + rng.poisson(2, 2000).clip(0, 12), dtype="Int64").mask(state == "open")
    table = pd.DataFrame({"booked": booked, "seen": booked + pd.to_timedelta(days, "D"), "days": days})
    columns = {"booked": Datetime("2024-01-01", "2024-12-31"), "seen": end}
    columns |= {"days": Numerical(1, 14, integer=True), "state": Categorical(["done", "open"])}
    schema = Schema(columns, constraints=["seen == booked + days", *also])
    model = PrivSyn(1.0, 1e-9, schema, seed=1).fit(table.assign(state=state))
    assert "seen" not in model.release_.codec.domain.names
    model.save(tmp_path / "model")
    made = load(tmp_path / "model").sample(2000, seed=1)
    given = made["seen"].notna()
    assert given.mean() > 0.5
    assert (given == made["days"].notna()).all()
    assert (made["seen"] == made["booked"] + pd.to_timedelta(made["days"], "D"))[given].all()
    assert made["seen"].dtype == table["seen"].dtype
    assert abs(float(made["days"].mean()) - float(days.mean())) < 0.3
    found = model.accuracy_.mean("seen", "state == 'done'")
    assert abs(found["estimate"] - table["seen"].mean()) < pd.Timedelta("30D")


@pytest.mark.parametrize(
    ("expression", "complaint"),
    [
        ("days == seen + booked", "subtract each from another, as in days == end - start"),
        ("seen == 2 * booked + days", "dates cannot be added or multiplied"),
        ("days == seen - at", "'at' has times of day: say the unit, such as days == hours"),
        ("seen == booked + 2 * days", "leave out the bounds of 'seen', or give those of all its parts"),
        ("late == seen - booked", "or leave them out; seen == booked \\+ late keeps them"),
        (
            "early == booked + stay",
            "'early' goes from 2024-01-02 to 2025-01-14, beyond its bounds: widen them",
        ),
        ("at == booked + stay", "'at' has times of day"),
        ("unknown == booked + stay", "the schema has no column 'unknown'"),
        ("open == found + long", "'open': give bounds of the other date, or shorter ones of the days"),
        ("open == booked + endless", "by its parts 'open' leaves the years 1 to 9999"),
        ("days == hours(seen - number)", "'number' is no date"),
        ("seen == years(seen - booked)", "give different column names"),
        ("at == years(seen - booked)", "'at' is neither numerical nor a duration"),
    ],
)
def test_dates_that_make_no_number_of_days_are_refused(expression, complaint):
    dates = {name: Datetime("2024-01-01", "2024-12-31") for name in ("booked", "seen")}
    columns = {**dates, "at": Datetime("2024-01-01", "2024-12-31", unit="s"), "days": Numerical(integer=True)}
    columns |= {"number": Numerical(0, 9), "stay": Numerical(1, 14, integer=True)}
    columns |= {"open": Datetime(), "found": Datetime(), "long": Numerical(0, 99_999, integer=True)}
    columns["endless"] = Numerical(0, 9_999_999, integer=True)
    columns |= {"late": Numerical(999, 1999, integer=True), "early": Datetime("2020-01-01", "2020-12-31")}
    with pytest.raises(InputError, match=complaint):
        Schema(columns, constraints=[expression])


@pytest.mark.parametrize(
    "said",
    [
        "seen == booked + days",
        "booked == seen - days",
        Total("seen", ["booked", "days"]),
        {"kind": "total", "column": "seen", "of": ["booked", "days"]},
    ],
)
def test_a_date_plus_days_is_the_difference_of_the_dates(said):
    dates = {name: Datetime("2024-01-01", "2024-12-31", nullable=False) for name in ("booked", "seen")}
    columns = {**dates, "days": Numerical(integer=True, nullable=False)}
    said = constraint_from_plain(1, said) if isinstance(said, dict) else said
    assert Schema(columns, constraints=[said]) == Schema(columns, constraints=["days == seen - booked"])


def birthday(born, seen):
    """The years that a person counts, one birthday at a time."""
    years = -1
    while True:
        try:
            day = born.replace(year=born.year + years + 1)
        except ValueError:
            day = date(born.year + years + 1, 3, 1)
        if day > seen:
            return years
        years += 1


@given(st.dates(date(1900, 1, 1), date(2010, 12, 31)), st.integers(0, 40_000))
@example(date(2000, 2, 29), 365)
@example(date(2000, 2, 29), 366)
@example(date(2000, 2, 29), 1461)
def test_years_are_completed_on_the_birthday(born, days):
    seen = born + timedelta(days)
    columns = {name: Datetime("1900-01-01", "2130-12-31") for name in ("born", "seen")} | {
        "age": Numerical(integer=True)
    }
    schema = Schema(columns, constraints=["age == years(seen - born)"])
    numbers = {
        name: np.array([(day - date(1970, 1, 1)).days, np.nan])
        for name, day in (("born", born), ("seen", seen))
    }
    found = schema.constraints[0].computation(schema.columns).make(numbers)
    assert found[0] == birthday(born, seen)
    assert np.isnan(found[1])


def trips(n=2000):
    rng = np.random.default_rng(0)
    pickup = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300 * 86400, n), "s")
    return pd.DataFrame(
        {"pickup": pickup, "dropoff": pickup + pd.to_timedelta(rng.gamma(2, 600, n).round(), "s")}
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "column", "of"),
    [
        ("days(dropoff - pickup)", Numerical(integer=True), lambda gap: gap // pd.Timedelta("1D")),
        ("hours(dropoff - pickup)", Numerical(decimals=2), lambda gap: (gap / pd.Timedelta("1h")).round(2)),
        ("minutes(dropoff - pickup)", Numerical(integer=True), lambda gap: gap // pd.Timedelta("1min")),
        ("minutes(dropoff - pickup)", Numerical(), lambda gap: gap / pd.Timedelta("1min")),
        ("seconds(dropoff - pickup)", Numerical(), lambda gap: gap / pd.Timedelta("1s")),
        ("dropoff - pickup", Duration(unit="s"), lambda gap: gap),
        ("dropoff - pickup", Duration(unit="m"), lambda gap: gap.dt.floor("min")),
        (Elapsed("wait", "pickup", "dropoff", unit="minutes"), Numerical(integer=True), None),
        (
            {"elapsed": "wait", "start": "pickup", "end": "dropoff", "unit": "minutes"},
            Numerical(integer=True),
            None,
        ),
    ],
)
def test_the_time_between_two_dates_follows_in_every_row_and_is_never_asked(said, column, of):
    table = trips()
    of = of or (lambda gap: gap // pd.Timedelta("1min"))
    table["wait"] = of(table.dropoff - table.pickup)
    said = f"wait == {said}" if isinstance(said, str) else said
    said = constraint_from_plain(2, said) if isinstance(said, dict) else said
    ends = {
        name: Datetime("2024-01-01 00:00", "2024-12-31 23:59:59", nullable=False)
        for name in ("pickup", "dropoff")
    }
    schema = Schema(
        {**ends, "wait": replace(column, nullable=False)}, constraints=["pickup <= dropoff", said]
    )
    assert from_plain(to_plain(schema)) == schema
    assert "every row keeps every constraint" in check_schema(table, schema)
    wrong = table.assign(wait=table.wait + (pd.Timedelta("2D") if isinstance(column, Duration) else 2))
    assert "2,000 of 2,000 rows break it" in check_schema(wrong, schema)[-1]
    model = PrivSyn(2.0, 1e-9, schema, seed=1).fit(table)
    assert not any("wait" in name for name in model.release_.codec.domain.names)
    made = model.sample(2000, seed=1)
    assert made["wait"].dtype == table["wait"].dtype
    gap = of(made.dropoff - made.pickup)
    assert (
        (gap == made.wait).all() if isinstance(column, Duration) else np.allclose(gap, made.wait, atol=1e-6)
    )


def test_bounds_of_a_time_follow_from_the_dates_or_are_refused():
    dates = {"born": Datetime("1920-01-01", "2020-12-31"), "seen": Datetime("2021-01-01", "2021-06-30")}
    expression = "age == years(seen - born)"
    schema = Schema({**dates, "age": Numerical(integer=True)}, constraints=[expression])
    assert (schema.columns["age"].low, schema.columns["age"].high) == (0, 101)
    with pytest.raises(InputError, match="by its dates 'age' goes from 0 to 101"):
        Schema({**dates, "age": Numerical(0, 99, integer=True)}, constraints=[expression])
    with pytest.raises(InputError, match="leave out the bounds of 'age'"):
        Schema({**dates, "born": Datetime(), "age": Numerical(0, 99)}, constraints=[expression])
    found = Schema({"born": Datetime(), "seen": Datetime(), "age": Numerical()}, constraints=[expression])
    assert not found.columns["age"].is_public


@pytest.mark.slow
def test_sums_of_three_and_more_are_the_sum_in_every_row_and_close_to_the_free_run():
    """Total variation of the total in tenths: at most .05 above that of the free run, at epsilon 5."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {name: rng.gamma(2, size, 5000).round(1).clip(0, 500) for name, size in PARTS.items()}
    )
    table["total"] = (table.a + table.b + table.c - table.d).round(1)
    columns = {name: Numerical(0, 500, decimals=1, nullable=False) for name in PARTS}
    made = {
        constraints: PrivSyn(
            5.0,
            1e-9,
            Schema({**columns, "total": Numerical(-500, 1500, decimals=1)}, constraints=constraints),
            seed=1,
        )
        .fit(table)
        .sample(5000, seed=1)
        for constraints in ((), ("total == a + b + c - d",))
    }
    edges = np.quantile(table.total, np.arange(0.1, 1, 0.1))

    def shares(frame):
        return np.bincount(np.searchsorted(edges, frame.total), minlength=10) / len(frame)

    free, summed = (np.abs(shares(frame) - shares(table)).sum() / 2 for frame in made.values())
    assert summed <= free + 0.05
    rows = made["total == a + b + c - d",]
    assert np.allclose(rows.total, rows.a + rows.b + rows.c - rows.d, atol=1e-6)


PARTS = {"a": 20, "b": 40, "c": 10, "d": 5}


def test_numbers_of_a_row_are_exchanged_only_if_both_columns_can_hold_them():
    """A real number in a column of whole numbers was rounded later, to the number above it."""
    grids = {
        "low": Grid.exact(0, 9, decimals=0, bins=1),
        "high": Grid.real(0.0, 9.0, bins=1, dtype=np.dtype(np.float64)),
    }
    cells = {name: Cells.unmerged(*grid.extents, grid) for name, grid in grids.items()}
    numbers = {"low": np.array([9.0, 4.0]), "high": np.array([8.6, 2.0])}
    drawn = DrawnRows(numbers, dict.fromkeys(cells, np.zeros(2, int)), cells)
    rule = IncreasingRule({"low": 1.0, "high": 1.0}, strict=True)
    rule.repair(drawn, np.arange(2), np.random.default_rng(0))
    assert rule.holds(numbers).all()
    assert (numbers["low"] == np.rint(numbers["low"])).all()
    assert [column[1] for column in numbers.values()] == [2.0, 4.0]


@pytest.mark.parametrize("persons", [{}, {"unit": "who", "identifiers": True}])
def test_cells_that_are_missing_together_have_one_share(persons):
    """Noise gave them two, one row or two apart; persons with several rows even more."""
    rng = np.random.default_rng(0)
    numbers = rng.integers(1, 5, 500)
    table = pd.DataFrame({"who": np.repeat(np.arange(500), numbers)})
    absent = rng.random(len(table)) < np.repeat(numbers, numbers) / 8
    table["weight"] = np.where(absent, np.nan, rng.integers(50, 100, len(table)))
    table["height"] = np.where(absent, np.nan, rng.integers(150, 200, len(table)))
    schema = Schema(
        {"weight": Numerical(50, 100, integer=True), "height": Numerical(150, 200, integer=True)},
        constraints=["weight is missing iff height is missing"],
    )
    rows = table if persons else table.drop(columns="who")
    release = PrivSyn(1.0, 1e-9, schema, seed=0, **persons).fit(rows).release_
    weight, height = (release.ask(f"number of {name} is missing") for name in ("weight", "height"))
    assert weight.estimate == pytest.approx(height.estimate, rel=1e-9)
    assert all(answer.low <= answer.estimate <= answer.high for answer in (weight, height))
