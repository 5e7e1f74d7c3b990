"""Screen Result: the synthetic rows beside the public estimates, and apart from them the real rows."""

import re
from base64 import b64encode
from copy import deepcopy
from hashlib import sha256
from html import unescape
from threading import Thread

import numpy as np
import pandas as pd
import pytest
import uvicorn
from command import CANARY, visible
from playwright.sync_api import expect

from privsyn import (
    Categorical,
    Datetime,
    Identifier,
    Increasing,
    Numerical,
    PrivSyn,
    Schema,
    Text,
    evaluate,
    load,
    report,
)
from privsyn.app import quality
from privsyn.app.choices import FORMATS
from privsyn.app.comparison import COMPARISON_HEADERS
from privsyn.app.job import Job
from privsyn.app.quality import quality_of
from privsyn.app.screens import SCREENS, render
from privsyn.app.server import App
from privsyn.app.workspace import Workspace

ROWS = 1500
CITIES = ["Bern", "Rome", "Ulm", "Oslo <b>"]

# Nothing is declared of "nickname", whose values are all different, and "note" is free text: neither can be
# on the screen. "late" is never before "early".
SCHEMA = Schema(
    {
        "age": Numerical(0, 99, integer=True, nullable=False),
        "stars": Numerical(1, 5, integer=True, nullable=False),
        "city": Categorical(CITIES),
        "early": Datetime("2020-01-01", "2020-12-31", unit="D", nullable=False),
        "late": Datetime("2020-01-01", "2020-12-31", unit="D", nullable=False),
        "nickname": Categorical(),
        "number": Identifier(),
        "note": Text(),
    },
    constraints=[Increasing(["early", "late"])],
)


