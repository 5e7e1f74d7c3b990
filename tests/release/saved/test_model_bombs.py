"""A model from elsewhere that is made to fill the memory is refused in one line, before it does.

Each bomb is a small file that would take more than a hundred megabytes. `tracemalloc` counts what Python and
NumPy allocate while it is loaded.
"""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from copy import deepcopy

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsyn import Categorical, Database, Datetime, InputError, Numerical, PrivSyn, Schema, Table, load
from privsyn.release.saved import arrays as limits
from privsyn.release.saved.arrays import LEAST_MEMORY
from privsyn.table.encoding.dtypes import dtype_text, parse_dtype

MANY = 2**24  # doubles: 134 MB
ALLOWED = 1.2 * LEAST_MEMORY
"""Bytes. The estimate of a codec's memory is a rough one."""


@pytest.fixture(scope="module")
def parts():
    """The JSON and the arrays of a small model."""
    schema = Schema(
        {"a": Numerical(0, 9), "b": Categorical(["x", "y"]), "day": Datetime("2020-01-01", "2020-12-31")}
    )
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(60), "D")
    frame = pd.DataFrame({"a": np.arange(60) % 10, "b": ["x", "y"] * 30, "day": days})
    packed = PrivSyn(9.0, 1e-6, schema, seed=1).fit(frame).release_.packed()
    with zipfile.ZipFile(io.BytesIO(packed)) as file:
        text, arrays = json.loads(file.read("release.json")), file.read("arrays.npz")
    return text, dict(np.load(io.BytesIO(arrays)))


def zeros(count, dtype="<f8"):
    """The bytes of an .npy of so many zeros, in pieces: the whole is never in memory here."""
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": dtype, "fortran_order": False, "shape": (count,)})
    yield head.getvalue()
    size = count * np.dtype(dtype).itemsize
    for start in range(0, size, 2**20):
        yield bytes(min(2**20, size - start))


def npy(array):
    member = io.BytesIO()
    np.save(member, array)
    yield member.getvalue()


