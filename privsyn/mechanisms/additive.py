"""Mechanisms that add noise to a number or to an array of numbers: Laplace and Gaussian, real and discrete.

A real answer meets exact noise on a grid. The answer is rounded to whole steps, ``floor(x / step + 1/2)``,
and integer noise is added. Rounding can move two answers apart, and the sensitivity in steps accounts for
it:

- One number: ``floor(b) - floor(a) <= ceil(b - a)`` for a <= b. So a sensitivity of Delta is at most
  ``ceil(Delta / step)`` steps. Nothing is added if Delta is a whole number of steps.
- n numbers: each moves by less than one step more than before. In L1 that is at most ``floor(Delta / step)
  + n`` steps (a whole number), in L2 ``Delta / step + sqrt(n)`` by the triangle inequality.

The discrete mechanisms take whole numbers, and need no grid. Answers beyond 2^62 steps are moved to this
end, which brings no two answers further apart, and what is no number becomes 0. So no error depends on an
answer. The noise is that of `privsyn.private`, exact on integers: no floating-point artefact reveals the
answer (Mironov, 2012). Converting the noisy steps to a double is post-processing.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, frexp, inf, isnan, log, nextafter, sqrt
from types import UnionType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from privsyn.arguments import check_between, check_whole
from privsyn.errors import InputError, plural
from privsyn.marginals.domain import Ints
from privsyn.mechanisms.mechanism import Mechanism
from privsyn.private.accounting import Accounting, delta_for, rho_for
from privsyn.private.composition import Promise
from privsyn.private.noise_laws import GAUSSIAN, HEADROOM, LAPLACE, Law
from privsyn.private.samplers.discrete_gaussian import discrete_gaussian
from privsyn.private.samplers.gaussian import check_scale, rounded_gaussian
from privsyn.private.samplers.laplace import discrete_laplace
from privsyn.private.spend import Spend

FINENESS = 2**20
"""Steps in a sensitivity by default: the grid enlarges the noise of n numbers by n / 2^20, that of one
not."""

FARTHEST = 2**62
"""Steps at which answers end, and the largest score of a candidate. The noise, of at most 45 times
`LARGEST_SIGMA`, stays within 64 bits beside it."""


@dataclass(frozen=True, kw_only=True)
class Additive(Mechanism):
    """A mechanism that adds integer noise to answers in whole steps of a grid.

    Parameters
    ----------
    sensitivity : float
        How far neighbouring tables can move the answer.
    answers : int
        How many numbers are released together.
    """

    sensitivity: float = 1.0
    answers: int = 1

    law: ClassVar[Law]

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("sensitivity", self.sensitivity)
        check_whole("answers", self.answers, minimum=1)
        self._check()
        check_scale(self.scale_in_steps)  # before anything is charged

    def _check(self) -> None:
        """Refuse parameters of the cost that are no promise."""

    @property
    def step(self) -> Fraction:
        """The step of the grid."""
        return Fraction(1)

    @property
    def steps(self) -> float:
        """The sensitivity in steps, with what rounding adds."""
        return self.sensitivity

    @property
    @abstractmethod
    def scale_in_steps(self) -> float:
        """The scale of the noise in steps, at which an answer costs at most what it should."""

    @property
    def scale(self) -> float:
        """The scale of the noise in the unit of the answer; of Gaussian noise, the standard deviation."""
        return float(Fraction(self.scale_in_steps) * self.step)

    @property
    def spend(self) -> Spend:
        """What one answer costs."""
        sensitivity = float(Fraction(self.steps) * self.step)
        return Spend(self.name, self.answers, sensitivity, self.scale, law=self.law.name)

    @property
    def cost(self) -> float:
        """The cost of an answer, rounded up: rho, or epsilon of Laplace noise."""
        return self.law.cost(self.scale_in_steps, self.steps)

    def release(self, exact: Any) -> Any:
        """Return a private answer: the exact one in whole steps, plus noise.

        Parameters
        ----------
        exact : number, or array of `answers` numbers

        Returns
        -------
        number, or array of numbers of the same shape

        Raises
        ------
        InputError
            If the answer has another type or size. No error depends on a value.
        """
        steps = self._to_steps(exact)
        noisy = steps + self._noise(steps.size).reshape(steps.shape)
        return self._from_steps(noisy)

    def interval(self, level: float = 0.95, answer: float = 0.0) -> tuple[float, float]:
        """Return an interval around a noisy answer that contains the exact one with this probability.

        Without an answer, the interval of the noise. Of several answers, each has this probability.
        """
        risk = (1 - check_between("level", level, 1.0)) / 2  # that the noise leaves the interval on one side
        width = float((self.law.quantile(self.scale_in_steps, risk) + self._rounding) * self.step)
        return answer - width, answer + width

    _rounding: ClassVar[Fraction] = Fraction(0)

    def _to_steps(self, exact: Any) -> Ints:
        """Return whole numbers. A float is refused even if it is whole: its fraction would get no noise."""
        values = numbers_in(exact, self.answers, int, "whole numbers, of an integer type")
        steps = [max(-FARTHEST, min(FARTHEST, value)) for value in values.ravel().tolist()]
        return np.array(steps, np.int64).reshape(values.shape)

    def _from_steps(self, noisy: Ints) -> Any:
        return int(noisy) if noisy.ndim == 0 else noisy

    @abstractmethod
    def _noise(self, size: int) -> Ints:
        """Draw noise in steps."""


def numbers_in(exact: Any, size: int, kinds: UnionType | type, words: str) -> npt.NDArray[Any]:
    """Return an answer as an array of Python's numbers, of any size, by its type and shape alone."""
    values = np.asarray(exact, object)
    numbers = [value.item() if isinstance(value, np.generic) else value for value in values.ravel()]
    for number in numbers:
        if not isinstance(number, kinds):
            raise InputError(f"the answer must be {words}; got {type(number).__name__}")
    values = np.array(numbers, object).reshape(values.shape)
    if values.size != size:
        raise InputError(f"the mechanism is for {plural(size, 'number')}; got {values.size}: say answers=")
    return values


