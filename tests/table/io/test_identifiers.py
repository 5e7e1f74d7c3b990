"""Rows are one person's if their identifiers are written alike, and only then; no cell makes it fail."""

from __future__ import annotations

import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses
from strategies import Grumpy, OfNoType, junk

from privsyn import InputError
from privsyn.methods.persons import PersonsInMemory
from privsyn.table.encoding.dtypes import OBJECT, TEXT
from privsyn.table.io.identifiers import (
    ABSENT,
    SPACES,
    UNDECODED,
    KeptRows,
    codes_of,
    fingerprints,
    identifiers,
    order_keys,
    persons_of,
)
from privsyn.table.io.read_in_batches import read_in_batches

SPELLINGS = [
    *("7", "007", "07", "+7", "7.0", "7.", "7e0", "\uff17", "-7", "0", "-0", "00"),
    *("Ann", "ann", "ANN", "Ann ", " Ann", "A nn", "Ann\u00a0", "Ann\t", "\u212bnn", "Ann\u200b"),
    *("Andr\u00e9", "Andre\u0301", "Andre", "\ufb01x", "fix", "\u00b2", "2", "na", "#", "a\x00", "a"),
]
"""Texts that a helpful program might join: no two are one identifier."""

NO_NAMES = [
    "",
    "  ",
    "NA",
    " NA",
    "NA\n",
    "nan",
    "NULL",
    "NaT",
    "?",
    "<NA>",
    "None",
    " none",
    "Andr\ufffd",
    "\ufffd",
]
"""Texts that several persons may share."""


def texts(cells):
    return pd.Series(cells, dtype=TEXT)


@pytest.mark.parametrize("dtype", [TEXT, "string[python]", "string[pyarrow]", "category", "object"])
def test_texts_are_compared_character_by_character(dtype):
    cells = pd.Series([*SPELLINGS, *NO_NAMES, *SPELLINGS]).astype(dtype)
    names = identifiers(cells).to_pylist()
    assert len(set(names)) == len(SPELLINGS) + 1
    assert names == [
        *[text.encode() for text in SPELLINGS],
        *[None] * len(NO_NAMES),
        *names[: len(SPELLINGS)],
    ]


@pytest.mark.parametrize("dtype", ["int64", "Int64", "uint64", "int64[pyarrow]", "category"])
def test_whole_numbers_are_compared_by_value(dtype):
    cells = pd.Series([7, 2**53, 2**53 + 1, 2**62 + 1, 0, 7], dtype="int64").astype(dtype)
    assert persons_of(pd.DataFrame({"who": cells}), "who").tolist() == [0, 1, 2, 3, 4, 0]


@pytest.mark.parametrize(
    ("dtype", "digits"),
    [("float64", 53), ("Float64", 53), ("double[pyarrow]", 53), ("float32", 24), ("float16", 11)],
)
def test_floats_are_identifiers_where_their_type_holds_each_whole_number(dtype, digits):
    """From 2^53 on two whole numbers are one float64, and two persons would be one; 12.1 may be 12.10."""
    cells = pd.Series([7, 7, None, 2.0**digits - 1, 2.0**digits, 0.5, -0.0, 0]).astype(dtype)
    assert persons_of(pd.DataFrame({"who": cells}), "who").tolist() == [0, 0, -1, 1, -1, -1, 2, 2]
    unbounded = pd.Series([np.inf, -np.inf, np.nan, 2.0**9]).astype(dtype)
    assert persons_of(pd.DataFrame({"who": unbounded}), "who").tolist() == [-1, -1, -1, 0]


def test_a_column_of_objects_is_one_of_text():
    """So nobody is 7 here and "7" there. Where pandas has a dtype for text, objects are refused."""
    cells = pd.Series(
        [
            "7",
            7,
            7.0,
            True,
            b"7",
            Decimal(7),
            None,
            pd.NA,
            pd.NaT,
            [7],
            ("7",),
            7j,
            Grumpy(),
            OfNoType(),
            np.str_("7"),
        ],
        dtype=object,
    )
    assert identifiers(cells).to_pylist() == [b"7", *[None] * 13, b"7"]
    if OBJECT != TEXT:
        with pytest.raises(InputError, match=r"its dtype is object.* convert it with astype\('str'\)"):
            persons_of(pd.DataFrame({"who": cells}), "who")


def test_a_class_that_derives_from_text_has_no_say():
    class Shouting(str):
        def strip(self):
            return "NA"

        def encode(self, *_):
            return b"Bob"

        def __str__(self):
            raise ValueError("secret")

        def __eq__(self, other):
            return True

        __hash__ = str.__hash__

    cells = pd.Series([Shouting("Ann"), "Bob"], dtype=object)
    assert identifiers(cells).to_pylist() == [b"Ann", b"Bob"]


