"""Secure sums over a network, by MPyC: Shamir's secret sharing over a prime field, with an honest majority.

MPyC sends Python objects with `pickle` in some of its functions, which lets a peer run code here. None of
them is used, and they fail here: everything that is sent is a vector of field elements.
"""

from __future__ import annotations

import asyncio
import copy
import socket
import ssl
import struct
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from privsyn.errors import InputError, replace_errors
from privsyn.marginals.domain import Ints

PRIME = 2**61 - 1
"""Size of the field. Sums between -2^60 and 2^60 are exact; others would wrap, which costs no privacy."""

POLL = 0.1  # seconds between two looks at the connections
GRACE = 10  # looks at what somebody sent who has left, before the sum is given up
DRAIN = 5.0  # seconds that the last messages may take when a connection is closed
KNOCK = 1.0  # seconds between two attempts to tell an owner that the others go on without it

HELLO = struct.Struct("<HQ")
"""What an owner says first to one that it calls: its place, and the set of owners of this connection."""

WELCOME, LATER, TOO_LATE = b"+", b"?", b"-"
"""What the owner that is called answers: the sets are equal; try again; or the caller is not in the set."""

Keep = Callable[[Ints], None]
"""Writes this owner's Shamir share of a sum to its disk."""

A = TypeVar("A")


class LostError(Exception):
    """The connection to another owner was lost."""


class AbsentError(LostError):
    """Other owners could not be reached in time."""

    def __init__(self, owners: list[int]) -> None:
        super().__init__()
        self.owners = owners


class TooLateError(InputError):
    """The other owners go on without this one."""

    def __init__(self, party: int) -> None:
        super().__init__(
            f"owner {party} is too late: it was away for longer than --give-up-after allows. The others go on"
            " without its rows, and it cannot join this run again"
        )


