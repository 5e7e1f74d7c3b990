"""Membership: tell rows of the private table from held-out rows, by a synthetic table.

Half of the rows that are asked about are in the private table, and the attacker says of each row whether it
is. Several scores compare a row with the synthetic rows; some of them also compare it with *other* held-out
rows, of which nobody asks. The attacker chooses a score and a threshold on a part of the rows, and plays on
the rest, so that no choice flatters.

If a coin decided for each row whether it was held out, a release with a pure epsilon bounds the number of
right guesses by that of biased coins, e^epsilon / (1 + e^epsilon), whatever the score (Steinke, Nasr and
Jagielski, "Privacy auditing with one (1) training run", 2023). So one table is enough to refute a claim. It
is not enough to confirm one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import rankdata

from privsyn.errors import InputError
from privsyn.evaluation.attacks.points import Points, batches, distance_of_rows
from privsyn.evaluation.attacks.rate import Interval, Rate
from privsyn.evaluation.attacks.trade_off import TradeOff
from privsyn.inference.fitted import LEVEL, TWO_SIDED
from privsyn.marginals.domain import Floats, Ints

FALSE_ALARMS = {"": 1.0, " at 10% false alarms": 0.1, " at 1% false alarms": 0.01}
"""The share of held-out rows that the attacker may take for members."""

CHOOSING = 3
"""One of three rows is for the choice of scores and thresholds."""

FEWEST = 30
"""With fewer rows of a kind, no share of false alarms could be chosen."""

MOST_OTHERS = 50_000
"""Held-out rows of which nobody asks."""

BANDWIDTH = 0.3
"""Of the density of rows, in columns that differ: one column that differs divides a row's weight by 28."""

BINS = 16
"""Ranges of a number, for the shares of pairs."""

MOST_PAIRS = 500
"""Pairs of columns whose shares are compared."""

CANNOT = (
    "One table and such scores show a leak, but never safety: the audit, which knows all other rows and plays"
    " many runs, is the stronger test."
)


@dataclass(frozen=True)
class Detector:
    """A score and a threshold, and how often rows are taken for members.

    Parameters
    ----------
    score : str
    recognised, false_alarms : Rate
        Of members, and of held-out rows.
    """

    score: str
    recognised: Rate
    false_alarms: Rate


