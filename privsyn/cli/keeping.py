"""Nothing paid for is lost: the model is written before the rest, and a failure says where it is."""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privsyn.synthesizer import PrivSyn


class StoppedError(Exception):
    """Ctrl-C, where there is more to say than that."""


class Note(str):
    """What a failed run leaves: the one kind of note on an exception that is shown, being our own words."""

    __slots__ = ()


def rescue_of(out: Path) -> Path:
    """Return where the model is until all is written, if nobody asked for it."""
    return out.with_name(f"{out.name}.rescue.privsyn")


def check_rescue(out: Path, *, force: bool) -> None:
    """Refuse to overwrite the model of a run that failed: it is paid for."""
    from privsyn.errors import InputError

    if (place := rescue_of(out)).exists() and not force:
        raise InputError(
            f"{place}: is the model of an earlier run that failed: draw from it with `privsyn sample` at no"
            " cost in privacy, or delete it, or give --force"
        )


@contextmanager
def kept(fitted: PrivSyn, *, out: Path, model: Path | None, ledger: Path | None) -> Iterator[list[Path]]:
    """Write the model and the ledger, then let the caller write the rest; a failure says what there is.

    Without `model` the model is kept beside `out` until the block is done. Where it cannot be written, the
    rest is, and then the block fails.

    Yields
    ------
    list of Path
        What is written. The caller appends to it.
    """
    written: list[Path] = []
    place: Path | None = None
    failure: Exception | None = None
    try:
        with _undisturbed():
            place, failure = _keep(fitted, model or rescue_of(out), out)
            written += [] if place is None else [place]
            if ledger is not None:
                of_ledger = _write_ledger(fitted, ledger, written)
                failure = failure or of_ledger
        yield written
        if failure is not None:
            raise failure
    except KeyboardInterrupt:
        raise StoppedError(f"interrupted; {_left(place, written)}") from None
    except Exception as error:
        first = failure or error
        first.add_note(Note(_left(place, written)))
        raise first from None
    if model is None and place is not None:
        with suppress(OSError):
            place.unlink()


def _keep(fitted: PrivSyn, wanted: Path, out: Path) -> tuple[Path | None, Exception | None]:
    """Save the model where it is wanted, or else wherever it can be; what went wrong comes second."""
    failure: Exception | None = None
    for choose in _places(wanted, out):
        try:
            place = choose()
            fitted.save(place)
        except Exception as error:  # a model that cannot be saved is no reason to lose the table
            failure = failure or error
        else:
            return place, failure
    return None, failure


def _places(wanted: Path, out: Path) -> tuple[Callable[[], Path], ...]:
    """Return where a model may go, in order. To choose a place may fail, as for a full temporary folder."""
    return (
        lambda: wanted,
        lambda: out.with_name(f"{out.name}.{token_hex(4)}.privsyn"),
        lambda: Path(tempfile.mkdtemp(prefix="privsyn-")) / f"{out.name}.privsyn",
    )


def _write_ledger(fitted: PrivSyn, ledger: Path, written: list[Path]) -> Exception | None:
    from privsyn.cli.outputs import write_text

    try:
        write_text(ledger, fitted.ledger_.to_json())
    except Exception as error:  # it is in the model too
        return error
    written.append(ledger)
    return None


def _left(place: Path | None, written: list[Path]) -> str:
    names = ", ".join(map(str, written)) or "nothing"
    if place is None:
        return f"the model could not be kept; written: {names}"
    return f"written: {names}; `privsyn sample {place} OUT` draws from the model and costs no privacy"


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back until the block is done, which takes moments."""
    if current_thread() is not main_thread():  # where no signal arrives
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