# --- neighbours: one person's rows come or go, and nobody else's change ------------------------------------


def rows_of(table, rows, *, k=2):
    """The numbers of the rows that are kept of some rows, each of which keeps its lot."""
    lots = np.random.default_rng(5).permutation(1000).astype(np.uint64)[rows]
    source = read_in_batches(table, unit="who")
    bounded = PersonsInMemory.of(source, "who", lambda _: lots).bounded(source, k)
    return {int(row) for frame in bounded.frames() for row in frame["row"]}


def as_csv(table, folder):
    path = folder / "t.csv"
    table.to_csv(path, index=False)
    return path


def as_parquet(table, folder):
    path = folder / "t.parquet"
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), path, row_group_size=7)
    return path


def as_folder(table, folder):
    """Parts of which only some have a missing cell, and only some large numbers."""
    whole = pa.Table.from_pandas(table, preserve_index=False)
    for file in folder.glob("parts/*"):
        file.unlink()
    (folder / "parts").mkdir(exist_ok=True)
    for start in range(0, max(1, len(table)), 12):
        pq.write_table(whole.slice(start, 12), folder / "parts" / f"{start:03d}.parquet")
    return folder / "parts"


FORMS = {
    "pandas": lambda table, _: table,
    "python text": lambda table, _: table.astype({"who": "string[python]"}),
    "categories": lambda table, _: table.astype({"who": "category"}),
    "polars": lambda table, _: pl.from_pandas(table),
    "arrow": lambda table, _: pa.Table.from_pandas(table, preserve_index=False),
    "csv": as_csv,
    "parquet": as_parquet,
    "folder": as_folder,
}
PEOPLE = {
    "texts": texts([*SPELLINGS, "a,b", 'a"b', "a\nb"] * 3 + [*NO_NAMES, None] * 3),
    "whole numbers": pd.Series([7, -7, 0, 2**53, 2**53 + 1, 2**62, None] * 4, dtype="Int64"),
    "floats": pd.Series([7, 0, -1, 2.0**53 - 1, 2.0**53, 2.0**60, 0.5, None, 7] * 3, dtype="float64"),
}


AS_TEXT = ("python text", "csv")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "people"), [(f, p) for f in FORMS for p in PEOPLE if p != "floats" or f not in AS_TEXT]
)
def test_a_person_who_leaves_changes_the_kept_rows_of_nobody_else(form, people, tmp_path):
    """Each spelling is a person, and so is each row without an identifier: whose it is, nobody can know.

    Each form of the table is left by another third of them.
    """
    cells = PEOPLE[people]
    table = pd.DataFrame({"who": cells, "row": np.arange(len(cells))})
    nobody = np.array([name is None for name in identifiers(cells).to_pylist()])
    persons = cells.astype(object).map(repr).where(~nobody, [f"nobody {row}" for row in table["row"]])
    kept = rows_of(FORMS[form](table, tmp_path), table["row"])
    assert kept.isdisjoint(np.flatnonzero(nobody))
    for person in persons.unique()[[*FORMS].index(form) % 3 :: 3]:
        theirs = set(np.flatnonzero(persons == person))
        assert len(kept & theirs) == (0 if person.startswith("nobody") else min(2, len(theirs)))
        rest = table[persons != person].reset_index(drop=True)
        assert rows_of(FORMS[form](rest, tmp_path), rest["row"]) == kept - theirs


@given(st.lists(st.sampled_from([*SPELLINGS, *NO_NAMES]) | st.text(max_size=2), max_size=30), st.data())
def test_whoever_leaves_a_random_table_changes_nobody_elses_rows(people, data):
    table = pd.DataFrame({"who": texts(people), "row": np.arange(len(people))})
    leaver = data.draw(st.sampled_from([*people, "x"]))
    stay = np.array([person != leaver for person in people], np.bool_)
    rest = table[stay].reset_index(drop=True)
    theirs = set(np.flatnonzero(~stay))
    kept = rows_of(table, table["row"])
    assert rows_of(rest, rest["row"]) == kept - theirs
    assert len(kept & theirs) <= 2


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20))
def test_rows_are_one_persons_where_both_halves_of_the_fingerprint_are(prints):
    codes = codes_of(np.array(prints, np.int64).reshape(-1, 2)).tolist()
    assert [code == -1 for code in codes] == [pair == (0, 0) for pair in prints]
    assert [[a == b for b in codes] for a in codes] == [[a == b for b in prints] for a in prints]


def test_a_fingerprint_is_of_the_identifier_and_of_the_key():
    table = pd.DataFrame({"who": texts(["a", "b", "a", None])})
    prints = fingerprints(table, "who")
    assert prints.shape == (4, 2)
    assert (prints[0] == prints[2]).all()
    assert (prints[0] != prints[1]).all()
    assert not prints[3].any()
    assert (fingerprints(table, "who", bytes(16))[:3] != prints[:3]).all()


