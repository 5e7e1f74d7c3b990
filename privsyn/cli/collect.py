"""`privsyn contribute` and `privsyn collect`: one row from each of thousands of people, in secret shares."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privsyn.cli.common import options
from privsyn.errors import InputError
from privsyn.settings import AGREED, Settings

PROMISED = ("epsilon", "delta")
"""The settings that a study promises its contributors: later they are those of the study."""


@options.takes(settings=options.settings_options("schema", required=["schema"]))
def contribute(
    row: Annotated[
        Path, typer.Argument(metavar="ROW", help="A CSV file with a header and one row: your own.")
    ],
    *,
    settings: options.Given,
    collectors: Annotated[Path, typer.Option(help="The shared folder of the study.")],
    keys: Annotated[
        Path,
        typer.Option(
            help="Your keys: made here if there are none. A row counts once, however often you send it."
        ),
    ] = Path("contributor.key"),
    fingerprint: Annotated[
        str | None,
        typer.Option(
            help="Needed: the fingerprint of the study, from the people who run it, by another way than the"
            " folder. Nothing is sent to a study with another one."
        ),
    ] = None,
) -> None:
    """Send one row to the collectors of a study, in secret shares. No single collector can read it."""
    import privsyn
    from privsyn.cli.common.terminal import say
    from privsyn.collectors.coding import contribute_file

    if fingerprint is None:
        raise InputError(
            "--fingerprint is needed: it comes from the people who run the study, by another way than the"
            " folder; nothing was sent"
        )
    study = contribute_file(row, privsyn.PrivSyn(epsilon=1.0, **settings), collectors, keys, fingerprint)
    say(
        f"sent in shares to {len(study.keys)} collectors: {study.threshold} of them cannot read the row,"
        f" and {study.threshold + 1} who work together can",
        f"the study promises you {study.promise}",
        "a cell that the schema does not have counts as its first value or its bound: check the row",
        f"{keys}: private; with it you may send the same row again, and it counts once",
    )


@options.takes(
    settings=options.settings_options(
        *(name for name in AGREED if name not in PROMISED),
        "schema",
        "allow_weak_privacy",
        required=["schema"],
    )
)
def collect(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The shared folder of the study.")],
    *,
    settings: options.Given,
    party: Annotated[int, typer.Option(min=0, help="The number of this collector, from 0.")],
    join: Annotated[
        int | None,
        typer.Option(
            metavar="N", help="Publish the keys of this collector, one of N, and end: the first step."
        ),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            help="End the collection and write the model to this file: the same bytes at each collector."
        ),
    ] = None,
    keys: Annotated[
        Path | None, typer.Option(help="Private: the keys of this collector. Default: collector-PARTY.key.")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(help="With --join: the epsilon that the study promises. Later: that of the study."),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="With --join: the delta that the study promises, 1e-09 by default; 0 for pure epsilon."
        ),
    ] = None,
    lost: Annotated[
        int | None,
        typer.Option(
            help="With --join: how many collectors may be lost: the others go on without them. Fewer need"
            " less noise. Default: all but those that are needed to open a sum."
        ),
    ] = None,
    patience: Annotated[float, typer.Option(help="Seconds to wait for another collector.")] = 3600.0,
    ledger: Annotated[
        Path | None,
        typer.Option(rich_help_panel=options.WRITES, help="Write the ledger to this file, as JSON."),
    ] = None,
    force: options.Force = False,
) -> None:
    """Collect rows of many people in secret shares, and learn from noisy sums. Each collector runs this."""
    from privsyn.cli.common.outputs import check_outputs
    from privsyn.cli.common.recording import BudgetPlace, account_of
    from privsyn.cli.owner import learn_together
    from privsyn.collectors.collectors import Collectors

    own_keys = Path(f"collector-{party}.key") if keys is None else keys
    if join is not None:
        promised = {"epsilon": epsilon, "delta": Settings.delta if delta is None else delta}
        _join(folder, party, join, own_keys, settings | promised, lost)
        return
    if model is None:
        raise InputError("--model is needed, or --join to begin a study")
    check_outputs({"--model": model, "--ledger": ledger}, inputs=(settings["schema"], own_keys), force=force)
    collectors = Collectors(folder, party=party, keys=own_keys, patience=patience)
    promise = collectors.study.promise
    promise.require(epsilon=epsilon, delta=delta, lost=lost)
    settings |= {name: getattr(promise, name) for name in PROMISED}
    account = account_of(folder, model, settings, BudgetPlace(None, declined=True), None)
    remark = f"{folder}: holds one run; another needs new contributions. {own_keys}: private"
    learn_together(collectors, settings, account, model, ledger, remark)


def _join(
    folder: Path, party: int, collectors: int, keys: Path, settings: options.Given, lost: int | None
) -> None:
    """Publish the keys and the promise of a collector, and say whether the study has begun."""
    import privsyn
    from privsyn.cli.common.terminal import say
    from privsyn.collectors.board import PrivateKeys, Study, check_place
    from privsyn.collectors.coding import codec_of, coding_digest
    from privsyn.collectors.promise import Promise

    check_place(party, collectors)  # before keys are made
    if settings["epsilon"] is None:
        raise InputError("--join needs --epsilon: the study promises it to its contributors")
    promising = privsyn.PrivSyn(**settings)
    digest, promise = coding_digest(codec_of(promising)), Promise.of(promising, collectors, lost)
    if Study.join(folder, party, collectors, PrivateKeys.of_file(keys), digest, promise):
        fingerprint = Study.read(folder).fingerprint
        say(
            f"{folder}: the study has begun; publish its fingerprint {fingerprint}",
            f"it promises each contributor {promise}",
        )
    else:
        say(f"{folder}: collector {party} has joined; the study begins when all {collectors} have")
    say(f"{keys}: private; without it no contribution can be read")
