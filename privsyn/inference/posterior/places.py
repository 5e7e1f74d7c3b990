"""Draw where records lie inside merged codes: the shares of the original codes, and their dependence.

A merged code of a number joins many original ones. A synthetic table has the expected shares of these, and
they do not depend on the other columns. No count shows either. So each draw tilts the shares, and lets places
inside merged codes depend on each other as in a Gaussian copula, more strongly, or less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from privsyn.inference.posterior.inside import places_in
from privsyn.marginals.domain import Records
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Codes, Floats

TILT = 0.5
"""Prior standard deviation of the mean place in a merged code, in standard deviations of the place.

Chosen on six runs of each real table of docs/inference.md."""

MOST = 2.0
"""Largest strength of dependence inside merged codes: on average, it is that of a Gaussian copula, 1."""

SWEEPS = 4  # of Gibbs sampling: in the test's copula, places then have 94 % of its dependence
RIDGE = 0.02  # added to the variance of normal scores, because columns may determine each other
EDGE = 1e-12


@dataclass(frozen=True, eq=False)
class DrawnPlaces(Merging):
    """A merging in which places inside merged codes depend on each other.

    Parameters
    ----------
    original, merged, groups, shares
        See `Merging`.
    strength : float
        0 for independent places, 1 for the Gaussian copula of the records.
    """

    strength: float = 0.0

    @classmethod
    def draw(cls, merging: Merging, rng: np.random.Generator) -> DrawnPlaces:
        """Return drawn shares, and a drawn strength."""
        shares = [
            _tilted(group, share, ordered, rng)
            for group, share, ordered in zip(
                merging.groups, merging.shares, merging.original.ordered, strict=True
            )
        ]
        strength = MOST * rng.random()
        return cls(merging.original, merging.merged, merging.groups, tuple(shares), strength)

    def restore(self, records: Records, rng: np.random.Generator) -> Records:
        """Return records in original codes; see `Merging.restore`."""
        inside = rng.random(records.codes.shape)
        joined = [
            j
            for j, (group, ordered) in enumerate(zip(self.groups, self.merged.ordered, strict=True))
            if ordered > 2 and len(group) > group.max() + 1
        ]
        if len(joined) > 1 and len(records):
            inside[:, joined] = _dependent(records.codes[:, joined], inside[:, joined], self.strength, rng)
        return self.placed(records, inside.T)


def _tilted(group: Codes, share: Floats, ordered: int, rng: np.random.Generator) -> Floats:
    """Return the shares of original codes with another mean place in each merged code."""
    tilt = TILT * rng.standard_normal(int(group.max()) + 1)
    weight = share * np.exp(tilt[group] * places_in(share, group, ordered))
    return np.asarray(weight / np.bincount(group, weight)[group])


def _dependent(codes: Codes, inside: Floats, strength: float, rng: np.random.Generator) -> Floats:
    """Return places from 0 to 1 inside the codes, uniform in each code.

    Normal scores are drawn given all other columns and the codes, by Gibbs sampling (Hoff, Annals of Applied
    Statistics 2007). Only their order inside each code is used.
    """
    rows, columns = codes.shape
    lows, highs, scores = (np.empty((rows, columns)) for _ in range(3))
    for j in range(columns):
        counts = np.bincount(codes[:, j])
        ends = np.concatenate([[0.0], np.cumsum(counts)]) / rows
        lows[:, j], highs[:, j] = ends[codes[:, j]], ends[codes[:, j] + 1]
        scores[:, j] = _normal(lows[:, j] + inside[:, j] * (highs[:, j] - lows[:, j]))
    lows, highs = _normal(lows), _normal(highs)
    for _ in range(SWEEPS):
        centred = scores - scores.mean(axis=0)
        centred /= np.maximum(centred.std(axis=0), EDGE)
        precision = np.linalg.inv(centred.T @ centred / rows + RIDGE * np.eye(columns))
        for j in range(columns):
            own = precision[j, j]
            mean = strength * (scores[:, j] - scores @ precision[j] / own)
            scale = 1 / np.sqrt(own)
            low, high = ndtr((lows[:, j] - mean) / scale), ndtr((highs[:, j] - mean) / scale)
            drawn = mean + scale * _normal(low + (high - low) * rng.random(rows))
            scores[:, j] = np.clip(drawn, lows[:, j], highs[:, j])
    places = np.empty((rows, columns))
    for j in range(columns):
        order = np.lexsort((inside[:, j], scores[:, j], codes[:, j]))
        counts = np.bincount(codes[:, j])
        first = (np.cumsum(counts) - counts)[codes[order, j]]
        places[order, j] = (np.arange(rows) - first + rng.random(rows)) / counts[codes[order, j]]
    return places


def _normal(shares: Floats) -> Floats:
    return np.asarray(ndtri(np.clip(shares, EDGE, 1 - EDGE)))
