"""Two runs with the same released answers: what still differs between them was taken from a row.

The first run is recorded: each answer that leaves the private side is kept, noise and all. The second run, on
another table, gets these answers whatever its own rows say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from privsyn.private import discovery, measure, persons

Ask = Callable[..., Any]

DOORS = ((measure, "release"), (persons, "release"), (discovery, "release"), (discovery, "_passed"))
"""Every released answer passes one of these: counts, and values whose votes reached the threshold."""


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

        with self._doors(recording):
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

        with self._doors(replaying):
            yield
        assert next(left, None) is None

    @staticmethod
    @contextmanager
    def _doors(door: Callable[[Ask], Ask]) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for module, name in DOORS:
                patch.setattr(module, name, door(getattr(module, name)))
            yield
