"""Batches are encoded in threads while others are counted; nothing about their order may change."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Schema
from privsyn.table.encoding.codec import Codec
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.source import AHEAD, ahead


def test_results_come_in_the_order_of_the_batches():
    later = threading.Event()

    def wait_for_the_next(batch: int) -> int:
        if batch == 0:
            assert later.wait(10)  # set by the second batch: both are computed at once
        later.set()
        return batch

    assert list(ahead(wait_for_the_next, iter(range(20)))) == list(range(20))


def test_few_batches_are_in_memory_at_once():
    read = []
    results = ahead(lambda batch: batch, (read.append(batch) or batch for batch in range(20)))
    for batch, _ in enumerate(results):
        assert len(read) <= batch + 1 + AHEAD


def test_a_batch_that_fails_ends_the_walk_after_those_before_it():
    results = ahead(lambda batch: 6 // batch, iter([3, 2, 1, 0, 1]))
    assert [next(results) for _ in range(3)] == [2, 3, 6]
    with pytest.raises(ZeroDivisionError):
        next(results)


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
