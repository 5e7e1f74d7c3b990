"""The one door out: an exact integer answer leaves as the integer plus noise, of one kind or another.

What is released is ``q + round(Z)`` with ``q`` an exact integer and ``Z ~ N(0, sigma^2)``. As ``q`` is an
integer that is ``round(q + Z)``, so rounding is post-processing of the Gaussian mechanism and its accounting
holds to the letter. How ``round(Z)`` is drawn exactly stands in `privsyn.private.sampler`; here stand the
kinds of noise, by where their bits come from and how they are accounted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Protocol

import numpy as np

from privsyn.arguments import check_whole
from privsyn.errors import InputError, safe_repr
from privsyn.marginals.types import Integers, Ints
from privsyn.private.accounting import Accounting
from privsyn.private.sampler import Bits, check_sigma, os_entropy, rounded_gaussian, seeded_bits


class Noise(Protocol):
    """A kind of noise: what is drawn, from where, and how it is accounted."""

    @property
    def name(self) -> str:
        """Distribution and source of randomness, for the ledger."""
        ...

    @property
    def private(self) -> bool:
        """False where the randomness can be repeated, and so the noise be taken off again."""
        ...

    @property
    def accounting(self) -> Accounting:
        """The tightest accounting that holds for this noise."""
        ...

    def draw(self, sigma: float, size: int) -> Ints:
        """`size` independent integers of scale `sigma`."""
        ...


@dataclass(frozen=True)
class ExactGaussian:
    """Rounded Gaussian from the operating system's entropy: the noise of a private run."""

    name: ClassVar[str] = "rounded Gaussian, operating system entropy"
    private: ClassVar[bool] = True
    accounting: ClassVar[Accounting] = "gaussian"

    def draw(self, sigma: float, size: int) -> Ints:
        """`size` independent draws of round(N(0, sigma^2))."""
        return rounded_gaussian(sigma, size, os_entropy)


@dataclass(frozen=True)
class SeededGaussian:
    """The same sampler on a NumPy generator. Who knows the seed can take the noise off: NOT PRIVATE.

    One object is one stream: its draws follow on from each other, and a new object starts again.
    """

    seed: int
    private: ClassVar[bool] = False
    accounting: ClassVar[Accounting] = "gaussian"
    _bits: Bits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Another stream than that of what is drawn after the noise.
        stream = np.random.SeedSequence(check_whole("seed", self.seed), spawn_key=(0,))
        object.__setattr__(self, "_bits", seeded_bits(np.random.default_rng(stream)))

    @property
    def name(self) -> str:
        """Distribution and source of randomness, for the ledger."""
        return f"rounded Gaussian, NumPy generator with seed {self.seed}: NOT PRIVATE"

    def draw(self, sigma: float, size: int) -> Ints:
        """`size` draws of round(N(0, sigma^2)), the next of the stream."""
        return rounded_gaussian(sigma, size, self._bits)


@dataclass(frozen=True)
class OpenDPGaussian:
    """OpenDP's discrete Gaussian (Canonne, Kamath and Steinke, 2020), some 300 times slower.

    Its zCDP is that of the Gaussian, rho = Delta^2 / (2 sigma^2), its privacy profile only nearly so.
    """

    name: ClassVar[str] = "discrete Gaussian, OpenDP"
    private: ClassVar[bool] = True
    accounting: ClassVar[Accounting] = "zcdp"

    def __post_init__(self) -> None:
        try:
            import opendp.prelude as dp
        except ImportError:
            raise InputError('noise "opendp" is not installed: pip install "privsyn[opendp]"') from None
        dp.enable_features("contrib")

    def draw(self, sigma: float, size: int) -> Ints:
        """`size` independent draws of the discrete Gaussian with parameter `sigma`."""
        import opendp.prelude as dp

        check_sigma(sigma)
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
        zeros = [0] * size
        return np.array(dp.m.make_gaussian(*space, scale=float(sigma))(zeros), dtype=np.int64)


def noise_source(kind: str, seed: int | None) -> Noise:
    """The noise called `kind`, "exact" or "opendp"; with a `seed`, a repeatable and NOT PRIVATE one.

    Examples
    --------
    >>> noise_source("exact", None).private, noise_source("exact", 7).private
    (True, False)
    """
    if not isinstance(kind, str) or kind not in ("exact", "opendp"):
        raise InputError(f'noise is "exact" or "opendp"; got {safe_repr(kind)}')
    if kind == "exact":
        return ExactGaussian() if seed is None else SeededGaussian(seed)
    if seed is not None:
        raise InputError('noise "opendp" takes no seed: leave out the seed, or choose noise "exact"')
    return OpenDPGaussian()


def release(exact: Integers, sigma: float, noise: Noise) -> Ints:
    """`exact` plus fresh noise in every cell: the only way an answer leaves the private side.

    The noisy integer is ``q + round(Z) = round(q + Z)``, a function of what the Gaussian mechanism would
    release, and so as private as that. The identity needs an integer ``q``: what a fraction has after the
    point would leave without noise. Hence a float is refused, even one that happens to be whole.

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
