"""A CSV has the same bytes, whichever library writes its rows."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import texts

from privsyn.table.encoding.dtypes import TEXT, family
from privsyn.table.io import csv_output, write
from privsyn.table.kinds.csv_format import DELIMITERS, CsvFormat
from privsyn.table.schema.columns import Categorical, Numerical
from privsyn.table.schema.schema import Schema

awkward = st.sampled_from(
    ["", " a ", 'a"b', "a,b", "a;b", "a\tb", "a|b", "a\nb", "a\rb", "'", "é", "NA", "-1"]
)
cells = st.none() | texts | awkward


@given(
    st.lists(st.tuples(cells, cells, st.none() | st.integers(-(2**62), 2**62)), max_size=5),
    st.sampled_from(DELIMITERS),
    st.booleans(),
)
def test_arrow_and_pandas_write_the_same_bytes(tmp_path_factory, rows, delimiter, one_column):
    frame = pd.DataFrame(rows, columns=["a", "b", "n"]).astype({"a": TEXT, "b": TEXT, "n": "Int64"})
    frame = frame[["a"]] if one_column else frame
    columns = {"a": Categorical(), "b": Categorical(), "n": Numerical(integer=True)}
    known = {name: columns[name] for name in frame.columns}
    schema = Schema(known, csv=CsvFormat(delimiter=delimiter))
    folder = tmp_path_factory.mktemp("written")
    write.write_table(frame, folder / "fast.csv", schema)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_output, "_bare", lambda *_: None)
        write.write_table(frame, folder / "slow.csv", schema)
    assert (folder / "fast.csv").read_bytes() == (folder / "slow.csv").read_bytes()


@pytest.mark.skipif(family(TEXT) != "text", reason="text is a dtype from pandas 3.0")
def test_plain_cells_are_written_by_arrow():
    frame = pd.DataFrame({"a": ["x", None], "n": pd.array([1, None], "Int64")})
    assert csv_output._bare(frame, ",") is not None
    assert csv_output._bare(frame.assign(a="a,b"), ",") is None
    assert csv_output._bare(frame.assign(a="a,b"), ";") is not None
    assert csv_output._bare(frame.assign(x=0.5), ",") is None