def packed(members, compression=zipfile.ZIP_DEFLATED):
    """A zip of members, each an iterable of pieces."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", compression) as file:
        for name, pieces in members:
            with file.open(name, "w", force_zip64=True) as member:
                for piece in pieces:
                    member.write(piece)
    return whole.getvalue()


def model(text, arrays, outer=zipfile.ZIP_STORED, more=()):
    """A model file; `arrays` maps names to NumPy arrays or to pieces of bytes."""
    members = [(f"{name}.npy", npy(a) if isinstance(a, np.ndarray) else a) for name, a in arrays.items()]
    written = [("release.json", [json.dumps(text).encode()]), ("arrays.npz", [packed(members)]), *more]
    return packed(written, outer)


def changed(text, name="rows", **values):
    """The text of a model with other values of a table."""
    return text | {"tables": text["tables"] | {name: text["tables"][name] | values}}


def with_columns(text, columns, dtype, name="rows"):
    codec = text["tables"][name]["codec"]
    schema = codec["schema"] | {"columns": columns}
    return changed(text, name, codec=codec | {"schema": schema, "dtypes": dict.fromkeys(columns, dtype)})


def claiming(content, name, size):
    """The model with another size in the directory of the arrays: `size` bytes for the member `name`."""
    at = content.rindex(name.encode()) - 46  # the entry of the inner directory, which stands before its end
    return content[: at + 24] + int(size).to_bytes(4, "little") + content[at + 28 :]


BOMBS = {
    "compressed twice": lambda text, arrays: model(
        text, arrays | {"0.one_way": zeros(MANY)}, zipfile.ZIP_DEFLATED
    ),
    "the text compressed": lambda text, arrays: packed(
        [("release.json", (b" " * 2**20 for _ in range(130))), ("arrays.npz", [b""])]
    ),
    "an array too long": lambda text, arrays: model(text, arrays | {"0.one_way": zeros(MANY)}),
    "an array that nobody asks for": lambda text, arrays: model(text, arrays | {"more": zeros(MANY)}),
    "a file that nobody asks for": lambda text, arrays: model(text, arrays, more=[("more", zeros(2**10))]),
    "a shape without its numbers": lambda text, arrays: model(
        text, arrays | {"0.one_way": [next(zeros(MANY))]}
    ),
    "an array of texts": lambda text, arrays: model(text, arrays | {"0.one_way": zeros(2, "<U20000000")}),
    "sizes that agree on a huge table": lambda text, arrays: model(
        changed(text, merged={"sizes": [MANY, 3, 2], "ordered": [0, 0, 0]}),
        arrays | {"0.one_way": zeros(MANY)},
    ),
    "bins": lambda text, arrays: model(
        with_columns(
            text,
            {f"c{j}": {"kind": "numerical", "low": 0.0, "high": 1.0, "bins": 2**20} for j in range(20)},
            "float64",
        ),
        arrays,
    ),
    "many tables of no cell": lambda text, arrays: model(
        changed(text, marginals=[[]] * 60_000, errors=[0.0] * 60_003), arrays
    ),
    "many tables of two columns": lambda text, arrays: model(
        changed(text, marginals=[["b", "day"]] * 45_000, errors=[0.0] * 45_003), arrays
    ),
    "a dtype of long texts": lambda text, arrays: model(
        with_columns(text, {"c": {"kind": "categorical", "values": ["x", "y"]}}, "U20000000"), arrays
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_in_one_line_before_it_takes_memory(bomb, parts, tmp_path):
    path = tmp_path / "m.privsyn"
    path.write_bytes(BOMBS[bomb](*parts))
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as refused:
            load(path)
        assert tracemalloc.get_traced_memory()[1] < ALLOWED
    finally:
        tracemalloc.stop()
    assert str(refused.value).startswith(f"{path}: ")
    assert "\n" not in str(refused.value)
    assert path.stat().st_size < 2**20


HIDDEN = {
    "two arrays of one name": lambda text, arrays: packed(
        [
            ("release.json", [json.dumps(text).encode()]),
            (
                "arrays.npz",
                [packed([("0.groups.npy", [b"hidden"]), *((f"{n}.npy", npy(a)) for n, a in arrays.items())])],
            ),
        ],
        zipfile.ZIP_STORED,
    ),
    "another key": lambda text, arrays: model(text | {"more": "hidden"}, arrays),
    "another key of a table": lambda text, arrays: model(changed(text, more="hidden"), arrays),
    "links of a table without a parent": lambda text, arrays: model(changed(text, links={}), arrays),
    "an array of another table": lambda text, arrays: model(text, arrays | {"1.one_way": np.zeros(3)}),
    "an array by columns that is not there": lambda text, arrays: model(
        changed(text, by_columns=["hidden"]), arrays
    ),
    "a table in groups that is not there": lambda text, arrays: model(changed(text, grouped=[99]), arrays),
    "no list of tables": lambda text, arrays: model(changed(text, grouped="hidden"), arrays),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("hidden", HIDDEN)
def test_what_would_not_be_read_is_refused(hidden, parts, tmp_path):
    (tmp_path / "m.privsyn").write_bytes(model(*parts))
    load(tmp_path / "m.privsyn")
    (tmp_path / "m.privsyn").write_bytes(HIDDEN[hidden](*parts))
    with pytest.raises(InputError, match="is no whole model"):
        load(tmp_path / "m.privsyn")


def test_a_model_that_would_take_much_memory_says_so(parts, tmp_path):
    (tmp_path / "m.privsyn").write_bytes(BOMBS["an array too long"](*parts))
    with pytest.raises(InputError, match="needs 134 MB of memory: not a release that privsyn saved"):
        load(tmp_path / "m.privsyn")


@settings(max_examples=40, derandomize=True, database=None, deadline=None)
@given(
    size=st.sampled_from([0, 1, 2**16, 2**31 - 1, 2**32 - 2]), name=st.sampled_from(["0.one_way", "0.shares"])
)
def test_a_size_that_lies_is_refused(size, name, parts, tmp_path_factory):
    path = tmp_path_factory.mktemp("lying") / "m.privsyn"
    text, arrays = parts
    honest = model(text, arrays)
    path.write_bytes(honest)
    load(path)
    path.write_bytes(claiming(honest, f"{name}.npy", size))
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            load(path)
        assert tracemalloc.get_traced_memory()[1] < ALLOWED
    finally:
        tracemalloc.stop()


def test_what_compresses_too_well_is_written_so_that_it_loads(monkeypatch, tmp_path):
    """A release of which a reader would believe that it was made to fill the memory."""
    frame = pd.DataFrame({"a": np.zeros(50)})
    model = PrivSyn(9.0, 1e-6, Schema({"a": Numerical(0.0, 1.0)}), seed=1).fit(frame)
    model.save(tmp_path / "small.privsyn")
    monkeypatch.setattr(limits, "LEAST_MEMORY", 0)
    monkeypatch.setattr(limits, "MOST_RATIO", 10)
    with pytest.raises(InputError, match="MB of memory: not a release"):
        load(tmp_path / "small.privsyn")
    model.save(tmp_path / "large.privsyn")
    pd.testing.assert_frame_equal(load(tmp_path / "large.privsyn").sample(9, seed=1), model.sample(9, seed=1))
    for ratio in np.linspace(10.8, 11.2, 41):  # the writer knows the limit to the byte
        monkeypatch.setattr(limits, "MOST_RATIO", ratio)
        model.save(tmp_path / "large.privsyn")


# --- what a file may hold ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def linked():
    """The JSON and the arrays of a model of two tables and a public one."""
    zones = pd.DataFrame({"zone": ["north", "south", "east"], "area": [1.0, 2.0, 3.0]})
    colours = Schema({"colour": Categorical(["blue", "red"])})
    tables = {
        "homes": Table(colours, key="home"),
        "trips": Table(colours, parent="homes", link="home", lookups={"zone": "zones"}, order="turn"),
        "zones": Table(public=zones, key="zone"),
    }
    rng = np.random.default_rng(0)
    homes = pd.DataFrame({"home": range(60), "colour": rng.choice(["blue", "red"], 60)})
    trips = pd.DataFrame({"home": np.repeat(range(60), 3), "turn": range(180)})
    trips = trips.assign(
        colour=np.repeat(homes["colour"], 3).to_numpy(), zone=["north", "south", "south"] * 60
    )
    whole = io.BytesIO()
    PrivSyn(50.0, 1e-6, Database(tables), seed=1).fit({"homes": homes, "trips": trips}).save(whole)
    with zipfile.ZipFile(whole) as file:
        text, arrays = json.loads(file.read("release.json")), file.read("arrays.npz")
    return text, dict(np.load(io.BytesIO(arrays)))


def refusal(content):
    """Return the message with which a model is refused, and see that it takes no memory."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as refused:
            load(io.BytesIO(content))
        assert tracemalloc.get_traced_memory()[1] < ALLOWED
    finally:
        tracemalloc.stop()
    assert "\n" not in str(refused.value)
    return str(refused.value)


