"""Rules across tables hold in every synthetic row, whatever the private rows are, and cost nothing."""

from __future__ import annotations

import operator
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from test_random_databases import FORMS

from privsyn import (
    Categorical,
    Database,
    Datetime,
    Increasing,
    InputError,
    MissingWhen,
    Numerical,
    PrivSyn,
    Schema,
    Table,
    load,
)
from privsyn.table.database.opened import open_tables
from privsyn.table.database.yaml_form import database_from_plain, database_to_plain

SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


DAY = pd.Timestamp("2020-01-01")


# --- columns that follow from other tables ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("form", [*FORMS])
@pytest.mark.parametrize("dtype", ["int8", "Int64", "boolean", "float64"])
def test_a_sum_is_true_in_a_table_whose_type_cannot_hold_it(dtype, form):
    rng = np.random.default_rng(0)
    cost = Schema({"cost": Numerical(0, 90, decimals=2)})
    tables = {"a": pd.DataFrame({"key": range(40), "x": pd.Series([1] * 40).astype(dtype)})}
    tables["b"] = pd.DataFrame({"of": rng.integers(0, 40, 200), "cost": rng.random(200).round(2) * 90})
    database = Database(
        {"a": Table(key="key", constraints=["x == sum(b.cost)"]), "b": Table(cost, parent="a", link="of")}
    )
    model = PrivSyn(9.0, 1e-6, database, seed=3).fit({name: FORMS[form](of) for name, of in tables.items()})
    made = {name: of if form == "pandas" else of.to_pandas() for name, of in model.sample(seed=5).items()}
    sums = made["b"].groupby("of")["cost"].sum().reindex(made["a"]["key"], fill_value=0.0)
    np.testing.assert_allclose(made["a"]["x"].to_numpy(float), sums, atol=1e-9)


@pytest.mark.slow
def test_sums_and_numbers_are_true_at_each_level_in_samples_of_any_size(tmp_path):
    rng = np.random.default_rng(0)
    homes = pd.DataFrame({"home": range(200), "people": 0})
    people = pd.DataFrame({"home": rng.integers(0, 200, 400), "person": range(400), "paid": 0.0, "bills": 0})
    bills = pd.DataFrame({"person": rng.integers(0, 400, 900), "bill": range(900), "late": 0})
    bills["price"] = pd.Series(rng.integers(0, 9999, 900) / 100).mask(rng.random(900) < 0.2)
    steps = pd.DataFrame({"bill": rng.integers(0, 900, 900), "days": rng.integers(-5, 6, 900)})
    number, days = Numerical(0, 99, integer=True), Numerical(-5, 5, integer=True)
    database = Database({
        "homes": Table(Schema({"people": number}), key="home", constraints=["people == count(people)"]),
        "people": Table(
            Schema({"paid": Numerical(decimals=2), "bills": number}), key="person", parent="homes",
            link="home", constraints=["paid == sum(bills.price)", "bills == count(bills)"],
        ),
        "bills": Table(
            Schema({"price": Numerical(0, 100, decimals=2), "late": days}), key="bill", parent="people",
            link="person", constraints=["late == sum(steps.days)"],
        ),
        "steps": Table(Schema({"days": days}), parent="bills", link="bill"),
    })  # fmt: skip
    tables = {"homes": homes, "people": people, "bills": bills, "steps": steps}
    model = PrivSyn(9.0, 1e-6, database, seed=0).fit(tables)
    model.save(tmp_path / "model")
    samples = [model.sample(seed=1), *(load(tmp_path / "model").sample(n, seed=n) for n in (1, 2, 30))]
    for made in samples:
        for parent, column, child, summed in (
            ("homes", "people", "people", None), ("people", "bills", "bills", None),
            ("people", "paid", "bills", "price"), ("bills", "late", "steps", "days"),
        ):  # fmt: skip
            key = database.tables[parent].key
            groups = made[child].groupby(key)
            sums = groups.size() if summed is None else groups[summed].sum()  # of no row, and of no cell, 0
            sums = sums.reindex(made[parent][key], fill_value=0).to_numpy(float)
            np.testing.assert_allclose(made[parent][column].to_numpy(float), sums, atol=1e-9)
            assert made[parent][column].dtype == tables[parent][column].dtype
    assert samples[0]["bills"]["price"].isna().any()


