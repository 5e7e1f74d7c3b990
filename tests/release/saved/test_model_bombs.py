"""A model from elsewhere that is made to fill the memory is refused in one line, before it does.

Each bomb is a small file that would take more than a hundred megabytes. `tracemalloc` counts what Python and
NumPy allocate while it is loaded.
"""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privsyn import Categorical, Datetime, InputError, Numerical, PrivSyn, Schema, load
from privsyn.release.saved import arrays as limits
from privsyn.release.saved import file_format as packing
from privsyn.release.saved.arrays import LEAST_MEMORY

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
    packed = packing.pack(_parts_of(PrivSyn(9.0, 1e-6, schema, seed=1).fit(frame).release_))
    with zipfile.ZipFile(io.BytesIO(packed)) as file:
        text, arrays = json.loads(file.read("release.json")), file.read("arrays.npz")
    return text, dict(np.load(io.BytesIO(arrays)))


def _parts_of(release):
    return packing.Parts(release.codec, release.fitted, release.ledger, release.method, release.form)


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


def with_columns(text, columns, dtype):
    codec = text["codec"]
    schema = codec["schema"] | {"columns": columns}
    return text | {"codec": codec | {"schema": schema, "dtypes": dict.fromkeys(columns, dtype)}}


def claiming(content, name, size):
    """The model with another size in the directory of the arrays: `size` bytes for the member `name`."""
    at = content.rindex(name.encode()) - 46  # the entry of the inner directory, which stands before its end
    return content[: at + 24] + int(size).to_bytes(4, "little") + content[at + 28 :]


BOMBS = {
    "compressed twice": lambda text, arrays: model(
        text, arrays | {"one_way": zeros(MANY)}, zipfile.ZIP_DEFLATED
    ),
    "the text compressed": lambda text, arrays: packed(
        [("release.json", (b" " * 2**20 for _ in range(130))), ("arrays.npz", [b""])]
    ),
    "an array too long": lambda text, arrays: model(text, arrays | {"one_way": zeros(MANY)}),
    "an array that nobody asks for": lambda text, arrays: model(text, arrays | {"more": zeros(MANY)}),
    "a file that nobody asks for": lambda text, arrays: model(text, arrays, more=[("more", zeros(2**10))]),
    "a shape without its numbers": lambda text, arrays: model(
        text, arrays | {"one_way": [next(zeros(MANY))]}
    ),
    "an array of texts": lambda text, arrays: model(text, arrays | {"one_way": zeros(2, "<U20000000")}),
    "sizes that agree on a huge table": lambda text, arrays: model(
        text | {"merged": {"sizes": [MANY, 3, 2], "ordered": [0, 0, 0]}}, arrays | {"one_way": zeros(MANY)}
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
        text | {"marginals": [[]] * 60_000, "errors": [0.0] * 60_003}, arrays
    ),
    "many tables of two columns": lambda text, arrays: model(
        text | {"marginals": [["b", "day"]] * 45_000, "errors": [0.0] * 45_003}, arrays
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
                [packed([("groups.npy", [b"hidden"]), *((f"{n}.npy", npy(a)) for n, a in arrays.items())])],
            ),
        ],
        zipfile.ZIP_STORED,
    ),
    "another key": lambda text, arrays: model(text | {"more": "hidden"}, arrays),
    "an array by columns that is not there": lambda text, arrays: model(
        text | {"by_columns": ["hidden"]}, arrays
    ),
    "a table in groups that is not there": lambda text, arrays: model(text | {"grouped": [99]}, arrays),
    "no list of tables": lambda text, arrays: model(text | {"grouped": "hidden"}, arrays),
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
@given(size=st.sampled_from([0, 1, 2**16, 2**31 - 1, 2**32 - 2]), name=st.sampled_from(["one_way", "shares"]))
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


def test_no_file_of_version_0_1_0_is_near_the_limit(monkeypatch):
    monkeypatch.setattr(limits, "LEAST_MEMORY", 0)
    models = list((Path(__file__).parents[2] / "models").glob("*.privsyn"))
    assert models
    for path in models:
        load(path)
