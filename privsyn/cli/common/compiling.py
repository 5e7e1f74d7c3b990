"""Compile loops for this machine in two processes, and say so: the first run waits for it.

A process compiles one loop at a time. While the first reads the table and compiles the loops that it needs
first, a second process, this module as a program, compiles the loops that it needs last. It sees no table.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from threading import Thread
from typing import Any

from privsyn.cli.common.terminal import say

COMPILED = "_kernels.resample-"
"""How the files begin in which numba keeps one of these loops."""

SECONDS = "5 to 20 s"
"""How much longer the first `privsyn synth` takes, on a quiet and on a busy machine: docs/performance.md, "A
small table"."""


@contextmanager
def announced() -> Iterator[None]:
    """Say once that loops are being compiled, if any are."""
    from numba.core import event

    class Compiling(event.Listener):
        def on_start(self, event: object) -> None:
            _announce()

        def on_end(self, event: object) -> None:
            pass

    with event.install_listener("numba:compile", Compiling()):
        yield


@cache
def _announce() -> None:
    say(f"compiling for this machine, once: {SECONDS}, which no bar foresees", err=True)


def compile_ahead() -> None:
    """Begin to compile in a second process, unless compiled loops are kept already.

    Nothing begins where numba would keep them in neither NUMBA_CACHE_DIR nor the folder of the code. Whatever
    fails, the first process compiles. The second one goes on if the first ends early: it takes some seconds.
    """
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-P", "-m", __name__]  # -P: no module of the current folder is imported
    with suppress(OSError):
        if sys.executable and _are_missing():
            second = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)  # noqa: S603 - no shell
            Thread(target=second.wait, daemon=True).start()  # else it would stay as a zombie


def _are_missing() -> bool:
    """Return whether no compiled loop is kept that is newer than the code, and one can be kept."""
    folder, code = os.environ.get("NUMBA_CACHE_DIR"), Path(__file__).parents[2] / "synthesis" / "_kernels.py"
    beside = code.parent / "__pycache__"
    files = Path(folder).glob("*/*.nbi") if folder else beside.glob("*.nbi")
    newest = max((path.stat().st_mtime for path in files if path.name.startswith(COMPILED)), default=0.0)
    writable = bool(folder) or os.access(beside if beside.exists() else code.parent, os.W_OK)
    return writable and newest <= code.stat().st_mtime


def loops_compiled_ahead() -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield each loop that is compiled in the second process, with the types of its arguments."""
    from numba import types

    from privsyn.inference import _kernels as inference
    from privsyn.marginals import _kernels as marginals
    from privsyn.synthesis import _kernels as synthesis

    ints, int_table = types.int64[::1], types.int64[:, ::1]
    floats, table, tables = types.float64[::1], types.float64[:, ::1], types.float64[:, :, ::1]
    codes, index, index_table = types.uint16[::1, :], types.uint32[::1], types.uint32[:, ::1]
    singles, number, fraction = types.float32[::1], types.int64, types.float64
    move = _named(synthesis.Move, index, dict.fromkeys(("values", "groups"), index_table))
    spectra = _named(inference.Spectra, floats, dict.fromkeys(("starts", "units", "firsts"), ints))
    required = _named(inference.RequiredSums, table, {"labels": int_table, "starts": ints})
    yield synthesis.resample, (codes, move, singles, singles, ints, fraction, singles, types.npy_rng)
    swap = types.NamedUniTuple(index, len(synthesis.Swap._fields), synthesis.Swap)  # type: ignore[no-untyped-call]
    changes = types.float32[:, ::1]
    yield (
        synthesis.swap_blocks,
        (codes, swap, index_table, changes, singles, ints, fraction, types.npy_rng),
    )
    yield inference.smooth_errors, (int_table, floats, floats, spectra, floats)
    yield inference.remove_negatives, (table, table, required, number, fraction)
    yield marginals.fit_pairs, (tables, table, table, number, fraction, fraction)
    yield inference.add_class_evidence, (table, floats, floats, int_table, int_table, table)


def _named(kind: Any, usual: Any, exceptions: Mapping[str, Any]) -> Any:
    """Return numba's type of a named tuple, most of whose fields are of one type."""
    from numba import types

    return types.NamedTuple([exceptions.get(name, usual) for name in kind._fields], kind)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    for loop, arguments in loops_compiled_ahead():
        loop.compile(arguments)
