"""Random databases come out as they went in: columns, types, keys, orders, and all rules that they declare.

The private rows may break each rule; the synthetic ones keep all of them. `broken_rules` counts; it is tested
by hand in `evaluation/test_integrity.py`.
"""

from __future__ import annotations

import operator
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from same_model import assert_same_model

from privsyn import Categorical, Database, Datetime, Numerical, PrivSyn, Schema, Table, load
from privsyn.evaluation.integrity import broken_rules
from privsyn.evaluation.linked_rows import LinkedRows

SIGNS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
DAY = pd.Timestamp("2020-01-01")
KEYS = {
    "int64": lambda numbers: pd.array(numbers, "int64"),
    "Int64": lambda numbers: pd.array(numbers, "Int64"),
    "str": lambda numbers: pd.array([f"k{number}" for number in numbers], "str"),
    "category": lambda numbers: pd.Categorical([f"k{number}" for number in numbers]),
}
COLUMNS = {
    "word": (Categorical(["a", "b"]), lambda rng, n: rng.choice(["a", "b"], n)),
    "number": (Numerical(0, 9, integer=True), lambda rng, n: rng.integers(0, 10, n)),
    "real": (Numerical(0, 1), lambda rng, n: rng.random(n)),
    "day": (Datetime("2020-01-01", "2020-12-31"),
            lambda rng, n: DAY + pd.to_timedelta(rng.integers(0, 366, n), "D")),
    "yes": (Categorical([False, True]), lambda rng, n: rng.random(n) < 0.5),
    "cost": (Numerical(0, 9, decimals=2), lambda rng, n: np.round(rng.random(n) * 9, 2)),
}  # fmt: skip
COMPARED = {
    "whole": (lambda low, high, **of: Numerical(low, high, integer=True, **of), lambda x: x),
    "real": (lambda low, high, **of: Numerical(low, high, **of), lambda x: x + np.modf(x * 0.37)[0]),
    "day": (lambda low, high, **of: Datetime(*(DAY + pd.to_timedelta([low, high], "D")).astype(str), **of),
            lambda x: DAY + pd.to_timedelta(x, "D")),
    "time": (lambda low, high, **of: Datetime(*(f"{DAY + pd.Timedelta(24 * k + 1, 'h')}"
                                                for k in (low, high)), **of),
             lambda x: DAY + pd.to_timedelta(24 * x + 1, "h")),
}  # fmt: skip
FORMS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}
ZONES = pd.DataFrame({"zone": [10, 20, 30], "name": ["NA", "007", None], "area": [1.5, None, 0.1]})


