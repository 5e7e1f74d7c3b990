"""What docs/owners.md runs: three owners on one machine, certificates for them, and an example.

Its third script is in tests/collectors/test_page.py. A fourth one fails here, and then needs a test.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from owners.test_processes import ENVIRONMENT, SECONDS, free_ports, start  # noqa: F401

from privsyn import load

pytest.importorskip("mpyc")

PAGE = (Path(__file__).parents[2] / "docs" / "owners.md").read_text()
EXAMPLE, CERTIFICATES, STUDY = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)


def run(text, folder):
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    bash = ["bash", "-euo", "pipefail", "-c", text]
    return subprocess.run(
        bash, cwd=folder, env=ENVIRONMENT | {"PATH": path}, capture_output=True, text=True, timeout=SECONDS
    )


@pytest.mark.slow
def test_three_owners_on_one_machine_get_the_same_model(tmp_path):
    text = EXAMPLE
    for port, free in zip(("7000", "7001", "7002"), map(str, free_ports()), strict=True):
        text = text.replace(f"localhost:{port}", f"localhost:{free}")
    done = run(text, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "sent 0.0 MB to the other owners" in done.stderr
    assert "1.csv.budget.jsonl: spent on this table so far: epsilon 1" in done.stdout
    public = load(tmp_path / "0.privsyn").ledger.public_inputs
    for fact in ("that at least 2 of the 3 owners", "the owners sent, which was not encrypted"):
        assert any(fact in sentence for sentence in public)
    assert "smokes,age" in (tmp_path / "together.csv").read_text().splitlines()[0]


def test_the_python_example_needs_no_network_before_fit():
    (text,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, object] = {}
    exec(text.replace(', schema="schema.yaml"', ""), names)  # noqa: S102
    assert names["north"].trusted == 2


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make certificates with")
def test_owners_with_certificates_connect_and_only_under_their_own_names(start, tmp_path):  # noqa: F811
    done = run(CERTIFICATES, tmp_path)
    assert done.returncode == 0, done.stderr
    for places, good in (((0, 1, 2), True), ((0, 2, 1), False)):
        ports = json.dumps(free_ports())
        processes = [
            start("shares", party, ports, party, f"{party}.json", f"tls-{place}")
            for party, place in enumerate(places)
        ]
        if good:
            for process in processes:
                _, said = process.communicate(timeout=SECONDS)
                assert process.returncode == 0, said
            assert json.loads((tmp_path / "0.json").read_text())["total"][0] == 3
        else:  # owner 0 finds another owner behind an address, and waits for the right one
            with pytest.raises(TimeoutError):
                processes[0].communicate(timeout=4)
