"""Laws of the attacks: a planted leak is found and measured, and where there is none, none is found.

Seeds are fixed; the stated probabilities are those of a wrong verdict with random seeds.
"""

from __future__ import annotations

import json
from math import isnan

import numpy as np
import pandas as pd
import pytest
import yaml
from command import run

from privsyn import Categorical, Database, Datetime, InputError, Numerical, Risks, Schema, Table, attack
from privsyn.evaluation.attacks import attack as attacks
from privsyn.evaluation.attacks.attack import Predicate, of_rare_values, of_rows
from privsyn.evaluation.attacks.persons import Attacked
from privsyn.evaluation.attacks.points import MISSING_COORDINATE, Points, distances, scale_together
from privsyn.evaluation.attacks.rate import Rate
from privsyn.evaluation.attacks.risks import LIMITS, Risk
from privsyn.evaluation.encoding import code_together
from privsyn.evaluation.scores import NOT_PRIVATE
from privsyn.table.database.yaml_form import database_to_plain

ROWS = 600


def people(seed: int, rows: int = ROWS) -> pd.DataFrame:
    """Numbers, dates, categories and missing cells; most rows have no twin."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["baker", "clerk", "miller", "smith"], size=rows, p=[0.5, 0.3, 0.15, 0.05])
    pay = np.where(job == "baker", 1000.0, 2000.0) + rng.normal(0, 200, rows)
    started = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 500, rows), unit="D")
    return pd.DataFrame(
        {
            "job": job,
            "pay": np.where(rng.random(rows) < 0.1, np.nan, pay.round(1)),
            "age": rng.integers(16, 100, rows),
            "started": started,
            "town": rng.choice([f"t{n}" for n in range(40)], rows),
        }
    )


@pytest.fixture(scope="module", autouse=True)
def _fewer_tries():
    """For speed: the laws hold of any number of predicates."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attacks, "TRIES", 2000)
        yield


KEPT, HELD_OUT = people(1), people(2)
ALL = [
    "single out by one column",
    "single out by 4 columns",
    "link two halves of a row",
    *(f"infer {name}" for name in KEPT),
]


@pytest.fixture(scope="module")
def of_a_copy() -> Risks:
    return attack(KEPT, KEPT, HELD_OUT)


def test_a_copy_of_the_rows_is_found_out_by_every_attack(of_a_copy):
    assert list(of_a_copy.attacks) == ALL
    assert of_a_copy.leaks == tuple(ALL)
    assert all(risk.train.value > 0.95 and risk.interval[0] > 0.8 for risk in of_a_copy.attacks.values())
    assert "A LEAK" in of_a_copy.verdict


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_new_rows_of_the_population_reveal_nothing(seed):
    # Twice three halves of the interval are 5.9 standard errors on either side: 4e-9 for each of 8 risks.
    risks = attack(KEPT, people(10 + seed), HELD_OUT, seed=seed)
    assert len(risks.attacks) == len(ALL)
    for risk in risks.attacks.values():
        assert not risk.above_zero_by(3)
        assert not Risk(risk.control, risk.train, risk.naive).above_zero_by(3)


