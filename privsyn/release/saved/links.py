"""How rows depend on other rows, in a file: plain data and arrays, and back. It may come from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privsyn.marginals.domain import Array, Domain
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.release.saved.arrays import Arrays, check_groups
from privsyn.release.table_model import TableModel
from privsyn.synthesis.chains import OF_ROWS, Context, LinkingTable, Links, Previous

MOST_CODE = 2**31 - 1


def links_to_plain(links: Links) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the links as plain data and arrays."""
    kinds: dict[str, list[Array]] = {
        "context": [context.groups for context in links.context.values()],
        "previous": [previous.groups for previous in links.previous.values()],
        "table": [table.counts for table in links.tables],
        "measured": [linking.measured.marginal.counts for linking in links.linking],
        "noise": [linking.measured.variance for linking in links.linking],
    }
    arrays = {f"{kind}_{j}": cells for kind, tables in kinds.items() for j, cells in enumerate(tables)}
    for j, linking in enumerate(links.linking):
        groups = linking.measured.grouping.groups
        arrays |= {f"measured_{j}_{axis}": group for axis, group in enumerate(groups)}
    plain = {
        "context": {name: [context.table, context.attribute] for name, context in links.context.items()},
        "previous": {name: [previous.column, previous.lag] for name, previous in links.previous.items()},
        "tables": [list(table.attributes) for table in links.tables],
        "ordered": [list(table.domain.ordered) for table in links.tables],
    }
    return plain, arrays | {"errors": np.array([linking.error for linking in links.linking], np.float64)}


def links_from_plain(
    plain: Mapping[str, Any], arrays: Arrays, sizes: Mapping[str, int], above: Mapping[str, TableModel]
) -> Links:
    """Return the links of a table; raise if they do not fit the tables above it.

    Parameters
    ----------
    plain : mapping
    arrays : Arrays
    sizes : mapping of each attribute of the table to its number of codes
    above : mapping of each table above to its model
    """
    contexts, previous = {}, {}
    linking: dict[str, tuple[int, int]] = {}  # the least and largest number of codes of each attribute
    for j, (name, (table, attribute)) in enumerate(plain["context"].items()):
        groups = arrays.read(f"context_{j}")
        are_codes = groups.ndim == 1 and groups.dtype.kind in "iu" and len(groups) > 0
        if not are_codes or groups.min() < 0 or groups.max() >= MOST_CODE:
            raise ValueError(f"{name}: no groups of codes")
        if table and len(groups) != above[table].fitted.merging.merged.size_of[attribute]:
            raise ValueError(f"{name}: other groups than the table above")
        if not table and attribute not in OF_ROWS:
            raise ValueError(f"{name}: of no column, and of no number of rows")
        contexts[name] = Context(str(table), str(attribute), groups.astype(np.int32))
        linking[name] = int(groups.max()) + 1, MOST_CODE
    for j, (name, (column, lag)) in enumerate(plain["previous"].items()):
        groups = check_groups(arrays.read(f"previous_{j}"), sizes[column])
        previous[name] = Previous(str(column), groups, lag)
        if lag not in (1, 2):
            raise ValueError(f"{name}: of no row before")
        linking[name] = (previous[name].none + 1,) * 2
    tables = []
    for j, (names, ordered) in enumerate(zip(plain["tables"], plain["ordered"], strict=True)):
        counts = arrays.read(f"table_{j}").astype(np.float64)
        if not (counts >= 0).all():
            raise ValueError("negative counts")
        domain = Domain(tuple(names), counts.shape, tuple(ordered))
        for name, size in domain.size_of.items():
            smallest, largest = (sizes[name],) * 2 if name in sizes else linking[name]
            if not smallest <= size <= largest:
                raise ValueError(f"{name}: other codes than the column")
        tables.append(Marginal(domain, counts))
    errors = arrays.read("errors").astype(np.float64)
    if errors.shape != (len(tables),) or not ((errors >= 0) & (errors <= 1)).all():
        raise ValueError("an error of a table is a share of its rows")
    linking_tables = (
        LinkingTable(table, _measured(arrays, j, table.domain), float(errors[j]))
        for j, table in enumerate(tables)
    )
    return Links(contexts, previous, tuple(linking_tables))


def _measured(arrays: Arrays, j: int, domain: Domain) -> Measurement:
    """Return the measurement of the j-th table of this domain, or of groups of its codes."""
    groups = tuple(
        check_groups(arrays.read(name), size)
        for axis, size in enumerate(domain.shape)
        if arrays.has(name := f"measured_{j}_{axis}")
    )
    grouping = Grouping(groups)
    if groups and len(groups) < len(domain):
        raise ValueError("other groups than of the table")
    counts, variance = (arrays.read(f"{kind}_{j}").astype(np.float64) for kind in ("measured", "noise"))
    measured = grouping.domain(domain) if grouping else domain
    if not (counts.shape == variance.shape == measured.shape):
        raise ValueError("other counts than of the table")
    return Measurement(Marginal(measured, counts), variance, grouping)
