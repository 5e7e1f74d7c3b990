"""Progress reporting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Progress = Callable[[str, int, int], None]
"""Called as ``progress(stage, done, total)``."""

T = TypeVar("T")


def no_progress(stage: str, done: int, total: int) -> None:
    """Report nothing: the default wherever a progress is optional."""


def with_progress(items: Iterable[T], stage: str, total: int, progress: Progress) -> Iterator[T]:
    """Yield the items and report each before it is yielded, and the end."""
    for done, item in enumerate(items):
        progress(stage, done, total)
        yield item
    progress(stage, total, total)
