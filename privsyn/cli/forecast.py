"""`privsyn forecast`: what a model that learns from a saved release is expected to reach on real rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.common.terminal import say_text


def forecast(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The model of `privsyn synth --model`.")],
    target: Annotated[str, typer.Option(metavar="COL", help="The column to be predicted.")],
    learner: Annotated[
        str, typer.Option("--model", metavar="NAME", help="What learns: boosting, linear, forest or mlp.")
    ] = "boosting",
    draws: Annotated[
        int, typer.Option(min=1, help="Number of simulated runs: more are slower and steadier.")
    ] = 1,
    seed: Annotated[int | None, typer.Option(min=0, help="Makes the forecast repeatable.")] = None,
) -> None:
    """Forecast how well models that learn from synthetic rows predict real ones. It reads MODEL alone."""
    import privsyn
    from privsyn.cli.common.console import progress, show_privacy

    release = privsyn.load(model)
    with progress() as report:
        found = privsyn.forecast(release, target, model=learner, draws=draws, seed=seed, progress=report)
    say_text(str(found))
    show_privacy(release.ledger_, spent_before=True)
