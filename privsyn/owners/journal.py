"""Journal: what one owner keeps of a run on its own disk, so that nothing is answered twice with fresh noise.

Each noisy vector is written before any part of it is sent. An owner that is started again sends the same
vector. So the others learn nothing from asking again. The share of each sum is written before any owner shows
its share to another. So a sum that somebody may know can be opened without an owner who is lost. All files
can be read by this user only (mode 0600): a noisy vector has only this owner's share of the noise, which
protects its rows less than the sum of all does.
"""

from __future__ import annotations

import io
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from privsyn.errors import InputError, replace_errors
from privsyn.marginals.domain import Integers, Ints

KEY = "run.json"
PART = 16  # bytes of this owner's part of the run's name, and of a digest
SECRET = 32  # bytes that only this owner knows
DIGITS = 16  # of the id of the run in the budget file
LOST = "lost"  # of the files that say from which question on an owner is given up


@dataclass(frozen=True, eq=False)
class Share:
    """One owner's share of the sum of the answers to a question.

    Parameters
    ----------
    attempt : bytes
        Random, public, and the same at all owners whose shares belong together.
    owners : tuple of int
        Whose answers are in the sum.
    numbers : array of shape (length,)
        Points of random polynomials, in the field.
    """

    attempt: bytes
    owners: tuple[int, ...]
    numbers: Ints


@dataclass(frozen=True)
class Journal:
    """The files of one run in a folder.

    Parameters
    ----------
    folder : Path
    part : bytes
        What this owner contributes to the name of the run. Public.
    secret : bytes
        Decides which rows of a person are kept, in the first process and in each that resumes the run.
    """

    folder: Path
    part: bytes
    secret: bytes

    @property
    def name(self) -> str:
        """The id of the run in the budget file: the same again if the run is resumed."""
        return self.part.hex()[:DIGITS]

    @property
    def run(self) -> bytes:
        """The name of the run, which all owners drew together; empty if they have not met."""
        file = self.folder / "run"
        return file.read_bytes() if file.exists() else b""

    @classmethod
    def begun(cls, folder: Path) -> bool:
        """Return whether a run was begun in this folder."""
        return (folder / KEY).exists()

    @classmethod
    def open(cls, folder: Path) -> Journal:
        """Open the journal in this folder, or begin one.

        Raises
        ------
        InputError
            If the folder cannot be created or read, or holds other files.
        """
        with replace_errors(
            f"{folder}: cannot be created or read: check the path and its permissions", OSError
        ):
            folder.mkdir(mode=0o700, exist_ok=True)
            _sync(folder.parent)
            _sync(folder)  # a process may have ended before it did
            if not cls.begun(folder):
                if any(not path.name.startswith(".") for path in folder.iterdir()):
                    raise InputError(f"{folder}: holds other files: give a folder that does not exist yet")
                key = {"part": secrets.token_hex(PART), "secret": secrets.token_hex(SECRET)}
                write_once(folder / KEY, json.dumps(key).encode())
            text = (folder / KEY).read_bytes()
        with replace_errors(f"{folder / KEY}: is damaged: this run cannot be resumed"):
            key = json.loads(text)
            return cls(folder, bytes.fromhex(key["part"]), bytes.fromhex(key["secret"]))

    def bind(self, name: str, value: bytes) -> bool:
        """Keep a value of the run on first use; return whether it is still the same."""
        file = self.folder / name
        write_once(file, value)
        return file.read_bytes() == value

    def noisy(self, number: int, question: bytes, draw: Callable[[], Ints]) -> Ints:
        """Return the noisy answer to a question: that on the disk, or a new one, which is written first.

        Raises
        ------
        InputError
            If another question had this number.
        """
        file = self._path(number, "noisy")
        if not file.exists():
            write_once(file, question + _packed(draw()))  # if another process was first, its answer counts
        content = file.read_bytes()
        if not content.startswith(question):
            raise InputError(
                f"{self.folder}: question {number + 1} differs from that of the interrupted run: the table,"
                " settings and versions of packages must be the same"
            )
        return _unpacked(content[len(question) :])

    def array(self, name: str, make: Callable[[], Integers]) -> Ints:
        """Return the array of a name: that on the disk, or a new one, which is written first."""
        file = self.folder / name
        if not file.exists():
            write_once(file, _packed(make()))
        return _unpacked(file.read_bytes())

    def question(self, number: int) -> tuple[bytes, Ints]:
        """Return the digest of a question that was answered, and the noisy answer."""
        content = self._path(number, "noisy").read_bytes()
        return content[:PART], _unpacked(content[PART:])

    def keep_total(self, number: int, total: Ints) -> None:
        """Keep the released sum of all owners' noisy answers.

        Raises
        ------
        InputError
            If another sum is there: some owner sent two different answers to one question.
        """
        if not self.bind(self._path(number, "total").name, _packed(total)):
            raise InputError(
                f"{self.folder}: the sum for question {number + 1} differs from the one before: another owner"
                " answered twice, perhaps from an older copy of its folder. Begin a new run with new folders,"
                " which spends epsilon again"
            )

    def total(self, number: int) -> Ints | None:
        """Return the released sum, or None if it is not known yet."""
        file = self._path(number, "total")
        return _unpacked(file.read_bytes()) if file.exists() else None

    def keep_share(self, number: int, share: Share) -> None:
        """Keep the share of a sum, in place of that of an earlier attempt at this question, or of none."""
        head = json.dumps({"attempt": share.attempt.hex(), "owners": share.owners}).encode()
        _write(self._path(number, "share"), head + b"\n" + _packed(share.numbers), 0o600, is_new=False)

    def share(self, number: int) -> Share | None:
        """Return the share of the last attempt to sum the answers to a question, or None."""
        file = self._path(number, "share")
        if not file.exists():
            return None
        with replace_errors(f"{file}: is damaged: this run cannot be resumed"):
            head, _, packed = file.read_bytes().partition(b"\n")
            plain = json.loads(head)
            return Share(bytes.fromhex(plain["attempt"]), tuple(plain["owners"]), _unpacked(packed))

    def give_up(self, owner: int, number: int) -> None:
        """Keep that an owner is given up: it has no part in the answers to this question and later ones."""
        if not self.bind(f"{LOST}.{owner}", str(number).encode()):
            raise InputError(f"{self.folder}: the owners gave up owner {owner} at different questions")

    def lost(self) -> dict[int, int]:
        """Return the owners who were given up, each with the first question without it."""
        with replace_errors(f"{self.folder}: is damaged: this run cannot be resumed"):
            files = sorted(self.folder.glob(f"{LOST}.*"))
            return {int(file.suffix[1:]): int(file.read_bytes()) for file in files}

    def known(self) -> int:
        """Return how many sums are known."""
        return self._count("total")

    def answers(self) -> int:
        """Return how many questions this owner has answered."""
        return self._count("noisy")

    def _count(self, kind: str) -> int:
        number = 0
        while self._path(number, kind).exists():
            number += 1
        return number

    def _path(self, number: int, kind: str) -> Path:
        return self.folder / f"{number:06d}.{kind}"


