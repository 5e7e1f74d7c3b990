"""The rules that constraints come to, once all values and bounds are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np

from privsyn.answers.arrays import Floats
from privsyn.errors import InputError, shown
from privsyn.table.constraints import (
    Allowed,
    Constraint,
    Determined,
    Forbidden,
    Increasing,
    MissingWhen,
    Total,
    computed_by,
)
from privsyn.table.kinds import Coded
from privsyn.table.rulebook import LookUp, Rulebook, SumOf
from privsyn.table.rules import Listing, Outlaw, Rise, Rule
from privsyn.table.spans import Span, bounds_of, number_of
from privsyn.table.times import SECONDS


def rulebook_of(columns: Mapping[str, Coded], constraints: Sequence[Constraint]) -> Rulebook:
    """The rules that the constraints come to; all values and bounds are known."""
    makers = computed_by(constraints)
    return Rulebook(
        columns,
        tuple(rule for constraint in constraints for rule in rules_of(columns, constraint)),
        tuple(maker_of(columns, makers[name]) for name in in_order(makers)),
    )


def rules_of(columns: Mapping[str, Coded], constraint: Constraint) -> list[Rule]:
    """The rules of one constraint; none where it only computes a column."""
    match constraint:
        case Forbidden():
            return [Outlaw(_spans(columns, constraint.when))]
        case MissingWhen():
            spans, name = _spans(columns, constraint.when), constraint.column
            there = Span(np.array([-np.inf]), np.array([np.inf]), missing=False)
            rules: list[Rule] = [Outlaw({**spans, name: there}, lost=name)]
            lost = Span(np.empty(0), np.empty(0), missing=True)
            if constraint.only:
                rules += [Outlaw({other: _rest(span), name: lost}) for other, span in spans.items()]
            return rules
        case Allowed():
            return [
                Listing(tuple(constraint.columns), _numbers(columns, constraint.columns, constraint.rows))
            ]
        case Determined():
            if len(constraint.by) == 1:
                return []
            keys = tuple(dict.fromkeys(row[:-1] for row in constraint.rows))
            return [Listing(tuple(constraint.by), _numbers(columns, constraint.by, keys))]
        case Increasing():
            names = tuple(constraint.columns)
            return [Rise(names, constraint.strict, scales_of(columns, names))]
        case Total():
            return []


def maker_of(columns: Mapping[str, Coded], constraint: Determined | Total) -> LookUp | SumOf:
    """Return what computes the column of a constraint from the others."""
    if isinstance(constraint, Total):
        parts: Mapping[str, float] = constraint.of  # type: ignore[assignment]
        return SumOf(
            constraint.column, tuple(parts), tuple(parts.values()), decimals_of_total(columns, constraint)
        )
    rows = _numbers(columns, constraint.columns, constraint.rows)
    return LookUp(constraint.column, tuple(constraint.by), rows[:, :-1], rows[:, -1])


def decimals_of_total(columns: Mapping[str, Coded], total: Total) -> int | None:
    """How many decimals the sum has; None if it is real."""
    found = 0
    for name, n in total.of.items():  # type: ignore[union-attr]
        part: Any = columns[name]
        if float(n) != round(n) or not (part.is_whole or part.decimals is not None):
            return None
        found = max(found, part.decimals or 0)
    return found


def in_order(makers: Mapping[str, Determined | Total]) -> list[str]:
    """The computed columns, each after those it is computed from."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(makers)
    for name, maker in makers.items():
        graph.add_edges_from((other, name) for other in maker.columns[:-1])
    try:
        return [name for name in nx.topological_sort(graph) if name in makers]
    except nx.NetworkXUnfeasible:
        raise InputError("columns are computed from each other in a circle: drop a constraint") from None


def scales_of(columns: Mapping[str, Coded], names: Sequence[str]) -> tuple[float, ...]:
    """What a step of each column is in the unit that they are compared in: seconds, of times."""
    return tuple(float(SECONDS[getattr(columns[name], "unit", None) or "s"]) for name in names)


def _spans(columns: Mapping[str, Coded], when: Mapping[str, Any]) -> dict[str, Span]:
    spans = {}
    for name, said in when.items():
        try:
            spans[name] = Span.of(columns[name], said)
        except InputError as error:
            raise InputError(f"column {name!r}: {error}") from None
    return spans


def _rest(span: Span) -> Span:
    """All numbers that are not in a span; missing cells are not, for they say nothing."""
    lows = np.append(-np.inf, np.nextafter(span.highs, np.inf))
    highs = np.append(np.nextafter(span.lows, -np.inf), np.inf)
    return Span(lows, highs, missing=False)


def _numbers(columns: Mapping[str, Coded], names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Floats:
    found = np.empty((len(rows), len(names)))
    for j, name in enumerate(names):
        try:
            places = {value: number_of(columns[name], value) for value in {row[j] for row in rows}}
        except InputError as error:
            raise InputError(f"column {name!r}: {error}") from None
        low, high = bounds_of(columns[name])
        for value, number in places.items():
            if not low <= number <= high:
                raise InputError(f"column {name!r}: {shown(value)} lies outside its bounds")
        found[:, j] = [places[row[j]] for row in rows]
    return found
