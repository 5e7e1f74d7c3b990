"""One owner as a process of its own, for tests.

python one_owner.py shares PARTY PORTS VALUE OUT [TLS]: add two vectors; write what was received.
python one_owner.py killed N MOMENT ...: `privsyn owner ...`, whose process ends hard "before" its N-th sum,
or when its share of that sum is "kept"; at the "end" before it compares its model with the others'.
python one_owner.py slow SECONDS FILE ...: `privsyn owner ...`, whose sums take so much longer. Once an owner
is lost, the first of the others waits for a file before its next sum.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

import numpy as np


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


if __name__ == "__main__":
    mode, *rest = sys.argv[1:]
    if mode == "killed":
        killed(int(rest[0]), rest[1], rest[2:])
    elif mode == "slow":
        slow(float(rest[0]), Path(rest[1]), rest[2:])
    else:
        shares(int(rest[0]), json.loads(rest[1]), int(rest[2]), *map(Path, rest[3:]))
