"""What is known of a person in linked tables is decided by the rows of this person, and by public facts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from privsyn import (
    Categorical,
    Database,
    Datetime,
    Identifier,
    InputError,
    Numerical,
    PrivSyn,
    Schema,
    Table,
    Text,
)
from privsyn.private.contribution import random_order
from privsyn.table.database.opened import open_tables
from privsyn.table.io.identifiers import order_keys

PERSONS = pd.DataFrame({"key": range(30), "age": 20})
NUMBERS = pd.Series(np.random.default_rng(0).integers(0, 9, 90))
VISITS = pd.DataFrame({"link": np.repeat(range(30), 3), "n": NUMBERS, "place": range(90)})
TIMES = pd.Timestamp("2020-01-01") + pd.to_timedelta(NUMBERS, "D")
CELLS = {
    "int8": NUMBERS.astype("int8"),
    "uint64": NUMBERS.astype("uint64"),
    "Int64": NUMBERS.astype("Int64"),
    "float32": NUMBERS.astype("float32"),
    "arrow": NUMBERS.astype("int64[pyarrow]"),
    "decimal": NUMBERS.astype("int64[pyarrow]").astype(pd.ArrowDtype(pa.decimal128(38, 2))),
    "times": TIMES,
    "zoned": TIMES.dt.tz_localize("Europe/Berlin"),
    "dates": TIMES.astype("timestamp[us][pyarrow]").astype("date32[pyarrow]"),
    "durations": pd.Series(pd.to_timedelta(NUMBERS, "h")),
}


class Secretive:
    """An object that raises when touched, with what nobody may read."""

    def __str__(self):
        raise RuntimeError("Zebra")

    __repr__ = __hash__ = __float__ = __str__

    def __eq__(self, other):
        raise RuntimeError("Zebra")


def opened(derive, visits, persons=PERSONS, schema=None):
    """The root of two tables, as it is before the first question; the persons are in the table's order."""
    database = Database(
        {
            "persons": Table(Schema({"age": Numerical(0, 99)}), key="key", derive=derive),
            "visits": Table(schema, parent="persons", link="link", order="place"),
        }
    )
    tables = {"persons": persons, "visits": visits}
    if persons is None:
        del tables["persons"]
    return open_tables(database, tables, _in_order)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["sum", "mean", "min", "max", "first", "last"])
@pytest.mark.parametrize("cells", CELLS)
def test_no_summary_of_a_person_depends_on_another(cells, how):
    """Whether other persons have rows, or cells, decides no value and no dtype, and whether it is refused."""
    visits = VISITS.assign(n=CELLS[cells])
    missing = visits.copy()
    if cells not in ("int8", "uint64"):
        missing.loc[missing["link"] == 3, "n"] = None
    rest = visits["link"] != 3
    neighbours = [
        (visits, PERSONS),
        (visits[rest], PERSONS),
        (visits[rest], PERSONS.drop(index=3)),
        (missing, PERSONS),
        (visits[:3], PERSONS),
        (visits[:0], PERSONS),
        (visits[:0], PERSONS[:0]),
    ]
    ends = []
    for rows, persons in neighbours:
        try:
            root = opened({"s": f"{how}(visits.n)"}, rows, persons)["persons"]
        except InputError as refused:
            ends.append(str(refused))
            continue
        ends.append((root.added.dtypes.astype(str).to_dict(), root.schema))
        both = np.isin(persons["key"], rows["link"]) & (persons["key"] != 3)
        others = root.added[both.to_numpy()]
        whole = opened({"s": f"{how}(visits.n)"}, visits)["persons"].added
        pd.testing.assert_frame_equal(others.reset_index(drop=True), _rows(whole, persons["key"][both]))
    assert all(end == ends[0] for end in ends)
    times = cells in ("times", "zoned", "dates", "durations")
    assert isinstance(ends[0], str) == (times and how in ("sum", "mean"))


def _rows(table, places):
    return table.iloc[places.tolist()].reset_index(drop=True)