@dataclass(frozen=True, kw_only=True)
class OnGrid(Additive):
    """A mechanism for real answers, which are rounded to a grid.

    Parameters
    ----------
    granularity : float, optional
        Step of the grid on which the answer is released. Default: sensitivity / 2^20, as a power of two.
    """

    granularity: float | None = None
    _rounding: ClassVar[Fraction] = Fraction(1, 2)

    def _check(self) -> None:
        super()._check()
        if self.granularity is not None:
            check_between("granularity", self.granularity)

    @property
    def step(self) -> Fraction:
        """The step of the grid."""
        return step_of(self.sensitivity) if self.granularity is None else Fraction(self.granularity)

    def _to_steps(self, exact: Any) -> Ints:
        values = numbers_in(exact, self.answers, int | float, "numbers")
        steps = [in_steps(value, self.step) for value in values.ravel().tolist()]
        return np.array(steps, np.int64).reshape(values.shape)

    def _from_steps(self, noisy: Ints) -> Any:
        answers = np.array([float(step * self.step) for step in noisy.ravel().tolist()]).reshape(noisy.shape)
        return float(answers) if answers.ndim == 0 else answers


def step_of(width: float) -> Fraction:
    """Return the default step for answers or cells that differ by up to `width`: a power of two.

    It is at most `width` / 2^20, and more than half of that.

    >>> step_of(1.0) == Fraction(1, 2**20), step_of(72.0) == Fraction(64, 2**20)
    (True, True)
    """
    return Fraction(2) ** (frexp(width)[1] - 1) / FINENESS


def in_steps(value: float, step: Fraction) -> int:
    """Return a number in whole steps, at most `FARTHEST`; 0 for what is no number.

    >>> in_steps(2.6, Fraction(1)), in_steps(-0.5, Fraction(1)), in_steps(float("nan"), Fraction(1))
    (3, 0, 0)
    """
    if isinstance(value, float) and isnan(value):
        return 0
    if value in (inf, -inf):
        return FARTHEST if value > 0 else -FARTHEST
    return max(-FARTHEST, min(FARTHEST, floor(Fraction(value) / step + Fraction(1, 2))))


@dataclass(frozen=True, kw_only=True)
class _LaplaceNoise(Additive):
    """Discrete Laplace noise, whose cost is a pure epsilon."""

    epsilon: float
    law: ClassVar[Law] = LAPLACE

    def _check(self) -> None:
        super()._check()
        check_between("epsilon", self.epsilon)

    @property
    def scale_in_steps(self) -> float:
        """The scale of the noise in steps: sensitivity / epsilon, and a little."""
        return LAPLACE.scale(self.epsilon, self.steps)

    @property
    def promise(self) -> Promise:
        """A pure epsilon."""
        return Promise.pure(self.cost)

    def _noise(self, size: int) -> Ints:
        return discrete_laplace(self.scale_in_steps, size, self._bits)


@dataclass(frozen=True, kw_only=True)
class Laplace(_LaplaceNoise, OnGrid):
    """The Laplace mechanism for real answers: the density of the noise is e^(-|x| / b) / (2 b).

    Its scale b is sensitivity / epsilon.

    Parameters
    ----------
    epsilon : float
    sensitivity : float
        How far neighbouring tables can move the answer; of several numbers, the sum of all distances (L1).
    answers : int
        How many numbers are released together.
    granularity : float, optional
        Step of the grid on which the answer is released. Default: sensitivity / 2^20, as a power of two.
    seed : int, optional
        For tests: NOT PRIVATE.

    References
    ----------
    Dwork, McSherry, Nissim and Smith, "Calibrating noise to sensitivity in private data analysis", 2006.

    Examples
    --------
    >>> m = Laplace(epsilon=1, sensitivity=1)
    >>> [round(end, 2) for end in m.interval(0.95)]  # ln 20 = 3.00
    [-3.0, 3.0]
    >>> m.spend.cost <= 1, abs(m.release(1000) - 1000) < 50
    (True, True)
    """

    @property
    def steps(self) -> float:
        """The sensitivity in steps, in L1."""
        exact = Fraction(self.sensitivity) / self.step
        return float(ceil(exact) if self.answers == 1 else floor(exact) + self.answers)


