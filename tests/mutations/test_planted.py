"""Every planted bug still finds its place, and is code, so that `make mutations` tests what it says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mutations.__main__ import ROOT, copy, plant
from mutations.planted import BUGS, Bug, Edit


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("trees") / "copy"
    copy(root)
    return root


def planted(bug, tree):
    """The texts of the files with a bug in them, by name; the tree is left as it was."""
    before = {edit.file: (tree / edit.file).read_text() for edit in bug.edits}
    plant(bug, tree)
    after = {file: (tree / file).read_text() for file in before}
    for file, text in before.items():
        (tree / file).write_text(text)
    return after


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_finds_its_place_and_is_code(bug, tree):
    for file, text in planted(bug, tree).items():
        assert text != (tree / file).read_text()
        compile(text, file, "exec")


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_tests_of_a_bug_are_there(bug):
    assert bug.tests
    for test in bug.tests:
        file, _, name = test.partition("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), test


def test_a_bug_knows_the_names_that_it_uses(tree, tmp_path):
    """A bug that crashes is caught by whatever runs it, and says nothing about the tests."""
    for number, bug in enumerate(BUGS):
        for file, text in planted(bug, tree).items():
            (tmp_path / f"{number}-{Path(file).name}").write_text(text, encoding="utf-8")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=F821", str(tmp_path)]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_no_two_bugs_have_one_name():
    assert Counter(bug.name for bug in BUGS).most_common(1)[0][1] == 1


def test_a_bug_without_a_place_is_an_error(tree):
    with pytest.raises(LookupError, match="found 0 times"):
        plant(Bug("none", (Edit("privsyn/errors.py", "no such text", ""),), ()), tree)


def test_the_tree_itself_is_never_touched(tree):
    assert not tree.is_relative_to(ROOT)
    assert Path(ROOT, "privsyn").samefile(Path(__file__).parents[2] / "privsyn")


def test_a_bug_in_a_linked_tree_leaves_what_it_is_linked_to_as_it_was(tmp_path):
    for name in ("privsyn", "tests"):
        (tmp_path / "clean" / name).mkdir(parents=True)
    for file in ("privsyn/a.py", "tests/b.py", "pyproject.toml"):
        (tmp_path / "clean" / file).write_text("right")
    copy(tmp_path / "linked", tmp_path / "clean", os.link)
    plant(Bug("wrong", (Edit("privsyn/a.py", "right", "wrong"),), ()), tmp_path / "linked")
    assert (tmp_path / "linked" / "privsyn" / "a.py").read_text() == "wrong"
    assert (tmp_path / "clean" / "privsyn" / "a.py").read_text() == "right"
