"""How work that takes long tells how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Progress = Callable[[str, int, int], None]
"""Called as ``progress(stage, done, total)``."""

T = TypeVar("T")


def with_progress(things: Iterable[T], stage: str, total: int, progress: Progress | None) -> Iterator[T]:
    """The things as they come, each being told of."""
    for done, thing in enumerate(things):
        if progress is not None:
            progress(stage, done, total)
        yield thing
    if progress is not None:
        progress(stage, total, total)
