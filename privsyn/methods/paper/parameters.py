"""The parameters of the published algorithm. Their defaults are those of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from math import fsum, isclose
from typing import Any, Literal, get_args

import numpy as np

from privsyn.arguments import check_finite, check_whole
from privsyn.errors import InputError, did_you_mean, safe_repr

MOST_ROUNDS = 10_000  # a model file may come from anywhere, and sampling it must end
MOST_CELLS = 10_000_000  # of a combined table: 80 MB
MOST_SHARES = 1_000  # of rows copied, one a round
MOST_SHARED = 2  # attributes of a clique: each clique that is taken then has a new one, so `combine` ends
LEAST_SHARE = 0.001  # of the budget, of a kind of question: with less its noise may exceed every count

MOST_DRAWS = 10_000  # of pairs

Selection = Literal["greedy", "exponential"]
Step = float | tuple[float, float, int]


@dataclass(frozen=True)
class Parameters:
    """The parameters of the published algorithm.

    Parameters
    ----------
    rounds : int
        Gradual updates to each table; the rows are updated this often.
    step : number, or (start, decay, every)
        Step size of an update, alpha. Three numbers say that the step is start * decay^floor(round / every);
        one number, that it is constant. Section 5.3.
    gamma : int
        The most cells of a table that replaces a clique of pairs. Section 4.2.
    overlap : int
        The most attributes that such a table shares with those chosen before, from 0 to 2. With 3, a triple
        inside a table that was chosen would be chosen again. Section 4.2.
    split : three numbers
        Shares of the budget: of the one-ways, of InDif, and of the selected tables. They sum to 1. Section
        5.4.
    select : "greedy" or "exponential"
        How pairs are selected: greedily by noisy InDif of all pairs, as in the paper, or one after another by
        the exponential mechanism on exact InDif. For experiments.
    draws : int, optional
        How many pairs the exponential mechanism draws. Default: until it draws that none is worth its noise.
    duplication : number, or sequence of numbers
        Share of the moved rows that are copies of whole rows, from 0 to 1; several are used in turn, one a
        round. Section 5.2.

    Raises
    ------
    InputError
        If a value cannot work.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021.

    Examples
    --------
    >>> parameters = Parameters(rounds=50, duplication=0.5)
    >>> parameters.changed
    {'rounds': 50, 'duplication': 0.5}
    >>> parameters.step_of(39), parameters.copied_in(0), Parameters().copied_in(1)
    (0.84, 0.5, 1.0)
    """

    rounds: int = 100
    step: Step | Sequence[float] = (1.0, 0.84, 20)
    gamma: int = 5000
    overlap: int = 2
    split: Sequence[float] = (0.1, 0.1, 0.8)
    duplication: float | Sequence[float] = (0.5, 1.0)
    select: Selection = "greedy"
    draws: int | None = None

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {
            "rounds": _at_most("rounds", self.rounds, 0, MOST_ROUNDS),
            "step": _step(self.step),
            "gamma": _at_most("gamma", self.gamma, 1, MOST_CELLS),
            "overlap": _at_most("overlap", self.overlap, 0, MOST_SHARED),
            "split": _split(self.split),
            "duplication": _duplication(self.duplication),
            "select": _selection(self.select),
            "draws": None if self.draws is None else _at_most("draws", self.draws, 1, MOST_DRAWS),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, changes: Mapping[str, Any]) -> Parameters:
        """Return the parameters with others for some names; refuse an unknown name."""
        names = [field.name for field in fields(cls)]
        for name in changes:
            if name not in names:
                meant = did_you_mean(name, names) or f": choose from {', '.join(names)}"
                raise InputError(f"the published method has no parameter {safe_repr(name)}{meant}")
        return cls(**changes)

    @property
    def changed(self) -> dict[str, Any]:
        """The parameters that are not the paper's, as plain data."""
        names, usual = [field.name for field in fields(self)], astuple(Parameters())
        return {
            name: value
            for name, value, default in zip(names, astuple(self), usual, strict=True)
            if value != default
        }

    @property
    def shares(self) -> tuple[float, float]:
        """The shares of the one-ways and of InDif in the budget; the selected tables get the rest."""
        return self.split[0], self.split[1]

    def step_of(self, round_: int) -> float:
        """Return the step size of a round."""
        if isinstance(self.step, float):
            return self.step
        start, decay, every = self.step
        return float(start * decay ** (round_ // every))

    def copied_in(self, round_: int) -> float:
        """Return the share of moved rows that a round makes by copying whole rows.

        Copying keeps the relations of a row to all other attributes, but makes no new rows. Overwriting makes
        new rows, but breaks relations.
        """
        shares = np.atleast_1d(self.duplication)
        return float(shares[round_ % len(shares)])


def _at_most(name: str, value: object, lowest: int, highest: int) -> int:
    """Return a whole number between two others."""
    number = check_whole(name, value, minimum=lowest)
    if number > highest:
        raise InputError(f"{name} must be at most {highest:,}; got {number}")
    return number


def _numbers(name: str, value: object) -> tuple[float, ...]:
    """Return a number, or a sequence of numbers, as a tuple."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    several = value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else [value]
    return tuple(check_finite(name, number) for number in several)


def _step(value: object) -> Step:
    """Return a checked step size: constant, or its start, decay, and the rounds between."""
    numbers = _numbers("step", value)
    if len(numbers) not in (1, 3) or not numbers[0] > 0:
        raise InputError(
            f"step must be a number above 0, or (start, decay, every) such as (1, 0.84, 20); got"
            f" {safe_repr(value)}"
        )
    if len(numbers) == 1:
        return numbers[0]
    start, decay, every = numbers
    if not 0 < decay <= 1:
        raise InputError(f"step (start, decay, every) needs a decay above 0 and at most 1; got {decay:g}")
    if every < 1 or every != int(every):
        raise InputError(f"step (start, decay, every) needs a whole number of rounds; got {every:g}")
    return start, decay, int(every)


def _split(value: object) -> tuple[float, ...]:
    """Return the checked shares of the budget."""
    shares = _numbers("split", value)
    if len(shares) != 3 or not isclose(fsum(shares), 1, abs_tol=1e-9) or min(shares) < LEAST_SHARE:
        raise InputError(
            "split must be three shares of the budget that sum to 1, each of at least"
            f" {LEAST_SHARE}, such as (0.1, 0.1, 0.8); got {safe_repr(value)}"
        )
    return shares


def _selection(value: object) -> Selection:
    """Return a checked rule of selection."""
    for rule in get_args(Selection):
        if value == rule:
            return rule
    raise InputError(f"select must be greedy or exponential; got {safe_repr(value)}")


def _duplication(value: object) -> float | tuple[float, ...]:
    """Return the checked share of copied rows, or several, one a round."""
    shares = _numbers("duplication", value)
    if not 1 <= len(shares) <= MOST_SHARES or not all(0 <= share <= 1 for share in shares):
        raise InputError(
            "duplication must be a share from 0 to 1, or several that rounds use in turn, such as (0.5, 1);"
            f" got {safe_repr(value)}"
        )
    return shares if len(shares) > 1 else shares[0]


PAPER = Parameters()
