"""Find values and bounds that the schema does not give.

Values. Every row has one vote: a vector of L2 length 1 over those of its values, in all columns together,
that are not found yet. A value is found if its votes plus noise reach a threshold. There are two rounds. In
the second, each row votes for the values that the first did not find. A row with only one such value gives it
the whole vote.

Bounds. Every row lies in one cell of a public grid. The noisy counts of the cells are released. The bounds,
and a second grid, follow from these counts only (`privsyn.table.encoding.bounds_cells`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import reduce
from math import ceil, fsum, isqrt, sqrt
from typing import Any, Protocol, TypeVar

import numpy as np
from scipy.special import ndtri

from privsyn.errors import InputError
from privsyn.marginals.domain import Integers, Ints
from privsyn.private.noise import release
from privsyn.private.noise_laws import GAUSSIAN, LAWS
from privsyn.private.randomness import Noise
from privsyn.private.run_ledger import RunLedger
from privsyn.private.spend import ONE_WAY, ONE_WAYS, QueryLog, Spend

D = TypeVar("D", bound=dict[Any, Any])

VOTING_ROUNDS = 2  # the first finds the common values

VALUES, BOUNDS, GRIDS, FREQUENT = "values of", "bounds of", "grids of", "frequent numbers of"
SPREADS = "spreads of"
"""How the texts of the questions begin in the ledger."""

EVERY = f", {ONE_WAYS.removeprefix(ONE_WAY).strip()}"
"""How the columns of the first question begin, as `_asked` returns them."""

KINDS = VALUES, BOUNDS, GRIDS, FREQUENT, SPREADS

SIZE, VOTERS, CLOSER = " (how many numbers)", " (how many rows)", " (closer)"
"""How the texts of questions about sizes, and of the second one on bounds, end."""

ROUND = " (round {} of {})"
"""How the text of a search for values ends."""

ENDS = (
    SIZE,
    VOTERS,
    CLOSER,
    *(ROUND.format(number, VOTING_ROUNDS) for number in range(1, VOTING_ROUNDS + 1)),
)
"""All ends of the texts of questions."""

VOTE = 2**10
"""Units of a whole vote, because noise is added to integers only."""


Kind = tuple[str, str]
"""A column, and the name of a type of values in it. 1, 1.0 and True are equal, but three different values."""

DistinctValues = Mapping[Kind, tuple[Sequence[Any], Integers]]
"""Some rows: for each kind its distinct values, and the index of each row's value among them, or -1.
A row has a value of at most one kind per column. Private."""

Found = Mapping[Kind, Set[Any]]
"""The values of each kind that were found before. Released."""

Cells = Mapping[str, Ints]
"""For each column, the number of rows in each cell of its grid. Private."""


class Ballot(Protocol):
    """The votes for the values that occur, wherever they were counted. Private."""

    def units(self, column: str) -> Ints:
        """Return the votes for each value of a column, by its type and the value, in units of 1 / VOTE."""

    def values_at(self, column: str, indices: Ints) -> Sequence[Any]:
        """Return the values of which the votes are at some indices of `units`."""


class Votes(dict[Kind, Mapping[Any, int]]):
    """The votes for each value of each kind that occurs, in units of 1 / VOTE. Private.

    >>> votes = Votes({("town", "str"): {"Rome": 1024, "Oslo": 724}})
    >>> votes.units("town").tolist(), votes.values_at("town", np.array([1]))
    ([724, 1024], ['Rome'])
    """

    def units(self, column: str) -> Ints:
        """Return the votes for each value of a column, by its type and the value."""
        return np.array([self[kind][value] for kind, value in self._occurring(column)], np.int64)

    def values_at(self, column: str, indices: Ints) -> list[Any]:
        """Return the values at some indices."""
        occurring = self._occurring(column)
        return [occurring[index][1] for index in indices.tolist()]

    def _occurring(self, column: str) -> list[tuple[Kind, Any]]:
        """Return each value, sorted, so that the order of rows and parts has no effect, also with a seed."""
        kinds = sorted(kind for kind in self if kind[0] == column)
        return [(kind, value) for kind in kinds for value in sorted(self[kind])]


def count_votes(rows: DistinctValues, released: Found) -> Votes:
    """Count the votes of some rows for values that are not found yet. Private.

    Each row votes on its own (`_votes`), so the votes of a table are the sum of the votes of its parts
    (`add_parts`).

    Examples
    --------
    >>> rows = {
    ...     ("town", "str"): (["Rome", "Oslo"], np.array([0, 0, 1])),
    ...     ("job", "str"): (["cook"], np.array([-1, 0, 0])),
    ... }
    >>> votes = count_votes(rows, {})
    >>> votes["town", "str"], votes["job", "str"]
    ({'Rome': 1748, 'Oslo': 724}, {'cook': 1448})
    >>> count_votes(rows, {("town", "str"): {"Rome"}})["job", "str"]  # the second row gives its whole vote
    {'cook': 1748}
    """
    open_codes = {kind: _left(*column, released.get(kind, frozenset())) for kind, column in rows.items()}
    weights = _votes(list(open_codes.values()))
    votes = Votes()
    for kind, codes in open_codes.items():
        values, has = rows[kind][0], codes >= 0
        sums = np.bincount(codes[has], weights[has], len(values)).astype(np.int64)
        votes[kind] = {value: units for value, units in zip(values, sums.tolist(), strict=True) if units}
    return votes


def add_parts(first: D, second: D) -> D:
    """Add the votes, or the cells, of two parts of a table.

    Neither argument is changed, because a cluster that loses a machine may add the same part again.

    >>> add_parts({("town", "str"): {"Rome": 1024}}, {("town", "str"): {"Oslo": 1024, "Rome": 724}})
    {('town', 'str'): {'Oslo': 1024, 'Rome': 1748}}
    >>> add_parts({"age": np.array([1, 2])}, {"age": np.array([3, 4])})
    {'age': array([4, 6])}
    """
    added = type(first)({**first, **second})
    for key in first.keys() & second.keys():
        if isinstance(first[key], np.ndarray):
            added[key] = first[key] + second[key]
            continue
        fewer, more = sorted((first[key], second[key]), key=len)
        added[key] = sums = dict(more)
        for value, units in fewer.items():
            sums[value] = sums.get(value, 0) + units
    return added


@dataclass(frozen=True)
class ValuesFound:
    """What a round found of a column. Released.

    Parameters
    ----------
    values : tuple
        Those with most noisy votes first.
    votes : float
        The sum of their noisy votes, in whole votes.
    """

    values: tuple[Any, ...]
    votes: float


@dataclass(frozen=True)
class Finder:
    """Adds noise to what was counted of columns that the schema leaves open, and logs each question.

    Every method takes the budget of its answers for all rows of a person, and releases nothing else.

    Parameters
    ----------
    noise : Noise
    rows_per_unit : int
        The most rows of one person.
    log : QueryLog

    Examples
    --------
    >>> from privsyn.private.noise import SeededGaussian
    >>> rows = {("town", "str"): (["Rome", "Oslo", "Atlantis"], np.repeat([0, 1, 2], [900, 500, 1]))}
    >>> finder = Finder(SeededGaussian(0))
    >>> finder.values(["town"], count_votes(rows, {}), number=1, rho=0.002, delta=5e-11)["town"].values
    ('Rome', 'Oslo')
    """

    noise: Noise
    rows_per_unit: int = 1
    log: QueryLog = field(default_factory=QueryLog)

    def values(
        self, columns: Sequence[str], votes: Ballot, *, number: int, rho: float, delta: float
    ) -> dict[str, ValuesFound]:
        """Return the values of each column that enough rows share, those with most noisy votes first.

        Privacy. Noise is added only to values that occur. The values that occur in both of two neighbouring
        tables form one vector of votes. One row moves it by at most 1 in L2 (`_votes`), and a person with k
        rows by at most k: this is the Gaussian mechanism. A value that only one person has gets at most k
        votes, and there are at most k such values in each column. `threshold` bounds the probability that any
        of them is found by the round's part of `delta`. If none is found, they do not change the release,
        because their noise is independent. `RunLedger` combines delta and rho. The order of the found values
        and the sum of their votes follow from the noisy votes and the values themselves.

        Parameters
        ----------
        columns : sequence of str
            The columns whose values are to be found.
        votes : Ballot
            Those of all rows for values that are not found yet.
        number : int
            Which of the `VOTING_ROUNDS` this is, from 1.
        rho, delta : float
            Budget of this round.
        """
        if self.noise.law is not GAUSSIAN:  # the threshold holds for this law alone
            raise ValueError("a search for values needs Gaussian noise")
        sensitivity = float(self.rows_per_unit * VOTE)
        question = f"{VALUES} {', '.join(columns)}{ROUND.format(number, VOTING_ROUNDS)}"
        sigma = self.log.charge(question, len(columns), sensitivity, rho, GAUSSIAN, delta)
        enough = threshold(sigma, delta, columns=len(columns), rows_per_unit=self.rows_per_unit)
        return _passed(columns, votes, sigma, enough, self.noise)

    def voters(self, columns: Sequence[str], votes: Ballot, rho: float) -> float:
        """Return the noisy number of rows that vote for a value of each column; fewer if cells are missing.

        A row with j values gives each of them VOTE / sqrt(j), so all its votes are at most
        VOTE * sqrt(`columns`), and the rows of a person move the sum of all votes by k times as much.

        Parameters
        ----------
        columns : sequence of str
            All whose values are to be found.
        votes : Ballot
            Those of all rows, before any value is found.
        rho : float
            Budget, in zCDP.
        """
        largest = isqrt(VOTE**2 * len(columns)) + 1
        exact = np.array([sum(int(votes.units(name).sum()) for name in columns)], np.int64)
        question = f"{VALUES} {', '.join(columns)}{VOTERS}"
        scale = self.log.charge(question, 1, float(self.rows_per_unit * largest), rho, self.noise.law)
        return int(release(exact, scale, self.noise)[0]) / largest

    def numbers(self, counts: Cells, rho: float) -> float:
        """Return the noisy mean number of rows with a number in a column.

        A row lies in at most one cell of each column's grid. So one more record changes the sum over all
        grids by at most the number of columns, and a person with k rows changes it by k times as much.

        Parameters
        ----------
        counts : mapping of a column to the number of rows in each cell of its grid
            Private.
        rho : float
            Budget, in zCDP.
        """
        sensitivity = float(self.rows_per_unit * len(counts))
        exact = np.array([sum(int(cells.sum()) for cells in counts.values())], np.int64)
        question = f"{BOUNDS} {', '.join(counts)}{SIZE}"
        scale = self.log.charge(question, 1, sensitivity, rho, self.noise.law)
        return int(release(exact, scale, self.noise)[0]) / len(counts)

    def cells(
        self, counts: Cells, rho: float, *, question: str = BOUNDS, look: str = ""
    ) -> dict[str, tuple[Ints, float]]:
        """Return the noisy number of rows in each cell of each column's grid, and the sigma of the noise.

        A row lies in at most one cell of each column's grid: of bounds, of distances
        (`privsyn.table.discovery.spreads`), or of the lattices on which numbers lie
        (`privsyn.table.discovery.lattices`), where its cell is the coarsest lattice that holds its number.
        One more record changes each count vector in one cell by 1: sqrt(columns) in L2 for all columns
        together (with Laplace noise: `columns` in L1), and k times that for a person with k rows.
        This holds for any grid that follows from public facts and released counts, such as the second grid.

        Parameters
        ----------
        counts : mapping of a column to the number of rows in each cell of its grid
            Private.
        rho : float
            Budget of all columns together, in zCDP.
        question, look : str
            Texts for the ledger, before and after the columns.
        """
        law = self.noise.law
        sensitivity = self.rows_per_unit * law.joint(len(counts))
        answers = sum(exact.size for exact in counts.values())
        scale = self.log.charge(f"{question} {', '.join(counts)}{look}", answers, sensitivity, rho, law)
        sigma = law.tail(scale)
        return {name: (release(exact, scale, self.noise), sigma) for name, exact in counts.items()}


def _passed(
    columns: Sequence[str], votes: Ballot, sigma: float, enough: int, noise: Noise
) -> dict[str, ValuesFound]:
    """Return the values of each column whose noisy votes are enough, those with most votes first."""
    values_of = {}
    for name in columns:
        noisy = release(votes.units(name), sigma, noise)
        passed = np.flatnonzero(noisy >= enough)
        ranked = list(zip(noisy[passed], votes.values_at(name, passed), strict=True))
        # By most votes, then by type and text: never by the order of the rows.
        ranked.sort(key=lambda pair: (-pair[0], str(type(pair[1])), repr(pair[1])))
        values_of[name] = ValuesFound(tuple(value for _, value in ranked), int(noisy[passed].sum()) / VOTE)
    return values_of


def threshold(sigma: float, delta: float, *, columns: int, rows_per_unit: int) -> int:
    """Return the fewest votes, in units, at which a value is found.

    Let k be the most rows of a person. A value that only one person has gets at most k whole votes, and there
    are at most k such values in each of the `columns`. Each may be found with probability delta / (columns *
    k). Rounded Gaussian noise is at least m with probability P(Z >= m - 1/2). The bound P(Z >= m - 1) is used
    here, which also holds for the discrete Gaussian (Canonne, Kamath and Steinke, 2020, Proposition 25).

    Examples
    --------
    One vote and 6.36 times sigma, for a probability of 1e-10:

    >>> round(threshold(10.0 * VOTE, 1e-10, columns=1, rows_per_unit=1) / VOTE, 1)
    64.6
    """
    probability = delta / (columns * rows_per_unit)
    if not probability:
        raise InputError("delta is too small to find values: raise it, or list the values in the schema")
    # A unit more than needed, for the last digits of ndtri
    margin = ceil(-sigma * float(ndtri(probability))) + 2
    return rows_per_unit * VOTE + margin


def by_kind(released: Mapping[str, Sequence[Any]]) -> Found:
    """Return the values found of each column, by kind."""
    kinds: dict[Kind, set[Any]] = {}
    for name, values in released.items():
        for value in values:
            kinds.setdefault((name, type(value).__name__), set()).add(value)
    return kinds


def _left(values: Sequence[Any], codes: Integers, released: Set[Any]) -> Integers:
    """Return the index of each row's value, and -1 if that value is found."""
    if not released:
        return codes
    indices = np.array([-1 if value in released else index for index, value in enumerate(values)] + [-1])
    return indices[codes]