# --- what a rule costs, and which are refused ---------------------------------------------------------------

ROOT = Table(Schema({"x": Numerical(0, 9, integer=True)}), key="key")
CHILD = Table(
    Schema({"x": Numerical(0, 9, integer=True), "y": Numerical(0, 9, integer=True)}), parent="a", link="key"
)


def two_tables(**rules):
    return Database({"a": ROOT, "b": replace(CHILD, **rules)})


def between(low, high, above=(), *, most=9, nullable=True):
    """Two columns above, with constraints on them, and a column of their rows between both."""
    root = Schema({name: Numerical(0, most, integer=True) for name in ("first", "last")}, constraints=above)
    rules = [f"x {low} a.first", f"x {high} a.last"]
    own = Schema({"x": Numerical(-1, most + 1, integer=True, nullable=nullable)})
    child = Table(own, parent="a", link="key", constraints=rules)
    return Database({"a": Table(root, key="key"), "b": child})


@pytest.mark.parametrize("ends", [("<=", (">=", "<=")), ("<", (">", "<=")), ("<", (">=", "<"))])
def test_a_column_lies_between_two_of_a_row_above_that_are_in_order(ends):
    sign, (low, high) = ends
    assert len(between(low, high, [f"first {sign} last"]).tables["b"].compared) == 2


TIMES = ("2020-01-01 00:00", "2022-12-31 00:00:00")
BETWEEN = {
    "numbers": (
        lambda rng: rng.integers(0, 1900, 900), lambda rng: rng.integers(1, 9, 900), lambda first: first + 1,
        Numerical(0, 1999, integer=True), Numerical(-1, 2000, integer=True),
    ),
    "equal reals": (
        lambda rng: rng.integers(0, 3, 900) / 3, lambda rng: 0.0, lambda first: first,
        Numerical(0.0, 1.0), Numerical(-0.7, 1.3),
    ),
    "a midnight between times": (
        lambda rng: DAY + pd.to_timedelta(rng.integers(0, 700 * 24, 900), "h"),
        lambda rng: pd.to_timedelta(rng.integers(30, 80, 900), "h"), lambda first: first.ceil("D"),
        Datetime(*TIMES, unit="s", nullable=False), Datetime("2019-12-31", "2023-01-01"),
    ),
    "no midnight between times": (
        lambda rng: DAY + pd.to_timedelta(24 * rng.integers(0, 700, 900) + rng.integers(1, 22, 900), "h"),
        lambda rng: pd.Timedelta(1, "h"), lambda first: first.floor("D"),
        Datetime(*TIMES, unit="s", nullable=False), Datetime("2019-12-31", "2023-01-01"),
    ),
}  # fmt: skip
"""The first of two columns above, how far the last is from it, cells of their rows, and the kinds of both."""


