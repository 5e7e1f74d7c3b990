"""The promise for all rows of a person, from end to end: bounded before anything is counted, and told."""

from __future__ import annotations

import json
import re
from importlib import resources
from itertools import count
from math import fsum, sqrt
from pathlib import Path

import command
import numpy as np
import pandas as pd
import pytest
from command import CANARY, run
from jsonschema import Draft202012Validator
from refusals import refuses

from privsyn import Categorical, Database, InputError, Numerical, PrivSyn, Schema, Table, load
from privsyn.inference.rows_per_person import RowsPerPerson
from privsyn.methods import reading
from privsyn.private import contribution, measure
from privsyn.private.accounting import rho_for
from privsyn.private.run_ledger import RunLedger
from privsyn.private.spend import ONE_WAY, ONE_WAYS

DELTA = 1e-9
METHODS = ["default", "published"]
both = pytest.mark.parametrize("method", METHODS)
SCHEMA = Schema({"ill": Categorical(["cold", "flu", "well"]), "age": Numerical(0, 100, integer=True)})


def visits(people=60, most=9, seed=0):
    """A table of up to `most` visits a person, in no order."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(people), rng.integers(1, most + 1, people))
    rng.shuffle(who)
    return pd.DataFrame(
        {"ill": rng.choice(["cold", "flu", "well"], len(who)), "who": who, "age": (who * 7) % 100}
    )


VISITS = visits()


def fitted(table=VISITS, k=3, method="default", epsilon=50.0, **options):
    """With this epsilon a bound of up to 3 is chosen as large as it may be."""
    return PrivSyn(
        epsilon, DELTA, SCHEMA, unit="who", rows_per_unit=k, method=method, allow_weak_privacy=True, **options
    ).fit(table)


@pytest.fixture
def exact_answers(monkeypatch):
    """What each question's exact answer was, in order: seen before the noise."""
    seen = []
    release = measure.release

    def seeing(exact, *rest):
        seen.append(exact)
        return release(exact, *rest)

    for module in (measure, contribution):
        monkeypatch.setattr(module, "release", seeing)
    return seen


def of_question(what, spends, exact_answers):
    """The exact answers of the questions that begin like this."""
    answers = zip(spends, exact_answers, strict=True)
    return [exact for spend, exact in answers if spend.what.startswith(what)]


# --- the bound ---------------------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("k", [1, 3, 50])
def test_no_more_rows_of_a_person_are_counted_than_may_be(method, k, exact_answers):
    ledger = fitted(k=k, method=method, epsilon=1e6).ledger_  # so that noise makes no class of more rows
    most, has = ledger.rows_per_unit, VISITS.groupby("who").size()
    assert ledger.squares == (method == "default" and k > 1)
    assert most == k or 3 < most <= 9 < k
    kept = has.clip(upper=most).sum()
    columns = 3 if ledger.squares else 2  # with the number of rows of the person
    for exact, spend in zip(exact_answers, ledger.spends, strict=True):
        if spend.what.startswith(ONE_WAYS):
            assert exact.sum() == columns * kept  # a row is counted in every column
        elif spend.what.startswith(ONE_WAY):
            assert exact.sum() == kept
        elif spend.what.startswith("counts"):
            assert exact.sum() <= has.clip(upper=most**2 if ledger.squares else most).sum()


@both
def test_rows_per_person_are_counted_of_all_rows(method, exact_answers):
    """Not of those that are kept, and a person once, however many rows they have."""
    ledger = fitted(k=2, method=method).ledger_
    (exact,) = of_question("rows per person", ledger.spends, exact_answers)
    assert ledger.spends[0].sensitivity == 1
    assert exact[:9].tolist() == VISITS.groupby("who").size().value_counts().sort_index().tolist()
    assert exact.sum() == 60


def test_the_bound_need_not_be_given(tmp_path):
    model = PrivSyn(1.0, DELTA, SCHEMA, unit="who").fit(visits(people=3000))
    ledger = model.ledger_
    assert 1 < ledger.rows_per_unit < 9
    assert "in tables of several columns, rows whose squared counts" in ledger.kept
    schema = resources.files("privsyn.private").joinpath("ledger.schema.json").read_text("utf-8")
    Draft202012Validator(json.loads(schema)).validate(json.loads(ledger.to_json()))
    model.save(tmp_path / "m.privsyn")
    assert load(tmp_path / "m.privsyn").ledger == ledger == RunLedger.from_json(ledger.to_json())
    assert list(model.sample(3).columns) == ["ill", "age"]


