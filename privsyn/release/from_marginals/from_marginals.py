"""Make a release from tables of counts that somebody else measured: no private row is read.

A table of counts says which codes each cell stands for, its count, and the variance of its noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from os import PathLike
from typing import Any, cast

import numpy as np
import pandas as pd

from privsyn.arguments import check_whole
from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.inference.consistency import combine_measurements, combine_one_ways, estimate_total
from privsyn.inference.fitted import Fitted
from privsyn.inference.higher_order import measured_as, unscored
from privsyn.inference.measured_columns import Estimate, MeasuredColumns
from privsyn.inference.ordered.tails import Tails
from privsyn.inference.pairs import estimate_pairs
from privsyn.marginals.domain import Codes, Domain, Floats, Integers
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.methods.default import fit_one_ways, fit_tables, predicted_by_pairs
from privsyn.methods.methods import DEFAULT
from privsyn.private.run_ledger import RunLedger
from privsyn.release.from_marginals.crosstabs import COUNT, VARIANCE, as_frames, named, names_of
from privsyn.release.release import Release
from privsyn.release.table_model import TableModel
from privsyn.table.codec.codec import Codec
from privsyn.table.codec.file_dtypes import dtypes_in_file
from privsyn.table.encoding.encoders import CategoricalEncoder, Encoder, has_grid
from privsyn.table.encoding.parsing import is_missing
from privsyn.table.schema.columns import Coded
from privsyn.table.schema.constraint import python_value
from privsyn.table.schema.schema import Schema, declared
from privsyn.table.schema.yaml_file import as_schema

NOBODY = "nobody has said what they promise"
PUBLIC = ("all that the schema says", "the given tables of counts, with the variances of their noise")


def from_marginals(
    schema: Schema | str | PathLike[str],
    tables: Any,
    ledger: str | None = None,
    *,
    variance: float | None = None,
    suppressed: tuple[float, float] | None = None,
    seed: int = 0,
) -> Release:
    """Return a release from tables of counts with known noise, measured by OpenDP, SQL or a census office.

    The counts are treated like those of `PrivSyn.fit`: made consistent, denoised, and sampled. No private row
    is read, so nothing is spent, and the privacy is that of the counts.

    Parameters
    ----------
    schema : Schema or path of a YAML file
        Lists all values and bounds.
    tables : list of data frames and series, or mapping
        Each data frame has some of the columns, then ``count`` and ``variance``: one row for each combination
        of values. Numbers and times are values, `pandas.Interval` or, of numbers, text such as "18-24" and
        "65+"; together they cover the bounds. Missing cells are values of their own. A crosstab
        (`pandas.crosstab`) and a series of counts (``value_counts()``, ``groupby(...).size()``) take the
        names of their columns from their axes. Rows of totals are left out, and a `TotalsWarning` says so.

        A mapping leads from a column, or a tuple of columns, to such a table or, of listed values, to
        ``(counts, variance)``: an array with one axis for each column, in the order of the schema's lists,
        then missing cells, if they were counted; and one variance or as many.
    ledger : str, optional
        Who promises what about the counts, in your words. It stands in the ledger of the release.
    variance : float, optional
        The variance of the noise in each count of tables that give none. 0 means that the counts are exact.
        Exact counts of persons are not private: give them only if they are public.
    suppressed : (low, high), optional
        What a count can be that is blank or a sign such as ``*``, ``-`` or ``..``. A count such as ``<5`` or
        ``1-4`` says so. Any number in between is taken as equally likely.
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
        If a table does not fit the schema, has no variances, or has suppressed counts without limits; or if
        a column is in no table.

    Warns
    -----
    TotalsWarning
        If rows of totals are left out.

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
    frames, facts = as_frames(tables, public, variance, suppressed)
    columns = {  # a column has missing cells only if some table counts them
        name: replace(column, nullable=column.nullable and holds_missing(frames, name))
        for name, column in public.coded.items()
    }
    public = replace(public, columns={**public.columns, **columns})
    codec = Codec(public, tuple(public.columns), tuple(dtypes_in_file(public).values()), fine=True)
    read = [read_counts(frame, public, codec.encoder_of, codec.domain) for frame in frames]
    fitted = _fit(codec, read, np.random.default_rng(check_whole("seed", seed)))
    promise = RunLedger.measured_elsewhere(NOBODY if ledger is None else ledger, (*PUBLIC, *facts))
    return Release.of_table(TableModel(codec, fitted, promise, DEFAULT))


