"""`privsyn owner`: one owner's side of a run with several owners. Each of them gets the same model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.common.options import CSV, Data, Force, Given, Weak, read_public, settings_options, takes
from privsyn.settings import AGREED


@takes(settings=settings_options(*AGREED, "schema", required=["epsilon", "schema"]), csv=CSV)
def owner(
    data: Data,
    *,
    settings: Given,
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
    force: Force = False,
    allow_weak_privacy: Weak = False,
    csv: Given,
) -> None:
    """Learn from the rows of several owners, none of whom shows them to another. Each runs this command."""
    import privsyn
    from privsyn.cli.common.console import check_promise, show_files, show_privacy, show_public_inputs
    from privsyn.cli.common.outputs import check_new, check_outputs, check_table, write_text
    from privsyn.cli.common.terminal import say
    from privsyn.owners.owners import Owners

    check_table(data)
    check_outputs({"--model": model, "--ledger": ledger}, inputs=(data, settings["schema"]))
    check_new("--model", model, force=force)
    check_promise(settings["epsilon"], settings["delta"], weak=allow_weak_privacy)
    settings["schema"] = read_public(settings["schema"], csv)
    private = model.with_name(f"{model.name}.run") if folder is None else folder
    owners = Owners(
        data,
        party=party,
        peers=peers.split(","),
        honest=honest,
        folder=private,
        tls=tls,
        patience=patience,
    )
    fitted = privsyn.PrivSyn(**settings, progress=_Lines())
    try:
        fitted.fit(owners)
    finally:  # epsilon is spent as soon as there is a release: lose none, whatever the others have
        if hasattr(fitted, "release_"):
            fitted.save(model)
            if ledger is not None:
                write_text(ledger, fitted.ledger_.to_json())
            show_files({"--model": model})
            say(f"{private}: private; resumes this run, and can be deleted when all owners have the model")
            show_privacy(fitted.ledger_)
            show_public_inputs(fitted.ledger_)


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
