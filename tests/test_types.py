"""What type checkers know: the type of a synthetic table is that of the private one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import io
import pandas as pd
import polars as pl
from privsyn import PrivSyn, Release, load

frame = pd.DataFrame({"a": [1]})
reveal_type(PrivSyn(1.0).fit(frame).sample(3))
reveal_type(PrivSyn(1.0).fit(pl.DataFrame(frame)).sample(3))
reveal_type(PrivSyn(1.0).fit("a.csv").sample(3))
reveal_type(PrivSyn(1.0).fit({"a": frame}).sample(3))
reveal_type(PrivSyn[pl.DataFrame](1.0).sample(3))
release: Release[pd.DataFrame] = load(io.BytesIO())
reveal_type(release.sample())
release.save(io.BytesIO())
release.sample(rows=3)
"""

REVEALED = [
    "pandas.core.frame.DataFrame",
    "polars.dataframe.frame.DataFrame",
    "pandas.core.frame.DataFrame",
    "dict[str, pandas.core.frame.DataFrame]",
    "polars.dataframe.frame.DataFrame",
    "pandas.core.frame.DataFrame",
]


@pytest.mark.slow
def test_type_checkers_know_the_type_of_a_synthetic_table(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "script.py").write_text(SCRIPT)
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "mypy", "--config-file", root / "pyproject.toml", tmp_path / "script.py"]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, cwd=root, check=False)
    assert re.findall(r'Revealed type is "(.*)"', done.stdout) == REVEALED, done.stdout
    errors = [line for line in done.stdout.splitlines() if "script.py" in line and "error:" in line]
    assert len(errors) == 1
    assert 'Unexpected keyword argument "rows"' in errors[0]