@pytest.mark.parametrize(
    ("size", "value"),  # what OpenSSL computes, and the first of them are in the authors' implementation
    [
        (1, "da87c1d86b99af44347659119b22fc45"),
        (7, "a1f1ebbed8dbc153c0b84aa61ff08239"),
        (8, "3b62a9ba6258f5610f83e264f31497b4"),
        (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
    ],
)
def test_a_fingerprint_is_the_siphash_of_the_text(size, value):
    """As `openssl mac -macopt hexkey:000102...0f -macopt size:16 SIPHASH` of the bytes 0, 1, 2, ..."""
    key, text = bytes(range(16)), bytes(range(size))
    table = pd.DataFrame({"who": texts([text.decode()])})
    assert fingerprints(table, "who", key).tobytes().hex() == value
    assert reference.siphash(key, text).hex() == value


@given(
    st.lists(st.text(max_size=40) | st.text(min_size=250, max_size=270), max_size=5),
    st.binary(min_size=16, max_size=16),
)
def test_fingerprints_are_those_of_a_slow_twin(names, key):
    table = pd.DataFrame({"who": pd.Series(names, dtype=object)})
    slow = [
        reference.siphash(key, name.encode())
        for name in names
        if name.strip() not in ABSENT and UNDECODED not in name
    ]
    prints = fingerprints(table, "who", key)
    assert [row.tobytes() for row in prints if row.any()] == slow


@pytest.mark.parametrize(
    "dtype", ["int64", "Int64", "float64", TEXT, "string[python]", "category", "uint8", "int16[pyarrow]"]
)
def test_a_fingerprint_is_of_the_identifier_alone(dtype):
    """Whatever type holds it, and wherever it stands: 7 is the same person in two tables that are linked."""
    cells = pd.Series([3, 100, 3, 25, 1]).astype(dtype)
    prints = fingerprints(pd.DataFrame({"who": cells}), "who")
    assert (prints == fingerprints(pd.DataFrame({"who": texts(["3", "100", "3", "25", "1"])}), "who")).all()
    for start in range(5):
        assert (fingerprints(pd.DataFrame({"who": cells[start:4]}), "who") == prints[start:4]).all()


def test_spaces_are_those_that_python_strips():
    """Texts of Arrow are stripped by this list, and those of Python by `str.strip`."""
    assert "".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1)))) == SPACES


@given(st.lists(st.sampled_from([*SPELLINGS, *NO_NAMES]) | st.text(max_size=3) | st.none(), max_size=20))
def test_texts_of_arrow_and_of_python_are_the_same_identifiers(cells):
    quick, slow = (identifiers(pd.Series(cells, dtype=dtype)) for dtype in ("string[pyarrow]", "object"))
    assert quick.equals(slow)


def test_the_mark_of_a_part_is_of_the_key_too():
    """A cluster gets it: without a key, anybody could try lists of identifiers."""
    prints, kept = np.ones((3, 2), np.int64), np.ones(3, bool)
    one, same, other = (KeptRows.of("who", prints, kept, bytes([key] * 16)) for key in (1, 1, 2))
    assert one.mark == same.mark != other.mark


# --- dtypes and cells --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype", ["int64", "Int64", "float64", "string", "category", "uint8", "int16[pyarrow]"]
)
def test_a_dtype_does_not_change_who_is_who(dtype):
    cells = pd.Series([3, 1, 3, 2, 1]).astype(dtype)
    assert persons_of(pd.DataFrame({"who": cells}), "who").tolist() == [0, 1, 0, 2, 1]


def test_a_missing_cell_among_runs_of_identifiers_removes_nobody_else():
    """pandas made floats of run-end encoded integers, so one missing cell dropped all others' rows."""
    whole = [2**60 + place for place in range(9)]
    for cells in (whole, [*whole, None]):
        ends = pa.array(range(1, len(cells) + 1), pa.int32())
        runs = pa.RunEndEncodedArray.from_arrays(ends, pa.array(cells, pa.int64()))
        coded = pa.DictionaryArray.from_arrays(pa.array(range(len(cells))), runs)
        for made in (runs, coded, pd.Series(runs, dtype=pd.ArrowDtype(runs.type))):
            frame = pd.DataFrame({"who": made}) if isinstance(made, pd.Series) else pa.table({"who": made})
            (table,) = read_in_batches(frame).frames()
            assert persons_of(table, "who").tolist() == [*range(9), *[-1] * (len(cells) - 9)]


def test_a_missing_cell_does_not_change_who_is_who():
    """It makes whole numbers doubles, and leaves the people as they were."""
    assert persons_of(pd.DataFrame({"who": [3, 1, None, 3]}), "who").tolist() == [0, 1, -1, 0]


