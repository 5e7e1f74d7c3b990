"""How often keys, orders and rules of linked tables are broken: by hand, and of tables that keep them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hospital import SCHEMA, hospital, store

from privsyn import Categorical, Database, Datetime, InputError, Numerical, Schema, Table, evaluate
from privsyn.evaluation.integrity import broken_rules
from privsyn.evaluation.linked_rows import LinkedRows

WARD, KIND = Categorical(["eyes", "skin"]), Categorical(["head", "other"])
DAY = Datetime("2024-01-01", "2024-12-31")
RULED = Database(
    {
        "patients": Table(
            Schema({"born": DAY, "all": Numerical(0, 99, integer=True), "n": Numerical(0, 9, integer=True)}),
            key="patient",
            constraints=["all == sum(visits.cost)", "n == count(visits)"],
        ),
        "visits": Table(
            Schema(
                {
                    "day": DAY,
                    "left": DAY,
                    "ward": WARD,
                    "kind": KIND,
                    "cost": Numerical(0, 99, integer=True),
                    "town": Categorical(["Oslo", "Rome"]),
                }
            ),
            parent="patients",
            link="patient",
            order="turn",
            children="1..2",
            constant=["town"],
            one=["kind == 'head'", "ward == 'eyes'"],
            constraints=["day >= patients.born", "day <= left"],
        ),
    }
)


def tables() -> dict[str, pd.DataFrame]:
    """Three patients with one, two and one visits, in which every rule holds."""
    patients = {"patient": [1, 2, 3], "born": "2024-02-01", "all": [5, 3, 0], "n": [1, 2, 1]}
    visits = {"patient": [1, 2, 2, 3], "turn": [1, 1, 2, 1], "day": "2024-03-01", "left": "2024-03-01"}
    visits |= {"ward": ["eyes", "eyes", "skin", "eyes"], "kind": ["head", "other", "head", "head"]}
    visits |= {"cost": [5, 1, 2, 0], "town": ["Oslo", "Rome", "Rome", "Oslo"]}
    return {"patients": pd.DataFrame(patients), "visits": pd.DataFrame(visits)}


RULES = [
    "patients: all == sum(visits.cost)",
    "patients: n == count(visits)",
    "visits: day, left (increasing)",
    "visits: day >= patients.born",
    "visits: 1 to 2 for each row of patients",
    "visits: one town for each row of patients",
    "visits: kind == 'head' in one row for each row of patients",
    "visits: ward == 'eyes' in one row for each row of patients",
]


def changed(table: str, column: str, cells: dict[int, object]) -> dict[str, pd.DataFrame]:
    """The tables with other cells in one column."""
    found = tables()
    for row, cell in cells.items():
        found[table].loc[row, column] = cell
    return found


@pytest.mark.parametrize(
    ("planted", "broken"),
    [
        (tables(), {}),
        (changed("patients", "all", {0: 6, 2: 1}), {0: 2}),
        (changed("patients", "n", {1: 1}), {1: 1}),
        (changed("visits", "left", {3: "2024-02-28"}), {2: 1}),
        (changed("visits", "day", {0: "2024-01-31", 3: "2024-01-31"}), {3: 2}),
        (changed("visits", "day", {0: None}), {}),  # a missing cell keeps a comparison
        (changed("visits", "patient", {3: 2}), {1: 2, 4: 2, 5: 1, 6: 1, 7: 1}),
        (changed("visits", "patient", {3: 99}), {1: 1, 4: 1}),  # an orphan is counted as such alone
        (changed("visits", "town", {2: None}), {5: 1}),
        (changed("visits", "kind", {0: "other", 1: "head"}), {6: 2}),
    ],
)
def test_each_rule_is_counted(planted, broken):
    links, _ = LinkedRows.of(planted, RULED)
    found = broken_rules(planted, links, RULED)
    assert list(found) == RULES
    assert {place: times for place, times in enumerate(found.values()) if times} == broken


def test_rows_that_all_belong_to_nobody_break_what_their_parents_need():
    planted = changed("visits", "patient", dict.fromkeys(range(4), 99))
    links, _ = LinkedRows.of(planted, RULED)
    broken = {rule: times for rule, times in broken_rules(planted, links, RULED).items() if times}
    assert broken == {RULES[0]: 2, RULES[1]: 3, RULES[4]: 3}
    scores = evaluate(tables(), planted, RULED, models=False)
    assert scores.linked.broken["rows that belong to nobody"] == (4, 0)


@pytest.mark.parametrize("rows", [1, 2, 0])
def test_without_a_schema_a_number_that_all_rows_have_is_a_number(rows):
    """It was taken for a value, so the rule was broken by every row; a day without a row was an error."""
    trips = Table(parent="homes", link="home")
    database = Database({"homes": Table(key="home", constraints=["total == count(trips)"]), "trips": trips})
    below = pd.DataFrame({"home": np.repeat(range(60), rows), "day": pd.Timestamp("2020-01-01")})
    frames = {"homes": pd.DataFrame({"home": range(60), "total": rows}), "trips": below}
    frames["trips"]["day"] = frames["trips"]["day"].astype("datetime64[s]")
    assert broken_rules(frames, LinkedRows.of(frames, database)[0], database) == {
        "homes: total == count(trips)": 0
    }


def test_the_first_row_is_that_of_the_order():
    first = Database(
        {
            "patients": Table(Schema({}), key="patient"),
            "visits": Table(
                Schema({"kind": KIND}),
                parent="patients",
                link="patient",
                order="turn",
                one="first(kind) == 'head'",
            ),
        }
    )
    visits = pd.DataFrame({"patient": [1, 1, 2, 2], "turn": [2, 1, 1, 2], "kind": ["other", "head"] * 2})
    given = {"patients": pd.DataFrame({"patient": [1, 2, 3]}), "visits": visits}
    found = broken_rules(given, LinkedRows.of(given, first)[0], first)
    assert [*found.values()] == [1]  # of the second patient; the third has no row


def test_rules_on_several_levels_and_in_reals():
    """A grandchild is compared with a person; float32 sums are off by rounding, and no more."""
    database = Database(
        {
            "a": Table(Schema({"top": Numerical(0, 9)}), key="a"),
            "b": Table(
                Schema({"sum": Numerical(0, 99)}),
                key="b",
                parent="a",
                link="a",
                constraints=["sum == sum(c.x)"],
            ),
            "c": Table(Schema({"x": Numerical(0, 9)}), parent="b", link="b", constraints=["x <= a.top"]),
        }
    )
    x = np.array([0.1, 0.2, 0.7, 5.0], np.float32)
    given = {
        "a": pd.DataFrame({"a": [1, 2], "top": [0.5, 5.0]}),
        "b": pd.DataFrame({"b": [10, 20], "a": [1, 2], "sum": [0.3, 5.7]}),
        "c": pd.DataFrame({"b": [10, 10, 20, 20], "x": x}),
    }
    broken = broken_rules(given, LinkedRows.of(given, database)[0], database)
    assert [*broken.values()] == [0, 0]
    given["c"]["b"] = [20, 20, 10, 10]
    broken = broken_rules(given, LinkedRows.of(given, database)[0], database)
    assert [*broken.values()] == [2, 2]


@pytest.mark.slow
def test_what_holds_is_said_first():
    real, wrong = tables(), changed("visits", "town", {2: "Oslo"})
    wrong["patients"]["patient"] = [1, 1, 3]
    scores = evaluate(real, wrong, RULED, models=False)
    assert scores.linked.broken["keys that occur twice"] == (1, 0)
    assert scores.linked.broken["rows that belong to nobody"] == (2, 0)
    text = str(scores)
    assert text.index("BROKEN: 2 rules of 11") < text.index("patients, one row a person: 2 synthetic, 3 real")
    assert text.index("visits, rows of patients") < text.index("Of the pairs of a person's row")
    plain = json.loads(scores.to_json())["linked"]
    assert plain["broken"]["visits: one town for each row of patients"] == [0, 0]  # its rows are orphans
    kinds = {"children", "parent_child", "within", "next", "profile", "sums"}
    assert plain["alike"]["visits"].keys() == kinds
    kept = evaluate(real, tables(), RULED, models=False)
    assert "All 11 hold in the synthetic tables" in str(kept)
    assert all(score.synthetic == 0 for of in kept.linked.alike.values() for score in of.values())


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Two hospitals of 60 patients in folders, DuckDB and SQLite, and their schema."""
    folder = tmp_path_factory.mktemp("hospitals")
    for seed in (0, 1):
        made = hospital(60, seed)
        (folder / f"h{seed}").mkdir()
        for name, rows in made.items():
            rows.to_csv(folder / f"h{seed}" / f"{name}.csv", index=False)
        for ending in ("duckdb", "sqlite"):
            store(made, folder / f"h{seed}.{ending}")
    (folder / "hospital.yaml").write_text(SCHEMA.replace("drugs.csv", "h0/drugs.csv"))
    return folder


@pytest.mark.slow
def test_folders_and_databases_have_the_scores_of_frames(stored):
    schema = stored / "hospital.yaml"
    of_frames = evaluate(hospital(60, 0), hospital(60, 1), schema, models=False)
    assert set(of_frames.linked.broken.values()) == {(0, 0)}
    for real, other in (("h0", "h1"), ("h0.duckdb", "h1.sqlite"), ("h0.sqlite", "h1")):
        found = evaluate(stored / real, str(stored / other), schema, models=False)
        assert found.linked == of_frames.linked
        assert found.row() == of_frames.row()


def test_a_place_without_the_tables_is_refused(stored):
    with pytest.raises(InputError, match="there is no such folder or file"):
        evaluate(stored / "none", stored / "h1", stored / "hospital.yaml", models=False)
    with pytest.raises(InputError, match="the synthetic tables lack 'patients'"):
        evaluate(stored / "h0", stored, stored / "hospital.yaml", models=False)
    with pytest.raises(InputError, match="is one table, and several are declared"):
        evaluate(stored / "h0", stored / "h1" / "visits.csv", stored / "hospital.yaml", models=False)
