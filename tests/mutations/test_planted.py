"""Every planted bug still finds its place, so that `make mutations` tests what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from mutations.__main__ import ROOT, copy, plant
from mutations.planted import BUGS, Bug, Edit


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    root = tmp_path_factory.mktemp("trees") / "copy"
    copy(root)
    return root


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_finds_its_place_and_is_code(bug, tree):
    before = {edit.file: (tree / edit.file).read_text() for edit in bug.edits}
    plant(bug, tree)
    for file, text in before.items():
        changed = (tree / file).read_text()
        assert changed != text
        compile(changed, file, "exec")
        (tree / file).write_text(text)
    assert all((ROOT / test).exists() for test in bug.tests)


def test_a_bug_without_a_place_is_an_error(tree):
    with pytest.raises(LookupError, match="found 0 times"):
        plant(Bug("none", (Edit("privsyn/errors.py", "no such text", ""),), ()), tree)


def test_the_tree_itself_is_never_touched(tree):
    assert not tree.is_relative_to(ROOT)
    assert Path(ROOT, "privsyn").samefile(Path(__file__).parents[2] / "privsyn")
