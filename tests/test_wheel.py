"""The package as it is published: two builds are equal, small, complete, and pass the index's checks."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = """
import os, sys
from hatchling.build import build_sdist, build_wheel
build_wheel(sys.argv[1]); build_sdist(sys.argv[1])
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Two folders, each with a wheel and a source distribution of the same second."""
    pytest.importorskip("hatchling")
    folders = [tmp_path_factory.mktemp("dist") for _ in range(2)]
    for folder in folders:
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600"}
        command = [sys.executable, "-c", BUILD, folder]
        subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
    return folders


@pytest.mark.slow
def test_two_builds_are_equal_byte_for_byte(built):
    first, second = ({path.name: path.read_bytes() for path in sorted(folder.iterdir())} for folder in built)
    assert first == second
    assert len(first) == 2


@pytest.mark.slow
def test_the_wheel_is_small_and_has_the_package_alone(built):
    (wheel,) = built[0].glob("*.whl")
    assert wheel.stat().st_size < 3_500_000  # 1.6 MB of them the published models
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"privsyn"}
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "privsyn").rglob("*") if path.suffix in KINDS}
    assert ours | {"privsyn/py.typed"} <= set(names)


KINDS = {".privsyn", ".py", ".json", ".yaml", ".html", ".css", ".js", ".md"}


@pytest.mark.slow
def test_the_source_distribution_can_be_tested_and_built(built):
    (archive,) = built[0].glob("*.tar.gz")
    with tarfile.open(archive) as files:
        names = {name.partition("/")[2] for name in files.getnames()}
    wanted = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "tests/conftest.py", "Makefile"}
    assert wanted <= names
    assert not any(name.endswith((".csv.gz", ".pyc")) for name in names)


@pytest.mark.slow
def test_the_checks_of_the_index_pass(built):
    pytest.importorskip("twine")
    pytest.importorskip("check_wheel_contents")
    files = sorted(built[0].iterdir())
    wheels = [path for path in files if path.suffix == ".whl"]
    for command in (["twine", "check", "--strict", *files], ["check_wheel_contents", *wheels]):
        checked = subprocess.run(
            [sys.executable, "-m", *command], capture_output=True, text=True, check=False
        )
        assert checked.returncode == 0, checked.stdout + checked.stderr
