"""Noise for exact integer answers: the only way out of the private side.

The release is ``q + round(Z)``, where ``q`` is an exact integer and ``Z ~ N(0, sigma^2)``. Because ``q`` is
an integer, this equals ``round(q + Z)``. Rounding is post-processing of the Gaussian mechanism, so the
accounting of that mechanism holds exactly. `privsyn.private.samplers.gaussian` draws ``round(Z)`` exactly.
With a delta of 0 the noise is discrete Laplace (`privsyn.private.samplers.laplace`), which needs no
rounding. Several owners add a share each (`SharedNoise`), of either law.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from privsyn.arguments import check_whole
from privsyn.marginals.domain import Integers, Ints
from privsyn.private.noise_laws import (
    GAUSSIAN,
    LAPLACE,
    SHARED_NOISE,
    Law,
    LawName,
    share_sigma,
    shared_gaussian,
    shared_laplace,
)
from privsyn.private.randomness import Bits, Noise, os_entropy, seeded_bits
from privsyn.private.row_totals import RowTotals
from privsyn.private.samplers.gaussian import rounded_gaussian
from privsyn.private.samplers.laplace import discrete_laplace
from privsyn.private.samplers.polya import laplace_share


@dataclass(frozen=True)
class ExactGaussian:
    """Rounded Gaussian from the operating system's entropy: the noise of a private run."""

    law: ClassVar[Law] = GAUSSIAN
    private: ClassVar[bool] = True

    @property
    def bits(self) -> Bits:
        """The entropy of the operating system."""
        return os_entropy

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
    bits: Bits = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Spawn key 0 separates this stream from the draws that follow the noise.
        stream = np.random.SeedSequence(check_whole("seed", self.seed), spawn_key=(0,))
        object.__setattr__(self, "bits", seeded_bits(np.random.default_rng(stream)))

    @property
    def name(self) -> str:
        """Distribution and source of randomness, for the ledger."""
        return f"{_NAMES[self.law.name]}, NumPy generator with seed {self.seed}: NOT PRIVATE"

    def draw(self, scale: float, size: int) -> Ints:
        """Draw the next `size` integers of this scale from the stream."""
        return _SAMPLERS[self.law.name](scale, size, self.bits)


@dataclass(frozen=True)
class SeededLaplace(SeededGaussian):
    """Discrete Laplace noise from a NumPy generator. NOT PRIVATE, as `SeededGaussian`."""

    law: ClassVar[Law] = LAPLACE


Total = Callable[[int, float, Callable[[], Ints]], Ints]
"""``total(size, scale, noisy)`` returns the sum over all owners of what each one's `noisy()` returns: `size`
integers. It is called once for each question, and `noisy` only if this owner did not answer it before."""


@dataclass(frozen=True)
class SharedNoise:
    """Noise of which each of several owners adds a share, before the counts are summed.

    **Gaussian.** Let t owners be honest. Each multiplies its counts by t and adds ``round(Z_i)`` with
    ``Z_i ~ N(0, t sigma^2)``. The sum over these t, ``t q + sum of round(Z_i)``, is exactly as private as the
    Gaussian mechanism ``y = q + N(0, sigma^2)``, because it can be computed from y without q:

    The mean G of the t numbers ``Z_i`` has variance sigma^2. It is independent of the deviations
    ``R_i = Z_i - G``, whose law is known. As q is whole, ``t q + sum of round(Z_i)`` is the sum of
    ``round(q + G + R_i) = round(y + R_i)``. The shares of all other owners are independent integers, whoever
    knows them, and adding them is post-processing too. (docs/proofs.md)

    **Laplace.** Each adds to its counts the difference of two Polya variables with r = 1 / t. Laws of Polya
    variables add up in r, so the t honest shares sum to the difference of two geometric variables: discrete
    Laplace noise of the stated scale. Again the other shares are independent integers.

    Parameters
    ----------
    owners : int
    honest : int
        t: how many owners are trusted to add their share and to keep it secret.
    total : callable
        Returns the sum over all owners, and shows no owner anything else.
    pure : bool
        Whether the noise is Laplace, for a delta of 0.
    totals : RowTotals, optional
        Numbers of rows before and after owners were lost. Default: none can be lost.
    """

    owners: int
    honest: int
    total: Total = field(repr=False)
    pure: bool = False
    totals: RowTotals | None = field(default=None, repr=False)
    private: ClassVar[bool] = True
    members: ClassVar[str] = "owners"

    @property
    def law(self) -> Law:
        """The law: an answer costs what its scale says, and has a larger variance."""
        return (shared_laplace if self.pure else shared_gaussian)(self.owners, self.honest)

    @property
    def bits(self) -> Bits:
        """The entropy of the operating system, for this owner's share."""
        return os_entropy

    @property
    def unit(self) -> int:
        """What each count is multiplied by: rounded Gaussian shares need a finer grid, whole ones do not."""
        return 1 if self.pure else self.honest

    @property
    def name(self) -> str:
        """Distribution and source of randomness, for the ledger."""
        name = self.law.name
        return (
            f"{SHARED_NOISE}{_NAMES[name]} noise from each of {self.owners} {self.members},"
            " operating system entropy:"
            f" any {self.honest} of them add the {_SCALES[name]} below, and the answers have"
            f" {(self.owners / self.honest) ** 0.5:.4g} times {_DEVIATIONS[name]}"
        )

    def draw(self, scale: float, size: int) -> Ints:
        """Draw this owner's share for `size` integers, in units of 1 / `unit`."""
        if self.pure:
            return laplace_share(scale, self.honest, size, os_entropy)
        return rounded_gaussian(share_sigma(scale, self.honest), size, os_entropy)

    def answer(self, exact: Integers, scale: float) -> Ints:
        """Return the counts of all owners plus all shares, rounded to whole numbers."""

        def noisy() -> Ints:
            return self.unit * exact.ravel().astype(np.int64) + self.draw(scale, exact.size)

        return self.rounded(self.total(exact.size, scale, noisy)).reshape(exact.shape)

    def rounded(self, total: Ints) -> Ints:
        """Return a sum in units of 1 / `unit`, rounded to whole numbers."""
        quotient, rest = np.divmod(total, self.unit)
        odd = quotient % 2  # halves go to even numbers, so that they do not add up to a bias
        return quotient + (2 * rest + odd > self.unit)


_NAMES: dict[LawName, str] = {"gaussian": "rounded Gaussian", "laplace": "discrete Laplace"}
_SCALES: dict[LawName, str] = {"gaussian": "sigma", "laplace": "noise of the scale"}
_DEVIATIONS: dict[LawName, str] = {"gaussian": "this sigma", "laplace": "its standard deviation"}
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
    if isinstance(noise, SharedNoise):
        return noise.answer(exact, scale)
    return exact + noise.draw(scale, exact.size).reshape(exact.shape)
