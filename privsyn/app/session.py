"""What the one person at the page has chosen and made so far."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from privsyn.app.choices import Choices
from privsyn.app.job import Job
from privsyn.app.workspace import Workspace
from privsyn.errors import InputError
from privsyn.table.kinds.csv_format import CsvFormat


class Session:
    """What the one person at this page has chosen and made so far.

    Parameters
    ----------
    workspace : Workspace

    Attributes
    ----------
    choices : Choices, optional
        The choices about one table, or several linked ones.
    database : Path, optional
        A database with several tables, of which one or all are still to be chosen.
    job : Job, optional
        The run.
    ran : Choices, optional
        The choices with which it was started: a person may have changed them since.
    comparison : Job, optional
        The comparison of its table with the real rows.
    quality : dict
        What screen "result" shows, by the run and the table: it is computed once.
    refused : dict
        What was typed and refused, by the name of the field.
    problem, notice : str
        A message for the next screen: what was refused, or what was done.
    """

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.choices: Choices | None = None
        self.database: Path | None = None
        self.job: Job | None = None
        self.ran: Choices | None = None
        self.comparison: Job | None = None
        self.quality: dict[tuple[Job, str], dict[str, Any]] = {}
        self.refused: dict[str, str] = {}
        self.problem = self.notice = ""

    @property
    def chosen(self) -> Choices:
        """The choices about the tables."""
        if self.choices is None:
            raise InputError("choose a table first")
        return self.choices

    @property
    def made_from(self) -> Choices:
        """The choices with which the run was started."""
        if self.ran is None:
            raise InputError("there is no run yet")
        return self.ran

    @property
    def results(self) -> Path:
        """The folder with the files of the run."""
        return self.workspace.folder / "run"

    @property
    def made(self) -> bool:
        """Whether the run ended well and its table is there."""
        return self.ran is not None and self.job is not None and self.job.code == 0

    @property
    def working(self) -> Job | None:
        """The process that is running, if one is."""
        jobs = (job for job in (self.comparison, self.job) if job is not None)
        return next((job for job in jobs if job.running), None)

    def end(self) -> None:
        """End all processes; a run writes what was paid for. What was found of its table is dropped."""
        for job in (self.comparison, self.job):
            if job is not None:
                job.end()
        self.comparison, self.quality = None, {}

    def open(self, path: Path, inside: str = "", csv: CsvFormat | None = None) -> None:
        """Begin with a table, or with several; the results of before are removed."""
        if self.job is not None and self.job.running:
            raise InputError("a run is under way: wait for its end, or stop it")
        uploaded = self.workspace.folder in path.parents
        home = self.workspace.start if uploaded else path.parent
        choices = Choices(path, inside, csv or CsvFormat(), home)  # raises before anything is lost
        self.end()
        self.choices, self.database, self.job, self.ran = choices, None, None, None
        self.workspace.empty_run()

    def forget(self) -> None:
        """Remove everything: uploads, results and choices."""
        self.end()
        self.choices = self.database = self.job = self.ran = None
        self.workspace.taken = True
        for name in ("run", "uploads"):
            self.workspace.empty(name)
