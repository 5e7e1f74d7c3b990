"""What a run takes at random, as types: bits, and a kind of noise. What they are made of is elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt

from privsyn.marginals.domain import Ints
from privsyn.private.noise_laws import Law

Words = npt.NDArray[np.uint64]
Bits = Callable[[int], Words]
"""A source of randomness: ``bits(n)`` returns n fresh words of 64 independent fair bits."""


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

    def draw(self, scale: float, size: int) -> Ints:
        """Draw `size` independent integers of this scale."""
        ...