DTYPES = [
    "S1000000000",
    "U300000000",
    "V1000000000",
    "f8,f8",
    "(100000000,)f8",
    "datetime64[ns, dateutil//dev/zero]",
]


@pytest.mark.parametrize(
    "dtype", [*DTYPES, "complex128", "float128", "period[D]", "M8[1000000s]", "", 3, ["int8"]]
)
@pytest.mark.parametrize("place", ["look-up cells", "key", "column"])
def test_only_a_dtype_that_is_written_is_read(dtype, place, linked, parts):
    if place == "column":
        text, arrays = parts
        codec = text["tables"]["rows"]["codec"]
        text = changed(text, codec=codec | {"dtypes": codec["dtypes"] | {"b": dtype}})
    else:
        text, arrays = deepcopy(linked[0]), linked[1]
        if place == "key":
            if dtype == "":
                pytest.skip("a key may have no dtype")
            text["tables"]["trips"]["columns"]["home"] = dtype
        else:
            text["database"]["zones"]["public"]["area"]["dtype"] = dtype
    assert "is no whole model" in refusal(model(text, arrays))


def test_every_dtype_of_a_column_is_written_and_read():
    kinds = (
        "int8 uint64 float16 float64 bool object str Int8 UInt32 Float64 boolean category >i4 datetime64[ms]"
    )
    zones = [
        "UTC",
        "Asia/Tokyo",
        "+05:30",
        "Etc/GMT+5",
        "America/Argentina/Buenos_Aires",
        "America/Port-au-Prince",
    ]
    zoned = [f"datetime64[us, {zone}]" for zone in zones]
    for kind in [*kinds.split(), "timedelta64[ns]", "string[python]", "string[pyarrow]", *zoned]:
        dtype = pd.api.types.pandas_dtype(kind)
        assert parse_dtype(dtype_text(dtype)) == dtype
    units = [pa.timestamp("s"), pa.timestamp("us", "Asia/Tokyo"), pa.duration("ms"), pa.time64("ns")]
    for kind in [
        *units,
        pa.int8(),
        pa.float16(),
        pa.decimal128(38, -3),
        pa.large_string(),
        pa.date64(),
        pa.null(),
    ]:
        assert parse_dtype(dtype_text(pd.ArrowDtype(kind))) == pd.ArrowDtype(kind)


