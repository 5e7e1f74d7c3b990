"""The table of answers on the public page takes means of every kind of column."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from command import visible

from privsyn import Categorical, Datetime, Duration, Numerical, PrivSyn, Schema, Table, Time, report
from privsyn.release.accuracy.outlook import Outlook


@pytest.mark.parametrize("rows", [60, 4000])
def test_means_of_dates_times_and_numbers_are_shown_by_group(rows, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "job": rng.choice(["baker", "clerk"], rows),
            "start": pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 2000, rows), "D"),
            "at": pd.to_timedelta(rng.integers(0, 86_400, rows), "s"),
            "pay": rng.integers(0, 5000, rows),
        }
    )
    table["from"] = [f"{hour:02d}:30" for hour in rng.integers(0, 24, rows)]
    schema = Schema(
        {
            "job": Categorical(["baker", "clerk"], nullable=False),
            "start": Datetime("2015-01-01", "2020-12-31"),
            "at": Duration("0s", "1D"),
            "pay": Numerical(0, 5000, integer=True),
            "from": Time(format="%H:%M"),
        }
    )
    page = tmp_path / "page.html"
    report(PrivSyn(2.0, 1e-9, schema, seed=0).fit(table), page)
    text = page.read_text(encoding="utf-8")
    assert all(f"mean of {column}" in text for column in ("start", "at", "pay", "from"))


def test_a_table_of_one_column_is_shown_for_all_rows(tmp_path):
    table = pd.DataFrame({"job": ["baker", "clerk"] * 500})
    schema = Schema({"job": Categorical(["baker", "clerk"], nullable=False)})
    page = tmp_path / "page.html"
    report(PrivSyn(2.0, 1e-9, schema, seed=0).fit(table), page)
    text = page.read_text(encoding="utf-8")
    assert "<caption>All rows</caption>" in text
    assert re.search(r'<th scope="row">[^<]*job', text)


def test_rows_are_divided_by_columns_that_are_kept_and_by_values_that_have_rows(tmp_path):
    rng, rows = np.random.default_rng(0), 6000
    site = rng.choice(["North", "South", "West"], rows)
    line = rng.choice(12, rows, p=[0.2, *[0.08] * 10, 0.0])  # the last one has no row
    table = pd.DataFrame(
        {
            "code": np.where(rng.random(rows) < 0.02, "S0", rng.integers(0, 5000, rows).astype(str)),
            "site": site,
            "line": line.astype(str),
            "pay": rng.integers(0, 50, rows) + 50 * (site == "West"),
        }
    )
    columns = {
        "code": Categorical(nullable=False),
        "site": Categorical(nullable=False),
        "line": Categorical([str(number) for number in range(12)], nullable=False),
        "pay": Numerical(0, 100, integer=True, nullable=False),
    }
    page = tmp_path / "page.html"
    report(PrivSyn(8.0, 1e-9, Schema(columns), seed=0).fit(table), page)
    text = page.read_text(encoding="utf-8")
    answers = re.search(r'<section id="answers".*?</section>', text, re.DOTALL)[0]
    captions = re.findall(r"<caption>(.*?)</caption>", answers)
    groups = [re.findall(r'<th scope="col">(.*?)</th>', head)[2:] for head in answers.split("<caption>")[1:]]
    assert captions[0] == "By site"
    assert sorted(groups[0]) == ["North", "South", "West"]  # of (other) there is no row
    assert captions[1].startswith("By line (without ")
    assert len(groups[1]) == 5
    assert "0" in groups[1]
    assert "11" not in groups[1]
    assert len(captions) == 2  # nearly all codes are (other)


def test_the_page_shows_blanks_that_tell_two_values_apart(tmp_path):
    rows = pd.DataFrame({"job": ["clerk", "clerk ", "baker"] * 400, "sex": ["f", "m"] * 600})
    values = {"job": ["clerk", "clerk ", "baker"], "sex": ["f", "m"]}
    schema = Schema({name: Categorical(listed, nullable=False) for name, listed in values.items()})
    page = tmp_path / "page.html"
    report(PrivSyn(2.0, 1e-9, schema, seed=0).fit(rows), page)
    text = page.read_text(encoding="utf-8")
    assert {"clerk", "clerk␣", "baker"} <= {*re.findall(r'<th scope="row">([^<]*)</th>', text)}  # bars
    assert {"clerk", "clerk␣", "baker"} <= {*re.findall(r'<th scope="col">([^<]*)</th>', text)}  # answers
    assert '"clerk␣"' in text  # pairs to look at
    assert '"clerk "' not in text


def test_the_page_of_a_panel_shows_its_links_and_answers_by_a_column_of_persons(tmp_path):
    rng, persons = np.random.default_rng(0), 2000
    who = np.repeat(np.arange(persons), 3)
    sex = rng.choice(["f", "m"], persons)[who]
    ill = np.where(rng.random(len(who)) < np.where(sex == "f", 0.7, 0.2), "yes", "no")
    table = pd.DataFrame({"who": who, "year": np.tile([2001, 2002, 2003], persons), "sex": sex, "ill": ill})
    columns = {
        "year": Numerical(2001, 2003, integer=True, nullable=False),
        "sex": Categorical(["f", "m"], nullable=False),
        "ill": Categorical(["no", "yes"], nullable=False),
    }
    declared = Table(Schema(columns), constant=["sex"])
    settings = {"unit": "who", "identifiers": True, "order": "year", "seed": 0}
    model = PrivSyn(5.0, 1e-9, declared, **settings).fit(table)
    page = tmp_path / "page.html"
    report(model, page)
    text = page.read_text(encoding="utf-8")
    assert '<section id="links"' in text
    links = re.search(r'<th scope="row">rows × persons</th>(.*?)</tr>', text)
    kept, roughly, undecided, unmeasured = map(int, re.findall(r">(\d+)</td>", links[1]))
    of_persons = Outlook.of(model.release_.tables["rows"]).links
    (level,) = (level for level in of_persons if level.partner == "persons")
    assert kept + roughly + undecided + unmeasured == level.pairs
    assert kept + roughly == len(level.pairs_kept) > 0
    assert "ill × sex" in text or "sex × ill" in text
    by_sex = text[text.index("By sex") :]
    assert re.search(r'<th scope="row">share of ill = \w+</th>', by_sex[: by_sex.index("</table>")])


def test_columns_that_last_are_counted_alike_in_verdict_and_table_of_links(tmp_path):
    rng, persons = np.random.default_rng(0), 2000
    who = np.repeat(np.arange(persons), 3)
    home = rng.choice(["north", "south", "west"], persons)[who]
    ill = np.where(rng.random(len(who)) < np.where(home == "north", 0.8, 0.2), "yes", "no")
    table = pd.DataFrame({"who": who, "year": np.tile([2001, 2002, 2003], persons), "home": home, "ill": ill})
    columns = {
        "year": Numerical(2001, 2003, integer=True, nullable=False),
        "home": Categorical(["north", "south", "west"], nullable=False),
        "ill": Categorical(["no", "yes"], nullable=False),
    }
    declared = Table(Schema(columns), constraints=["home lasts"])
    settings = {"unit": "who", "identifiers": True, "order": "year", "seed": 0}
    model = PrivSyn(5.0, 1e-9, declared, **settings).fit(table)
    page = tmp_path / "page.html"
    report(model, page)
    text = page.read_text(encoding="utf-8")
    links = re.search(r'<th scope="row">rows × the row before</th>(.*?)</tr>', text)
    kept, roughly, lasting, undecided, unmeasured = map(int, re.findall(r">(\d+)</td>", links[1]))
    (level,) = (
        level
        for level in Outlook.of(model.release_.tables["rows"]).links
        if level.partner == "the row before"
    )
    assert kept + roughly + lasting + undecided + unmeasured == level.pairs
    assert kept + roughly + lasting == len(level.pairs_kept)
    assert lasting == len(model.release_.tables["rows"].lasting) > 0
    assert f"{len(level.pairs_kept)} of {level.pairs} with the row before" in text
    assert "Columns of rows that last: home" in text


def test_a_range_of_all_possible_numbers_is_called_unknown(tmp_path):
    """The page had ranges of 0% to 100%, and of both bounds, for groups of which noise hides everything."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"who": np.repeat(range(60), 4), "sex": rng.choice(["f", "m"], 240)})
    rows["pay"], rows["ill"] = rng.integers(0, 10, 240), rng.choice(["no", "yes"], 240)
    schema = Schema(
        {
            "sex": Categorical(["f", "m"], nullable=False),
            "pay": Numerical(0, 9, integer=True, nullable=False),
            "ill": Categorical(["no", "yes"], nullable=False),
        }
    )
    fitted = PrivSyn(0.3, 1e-9, schema, unit="who", identifiers=True, seed=0).fit(rows)
    report(fitted, tmp_path / "page.html")
    text = visible((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "unknown" in text
    assert "0%–100%" not in text