@pytest.mark.parametrize("delta", [DELTA, 0])
def test_where_each_person_has_one_row_the_unit_costs_little(delta):
    """The noise is at most 1.5 % above that of a run without `unit`, with a delta of 0 2.1 %."""
    table = visits(people=5000, most=1)
    plain = PrivSyn(1.0, delta, SCHEMA, seed=1).fit(table.drop(columns="who")).ledger_
    ledger = PrivSyn(1.0, delta, SCHEMA, unit="who", seed=1).fit(table).ledger_
    assert ledger.rows_per_unit == 1
    first, second, *others = ledger.spends
    assert (first.what, second.what) == ("rows per person", "rows of all persons, at most 2 of each")
    assert others[0].what == plain.spends[0].what == ("one-way counts of every attribute")
    assert plain.spends[0].sigma < others[0].sigma < (1.015 if delta else 1.021) * plain.spends[0].sigma
    assert fsum(spend.cost for spend in others) == pytest.approx(0.98 * plain.budget)


@both
def test_a_person_of_a_thousand_rows_moves_no_answer_further_than_the_ledger_says(
    method, exact_answers, monkeypatch
):
    monkeypatch.setattr(reading, "best_bound", lambda *_: 3)
    monkeypatch.setattr(RowsPerPerson, "largest", 4)
    heavy = pd.DataFrame({"ill": "flu", "who": 999, "age": 50}, index=range(1000))
    table = visits(most=3)
    ledger = fitted(table, method=method).ledger_
    rows, total, alone = exact_answers[:3]
    exact_answers.clear()
    more = fitted(pd.concat([heavy, table]), method=method).ledger_
    assert np.linalg.norm(exact_answers[0] - rows) == 1
    assert ledger.spends[1].what == more.spends[1].what == "rows of all persons, at most 4 of each"
    assert exact_answers[1] - total == 4 == ledger.spends[1].sensitivity
    cells = 4 + 101  # then come those of the number of rows
    assert np.linalg.norm(exact_answers[2][:cells] - alone[:cells]) == pytest.approx(3 * sqrt(2))
    assert ledger.spends[2].sensitivity == pytest.approx(3 * sqrt(3 if ledger.squares else 2))


def test_rows_without_an_identifier_are_not_counted(exact_answers):
    table = VISITS.astype({"who": "Int64"})
    table.loc[table["who"] < 30, "who"] = None
    ledger = fitted(table).ledger_
    rows, total, columns = exact_answers[:3]
    assert rows.sum() == 30
    has = table.groupby("who").size()
    assert total == has.clip(upper=int(ledger.spends[1].sensitivity)).sum()
    kept = has.clip(upper=ledger.rows_per_unit).sum()
    assert columns.sum() in (2 * kept, 3 * kept)  # if there are several, the classes are a column
    exact_answers.clear()
    assert len(fitted(table.assign(who=pd.array([None] * len(table), "Int64"))).sample(4)) == 4
    assert [exact.sum() for exact in exact_answers[:3]] == [0, 0, 0]


@both
def test_one_row_a_person_is_the_plain_case(method):
    """With a seed even byte for byte, whatever the order of the identifiers."""
    table = visits(most=1).sample(frac=1, random_state=0)
    plain = PrivSyn(1.0, DELTA, SCHEMA, method=method, seed=1).fit(table.drop(columns="who"))
    by_person = fitted(table, 1, method, epsilon=1.0, seed=1)
    assert by_person.ledger_.spends == plain.ledger_.spends
    assert by_person.release_.fitted.total == plain.release_.fitted.total
    pd.testing.assert_frame_equal(by_person.sample(50), plain.sample(50))