@pytest.mark.parametrize(
    ("case", "sign", "low", "high", "nullable"),
    [
        ("numbers", "<=", ">=", "<=", True),
        ("numbers", "<", ">", "<=", False),
        ("numbers", "<", ">=", "<", True),
        *((case, "<=", ">=", "<=", flag) for case in BETWEEN if case != "numbers" for flag in (True, False)),
        *(
            pytest.param("numbers", *signs, marks=pytest.mark.slow)
            for signs in (("<=", ">=", "<=", False), ("<", ">", "<=", True), ("<", ">=", "<", False))
        ),
    ],
)
def test_a_cell_lies_between_two_of_the_row_above(case, sign, low, high, nullable, tmp_path):
    """A model was not saved after the budget was spent; rows missed their cell, or `sample` failed."""
    first, wide, cells, kind, own = BETWEEN[case]
    rng = np.random.default_rng(0)
    above = pd.DataFrame({"key": range(900), "first": first(rng)})
    above["last"] = above["first"] + wide(rng)
    rows = pd.DataFrame({"key": range(900), "x": cells(pd.Index(above["first"]))})
    root = Schema(dict.fromkeys(("first", "last"), kind), constraints=[f"first {sign} last"])
    rules = [f"x {low} a.first", f"x {high} a.last"]
    child = Table(Schema({"x": replace(own, nullable=nullable)}), parent="a", link="key", constraints=rules)
    model = PrivSyn(3.0, 1e-6, Database({"a": Table(root, key="key"), "b": child}), seed=0)
    model.fit({"a": above, "b": rows}).save(tmp_path / "m.privsyn")
    release = load(tmp_path / "m.privsyn")
    assert pickle.loads(pickle.dumps(release.database)).bare
    made = release.sample(seed=1)
    found = made["b"].merge(made["a"], on="key")
    if case == "no midnight between times":
        assert bool(found["x"].isna().any()) is nullable
        near, there = pd.Timedelta(1, "D"), found.dropna()
        assert ((there["x"] > there["first"] - near) & (there["x"] < there["last"] + near)).all()
    else:
        assert found["x"].notna().all() or "midnight" in case
        kept = SIGNS[low](found["x"], found["first"]) & SIGNS[high](found["x"], found["last"])
        assert kept[found["first"].dt.ceil("D") <= found["last"] if "midnight" in case else kept.index].all()


@pytest.mark.slow
@pytest.mark.parametrize("nullable", [False, True])
def test_a_compared_column_of_an_order_is_counted_and_the_others_are_measured_from_it(tmp_path, nullable):
    """`asked <= x` made `x` a gap, so that `x >= a.x` was refused; `left == x + days` is a sum."""
    rng = np.random.default_rng(0)
    above = pd.DataFrame({"key": range(1500), "x": DAY + pd.to_timedelta(rng.integers(0, 300, 1500), "D")})
    rows = pd.DataFrame({"key": np.repeat(range(1500), 2), "days": rng.integers(0, 9, 3000)})
    rows["x"] = above["x"].to_numpy()[rows["key"]] + pd.to_timedelta(rng.integers(0, 60, 3000), "D")
    rows["asked"] = rows["x"] - pd.to_timedelta(rng.integers(0, 30, 3000), "D")
    rows["left"] = rows["x"] + pd.to_timedelta(rows["days"], "D")
    date = Datetime("2019-01-01", "2021-12-31", nullable=nullable)
    columns = {"x": date, "asked": date, "left": replace(date, high="2022-01-08")}
    columns["days"] = Numerical(0, 8, integer=True, nullable=False)
    schema = Schema(columns, constraints=["asked <= x", "left == x + days"])
    root = Table(Schema({"x": Datetime("2020-01-01", "2020-12-31", nullable=False)}), key="key")
    child = Table(schema, parent="a", link="key", constraints=["x >= a.x"])
    model = PrivSyn(3.0, 1e-6, Database({"a": root, "b": child}), seed=0).fit({"a": above, "b": rows})
    model.save(tmp_path / "m.privsyn")
    release = load(tmp_path / "m.privsyn")
    assert "x" in release.tables["b"].codec.domain.names
    made, again = (each.sample(seed=1) for each in (release, model))
    pd.testing.assert_frame_equal(made["b"], again["b"])
    found = made["b"].merge(made["a"], on="key", suffixes=("", "_above"))
    assert not found.isna().any(axis=None)
    assert (found["x"] >= found["x_above"]).all()
    assert (found["asked"] <= found["x"]).all()


