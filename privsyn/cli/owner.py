"""`privsyn owner`: one side of a run of several owners, each with rows of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privsyn.cli.common import options
from privsyn.settings import AGREED

if TYPE_CHECKING:
    from privsyn.account.account import Account
    from privsyn.collectors.collectors import Collectors
    from privsyn.owners.owners import Owners


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
    model: Annotated[
        Path,
        typer.Option(
            rich_help_panel=options.WRITES, help="Write the model to this file: the same bytes at each owner."
        ),
    ],
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
    give_up_after: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Go on without the rows of an owner that is away for so long. Default: wait for it.",
        ),
    ] = None,
    ledger: Annotated[
        Path | None,
        typer.Option(rich_help_panel=options.WRITES, help="Write the ledger to this file, as JSON."),
    ] = None,
    force: options.Force = False,
    budget: options.BudgetFile = None,
    no_budget: options.NoBudget = False,
    policy: options.PolicyFile = None,
    csv: options.Given,
) -> None:
    """Learn from the rows of several owners, none of whom shows them to another. Each runs this command."""
    from privsyn.cli.common.outputs import BUDGET, check_data, check_outputs
    from privsyn.cli.common.recording import BudgetPlace, account_of, check_recordable
    from privsyn.owners.journal import Journal
    from privsyn.owners.owners import Owners

    private = model.with_name(f"{model.name}.run") if folder is None else folder
    begun = Journal.open(private).name if Journal.begun(private) else None
    budget_place = BudgetPlace(budget, declined=no_budget)
    account = account_of(data, model, settings, budget_place, policy, resumed=begun)
    options.check_lookups(data, settings["schema"])
    database = options.read_public(settings["schema"], csv)
    check_data(data, database)
    check_recordable(data, account)
    outputs = {"--model": model, "--ledger": ledger, BUDGET: account.path}
    inputs = (data, settings["schema"], policy)
    check_outputs(outputs, inputs=inputs, force=force, appended=(BUDGET,))
    settings["schema"] = database
    owners = Owners(
        data,
        party=party,
        peers=peers.split(","),
        honest=honest,
        folder=private,
        tls=tls,
        patience=patience,
        give_up_after=give_up_after,
    )
    account.resume(Journal.open(private).name)
    remark = f"{private}: private; resumes this run; delete it when all owners have the model"
    learn_together(owners, settings, account, model, ledger, remark)


def learn_together(
    parties: Owners | Collectors,
    settings: Mapping[str, Any],
    account: Account,
    model: Path,
    ledger: Path | None,
    remark: str,
) -> None:
    """Fit one side of a run of several parties, record the run, and write the model and the ledger."""
    import privsyn
    from privsyn.cli.common import summary
    from privsyn.cli.common.outputs import write_text
    from privsyn.cli.common.recording import end_recorded
    from privsyn.cli.common.terminal import say
    from privsyn.owners.owners import GIVEN_UP
    from privsyn.private.run_ledger import recorded_lines

    fitted = privsyn.PrivSyn(**settings, progress=account.watch(_Lines()))
    try:
        fitted.fit(parties)
    finally:  # epsilon is spent as soon as there is a release: lose none, whatever the others have
        if hasattr(fitted, "release_"):
            fitted.save(
                model
            )  # the same bytes at each owner: so it does not say who of them keeps a budget file
            own_ledger = replace(fitted.ledger_, recorded=account.path is not None)
            if ledger is not None:
                write_text(ledger, own_ledger.to_json())
            end_recorded(fitted, account)
            if (noise := fitted.release_.too_little_signal) is not None:  # why the command fails comes first
                say(f"{model}: {noise}. `privsyn sample {model} OUT --rows N` shows the noise")
            summary.show_files({"--model": model, "--ledger": ledger})
            say(remark)
            summary.show_privacy(fitted.ledger_)
            say(*([account.so_far] if account.so_far else recorded_lines(own_ledger)))
            facts = fitted.ledger_.public_inputs
            say(*(fact.removeprefix("that ") for fact in facts if GIVEN_UP in fact))
            summary.show_losses(fitted.losses_)
            if public := summary.public_input_line(fitted.ledger_):
                say(*summary.indented(public, summary.WIDEST))
    if fitted.release_.too_little_signal is not None:
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
