"""Scores of rows that belong together: by hand, of copies, of rows dealt at random, and a slow reference."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import yaml

from privsyn import Categorical, Database, Datetime, InputError, Numerical, Schema, Table, evaluate
from privsyn.evaluation.comparison import Comparison, _split
from privsyn.evaluation.encoding import Classes, code_together
from privsyn.evaluation.link_metrics import BROKEN, METRICS_OF_PERSONS, SUMS, summaries
from privsyn.evaluation.linked_comparison import LinkedComparison
from privsyn.evaluation.linked_rows import BrokenKeys, LinkedRows, as_one, read_tables
from privsyn.table.database.yaml_form import database_to_plain

SCHEMA = Schema({"c": Categorical(["a", "b"]), "n": Numerical(0, 10)})
REAL = pd.DataFrame({"who": [1, 1, 2, 2], "c": list("abaa"), "n": [1.0, 2, 3, 4]})
OTHER = pd.DataFrame({"who": [7, 7, 7, 5], "c": list("aaab"), "n": [0.0, 1, 2, 9]})


def test_the_scores_of_two_persons_by_hand():
    turns = {"turn": range(4)}
    scores = evaluate(
        REAL.assign(**turns), OTHER.assign(**turns), SCHEMA, unit="who", order="turn", models=False
    )
    assert scores.persons == (2, 2)
    assert scores.children_mean.synthetic == 1  # two rows each, against three and one
    assert scores.numbers_of_rows["rows"][1][:4] == (0.0, 0.5, 0.0, 0.5)
    next_ones = dict(scores.worst_of_persons["next"])
    assert next_ones["c, then c"] == 0.5  # ab, aa against aa, aa
    profile = dict(scores.worst_of_persons["profile"])
    assert (profile["c = a"], profile["c = b"]) == (1.0, 0.0)  # a: 1, 2 against 3, 0. b: 1, 0 against 0, 1
    sums = dict(scores.worst_of_persons["sums"])
    of = {"sum": 0.5, "mean": 3.0, "least": 3.5, "largest": 2.5, "first": 3.5, "last": 2.5}
    assert sums == {f"{how} of n": distance for how, distance in of.items()}
    assert scores.sums_mean.synthetic == pytest.approx(15.5 / 6)
    assert np.isnan(scores.later_mean.synthetic)  # no real person has three rows
    assert np.isnan(scores.parent_child_mean.synthetic)  # persons have no columns


def test_persons_without_a_next_row_are_all_off():
    single = OTHER.assign(who=[1, 2, 3, 4])
    scores = evaluate(REAL, single, SCHEMA, unit="who", models=False)
    assert scores.next_mean.synthetic == 1
    assert np.isnan(evaluate(single, REAL, SCHEMA, unit="who", models=False).next_mean.synthetic)


def test_who_has_many_rows_is_compared():
    """As many have one row and three rows, but the large homes are in the other area."""
    database = Database({name: HOMES.tables[name] for name in ("homes", "people")})
    base = {"homes": pd.DataFrame({"home": [1, 2], "area": ["N", "S"]})}
    real, other = (
        base | {"people": pd.DataFrame({"one": range(4), "home": home, "c": "a"})}
        for home in ([1, 2, 2, 2], [1, 1, 1, 2])
    )
    scores = evaluate(real, other, database, models=False)
    assert dict(scores.worst_of_persons["children"]) == {
        "homes.area x number of rows": 1.0,
        "number of rows": 0.0,
    }


HOMES = Database(
    {
        "homes": Table(Schema({"area": Categorical(["N", "S"])}), key="home"),
        "people": Table(Schema({"c": Categorical(["a", "b"])}), key="one", parent="homes", link="home"),
        "jobs": Table(Schema({"j": Categorical(["x", "y"])}), parent="people", link="one", order="year"),
    }
)


def homes(people: str, jobs: str) -> dict[str, pd.DataFrame]:
    return {
        "homes": pd.DataFrame({"home": ["h", "k"], "area": ["N", "S"]}),
        "people": pd.DataFrame({"one": [1, 2, 3], "home": ["h", "h", "k"], "c": [*people]}),
        "jobs": pd.DataFrame({"one": [1, 1, 1, 3], "year": [1, 2, 3, 1], "j": [*jobs]}),
    }


def test_the_scores_of_three_tables_by_hand(tmp_path):
    page = tmp_path / "page.html"
    scores = evaluate(homes("aab", "xxyy"), homes("bab", "xyyy"), HOMES, models=False, report=page)
    assert "people: Tables of counts" in page.read_text()
    assert "jobs of each row of people: histogram" in page.read_text()
    assert scores.children_max.synthetic == pytest.approx(1 / 3)  # jobs: a 3, a 0, b 1; b 3, a 0, b 1
    parent = dict(scores.worst_of_persons["parent_child"])
    assert parent["people: homes.area x c"] == pytest.approx(1 / 3)
    assert parent["jobs: people.c x j"] == pytest.approx(3 / 4)
    assert scores.ancestors_mean.synthetic == pytest.approx(1 / 4)  # area x j: one of four rows
    assert dict(scores.worst_of_persons["next"]) == {
        "people: c, then c": 1.0,  # aa against ba
        "jobs: j, then j": 0.5,  # xx, xy against xy, yy
    }
    assert scores.later_mean.synthetic == 0  # x, then y
    assert scores.tables.keys() == {"homes", "people", "jobs"}
    assert scores.tables["people"].one_way_mean.synthetic == pytest.approx(1 / 3)
    assert scores.row()["people.one_way_mean"] == scores.tables["people"].one_way_mean.synthetic
    assert json.loads(scores.to_json())["tables"]["jobs"]["columns"] == ["j"]
    assert "Table people\n3 synthetic rows" in str(scores)
    assert "Table jobs: " in scores.verdict


def tables_of(seed: int, homes_: int = 150) -> dict[str, pd.DataFrame]:
    """Three tables in which rows of one person are alike, with missing cells and rows in no order."""
    rng = np.random.default_rng(seed)
    area = rng.choice(["N", "S"], homes_)
    home = np.repeat(np.arange(homes_), rng.integers(0, 5, homes_))
    c = np.where(rng.random(len(home)) < 0.8, np.where(area[home] == "N", "a", "b"), "a").astype(object)
    c[rng.random(len(home)) < 0.1] = None
    one = np.repeat(np.arange(len(home)), rng.integers(0, 6, len(home)))
    jobs = pd.DataFrame({"one": one, "year": rng.integers(1990, 2000, len(one))})
    jobs["j"] = np.where((c[one] == "a") ^ (rng.random(len(one)) < 0.1), "x", "y")
    jobs["pay"] = np.where(rng.random(len(one)) < 0.1, np.nan, one % 7 + rng.normal(size=len(one)))
    return {
        "homes": pd.DataFrame({"home": np.arange(homes_), "area": area}),
        "people": pd.DataFrame({"one": np.arange(len(home)), "home": home, "c": c}),
        "jobs": jobs.sample(frac=1, random_state=seed),
    }


WIDE = Database(
    dict(HOMES.tables)
    | {
        "jobs": Table(
            Schema({"j": Categorical(["x", "y"]), "pay": Numerical(-5, 12)}),
            parent="people",
            link="one",
            order="year",
        )
    }
)
KINDS = ("children", "parent_child", "ancestors", "next", "later", "profile", "sums")


def test_copies_are_without_error_whatever_their_keys_and_the_order_of_their_rows():
    real = tables_of(0)
    new = {"homes": {"home": "h"}, "people": {"home": "h", "one": "p"}, "jobs": {"one": "p"}}
    copy = {
        name: frame.assign(**{key: letter + frame[key].astype(str) for key, letter in new[name].items()})
        for name, frame in real.items()
    }
    copy["homes"] = copy["homes"][::-1]
    scores = evaluate(real, copy, WIDE, models=False)
    for kind in KINDS:
        assert getattr(scores, f"{kind}_max").synthetic == pytest.approx(0, abs=1e-12), kind
    assert scores.out_of_order.synthetic == scores.out_of_order.real > 0
    assert scores.orphans.synthetic == scores.duplicate_keys.synthetic == 0


def pairs_of_neighbours(jobs: pd.DataFrame, steps: int) -> pd.Series:
    """The shares of pairs of j, slowly."""
    jobs = jobs.sort_values(["one", "year"], kind="stable")
    later = jobs.groupby("one")["j"].shift(-steps)
    return (jobs["j"] + later).dropna().value_counts(normalize=True)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "steps"), [("next", 1), ("later", 2)])
def test_neighbours_are_those_of_a_slow_reference(kind, steps):
    real, other = tables_of(1), tables_of(2)
    scores = evaluate(real, other, WIDE, models=False)
    shares = [pairs_of_neighbours(of["jobs"], steps) for of in (real, other)]
    expected = shares[0].sub(shares[1], fill_value=0).abs().sum() / 2
    assert dict(scores.worst_of_persons[kind])["jobs: j, then j"] == pytest.approx(expected)


def test_profiles_are_those_of_a_slow_reference():
    real, other = tables_of(1), tables_of(2)
    scores = evaluate(real, other, WIDE, models=False)
    for value in ("a", "b", "(missing)"):
        shares = []
        for of in (real, other):
            has = of["people"]["c"].fillna("(missing)") == value
            number = has.groupby(of["people"]["home"]).sum().reindex(of["homes"]["home"], fill_value=0)
            shares.append(number.clip(upper=6).value_counts(normalize=True))
        expected = shares[0].sub(shares[1], fill_value=0).abs().sum() / 2
        found = dict(scores.worst_of_persons["profile"])
        assert found.get(f"people: c = {value}", expected) == pytest.approx(expected)
    assert len(found) == 10


def test_summaries_are_those_of_pandas():
    rng = np.random.default_rng(0)
    owner = np.sort(rng.integers(0, 30, 100))
    numbers = np.where(rng.random(100) < 0.5, np.nan, rng.normal(size=100))
    found = summaries(numbers, owner, 40)
    groups = pd.Series(numbers).dropna().groupby(owner[~np.isnan(numbers)])
    for how, name in zip(SUMS, ("sum", "mean", "min", "max", "first", "last"), strict=True):
        np.testing.assert_allclose(found[how], getattr(groups, name)().reindex(range(40)))
    assert all(np.isnan(of).all() for of in summaries(np.array([np.nan]), np.array([0]), 2).values())


def test_numbers_are_cut_at_the_octiles_of_the_real_rows():
    real = pd.DataFrame({"n": [1.0] * 50 + [2.0] * 50 + [None] * 10, "even": [*range(110)]})
    other = pd.DataFrame({"n": [0.0, 1, 1.5, 2, 9, None], "even": 110})
    comparison = Comparison.of(real, other, Schema({"n": Numerical(0, 9), "even": Numerical(0, 200)}))
    classes = Classes.of(comparison.view, comparison.real, "n")
    codes = classes.code(np.empty(0), comparison.synthetic.numbers["n"])
    assert [classes.words[code] for code in codes] == ["", "1", "", "2", "2", "(missing)"]
    even = Classes.of(comparison.view, comparison.real, "even")
    counts = np.bincount(even.code(np.empty(0), comparison.real.numbers["even"]))
    assert len(even.words) == 9
    assert set(counts.tolist()) == {13, 14}
    assert (even.words[0], even.words[7]) == ("0 to 13", "96 to 109")


def buyers(seed: int, persons: int = 800) -> pd.DataFrame:
    """Each person buys what it bought before, more and more of it."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(persons), rng.integers(1, 7, persons))
    what = rng.choice(["tea", "milk", "rice"], persons)[who]
    day = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, len(who)), unit="D")
    much = rng.gamma(2.0, 2.0, persons)[who] + rng.random(len(who))
    return pd.DataFrame({"who": who, "day": day, "what": what, "much": much.round(2)})


