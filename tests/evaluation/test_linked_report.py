"""The report of linked tables: neighbours by hand, and that no real person is shown."""

import re

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, Numerical, Schema, Table, evaluate
from privsyn.evaluation.report import MOST_CLASSES, PERSONS_SHOWN, ROWS_SHOWN

HOMES, ROWS = 30, 12
WORDS = [f"{which}{place}" for which in ("real", "made") for place in range(20)]
DATABASE = Database(
    {
        "homes": Table(Schema({"town": Categorical(WORDS)}), key="home"),
        "people": Table(
            Schema({"job": Categorical(WORDS), "year": Numerical(0, 9999, integer=True)}),
            key="one",
            parent="homes",
            link="home",
            order="year",
        ),
        "jobs": Table(Schema({"what": Categorical(WORDS)}), parent="people", link="one"),
    }
)


def homes(which, first):
    """Homes, each of `ROWS` persons with one job; all cells and keys say of which tables they are."""
    rng = np.random.default_rng(first)
    one = np.arange(HOMES * ROWS)
    keys = [f"{which}-key-{place}" for place in one]

    def words(rows):
        return [f"{which}{place}" for place in rng.integers(0, 20, rows)]

    people = pd.DataFrame({"one": keys, "home": [f"{which}-key-{place // ROWS}" for place in one]})
    return {
        "homes": pd.DataFrame({"home": keys[:HOMES], "town": words(HOMES)}),
        "people": people.assign(job=words(len(one)), year=first + one),
        "jobs": pd.DataFrame({"one": keys, "what": words(len(one))}),
    }


def section(page, name):
    return page.split(f'<section id="{name}">')[1].split("</section>")[0]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    evaluate(homes("real", 1000), homes("made", 5000), DATABASE, models=False, report=path)
    return path.read_text()


def test_no_real_person_is_shown(page):
    shown = section(page, "timelines")
    assert shown.count("Synthetic person") == PERSONS_SHOWN
    assert "real" not in shown.replace("No real person is shown", "")
    years = [int(year) for year in re.findall(r"<span>year</span> (\d+)", shown)]
    assert len(years) == PERSONS_SHOWN * ROWS_SHOWN
    assert min(years) >= 5000
    assert shown.count(f"and {ROWS - ROWS_SHOWN} more") == PERSONS_SHOWN
    assert shown.count("<circle") == PERSONS_SHOWN * ROWS  # a point for each time
    assert shown.count("jobs, 1") == PERSONS_SHOWN * ROWS_SHOWN
    assert "-key-" not in page


def test_many_values_are_a_few_and_the_rest(page):
    shown = section(page, "next")
    assert "others" in shown
    assert "without an order, so each row beside another one of its parent" not in shown  # one job each
    squares = shown.count('class="heat"')
    assert squares == 2 * MOST_CLASSES**2  # of job; the year is the order


def test_what_follows_what_by_hand(tmp_path):
    """After a: b twice, a once in the real rows; b always in the synthetic ones."""
    schema = Schema({"c": Categorical(["a", "b"])})
    real = pd.DataFrame({"who": [1, 1, 1, 2, 2, 3], "c": list("aababb"), "turn": range(6)})
    made = real.assign(c=list("ababab"))
    path = tmp_path / "page.html"
    evaluate(real, made, schema, unit="who", order="turn", models=False, report=path)
    shown = section(path.read_text(), "next")
    for text in (
        "real: after a, b in 66.7%",
        "real: after a, a in 33.3%",
        "synthetic: after a, b in 100.0%",
        "synthetic: after b, a in 100.0%",
    ):
        assert text in shown
    assert "Most off: after a comes a in 33.3% of the real rows and in 0% of the synthetic ones" in shown
    assert 'id="linked"' not in path.read_text()  # of one table there are no rules


def test_the_page_says_what_holds(tmp_path):
    path = tmp_path / "page.html"
    wrong = homes("made", 5000)
    wrong["jobs"].loc[:4, "one"] = "nobody"
    evaluate(homes("real", 1000), wrong, DATABASE, models=False, report=path)
    shown = section(path.read_text(), "linked")
    assert "BROKEN: 1 rule of 3, most of all rows that belong to nobody (5)" in shown
    assert "how many people each row of homes has" in shown
    assert "people, rows of homes: 360 synthetic, 360 real" in shown
