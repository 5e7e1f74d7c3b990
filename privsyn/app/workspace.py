"""The private folder of one run of the app, and which files of the start folder may be chosen."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from secrets import token_hex

from privsyn.errors import InputError, replace_errors
from privsyn.files import check_file
from privsyn.table.io.formats import ENDINGS, SEPARATOR, every_table, sheets_in

PREFIX = ".privsyn-app-"
"""How the names of private folders begin. They lie in the start folder: private rows stay on its disk."""

NEW = ".privsyn-new-"
"""How they begin before their lock is held, so that no other start takes them for abandoned."""

MODEL_NOT_TAKEN = "{}.kept.privsyn"
"""The name of a model that was paid for and not taken."""

RUN = "run"
"""The folder with the results, in the private folder."""

HERE = "."
"""What stands for the start folder itself in a form."""

MOST_LISTED = 200
"""Most files that are listed."""


class Workspace:
    """A folder for uploads and results that only its owner can read, and that is removed at the end.

    It holds a lock while it is in use. A folder whose process was killed has none: the next start removes it.
    A model in it was paid for with privacy and may be published, so it is kept in the start folder unless
    the person took it or asked to forget it.

    Whoever may write in the start folder can exchange a table for a link after `inside` has looked at it.
    Then another table of the person is read, and shown to this person alone. A hard link is a file as any.

    Parameters
    ----------
    start : Path
        The folder in which the app was started.

    Attributes
    ----------
    folder : Path
        The private folder, with mode 0700.
    taken : bool
        Whether the person took the model of the last run, or asked to forget it.
    lock : int
        The open lock. A process that inherits it keeps the folder in use.
    kept : list of Path
        The models that were kept.

    Raises
    ------
    InputError
        If the start folder is no folder, or nothing can be written there.
    """

    def __init__(self, start: Path) -> None:
        with replace_errors("privsyn app needs Linux or macOS (on Windows: WSL)", ImportError):
            import fcntl

        if not start.is_dir():
            raise InputError(f"{start}: there is no such folder")
        if SEPARATOR in str(start.resolve()):  # what follows would be taken for the name of a table
            raise InputError(f"{start}: the name of the folder has {SEPARATOR!r} in it: use another folder")
        self.start = start.resolve()
        self.taken = True
        self.kept: list[Path] = []
        self._remove_abandoned()
        name = token_hex(8)
        new, self.folder = self.start / f"{NEW}{name}", self.start / f"{PREFIX}{name}"
        message = f"{start}: nothing can be written there: start the app in a folder of your own"
        with replace_errors(message, OSError):
            new.mkdir(mode=0o700)
            self.lock = os.open(new / "lock", os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            new.rename(self.folder)

    def close(self) -> None:
        """Keep a model that was paid for and not taken, and remove the folder."""
        if self.taken or self._keep_models(self.folder):
            shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self.lock)

    def empty(self, name: str) -> Path:
        """Return a folder of this name within, with nothing in it."""
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        return folder

    def empty_run(self) -> Path:
        """Return the empty folder of a run. A model of an earlier run that nobody took is kept."""
        if not self.taken and not self._keep_models(self.folder):
            raise InputError("the model of the run before cannot be kept in the start folder: take it first")
        self.taken = True
        return self.empty(RUN)

    def new(self, name: str) -> Path:
        """Return a new folder in the folder of this name."""
        folder = self.folder / name / token_hex(8)
        folder.parent.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700)
        return folder

    def listed(self) -> list[str]:
        """Return the tables in the start folder and in the folders in it, as paths from there. No links."""
        tables: list[str] = []
        for file in _walk(self.start, deeper=1):
            if len(tables) == MOST_LISTED:
                break
            tables.append(str(file.relative_to(self.start)))
        return tables

    def folders(self) -> list[str]:
        """Return the folders with several tables, as paths from the start folder, which is `HERE` itself."""
        with suppress(OSError):
            below = {folder.name: folder for folder in _subfolders(self.start)}
            return [name for name, folder in ({HERE: self.start} | below).items() if _holds_several(folder)]
        return []

    def inside(self, name: str) -> Path:
        """Return the path of a file or folder of the start folder; refuse others, and every link.

        Raises
        ------
        InputError
            If there is no such table, it lies outside, or a part of its path is a link.
        """
        if name in self.folders():
            folder = self.start / name
            below = [path for path in folder.iterdir() if path.is_dir() and path.name[0] != "."]
            if any(file.is_symlink() for path in below for file in path.rglob("*")):
                raise InputError("the folder has a link in it, which may lead elsewhere: remove it")
            return folder
        refused = InputError("choose a table that is in the list")
        parts = Path(name).parts
        hidden = any(part[0] == "." for part in parts)  # and ".."
        if not parts or hidden or Path(name).is_absolute() or SEPARATOR in name:
            raise refused  # of "a.sqlite::b.xlsx" the first part would be read, and may be a link
        path = self.start
        for part in parts:
            path = path / part
            with suppress(OSError, ValueError):  # a null byte is a ValueError
                if not stat.S_ISLNK(path.lstat().st_mode):
                    continue
            raise refused
        if not path.is_file() or not path.name.lower().endswith(ENDINGS):
            raise refused
        check_file(path)
        return path

    def _remove_abandoned(self) -> None:
        """Remove the private folders of processes that were killed."""
        import fcntl

        with suppress(OSError):
            for folder in self.start.glob(f"{PREFIX}*"):
                with suppress(OSError):
                    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                        continue
                    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
                    try:
                        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails if it is in use
                        if self._keep_models(folder):  # whether they were taken is not known
                            shutil.rmtree(folder, ignore_errors=True)
                    finally:
                        os.close(lock)

    def _keep_models(self, folder: Path) -> bool:
        """Move the models of a private folder into the start folder; return whether none is left there."""
        for model in sorted(folder.glob(f"{RUN}/*.privsyn")):
            name = model.name.removesuffix(".privsyn").removesuffix(".rescue")
            path = self.start / MODEL_NOT_TAKEN.format(name)
            if path.exists():
                path = self.start / MODEL_NOT_TAKEN.format(f"{name}.{token_hex(4)}")
            with suppress(OSError):
                model.replace(path)
                self.kept.append(path)
        return not any(folder.glob(f"{RUN}/*.privsyn"))


def tables_of(path: Path) -> list[str]:
    """Return the names of the tables of a database, or of the sheets of a workbook; none if it has one."""
    sheets = sheets_in(path)
    return sheets if len(sheets) > 1 else list(every_table(path))


def _subfolders(folder: Path) -> list[Path]:
    """Return the folders in a folder; links and hidden ones are left out, and names that readers split."""
    return [
        path
        for path in sorted(folder.iterdir())
        if path.is_dir() and not path.is_symlink() and path.name[0] != "." and SEPARATOR not in path.name
    ]


def _holds_several(folder: Path) -> bool:
    """Return whether a folder has two tables or more, and no link, which may lead elsewhere."""
    if any(file.is_symlink() for file in folder.iterdir()):
        return False
    return len([*islice(_walk(folder, deeper=0), 2)]) == 2


def _walk(folder: Path, deeper: int) -> Iterator[Path]:
    """Yield the tables of a folder and of folders in it; links and hidden files are left out."""
    with suppress(OSError):
        for file in sorted(folder.iterdir()):
            if file.name.startswith(".") or SEPARATOR in file.name or file.is_symlink():
                continue
            if file.is_file() and file.name.lower().endswith(ENDINGS):
                yield file
            elif file.is_dir() and deeper:
                yield from _walk(file, deeper - 1)
