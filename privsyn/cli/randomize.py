"""`privsyn randomize`: randomise answers on the respondents' side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.common.options import CSV, Data, Force, Given, read_public, takes
from privsyn.cli.common.terminal import say


@takes(csv=CSV)
def randomize(
    data: Data,
    out: Annotated[
        Path, typer.Argument(metavar="OUT", help="The randomised table: .csv, .csv.gz or .parquet.")
    ],
    schema: Annotated[Path, typer.Option(help="The values of the columns, as YAML.")],
    keep: Annotated[
        float | None,
        typer.Option(
            help="Randomise all columns: the probability that a cell is kept."
            " Default: those with `keep` in the schema."
        ),
    ] = None,
    force: Force = False,
    *,
    csv: Given,
) -> None:
    """Randomise answers before they are collected; also writes OUT.ledger.json and OUT.schema.yaml."""
    from privsyn.cli.common.console import show_privacy
    from privsyn.cli.common.outputs import check_new, check_outputs, check_table, staged, write_text
    from privsyn.errors import plural
    from privsyn.methods.randomise import randomize as randomise
    from privsyn.table.io.read_in_memory import ending_of
    from privsyn.table.io.write import write_table
    from privsyn.table.schema.yaml_file import to_yaml

    ledger, for_fit = (out.with_name(f"{out.name}.{ending}") for ending in ("ledger.json", "schema.yaml"))
    outputs = {"OUT": out, "the ledger": ledger, "the schema": for_fit}
    check_table(data)
    ending_of(out)
    check_outputs(outputs, inputs=(data, schema))
    for name, path in outputs.items():
        check_new(name, path, force=force)
    public = read_public(schema, csv) or schema
    sent = randomise(data, public, keep)
    with staged(outputs) as places:
        rows, columns = write_table(sent.table, places["OUT"], sent.schema, sent.form)
        write_text(places["the ledger"], sent.ledger.to_json())
        write_text(places["the schema"], to_yaml(sent.schema))
    say(f"{out}: {plural(rows, 'row')}, {plural(columns, 'column')}, randomised")
    say(f"{ledger}: the promise of each column")
    say(f"{for_fit}: the schema with which `privsyn synth {out.name} ...` reads it")
    for each in sent.ledger.local:
        say(
            f"{each.column}: keep {each.keep:g} of {plural(each.values, 'value')}: epsilon {each.epsilon:.4f}"
        )
    if others := [name for name in sent.schema.columns if name not in sent.schema.randomised]:
        say(f"NOT RANDOMISED, in {out.name} unchanged: {', '.join(others)}")
    show_privacy(sent.ledger)