@pytest.mark.slow
@pytest.mark.parametrize("size", [ROWS // 4, 3 * ROWS], ids=["fewer held out", "more held out"])
def test_how_many_rows_are_held_out_makes_neither_a_leak_nor_none(size):
    held_out = people(2, size)
    fresh, copied = (attack(KEPT, made, held_out) for made in (people(3), KEPT))
    assert not any(risk.above_zero_by(3) for risk in fresh.attacks.values())
    assert all(risk.interval[0] > 0.5 for risk in copied.attacks.values())
    assert copied.attacks["link two halves of a row"].train.attacks == min(ROWS, size)


def test_the_risk_of_linking_is_the_share_of_rows_that_were_copied():
    # A rate of 0.3 among 600 rows has a standard error of 0.019, and here are five of them on either side.
    # A row that was not copied is linked as seldom as one held out, and that is what the risk takes off.
    copied = int(0.3 * ROWS)
    made = pd.concat([KEPT[:copied], people(3)[copied:]])
    risk = attack(KEPT, made, HELD_OUT).attacks["link two halves of a row"]
    assert risk.value == pytest.approx(0.3, abs=0.095)


def test_whoever_finds_two_rows_has_linked_nothing():
    risk = attack(KEPT, pd.concat([KEPT, KEPT]), HELD_OUT).attacks["link two halves of a row"]
    assert risk.train.successes == 0


def test_values_that_were_carried_over_are_found_though_no_row_was():
    rng = np.random.default_rng(0)
    made = KEPT.apply(lambda column: column.sample(frac=1, random_state=int(rng.integers(2**31))).to_numpy())
    risks = attack(KEPT, made, HELD_OUT)
    assert risks.leaks == ("single out by one column",)
    assert risks.attacks["single out by one column"].interval[0] > 0.9


def test_the_sides_exchanged_leak_nothing(of_a_copy):
    exchanged = attack(HELD_OUT, KEPT, KEPT)
    assert exchanged.leaks == ()
    assert all(risk.value < -0.1 for risk in exchanged.attacks.values())
    assert all(risk.interval[0] >= -1 for risk in exchanged.attacks.values())


def test_what_the_columns_say_about_each_other_is_no_leak():
    risk = attack(*(people(seed, 1500) for seed in (1, 3, 2)), secrets=["job"]).attacks["infer job"]
    assert risk.train.value > risk.naive.value + 0.1  # 1,500 rows: nine standard errors
    assert not risk.above_zero_by(3)


def test_only_the_secrets_asked_for_are_inferred():
    risks = attack(KEPT, KEPT, HELD_OUT, secrets=["pay", "job", "pay"])
    assert list(risks.attacks)[3:] == ["infer pay", "infer job"]


def test_a_schema_says_which_columns_there_are():
    schema = Schema({"job": Categorical(["baker", "clerk", "miller", "smith"]), "age": Numerical(16, 100)})
    risks = attack(KEPT, people(3), HELD_OUT, schema)
    assert risks.columns == ("job", "age")
    assert not any("4 columns" in name for name in risks.attacks)


def test_of_one_column_only_values_can_be_told():
    risks = attack(KEPT[["pay"]], KEPT[["pay"]], HELD_OUT[["pay"]])
    assert list(risks.attacks) == ALL[:1]
    assert risks.attacks[ALL[0]].naive.attacks == 0  # a guess that sees single columns would be the attack
    assert "naive" not in risks.to_dict()["attacks"][ALL[0]]
    with pytest.raises(InputError, match="no attack is possible"):
        attack(KEPT[["job"]], KEPT[["job"]], HELD_OUT[["job"]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"secrets": ["wage"]}, "secret 'wage' is not a compared column"),
        ({"secrets": "job"}, r"secrets must be a list of columns: write \['job'\]"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"control": KEPT[:0]}, "the control table has no rows"),
        ({"control": KEPT[::-1]}, "the control table has the rows of the real one"),
        ({"control": KEPT[["job"]]}, "the control table has other columns than the real one"),
    ],
)
def test_what_cannot_be_attacked_is_refused(change, words):
    tables = {"real": KEPT, "synthetic": KEPT, "control": HELD_OUT}
    with pytest.raises(InputError, match=words):
        attack(**tables | change)


def test_identifiers_are_left_out_by_name_unless_a_schema_says_otherwise():
    tables = [table.assign(customer_id=range(len(table))) for table in (KEPT, people(3), HELD_OUT)]
    risks = attack(*tables, secrets=[])
    assert risks.left_out == ("customer_id",)
    assert risks.columns == tuple(KEPT)
    assert "left out, because their names look like identifiers: customer_id" in str(risks)
    schema = Schema({"customer_id": Numerical(0, ROWS), "age": Numerical(16, 100)})
    assert attack(*tables, schema, secrets=[]).left_out == ()


def test_values_are_all_told_apart_however_many():
    names = pd.DataFrame({"name": [f"n{n}" for n in range(1200)]})
    view, _ = code_together([names], Schema({"name": Categorical()}), most_values=None)
    assert view.domain.sizes == (1200,)


