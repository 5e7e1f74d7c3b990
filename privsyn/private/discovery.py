"""Question 0: the values and bounds that the schema does not give.

Values. Every row has one vote, a vector of L2 length 1 over the values that it holds and that are not found
yet, in all columns together. A value whose votes, with noise, reach a threshold is found, and in the second
round each row's vote goes to what is left: a row whose values were all found but one casts all of it there.

Bounds. Every row lies in one cell of a public grid. The noisy counts of the cells are released. The bounds,
and a second grid, follow from them alone (`privsyn.table.discovery.bounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from math import ceil, fsum, isqrt, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri

from privsyn.errors import InputError
from privsyn.marginals.types import Integers, Ints
from privsyn.private.accounting import sigma_for
from privsyn.private.ledger import Ledger
from privsyn.private.noise import Noise, release
from privsyn.private.spend import Spend

ROUNDS = (0.2, 0.8)  # of the budget for values: the first finds the common ones, so that votes go to the rest

VALUES, BOUNDS = "values of", "bounds of"
"""How the questions begin in the ledger."""

VOTE = 2**10
"""Units of a whole vote: noise is added to integers only."""


Kind = tuple[str, str]
"""A column, and the name of a type of values in it: 1, 1.0 and True are equal, and three values."""

Held = Mapping[Kind, tuple[Sequence[Any], Integers]]
"""Some rows. For each kind some values, no two alike, and the place of each row's among them, or -1. Of the
kinds of one column a row holds one at most. Private."""

Votes = dict[Kind, dict[Any, int]]
"""The sum of the votes of each value that occurs, in units of 1 / VOTE. Private."""

Found = Mapping[Kind, Set[Any]]
"""The values of each kind that were found before: released."""


def count_votes(held: Held, found: Found) -> Votes:
    """What some rows vote for, the values that are found left out. Private.

    Each row votes by itself (`_votes`), so the votes of a table are the sums of its parts' (`add_votes`).

    Examples
    --------
    >>> held = {
    ...     ("town", "str"): (["Rome", "Oslo"], np.array([0, 0, 1])),
    ...     ("job", "str"): (["cook"], np.array([-1, 0, 0])),
    ... }
    >>> votes = count_votes(held, {})
    >>> votes["town", "str"], votes["job", "str"]
    ({'Rome': 1748, 'Oslo': 724}, {'cook': 1448})
    >>> count_votes(held, {("town", "str"): {"Rome"}})["job", "str"]  # the second row casts its whole vote
    {'cook': 1748}
    """
    left = {kind: _left(*column, found.get(kind, frozenset())) for kind, column in held.items()}
    weights = _votes(list(left.values()))
    votes = {}
    for kind, codes in left.items():
        values, has = held[kind][0], codes >= 0
        sums = np.bincount(codes[has], weights[has], len(values)).astype(np.int64)
        votes[kind] = {value: units for value, units in zip(values, sums.tolist(), strict=True) if units}
    return votes


def add_votes(some: Votes, others: Votes) -> Votes:
    """The votes of two parts of a table together.

    Neither is changed: a cluster that loses a machine may add the same part again.

    >>> add_votes({("town", "str"): {"Rome": 1024}}, {("town", "str"): {"Oslo": 1024, "Rome": 724}})
    {('town', 'str'): {'Oslo': 1024, 'Rome': 1748}}
    """
    votes = {}
    for kind in {**some, **others}:
        fewer, more = sorted((some.get(kind, {}), others.get(kind, {})), key=len)
        votes[kind] = sums = dict(more)
        for value, units in fewer.items():
            sums[value] = sums.get(value, 0) + units
    return votes


def find_values(
    columns: Sequence[str],
    ask: Callable[[Found], Votes],
    *,
    rho: float,
    delta: float,
    noise: Noise,
    rows_per_unit: int = 1,
) -> tuple[dict[str, tuple[Any, ...]], tuple[Spend, ...]]:
    """The values of each column that enough rows share, and what finding them cost.

    Privacy. Noise is added only to values that occur. Those that both of two neighbouring tables hold form
    one vector of votes, which one row moves by L2 length 1 at most (`_votes`), a person of k rows by k: the
    Gaussian mechanism. A value that only one person holds has at most k votes, and there are at most k of
    them in each column: `threshold` makes the chance that any is found at most the round's part of `delta`.
    Else the neighbours' releases do not differ by it, for its noise is its own. `Ledger` says how delta and
    rho go together. The order of a release follows from noisy votes and the values themselves.

    Parameters
    ----------
    columns : sequence of str
        Whose values are to be found.
    ask : callable
        The votes of all rows for what is not among values that are found.
    rho, delta : float
        The budget of both rounds together.
    noise : Noise
    rows_per_unit : int
        The most rows that one person brings.

    Examples
    --------
    >>> from privsyn.private.noise import SeededGaussian
    >>> held = {("town", "str"): (["Rome", "Oslo", "Atlantis"], np.repeat([0, 1, 2], [900, 500, 1]))}
    >>> ask = lambda found: count_votes(held, found)
    >>> find_values(["town"], ask, rho=0.01, delta=1e-10, noise=SeededGaussian(0))[0]
    {'town': ('Rome', 'Oslo')}
    """
    found: dict[str, list[Any]] = {name: [] for name in columns}
    spends: list[Spend] = []
    for number, share in enumerate(ROUNDS if columns else (), start=1):
        sigma = sigma_for(share * rho, float(rows_per_unit * VOTE))
        what = f"{VALUES} {', '.join(columns)} (round {number} of {len(ROUNDS)})"
        spends.append(
            Spend(what, len(columns), float(rows_per_unit * VOTE), sigma, delta=delta / len(ROUNDS))
        )
        enough = threshold(sigma, delta / len(ROUNDS), columns=len(columns), rows_per_unit=rows_per_unit)
        for name, values in _passed(columns, ask(_by_kind(found)), sigma, enough, noise).items():
            found[name] += values
    return {name: tuple(values) for name, values in found.items()}, tuple(spends)


def _passed(
    columns: Sequence[str], votes: Votes, sigma: float, enough: int, noise: Noise
) -> dict[str, list[Any]]:
    """The values of each column whose noisy votes are enough, those with most first."""
    found = {}
    for name in columns:
        kinds = sorted(kind for kind in votes if kind[0] == name)
        # By type and size: the order of rows and parts decides nothing, and a seed gives the same again.
        occur = [value for kind in kinds for value in sorted(votes[kind])]
        units = (votes[name, type(value).__name__][value] for value in occur)
        exact = np.fromiter(units, np.int64, len(occur))
        noisy = release(exact, sigma, noise)
        passed = np.flatnonzero(noisy >= enough)
        found[name] = _sorted([occur[place] for place in passed.tolist()], noisy[passed].tolist())
    return found


def _by_kind(found: Mapping[str, Sequence[Any]]) -> Found:
    kinds: dict[Kind, set[Any]] = {}
    for name, values in found.items():
        for value in values:
            kinds.setdefault((name, type(value).__name__), set()).add(value)
    return kinds


def threshold(sigma: float, delta: float, *, columns: int, rows_per_unit: int) -> int:
    """The fewest votes, in units, at which a value is found.

    A value of one person alone has at most k whole votes, k rows being the most of a person, and there are
    at most k of them in each of the `columns`: each may be found with chance delta / (columns * k). A noise
    of at least m has a chance of P(Z >= m - 1/2) where it is rounded, at most P(Z >= m - 1) where it is the
    discrete Gaussian (Canonne, Kamath and Steinke, 2020, Proposition 25): the latter is taken.

    Examples
    --------
    One vote and 6.36 times sigma, for a chance of one in 10^10:

    >>> round(threshold(10.0 * VOTE, 1e-10, columns=1, rows_per_unit=1) / VOTE, 1)
    64.6
    """
    chance = delta / (columns * rows_per_unit)
    if not chance:
        raise InputError("delta is too small to find values by: raise it, or list the values in the schema")
    margin = ceil(-sigma * float(ndtri(chance))) + 2  # a unit more than needed: the inverse's last digits
    return rows_per_unit * VOTE + margin


def _left(values: Sequence[Any], codes: Integers, found: Set[Any]) -> Integers:
    """The place of each row's value, -1 also where that is found."""
    if not found:
        return codes
    places = np.array([-1 if value in found else place for place, value in enumerate(values)] + [-1])
    return places[codes]


