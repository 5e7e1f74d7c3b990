"""Progress reporting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Progress = Callable[[str, int, int], None]
"""Called as ``progress(stage, done, total)``."""

READING, MEASURING, ESTIMATING = "reading", "measuring", "estimating"
"""The stages of every run: open the table, put questions to its rows, and compute from the answers.

Stages, their numbers of steps and their order follow from the settings, the schema and released answers. So
no step shows anything that the release does not. How long a step takes is the reader's own clock.
"""

T = TypeVar("T")


def no_progress(stage: str, done: int, total: int) -> None:
    """Report nothing: the default wherever a progress is optional."""


def one_of(progress: Progress, part: int, parts: int) -> Progress:
    """Return the progress of one of several parts, whose stages have the same numbers of steps.

    >>> one_of(print, 1, 3)("measuring", 2, 4)
    measuring 6 12
    """

    def report(stage: str, done: int, total: int) -> None:
        progress(stage, part * total + done, parts * total)

    return report


@contextmanager
def one_step(progress: Progress, stage: str) -> Iterator[None]:
    """Report the beginning of a stage of one step and, if nothing fails, its end."""
    progress(stage, 0, 1)
    yield
    progress(stage, 1, 1)


def with_progress(items: Iterable[T], stage: str, total: int, progress: Progress) -> Iterator[T]:
    """Yield the items and report each before it is yielded, and the end."""
    for done, item in enumerate(items):
        progress(stage, done, total)
        yield item
    progress(stage, total, total)
