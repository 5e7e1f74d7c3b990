"""Packed codes take fewer bytes, and unpacked they are the codes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privsyn.marginals.counting import BYTE, Packing, code_type


@given(sizes=st.lists(st.sampled_from([1, 2, 3, 16, 17, 255, 256, 257, 70_000]), min_size=1, max_size=9))
def test_unpacked_codes_are_the_codes(sizes):
    """The least and the largest code of each column, and of all columns together."""
    rows = [[0] * len(sizes), [size - 1 for size in sizes]]
    rows += [[size - 1 if at == place else 0 for at, size in enumerate(sizes)] for place in range(len(sizes))]
    columns = np.array(rows, np.int64).T
    block = tuple(column.astype(code_type(size)) for column, size in zip(columns, sizes, strict=True))
    packing = Packing(tuple(sizes))
    unpacked = packing.unpack(packing.pack(block))
    assert [column.tolist() for column in unpacked] == columns.tolist()
    assert [column.dtype for column in unpacked] == [column.dtype for column in block]


def test_eight_columns_of_two_codes_share_a_byte():
    assert len(Packing((2,) * 16).groups) == 2
    sizes = (12, 8, 6, 3, 4, 2, 2, 2, 3, 12, 8, 16, 6, 8, 16, 12, 8, 6, 6, 16)
    assert len(Packing(sizes).groups) == 7
    assert all(np.prod([sizes[p] for p in group]) <= BYTE for group in Packing(sizes).groups)
