"""`privsyn synth`, and `privsyn owner`: a synthetic table from a private one, or from several owners'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privsyn.cli.common import options
from privsyn.settings import AGREED

if TYPE_CHECKING:
    from privsyn.account.account import Account
    from privsyn.cli.common.task import Task
    from privsyn.owners.owners import Owners
    from privsyn.progress import Progress
    from privsyn.synthesizer import PrivSyn
    from privsyn.table.schema.schema import Schema


ADD_UP = "the costs of both tables add up: docs/composition.md"


@options.takes(settings=options.settings_options(), csv=options.CSV)
def synth(
    data: options.Data,
    out: options.Out,
    *,
    settings: options.Given,
    rows: options.Rows = None,
    model: Annotated[
        Path | None, typer.Option(help="Write the model to this file, for `privsyn sample`.")
    ] = None,
    ledger: Annotated[Path | None, typer.Option(help="Write the ledger to this file, as JSON.")] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Write a web page that compares both tables. It READS DATA: not private."),
    ] = None,
    public_report: Annotated[
        Path | None,
        typer.Option(
            help="Write a web page with released counts, error bars and privacy cost: may be published."
        ),
    ] = None,
    sheet: Annotated[
        Path | None,
        typer.Option(help="Write a data sheet with metadata (JSON-LD), as Markdown: may be published."),
    ] = None,
    excel_safe: options.ExcelSafe = False,
    force: options.Force = False,
    budget: options.BudgetFile = None,
    no_budget: options.NoBudget = False,
    policy: options.PolicyFile = None,
    progress: options.ShowProgress = options.ProgressFormat.BAR,
    csv: options.Given,
) -> None:
    """Make a synthetic table with the columns, types and dependences of DATA."""
    from privsyn.cli.common import compiling

    compiling.compile_ahead()  # before the libraries, which take a second to import
    from privsyn.cli.common import console
    from privsyn.cli.common.linked import refuse, synth_tables
    from privsyn.cli.common.recording import BudgetPlace, account_of
    from privsyn.cli.common.task import Task
    from privsyn.table.database.yaml_form import as_database

    task = Task(
        data,
        out,
        settings,
        {"--model": model, "--ledger": ledger, "--public-report": public_report, "--sheet": sheet},
        account_of(data, out, settings, BudgetPlace(budget, declined=no_budget), policy),
        partial(console.progress, progress),
        rows=rows,
        force=force,
        excel_safe=excel_safe,
    )
    database = as_database(settings["schema"])
    if database is not None:
        refuse({"--report": report})
        synth_tables(task, database)
    else:
        _synth_table(task, report, policy, csv)


def _synth_table(task: Task, report: Path | None, policy: Path | None, csv: dict[str, Any]) -> None:
    """Make one synthetic table, and a page that compares it with the private one if there is a `report`."""
    from privsyn.cli.common import console
    from privsyn.cli.common.keeping import end_without_table, kept, write_public_pages
    from privsyn.cli.common.outputs import BUDGET, exists_already, rehearse
    from privsyn.cli.common.recording import fit_recorded
    from privsyn.cli.common.terminal import say
    from privsyn.release.acceptance.judge import SEED
    from privsyn.table.io.write import write_blocks
    from privsyn.table.schema.yaml_file import about_file

    data, out, rows, results, account = task.data, task.out, task.rows, task.results, task.account
    outputs = {"OUT": out, BUDGET: account.path, **results}
    _check(task, {**outputs, "--report": report}, policy)
    public = options.read_public(task.settings["schema"], csv)
    rehearsed = partial(rehearse, data, out, public, rows=rows, report=report is not None)
    with about_file(task.settings["schema"]):
        fitted = fit_recorded({**task.settings, "schema": public}, data, account, task.shown, rehearsed)
    verdict = fitted.ledger_.acceptance
    accepted, noise = verdict is None or verdict.met, fitted.release_.too_little_signal
    model, ledger = results["--model"], results["--ledger"]
    with kept(fitted, account, out=out, model=model, ledger=ledger) as written:  # what was paid for is kept
        console.show_acceptance(fitted.ledger_)
        if accepted and noise is None:
            seed = fitted.seed if verdict is None or rows is not None else SEED  # the table that was tested
            existed = exists_already(out)
            with task.shown() as bars:
                whole = None if report is None else fitted.sample(rows, seed=seed, progress=bars)
                blocks = _blocks(fitted, whole, rows, seed, bars)
                model_of_table = fitted.release_.table()
                known, form = model_of_table.codec.schema, model_of_table.form
                shape = write_blocks(blocks, out, known, form, excel_safe=task.excel_safe)
            write_public_pages(fitted, out, results, written)
            if existed:
                say(f"{out} was replaced. If it was published, {ADD_UP}")
            console.show_table(shape, out, fitted.ledger_, estimated=rows is None)
            console.show_files({name: path if path in written else None for name, path in outputs.items()})
            _show(fitted)
            if report is not None:
                _compare(fitted, data, whole, public, report)
            say(*filter(None, [account.so_far]))
            console.show_losses(fitted.losses_)
            say(fitted.outlook())
    if not accepted:
        say(*filter(None, [account.so_far]))
        console.show_refused(fitted.ledger_, out, model)
        console.show_losses(fitted.losses_)
        raise typer.Exit(1)
    if noise is not None:
        end_without_table(task, fitted, noise)


def _check(task: Task, outputs: Mapping[str, Path | None], policy: Path | None) -> None:
    """Refuse what cannot be read or written, and options that contradict."""
    from privsyn.cli.common.outputs import check_files, check_table
    from privsyn.cli.common.recording import check_recordable
    from privsyn.errors import InputError
    from privsyn.table.io.formats import ending_of
    from privsyn.table.io.read_in_memory import check_excel_safe

    data, out, settings = task.data, task.out, task.settings
    check_excel_safe(out, excel_safe=task.excel_safe)
    options.check_lookups(data, settings["schema"])
    check_table(data)
    ending_of(out)
    inputs = (data, settings["schema"], settings["accept"], policy)
    check_recordable(data, task.account)
    check_files(out, outputs, inputs, force=task.force)
    if outputs["--report"] is not None and task.rows == 0:
        raise InputError("--report compares rows, and --rows 0 makes none: leave out one of them")


def _blocks(
    fitted: PrivSyn, whole: Any, rows: int | None, seed: int | None, bars: Progress | None
) -> Iterator[Any]:
    """Return the rows to be written: those of the whole table, if there is one."""
    if whole is not None:
        return iter([whole])
    return iter(fitted.sample_blocks(rows, seed=seed, progress=bars))


def _show(fitted: PrivSyn) -> None:
    """Print the privacy cost, and what was taken as public."""
    from privsyn.cli.common import console
    from privsyn.cli.common.terminal import say

    console.show_public_inputs(fitted.ledger_)
    if not fitted.nullable:
        say(
            "--no-missing: a missing cell of the table counts as the lower bound, or as the first value"
            " listed; if many are missing, fill the cells of the synthetic table instead"
        )
    console.show_privacy(fitted.ledger_)


def _compare(fitted: PrivSyn, data: Path, synthetic: Any, public: Schema | None, report: Path) -> None:
    """Write the comparison of both tables, and print its path."""
    import privsyn
    from privsyn.cli.common import console
    from privsyn.studies.error_trace import trace
    from privsyn.table.io.read_in_memory import read_in_memory

    unit = fitted.unit if fitted.identifiers else None
    real = read_in_memory(data, public, unit=fitted.unit).frame
    if unit is None and fitted.unit is not None:
        real = real.drop(columns=fitted.unit)
    with console.waiting("comparing the tables and training models"):
        privsyn.evaluate(
            real,
            synthetic,
            public,
            unit=unit,
            order=fitted.order,
            target=fitted.target,
            report=report,
            ledger=fitted.ledger_.to_dict(),
            origins=trace(fitted.release_, real, synthetic) if unit is None else (),
        )
    console.show_files({"--report": report})


@options.takes(
    settings=options.settings_options(
        *AGREED, "schema", "allow_weak_privacy", required=["epsilon", "schema"]
    ),
    csv=options.CSV,
)
def owner(
    data: options.Data,
    *,
    settings: options.Given,
    party: Annotated[int, typer.Option(min=0, help="The place of this owner in --peers, from 0.")],
    peers: Annotated[
        str, typer.Option(metavar="HOST:PORT,...", help="All owners, in the same order at each of them.")
    ],
    model: Annotated[Path, typer.Option(help="Write the model to this file: the same bytes at each owner.")],
    honest: Annotated[
        int | None,
        typer.Option(help="How many owners are trusted to add noise. Default: the smallest majority."),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(help="Private: the noisy answers of this owner. The same folder resumes a run."),
    ] = None,
    tls: Annotated[
        Path | None, typer.Option(help="A folder with ca.crt, owner.crt and owner.key, to encrypt.")
    ] = None,
    patience: Annotated[float, typer.Option(help="Seconds to wait for another owner.")] = 3600.0,
    ledger: Annotated[Path | None, typer.Option(help="Write the ledger to this file, as JSON.")] = None,
    force: options.Force = False,
    budget: options.BudgetFile = None,
    no_budget: options.NoBudget = False,
    policy: options.PolicyFile = None,
    csv: options.Given,
) -> None:
    """Learn from the rows of several owners, none of whom shows them to another. Each runs this command."""
    from privsyn.cli.common.outputs import BUDGET, check_outputs, check_table
    from privsyn.cli.common.recording import BudgetPlace, account_of, check_recordable
    from privsyn.owners.journal import Journal
    from privsyn.owners.owners import Owners

    private = model.with_name(f"{model.name}.run") if folder is None else folder
    begun = Journal.open(private).name if Journal.begun(private) else None
    place = BudgetPlace(budget, declined=no_budget)
    account = account_of(data, model, settings, place, policy, resumed=begun)
    check_table(data)
    options.check_lookups(data, settings["schema"])
    check_recordable(data, account)
    outputs = {"--model": model, "--ledger": ledger, BUDGET: account.path}
    inputs = (data, settings["schema"], policy)
    check_outputs(outputs, inputs=inputs, force=force, appended=(BUDGET,))
    settings["schema"] = options.read_public(settings["schema"], csv)
    owners = Owners(
        data, party=party, peers=peers.split(","), honest=honest, folder=private, tls=tls, patience=patience
    )
    account.resume(Journal.open(private).name)
    _learn_together(owners, settings, account, model, ledger)


def _learn_together(
    owners: Owners, settings: Mapping[str, Any], account: Account, model: Path, ledger: Path | None
) -> None:
    """Fit one owner's side, record the run, and write the model and the ledger."""
    import privsyn
    from privsyn.cli.common import console
    from privsyn.cli.common.outputs import write_text
    from privsyn.cli.common.recording import end_recorded
    from privsyn.cli.common.terminal import say
    from privsyn.private.ledger import recorded_lines

    fitted = privsyn.PrivSyn(**settings, progress=account.watch(_Lines()))
    try:
        fitted.fit(owners)
    finally:  # epsilon is spent as soon as there is a release: lose none, whatever the others have
        if hasattr(fitted, "release_"):
            fitted.save(
                model
            )  # the same bytes at each owner: so it does not say who of them keeps a budget file
            own = replace(fitted.ledger_, recorded=account.path is not None)
            if ledger is not None:
                write_text(ledger, own.to_json())
            end_recorded(fitted, account)
            console.show_files({"--model": model, "--ledger": ledger})
            say(f"{owners.folder}: private; resumes this run; delete it when all owners have the model")
            console.show_privacy(fitted.ledger_)
            say(*([account.so_far] if account.so_far else recorded_lines(own)))
            console.show_losses(fitted.losses_)
            console.show_public_inputs(fitted.ledger_)
    if (noise := fitted.release_.too_little_signal) is not None:
        say(f"{model}: {noise}. `privsyn sample {model} OUT --rows N` shows the noise")
        raise typer.Exit(1)


class _Lines:
    """Progress as lines, one for each new stage. They say for whom this owner waits."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        from privsyn.cli.common.terminal import say
        from privsyn.errors import printable

        line = stage if stage.startswith(("waiting", "sent")) else f"{stage}: {done} of {total}"
        if line != self._last:
            say(f"privsyn: {printable(line)}", err=True)
            self._last = line
