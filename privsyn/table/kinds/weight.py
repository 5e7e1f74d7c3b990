"""Weight: how many units of the population a row of a survey stands for."""

from __future__ import annotations

from dataclasses import dataclass, field

from privsyn.errors import InputError, safe_repr
from privsyn.table.kinds.numerical import Numerical


@dataclass(frozen=True)
class Weight(Numerical):
    """The weights of a survey: positive numbers between public bounds. A table has at most one such column.

    It is counted as any column of numbers, in groups, and together with each other column. So `ask` and
    `accuracy_` give weighted shares and means with intervals. It multiplies no answer and no noise.

    Parameters
    ----------
    low, high : number
        The public bounds, above 0 and both included. A weight beyond them is clipped. The wider they are,
        the more of the noise a weighted estimate has: trim weights first, as for any survey.
    integer, decimals, step, format, bins, missing : optional
        See `Numerical`.
    nullable : bool
        False: a cell without a weight counts as `low`.

    Examples
    --------
    >>> Weight(0.2, 8).values_sentence
    'weights from 0.2 to 8; others are clipped.'
    >>> Weight(0, 8)
    Traceback (most recent call last):
    privsyn.errors.InputError: the bounds of a weight are above 0, not 0
    """

    low: float = field()
    high: float = field()
    nullable: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low is None:
            raise InputError("give the bounds of a weight: Weight(low, high)")
        if self.low <= 0:
            raise InputError(f"the bounds of a weight are above 0, not {safe_repr(self.low)}")
        if self.nullable:
            raise InputError(
                "a weight is never missing: leave out nullable, and a missing cell counts as low"
            )

    @property
    def noun(self) -> str:
        """What the numbers are."""
        return f"weights, {super().noun}" if self.fixed_decimals is not None else "weights"
