"""The file of a release holds nothing of the table, is read back the same, and is whole or refused."""

from __future__ import annotations

import hashlib
import io
import json
import sys
import zipfile
import zlib
from contextlib import suppress
from dataclasses import replace
from math import nan
from pathlib import Path

import fsspec
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.dataset import dataset
from refusals import refuses
from small_releases import CANARY, CANARY_NUMBER, both

from privsyn import Categorical, InputError, Numerical, PrivSyn, Release, Schema, load
from privsyn.marginals.marginal import Marginal
from privsyn.release.saved.arrays import is_by_columns, kind_of, named_arrays
from privsyn.release.saved.file_format import FORMAT


@pytest.fixture(scope="module")
def saved(releases, tmp_path_factory):
    """The bytes of each release's file."""
    path = tmp_path_factory.mktemp("releases") / "it.privsyn"
    contents = {}
    for method, release in releases.items():
        release.save(path)
        contents[method] = path.read_bytes()
    return contents


def parts(content):
    """The JSON and the arrays of a file."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        arrays = np.load(io.BytesIO(file.read("arrays.npz")), allow_pickle=False)
        return json.loads(file.read("release.json")), dict(arrays)


def write(path, text, arrays, **more):
    """A file of these parts, sound as a zip whatever they say."""
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("release.json", text if isinstance(text, str | bytes) else json.dumps(text))
        file.writestr("arrays.npz", more.get("packed", packed.getvalue()))


def refusal(path):
    """What `load` says against a file: one line that names it."""
    with refuses() as refused:
        load(path)
    assert str(path) in str(refused.value)
    return str(refused.value)


# --- open files ---------------------------------------------------------------------------------------------


def test_a_release_is_saved_to_an_open_file_and_loaded_from_one(releases, saved, tmp_path):
    for method, release in releases.items():
        file = io.BytesIO()
        release.save(file)
        assert file.getvalue() == saved[method]
        file.seek(0)
        assert load(file).sample(9, seed=0).equals(release.sample(9, seed=0))
        with (tmp_path / "it.privsyn").open("wb") as opened:
            release.save(opened)
        with (tmp_path / "it.privsyn").open("rb") as opened:
            assert load(opened).packed() == saved[method]


def test_a_file_that_is_open_for_text_or_holds_something_else_is_refused(releases, tmp_path):
    release = next(iter(releases.values()))
    with (tmp_path / "it.txt").open("w") as text, pytest.raises(InputError, match="wb"):
        release.save(text)
    with (tmp_path / "it.txt").open() as text, pytest.raises(InputError, match="rb"):
        load(text)
    with pytest.raises(InputError, match="the open file: is no model"):
        load(io.BytesIO(b"a,b"))
    for other in ([1], 5, None):
        with pytest.raises(InputError, match="give the path of a file"):
            release.save(other)


# --- URLs, and the digest -----------------------------------------------------------------------------------


def test_a_release_is_saved_behind_a_url_and_loaded_from_it(releases, saved):
    release = releases["default"]
    release.save("memory://models/it.privsyn")
    assert load("memory://models/it.privsyn").packed() == saved["default"]
    fsspec.filesystem("memory").pipe("models/other.privsyn", b"a,b")
    with refuses("^memory://models/other.privsyn: is no model"):
        load("memory://models/other.privsyn")


def test_a_url_that_cannot_be_opened_is_refused_in_one_line(releases, monkeypatch):
    with refuses("memory://models/none.privsyn: cannot be read (FileNotFoundError)"):
        load("memory://models/none.privsyn")
    with refuses("nowhere://it.privsyn: cannot be written (ValueError)"):
        releases["default"].save("nowhere://it.privsyn")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with refuses("pip install fsspec"):
        load("memory://models/it.privsyn")


def test_a_table_behind_a_url_is_refused_and_a_data_set_behind_one_is_read(releases):
    with refuses(r"pyarrow.dataset.dataset\(URL\)"):
        PrivSyn(1.0, 1e-6).fit("memory://table.parquet")
    with refuses(r"to_parquet\(URL\)"):
        releases["default"].sample_to("memory://table.parquet")
    storage = fsspec.filesystem("memory")
    with storage.open("table.parquet", "wb") as file:
        pd.DataFrame({"a": [0, 1] * 100}).to_parquet(file)
    data = dataset("table.parquet", filesystem=storage, format="parquet")
    assert list(PrivSyn(1.0, 1e-6, Schema({"a": Categorical([0, 1])})).fit(data).sample(9)) == ["a"]


@both
def test_the_digest_is_that_of_the_file(method, releases, saved):
    digest = hashlib.sha256(saved[method]).hexdigest()
    assert releases[method].digest == load(io.BytesIO(saved[method])).digest == digest


# --- nothing of the table ----------------------------------------------------------------------------------


@both
def test_no_cell_that_the_schema_does_not_know_is_in_the_file(method, saved):
    with zipfile.ZipFile(io.BytesIO(saved[method])) as file:
        outer = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(io.BytesIO(outer["arrays.npz"])) as file:
        inner = {name: file.read(name) for name in file.namelist()}
    members = [saved[method], *outer.values(), *inner.values()]
    assert any(b"Ulm" in member for member in members)
    for member in members:
        assert CANARY.encode() not in member
        assert str(CANARY_NUMBER).encode() not in member
        for dtype in ("<i4", "<i8", "<f4", "<f8"):
            assert np.array(CANARY_NUMBER, dtype).tobytes() not in member


@both
def test_the_file_is_json_and_arrays_without_pickle(method, saved, releases):
    with zipfile.ZipFile(io.BytesIO(saved[method])) as file:
        assert file.namelist() == ["release.json", "arrays.npz"]
        assert {member.date_time for member in file.infolist()} == {(1980, 1, 1, 0, 0, 0)}  # no clock
    text, arrays = parts(saved[method])
    assert text["format"] == FORMAT
    assert {array.dtype.kind for array in arrays.values()} == {"i", "f"}
    sizes: dict[str, int] = {}  # of all tables, and not a number for each row
    for name, array in named_arrays(releases[method].fitted).items():
        kind = f"0.{kind_of(name)}"
        sizes[kind] = sizes.get(kind, 0) + array.size
    assert {name: array.shape for name, array in arrays.items()} == {k: (size,) for k, size in sizes.items()}


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.mkdir, (self.path,)


def test_code_that_a_file_brings_along_is_not_run(saved, tmp_path):
    text, arrays = parts(saved["default"])
    arrays["0.one_way"] = np.array([Trap(tmp_path / "sprung"), None], dtype=object)
    write(tmp_path / "m.privsyn", text, arrays)
    refusal(tmp_path / "m.privsyn")
    assert not (tmp_path / "sprung").exists()


# --- what is not a whole release ---------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_called_that(tmp_path):
    assert "no such file" in refusal(tmp_path / "m.privsyn")


@pytest.mark.parametrize(
    "content", [b"", b"age,city\n5,Ulm\n", b"PK\x03\x04", bytes(range(256)) * 9], ids=lambda c: str(c[:4])
)
def test_another_file_is_refused(content, tmp_path):
    (tmp_path / "m.privsyn").write_bytes(content)
    said = "is no whole model: it was cut short" if content[:2] == b"PK" else "is no model: give a file that"
    assert said in refusal(tmp_path / "m.privsyn")


def test_a_folder_is_refused(tmp_path):
    refusal(tmp_path)


def test_a_zip_of_something_else_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "m.privsyn", "w") as file:
        file.writestr("word/document.xml", "<w/>")
    refusal(tmp_path / "m.privsyn")


@both
def test_a_file_cut_short_is_refused_wherever_it_is_cut(method, saved, tmp_path):
    content = saved[method]
    for length in {*range(0, len(content), len(content) // 40), len(content) - 1, len(content) - 22}:
        (tmp_path / "m.privsyn").write_bytes(content[:length])
        refusal(tmp_path / "m.privsyn")


@settings(max_examples=60)
@given(data=st.data())
def test_a_file_with_a_changed_byte_is_refused_or_still_a_release(data, saved, tmp_path_factory):
    """Some bytes of a zip say nothing of its contents (dates, rights); all else is found out."""
    content = bytearray(saved["default"])
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("changed") / "m.privsyn"
    path.write_bytes(bytes(content))
    with suppress(InputError):
        assert load(path).packed() == saved["default"]


WHOLE = "the text itself"


def changed(text, keys, value):
    *way, last = keys
    inner = text
    for key in way:
        inner = inner[key]
    if value is WHOLE:
        del inner[last]
    else:
        inner[last] = value


WRONG_TEXT = [
    *(((key,), WHOLE) for key in ("format", "ledger", "database", "single", "tables")),
    (("database", "rows"), WHOLE),
    (("database",), {"rows": {}, "more": {}}),
    (("single",), "more"),
    (("single",), None),
    (("tables", "more"), {}),
    (("ledger", "promise", "epsilon"), 0.1),
    (("ledger", "accounting"), "trust"),
    (("ledger", "spends"), WHOLE),
    (("ledger",), {}),
]
WRONG_TABLE = [
    *(((key,), WHOLE) for key in ("method", "total", "codec", "merged", "marginals")),
    (("method",), "paper"),
    (("method",), None),
    *((("total",), value) for value in (0, -1, nan, 10**12, "many", None, [])),
    (("codec", "schema", "columns", "land", "values"), ["CH"]),
    (("codec", "schema", "columns", "city", "kind"), "numerical"),
    (("codec", "dtypes", "Länge"), "complex128"),
    (("codec", "dtypes"), {}),
    (("merged", "sizes"), [1, 2, 3]),
    (("merged", "sizes"), [2, 2]),
    (("merged", "ordered"), [99, 0, 0]),
    (("merged", "ordered"), WHOLE),
    (("marginals",), [["city", "shoe"]]),
    (("marginals",), [["city", "land"]] * 20),
    (("marginals",), [["city", "city"]]),
    (("marginals",), 5),
]


@pytest.mark.slow
@both
@pytest.mark.parametrize(
    ("keys", "value"),
    [*WRONG_TEXT, *((("tables", "rows", *keys), value) for keys, value in WRONG_TABLE)],
    ids=str,
)
def test_a_changed_field_is_refused(method, keys, value, saved, tmp_path):
    text, arrays = parts(saved[method])
    write(tmp_path / "m.privsyn", text, arrays)
    load(tmp_path / "m.privsyn")  # so it is the change that is refused
    changed(text, keys, value)
    write(tmp_path / "m.privsyn", text, arrays)
    refusal(tmp_path / "m.privsyn")


@pytest.mark.parametrize("text", ["", "[]", "5", "null", "{", "[" * 100_000, b"\xff\xfe"], ids=repr)
def test_a_text_that_is_no_release_is_refused(text, saved, tmp_path):
    write(tmp_path / "m.privsyn", text, parts(saved["default"])[1])
    refusal(tmp_path / "m.privsyn")


@pytest.mark.parametrize("version", [0, FORMAT - 1, FORMAT + 1, "1", None])
def test_a_release_of_another_version_is_called_that(version, saved, tmp_path):
    text, arrays = parts(saved["default"])
    write(tmp_path / "m.privsyn", text | {"format": version}, arrays)
    assert "another version of privsyn: fit again" in refusal(tmp_path / "m.privsyn")


def test_a_release_of_linked_tables_of_another_version_is_called_that(tmp_path):
    with zipfile.ZipFile(tmp_path / "m.privsyn", "w") as file:
        file.writestr("database.json", json.dumps({"format": 3, "only": None, "levels": {}, "tables": {}}))
    assert "another version of privsyn: fit again" in refusal(tmp_path / "m.privsyn")


def assert_same_arrays(one, other):
    """The same numbers, in the same order in memory: so sums are rounded alike."""
    one, other = named_arrays(one), named_arrays(other)
    assert list(one) == list(other)
    for name, array in one.items():
        assert np.array_equal(array, other[name])
        assert array.dtype == other[name].dtype
        assert is_by_columns(array) == is_by_columns(other[name])


@pytest.fixture(scope="module")
def smooth():
    """A release of two numbers, whose pair was measured in groups of codes."""
    rng = np.random.default_rng(0)
    low = rng.normal(50, 20, 4000).clip(0, 100)
    frame = pd.DataFrame({"low": low, "high": (low + rng.normal(0, 9, 4000)).clip(0, 100)})
    schema = Schema({name: Numerical(0.0, 100.0) for name in frame})
    release = PrivSyn(0.5, 1e-9, schema, seed=1).fit(frame).release_
    assert any(of.measured.grouping for of in release.fitted.certainties)
    return release


def test_a_file_holds_the_same_arrays(releases, smooth, tmp_path):
    for release in (*releases.values(), smooth):
        release.save(tmp_path / "m.privsyn")
        assert_same_arrays(load(tmp_path / "m.privsyn").fitted, release.fitted)


def test_an_array_by_columns_stays_one(releases, tmp_path):
    release = releases["default"]
    first, *others = release.fitted.marginals
    turned = Marginal(first.domain, np.asfortranarray(first.counts))
    assert is_by_columns(turned.counts)
    fitted = replace(release.fitted, marginals=(turned, *others))
    turned = Release.of_table(replace(release.table(), fitted=fitted))
    turned.save(tmp_path / "m.privsyn")
    assert_same_arrays(load(tmp_path / "m.privsyn").fitted, turned.fitted)


@pytest.mark.parametrize("wrong", [[], [0], [[1]], 5, None])
def test_groups_of_other_tables_are_refused(wrong, smooth, tmp_path):
    smooth.save(tmp_path / "m.privsyn")
    text, arrays = parts((tmp_path / "m.privsyn").read_bytes())
    assert text["tables"]["rows"]["grouped"] not in (wrong, [])
    text["tables"]["rows"]["grouped"] = wrong
    write(tmp_path / "m.privsyn", text, arrays)
    refusal(tmp_path / "m.privsyn")


@pytest.mark.parametrize("form", [{"lookup": "t.csv"}, {"kind": "lookup", "table": "t.csv"}])
def test_a_model_cannot_name_a_file_to_be_read(form, saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, arrays = parts(saved["default"])
    schema = text["tables"]["rows"]["codec"]["schema"]
    name, other = list(schema["columns"])[:2]
    schema["constraints"] = [form | {"by": [name], "gives": [other]}]
    opened = []
    original = Path.open

    def watched(self, *args, **kwargs):
        opened.append(self.name)
        return original(self, *args, **kwargs)

    write(tmp_path / "m.privsyn", text, arrays)
    Path("t.csv").write_text(f"{name},{other}\n")
    monkeypatch.setattr(Path, "open", watched)
    refusal(tmp_path / "m.privsyn")
    assert "t.csv" not in opened


WRONG_ARRAYS = {
    "negative": lambda array: (
        array + np.where(np.arange(array.size) == 0, -999, 999 / (array.size - 1)).reshape(array.shape)
    ),
    "not a number": lambda array: array * nan,
    "infinite": lambda array: array + np.inf,
    "more": lambda array: array * 2 + 1,
    "longer": lambda array: np.append(array, 0),
    "shorter": lambda array: array[1:],
    "folded": lambda array: array[np.newaxis],
    "text": lambda array: np.full(array.shape, "one"),
    "nothing": lambda array: np.empty(0),
}


@pytest.mark.parametrize("change", WRONG_ARRAYS.values(), ids=WRONG_ARRAYS.keys())
@pytest.mark.parametrize("name", ["0.groups", "0.shares", "0.one_way", "0.marginal"])
def test_a_changed_array_is_refused(name, change, saved, tmp_path):
    text, arrays = parts(saved["default"])
    write(tmp_path / "m.privsyn", text, arrays | {name: change(arrays[name])})
    refusal(tmp_path / "m.privsyn")


@pytest.mark.parametrize("name", ["0.groups", "0.shares", "0.one_way", "0.marginal"])
def test_an_array_that_is_not_there_is_missed(name, saved, tmp_path):
    text, arrays = parts(saved["default"])
    del arrays[name]
    write(tmp_path / "m.privsyn", text, arrays)
    refusal(tmp_path / "m.privsyn")


def damaged_arrays(saved):
    """An archive of arrays of which one cannot be unpacked, though nothing outside tells."""
    text, arrays = parts(saved["default"])
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    content = packed.getvalue()
    start = content.index(b".npy") + 30
    return text, content[:start] + bytes(40) + content[start + 40 :]


def test_arrays_that_cannot_be_unpacked_are_refused(saved, tmp_path):
    text, packed = damaged_arrays(saved)
    with pytest.raises((zlib.error, zipfile.BadZipFile)):
        dict(np.load(io.BytesIO(packed)))
    write(tmp_path / "m.privsyn", text, {}, packed=packed)
    refusal(tmp_path / "m.privsyn")


def test_the_target_comes_back_and_is_a_column(tmp_path):
    schema = Schema({name: Categorical(["no", "yes"], nullable=False) for name in ("a", "b", "sick")})
    rows = pd.DataFrame(np.random.default_rng(0).choice(["no", "yes"], (500, 3)), columns=[*schema.columns])
    path = tmp_path / "m.privsyn"
    release = PrivSyn(5.0, 1e-9, schema, target="sick", seed=0).fit(rows).release_
    release.save(path)
    pd.testing.assert_frame_equal(load(path).sample(300, seed=0), release.sample(300, seed=0))
    text, arrays = parts(path.read_bytes())
    (table,) = text["tables"].values()
    assert table["target"] == "sick"
    table["target"] = "more"
    write(path, text, arrays)
    refusal(path)
