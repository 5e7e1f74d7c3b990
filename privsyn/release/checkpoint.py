"""Checkpoint of a long `sample_to`: a folder beside the file, from which an interrupted call resumes.

The folder contains only what takes long to make: the codes of each block. A resumed call decodes and writes
their rows again, with the same random draws. So no record of progress can be wrong. A resumed call does what
an uninterrupted one does, except that some blocks exist already.

Everything in the folder is made from the release, and is as public as the release.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path

import numpy as np

from privsyn.errors import InputError
from privsyn.files import atomic_path
from privsyn.marginals.counting import block_of
from privsyn.marginals.domain import Domain, Records

NOTES = "notes.json"

_BLOCK, _PART = r"block-\d+\.npz", r"\.[0-9a-f]{8}-.*"
"""The other files in the folder: blocks, and what a killed run was writing."""

_LABELS = {
    "version": "another version of privsyn",
    "model": "another model",
    "rows": "another number of rows",
    "seed": "another seed",
}


@dataclass(frozen=True)
class Unfinished:
    """The checkpoint of a file that is being written.

    Parameters
    ----------
    folder : path
    domain : Domain
        The domain of the blocks.
    seed : int
        The seed of all draws: given by the caller, or drawn by the first run.
    """

    folder: Path
    domain: Domain
    seed: int

    def block(self, place: int, rows: int, make: Callable[[], Records]) -> Records:
        """Return the block of a place: the saved one, or the result of `make`, which is then saved."""
        file = self.folder / f"block-{place + 1:06}.npz"
        with suppress(Exception):  # missing, or damaged, as the checksum shows: make it again
            with file.open("rb") as raw, np.load(raw, allow_pickle=False) as columns:
                codes = np.stack([columns[name] for name in columns.files], axis=1)
            if len(codes) == rows:
                return Records(self.domain, codes)
        records = make()
        with atomic_path(file) as part:
            np.savez(part, *block_of(records))
        return records


def folder_of(path: str | PathLike[str]) -> Path:
    """Return the folder of a file's blocks.

    >>> folder_of("/a/table.csv").name
    'table.csv.unfinished'
    """
    target = Path(os.path.realpath(path))
    return target.with_name(f"{target.name}.unfinished")


@contextmanager
def unfinished(
    path: str | PathLike[str], domain: Domain, *, model: str, rows: int, seed: int | None
) -> Iterator[Unfinished]:
    """Yield the checkpoint of a file, and remove it on success.

    Parameters
    ----------
    path : str or path
    domain : Domain
        The domain of the blocks.
    model : str
        A digest of the release.
    rows : int
        Number of rows of the file.
    seed : int, optional
        Default: the seed of the interrupted run, or a new one.

    Raises
    ------
    InputError
        If the folder belongs to something else. If the work fails while a block is saved, the message says
        that the same call resumes.
    """
    folder = folder_of(path)
    settings: dict[str, str | int | None]
    settings = {"version": version("privsyn"), "model": model, "rows": rows, "seed": seed}
    seed = _recorded_seed(folder, settings)
    _remove(folder, _PART)
    problem = ""
    try:
        yield Unfinished(folder, domain, seed)
    except InputError as error:
        problem = str(error)
    if problem and _inside(folder, _BLOCK):
        raise InputError(f"{problem}; finished blocks are kept in {folder.name}: the same call resumes")
    _remove(folder, _BLOCK)
    with suppress(OSError):  # the folder contains a file of the user
        (folder / NOTES).unlink()
        folder.rmdir()
    if problem:
        raise InputError(problem)


def _recorded_seed(folder: Path, settings: dict[str, str | int | None]) -> int:
    """Return the seed of this run, or of the one that began the folder with the same settings."""
    file, notes = folder / NOTES, None
    if _is_new(folder):
        seed = np.random.SeedSequence().entropy if settings["seed"] is None else settings["seed"]
        with atomic_path(file) as part:
            part.write_text(json.dumps(settings | {"seed": seed}, indent=1), encoding="utf-8")
    with suppress(OSError, ValueError):
        notes = json.loads(file.read_text(encoding="utf-8"))
    if not (isinstance(notes, dict) and notes.keys() == settings.keys() and isinstance(notes["seed"], int)):
        raise InputError(
            f"{folder}: not a folder that privsyn wrote, or damaged: move it away, or choose another file"
        )
    for name, label in _LABELS.items():
        if notes[name] != settings[name] and (name, settings[name]) != ("seed", None):
            raise InputError(f"{folder}: belongs to {label}: use that, or delete the folder to start again")
    return notes["seed"]


def _is_new(folder: Path) -> bool:
    """Return whether nothing is saved in the folder yet; create it if it does not exist."""
    try:
        folder.mkdir(exist_ok=True)
        return all(re.fullmatch(_PART, inside.name) for inside in folder.iterdir())
    except OSError as error:
        reason = error.strerror or "the disk failed"
    raise InputError(f"{folder}: cannot be used ({reason})")


def _inside(folder: Path, pattern: str) -> list[Path]:
    with suppress(OSError):
        return [file for file in folder.iterdir() if re.fullmatch(pattern, file.name)]
    return []


def _remove(folder: Path, pattern: str) -> None:
    with suppress(OSError):
        for file in _inside(folder, pattern):
            file.unlink()
