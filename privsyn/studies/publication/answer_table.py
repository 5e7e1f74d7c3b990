"""The answers on the public page: a share or a mean of each column, by a column that makes few groups."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError
from privsyn.pages.sections import interval, percent, visible
from privsyn.release.accuracy.verdicts import DIRECTION, KEEP, UNDECIDED
from privsyn.release.losses.of_table import spoiled
from privsyn.release.questions.answer import Answer
from privsyn.release.questions.answers import Answers
from privsyn.release.questions.drawn_rows import ROWS
from privsyn.release.questions.groups import conditions_by
from privsyn.release.release import Release
from privsyn.release.table_model import TableModel
from privsyn.table.database.derived_columns import constants, of_lasting, rows_of
from privsyn.table.database.opened import ROW
from privsyn.table.schema.condition import conditions_on_values, quoted

FEWEST_GROUPS, MOST_GROUPS = 2, 5
"""Fewest and most values of a column by which rows are divided: five fit beside each other."""

MOST_VALUES = 30
"""Most listed values of a column by which rows are divided. The most frequent ones make groups."""

MOST_COLUMNS, MOST_TABLES = 16, 4
"""Columns that a table of answers has, and such tables on a page: each answer takes about 20 ms."""

ALONE = 1 - 1e-9
"""Share of the rows of its count from which a value has a count of its own."""

LEAST_ROWS, CELLS = 10_000, 2**20
"""Synthetic rows beside the answers; wide tables have fewer of them."""


def answer_tables(release: Release, strengths: dict[str, dict[str, float]]) -> list[dict[str, Any]]:
    """Return tables of answers: of the rows of a table, by one of its columns with few values.

    Parameters
    ----------
    release : Release
    strengths : mapping of a table to a mapping of a column
        How strong the relationships of the column are that are decided. The strongest columns make groups.

    Returns
    -------
    list of dict
        ``table``, ``by``: None if no column makes few groups or none is left to ask by it, ``groups``: the
        words of each group; ``ungrouped``: the values that make no group;
        ``lines``: for each column its ``question``, and ``cells``: the answer for all rows, and for each
        group; ``more``: columns that are left out.
    """
    columns = max(len(model.codec.names) for model in release.tables.values())
    most_rows = min(ROWS, max(LEAST_ROWS, CELLS // columns))
    answers = Answers(release.database, release.tables, release.accuracy_, most_rows)
    tables = [name for name in release.tables if readers_columns(release, name)]
    groupings = [
        (rank, name, (name, column) if {*readers_columns(release, name)} - {column} else None)
        for name in tables
        for rank, column in enumerate(_grouping_columns(release.tables[name], strengths[name]))
    ]
    # The first of each table, the table with most columns first; then the second of each.
    groupings.sort(key=lambda grouping: (grouping[0], -len(readers_columns(release, grouping[1]))))
    if not groupings:
        return [_table(release, answers, name, None) for name in tables[:MOST_TABLES]]
    chosen = [(name, by) for _, name, by in groupings]
    above = _by_columns_above(release, strengths)[:1]
    return [_table(release, answers, *table) for table in chosen[: MOST_TABLES - len(above)] + above]


def _by_columns_above(
    release: Release, strengths: dict[str, dict[str, float]]
) -> list[tuple[str, tuple[str, str]]]:
    """Return each table with the strongest column of its parent with few values, most columns first.

    Of the one table that somebody gave, it is one that is the same in all rows of a person.
    """
    below = list[tuple[str, tuple[str, str]]]()
    for name in release.database.below:
        parent = str(release.database.tables[name].parent)
        readable = {*readers_columns(release, parent)}
        if release.database.single is not None:
            readable = {*constants(release.database, name).values()}
        columns = [
            column
            for column in _grouping_columns(release.tables[parent], strengths.get(parent, {}))
            if column in readable
        ]
        below += [(name, (parent, column)) for column in columns[:1] if readers_columns(release, name)]
    return sorted(below, key=lambda table: -len(readers_columns(release, table[0])))


def _grouping_columns(model: TableModel, strengths: dict[str, float]) -> list[str]:
    """Return the columns by which rows may be divided, the strongest first.

    Columns with values that make no group come after all others. A column of which most cells are lost, as
    where a word stands for most values, is left out.
    """
    lost = {*model.accuracy_.not_found, *spoiled(model)}
    names = [
        name
        for name, kind in model.codec.schema.coded.items()
        if name in model.codec.names
        and name not in lost
        and kind.lists_values
        and len(kind.listed) <= MOST_VALUES
        and len(_groups(model, name)) >= FEWEST_GROUPS
    ]
    partial = {name for name in names if _values_without_group(model, name)}
    return sorted(names, key=lambda name: (name in partial, -strengths.get(name, 0.0)))


def _groups(model: TableModel, name: str) -> list[int]:
    """Return the indices of the listed values that make groups, in the order of the list.

    They are the most frequent of the values that have a count of their own and, by its interval, rows.
    """
    if name not in model.codec.domain.names:
        return []
    values = len(model.codec.schema.coded[name].listed)
    axis, merging = model.codec.domain.names.index(name), model.fitted.merging
    is_alone = merging.shares[axis][:values] > ALONE
    counts = model.accuracy_.counts(name)
    if len(counts) <= merging.groups[axis].max():  # several counts in one
        return []
    counts = counts.iloc[merging.groups[axis][:values]]
    has_rows = np.flatnonzero(is_alone & (counts["low"].to_numpy() > 0))
    most_frequent = np.argsort(-counts["estimate"].to_numpy()[has_rows], kind="stable")[:MOST_GROUPS]
    return sorted(has_rows[most_frequent].tolist())


def _values_without_group(model: TableModel, name: str) -> list[str]:
    """Return the values of a column that make no group, without the word for rare values."""
    kind, groups = model.codec.schema.coded[name], _groups(model, name)
    rare = getattr(kind, "other", None)
    return [
        visible(value)
        for index, value in enumerate(kind.listed)
        if index not in groups and (value != rare or rare is None)
    ]


def readers_columns(release: Release, name: str) -> list[str]:
    """Return the columns of a synthetic table of which something can be asked, in their order."""
    model = release.tables[name]
    children = release.database.children(name)
    derived = {ROW, *map(rows_of, children)}
    derived |= {column for child in children for column in of_lasting(release.database, child)}
    return [
        column
        for column in model.codec.names
        if column in model.codec.schema.coded and column not in (*derived, *model.accuracy_.not_found)
    ]


def _table(release: Release, answers: Answers, name: str, by: tuple[str, str] | None) -> dict[str, Any]:
    """Return the answers about the columns of a table, for all rows and for each value of a column, if any.

    `by` is the table of that column, which may be the parent, and the column.
    """
    model, single = release.tables[name], release.database.single
    prefix, wheres, called = "" if name == single else f"{name}: ", list[str](), None
    values, ungrouped = list[str](), list[str]()
    if by is not None:
        home, called = release.tables[by[0]], by[1]
        listed, conditions = home.codec.schema.coded[by[1]].listed, conditions_by(home, by[1])
        values = [visible(listed[index]) for index in _groups(home, by[1])]
        wheres = [conditions[index] for index in _groups(home, by[1])]
        ungrouped = _values_without_group(home, by[1])
        if by[0] != name and single is None:
            wheres, called = [f"{by[0]}: {where}" for where in wheres], f"{by[1]} of {by[0]}"
    columns = [column for column in readers_columns(release, name) if (name, column) != by]
    lines = []
    for column in columns[:MOST_COLUMNS]:
        words, subject, is_share = _subject(model, column)
        texts = [f"{prefix}{subject}", *(f"{prefix}{subject} among {where}" for where in wheres)]
        limits = (0.0, 1.0) if is_share else model.codec.schema.coded[column].bounds
        cells = [_cell(answer, limits, is_share=is_share) for answer in _answers(answers, texts)]
        lines.append({"question": words, "cells": cells})
    return {
        "table": name if prefix else "",
        "by": called,
        "groups": values,
        "ungrouped": ungrouped,
        "lines": lines,
        "more": columns[MOST_COLUMNS:],
    }


def _subject(model: TableModel, column: str) -> tuple[str, str, bool]:
    """Return what is asked of a column: for readers, as the question, and whether it is a share.

    Of two values it is the rarer one, of more the most frequent one.
    """
    kind = model.codec.schema.coded[column]
    if not kind.lists_values:
        return f"mean of {column}", f"mean of {quoted(column)}", False
    index = 0
    if column in model.codec.domain.names:
        counts = model.fitted.counts_of(column)[: len(kind.listed)]
        index = int(counts.argmin() if len(kind.listed) == 2 else counts.argmax())
    condition = conditions_on_values(column, kind)[index]
    return f"share of {column} = {visible(kind.listed[index])}", f"share of {condition}", True


def _answers(answers: Answers, texts: list[str]) -> Iterator[Answer]:
    for text in texts:
        try:
            yield answers.answer(text)
        except InputError as error:  # such as a value that was counted together with others
            yield Answer.refused(text, str(error))


def _cell(answer: Answer, limits: tuple[Any, Any], *, is_share: bool) -> dict[str, str]:
    """Return an answer as a cell: its number if it may be used, its interval, and its verdict.

    An interval that reaches from the least possible number to the largest one, the `limits`, says nothing.
    """
    numbers = answer.estimate, answer.low, answer.high
    of_numbers = all(isinstance(number, Real) for number in numbers)
    says_nothing = (
        of_numbers and limits[0] < limits[1] and answer.low <= limits[0] and answer.high >= limits[1]
    )
    if any(map(pd.isna, numbers[1:])) or says_nothing:
        return {"estimate": "", "between": "", "verdict": UNDECIDED, "reason": answer.reason}
    if is_share:
        words = tuple(map(percent, numbers))
    elif of_numbers:
        words = interval(*map(float, numbers))
    else:  # a time is a time stamp or, as the cells of its column, a text
        words = tuple(f"{time:%Y-%m-%d}" if isinstance(time, pd.Timestamp) else str(time) for time in numbers)
    verdict = answer.verdict if answer.verdict in (KEEP, DIRECTION) else UNDECIDED
    between = f"{words[1]}–{words[2]}" if is_share else f"{words[1]} to {words[2]}"
    return {
        "estimate": words[0] if verdict != UNDECIDED else "",
        "between": "" if answer.low == answer.high else between,  # a rule of the schema makes it certain
        "verdict": verdict,
        "reason": answer.reason,
    }
