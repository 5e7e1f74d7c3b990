"""Which proposals on the rows of one person a run accepts together: it refuses some beside others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from privsyn.errors import InputError
from privsyn.table.database.computed_above import CONSTANT, check_computed_above
from privsyn.table.database.declared import Table
from privsyn.table.drafting.candidates import Proposal
from privsyn.table.schema.schema import Schema

NOT_BESIDE_CONSTANT = "not beside the columns under constant"
"""The note of a rule that names such a column: rows of one person take its cell from the person."""


def accepted(schema: Schema, proposals: Sequence[Proposal], of_persons: Mapping[str, Any]) -> list[Proposal]:
    """Return the proposals without those that are refused beside the ones before them, which say so.

    Parameters
    ----------
    schema : Schema
    proposals : sequence of Proposal
    of_persons : mapping
        The settings of the table: its parent, link and order, and the columns that are constant.
    """
    if _fit(schema, proposals, of_persons):
        return [*proposals]
    taken, rivals = list[Proposal](), defaultdict[int, list[str]](list)
    for proposal in proposals:
        if _fit(schema, [*taken, proposal], of_persons) or not _fit(schema, [proposal], of_persons):
            taken.append(proposal)
            continue
        apart = (i for i, rival in enumerate(taken) if not _fit(schema, [rival, proposal], of_persons))
        rivals[next(apart, len(taken) - 1)].append(str(proposal.constraint))
    for index, texts in rivals.items():
        note = "; ".join(filter(None, [taken[index].note, f"not beside it: {', '.join(texts)}"]))
        taken[index] = replace(taken[index], note=note)
    return taken


def apart_from_constant(
    schema: Schema, proposals: Sequence[Proposal], of_persons: Mapping[str, Any], constant: Sequence[str]
) -> tuple[Proposal, ...]:
    """Return the proposals that a run refuses beside columns that are constant, and takes without them."""
    return tuple(
        replace(proposal, note="; ".join(filter(None, [proposal.note, NOT_BESIDE_CONSTANT])))
        for proposal in proposals
        if not _fit(schema, [proposal], {**of_persons, "constant": constant})
        and _fit(schema, [proposal], of_persons)
    )


def _fit(schema: Schema, proposals: Sequence[Proposal], of_persons: Mapping[str, Any]) -> bool:
    """Return whether a run takes these rules together, by what the schema says of the columns."""
    rules = [proposal.constraint for proposal in proposals]
    expressions = [rule for rule in rules if isinstance(rule, str)]
    constraints = [rule for rule in rules if not isinstance(rule, str)]
    try:
        columns = replace(schema, constraints=(*schema.constraints, *constraints))
        declared = Table(columns, **of_persons, constraints=expressions)
        above = {CONSTANT: {total.name: total.kind(schema.coded) for total in declared.constant_sums}}
        rules_above = tuple(declared.computed_above.values())
        check_computed_above(rules_above, schema.coded, above, declared.compared_columns)
    except InputError:
        return False
    return True
