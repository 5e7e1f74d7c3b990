"""The example of docs/owners.md: three collectors and two contributors on one machine."""

from __future__ import annotations

import pytest
from owners.test_page import STUDY, run

from privsyn import load

pytest.importorskip("cryptography")


@pytest.mark.slow
def test_three_collectors_on_one_machine_get_the_same_model(tmp_path):
    done = run(STUDY, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the study has begun; publish its fingerprint" in done.stdout
    public = load(tmp_path / "0.privsyn").ledger.public_inputs
    assert any("at least 2 of the 3 collectors" in fact for fact in public)