@st.composite
def databases(draw):
    """A database, private tables for it, the number of roots to sample, and the form of the tables."""
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    declared, often = draw(st.booleans()), draw(st.sampled_from([0.0, 0.2]))
    compared = draw(st.sampled_from([None, *COMPARED]))
    tables, frames, depths = {}, {}, {}
    for place in range(draw(st.integers(1, 4))):
        name, parent = f"table{place}", draw(st.sampled_from([*tables])) if place else None
        depths[name] = depths[parent] + 1 if place else 0
        rows = len(frames[parent]) * draw(st.integers(0, 2)) if place else draw(st.integers(0, 30))
        frame = pd.DataFrame({f"id{place}": KEYS[draw(st.sampled_from([*KEYS]))](np.arange(rows)[::-1] + 5)})
        link, order, rules, constant, one, children = None, None, [], [], (), None
        chosen = draw(st.lists(st.sampled_from([*COLUMNS]), min_size=1, unique=True))
        columns = {column: replace(COLUMNS[column][0], nullable=often > 0) for column in chosen}
        above = np.zeros(0, int)
        if parent is not None:
            link, keys = f"of{place}", frames[parent][tables[parent].key]
            above = rng.integers(0, max(len(keys), 1), rows)
            frame[link] = keys.take(above).array
            order = draw(
                st.sampled_from([None, "nth", *(each for each in chosen if each in ("number", "day"))])
            )
            children = draw(st.sampled_from([None, "1..", "0..2", 2]))
            free = [column for column in chosen if column != order]
            constant = draw(st.lists(st.sampled_from(free), max_size=2, unique=True)) if free else []
            if declared and "word" in free and "word" not in constant and draw(st.booleans()):
                one = [
                    draw(st.sampled_from(["word == 'a'", "first(word) == 'a'"] if order else ["word == 'a'"]))
                ]
        for column in chosen:
            cells = pd.Series(COLUMNS[column][1](rng, rows))
            frame[column] = cells.mask(rng.random(rows) < often) if often else cells
        if order == "nth":
            frame["nth"] = rng.integers(0, 5, rows)
        if compared is not None:
            declare, cells = COMPARED[compared]
            depth, ancestors = depths[name], [name]
            while (each := tables[ancestors[-1]].parent if ancestors[-1] in tables else parent) is not None:
                ancestors.append(each)
            signs = [draw(st.sampled_from(["<", "<=", ">", ">="]))] * (len(ancestors) - 1)
            rules += [f"{name}.x {sign} {each}.x" for sign, each in zip(signs, ancestors[1:], strict=True)]
            most = 21 if declared or not depth else 15  # bounds that are found do not reach those above
            frame["x"] = pd.Series(cells(rng.integers(10, most, rows))).mask(rng.random(rows) < often)
            columns["x"] = declare(10 - depth, 20 + depth, nullable=often > 0)
        elif parent is not None:  # copies of columns that are counted in the parent
            counted = [column for column in COLUMNS if column in frames[parent]]
            counted = [column for column in counted if column not in tables[parent].constant]
            for column in (
                draw(st.lists(st.sampled_from(counted), max_size=2, unique=True)) if counted else []
            ):
                frame[f"{column}_above"] = frames[parent][column].take(above).array
                rules.append(f"{column}_above == {parent}.{column}")
        ancestor, further = parent, []  # tables above with a number from which that of this table is computed
        while ancestor is not None:
            if "number" in frames[ancestor] and "number" not in tables[ancestor].constant:
                further.append(ancestor)
            ancestor = tables[ancestor].parent
        if declared and further and "number" in {*chosen} - {*constant} and draw(st.booleans()):
            frame["late"] = pd.Series(rng.integers(0, 9, rows)).astype("Int64")  # no row need keep the rule
            columns["late"] = Numerical(integer=True)
            rules.append(f"late == number - {draw(st.sampled_from(further))}.number")
        tables[name] = Table(
            Schema(columns), key=f"id{place}", parent=parent, link=link, order=order, constraints=rules,
            constant=constant, one=one, children=children,
        )  # fmt: skip
        frames[name] = frame
    if len(tables) > 1 and draw(st.booleans()):  # a column of the root that follows from the rows below
        child = next(name for name in tables if tables[name].parent == "table0")
        summed = "cost" in frames[child] and "cost" not in tables[child].constant
        how = f"sum({child}.cost)" if summed else f"count({child})"
        frames["table0"]["total"] = rng.random(len(frames["table0"])) * 9 if summed else 3
        total = Numerical(0, 9999, decimals=2) if summed else Numerical(0, 9999, integer=True)
        schema = Schema(tables["table0"].schema.columns | {"total": total})
        tables["table0"] = replace(tables["table0"], schema=schema, constraints=[f"total == {how}"])
    if draw(st.booleans()):
        frames["table0"]["zone"] = rng.choice([10, 20], len(frames["table0"]))
        schema = Schema(tables["table0"].schema.columns | {"zone": Categorical()})
        tables["table0"] = replace(tables["table0"], schema=schema)
        tables["zones"] = Table(public=ZONES, key="zone")
    if not declared:
        tables = {
            name: table if name == "zones" else replace(table, schema=None) for name, table in tables.items()
        }
    forms = [*FORMS] if all(map(len, frames.values())) else ["pandas"]  # without a cell others have no type
    return Database(tables), frames, draw(st.integers(1, 9)), draw(st.sampled_from(forms))


