"""`privsyn plan` and `privsyn sweep`: what to expect of a run, and what many runs on a public table gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import typer

from privsyn.abilities import PLAN, SWEEP, check_abilities
from privsyn.cli.common import options
from privsyn.cli.common.options import FIELDS
from privsyn.cli.common.terminal import say, say_text


def _not_default(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if value != FIELDS[name].default}


def _taken_by(study: Callable[..., object], kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a run that a study of it takes; refuse those that it could not follow.

    So the options of `synth` may stay. Those that change nothing there, such as the memory, are left out.
    """
    check_abilities([kind], _not_default(settings))
    taken = signature(study).parameters
    return {name: value for name, value in settings.items() if name in taken}


@options.takes(settings=options.settings_options(without=["public"], required=["epsilon"]), csv=options.CSV)
def plan(
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            parser=options.table_path,
            help="The table (no row is read), or a schema (.yaml) alone.",
        ),
    ] = None,
    *,
    settings: options.Given,
    rows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="A rough, public number of rows: do not count the private ones. Of one table they are rows"
            " of DATA also where --rows of `synth` is persons; of linked tables, rows of the first.",
        ),
    ] = None,
    rows_per_parent: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TABLE=NUMBER",
            help="Of linked tables: how many rows belong to a row of the parent, roughly and public. Of a"
            " second table of persons: how many to each row of the first. With --identifiers rows=NUMBER, of"
            " a person. Repeat.",
        ),
    ] = None,
    public: Annotated[
        Path | None,
        typer.Option(
            help="A table that IS PUBLIC, such as last year's: what it would gain if DATA is like it. With"
            " --rows."
        ),
    ] = None,
    csv: options.Given,
) -> None:
    """Estimate error, time and memory of a run before any budget is spent. It reads no row of DATA.

    It takes the options of `synth` that describe the run.
    """
    import privsyn
    from privsyn.cli.common.outputs import check_table
    from privsyn.errors import InputError

    settings = _taken_by(privsyn.plan, PLAN, settings)
    alone = data is not None and data.suffix.lower() in (".yaml", ".yml")
    if data is not None and alone:
        if settings["schema"] is not None:
            raise InputError(f"{data}: is a schema: leave out --schema, or give the table")
        settings["schema"], data = data, None
    database = options.read_public(settings["schema"], csv)
    if data is not None:
        if database.single is None:
            why = "linked tables are planned from the schema"
            raise InputError(f"{settings['schema']}: {why}: leave out {data}")
        check_table(data)
    settings["schema"] = database
    numbers = None if rows_per_parent is None else dict(map(_per_parent, rows_per_parent))
    say_text(str(privsyn.plan(data, rows=rows, rows_per_parent=numbers, public=public, **settings)))


def _per_parent(text: str) -> tuple[str, float]:
    from privsyn.errors import replace_errors

    message = f"--rows-per-parent {text}: must be a table and a number, like visits=3"
    with replace_errors(message, ValueError):
        name, number = text.rsplit("=", 1)
        return name, float(number)


