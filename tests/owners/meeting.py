"""Several owners in threads of one process, whose sums are computed in the open, and who may crash."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Condition, Thread
from typing import Any

import pytest

from privsyn.owners import sums
from privsyn.owners.network import AbsentError, LostError


class CrashError(Exception):
    """The process of an owner ends here."""


class Meeting:
    """Where the owners meet. `crash` ends one of them: (party, number of a sum, "before" or "after" it)."""

    def __init__(self, owners: int, crash: tuple[int, int, str] | None = None) -> None:
        self.owners, self.crash = owners, crash
        self.change = Condition()
        self.waiting: dict[int, Wire] = {}
        self.sums = dict.fromkeys(range(owners), 0)

    def crashes(self, party: int, when: str) -> None:
        if self.crash == (party, self.sums[party], when):
            self.crash = None
            raise CrashError


class Session:
    def __init__(self) -> None:
        self.given: dict[int, dict[int, Any]] = {}
        self.lost = False


class Wire:
    """In place of `privsyn.owners.network.Connection`."""

    sent = 0

    def __init__(self, meeting: Meeting, party: int) -> None:
        self.meeting, self.party = meeting, party
        self.session: Session | None = None
        self.step = 0

    def open(self, waiting, seconds):
        meeting = self.meeting
        with meeting.change:
            meeting.waiting[self.party] = self
            waiting([party for party in range(meeting.owners) if party not in meeting.waiting])
            if len(meeting.waiting) == meeting.owners:
                session = Session()
                for wire in meeting.waiting.values():
                    wire.session = session
                meeting.waiting.clear()
                meeting.change.notify_all()
            if not meeting.change.wait_for(lambda: self.session is not None, min(seconds, 1.0)):
                raise AbsentError([p for p in range(meeting.owners) if p not in meeting.waiting])

    def sum(self, numbers):
        session, meeting = self.session, self.meeting
        meeting.crashes(self.party, "before")
        with meeting.change:
            given = session.given.setdefault(self.step, {})
            given[self.party] = numbers
            self.step += 1
            meeting.change.notify_all()
            meeting.change.wait_for(lambda: len(given) == meeting.owners or session.lost)
            if len(given) < meeting.owners:
                raise LostError
        meeting.crashes(self.party, "after")
        meeting.sums[self.party] += 1
        return sum(given.values())

    def close(self):
        with self.meeting.change:
            self.meeting.waiting.pop(self.party, None)
            if self.session is not None:
                self.session.lost = True
            self.meeting.change.notify_all()


@contextmanager
def met(meeting):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sums, "Connection", lambda party, peers, tls: Wire(meeting, party))
        yield


def together(meeting, owner):
    """Run ``owner(party)`` for all parties, again for one that crashes; return all results or errors."""
    results: dict[int, Any] = {}

    def life(party: int) -> None:
        while party not in results:
            try:
                results[party] = owner(party)
            except CrashError:
                continue
            except Exception as error:
                results[party] = error

    with met(meeting):
        threads = [Thread(target=life, args=(party,)) for party in range(meeting.owners)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    return [results.get(party) for party in range(meeting.owners)]
