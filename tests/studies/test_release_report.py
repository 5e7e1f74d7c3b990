"""The public report: one file made of the release alone, and it says whether it may be published."""

import re

import numpy as np
import pandas as pd
import pytest
from command import CANARY, fill, run

from privsyn import Categorical, Numerical, PrivSyn, Schema, load, report
from privsyn.studies.release_report import MOST_TABLES, MOST_VALUES, render

EVIL = "</style><img src=http://example.invalid onerror=alert(1)>"
LETTERS = [f"value {place}" for place in range(40)]
SCHEMA = Schema(
    {
        "a": Categorical(["x", EVIL], nullable=False),
        "many <b>": Categorical(LETTERS, nullable=False),
        "number": Numerical(0, 100, integer=True),
        **{name: Categorical(["x", "y"], nullable=False) for name in "pqrst"},
    }
)


def table():
    rng = np.random.default_rng(0)
    first = rng.integers(0, 2, 2000)
    columns = {
        "a": np.array(["x", EVIL])[first],
        "many <b>": np.array(LETTERS)[rng.integers(0, 40, 2000)],
        "number": rng.integers(0, 50, 2000) + 50 * first,
    }
    return pd.DataFrame(columns | {name: np.array(["x", "y"])[first] for name in "pqrst"})


@pytest.fixture(scope="module")
def model():
    return PrivSyn(2.0, 1e-6, SCHEMA).fit(table())


@pytest.fixture(scope="module")
def page(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "public.html"
    report(model.release_, path)
    return path


def test_the_page_is_made_of_the_release_alone(model, page, tmp_path):
    model.save(tmp_path / "m.privsyn")
    assert render(load(tmp_path / "m.privsyn")) == page.read_text()


def test_the_page_is_one_file_without_script_or_address_and_escapes_names_and_values(page):
    text = page.read_text()
    assert len(text) < 1_000_000
    assert EVIL not in text
    assert "<b>" not in text
    assert "<script" not in text
    assert not re.search(r"<[^>]*(src|href)\s*=|url\(|@import", text)


def test_it_says_what_was_released_how_sure_it_is_and_what_it_cost(model, page):
    text = page.read_text()
    assert text.index("May be published.") < text.index("<h1>")
    assert f"about {round(model.release_.learnt.total):,} rows and 8 columns" in text
    assert "(2.0, 1e-06)-differentially private" in text
    assert "one-way counts of every attribute" in text
    assert f"{40 - MOST_VALUES} rarer values not shown" in text
    counts = model.accuracy_.counts("p")
    assert f"x: {counts['estimate'][0]:,.0f}, between {counts['low'][0]:,.0f} and" in text
    measured = (model.accuracy_.tables["order"] > 1).sum()
    assert f"and {measured - MOST_TABLES} more" in text


def test_a_seeded_release_may_not_be_published(tmp_path):
    release = PrivSyn(2.0, 1e-6, SCHEMA, seed=0).fit(table()).release_
    text = render(release)
    assert "May be published" not in text
    assert text.index("Not private.") < text.index("<h1>")
    assert "differentially private; neighbours" not in text


def test_one_column_has_no_tables():
    release = PrivSyn(2.0, 1e-6, Schema({"a": SCHEMA.columns["a"]})).fit(table()[["a"]]).release_
    assert "Tables that were measured" not in render(release)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_a_browser_shows_the_page_without_error_or_request(chromium, page, scheme, width):
    context = chromium.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    tab = context.new_page()
    complaints, requests = [], []
    tab.on("console", lambda message: complaints.append(message.text))
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.on("request", lambda request: requests.append(request.url))
    tab.goto(page.as_uri())
    assert tab.locator("#columns figure svg").count() == 8
    tab.locator("#tables summary").click()
    assert tab.locator("#tables tbody tr").last.is_visible()
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    context.close()
    assert complaints == []
    assert requests == [page.as_uri()]


def test_the_commands_write_the_same_page(tmp_path, monkeypatch, capsys):
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    settings = ("--epsilon", 1, "--schema", "schema.yaml", "--model", "m.privsyn")
    made = run(capsys, "synth", "data.csv", "out.csv", *settings, "--public-report", "public.html")
    again = run(capsys, "report", "m.privsyn", "again.html")
    assert made.code == again.code == 0
    text = (tmp_path / "public.html").read_text()
    assert text == (tmp_path / "again.html").read_text()
    assert CANARY not in text
    assert "public.html: what was released" in made.out
    assert "epsilon 1 at delta 1e-09" in again.out
    assert "too" in run(capsys, "report", "m.privsyn", "m.privsyn").err
