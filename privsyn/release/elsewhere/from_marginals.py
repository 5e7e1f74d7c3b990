"""Make a release from tables of counts that somebody else measured: no private row is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from itertools import combinations
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.arguments import check_whole
from privsyn.errors import InputError, safe_repr
from privsyn.inference.consistency import combine_measurements, combine_one_ways, estimate_total
from privsyn.inference.fitted import Fitted
from privsyn.inference.higher_order import measured_as, unscored
from privsyn.inference.ordered.tails import Tails
from privsyn.inference.pairs import estimate_pairs
from privsyn.inference.problem import Estimate, Problem
from privsyn.marginals.domain import Domain
from privsyn.marginals.grouping import Grouping
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.marginals.types import Codes, Floats
from privsyn.methods.estimate import fit_one_ways, fit_tables, predicted_by_pairs
from privsyn.methods.methods import DEFAULT
from privsyn.private.ledger import Ledger
from privsyn.private.ledger_text import elsewhere
from privsyn.release.elsewhere.count_tables import CountTable, as_frames, holds_missing, read_counts
from privsyn.release.release import Release
from privsyn.table.encoding.codec import Codec
from privsyn.table.encoding.read_texts import read_texts
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.schema import Schema, declared
from privsyn.table.schema.yaml_file import as_schema

NOBODY = "nobody has said what they promise"
PUBLIC = ("all that the schema says", "the given tables of counts, with the variances of their noise")


def from_marginals(
    schema: Schema | str | PathLike[str], tables: Any, ledger: str | None = None, *, seed: int = 0
) -> Release:
    """Return a release from tables of counts with known noise, measured by OpenDP, SQL or a census office.

    The counts are treated like those of `PrivSyn.fit`: made consistent, denoised, and sampled. No private row
    is read, so nothing is spent, and the privacy is that of the counts.

    Parameters
    ----------
    schema : Schema or path of a YAML file
        Lists all values and bounds.
    tables : list of pandas.DataFrame, or mapping
        Each data frame has some of the columns, then ``count`` and ``variance``: one row for each combination
        of values. Numbers and times are values or `pandas.Interval`, which together cover the bounds. Missing
        cells are values of their own. A mapping leads from a column, or a tuple of columns, of listed values
        to ``(counts, variance)``: an array with one axis for each column, in the order of the schema's lists,
        then missing cells, if they were counted; and one variance or as many.
    ledger : str, optional
        Who promises what about the counts, in your words. It stands in the ledger of the release.
    seed : int
        Of computations on the counts. No noise is added.

    Returns
    -------
    Release
        Sample, draw and save it like any other; see `Release.accuracy_` for its error bars. Variances must be
        true: intervals depend on them.

    Raises
    ------
    InputError
        If a table does not fit the schema, or a column is in no table.

    Examples
    --------
    >>> from privsyn import Categorical
    >>> schema = Schema({"sex": Categorical(["F", "M"]), "smokes": Categorical(["no", "yes"])})
    >>> counts = {("sex", "smokes"): (np.array([[480.0, 12.0], [260.0, 251.0]]), 25.0)}
    >>> release = from_marginals(schema, counts, "epsilon 1, by the city's statistics office")
    >>> len(release.sample(100)), release
    (100, <Release: 2 columns, about 1,003 rows, measured elsewhere>)
    """
    public = declared(as_schema(schema))
    if public is None:
        raise InputError("from_marginals needs a schema with all values and bounds")
    if ledger is not None and not isinstance(ledger, str):
        raise InputError(f"ledger is text: who promises what; got {safe_repr(ledger)}")
    public.require_public()
    frames = as_frames(tables, public)
    public = _with_missing(public, frames)
    codec = Codec(public, tuple(public.columns), _dtypes(public), fine=True)
    encoders = dict(zip(codec.domain.names, codec.encoders, strict=True))
    read = [read_counts(frame, public, encoders, codec.domain) for frame in frames]
    fitted = _fit(codec, read, np.random.default_rng(check_whole("seed", seed)))
    says = Ledger(**elsewhere(NOBODY if ledger is None else ledger, PUBLIC, version("privsyn")))
    return Release(codec, fitted, says, DEFAULT)


def _with_missing(schema: Schema, frames: list[pd.DataFrame]) -> Schema:
    """Return the schema in which only those columns have missing cells of which some table counts them."""
    columns = {
        name: replace(column, nullable=column.nullable and holds_missing(frames, name))  # type: ignore[type-var]
        for name, column in schema.coded.items()
    }
    return replace(schema, columns={**schema.columns, **columns})


def _dtypes(schema: Schema) -> tuple[str, ...]:
    """Return the dtypes that a CSV with this schema would have."""
    found = []
    for name, column in schema.columns.items():
        cells = pd.Series(list(getattr(column, "values", None) or ()), dtype=None)
        if isinstance(column, Ordinal):
            cells = read_texts(column, pa.chunked_array([], pa.string()), schema.csv)
        elif name not in schema.coded:
            cells = cells.astype(object)
        elif cells.dtype.kind in "iub" and schema.coded[name].nullable:
            cells = cells.convert_dtypes()
        found.append(str(cells.dtype))
    return tuple(found)


def _fit(codec: Codec, tables: Sequence[CountTable], rng: np.random.Generator) -> Fitted:
    """Return the model of the given tables."""
    merging = _merging(codec, tables)
    problem = Problem(merging, codec.possible(merging), Tails(merging, {}))
    measured = [problem.zeros.clean(_measurement(merging, table)) for table in tables]
    by_size = [[m for m in measured if len(m.attributes) == size] for size in (1, 2)]
    bigger = [m for m in measured if len(m.attributes) > 2]
    one_ways = _one_ways(merging.merged, by_size[0], measured)
    pairs = tuple(Estimate(m.marginal, measured=m) for m in _pairs(by_size[1], bigger))
    if not pairs:
        return fit_one_ways(problem, one_ways)
    if not bigger:
        return fit_tables(problem, one_ways, pairs, (), rng)
    first = estimate_pairs(problem, one_ways, pairs, rng)
    found, _ = predicted_by_pairs(problem, tuple(m.attributes for m in bigger), first, rng)
    sets = tuple(map(measured_as, unscored(found, first.one_ways), bigger))
    return fit_tables(problem, one_ways, pairs, sets, rng)


def _merging(codec: Codec, tables: Sequence[CountTable]) -> Merging:
    """Return the merging of codes that no table tells apart."""
    groups: list[Codes] = []
    shares: list[Floats] = []
    domain = codec.domain
    for name, size, ordered in zip(domain.names, domain.sizes, domain.ordered, strict=True):
        seen = [t.groups[t.attributes.index(name)] for t in tables if name in t.attributes]
        if not seen:
            raise InputError(f"column {name!r}: no table counts it")
        joint = np.stack([*seen, np.arange(size) >= ordered])
        if ordered:  # neighbours only
            group = np.cumsum(np.append(0, np.any(np.diff(joint, axis=1) != 0, axis=0)))
            group[ordered:] = group[ordered - 1] + 1 + np.arange(size - ordered)
        else:
            group = np.arange(size)
        width = np.ones(size)
        if name in codec.axes:
            width[:ordered] = codec.axes[name].widths
        groups.append(group.astype(np.int32))
        shares.append(width / np.bincount(group, width)[group])
    return Merging(domain, Grouping(tuple(groups)).domain(domain), tuple(groups), tuple(shares))


def _measurement(merging: Merging, table: CountTable) -> Measurement:
    """Return a table in merged codes, or in groups of these."""
    domain = merging.merged.project(table.attributes)
    if table.counts.shape == domain.shape:
        return Measurement(Marginal(domain, table.counts), table.variance)
    merged = merging.project(table.attributes).groups
    firsts = [np.unique(group, return_index=True)[1] for group in merged]
    grouping = Grouping(tuple(group[first] for group, first in zip(table.groups, firsts, strict=True)))
    return Measurement(Marginal(grouping.domain(domain), table.counts), table.variance, grouping)


def _one_ways(
    domain: Domain, alone: Sequence[Measurement], measured: Sequence[Measurement]
) -> tuple[Measurement, ...]:
    """Return a measurement of each attribute, from the tables of it alone.

    Before these, each attribute has equal counts with an uncertainty of all records: for attributes that only
    bigger tables hold.
    """
    total = estimate_total(tuple(measured))
    found: list[Measurement] = []
    for name in domain.names:
        one = domain.project((name,))
        vague = Measurement(Marginal(one, np.full(one.shape, total / one.cells)), np.array(total**2))
        own = tuple(m for m in alone if m.attributes == (name,))
        found.extend(combine_one_ways(one, (vague, *own)))
    return tuple(found)


def _pairs(pairs: Sequence[Measurement], bigger: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Return one measurement of each pair: the average of its tables, and of sums of bigger tables."""
    sums = (m.project(names) for m in bigger for names in combinations(m.attributes, 2))
    found: dict[frozenset[str], Measurement] = {}
    for pair in (*pairs, *sums):
        key = frozenset(pair.attributes)
        if key not in found:
            found[key] = pair
            continue
        other = pair.project(found[key].attributes)
        one, two = found[key].grouping.groups, other.grouping.groups
        if len(one) == len(two) and all(map(np.array_equal, one, two)):
            found[key] = combine_measurements(found[key], other)
    return tuple(found.values())
