"""Compute results ahead of their use, in threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

A = TypeVar("A")
B = TypeVar("B")


def ahead(function: Callable[[A], B], items: Iterable[A], threads: int) -> Generator[B]:
    """Yield the result for each item, in order; threads compute the next ones meanwhile.

    At most `threads` + 1 items are begun and not yielded. A generator of items is closed at the end.

    >>> list(ahead(abs, [-2, -1], 2))
    [2, 1]
    """
    pool, begun = ThreadPoolExecutor(threads), deque[Future[B]]()
    try:
        for item in items:
            begun.append(pool.submit(function, item))
            if len(begun) > threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
        if isinstance(items, Generator):  # else a file stays open until nobody keeps an error of `function`
            items.close()
