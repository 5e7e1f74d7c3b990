"""The public report says what this release can be used for, in words and numbers that a newcomer can read."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Database, Numerical, PrivSyn, Schema, Table
from privsyn.pages.sections import at_most, interval, percent
from privsyn.release.accuracy.verdicts import kept_how
from privsyn.studies.publication.data_sheet import render as render_sheet
from privsyn.studies.publication.public_page import render
from privsyn.studies.publication.relationships import overview, relationships


def pairs(*kept):
    """Tables of pairs that are kept so well: `strength` of each, and the largest error that it may have."""
    return [
        {
            "columns": (f"a{place}", f"b{place}"),
            "strength": strength,
            "error": error,
            "low": max(strength - error, 0.0),
            "high": min(strength + error, 1.0),
            "kept": kept_how(strength, error),
        }
        for place, (strength, error) in enumerate(kept)
    ]


WELL, ROUGHLY, HIDDEN = (0.4, 0.1), (0.3, 0.15), (0.73, 0.59)


@pytest.mark.parametrize(
    ("kept", "few"),
    [
        ([ROUGHLY, HIDDEN], True),
        ([WELL, ROUGHLY, ROUGHLY], False),
        ([WELL, ROUGHLY, ROUGHLY, ROUGHLY], True),
        ([WELL, HIDDEN, HIDDEN, HIDDEN], False),
        ([HIDDEN], True),
        ([], False),
    ],
)
def test_few_pairs_are_kept_well_if_under_a_third_of_those_that_are_decided(kept, few):
    found = overview((), pairs(*kept))
    assert (found["few"], found["measured"]) == (few, len(kept))


def test_the_worst_pair_is_strong_but_not_kept_well():
    """The pair with the largest error was named, which may be kept well."""
    found = overview((), pairs((0.9, 0.1), (0.3, 0.15), (0.2, 0.09), (0.73, 0.59)))
    assert found["worst"]["columns"] == ("a1", "b1")
    assert overview((), pairs((0.9, 0.1), (0.1, 0.3)))["worst"] is None


def test_the_page_names_the_worst_pair_or_says_that_there_is_none():
    page = render(released(1.0, 400, 0.7))
    assert "No measured pair is kept well. Take most care with a × b" in page
    assert "The best kept pair" not in page
    assert "Every pair that is decided is kept well." in render(released(5.0, 4000, 0.0))
    assert "No measured pair is decided." in render(released(0.05, 400, 1.0))


@pytest.mark.parametrize(("epsilon", "rows", "noise"), [(5.0, 4000, 0.0), (1.0, 400, 0.7), (0.05, 400, 1.0)])
def test_the_word_beside_a_relationship_follows_from_its_interval(epsilon, rows, noise):
    """73 % +- 59 % was "kept roughly: trust the direction", and 73 % +- 18 % was "kept well"."""
    (row,) = (
        row for row in relationships(released(epsilon, rows, noise).table()) if len(row["columns"]) == 2
    )
    ends = row["low"], row["high"]
    within = max(abs(row["strength"] - end) for end in ends)
    assert ends[0] <= row["strength"] <= ends[1]
    if row["kept"] == "kept well":
        assert within <= min(row["strength"] / 4, 0.1)
    elif row["kept"] == "kept roughly":
        assert row["low"] >= row["strength"] / 2 > 0
    else:
        assert row["low"] < row["strength"] / 2 or row["strength"] == 0
    assert f"{percent(row['low'])} to {percent(row['high'])}" in render(released(epsilon, rows, noise))


def test_a_relationship_is_not_decided_where_the_noise_may_point_the_other_way():
    assert kept_how(0.73, 0.59) == kept_how(0.0, 0.0001) == "not decided"
    assert kept_how(0.73, 0.18) == "kept roughly"
    assert kept_how(0.73, 0.1) == kept_how(0.08, 0.02) == "kept well"


def answer(page):
    return re.sub(r"\s+", " ", page.split("May I use it?")[1].split("</dd>")[0])


def released(epsilon, rows, noise):
    """Return a release of two columns that are equal except in a share `noise` of rows, where b is random."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, rows)
    b = np.where(rng.random(rows) < noise, rng.integers(0, 2, rows), a)
    schema = Schema({name: Categorical(["x", "y"], nullable=False) for name in "ab"})
    table = pd.DataFrame({"a": np.array(["x", "y"])[a], "b": np.array(["x", "y"])[b]})
    release = PrivSyn(epsilon, 1e-6, schema, seed=0).fit(table).release_
    return release.with_ledger(replace(release.ledger, private=True))  # as if not seeded


def test_the_page_says_how_many_pairs_are_kept_well_and_allows_relationships_only_then():
    """Of 21 pairs none was kept well, and yet the page allowed comparisons of groups."""
    said = answer(render(released(5.0, 4000, 0.0)))
    assert "comparisons of groups in the pairs of columns that are kept well (1 of 1 pair)" in said
    assert "hardly" not in said
    said = answer(render(released(1.0, 400, 0.7)))
    assert "Use it for shares and averages of single columns" in said
    assert "relationships between columns: hardly (0 of 1 pair kept well)" in said
    assert "comparisons" not in said


