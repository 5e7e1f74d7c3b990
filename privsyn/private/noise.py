"""Noise for exact integer answers: the only way out of the private side.

The release is ``q + round(Z)``, where ``q`` is an exact integer and ``Z ~ N(0, sigma^2)``. Because ``q`` is
an integer, this equals ``round(q + Z)``. Rounding is post-processing of the Gaussian mechanism, so the
accounting of that mechanism holds exactly. `privsyn.private.sampler` draws ``round(Z)`` exactly. This module
says where the random bits come from and how each kind of noise is accounted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from privsyn.arguments import check_whole
from privsyn.marginals.types import Integers, Ints
from privsyn.private.accounting import Accounting
from privsyn.private.sampler import Bits, os_entropy, rounded_gaussian, seeded_bits


class Noise(Protocol):
    """A kind of noise: its distribution, its source of randomness and its accounting."""

    @property
    def name(self) -> str:
        """Distribution and source of randomness, for the ledger."""
        ...

    @property
    def private(self) -> bool:
        """False if the randomness can be repeated, because the noise can then be subtracted."""
        ...

    @property
    def accounting(self) -> Accounting:
        """The tightest accounting that holds for this noise."""
        ...

    def draw(self, sigma: float, size: int) -> Ints:
        """Draw `size` independent integers of scale `sigma`."""
        ...


@dataclass(frozen=True)
class ExactGaussian:
    """Rounded Gaussian from the operating system's entropy: the noise of a private run."""

    name: ClassVar[str] = "rounded Gaussian, operating system entropy"
    private: ClassVar[bool] = True
    accounting: ClassVar[Accounting] = "gaussian"

    def draw(self, sigma: float, size: int) -> Ints:
        """Draw `size` independent values of round(N(0, sigma^2))."""
        return rounded_gaussian(sigma, size, os_entropy)


@dataclass(frozen=True)
class SeededGaussian:
    """Rounded Gaussian from a NumPy generator. NOT PRIVATE: who knows the seed can subtract the noise.

    One object is one stream of numbers. A new object with the same seed starts the stream again.
    """

    seed: int
    private: ClassVar[bool] = False
    accounting: ClassVar[Accounting] = "gaussian"
    _bits: Bits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Spawn key 0 separates this stream from the draws that follow the noise.
        stream = np.random.SeedSequence(check_whole("seed", self.seed), spawn_key=(0,))
        object.__setattr__(self, "_bits", seeded_bits(np.random.default_rng(stream)))

    @property
    def name(self) -> str:
        """Distribution and source of randomness, for the ledger."""
        return f"rounded Gaussian, NumPy generator with seed {self.seed}: NOT PRIVATE"

    def draw(self, sigma: float, size: int) -> Ints:
        """Draw the next `size` values of round(N(0, sigma^2)) from the stream."""
        return rounded_gaussian(sigma, size, self._bits)


def noise_source(seed: int | None) -> Noise:
    """Return the noise of a private run or, with a `seed`, a repeatable noise that is NOT PRIVATE.

    Examples
    --------
    >>> noise_source(None).private, noise_source(7).private
    (True, False)
    """
    return ExactGaussian() if seed is None else SeededGaussian(seed)


def release(exact: Integers, sigma: float, noise: Noise) -> Ints:
    """Return `exact` plus fresh noise in every cell: the only way in which an answer leaves the private side.

    The noisy integer is ``q + round(Z) = round(q + Z)``. It is a function of what the Gaussian mechanism
    would release, and therefore as private as that. The equation needs an integer ``q``: the fractional part
    of any other number would leave without noise. So a float is refused, even if its value is whole.

    Examples
    --------
    >>> release(np.array([3, 5]), 0.01, ExactGaussian())
    array([3, 5])
    """
    if not (np.issubdtype(exact.dtype, np.integer) and np.can_cast(exact.dtype, np.int64)):
        raise TypeError(
            f"exact counts of dtype {exact.dtype}: they must be integers of at most 64 bits, signed"
        )
    return exact + noise.draw(sigma, exact.size).reshape(exact.shape)
