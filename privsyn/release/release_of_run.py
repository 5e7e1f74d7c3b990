"""The release of a run: what was learnt of each table, without anything private."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from privsyn.methods.run_of_tables import Run
from privsyn.methods.table_of_run import LearnedTable, RunTable
from privsyn.private.run_ledger import RunLedger
from privsyn.release.losses.bounds import cells_at_found_bounds
from privsyn.release.losses.kinds import BEYOND_BOUND, KINDS, Loss
from privsyn.release.losses.of_table import computed_losses
from privsyn.release.losses.rows import losses_of_links, losses_of_rows, losses_of_target
from privsyn.release.release import Release
from privsyn.release.table_model import TableModel
from privsyn.table.database.derived_columns import with_constants
from privsyn.table.database.synthetic import dtype_of_keys
from privsyn.table.encoding.dtypes import dtype_text


def release_of(run: Run, learned: Mapping[str, LearnedTable], ledger: RunLedger) -> Release[Any]:
    """Return the release of what was learnt of each table."""
    models = dict[str, TableModel]()
    for table in run.tables:
        model = _model(run, table, learned[table.name], ledger, models)
        noted = tuple(_noted_losses(run, table, learned[table.name], model))
        models[table.name] = replace(model, noted=noted)
    return Release(run.database, models)


def _model(
    run: Run, table: RunTable, learned: LearnedTable, ledger: RunLedger, above: Mapping[str, TableModel]
) -> TableModel:
    """Return the model of a table; `above` are the models of the tables before it."""
    database, declared, codec = run.database, table.declared, learned.learned.codec
    fitted, method = learned.learned.own, run.settings.algorithm
    if not database.is_linked:
        return TableModel(codec, fitted, ledger, method, table.opened.output_type(codec))
    copied = {
        column: above[name].columns[original]
        for column, (name, original) in database.copied_keys(table.name).items()
    }
    from_above = {column: database.origin(table.name, column) for column in declared.link_columns}
    copied |= {
        column: above[name].columns[original]
        for column, (name, original) in from_above.items()
        if original in database.tables[name].data_of_key
    }
    elsewhere = {*declared.elsewhere} - {*copied}
    form = table.opened.output_type(codec, {*elsewhere, *declared.keys, *copied, declared.order or ""})
    published = {*declared.keys, declared.order, *codec.names, *declared.elsewhere} - {*codec.dropped}
    columns = {
        str(column): dtype_text(dtype) or "" if column in elsewhere else dtype_of_keys(dtype)
        for column, dtype in table.opened.source.head.dtypes.items()
        if column in published
    }
    columns |= {column: dtype for column, dtype in copied.items() if column in columns}
    coded = {name: model.codec.schema.coded for name, model in above.items()}
    kinds_above = with_constants(database, table.name, coded)
    computed_above = {
        name: rule.kind(rule.kinds({**codec.schema.coded, **table.computed_above}, kinds_above))
        for name, rule in declared.computed_above.items()
    }
    names = database.title(table.name), database.shown_name(table.name)
    return TableModel(
        codec,
        fitted,
        ledger,
        method,
        form,
        (),
        *names,
        learned.links,
        columns,
        computed_above,
        declared.lasting,
        tuple(declared.constant),
        declared.computed_above,
    )


def _noted_losses(run: Run, table: RunTable, learned: LearnedTable, model: TableModel) -> Iterator[Loss]:
    """Yield the losses of a table that its model does not show.

    They follow from settings, numbers of rows and bounds that were found. The losses of rows have the name of
    the table, or of the column of the persons if the table was given without a database.
    """
    single, unit, parent = run.database.single, run.settings.unit, table.declared.parent
    counts, laplace = (model.fitted, learned.learned.contribution), model.has_laplace_noise
    if run.database.is_linked and table.name in run.database.shown:
        for column in table.declared.keys:
            name = run.database.shown_column(table.name, column)
            yield Loss(name, "keys", None, KINDS["keys"].heading)
    owner = unit if table.name == single else f"row of {parent}"
    for column in table.declared.constant:
        text = f"the first row of each {owner} with a value stands for all of its rows"
        yield Loss(run.database.shown_column(table.name, column), "same in all rows", None, text)
    for column, rule in table.declared.computed_above.items():
        if rule not in table.declared.stated:
            text = (
                f"computed as {rule}: the first row of each {owner} that has all of these cells decides, and"
                " other cells are not read"
            )
            yield Loss(run.database.shown_column(table.name, column), "same sum", None, text)
    if table.name == single and unit is not None and not run.database.is_linked:
        yield Loss(unit, "left out", None, "left out, as it identifies persons")
    if table.name == single and unit is not None:
        if not model.ledger.counts_all_rows:
            text = "one row of each is counted, drawn at random, and nothing stands for the others"
            yield Loss(unit, BEYOND_BOUND, None, text, "(one row of each stands for itself alone)")
        yield from computed_losses(
            unit, losses_of_rows, unit, *counts, person=unit, owner=unit, laplace=laplace
        )
    elif single is None and parent is not None:
        find = partial(losses_of_rows, person="person", owner=f"row of {parent}", laplace=laplace)
        yield from computed_losses(table.name, find, table.name, *counts)
        if not learned.has_links:
            yield from computed_losses(
                table.name, losses_of_links, table.name, parent, table.declared.lasting
            )
    beyond = learned.learned.beyond
    yield from computed_losses(model.name, cells_at_found_bounds, model, beyond)
    if (target := run.settings.target) is not None:
        yield from computed_losses("", losses_of_target, model, target)
