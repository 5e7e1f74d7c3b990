"""Where groups of numbers begin because a rule of the schema tells them from those below."""

from __future__ import annotations

import numpy as np
import pandas as pd

from privsyn.table.encoding.grid import constants_of
from privsyn.table.encoding.steps import Cut
from privsyn.table.enforcement.repair import check_constraints
from privsyn.table.schema.columns import Ordinal
from privsyn.table.schema.schema import Schema


def rule_cuts(schema: Schema, head: pd.DataFrame) -> dict[str, list[Cut]]:
    """Return of each column a cut at each end of an interval that a rule names.

    A rule decides about cells that lie inside its intervals. If a cell lies on both sides of a constant, all
    of its rows may keep the rule, or all may break it: the rule says nothing about the count of the cell. The
    schema is public, so cuts cost no privacy. No cut is made in a column that would have as many cuts as
    groups, because its rule lists its numbers, nor in a computed one.

    Parameters
    ----------
    schema : Schema
        Complete.
    head : pandas.DataFrame
        Only its dtypes are read.
    """
    schema.require_public()
    check_constraints(schema.coded, schema.constraints, row_known=True)  # the codec looks for a row
    rules = [rule for constraint in schema.constraints for rule in constraint.rules(schema.coded)]
    intervals = [interval for rule in rules for interval in rule.intervals]
    cuts: dict[str, list[Cut]] = {}
    for name in dict.fromkeys(name for name, *_ in intervals):
        column = schema.coded[name]
        if name in schema.computed or not isinstance(column, Ordinal):
            continue
        grid = column.encoder(head[name].dtype).grid
        ends = [ends for column_name, *ends in intervals if column_name == name]
        points = np.unique(np.concatenate([grid.points_at(*pair) for pair in ends])).tolist()
        if len(points) < column.bins:
            constants = np.concatenate([constants_of(end) for pair in ends for end in pair])
            cuts[name] = grid.cuts_at(points, np.unique(constants))
    return cuts
