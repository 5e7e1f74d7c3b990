"""Save the model first, so that no spent budget is lost. If a later step fails, errors name the model."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privsyn.account.account import Account
    from privsyn.synthesizer import PrivSyn


class StoppedError(Exception):
    """Ctrl-C, with a message about the files that were written."""


class Note(str):
    """Lists the files of a failed run. Only notes of this class are shown, because their text is our own."""

    __slots__ = ()


@contextmanager
def model_saved(
    fitted: PrivSyn, account: Account, *, out: Path, model: Path | None, ledger: Path | None
) -> Iterator[list[Path]]:
    """Write the model and the ledger, then let the caller write the other files. Errors list what exists.

    The end of the run is written to the budget file after the model is saved, because the user may interrupt
    the wait for that file.

    Without `model`, the model is kept beside `out` until the block ends. If the model cannot be written, the
    other files are written first, and then the block fails.

    Yields
    ------
    list of Path
        The files written so far. The caller appends to it.
    """
    from privsyn.cli.common.outputs import rescue_of, write_text
    from privsyn.cli.common.recording import end_recorded

    written: list[Path] = []
    path: Path | None = None
    failure: Exception | None = None
    try:
        with _undisturbed():
            path, failure = _keep(fitted, model or rescue_of(out), out)
            written += [] if path is None else [path]
            if ledger is not None:
                try:
                    write_text(ledger, fitted.ledger_.to_json())
                    written.append(ledger)
                except Exception as error:  # the model contains the ledger too
                    failure = failure or error
        end_recorded(fitted, account)
        yield written
        if failure is not None:
            raise failure
    except KeyboardInterrupt:
        raise StoppedError(f"interrupted; {_left(path, written)}") from None
    except Exception as error:
        first = failure or error
        first.add_note(Note(_left(path, written)))
        raise first from None
    if model is None and path is not None:
        with suppress(OSError):
            path.unlink()


def write_public_pages(
    release: Any, out: Path, results: Mapping[str, Path | None], written: list[Path]
) -> None:
    """Write the public page and the data sheet of what is in `out`.

    Parameters
    ----------
    release : Release or PrivSyn
    out : Path
        It was written just now.
    results : mapping of an option to a Path
    written : list of Path
        Each file is appended as soon as it is there.
    """
    import privsyn
    from privsyn.cli.common.progress_bars import waiting

    written.append(out)
    if (page := results["--public-report"]) is not None:
        with waiting("writing the public page"):
            privsyn.report(release, page)
        written.append(page)
    if (sheet := results["--sheet"]) is not None:
        with waiting("writing the data sheet"):
            privsyn.sheet(release, sheet, data=out)
        written.append(sheet)


def end_without_table(fitted: PrivSyn, account: Account, why: str, out: Path, model: Path | None) -> None:
    """Keep the model of a run whose answers are mostly noise, say why there is no table, and exit with 1."""
    import typer

    from privsyn.cli.common.outputs import rescue_of
    from privsyn.cli.common.summary import show_losses, show_no_signal
    from privsyn.cli.common.terminal import say

    if model is None:
        model = rescue_of(out)
        fitted.save(model)
    say(*filter(None, [account.so_far]))
    show_no_signal(why, fitted.ledger_, out, model)
    show_losses(fitted.losses_)
    raise typer.Exit(1)


def _keep(fitted: PrivSyn, wanted: Path, out: Path) -> tuple[Path | None, Exception | None]:
    """Save the model in the wanted place, or else in any place that works. Return the place and the error."""
    failure: Exception | None = None
    # In this order. To choose a place may fail, as for a full temporary folder.
    choices: tuple[Callable[[], Path], ...] = (
        lambda: wanted,
        lambda: out.with_name(f"{out.name}.{token_hex(4)}.privsyn"),
        lambda: Path(tempfile.mkdtemp(prefix="privsyn-")) / f"{out.name}.privsyn",
    )
    for choose in choices:
        try:
            path = choose()
            fitted.save(path)
        except Exception as error:  # write the table even if the model cannot be saved
            failure = failure or error
        else:
            return path, failure
    return None, failure


def _left(model: Path | None, written: list[Path]) -> str:
    names = ", ".join(map(str, written)) or "nothing"
    if model is None:
        return f"the model could not be kept; written: {names}"
    return f"written: {names}; `privsyn sample {model} OUT` draws from the model and costs no privacy"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM until the block ends, which takes moments."""
    if current_thread() is not main_thread():  # other threads receive no signals
        yield
        return
    held: list[int] = []
    before = {
        word: signal.signal(word, lambda word, _: held.append(word))
        for word in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for word, handler in before.items():
            signal.signal(word, handler)
    if held:
        raise KeyboardInterrupt
