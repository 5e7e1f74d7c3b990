"""Two runs with the same released answers: what still differs between them was taken from a row.

The first run is recorded: each answer that leaves the private side is kept, noise and all. The second run, on
another table, gets these answers whatever its own rows say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from math import fsum, sqrt
from typing import Any

import numpy as np
import pytest

from privsyn.private import contribution, find_values, measure
from privsyn.private.spend import QueryLog

Ask = Callable[..., Any]

DOORS = ((measure, "release"), (contribution, "release"), (find_values, "release"), (find_values, "_passed"))
"""Every released answer passes one of these: counts, and values whose votes reached the threshold."""


@contextmanager
def doors(door: Callable[[Ask], Ask]) -> Iterator[None]:
    """Let every released answer pass a `door`."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in DOORS:
            patch.setattr(module, name, door(getattr(module, name)))
        yield


class Tape:
    """The released answers of one run, in the order of the questions."""

    def __init__(self) -> None:
        self._answers: list[Any] = []
        self._inside = False

    @contextmanager
    def record(self) -> Iterator[None]:
        """Keep every answer that is released within."""

        def recording(ask: Ask) -> Ask:
            def answer(*question: Any) -> Any:
                if self._inside:  # the votes, which `_passed` does not release
                    return ask(*question)
                self._inside = True
                self._answers.append(ask(*question))
                self._inside = False
                return self._answers[-1]

            return answer

        with doors(recording):
            yield

    @contextmanager
    def replay(self) -> Iterator[None]:
        """Give the answers that were kept, and no others; fail unless all are asked for."""
        left = iter(self._answers)

        def replaying(ask: Ask) -> Ask:
            def answer(*question: Any) -> Any:
                kept = next(left)
                assert getattr(kept, "shape", 0) == getattr(question[0], "shape", 0)
                return kept

            return answer

        with doors(replaying):
            yield
        assert next(left, None) is None


class Answers:
    """The exact answers of one run, those of each question together, and what was released."""

    def __init__(self, released: Iterable[Any] | None = None) -> None:
        self.exact: list[list[Any]] = []
        self.released: list[Any] = []
        self._given = None if released is None else iter(released)
        self._inside = False

    @contextmanager
    def run(self) -> Iterator[None]:
        """Record what is asked within, and what is released. Give the answers of another run, if any."""
        charge = QueryLog.charge

        def asked(*question: Any, **cost: Any) -> float:
            self.exact.append([])
            return charge(*question, **cost)

        def door(release: Ask) -> Ask:
            def answer(*question: Any) -> Any:
                if self._inside:  # the votes, which `_passed` does not release
                    return release(*question)
                self.exact[-1].append(question[1] if isinstance(question[0], list | tuple) else question[0])
                self._inside = True
                answered = release(*question) if self._given is None else next(self._given)
                self._inside = False
                self.released.append(answered)
                return answered

            return answer

        with pytest.MonkeyPatch.context() as patch, doors(door):
            patch.setattr(QueryLog, "charge", asked)
            yield


def cells_of(exact: Any) -> dict[Any, int]:
    """Return the numbers of an exact answer by their place: of votes, the column, type and value."""
    if isinstance(exact, np.ndarray):
        return dict(enumerate(exact.ravel().tolist()))
    return {(*kind, value): units for kind, votes in exact.items() for value, units in votes.items()}


def moved(some: list[Any], others: list[Any], law: str) -> float:
    """Return how far the answers of one question are from each other."""
    steps = []
    for one, other in zip(some, others, strict=True):
        a, b = cells_of(one), cells_of(other)
        steps += [a.get(cell, 0) - b.get(cell, 0) for cell in a | b]
    return fsum(map(abs, steps)) if law == "laplace" else sqrt(fsum(step**2 for step in steps))
