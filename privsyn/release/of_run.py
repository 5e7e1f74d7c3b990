"""The release of a run: what was learnt of each table, without anything private."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from privsyn.methods.run import Run
from privsyn.methods.tables import LearnedTable, RunTable
from privsyn.private.ledger import Ledger
from privsyn.release.losses import Loss, at_found_bounds, computed_losses, losses_of_rows, of_target
from privsyn.release.release import Release
from privsyn.release.table_model import TableModel
from privsyn.table.database.synthetic import dtype_of_keys
from privsyn.table.encoding.dtypes import dtype_text


def release_of(opened: Run, learned: Mapping[str, LearnedTable], ledger: Ledger) -> Release[Any]:
    """Return the release of what was learnt of each table."""
    models = dict[str, TableModel]()
    for level in opened.tables:
        its_learned = learned[level.name]
        model = _model(opened, level, its_learned, ledger, models)
        models[level.name] = replace(model, noted=tuple(_noted(opened, level, its_learned, model)))
    return Release(opened.database, models)


def _model(
    opened: Run,
    level: RunTable,
    learned: LearnedTable,
    ledger: Ledger,
    above: Mapping[str, TableModel],
) -> TableModel:
    """Return the model of a table; `above` are the models of the tables before it."""
    database, table, codec = opened.database, level.declared, learned.learned.codec
    name = level.name if database.single is None else None
    if database.single == database.root:
        form = level.opened.output_type(codec)
        return TableModel(codec, learned.learned.own, ledger, opened.settings.algorithm, form)
    copied = {
        column: above[parent].columns[database.tables[parent].key or ""]
        for column, parent in database.copied_keys(level.name).items()
    }
    elsewhere = {*table.elsewhere} - {*copied}
    form = level.opened.output_type(codec, {*elsewhere, *table.keys, *copied, table.order or ""})
    published = {*table.keys, table.order, *codec.names, *table.elsewhere} - {*codec.dropped}
    columns = {
        str(column): dtype_text(dtype) or "" if column in elsewhere else dtype_of_keys(dtype)
        for column, dtype in level.opened.source.head.dtypes.items()
        if column in published
    }
    columns |= {column: dtype for column, dtype in copied.items() if column in columns}
    fitted, method = learned.learned.own, opened.settings.algorithm
    return TableModel(codec, fitted, ledger, method, form, (), name, learned.links, columns)


def _noted(opened: Run, level: RunTable, learned: LearnedTable, model: TableModel) -> Iterator[Loss]:
    """Yield the losses of a table that the release alone does not show.

    They follow from settings, numbers of rows and bounds that were found. The losses of rows have the name of
    the table, or of the column of the persons if the table was given without a database.
    """
    table, unit, single = level.declared, opened.settings.unit, opened.database.single
    contribution = learned.learned.contribution
    if level.name == single and unit is not None:
        yield from losses_of_rows(unit, model.fitted, contribution, person=unit, owner=unit)
    elif single is None and table.parent is not None:
        owner = f"row of {table.parent}"
        yield from losses_of_rows(level.name, model.fitted, contribution, person="person", owner=owner)
    yield from computed_losses(model.name or "", at_found_bounds, model, learned.learned.beyond)
    if (target := opened.settings.target) is not None:
        yield from computed_losses("", of_target, model, target)
