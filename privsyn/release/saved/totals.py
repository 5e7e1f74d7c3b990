"""Known totals in a file, which may come from anywhere: plain data and arrays, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from privsyn.marginals.domain import Array, Domain
from privsyn.marginals.known_totals import EXACT, KnownTotals
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.release.saved.arrays import Arrays, check_groups


def totals_to_plain(totals: KnownTotals) -> tuple[list[list[str]], dict[str, Array]]:
    """Return the attributes of each table, and its counts and the groups of its codes."""
    arrays: dict[str, Array] = {}
    for j, table in enumerate(totals.tables):
        arrays[f"counts_{j}"] = table.marginal.counts
        arrays |= {f"groups_{j}_{axis}": group for axis, group in enumerate(table.grouping.groups)}
    return [list(table.attributes) for table in totals.tables], arrays


def totals_from_plain(sets: Sequence[Sequence[str]], arrays: Arrays, domain: Domain) -> KnownTotals:
    """Return the totals; raise if they are no exact counts of codes of `domain`."""
    tables = []
    for j, names in enumerate(sets):
        codes = domain.project(tuple(names))
        grouping = Grouping(
            tuple(
                check_groups(arrays.read(name), size)
                for axis, size in enumerate(codes.shape)
                if arrays.has(name := f"groups_{j}_{axis}")
            )
        )
        if len(grouping.groups) not in (0, len(codes)):
            raise ValueError("groups of other codes than those of the totals")
        counts = arrays.read(f"counts_{j}", grouping.domain(codes).shape).astype(np.float64)
        tables.append(Measurement(Marginal(grouping.domain(codes), counts), EXACT, grouping))
    return KnownTotals(tuple(tables))