@pytest.mark.slow
def test_intervals_hold_the_true_risk_as_often_as_they_say():
    # 1,000 runs at 95 %: 0.7 % of standard error, and five of them. Wilson's middle makes them a little wide.
    rng = np.random.default_rng(0)
    train, control, n = 0.3, 0.1, 400
    truth, hits = (train - control) / (1 - control), 0
    for ours, theirs in zip(rng.binomial(n, train, 1000), rng.binomial(n, control, 1000), strict=True):
        low, high = Risk(Rate(int(ours), n), Rate(int(theirs), n), Rate(0, 0)).interval
        hits += low <= truth <= high
    assert 0.915 < hits / 1000 < 0.985


def test_a_rate_of_no_attacks_is_none_and_more_successes_than_attacks_are_impossible():
    assert isnan(Rate(0, 0).value)
    assert all(map(isnan, Rate(0, 0).interval))
    with pytest.raises(ValueError, match="3 of 2 attacks"):
        Rate(3, 2)


def test_who_tries_many_attacks_needs_more_to_call_it_a_leak():
    close = Risk(Rate(130, 1000), Rate(100, 1000), Rate(0, 1000))  # 2.1 standard errors
    assert close.interval[0] > 0
    assert Risks(9, 9, 9, ("a",), (), {"one": close}).leaks == ("one",)
    twenty = Risks(9, 9, 9, ("a",), (), {str(n): close for n in range(20)})
    assert twenty.leaks == ()
    # Each interval alone excludes 0, so the summary says why the verdict does not count them.
    assert twenty.above_zero == tuple(twenty.attacks)
    assert sum(line.endswith(" *") for line in str(twenty).splitlines()) == 20
    assert "20 intervals above 0 are marked *" in twenty.verdict
    assert "20 attacks give 0.5 such by chance alone" in twenty.verdict


def points(seed: int = 0) -> Points:
    rng = np.random.default_rng(seed)
    numbers = np.where(rng.random((60, 2)) < 0.2, MISSING_COORDINATE, rng.integers(0, 9, (60, 2)) / 8)
    return Points(np.column_stack([numbers, rng.integers(0, 5, 60)]), (True, True, False))


def test_predicates_of_a_row_fit_it_and_count_as_the_slow_way_does():
    table = points()
    for predicate in of_rows(table, 2, 200, np.random.default_rng(1)):
        slow = [
            all(low <= row[axis] <= high for axis, low, high in zip(*vars(predicate).values(), strict=True))
            for row in table.cells
        ]
        assert predicate.count(table.cells) == sum(slow) >= 1


def test_a_number_at_most_so_large_is_no_missing_one():
    table = Points(np.array([[MISSING_COORDINATE], [0.0], [0.5], [1.0]]), (True,))
    found = {
        (one.lows[0], one.highs[0]): one.count(table.cells)
        for one in of_rows(table, 1, 99, np.random.default_rng(0))
    }
    assert found == {(MISSING_COORDINATE, MISSING_COORDINATE): 1, (0.0, 0.0): 1, (0.5, 1.0): 2, (1.0, 1.0): 1}


def test_rare_values_are_those_that_occur_once_and_both_ends():
    table = Points(np.array([[0.0, 3], [0.0, 3], [0.5, 4], [1.0, 7], [1.0, 7]]), (True, False))
    found = {
        (one.axes[0], one.lows[0], one.highs[0]) for one in of_rare_values(table, np.random.default_rng(0))
    }
    assert found == {(0, 0.5, 0.5), (0, 0.0, 0.0), (0, 1.0, 1.0), (1, 4.0, 4.0)}
    assert Predicate((0, 1), (0.0, 3.0), (0.0, 3.0)).count(table.cells) == 2


def test_distances_are_gowers():
    table = scale_together(code_together([KEPT[:50]])[1])[0]
    for axis, is_number in enumerate(table.numbers):
        column = table.cells[:, axis]
        for row, apart in zip(column[:9], distances(column[:9], column), strict=True):
            both = (row > MISSING_COORDINATE) & (column > MISSING_COORDINATE)
            slow = np.where(both & is_number, np.abs(row - column), row != column)
            assert apart == pytest.approx(slow, abs=1e-6)


