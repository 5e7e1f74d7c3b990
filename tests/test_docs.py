"""The pages that a data protection officer reads point to code, tests and pages that are there."""

from __future__ import annotations

import importlib
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROOFS = (ROOT / "docs" / "proofs.md").read_text()


@pytest.mark.parametrize(("name", "file"), re.findall(r"`([\w.]+)` in\s+`([\w/]+)\.py`", PROOFS))
def test_a_proof_points_to_code_that_is_there(name, file):
    thing = importlib.import_module("privsyn." + file.replace("/", "."))
    for part in name.split("."):
        thing = getattr(thing, part)


@pytest.mark.parametrize("page", ["proofs", "adoption"])
def test_a_page_names_tests_that_are_there(page):
    tests = "".join(path.read_text() for path in ROOT.glob("tests/**/test_*.py"))
    named = re.findall(r"`(test_\w+)`", (ROOT / "docs" / f"{page}.md").read_text())
    assert named
    assert [name for name in named if f"def {name}(" not in tests] == []


def test_the_page_for_adopters_names_fields_that_ledgers_have():
    page = (ROOT / "docs" / "adoption.md").read_text()
    schema = json.loads((ROOT / "privsyn" / "private" / "ledger.schema.json").read_text())
    named = {name for text in re.findall(r"ledger: ([^;|]*)", page) for name in re.findall(r"`(\w+)`", text)}
    assert len(named) > 5
    assert named <= schema["properties"].keys()