def _votes(columns: Sequence[Integers]) -> Ints:
    """Return what each row gives to each of its values that are left; see `vote_weights`.

    The vote of a row follows from its own cells and from released values only.
    """
    values_left = np.sum([codes >= 0 for codes in columns], axis=0, dtype=np.int64)
    return vote_weights(len(columns))[values_left]


def vote_weights(columns: int) -> Ints:
    """Return what a row gives to each of its m values that are left, for m from 0: VOTE / sqrt(m).

    It is rounded down.
    The m squares of at most VOTE^2 / m sum to at most VOTE^2.
    """
    return np.array([0, *(isqrt(VOTE**2 // m) for m in range(1, columns + 1))], np.int64)


def summary(ledger: RunLedger) -> str | None:
    """Return one line on what was looked for and its part of the budget; None if nothing was."""
    questions = ([spend for spend in ledger.spends if spend.what.startswith(kind)] for kind in KINDS)
    searches = [spends for spends in questions if spends]
    if not searches:
        return None
    topics = [reduce(str.removesuffix, ENDS, spends[0].what) for spends in searches]
    share = fsum(spend.cost for spends in searches for spend in spends) / ledger.budget
    delta = f" and {ledger.reserved / ledger.promised_delta:.0%} of delta" if ledger.reserved else ""
    if (rows := rows_needed(ledger)) is not None:
        fewest, largest = rows
        more = f" to {largest:,}" if largest > fewest else ""
        topics.append(
            f"a value needs some {fewest:,}{more} rows to be found; others are (other), or absent if few"
        )
    return f"looked for under privacy, for {share:.0%} of the budget{delta}: {'; '.join(topics)}"


def bounds_noise(ledger: RunLedger, names: Iterable[str], table: str = "") -> dict[str, float]:
    """Return the noise in a cell of the last counts by which bounds of each column were found, in rows.

    It is the sigma of Gaussian noise with the same far tail. Columns whose bounds were given are left out. Of
    linked tables it is about one `table`.

    >>> from privsyn.private.spend import Spend
    >>> spends = (
    ...     Spend("bounds of age, pay", 99, 2**0.5, 10.0, law="gaussian"),
    ...     Spend("bounds of pay (closer)", 9, 1.0, 20.0, law="gaussian"),
    ... )
    >>> ledger = RunLedger(spends, 4.0, 1e-5, "gaussian", "operating system", True, (), "1.0")
    >>> bounds_noise(ledger, ["age", "job", "pay"])
    {'age': 10.0, 'pay': 20.0}
    """
    return {
        name: LAWS[spend.law].tail(spend.sigma)
        for name in names
        for spend, columns in _asked(ledger, BOUNDS, table)
        if not spend.what.endswith(SIZE) and f", {name}, " in columns
    }


def columns_of(ledger: RunLedger, kind: str, names: Iterable[str], table: str = "") -> tuple[str, ...]:
    """Return the columns that the questions of a kind were about, such as `BOUNDS` or `VALUES`.

    Of linked tables it is about one `table`, by its title in the ledger.

    >>> from privsyn.private.spend import Spend
    >>> spends = (Spend("values of job, town (round 1 of 2)", 2, 2.0**10, 1e4, delta=1e-10),)
    >>> ledger = RunLedger(spends, 4.0, 1e-5, "gaussian", "operating system", True, (), "1.0")
    >>> columns_of(ledger, VALUES, ["age", "job", "town"])
    ('job', 'town')
    """
    questions = _asked(ledger, kind, table)
    return tuple(name for name in names if any(f", {name}, " in columns for _, columns in questions))


def _asked(ledger: RunLedger, kind: str, table: str) -> list[tuple[Spend, str]]:
    """Return the questions of a kind, about one of several tables, and the columns of each between commas."""
    begin, questions = f"{table}: {kind} " if table else f"{kind} ", []
    for spend in ledger.spends:
        if spend.what.startswith(begin):
            names = reduce(str.removesuffix, ENDS, spend.what.removeprefix(begin))
            questions.append((spend, f", {names}, "))
    return questions


def deviation_of(ledger: RunLedger, kind: str, name: str, table: str = "") -> float:
    """Return the standard deviation of the noise in questions of a kind about a column, at least 0."""
    questions = (spend for spend, columns in _asked(ledger, kind, table) if f", {name}, " in columns)
    return max((sqrt(LAWS[spend.law].variance(spend.sigma)) for spend in questions), default=0.0)


def fine_deviation(ledger: RunLedger, table: str = "") -> float:
    """Return the standard deviation of the noise in the first counts, those of all cells; 0 without any.

    >>> spends = Spend(ONE_WAYS, 9, 2**0.5, 20.0), Spend(f"{ONE_WAY} age", 3, 1.0, 10.0)
    >>> fine_deviation(RunLedger(spends, 4.0, 1e-5, "gaussian", "operating system", True, (), "1.0"))
    20.0
    """
    questions = (spend for spend, columns in _asked(ledger, ONE_WAY, table) if columns.startswith(EVERY))
    return max((sqrt(LAWS[spend.law].variance(spend.sigma)) for spend in questions), default=0.0)


def count_variance(ledger: RunLedger, name: str, table: str = "") -> float:
    """Return the noise variance of a count of an attribute from the questions about it alone; 0 without any.

    >>> spends = Spend(ONE_WAYS, 9, 2**0.5, 20.0), Spend(f"{ONE_WAY} age", 3, 1.0, 20.0)
    >>> ledger = RunLedger(spends, 4.0, 1e-5, "gaussian", "operating system", True, (), "1.0")
    >>> count_variance(ledger, "age"), count_variance(ledger, "pay")
    (200.0, 400.0)
    """
    questions = [
        spend
        for spend, columns in _asked(ledger, ONE_WAY, table)
        if columns == f", {name}, " or columns.startswith(EVERY)
    ]
    precision = sum(1 / LAWS[spend.law].variance(spend.sigma) for spend in questions)
    return 1 / precision if precision else 0.0


def rows_needed(ledger: RunLedger, table: str = "") -> tuple[int, int] | None:
    """Return how many rows reach the threshold of the last search for values; None if there was none.

    Both numbers are rounded to two digits. A row gives a whole vote if its values in other columns are found
    already. It gives the least, of which the second number is needed, if none of them is. Of linked tables it
    is about one `table`, by its title in the ledger.
    """
    searches = _asked(ledger, VALUES, table)
    if not searches:
        return None
    last, _ = searches[-1]
    of_person = round(last.sensitivity / VOTE)
    votes = threshold(last.sigma, last.delta, columns=last.answers, rows_per_unit=of_person)
    fewest, largest = (int(float(f"{votes / VOTE * factor:.2g}")) for factor in (1.0, sqrt(last.answers)))
    return fewest, largest