def table():
    rng = np.random.default_rng(0)
    age, first = rng.integers(0, 100, ROWS), rng.integers(0, 300, ROWS)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(first, "D")
    return pd.DataFrame(
        {
            "age": age,
            "stars": 1 + age // 25,
            "city": np.where(rng.random(ROWS) < 0.05, None, rng.choice(CITIES, ROWS)),
            "early": days,
            "late": days + pd.to_timedelta(rng.integers(0, 60, ROWS), "D"),
            "nickname": [f"{CANARY} {row}" for row in range(ROWS)],
            "number": [f"{CANARY}-{row}" for row in range(ROWS)],
            "note": [f"note of {CANARY} {row}" for row in range(ROWS)],
        }
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The files of one run, with a seed: its model, and its table in each format."""
    folder = tmp_path_factory.mktemp("run")
    with pytest.warns(UserWarning, match=r"nickname|left out"):
        release = PrivSyn(5.0, 1e-6, SCHEMA, seed=1).fit(table()).release_
    release.save(folder / "model.privsyn")
    for ending in FORMATS:
        release.sample_to(folder / f"synthetic{ending}", seed=1)
    return folder


@pytest.fixture(scope="module")
def facts(results):
    return quality_of(results / "model.privsyn", results / "synthetic.csv")


def column(facts, name):
    return next(each for each in facts["columns"] if each["name"] == name)


def counts(facts, name):
    return {row["label"]: row["synthetic"] for row in column(facts, name)["rows"]}


@pytest.fixture
def app(results, tmp_path):
    """An app in which the run of `results` has ended."""
    table().to_csv(tmp_path / "people.csv", index=False)
    app = App(Workspace(tmp_path))
    session = app.session
    session.open(tmp_path / "people.csv")
    session.choices.protects = True
    for file in results.iterdir():
        if file.suffix != ".xlsx" and file.suffix != ".parquet":
            (session.results / file.name).write_bytes(file.read_bytes())
    session.job, session.ran = Job(["--version"], session.results), deepcopy(session.choices)
    while session.job.wait(1.0):
        pass
    yield app
    app.close()
    app.socket.close()
    session.workspace.close()


def shown(app, name="result"):
    return render(name, app.session, SCREENS[name].show(app.session))


@pytest.mark.slow
def test_the_synthetic_counts_are_those_of_the_file(facts, results):
    written = pd.read_csv(results / "synthetic.csv")
    assert (facts["counted"], facts["whole"], facts["scaled"]) == (len(written), True, False)
    found = {name: round(count) for name, count in counts(facts, "city").items()}
    expected = written["city"].fillna("(missing)").value_counts().to_dict()
    assert {name: count for name, count in found.items() if count} == expected
    for name in ("age", "stars"):
        for label, count in counts(facts, name).items():
            low, _, high = label.partition(" to ")
            assert round(count) == written[name].between(int(low), int(high or low)).sum(), label
    assert round(sum(counts(facts, "early").values())) == len(written)


@pytest.mark.slow
def test_each_format_of_the_table_has_the_same_counts(facts, results):
    for ending in (".parquet", ".xlsx"):
        other = quality_of(results / "model.privsyn", results / f"synthetic{ending}")
        assert [str(c["rows"]) for c in other["columns"]] == [str(c["rows"]) for c in facts["columns"]]


@pytest.mark.slow
def test_the_first_rows_of_a_large_table_stand_for_all(facts, results, monkeypatch):
    monkeypatch.setattr(quality, "ROWS", 500)
    some = quality_of(results / "model.privsyn", results / "synthetic.csv")
    assert (some["counted"], some["whole"], some["scaled"]) == (500, False, True)
    first = pd.read_csv(results / "synthetic.csv").head(500)["city"].fillna("(missing)").value_counts()
    for name, count in counts(some, "city").items():
        assert count == pytest.approx(first.get(name, 0) * some["rows"] / 500)
    monkeypatch.setattr(quality, "ROWS_OF_A_SHEET", 500)
    sheet = quality_of(results / "model.privsyn", results / "synthetic.xlsx")
    assert [str(each["rows"]) for each in sheet["columns"]] == [str(each["rows"]) for each in some["columns"]]
    monkeypatch.setattr(quality, "ROWS", facts["counted"])
    exactly = quality_of(results / "model.privsyn", results / "synthetic.csv")
    assert (exactly["counted"], exactly["whole"]) == (facts["counted"], True)


def test_each_estimate_lies_in_its_interval(facts):
    rows = [row for each in facts["columns"] for row in each["rows"]]
    assert all(row["low"] <= row["estimate"] <= row["high"] for row in rows)
    pairs = facts["pairs"] + facts["larger"]
    assert pairs
    assert all(0 <= row["low"] <= row["strength"] <= row["high"] <= 1 for row in pairs)
    assert not any(row["outside"] for row in rows)  # the rows show what the release says
    assert facts["agreement"] == []


def test_rows_that_differ_from_the_release_are_marked_and_named(app):
    place = app.session.results / "synthetic.csv"
    pd.read_csv(place).assign(city="Ulm").to_csv(place, index=False)
    text = shown(app)
    (said,) = re.findall(r"Rows differ from the release:</strong> ([^<]*)<", text)
    assert said.startswith("city: ")
    figure = next(part for part in text.split("<figure") if "<h3>city" in part)
    assert figure.count('class="outside"') == len(CITIES) + 1  # all others are empty, and so is "(missing)"
    assert "5 synthetic counts of 5 outside the intervals" in visible(figure)
    assert 'class="outside"' not in next(part for part in text.split("<figure") if "<h3>early" in part)


def test_a_pair_shows_the_strength_of_its_synthetic_rows(facts, results):
    """Ages decide the stars, in rows that are far from independent; the strength is counted here by hand."""
    pair = next(row for row in facts["pairs"] if set(row["columns"]) == {"age", "stars"})
    written = pd.read_csv(results / "synthetic.csv")
    shares = pd.crosstab(written["age"], written["stars"]).to_numpy() / len(written)
    alone = shares.sum(axis=1, keepdims=True) * shares.sum(axis=0, keepdims=True)
    finest = np.abs(shares - alone).sum() / 2
    assert 0.5 < pair["synthetic"] <= finest + 1e-9  # groups of ages hide a part of it
    assert pair["synthetic"] > finest - 0.1


@pytest.mark.slow
def test_a_column_of_which_nothing_was_found_is_said_to_be_invented(facts, app):
    assert column(facts, "nickname")["is"] == "invented"
    assert [each["name"] for each in facts["groups"]["invented"]] == ["nickname"]
    said = visible(shown(app))
    assert "nickname invented Nothing was found of this column" in said
    assert "Free text, left out: note" in said
    assert "Generated, with no relation to the private table: number" in said


@pytest.mark.slow
def test_the_screen_needs_no_private_row_and_shows_none(app):
    """It is the same if the private table is gone, so it cannot depend on a row."""
    text = shown(app)
    assert CANARY not in text
    assert "style=" not in text  # the policy forbids it
    assert "Oslo <b>" not in text
    assert "Oslo <b>" in unescape(text)
    app.session.choices.path.write_text("something else")
    app.session.quality.clear()
    assert shown(app) == text
    app.session.choices.path.unlink()
    app.session.quality.clear()
    assert shown(app) == text


def test_a_strength_near_zero_has_a_place_in_its_picture(app):
    shown(app)
    (found,) = app.session.quality.values()
    found["pairs"][0] |= {"low": 0.0, "strength": 1e-6, "synthetic": 1e-6, "high": 2e-6}
    text = shown(app)
    assert "&lt;0.01%</td>" in text
    assert not re.search(r'\b(?:width|x|cx)="(?![\d.]+%?")', text)


@pytest.mark.slow
def test_the_facts_are_made_once_for_each_run(app, monkeypatch):
    shown(app)
    monkeypatch.setattr("privsyn.app.screens.quality_of", None)
    shown(app)
    app.session.end()
    with pytest.raises(TypeError):
        shown(app)


def test_a_table_without_rows_is_no_error(results, tmp_path):
    header = (results / "synthetic.csv").read_text().splitlines()[0]
    (tmp_path / "synthetic.csv").write_text(f"{header}\n")
    empty = quality_of(results / "model.privsyn", tmp_path / "synthetic.csv")
    assert (empty["counted"], empty["agreement"]) == (0, [])
    assert all(row["synthetic"] is None for row in empty["pairs"])


@pytest.mark.slow
def test_rows_that_cannot_be_counted_leave_the_estimates(app):
    place = app.session.results / "synthetic.csv"
    pd.read_csv(place).drop(columns="age").to_csv(place, index=False)
    said = visible(shown(app))
    assert "The synthetic rows cannot be counted: the rows have no column" in said
    assert "Estimated mean" in said


def test_the_comparison_may_run_the_script_of_the_program_alone(results, tmp_path):
    """The policy is of the program, not of the page: a cell that became a script would not run."""
    place = tmp_path / "page.html"
    evaluate(table().head(200), results / "synthetic.csv", SCHEMA, models=False, report=place)
    page = place.read_text()
    (script,) = re.findall("<script>(.*?)</script>", page, re.S)
    assert len(re.findall("<script", page)) == 2  # the other is data
    policy = COMPARISON_HEADERS["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["sandbox"] == "allow-scripts"  # no allow-same-origin: no cookie, no request of ours
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


@pytest.fixture
def address(app):
    server = uvicorn.Server(uvicorn.Config(app.guard, lifespan="off", log_config=None))
    thread = Thread(target=server.run, kwargs={"sockets": [app.socket]})
    thread.start()
    yield app.address
    server.should_exit = True
    thread.join(60)
    assert not thread.is_alive()


def unfolded(tab):
    """Open all details; return the tab."""
    tab.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    return tab


def press(tab, text):
    """Reach what has this text by the keyboard alone, and press it."""
    for _ in range(200):
        tab.keyboard.press("Tab")
        if text in tab.evaluate("document.activeElement.textContent"):
            tab.keyboard.press("Enter")
            return
    raise AssertionError(text)


@pytest.mark.slow
def test_both_tabs_by_keyboard_and_the_private_page_in_one_of_its_own(app, address, tab, looked_at):
    tab.goto(address)
    tab.wait_for_url("**/choose")
    tab.goto(tab.url.replace("/choose", "/result"))
    assert tab.locator("nav .here").text_content() == "Result"
    looked_at(unfolded(tab))
    tab.reload()
    press(tab, "Compare with the real rows")
    tab.wait_for_url("**/compare")
    assert "for your eyes only" in tab.text_content(".red").lower()
    assert tab.locator("nav .here").text_content() == "Result"  # a part of it, no step
    assert app.session.comparison is None  # nothing is read before the button
    assert tab.request.get(tab.url.replace("/compare", "/comparison")).status == 404
    looked_at(unfolded(tab))
    tab.reload()
    press(tab, "I may see the real rows")
    tab.wait_for_selector("#progress")
    tab.wait_for_selector("text=Open the full comparison")
    assert (app.session.comparison.code, app.session.job.code) == (0, 0)
    looked_at(unfolded(tab))
    with tab.context.expect_page() as opened:
        tab.click("text=Open the full comparison")
    page = opened.value
    page.wait_for_selector(".switch button")  # made by its script
    assert page.evaluate("self.origin") == "null"
    headers = page.request.get(page.url).headers
    assert headers["content-security-policy"] == COMPARISON_HEADERS["content-security-policy"]
    assert headers["cache-control"] == "no-store"
    page.close()
    saved = tab.request.get(tab.url.replace("/compare", "/private-comparison.html"))
    assert saved.headers["content-disposition"] == 'attachment; filename="private-comparison.html"'
    app.session.end()
    assert app.session.comparison is None


HIGHEST = 2000
"""Most pixels of the screen, 1280 wide, before a person unfolds anything."""


def wide_table(rows):
    """Return 46 columns, of which many are poor, invented or generated, or have long names."""
    rng = np.random.default_rng(0)
    columns = {
        f"a rather long name of column {number}": rng.choice(
            [f"value {code}" for code in range(3 + number)], rows
        )
        for number in range(14)
    }
    columns |= {f"day_{number}": rng.integers(0, 4000, rows) for number in range(8)}
    columns |= {f"amount_{number}": rng.gamma(2, 100, rows) for number in range(14)}
    columns |= {f"note_{number}": [f"text {number} {row}" for row in range(rows)] for number in range(6)}
    frame = pd.DataFrame(columns | {f"id_{number}": range(rows) for number in range(4)})
    days = [name for name in frame if name.startswith("day")]
    frame[days] = frame[days].apply(lambda day: pd.Timestamp("2015-01-01") + pd.to_timedelta(day, "D"))
    return frame.mask(rng.random(frame.shape) < 0.2)


@pytest.mark.slow
def test_a_result_of_46_columns_is_short_and_stays_readable_when_it_is_unfolded(app, address, tab, looked_at):
    frame = wide_table(ROWS)
    kinds = {
        "a rather": lambda cells: Categorical(sorted(cells.dropna().unique())),
        "day": lambda _: Datetime("2015-01-01", "2025-12-31", unit="D"),
        "amount": lambda _: Numerical(0, 2000),
        "note": lambda _: Categorical(),
        "id": lambda _: Identifier(),
    }
    schema = {
        name: kind(frame[name])
        for name in frame
        for beginning, kind in kinds.items()
        if name.startswith(beginning)
    }
    with pytest.warns(UserWarning, match="no values or bounds") as warned:
        release = PrivSyn(1.0, 1e-9, Schema(schema), seed=1).fit(frame).release_
    app.session.job.complaints = [str(warned[0].message)]
    release.save(app.session.results / "model.privsyn")
    release.sample_to(app.session.results / "synthetic.csv", seed=1)
    report(release, app.session.results / "public.html")
    tab.goto(address)
    tab.wait_for_url("**/choose")
    tab.goto(tab.url.replace("/choose", "/result"))
    height = "document.documentElement.scrollHeight"
    looked_at(tab)  # at 1280 pixels, in the end
    assert tab.evaluate(height) <= HIGHEST
    for summary in tab.locator(".more > details > summary").all():
        summary.click()
    assert tab.evaluate(height) <= 3 * HIGHEST
    assert tab.locator("figure:visible").count() == 9
    tab.click("text=Show all 42 columns")
    assert tab.locator("figure:visible").count() == 42
    unfolded(tab)
    assert max(tab.locator(".scroll").evaluate_all("parts => parts.map(part => part.clientHeight)")) <= 320
    looked_at(tab)
    tab.reload()
    tab.click("a:has-text('note_0')")  # also what is folded is reached by its name
    expect(tab.locator("figure:target")).to_be_visible()


@pytest.mark.slow
def test_a_title_forgotten_before_the_run_can_be_written_afterwards(app, address, tab):
    folder = app.session.results
    released = load(folder / "model.privsyn")
    report(released, folder / "public.html")
    tab.goto(address)
    tab.wait_for_url("**/choose")
    tab.goto(tab.url.replace("/choose", "/result"))
    tab.click("text=The page has no title yet")
    tab.fill("input[name=title]", "Visits 2025")
    tab.fill("input[name=licence]", "all rights, reserved")
    tab.click("button[value=about]")
    assert "licence is an SPDX identifier" in tab.text_content("[role=alert]")
    assert tab.input_value("input[name=title]") == "Visits 2025"
    tab.fill("input[name=licence]", "cc-by-4.0")
    tab.click("button[value=about]")
    tab.wait_for_selector("text=Title and publisher: Visits 2025")
    again = load(folder / "model.privsyn")
    assert (again.about.title, again.about.licence) == ("Visits 2025", "CC-BY-4.0")
    assert again.ledger == released.ledger
    for name in ("public.html", "sheet.md", "schema.yaml"):
        assert "Visits 2025" in (folder / name).read_text(), name
    with tab.context.expect_page() as opened:
        tab.click("text=Look at the public page")
    page = opened.value
    page.wait_for_load_state()
    assert "Visits 2025" in page.text_content("h1, header, main")
    assert page.evaluate("self.origin") == "null"
    page.close()


@pytest.mark.slow
def test_a_comparison_that_fails_says_so_and_can_be_begun_again(app):
    app.session.choices.path.unlink()
    assert SCREENS["compare"].actions["compare"](app.session, {}) == "compare"
    while app.session.comparison.wait(1.0):
        pass
    text = shown(app, "compare")
    assert "The comparison failed." in text
    assert "people.csv" in text
    assert 'value="compare"' in text


def test_the_screen_of_persons_says_what_their_intervals_leave_out(app):
    sentence = "Of a person with many rows not all count"
    assert sentence not in shown(app)
    app.session.ran.table.links = {"link": "person"}
    assert sentence in shown(app)


@pytest.mark.slow
def test_columns_at_a_glance_have_the_mean_that_a_plan_expects(app, facts):
    """Each column has its own error, and `plan` one number: before, nothing told that this is the mean."""
    mean = np.mean([column["off"] for column in facts["columns"]])
    assert facts["mean_off"] == pytest.approx(mean)
    assert f"The mean over all columns is {100 * mean:.1f}. This mean is what" in shown(app)
