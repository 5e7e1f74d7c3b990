"""A run on the table of one owner: its sources of randomness. `privsyn.owners` has that of several owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from privsyn.private.noise import Noise, noise_source
from privsyn.private.sampler import Bits, os_entropy, seeded_bits

if TYPE_CHECKING:
    from privsyn.settings import Settings


class Alone:
    """A run that needs nobody else. Streams 0 to 2 of a seed are noise, computations, and rows of persons."""

    def __init__(self, table: Any, settings: Settings) -> None:
        self.table = table
        self._seed, self._settings = settings.seed, settings

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None: ...

    @property
    def bits(self) -> Bits:
        """Random words that decide which rows of a person are kept."""
        return os_entropy if self._seed is None else seeded_bits(self._stream(2))

    @property
    def noise(self) -> Noise:
        """The noise of all answers."""
        return noise_source(self._seed, self._settings.promise[1])

    def meet(self, opened: object) -> None:
        """Agree on what is public: there is nobody else."""

    def generator(self) -> np.random.Generator:
        """Return the generator for computations on answers."""
        return self._stream(1)

    def public_inputs(self, unit: str | None) -> tuple[str, ...]:
        """Return sentences for the ledger: none."""
        return ()

    def part(self, release: object) -> None:
        """Compare the model with those of others: there are none."""

    def _stream(self, number: int) -> np.random.Generator:
        seeds = None if self._seed is None else np.random.SeedSequence(self._seed, spawn_key=(number,))
        return np.random.default_rng(seeds)
