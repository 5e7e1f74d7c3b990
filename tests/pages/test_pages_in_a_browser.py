"""The pages on a phone, on paper and under the keyboard: columns with long names and values."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, Datetime, Numerical, PrivSyn, Schema, Table, evaluate, report
from privsyn.evaluation.report import MOST_MAPPED
from privsyn.studies.error_trace import trace

OFFENCES = [
    "Speeding",
    "Driving While License Suspended or Revoked",
    "Possession of a Controlled Substance in the Second Degree",
    *(f"averylongnamewithoutanyblankinit_{place:02d}_{'x' * 40}" for place in range(20)),
]
WIDE, PHONE, PAPER, SCREEN = 1280, 390, 718, 900
COLUMNS, RELEASED = 46, 16  # of the private page, whose map does not show all; of the public one

# What lies beyond the window's right edge, but for what a box that can be scrolled holds back.
BEYOND = """() => {
    const scrolls = (element) => element && (getComputedStyle(element).overflowX === "auto" ||
        element.matches(".hidden") || scrolls(element.parentElement));
    return [...document.querySelectorAll("body *")]
        .filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5)
        .filter((element) => !scrolls(element.parentElement))
        .filter((element) => !element.ownerSVGElement || element.tagName === "text")  // clipped
        .map((element) => `${element.tagName} ${element.className} ${element.textContent.slice(0, 40)}`);
}"""


def wide(count):
    """A table of so many columns, of four kinds, and its schema."""
    rng, rows = np.random.default_rng(0), 2000
    columns, kinds = {}, {}
    for place in range(count):
        name = f"{place}_of_what_the_household_reported_to_the_regional_office"
        match place % 4:
            case 0:
                columns[name] = rng.lognormal(10, 1.2, rows).round(2)
                kinds[name] = Numerical(0, 50_000_000, decimals=2)
            case 1:
                columns[name] = np.datetime64("2013-01-01") + rng.gamma(2, 200, rows).astype(int)
                kinds[name] = Datetime("2013-01-01", "2023-12-31")
            case 2:
                columns[name] = rng.choice(OFFENCES, rows)
                kinds[name] = Categorical(OFFENCES)
            case _:
                columns[name] = rng.integers(0, 3, rows)
                kinds[name] = Numerical(0, 2, integer=True)
    return pd.DataFrame(columns), Schema(kinds)


HOUSEHOLDS, VISITS, DOSES = (f"{name}_of_the_regional_office" for name in ("homes", "visits", "doses"))


def linked(seed):
    """Households, up to ten visits of each, and what belongs to these."""
    rng = np.random.default_rng(seed)
    homes, visits, doses = (wide(count)[0] for count in (4, 8, 3))
    turns = {"key": rng.permutation(np.repeat(np.arange(400), 5)), "turn": rng.random(2000)}
    return {
        HOUSEHOLDS: homes.iloc[:400].assign(key=range(400)),
        VISITS: visits.assign(visit=range(2000), **turns),
        DOSES: doses.assign(visit=rng.integers(0, 1000, 2000)),
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """The public and the private page of one wide table; for the private one the quick method will do."""
    folder = tmp_path_factory.mktemp("pages")
    table, schema = wide(RELEASED)
    report(PrivSyn(5.0, 1e-9, schema, seed=0).fit(table).release_, folder / "public.html")
    table, schema = wide(COLUMNS)
    model = PrivSyn(5.0, 1e-9, schema, method="published", seed=0).fit(table)
    synthetic = model.sample(seed=0)
    ledger = json.loads(model.ledger_.to_json())
    origins = trace(model.release_, table, synthetic)
    private = folder / "private.html"
    evaluate(table, synthetic, schema, models=False, report=private, ledger=ledger, origins=origins)
    database = Database(
        {
            HOUSEHOLDS: Table(wide(4)[1], key="key"),
            VISITS: Table(wide(8)[1], key="visit", parent=HOUSEHOLDS, link="key", order="turn"),
            DOSES: Table(wide(3)[1], parent=VISITS, link="visit"),
        }
    )
    evaluate(linked(0), linked(1), database, models=False, report=folder / "linked.html")
    return {page.stem: page for page in folder.iterdir()}


def opened(chromium, page, width):
    """A tab with the page, all of it unfolded."""
    tab = chromium.new_page(viewport={"width": width, "height": 900})
    tab.goto(page.as_uri())
    tab.evaluate("document.querySelectorAll('details').forEach((element) => { element.open = true; })")
    return tab


@pytest.mark.slow("each case")
@pytest.mark.parametrize("width", [PHONE, WIDE])
@pytest.mark.parametrize("name", ["public", "private", "linked"])
def test_nothing_is_wider_than_the_window(chromium, pages, name, width):
    tab = opened(chromium, pages[name], width)
    beyond = tab.evaluate(BEYOND)
    scrolled = tab.evaluate("document.documentElement.scrollWidth")
    tab.close()
    assert beyond == []
    assert scrolled == width


def test_counts_of_a_large_table_fit_a_phone(chromium, pages):
    tab = opened(chromium, pages["public"], PHONE)
    tab.evaluate("""document.querySelectorAll(".between").forEach((cell) => {
        cell.textContent = "123,456,000–123,457,000";
        cell.previousElementSibling.textContent = "123,456,789";
    })""")
    scrolled = tab.evaluate("document.documentElement.scrollWidth")
    tab.close()
    assert scrolled == PHONE


def test_boxes_that_scroll_can_be_reached_by_the_keyboard(chromium, pages):
    tab = opened(chromium, pages["private"], PHONE)
    boxes = tab.evaluate(
        "[...document.querySelectorAll('body *')]"
        ".filter((box) => getComputedStyle(box).overflowX === 'auto').map((box) => box.tabIndex)"
    )
    tab.close()
    assert len(boxes) >= 4  # the map, and three tables of the pair
    assert set(boxes) == {0}


def test_the_public_page_has_no_box_to_scroll(chromium, pages):
    tab = opened(chromium, pages["public"], PHONE)
    boxes = tab.evaluate(
        "[...document.querySelectorAll('body *')]"
        ".filter((box) => getComputedStyle(box).overflowX === 'auto').length"
    )
    tab.close()
    assert boxes == 0


@pytest.mark.parametrize("name", ["public", "private", "linked"])
def test_on_paper_nothing_is_cut_off_and_all_counts_are_shown(chromium, pages, name):
    tab = chromium.new_page(viewport={"width": PAPER, "height": 1000})
    tab.goto(pages[name].as_uri())
    tab.evaluate("document.querySelectorAll('.part').forEach((part) => { part.open = true; })")
    tab.emulate_media(media="print")
    beyond = tab.evaluate(BEYOND.replace("auto", "never"))
    folded = tab.evaluate(
        "[...document.querySelectorAll('#columns figure details > :not(summary)')]"
        ".filter((part) => !part.checkVisibility() || !part.getBoundingClientRect().height).length"
    )
    tab.close()
    assert beyond == []
    assert folded == 0


def test_the_public_page_is_three_screens_and_five_sheets_of_paper(chromium, pages):
    """It was 6,600 to 10,900 pixels, and 9 to 16 sheets."""
    tab = chromium.new_page(viewport={"width": WIDE, "height": SCREEN})
    tab.goto(pages["public"].as_uri())
    height = tab.evaluate("document.documentElement.scrollHeight")
    starts = tab.evaluate("['answers', 'columns'].map((name) => document.getElementById(name).offsetTop)")
    sheets = len(re.findall(rb"/Type /Page\b", tab.pdf(format="A4")))
    tab.close()
    assert height <= 3.4 * SCREEN  # up to seven groups of long names
    assert starts[0] <= 2 * SCREEN
    assert 1 <= sheets <= 5


def test_labels_are_whole(chromium, pages):
    """Dates were cut after 18 letters: "2013-01-01 to 201..."."""
    tab = opened(chromium, pages["public"], PHONE)
    labels = tab.locator("#columns tbody th").all_inner_texts()
    cut = tab.evaluate(
        "[...document.querySelectorAll('#columns th')]"
        ".filter((cell) => cell.scrollWidth > cell.clientWidth).length"
    )
    tab.close()
    assert sum(label.startswith("2013-01-01 to 201") and len(label) == 24 for label in labels) > 2
    assert OFFENCES[1] in labels
    assert cut == 0


def test_the_map_says_how_many_columns_it_shows(chromium, pages):
    tab = opened(chromium, pages["private"], WIDE)
    note = tab.locator("#pairs").inner_text()
    cells = tab.locator(".map rect").count()
    tab.close()
    assert f"The map shows {MOST_MAPPED} of {COLUMNS} columns" in note
    assert f"{MOST_MAPPED * (MOST_MAPPED - 1) // 2 - cells} of 780 pairs are blank" in note


def test_the_map_has_a_colour_scale_that_follows_what_is_shown(chromium, pages):
    tab = opened(chromium, pages["private"], WIDE)
    ends = tab.locator(".scale span")
    largest = tab.evaluate(
        "Math.max(...JSON.parse(document.getElementById('data').textContent).matrices.error.flat())"
    )
    error = ends.all_inner_texts()
    tab.get_by_role("button", name="Cramér’s V, real").click()
    other = ends.all_inner_texts()
    tab.get_by_role("button", name="error").click()
    again = ends.all_inner_texts()
    tab.close()
    assert error == again == ["0%", f"{largest:.1%}"]
    assert other == ["0", "1"]


def test_the_map_is_one_stop_of_the_keyboard_and_arrows_move_within_it(chromium, pages):
    tab = opened(chromium, pages["private"], WIDE)
    assert tab.locator(".map rect[tabindex='0']").count() == 1
    chosen = tab.locator(".map rect.chosen")
    start = chosen.get_attribute("data-pair")
    chosen.focus()
    before = tab.locator("#pair h3").inner_text()
    row, column = map(int, start.split("-"))
    tab.keyboard.press("ArrowUp" if row > column + 2 else "ArrowLeft")
    focused = tab.evaluate("document.activeElement.dataset.pair")
    tab.keyboard.press("Enter")
    after, stops = tab.locator("#pair h3").inner_text(), tab.locator(".map rect[tabindex='0']").count()
    tab.close()
    assert focused != start
    assert after != before
    assert stops == 1


def bars_of_the_first_column(chromium, page):
    """Widths of its bars in 320ths of the axis, and what their tooltips say."""
    tab = opened(chromium, page, WIDE)
    figure = tab.locator("#columns figure").first
    widths = [float(bar.get_attribute("width")) for bar in figure.locator("svg g rect").all()]
    titles = [title.text_content() for title in figure.locator("svg g title").all()]
    said = figure.inner_text()
    tab.close()
    assert "Not to scale" in said
    return widths, titles


def test_released_incomes_do_not_crowd_at_the_end_of_the_axis(chromium, pages):
    """Nine in ten lie below a hundredth of the bound, and took as much of the axis."""
    widths, titles = bars_of_the_first_column(chromium, pages["public"])
    counts = [int(re.search(r": ([\d,]+), between", title)[1].replace(",", "")) for title in titles]
    half, most = 0, 0.0
    for count, width in sorted(zip(counts, widths, strict=True), reverse=True):
        if half < sum(counts) / 2:
            half, most = half + count, most + width
    assert most > 320 / 8


def test_real_incomes_are_not_one_bar(chromium, pages):
    _, titles = bars_of_the_first_column(chromium, pages["private"])
    shares = [float(re.search(r"real ([\d.]+)%", title)[1]) for title in titles]
    assert sum(shares) == pytest.approx(100, abs=1)
    assert max(shares) < 25