WRONG_ARRAYS = {
    "a group below 0": lambda of: np.where(np.arange(len(of)) == 0, -1, of),
    "a group too large": lambda of: np.where(np.arange(len(of)) == 0, 2**31 - 2, of),
    "groups that are no whole numbers": lambda of: of + 0.5,
    "groups as real numbers": lambda of: of.astype(np.float64),
    "groups of fewer codes": lambda of: of[:-1],
    "groups in rows and columns": lambda of: of[:, None],
    "no groups": lambda of: of[:0],
    "groups of text": lambda of: of.astype("U20"),
}
WRONG_COUNTS = {
    "a cell that is none": np.nan,
    "an infinite cell": np.inf,
    "a negative cell": -1.0,
}


def with_links(linked, kind, change):
    """Return a model with each array of a kind changed that links the rows of the trips."""
    text, arrays = linked
    names = [name for name in arrays if name.rpartition("_")[0] == f"1.links.{kind}"]
    assert names
    return model(text, arrays | {name: change(arrays[name]) for name in names})


@pytest.mark.parametrize("kind", ["context", "previous"])
@pytest.mark.parametrize("wrong", WRONG_ARRAYS)
def test_groups_of_links_are_codes(kind, wrong, linked):
    assert load(io.BytesIO(with_links(linked, kind, np.copy))).sample(5, seed=1)
    assert "is no whole model" in refusal(with_links(linked, kind, WRONG_ARRAYS[wrong]))


@pytest.mark.parametrize("kind", ["table", "measured", "noise"])
@pytest.mark.parametrize("wrong", WRONG_COUNTS)
def test_counts_of_links_are_numbers(kind, wrong, linked):
    if kind == "measured" and wrong == "a negative cell":
        pytest.skip("noise makes such counts")

    def change(array):
        array = array.astype(np.float64)
        array.flat[0] = WRONG_COUNTS[wrong]
        return array

    assert "is no whole model" in refusal(with_links(linked, kind, change))


