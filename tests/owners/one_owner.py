"""One owner as a process of its own, for tests.

shares PARTY PORTS VALUE OUT [TLS]: add two vectors; write what was received.
killed N MOMENT ...: `privsyn owner ...`, whose process ends hard "before" its N-th sum, or when its share of
that sum is "kept"; at the "end" before it compares its model with the others'.
slow SECONDS FILE ...: `privsyn owner ...`, whose sums take so much longer. Once an owner is lost, the first
of the others waits for a file before its next sum.
owner ...: `privsyn owner ...` as it is.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from command import CLUSTER, forkserver


def shares(party: int, ports: list[int], value: int, out: Path, tls: Path | None = None) -> None:
    import pickle

    from privsyn.owners.network import Connection

    wire = Connection(party, [("localhost", port) for port in ports], tls)
    received = {}

    class Recorder(wire._exchanger):
        def data_received(self, data):
            received.setdefault(id(self), (self, bytearray()))[1].extend(data)
            super().data_received(data)

    def refuse(*arguments):
        raise AssertionError("a message was unpickled")

    from mpyc import thresha

    recombine, points = thresha.recombine, []

    def recorded(field, shares, *places):
        points.append([(x, list(map(int, values))) for x, values in shares])
        return recombine(field, shares, *places)

    thresha.recombine = recorded
    wire._exchanger = Recorder
    pickle.loads = refuse
    wire.open(lambda missing: None, 60)
    times = []

    def keep(share):
        time.sleep(2 * (party == 2))
        times.append(time.time())

    total = wire.sum(np.full(4096, value), keep).tolist()
    times.append(time.time())
    again = wire.sum(np.arange(3) * 10**17 - value).tolist()
    assert wire.sent > 0
    wire.close()
    contents = {exchanger.peer_pid: bytes(content).hex() for exchanger, content in received.values()}
    own = dict(points[0])[party + 1]
    seen = {"total": total, "again": again, "received": contents, "own": own, "times": times}
    out.write_text(json.dumps(seen))


def killed(number: int, moment: str, arguments: list[str]) -> None:
    from privsyn.cli.main import main
    from privsyn.owners.network import Connection
    from privsyn.owners.sums import SecureSums

    add, calls = Connection.sum, []

    def die(*arguments):
        os._exit(9)

    def sum_or_die(self, numbers, keep=None):
        calls.append(numbers)
        if len(calls) == number and moment == "before":
            die()

        def keep_and_die(share):
            keep(share)
            die()

        return add(self, numbers, keep_and_die if len(calls) == number and moment == "kept" else keep)

    Connection.sum = sum_or_die
    if moment == "end":
        SecureSums.end = die
    sys.exit(main(arguments))


def slow(seconds: float, file: Path, arguments: list[str]) -> None:
    from privsyn.cli.main import main
    from privsyn.owners.network import Connection

    add = Connection.sum

    def slow_sum(self, numbers, keep=None):
        time.sleep(seconds)
        while self._owner == self._present[0] and list(Path().glob("*.run/lost.*")) and not file.exists():
            time.sleep(0.1)
        return add(self, numbers, keep)

    Connection.sum = slow_sum
    sys.exit(main(arguments))


def begin(words: list[str], folder: Path) -> None:
    """Be an owner in a folder. What is printed goes to `out` and `err` there, with the process's number."""
    os.chdir(folder)
    for stream, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{name}.{os.getpid()}", os.O_WRONLY | os.O_CREAT), stream)
    mode, *rest = words
    if mode == "killed":
        killed(int(rest[0]), rest[1], rest[2:])
    elif mode == "slow":
        slow(float(rest[0]), Path(rest[1]), rest[2:])
    elif mode == "shares":
        shares(int(rest[0]), json.loads(rest[1]), int(rest[2]), *map(Path, rest[3:]))
    else:
        from privsyn.cli.main import main

        sys.exit(main(words))


class Owner:
    """An owner that runs, as `subprocess.Popen` has it; its process has the libraries from the start."""

    def __init__(self, words: list[str], folder: Path) -> None:
        self._folder = folder
        self._process = forkserver(*CLUSTER).Process(target=begin, args=(words, folder))
        self._process.start()

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for its end, and return what it printed."""
        self._process.join(timeout)
        if self.returncode is None:
            raise TimeoutError(timeout)
        out, err = (self._folder / f"{name}.{self._process.pid}" for name in ("out", "err"))
        return out.read_text(), err.read_text()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
