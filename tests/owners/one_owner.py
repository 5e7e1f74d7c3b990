"""One owner as a process of its own, for tests.

python one_owner.py shares PARTY PORTS VALUE OUT [TLS]: add two vectors; write what was received.
python one_owner.py killed ...: `privsyn owner ...`, whose process ends hard in its fifth sum.
"""

from __future__ import annotations

import json
import os
import sys
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
    total = wire.sum(np.full(4096, value)).tolist()
    again = wire.sum(np.arange(3) * 10**17 - value).tolist()
    assert wire.sent > 0
    wire.close()
    contents = {exchanger.peer_pid: bytes(content).hex() for exchanger, content in received.values()}
    own = dict(points[0])[party + 1]
    out.write_text(json.dumps({"total": total, "again": again, "received": contents, "own": own}))


def killed(arguments: list[str]) -> None:
    from privsyn.cli.main import main
    from privsyn.owners.network import Connection

    add, calls = Connection.sum, []

    def sum_or_die(self, numbers):
        calls.append(numbers)
        if len(calls) == 5:
            os._exit(9)
        return add(self, numbers)

    Connection.sum = sum_or_die
    sys.exit(main(arguments))


if __name__ == "__main__":
    mode, *rest = sys.argv[1:]
    if mode == "killed":
        killed(rest)
    else:
        shares(int(rest[0]), json.loads(rest[1]), int(rest[2]), *map(Path, rest[3:]))