@given(st.lists(junk | st.integers(0, 3), max_size=12), st.lists(junk | st.integers(0, 3), max_size=12))
def test_each_row_is_read_by_itself_and_none_makes_it_fail(some, others):
    def people(cells):
        return codes_of(fingerprints(pd.DataFrame({"who": pd.Series(list(cells), dtype=object)}), "who"))

    def alike(codes):
        return [[a == b != -1 for b in codes] for a in codes]

    together = people([*some, *others])
    assert alike(together[: len(some)]) == alike(people(some))
    assert alike(together[len(some) :]) == alike(people(others))
    texts = [str.__str__(cell) if issubclass(type(cell), str) else "" for cell in [*some, *others]]
    assert (together == -1).tolist() == [text.strip() in ABSENT or "\ufffd" in text for text in texts]


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series(pd.to_datetime(["2020-01-01"])),
        pd.Series([True]),
        pd.Series(pd.to_timedelta([5], "s")),
        pd.Series(pd.arrays.SparseArray([1.0])),
        pd.Series([True, False]).astype("category"),
        pd.Series(pd.to_datetime(["2020-01-01"])).astype("category"),
    ],
    ids=lambda cells: str(cells.dtype),
)
def test_a_dtype_that_names_nobody_is_refused(cells):
    with refuses(r"^column 'who': an identifier is text or a whole number, not "):
        persons_of(pd.DataFrame({"who": cells}), "who")


def test_a_table_without_the_column_or_with_two_is_refused():
    with pytest.raises(InputError, match="no column 'who', which unit names"):
        persons_of(pd.DataFrame({"a": [1]}), "who")
    with pytest.raises(InputError, match="columns 1 and 2 have the same name"):
        persons_of(pd.DataFrame([[1, 2]], columns=["who", "who"]), "who")


def test_rows_are_kept_only_in_the_order_and_number_that_was_decided_on():
    table = pd.DataFrame({"who": list("abcab"), "n": range(5)})
    bound = KeptRows.of("who", fingerprints(table, "who"), np.array([1, 1, 0, 0, 1], bool))
    for cut in range(6):
        frames = bound.rows_of([table[:cut], table[cut:]])
        assert [n for frame in frames for n in frame["n"]] == [0, 1, 4]
    for other in (table[::-1], table[:4], pd.concat([table, table[:1]]), table.assign(who=list("abcac"))):
        with pytest.raises(InputError, match="another order each time"):
            list(bound.rows_of([other[:2], other[2:]]))
    assert "kept" not in repr(bound)


def test_a_column_that_cannot_be_read_is_a_line_that_quotes_no_cell():
    """None is expected: what is not UTF-8 is mended before it comes here."""
    text = pa.array([b"SECRET \xe9"], pa.binary()).buffers()
    cells = pa.chunked_array([pa.Array.from_buffers(pa.string(), 1, text)])
    table = pd.DataFrame({"who": pd.Series(pd.StringDtype("pyarrow").__from_arrow__(cells))})
    for read in (persons_of, fingerprints):
        with refuses("the identifiers could not be read"):
            read(table, "who")


DAYS = pd.to_datetime(pd.Series(["2020-01-31", None, "2020-02-01", "2019-12-31"]))
SINCE = DAYS - DAYS.min()


@pytest.mark.parametrize(
    "cells",
    [
        DAYS,
        DAYS.dt.tz_localize("Asia/Tokyo"),
        DAYS.dt.date.astype(object),
        DAYS.dt.date.astype(pd.ArrowDtype(pa.date32())),
        DAYS.copy().astype(pd.ArrowDtype(pa.timestamp("ms"))),  # pandas 3.1 writes into its own cells
        DAYS.dt.strftime("%Y-%m-%d"),
        DAYS.dt.strftime("%Y-%m-%d").astype("category"),
        DAYS.dt.strftime("%d.%m.%Y"),
        SINCE,
        SINCE.astype(pd.ArrowDtype(pa.duration("us"))),
        pd.Series([31, None, 32, 0]),
        pd.Series([31, None, 32, 0], dtype="Int8"),
        pd.Series([31, None, 32, 0]).astype(pd.ArrowDtype(pa.decimal128(5, 2))),
        pd.Series(["31", None, "32", "4"]),
    ],
    ids=lambda cells: f"{cells.dtype} {cells[0]}",
)
def test_rows_are_in_the_order_of_numbers_and_times_of_any_type(cells):
    """Also beside a gap, and of text with the format that the schema says."""
    keys = order_keys(
        "on", iter([pd.DataFrame({"on": cells})]), "%d.%m.%Y" if "31.01.2020" in set(cells) else None
    )
    assert np.argsort(keys).tolist() == [3, 0, 2, 1]
    assert np.isnan(keys).tolist() == [False, True, False, False]
