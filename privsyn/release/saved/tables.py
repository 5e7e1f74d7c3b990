"""The model of one table in a file: plain data and arrays, and back. A file may come from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isclose, isfinite
from typing import Any

import numpy as np

from privsyn.errors import printable, safe_repr
from privsyn.inference.composition import Composition
from privsyn.inference.departures import NO_CONCORDANCES, NO_DEPARTURES, Concordances, Departures
from privsyn.inference.fitted import NO_COMMON, Certainty, Fitted
from privsyn.inference.public.rows import PublicRows
from privsyn.marginals.counting import code_type
from privsyn.marginals.domain import Array, Domain, Records
from privsyn.marginals.known_totals import EXACT, KnownTotals
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.methods.methods import METHODS
from privsyn.private.run_ledger import RunLedger
from privsyn.release.losses.kinds import Loss
from privsyn.release.saved.arrays import (
    Arrays,
    JoinedArrays,
    check_groups,
    is_by_columns,
    joined,
    measurement_of,
    named_arrays,
    read_arrays,
)
from privsyn.release.saved.links import links_from_plain, links_to_plain
from privsyn.release.table_model import TableModel
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.dtypes import family, parse_dtype
from privsyn.table.io.output_type import OutputType
from privsyn.table.schema.columns import COLUMNS, Coded
from privsyn.table.schema.constraint import CONSTRAINTS
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import from_plain, to_plain

SAME_TOTAL = 1e-6  # largest relative difference between the totals of consistent tables

A_CODE = 100  # bytes that a codec needs for each code of a number or a time
A_TABLE = 3000  # bytes that a table of several columns takes besides its counts

ALWAYS = {"method", "total", "codec", "form", "merged", "marginals", "errors"}
KEYS = ALWAYS | {
    *(
        "parameters",
        "total_variance",
        "common",
        "grouped",
        "by_columns",
        "noted",
        "columns",
        "links",
        "computed_above",
    ),
    *("departures", "composition", "concordances", "public", "totals", "target"),
}
"""What `table_to_plain` writes besides arrays."""


class UnusableError(ValueError):
    """The file is a model that this program cannot use, and the text says why to its user."""


def table_to_plain(model: TableModel) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return the model of a table as plain data and arrays."""
    fitted, method = model.fitted, model.method
    _check_tables(fitted)
    arrays = named_arrays(fitted)
    optional: dict[str, Any] = {
        "parameters": dict(method.parameters),
        "total_variance": fitted.total_variance,
        "common": {j: c.common.shape[1] for j, c in enumerate(fitted.certainties) if c.common.size},
        "grouped": [j for j, c in enumerate(fitted.certainties) if c.measured.grouping],
        "by_columns": [name for name, array in arrays.items() if is_by_columns(array)],
        "noted": [loss.to_plain() for loss in model.noted],
        "columns": dict(model.columns),
        "target": fitted.target,
        "computed_above": to_plain(Schema(model.computed_above)).get("columns", {}),
    }
    if (composition := fitted.composition) is not None:
        names_of = [sorted(composition.measured), sorted(composition.confused)]
        optional["composition"] = [*names_of, composition.hidden] if composition.hidden else names_of
    arrays = joined(arrays)
    optional["departures"], of_pairs = departures_to_plain(fitted.departures, fitted.merging.merged)
    arrays |= {f"departures.{name}": array for name, array in of_pairs.items()}
    optional["concordances"], of_pairs = concordances_to_plain(fitted.concordances, fitted.merging.merged)
    arrays |= {f"concordances.{name}": array for name, array in of_pairs.items()}
    if (rows := fitted.public_rows) is not None:
        names = rows.records.domain.names
        optional["public"] = {"attributes": names, "share": rows.share}
        codes = rows.records.codes.astype(code_type(max(rows.records.domain.sizes)))
        arrays |= {"public.codes": codes, "public.weights": rows.weights}
    optional["totals"], of_totals = totals_to_plain(fitted.totals)
    arrays |= {f"totals.{name}": array for name, array in of_totals.items()}
    if composition is not None:
        arrays |= {"composition.counted": composition.counted, "composition.every": composition.all_rows}
    if model.links is not None:
        optional["links"], of_links = links_to_plain(model.links)
        arrays |= {f"links.{name}": array for name, array in of_links.items()}
    merged = fitted.merging.merged
    plain = {
        "method": method.name,
        "total": fitted.total,
        "codec": model.codec.to_dict(),
        "form": model.form.to_plain(),
        "merged": {"sizes": merged.sizes, "ordered": merged.ordered},
        "marginals": [table.attributes for table in fitted.marginals],
        "errors": [certainty.error for certainty in fitted.certainties],
    }
    return plain | {key: value for key, value in optional.items() if value}, arrays


def table_from_plain(
    plain: Mapping[str, Any],
    arrays: Arrays,
    ledger: RunLedger,
    names: tuple[str, str],
    above: Mapping[str, TableModel],
) -> TableModel:
    """Return the model that `table_to_plain` wrote; raise if its parts are inconsistent.

    Parameters
    ----------
    plain : mapping
    arrays : Arrays
    ledger : RunLedger
    names : tuple of str
        The title and the name of the table; see `TableModel`.
    above : mapping of each table above to its model
    """
    if not plain.keys() <= KEYS or ("links" in plain) != bool(above):
        raise ValueError("it says what `table_to_plain` never writes")
    codec = Codec.from_dict(plain["codec"])
    fitted = _fitted(plain, arrays, codec.domain)
    links, columns = None, {str(column): str(dtype) for column, dtype in plain.get("columns", {}).items()}
    if above:
        sizes = fitted.merging.merged.size_of
        links = links_from_plain(plain["links"], arrays.within("links."), sizes, above)
    computed_above: dict[str, Coded] = {}
    if kinds := plain.get("computed_above"):
        computed_above = {**from_plain({"columns": kinds}).coded}
        if not computed_above.keys() <= columns.keys() - {*codec.names}:
            raise ValueError("computed columns that the table lacks, or that are counted")
    for dtype in filter(None, columns.values()):
        parse_dtype(dtype)
    return TableModel(
        codec,
        fitted,
        ledger,
        METHODS[plain["method"]].with_parameters(plain.get("parameters", {})),
        OutputType.from_plain(plain["form"]),
        tuple(map(Loss.from_plain, plain.get("noted", ()))),
        *names,
        links,
        columns,
        computed_above,
    )


