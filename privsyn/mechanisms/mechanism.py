"""Mechanism, what all mechanisms have: a promise, a source of random bits, and a warning if it has a seed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

import numpy as np

from privsyn.arguments import check_whole
from privsyn.private.composition import Promise
from privsyn.private.local_privacy import LocalPromise
from privsyn.private.randomness import Bits, os_entropy, seeded_bits
from privsyn.private.spend import Spend


@dataclass(frozen=True, kw_only=True)
class Mechanism(ABC):
    """A mechanism of differential privacy.

    Parameters
    ----------
    seed : int, optional
        Makes the noise repeatable, for tests. NOT PRIVATE: who knows the seed can subtract the noise.
    """

    seed: int | None = None
    _bits: Bits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.seed is None:
            bits: Bits = os_entropy
        else:  # one object is one stream, as of `SeededGaussian`
            stream = np.random.SeedSequence(check_whole("seed", self.seed), spawn_key=(0,))
            bits = seeded_bits(np.random.default_rng(stream))
        object.__setattr__(self, "_bits", bits)

    @property
    def private(self) -> bool:
        """False if there is a seed."""
        return self.seed is None

    @property
    def name(self) -> str:
        """What it is, for a ledger."""
        return f"{type(self).__name__} mechanism"

    @property
    def neighbours(self) -> str | None:
        """The neighbours of its promise. None: those for which its sensitivity was computed."""
        return None

    @property
    @abstractmethod
    def spend(self) -> Spend | LocalPromise:
        """What one answer costs."""

    @property
    @abstractmethod
    def promise(self) -> Promise:
        """What one answer promises, in numbers."""