def _fit(codec: Codec, tables: Sequence[Measurement], rng: np.random.Generator) -> Fitted:
    """Return the model of the given tables."""
    merging = _merging(codec, tables)
    zeros = codec.possible(merging)
    measured = [zeros.clean(_measurement(merging, table)) for table in tables]
    by_size = [[m for m in measured if len(m.attributes) == size] for size in (1, 2)]
    bigger = [m for m in measured if len(m.attributes) > 2]
    one_ways = _one_ways(merging.merged, by_size[0], measured)
    measured_columns = MeasuredColumns(
        merging, zeros, Tails(merging, {}, ranked=codec.ranked), one_ways=one_ways
    )
    pairs = tuple(Estimate(m.marginal, measured=m) for m in _pairs(by_size[1], bigger))
    if not pairs:
        return fit_one_ways(measured_columns)
    if not bigger:
        return fit_tables(measured_columns, pairs, (), rng)
    first = estimate_pairs(measured_columns, pairs, rng)
    predicted, _ = predicted_by_pairs(measured_columns, tuple(m.attributes for m in bigger), first, rng)
    sets = tuple(map(measured_as, unscored(predicted, first.one_ways), bigger))
    return fit_tables(measured_columns, pairs, sets, rng)


def _merging(codec: Codec, tables: Sequence[Measurement]) -> Merging:
    """Return the merging of codes that no table tells apart."""
    groups: list[Codes] = []
    shares: list[Floats] = []
    domain = codec.domain
    for name, size in domain.size_of.items():
        ordered = domain.ordered_of[name]
        seen = [t.grouping.groups[t.attributes.index(name)] for t in tables if name in t.attributes]
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


def _measurement(merging: Merging, table: Measurement) -> Measurement:
    """Return a table in merged codes, or in groups of these."""
    domain = merging.merged.project(table.attributes)
    counts = table.marginal.counts
    if counts.shape == domain.shape:
        return Measurement(Marginal(domain, counts), table.variance)
    merged = merging.project(table.attributes).groups
    firsts = [np.unique(group, return_index=True)[1] for group in merged]
    grouping = Grouping(
        tuple(group[first] for group, first in zip(table.grouping.groups, firsts, strict=True))
    )
    return Measurement(Marginal(grouping.domain(domain), counts), table.variance, grouping)


def _one_ways(
    domain: Domain, alone: Sequence[Measurement], measured: Sequence[Measurement]
) -> tuple[Measurement, ...]:
    """Return a measurement of each attribute, from the tables that count this attribute alone.

    It starts from equal counts with the variance total^2, which remain for an attribute that only bigger
    tables count.
    """
    total = estimate_total(tuple(measured))
    combined: list[Measurement] = []
    for name in domain.names:
        domain_of_name = domain.project((name,))
        vague = Measurement(
            Marginal(domain_of_name, np.full(domain_of_name.shape, total / domain_of_name.cells)),
            np.array(total**2),
        )
        alone_of_name = tuple(m for m in alone if m.attributes == (name,))
        combined.extend(combine_one_ways(domain_of_name, (vague, *alone_of_name)))
    return tuple(combined)


