"""Batches are encoded in threads while others are counted; nothing about their order may change."""

from __future__ import annotations

import threading

import pytest

from privsyn.table.io.source import AHEAD, _ahead


def test_results_come_in_the_order_of_the_batches():
    later = threading.Event()

    def wait_for_the_next(batch: int) -> int:
        if batch == 0:
            assert later.wait(10)  # set by the second batch: both are computed at once
        later.set()
        return batch

    assert list(_ahead(wait_for_the_next, iter(range(20)))) == list(range(20))


def test_few_batches_are_in_memory_at_once():
    read = []
    results = _ahead(lambda batch: batch, (read.append(batch) or batch for batch in range(20)))
    for batch, _ in enumerate(results):
        assert len(read) <= batch + 1 + AHEAD


def test_a_batch_that_fails_ends_the_walk_after_those_before_it():
    results = _ahead(lambda batch: 6 // batch, iter([3, 2, 1, 0, 1]))
    assert [next(results) for _ in range(3)] == [2, 3, 6]
    with pytest.raises(ZeroDivisionError):
        next(results)
