"""The account of a run: its lines in the budget file.

A run writes two lines, and a policy may forbid the first. A person may add a third, which withdraws what the
run published.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from errno import ENOSPC
from io import FileIO
from pathlib import Path
from typing import Any

from privsyn.account.budget_file import (
    KEPT_IN,
    SO_FAR,
    Run,
    Withdrawal,
    exists,
    lock,
    named_in,
    parsed,
    rounded_down,
    runs_in,
    total_of,
)
from privsyn.account.files import BudgetFiles
from privsyn.account.policy import Policy
from privsyn.errors import InputError
from privsyn.private.run_ledger import RunLedger
from privsyn.progress import MEASURING, Progress


def left(path: Path, policy: Policy) -> tuple[float, float]:
    """Return the epsilon and the delta that a policy leaves after the runs in a budget file."""
    return policy.left(run for run in runs_in(path))


def summary(files: Path | BudgetFiles, policy: Policy | None = None) -> list[str]:
    """Return in sentences what was spent: a line for each run, the total, and what a policy leaves.

    Parameters
    ----------
    files : Path or BudgetFiles
        A budget file, or all those of a table.
    policy : Policy, optional
    """
    runs = runs_of((files,) if isinstance(files, Path) else files.counted)
    return [*map(str, runs), *totals(runs, policy)]


def runs_of(files: Iterable[Path]) -> tuple[Run, ...]:
    """Return the runs in several budget files, those of each file in their order."""
    return tuple(run for file in files for run in runs_in(file))


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
        runs = [candidate for candidate in parsed(path, file.read()) if run and candidate.id.startswith(run)]
        if len(runs) != 1:
            many = f"{len(runs)} runs begin with" if runs else "no run has the id"
            raise InputError(f"{path}: {many} {run!r}: `privsyn budget DATA` lists their ids")
        if (before := runs[0].withdrawal) is not None:
            raise InputError(f"{path}: {runs[0].id} is withdrawn already: {before}")
        plain = asdict(Withdrawal(reason))
        _append(file, path, {"withdraws": runs[0].id, **plain})
    return runs[0].withdrawn(plain)


class Account:
    """The budget file of a table, for one run: it is checked, begun before the first question, and ended.

    Parameters
    ----------
    path : Path or BudgetFiles, optional
        The file into which the run is written, or all files of the table. With None nothing is recorded.
    run : Run
    policy : Policy, optional
        It decides whether the run may begin.
    """

    def __init__(self, path: Path | BudgetFiles | None, run: Run, policy: Policy | None = None) -> None:
        self.files = BudgetFiles(path) if isinstance(path, Path) else path
        self.path = None if self.files is None else self.files.path
        self.run, self.policy = run, policy
        self.so_far = ""
        """One line on what was spent on the table, once the run has ended."""

    def check(self) -> None:
        """Refuse a run that the files or the policy do not allow, before anything is read."""
        if self.files is not None:
            runs = runs_of(self.files.counted)
            if exists(self.files.path):
                with _locked(self.files.path, os.O_APPEND):  # can it be written?
                    pass
            self._check(runs)

    def _check(self, runs: Iterable[Run]) -> None:
        if self.policy is not None:
            self.policy.check(self.run, [recorded for recorded in runs if recorded.id != self.run.id])

    def resume(self, run: str) -> None:
        """Take the id of a run that other files keep: if it has its line already, it is counted once."""
        self.run = replace(self.run, id=run)

    def watch(self, progress: Progress | None) -> Progress | None:
        """Return the progress for `fit`, which begins the run in the file before the first question."""
        if self.files is None:
            return progress

        def report(stage: str, done: int, total: int) -> None:
            if progress is not None:  # first: who stops the run here counts it as spent, and the file may too
                progress(stage, done, total)
            if (stage, done) == (MEASURING, 0):
                self.begin()

        return report

    def begin(self) -> None:
        """Write the first line of the run, so that it is on the disk; refuse the run if the policy does.

        Of two runs at once, the second one reads what the first one wrote: no two pass where one may. A run
        that was interrupted and is resumed has its line already.
        """
        if self.files is None:
            return
        path = self.files.path
        with _locked(path, os.O_APPEND | os.O_CREAT):
            pass  # whoever begins at the same time sees the file from here on
        if (pointer := self.files.pointer) is not None:  # names the runs' place in the file beside the table
            with _locked(pointer, os.O_APPEND | os.O_CREAT) as file:
                if file.read():
                    raise InputError(f"{pointer}: another run has just begun there: start this one again")
                _append(file, pointer, {KEPT_IN: str(path.resolve())})
        with _all_locked(self.files) as file:
            first, *further = self.files.counted
            file.seek(0)
            content = file.read()
            if named_in(content) is not None:
                raise InputError(f"{first}: another run has just begun elsewhere: start this one again")
            runs = (*parsed(first, content), *runs_of(further))
            self._check(runs)
            if all(recorded.id != self.run.id for recorded in runs):
                _append(file, path, self.run.to_plain())

    def end(self, ledger: RunLedger) -> None:
        """Write the ledger of the run; if that fails, the run counts in full.

        A run of several owners that had ended, and is resumed, has its ledger already.
        """
        if self.files is not None:
            path = self.files.path
            with _locked(path, os.O_APPEND) as file:
                file.seek(0)
                if all(run.id != self.run.id or run.ledger is None for run in parsed(path, file.read())):
                    _append(file, path, {"ends": self.run.id, "ledger": ledger.to_dict()})
            files = self.files.counted
            self.so_far = f"{' and '.join(map(str, files))}: {SO_FAR}: {total_of(runs_of(files))}"


@contextmanager
def _all_locked(files: BudgetFiles) -> Iterator[FileIO]:
    """Lock all files that count, in one order, so that no two runs wait for each other; yield the first.

    A file that another run made in the meantime is locked too: then all are unlocked and locked again.
    """
    while True:
        counted = files.counted
        with ExitStack() as stack:
            for path in sorted(counted, key=lambda path: str(path.resolve())):
                if path == files.path:
                    locked = stack.enter_context(_locked(path, os.O_APPEND))
                else:
                    lock(stack.enter_context(path.open("rb")), shared=True)
            if files.counted == counted:
                yield locked
                return


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
