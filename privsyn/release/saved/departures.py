"""The departures of pairs in a file: plain data and arrays, and back. It may come from anywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privsyn.inference.departures import NO_DEPARTURES, Departures
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