@both
@pytest.mark.parametrize("k", [2, 3])
def test_the_noise_is_k_times_that_of_the_plain_case(method, k):
    """But for the numbers of rows per person: with squares their classes are one more column.

    With a seed: once in some hundred runs the noise hides the classes, and then there is no such column.
    """
    plain = PrivSyn(50.0, DELTA, SCHEMA, method=method, seed=1).fit(VISITS.drop(columns="who")).ledger_
    ledger = fitted(k=k, method=method, seed=1).ledger_
    column, more = plain.spends[0], ledger.spends[2]
    assert column.what == more.what == ONE_WAYS
    columns = (3 if ledger.squares else 2) / 2
    assert ledger.rows_per_unit == k
    assert more.sensitivity == pytest.approx(k * sqrt(columns) * column.sensitivity)
    assert more.rho == pytest.approx(0.98 * column.rho, rel=0.1)  # the share of columns depends on them
    assert [spend.rho for spend in ledger.spends[:2]] == pytest.approx([0.01 * ledger.budget] * 2)
    assert ledger.rho == pytest.approx(ledger.budget, rel=1e-9)
    assert ledger.budget == plain.budget == rho_for(50.0, DELTA, ledger.accounting)
    assert ledger.epsilon(DELTA) == pytest.approx(50.0, rel=1e-6)


def test_the_order_of_the_rows_does_not_matter(monkeypatch):
    """If the bound leaves none out."""
    monkeypatch.setattr(reading, "best_bound", lambda *_: 9)
    shuffled = VISITS.sample(frac=1, random_state=5)
    one, two = (fitted(table, 9, seed=1) for table in (VISITS, shuffled))
    pd.testing.assert_frame_equal(one.sample(50), two.sample(50))


def test_a_seed_repeats_the_choice_of_rows_and_no_seed_does_not(exact_answers):
    """The counts of 101 ages, another at each visit: no two choices of 200 rows have the same by chance."""
    table = visits(people=200)
    table["age"] = np.arange(len(table)) % 101
    looks = []
    for options in ({"seed": 1}, {"seed": 1}, {"seed": 2}, {}, {}):
        asked = len(exact_answers)
        fitted(table, 1, **options)
        looks.append(exact_answers[asked].tobytes())  # the first of the run
    one, same, *others = looks
    assert one == same
    assert len({one, *others}) == 4


def test_a_column_may_be_called_like_the_classes_of_the_number_of_rows():
    schema = Schema({"rows of one who": SCHEMA.columns["ill"], "rows of one who'": SCHEMA.columns["age"]})
    table = VISITS.set_axis(["rows of one who", "who", "rows of one who'"], axis=1)
    made = PrivSyn(50.0, DELTA, schema, unit="who", seed=0).fit(table).sample(9)
    assert made.columns.tolist() == ["rows of one who", "rows of one who'"]


@both
def test_the_number_of_rows_is_that_of_the_table(method):
    """Not of the rows that the bound keeps."""
    model = fitted(epsilon=1e6, method=method)
    assert len(model.sample()) == pytest.approx(len(VISITS), abs=1)
    assert list(model.sample(3).columns) == ["ill", "age"]


def test_a_bound_of_another_type_of_number_is_the_number_it_is():
    ledger = fitted(k=np.uint8(3)).ledger_
    assert (ledger.rows_per_unit, type(ledger.rows_per_unit)) == (3, int)
    assert json.loads(ledger.to_json())["rows_per_unit"] == 3
    assert ledger.rho == pytest.approx(ledger.budget, rel=1e-9)


# --- what is said ------------------------------------------------------------------------------------------


@both
def test_the_ledger_names_the_unit_also_after_saving(method, tmp_path):
    model = fitted(method=method)
    model.save(tmp_path / "m.privsyn")
    for ledger in (model.ledger_, load(tmp_path / "m.privsyn").ledger):
        assert (ledger.unit, ledger.rows_per_unit) == ("who", 3)
        rows = "at most 3 rows in a column"
        if method == "default":
            rows += "; in tables of several columns, rows whose squared counts sum to at most 3^2"
        assert ledger.kept == rows
        assert ledger.neighbours == "add or remove one person: all rows of one 'who'"
        assert "that one person has one identifier in 'who'" in ledger.public_inputs
        assert (
            "that two persons never share one in 'who', where 7 and 007 are two identifiers"
            in ledger.public_inputs
        )


@pytest.mark.parametrize("delta", [0.0, DELTA])
@pytest.mark.parametrize("options", [{}, {"identifiers": True}], ids=["rows", "persons"])
def test_a_pure_ledger_of_persons_names_its_one_exception(delta, options):
    """Rows belong together by fingerprints of 128 bits: with delta 0 nothing else covers a collision."""
    model = PrivSyn(9.0, delta, SCHEMA, unit="who", rows_per_unit=2, **options).fit(VISITS)
    assert any("2^128" in fact for fact in model.ledger_.public_inputs) == (delta == 0)


