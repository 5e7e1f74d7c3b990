"""`privsyn reconstruct`: the reconstruction attack on a made database, against noise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.common import options
from privsyn.cli.common.terminal import say, say_text


def reconstruct(
    people: Annotated[int, typer.Option(help="People of the made database, 2 to 2,048.")] = 128,
    queries: Annotated[
        int | None, typer.Option(min=1, help="Counts of random halves. Default: four times the people.")
    ] = None,
    noise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NUMBERS",
            help="Largest error of an answer, in people: 0,3,11. Default without --epsilon: from 0 to half of"
            " the people.",
        ),
    ] = None,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(metavar="NUMBERS", help="Attack synthetic rows, made with these epsilons: 0.1,1,10."),
    ] = None,
    method: Annotated[
        str, typer.Option(help='linear, "least squares", or exhaustive for up to 20 people.')
    ] = "linear",
    seeds: Annotated[int, typer.Option(min=1, help="Made databases, over which results are means.")] = 3,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="CSV",
            rich_help_panel=options.WRITES,
            help="Write one row for each attack.",
        ),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Plot bits right against error to this file: .png, .svg or .pdf.")
    ] = None,
    force: options.Force = False,
) -> None:
    """Infer the secrets of a generated database from noisy counts: what noise hides them? Reads no table."""
    import pandas as pd

    from privsyn.cli.common.outputs import check_outputs, staged
    from privsyn.cli.common.progress_bars import waiting
    from privsyn.studies.reconstruction import picture, runs, summary, usual_noise
    from privsyn.studies.results import check_plot

    outputs = {"--out": out, "--plot": plot}
    check_outputs(outputs, inputs=(), force=force)
    if plot is not None:
        check_plot(plot)
    epsilons = options.numbers("--epsilon", epsilon)
    errors = options.numbers("--noise", noise)
    if noise is None and not epsilons:
        errors = list(usual_noise(people))
    with waiting("attacking"):
        attacks = runs(people, errors, epsilons, queries=queries, method=method, seeds=seeds)
        rows = pd.DataFrame(attacks)
    with staged(outputs) as paths:
        if out is not None:
            rows.to_csv(paths["--out"], index=False)
        if plot is not None:
            picture(rows, people).savefig(paths["--plot"], dpi=150)
    say_text(summary(rows, people, queries, method))
    for path, content in ((out, "one row for each attack"), (plot, "bits right against error")):
        if path is not None:
            say(f"{path}: {content}; of a made database")
