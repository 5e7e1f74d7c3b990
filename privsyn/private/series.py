"""Series: releases that rest on each other, and which of them one person may be in.

A table that grows is published release by release. A later release may be made with rows drawn from earlier
ones, which is post-processing of these. A person changes the answers of those releases whose tables have a
row of this person, so these releases are composed. Let F be the family of the largest sets of releases that
may be about one person. Each set has the epsilon and delta of its composition, and the series has the largest
of these epsilons at the largest of these deltas. If nobody is in two tables, F has a set for each release
(parallel composition, McSherry 2009). If nothing is stated, F is the one set of all releases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import fsum, isfinite
from typing import Any, get_args

from privsyn.private.accounting import Accounting, rho_for
from privsyn.private.composition import ROUNDING, Composition, Promise, compose

MOST_SETS = 1_000
"""Of a larger family only the set of all releases is kept, which promises less."""

NUMBERS = ("epsilon", "delta", "budget", "reserved")
"""What a ledger keeps of a promise, beside its accounting and the epsilon of randomised cells."""


@dataclass(frozen=True)
class Published:
    """A release as the ledger of a later one keeps it.

    Parameters
    ----------
    promise : Promise
    run : str, optional
        The random name of its run. Without one it counts each time that it is named.
    """

    promise: Promise
    run: str | None = None

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        promise = self.promise
        local = {} if promise.local_epsilon is None else {"local_epsilon": promise.local_epsilon}
        numbers = {name: getattr(promise, name) for name in NUMBERS}
        return {"run": self.run, "accounting": promise.accounting, **numbers, **local}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Published:
        """Return what `to_plain` wrote; raise an error if it did not write it."""
        epsilon, delta, budget, reserved = numbers = [float(plain[name]) for name in NUMBERS]
        local = float(plain["local_epsilon"]) if "local_epsilon" in plain else None
        accounting, run = plain["accounting"], plain["run"]
        if not all(isfinite(number) and number >= 0 for number in (*numbers, local or 0.0)) or not epsilon:
            raise ValueError("not a promise")
        if accounting not in get_args(Accounting) or not isinstance(run, str | None):
            raise ValueError("not a release")
        if budget < rho_for(epsilon, delta - reserved, accounting) * (1 - ROUNDING):
            raise ValueError("a budget below that of its epsilon and delta")
        return cls(Promise(epsilon, delta, accounting, budget, reserved, local), run)


@dataclass(frozen=True)
class Series:
    """Releases that rest on each other.

    Parameters
    ----------
    releases : tuple of Published
    sets : tuple of tuples of int
        The largest sets of releases, by their positions, whose tables may have rows of one person.

    Raises
    ------
    ValueError
        If a release is in no set, or a set names no release.

    Examples
    --------
    >>> january, february = (Series.of(Promise.pure(epsilon), f"run {epsilon}") for epsilon in (1.0, 0.5))
    >>> Series.join([january, february], disjoint=False).together("add or remove one record").epsilon
    1.5
    >>> Series.join([january, february], disjoint=True).together("add or remove one record").epsilon
    1.0
    """

    releases: tuple[Published, ...]
    sets: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if {index for members in self.sets for index in members} != {*range(len(self.releases))}:
            raise ValueError("sets that are not those of the releases")
        if len(set(self._keys)) < len(self.releases):
            raise ValueError("a run that is named twice")

    @classmethod
    def of(cls, promise: Promise, run: str | None) -> Series:
        """Return the series of one release."""
        return cls((Published(promise, run),), ((0,),))

    @classmethod
    def join(cls, series: Iterable[Series], *, disjoint: bool) -> Series:
        """Return the series of all releases, each run once.

        Parameters
        ----------
        series : iterable of Series
            One all of whose runs are in another is left out: the other one says of them what is known.
        disjoint : bool
            Whether it is stated that nobody is in the tables of two of these series.
        """
        keyed = [(member._keys, member) for member in series]
        joined = dict[object, Published]()
        family = set[frozenset[object]]()
        for number, (keys, member) in enumerate(keyed):
            if any(set(keys) < set(runs) for runs, _ in keyed) or keys in [k for k, _ in keyed[:number]]:
                continue
            joined |= zip(keys, member.releases, strict=True)
            further = {frozenset(keys[index] for index in members) for members in member.sets}
            if disjoint or not family:
                family |= further
            elif len(family) * len(further) > MOST_SETS:
                family = {frozenset(joined)}
            else:
                family = {first | second for first, second in product(family, further)}
            family = {members for members in family if not any(members < larger for larger in family)}
        position = {key: index for index, key in enumerate(joined)}
        sets = (tuple(sorted(position[key] for key in members)) for members in family)
        return cls(tuple(joined.values()), tuple(sorted(sets)))

    @property
    def _keys(self) -> tuple[object, ...]:
        """What tells runs apart. A run without a name is taken for no other one: it may count twice."""
        return tuple(
            object() if release.run is None else (release.run, release.promise) for release in self.releases
        )

    def together(self, neighbours: str, delta: float | None = None) -> Composition:
        """Return what all releases promise together; see `Ledger.compose`."""
        return compose([release.promise for release in self.releases], neighbours, delta, self.sets)

    @property
    def gaussian(self) -> tuple[float, float] | None:
        """The rho of one Gaussian answer that is as private as all releases together, and a delta beside it.

        None if a run of the series has another law of noise, or another accounting, or columns that the
        respondents randomised. Answers of a set are together one Gaussian answer, whose rho is the sum of
        their rhos, beside the sum of the deltas of their thresholds. Of several sets the largest rho and the
        largest of these deltas hold. docs/proofs.md has the proof.

        >>> run = Promise(1.0, 1e-9, "gaussian", 0.03, 1e-10)
        >>> january, february = Series.of(run, "january"), Series.of(run, "february")
        >>> Series.join([january, february], disjoint=False).gaussian
        (0.06, 2e-10)
        """
        promises = [release.promise for release in self.releases]
        if any(p.accounting != "gaussian" or p.local_epsilon is not None for p in promises):
            return None

        def largest(number: str) -> float:
            return max(fsum(getattr(promises[i], number) for i in members) for members in self.sets)

        return largest("budget"), largest("reserved")

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data for JSON."""
        return {
            "releases": [release.to_plain() for release in self.releases],
            "sets": [list(members) for members in self.sets],
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Series:
        """Return what `to_plain` wrote; raise an error if it did not write it."""
        sets: Sequence[Sequence[int]] = plain["sets"]
        if not all(type(index) is int for members in sets for index in members):
            raise TypeError
        return cls(tuple(map(Published.from_plain, plain["releases"])), tuple(map(tuple, sets)))
