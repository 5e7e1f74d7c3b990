"""The account of a run: its lines in the budget file.

A run writes two lines, and a policy may forbid the first. A person may add a third, which withdraws what the
run published.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from errno import ENOSPC
from io import FileIO
from pathlib import Path
from typing import Any

from privsyn.budget.policy import Policy
from privsyn.budget.runs import (
    SO_FAR,
    Run,
    Withdrawal,
    exists,
    lock,
    parsed,
    rounded_down,
    runs_in,
    total_of,
)
from privsyn.errors import InputError
from privsyn.private.ledger import Ledger
from privsyn.progress import MEASURING, Progress


def left(path: Path, policy: Policy) -> tuple[float, float]:
    """Return the epsilon and the delta that a policy leaves after the runs in a budget file."""
    return policy.left(run for run in runs_in(path))


def summary(path: Path, policy: Policy | None = None) -> list[str]:
    """Return in sentences what was spent: a line for each run, the total, and what a policy leaves."""
    runs = runs_in(path)
    return [*map(str, runs), *totals(runs, policy)]


def totals(runs: Sequence[Run], policy: Policy | None = None) -> list[str]:
    """Return in sentences what runs spent together, and what a policy leaves."""
    lines = [f"{SO_FAR}: {total_of(runs)}"]
    if policy is not None:
        epsilon, delta = policy.left(runs)
        limits = f"{policy.file} allows epsilon {policy.epsilon:g} at delta {policy.delta:g} in all"
        lines.append(f"{limits}: epsilon {rounded_down(epsilon)} at delta {rounded_down(delta)} is left")
        lines += [] if policy.contact is None else [f"for more, ask {policy.contact}"]
    return lines


def withdraw(path: Path, run: str, reason: str) -> Run:
    """Record that what a run published is withdrawn. The run counts as before.

    Parameters
    ----------
    path : Path
    run : str
        The id of the run, or its beginning if no other id begins so.
    reason : str
        In a person's words. It must quote no row.

    Raises
    ------
    InputError
        If not exactly one run is meant, it is withdrawn already, or the file cannot be written.
    """
    if not reason.strip():
        raise InputError("--reason: say why, for whoever reads the budget file")
    with _locked(path, os.O_APPEND) as file:
        file.seek(0)
        found = [each for each in parsed(path, file.read()) if run and each.id.startswith(run)]
        if len(found) != 1:
            many = f"{len(found)} runs begin with" if found else "no run has the id"
            raise InputError(f"{path}: {many} {run!r}: `privsyn budget DATA` lists their ids")
        if (before := found[0].withdrawal) is not None:
            raise InputError(f"{path}: {found[0].id} is withdrawn already: {before}")
        plain = asdict(Withdrawal(reason))
        _append(file, path, {"withdraws": found[0].id, **plain})
    return found[0].withdrawn(plain)


class Account:
    """The budget file of a table, for one run: it is checked, begun before the first question, and ended.

    Parameters
    ----------
    path : Path, optional
        The file. With None nothing is recorded.
    run : Run
    policy : Policy, optional
        It decides whether the run may begin.
    """

    def __init__(self, path: Path | None, run: Run, policy: Policy | None = None) -> None:
        self.path, self.run, self.policy = path, run, policy
        self.so_far = ""
        """One line on what was spent on the table, once the run has ended."""

    def check(self) -> None:
        """Refuse a run that the file or the policy does not allow, before anything is read."""
        if self.path is not None:
            runs = runs_in(self.path)
            if exists(self.path):
                with _locked(self.path, os.O_APPEND):  # can it be written?
                    pass
            if self.policy is not None:
                self.policy.check(self.run, runs)

    def watch(self, progress: Progress | None) -> Progress | None:
        """Return the progress for `fit`, which begins the run in the file before the first question."""
        if self.path is None:
            return progress

        def report(stage: str, done: int, total: int) -> None:
            if progress is not None:  # first: who stops the run here counts it as spent, and the file may too
                progress(stage, done, total)
            if (stage, done) == (MEASURING, 0):
                self.begin()

        return report

    def begin(self) -> None:
        """Write the first line of the run, so that it is on the disk; refuse the run if the policy does.

        Of two runs at once, the second one reads what the first one wrote: no two pass where one may.
        """
        if self.path is not None:
            with _locked(self.path, os.O_APPEND | os.O_CREAT) as file:
                file.seek(0)
                runs = parsed(self.path, file.read())
                if self.policy is not None:
                    self.policy.check(self.run, runs)
                _append(file, self.path, self.run.to_plain())

    def end(self, ledger: Ledger) -> None:
        """Write the ledger of the run; if that fails, the run counts in full."""
        if self.path is not None:
            with _locked(self.path, os.O_APPEND) as file:
                _append(file, self.path, {"ends": self.run.id, "ledger": ledger.to_dict()})
                file.seek(0)
                runs = parsed(self.path, file.read())
            self.so_far = f"{self.path}: {SO_FAR}: {total_of(runs)}"


@contextmanager
def _locked(path: Path, flags: int) -> Iterator[FileIO]:
    """Open the file, which only its user can read if it is new, and keep other runs out of it."""
    try:
        opened = os.open(path, os.O_RDWR | flags | getattr(os, "O_CLOEXEC", 0), 0o600)
        with FileIO(opened, "r+") as file:
            lock(file, shared=False)
            yield file
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "the disk failed"
        raise InputError(f"{path}: cannot be read and written ({reason})") from None


def _append(file: FileIO, path: Path, plain: Mapping[str, Any]) -> None:
    """Append a line, whole or not at all, and wait until it is on the disk."""
    before = file.seek(0, os.SEEK_END)
    line = json.dumps(plain).encode() + b"\n"
    try:
        if file.write(line) < len(line):
            raise OSError(ENOSPC, os.strerror(ENOSPC))
        os.fsync(file.fileno())
        if not before and os.name == "posix":  # a new file: its name must be on the disk too
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except BaseException:
        file.truncate(before)
        raise
