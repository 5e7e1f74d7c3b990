"""What a caller passes is taken in one form or refused in one line."""

from __future__ import annotations

from fractions import Fraction
from math import inf, nan

import numpy as np
import pandas as pd
import pytest

from privsyn import Numerical, PrivSyn, Schema, Text, load, read_schema, report, sheet
from privsyn.arguments import check_finite, check_whole
from privsyn.errors import InputError


def test_a_whole_number_is_whole_and_not_negative():
    assert [check_whole("n", value) for value in (0, 7, np.int64(3), 10**30)] == [0, 7, 3, 10**30]
    assert type(check_whole("n", np.uint8(3))) is int
    for value in (-1, True, 1.0, "1", None, np.float64(2), nan):
        with pytest.raises(InputError, match=r"^n must be a whole number of at least 0; got "):
            check_whole("n", value)


def test_a_whole_number_may_have_another_minimum():
    assert check_whole("k", 1, minimum=1) == 1
    with pytest.raises(InputError, match=r"^k must be a whole number of at least 1; got 0$"):
        check_whole("k", 0, minimum=1)


def test_a_finite_number_is_taken_as_a_double():
    taken = [check_finite("x", value) for value in (2, Fraction(1, 2), np.float32(0.5), -1.5)]
    assert taken == [2.0, 0.5, 0.5, -1.5]
    assert {type(value) for value in taken} == {float}
    for value in (inf, -inf, nan, 10**400, True, "1", None, [1]):
        with pytest.raises(InputError, match=r"^x must be a finite number; got "):
            check_finite("x", value)


@pytest.mark.parametrize(
    "take",
    [load, read_schema, lambda table: report(table, "page.html"), lambda table: sheet(table, "sheet.md")],
)
def test_a_table_in_the_place_of_a_path_or_a_release_is_refused_and_not_shown(take):
    """`load(table)` once quoted its rows."""
    with pytest.raises(InputError, match=r"^give .*; got a DataFrame$"):
        take(pd.DataFrame({"a": ["a private cell"]}))


def test_a_wrong_target_is_answered_by_the_likely_column_or_by_those_of_the_schema():
    schema = Schema({"age": Numerical(0, 9), "pay": Numerical(0, 9)})
    with pytest.raises(InputError, match=r"'agee' is not one of the columns .*; did you mean 'age'\?$"):
        PrivSyn(1.0, schema=schema, target="agee")
    with pytest.raises(
        InputError, match=r"'town' is not one of the columns to be synthesised: 'age', 'pay'$"
    ):
        PrivSyn(1.0, schema=schema, target="town")
    with pytest.raises(InputError, match=r"to be synthesised$"):  # a header may be data: it is not listed
        PrivSyn(1.0, target="town").fit(pd.DataFrame({"age": [1], "pay": [2]}))


def test_a_target_of_free_text_is_not_taken_for_a_misspelt_column():
    schema = Schema({"note": Numerical(0, 9), "notes": Text()})
    with pytest.raises(InputError, match="'notes' is free text or generated, so nothing is learnt of it"):
        PrivSyn(1.0, schema=schema, target="notes")
