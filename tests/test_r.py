"""The package for R: its own tests, and the blocks of docs/r.md."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("reticulate", "testthat", "haven")


def rscript(*arguments: object, library: Path | None = None, folder: Path) -> str:
    """Run Rscript with this Python and this checkout; return what it printed."""
    environment = os.environ | {
        "RETICULATE_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NOT_CRAN": "true",
    }
    if library is not None:
        environment["R_LIBS"] = str(library)
    command = ["Rscript", "--vanilla", *map(str, arguments)]
    ended = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    """Install the package into a library of its own."""
    if shutil.which("Rscript") is None:
        pytest.skip("R is not installed")
    folder = tmp_path_factory.mktemp("library")
    lacking = "cat(setdiff(c({}), rownames(installed.packages())))".format(
        ", ".join(f"'{name}'" for name in PACKAGES)
    )
    if names := rscript("-e", lacking, folder=folder).strip():
        pytest.skip(f"R has no package {names}")
    shutil.copytree(ROOT / "r", folder / "source")
    install = f"install.packages('source', lib = '{folder}', repos = NULL, type = 'source', quiet = TRUE)"
    rscript("-e", install, folder=folder)
    return folder


@pytest.mark.slow("each case")
def test_the_tests_of_the_package_for_r_hold(library):
    tests = ROOT / "r" / "tests" / "testthat"
    script = (
        f"library(privsyn); testthat::test_dir('{tests}', package = 'privsyn', load_package = 'installed',"
        " reporter = 'summary', stop_on_failure = TRUE)"
    )
    printed = rscript("-e", script, library=library, folder=library)
    assert "skip" not in printed.lower(), printed


@pytest.mark.slow("each case")
def test_the_page_for_r_runs_and_its_classes_are_those_printed(library):
    text = (ROOT / "docs" / "r.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```r\n(.*?)^```$", text, re.M | re.S)
    lines = [line for block in blocks for line in block.splitlines() if not line.startswith("#>")]
    script = library / "page.R"
    script.write_text("\n".join(lines), encoding="utf-8")
    printed = rscript(script, library=library, folder=library)
    assert re.search(r"Survived: Factor w/ 2 levels \"No\",\"Yes\"", printed)
    assert '"haven_labelled"' in printed
    assert printed.count("TRUE") == 1  # what was saved makes the same rows
