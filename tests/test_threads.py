"""Threads compute results ahead of their use: in order, and only a few."""

from __future__ import annotations

import threading

import pytest

from privsyn.threads import ahead


def test_results_come_in_the_order_of_the_items():
    later = threading.Event()

    def wait_for_the_next(item: int) -> int:
        if item == 0:
            assert later.wait(10)  # set by the second item: both are computed at once
        later.set()
        return item

    assert list(ahead(wait_for_the_next, range(20), 2)) == list(range(20))


def test_few_items_are_begun_at_once():
    read = []
    results = ahead(lambda item: item, (read.append(item) or item for item in range(20)), 2)
    for place, _ in enumerate(results):
        assert len(read) <= place + 3


def test_an_item_that_fails_ends_the_walk_after_those_before_it():
    results = ahead(lambda item: 6 // item, [3, 2, 1, 0, 1], 2)
    assert [next(results) for _ in range(3)] == [2, 3, 6]
    with pytest.raises(ZeroDivisionError):
        next(results)