@pytest.mark.parametrize("ends", [(-1e308, 1e308), (0.0, 5e-324), (7.0, 7.0)], ids=["wide", "narrow", "one"])
def test_any_range_of_numbers_has_places_from_0_to_1(ends):
    table = pd.DataFrame({"a": [*ends, None, float("inf")]})
    _, coded = code_together([table], Schema({"a": Numerical(0, 1)}))
    cells = scale_together(coded)[0].cells[:, 0]
    assert cells[0] == 0
    assert 0 <= cells[1] <= 1
    assert (cells[2:] == MISSING_COORDINATE).all()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, table in {"real": KEPT[:200], "made": people(3, 200), "held": HELD_OUT[:100]}.items():
        table.to_csv(f"{name}.csv", index=False)
    return tmp_path


def test_the_command_says_what_it_found_and_that_it_is_not_private(folder, capsys):
    done = run(
        capsys, "attack", "real.csv", "made.csv", "held.csv", "--secret", "age", "--json", "risks.json"
    )
    assert done.code == 0
    assert done.out.startswith(NOT_PRIVATE)
    assert LIMITS in done.out
    kept = json.loads((folder / "risks.json").read_text())
    assert kept["warning"] == NOT_PRIVATE
    assert kept["attacks"]["infer age"]["train"]["attacks"] == 100
    assert kept["attacks"].keys() == {*ALL[:3], "infer age"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("made.csv", "held.csv", "--secret", "wage"), "secret 'wage'"),
        (("made.csv", "nowhere.csv"), "nowhere.csv"),
        (("made.csv", "held.txt"), "held.txt"),
        (("made.csv", "held.csv", "--json", "held.csv"), "--json held.csv: is an input too"),
    ],
)
def test_the_command_refuses_in_one_line(folder, capsys, arguments, words):
    refused = run(capsys, "attack", "real.csv", *arguments)
    assert refused.code == 2
    assert words in refused.err
    assert refused.err.count("\n") == 1


def test_a_row_of_numbers_says_that_it_is_not_private(of_a_copy):
    row = of_a_copy.row()
    assert row.pop("private") is False
    assert list(row) == ALL


def visits(first: int, seed: int, persons: int = 300) -> pd.DataFrame:
    """Several rows of each person, which differ."""
    rng = np.random.default_rng(seed)
    who = np.repeat(first + np.arange(persons), rng.integers(1, 6, persons))
    cells = {"ward": rng.choice(["a", "b", "c"], len(who)), "pay": rng.normal(size=len(who)).round(2)}
    return pd.DataFrame({"who": who, "turn": rng.integers(0, 1000, len(who)), **cells})


def test_a_person_is_one_row_of_what_its_rows_say():
    day = pd.to_datetime(["2024-01-03", "2024-01-01", "2024-01-02"])
    rows = pd.DataFrame({"who": [1, 1, 2], "day": day, "ward": ["a", "b", "a"], "pay": [1.0, 2.0, np.nan]})
    schema = Schema(
        {"day": Datetime("2024-01-01", "2024-12-31"), "ward": Categorical(["a", "b"]), "pay": Numerical(0, 9)}
    )
    tables = {"real": rows, "synthetic": rows, "control": rows.assign(who=[3, 3, 4])}
    one = Attacked.of(tables, schema, "who", "day").one_row_each("synthetic")
    numbers = {name: cells.tolist() for name, cells in one.numbers.items()}
    first = 19723.0  # 2024-01-01
    assert numbers.pop("first of pay") == pytest.approx([2, np.nan], nan_ok=True)
    assert numbers.pop("last of pay") == pytest.approx([1, np.nan], nan_ok=True)
    assert numbers.pop("sum of pay") == pytest.approx([3, np.nan], nan_ok=True)
    assert numbers == {
        "number of rows": [2, 1],
        "first of day": [first, first + 1],
        "last of day": [first + 2, first + 1],
        "different ward": [2, 1],
    }
    codes = dict(zip(one.records.domain, one.records.codes.T.tolist(), strict=True))
    assert (codes["first of ward"], codes["last of ward"]) == ([2, 1], [1, 1])  # 0 is none


