"""What the rules of a schema make certain: shares that are 0 or 1 whatever the private rows are.

Missing cells that a rule forbids, places that lie in one region alone, and bounds that the schema has need no
counts. Values, bounds and steps that noisy answers chose make nothing certain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from privsyn.marginals.domain import Floats, Mask
from privsyn.marginals.recoding import Merging
from privsyn.private.find_values import BOUNDS, GRIDS, VALUES, columns_of
from privsyn.release.questions.points import codec_of
from privsyn.table.enforcement.forbidden import Forbidden, MissingWhen
from privsyn.table.schema.box import Span
from privsyn.table.schema.columns import Datetime, Numerical
from privsyn.table.schema.condition import Condition

if TYPE_CHECKING:
    from privsyn.release.fitted_table import FittedTable
    from privsyn.table.codec.codec import Codec
    from privsyn.table.schema.constraint import Constraint

MOST_CELLS = 2**21  # in which rules are looked for, one byte each: a pair of numbers has 512 x 512

Box = Mapping[str, Span]

Side = tuple[Floats, Floats]
"""The smallest and the largest number of each code of a column; NaN for missing."""


def certain_share(model: FittedTable, subject: Condition, inside: Condition | None) -> float | None:
    """Return the share of rows that meet `subject` among those in `inside` if it is certain; else None.

    A cell is a combination of codes, of which each has a range of numbers. The share is 0 if no possible cell
    shares a point with both conditions, and 1 if each that shares one with `inside` lies within `subject`.
    """
    conditions = [subject] if inside is None else [subject, inside]
    if any(c.uncounted or c.unlisted or c.replaced or c.extremes for c in conditions):
        return None
    codec, names = model.codec, tuple(sorted(set[str]().union(*(c.columns for c in conditions))))
    if not all(_is_public(model, name) for name in names):
        return None
    if codec.domain.project(names).cells > MOST_CELLS:
        return None
    sides, possible = [_side(model, name) for name in names], _possible(model, codec, names)
    groups: Sequence[Box] = [{}] if inside is None else inside.boxes
    among = [possible & _cells_of(names, sides, box, Span.touches) for box in groups]
    if not any(mask.any() for mask in among):
        return None
    if not any(
        (mask & _cells_of(names, sides, _both(group, box), Span.touches)).any()
        for group, mask in zip(groups, among, strict=True)
        for box in subject.boxes
    ):
        return 0.0
    for group, mask in zip(groups, among, strict=True):
        within = [_cells_of(names, sides, _beyond(group, box), Span.covers) for box in subject.boxes]
        if (mask & ~reduce(np.logical_or, within, np.zeros_like(mask))).any():
            return None
    return 1.0


def _is_public(model: FittedTable, name: str) -> bool:
    """Return whether a column is counted as it is, and has bounds or values that no answer decided.

    A found step rounds numbers, and so changes which of them keep a rule, but not whether they are missing.
    """
    codec = model.codec
    rules = [rule for rule in codec.schema.constraints if name in rule.columns]
    if name not in codec.domain.names or codec.attributes_of(name) != (name,):
        return False
    if name in (*model.not_found, *_asked(model, BOUNDS), *_asked(model, VALUES)):
        return False
    return name not in _asked(model, GRIDS) or all(_is_about_missing(codec, rule, name) for rule in rules)


def _is_about_missing(codec: Codec, rule: Constraint, name: str) -> bool:
    """Return whether a rule asks of a column only whether it is missing."""
    if isinstance(rule, MissingWhen) and name == rule.column:
        return True
    when = rule.when if isinstance(rule, MissingWhen | Forbidden) else {}
    return name in when and Span.of(codec.schema.coded[name], when[name]).is_about_missing


def _asked(model: FittedTable, kind: str) -> tuple[str, ...]:
    """Return the columns that the questions of a kind were about."""
    return columns_of(model.ledger, kind, model.codec.names, model.title)


def _side(model: FittedTable, name: str) -> Side:
    """Return the ranges of a column: up to each other and to the bounds, if an answer chose its step."""
    cells, column = model.codec.cells()[name], model.codec.schema.coded[name]
    lows, highs = cells.lows.copy(), cells.highs.copy()
    if name in _asked(model, GRIDS) and isinstance(column, Numerical | Datetime):
        present = np.flatnonzero(~np.isnan(lows))
        highs[present] = [*lows[present[1:]], column.number_of(column.high)]
        lows[present[0]] = column.number_of(column.low)
    return lows, highs


def _possible(model: FittedTable, codec: Codec, names: tuple[str, ...]) -> Mask:
    """Return which combinations of codes rows can have, by the rules on these columns and on those beside."""
    ruled = list(names)
    for constraint in codec.schema.constraints:
        added = [name for name in constraint.columns if name not in ruled]
        if {*names}.isdisjoint(constraint.columns) or not all(_is_public(model, name) for name in added):
            continue
        if codec.domain.project((*ruled, *added)).cells <= MOST_CELLS:
            ruled += added
    part = codec_of(codec, tuple(ruled))
    groups = tuple(np.arange(size, dtype=np.int32) for size in part.domain.shape)
    shares = tuple(np.ones(size) for size in part.domain.shape)
    zeros = part.possible(Merging(part.domain, part.domain, groups, shares))
    possible = zeros.mask(part.domain.project(tuple(ruled)))
    return np.asarray(possible.any(axis=tuple(range(len(names), len(ruled)))), np.bool_)


def _cells_of(names: Sequence[str], sides: Sequence[Side], box: Box, test: Callable[..., Mask]) -> Mask:
    """Return which combinations of codes a box touches, or covers, in each of its columns."""
    masks = [
        test(box[name], *side) if name in box else np.ones(len(side[0]), np.bool_)
        for name, side in zip(names, sides, strict=True)
    ]
    return np.asarray(reduce(np.logical_and.outer, masks), np.bool_)


def _both(first: Box, second: Box) -> Box:
    """Return the box of what lies in two boxes."""
    return {
        **first,
        **second,
        **{name: first[name].intersection(second[name]) for name in {*first} & {*second}},
    }


def _beyond(group: Box, box: Box) -> Box:
    """Return what a box requires beyond a group: nothing of a column of which it holds the whole group.

    >>> old, adult = Span([65.0], [99.0], missing=False), Span([18.0], [99.0], missing=False)
    >>> _beyond({"age": old}, {"age": adult}), [*_beyond({"age": adult}, {"age": old})]
    ({}, ['age'])
    """
    return {
        name: span
        for name, span in box.items()
        if name not in group
        or not span.covers(group[name].lows, group[name].highs).all()
        or (group[name].missing and not span.missing)
    }