@pytest.mark.parametrize("kind", ["one_way", "marginal", "heard", "noise", "shares"])
@pytest.mark.parametrize("wrong", ["a cell that is none", "an infinite cell"])
def test_arrays_of_a_table_are_numbers(kind, wrong, parts):
    text, arrays = parts
    array = arrays[f"0.{kind}"].copy()
    array.flat[0] = WRONG_COUNTS[wrong]
    assert "is no whole model" in refusal(model(text, arrays | {f"0.{kind}": array}))


@pytest.mark.parametrize("wrong", WRONG_ARRAYS)
def test_groups_of_a_table_are_codes(wrong, parts):
    text, arrays = parts
    assert refusal(model(text, arrays | {"0.groups": WRONG_ARRAYS[wrong](arrays["0.groups"])}))


@pytest.mark.parametrize("key", ["total", "total_variance"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_total_is_a_number(key, value, parts):
    text, arrays = parts
    assert "is no whole model" in refusal(model(changed(text, **{key: value}), arrays))


def test_members_that_lie_upon_each_other_are_refused(parts):
    """Each name of the directory leads to the same bytes: a small file that would fill the memory."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_STORED) as file:
        file.writestr("release.json", b" " * 2**20)
        first = file.getinfo("release.json")
        for place in range(2000):
            copied = zipfile.ZipInfo(f"m{place:07d}.json")
            copied.header_offset, copied.CRC = first.header_offset, first.CRC
            copied.file_size = copied.compress_size = first.file_size
            file.filelist.append(copied)
            file.NameToInfo[copied.filename] = copied
    assert "is no whole model" in refusal(whole.getvalue())


UNREGISTERED = {
    "method 'mine'": lambda text, name: changed(text, name, method="mine"),
    "column kind 'grade'": lambda text, name: with_columns(text, {"c": {"kind": "grade"}}, "int64", name),
    "constraint kind 'even'": lambda text, name: with_constraint(text, name),
}


def with_constraint(text, name):
    codec = text["tables"][name]["codec"]
    schema = codec["schema"] | {"constraints": [{"kind": "even", "columns": ["a"]}]}
    return changed(text, name, codec=codec | {"schema": schema})


@pytest.mark.parametrize("missing", UNREGISTERED)
def test_a_model_of_an_extension_names_what_is_not_registered(missing, parts, linked):
    for (text, arrays), name in ((parts, "rows"), (linked, "homes"), (linked, "trips")):
        said = refusal(model(UNREGISTERED[missing](text, name), arrays))
        assert f"needs the {missing}, which is not registered: import the module that registers it" in said


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"parent": "homes"', '"parent": "trips"'),
        ('"link": "home"', '"link": 3'),
        ('"single": null', '"single": "cars"'),
        ('"single": null', '"single": "homes"'),
    ],
)
def test_a_file_whose_parts_do_not_fit_together_is_refused(old, new, linked):
    text, arrays = linked
    assert old in json.dumps(text)
    refusal(model(json.loads(json.dumps(text).replace(old, new)), arrays))


def test_a_model_names_no_file_of_a_public_table_to_be_read(linked, tmp_path):
    (tmp_path / "zones.csv").write_text("zone,area\nnorth,1.0\nsouth,2.0\neast,3.0\n")
    text, arrays = deepcopy(linked[0]), linked[1]
    assert "file" not in json.dumps(text["database"])
    wrong = (str(tmp_path / "zones.csv"), None, 3, [], {}, {"zone": {"dtype": "int64", "cells": [1, 1]}})
    for text["database"]["zones"]["public"] in wrong:
        assert "is no whole model" in refusal(model(text, arrays))


def test_tables_are_read_after_their_parents(linked):
    text, arrays = linked
    trips, homes = (text["tables"][name] for name in ("trips", "homes"))
    assert "is no whole model" in refusal(model(text | {"tables": {"trips": trips, "homes": homes}}, arrays))


def test_three_linked_tables_hold_their_ledger_once(linked):
    text, _ = linked
    assert json.dumps(text).count('"spends"') == 1
