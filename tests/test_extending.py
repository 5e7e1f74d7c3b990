"""The examples of docs/extending.md run, and their registrations end with the test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from privsyn import PrivSyn, Schema, load

PAGE = (Path(__file__).parents[1] / "docs" / "extending.md").read_text()


@pytest.mark.slow
def test_the_examples_on_extending_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert len(blocks) >= 11
    for block in blocks:
        exec(compile(block, "docs/extending.md", "exec"), module.__dict__)  # noqa: S102
    module.school.to_csv(tmp_path / "school.csv", index=False)
    grades = Schema({name: module.Grade() for name in module.school})
    model = PrivSyn(epsilon=5.0, delta=1e-9, schema=grades, seed=0).fit(tmp_path / "school.csv")
    model.save(tmp_path / "school.privsyn")
    assert set(load(tmp_path / "school.privsyn").sample(500)["first"].dropna()) == set("ABCDE")
