"""Departures and concordances of pairs in a file, which may come from anywhere: plain data, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privsyn.inference.departures import NO_CONCORDANCES, NO_DEPARTURES, Concordances, Departures
from privsyn.marginals.domain import Array, Domain
from privsyn.release.saved.arrays import Arrays, check_groups


def departures_to_plain(departures: Departures, domain: Domain) -> tuple[list[int], dict[str, Array]]:
    """Return the numbers of the attributes that have blocks, and the arrays; none if there are no pairs."""
    if not departures.pairs:
        return [], {}
    index = {name: j for j, name in enumerate(domain.names)}
    blocked = sorted(index[name] for name in departures.blocks)
    return blocked, {
        "pairs": np.array([[index[name] for name in pair] for pair in departures.pairs], np.int32),
        "distances": departures.distances,
        "sigmas": departures.sigmas,
        "blocks": np.concatenate([departures.blocks[domain.names[j]] for j in blocked]),
    }


def departures_from_plain(blocked: Sequence[int], arrays: Arrays, domain: Domain) -> Departures:
    """Return the departures; raise if they are not of pairs of the domain's attributes."""
    if not blocked:
        return NO_DEPARTURES
    pairs, distances, sigmas = (arrays.read(name) for name in ("pairs", "distances", "sigmas"))
    sizes = [domain.sizes[j] for j in blocked]
    blocks = arrays.read("blocks", (sum(sizes),))
    if pairs.ndim != 2 or not ({*np.unique(pairs).tolist()} == {*blocked}):
        raise ValueError("departures of other attributes")
    parts = np.split(blocks, np.cumsum(sizes)[:-1])
    return Departures(
        tuple((domain.names[a], domain.names[b]) for a, b in pairs.tolist()),
        distances,
        sigmas,
        {
            domain.names[j]: check_groups(part, size)
            for j, part, size in zip(blocked, parts, sizes, strict=True)
        },
    )


def concordances_to_plain(concordances: Concordances, domain: Domain) -> tuple[list[int], dict[str, Array]]:
    """Return the numbers of the attributes that have halves, and the arrays; none if there are no pairs."""
    if not concordances.pairs:
        return [], {}
    index = {name: j for j, name in enumerate(domain.names)}
    halved = sorted(index[name] for name in concordances.halves)
    return halved, {
        "pairs": np.array([[index[name] for name in pair] for pair in concordances.pairs], np.int32),
        "measured": concordances.measured,
        "variance": np.array([concordances.variance]),
        "halves": np.array([concordances.halves[domain.names[j]] for j in halved], np.int32),
    }


def concordances_from_plain(halved: Sequence[int], arrays: Arrays, domain: Domain) -> Concordances:
    """Return the concordances; raise if they are not of pairs of the domain's attributes."""
    if not halved:
        return NO_CONCORDANCES
    pairs, measured = arrays.read("pairs"), arrays.read("measured")
    (variance,), halves = arrays.read("variance", (1,)), arrays.read("halves", (len(halved),))
    if pairs.ndim != 2 or not ({*np.unique(pairs).tolist()} == {*halved}):
        raise ValueError("concordances of other attributes")
    return Concordances(
        tuple((domain.names[a], domain.names[b]) for a, b in pairs.tolist()),
        measured,
        float(variance),
        {domain.names[j]: half for j, half in zip(halved, halves.tolist(), strict=True)},
    )