@pytest.mark.parametrize(
    ("epsilon", "rows", "noise", "words"),
    [
        (5.0, 4000, 0.0, "Shares and averages, and comparisons of groups in the pairs of columns that are"),
        (1.0, 400, 0.7, "relationships between columns: hardly (0 of 1 pair kept well)"),
        (0.05, 400, 1.0, "Not for what any two columns have to do with each other: noise hides it"),
    ],
)
def test_the_sheet_recommends_what_the_public_page_does(epsilon, rows, noise, words):
    """It recommended comparisons of groups on every table, even if the noise hid all relationships."""
    release = released(epsilon, rows, noise)
    said = render_sheet(release).split("What is it good for?** ")[1].split("\n")[0]
    assert words in said
    shown = answer(render(release))
    assert f"Use it for {said[0].lower()}{said[1:]}" in shown
    assert ("No for relationships: 0 of 1 pair is kept" in shown) is (noise == 1.0)


def homes_and_cars(epsilon, noise, rows=400):
    """Return a release of homes with two columns, equal except in a share `noise` of them, and their cars."""
    rng = np.random.default_rng(0)
    a, c = rng.integers(0, 2, (2, rows))
    b = np.where(rng.random(rows) < noise, rng.integers(0, 2, rows), a)
    words, two = np.array(["x", "y"]), Categorical(["x", "y"], nullable=False)
    tables = {
        "homes": pd.DataFrame({"home": range(rows), "a": words[a], "b": words[b]}),
        "cars": pd.DataFrame({"home": range(rows), "c": words[c]}),
    }
    homes, cars = Table(Schema({"a": two, "b": two}), key="home"), Schema({"c": two})
    database = Database({"homes": homes, "cars": Table(cars, parent="homes", link="home")})
    release = PrivSyn(epsilon, 1e-6, database, seed=0).fit(tables).release_
    return release.with_ledger(replace(release.ledger, private=True))  # as if not seeded


@pytest.mark.parametrize(
    ("epsilon", "noise", "word"), [(5.0, 0.0, "Yes"), (1.0, 0.5, "Roughly"), (1.0, 0.8, "No")]
)
def test_the_page_of_linked_tables_begins_with_the_word_of_their_relationships(epsilon, noise, word):
    """It said Yes as soon as one table had a single column, and where relationships are rough."""
    release = homes_and_cars(epsilon, noise)
    assert word.lower() in release.outlooks()["homes"].split(":")[0].lower()
    assert re.match(rf"</dt> <dd>{word}\b", answer(render(release)).strip())


def test_means_are_rounded_to_two_digits_of_their_interval():
    """The page had "long: mean -122 (-122 to -122)" and "yr_built: 1,971"."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"long": rng.normal(-122.2, 0.1, 4000), "built": rng.integers(1940, 2000, 4000)})
    schema = Schema({"long": Numerical(-123, -121), "built": Numerical(1900, 2015, integer=True)})
    page = render(PrivSyn(5.0, 1e-6, schema, seed=0).fit(rows).release_)
    assert re.search(r"mean -122\.\d{3,4} \(-122\.\d{3,4} to -122\.\d{3,4}\)", page)
    assert re.search(r"mean 19[67]\d(\.\d+)? \(19[67]\d(\.\d+)? to 19[67]\d(\.\d+)?\)", page)


@pytest.mark.parametrize(
    ("numbers", "texts"),
    [
        ((-0.01, -0.4, 12.0), ("0", "0", "12")),
        ((47.5604, 47.5512, 47.5691), ("47.56", "47.551", "47.569")),
        ((1e-12, 0.0, 1e-10), ("0", "0", "0")),
        ((1490.0, 1400.0, 1600.0), ("1,490", "1,400", "1,600")),
    ],
)
def test_the_three_numbers_of_an_interval_have_the_same_decimals(numbers, texts):
    decimals = {len(text.partition(".")[2]) for text in interval(*numbers)}
    assert len(decimals) == 1
    assert [float(text.replace(",", "")) for text in interval(*numbers)] == [
        float(text.replace(",", "")) for text in texts
    ]


def test_what_ranges_hide_of_a_mean_is_shown_in_plain_words_where_it_is_visible():
    """It was shown only above half the interval's width, in words that needed three readings."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"lot": rng.lognormal(9, 1, 4000).clip(0, 1e6), "few": rng.integers(0, 4, 4000)})
    schema = Schema({"lot": Numerical(0, 1e6), "few": Numerical(0, 3, integer=True)})
    release = PrivSyn(0.4, 1e-6, schema, seed=0).fit(rows).release_
    mean = release.accuracy_.means.set_index("column").loc["lot"]
    assert 0.05 < mean["within_cells"] / (mean["high"] - mean["low"]) < 0.5
    said = f"or up to {at_most(mean['within_cells'])} higher or lower, as only ranges were counted; median"
    page = render(release)
    assert said in page
    assert page.count("only ranges were counted") == 1


def test_the_page_says_beside_the_table_that_differences_in_a_row_are_not_kept():
    relationships = render(released(1.0, 400, 0.7)).split('<section id="tables">')[1].split("<tbody>")[0]
    assert "is not kept unless the schema declares a constraint on them" in relationships


def test_few_pairs_that_are_kept_well_may_be_used(monkeypatch):
    rows = pairs(WELL, *[ROUGHLY] * 5)
    monkeypatch.setattr(
        "privsyn.studies.publication.relationships.overview", lambda names, _: overview("abcd", rows)
    )
    said = answer(render(released(5.0, 4000, 0.0)))
    assert "only in the few pairs that are kept well (1 of 6 pairs)." in said