@pytest.fixture(scope="module")
def dealt() -> pd.DataFrame:
    real = buyers(0)
    return real.assign(who=np.random.default_rng(1).permutation(real["who"]))


@pytest.fixture(scope="module")
def of_dealt_rows(dealt, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "page.html"
    scores = evaluate(buyers(0), dealt, unit="who", order="day", models=["linear"], report=path)
    return scores, path.read_text()


@pytest.mark.slow
def test_rows_dealt_at_random_are_found_out(of_dealt_rows):
    """All tables of rows are exact; what is known about persons is lost, and the reference shows it."""
    scores, _ = of_dealt_rows
    assert scores.pair_max.synthetic == scores.children_max.synthetic == 0
    for kind in ("next", "later", "profile", "sums"):
        mean = getattr(scores, f"{kind}_mean")
        assert mean.synthetic > 3 * mean.real, kind
        assert mean.independent == pytest.approx(mean.synthetic, rel=0.15), kind
    assert scores.detection.synthetic > 0.9
    assert scores.worst_of_persons["next"][0][0] == "what, then what"
    assert "of the pairs of a person's row and the next one" in scores.verdict.lower()


@pytest.mark.slow
def test_the_page_shows_persons(of_dealt_rows):
    scores, page = of_dealt_rows
    assert '<section id="persons">' in page
    assert "800 real persons, 800 synthetic ones" in page
    assert "rows of a person: histogram of the real and the synthetic table" in page
    assert "what, then what" in page
    assert "sd</b>" in page
    assert all(found[0][0] in page for found in scores.worst_of_persons.values())


@pytest.mark.slow
def test_a_copy_of_persons_cannot_be_told_apart():
    """A twin of every row is on the other side, so that the model can only be worse than chance."""
    scores = evaluate(buyers(0), buyers(0), unit="who", order="day", models=["linear"])
    assert scores.detection.synthetic < 0.55 < 0.9 < scores.detection.independent
    assert np.isnan(evaluate(buyers(0), buyers(0), unit="who", models=False).detection.synthetic)


@pytest.mark.slow
def test_one_table_with_a_unit_is_a_database_whose_root_has_no_columns(dealt):
    schema = Schema(
        {
            "day": Datetime("2024-01-01", "2024-12-31"),
            "what": Categorical(["tea", "milk", "rice"]),
            "much": Numerical(0, 50),
        }
    )
    database = Database(
        {
            "buyers": Table(Schema({}), key="who"),
            "buys": Table(schema, parent="buyers", link="who", order="day"),
        }
    )
    two = [{"buyers": rows[["who"]].drop_duplicates(), "buys": rows} for rows in (buyers(0), dealt)]
    no_root = [{"buys": rows["buys"]} for rows in two]
    as_table = evaluate(buyers(0), dealt, schema, unit="who", order="day", models=False)
    as_database = evaluate(*two, database, models=False)
    assert as_table.row() == as_database.row() == evaluate(*no_root, database, models=False).row()
    assert as_table.worst_of_persons == as_database.worst_of_persons


@pytest.mark.slow
def test_a_database_may_be_the_path_of_a_file(tmp_path):
    path = tmp_path / "homes.yaml"
    path.write_text(yaml.safe_dump(database_to_plain(WIDE)))
    real, other = tables_of(1), tables_of(2)
    assert evaluate(real, other, path, models=False).row() == evaluate(real, other, WIDE, models=False).row()


def test_keys_in_files_are_text(tmp_path):
    """Read as numbers, 007 and 7 would be one home."""
    tables = {
        "homes": pd.DataFrame({"home": ["007", "7"], "area": ["N", "S"]}),
        "people": pd.DataFrame({"one": ["01", "1"], "home": ["007", "7"], "c": ["a", "b"]}),
        "jobs": pd.DataFrame({"one": ["01", "1"], "year": [1, 2], "j": ["x", "y"]}),
    }
    for name, frame in tables.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    paths = {name: tmp_path / f"{name}.csv" for name in tables}
    scores = evaluate(tables, paths, HOMES, models=False)
    assert (scores.orphans.synthetic, scores.duplicate_keys.synthetic) == (0, 0)
    assert scores.ancestors_max.synthetic == 0


def test_of_many_columns_some_pairs_are_compared(monkeypatch):
    monkeypatch.setattr("privsyn.evaluation.link_metrics.MOST_PAIRS", 3)
    scores = evaluate(REAL, OTHER, SCHEMA, unit="who", models=False)
    assert len(scores.worst_of_persons["next"]) == 3


@pytest.mark.slow
def test_an_order_beside_the_columns_sorts_numbers_and_text():
    rows = pd.DataFrame({"who": ["p"] * 3, "c": [*"aab"], "turn": [9, 10, 11], "n": 1.0})
    for turn in ([11, 9, 10], ["11", "9", "10"], ["c", "a", "b"]):
        other = pd.DataFrame({"who": ["q"] * 3, "c": [*"baa"], "turn": turn, "n": 1.0})
        scores = evaluate(rows, other, SCHEMA, unit="who", order="turn", models=False)
        assert scores.next_max.synthetic == 0, turn
        assert scores.out_of_order.synthetic == 1, turn
        assert evaluate(rows, other, SCHEMA, unit="who", models=False).next_max.synthetic > 0


@pytest.mark.slow
def test_without_an_order_that_of_the_file_is_not_compared():
    """Both rows of each person differ. The share of ab among 2,000 pairs is off by 0.1 in 10^-9 of runs."""
    real = pd.DataFrame({"who": np.repeat(np.arange(2000), 2), "c": [*"ab"] * 2000, "n": 1.0})
    real["turn"] = np.arange(4000)
    other = real.sample(frac=1, random_state=0).assign(turn=np.arange(4000))
    ordered = evaluate(real, other, SCHEMA, unit="who", order="turn", models=False)
    found = evaluate(real, other, SCHEMA, unit="who", models=False)
    assert dict(ordered.worst_of_persons["next"])["c, then c"] == pytest.approx(0.5, abs=0.1)
    assert dict(found.worst_of_persons["next"])["c, then c"] < 0.1
    assert found.out_of_order.synthetic == 0


def test_broken_keys_are_counted():
    tables = homes("aab", "xxyy")
    tables["people"] = pd.concat([tables["people"], tables["people"][:1]])
    tables["jobs"] = pd.DataFrame(
        {"one": pd.array([3, 3, 1, 99, None], "Int64"), "year": [2, 1, 1, 1, 1], "j": [*"xxxyy"]}
    )
    links, found = LinkedRows.of(tables, HOMES)
    assert [len(rows) for rows in links.rows.values()] == [2, 3, 3]
    assert links.rows["people"].tolist() == [0, 1, 2]  # of two rows with one key the first
    assert found == BrokenKeys(duplicate_keys=1, orphans=2, out_of_order=1)
    scores = evaluate(homes("aab", "xxyy"), tables, HOMES, models=False)
    assert [getattr(scores, name).synthetic for name in BROKEN] == [1, 2, 1]
    assert [getattr(scores, name).real for name in BROKEN] == [0, 0, 0]


def test_rows_without_an_identifier_belong_to_nobody():
    rows = REAL.assign(who=pd.array([1, 1, None, None], "Int64"))
    scores = evaluate(REAL, rows, SCHEMA, unit="who", models=False)
    assert scores.persons == (2, 1)
    assert scores.orphans.synthetic == 2


def test_a_root_row_without_a_key_is_nobody():
    tables = homes("aab", "xxyy")
    tables["homes"] = tables["homes"].assign(home=["h", None])
    links, found = LinkedRows.of(tables, HOMES)
    assert [len(rows) for rows in links.rows.values()] == [1, 2, 3]
    assert found == BrokenKeys(orphans=3)


def test_a_database_of_one_table_needs_no_key():
    database = Database({"rows": Table(SCHEMA)})
    scores = evaluate({"rows": REAL}, {"rows": OTHER}, database, models=False)
    assert scores.persons == (4, 4)
    alone = evaluate(REAL, OTHER, SCHEMA, models=False)
    assert scores.pair_mean.synthetic == alone.pair_mean.synthetic
    assert np.isnan(scores.children_mean.synthetic)


def test_persons_are_drawn_again_with_all_their_rows():
    tables = tables_of(3)
    links, _ = LinkedRows.of(tables, WIDE)
    drawn = links.resample(WIDE, {WIDE.root: 200}, np.random.default_rng(0))
    assert len(drawn.rows["homes"]) == 200
    for links_ in (links, drawn):
        for name in ("people", "jobs"):
            assert (np.diff(links_.parent[name]) >= 0).all()
    where = drawn.roots(WIDE, "jobs")
    jobs = tables["jobs"].assign(home=tables["people"].set_index("one")["home"][tables["jobs"]["one"]].array)
    for place, home in enumerate(drawn.rows["homes"]):
        theirs = drawn.rows["jobs"][where == place]
        assert sorted(theirs) == np.flatnonzero(jobs["home"] == home).tolist()


def test_dealt_rows_keep_the_number_of_rows_of_each_parent_row():
    tables = tables_of(3)
    links, _ = LinkedRows.of(tables, WIDE)
    dealt = links.deal(WIDE, np.random.default_rng(0))
    for name, up in (("people", "homes"), ("jobs", "people")):
        numbers = []
        for of in (links, dealt):
            assert sorted(of.rows[name]) == sorted(links.rows[name])
            number = np.bincount(of.parent[name], minlength=len(of.rows[up]))
            numbers.append(dict(zip(of.rows[up].tolist(), number.tolist(), strict=True)))
        assert numbers[0] == numbers[1]
        assert (links.rows[name] != dealt.rows[name]).any()


def test_dealt_rows_are_in_the_order_of_their_own_dates_and_in_no_order_of_their_numbers():
    """Of 300 persons with the rows a, b; a date stays with its row, the numbers 1 and 2 do not."""
    rows = pd.DataFrame({"who": np.repeat(np.arange(300), 2), "c": [*"ab"] * 300, "n": [1.0, 2.0] * 300})
    rows["turn"] = [1, 2] * 300
    for order, share in (("n", 0.0), ("turn", 0.25)):  # of pairs ba
        database = as_one(SCHEMA, "who", order)
        links, _ = LinkedRows.of(read_tables("real", rows, database), database)
        dealt = links.deal(database, np.random.default_rng(0))
        pairs = rows["c"].to_numpy()[dealt.rows["rows"]].reshape(300, 2)
        assert (pairs == ["b", "a"]).all(axis=1).mean() == pytest.approx(share, abs=0.15), order


def test_the_rows_of_a_person_are_held_out_together():
    rows = buyers(0)
    _, (coded,) = code_together([rows.drop(columns="who")])
    owners = rows["who"].to_numpy().copy()
    owners[:3] = -1
    train, test = _split(coded, owners, np.random.default_rng(0))
    sides = [{*owners[side.source_rows]} - {-1} for side in (train, test)]
    assert not sides[0] & sides[1]
    assert sides[0] | sides[1] == {*owners} - {-1}
    assert len(test) == pytest.approx(0.2 * len(rows), abs=6)
    alone = _split(coded, np.zeros(len(rows), np.int64), np.random.default_rng(0))
    assert [len(side) for side in alone] == [len(rows), len(rows)]


def test_real_rows_drawn_again_are_persons_drawn_again():
    """As a reference for tables of rows, too: rows of a person are alike, so they say less than others."""
    rows, database = buyers(0), as_one(None, "who", "day")
    frames = {which: read_tables(which, rows, database) for which in ("real", "synthetic")}
    (rows_compared,) = LinkedComparison.of(frames, database).comparisons.values()
    drawn = (
        pd.Series(rows_compared.resampled.source_rows).value_counts().reindex(range(len(rows)), fill_value=0)
    )
    of_persons = drawn.groupby(rows["who"].to_numpy())
    assert (of_persons.min() == of_persons.max()).all()
    assert drawn.max() > 1


@pytest.mark.slow
def test_test_rows_may_have_identifiers(dealt):
    scores = evaluate(buyers(0), dealt, unit="who", target="what", test=buyers(5), models=["linear"])
    assert scores.test_rows == len(buyers(5))
    assert scores.linear_auc.real > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((REAL, OTHER.drop(columns="who"), SCHEMA), "the synthetic table has no column 'who', which says"),
        ((REAL.drop(columns="who"), OTHER, SCHEMA), "the real table has no column 'who', which says"),
        ((REAL, OTHER.assign(who=None), SCHEMA), "object|nobody"),
        ((REAL, OTHER.assign(who=np.nan), SCHEMA), "the synthetic table has nobody"),
        ((REAL, OTHER, Schema({"who": Categorical(), "c": Categorical()})), "the key 'who' is a column of"),
        ((REAL, OTHER, HOMES), "linked tables take no unit"),
    ],
)
def test_what_cannot_be_compared_is_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        evaluate(*arguments, unit="who")


def test_what_a_database_cannot_do_is_refused():
    tables = homes("aab", "xxyy")
    lacking = {name: frame for name, frame in tables.items() if name != "jobs"}
    for other, more, words in (
        (tables["homes"], {}, "synthetic: give a mapping of the names"),
        (lacking, {}, "the synthetic tables lack 'jobs'"),
        (tables | {"jobs": tables["jobs"].drop(columns="year")}, {}, "'jobs' has no column 'year', by which"),
        (tables, {"target": "c"}, "linked tables take no target: take one table alone"),
        (tables, {"order": "year"}, "linked tables take no order"),
    ):
        with pytest.raises(InputError, match=words):
            evaluate(tables, other, HOMES, models=False, **more)
    with pytest.raises(InputError, match="order needs unit"):
        evaluate(REAL, OTHER, order="n")


def test_without_persons_no_score_of_persons_is_shown():
    scores = evaluate(REAL.drop(columns="who"), OTHER.drop(columns="who"), SCHEMA, models=False)
    assert not scores.table().keys() & METRICS_OF_PERSONS.keys()
    assert (scores.persons, scores.worst_of_persons, scores.tables) == ((), {}, {})
    assert "person" not in str(scores)
