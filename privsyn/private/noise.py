"""Noise for exact integer answers: the only way out of the private side.

The release is ``q + round(Z)``, where ``q`` is an exact integer and ``Z ~ N(0, sigma^2)``. Because ``q`` is
an integer, this equals ``round(q + Z)``. Rounding is post-processing of the Gaussian mechanism, so the
accounting of that mechanism holds exactly. `privsyn.private.sampler` draws ``round(Z)`` exactly. This module
says where the random bits come from. With a delta of 0 the noise is discrete Laplace
(`privsyn.private.laplace`), which needs no rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from privsyn.arguments import check_whole
from privsyn.marginals.types import Integers, Ints
from privsyn.private.laplace import discrete_laplace
from privsyn.private.laws import GAUSSIAN, LAPLACE, Law, LawName
from privsyn.private.sampler import Bits, os_entropy, rounded_gaussian, seeded_bits


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


@dataclass(frozen=True)
class ExactGaussian:
    """Rounded Gaussian from the operating system's entropy: the noise of a private run."""

    law: ClassVar[Law] = GAUSSIAN
    private: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """Distribution and source of randomness, for the ledger."""
        return f"{_NAMES[self.law.name]}, operating system entropy"

    def draw(self, scale: float, size: int) -> Ints:
        """Draw `size` independent integers of this scale."""
        return _SAMPLERS[self.law.name](scale, size, os_entropy)


@dataclass(frozen=True)
class ExactLaplace(ExactGaussian):
    """Discrete Laplace noise from the operating system's entropy: the noise of a run with a delta of 0."""

    law: ClassVar[Law] = LAPLACE


@dataclass(frozen=True)
class SeededGaussian:
    """Rounded Gaussian from a NumPy generator. NOT PRIVATE: who knows the seed can subtract the noise.

    One object is one stream of numbers. A new object with the same seed starts the stream again.
    """

    seed: int
    law: ClassVar[Law] = GAUSSIAN
    private: ClassVar[bool] = False
    _bits: Bits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Spawn key 0 separates this stream from the draws that follow the noise.
        stream = np.random.SeedSequence(check_whole("seed", self.seed), spawn_key=(0,))
        object.__setattr__(self, "_bits", seeded_bits(np.random.default_rng(stream)))

    @property
    def name(self) -> str:
        """Distribution and source of randomness, for the ledger."""
        return f"{_NAMES[self.law.name]}, NumPy generator with seed {self.seed}: NOT PRIVATE"

    def draw(self, scale: float, size: int) -> Ints:
        """Draw the next `size` integers of this scale from the stream."""
        return _SAMPLERS[self.law.name](scale, size, self._bits)


@dataclass(frozen=True)
class SeededLaplace(SeededGaussian):
    """Discrete Laplace noise from a NumPy generator. NOT PRIVATE, as `SeededGaussian`."""

    law: ClassVar[Law] = LAPLACE


_NAMES: dict[LawName, str] = {"gaussian": "rounded Gaussian", "laplace": "discrete Laplace"}
_SAMPLERS = {"gaussian": rounded_gaussian, "laplace": discrete_laplace}


def noise_source(seed: int | None, delta: float = 1e-9) -> Noise:
    """Return the noise of a private run or, with a `seed`, a repeatable noise that is NOT PRIVATE.

    It is Gaussian, and discrete Laplace if `delta` is 0.

    Examples
    --------
    >>> noise_source(None).private, noise_source(7).private
    (True, False)
    >>> noise_source(None, delta=0).name
    'discrete Laplace, operating system entropy'
    """
    if delta == 0:
        return ExactLaplace() if seed is None else SeededLaplace(seed)
    return ExactGaussian() if seed is None else SeededGaussian(seed)


def release(exact: Integers, scale: float, noise: Noise) -> Ints:
    """Return `exact` plus fresh noise in every cell. No answer leaves the private side in another way.

    With Gaussian noise the noisy integer is ``q + round(Z) = round(q + Z)``. It is a function of what the
    Gaussian mechanism would release, and therefore as private as that. Discrete Laplace noise is private on
    whole numbers. Both need an integer ``q``: the fractional part of any other number would leave without
    noise. So a float is refused, even if its value is whole.

    Examples
    --------
    >>> release(np.array([3, 5]), 0.01, ExactGaussian())
    array([3, 5])
    """
    if not (np.issubdtype(exact.dtype, np.integer) and np.can_cast(exact.dtype, np.int64)):
        raise TypeError(
            f"exact counts of dtype {exact.dtype}: they must be integers of at most 64 bits, signed"
        )
    return exact + noise.draw(scale, exact.size).reshape(exact.shape)