def _fitted(plain: Mapping[str, Any], arrays: Arrays, original: Domain) -> Fitted:
    """Return the tables of counts; raise if they are inconsistent."""
    sizes, ordered = tuple(plain["merged"]["sizes"]), tuple(plain["merged"]["ordered"])
    merged = Domain(original.names, sizes, ordered)
    released = {f"one_way_{j}": merged.project((name,)) for j, name in enumerate(merged.names)}
    released |= {f"marginal_{j}": merged.project(tuple(names)) for j, names in enumerate(plain["marginals"])}
    if not all(map(len, plain["marginals"])):
        raise ValueError("a table of no column")
    common = {int(j): int(size) for j, size in plain.get("common", {}).items()}
    grouped = plain.get("grouped", [])
    if grouped != [j for j in range(len(released)) if j in set(grouped)]:
        raise ValueError("other tables are said to be in groups")
    by_columns = frozenset(plain.get("by_columns", ()))
    reader = JoinedArrays(arrays, frozenset(grouped), by_columns)
    cells = read_arrays(reader, original, released, common)
    tables = tuple(Marginal(domain, cells[name]) for name, domain in released.items())
    certainties = tuple(
        Certainty(measurement_of(cells, j, table.domain), float(error), cells.get(f"common_{j}", NO_COMMON))
        for j, (table, error) in enumerate(zip(tables, plain["errors"], strict=True))
    )
    groups, shares = (
        tuple(cells[f"{kind}_{j}"] for j in range(len(original))) for kind in ("groups", "shares")
    )
    total, variance = float(plain["total"]), float(plain.get("total_variance", 0.0))
    if not (isfinite(total) and 0 <= variance < inf):
        raise ValueError("a total that is no number of rows")
    one_ways, marginals = tables[: len(original)], tables[len(original) :]
    merging = Merging(original, merged, groups, shares)
    departures = departures_from_plain(plain.get("departures", ()), arrays.within("departures."), merged)
    composition, public_rows = None, None
    if public := plain.get("public"):
        records = Records(merged.project(tuple(public["attributes"])), arrays.read("public.codes"))
        public_rows = PublicRows(records, arrays.read("public.weights"), float(public["share"]))
    if names := plain.get("composition"):
        counted, every = (arrays.read(f"composition.{rows}") for rows in ("counted", "every"))
        measured, confused = (frozenset(map(str, some)) for some in names[:2])
        composition = Composition(counted, every, measured, confused, *map(float, names[2:]))
    concordances = concordances_from_plain(
        plain.get("concordances", ()), arrays.within("concordances."), merged
    )
    if (target := plain.get("target")) is not None and target not in original.names:
        raise ValueError("a target that is no column")
    fitted = Fitted(
        *(merging, one_ways, marginals, total, certainties, variance, departures, composition, concordances),
        public_rows=public_rows,
        totals=totals_from_plain(plain.get("totals", ()), arrays.within("totals."), original),
        target=target,
    )
    _check_tables(fitted)
    return fitted


def memory_of(plain: Mapping[str, Any]) -> int:
    """Return about how many bytes of memory a table takes besides its arrays.

    It adds up the largest numbers of codes of numbers and times, without making them. Bins of equal width are
    not counted: no list is made of them.
    """
    codec, codes = plain["codec"], 0
    schema = from_plain(codec["schema"])
    for name, column in schema.coded.items():
        dtype = parse_dtype(codec["dtypes"][name])
        if codec["fine"] and name not in schema.computed and family(dtype) != "nothing":
            codes += column.most_codes(dtype)
    return A_CODE * codes + A_TABLE * len(plain["marginals"])


def check_registered(plain: Mapping[str, Any]) -> None:
    """Raise an `UnusableError` that names what is missing, if the release was made with an extension."""
    schema = plain["codec"]["schema"]
    needed: list[tuple[str, Any, Mapping[str, object]]] = [("method", plain["method"], METHODS)]
    needed += [("column kind", column["kind"], COLUMNS) for column in schema.get("columns", {}).values()]
    needed += [
        ("constraint kind", rule["kind"], CONSTRAINTS)
        for rule in schema.get("constraints", ())
        if isinstance(rule, Mapping) and "kind" in rule
    ]
    for constraint in schema.get("constraints", ()):
        if isinstance(constraint, Mapping) and "lookup" in (constraint.get("kind"), *constraint):
            raise ValueError("`pack` writes what a look-up means: a model names no other file to be read")
    for noun, name, registry in needed:
        if isinstance(name, str) and name not in registry:
            raise UnusableError(
                f"needs the {noun} {printable(safe_repr(name))}, which is not registered: import the module"
                " that registers it first (docs/extending.md), or install the version that saved it"
            )


def _check_tables(fitted: Fitted) -> None:
    """Raise if tables have negative counts or different totals: no records can be made from them."""
    for table in (*fitted.one_ways, *fitted.marginals):
        if not ((table.counts >= 0).all() and isclose(table.total, fitted.total, rel_tol=SAME_TOTAL)):
            raise ValueError(f"table {', '.join(table.attributes)} holds negative counts or another total")


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
