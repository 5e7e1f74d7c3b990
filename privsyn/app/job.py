"""A run of `privsyn` in a process of its own: its progress, its messages and its end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Condition, Thread
from typing import IO

PATIENCE = 20.0
"""Seconds in which a run that was asked to stop writes what was paid for; then it is killed."""

STAGES = {
    "reading": "Reading the table",
    "finding values and bounds": "Finding values and bounds, with noise",
    "measuring": "Asking questions, with noise",
    "estimating": "Estimating from the answers",
    "synthesising": "Making rows",
}
"""The stages of a run in plain words, in their order."""

NOT_WRITTEN = ": not written: "
"""What stands in a line of `privsyn synth` between the table that was not made and the reason."""

FREE = ("", "reading")
"""The stages before the first question. A run that stops there has spent nothing."""


class Job:
    """One command of `privsyn`, run as a person would run it in a shell.

    It shares no memory with the server, so a failure of one leaves the other. What it prints may be shown:
    the command line never prints a value of the private table.

    Parameters
    ----------
    arguments : sequence of str
        What follows ``privsyn``.
    folder : Path
        The working folder.
    keeps : sequence of int
        Open files that the process inherits: with its lock, the folder is in use as long as it runs.
    """

    def __init__(self, arguments: Sequence[str], folder: Path, *, keeps: Sequence[int] = ()) -> None:
        self.stage, self.done, self.total = "", 0, 0
        self.messages: list[str] = []
        self.complaints: list[str] = []
        self.cancelled = False
        self.code: int | None = None
        self._changed = Condition()
        self._process = subprocess.Popen(  # noqa: S603 - no shell, and each argument is one
            [sys.executable, "-P", "-m", "privsyn", *arguments],  # -P: no module of `folder` is imported
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=keeps,
            umask=0o077,  # for the owner alone, even if somebody moves the folder
            start_new_session=True,  # Ctrl-C goes to the server, which ends the run in order
            env={**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"},
            text=True,
            encoding="utf-8",
            errors="replace",
        )
        self._readers = [
            Thread(target=self._read, args=(stream, take), daemon=True)
            for stream, take in (
                (self._process.stdout, self.messages.append),
                (self._process.stderr, self._step),
            )
            if stream is not None
        ]
        for reader in self._readers:
            reader.start()
        Thread(target=self._await, daemon=True).start()

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.code is None

    @property
    def spent(self) -> bool:
        """Whether a question was asked, so that epsilon is spent."""
        return self.stage not in FREE

    @property
    def no_table(self) -> str | None:
        """Say why a run that was paid for ended without a table; None if it failed otherwise or made one."""
        reasons = [line.partition(NOT_WRITTEN)[2] for line in self.messages if NOT_WRITTEN in line]
        return reasons[0] if self.code == 1 and reasons else None

    @property
    def stage_index(self) -> int:
        """The index of the stage in `STAGES`, also of one that names a table; -1 before the first."""
        return next((index for index, stage in enumerate(STAGES) if self.stage.startswith(stage)), -1)

    def wait(self, seconds: float) -> bool:
        """Wait until something changes, at most so long; return whether it is still running."""
        with self._changed:
            if self.running:
                self._changed.wait(seconds)
        return self.running

    def cancel(self) -> None:
        """End the run as Ctrl-C does. It writes what was paid for."""
        self.cancelled = True
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)

    def end(self) -> None:
        """Cancel, and wait until the process is gone."""
        if self.running:
            self.cancel()
            try:
                self._process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def _read(self, stream: IO[str], take: Callable[[str], None]) -> None:
        with stream:
            for line in stream:
                with self._changed:
                    take(line.rstrip("\n"))
                    self._changed.notify_all()

    def _step(self, line: str) -> None:
        """Take a line of standard error: a step of the progress, or a complaint."""
        try:
            step = json.loads(line)
            self.stage, self.done, self.total = step["stage"], step["done"], step["total"]
        except (ValueError, TypeError, KeyError):
            self.complaints.append(line)

    def _await(self) -> None:
        code = self._process.wait()
        for reader in self._readers:
            reader.join()
        with self._changed:
            self.code = code
            self._changed.notify_all()
