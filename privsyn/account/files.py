"""Which budget files hold the runs on a table, and into which of them a new run is written.

The place follows from the table: beside it. If a run is recorded elsewhere, a line in the file beside the
table names that place (``kept_in``), so that the next run is recorded there too. Runs in any other file that
may be about the same rows count as well: one beside the policy, and those of a folder and of its tables.
"""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from privsyn.account.budget_file import ENDING, beside, exists, kept_in
from privsyn.account.policy import Policy
from privsyn.errors import InputError
from privsyn.table.io.formats import file_of


@dataclass(frozen=True)
class BudgetFiles:
    """The budget files of a table.

    Parameters
    ----------
    path : Path
        The file into which a new run is written.
    data : Path, optional
        The table. Default: no other file counts.
    policy : Policy, optional
        A budget file beside its file counts too.
    """

    path: Path
    data: Path | None = None
    policy: Policy | None = None

    @classmethod
    def of(cls, data: Path, budget: Path | None = None, policy: Policy | None = None) -> BudgetFiles:
        """Return the files of a table; refuse a `budget` file while runs are kept in another.

        Raises
        ------
        InputError
            If the runs are kept elsewhere, or a policy needs them elsewhere: else each run could name a new,
            empty file.
        """
        usual = beside(data)
        by_policy = usual if policy is None else kept_in(policy.file.resolve().with_name(usual.name))
        home = kept_in(usual) if exists(usual) else None
        if budget is None:
            files = (usual, by_policy)
            begun = home or next((file for file in files if exists(file)), None)
            path = begun or next((file for file in files if _writable(file.parent)), usual)
            return cls(path, data, policy)
        if home is not None and not _same(budget, home):
            raise InputError(
                f"--budget {budget}: runs on this table are recorded in {home}: leave out --budget"
            )
        if policy is not None and not any(_same(budget, path) for path in (usual, by_policy, home or usual)):
            raise InputError(
                f"--budget {budget}: {policy.file} needs the budget file beside the table: leave out --budget"
            )
        return cls(budget, data, policy)

    @property
    def counted(self) -> tuple[Path, ...]:
        """The files whose runs count, `path` first: those that exist now.

        If a run read a folder as linked tables, the files of the folder and of all its tables count. The
        tables of any other folder are taken to be about different people: only the table's own file counts.
        """
        if self.data is None:
            return (self.path,)
        usual, table = beside(self.data), file_of(self.data)
        candidates = [usual]
        with suppress(OSError, ValueError):
            folder = table.resolve() if table.is_dir() else table.resolve().parent
            of_folder = beside(folder)
            if table.is_dir() or exists(of_folder):
                candidates += [of_folder, *sorted(folder.glob(f"*{ENDING}"))]
        if self.policy is not None:
            candidates.append(self.policy.file.resolve().with_name(usual.name))
        files = [self.path, *(kept_in(file) for file in candidates if exists(file))]
        distinct: dict[Path, Path] = {}
        for file in files:
            distinct.setdefault(file.resolve(), file)
        return tuple(distinct.values())

    @property
    def pointer(self) -> Path | None:
        """The file beside the table that must name `path`; None if it does, is `path`, or cannot be made."""
        if self.data is None or _same(usual := beside(self.data), self.path):
            return None
        if exists(usual):
            return None if _same(kept_in(usual), self.path) else usual
        return usual if _writable(usual.parent) else None

    def check_writable(self) -> None:
        """Refuse a place beside a table at which nothing can be written; a policy allows no other."""
        if self.path.parent.is_dir() and not exists(self.path) and not _writable(self.path.parent):
            advice = ": give --budget FILE in another folder, or --no-budget to keep none"
            if self.policy is not None:
                advice = f", and {self.policy.file} needs the budget file there: make the folder writable"
            raise InputError(f"{self.path}: the budget file cannot be written there{advice}")


def _same(path: Path, second: Path) -> bool:
    return path.resolve() == second.resolve()


def _writable(folder: Path) -> bool:
    """Return whether a file can be made in a folder: only an attempt shows permissions and mounts."""
    with suppress(OSError), tempfile.TemporaryFile(dir=folder):
        return True
    return False
