"""Several owners in threads of one process, whose sums are computed in the open, and who may crash."""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager
from threading import Condition, Thread
from typing import Any

import numpy as np
import pytest

from privsyn.owners import sums
from privsyn.owners.network import PRIME, AbsentError, LostError


class CrashError(Exception):
    """The process of an owner ends here."""


class Meeting:
    """Where the owners meet.

    `crash` ends one of them: (party, number of a sum, moment). The moments are "before" it, "kept" (its share
    is on the disk), "alone" (nobody but this owner gets to know the sum), and "after" it. `leaves` says that
    it does not come back, and `silent` whom the others cannot reach any more after the crash.
    """

    def __init__(
        self, owners: int, crash: tuple[int, int, str] | None = None, *, leaves: bool = False, silent=()
    ) -> None:
        self.owners, self.crash, self.leaves, self.silent = owners, crash, leaves, silent
        self.change = Condition()
        self.waiting: dict[int, Wire] = {}
        self.sums = dict.fromkeys(range(owners), 0)
        self.gone: set[int] = set()
        self.opened: list[tuple[tuple[int, ...], list[int]]] = []  # by anybody, with the owners in it

    def crashes(self, party: int, moment: str) -> None:
        if self.crash == (party, self.sums[party], moment):
            self.crash = None
            if self.leaves:
                self.gone |= {party, *self.silent}
            raise CrashError


class Session:
    def __init__(self) -> None:
        self.given: dict[int, dict[int, Any]] = {}
        self.kept: dict[int, set[int]] = {}
        self.shares: dict[int, Any] = {}
        self.lost, self.alone = False, -1


class Wire:
    """In place of `privsyn.owners.network.Connection`."""

    sent = 0

    def __init__(self, meeting: Meeting, party: int, present) -> None:
        self.meeting, self.party, self.present = meeting, party, tuple(present)
        self.session: Session | None = None
        self.step = 0

    def open(self, waiting, seconds):
        meeting, ends = self.meeting, time.monotonic() + min(seconds, 3.0)
        with meeting.change:
            if self.party in meeting.gone:
                raise CrashError
            meeting.waiting[self.party] = self
            meeting.change.notify_all()
            while self.session is None:
                here = {party for party, wire in meeting.waiting.items() if wire.present == self.present}
                if here == set(self.present):
                    session = Session()
                    for party in here:
                        meeting.waiting.pop(party).session = session
                    meeting.change.notify_all()
                    break
                # An owner that is only slow, on a busy machine, is not away if somebody has left.
                missing = [party for party in self.present if party not in meeting.waiting]
                missing = [party for party in missing if party in meeting.gone or not meeting.leaves]
                waiting(missing)
                if missing and time.monotonic() > ends:
                    raise AbsentError(missing)
                meeting.change.wait(0.02)
                if self.party in meeting.gone:
                    raise CrashError

    def sum(self, numbers, keep=None):
        session, meeting = self.session, self.meeting
        meeting.crashes(self.party, "before")
        with meeting.change:
            given = session.given.setdefault(self.step, {})
            given[self.party] = numbers
            step, self.step = self.step, self.step + 1
            meeting.change.notify_all()
            meeting.change.wait_for(lambda: len(given) == len(self.present) or session.lost)
            if len(given) < len(self.present):
                raise LostError
            total = np.array([int(x) % PRIME for x in sum(v.astype(object) for v in given.values())])
        if keep is not None:
            self.keep(session, step, total, keep)
        total = np.where(total > PRIME // 2, total - PRIME, total).astype(np.int64)
        if keep is not None:
            meeting.opened.append((self.present, total.tolist()))
        meeting.crashes(self.party, "alone")
        meeting.crashes(self.party, "after")
        meeting.sums[self.party] += 1
        return total

    def keep(self, session, step, total, keep):
        """Deal a share of the sum, and return when all have kept theirs."""
        meeting, place = self.meeting, self.present.index(self.party) + 1
        with meeting.change:
            degree = (meeting.owners - 1) // 2
            polynomials = session.shares.setdefault(
                step, [[secrets.randbelow(PRIME) for _ in range(degree)] for _ in total]
            )
        keep(
            np.array(
                [
                    (int(value) + sum(c * place ** (power + 1) for power, c in enumerate(terms))) % PRIME
                    for value, terms in zip(total, polynomials, strict=True)
                ],
                np.int64,
            )
        )
        with meeting.change:
            if meeting.crash == (self.party, meeting.sums[self.party], "alone"):
                session.alone = self.party
            try:
                meeting.crashes(self.party, "kept")
            finally:
                meeting.change.notify_all()
            kept = session.kept.setdefault(step, set())
            kept.add(self.party)
            meeting.change.notify_all()
            meeting.change.wait_for(lambda: len(kept) == len(self.present) or session.lost)
            if len(kept) < len(self.present) or session.alone not in (-1, self.party):
                raise LostError

    def close(self):
        with self.meeting.change:
            self.meeting.waiting.pop(self.party, None)
            if self.session is not None:
                self.session.lost = True
            self.meeting.change.notify_all()


@contextmanager
def met(meeting):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "Connection", lambda party, peers, tls, present: Wire(meeting, party, present))
        yield


def together(meeting, owner):
    """Run ``owner(party)`` for all parties, again for one that crashes; return all results or errors.

    The result of one that leaves is None.
    """
    results: dict[int, Any] = {}

    def life(party: int) -> None:
        while party not in results:
            try:
                results[party] = owner(party)
            except CrashError:
                if party in meeting.gone:
                    return
            except Exception as error:
                results[party] = error

    with met(meeting):
        threads = [Thread(target=life, args=(party,)) for party in range(meeting.owners)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    return [results.get(party) for party in range(meeting.owners)]