@dataclass(frozen=True)
class Membership:
    """How well members of the private table are recognised among held-out rows. NOT PRIVATE.

    Parameters
    ----------
    auc : float
        The probability that a member scores above a held-out row; a half is a coin.
    score : str
        The score of this number.
    tests : mapping of str to Detector
        By the share of false alarms for which it was chosen; the first may have any.
    allowed : TradeOff or None
        What the promise of the synthetic table allows, as the caller states it.
    by_ledger : bool
        Whether it is known from a ledger. An epsilon and a delta alone allow what the worst method does.
    """

    auc: float
    score: str
    tests: Mapping[str, Detector]
    allowed: TradeOff | None = None
    by_ledger: bool = False

    @property
    def right(self) -> Rate:
        """Return how many guesses of the first test are right. Half of the rows are members."""
        test = self._best
        refused = test.false_alarms.attacks - test.false_alarms.successes
        return Rate(test.recognised.successes + refused, 2 * test.recognised.attacks)

    @property
    def advantage(self) -> float:
        """Return the share of recognised members less that of false alarms: 0 for a coin, 1 for a copy."""
        return 2 * self.right.value - 1

    @property
    def advantage_interval(self) -> Interval:
        """Return the 95 % interval, from that of Clopper and Pearson for the right guesses."""
        low, high = self.right.exact_interval
        return 2 * low - 1, 2 * high - 1

    @property
    def auc_interval(self) -> Interval:
        """Return the 95 % interval of Newcombe (2006, method 5), which has a width even at 0 and 1."""
        n = self._best.recognised.attacks
        return _lower_end(self.auc, n), 1 - _lower_end(1 - self.auc, n)

    @property
    def exceeds(self) -> bool:
        """Whether the advantage is larger than the promise allows, by more than chance explains."""
        return self.allowed is not None and self.advantage_interval[0] > self.allowed.advantage

    @property
    def _best(self) -> Detector:
        return next(iter(self.tests.values()))

    @property
    def _limited(self) -> dict[str, Detector]:
        return dict([*self.tests.items()][1:])

    @property
    def verdict(self) -> str:
        """Return a conclusion in a sentence."""
        right = f"{self.right.value:.1%} of the guesses are right where a coin has 50%"
        if self.allowed is None:
            return f"Membership: {right}; give the ledger to see how many the promise allows."
        share, epsilon = f"{self.allowed.guess:.1%}", f"epsilon {self.allowed.epsilon:g}"
        limit = f"the ledger allows {share}"
        if not self.by_ledger:
            limit = f"{epsilon} at delta {self.allowed.delta:g} allows {share} of any method"
        if self.exceeds:
            return f"MORE THAN EPSILON ALLOWS: {right}, and {limit}."
        hint = "" if self.by_ledger or not self.allowed.delta else ", the ledger of a run less: give it"
        return f"Membership: {right}; {limit}{hint}."

    def lines(self, whom: str) -> list[str]:
        """Return the game as lines of a printed table, of rows or persons."""
        rows = [
            ("advantage", *_percents(self.advantage, self.advantage_interval)),
            ("AUC", f"{self.auc:.3f}", "{:.3f} to {:.3f}".format(*self.auc_interval)),
            *(
                (f"recognised{words}", *_percents(test.recognised.value, test.recognised.exact_interval))
                for words, test in self._limited.items()
            ),
        ]
        allowed = ["allowed", *self._allowed(self.allowed)] if self.allowed else [""] * (len(rows) + 1)
        best = self._best
        scores = best.score if best.score == self.score else f"{best.score}; of AUC: {self.score}"
        return [
            *(
                f"{name:<32}{value:>9}{interval:>20}{limit:>10}".rstrip()
                for (name, value, interval), limit in zip(
                    [("membership", "", LEVEL), *rows], allowed, strict=True
                )
            ),
            *self._false_alarms_counted,
            f"Played on {best.recognised.attacks:,} {whom}s of each kind. Score: {scores}.",
            self.verdict,
            CANNOT,
        ]

    @property
    def _highest_rates(self) -> list[float]:
        """The share of false alarms at which each recognised share is allowed.

        False alarms may be more frequent than those that were counted, so it is the upper end of their
        interval.
        """
        return [test.false_alarms.exact_interval[1] for test in self._limited.values()]

    @property
    def _false_alarms_counted(self) -> list[str]:
        """A line on why the page of a release, which has exactly 10 % and 1 %, allows another share."""
        if self.allowed is None or not self._limited:
            return []
        rates = " and ".join(f"{rate:.1%}" for rate in self._highest_rates)
        return [
            f"allowed: at {rates} false alarms, as many as the intervals of those counted reach; the public"
            " page has exactly 10% and 1%, so its shares differ a little."
        ]

    def _allowed(self, allowed: TradeOff) -> list[str]:
        """Return what is allowed of the advantage, the AUC, and at each share of false alarms."""
        rates = self._highest_rates
        return [
            f"{allowed.advantage:.1%}",
            f"{allowed.auc:.3f}",
            *(f"{allowed.recognised(rate):.1%}" for rate in rates),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        allowed = self.allowed
        return {
            "verdict": self.verdict,
            "epsilon": None if allowed is None else allowed.epsilon,
            "delta": None if allowed is None else allowed.delta,
            "mu": None if allowed is None else allowed.mu,
            "advantage": self.advantage,
            "advantage_interval": self.advantage_interval,
            "allowed_advantage": None if allowed is None else allowed.advantage,
            "auc": self.auc,
            "auc_interval": self.auc_interval,
            "allowed_auc": None if allowed is None else allowed.auc,
            "score_of_auc": self.score,
            "tests": {
                f"tell members{words}": {
                    "score": test.score,
                    "recognised": test.recognised.value,
                    "recognised_interval": test.recognised.exact_interval,
                    "false_alarms": test.false_alarms.value,
                    "false_alarms_interval": test.false_alarms.exact_interval,
                }
                for words, test in self.tests.items()
            },
        }


def _percents(value: float, interval: Interval) -> tuple[str, str]:
    low, high = interval
    return f"{value:.1%}", f"{low:.1%} to {high:.1%}"


def play(train: Points, synthetic: Points, control: Points, *, limit: int, seed: int) -> Membership:
    """Play the game. The order of rows in the tables has no effect.

    Parameters
    ----------
    train, synthetic, control : Points
        The rows of the private table, of the synthetic one, and those held out.
    limit : int
        The largest number of rows of each kind.
    seed : int

    Raises
    ------
    InputError
        If there are too few rows.
    """
    rng = np.random.default_rng(seed)
    train, synthetic, control = (  # sorted, then shuffled: the order in which rows are given has no effect
        table.take(np.lexsort(table.cells.T)[rng.permutation(len(table))])
        for table in (train, synthetic, control)
    )
    candidates = min(limit, len(train), len(control) // 2)
    if candidates < FEWEST:
        raise InputError(
            f"membership needs at least {FEWEST} rows or persons of the real table, and {2 * FEWEST} held-out"
            " ones: half of these are only compared with"
        )
    reference = control.take(np.arange(candidates, min(len(control), candidates + MOST_OTHERS)))
    sides = train.take(np.arange(candidates)), control.take(np.arange(candidates))
    scores = {}
    for name, values in _scores(np.vstack([side.cells for side in sides]), synthetic, reference, rng):
        scores[name] = values.reshape(2, candidates)
        scores[f"{name}, reversed"] = -scores[name]  # a filter of close rows leaves members further away
    cut = candidates // CHOOSING
    choice = {name: values[:, :cut] for name, values in scores.items()}
    rest = {name: values[:, cut:] for name, values in scores.items()}
    highest = max(choice, key=lambda name: _auc(*choice[name]))
    tests = {words: _test(choice, rest, limit) for words, limit in FALSE_ALARMS.items()}
    return Membership(_auc(*rest[highest]), highest, tests)


def _test(choice: Mapping[str, Floats], rest: Mapping[str, Floats], limit: float) -> Detector:
    """Choose the score and threshold of the largest advantage on some rows, and use them on the rest."""
    _, name, threshold = max(_best_threshold(values, limit, name) for name, values in choice.items())
    recognised, false_alarms = (Rate(int((side > threshold).sum()), len(side)) for side in rest[name])
    return Detector(name, recognised, false_alarms)


def _best_threshold(values: Floats, limit: float, name: str) -> tuple[float, str, float]:
    """Return the largest advantage, the name and its threshold. Rows above a threshold are taken for members.

    Parameters
    ----------
    values : (2, n) array
        The scores of members, and of held-out rows.
    limit : float
        The largest share of held-out rows above the threshold.
    name : str
    """
    members, held_out = np.sort(values)
    thresholds = np.unique(values)
    recognised, false_alarms = (
        1 - np.searchsorted(side, thresholds, side="right") / len(side) for side in (members, held_out)
    )
    advantage = np.where(false_alarms <= limit, recognised - false_alarms, -1.0)
    best = int(advantage.argmax())
    return float(advantage[best]), name, float(thresholds[best])


def _auc(members: Floats, held_out: Floats) -> float:
    """Return the probability that a member scores higher; half of it for a tie.

    >>> _auc(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    0.875
    """
    n = len(members)
    ranks = rankdata(np.concatenate([members, held_out]))[:n]
    return float((ranks.sum() - n * (n + 1) / 2) / (n * len(held_out)))


def _lower_end(auc: float, n: int) -> float:
    """Return the area whose upper limit is `auc`, for n rows of each kind.

    The variance of an area a is a (1 - a) (1 + (n - 1) ((1 - a) / (2 - a) + a / (1 + a))) / n^2, after Hanley
    and McNeil (1982).
    """
    if not auc:
        return 0.0

    def above(area: float) -> float:
        ties = (1 - area) / (2 - area) + area / (1 + area)
        return auc - area - TWO_SIDED * sqrt(area * (1 - area) * (1 + (n - 1) * ties)) / n

    return float(brentq(above, 0.0, min(auc, 1 - 1e-12)))


def _scores(
    rows: Floats, synthetic: Points, reference: Points, rng: np.random.Generator
) -> Iterator[tuple[str, Floats]]:
    """Yield scores of rows, which are higher for rows that look like members.

    The difference of two logarithms of densities is the score of DOMIAS (van Breugel et al. 2023).
    """
    nearest, density = _closeness(rows, synthetic)
    nearest_other, density_other = _closeness(rows, reference)
    yield "distance to the nearest synthetic row", -nearest
    yield "the same less the distance to the nearest other row", nearest_other - nearest
    yield "density of synthetic rows over that of other rows", density - density_other
    yield "shares of pairs of cells over those of other rows", _shares(rows, synthetic, reference, rng)


def _closeness(rows: Floats, table: Points) -> tuple[Floats, Floats]:
    """Return the distance to the nearest row of a table, and the logarithm of the density of its rows."""
    nearest, density = [], []
    for batch in batches(rows):
        distance = distance_of_rows(batch, table.cells, range(len(table.numbers)))
        nearest += distance.min(axis=1).tolist()
        further = distance - distance.min(axis=1, keepdims=True)
        density += np.log(np.exp(further / np.float32(-BANDWIDTH)).mean(axis=1)).tolist()
    return np.array(nearest), np.array(density) - np.array(nearest) / BANDWIDTH


def _shares(rows: Floats, synthetic: Points, reference: Points, rng: np.random.Generator) -> Floats:
    """Return the sum, over pairs of columns, of log(share of the pair's cells / share in other rows)."""
    tables = rows, synthetic.cells, reference.cells
    ends = np.cumsum([len(table) for table in tables])[:-1]
    codes = [
        _codes(np.concatenate([table[:, axis] for table in tables]), is_number)
        for axis, is_number in enumerate(synthetic.numbers)
    ]
    sets = [*combinations(range(len(codes)), min(2, len(codes)))]
    total = np.zeros(len(rows))
    for index in rng.permutation(len(sets))[:MOST_PAIRS]:
        columns = [codes[axis] for axis in sets[index]]
        pair = columns[0] if len(columns) == 1 else columns[0] * (columns[1].max() + 1) + columns[1]
        _, cells = np.unique(pair, return_inverse=True)
        of_rows, *of_tables = np.split(cells, ends)
        shares = [np.bincount(table, minlength=cells.max() + 1)[of_rows] / len(table) for table in of_tables]
        total += np.log(shares[0] + 1 / len(reference)) - np.log(shares[1] + 1 / len(reference))
    return total


def _codes(cells: Floats, is_number: bool) -> Ints:
    """Return whole numbers for the cells of a column: those of a number are put in ranges of like size."""
    if not is_number:
        return cells.astype(np.int64)
    ends = np.unique(np.quantile(cells, np.arange(1, BINS) / BINS))
    return np.searchsorted(ends, cells, side="right").astype(np.int64)