ODD = {
    "secretive": Secretive(),
    "bytes": b"\xff",
    "surrogate": "\ud800",
    "long": 10**5000,
    "list": ["a"],
    "missing": None,
    "complex": 1j,
    "time": pd.Timestamp("2020-01-01 10:00"),
    "unsigned": "18446744073709551615",
    "negative": -1,
    "true": True,
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("odd", ODD)
def test_whether_a_person_ever_had_a_value_depends_on_no_other_cell(odd):
    cells = pd.Series(["a", "b", True] * 30, dtype=object)
    cells.array[89] = ODD[odd]
    for value, has in (("a", "yes"), ("c", "no"), ("True", "yes")):
        said = {"e": f"ever(visits.n == {value})"}
        root = opened(said, VISITS.assign(n=cells), schema=Schema({"n": Categorical(["a", "b"])}))["persons"]
        assert (root.added["e"][:29] == has).all()


FAR = {
    "largest": (1.7e308, 1.7e308),
    "smallest": (-1.7e308, 1.7e308),
    "infinite": (float("inf"), float("inf")),
    "of another sign": (float("-inf"), float("inf")),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("total", ["n + m", "n - 1e+300 * m"])
@pytest.mark.parametrize("odd", [*ODD, *FAR])
def test_a_sum_that_is_constant_depends_on_rows_of_one_parent_alone(odd, total):
    """Each person has the sum of its first row with both numbers. Nothing tells what cells others have."""
    cells = NUMBERS.astype(object if odd in ODD else float)
    visits = VISITS.assign(n=cells, m=cells[::-1].to_numpy())
    visits.loc[visits["link"] == 5, "m"] = None
    with_odd = visits.copy()
    for column, cell in zip("nm", FAR.get(odd, (ODD.get(odd),) * 2), strict=True):
        with_odd[column].array[87] = cell  # the first row of person 29
    columns = {"n": Numerical(decimals=2), "m": Numerical(decimals=2)}
    tables = {
        "visits": Table(
            Schema(columns),
            parent="persons",
            link="link",
            order="place",
            constraints=[f"{total} is constant"],
        ),
        "persons": Table(Schema({"age": Numerical(0, 99)}), key="key"),
    }
    neighbours = [visits, with_odd, visits[visits["link"] != 29]]
    roots = [
        open_tables(Database(tables), {"persons": PERSONS, "visits": rows}, _in_order)["persons"]
        for rows in neighbours
    ]
    name = f"visits.{total}"
    sums = roots[0].added[name].astype(float)
    first = visits.groupby("link").first()[["n", "m"]].astype(float)
    expected = first.eval(total).reindex(range(30))
    assert np.array_equal(sums.drop(index=5), expected.drop(index=5))
    assert np.isnan(sums[5])
    for root in roots[1:]:
        assert np.array_equal(root.added[name][:29], sums[:29], equal_nan=True)
        assert root.added.dtypes.equals(roots[0].added.dtypes)
        assert root.schema == roots[0].schema


def test_times_are_not_compared_as_texts():
    """pandas writes a column of midnights as dates: with one other time, all are written otherwise."""
    schema = Schema({"n": Datetime("2020-01-01", "2020-12-31")})
    with pytest.raises(InputError, match="ever is about listed values and numbers, not 'n'"):
        opened({"e": "ever(visits.n == 2020-01-03)"}, VISITS.assign(n=TIMES), schema=schema)


def test_numbers_are_compared_as_numbers():
    schema = Schema({"n": Numerical(0, 9)})
    found = [
        opened({"e": "ever(visits.n == 3)"}, VISITS.assign(n=NUMBERS.astype(dtype)), schema=schema)
        for dtype in ("int64", "float64", "Int64")
    ]
    assert 0 < (found[0]["persons"].added["e"] == "yes").sum() < 30
    for tables in found[1:]:
        pd.testing.assert_frame_equal(tables["persons"].added, found[0]["persons"].added)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("odd", ODD)
def test_no_order_depends_on_another_cell(odd):
    cells = pd.Series([3, "2", 1.5, "x", None], dtype=object)
    cells.array[4] = ODD[odd]
    assert np.array_equal(_keys(cells)[:4], [3, 2, 1.5, np.nan], equal_nan=True)


def _keys(cells):
    return order_keys("at", iter([pd.DataFrame({"at": cells})]))


@pytest.mark.parametrize("cells", [*CELLS, "boolean", "categories", "categories of times"])
def test_an_order_of_any_type_is_read_also_if_cells_are_missing(cells):
    more = {
        "boolean": (NUMBERS > 4).astype("boolean"),
        "categories": NUMBERS.astype("category"),
        "categories of times": TIMES.astype("category"),
    }
    known = {**CELLS, **more}[cells]
    keys, numbers = _keys(known), (NUMBERS > 4).astype(int) if cells == "boolean" else NUMBERS
    assert np.array_equal(np.sign(np.diff(keys)), np.sign(np.diff(numbers)))
    if cells not in ("int8", "uint64"):
        lost = known.copy()
        lost[0] = None
        assert np.isnan(_keys(lost)[0])
        assert np.array_equal(_keys(lost)[1:], keys[1:])


@pytest.mark.parametrize("odd", ["2020-01-05 10:00", "soon", "17"])
def test_one_odd_cell_of_a_file_does_not_decide_the_order_of_others(odd, tmp_path):
    """A CSV has no types, and that of a column which is there for the order alone is not guessed."""
    schema = Schema({"n": Numerical(0, 9)})
    cells = TIMES.astype(str) + " 10:00"
    cells[89] = odd
    VISITS.assign(place=cells).to_csv(tmp_path / "v.csv", index=False)
    found = opened({}, tmp_path / "v.csv", schema=schema)["visits"]
    assert np.array_equal(np.sign(np.diff(found.keys[:89])), np.sign(np.diff(NUMBERS[:89])))
    assert not any("read off the file" in fact for fact in found.source.public_inputs)


@pytest.mark.parametrize("leaver", [3, 29, None])
def test_how_often_a_column_changes_depends_on_rows_of_one_parent_alone(leaver):
    """Each person has the first cell and the changes of its rows in order, whoever else has which rows."""
    wards = np.random.default_rng(4).choice(["a", "b", None], 90).astype(object)
    visits = VISITS.assign(ward=pd.Series(wards, dtype="str"), link=VISITS["link"].astype("Int64"))
    visits = visits.sample(frac=1, random_state=1).reset_index(drop=True)
    visits.loc[visits.index % 5 == 0, "link"] = None  # rows of nobody, and one that leads nowhere
    visits.loc[1, "link"] = 4711
    rest = visits[(visits["link"] != leaver).fillna(True)] if leaver else visits
    schema = Schema({"ward": Categorical(["a", "b"])})
    lasting = Table(schema, parent="persons", link="link", order="place", constraints=["ward lasts"])
    database = Database({"persons": Table(Schema({"age": Numerical(0, 99)}), key="key"), "visits": lasting})
    added = open_tables(database, {"persons": PERSONS, "visits": rest}, _in_order)["persons"].added
    for person in PERSONS["key"]:
        cells = (
            rest[(rest["link"] == person).fillna(False)].sort_values("place")["ward"].fillna("none").tolist()
        )
        first = added["first(visits.ward)"].fillna("none")[person]
        assert first == (cells[0] if cells else "none")
        changes = sum(one != other for one, other in pairwise(cells))
        assert added["changes(visits.ward)"][person] == changes


def test_rows_of_nobody_need_no_person():
    """Without the last person too."""
    for persons in (PERSONS[:1], PERSONS[:0]):
        tables = opened({}, VISITS, persons)
        assert (tables["visits"].persons[3:] == -1).all()
        assert (tables["visits"].persons[:3] == (0 if len(persons) else -1)).all()
    database = Database(
        {
            "persons": Table(Schema({"age": Numerical(0, 99)}), key="key"),
            "visits": Table(Schema({"n": Numerical(0, 9)}), key="place", parent="persons", link="key"),
            "drugs": Table(Schema({"n": Numerical(0, 9)}), parent="visits", link="place"),
        }
    )
    visits = VISITS.rename(columns={"link": "key"})
    made = PrivSyn(5, 1e-9, database, seed=1).fit(
        {"persons": PERSONS[:0], "visits": visits[:0], "drugs": VISITS[["place", "n"]]}
    )
    assert list(made.sample(5)) == ["persons", "visits", "drugs"]


def test_categories_of_links_decide_nothing():
    """Two tables with the links of the root, which is left out: whether their categories are the same."""
    database = Database(
        {
            "persons": Table(Schema({}), key="key"),
            "visits": Table(Schema({"n": Numerical(0, 9)}), parent="persons", link="link"),
            "orders": Table(Schema({"n": Numerical(0, 9)}), parent="persons", link="link"),
        }
    )
    visits = VISITS[["link", "n"]].astype({"link": "category"})
    fewer = visits[:87].assign(link=lambda rows: rows["link"].cat.remove_unused_categories())
    for orders in (visits, fewer):
        tables = open_tables(database, {"visits": visits, "orders": orders}, _in_order)
        assert isinstance(tables["persons"].source.head["key"].dtype, pd.CategoricalDtype)
        assert len(tables["persons"].persons) == 30
        assert (tables["orders"].persons == np.repeat(range(30), 3)[: len(orders)]).all()


CODES = {
    "integers": (pa.int64(), [1, 2, None], 3),
    "flags": (pa.bool_(), [True, None], False),
    "texts": (pa.string(), ["a", "b", None], "c"),
    "texts without missing cells": (pa.string(), ["a", "b"], "c"),
}


def coded(cells, kind, person=None):
    """Visits in two batches, each with a dictionary of its own; perhaps one more, in the second."""
    cells = [cells[place % len(cells)] for place in range(90)]
    links, more = np.repeat(range(30), 3).tolist(), [] if person is None else [person]
    parts = (links[:45], cells[:45]), (links[45:] + [99] * len(more), cells[45:] + more)
    batches = [
        pa.record_batch(
            {"link": pa.array(of, pa.int64()), "code": pa.array(values, kind).dictionary_encode()}
        )
        for of, values in parts
    ]
    return ds.InMemoryDataset(batches)


@pytest.mark.parametrize(("kind", "cells", "own"), CODES.values(), ids=CODES)
@pytest.mark.parametrize("what", ["constant", "derive"])
def test_a_row_with_a_value_of_its_own_changes_no_cell_of_others(kind, cells, own, what):
    """Each batch has a dictionary. pandas joins two of different values to a column of another dtype."""
    values = [value for value in cells if value is not None]
    code = Categorical([*values, own])
    settings = {"constant": ["code"]} if what == "constant" else {}
    derive = {"any": f"ever(visits.code == {str(values[0]).lower()})"} if what == "derive" else {}
    database = Database(
        {
            "persons": Table(Schema({"age": Numerical(0, 99)}), key="key", derive=derive),
            "visits": Table(Schema({"code": code}), parent="persons", link="link", **settings),
        }
    )
    columns = []
    for person in (None, own):
        root = PERSONS if person is None else pd.concat([PERSONS, pd.DataFrame({"key": [99], "age": [20]})])
        opened = open_tables(database, {"persons": root, "visits": coded(cells, kind, person)}, _in_order)
        columns.append(opened["persons"].added.iloc[:30, -1])
    without, beside = columns
    assert isinstance(beside.dtype, pd.CategoricalDtype) == isinstance(without.dtype, pd.CategoricalDtype)
    assert [(type(cell), cell) for cell in without.dropna()] == [
        (type(cell), cell) for cell in beside.dropna()
    ]
    assert (without.isna() == beside.isna()).all()


def _in_order(codes):
    return random_order(codes, lambda n: np.arange(n, dtype=np.uint64))


@pytest.mark.parametrize("wrong", [0, -5, 2.5, "3", True])
def test_a_bound_that_is_none_is_refused_for_several_tables_too(wrong):
    database = Database({"persons": Table(Schema({"age": Numerical(0, 99)}), key="key")})
    with pytest.raises(InputError, match="rows_per_unit must be a whole number of at least 1; got "):
        PrivSyn(1.0, 1e-9, database, rows_per_unit=wrong)


def test_values_are_not_looked_for_with_a_delta_of_0():
    """Which is said before any answer is released."""
    database = Database(
        {
            "persons": Table(Schema({"age": Numerical(0, 99)}), key="key"),
            "visits": Table(Schema({"n": Categorical()}), parent="persons", link="key"),
        }
    )
    visits = VISITS[["link", "n"]].rename(columns={"link": "key"})
    with pytest.raises(InputError, match="table 'visits': delta 0 cannot find the values of 'n'"):
        PrivSyn(1.0, 0, database).fit({"persons": PERSONS, "visits": visits})


def test_columns_that_are_not_read_may_be_in_any_table():
    """Free text and identifiers have no code, which the rows below would be made from."""
    kinds = {"note": Text(), "number": Identifier()}
    persons = PERSONS.assign(note="a word", number=7).astype({"note": "str"})
    visits = VISITS.assign(note="a word", number=7).astype({"note": "str"})
    database = Database(
        {
            "persons": Table(Schema({"age": Numerical(0, 99), **kinds}), key="key"),
            "visits": Table(
                Schema({"n": Numerical(0, 9), **kinds}), parent="persons", link="link", order="place"
            ),
        }
    )
    with pytest.warns(UserWarning, match="free text is left out of the synthetic table: 'note'"):
        model = PrivSyn(5, 1e-9, database, seed=1).fit({"persons": persons, "visits": visits})
    for made in (model.sample(20), *model.draws(2, 20, seed=1)):
        assert made["persons"].columns.tolist() == ["key", "age", "number"]
        assert made["visits"].columns.tolist() == ["link", "n", "place", "number"]
        assert made["visits"]["number"].is_unique
