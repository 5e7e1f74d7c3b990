"""Opened linked tables: what is public about a table never follows from a private row of any of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, Datetime, Numerical, Schema, Table
from privsyn.private.contribution import random_order
from privsyn.table.database.derived_columns import rows_of
from privsyn.table.database.lookups import with_lookups
from privsyn.table.database.opened import open_tables

KINDS = {
    "paid": Numerical(0, 100),
    "stars": Numerical(0, 5, integer=True),
    "small": Numerical(0, 5, integer=True),
    "at": Datetime("2020-01-01", "2020-12-31"),
    "ward": Categorical(["eyes", "ears"]),
    "urgent": Categorical([False, True]),
}
DTYPES = {
    "paid": "float64",
    "stars": "Int64",
    "small": "int8",
    "at": "datetime64[s]",
    "ward": "str",
    "urgent": "bool",
}
DERIVE = {
    **{f"{how} of {name}": f"{how}(visits.{name})" for how in ("sum", "mean") for name in list(KINDS)[:3]},
    **{
        f"{how} of {name}": f"{how}(visits.{name})"
        for how in ("min", "max", "first", "last")
        for name in list(KINDS)[:4]
    },
    "ever in eyes": "ever(visits.ward == eyes)",
    "ever 3": "ever(visits.stars == 3)",
}
DATABASE = Database(
    {
        "homes": Table(Schema({"size": Numerical(0, 9, integer=True)}), key="home", derive=DERIVE),
        "visits": Table(
            Schema(KINDS),
            parent="homes",
            link="home",
            order="turn",
            constant=("ward", "urgent", "small", "at"),
        ),
    }
)
HOMES = pd.DataFrame({"home": range(6), "size": [1, 2, 3, 4, 5, 6]}).astype({"size": "int64"})


def visits(homes, paid=0.5, stars=3):
    rows = len(homes)
    frame = pd.DataFrame(
        {
            "paid": [paid] * rows,
            "stars": [stars] * rows,
            "small": [2] * rows,
            "at": ["2020-03-04"] * rows,
            "ward": ["eyes"] * rows,
            "urgent": [True] * rows,
        }
    ).astype(DTYPES)
    return frame.assign(home=pd.array(homes, "Int64"), turn=range(rows))


WITHOUT = visits([0, 1, 2, 3, 4, 5]).assign(paid=np.nan, stars=pd.array([pd.NA] * 6, "Int64"), ward=None)
CHILDREN = {
    "a row for each": visits([0, 1, 2, 3, 4, 5]),
    "whole numbers": visits([0, 1, 2, 3, 4, 5], 7.0),
    "whole numbers and fractions": visits([0, 1, 2, 3, 4, 5], 7.0).assign(paid=[1, 2, 3, 4, 5, 5.5]),
    "no row for one": visits([0, 1, 2, 3, 4]),
    "many rows": visits([0] * 90 + [1, 2, 3, 4, 5]),
    "no rows": visits([]),
    "rows of nobody": visits([None, 77, 78]),
    "no numbers": WITHOUT.astype(DTYPES),
    "large numbers": visits([0, 1, 2, 3, 4, 5], 1e300),
}


def opened(database, **tables):
    rng = np.random.default_rng(0)
    return open_tables(
        with_lookups(database),
        tables,
        lambda codes: random_order(codes, lambda size: rng.integers(0, 2**63, size).astype(np.uint64)),
    )


@pytest.mark.parametrize("children", CHILDREN)
def test_no_row_decides_what_is_public_about_a_derived_column(children):
    """Types, bounds, listed values, and whether a cell may be missing: the codec and the model have them."""
    usual = opened(DATABASE, homes=HOMES, visits=CHILDREN["a row for each"])
    other = opened(DATABASE, homes=HOMES, visits=CHILDREN[children])
    for name, table in usual.items():
        assert other[name].added.dtypes.astype(str).to_dict() == table.added.dtypes.astype(str).to_dict()
        assert other[name].schema == table.schema
        assert other[name].source.head.dtypes.equals(table.source.head.dtypes)


def test_sums_and_numbers_of_rows_are_those_of_each_parent():
    frame = visits([0, 0, 1, None, 77, 3]).assign(paid=[1.0, 2.5, 4.0, 8.0, 16.0, np.nan])
    added = opened(DATABASE, homes=HOMES, visits=frame)["homes"].added
    assert added["sum of paid"].tolist() == [3.5, 4.0, 0, 0, 0, 0]
    assert added[rows_of("visits")].tolist() == [2, 1, 0, 1, 0, 0]


def test_rows_belong_to_the_person_of_their_root_and_those_of_nobody_to_nobody():
    """Of the rows of the root with one key, one is a person, and all rows below are of that one."""
    homes = pd.DataFrame({"home": [0, 1, 1, None, 2], "size": 1}).astype({"home": "Int64"})
    found = opened(DATABASE, homes=homes, visits=visits([1, 1, 0, None, 77, 2, 2]))
    root, child = found["homes"].persons, found["visits"].persons
    assert sorted(root[root >= 0].tolist()) == sorted(set(root[root >= 0].tolist()))
    assert (root >= 0).tolist() in ([True, True, False, False, True], [True, False, True, False, True])
    (one,) = [place for place in (1, 2) if root[place] >= 0]
    assert child.tolist() == [root[one], root[one], root[0], -1, -1, root[4], root[4]]
    assert found["visits"].parents.tolist() == [one, one, 0, -1, -1, 4, 4]


ZONES = pd.DataFrame({"zone": ["north", "south", "east", "west"], "area": [1.5, 2, 3, 4]})
KEYED = Database(
    {
        "zones": Table(public=ZONES, key="zone"),
        "homes": Table(Schema({"zone": Categorical()}), key="home"),
        "trips": Table(
            Schema({"km": Numerical(0, 9)}),
            parent="homes",
            link="home",
            lookups={"origin": "zones", "end": "zones"},
        ),
    }
)


@pytest.mark.parametrize("cells", [["north"], ["north", "elsewhere"], [None], []])
@pytest.mark.parametrize("declared", [True, False])
def test_all_keys_of_a_look_up_table_are_listed_whether_or_not_a_row_has_them(cells, declared):
    homes = pd.DataFrame({"home": range(len(cells)), "zone": pd.Series(cells, dtype="str")})
    trips = homes[["home"]].assign(km=1.0, origin=homes["zone"], end=homes["zone"])
    database = KEYED
    if not declared:  # then the name of the column says that it leads to the table
        tables = {**KEYED.tables, "homes": Table(key="home")}
        database = Database(tables)
    found = opened(database, homes=homes, trips=trips)
    for table, column in (("homes", "zone"), ("trips", "origin"), ("trips", "end")):
        assert list(found[table].schema.columns[column].values) == ZONES["zone"].tolist()
