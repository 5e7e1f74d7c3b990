"""Linked tables of which some have no column to compare."""

import pandas as pd
import pytest

from privsyn import Database, InputError, Numerical, Schema, Text, evaluate
from privsyn import Table as Linked

PARENTS = pd.DataFrame({"home": range(40), "note": None})
ROWS = pd.DataFrame(
    {"person": range(80), "home": [place % 40 for place in range(80)], "year": [1, 2, 3, 4] * 20}
)


def database(year):
    return Database(
        {
            "homes": Linked(Schema({"note": Text()}), key="home"),
            "persons": Linked(Schema({"year": year}), key="person", parent="homes", link="home"),
        }
    )


def test_a_table_that_leaves_out_all_its_columns_is_not_compared():
    tables = {"homes": PARENTS, "persons": ROWS}
    scores = evaluate(tables, tables, schema=database(Numerical(1, 4, integer=True)), models=False)
    assert scores.linked is not None


def test_tables_without_any_column_to_compare_are_refused():
    tables = {"homes": PARENTS, "persons": ROWS.assign(year="x")}
    with pytest.raises(InputError, match="no column can be compared"):
        evaluate(tables, tables, schema=database(Text()), models=False)
