"""A folder beside a file that is long in the making: a run that was broken off goes on from what is in it.

Only what takes long is kept: the codes of each block. What blocks hold is counted again, and their rows are
decoded and written again, with the same draws as before. So there is no note of how far a run had come that
could be wrong: it does what an unbroken run does, but that it finds some of the blocks made.

All that is kept is made of the release, and no more private than that.
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
"""What is in the folder beside the notes: blocks, and what a run that was killed was writing."""

_WHAT = {
    "version": "another version of privsyn",
    "model": "another model",
    "rows": "another number of rows",
    "seed": "another seed",
}


@dataclass(frozen=True)
class Unfinished:
    """A file in the making.

    Parameters
    ----------
    folder : path
    domain : Domain
        Of the blocks.
    seed : int
        What all is drawn with: given, or drawn by the first run.
    """

    folder: Path
    domain: Domain
    seed: int

    def block(self, place: int, rows: int, make: Callable[[], Records]) -> Records:
        """The block of a place: the kept one, or that which `make` gives, kept from now on."""
        file = self.folder / f"block-{place + 1:06}.npz"
        with suppress(Exception):  # not there, or damaged as its checksum shows: it is made again
            with file.open("rb") as raw, np.load(raw, allow_pickle=False) as columns:
                codes = np.stack([columns[name] for name in columns.files], axis=1)
            if len(codes) == rows:
                return Records(self.domain, codes)
        records = make()
        with atomic_path(file) as part:
            np.savez(part, *block_of(records))
        return records


def folder_of(path: str | PathLike[str]) -> Path:
    """Where the blocks of a file are kept.

    >>> folder_of("/a/table.csv").name
    'table.csv.unfinished'
    """
    target = Path(os.path.realpath(path))
    return target.with_name(f"{target.name}.unfinished")


@contextmanager
def unfinished(
    path: str | PathLike[str], domain: Domain, *, model: str, rows: int, seed: int | None
) -> Iterator[Unfinished]:
    """The folder of a file while that is made; it vanishes when all is well.

    Parameters
    ----------
    path : str or path
    domain : Domain
        Of the blocks.
    model : str
        A digest of what they are made of.
    rows : int
        Of the file.
    seed : int, optional
        That of an earlier run, or else a new one is drawn if left out.

    Raises
    ------
    InputError
        If what is there belongs to something else. If the work fails and a block is kept, that is said too.
    """
    folder = folder_of(path)
    noted = _noted(folder, {"version": version("privsyn"), "model": model, "rows": rows, "seed": seed})
    _remove(folder, _PART)
    complaint = ""
    try:
        yield Unfinished(folder, domain, noted)
    except InputError as error:
        complaint = str(error)
    if complaint and _inside(folder, _BLOCK):
        raise InputError(
            f"{complaint}; what is done is kept in {folder.name}: the same again goes on from there"
        )
    _remove(folder, _BLOCK)
    with suppress(OSError):  # something of the user's is in it
        (folder / NOTES).unlink()
        folder.rmdir()
    if complaint:
        raise InputError(complaint)


def _noted(folder: Path, asked: dict[str, str | int | None]) -> int:
    """The seed of this run, or of the one that began the folder, which must have asked for the same."""
    file, noted = folder / NOTES, None
    if _is_new(folder):
        drawn = np.random.SeedSequence().entropy if asked["seed"] is None else asked["seed"]
        with atomic_path(file) as part:
            part.write_text(json.dumps(asked | {"seed": drawn}, indent=1), encoding="utf-8")
    with suppress(OSError, ValueError):
        noted = json.loads(file.read_text(encoding="utf-8"))
    if not (isinstance(noted, dict) and noted.keys() == asked.keys() and isinstance(noted["seed"], int)):
        raise InputError(
            f"{folder}: is no folder of privsyn's, or a damaged one: move it away, or choose another file"
        )
    for name, what in _WHAT.items():
        if noted[name] != asked[name] and (name, asked[name]) != ("seed", None):
            raise InputError(
                f"{folder}: was begun with {what}: give that, or delete the folder to begin anew"
            )
    return noted["seed"]


def _is_new(folder: Path) -> bool:
    """Whether nothing is kept in a folder yet, which is made if need be."""
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
