"""Departures and concordances: noisy answers about pairs, for pairs whose tables say little or nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from math import isfinite

import numpy as np

from privsyn.marginals.domain import Attributes, Codes, Floats, Mask, keep

NONE: Floats = np.zeros(0)
NONE.setflags(write=False)


@dataclass(frozen=True, eq=False)
class Departures:
    """Released L1 distances of pairs from the product of their one-way tables.

    Parameters
    ----------
    pairs : tuple of pairs of attributes
    distances : array of shape (pairs,)
        Noisy sums of absolute differences, in records.
    sigmas : array of shape (pairs,)
        Standard deviation of the noise in each, in records.
    blocks : mapping of an attribute to an integer array of shape (codes,)
        The block of each merged code of an attribute: the distances are those of tables in blocks.
    """

    pairs: tuple[Attributes, ...] = ()
    distances: Floats = field(default_factory=lambda: NONE)
    sigmas: Floats = field(default_factory=lambda: NONE)
    blocks: Mapping[str, Codes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        keep(self, "distances", "sigmas", dtype=np.float64)
        if not self.distances.shape == self.sigmas.shape == (len(self.pairs),):
            raise ValueError(f"distances of {len(self.distances)} pairs for {len(self.pairs)}")
        if not (np.isfinite(self.distances) & np.isfinite(self.sigmas) & (self.sigmas >= 0)).all():
            raise ValueError("a distance and its noise are finite numbers")
        if not all(len(pair) == 2 and self.blocks.keys() >= {*pair} for pair in self.pairs):
            raise ValueError("a distance of what is no pair")

    @cached_property
    def index(self) -> dict[frozenset[str], int]:
        """The place of each pair."""
        return {frozenset(pair): index for index, pair in enumerate(self.pairs)}

    def without(self, measured: Collection[frozenset[str]]) -> Departures:
        """Return the departures of the pairs that are not `measured`, which say nothing more."""
        return self._of(np.array([frozenset(pair) not in measured for pair in self.pairs], np.bool_))

    def only(self, names: Attributes) -> Departures:
        """Return the departures of pairs of some attributes."""
        wanted = {*names}
        return self._of(np.array([wanted.issuperset(pair) for pair in self.pairs], np.bool_))

    def _of(self, some: Mask) -> Departures:
        pairs = tuple(compress(self.pairs, some))
        named = {name for pair in pairs for name in pair}
        blocks = {name: block for name, block in self.blocks.items() if name in named}
        return replace(
            self, pairs=pairs, distances=self.distances[some], sigmas=self.sigmas[some], blocks=blocks
        )


@dataclass(frozen=True, eq=False)
class Concordances:
    """Released concordances of pairs; see `privsyn.inference.ordered.concordance`.

    Parameters
    ----------
    pairs : tuple of pairs of attributes
    measured : array of shape (pairs,)
        Concordant records minus discordant ones, with noise.
    variance : float
        Noise variance of each, in records squared.
    halves : mapping of an attribute to int
        The first merged code of its upper half.
    """

    pairs: tuple[Attributes, ...] = ()
    measured: Floats = field(default_factory=lambda: NONE)
    variance: float = 0.0
    halves: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        keep(self, "measured", dtype=np.float64)
        if self.measured.shape != (len(self.pairs),):
            raise ValueError(f"concordances of {len(self.measured)} pairs for {len(self.pairs)}")
        if not (np.isfinite(self.measured).all() and isfinite(self.variance) and self.variance >= 0):
            raise ValueError("a concordance and its noise are finite numbers")
        if not all(len(pair) == 2 and self.halves.keys() >= {*pair} for pair in self.pairs):
            raise ValueError("a concordance of what is no pair")

    @cached_property
    def index(self) -> dict[frozenset[str], int]:
        """The place of each pair."""
        return {frozenset(pair): index for index, pair in enumerate(self.pairs)}

    def only(self, names: Attributes) -> Concordances:
        """Return the concordances of pairs of some attributes."""
        some = [{*names}.issuperset(pair) for pair in self.pairs]
        pairs = tuple(compress(self.pairs, some))
        named = {name for pair in pairs for name in pair}
        halves = {name: code for name, code in self.halves.items() if name in named}
        measured = self.measured[np.array(some, np.bool_)]
        return replace(self, pairs=pairs, measured=measured, halves=halves)


NO_DEPARTURES, NO_CONCORDANCES = Departures(), Concordances()
# All releases share these two: what is pickled of them may not depend on what was asked of another release.
_ = NO_DEPARTURES.index, NO_CONCORDANCES.index
