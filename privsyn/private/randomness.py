"""Randomness: bits of the operating system or of a seed, and a kind of noise as a type."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from privsyn.marginals.domain import Ints
from privsyn.private.noise_laws import Law

Words = npt.NDArray[np.uint64]
Bits = Callable[[int], Words]
"""A source of randomness: ``bits(n)`` returns n fresh words of 64 independent fair bits."""


def os_entropy(size: int) -> Words:
    """Return `size` words from the operating system's cryptographic generator."""
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def seeded_bits(rng: np.random.Generator) -> Bits:
    """Return a source of words from a NumPy generator: repeatable, and therefore NOT PRIVATE."""
    return lambda size: rng.integers(0, 2**64, size=size, dtype=np.uint64)


class Noise(Protocol):
    """A kind of noise: its law and its source of randomness."""

    @property
    def law(self) -> Law:
        """The law: what an answer costs, and its variance."""
        ...

    @property
    def name(self) -> str:
        """Distribution and source of randomness, for the ledger."""
        ...

    @property
    def private(self) -> bool:
        """False if the randomness can be repeated, because the noise can then be subtracted."""
        ...

    @property
    def bits(self) -> Bits:
        """The source of randomness, for draws that are no noise."""
        ...

    def draw(self, scale: float, size: int) -> Ints:
        """Draw `size` independent integers of this scale."""
        ...
