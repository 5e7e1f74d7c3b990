"""The report: one file that needs nothing else, shows both tables, and says that it is not private."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from privsyn import PrivSyn, Schema, evaluate
from privsyn.evaluation.comparison import Comparison
from privsyn.evaluation.encoding import MOST_LEVELS, coarsen, recode
from privsyn.table.schema.columns import Categorical, Numerical

EVIL = "</script><img src=http://example.invalid onerror=alert(1)>"


def table(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a = rng.choice(["x", "y", EVIL, None], size=400, p=[0.5, 0.3, 0.1, 0.1])
    b = np.where(a == "x", 10, 50) + rng.integers(0, 20, 400)
    letters = rng.choice(list("abcdefghijklmnopqrst"), 400)
    return pd.DataFrame({"a": a, "b & <b>": b, "letter": letters, "real": rng.normal(size=400)})


@pytest.fixture(scope="module")
def page(tmp_path_factory) -> Path:
    schema = Schema(
        {
            "a": Categorical(["x", "y", EVIL]),
            "b & <b>": Numerical(0, 100, integer=True),
            "letter": Categorical(list("abcdefghijklmnopqrst")),
            "real": Numerical(-5, 5),
        }
    )
    model = PrivSyn(1.0, 1e-6, schema, seed=0).fit(table(0))
    path = tmp_path_factory.mktemp("report") / "report.html"
    ledger = json.loads(model.ledger_.to_json())
    evaluate(table(0), model.sample(), schema, target="a", report=path, ledger=ledger)
    return path


@pytest.mark.slow
def test_the_page_is_one_file_without_addresses_and_escapes_the_cells(page):
    text = page.read_text()
    assert len(text) < 3_000_000
    assert EVIL not in text
    assert not re.search(r"<[^>]*(src|href)\s*=|url\(|@import", text)
    assert "<b>" not in re.sub(r"<b>[\d.]+%</b>", "", text)
    assert text.count("</script>") == 2


@pytest.mark.slow
def test_the_page_says_that_it_is_not_private_and_what_it_cost(page):
    text = page.read_text()
    assert text.index("Not private.") < text.index("<h1>")
    assert "with epsilon 1 and delta 10<sup>−6</sup>" in text
    assert "one-way counts of every attribute" in text


@pytest.mark.slow
def test_a_wide_table_gives_a_page_of_bounded_size(tmp_path):
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.integers(0, 60, (300, 60)), columns=[f"c{place}" for place in range(60)])
    evaluate(wide, wide[::-1], models=False, report=tmp_path / "report.html")
    assert (tmp_path / "report.html").stat().st_size < 3_000_000


def test_levels_are_few_and_lose_no_row():
    comparison = Comparison.of(table(0), table(1), None)
    levels = coarsen(comparison.view.labels, comparison.real.records)
    assert all(1 <= len(level.labels) <= MOST_LEVELS + 1 for level in levels)
    coarse = recode(comparison.real.records, levels)
    assert len(coarse) == 400
    for axis, level in enumerate(levels):
        assert set(np.unique(coarse.codes[:, axis])) <= set(range(len(level.labels)))


def test_a_browser_shows_the_page_without_error_or_request(open_page, page):
    tab = open_page(page)
    assert tab.locator("#pair table").count() == 3
    first = tab.locator("#pair h3").inner_text()
    cell = tab.locator(".map rect:not(.chosen)").first
    cell.click()
    assert tab.locator("#pair h3").inner_text() != first
    cell.press("Enter")
    tab.get_by_role("button", name="Cramér’s V, real").click()


def test_both_tables_of_a_pair_add_up(chromium, page):
    tab = chromium.new_page()
    tab.goto(page.as_uri())
    sums = tab.evaluate(
        "Object.values(JSON.parse(document.getElementById('data').textContent).pairs)"
        ".flat().map((table) => table.reduce((a, b) => a + b))"
    )
    tab.close()
    assert len(sums) == 12
    assert all(abs(total - 10_000) <= 60 for total in sums)  # each of up to 121 cells rounded