def _votes(left: Sequence[Integers]) -> Ints:
    """What each row gives to each of the m values it holds that are left: VOTE / sqrt(m), rounded down.

    A row's vote follows from its own cells and from released values alone, and m squares of at most
    VOTE^2 / m sum to VOTE^2 at most.
    """
    held = np.sum([codes >= 0 for codes in left], axis=0, dtype=np.int64)
    weights = [0, *(isqrt(VOTE**2 // m) for m in range(1, len(left) + 1))]
    return np.array(weights, np.int64)[held]


def _sorted(values: list[Any], votes: list[int]) -> list[Any]:
    """Most votes first, then by type and text: never in the order of the rows."""
    order = sorted(
        zip(votes, values, strict=True), key=lambda pair: (-pair[0], str(type(pair[1])), repr(pair[1]))
    )
    return [value for _, value in order]


def count_cells(
    counts: Mapping[str, Ints], *, rho: float, noise: Noise, rows_per_unit: int = 1, look: str = ""
) -> tuple[dict[str, tuple[Ints, float]], tuple[Spend, ...]]:
    """How many rows lie in each cell of each column's ruler, with noise, and what that cost.

    A row lies in one cell of each column's ruler at most: a record more changes each count vector in one
    cell by 1, all columns together by sqrt(columns) in L2; a person of k rows by k times that. So it is
    for any rulers that are made of public facts and released counts, as those of a second look are.

    Parameters
    ----------
    counts : mapping of a column to how many rows lie in each cell of its ruler
        Private.
    rho : float
        Budget of all of it, in zCDP.
    noise : Noise
    rows_per_unit : int
        The most rows that one person brings.
    look : str
        What the ledger says beside the columns.
    """
    if not counts:
        return {}, ()
    sensitivity = rows_per_unit * sqrt(len(counts))
    sigma = sigma_for(rho, sensitivity)
    answers = sum(exact.size for exact in counts.values())
    spend = Spend(f"{BOUNDS} {', '.join(counts)}{look}", answers, sensitivity, sigma)
    return {name: (release(exact, sigma, noise), sigma) for name, exact in counts.items()}, (spend,)


def summary(ledger: Ledger) -> str | None:
    """One line on what was found under privacy and what part of the budget it took; None if nothing was."""
    values = [spend for spend in ledger.spends if spend.what.startswith(VALUES)]
    bounds = [spend for spend in ledger.spends if spend.what.startswith(BOUNDS)]
    if not values + bounds:
        return None
    what = [spends[0].what.split(" (round ")[0] for spends in (values, bounds) if spends]
    share = fsum(spend.rho for spend in values + bounds) / ledger.budget
    delta = f" and {ledger.reserved / ledger.promised_delta:.0%} of delta" if ledger.reserved else ""
    return f"found under privacy, for {share:.0%} of the budget{delta}: {'; '.join(what)}"
