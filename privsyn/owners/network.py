"""Secure sums over a network, by MPyC: Shamir's secret sharing over a prime field, with an honest majority.

MPyC sends Python objects with `pickle` in some of its functions, which lets a peer run code here. None of
them is used, and they fail here: everything that is sent is a vector of field elements.
"""

from __future__ import annotations

import asyncio
import copy
import socket
import ssl
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

A = TypeVar("A")


class LostError(Exception):
    """The connection to another owner was lost."""


class AbsentError(LostError):
    """Other owners could not be reached in time."""

    def __init__(self, owners: list[int]) -> None:
        super().__init__()
        self.owners = owners


class Connection:
    """Connections to all other owners. Made again, all of them, if one is lost.

    Parameters
    ----------
    party : int
        This owner's place among the peers, from 0.
    peers : sequence of (host, port)
    tls : Path, optional
        A folder with `ca.crt`, `owner.crt` and `owner.key`.
    """

    def __init__(self, party: int, peers: Sequence[tuple[str, int]], tls: Path | None) -> None:
        self._party, self._peers, self._tls = party, peers, tls
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
        parties = [mpyc.runtime.Party(owner, *peer) for owner, peer in enumerate(peers)]
        self._mpc = mpyc.runtime.Runtime(party, parties, options)
        for module in (mpyc.asyncoro, mpyc.sectypes, mpyc.mpctools):
            module.runtime = self._mpc
        self._exchanger = mpyc.asyncoro.MessageExchanger
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
        """
        ends = time.monotonic() + seconds
        task = self._loop.create_task(self._connect())
        seen: set[int] = set()
        while not task.done():
            self._loop.run_until_complete(asyncio.wait({task}, timeout=POLL))
            missing = self.missing()
            waiting(missing)
            lost = seen.intersection(missing)
            seen = {owner for owner in range(len(self._peers)) if owner not in missing}
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
        """Listen for the owners before this one, and connect to those after it."""
        mpc, server = self._mpc, None
        for peer in mpc.parties:
            peer.protocol = self._loop.create_future() if peer.pid == self._party else None
        try:
            if self._party:
                host, port = self._peers[self._party]
                # None is every interface.
                interface = host if host in ("localhost", "127.0.0.1", "::1") else None
                server = await self._loop.create_server(
                    lambda: self._exchanger(mpc), interface, port, ssl=_context(self._tls, server=True)
                )
            for peer in mpc.parties[self._party + 1 :]:
                await self._reach(peer)
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
        name = None if self._tls is None else _name(peer.pid)
        while peer.protocol is None:
            context = _context(self._tls, server=False)
            with suppress(OSError):  # it does not listen yet
                await self._loop.create_connection(
                    lambda: self._exchanger(self._mpc, peer.pid),
                    peer.host,
                    peer.port,
                    ssl=context,
                    server_hostname=name,
                )
                return
            await asyncio.sleep(POLL)

    def _check_name(self, peer: Any) -> None:
        """Refuse a peer whose certificate names another owner."""
        if self._tls is None:
            return
        names = (peer.protocol.transport.get_extra_info("peercert") or {}).get("subjectAltName", ())
        if ("DNS", _name(peer.pid)) not in names:
            raise InputError(f"owner {peer.pid}: its certificate does not name {_name(peer.pid)}")

    def missing(self) -> list[int]:
        """Return the owners to whom there is no connection now."""
        return [
            peer.pid
            for peer in self._mpc.parties
            if peer.pid != self._party and (peer.protocol is None or peer.protocol.transport.is_closing())
        ]

    def sum(self, numbers: Ints) -> Ints:
        """Return the sum of all owners' vectors, of equal length. Nothing else is learnt, by a minority.

        Raises
        ------
        LostError
            If a connection is lost before the sum is known.
        """
        return self._run(self._sum(numbers))

    async def _sum(self, numbers: Ints) -> Ints:
        field = self._mpc.SecFld(PRIME)
        shared = field.array(field.field.array(numbers.astype(object)))
        first, *further = self._mpc.input(shared)
        for array in further:
            first = first + array
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
        await asyncio.sleep(
            POLL / 10
        )  # a closed transport lets go of its socket in the next turn of the loop

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