@options.takes(settings=options.settings_options(without=["epsilon", "method"]), csv=options.CSV)
def sweep(
    data: options.Data,
    *,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(metavar="NUMBERS", help="Of a table. Separated by commas: 0.1,0.3,1,3,10."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="CSV",
            help="Of a table: one row for each run. Runs that are in this file are not repeated; use one file"
            " per table.",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Runs of each epsilon and method. Default: 5; of a model 1."),
    ] = None,
    settings: options.Given,
    preset: Annotated[
        options.Names,
        typer.Option(
            metavar="NAMES",
            help="default, paper, or both with a comma; also 'paper(rounds=50)'. Default: default, or none"
            " with --method.",
        ),
    ] = None,
    method: Annotated[
        options.Names,
        typer.Option(
            metavar="PLACE",
            help="A method of your own: module:function, called as (table, epsilon, seed). Repeat.",
        ),
    ] = None,
    models: Annotated[bool, typer.Option(help="Train models; they take most of the time.")] = True,
    model: options.Models = None,
    metric: options.Metrics = None,
    name: Annotated[
        str | None, typer.Option(help="The name of the table in the results. Default: that of DATA.")
    ] = None,
    long: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            rich_help_panel=options.WRITES,
            help="Write one row for each score of each run, too.",
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=options.WRITES,
            help="Plot errors against epsilon to this file: .png, .svg or .pdf.",
        ),
    ] = None,
    score: Annotated[
        options.Names,
        typer.Option(metavar="NAMES", help="The scores in the plot, such as pair_mean,boosting_auc."),
    ] = None,
    peers: Annotated[
        Path | None,
        typer.Option(metavar="CSV", help="Results of other programs for the plot: method, epsilon, scores."),
    ] = None,
    force: options.Force = False,
    csv: options.Given,
) -> None:
    """Measure many runs on DATA, for experiments. Seeded, and it READS DATA: its results are not private.

    If DATA is a model of `privsyn synth`, no other file is read.

    What it prints then is how well models that learn from its rows should predict real ones.
    """
    import pandas as pd

    import privsyn
    from privsyn.cli.common.outputs import check_data, check_outputs, staged
    from privsyn.cli.common.progress_bars import countdown
    from privsyn.cli.common.recording import refuse_sweep
    from privsyn.errors import InputError, plural
    from privsyn.studies.results import check_plot, check_scores, draw, long_form, read_peers

    if data.suffix.lower() == ".privsyn":
        of_tables: dict[str, object] = {"epsilon": epsilon, "out": out}
        of_tables |= _not_default(settings | {"target": None})
        of_tables |= {"preset": preset, "method": method, "metric": metric, "name": name, "long": long}
        learners = (models and options.split(model)) or models
        _sweep_release(data, settings["target"], learners, seeds, of_tables | {"plot": plot, "score": score})
        return
    if epsilon is None or out is None:
        raise InputError("a sweep of a table needs --epsilon and --out")
    settings = _taken_by(privsyn.sweep, SWEEP, settings)
    database = options.read_public(settings["schema"], csv)
    check_data(data, database)
    refuse_sweep(data)
    outputs, inputs = {"--out": out, "--plot": plot, "--long": long}, (data, settings["schema"], peers)
    check_outputs(outputs, inputs=inputs, force=force, appended=("--out",))
    if plot is None and (score or peers):
        raise InputError("--score and --peers are about the plot: add --plot FILE")
    settings["schema"] = database
    metrics, scores = options.own_metrics(metric), options.split(score)
    check_scores(scores)
    others_results = None if peers is None else read_peers(peers)
    if plot is not None:
        check_plot(plot)
    with countdown() as report:
        rows = privsyn.sweep(
            data,
            options.numbers("--epsilon", epsilon),
            seeds=seeds,
            presets=options.split(preset) or None,
            methods=options.import_from_here(method),
            **settings,
            models=(models and options.split(model)) or models,
            metrics=metrics,
            name=name,
            out=out,
            progress=report,
        )
    done, other_runs = plural(len(rows), "run"), len(pd.read_csv(out)) - len(rows)
    say(f"{out}: {done}, one row each. They READ THE REAL TABLE and are seeded: not private")
    if other_runs:
        say(f"{out}: also keeps {plural(other_runs, 'run')} of other settings or another version")
    if long is not None:
        with staged({"--long": long}) as paths:
            long_form(rows).to_csv(paths["--long"], index=False)
        say(f"{long}: one row for each score; not private either")
    if plot is not None:
        draw(rows, plot, scores, others_results)
        say(f"{plot}: errors against epsilon; not private either")


def _sweep_release(
    path: Path,
    target: str | None,
    models: bool | list[str],
    seeds: int | None,
    table_settings: Mapping[str, object],
) -> None:
    from privsyn.cli.common import progress_bars, summary
    from privsyn.release.release import load
    from privsyn.studies.simulated import simulated_scores, student_of

    release = load(path)
    with progress_bars.progress() as report:
        scores = simulated_scores(release, target, models, seeds, report, table_settings)
    for score in scores:
        say_text(str(score))
    if not all(score.useless for score in scores):
        say_text(str(student_of(release)))
    summary.show_privacy(release.ledger, spent_before=True)
