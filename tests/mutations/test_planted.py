"""Every planted bug still finds its place, and is code, so that `make mutations` tests what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from mutations.__main__ import ROOT, copy, found, plant
from mutations.edits import edited
from mutations.planted import BUGS, Bug, Edit


@cache
def planted(bug):
    """The texts of the files with a bug in them, by path; no file is changed."""
    texts = {}
    for edit in bug.edits:
        path, name = found(edit.where, ROOT)
        texts[path] = edited(texts.get(path) or path.read_text("utf-8"), name, edit.old, edit.new)
    return texts


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_finds_its_place_and_tests_and_is_code(bug):
    for path, text in planted(bug).items():
        compile(text, path, "exec")
    assert bug.tests
    for test in bug.tests:
        file, _, name = test.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE), test


def test_a_bug_knows_the_names_that_it_uses(tmp_path):
    """A bug that crashes is caught by whatever runs it, and says nothing about the tests."""
    for number, bug in enumerate(BUGS):
        for path, text in planted(bug).items():
            (tmp_path / f"{number}-{path.name}").write_text(text, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=F821", str(tmp_path)]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_two_bugs_have_one_name():
    assert Counter(bug.name for bug in BUGS).most_common(1)[0][1] == 1


SOURCE = "def f(a, b):\n    log(a, to=b)\n    return max(a - 1, 0) < b"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("max(A, B)", "A", "def f(a, b):\n    log(a, to=b)\n    return a - 1 < b"),
        ("A < B", "A <= B", "def f(a, b):\n    log(a, to=b)\n    return max(a - 1, 0) <= b"),
        ("A - 1", "A", "def f(a, b):\n    log(a, to=b)\n    return max(a, 0) < b"),
        ("log(*R, **K)", "", "def f(a, b):\n    return max(a - 1, 0) < b"),
        ("log(A, to=B)", "log(B, A)", "def f(a, b):\n    log(b, a)\n    return max(a - 1, 0) < b"),
        (
            "return A",
            "log(0)\nreturn A",
            "def f(a, b):\n    log(a, to=b)\n    log(0)\n    return max(a - 1, 0) < b",
        ),
    ],
)
def test_a_pattern_is_replaced_whatever_local_names_are(old, new, expected):
    for first, second in (("a", "b"), ("x", "y")):
        source, renamed = (
            re.sub(r"\bb\b", second, re.sub(r"\ba\b", first, text)) for text in (SOURCE, expected)
        )
        assert edited(source, "f", old, new) == renamed


@pytest.mark.parametrize(
    ("name", "old", "times"),
    [
        ("f", "A * B", "found 0 times"),
        ("f", "A + 1", "found 2 times"),
        ("f", "A + A", "found 0"),
        ("g", "A", "no 'g'"),
    ],
)
def test_a_bug_without_one_place_is_an_error(name, old, times):
    with pytest.raises(LookupError, match=times):
        edited("def f(a, b):\n    return (a + 1) - (b + 1)", name, old, "0")


def test_a_body_and_a_class_are_places():
    source = "class C:\n    x = one(1, most=2)\n\n    def f(self):\n        while self.x:\n            log()"
    assert "while False:\n            log()" in edited(source, "C.f", "while A: ...", "while False: ...")
    assert "one(1)" in edited(source, "C", "one(A, most=B)", "one(A)")


def test_a_bug_in_a_linked_tree_leaves_what_it_is_linked_to_as_it_was(tmp_path):
    for name in ("privsyn", "tests"):
        (tmp_path / "clean" / name).mkdir(parents=True)
    for file in ("privsyn/a.py", "tests/b.py", "pyproject.toml"):
        (tmp_path / "clean" / file).write_text("x = 1")
    copy(tmp_path / "linked", tmp_path / "clean", os.link)
    plant(Bug("wrong", (Edit("privsyn.a", "x = A", "x = 2"),), ()), tmp_path / "linked")
    assert (tmp_path / "linked" / "privsyn" / "a.py").read_text() == "x = 2\n"
    assert (tmp_path / "clean" / "privsyn" / "a.py").read_text() == "x = 1"
    assert not (tmp_path / "linked").is_relative_to(Path(ROOT))
