"""The scripts that a newcomer writes first, in a process of their own, as from a clean shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

ROOT = Path(__file__).parents[1]

PIPELINE = """
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from privsyn import PrivSyn

people = pd.read_csv("people.csv")
train, test = train_test_split(people, random_state=0)
synthetic = PrivSyn(epsilon=1.0, delta=1e-9, target="smokes").fit(train).sample()
one_hot = OneHotEncoder(handle_unknown="ignore")
codes = make_column_transformer((one_hot, ["sex", "job"]), remainder="passthrough")
model = make_pipeline(codes, LogisticRegression(max_iter=1000))
model.fit(synthetic.drop(columns="smokes"), synthetic["smokes"])
print(model.score(test.drop(columns="smokes"), test["smokes"]))
"""

POLARS = """
import polars as pl
from privsyn import PrivSyn

people = pl.scan_csv("people.csv").filter(pl.col("age") >= 18)
synthetic = PrivSyn(epsilon=1.0, delta=1e-9).fit(people).sample(500)
print(type(synthetic).__module__.split(".")[0], synthetic.shape[0])
"""

DUCKDB = """
import duckdb
from privsyn import PrivSyn

people = duckdb.sql("SELECT sex, job, age FROM 'people.csv' WHERE age < 65")
synthetic = PrivSyn(epsilon=1.0, delta=1e-9).fit(people).sample(500)
print(duckdb.sql("SELECT count(*) FROM synthetic").fetchall()[0][0])
"""


@pytest.mark.slow
def test_scripts_of_pandas_polars_and_duckdb(tmp_path):
    """A score on real rows (of the real table: 0.8), and two numbers of rows."""
    rng = np.random.default_rng(0)
    job = rng.choice(["baker", "cook", "clerk"], 3000)
    smokes = np.where(rng.random(3000) < np.where(job == "cook", 0.8, 0.2), "yes", "no")
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], 3000), "job": job, "smokes": smokes})
    people["age"] = rng.integers(16, 90, 3000)
    people.to_csv(tmp_path / "people.csv", index=False)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-c", PIPELINE + POLARS + DUCKDB]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    score, of_polars, of_duckdb = ran.stdout.splitlines()
    assert float(score) > 0.75
    assert (of_polars, of_duckdb) == ("polars 500", "500")