@pytest.mark.slow
def test_a_copy_of_persons_is_found_out_and_other_persons_are_none():
    """Another seed of the second part reports a leak in one run of forty."""
    real, control = visits(0, 0), visits(1000, 1)
    copied = attack(real, real.assign(who=real["who"] + 5000), control, unit="who", order="turn")
    assert "link two halves of a person" in copied.leaks
    assert "infer sum of pay" in copied.leaks
    assert (copied.real_rows, copied.whom) == (300, "person")
    assert "on real persons than on held-out persons" in copied.verdict
    assert "300 synthetic persons, 300 real ones, 300 held out" in str(copied)
    assert attack(real, visits(2000, 2), control, unit="who", order="turn").leaks == ()


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({"who": 7}, {"unit": "who"}, "the control table has persons of the real one"),
        ({}, {"order": "turn"}, "order needs unit"),
        ({}, {"unit": "whom"}, "the real table has no column 'whom'"),
        ({}, {"unit": "who", "secrets": ["pays"]}, "secret 'pays' is not a compared column"),
    ],
)
def test_persons_that_cannot_be_attacked_are_refused(change, options, words):
    with pytest.raises(InputError, match=words):
        attack(visits(0, 0), visits(2000, 2), visits(1000, 1).assign(**change), **options)


def clinics(first: int, seed: int, persons: int = 300) -> dict[str, pd.DataFrame]:
    """Persons with visits, and these with doses; nobody has a twin."""
    rows = visits(first, seed, persons)
    rows["visit"] = 10_000 * first + np.arange(len(rows))
    rng = np.random.default_rng(seed + 100)
    people = pd.DataFrame({"who": first + np.arange(persons), "sex": rng.choice(["f", "m"], persons)})
    of = np.repeat(rows["visit"], rng.integers(0, 3, len(rows)))
    doses = pd.DataFrame({"visit": of, "days": rng.normal(size=len(of)).round(2)})
    return {"people": people, "visits": rows, "doses": doses}


CLINIC = Database(
    {
        "people": Table(Schema({"sex": Categorical(["f", "m"])}), key="who"),
        "visits": Table(
            Schema({"ward": Categorical(["a", "b", "c"]), "pay": Numerical(-9, 9, decimals=2)}),
            key="visit",
            parent="people",
            link="who",
            order="turn",
        ),
        "doses": Table(Schema({"days": Numerical(-9, 9, decimals=2)}), parent="visits", link="visit"),
    }
)
OF_MISSING_ROWS = [f"infer {name} of a missing row" for name in ("visits.ward", "visits.pay", "doses.days")]


@pytest.mark.slow
def test_linked_tables_are_attacked_as_persons_and_one_row_at_a_time():
    """A copy is found out by each attack on missing rows, and of other persons nothing is.

    2.8 halves of a 95 % interval are 5.5 standard errors: 2e-8 for each of the twenty attacks.
    """
    real, control = clinics(0, 0), clinics(1000, 1)
    copied = attack(real, real, control, CLINIC)
    assert set(OF_MISSING_ROWS) <= set(copied.leaks)
    for name in OF_MISSING_ROWS:
        assert copied.attacks[name].train.value > 0.95
    several = (real["visits"].groupby("who").size() > 1).sum()
    assert copied.attacks[OF_MISSING_ROWS[0]].train.attacks == several  # one row of each person
    assert "number of doses" in copied.columns
    assert "people.sex" in copied.columns
    others = attack(real, clinics(2000, 2), control, CLINIC)
    assert not any(risk.above_zero_by(2.8) for risk in others.attacks.values())


def test_a_column_of_a_missing_row_does_not_give_away_another_one():
    """Ten values twice, at random: other rows say nothing. 0.3 is more than ten standard errors above 0.1."""
    schema = Schema({name: Categorical([f"v{n}" for n in range(10)]) for name in ("one", "two")})
    tables = []
    for seed in range(3):
        rows = visits(1000 * seed, seed)[["who", "turn"]]
        same = np.random.default_rng(seed).integers(0, 10, len(rows))
        tables.append(rows.assign(one=[f"v{n}" for n in same], two=[f"v{n}" for n in same]))
    risks = attack(*tables, schema, unit="who", order="turn", secrets=["one", "two"])
    for name in ("one", "two"):
        assert risks.attacks[f"infer {name} of a missing row"].train.value < 0.3