@pytest.mark.parametrize(
    ("total", "sign", "ordered"),
    [
        ("last == first + n", ">=", True),  # n is at least 0
        ("first == last - n", ">=", True),
        ("last == first + n + m", ">=", False),  # m may be below 0
        ("last == first + n + n0", ">=", True),
        ("last == 2 * first + n", ">=", False),
        ("last == first + n", ">", False),
        ("last == first + n1", ">", True),  # something is added in every row
    ],
)
def test_a_sum_orders_a_column_and_its_total_if_the_other_parts_are_not_below_zero(total, sign, ordered):
    columns = {name: Numerical(0, 9, integer=True) for name in ("first", "last", "n", "n0")}
    columns |= {"m": Numerical(-1, 9, integer=True), "n1": Numerical(1, 9, integer=True)}
    columns[total.split()[0]] = wide = Numerical(-99, 99, integer=True)
    root = Table(Schema(columns, constraints=[total]), key="key")
    rules = [f"x {sign} a.first", "x <= a.last"]
    child = Table(Schema({"x": wide}), parent="a", link="key", constraints=rules)
    if ordered:
        assert len(Database({"a": root, "b": child}).tables["b"].compared) == 2
    else:
        with pytest.raises(InputError, match="may leave a row no value"):
            Database({"a": root, "b": child})


@pytest.mark.parametrize(
    ("low", "high", "above"),
    [
        (">=", "<=", []),
        (">", "<=", ["first <= last"]),
        (">", "<", ["first < last"]),
        (">=", "<=", ["last <= first"]),
    ],
)
def test_between_two_columns_that_leave_no_value_no_column_can_lie(low, high, above):
    """These rules were accepted, and `sample` failed after the budget was spent."""
    advice = (
        "let one of them allow equal values" if (low, high) == (">", "<") else "let a constraint say that"
    )
    with refuses(f"may leave a row no value: {advice}"):
        between(low, high, above)


@pytest.mark.parametrize(
    ("constraints", "bounds"),
    [
        (["x <= y", "y <= z"], {"z": (0, 5)}),
        (["y == x + n", "y <= z"], {"y": (0, 18), "z": (0, 5)}),
        (["x < y"], {"y": (0, 9)}),
    ],
)
def test_bounds_reach_a_row_above_through_several_constraints_and_beyond_where_none_are_equal(
    constraints, bounds
):
    columns = {name: Numerical(0, 9, integer=True) for name in ("x", "n", "y", "z")}
    columns |= {name: Numerical(*ends, integer=True) for name, ends in bounds.items()}
    schema = Schema(columns, constraints=constraints)
    reached = [*bounds][-1]
    with pytest.raises(
        InputError, match=f"no value of '{reached}' can stand: let bounds of '{reached}' reach"
    ):
        two_tables(schema=schema, constraints=["x >= a.x"])


@pytest.mark.slow
@pytest.mark.parametrize("constraints", [["x <= y"], ["x < y", "y <= z"]])
def test_bounds_that_are_found_reach_a_row_above_in_all_columns_beyond(constraints):
    """Only those of the compared column did, and no row below the latest ones above kept the order."""
    rng = np.random.default_rng(0)
    above = pd.DataFrame({"key": range(900), "x": DAY + pd.to_timedelta(rng.integers(0, 300, 900), "D")})
    above.loc[:200, "x"] += pd.Timedelta(2000, "D")
    early = rng.integers(201, 900, 1500)
    rows = pd.DataFrame({"key": early, "x": above["x"].to_numpy()[early] + pd.Timedelta(9, "D")})
    rows["y"] = rows["x"] + pd.Timedelta(3, "D")
    rows["z"] = rows["y"] + pd.to_timedelta(rng.integers(0, 9, 1500), "D")
    dates = Schema({name: Datetime(nullable=False) for name in ("x", "y", "z")}, constraints=constraints)
    child = Table(dates, parent="a", link="key", constraints=["x >= a.x"])
    root = Table(Schema({"x": Datetime(nullable=False)}), key="key")
    made = PrivSyn(5.0, 1e-6, Database({"a": root, "b": child}), seed=0).fit({"a": above, "b": rows})
    highs = [made.release_.tables["b"].codec.schema.columns[name].high for name in ("x", "y")]
    assert min(highs) > pd.Timestamp("2025-01-01")
    sample = made.sample(seed=0)
    found = sample["b"].merge(sample["a"], on="key", suffixes=("", "_above"))
    assert ((found["x_above"] <= found["x"]) & (found["x"] <= found["y"])).all()


