"""Three owners as processes that speak over TCP: the command, a killed owner, what one of them receives."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from owners.one_owner import Owner
from owners.test_rounds import table
from scipy.stats import chi2

from privsyn import load
from privsyn.errors import plural
from privsyn.owners.network import HELLO, PRIME, WELCOME
from privsyn.owners.owners import GIVEN_UP

pytest.importorskip("mpyc")

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), "OPENBLAS_NUM_THREADS": "1"}
SECONDS = 150

SCHEMA = """\
columns:
  sex: {kind: categorical, values: [F, M]}
  age: {kind: numerical, low: 0, high: 9, integer: true}
  job: {kind: categorical, values: [a, b, c]}
"""


def free_ports():
    """Ports that nobody listens on now."""
    wires = [socket.create_server(("localhost", 0)) for _ in range(3)]
    ports = [wire.getsockname()[1] for wire in wires]
    for wire in wires:
        wire.close()
    return ports


@pytest.fixture
def start(tmp_path):
    """Starts a process; none is left after the test."""
    started = []

    def begin(*words):
        started.append(Owner([*map(str, words)], tmp_path))
        return started[-1]

    yield begin
    for owner in started:
        owner.kill()


@pytest.fixture
def commands(tmp_path):
    (tmp_path / "schema.yaml").write_text(SCHEMA)
    peers = ",".join(f"localhost:{port}" for port in free_ports())
    for party in range(3):
        table(party, 200 + 300 * party).drop(columns="who").to_csv(tmp_path / f"{party}.csv", index=False)

    def command(party, *further):
        words = f"owner {party}.csv --schema schema.yaml --epsilon 1 --party {party} --peers {peers}"
        return [*words.split(), "--model", f"{party}.privsyn", "--patience", str(SECONDS), *further]

    return command


@pytest.mark.slow
def test_an_owner_that_is_killed_and_started_again_gets_the_model_of_the_others(commands, start, tmp_path):
    others = [start(*commands(party)) for party in (0, 2)]
    killed = start("killed", 5, "before", *commands(1))
    killed.communicate(timeout=SECONDS)
    assert killed.returncode == 9
    assert not (tmp_path / "1.privsyn").exists()
    sent = (tmp_path / "1.privsyn.run" / "000000.noisy").read_bytes()
    time.sleep(2)  # the others look at their connections ten times a second, and miss it
    again = start(*commands(1))
    said = ""
    for process in (again, *others):
        said += process.communicate(timeout=SECONDS)[1]
        assert process.returncode == 0, said
    assert re.search("waiting for .*owner 1 at localhost", said)
    assert "Traceback" not in said
    assert (tmp_path / "1.privsyn.run" / "000000.noisy").read_bytes() == sent
    assert len({(tmp_path / f"{party}.privsyn").read_bytes() for party in range(3)}) == 1
    assert len(load(tmp_path / "0.privsyn").sample(50, seed=0)) == 50


@pytest.mark.slow("each case")
@pytest.mark.parametrize(
    ("party", "number", "moment", "answers"), [(1, 7, "kept", 2), (0, 6, "before", 1), (2, 0, "end", None)]
)
def test_the_others_go_on_without_an_owner_that_is_killed_and_tell_it_that_it_is_too_late(
    party, number, moment, answers, commands, start, tmp_path
):
    """In round two with its share on the disk, before it, and after the last round."""
    give_up = ("--give-up-after", "2")
    remain = [owner for owner in range(3) if owner != party]
    others = [start("slow", 0.1, "told", *commands(owner, *give_up)) for owner in remain]
    killed = start("killed", number, moment, *commands(party, *give_up))
    killed.communicate(timeout=SECONDS)
    assert killed.returncode == 9
    sent = {place.name: place.read_bytes() for place in (tmp_path / f"{party}.privsyn.run").glob("*.noisy")}
    if answers is not None:
        ends = time.monotonic() + SECONDS
        while not list(tmp_path.glob("*.run/lost.*")):
            assert time.monotonic() < ends
            time.sleep(0.1)
        late = start(*commands(party, *give_up))
        _, said = late.communicate(timeout=SECONDS)
        assert late.returncode == 2
        assert f"owner {party} is too late" in said.splitlines()[-1]
        assert "Traceback" not in said
    (tmp_path / "told").touch()
    for process in others:
        out, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, said
        assert (GIVEN_UP in out) == (answers is not None)
        assert f"going on without owner {party} at localhost" in said
    models = {(tmp_path / f"{owner}.privsyn").read_bytes() for owner in remain}
    assert len(models) == 1
    facts = load(tmp_path / f"{remain[0]}.privsyn").ledger.public_inputs
    lost = [fact for fact in facts if "was given up" in fact]
    if answers is None:
        assert not lost
        return
    assert f"owner {party} {GIVEN_UP} {plural(answers, 'answer')}" in "".join(lost)
    assert all((tmp_path / f"{party}.privsyn.run" / name).read_bytes() == old for name, old in sent.items())


def certificates(folder):
    """Write a folder for each owner, as docs/owners.md does, with keys that take less time to make."""
    key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
    lines = [f"req -x509 {key} -keyout ca.key -out ca.crt -subj /CN=study"]
    for party in range(3):
        tls = folder / f"tls-{party}"
        tls.mkdir()
        (folder / f"{party}.ext").write_text(f"subjectAltName=DNS:owner-{party}")
        lines.append(f"req {key} -keyout {tls}/owner.key -out {party}.csr -subj /CN=owner-{party}")
        lines.append(
            f"x509 -req -in {party}.csr -CA ca.crt -CAkey ca.key -CAcreateserial -extfile {party}.ext"
            f" -out {tls}/owner.crt"
        )
    for line in lines:
        subprocess.run(["openssl", *line.split()], cwd=folder, check=True, capture_output=True)
    for party in range(3):
        shutil.copy(folder / "ca.crt", folder / f"tls-{party}")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")
def test_an_owner_cannot_pose_as_another_with_a_certificate_of_its_own(start, tmp_path):
    """Somebody calls the others as owner 0, and has the certificate and the key of owner 1."""
    certificates(tmp_path)
    ports = json.dumps(free_ports())
    _, *others = (
        start("shares", party, ports, party, f"{party}.json", f"tls-{place}")
        for party, place in enumerate((1, 1, 2))
    )
    for process in others:
        _, said = process.communicate(timeout=SECONDS)
        assert "owner 0: its certificate does not name owner-0" in said
    assert not list(tmp_path.glob("*.json"))


def messages(content):
    """The payloads in the bytes that came from a peer; one who called sent a greeting and its place first."""
    content = bytes.fromhex(content)
    for begin in (len(WELCOME), HELLO.size + 2):
        place, found = begin, []
        while place + 12 <= len(content):
            _, size = struct.unpack_from("<qI", content, place)
            found.append(content[place + 12 : place + 12 + size])
            place += 12 + size
        if place == len(content):
            return found
    raise AssertionError


def numbers(payload):
    """The field elements in a message, of eight bytes each."""
    return np.frombuffer(payload, "<u8").astype(object)


@pytest.mark.slow
def test_what_one_owner_receives_is_uniform_besides_the_sum_and_never_unpickled(start, tmp_path):
    """Owner 0 receives a share of each other's vector, here all 7 or all 10^9, and a share of the sum.

    The former are uniform (probability of a failure by chance: 4e-7). The latter follows from the sum and
    from owner 0's own share of it: three points on a line. So neither shows anything but the sum.
    """
    ports = json.dumps(free_ports())
    values = (0, 7, 10**9)
    places = [tmp_path / f"{party}.json" for party in range(3)]
    parties = [start("shares", party, ports, values[party], places[party]) for party in range(3)]
    for process in parties:
        _, said = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, said
    seen = [json.loads(place.read_text()) for place in places]
    for owner in seen:
        assert owner["total"] == [sum(values)] * 4096
        assert owner["again"] == [3 * k * 10**17 - sum(values) for k in range(3)]
    last_kept = max(owner["times"][0] for owner in seen)
    assert all(owner["times"][1] > last_kept for owner in seen)  # nobody knows the sum before that
    opened = []
    for peer in ("1", "2"):
        vectors = [v for v in map(numbers, messages(seen[0]["received"][peer])) if len(v) == 4096]
        share, *of_the_sum = vectors
        opened += of_the_sum
        counts = np.histogram(share.astype(float) / PRIME, bins=64, range=(0, 1))[0]
        statistic = ((counts - 64) ** 2 / 64).sum()
        assert 1e-7 < chi2.sf(statistic, 63) < 1 - 1e-7
        assert len(set(share)) == 4096
    (of_owner_2,) = opened
    own, total = np.array(seen[0]["own"], object), sum(values)  # at x = 1 and x = 0; owner 2 is at x = 3
    assert np.array_equal(of_owner_2, (total + 3 * (own - total)) % PRIME)
