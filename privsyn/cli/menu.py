"""The commands by name, in the order in which --help lists them."""

from __future__ import annotations

from importlib.metadata import version as installed_version
from typing import Annotated

import typer

from privsyn.cli.looking import attack, demo, evaluate, plan, sweep
from privsyn.cli.making import report, sample, schema, synth

app = typer.Typer(
    help="A private table in, a differentially private synthetic table out.",
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def privsyn(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """Say the version, or what there is to say."""
    if version:
        typer.echo(f"privsyn {installed_version('privsyn')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for command in (synth, sample, report, schema, evaluate, attack, plan, sweep, demo):
    app.command()(command)
