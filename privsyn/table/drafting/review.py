"""The draft as a YAML file for review, with what the rows show about each column. Not private."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pandas as pd

from privsyn.errors import InputError, did_you_mean
from privsyn.table.database.computed_above import CONSTANT, ComputedAbove, check_computed_above
from privsyn.table.database.database import PERSONS as PERSONS_TABLE
from privsyn.table.database.database import ROWS
from privsyn.table.database.declared import Table
from privsyn.table.drafting.candidates import Proposal
from privsyn.table.drafting.comments import comment_on
from privsyn.table.drafting.constant_sums import constant_sums
from privsyn.table.drafting.draft import (
    draft_of_rows,
    draft_schema,
    is_text,
    loaded_rows,
    rows_of_nobody,
    without,
)
from privsyn.table.drafting.drafted_table import DraftedTable, row_numbers
from privsyn.table.drafting.keys import KeyedTable, leads_to_own_rows
from privsyn.table.drafting.life_rules import rules_of_lives
from privsyn.table.drafting.noted_draft import Draft
from privsyn.table.drafting.proposed_tables import behind_sign
from privsyn.table.drafting.relations import measured, propose
from privsyn.table.drafting.remarks import remark_on_persons, remarks_on
from privsyn.table.drafting.with_codebook import DescribedTable
from privsyn.table.enforcement.total import Total
from privsyn.table.inferred.ranks import Order
from privsyn.table.io.csv_table import PLAIN
from privsyn.table.io.identifiers import persons_of
from privsyn.table.kinds.csv_format import CsvFormat
from privsyn.table.schema.about import TO_FILL
from privsyn.table.schema.columns import Identifier, Text
from privsyn.table.schema.expressions import parse_expression
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_comments import comment

NOT_BESIDE_CONSTANT = "not beside the columns under constant"
"""The note of a rule that names such a column: rows of one person take its cell from the person."""

READ = """\
# DRAFT, made from the rows of the private table. Review it: whatever stands here is treated as public.
# "READ" names what was read from the rows. Replace it by what anybody may know (from a codebook, a form,
# a law), or leave it out: values, low and high are then found under privacy. Then delete these comments.
# Bounds are rounded outwards. "exact" bounds are the smallest and the largest cell. At least five rows have
# each exact bound, each value in a list, and the numbers that the last digit of a bound in a rule stands for;
# only 0 and 1 are named whatever their rows.
"""

MARKS_READ = """\
# READ: texts in the file that usually stand for a missing cell. They come out as empty cells.
# Remove those that are values, as "NA" may be a country.
"""

UNREAD = """\
# DRAFT, made from names and types alone: no row was read. Review each line, and add what anybody may know:
# it saves budget. What is left out (values, low and high) is found under privacy.
"""

NO_TYPES = """\
# A CSV has no types: only the names in its header are known. Say which kind each column is.
"""

PROPOSALS = """\
# READ: every row keeps these, unless it says how many break it. Remove the # of those that anybody may know
# to hold, also of rows to come. The rows beside each show it: without a missing cell, or with the gap.
constraints:
"""

SAME_IN_ALL_ROWS = (
    "READ: the same in all rows of one {0}. Remove the # of the line, and columns where it is chance."
    " Without it, the synthetic rows of one {0} may differ in these columns."
)

ROW_NUMBERS = "READ: it numbers the rows, and no rule names it. To leave it out, write {kind: text}."
"""The remark on a column of row numbers."""

NOT_BESIDE = (
    " No rule can name them beside it. So these rules are left out, and synthetic rows"
    " may break them: {0}. To have one, take its columns out of the list, and write it under constraints."
)


def draft_files(
    table: object,
    *,
    stem: str | None = None,
    unit: str | None = None,
    order: str | None = None,
    read: bool = True,
    csv: CsvFormat = PLAIN,
    codebook: DescribedTable | None = None,
) -> tuple[str, dict[str, str]]:
    """Return the draft, with what a `codebook` says, and the text of each file of a look-up by its name.

    Look-ups of many keys are files beside the draft, whose names begin with `stem`; without one, none is
    written.
    """
    if not read:
        names = draft_schema(table, unit=unit, read=False, csv=csv)
        unread = {name: comment_on(column, None) for name, column in names.columns.items()}
        drafted = Draft(names, {name: (note,) for name, note in unread.items() if note}, [])
        header = UNREAD + (NO_TYPES if is_text(table) else "")
    else:
        drafted = draft_to_review(table, unit=unit, order=order, csv=csv)
        header = READ + (comment(f"READ: {drafted.nobodys}") if drafted.nobodys else "")
    if codebook is not None:
        header += "".join(map(comment, codebook.remarks(drafted.schema.columns)))
        drafted = codebook.described(drafted, read=read)
    header += TO_FILL if codebook is None else codebook.about
    header += MARKS_READ if read and drafted.schema.missing else ""
    text, files = drafted.text(PROPOSALS, stem)
    if drafted.constant:
        rules = "; ".join(str(proposal.constraint) for proposal in drafted.apart)
        apart = NOT_BESIDE.format(rules) if rules else ""
        text += comment(SAME_IN_ALL_ROWS.format(unit) + apart)
        text += behind_sign("constant", list(drafted.constant))
    return header + text, files


def draft_to_review(
    table: object, *, unit: str | None = None, order: str | None = None, csv: CsvFormat = PLAIN
) -> Draft:
    """Return the draft of a table and what its rows show. Not private.

    If a column identifies persons, rules on the rows of each person are proposed too. Those that mean rows in
    an order need one.

    Raises
    ------
    InputError
        If the table has no rows, or cannot be read.
    """
    loaded, csv = loaded_rows(table, unit, csv)
    draft, frame, spelling = draft_of_rows(table, loaded, without(unit, loaded.frame), csv)
    if order is not None and order not in frame:
        raise InputError(f"the table has no column {order!r}{did_you_mean(order, [*frame])}")
    if not len(frame):
        raise InputError(
            "the table has no rows to draft from: --from-dtypes drafts from names and types alone"
        )
    links = leads_to_own_rows(frame)
    keys = dict.fromkeys(links.values(), Identifier())
    draft = replace(draft, columns={**draft.columns, **dict.fromkeys(links, Text()), **keys})
    rules, constant, dependent = list[tuple[str, Proposal]](), tuple[str, ...](), dict[str, Proposal]()
    if unit is not None:
        of_persons = {"parent": PERSONS_TABLE, "link": unit} | ({} if order is None else {"order": order})
        persons = persons_of(loaded.frame, unit)
        rows = DraftedTable(ROWS, draft, frame, spelling, of_persons, persons)
        constant, dependent = (*rows.belonging_to_parent(),), constant_sums(rows, ())
        rules = rules_of_lives(rows, KeyedTable(ROWS, frame), dependent)
    held = () if order is None else (order, *constant)
    drafted = review(draft, frame, spelling, dependent, rules, held)
    if unit is not None:
        apart = apart_from_constant(drafted.schema, drafted.proposals, of_persons, constant)
        plain = [proposal.plain for proposal in apart]
        proposals = [proposal for proposal in drafted.proposals if proposal.plain not in plain]
        proposals = accepted(drafted.schema, proposals, {**of_persons, "constant": constant})
        nobodys = rows_of_nobody(unit, persons)
        drafted = replace(drafted, proposals=proposals, apart=apart, nobodys=nobodys)
    notes = {
        column: (
            f"READ: SELF-REFERENCE, all its cells are cells of {key}, so each leads to another row. Such"
            " links are not made: it is left out. {kind: identifier} generates numbers, which lead nowhere.",
        )
        for column, key in links.items()
    }
    return replace(drafted, notes={**drafted.notes, **notes}, constant=constant)


def review(
    draft: Schema,
    frame: pd.DataFrame,
    spelling: Mapping[str, tuple[str, ...]],
    dependent: Mapping[str, Proposal] = MappingProxyType({}),
    ordered: Sequence[tuple[str, Proposal]] = (),
    held: Collection[str] = (),
) -> Draft:
    """Return a draft with what the rows show.

    Parameters
    ----------
    draft, frame, spelling : as `draft_with_rows` returns them
    dependent : mapping of a column to a Proposal, optional
        The columns that follow from another table, or from a sum that is the same in all rows of a person.
    ordered : sequence of (column, Proposal), optional
        Of one of several tables: the columns on one side of one above. Rules on columns that are computed,
        or measured from others, are left out.
    held : collection of str, optional
        Columns of which a sum rather has the computed column as a part.
    """
    order, numbering = Order(frame), row_numbers(draft, frame)
    notes = {}
    for name, column in draft.columns.items():
        lines = [
            comment_on(column, frame[name]),
            *spelling.get(name, ()),
            *([ROW_NUMBERS] if name in numbering else []),
            *remarks_on(name, column, frame[name], has_neighbours=order.has_neighbours(name)),
        ]
        if not any("--unit" in line for line in lines):
            lines += remark_on_persons(name, column, draft, frame)
        notes[name] = tuple(filter(None, lines))
    rest, proposals = propose(draft.without({*dependent, *numbering}), frame)
    proposals = [_solved(proposal, rest, held) for proposal in proposals]
    left_out = measured(rest, proposals) if ordered else set()
    with_above = [rule for column, rule in ordered if column not in left_out]
    proposals = [*dependent.values(), *with_above, *proposals]
    draft = replace(draft, columns={**draft.columns, **rest.columns})
    # To look for the values of a column without a cell would take a part of the budget.
    empty = {name: Text() for name in draft.coded if frame[name].isna().all()}
    draft = replace(draft, columns={**draft.columns, **empty})
    return Draft(draft, notes, proposals)


def _solved(proposal: Proposal, schema: Schema, held: Collection[str]) -> Proposal:
    """Return the proposal of a sum that computes none of some columns, if it can be solved for another."""
    if not held or not isinstance(proposal.plain, str):
        return proposal
    parsed = parse_expression(proposal.plain, schema.coded)
    totals = [ComputedAbove.with_constants(rule, ()) for rule in parsed if isinstance(rule, Total)]
    if len(totals) != 1 or totals[0] is None:
        return proposal
    return replace(proposal, plain=str(totals[0].solved(held)))


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
