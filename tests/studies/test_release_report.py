"""The public report: one file made of the release alone, and it says whether it may be published."""

import re

import numpy as np
import pandas as pd
import pytest
from command import CANARY, fill, run

from privsyn import (
    Categorical,
    Forbidden,
    Identifier,
    InputError,
    Numerical,
    PrivSyn,
    Schema,
    Text,
    Total,
    load,
    report,
)
from privsyn.errors import DroppedWarning
from privsyn.release.release import Release
from privsyn.studies.release_report import FEW_VALUES, MOST_TABLES, MOST_VALUES, render

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


def visible(text):
    """What a page says: no style, no tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", re.sub(r"<style>.*?</style>", "", text, flags=re.S)))


def figure(text, name):
    """What a page says of one column."""
    return next(visible(part) for part in text.split("<figure>") if f"<strong>{name}<" in part)


def test_the_page_is_made_of_the_release_alone(model, page, tmp_path):
    model.save(tmp_path / "m.privsyn")
    assert render(load(tmp_path / "m.privsyn")) == page.read_text()


def test_the_page_is_one_file_without_script_or_address_and_escapes_names_and_values(page):
    text = page.read_text()
    assert len(text) < 1_000_000
    assert EVIL not in text
    assert "many <b>" not in text
    assert "<script" not in text
    assert not re.search(r"<[^>]*(src|href)\s*=|url\(|@import", text)


def test_it_says_what_was_released_how_sure_it_is_and_what_it_cost(model, page):
    text = page.read_text()
    assert text.index("May be published.") < text.index("<h1>")
    rows = f"{round(model.release_.fitted.total):,} rows"
    assert f"Counts of 8 columns of a private table of about {rows}" in text
    assert "with epsilon 2 and delta 10<sup>−6</sup>" in text
    assert "one-way counts of every attribute" in text
    assert f"{40 - MOST_VALUES} less frequent values not shown" in text
    assert f"{MOST_VALUES - FEW_VALUES} more" in text
    cells = model.accuracy_.counts("p").iloc[0]
    line = f"{cells['estimate']:,.0f}</td>"
    assert f'{line}<td class="between">{cells["low"]:,.0f}–{cells["high"]:,.0f}</td>' in text
    measured = (model.accuracy_.tables["order"] > 1).sum()
    assert f"{measured - MOST_TABLES} more" in text


def test_a_seeded_release_may_not_be_published(tmp_path):
    release = PrivSyn(2.0, 1e-6, SCHEMA, seed=0).fit(table()).release_
    text = render(release)
    assert "May be published" not in text
    assert text.index("Not private.") < text.index("<h1>")
    assert "differentially private with" not in text


def test_one_column_has_no_tables():
    release = PrivSyn(2.0, 1e-6, Schema({"a": SCHEMA.columns["a"]})).fit(table()[["a"]]).release_
    assert "Tables that were measured" not in render(release)


def test_a_bar_of_values_counted_together_says_first_how_many_they_are():
    """The published method pools rare values. Their bar was named by the first of them: "Driving Wh…"."""
    offences = ["Speeding", *(f"Driving while doing number {place}" for place in range(20))]
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"offence": rng.choice(offences, 4000, p=[0.6, *[0.02] * 20])})
    schema = Schema({"offence": Categorical(offences, nullable=False)})
    text = render(PrivSyn(0.2, 1e-6, schema, method="published", seed=1).fit(rows).release_)
    labels = re.findall(r'<th scope="row">([^<]*)</th><td class="bar"', text)
    (together,) = (label for label in labels if "number" in label and "," in label)
    many = int(re.match(r"(\d+) rare values together: Driving while", together)[1])
    assert many > 3
    assert f"The {many} values counted together" in text
    listed = re.search(r'counted together</summary>\s*<p class="quiet">([^<]*)</p>', text)[1]
    assert len(listed.split(", ")) == many
    assert "…" not in "".join(label for label in labels if label != together)


@pytest.mark.parametrize("epsilon", [0.001, 1.0, 1000.0])
def test_no_number_on_the_page_needs_a_calculator(epsilon):
    """Noise that drowns all, or hardly any; a column of one value; large and small numbers; a tiny delta."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "one": ["x"] * 500,
            "wide": rng.lognormal(12, 3, 500).clip(0, 4e8),
            "small": rng.random(500) * 1e-5,
            "cents": np.round(rng.normal(0, 50, 500), 2).clip(-90, 90),
        }
    )
    schema = Schema(
        {
            "one": Categorical(["x"], nullable=False),
            "wide": Numerical(0, 4e8, nullable=False),
            "small": Numerical(0, 1e-5, nullable=False),
            "cents": Numerical(-90, 90, decimals=2),
        }
    )
    text = visible(render(PrivSyn(epsilon, 1e-9, schema, seed=1).fit(rows).release_))
    assert not re.search(r"\d[eE][+-]?\d", text)
    assert not re.search(r"\.\d{13,}", text)
    assert not re.search(r"\bnan\b|\binf\b", text)
    errors = re.findall(r"expected error (\S+?%)", text)
    assert len(errors) == 4
    assert all(re.fullmatch(r"<0\.01%|&lt;0\.01%|0%|100%|\d{1,2}\.\d{1,2}%", error) for error in errors)