def test_paper_takes_a_unit_too():
    model = PrivSyn.paper(1.0, DELTA, SCHEMA, unit="who", rows_per_unit=3)
    assert (model.unit, model.rows_per_unit, model.method) == ("who", 3, "published")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"unit": "age", "rows_per_unit": 3}, "unit 'age' is a column of the schema: remove it there"),
        ({"unit": 5, "rows_per_unit": 3}, "unit must be the name of a column; got 5"),
        ({"unit": VISITS, "rows_per_unit": 3}, "unit must be the name of a column; got a DataFrame"),
        *(
            ({"unit": "who", "rows_per_unit": k}, "rows_per_unit must be a whole number of at least 1; got ")
            for k in (0, -1, 1.5, True, "3", VISITS)
        ),
    ],
)
def test_half_a_setting_or_a_wrong_one_is_refused_in_one_line(wrong, message):
    with refuses(message) as refused:
        PrivSyn(1.0, DELTA, SCHEMA, **wrong)
    assert len(str(refused.value)) < 170


# --- on the command line -----------------------------------------------------------------------------------


@pytest.fixture
def data(tmp_path):
    """The table and schema of the command line's tests, four rows a person, some of nobody."""
    command.fill(tmp_path)
    table = pd.read_csv(tmp_path / "data.csv")
    who = np.arange(len(table)) // 4
    table["who"] = np.where(who < 5, "NA", pd.Series(who).map(f"{CANARY}{{:03d}}".format))
    table.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


def test_a_person_on_the_command_line(data, capsys):
    out, ledger, model = data / "out.csv", data / "ledger.json", data / "m.privsyn"
    options = ("--schema", data / "schema.yaml", "--unit", "who", "--rows-per-unit", 2)
    outcome = run(
        capsys,
        "synth",
        data / "data.csv",
        out,
        "--epsilon",
        50,
        *options,
        "--ledger",
        ledger,
        "--model",
        model,
        "--verbose",
    )
    assert (outcome.code, outcome.err) == (0, "")
    assert "(a private estimate of the table's own number, give or take " in outcome.out
    assert "privacy: epsilon 50 at delta 1e-09 for all rows of one 'who'\n" in outcome.out
    assert "taken as public: that one person has one identifier in 'who'" in outcome.out
    assert "that two persons never share one in 'who'" in outcome.out.replace("\n", " ")
    assert "read off the file" not in outcome.out
    assert list(pd.read_csv(out).columns) == command.COLUMNS
    written = json.loads(ledger.read_text())
    assert written["unit"] == "who"
    assert written["rows_per_unit"] in (1, 2)
    sampled = run(capsys, "sample", model, data / "more.csv")
    for done in (outcome, sampled):
        assert "rows that belong to nobody are left out, and their number is private: who" in done.out
    assert "for all rows of one 'who'\n" in sampled.out
    assert "(a private estimate of the table's own number, give or take " in sampled.out
    for path in (out, ledger, model, data / "more.csv"):
        assert CANARY.encode() not in path.read_bytes()


@pytest.mark.slow("each case")
@pytest.mark.parametrize("schema", [True, False])
def test_a_report_compares_without_the_identifiers(data, capsys, schema):
    known = ("--schema", data / "schema.yaml") if schema else ()
    options = ("--epsilon", 50, *known, "--unit", "who", "--rows-per-unit", 2, "--report", data / "r.html")
    assert run(capsys, "synth", data / "data.csv", data / "out.csv", *options).code == 0
    assert "who" not in re.findall(r"<strong>(.*?)</strong>", (data / "r.html").read_text())


