"""Party: an owner in a run, with the rows, the noise and the random choices. Alone: the only one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from privsyn.private.noise import noise_source
from privsyn.private.randomness import Bits, Noise, os_entropy, seeded_bits

if TYPE_CHECKING:
    from privsyn.methods.reading import Opened
    from privsyn.methods.run_settings import RunSettings


class Party(Protocol):
    """One owner in a run, which may have several. It is a context manager."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: Any) -> None: ...

    @property
    def table(self) -> Any:
        """The rows of this owner."""
        ...

    def bits(self) -> Bits:
        """Return random words that decide which rows of a person are kept, from the start of their stream."""
        ...

    def noise(self) -> Noise:
        """Return the noise of all answers, from the start of its stream. A run calls this once."""
        ...

    def agree_on(self, opened: Opened) -> None:
        """Agree with all other owners on what is public."""

    def generator(self) -> np.random.Generator:
        """Return the generator for computations on answers."""
        ...

    def public_inputs(self, unit: str | None) -> tuple[str, ...]:
        """Return sentences for the ledger."""
        ...

    def compare(self, packed: Callable[[], bytes]) -> None:
        """Compare the model, which `packed` returns, with those of the other owners."""


class Alone:
    """The one owner of all rows, who needs nobody else; `privsyn.owners.owners.Peer` is one of several.

    Streams 0 to 2 of a seed are noise, computations, and rows of persons.
    """

    def __init__(self, table: Any, settings: RunSettings) -> None:
        self.table = table
        self._seed, self._delta = settings.seed, float(settings.delta)  # as accounting does

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...

    def bits(self) -> Bits:
        """Return random words that decide which rows of a person are kept, from the start of their stream."""
        return os_entropy if self._seed is None else seeded_bits(self._stream(2))

    def noise(self) -> Noise:
        """Return the noise of all answers, from the start of its stream. A run calls this once."""
        return noise_source(self._seed, self._delta)

    def agree_on(self, opened: Opened) -> None:
        """Agree on what is public: there is nobody else."""

    def generator(self) -> np.random.Generator:
        """Return the generator for computations on answers."""
        return self._stream(1)

    def public_inputs(self, unit: str | None) -> tuple[str, ...]:
        """Return sentences for the ledger: none."""
        return ()

    def compare(self, packed: Callable[[], bytes]) -> None:
        """Compare the model with those of others: there are none."""

    def _stream(self, number: int) -> np.random.Generator:
        seeds = None if self._seed is None else np.random.SeedSequence(self._seed, spawn_key=(number,))
        return np.random.default_rng(seeds)