@pytest.fixture(scope="module")
def constrained():
    """A release of two numbers with a constraint that rows break, their sum, an identifier and remarks."""
    rng = np.random.default_rng(0)
    first = rng.gamma(2.0, 300, 4000).astype(int).clip(0, 3650)
    second = (first + rng.gamma(1.0, 30, 4000).astype(int)).clip(0, 3650)
    rows = pd.DataFrame({"first": first, "second": second, "free": rng.choice(["x", "y"], 4000)})
    rows = rows.assign(sum=first + second, person=np.arange(4000), remark="free text")
    schema = Schema(
        {
            "first": Numerical(0, 3650, integer=True, nullable=False),
            "second": Numerical(0, 3650, integer=True, nullable=False),
            "free": Categorical(["x", "y"], nullable=False),
            "sum": Numerical(integer=True, nullable=False),
            "person": Identifier(),
            "remark": Text(),
        },
        constraints=[
            Forbidden({"first": {"low": 200}, "second": {"high": 600}}),
            Total("sum", ["first", "second"]),
        ],
    )
    with pytest.warns(DroppedWarning):
        return PrivSyn(3.0, 1e-6, schema, seed=0).fit(rows).release_, rows


def test_a_column_that_a_constraint_changed_says_so_and_how_much(constrained):
    """Its bars may lie outside their intervals; the error of a free column is that of its noise."""
    release, rows = constrained
    text = render(release)
    first = figure(text, "first")
    assert "Changed by a constraint" in first
    found = re.search(r"expected error ([\d.]+)%, from noise alone ([\d.]+)%", first)
    error, noise = map(float, found.groups())
    drawn = release.drawn_counts(4000, seed=1)["first"]
    true = release.codec.cells(release.fitted.merging)["first"].count(rows["first"].to_numpy(float))
    found = 100 * np.abs(drawn / drawn.sum() - true / true.sum()).sum() / 2
    assert 0.8 * found < error < 1.4 * found
    assert noise < 0.3 * found
    assert "Changed" not in figure(text, "free")


def test_the_expected_error_is_that_of_the_rows_that_are_drawn(model, monkeypatch):
    """Were all rows drawn with the first of two values, half of them would be wrong."""

    def first_only(release, n, seed):
        merged = release.fitted.merging.merged
        return {name: np.eye(1, size)[0] * n for name, size in zip(merged.names, merged.sizes, strict=True)}

    monkeypatch.setattr(Release, "drawn_counts", first_only)
    said = figure(render(model.release_), "p")
    error = float(re.search(r"expected error ([\d.]+)%", said)[1])
    second = model.accuracy_.counts("p")["estimate"][1] / model.release_.fitted.total
    assert error == pytest.approx(100 * second, abs=2)
    assert "Changed when rows are drawn" in said


def test_the_page_says_what_its_error_bars_cover_and_what_not(constrained):
    text = visible(render(constrained[0]))
    assert "Not covered, computed from other columns: sum (from first, second)." in text
    assert re.search(r"Not covered, generated, [^:]*: person\.", text)
    assert "Not covered, free text, left out: remark." in text
    assert re.search(
        r"the constraints, and the drawing of rows. For the last two, [34],\d{3} synthetic", text
    )


def test_a_release_that_cannot_be_drawn_from_still_has_a_page_that_says_so(constrained, monkeypatch):
    def fail(*_):
        raise InputError("no row was found that keeps the constraints")

    monkeypatch.setattr(Release, "drawn_counts", fail)
    text = render(constrained[0])
    assert "Not covered: what the constraints on this column change" in figure(text, "second")
    assert "Not covered: what the constraints" not in figure(text, "free")
    assert "because no rows could be drawn from this release" in text


def test_a_browser_shows_the_page_without_error_or_request(open_page, page):
    tab = open_page(page)
    assert tab.locator("#columns figure").count() == 8
    assert tab.locator("#columns figure svg").count() == 1
    tab.locator("#tables summary").click()
    assert tab.locator("#tables tbody tr").last.is_visible()


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
    assert "public.html: the released counts" in made.out
    assert "epsilon 1 at delta 1e-09" in again.out
    assert "too" in run(capsys, "report", "m.privsyn", "m.privsyn").err