def test_what_is_known_of_a_missing_row():
    """The rows above it, those beside it, and how many rows there are; the row itself is last."""
    people = pd.DataFrame({"who": [1, 2], "sex": ["f", "m"]})
    rows = {"who": [1, 1, 1, 2], "visit": [1, 2, 3, 4], "turn": [3, 1, 2, 1], "ward": list("abcc")}
    rows = pd.DataFrame(rows | {"pay": [1.0, 2.0, 3.0, 4.0]})
    doses = pd.DataFrame({"visit": [2, 2, 1], "days": [5.0, 6.0, 7.0]})
    one = {"people": people, "visits": rows, "doses": doses}
    other = {name: frame.copy() for name, frame in one.items()}
    for frame, column in (("people", "who"), ("visits", "who")):
        other[frame][column] += 10
    attacked = Attacked.of({"real": one, "synthetic": one, "control": other}, CLINIC, None, None)
    missing = attacked.missing_rows("visits", 10, np.random.default_rng(0))
    assert missing.secret == ("visits.ward", "visits.pay")
    table = missing.tables["synthetic"]
    names = table.records.domain.names
    assert names == (*missing.known_columns, *missing.secret)
    numbers = pd.DataFrame(table.numbers).sort_values("visits.pay").reset_index(drop=True)
    assert numbers["visits.pay"].tolist() == [1.0, 2.0, 3.0]  # the second person has one visit
    assert numbers["visits.pay before"].tolist() == pytest.approx([3.0, np.nan, 2.0], nan_ok=True)
    assert numbers["visits.pay after"].tolist() == pytest.approx([np.nan, 3.0, 1.0], nan_ok=True)
    assert numbers["number of visits"].tolist() == [3, 3, 3]
    assert numbers["number of doses below"].tolist() == [1, 2, 0]
    assert len(missing.tables["real"]) == 1  # one row of the one person who has several
    below = attacked.missing_rows("doses", 10, np.random.default_rng(0))
    assert {"visits.ward", "visits.pay", "people.sex"} <= set(below.known_columns)
    pays = below.tables["synthetic"].numbers
    assert dict(zip(pays["doses.days"], pays["visits.pay"], strict=True)) == {5.0: 2.0, 6.0: 2.0, 7.0: 1.0}


@pytest.mark.slow
def test_the_command_attacks_linked_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, tables in (("in", clinics(0, 0)), ("out", clinics(0, 0)), ("rest", clinics(1000, 1))):
        (tmp_path / name).mkdir()
        for table, rows in tables.items():
            rows.to_csv(tmp_path / name / f"{table}.csv", index=False)
    (tmp_path / "clinic.yaml").write_text(yaml.safe_dump(database_to_plain(CLINIC)))
    typed = ("attack", "in", "out", "rest", "--schema", "clinic.yaml")
    done = run(capsys, *typed, "--secret", "visits.ward", "--json", "risks.json")
    assert done.code == 0, done.err
    assert "300 synthetic persons, 300 real ones, 300 held out" in done.out
    assert OF_MISSING_ROWS[0] in json.loads((tmp_path / "risks.json").read_text())["attacks"]
    assert OF_MISSING_ROWS[1] not in done.out
    for more, text in (
        (("--secret", "ward"), "secret 'ward' is not a compared column"),
        (("--unit", "who"), "linked tables take no --unit: the persons"),
    ):
        done = run(capsys, *typed, *more)
        assert (done.code, text in done.err, done.err.count("\n")) == (2, True, 1), done.err
    done = run(capsys, "attack", "in", "out", "in", "--schema", "clinic.yaml")
    assert (done.code, "the control table has persons of the real one" in done.err) == (2, True)


def test_attacks_that_nearly_all_succeed_are_no_leak_by_chance():
    """851 and 840 of 856 were called a leak of 28 attacks: errors of a ratio near 1 are not normal."""
    close, far = Rate(840, 856), Rate(780, 856)
    others = {f"other {number}": Risk(Rate(400, 856), Rate(400, 856), Rate(0, 0)) for number in range(27)}
    near = {"one": Risk(Rate(851, 856), close, Rate(0, 0))}
    assert near["one"].chance == pytest.approx(0.013, abs=0.002)
    assert Risks(9, 9, 9, ("a",), (), near | others).leaks == ()
    assert Risks(9, 9, 9, ("a",), (), {"one": Risk(Rate(851, 856), far, Rate(0, 0))} | others).leaks == (
        "one",
    )
