"""A draft of several tables proposes rules of lives that nearly all rows keep, and that say something."""

import numpy as np
import pandas as pd
import pytest

from privsyn.table.drafting.linked import LinkedDraft
from privsyn.table.io.formats import every_table


def careers(persons=400, seed=0):
    """Persons with yearly rows."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(persons):
        years = np.sort(rng.choice(np.arange(1990, 2010), rng.integers(2, 9), replace=False))
        tenure, married, home = 0, False, rng.choice(["north", "south", "east"])
        for year in years.tolist():
            tenure, married = tenure + int(rng.integers(0, 3)), married or rng.random() < 0.25
            home = rng.choice(["north", "south", "east"]) if rng.random() < 0.05 else home
            mood = rng.choice(["good", "bad"])
            rows.append((person, year, tenure, "yes" if married else "no", home, mood))
    columns = ["person_id", "year", "tenure", "married", "home", "mood"]
    return {
        "persons": pd.DataFrame({"person_id": range(persons), "born": rng.integers(1940, 1980, persons)}),
        "lives": pd.DataFrame(rows, columns=columns),
    }


def proposals(tables, folder):
    """The rules that the draft proposes for the tables, each with what stands behind it."""
    folder.mkdir()
    for name, table in tables.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    text = LinkedDraft.read(every_table(folder)).text(folder=folder)[0]
    lines = [line.strip() for line in text.splitlines() if line.strip().startswith("#- ")]
    return dict(line.removeprefix("#- ").split("  # READ: ") for line in lines)


def test_rules_that_rows_keep_are_proposed_and_no_others(tmp_path):
    found = proposals(careers(), tmp_path / "in")
    assert {*found} == {"year rises", "tenure never falls", "married stays 'yes'", "home lasts"}
    assert "break it" not in "".join(found.values())


@pytest.mark.parametrize(("share", "proposed"), [(0.004, True), (0.05, False)])
def test_a_few_rows_may_break_a_rule(share, proposed, tmp_path):
    tables = careers()
    rows = tables["lives"]
    wrong = np.random.default_rng(1).random(len(rows)) < share
    rows.loc[wrong, "year"] = rows["year"].shift(1)[wrong].fillna(1990).astype(int)
    found = proposals(tables, tmp_path / "in")
    assert ("year rises" in found) == proposed
    if proposed:
        assert "break it" in found["year rises"]


def test_keys_and_numbers_of_rows_with_a_value_are_proposed(tmp_path):
    rng = np.random.default_rng(0)
    pairs = [
        (person, f"c{pair // 3}", f"t{pair % 3}", "head" if place == 0 else "member")
        for person in range(300)
        for place, pair in enumerate(rng.choice(18, rng.integers(2, 7), replace=False).tolist())
    ]
    rows = pd.DataFrame(pairs, columns=["person_id", "course", "term", "role"])
    rows = rows.sample(frac=1.0, random_state=0)
    persons = pd.DataFrame({"person_id": range(300), "born": rng.integers(1940, 1980, 300)})
    found = proposals({"persons": persons, "rows": rows}, tmp_path / "in")
    assert {*found} == {"(course, term) is unique", "at most 1 role == 'head'"}


def test_random_rows_have_no_rules(tmp_path):
    tables, rng = careers(), np.random.default_rng(0)
    for column in ("tenure", "married", "home"):
        tables["lives"][column] = rng.permutation(tables["lives"][column])
    tables["lives"]["year"] = rng.integers(1990, 2010, len(tables["lives"]))
    assert proposals(tables, tmp_path / "in") == {}


def test_a_rule_that_all_rows_keep_comes_before_one_that_some_break(tmp_path):
    homes = [["head", "lodger", "wife"]] * 2 + [["head", "wife", "lodger", "lodger"]] * 300 + [["head"]] * 99
    rows = [(home, nr + 1, role) for home, roles in enumerate(homes) for nr, role in enumerate(roles)]
    members = pd.DataFrame(rows, columns=["home", "nr", "role"])
    found = proposals({"homes": pd.DataFrame({"home": range(401)}), "members": members}, tmp_path / "in")
    assert {*found} == {"at most 1 role == 'head'"}
    assert "break it" not in found["at most 1 role == 'head'"]


def test_a_key_without_a_name_of_its_own_leads_to_the_same_column_of_another_table(tmp_path):
    tables = {name: table.rename(columns={"person_id": "id"}) for name, table in careers().items()}
    assert "home lasts" in proposals(tables, tmp_path / "in")


@pytest.mark.parametrize(("ends", "rule"), [(True, "outcome == 'dead' is last"), (False, None)])
def test_a_value_after_which_no_row_comes_is_proposed_as_the_last(ends, rule, tmp_path):
    """`at most 1 outcome == 'dead'` was proposed, after which synthetic lives went on."""
    tables, rng = careers(), np.random.default_rng(0)
    rows = tables["lives"].drop(columns=["tenure", "married", "home", "mood"])
    last = rows["person_id"] != rows["person_id"].shift(-1)
    dead = rng.random(len(rows)) < 0.2
    rows["outcome"] = np.where(dead & last if ends else dead, "dead", "home")
    tables["lives"] = rows
    assert [text for text in proposals(tables, tmp_path / "in") if "outcome" in text] == [rule][:ends]