class Connection:
    """Connections to all other owners. Made again, all of them, if one is lost.

    Parameters
    ----------
    party : int
        This owner's place among the peers, from 0.
    peers : sequence of (host, port)
        All owners of the run.
    tls : Path, optional
        A folder with `ca.crt`, `owner.crt` and `owner.key`.
    present : sequence of int, optional
        The places of the owners who have not been given up. Default: all.
    """

    def __init__(
        self,
        party: int,
        peers: Sequence[tuple[str, int]],
        tls: Path | None,
        present: Sequence[int] | None = None,
    ) -> None:
        self._owner, self._tls = party, tls
        self._present = list(range(len(peers)) if present is None else present)
        self._peers = [peers[owner] for owner in self._present]
        self._absent = {owner: peer for owner, peer in enumerate(peers) if owner not in self._present}
        self._party, self._mask = self._present.index(party), sum(1 << owner for owner in self._present)
        self._is_too_late, self._knocked = False, -KNOCK
        with suppress(RuntimeError):
            asyncio.get_running_loop()
            raise InputError(
                "several owners need a program of their own, not a notebook: run `privsyn owner`"
            )
        self._loop = asyncio.new_event_loop()
        asyncio.set_event_loop(self._loop)
        mpyc = _imported()
        options = copy.copy(mpyc.runtime.mpc.options)
        options.threshold = (len(peers) - 1) // 2
        options.no_async = False  # MPyC sets it when it is imported for one party
        options.no_prss = options.no_log = options.mix32_64bit = True  # the last: field elements as bytes
        parties = [mpyc.runtime.Party(number, *peer) for number, peer in enumerate(self._peers)]
        self._mpc = mpyc.runtime.Runtime(self._party, parties, options)
        for module in (mpyc.asyncoro, mpyc.sectypes, mpyc.mpctools):
            module.runtime = self._mpc
        self._exchanger = _greeting(mpyc.asyncoro.MessageExchanger, self)
        # A lost peer ends tasks of MPyC, which would be printed; `_run` notices the loss itself.
        self._loop.set_exception_handler(lambda loop, context: None)
        # MPyC forgets a peer who leaves, and with it what this peer sent before.
        self._mpc.unset_protocol = lambda owner: None

    def open(self, waiting: Callable[[list[int]], None], seconds: float) -> None:
        """Connect to all others; report for whom this owner waits.

        Raises
        ------
        LostError
            If somebody was there and left, or (an `AbsentError`) is not there in time.
        TooLateError
            If the others go on without this owner.
        """
        ends = time.monotonic() + seconds
        task = self._loop.create_task(self._connect())
        seen: set[int] = set()
        while not task.done():
            self._loop.run_until_complete(asyncio.wait({task}, timeout=POLL))
            if self._is_too_late:
                raise TooLateError(self._owner)
            self._tell()
            missing = self.missing()
            waiting(missing)
            lost = seen.intersection(missing)
            seen = {owner for owner in self._present if owner not in missing}
            if lost:
                raise LostError
            if missing and time.monotonic() > ends:
                raise AbsentError(missing)
        advice = "choose a free one, or end the other run"
        port = self._peers[self._party][1]
        with replace_errors(
            lambda error: f"port {port} cannot be used ({type(error).__name__}): {advice}", OSError
        ):
            task.result()
        if self.missing():
            raise LostError

    async def _connect(self) -> None:
        """Listen for the owners before this one, and connect to those after it.

        The first owner listens too, if its port is free: somebody may tell it that it is too late.
        """
        mpc, server = self._mpc, None
        for peer in mpc.parties:
            peer.protocol = self._loop.create_future() if peer.pid == self._party else None
        try:
            host, port = self._peers[self._party]
            # None is every interface.
            interface = host if host in ("localhost", "127.0.0.1", "::1") else None
            with suppress(*(() if self._party else (OSError,))):
                server = await self._loop.create_server(
                    lambda: self._exchanger(mpc), interface, port, ssl=_context(self._tls, server=True)
                )
            await asyncio.gather(*map(self._reach, mpc.parties[self._party + 1 :]))
            await mpc.parties[self._party].protocol
        finally:
            if server is not None:
                server.close()
        for peer in mpc.parties:
            if peer.pid != self._party and peer.protocol is not None:
                wire = peer.protocol.transport.get_extra_info("socket")
                wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                # So that it is noticed within a minute that the machine of a peer is gone.
                for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
                    if hasattr(socket, option):
                        wire.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
                self._check_name(peer)

    async def _reach(self, peer: Any) -> None:
        while peer.protocol is None:
            with suppress(OSError):  # it does not listen yet
                _, exchanger = await self._loop.create_connection(
                    lambda: self._exchanger(self._mpc, peer.pid),
                    peer.host,
                    peer.port,
                    **self._security(self._present[peer.pid]),
                )
                await exchanger.answered
            if peer.protocol is None:
                await asyncio.sleep(POLL)

    def _security(self, owner: int) -> dict[str, Any]:
        """Return how a connection to another owner is encrypted, for asyncio."""
        name = None if self._tls is None else _name(owner)
        return {"ssl": _context(self._tls, server=False), "server_hostname": name}

    def hello(self) -> bytes:
        """Return what this owner says first to one that it calls."""
        return HELLO.pack(self._owner, self._mask)

    def answer(self, hello: bytes, transport: Any) -> bytes:
        """Return the answer to an owner that calls, and notice if its set is without this owner."""
        caller, mask = HELLO.unpack(hello)
        if not mask >> self._owner & 1:
            self._is_too_late |= self._has_name(transport, caller)
            return LATER
        if caller not in self._present:
            return TOO_LATE
        return WELCOME if mask == self._mask else LATER

    def take(self, answer: bytes) -> None:
        """Take the answer of an owner that this one called."""
        self._is_too_late |= answer == TOO_LATE

    def _tell(self) -> None:
        """Tell the owners who were given up that they are too late, if they listen."""
        if time.monotonic() - self._knocked > KNOCK:
            self._knocked = time.monotonic()
            self._knocks = [self._loop.create_task(self._knock(owner)) for owner in self._absent]

    async def _knock(self, owner: int) -> None:
        with suppress(OSError):  # it is away
            async with asyncio.timeout(KNOCK):
                _, writer = await asyncio.open_connection(*self._absent[owner], **self._security(owner))
                writer.write(self.hello())
                await writer.drain()
                writer.close()
                await writer.wait_closed()

    def _check_name(self, peer: Any) -> None:
        """Refuse a peer whose certificate names another owner."""
        owner = self._present[peer.pid]
        if not self._has_name(peer.protocol.transport, owner):
            raise InputError(f"owner {owner}: its certificate does not name {_name(owner)}")

    def _has_name(self, transport: Any, owner: int) -> bool:
        """Return whether a certificate names this owner; without certificates, addresses are trusted."""
        names = (transport.get_extra_info("peercert") or {}).get("subjectAltName", ())
        return self._tls is None or ("DNS", _name(owner)) in names

    def missing(self) -> list[int]:
        """Return the owners to whom there is no connection now."""
        return [
            self._present[peer.pid]
            for peer in self._mpc.parties
            if peer.pid != self._party and (peer.protocol is None or peer.protocol.transport.is_closing())
        ]

    def sum(self, numbers: Ints, keep: Keep | None = None) -> Ints:
        """Return the sum of all owners' vectors, of equal length. Nothing else is learnt, by a minority.

        With `keep`, nobody shows its share of the sum before all have written theirs to their disks. So once
        anybody may know the sum, those who remain can open it without an owner who is lost.

        Parameters
        ----------
        numbers : array of shape (length,)
        keep : callable, optional
            Is given this owner's share: a point of a random polynomial whose value at 0 is the sum.

        Raises
        ------
        LostError
            If a connection is lost before the sum is known.
        """
        return self._run(self._sum(numbers, keep))

    async def _sum(self, numbers: Ints, keep: Keep | None) -> Ints:
        field = self._mpc.SecFld(PRIME)

        def dealt(vector: Ints) -> Any:
            return self._mpc.input(field.array(field.field.array(vector.astype(object))))

        first, *further = dealt(numbers)
        for array in further:
            first = first + array
        if keep is not None:
            share = await self._mpc.gather(first)
            with replace_errors("a share of a sum cannot be written: is the disk full?", OSError):
                keep(np.array([int(number) for number in share.value.ravel()], np.int64))
            # Each owner sends this after keeping its own
            await self._mpc.gather(dealt(np.zeros(1, np.int64)))
        opened = await self._mpc.output(first)
        while self._unsent():  # what is left in a buffer is sent only while this loop runs
            await asyncio.sleep(0)
        total = np.array([int(number) for number in opened.value.ravel()], np.int64)
        return np.where(total > PRIME // 2, total - PRIME, total)

    def _run(self, work: Coroutine[Any, Any, A]) -> A:
        task = self._loop.create_task(work)
        looks = 0  # since somebody left, maybe after sending all that is needed here
        try:
            while not task.done():
                if looks > GRACE:
                    raise LostError
                self._tell()
                self._loop.run_until_complete(asyncio.wait({task}, timeout=POLL))
                looks += bool(self.missing())
            return task.result()
        except (AttributeError, OSError, RuntimeError):  # MPyC met a connection that was gone
            raise LostError from None

    @property
    def sent(self) -> int:
        """Bytes sent so far."""
        protocols = (peer.protocol for peer in self._mpc.parties if peer.pid != self._party)
        return sum(protocol.nbytes_sent for protocol in protocols if protocol is not None)

    def close(self) -> None:
        """Send what is left, and close all connections."""
        self._loop.run_until_complete(self._close())
        self._loop.close()
        asyncio.set_event_loop(None)

    async def _close(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for peer in self._mpc.parties:
            if peer.pid != self._party and peer.protocol is not None:
                peer.protocol.close_connection()
        ends = time.monotonic() + DRAIN
        while self._unsent() and time.monotonic() < ends:
            await asyncio.sleep(POLL / 10)
        # A closed transport lets go of its socket in the next turn of the loop
        await asyncio.sleep(POLL / 10)

    def _unsent(self) -> int:
        protocols = [peer.protocol for peer in self._mpc.parties if peer.pid != self._party]
        wires = [protocol.transport for protocol in protocols if protocol is not None]
        return sum(wire.get_write_buffer_size() for wire in wires if not wire.is_closing())


def _imported() -> Any:
    """Import MPyC, which reads the command line and sets up its log when it is imported."""
    before, sys.argv = sys.argv, [*sys.argv[:1], "--no-log", "--no-prss"]
    try:
        import mpyc.runtime
    except ImportError:
        raise InputError("several owners need MPyC: pip install 'privsyn[owners]'") from None
    finally:
        sys.argv = before
    mpyc.runtime.pickle = None  # a version that ignores `mix32_64bit` fails, and runs no code of a peer
    return mpyc


def _greeting(exchanger: Any, connection: Connection) -> Any:
    """Return MPyC's exchanger of messages, which first compares the sets of owners of both sides."""

    class Greeting(exchanger):  # type: ignore[misc]
        def __init__(self, runtime: Any, number: int | None = None) -> None:
            super().__init__(runtime, number)
            self.calls, self.is_welcome, self.head = number is not None, False, bytearray()
            self.answered = asyncio.get_running_loop().create_future()

        def connection_made(self, transport: Any) -> None:
            self.transport = transport
            if self.calls:
                transport.write(connection.hello())

        def data_received(self, data: bytes) -> None:
            if self.is_welcome:
                super().data_received(data)
                return
            self.head.extend(data)
            size = len(WELCOME) if self.calls else HELLO.size
            if len(self.head) < size:
                return
            head, rest = bytes(self.head[:size]), bytes(self.head[size:])
            answer = head if self.calls else connection.answer(head, self.transport)
            if self.calls:
                connection.take(answer)
            else:
                self.transport.write(answer)
            if answer == WELCOME:
                self.is_welcome = True
                if self.calls:
                    super().connection_made(self.transport)
                super().data_received(rest)
            else:
                self.transport.close()
            self._end_greeting()

        def connection_lost(self, error: Exception | None) -> None:
            self._end_greeting()
            if self.is_welcome:
                super().connection_lost(error)

        def _end_greeting(self) -> None:
            if not self.answered.done():
                self.answered.set_result(None)

    return Greeting


def _name(party: int) -> str:
    return f"owner-{party}"


def _context(tls: Path | None, *, server: bool) -> ssl.SSLContext | None:
    if tls is None:
        return None
    with replace_errors(f"{tls}: needs ca.crt, owner.crt and owner.key, as docs/owners.md makes them"):
        purpose = ssl.Purpose.CLIENT_AUTH if server else ssl.Purpose.SERVER_AUTH
        context = ssl.create_default_context(purpose, cafile=tls / "ca.crt")
        context.load_cert_chain(tls / "owner.crt", tls / "owner.key")
        context.verify_mode = ssl.CERT_REQUIRED
        return context
