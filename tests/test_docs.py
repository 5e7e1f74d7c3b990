"""The pages that a data protection officer reads point to code, tests and pages that are there."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / name
    for name in (
        "SECURITY.md",
        "docs/privacy.md",
        "docs/proofs.md",
        "docs/audit.md",
        "docs/schema.md",
        "docs/constraints.md",
    )
]
PROOFS = (ROOT / "docs" / "proofs.md").read_text()


@pytest.mark.parametrize(("name", "file"), re.findall(r"`([\w.]+)` in\s+`([\w/]+)\.py`", PROOFS))
def test_a_proof_points_to_code_that_is_there(name, file):
    thing = importlib.import_module("privsyn." + file.replace("/", "."))
    for part in name.split("."):
        thing = getattr(thing, part)


def test_a_proof_names_tests_that_are_there():
    tests = "".join(path.read_text() for path in ROOT.glob("tests/test_*.py"))
    named = re.findall(r"`(test_\w+)`", PROOFS)
    assert named
    assert all(f"def {name}(" in tests for name in named)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / link).exists(), link


def test_the_examples_on_constraints_run():
    failed, run = doctest.testfile(str(ROOT / "docs" / "constraints.md"), module_relative=False)
    assert run > 20
    assert not failed