def kept(database, frames, made, *, types=True):
    """Assert that synthetic tables have the columns and types of private ones, and keep all rules."""
    for name, table in database.private.items():
        own, rows = frames[name], made[name]
        data = [column for column in own.columns if column not in table.keys]
        assert list(rows.columns) == list(own.columns)
        assert not types or rows.dtypes[data].astype(str).equals(own.dtypes[data].astype(str))
        if table.key is not None:
            assert rows[table.key].is_unique
            assert rows[table.key].notna().all()
        if table.parent is not None:
            assert rows[table.link].isin(made[table.parent][database.tables[table.parent].key]).all()
        if table.order is not None:
            times = rows.groupby(table.link, sort=False, observed=True)[table.order]
            assert all(of.dropna().is_monotonic_increasing for _, of in times)
        for rule in table.compared:
            above, column = rule.above
            pair = rows[rule.column].reset_index(drop=True), rows_above(database, made, name, above)[column]
            known = pair[0].notna() & pair[1].notna()
            assert SIGNS[rule.sign](*(cells[known] for cells in pair)).all(), rule
    private = {name: made[name] for name in database.private}
    found = broken_rules(private, LinkedRows.of(private, database)[0], database)
    assert not any(found.values()), found


def rows_above(database, made, name, above):
    """Return, for each row of a table, its row of a table above."""
    rows = made[name]
    while name != above:
        table = database.tables[name]
        parents = made[table.parent].set_index(database.tables[table.parent].key)
        rows, name = parents.loc[rows[table.link].to_numpy()].reset_index(), table.parent
    return rows


def types_of(table, but):
    """Return the types of the columns of a table of polars or Arrow, but for some."""
    types = (
        dict(zip(table.schema.names, table.schema.types, strict=True))
        if isinstance(table, pa.Table)
        else dict(table.schema)
    )
    return [(name, kind) for name, kind in types.items() if name not in but]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::privsyn.errors.ColumnWarning")  # truth values with a missing one
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(databases())
def test_random_databases_come_out_as_they_went_in(tmp_path_factory, drawn):
    database, frames, roots, form = drawn
    tables = {name: FORMS[form](frame) for name, frame in frames.items()}
    model = PrivSyn(9.0, 1e-6, database, seed=3).fit(tables)
    path = tmp_path_factory.mktemp("databases") / "model"
    model.save(path)
    made = load(path).sample(roots, seed=5)
    assert set(made) == set(database.tables)
    assert len(made[database.root]) == roots
    if form == "pandas":
        for name, rows in model.sample(roots, seed=5).items():
            pd.testing.assert_frame_equal(rows, made[name])
        kept(database, frames, made)
        for sample in model.draws(2, roots, seed=1):
            kept(database, frames, sample)
        again = PrivSyn(9.0, 1e-6, database, seed=3).fit(tables)
        again.save(path.with_suffix(".2"))
        assert_same_model(path.read_bytes(), path.with_suffix(".2").read_bytes())
    else:
        for name, table in tables.items():
            objects = [column for column in frames[name] if frames[name][column].dtype == object]
            but = {*database.tables[name].keys, *objects}  # the type of objects follows from the cells
            assert types_of(made[name], but) == types_of(table, but)
        in_pandas = {name: table.to_pandas() for name, table in made.items()}
        kept(database, frames, in_pandas, types=False)
    if "zones" in made:
        zones = made["zones"] if form == "pandas" else made["zones"].to_pandas()
        assert (
            zones.astype(object)
            .where(zones.notna(), None)
            .equals(ZONES.astype(object).where(ZONES.notna(), None))
        )