def test_who_has_rows_has_what_is_the_same_in_all_of_them():
    """Parents without rows lack it, and no other. If each parent has rows, none lacks it."""
    word = Schema({"word": Categorical(["p", "q"], nullable=False), "x": CHILD.schema.columns["x"]})
    tables = {"a": pd.DataFrame({"key": [1, 2], "x": 3})}
    tables["b"] = pd.DataFrame({"key": [2, 2], "word": "q", "x": 1})
    for children, rules, cells in (
        (None, [MissingWhen("b.word", {"count(b)": 0}, only=True)], [None, "q"]),
        ("1..", [], [None, "q"]),
    ):
        child = replace(CHILD, schema=word, constant=["word"], children=children)
        root = open_tables(Database({"a": ROOT, "b": child}), tables, lambda codes: np.arange(len(codes)))[
            "a"
        ]
        assert [*root.schema.constraints] == rules
        assert root.schema.columns["b.word"].nullable is bool(rules)
        of = root.added["b.word"]
        assert of.astype(object).where(of.notna(), None).tolist() == cells


def test_rules_cost_nothing():
    rng = np.random.default_rng(0)
    tables = {"a": pd.DataFrame({"key": range(50), "x": rng.integers(0, 10, 50)})}
    tables["b"] = pd.DataFrame({"key": rng.permutation(50), "x": 9, "y": 3})
    with_rules, without = (
        PrivSyn(5.0, 1e-6, database, seed=1).fit(tables).ledger_
        for database in (two_tables(constraints=["x >= a.x"], children="1.."), two_tables())
    )
    assert with_rules.rho == pytest.approx(without.rho, rel=1e-12)
    assert with_rules.public_inputs == without.public_inputs  # all that the schema says is among them


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        ({"constraints": ["x >= c.x"]}, "table 'b': 'x >= c.x': 'c' is no table above 'b'"),
        ({"constraints": ["x >= a.xx"]}, "table 'b': 'a' has no column 'xx'; did you mean 'x'"),
        ({"constraints": ["z >= a.x"]}, "table 'b': 'b' has no column 'z'"),
        ({"constraints": ["x > a.x"]}, "let bounds of 'x' reach beyond the others"),
        ({"constraints": ["x != a.x"]}, "'x != a.x': it is no comparison of two columns"),
        ({"constraints": ["x == a.z"]}, "table 'b': 'a' has no column 'z'"),
        ({"constraints": ["x == a.x", "y >= x"]}, "'x' follows from another table, as constant, a copy or"),
        ({"constraints": ["x == a.x", "x == a.key"]}, "two rules say from which other table a column"),
        ({"constant": ["x"], "constraints": ["x == a.x"]}, "two rules say from which other table a column"),
        ({"constraints": ["key == a.key"]}, "'key' follows from another table, as constant, a copy or"),
        ({"parent": None, "link": None, "constraints": ["x == a.x"]}, "this table has no parent"),
        ({"constraints": ["x >= a.x + 1"]}, "one side is no column"),
        ({"constraints": ["b.x >= a.x implies y == 3"]}, "it is no comparison of two columns"),
        ({"constraints": "x >= a.x"}, "constraints are a list of text"),
        ({"constraints": [3]}, "a constraint of a table is text"),
        ({"schema": None, "constraints": ["x <= y"]}, "declare the columns that it names in a schema"),
        ({"one": "x"}, "one is a column and a value, as in relation == 'head', not 'x'"),
        ({"one": 3}, "one is a column and a value"),
        ({"one": ["x == 3", "x == 4"]}, "one: a column can have one value"),
        ({"one": "z == 3"}, "table 'b': 'b' has no column 'z'"),
        ({"one": "x == 3"}, "table 'b': one: the schema lists no value 3 of 'x'"),
        ({"one": "first(x) == 3"}, "the rows of the table have no order, so none is the first"),
        (
            {"one": "first(x) == 3", "order": "y", "constraints": ["x <= y"]},
            "one: constraints move rows in the order, so none stays first",
        ),
        ({"parent": None, "link": None, "one": "x == 3"}, "this table has no parent"),
        ({"constant": "x"}, "constant: give a list of column names"),
        ({"constant": ["z"]}, "'z' is no column of the table that is counted"),
        (
            {"constant": ["x"], "constraints": ["x <= y"]},
            "'x' follows from another table, as constant, a copy",
        ),
        (
            {"constant": ["x"], "constraints": ["x >= a.x"]},
            "'x' follows from another table, as constant, a copy",
        ),
        ({"constant": ["key"], "schema": None}, "'key' follows from another table, as constant, a copy"),
        ({"constraints": ["x == sum(c.x)"]}, "table 'b': 'x': 'c' is no table whose parent is 'b'"),
        ({"constraints": ["a.x == count(b)"]}, "table 'b': 'x': 'b' is no table whose parent is 'b'"),
        ({"constraints": ["x == max(c.x)"]}, "a column is computed by sum or count of the rows below"),
        ({"parent": None, "link": None, "constant": ["x"]}, "this table has no parent"),
        ({"children": "many"}, "children is a number or a range such as 1.. or 1..4, not 'many'"),
        ({"children": "4..1"}, "children is a number or a range"),
        ({"children": 0}, "children is a number or a range"),
        ({"parent": None, "link": None, "children": 1}, "this table has no parent"),
        ({"parent": None, "link": None, "constraints": ["x >= a.x"]}, "this table has no parent"),
    ],
)
def test_a_rule_that_cannot_be_is_one_line(rules, complaint):
    with refuses(complaint):
        two_tables(**rules)