def _pairs(pairs: Sequence[Measurement], bigger: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Return one measurement of each pair: the average of its tables, and of sums of bigger tables."""
    sums = (m.project(names) for m in bigger for names in combinations(m.attributes, 2))
    by_pair: dict[frozenset[str], Measurement] = {}
    for pair in (*pairs, *sums):
        key = frozenset(pair.attributes)
        if key not in by_pair:
            by_pair[key] = pair
            continue
        measured = pair.project(by_pair[key].attributes)
        groups, other_groups = by_pair[key].grouping.groups, measured.grouping.groups
        if len(groups) == len(other_groups) and all(map(np.array_equal, groups, other_groups)):
            by_pair[key] = combine_measurements(by_pair[key], measured)
    return tuple(by_pair.values())


UNCOUNTED = -1


def holds_missing(frames: Sequence[pd.DataFrame], column: str) -> bool:
    """Return whether some table counts missing cells of a column."""
    return any(map(is_missing, (v for frame in frames if column in frame for v in frame[column].tolist())))


def read_counts(
    frame: pd.DataFrame, schema: Schema, encoders: Mapping[str, Encoder], domain: Domain
) -> Measurement:
    """Return a data frame as a table of counts in groups of the codes.

    Parameters
    ----------
    frame : pandas.DataFrame
    schema : Schema
    encoders : mapping of a column to its encoder
    domain : Domain
        The codes of the columns, the last of them for missing cells if these are possible.

    Raises
    ------
    InputError
        If the cells do not cover each combination of the columns' values exactly once.
    """
    names = names_of(frame)
    for name in names:
        if name not in encoders:
            raise InputError(f"table {named(frame)}: no column {safe_repr(name)} is counted: leave it out")
    try:
        axes = [
            _axis(name, frame[name].tolist(), schema.coded[name], encoders[name], domain.size_of[name])
            for name in names
        ]
    except InputError as error:
        raise InputError(f"table {named(frame)}: {error}") from None
    groups, codes = zip(*axes, strict=True)
    shape = tuple(int(group.max()) + 1 for group in groups)
    flat = np.ravel_multi_index(codes, shape)
    if len(np.unique(flat)) != len(flat) or len(flat) != np.prod(shape):
        lacking = int(np.prod(shape)) - len(np.unique(flat))
        more = f"; {lacking} have none: give 0 where nobody was counted" if lacking else ""
        raise InputError(f"table {named(frame)}: each combination of values needs exactly one row{more}")
    counts, variance = np.empty(len(flat)), np.empty(len(flat))
    counts[flat] = frame[COUNT].to_numpy(np.float64)
    variance[flat] = frame[VARIANCE].to_numpy(np.float64)
    table = Marginal(Domain(names, shape), counts.reshape(shape))
    return Measurement(table, variance.reshape(shape), Grouping(groups))


def _axis(name: str, values: list[Any], column: Coded, encoder: Encoder, size: int) -> tuple[Codes, Codes]:
    """Return the index along the axis of each code, and the index of each value."""
    keys = [None if is_missing(value) else value for value in values]
    group = np.full(size, UNCOUNTED, np.int32)
    for index, value in enumerate(dict.fromkeys(keys)):
        codes = np.array([encoder.size]) if value is None else _codes(value, column, encoder)
        shown = safe_repr(str(value) if isinstance(value, pd.Interval) else value)
        if not len(codes) or codes.max() >= size:
            meant = did_you_mean(value, column.listed)
            raise InputError(f"{shown} is no value of {safe_repr(name)} in the schema{meant}")
        if (group[codes] != UNCOUNTED).any():
            raise InputError(f"{shown} of {safe_repr(name)} has values that another row counts too")
        group[codes] = index
    if (group == UNCOUNTED).any():
        lacking = encoder.words(np.flatnonzero(group == UNCOUNTED))
        raise InputError(
            f"no row counts {', '.join(map(safe_repr, lacking[:3]))}{', ...' * (len(lacking) > 3)} of"
            f" {safe_repr(name)}: add a row, with count 0 if there are none, or correct the schema"
        )
    # Places in the order of the codes, in which the tables of the package are.
    _, first, ordered = np.unique(group, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    where = {value: rank[index] for index, value in enumerate(dict.fromkeys(keys))}
    return rank[ordered].astype(np.int32), np.array([where[key] for key in keys], np.int32)


def _codes(value: Any, column: Coded, encoder: Encoder) -> Integers:
    """Return the codes for which a value or an interval of a table stands."""
    if has_grid(encoder):
        lows, highs = encoder.extents
        if not isinstance(value, pd.Interval):
            number = column.number_of(python_value(value))
            return np.flatnonzero((lows <= number) & (number <= highs))
        low, high = (column.number_of(python_value(end)) for end in (value.left, value.right))
        middles = (lows + highs) / 2
        above = middles >= low if value.closed_left else middles > low
        return np.flatnonzero(above & (middles <= high if value.closed_right else middles < high))
    listed = cast(CategoricalEncoder, encoder).pool.tolist()
    return np.flatnonzero([value_of_code == value for value_of_code in listed])
