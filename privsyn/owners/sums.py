"""Sums: the rounds of a run, in step with all other owners, also after one of them was lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from hashlib import blake2b
from pathlib import Path

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Ints
from privsyn.owners.journal import PART, Journal
from privsyn.owners.network import AbsentError, Connection, LostError
from privsyn.progress import Progress

FAREWELL = 20.0  # seconds in which an owner who needs nobody looks for others who may wait for it

WORD = 6  # bytes of a digest that a number of the field holds


@dataclass(eq=False, repr=False)
class SecureSums:
    """Sums over all owners, in the order of the questions.

    Each round has a number. Whoever is connected again begins at the first round that some owner does not
    know, and all repeat it with the vectors in their journals.

    Parameters
    ----------
    journal : Journal
    party : int
    peers : sequence of (host, port)
    tls : Path, optional
    settings : bytes
        A digest of all that must be the same at all owners.
    patience : float
        Seconds to wait for an owner.
    report : callable
    """

    journal: Journal
    party: int
    peers: Sequence[tuple[str, int]]
    _: KW_ONLY
    tls: Path | None
    settings: bytes
    patience: float
    report: Progress
    _connection: Connection | None = field(default=None, init=False)
    _next: int = field(default=0, init=False)  # number of the next question
    _earlier: bytes = field(default=b"", init=False)  # digest of all sums before it
    _round: int = field(default=0, init=False)  # number of the next round on this connection
    _took_part: bool = field(default=False, init=False)
    _sent: int = field(default=0, init=False)

    def begin(self) -> bytes:
        """Meet the other owners, and return the name of the run: random, public and the same at all."""
        file = self.journal.folder / "run"
        if not file.exists():
            self._need(lambda: None)
        return file.read_bytes()

    def total(self, size: int, scale: float, noisy: Callable[[], Ints]) -> Ints:
        """Return the sum over all owners for the next question; see `privsyn.private.noise.Total`."""
        number, self._next = self._next, self._next + 1
        if number >= self.journal.answers():
            self._need(lambda: None)  # `_meet` first: an older copy of the folder must not draw again
        self.journal.noisy(number, digest(self._earlier + f"{size} {scale!r}".encode()), noisy)
        if self.journal.total(number) is None:
            self._need(lambda: self._up_to(self._next))
        total = self.journal.total(number)
        assert total is not None  # noqa: S101
        self._earlier = digest(self._earlier + total.tobytes())
        return total

    def end(self, model: bytes) -> None:
        """Compare the digest of the model with those of the others, and close the connections.

        This owner has all answers, but somebody who ended in the last round needs everybody once more. So it
        waits, unless it was started again itself after its last round: then the others may have left.
        """

        def compare() -> None:
            self._up_to(self._next)
            self._agree("model: are the versions of all packages the same?", -1, model)

        with suppress(AbsentError):
            self._together(compare, self.patience if self._took_part else FAREWELL)
        self.close()
        self.report(f"sent {self._sent / 1e6:.1f} MB to the other owners", 1, 1)

    def close(self) -> None:
        """Close all connections."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            self._sent += connection.sent
            connection.close()

    def _need(self, step: Callable[[], None]) -> None:
        """Take a step with all others, without which this owner cannot continue."""
        try:
            self._together(step, self.patience)
        except AbsentError as absent:
            names = ", ".join(self._names[owner] for owner in absent.owners)
            raise InputError(
                f"{names}: not reached in {self.patience:g} s: start it there, and run this again to resume"
            ) from None

    def _together(self, step: Callable[[], None], patience: float) -> None:
        """Take a step with all others. If one is lost, connect again and repeat it."""
        while True:
            try:
                if self._connection is None:
                    self._connect(patience)
                return step()
            except BaseException as error:
                self.close()
                if isinstance(error, AbsentError) or not isinstance(error, LostError):
                    raise

    def _connect(self, patience: float) -> None:
        connection = self._connection = Connection(self.party, self.peers, self.tls)
        names = self._names

        def waiting(now: list[int]) -> None:
            if now:
                stage = f"waiting for {', '.join(names[owner] for owner in now)}"
                self.report(stage, len(names) - len(now), len(names))

        connection.open(waiting, patience)
        self._meet()

    def _meet(self) -> None:
        """Agree on the run and on the first round that somebody does not know."""
        self._agree("settings, schema, columns, or version of a package", 0, self.settings)
        rows = self._exchange([*_words(self.journal.part), self.journal.known()])
        name = digest(b"".join(row[:-1].tobytes() for row in rows))
        if not self.journal.bind("run", name):
            raise InputError(
                "another owner has begun a new run, or lost the folder of this one: all owners resume with"
                " their folders, or all begin with new ones, which spends epsilon again"
            )
        if self.journal.answers() < rows[:, -1].max():  # of each known sum, this owner sent its part
            raise InputError(
                f"{self.journal.folder}: is an older copy, without answers that this owner has sent: never"
                " restore a copy. Begin a new run with new folders at all owners, which spends epsilon again"
            )
        self._round = int(rows[:, -1].min())

    def _up_to(self, end: int) -> None:
        """Do all rounds before `end` that somebody does not know."""
        while self._round < end:
            question, noisy = self.journal.question(self._round)
            self._agree("question or earlier sum: are all packages the same?", self._round, question)
            self.journal.keep_total(self._round, self._connected.sum(noisy))
            self._round += 1
            self._took_part = True

    def _agree(self, subject: str, number: int, value: bytes) -> None:
        """Refuse to continue if another owner has something else."""
        numbers = [number, *_words(value)]
        differing = np.flatnonzero((self._exchange(numbers) != np.array(numbers)).any(axis=1)).tolist()
        if differing:
            raise InputError(f"owner {', '.join(map(str, differing))} has another {subject}")

    def _exchange(self, numbers: Sequence[int]) -> Ints:
        """Return the public numbers of all owners, a row for each."""
        rows = np.zeros((len(self.peers), len(numbers)), np.int64)
        rows[self.party] = numbers
        return self._connected.sum(rows.ravel()).reshape(rows.shape)

    @property
    def _names(self) -> list[str]:
        return [f"owner {owner} at {host}:{port}" for owner, (host, port) in enumerate(self.peers)]

    @property
    def _connected(self) -> Connection:
        if self._connection is None:
            raise LostError
        return self._connection


def digest(content: bytes) -> bytes:
    """Return a digest of `PART` bytes."""
    return blake2b(content, digest_size=PART).digest()


def _words(content: bytes) -> list[int]:
    return [int.from_bytes(content[start : start + WORD], "big") for start in range(0, len(content), WORD)]
