"""Run the tests on every supported Python, and with the oldest stated dependencies: `make pythons`.

Nox lists a missing interpreter as skipped: that Python was not tested. Words after `--` go to pytest.
"""

from __future__ import annotations

import nox

PROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PROJECT)
EXTRAS = ",".join(PROJECT["project"]["optional-dependencies"])

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv"
nox.options.download_python = "never"
nox.options.reuse_existing_virtualenvs = True


@nox.session(python=PYTHONS)
def newest(session: nox.Session) -> None:
    """Test with the newest dependencies."""
    session.install("--upgrade", "--editable", f".[{EXTRAS}]", "--group", "dev")
    _test(session)


@nox.session(python=PYTHONS[0])
def oldest(session: nox.Session) -> None:
    """Test with the lower bounds of pyproject.toml, and the newest tools that go with them."""
    bounds = f"{session.virtualenv.location}/bounds.txt"
    resolve = ("uv", "pip", "compile", "--quiet", "--all-extras", "--resolution", "lowest-direct")
    session.run_install(*resolve, "pyproject.toml", "--output-file", bounds)
    session.install("--constraint", bounds, "--editable", f".[{EXTRAS}]", "--group", "dev")
    _test(session)


def _test(session: nox.Session) -> None:
    one_thread = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    tests = session.posargs or ("--lane", "quick")
    session.run("pytest", "-n", "2", "--dist", "loadfile", *tests, env=one_thread)
