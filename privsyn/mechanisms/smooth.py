"""Cauchy noise in proportion to a smooth sensitivity of the answer, which depends on the private table."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from privsyn.arguments import check_between
from privsyn.mechanisms.mechanism import Mechanism
from privsyn.private.composition import Promise
from privsyn.private.noise_laws import HEADROOM, LAPLACE
from privsyn.private.smooth_sensitivity import rounded_cauchy
from privsyn.private.spend import Spend


@dataclass(frozen=True, kw_only=True)
class SmoothCauchy(Mechanism):
    """Cauchy noise of scale S / alpha, where S is a beta-smooth sensitivity: epsilon = alpha + beta.

    Parameters
    ----------
    epsilon : float
        Half of it is alpha, the other half beta.
    seed : int, optional
        For tests: NOT PRIVATE.
    """

    epsilon: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("epsilon", self.epsilon)

    @property
    def beta(self) -> float:
        """By which factor, as a logarithm, the smooth sensitivities of neighbours may differ; and alpha."""
        return self.epsilon / 2 / (1 + HEADROOM)

    @property
    def spend(self) -> Spend:
        """What one answer costs, in units of the smooth sensitivity, which is private."""
        return Spend(self.name, 1, 1.0, LAPLACE.scale(self.epsilon, 1.0), law="laplace")

    @property
    def promise(self) -> Promise:
        """A pure epsilon, alpha + beta."""
        return Promise.pure(2 * self.beta)

    def release(self, exact: int, sensitivity: Fraction, limit: int) -> int:
        """Return a private answer in whole steps: round(exact + noise), with noise of at most `limit` steps.

        Parameters
        ----------
        exact : int
        sensitivity : Fraction
            Smooth, for `beta`.
        limit : int
            Largest distance of the answer from `exact` that matters: whatever is further is cut off.
        """
        return exact + rounded_cauchy(sensitivity / Fraction(self.beta), limit, self._bits)
