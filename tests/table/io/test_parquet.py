"""Texts of a Parquet file are read as categories, and have the codes of the same texts."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privsyn import Categorical, Datetime, Schema
from privsyn.cli.main import main
from privsyn.errors import InputError
from privsyn.files import UnpackedLimit
from privsyn.table.codec.codec import Codec
from privsyn.table.io import parquet
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.io.source import slices

SCHEMA = Schema(
    {
        "job": Categorical(["b", "a", "", "\N{REPLACEMENT CHARACTER}"]),
        "town": Categorical(["x", "other"], other="other", nullable=False),
        "day": Datetime("2020-01-01", "2020-12-31", format="%d.%m.%Y"),
    }
)


def texts(rows=700):
    rng = np.random.default_rng(0)
    jobs = np.array([b"a", b"b", b"", b"\xff", b"not listed", None], object)
    towns = np.array([b"x", b"y", b"other", None, *(b"%d" % i for i in range(90))], object)
    days = np.array([b"03.02.2020", b"31.12.2019", b"no day", None], object)
    drawn = {name: rng.choice(of, rows) for name, of in (("job", jobs), ("town", towns), ("day", days))}
    return {name: pa.array(cells.tolist(), pa.binary()) for name, cells in drawn.items()}


def codes(table, codec):
    """The codes of all rows of a table, as a run counts them."""
    blocks = []
    table.walk(codec)(lambda walked: [blocks.append(np.stack(block)) for block in walked] and [])
    return np.concatenate(blocks, axis=1).tolist()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("with_dictionary", [True, False])
def test_categories_of_a_file_have_the_codes_of_its_texts(kind, with_dictionary, tmp_path):
    """Also texts that are missing, not listed or not UTF-8, and where row groups have other dictionaries."""
    arrow = pa.table(
        {name: cells.view(pa.string()).cast(kind, safe=False) for name, cells in texts().items()}
    )
    path = tmp_path / "table.parquet"
    pq.write_table(arrow, path, row_group_size=80, use_dictionary=with_dictionary)
    stream = read_in_batches(path)
    codec = Codec.for_table(SCHEMA, stream.head, fine=True)
    frames = pd.concat(list(stream.frames()))
    plain = np.concatenate([codec.encode(frame).codes for frame in slices(frames)])
    assert codec.listed_texts == ("job", "town")
    assert next(stream.with_categories(codec.listed_texts)).dtypes.astype(str).tolist() == [
        *["category"] * 2,
        "str",
    ]
    assert codes(stream, codec) == plain.T.tolist()
    assert len(np.unique(plain[:, 0])) == 5  # each listed value, and missing


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("index", [pa.int8(), pa.int32()], ids=str)
def test_text_of_a_dictionary_that_is_not_utf8_costs_its_own_cell_only(index, ordered, tmp_path):
    """Arrow casts dictionaries of narrow indices, and fails at the whole file if some text is not UTF-8."""
    path, found = tmp_path / "table.parquet", []
    for odd in (b"b", b"\xff"):
        values = pa.array([b"a", odd, b"c"], pa.binary()).cast(pa.string(), safe=False)
        codes = pa.array([2, 0, 1, None, 0], index)
        coded = pa.DictionaryArray.from_arrays(codes, values, ordered=ordered)
        pq.write_table(pa.table({"a.b": coded, "d": values.take(codes)}), path)
        stream, whole = read_in_batches(path), read_in_memory(path).frame
        frame = pd.concat(list(stream.frames()))
        assert {read.dtypes["a.b"].ordered for read in (stream.head, frame, whole)} == {ordered}
        for read in (frame, whole):
            assert read["d"].tolist() == read["a.b"].tolist()
            found.append(read["a.b"].astype("str").tolist())
    assert found[0] == found[1] == [*"cab", np.nan, "a"]
    assert found[2] == found[3] == ["c", "a", "\N{REPLACEMENT CHARACTER}", np.nan, "a"]


@pytest.mark.parametrize("name", ["who", "who.else", "when", "job"])
def test_a_column_that_is_read_alone_is_that_of_the_table(name, tmp_path):
    """Also if pandas wrote the file with an index, and if another name begins with that of the column."""
    table = pd.DataFrame(
        {
            "who": pd.array([7, None, 8] * 50, "Int64"),
            "who.else": ["a", "b", None] * 50,
            "when": pd.to_datetime(["2020-01-01", None, "2021-05-05"] * 50),
            "job": pd.Categorical(["x", "y", None] * 50),
        },
        index=pd.Index(range(150), name="row"),
    )
    table.to_parquet(tmp_path / "table.parquet", row_group_size=40)
    stream = read_in_batches(tmp_path / "table.parquet")
    whole = pd.concat(list(stream.frames()), ignore_index=True)
    (alone,) = stream.only(name).results(lambda frames: pd.concat(list(frames), ignore_index=True))
    pd.testing.assert_frame_equal(alone, whole[[name]])
    pd.testing.assert_frame_equal(stream.only(name).head, stream.head[[name]])


def test_a_file_that_would_fill_the_memory_is_refused_before_a_row_is_read(tmp_path, capsys, monkeypatch):
    """A few hundred bytes unpack to a long text, or to millions of cells."""
    monkeypatch.setattr(parquet, "LIMIT", UnpackedLimit(2**20, 200))
    for cells in (pa.array(["x" * 2**22]), pa.nulls(2**22, pa.int8())):
        pq.write_table(pa.table({"a": cells}), tmp_path / "t.parquet", compression="zstd")
        assert main(["synth", f"{tmp_path}/t.parquet", f"{tmp_path}/out.csv", "--epsilon", "1"]) == 2
        assert "unpacks to more than 1 MB and 200 times its size" in capsys.readouterr().err
        assert not (tmp_path / "out.csv").exists()
        with pytest.raises(InputError, match="unpacks to more than 1 MB"):
            read_in_memory(tmp_path / "t.parquet")
