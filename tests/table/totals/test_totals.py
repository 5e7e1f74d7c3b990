"""Known totals: how they are read, what is refused, and which contradiction is named."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from command import run
from refusals import refuses

from privsyn import (
    Categorical,
    Database,
    Datetime,
    Forbidden,
    Identifier,
    Numerical,
    PrivSyn,
    Schema,
    Table,
    Within,
    plan,
)
from privsyn.methods.run_encoding import RunEncoding
from privsyn.table.codec.codec import Codec
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.io.read_in_memory import read_columns
from privsyn.table.schema.yaml_file import to_yaml
from privsyn.table.totals.totals import Totals

REGION = Categorical(["North", "South"])
SEX = Categorical(["F", "M"], nullable=False)
AGE = Numerical(18, 90, integer=True)
COLUMNS = {"region": REGION, "sex": SEX, "age": AGE, "place": Categorical(["N1", "N2", "S1"])}
SCHEMA = Schema(COLUMNS)
PLACES = Schema(COLUMNS, constraints=[Within({"place": "region"})])


def counts(cells, *columns, count="count"):
    """Return a table of counts from a mapping of cells to counts."""
    rows = [(*(cell if isinstance(cell, tuple) else (cell,)), number) for cell, number in cells.items()]
    return pd.DataFrame(rows, columns=[*columns, count])


BY_SEX = counts({("North", "F"): 6, ("North", "M"): 4, ("South", "F"): 3, ("South", "M"): 7}, "region", "sex")
BY_PLACE = counts({("N1", "North"): 5, ("N2", "North"): 5, ("S1", "South"): 10}, "place", "region")


def encoded(totals, schema=SCHEMA):
    """Return the totals in the codes of a table with the columns of the schema."""
    tables = Totals.read(totals, schema)
    columns = read_columns(schema)
    open_schema = OpenSchema.of(tables.complete(schema, columns), columns)
    return tables.checked(RunEncoding(open_schema, columns, None, tables, fine=True).codec())


def of_codes(totals, schema=SCHEMA):
    """Return the counts of each code of the first table."""
    (table, *_) = encoded(totals, schema).tables
    groups = table.grouping.of_codes(table.marginal.counts.shape)
    return table.marginal.counts[np.ix_(*groups)].tolist()


def written(tmp_path, text, name="totals.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_a_contradiction_names_the_region_and_both_numbers_before_any_question():
    one_more = BY_SEX.assign(count=[7, 4, 3, 7])
    with refuses() as error:
        plan(SCHEMA, totals=[one_more, BY_PLACE])
    assert str(error.value) == (
        "totals contradict each other: totals 1 (region x sex) has 21 rows in all"
        " and 20 in totals 2 (place x region)"
    )
    moved = BY_SEX.assign(count=[7, 4, 3, 6])
    with refuses() as error:
        plan(SCHEMA, totals=[moved, BY_PLACE])
    assert str(error.value) == (
        "totals contradict each other: region North has 11 rows in totals 1 (region x sex)"
        " and 10 in totals 2 (place x region)"
    )
    rows = pd.DataFrame({"region": "North", "sex": "F", "age": [20, 30], "place": "N1"})
    with refuses("region North has 11 rows"):
        PrivSyn(schema=SCHEMA, totals={"a": moved, "b": BY_PLACE}, epsilon=1).fit(rows)


@pytest.mark.parametrize(
    "kind", ["pandas", "polars", "pyarrow", "csv", "parquet", "one", "folder", "mapping"]
)
def test_every_kind_of_table_has_the_same_counts(kind, tmp_path):
    BY_SEX.to_csv(tmp_path / "a.csv", index=False)
    BY_SEX.to_parquet(tmp_path / "b.parquet")
    folder = tmp_path / "folder"
    folder.mkdir()
    BY_SEX.to_csv(folder / "a.csv", index=False)
    (folder / "read.me").write_text("no table")
    totals = {
        "pandas": [BY_SEX],
        "polars": [pl.from_pandas(BY_SEX)],
        "pyarrow": [pa.Table.from_pandas(BY_SEX)],
        "csv": [tmp_path / "a.csv"],
        "parquet": str(tmp_path / "b.parquet"),
        "one": BY_SEX,
        "folder": folder,
        "mapping": {"census": BY_SEX},
    }[kind]
    assert of_codes(totals) == [[6, 4], [3, 7], [0, 0]]
    (fact,) = Totals.read(totals, SCHEMA).facts
    title = {"csv": "totals 'a.csv'", "parquet": "totals 'b.parquet'", "folder": "totals 'a.csv'"}
    title |= {"mapping": "totals 'census'"}
    assert fact.startswith(f"{title.get(kind, 'totals 1')} (region x sex) of 4 cells of 20 rows (SHA-256 ")


def test_cells_that_are_not_listed_are_0_and_missing_cells_count_as_missing(tmp_path):
    assert of_codes(counts({"South": 3, None: 2}, "region")) == [0, 3, 2]
    assert of_codes(counts({"South": 3, np.nan: 2}, "region")) == [0, 3, 2]
    assert of_codes(written(tmp_path, "region,n\nSouth,3\n,2\n")) == [0, 3, 2]
    marked = Schema({"region": Categorical(["North", "South"], missing="?")})
    assert of_codes(written(tmp_path, "region,n\nSouth,3\n?,2\n"), marked) == [0, 3, 2]
    with refuses("no missing cells"):
        encoded(counts({"F": 3, None: 2}, "sex"))


def test_the_column_of_counts_is_the_one_that_the_private_table_lacks():
    assert of_codes(counts({"South": 3}, "region", count="Persons")) == [0, 3, 0]
    with refuses("no column has counts"):
        plan(Schema({**COLUMNS, "count": AGE}), totals=counts({"South": 3}, "region"))
    with refuses("none of the columns 'n', 'share': call that of the counts 'count'"):
        plan(SCHEMA, totals=counts({"South": 3}, "region", count="n").assign(share=1.0))
    with refuses("none of the columns 'regoin', 'n'") as error:
        plan(SCHEMA, totals=counts({"South": 3}, "regoin", count="n"))
    assert "region" not in str(error.value).split(":")[2]  # a header that is a row names cells
    with refuses("the private table has no column 'regoin'"):
        plan(SCHEMA, totals=counts({"South": 3}, "regoin"))
    with refuses("it has counts alone"):
        plan(SCHEMA, totals=pd.DataFrame({"count": [20]}))


@pytest.mark.parametrize("number", [-1, 2.5, np.nan, np.inf, "many"])
def test_counts_are_whole_numbers(number):
    with refuses(r"totals 1 \(region\): column 'count', row 2: .* whole number of at least 0"):
        plan(SCHEMA, totals=counts({"North": 1, "South": number}, "region"))


@pytest.mark.parametrize(
    ("cells", "columns", "words"),
    [
        ({"West": 1}, ["region"], r"totals 1 \(region\): column 'region': 'West' is not one of its values"),
        ({91: 1}, ["age"], "91 is no value of the column"),
        ({"old": 1}, ["age"], "'old' is no number and no band"),
        ({"20-29": 1, "25-34": 2}, ["age"], "'20-29' and '25-34' have values in common"),
        ({20.5: 1}, ["age"], "20.5 is no value of the column"),
        ({pd.Interval(0, 1): 1}, ["region"], r"the interval \(0, 1\] is no value"),
        ({"North": 0}, ["region"], "counts no row"),
        ({True: 1}, ["age"], "True is not a number"),
    ],
)
def test_a_value_that_the_column_does_not_have_is_named(cells, columns, words):
    with refuses(words):
        plan(SCHEMA, totals=counts(cells, *columns))


def test_a_cell_that_comes_twice_is_refused():
    with refuses("counts region North, sex F twice"):
        plan(SCHEMA, totals=pd.concat([BY_SEX, BY_SEX.head(1)]))


def test_columns_that_are_not_counted_have_no_totals():
    with refuses("column 'who': is never counted"):
        plan(Schema({"who": Identifier(), "sex": SEX}), totals=counts({1: 1}, "who"))
    kept = Schema({"sex": Categorical(["F", "M"], keep=0.5), "age": AGE})
    with refuses("column 'sex': was randomised"):
        plan(kept, totals=counts({"F": 1}, "sex"))
    computed = Schema({"a": AGE, "b": AGE, "both": Numerical()}, constraints=["both == a + b"])
    with refuses("column 'both': is computed from others"):
        plan(computed, totals=counts({60: 1}, "both"))
    with refuses("take one table alone"):
        PrivSyn(1.0, schema=Database({"a": Table(key="k"), "b": Table(link="k", parent="a")}), totals=BY_SEX)
    with refuses("there is no table of counts"):
        plan(SCHEMA, totals=[])


@pytest.mark.parametrize(
    "cells",
    [
        {"18-29": 3, "30 to 64": 2, "65+": 1},
        {"under 30": 3, "30-64": 2, "65 and over": 1},
        {pd.Interval(0, 29): 3, pd.Interval(29, 64): 2, pd.Interval(64, 200): 1},
        {pd.Interval(0, 30, "left"): 3, pd.Interval(30, 65, "left"): 2, pd.Interval(65, 90, "both"): 1},
    ],
)
def test_bands_of_numbers_are_groups_of_codes(cells):
    (table,) = encoded(counts(cells, "age")).tables
    (group,) = table.grouping.groups
    assert np.bincount(group).tolist() == [12, 35, 26, 1]
    assert table.marginal.counts.tolist() == [3, 2, 1, 0]


@pytest.mark.parametrize("integer", [True, None])
def test_cells_of_a_wide_column_begin_and_end_where_bands_do(integer):
    pay = Schema({"pay": Numerical(0, 100_000, integer=integer)})
    cells = {"777": 1, pd.Interval(1234, 5678, "left"): 3, pd.Interval(5678, 6000, "both"): 2, "65000+": 4}
    tables = Totals.read(counts(cells, "pay"), pay)
    columns = read_columns(pay).astype({"pay": "float64"})
    codec = RunEncoding(OpenSchema.of(pay, columns), columns, None, tables, fine=True).codec()
    (table,) = tables.encoded(codec).tables
    (group,) = table.grouping.groups
    edges = codec.ordered("pay").extents
    bands = {}
    for count, low, high in zip(table.marginal.counts[group], *edges, strict=False):
        first, last = bands.get(count, (low, high))
        bands[count] = min(first, low), max(last, high)
    del bands[0]
    step = 1 if integer else 1e-6
    expected = {1: (777, 777), 3: (1234, 5678 - step), 2: (5678, 6000), 4: (65000, 100_000)}
    assert bands.keys() == expected.keys()
    for count, ends in expected.items():
        assert bands[count] == pytest.approx(ends, abs=0 if integer else 2e-6, rel=0)
    restored = Codec.from_dict(json.loads(json.dumps(codec.to_dict())))
    assert restored.ordered("pay").grid.edges.tolist() == codec.ordered("pay").grid.edges.tolist()
    with refuses("column 'pay' has more than 1,024 ends of bands"):
        plan(pay, totals=counts(dict.fromkeys(range(2000), 1), "pay"))


def test_numbers_and_days_are_counted_one_by_one(tmp_path):
    assert of_codes(written(tmp_path, "age,n\n18,3\n20,2\n"))[:4] == [3, 0, 2, 0]
    days = Schema({"day": Datetime("2024-01-01", "2024-01-04")})
    day = pd.Timestamp("2024-01-03")
    assert of_codes(counts({day: 3}, "day"), days) == [0, 0, 3, 0, 0]


def test_totals_give_an_open_column_its_values_at_no_cost():
    open_schema = Schema({"region": Categorical(), "age": Numerical(integer=True), "sex": SEX})
    planned = plan(open_schema, totals=[BY_SEX, counts({"18-29": 12, "30-64": 8}, "age")])
    assert planned.to_find == ()
    assert planned.sizes["region"] == 3
    with refuses("the band '65.' has one end"):
        plan(open_schema, totals=counts({"65+": 20}, "age"))
    with refuses("all cells are missing"):
        plan(open_schema, totals=counts({None: 20}, "region"))


def test_a_plan_names_known_totals_and_expects_no_error_of_them():
    two = Schema({"region": REGION, "sex": SEX})
    planned = plan(two, rows=20, totals=BY_SEX)
    assert "totals 1 (region x sex) is known" in str(planned)
    (expected,) = planned.expectations
    assert (expected.one_way_error, expected.pair_error) == (0.0, 0.0)
    (without,) = plan(two, rows=20).expectations
    assert without.pair_error > 0


def test_bands_of_which_no_one_refines_the_other_are_compared_in_common_bands():
    fine = counts({"18-29": 5, "30-39": 5, "40-90": 10}, "age")
    coarse = counts({"18-39": 10, "40-64": 4, "65-90": 6}, "age")
    assert len(encoded([fine, coarse]).tables) == 2
    with refuses("age 18 to 39 has 10 rows in totals 1 .age. and 11 in totals 2 .age."):
        plan(SCHEMA, totals=[fine, counts({"18-39": 11, "40-64": 4, "65-90": 5}, "age")])


def test_places_are_compared_with_their_regions():
    of_places = counts({("N1", "F"): 5, ("N2", "M"): 6, ("S1", "F"): 9}, "place", "sex")
    of_regions = counts({"North": 10, "South": 10}, "region")
    hierarchy = counts({("N1", "North"): 5, ("N2", "North"): 6, ("S1", "South"): 9}, "place", "region")
    with refuses("region North has 11 rows in totals 1 .place x sex. and 10 in totals 3 .region."):
        plan(PLACES, totals=[of_places, hierarchy, of_regions])
    given = Within({"place": "region"}, [["N1", "North"], ["N2", "North"], ["S1", "South"]])
    with refuses("region North has 11 rows"):
        plan(Schema(COLUMNS, constraints=[given]), totals=[of_places, of_regions])


def test_a_region_that_is_missing_where_the_place_is_known_is_no_contradiction():
    given = Within({"place": "region"}, [["N1", "North"], ["N2", "North"], ["S1", "South"]])
    schema = Schema(COLUMNS, constraints=[given])
    of_places = counts({"N1": 5, "N2": 6, "S1": 9}, "place")
    assert encoded([of_places, counts({"North": 10, "South": 9, None: 1}, "region")], schema)
    with refuses("region South has 9 rows in totals 2 .region.*at most 8|South.*10"):
        encoded([of_places, counts({"North": 9, "South": 10, None: 1}, "region")], schema)


def test_totals_of_both_columns_say_where_places_lie():
    (within,) = Totals.read(BY_PLACE, PLACES).complete(PLACES, read_columns(PLACES)).constraints
    assert within.rows == (("N1", "North"), ("N2", "North"), ("S1", "South"))
    with refuses("place 'N1' lies in 'North' and in 'South'"):
        plan(PLACES, totals=counts({("N1", "North"): 1, ("N1", "South"): 1}, "place", "region"))
    with refuses("in which 'region' each 'place' lies is not given"):
        plan(PLACES, totals=BY_SEX)
    with refuses("in which 'region' each 'place' lies is not given"):
        plan(PLACES)
    with refuses("does not say in which 'region' place 'S1' lies"):
        plan(PLACES, totals=counts({("N1", "North"): 1, ("N2", "North"): 1}, "place", "region"))


def test_a_count_in_a_structural_zero_contradicts_the_schema():
    forbidden = Schema(COLUMNS, constraints=[Forbidden({"region": "North", "sex": "M"})])
    with refuses() as error:
        plan(forbidden, totals=BY_SEX)
    assert str(error.value) == (
        "totals 1 (region x sex) contradicts the schema: region North, sex M has 4 rows,"
        " and constraints allow none"
    )
    of_sex, of_region = counts({"F": 5, "M": 15}, "sex"), counts({"North": 6, "South": 14}, "region")
    with refuses("region North has 6 rows in totals 2 .region., and by totals 1 .sex. and the constraints"):
        plan(forbidden, totals=[of_sex, of_region])


COINS = Schema({name: Categorical([0, 1], nullable=False) for name in "abc"})


def coins(first, second, *cells):
    places = [(a, b) for a in (0, 1) for b in (0, 1)]
    return counts(dict(zip(places, cells, strict=True)), first, second)


def test_three_tables_that_agree_two_by_two_have_no_table_in_common():
    alike, unlike = (5, 0, 0, 5), (0, 5, 5, 0)
    tables = [coins("a", "b", *alike), coins("b", "c", *alike), coins("a", "c", *unlike)]
    with refuses() as error:
        plan(COINS, totals=tables)
    assert str(error.value) == (
        "totals contradict each other: a 0, c 0 has 0 rows in totals 3 (a x c), and by totals 1 (a x b) and"
        " totals 2 (b x c) it has at least 5"
    )
    for first, second in ((0, 1), (0, 2), (1, 2)):
        encoded([tables[first], tables[second]], COINS)
    more = Schema({**COINS.columns, "d": SEX, "e": SEX})
    beside = [counts({("F", "M"): 10}, "d", "e"), counts({(0, "F"): 5, (1, "F"): 5}, "a", "d")]
    with refuses("totals 5 .a x c., and by totals 2 .a x b. and totals 4 .b x c. it has at least 5"):
        plan(more, totals=[beside[0], tables[0], beside[1], tables[1], tables[2]])


def test_counts_that_only_fractions_of_rows_have_are_refused():
    odd = Schema(
        COINS.columns,
        constraints=[
            Forbidden(dict(zip("abc", cell, strict=True)))
            for cell in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1))
        ],
    )
    once = [counts({0: 1, 1: 1}, name) for name in "abc"]
    with refuses("only fractions of rows have all counts of totals 1 .a., totals 2 .b. and totals 3 .c."):
        plan(odd, totals=once)
    twice = [counts({0: 2, 1: 2}, name) for name in "abc"]
    assert encoded(twice, odd).total == 4


def test_two_tables_that_agree_have_a_table_in_common_however_large_it_is():
    size = 300
    wide = Schema({name: Categorical([*range(size)], nullable=False) for name in "abc"})
    first, second = (
        counts({(code, code): 1 for code in range(size)}, *names) for names in (("a", "b"), ("b", "c"))
    )
    assert encoded([first, second], wide).total == size


def test_texts_of_a_file_are_values_of_the_type_of_the_private_column(tmp_path):
    table = pd.DataFrame({"code": pd.Series([101, 102], dtype="Int64"), "old": [True, False]})
    file = written(tmp_path, "code,old,n\n102,true,3\n101,False,2\n")
    schema = Schema({"code": Categorical(), "old": Categorical()})
    planned = plan(table, schema=schema, totals=file)
    assert planned.to_find == ()
    assert planned.sizes == {"code": 3, "old": 2}
    with refuses("column 'code': has texts, and the private column has numbers"):
        plan(table, schema=schema, totals=written(tmp_path, "code,n\nA,3\n"))


@pytest.mark.slow
def test_a_run_reads_totals_of_files_and_never_shows_its_own_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    generator = np.random.default_rng(0)
    place = generator.choice(["N1", "N2", "S1"], 400)
    table = pd.DataFrame({"region": np.where(place == "S1", "South", "North"), "place": place})
    table["sex"] = generator.choice(["F", "M"], 400)
    table["age"] = generator.integers(18, 91, 400)
    table.to_csv("people.csv", index=False)
    Path("people.yaml").write_text(to_yaml(PLACES))
    Path("known").mkdir()
    BY_SEX.assign(count=[60, 40, 30, 70]).to_csv("known/sex.csv", index=False)
    BY_PLACE.assign(count=[50, 50, 100]).to_parquet("known/places.parquet")
    command = ("synth", "people.csv", "made.csv", "--epsilon", 1, "--schema", "people.yaml")
    done = run(capsys, *command, "--totals", "known", "--ledger", "ledger.json")
    assert done.code == 0
    assert "made.csv: 200 rows (as in the known totals), 4 columns" in done.out
    made = pd.read_csv("made.csv")
    assert made.groupby(["region", "sex"]).size().tolist() == [60, 40, 30, 70]
    assert made.groupby(["place", "region"]).size().to_dict() == {
        ("N1", "North"): 50,
        ("N2", "North"): 50,
        ("S1", "South"): 100,
    }
    inputs = json.loads(Path("ledger.json").read_text())["public_inputs"]
    assert [fact.split(" (SHA-256 ")[0] for fact in inputs if fact.startswith("totals")] == [
        "totals 'places.parquet' (place x region) of 3 cells of 200 rows",
        "totals 'sex.csv' (region x sex) of 4 cells of 200 rows",
    ]
    twice = run(capsys, *command, "--totals", "known/sex.csv", "--totals", "people.csv", "--force")
    assert twice.code == 2
    assert "totals 'people.csv': no column has counts" in twice.err
    over = run(capsys, *command, "--totals", "known", "--ledger", "known/sex.csv", "--force")
    assert over.code == 2
    planned = run(capsys, "plan", "people.yaml", "--epsilon", 1, "--totals", "known")
    assert "totals 'sex.csv' (region x sex) is known" in planned.out


@pytest.mark.slow
@pytest.mark.parametrize("width", [1000, 20_000])
def test_bands_of_a_wide_column_are_met(width):
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"pay": generator.gamma(2, 2000, 2000).round().clip(0, 100_000)})
    table["sex"] = np.where(generator.random(2000) < table["pay"] / 8000, "M", "F")
    schema = Schema({"pay": Numerical(0, 100_000, integer=True), "sex": SEX})
    low = (table["pay"] // width * width).astype(int)
    bands = low.astype(str) + "-" + (low + width - 1).astype(str)
    known = table.assign(pay=bands).groupby(["sex", "pay"]).size().reset_index(name="count")
    made = PrivSyn(1.0, schema=schema, totals=known, seed=0).fit(table).sample()
    of_bands = made.groupby(["sex", made["pay"] // width * width]).size()
    assert of_bands.tolist() == table.groupby(["sex", low]).size().tolist()


def test_years_of_a_long_time_are_bands_of_days():
    days = Schema({"day": Datetime("2015-01-01", "2024-12-31", nullable=False)})
    ends = pd.date_range("2015-01-01", "2025-01-01", freq="YS")
    years = {pd.Interval(*pair, closed="left"): number for number, pair in enumerate(pairwise(ends), 1)}
    (table,) = encoded(counts(years, "day"), days).tables
    assert table.marginal.counts.tolist() == list(range(1, 11))
    in_days = encoded(counts({pd.Timestamp("2020-02-29"): 7}, "day"), days).tables[0]
    assert sorted(in_days.marginal.counts.tolist())[-2:] == [0, 7]
