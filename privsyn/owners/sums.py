"""Sums: the rounds of a run, in step with all other owners, also after one of them was lost."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from time import monotonic

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Ints
from privsyn.owners.journal import PART, Journal, Share, digest
from privsyn.owners.lagrange import lagrange_weights
from privsyn.owners.network import PRIME, AbsentError, Connection, LostError
from privsyn.progress import Progress

FAREWELL = 20.0  # seconds in which an owner who needs nobody looks for others who may wait for it

WORD = 6  # bytes of a digest that a number of the field holds

NEVER = 2**40
"""In place of the first question without an owner, if it is not given up."""


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
    give_up_after : float, optional
        Seconds after which the run goes on without an owner that is away. Default: it never does.
    fewest : int
        How many owners must remain.

    Notes
    -----
    Let A be the owners of a question. In `Connection.sum` nobody shows its share of the sum before all of A
    have written theirs, all of one attempt. If owners are lost, those who remain compare what they wrote. If
    all have a share of one attempt, somebody may know the sum: they open it, with the answers of those who
    are lost. Otherwise nobody ever showed a share, so nobody knows the sum, and none of its attempts will be
    opened: the question is summed without the lost ones, and the same noisy answers of the others. So the
    answers to a question are opened for one set of owners only. Two sets would show their difference: a noisy
    vector with one owner's share of the noise. (docs/proofs.md)
    """

    journal: Journal
    party: int
    peers: Sequence[tuple[str, int]]
    _: KW_ONLY
    tls: Path | None
    settings: bytes
    patience: float
    report: Progress
    give_up_after: float | None = None
    fewest: int = 2
    _away: dict[int, float] = field(default_factory=dict, init=False)  # since when
    _given_up: set[int] = field(default_factory=set, init=False)  # by this process
    _present: list[int] = field(default_factory=list, init=False)  # the owners of this connection
    _totals: tuple[int, ...] = field(default=(), init=False)  # how many sums each of them knew at first
    _has_shares: bool = field(default=False, init=False)  # all, of the first sum that nobody knows
    _attempt: bytes = field(default=b"", init=False)
    _connection: Connection | None = field(default=None, init=False)
    _next: int = field(default=0, init=False)  # number of the next question
    _earlier: bytes = field(default=b"", init=False)  # digest of all sums before it
    _round: int = field(default=0, init=False)  # number of the next round on this connection
    _took_part: bool = field(default=False, init=False)
    _sent: int = field(default=0, init=False)

    def begin(self) -> bytes:
        """Meet the other owners, and return the name of the run: random, public and the same at all."""
        if not self.journal.run:
            self._need(lambda: None)
        return self.journal.run

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

    @property
    def lost(self) -> dict[int, int]:
        """The owners who have no part in some answers, each with the number of those in which it has."""
        return {owner: first for owner, first in self.journal.lost().items() if first < self._next}

    @property
    def absent(self) -> int:
        """How many owners have no part in the last answer."""
        return sum(first < self._next for first in self.journal.lost().values())

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
            names = self._named(absent.owners)
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
        absent = {*self.journal.lost(), *self._given_up}
        present = self._present = [owner for owner in range(len(self.peers)) if owner not in absent]
        connection = self._connection = Connection(self.party, self.peers, self.tls, present)

        def waiting(now: list[int]) -> None:
            self._away = {owner: self._away.get(owner, monotonic()) for owner in now}
            if now:
                stage = f"waiting for {self._named(now)}"
                self.report(stage, len(present) - len(now), len(present))
                self._give_up_whoever_is_away()

        connection.open(waiting, patience)
        self._meet()

    def _give_up_whoever_is_away(self) -> None:
        """Try without owners who are away for too long, if the others are enough and the run has begun."""
        seconds = self.give_up_after
        if seconds is None or not self.journal.run:
            return
        away = {owner for owner, since in self._away.items() if monotonic() - since > seconds}
        if away and len(self._present) - len(away) >= self.fewest:
            # Each owner waits for itself: nobody is given up because another one says so.
            self.report(f"going on without {self._named(sorted(away))}", 0, 1)
            self._given_up |= away
            raise LostError

    def _owners_of(self, number: int) -> tuple[int, ...]:
        """Return the owners whose answers to a question are summed."""
        lost = self.journal.lost()
        return tuple(owner for owner in range(len(self.peers)) if lost.get(owner, number + 1) > number)

    def _meet(self) -> None:
        """Agree on the run, its owners, and the first round that somebody does not know."""
        self._agree("settings, schema, columns, or version of a package", 0, self.settings)
        lost = self.journal.lost()
        numbers = [lost.get(owner, NEVER) for owner in range(len(self.peers))]
        facts = [self.journal.known(), secrets.randbits(8 * WORD), *numbers]
        rows = self._exchange([*_words(self.journal.part), *facts])
        parts, (totals, nonces, *first_without) = rows[:, : -len(facts)], rows[:, -len(facts) :].T
        if len(rows) == len(self.peers):
            is_same = self.journal.bind("run", digest(b"".join(part.tobytes() for part in parts)))
        else:
            names = self._exchange(_words(self.journal.run or bytes(PART)))
            is_same = bool(self.journal.run) and bool((names == names[0]).all())
        if not is_same:
            raise InputError(
                "another owner has begun a new run, or lost the folder of this one: all owners resume with"
                " their folders, or all begin with new ones, which spends epsilon again"
            )
        if self.journal.answers() < totals.max():  # of each known sum, this owner sent its part
            raise InputError(
                f"{self.journal.folder}: is an older copy, without answers that this owner has sent: never"
                " restore a copy. Begin a new run with new folders at all owners, which spends epsilon again"
            )
        self._round = int(totals.min())
        self._totals = tuple(totals.tolist())
        self._attempt = digest(nonces.tobytes())
        self._agree_on_lost([int(numbers.min()) for numbers in first_without])

    def _agree_on_lost(self, first_without: Sequence[int]) -> None:
        """Keep from which question on owners have no part: those whom somebody gave up, and new ones.

        Whoever is given up now still has a part in the first sum that nobody knows, if all others have
        shares of it.
        """
        for owner, number in enumerate(first_without):
            if number < NEVER:
                self.journal.give_up(owner, number)
        number = max(self._totals)
        share = self.journal.share(number)
        if share is None or share.owners != self._owners_of(number):
            attempt = secrets.token_bytes(PART)  # unlike that of anybody else
        else:
            attempt = share.attempt
        attempts = self._exchange(_words(attempt))
        self._has_shares = bool((attempts == attempts[0]).all())
        for owner in range(len(self.peers)):
            if owner not in self._present and first_without[owner] == NEVER:
                self.journal.give_up(owner, number + self._has_shares)

    def _up_to(self, end: int) -> None:
        """Do all rounds before `end` that somebody does not know."""
        while self._round < end:
            question, noisy = self.journal.question(self._round)
            self._agree("question or earlier sum: are all packages the same?", self._round, question)
            self.journal.keep_total(self._round, self._sum(self._round, noisy))
            self._round += 1
            self._took_part = True

    def _sum(self, number: int, noisy: Ints) -> Ints:
        """Return the sum for a question: the known one, the opened one, or that of the owners who remain."""
        unknown, owners = max(self._totals), self._owners_of(number)
        if number < unknown:  # the first of those who know it tells the others
            is_first = self._present[self._totals.index(unknown)] == self.party
            total = self.journal.total(number) if is_first else None
            return self._connected.sum(np.zeros_like(noisy) if total is None else total)
        share = self.journal.share(number)
        if number == unknown and self._has_shares and share is not None:
            points = [owners.index(owner) + 1 for owner in self._present]
            weight = lagrange_weights(0, points, PRIME)[self._present.index(self.party)]
            return self._connected.sum(np.array([weight * int(x) % PRIME for x in share.numbers], np.int64))
        if list(owners) != self._present:
            raise InputError(f"{self.journal.folder}: a share that was written is not there any more")

        def keep(numbers: Ints) -> None:
            self.journal.keep_share(number, Share(self._attempt, owners, numbers))

        return self._connected.sum(noisy, keep)

    def _agree(self, subject: str, number: int, value: bytes) -> None:
        """Refuse to continue if another owner has something else."""
        numbers = [number, *_words(value)]
        is_other = (self._exchange(numbers) != np.array(numbers)).any(axis=1)
        differing = [str(self._present[row]) for row in np.flatnonzero(is_other)]
        if differing:
            raise InputError(f"owner {', '.join(differing)} has another {subject}")

    def _exchange(self, numbers: Sequence[int]) -> Ints:
        """Return the public numbers of all owners of this connection, a row for each."""
        rows = np.zeros((len(self._present), len(numbers)), np.int64)
        rows[self._present.index(self.party)] = numbers
        return self._connected.sum(rows.ravel()).reshape(rows.shape)

    def _named(self, owners: Sequence[int]) -> str:
        """Return the owners with their addresses, for a message."""
        return ", ".join(
            f"owner {owner} at {self.peers[owner][0]}:{self.peers[owner][1]}" for owner in owners
        )

    @property
    def _connected(self) -> Connection:
        if self._connection is None:
            raise LostError
        return self._connection


def _words(content: bytes) -> list[int]:
    return [int.from_bytes(content[start : start + WORD], "big") for start in range(0, len(content), WORD)]
