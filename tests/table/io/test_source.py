"""Batches of rows are encoded and counted once, whatever their producer does with its memory."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privsyn import Categorical, Schema
from privsyn.table.codec.codec import Codec
from privsyn.table.io.read_in_batches import read_in_batches


def test_each_row_of_a_buffer_that_is_filled_again_and_again_is_counted_once():
    """A frame may be a view of memory that its producer uses for the next one."""
    buffer = np.zeros((1000, 1), np.int64)

    def batches():
        for value in range(8):
            buffer[:] = value
            yield pd.DataFrame(buffer, columns=["a"], copy=False)

    schema = Schema({"a": Categorical(range(8), nullable=False)})
    source = read_in_batches(batches())
    found = []

    def count(blocks):
        for block in blocks:
            found.append(np.bincount(np.ravel(block), minlength=8))
        return [np.sum(found, axis=0)]

    (counts,) = source.walk(Codec.for_table(schema, source.head))(count)
    assert not source.lasting
    assert counts.tolist() == [1000] * 8
