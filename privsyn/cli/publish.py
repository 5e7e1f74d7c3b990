"""`privsyn catalogue` and `statement`: what an office publishes or files beside a synthetic table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.common.options import AboutFile, Force, table_path
from privsyn.cli.common.terminal import say

Model = Annotated[Path, typer.Argument(metavar="MODEL", help="The model of `privsyn synth --model`.")]


def catalogue(
    model: Model,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="SYNTHETIC",
            parser=table_path,
            help="The synthetic table that was drawn from MODEL: a file; of linked tables their folder.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="The output folder; created if it does not exist. Default: that of SYNTHETIC.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="datapackage, croissant, dcat, ddi or card. Repeat. Default: all."),
    ] = None,
    about: AboutFile = None,
    force: Force = False,
) -> None:
    """Describe SYNTHETIC for catalogues: datapackage.json, croissant.json, dcat.jsonld, ddi.xml, README.md.

    They have the words of `about:` in the schema and in --about, the columns, the promise, numbers of rows
    and checksums. No private row is needed, and no epsilon is spent.
    """
    from privsyn.cli.common.outputs import check_folder
    from privsyn.release.release import load
    from privsyn.studies.publication.catalogues.catalogues import catalogue as write
    from privsyn.studies.publication.catalogues.catalogues import files_of, unsaid
    from privsyn.table.schema.yaml_file import read_about_file

    paths = files_of(data, out, only or ())
    check_folder(out, paths, inputs=(model, data, about), force=force)
    release = load(model)
    if about is not None:
        release = release.with_about(read_about_file(about))
    for path in write(release, data, out, only=only or ()):
        say(str(path))
    if lacking := unsaid(release):
        names = ", ".join(lacking)
        say(f"catalogues also ask for {names}: write them in a file, and give it with --about")
    if release.ledger.warning is not None:
        say(release.ledger.warning)


def statement(
    model: Model,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The statement, in Markdown.")],
    attacks: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The numbers of `privsyn attack --json`. THEY ARE OF REAL ROWS: not private."
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Draft a statement why a person cannot be found again, from the ledger of MODEL and from attacks.

    The office completes the lines with TODO, and decides.
    """
    from privsyn.cli.common import summary
    from privsyn.cli.common.outputs import check_markdown, check_outputs
    from privsyn.release.release import load
    from privsyn.studies.publication.statement import statement as write

    check_outputs({"OUT": out}, inputs=(model, attacks), force=force)
    check_markdown("OUT", out)
    write(load(model), out, attacks=attacks)
    summary.show_files({"--statement": out})
    if attacks is not None:
        say("the results of attacks are of real rows: keep that section, or ask before you publish it")
