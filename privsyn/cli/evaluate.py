"""`privsyn evaluate`, `attack` and `drift`: compare tables with the real one, and attack a synthetic one."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import permutations
from pathlib import Path
from typing import Annotated, Any

import typer

from privsyn.abilities import NOBODY, check_abilities
from privsyn.cli.common import options
from privsyn.cli.common.terminal import say, say_text


@options.takes(csv=options.CSV)
def evaluate(
    real: Annotated[
        Path,
        typer.Argument(
            metavar="REAL",
            parser=options.table_path,
            help="The private table: a file, or a folder of Parquet files; a folder or database of linked"
            " tables.",
        ),
    ],
    synthetic: Annotated[
        Path,
        typer.Argument(
            metavar="SYNTHETIC", parser=options.table_path, help="The synthetic table, or the linked tables."
        ),
    ],
    schema: Annotated[
        Path | None,
        typer.Option(
            help="The schema of the synthetic table. Default: bins from both tables. Linked tables need it."
        ),
    ] = None,
    unit: options.Unit = None,
    identifiers: options.Identifiers = False,
    order: options.Order = None,
    target: options.Target = None,
    test: Annotated[
        Path | None,
        typer.Option(help="Real rows that SYNTHETIC was not made from. Default: a fifth of REAL."),
    ] = None,
    model: options.Models = None,
    leave_out: Annotated[
        list[str] | None, typer.Option(metavar="COL", help="A column from which models do not learn. Repeat.")
    ] = None,
    metric: options.Metrics = None,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", rich_help_panel=options.WRITES, help="Write all numbers to this file."),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(rich_help_panel=options.WRITES, help="Write a web page to this file.")
    ] = None,
    force: options.Force = False,
    *,
    csv: options.Given,
) -> None:
    """Measure how far SYNTHETIC is from REAL. It READS REAL: its output is not private."""
    import privsyn
    from privsyn.cli.common.outputs import check_data, check_outputs, check_page, staged, write_text
    from privsyn.cli.common.progress_bars import waiting
    from privsyn.cli.common.summary import show_files

    if unit is None:
        check_abilities([NOBODY], {"identifiers": identifiers})
    outputs = {"--json": json_file, "--report": report}
    tables = [real, synthetic, *([] if test is None else [test])]
    database = options.read_public(schema, csv)
    for path in tables:
        check_data(path, database)
    check_places({"REAL": real, "SYNTHETIC": synthetic} | ({} if test is None else {"--test": test}))
    check_outputs(outputs, inputs=(*tables, schema), force=force)
    check_page("--report", report)
    with staged(outputs) as paths, waiting("comparing the tables and training models"):
        scores = privsyn.evaluate(
            real,
            synthetic,
            database,
            unit=unit,
            order=order,
            target=target,
            test=test,
            models=options.split(model) or True,
            leave_out=leave_out or (),
            metrics=options.own_metrics(metric),
            report=paths.get("--report"),
        )
        if json_file is not None:
            write_text(paths["--json"], scores.to_json())
    say_text(str(scores))
    show_files(outputs)


@options.takes(csv=options.CSV)
def attack(
    real: Annotated[
        Path,
        typer.Argument(
            metavar="REAL",
            parser=options.table_path,
            help="The rows from which SYNTHETIC was made: a file; of linked tables a folder or database.",
        ),
    ],
    synthetic: Annotated[
        Path,
        typer.Argument(
            metavar="SYNTHETIC", parser=options.table_path, help="The synthetic table, or the linked tables."
        ),
    ],
    control: Annotated[
        Path,
        typer.Argument(
            metavar="CONTROL", parser=options.table_path, help="Similar rows that were not used to make it."
        ),
    ],
    schema: Annotated[
        Path | None, typer.Option(help="The schema of SYNTHETIC. Linked tables need it.")
    ] = None,
    unit: options.Unit = None,
    identifiers: options.Identifiers = False,
    order: options.Order = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COL",
            help="A column to infer; may be repeated. Default: all. Of linked tables as visits.ward.",
        ),
    ] = None,
    membership: Annotated[
        bool, typer.Option("--membership", help="Also tell rows of REAL from rows of CONTROL, by SYNTHETIC.")
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option(help="With --membership, the ledger of SYNTHETIC: what it allows is printed too."),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="The same for a table without a ledger: what any method may allow."),
    ] = None,
    delta: Annotated[float, typer.Option(help="With --epsilon.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random choice of rows.")] = 0,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", rich_help_panel=options.WRITES, help="Write all numbers to this file."),
    ] = None,
    force: options.Force = False,
    *,
    csv: options.Given,
) -> None:
    """Attack rows of REAL and rows of CONTROL, and compare. It READS REAL: its output is not private."""
    import privsyn
    from privsyn.cli.common.outputs import check_data, check_outputs, staged, write_text
    from privsyn.cli.common.progress_bars import waiting
    from privsyn.cli.common.summary import show_files

    if unit is None:
        check_abilities([NOBODY], {"identifiers": identifiers})
    outputs = {"--json": json_file}
    tables = real, synthetic, control
    database = options.read_public(schema, csv)
    for path in tables:
        check_data(path, database)
    check_places({"REAL": real, "SYNTHETIC": synthetic, "CONTROL": control})
    check_outputs(outputs, inputs=(*tables, schema, ledger), force=force)
    with staged(outputs) as paths, waiting("attacking rows"):
        risks = privsyn.attack(
            *tables,
            database,
            unit=unit,
            order=order,
            secrets=secret,
            membership=membership,
            ledger=ledger,
            epsilon=epsilon,
            delta=delta,
            seed=seed,
        )
        if json_file is not None:
            write_text(paths["--json"], risks.to_json())
    say_text(str(risks))
    show_files(outputs)


SHOWN = 10
"""Differences that are printed."""


def drift(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model of `privsyn synth --model`.")],
    rows: Annotated[
        Path,
        typer.Argument(
            metavar="ROWS",
            parser=options.table_path,
            help="New rows, in a file with the columns of the table.",
        ),
    ],
    level: Annotated[
        float,
        typer.Option(min=0, max=1, help="P-values below this are drift: how often a false alarm may be."),
    ] = 0.01,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", rich_help_panel=options.WRITES, help="Write all p-values to this file."),
    ] = None,
    force: options.Force = False,
) -> None:
    """Ask whether ROWS may come from the population of MODEL's table. It READS ROWS: not private.

    The exit status is 1 if they differ by more than chance. Columns are named first, and then sets of columns
    that differ although none of their columns does.
    """
    from privsyn.cli.common.outputs import check_outputs, check_table, staged, write_text
    from privsyn.cli.common.summary import show_files
    from privsyn.release.release import load

    outputs = {"--json": json_file}
    check_table(rows)
    check_outputs(outputs, inputs=(model, rows), force=force)
    table = load(model).drift(rows)
    if json_file is not None:
        with staged(outputs) as paths:
            write_text(paths["--json"], table.to_json(orient="records", indent=2) + "\n")
    compared, smallest = int(table["p_value"].notna().sum()), table["p_value"].min()
    drifted = table[table["p_value"] < level]
    verdict = (
        f"{len(drifted)} of {compared} columns and sets of columns differ" if len(drifted) else "no drift"
    )
    say(f"{verdict}: the smallest p-value is {smallest:.2g}, and drift is below {level:g}")
    alone = {names[0] for names in drifted["columns"] if len(names) == 1}
    lines: list[dict[Any, Any]] = drifted.to_dict("records")
    named = [line for line in lines if len(line["columns"]) == 1 or alone.isdisjoint(line["columns"])]
    for line in named[:SHOWN]:
        shares = f"{line['rows']:.1%} of the rows, {line['release']:.1%} in the release"
        say(f"  {line['where']}: {shares} (p = {line['p_value']:.2g})")
    for line in table[table["p_value"].isna()].to_dict("records"):
        say(f"  {line['columns'][0]}: not compared: {line['where']}")
    show_files(outputs)
    if len(drifted):
        raise typer.Exit(1)


def check_places(tables: Mapping[str, Path]) -> None:
    """Refuse a private table in the place of the synthetic one, which a run made from it.

    A run writes the names of both, without their folders, into the budget file beside the private table. So
    names that several of the tables have are no sign of it. No row is read.

    Parameters
    ----------
    tables : mapping of REAL, SYNTHETIC and the name of another table of real rows to their paths
    """
    from privsyn.account.budget_file import beside, kept_in, name_of, runs_in
    from privsyn.errors import InputError

    outputs: dict[str, set[str]] = {role: set() for role in tables}
    for role, path in tables.items():
        with suppress(InputError):  # whoever spends reads it again
            outputs[role] = {run.out for run in runs_in(kept_in(beside(path)))}
    names = [name_of(path) for path in tables.values()]
    for (role, path), (source, private) in permutations(tables.items(), 2):
        is_made = name_of(path) in outputs[source] and names.count(name_of(path)) == 1
        if role == "SYNTHETIC":  # two tables may have had outputs of one name
            is_made &= source != "REAL" and name_of(path) not in outputs["REAL"]
        if is_made:
            raise InputError(
                f"{path} has the name of a table made from {private}, by the budget file beside {private}:"
                f" give {private} as REAL and {path} as SYNTHETIC, or rename {path} if it is another table"
            )