@dataclass(frozen=True, kw_only=True)
class DiscreteLaplace(_LaplaceNoise):
    """The geometric mechanism for whole answers: P(noise = x) falls as e^(-|x| epsilon / sensitivity).

    Parameters
    ----------
    epsilon, sensitivity, answers, seed
        As of `Laplace`.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan, "Universally utility-maximizing privacy mechanisms", 2009.

    Examples
    --------
    >>> m = DiscreteLaplace(epsilon=1, sensitivity=1)
    >>> m.interval(0.95), type(m.release(1000))
    ((-3.0, 3.0), <class 'int'>)
    """


@dataclass(frozen=True, kw_only=True)
class _GaussianNoise(Additive):
    """Gaussian noise, whose cost is rho."""

    epsilon: float | None = None
    delta: float | None = None
    rho: float | None = None
    law: ClassVar[Law] = GAUSSIAN
    _accounting: ClassVar[Accounting] = "gaussian"

    def _check(self) -> None:
        super()._check()
        if (self.epsilon is None) != (self.delta is None) or (self.epsilon is None) == (self.rho is None):
            raise InputError("say epsilon and delta, or rho")

    @property
    def scale_in_steps(self) -> float:
        """The standard deviation of the noise in steps."""
        return GAUSSIAN.scale(self._limit, self.steps)

    @property
    def _limit(self) -> float:
        """The rho that an answer may cost."""
        if self.epsilon is None or self.delta is None:
            return check_between("rho", self.rho)
        check_between("delta", self.delta, 1.0)
        return rho_for(self.epsilon, self.delta, self._accounting)

    @property
    def promise(self) -> Promise:
        """The epsilon and delta, or none if only rho was said; and rho."""
        epsilon, delta = inf, 0.0
        if self.epsilon is not None and self.delta is not None:
            epsilon = self.epsilon
            delta = min(self.delta, delta_for(self.cost, self.epsilon, self._accounting))
        return Promise(epsilon, delta, self._accounting, self.cost)


@dataclass(frozen=True, kw_only=True)
class Gaussian(_GaussianNoise, OnGrid):
    """The Gaussian mechanism for real answers, by default with the smallest sigma (analytic).

    Parameters
    ----------
    epsilon, delta : float
        The promise of one answer. Or say `rho`.
    rho : float
        The cost of one answer in zCDP: sensitivity^2 / (2 sigma^2).
    sensitivity : float
        How far neighbouring tables can move the answer; of several numbers, their distance in L2.
    classical : bool
        Use sigma = sqrt(2 ln(1.25 / delta)) sensitivity / epsilon, as textbooks do. Proved for epsilon < 1.
    answers, granularity, seed
        As of `Laplace`.

    References
    ----------
    Balle and Wang, "Improving the Gaussian mechanism for differential privacy", 2018. Dwork and Roth, "The
    algorithmic foundations of differential privacy", 2014, Theorem A.1.

    Examples
    --------
    >>> analytic = Gaussian(epsilon=0.5, delta=1e-5, sensitivity=1)
    >>> classical = Gaussian(epsilon=0.5, delta=1e-5, sensitivity=1, classical=True)
    >>> round(analytic.scale, 3), round(classical.scale, 3)
    (7.032, 9.69)
    """

    classical: bool = False

    @property
    def steps(self) -> float:
        """The sensitivity in steps, in L2."""
        exact = Fraction(self.sensitivity) / self.step
        if self.answers == 1:
            return float(ceil(exact))
        return nextafter(nextafter(float(exact), inf) + nextafter(sqrt(self.answers), inf), inf)

    @property
    def scale_in_steps(self) -> float:
        """The standard deviation of the noise in steps."""
        if not self.classical:
            return super().scale_in_steps
        if self.epsilon is None or self.delta is None or not 0 < self.epsilon < 1:
            raise InputError(
                "the classical sigma is proved for an epsilon below 1, with a delta: leave classical=True out"
            )
        check_between("delta", self.delta, 1.0)
        return sqrt(2 * log(1.25 / self.delta)) * self.steps / self.epsilon * (1 + HEADROOM)

    def _noise(self, size: int) -> Ints:
        return rounded_gaussian(self.scale_in_steps, size, self._bits)


@dataclass(frozen=True, kw_only=True)
class DiscreteGaussian(_GaussianNoise):
    """The discrete Gaussian for whole answers: P(noise = x) is proportional to e^(-x^2 / (2 sigma^2)).

    Parameters
    ----------
    epsilon, delta : float
        The promise of one answer, by zCDP. Or say `rho`.
    rho, sensitivity, answers, seed
        As of `Gaussian`.

    References
    ----------
    Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", 2020.

    Examples
    --------
    >>> m = DiscreteGaussian(rho=0.02, sensitivity=1)
    >>> round(m.scale, 6), type(m.release(1000))
    (5.0, <class 'int'>)
    """

    _accounting: ClassVar[Accounting] = "zcdp"

    def _noise(self, size: int) -> Ints:
        return discrete_gaussian(self.scale_in_steps, size, self._bits)