@pytest.mark.parametrize(
    ("root", "child", "rule", "complaint"),
    [
        (None, Schema({"x": Categorical(["p"])}), "x >= a.x", "columns that are compared are both numbers"),
        (
            None,
            Schema({"x": Datetime("2020-01-01", "2020-01-09")}),
            "x >= a.x",
            "are both numbers, or both dates",
        ),
        (None, CHILD.schema, "x >= a.x", "'x >= a.x': declare bounds of 'a.x', as 'x' has some"),
        (None, None, "z >= a.x", "'z >= a.x': there is no column 'z'"),
        (
            ROOT.schema,
            Schema(CHILD.schema.columns | {"y": Numerical(0, 18, integer=True)}, constraints=["y == 2 * x"]),
            "y >= a.x",
            "'y >= a.x': 'y' is computed from other columns of the table, or measured from one",
        ),
    ],
)
def test_before_anything_is_asked_columns_that_no_row_can_keep_are_refused(root, child, rule, complaint):
    tables = {"a": pd.DataFrame({"key": [1], "x": [1]}), "b": pd.DataFrame({"key": [1], "x": [1], "y": [2]})}
    tables["b"] = tables["b"][["key", *(child.columns if child else "xy")]]
    if child and not isinstance(child.columns["x"], Numerical):
        tables["b"]["x"] = "p" if child.columns["x"].lists_values else DAY

    def fit():
        ruled = replace(CHILD, schema=child, constraints=[rule])
        PrivSyn(5.0, 1e-6, Database({"a": replace(ROOT, schema=root), "b": ruled}), seed=1).fit(tables)

    with refuses(complaint):
        fit()


def test_a_comparison_with_its_own_table_is_a_rule_of_the_schema():
    own = two_tables(constraints=["b.x <= b.y"]).tables["b"]
    assert (own.constraints, own.schema.constraints) == ((), (Increasing(["x", "y"]),))
    chain = two_tables(constraints=["a.x <= x <= y and `y` >= a.`x`"]).tables["b"]
    assert [*map(str, chain.constraints)] == ["x >= a.x", "y >= a.x"]
    assert chain.schema.constraints == (Increasing(["x", "y"]),)
    with pytest.raises(InputError, match="it names a table: give it to Table"):
        Schema(CHILD.schema.columns, constraints=["x >= a.x"])


def test_rules_are_written_and_read():
    database = two_tables(constraints=["x >= a.x", "x <= y"], children="1..4")
    plain = database_to_plain(database)
    assert plain["tables"]["b"]["children"] == "1..4"
    assert plain["tables"]["b"]["constraints"][0] == "x >= a.x"
    assert database_from_plain(plain) == pickle.loads(pickle.dumps(database)) == database
