"""The public report: one file made of the release alone, and it says whether it may be published."""

import csv
import re
from base64 import b64decode
from dataclasses import replace
from io import StringIO
from itertools import combinations
from math import exp

import numpy as np
import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe
from command import CANARY, fill, run, visible
from playwright.sync_api import expect

from privsyn import (
    About,
    Categorical,
    Datetime,
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
from privsyn.cli.main import main
from privsyn.errors import ColumnWarning, NotFoundWarning
from privsyn.inference import all_rows
from privsyn.marginals.domain import Records
from privsyn.private.run_ledger import RunLedger
from privsyn.release.table_model import TableModel
from privsyn.studies.publication.data_sheet import render as render_sheet
from privsyn.studies.publication.public_page import render
from privsyn.studies.publication.relationships import in_plain_words, overview, relationships
from privsyn.studies.publication.tiles import FEW_VALUES, MOST_TABLES, MOST_VALUES

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


def figure(text, name):
    """What a page says of one column."""
    return next(visible(part) for part in text.split("<figure>") if f"<strong>{name}<" in part)


def unfold(tab):
    """The tab, with all parts of its page unfolded."""
    tab.evaluate("document.querySelectorAll('.part').forEach((part) => { part.open = true; })")
    return tab


@pytest.mark.slow
def test_the_page_is_made_of_the_release_alone(model, page, tmp_path):
    model.save(tmp_path / "m.privsyn")
    assert render(load(tmp_path / "m.privsyn")) == page.read_text()


def test_the_page_is_one_file_without_address_and_escapes_names_and_values(page):
    text = page.read_text()
    assert len(text) < 1_000_000
    assert EVIL not in text
    assert "many <b>" not in text
    assert text.count("<script") == text.count("</script>") == 2  # the counts of pairs, and what shows them
    addresses = re.findall(r"<[^>]*(?:src|href)\s*=\s*\"([^\"]*)", text)
    assert all(address.startswith(("#", "data:text/csv;")) for address in addresses)
    assert not re.search(r"url\(|@import", text)


def test_it_says_what_was_released_how_sure_it_is_and_what_it_cost(model, page):
    text = page.read_text()
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


def test_the_most_frequent_value_is_the_first_bar_also_if_few_missing_cells_were_counted_with_it():
    job = ["full time"] * 3000 + ["retired"] * 800 + ["student"] * 400 + [None]
    schema = Schema({"job": Categorical(["retired", "student", "full time"])})
    text = render(PrivSyn(1.0, 1e-6, schema, seed=1).fit(pd.DataFrame({"job": job})).release_)
    labels = re.findall(r'<th scope="row">([^<]*)</th><td class="bar"', text)
    assert labels == ["full time, with few missing cells", "retired", "student"]


@pytest.mark.slow
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
    text = visible(render(PrivSyn(epsilon, 1e-9, schema, seed=1, allow_weak_privacy=True).fit(rows).release_))
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
    with pytest.warns(ColumnWarning):
        return PrivSyn(3.0, 1e-6, schema, seed=0).fit(rows).release_, rows


def test_a_column_that_a_constraint_changed_says_so_and_how_much(constrained):
    """The error of a free column is that of its noise."""
    release, rows = constrained
    text = render(release)
    first = figure(text, "first")
    assert "Changed by a constraint" in first
    found = re.search(r"rows that are drawn are ([\d.]+)% off, by noise alone ([\d.]+)%", first)
    error, noise = map(float, found.groups())
    drawn = release.table().compared(4000, seed=1).counts["first",]
    cells = release.codec.cells(release.fitted.merging)["first"]
    true = np.bincount(cells.merged_codes(rows["first"].to_numpy(float)), minlength=cells.merged)
    found = 100 * np.abs(drawn / drawn.sum() - true / true.sum()).sum() / 2
    assert 0.8 * found < error < 1.4 * found
    assert noise < 0.3 * found
    assert "Changed" not in figure(text, "free")


def test_a_page_says_how_far_the_rows_that_are_drawn_are_off(model, monkeypatch):
    """Were all rows drawn with the first of two values, half of them would be wrong."""

    def first_only(release, n, rng):
        domain = release.fitted.merging.merged
        return Records(domain, np.zeros((n, len(domain)), np.int32))

    monkeypatch.setattr(TableModel, "records", first_only)
    text = render(model.release_)
    said = figure(text, "p")
    error = float(re.search(r"rows that are drawn are ([\d.]+)% off", said)[1])
    second = model.accuracy_.counts("p")["estimate"][1] / model.release_.fitted.total
    assert error == pytest.approx(100 * second, abs=2)
    assert "Changed when rows are drawn" in said
    assert re.search(r"Where rows differ.* of the rows lie in other cells than in the release", visible(text))


def test_the_page_says_what_its_error_bars_cover_and_what_not(constrained):
    text = visible(render(constrained[0]))
    assert "Not covered, computed from other columns: sum (from first, second)." in text
    assert re.search(r"Not covered, generated, [^:]*: person\.", text)
    assert "Not covered, free text, left out: remark." in text
    assert re.search(
        r"[34],\d{3} synthetic rows were drawn from the release and counted too: where constraints", text
    )


def test_a_release_that_cannot_be_drawn_from_still_has_a_page_that_says_so(constrained, monkeypatch):
    def fail(*_):
        raise InputError("no row was found that keeps the constraints")

    monkeypatch.setattr(TableModel, "compared", fail)
    text = render(constrained[0])
    assert "Not covered: what the constraints on this column change" in figure(text, "second")
    assert "Not covered: what the constraints" not in figure(text, "free")
    assert "because no rows could be drawn from this release" in text


def test_a_browser_shows_the_page_without_error_or_request(open_page, page):
    tab = open_page(page)
    assert tab.locator("#columns figure").count() == 8
    assert tab.locator("#columns figure svg").count() == 1
    assert not tab.locator("#columns figure").first.is_visible()
    tab.get_by_role("link", name="Relationships", exact=True).click()
    expect(tab.locator("#tables #pair")).to_be_visible()  # the link unfolds its part
    tab.locator("#tables summary").nth(1).click()
    expect(tab.locator("#tables tbody tr").last).to_be_visible()


def test_the_answers_are_those_of_ask_and_a_list_chooses_the_groups(open_page, page, model):
    tab = open_page(page)
    tables = tab.locator(".replies")
    assert [tables.nth(index).is_visible() for index in range(tables.count())] == [True, False, False, False]
    by = tab.get_by_label("By", exact=True)
    name = by.locator("option").nth(1).inner_text()
    by.select_option(name)
    shown = tab.locator(".replies:visible")
    assert shown.count() == 1
    assert f"By {name}" in shown.inner_text()
    row = shown.locator("tr", has_text="mean of number")
    answers = [model.ask("mean of number"), *model.ask("mean of number", by=name)]
    assert row.locator("td").count() == len(answers) == 3
    for index, answer in enumerate(answers):
        cell = row.locator("td").nth(index)
        assert cell.get_attribute("title") == f"{answer.verdict}: {answer.reason}"
        hidden = answer.verdict not in ("keep", "direction only")
        assert cell.locator("i").count() == hidden  # a range alone
        if not hidden:
            number = float(cell.inner_text().split()[-4 if "≈" in cell.inner_text() else 0].strip("≈"))
            assert number == pytest.approx(answer.estimate, abs=answer.high - answer.low)


def test_an_answer_that_noise_hides_shows_no_number():
    rows = pd.DataFrame({"a": ["x", "y"] * 60, "b": ["u", "v", "v"] * 40})
    schema = Schema({"a": Categorical(["x", "y"]), "b": Categorical(["u", "v"])})
    text = render(PrivSyn(0.01, 1e-6, schema, seed=0).fit(rows).release_)
    cells = re.findall(r"<td[^>]* title=\"([^:\"]*):[^\"]*\">(.*?)</td>", text)
    assert len(cells) == 2  # no value surely has rows, so there is no group
    assert all((said == "not decided") == number.startswith("<i>") for said, number in cells)
    assert any(re.fullmatch(r"<i>(unknown|[\d.]+%–[\d.]+%)</i>", number) for _, number in cells)


def test_a_table_of_answers_says_how_many_columns_it_has_and_not_each_that_it_lacks():
    rows = pd.DataFrame({f"c{index}": ["x", "y"] * 60 for index in range(20)})
    schema = Schema(dict.fromkeys(rows, Categorical(["x", "y"], nullable=False)))
    text = visible(render(PrivSyn(5.0, 1e-6, schema, seed=0).fit(rows).release_))
    assert re.search(r"By c\d+ ?: the first 16 of 19 columns", text)
    assert "Not listed" not in text


def test_title_and_publisher_come_first_and_what_is_not_stated_is_named():
    rows = pd.DataFrame({"a": ["x", "y"] * 60})
    schema = Schema(
        {"a": Categorical(["x", "y"])},
        about=About(title="Guests 2025", publisher="Office", licence="CC0-1.0"),
    )
    text = visible(render(PrivSyn(1.0, 1e-6, schema).fit(rows).release_).split("<body>")[1])
    assert text.split()[:2] == ["Guests", "2025"]
    head = text.split("What is this?")[0]
    assert "Published by Office" in head
    assert "Licence: CC0-1.0" in head
    assert "Not stated: date." in head


def test_a_gap_between_two_dates_is_no_column_of_the_page():
    rng = np.random.default_rng(0)
    begin = np.datetime64("2020-01-01") + rng.integers(0, 900, 1000)
    rows = pd.DataFrame({"begin": begin, "end": begin + rng.integers(0, 90, 1000), "ill": ["x", "y"] * 500})
    days = Datetime("2020-01-01", "2023-12-31", nullable=False)
    schema = Schema(
        {"begin": days, "end": days, "ill": Categorical(["x", "y"])}, constraints=["end >= begin"]
    )
    release = PrivSyn(2.0, 1e-6, schema).fit(rows).release_
    assert "end - begin" in release.codec.domain.names
    text = render(release)
    assert "end - begin" not in text.split('<section id="ledger">')[0]
    assert "end - begin" not in text.split('<script id="data"')[1]
    assert "counted by their distance from another column: end (from begin)" in visible(text)


def test_axe_core_finds_nothing_on_the_page(open_page, page):
    tab = open_page(page)
    assert Axe().run(tab).response["violations"] == []
    unfold(tab)
    found = Axe().run(tab).response["violations"]
    assert [(violation["id"], violation["impact"]) for violation in found] == []
    tab.evaluate(
        "document.querySelector('#first').parentElement.replaceWith(document.querySelector('#first'))"
    )
    broken = Axe().run(tab).response["violations"]
    assert [violation["impact"] for violation in broken] == ["critical"]


def test_a_phone_leaves_out_the_empty_cells_of_a_pair_and_says_how_many(open_page, page):
    """Half of the cells of `number` and `a` have no row."""
    tab = unfold(open_page(page))
    tab.locator("#first").select_option("number")
    tab.locator("#second").select_option("a")
    empty, note = tab.locator("#pair td.empty"), tab.locator("#pair .on-phone")
    assert empty.count() > 2
    phone = tab.viewport_size["width"] < 700
    assert (empty.first.is_visible(), note.is_visible()) == (not phone, phone)
    assert note.inner_text().startswith(f"{empty.count()} counts of 0")
    assert (
        tab.locator("#pair tbody td:visible").count()
        == tab.locator("#pair tbody td").count() - phone * empty.count()
    )


def test_one_table_with_much_noise_is_not_taken_for_the_others(model):
    """The page said that counts below 12,637 of 29,972 rows were noise: in one of 1,128 tables they were."""
    text = visible(render(model.release_))
    sigma = float(np.median([row["sigma"] for row in relationships(model.release_.table())]))
    said = re.search(r"typically ([\d,]+) rows", text)[1]
    assert float(said.replace(",", "")) == pytest.approx(1.96 * sigma, abs=1)


def test_the_search_leaves_the_columns_that_have_the_word(open_page, page):
    tab = unfold(open_page(page))
    # The most frequent value: it is shown whatever the noise.
    tab.get_by_label("Search columns and values").fill("VALUE 38")
    assert tab.locator("#columns figure:visible strong").all_inner_texts() == ["many <b>"]
    assert tab.locator("#found").inner_text() == "1 of 8 columns"
    tab.get_by_label("Search columns and values").fill("")
    assert tab.locator("#columns figure:visible").count() == 8


def test_a_pair_is_chosen_with_the_keyboard_and_saved_as_it_is_shown(open_page, page, model):
    tab = unfold(open_page(page))
    first = tab.get_by_label("Column", exact=True)
    first.focus()
    first.press("End")
    first.press("Home")  # in the order of the alphabet
    pair = [first.input_value(), tab.get_by_label("with", exact=True).input_value()]
    assert pair[0] == "a"
    shown = tab.locator("#pair tbody td").all_inner_texts()
    with tab.expect_download() as saved:
        tab.get_by_role("button", name="Download this table").press("Enter")
    rows = list(csv.DictReader(saved.value.path().read_text().splitlines()))
    counts = model.accuracy_.counts(*pair)
    assert len(rows) == len(shown)
    known = {(str(row[pair[0]]), str(row[pair[1]])): row for row in counts.to_dict("records")}
    for row in rows:
        truth = known[row[pair[0]], row[pair[1]]]
        assert [int(row[part]) for part in ("estimate", "low", "high")] == pytest.approx(
            [truth[part] for part in ("estimate", "low", "high")], abs=0.51
        )


def test_the_link_holds_the_counts_of_all_columns(model, page):
    text = b64decode(re.search(r"base64,([^\"]*)", page.read_text())[1]).decode()
    rows = list(csv.DictReader(StringIO(text)))
    assert {row["column"] for row in rows} == set(model.release_.codec.domain)
    counts = model.accuracy_.counts("many <b>")
    (row,) = (row for row in rows if row["value"] == "value 7")
    (truth,) = counts[counts["many <b>"] == "value 7"].to_dict("records")
    assert float(row["low"]) == pytest.approx(truth["low"], abs=0.051)
    assert not [row for row in rows if row["value"].startswith(("=", "+", "-", "@"))]


def test_relationships_are_sorted_by_strength_and_say_how_sure_they_are(model):
    rows = relationships(model.release_.table())
    assert [row["strength"] for row in rows] == sorted((row["strength"] for row in rows), reverse=True)
    one = next(row for row in rows if set(row["columns"]) == {"p", "q"})
    assert one["strength"] == pytest.approx(0.5, abs=0.05)
    assert one["kept"] == "kept well"
    weak = [row for row in rows if "many <b>" in row["columns"]]
    assert all(row["kept"] != "kept well" for row in weak)


def test_each_pair_is_kept_well_roughly_not_or_not_measured(model, page):
    names, rows = model.release_.codec.domain.names, relationships(model.release_.table())
    found = overview(names, rows)
    pairs = [row for row in rows if len(row["columns"]) == 2]
    assert sum(found["kept"].values()) == len(pairs)
    assert found["worst"] is None or found["worst"]["kept"] == "kept roughly"
    assert found["best"]["kept"] == "kept well"
    measured = {frozenset(columns) for columns in model.accuracy_.tables["columns"]}
    everything = [frozenset(pair) for pair in combinations(names, 2)]
    triples = [columns for columns in measured if len(columns) > 2]
    left = {pair for pair in everything if pair not in measured and not any(pair <= one for one in triples)}
    assert {frozenset(pair) for pair in found["unmeasured"]} == left
    text = visible(page.read_text())
    assert f"Kept well: {found['kept']['kept well']} of 28 pairs" in text
    assert f"Not measured: {len(left)} pairs" in text
    assert f"The best kept pair is {' × '.join(found['best']['columns'])}" in text


def test_pairs_of_larger_tables_alone_are_counted_too():
    """What is kept, not decided, within larger tables and not measured adds up to all pairs."""
    facts = {"strength": 0.1, "error": 0.01, "kept": "kept well"}
    rows = [facts | {"columns": columns} for columns in (("a", "b"), ("a", "b", "c"), ("c", "d", "e"))]
    counts = overview(("a", "b", "c", "d", "e"), rows)
    assert (sum(counts["kept"].values()), counts["within"], len(counts["unmeasured"])) == (1, 5, 4)
    assert counts["pairs"] == 10


def test_page_and_command_have_one_verdict_on_the_target(tmp_path, capsys):
    """A model of the target may work where no other relationship is kept, and a saved release knows it."""
    rng = np.random.default_rng(0)
    label = rng.choice(["no", "yes"], 3000)
    rows = {name: np.where(rng.random(3000) < 0.7, label, rng.choice(["no", "yes"], 3000)) for name in "abc"}
    rows |= {name: rng.choice(["no", "yes"], 3000) for name in "defghijk"}
    pd.DataFrame({**rows, "label": label}).to_csv(tmp_path / "in.csv", index=False)
    column = "{kind: categorical, values: ['no', 'yes'], nullable: false}"
    lines = [f"  {name}: {column}\n" for name in (*rows, "label")]
    (tmp_path / "s.yaml").write_text("".join(["columns:\n", *lines]))
    files = (str(tmp_path / name) for name in ("in.csv", "out.csv", "s.yaml", "m.privsyn", "page.html"))
    data, out, schema, model, page = files
    options = (
        "--epsilon",
        "1",
        "--schema",
        schema,
        "--target",
        "label",
        "--model",
        model,
        "--public-report",
        page,
    )
    done = run(capsys, "synth", data, out, *options)
    assert done.code == 0, done.err
    text = (tmp_path / "page.html").read_text()
    verdict = load(model).outlook().partition(": ")[0]
    assert verdict in done.out + done.err
    assert verdict in text
    assert "Use it for a model that predicts label" in text
    assert "a model of the target likely keeps 3/4 of" in load(model).outlook()


def test_a_bar_that_a_constraint_moved_lies_in_its_interval():
    """Both counts of 500 rows are moved away from what was counted."""
    rows = pd.DataFrame({"a": ["x", "y"] * 500, "b": ["u"] * 1000})
    columns = {"a": Categorical(["x", "y"], nullable=False), "b": Categorical(["u", "v"], nullable=False)}
    schema = Schema(columns, constraints=[Forbidden({"a": "y", "b": "u"})])
    accuracy = PrivSyn(50.0, 1e-6, schema, seed=0).fit(rows).accuracy_
    for name in columns:
        counts = accuracy.counts(name)
        assert (counts["low"] <= counts["estimate"]).all()
        assert (counts["estimate"] <= counts["high"]).all()
    moved = accuracy.counts("a")
    assert (moved["high"] - moved["low"]).min() > 20  # of noise alone, 2


def test_the_page_says_what_the_schema_says(model, page):
    section = visible(page.read_text().split('<section id="schema">')[1].split("</section>")[0])
    for name in ("number", "p"):
        assert f"{name} {SCHEMA.sentence_on(name)}".replace("'", "&#39;") in section


@pytest.mark.parametrize(("epsilon", "guess"), [(0.5, 52), (1.0, 54), (5.0, 66)])
def test_the_worked_odds_are_those_of_the_best_attacker(epsilon, guess):
    """docs/privacy.md has the same numbers; the power is that of one Gaussian answer, by simulation."""
    ledger = RunLedger((), epsilon, 1e-9, "gaussian", "operating system", True, (), "1.0")
    odds = in_plain_words(ledger)
    assert round(100 * odds["guess"]) == guess
    draws = np.random.default_rng(0).normal(size=400_000)
    for rate, found in odds["found"]:
        line = np.quantile(draws, 1 - rate)
        assert (draws + ledger.mu > line).mean() == pytest.approx(found, abs=0.005)


def test_the_page_of_a_pure_run_and_of_randomised_answers_say_what_they_promise():
    schema = Schema({name: Categorical(["x", "y"], nullable=False) for name in "ab"})
    rows = pd.DataFrame({"a": ["x", "y"] * 200, "b": ["x", "x", "y", "y"] * 100})
    text = visible(render(PrivSyn(1.0, 0, schema).fit(rows).release_))
    assert "at most 2.72 times as probable" in text
    assert "plus a probability" not in text
    assert "73.1% right" in text
    schema = Schema({name: Categorical(["x", "y"], nullable=False, keep=0.5) for name in "ab"})
    text = visible(render(PrivSyn(schema=schema).fit(rows).release_))
    assert "guesses which of two answers you gave" in text
    assert "wrongly accuses" not in text
    assert "9 times as probable" in text
    assert not in_plain_words(PrivSyn(1.0, 1e-9, SCHEMA, seed=0).fit(table()).ledger_)


def test_the_page_of_a_release_since_an_earlier_one_says_what_both_promise_together():
    schema = Schema({name: Categorical(["x", "y"], nullable=False) for name in "ab"})
    rows = pd.DataFrame({"a": ["x", "y"] * 200, "b": ["x", "x", "y", "y"] * 100})
    first = PrivSyn(1.0, 0, schema).fit(rows).release_
    both = PrivSyn(1.0, 0, schema, since=first).fit(rows).release_
    text = visible(render(both))
    assert "in the earlier releases is at most 7.39 times as probable" in text
    alone = "with this release and the earlier ones together (with this one alone, at most 73.1%)"
    assert f"88.1% right {alone}" in text  # e^2 / (1 + e^2), and e / (1 + e)
    assert f"is right at most 88.1% of the time {alone}" in text
    promise = "private with epsilon 1 and delta 0 for this release alone. With the earlier releases on which"
    assert f"{promise} it rests the promise is epsilon 2 and delta 0" in text
    assert "this one alone" not in visible(render(first))
    assert in_plain_words(both.ledger)["contents"] == pytest.approx(exp(4) / (1 + exp(4)))
    first, both = (
        replace(release.ledger, promised_delta=1e-9, accounting="gaussian", charges=())
        for release in (first, both)
    )
    words = in_plain_words(replace(both, since=first.series))  # not 80 %, by epsilon alone
    assert words["guess"] == pytest.approx(0.5512, abs=1e-4)
    assert words["times"] == pytest.approx(exp(words["promise"]["epsilon"]))


def test_no_bar_without_a_length_is_shown_at_first():
    rows = pd.DataFrame({"a": ["x"] * 3000, "b": ["u", "v"] * 1500})
    schema = Schema({"a": Categorical(["x", *"abcdefg"], nullable=False), "b": Categorical(["u", "v"])})
    text = figure(render(PrivSyn(500.0, 1e-6, schema, allow_weak_privacy=True).fit(rows).release_), "a")
    assert "7 more" in text


@pytest.mark.slow
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


@pytest.mark.parametrize("all_lost", [False, True])
def test_the_pages_promise_nothing_about_columns_that_were_not_found(all_lost):
    """Of iris without a schema the page once said: Yes, for shares and averages."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"size": rng.normal(5, 1, 300), "kind": rng.choice(["x", "y"], 300)})
    schema = Schema(
        {"size": Numerical(), "kind": Categorical(None if all_lost else ["x", "y"], nullable=all_lost)}
    )
    with pytest.warns(NotFoundWarning):
        release = PrivSyn(0.1, 1e-6, schema, seed=0).fit(rows).release_
    release = release.with_ledger(replace(release.ledger, private=True))  # as if not seeded
    lost = ["size", "kind"] if all_lost else ["size"]
    assert release.accuracy_.not_found == tuple(lost)
    page, text = render(release), render_sheet(release)
    answer = page.split("May I use it?")[1].split("</dd>")[0]
    assert page.count("Not covered: no values or bounds were found") == len(lost)
    assert text.count("not found: cells are invented") == len(lost)
    assert ("No. For no column" in answer, "Use it for" in answer) == (all_lost, not all_lost)
    assert ("Nothing but its form" in text, "Shares and averages" in text) == (all_lost, not all_lost)
    if not all_lost:
        assert "Not for size: no values or bounds were found" in answer
        assert "The cells of size are invented" in text
    assert not any("size" in row["columns"] for row in relationships(release.table()))
    assert "size" not in b64decode(re.search(r"base64,([^\"]*)", page)[1]).decode()


def test_a_release_of_one_row_of_each_person_says_so(tmp_path, capsys):
    """The page called 3,000 rows of 12,000 the private table, and `ask` gave narrow answers about them."""
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(3000), rng.integers(1, 8, 3000))
    table = pd.DataFrame({"who": who, "paid": rng.choice(["no", "yes"], len(who))})
    schema = Schema({"paid": Categorical(["no", "yes"], nullable=False)})
    model = PrivSyn(1, 1e-9, schema, unit="who", rows_per_unit=1).fit(table)
    (loss,) = [loss for loss in model.losses_ if loss.kind == "rows beyond the bound"]
    assert str(loss) == "who: one row of each is counted, drawn at random, and nothing stands for the others"
    report(model, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert re.search(r"about [\d,]+ rows of a private table: at most 1 row of each person", text)
    assert "Nothing here stands for the others" in text
    model.save(tmp_path / "m.privsyn")
    assert main(["ask", str(tmp_path / "m.privsyn"), "share of paid == 'yes'"]) == 0
    assert (
        capsys.readouterr().err == "answers are about the rows that were kept: at most 1 row of one person\n"
    )


def test_rows_of_persons_without_intervals_are_a_guide_alone(tmp_path, monkeypatch):
    """The page told readers to use them with their error bars, of which each reached from 0 to all rows."""
    monkeypatch.setattr(all_rows, "SHAPELESS", -1.0)  # the noise of any numbers of rows is too much
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(3000), rng.integers(1, 8, 3000))
    table = pd.DataFrame({"who": who, "job": rng.choice(["a", "b", "c"], len(who))})
    table["paid"] = rng.choice(["no", "yes"], len(who))
    table["turn"] = table.groupby("who").cumcount()
    schema = Schema(
        {
            "job": Categorical(["a", "b", "c"], nullable=False),
            "paid": Categorical(["no", "yes"], nullable=False),
            "turn": Numerical(0, 9, integer=True, nullable=False),
        }
    )
    release = PrivSyn(0.5, 1e-9, schema, unit="who", order="turn", identifiers=True).fit(table).release_
    counts = release.tables["rows"].accuracy_.counts("job")
    assert counts["low"].max() == 0
    assert counts["high"].min() >= counts["estimate"].sum()
    report(release, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "single columns as a guide: no interval says how near" in text
