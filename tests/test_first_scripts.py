"""The five scripts that a newcomer writes first, each in a process of its own, as from a clean shell."""

from __future__ import annotations

import json
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

NOTEBOOK = """
import nbformat
from nbclient import NotebookClient

cells = [
    "import pandas as pd; from privsyn import PrivSyn, progress_bar",
    "model = PrivSyn(1.0, 1e-9, progress=progress_bar()).fit(pd.read_csv('people.csv'))",
    "model",
    "model.sample(5)",
]
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
book = NotebookClient(book, timeout=240, kernel_name="python3").execute()
shown = [output.get("data", {}).get("text/html", "") for cell in book.cells for output in cell.outputs]
print(sum(map(bool, shown)), any("<progress" in html for html in shown))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("first")
    rng = np.random.default_rng(0)
    job = rng.choice(["baker", "cook", "clerk"], 3000)
    smokes = np.where(rng.random(3000) < np.where(job == "cook", 0.8, 0.2), "yes", "no")
    people = pd.DataFrame({"sex": rng.choice(["F", "M"], 3000), "job": job, "smokes": smokes})
    people["age"] = rng.integers(16, 90, 3000)
    people.to_csv(folder / "people.csv", index=False)
    (folder / "parts").mkdir()
    for part in range(3):
        people.iloc[part::3].to_parquet(folder / "parts" / f"{part}.parquet", index=False)
    return folder


def shown(folder, *command):
    """What a process prints on its last line."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    ran = subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    return (ran.stdout.splitlines() or [""])[-1]


def test_a_scikit_learn_pipeline_trained_on_synthetic_rows(folder):
    assert float(shown(folder, "-c", PIPELINE)) > 0.75  # real rows: 0.8


def test_a_lazy_frame_of_polars(folder):
    assert shown(folder, "-c", POLARS) == "polars 500"


def test_a_query_of_duckdb(folder):
    assert shown(folder, "-c", DUCKDB) == "500"


def test_a_notebook(folder):
    count, bar = shown(folder, "-c", NOTEBOOK).split()
    assert int(count) >= 3
    assert bar == "True"


def test_the_command_line_on_a_folder_of_parquet_files(folder):
    run = ["-m", "privsyn"]
    shown(folder, *run, "schema", "parts", "-o", "schema.yaml")
    options = ["--epsilon", "1", "--schema", "schema.yaml", "--model", "m.privsyn", "--ledger", "ledger.json"]
    shown(folder, *run, "synth", "parts", "out.parquet", *options)
    shown(folder, *run, "sample", "m.privsyn", "more.parquet", "--rows", "100")
    assert len(pd.read_parquet(folder / "more.parquet")) == 100
    assert set(pd.read_parquet(folder / "out.parquet")) == {"sex", "job", "smokes", "age"}
    assert json.loads((folder / "ledger.json").read_text())["promise"]["epsilon"] == 1.0
