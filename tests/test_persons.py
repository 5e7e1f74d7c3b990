"""Rows are one person's if their identifiers are, however they are written; no cell makes it fail."""

from __future__ import annotations

import time
from decimal import Decimal
from fractions import Fraction
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Grumpy, OfNoType, junk

from privsyn import InputError
from privsyn.table.persons import Bound, fingerprints, identifier, persons_of

ONE_PERSON = {
    "numbers": [7, 7.0, "7", "007", " 7\t", "+7", "7.0", "7.", b"7", np.int8(7), np.float32(7), Fraction(7),
                Decimal("7.00"), "７"],
    "a negative number": [-7, "-7", "-07.0", -7.0],
    "naught": [0, "0", "-0", "000", -0.0, "+0.0", False],
    "large numbers": [10**18 + 1, str(10**18 + 1), f"0{10**18 + 1}.0", Decimal(10**18 + 1)],
    "fractions": [0.5, "0.5", Decimal("0.5"), np.float32(0.5)],
    "texts": ["Ann Lee", " Ann  Lee ", "Ann\u00a0Lee", b"Ann Lee", np.str_("Ann Lee")],
    "accents": ["Andr\u00e9", "Andre\u0301"],
    "UUIDs": [UUID(int=5), str(UUID(int=5))],
    "bytes that are no text": [b"\xff", b" \xff"],
}  # fmt: skip
NOBODY = [None, pd.NA, pd.NaT, float("nan"), Decimal("NaN"), Decimal("sNaN"), float("inf"), "", "  ", "NA",
          "nan", "NULL", "NaT", "?", np.datetime64("NaT"), [7], {7: 7}, (7,), pd.Timestamp(0), Grumpy(), 7j,
          OfNoType(), 10**5000]  # fmt: skip


@pytest.mark.parametrize("forms", ONE_PERSON.values(), ids=ONE_PERSON)
def test_all_forms_of_one_identifier_are_one_person(forms):
    assert len({identifier(form) for form in forms}) == 1
    assert None not in {identifier(form) for form in forms}


def test_other_identifiers_are_other_people():
    forms = [forms[0] for forms in ONE_PERSON.values()]
    others = [*forms, 8, -8, 10**18, "ann lee", "AnnLee", "Andre", "7a", "7,0", "0x7", "7e0", "1e5", 0.25]
    assert len({identifier(form) for form in others}) == len(others)


@pytest.mark.parametrize("cell", NOBODY, ids=lambda cell: type(cell).__name__)
def test_what_is_no_identifier_is_nobodys(cell):
    assert identifier(cell) is None


@pytest.mark.parametrize("cell", ["0" * 10**6 + "x", "1" * 10**6 + "x", Decimal("1e999999999"), "." * 10**6])
def test_no_identifier_takes_long(cell):
    """A row that makes a run hang, or use up the memory, would tell that it is there."""
    begun = time.perf_counter()
    identifier(cell)
    assert time.perf_counter() - begun < 1  # by trying every way to split the zeros it would take hours


@pytest.mark.parametrize(
    "dtype", ["int64", "Int64", "float64", "object", "string", "category", "uint8", "int16[pyarrow]"]
)
def test_a_dtype_does_not_change_who_is_who(dtype):
    cells = pd.Series([3, 1, 3, 2, 1]).astype(dtype)
    assert persons_of(pd.DataFrame({"who": cells}), "who").tolist() == [0, 1, 0, 2, 1]


def test_a_missing_cell_does_not_change_who_is_who():
    """It makes whole numbers doubles, and leaves the people as they were."""
    assert persons_of(pd.DataFrame({"who": [3, 1, None, 3]}), "who").tolist() == [0, 1, -1, 0]


@given(st.lists(junk | st.integers(0, 3), max_size=12), st.lists(junk | st.integers(0, 3), max_size=12))
def test_each_row_is_read_by_itself_and_none_makes_it_fail(some, others):
    def people(cells):
        column = pd.Series(list(cells), dtype=object)
        return persons_of(pd.DataFrame({"who": column}), "who")

    def alike(codes):
        return [[a == b != -1 for b in codes] for a in codes]

    together = people([*some, *others])
    assert alike(together[: len(some)]) == alike(people(some))
    assert alike(together[len(some) :]) == alike(people(others))
    assert (together == -1).tolist() == [identifier(cell) is None for cell in [*some, *others]]


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series(pd.to_datetime(["2020-01-01"])),
        pd.Series([True]),
        pd.Series(pd.to_timedelta([5], "s")),
        pd.Series(pd.arrays.SparseArray([1.0])),
    ],
    ids=lambda cells: str(cells.dtype),
)
def test_a_dtype_that_names_nobody_is_refused(cells):
    with pytest.raises(
        InputError, match=r"^column 'who': an identifier is text or a whole number, not "
    ) as no:
        persons_of(pd.DataFrame({"who": cells}), "who")
    assert "\n" not in str(no.value)


def test_a_table_without_the_column_or_with_two_is_refused():
    with pytest.raises(InputError, match="no column 'who', which unit names"):
        persons_of(pd.DataFrame({"a": [1]}), "who")
    with pytest.raises(InputError, match="columns 1 and 2 have the same name"):
        persons_of(pd.DataFrame([[1, 2]], columns=["who", "who"]), "who")


def test_rows_are_kept_only_in_the_order_and_number_that_was_decided_on():
    table = pd.DataFrame({"who": list("abcab"), "n": range(5)})
    bound = Bound.of("who", fingerprints(table, "who"), np.array([1, 1, 0, 0, 1], bool))
    for cut in range(6):
        frames = bound.kept_of([table[:cut], table[cut:]])
        assert [n for frame in frames for n in frame["n"]] == [0, 1, 4]
    for other in (table[::-1], table[:4], pd.concat([table, table[:1]]), table.assign(who=list("abcac"))):
        with pytest.raises(InputError, match="another order each time"):
            list(bound.kept_of([other[:2], other[2:]]))
    assert "kept" not in repr(bound)


def test_a_column_that_cannot_be_read_is_a_line_that_quotes_no_cell():
    """None is expected: what is not UTF-8 is mended before it comes here."""
    text = pa.array([b"SECRET \xe9"], pa.binary()).buffers()
    cells = pa.chunked_array([pa.Array.from_buffers(pa.string(), 1, text)])
    table = pd.DataFrame({"who": pd.Series(pd.StringDtype("pyarrow").__from_arrow__(cells))})
    for read in (persons_of, fingerprints):
        with pytest.raises(InputError, match="the identifiers could not be read") as raised:
            read(table, "who")
        assert raised.value.__context__ is None
