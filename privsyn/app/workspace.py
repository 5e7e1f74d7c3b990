"""The private folder of one run of the app, and which files of the start folder may be chosen."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex

from privsyn.errors import InputError, replace_errors
from privsyn.files import check_file
from privsyn.table.io.formats import FORMATS, every_table

PREFIX = ".privsyn-app-"
"""How the names of private folders begin. They lie in the start folder: private rows stay on its disk."""

KEPT = "{}.kept.privsyn"
"""The name of a model that was paid for and not taken."""

MOST_LISTED = 200
"""Most files that are listed."""

ENDINGS = tuple(ending for each in FORMATS for ending in each.endings)


class Workspace:
    """A folder for uploads and results that only its owner can read, and that is removed at the end.

    It holds a lock while it is in use. A folder whose process was killed has none: the next start removes it.
    A model in it was paid for with privacy and may be published, so it is kept in the start folder unless
    the person took the results or asked to forget them.

    Parameters
    ----------
    start : Path
        The folder in which the app was started.

    Attributes
    ----------
    folder : Path
        The private folder, with mode 0700.
    taken : bool
        Whether the person took a file of the last run, or asked to forget it.
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
        self.start = start.resolve()
        self.taken = True
        self.kept: list[Path] = []
        self._remove_abandoned()
        self.folder = self.start / f"{PREFIX}{token_hex(8)}"
        message = f"{start}: nothing can be written there: start the app in a folder of your own"
        with replace_errors(message, OSError):
            self.folder.mkdir(mode=0o700)
            self._lock = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Keep a model that was paid for and not taken, and remove the folder."""
        if not self.taken:
            self._keep_models(self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.close(self._lock)

    def empty(self, name: str) -> Path:
        """Return a folder of this name within, with nothing in it."""
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(mode=0o700)
        return place

    def empty_run(self) -> Path:
        """Return the empty folder of a run. A model of an earlier run that nobody took is kept."""
        if not self.taken:
            self._keep_models(self.folder)
        self.taken = True
        return self.empty("run")

    def listed(self) -> list[str]:
        """Return the tables in the start folder and in the folders in it, as paths from there. No links."""
        found: list[str] = []
        for file in _walk(self.start, deeper=1):
            if len(found) == MOST_LISTED:
                break
            found.append(str(file.relative_to(self.start)))
        return found

    def inside(self, name: str) -> Path:
        """Return the path of a file of the start folder; refuse others, and every link.

        Raises
        ------
        InputError
            If there is no such table, it lies outside, or a part of its path is a link.
        """
        refused = InputError("choose a table that is in the list")
        parts = Path(name).parts
        if not parts or Path(name).is_absolute() or any(part == ".." or part[0] == "." for part in parts):
            raise refused
        place = self.start
        for part in parts:
            place = place / part
            with suppress(OSError, ValueError):  # a null byte is a ValueError
                if not stat.S_ISLNK(place.lstat().st_mode):
                    continue
            raise refused
        if not place.is_file() or not place.name.lower().endswith(ENDINGS):
            raise refused
        check_file(place)
        return place

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
                        self._keep_models(folder)  # whether they were taken is not known
                        shutil.rmtree(folder, ignore_errors=True)
                    finally:
                        os.close(lock)

    def _keep_models(self, folder: Path) -> None:
        for model in sorted(folder.glob("run/*.privsyn")):
            name = model.name.removesuffix(".privsyn").removesuffix(".rescue")
            place = self.start / KEPT.format(name)
            if place.exists():
                place = self.start / KEPT.format(f"{name}.{token_hex(4)}")
            with suppress(OSError):
                model.replace(place)
                self.kept.append(place)


def tables_of(path: Path) -> list[str]:
    """Return the names of the tables of a database; none if it has one, or is no database."""
    return list(every_table(path))


def _walk(folder: Path, deeper: int) -> Iterator[Path]:
    """Yield the tables of a folder and of folders in it; links and hidden files are left out."""
    with suppress(OSError):
        for file in sorted(folder.iterdir()):
            if file.name.startswith(".") or file.is_symlink():
                continue
            if file.is_file() and file.name.lower().endswith(ENDINGS):
                yield file
            elif file.is_dir() and deeper:
                yield from _walk(file, deeper - 1)