def test_a_draft_and_a_check_leave_the_unit_out(data, capsys):
    drafted = run(capsys, "schema", data / "data.csv", "--unit", "who")
    assert drafted.code == 0
    assert "\n  who:" not in drafted.out
    assert "# READ: column 'who': 20 of 300 rows have no identifier and are dropped\n" in drafted.out
    checked = run(capsys, "schema", data / "data.csv", "--check", data / "schema.yaml", "--unit", "who")
    assert checked.code == 0
    assert "column 'who': 20 of 300 rows have no identifier and are dropped" in checked.out
    missing = run(capsys, "schema", data / "data.csv", "--unit", "nobody")
    assert (missing.code, "no column 'nobody'" in missing.err) == (2, True)
    (data / "with.yaml").write_text("columns:\n  who: {kind: identifier}\n")
    listed = run(capsys, "schema", data / "data.csv", "--check", data / "with.yaml", "--unit", "who")
    assert (listed.code, "'who' identifies persons: remove it from the schema" in listed.err) == (2, True)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (
            ("--unit", "whom"),
            "privsyn: the table has no column 'whom', which unit names: correct one of them",
        ),
        (
            ("--unit", "who", "--order", "on"),
            "privsyn: the table has no column 'on', which order names: correct one of them",
        ),
        (
            ("--unit", "who", "--order", "who"),
            "privsyn: order 'who' is the same in all rows of one parent: name another column",
        ),
        (("--unit", "who", "--schema", "with.yaml"), "privsyn: --unit 'who' is a column of the schema"),
        (
            ("--unit", "who", "--schema", "tables.yaml"),
            "data.csv: is one table, and several are declared: give a folder or a database",
        ),
    ],
)
def test_a_mistake_about_rows_that_belong_together_is_one_line(data, capsys, monkeypatch, options, complaint):
    monkeypatch.chdir(data)
    Path("with.yaml").write_text("columns:\n  who: {kind: identifier}\n")
    Path("tables.yaml").write_text("tables:\n  persons: {key: who}\n")
    outcome = run(capsys, "synth", "data.csv", "out.csv", "--epsilon", 1, "--identifiers", *options)
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (2, "", 1)
    assert complaint in outcome.err


def test_a_database_may_be_empty():
    """Whether a table has rows is private, so a run on no rows ends like any other."""
    database = Database(
        {
            "persons": Table(Schema({"age": Numerical(0, 9)}), key="who"),
            "visits": Table(Schema({"ill": SCHEMA.columns["ill"]}), parent="persons", link="who"),
        }
    )
    persons, visits = pd.DataFrame({"who": [1, 2], "age": [3, 4]}), pd.DataFrame({"who": [1], "ill": ["flu"]})
    for tables in ((persons[:0], visits), (persons[:0], visits[:0]), (persons, visits[:0])):
        model = PrivSyn(5.0, 1e-6, database, seed=0).fit(
            dict(zip(("persons", "visits"), tables, strict=True))
        )
        assert set(model.sample(5)) == {"persons", "visits"}


def test_identifiers_in_a_csv_are_compared_as_they_are_written(tmp_path, exact_answers):
    path = tmp_path / "v.csv"
    path.write_text("who,ill,age\n007,flu,1\n7,flu,2\n7.0,flu,3\n7,well,4\n,cold,5\n-9,cold,6\n")
    schema = Schema(dict(SCHEMA.columns), missing="-9")
    ledger = PrivSyn(1.0, DELTA, schema, unit="who", rows_per_unit=1).fit(path).ledger_
    assert exact_answers[0].sum() == 2 * 3  # a row of each of three persons, in two columns
    assert not any("read off" in fact for fact in ledger.public_inputs)


@both
def test_one_person_moves_no_answer_further_than_the_ledger_says_whoever_is_spelt_alike(
    method, exact_answers
):
    """7 and 007, who shared three rows: one left and the other's came instead, sqrt 2 times as far."""
    table = pd.DataFrame(
        {"ill": ["flu"] * 3 + ["cold"] * 3, "who": ["7"] * 3 + ["007"] * 3, "age": [1] * 3 + [9] * 3}
    )
    moves = set()
    for leaver in ("7", "007"):
        for rest in (table, table[table["who"] != leaver]):
            exact_answers.clear()
            ledger = fitted(rest, method=method, seed=3).ledger_
            seen = exact_answers[0]
            moves.add(tuple(seen.tolist()))
    whole, *others = sorted(moves, key=sum, reverse=True)
    for other in others:
        assert np.linalg.norm(np.subtract(whole, other)) == pytest.approx(ledger.spends[0].sensitivity)


@pytest.mark.slow
def test_parts_that_change_their_order_from_walk_to_walk_are_refused():
    dataframe = pytest.importorskip("dask.dataframe")
    from dask.delayed import delayed

    seeds = count()

    def part():
        return VISITS.sample(frac=1, random_state=next(seeds))

    shuffled = dataframe.from_delayed([delayed(part, pure=False)()], meta=VISITS.iloc[:0])
    with pytest.raises(InputError, match="could not be counted"):
        fitted(shuffled)
