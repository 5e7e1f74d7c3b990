"""Contribution: one row in secret shares, in one file with a sealed part for each collector.

Each attribute is a one-hot vector: 1 at the row's code, 0 elsewhere. A part has a collector's shares of these
vectors, on polynomials of degree t. For the check of the shares it also has shares of `CHECKS` random numbers
(degree t) and of as many zeros (degree 2 t), which hide everything but the result of the check.

Each part is sealed for the contributor's key, so nobody can send it again under another key.
"""

from __future__ import annotations

import re
import secrets
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from privsyn.collectors.board import CONTRIBUTIONS, KEY, SEAL, SIGNATURE, PrivateKeys, Study, is_signed, seal
from privsyn.collectors.field import WIRE, deal, from_bytes, random_residues, to_bytes
from privsyn.marginals.domain import Domain, Ints
from privsyn.owners.journal import write_once

TAG = 16  # random bytes that tell two contributions of one key apart
NAME = re.compile(rf"[0-9a-f]{{{2 * KEY}}}\.[0-9a-f]{{{2 * TAG}}}")
READABLE = 0o644

CHECKS = 2
"""Random combinations that are checked: a false one passes with probability 2^-31, so two with 2^-62."""


def one_hot(codes: Ints, domain: Domain) -> Ints:
    """Return the one-hot vectors of a row, one after another.

    >>> one_hot(np.array([1, 0]), Domain(("a", "b"), (2, 3))).tolist()
    [0, 1, 1, 0, 0]
    """
    vector = np.zeros(sum(domain.sizes), np.int64)
    vector[np.cumsum([0, *domain.sizes[:-1]]) + codes] = 1
    return vector


def shares_of(vector: Ints, study: Study) -> Ints:
    """Return the numbers in the part of each collector, of shape (collectors, numbers)."""
    parties, degree = len(study.keys), study.threshold
    masked = deal(np.concatenate([vector, random_residues((CHECKS,))]), parties, degree)
    zeros = deal(np.zeros(CHECKS, np.int64), parties, 2 * degree)
    return np.concatenate([masked, zeros], axis=1)


def write_contribution(folder: Path, study: Study, keys: PrivateKeys, shares: Ints) -> Path:
    """Write the sealed parts of one contribution to the folder of a study."""
    head = keys.public[1] + secrets.token_bytes(TAG)
    parts = (
        seal(to_bytes(part), box, _purpose(study, head, party))
        for party, (part, (box, _)) in enumerate(zip(shares, study.keys, strict=True))
    )
    content = head + b"".join(parts)
    file = folder / CONTRIBUTIONS / f"{head[:KEY].hex()}.{head[KEY:].hex()}"
    write_once(file, content + keys.sign(study.digest + content), READABLE)
    return file


@dataclass(frozen=True, eq=False)
class Contributions:
    """The contributions that count, if they are valid: those that were there when the collection ended.

    Parameters
    ----------
    folder : Path
        Of the study.
    study : Study
    width : int
        Sum of the sizes of all attributes.
    names : tuple of str
        Of the files, in order.
    digests : tuple of str
        Of their contents.
    """

    folder: Path
    study: Study
    width: int
    names: tuple[str, ...]
    digests: tuple[str, ...]

    @classmethod
    def listed(cls, folder: Path, study: Study, width: int) -> bytes:
        """Return the list of all contributions that are in the folder now. Files of another size are none."""
        size = _file_size(study, width)
        files = sorted((folder / CONTRIBUTIONS).glob("*"))
        lines = [
            f"{file.name} {sha256(content).hexdigest()}"
            for file in files
            if NAME.fullmatch(file.name) and len(content := _content(file, size)) == size
        ]
        return "\n".join(lines).encode()

    @classmethod
    def of_list(cls, folder: Path, study: Study, width: int, listed: bytes) -> Contributions:
        """Read a list of contributions."""
        pairs = [line.split(" ") for line in listed.decode().splitlines()]
        names, digests = zip(*pairs, strict=True) if pairs else ((), ())
        return cls(folder, study, width, names, digests)

    @property
    def contributors(self) -> list[str]:
        """The public key of the contributor of each contribution."""
        return [name.split(".")[0] for name in self.names]

    def part(self, index: int, party: int, keys: PrivateKeys) -> Ints | None:
        """Return the numbers in a collector's part; None if it cannot be read, or the file changed."""
        name = self.names[index]
        content = _content(self.folder / CONTRIBUTIONS / name, _file_size(self.study, self.width))
        signed, head = content[:-SIGNATURE], content[: KEY + TAG]
        if sha256(content).hexdigest() != self.digests[index] or head.hex() != name.replace(".", ""):
            return None
        if not is_signed(self.study.digest + signed, content[-SIGNATURE:], head[:KEY]):
            return None
        size = _part_size(self.width)
        sealed = signed[len(head) + party * size : len(head) + (party + 1) * size]
        plain = keys.unseal(sealed, _purpose(self.study, head, party))
        return None if plain is None else from_bytes(plain, (numbers(self.width),))


def _content(file: Path, size: int) -> bytes:
    """Return the content of a contributor's file of this size; nothing if it cannot be read, or is another.

    Whoever wrote it can remove it, or leave a folder or a link in its place. That must stop no collector.
    """
    with suppress(OSError):
        if file.is_file():
            with file.open("rb") as content:
                return content.read(size + 1)  # it may grow meanwhile
    return b""


def numbers(width: int) -> int:
    """Return how many numbers a part has."""
    return width + 2 * CHECKS


def _part_size(width: int) -> int:
    return WIRE.itemsize * numbers(width) + SEAL


def _file_size(study: Study, width: int) -> int:
    return KEY + TAG + len(study.keys) * _part_size(width) + SIGNATURE


def _purpose(study: Study, head: bytes, party: int) -> bytes:
    return study.digest + head + bytes([party])