def digest(content: bytes) -> bytes:
    """Return a digest of `PART` bytes."""
    return blake2b(content, digest_size=PART).digest()


def _packed(answer: Integers) -> bytes:
    packed = io.BytesIO()
    np.save(packed, answer, allow_pickle=False)
    return packed.getvalue()


def _unpacked(content: bytes) -> Ints:
    with replace_errors("a file of the run is damaged: this run cannot be resumed"):
        return np.asarray(np.load(io.BytesIO(content), allow_pickle=False), np.int64)


def write_once(target: Path, content: bytes, mode: int = 0o600) -> None:
    """Write a file, whole or not at all, that survives a failure of the machine; never replace one."""
    _write(target, content, mode, is_new=True)


def _write(target: Path, content: bytes, mode: int, *, is_new: bool) -> None:
    """Write a file, whole or not at all, that survives a failure of the machine; a new one replaces none."""
    part = target.with_name(f".{secrets.token_hex(8)}")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        try:
            if is_new:
                os.link(part, target)  # unlike a rename, it fails if the file is there
            else:
                part.replace(target)
        except FileExistsError:
            return
        finally:
            _sync(target.parent)  # without it, the name of the file can be lost although its content is not
    finally:
        part.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """Write the names in a folder to the disk."""
    if os.name == "nt":  # Windows cannot open a folder
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
