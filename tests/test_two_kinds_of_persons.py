"""Persons of two tables: every promise names both, and no cell of a column that is dealt is read."""

from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest
from command import run, visible
from hospital import store
from refusals import refuses

from privsyn import (
    Categorical,
    Database,
    InputError,
    Ledger,
    PrivSyn,
    Schema,
    Table,
    attack,
    evaluate,
    load,
    plan,
)
from privsyn.account.budget_file import runs_in
from privsyn.studies.publication.data_sheet import render as render_sheet
from privsyn.studies.publication.links import number_of_rows
from privsyn.studies.publication.public_page import render
from privsyn.table.database.yaml_form import database_to_plain
from privsyn.table.schema.yaml_file import dump

ROWS = np.random.default_rng(3)
NUMBER = 300
PERSONS = pd.DataFrame({"person": range(NUMBER), "sex": ROWS.choice(["f", "m"], NUMBER)})
VISITS = pd.DataFrame(
    {"person": np.sort(ROWS.integers(0, NUMBER, 900)), "ward": ROWS.choice(["a", "b"], 900)}
)
VISITS["n"] = VISITS.groupby("person").cumcount()
NURSES = ROWS.integers(0, 40, 900)
STAFF = pd.DataFrame({"nurse": range(40), "grade": ROWS.choice(["x", "y"], 40)})
DATABASE = Database(
    {
        "persons": Table(Schema({"sex": Categorical(["f", "m"])}), key="person"),
        "visits": Table(
            Schema({"ward": Categorical(["a", "b"])}),
            parent="persons",
            link="person",
            order="n",
            dealt={"nurse": "staff"},
        ),
        "staff": Table(Schema({"grade": Categorical(["x", "y"])}), key="nurse"),
    }
)
BOTH = (
    "all rows of 'persons' with one 'person', and all rows that lead to them; or all rows of 'staff' with one"
    " 'nurse', and all rows that lead to them, but not what other rows say of them"
)


def tables(nurses):
    return {"persons": PERSONS, "visits": VISITS.assign(nurse=nurses), "staff": STAFF}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("clinic")
    (path / "in").mkdir()
    for name, table in tables(NURSES).items():
        table.to_csv(path / "in" / f"{name}.csv", index=False)
    (path / "schema.yaml").write_text(dump(database_to_plain(DATABASE)))
    return path


@pytest.mark.slow
def test_every_promise_of_a_run_names_both_kinds_of_persons(folder, capsys):
    options = ("--epsilon", 2, "--schema", folder / "schema.yaml", "--model", folder / "m.privsyn")
    done = run(capsys, "synth", folder / "in", folder / "out", *options)
    assert done.code == 0, done.err
    assert BOTH in " ".join(done.out.split())
    release = load(folder / "m.privsyn")
    assert BOTH in release.ledger.neighbours
    [recorded] = runs_in(folder / "in.budget.jsonl")
    assert recorded.protects == release.ledger.protects == BOTH
    page, sheet = (unescape(visible(text)) for text in (render(release), render_sheet(release)))
    assert "all rows of 'staff' with one 'nurse', and all rows that lead to them" in page
    assert "with all rows that lead to them in" not in page  # visits do not lead to staff
    assert "all rows of 'staff' with one 'nurse'" in sheet
    low, high = (f"{end:,.0f}" for end in number_of_rows(release, "staff")[1:])
    assert f"protected in the same way. The 95% interval is {low} to {high}." in " ".join(page.split())
    [size] = (line for line in done.out.splitlines() if line.startswith(f"{folder / 'out'}: staff: "))
    assert "rows (a private estimate, give or take" in size
    answer = release.ask("staff: number of rows")
    assert (answer.estimate, answer.low, answer.high) == number_of_rows(release, "staff")
    with refuses("say of which table, as in persons: number of rows"):
        release.ask("number of rows")


def test_a_plan_takes_the_number_of_both_kinds_of_persons():
    """Of as many staff as patients the plan expected what 50 of them never give."""
    assumed = plan(DATABASE, epsilon=1.0, delta=1e-9, rows=3000)
    few = plan(DATABASE, epsilon=1.0, delta=1e-9, rows=3000, rows_per_parent={"staff": 0.02})
    assert (
        "rows for each row of the parent (of persons for tables without a parent): staff 1, visits 3"
        in str(assumed)
    )
    assert "assumed of staff, visits" in str(assumed)
    assert "assumed of visits" in str(few)
    of_staff = [
        next(table for table in planned.expectations[0].tables if table.name == "staff")
        for planned in (assumed, few)
    ]
    assert [table.rows for table in of_staff] == [3000, 60]
    assert of_staff[1].errors["column"] > 2 * of_staff[0].errors["column"]
    with refuses("'stuff' is no table with a parent, and no second table of persons; did you mean 'staff'?"):
        plan(DATABASE, epsilon=1.0, delta=1e-9, rows=3000, rows_per_parent={"stuff": 1.0})


def test_promises_to_one_kind_and_to_two_kinds_do_not_add_up(folder):
    both = PrivSyn(1.0, 1e-6, DATABASE).fit(tables(NURSES))
    patients = {"persons": DATABASE.tables["persons"], "visits": replace(DATABASE.tables["visits"], dealt={})}
    one = PrivSyn(1.0, 1e-6, Database(patients)).fit({"persons": PERSONS, "visits": VISITS})
    with pytest.raises(InputError, match="protect the same"):
        Ledger.compose([both.ledger_, one.ledger_])
    with pytest.raises(InputError, match="protects all rows of 'persons'"):
        PrivSyn(1.0, 1e-6, DATABASE, since=one).fit(tables(NURSES))


ODD = ["0.5", "", '7,"\nx', "9" * 400, "2020-01-01", "4711"]
TEXTS = (NURSES.astype(str).tolist(), [*ODD, *NURSES[len(ODD) :].astype(str)], [""] * len(NURSES))
"""Cells of the column: as they are; a fraction, none, odd ones, and one that leads nowhere; none at all."""


@pytest.mark.slow
@pytest.mark.parametrize("form", ["pandas", "categories", "csv", "sqlite"])
def test_no_cell_of_a_column_that_is_dealt_is_read(form, tmp_path):
    """Model and ledger have the same bytes, whatever the cells are: no width, category or row follows."""
    saved = set()
    for number, nurses in enumerate(TEXTS):
        given, folder = tables(nurses), tmp_path / str(number)
        folder.mkdir()
        if form == "categories":
            given["visits"] = given["visits"].astype({"nurse": "category"})
        if form == "csv":
            for name, table in given.items():
                table.to_csv(folder / f"{name}.csv", index=False)
            given = folder
        if form == "sqlite":
            store(given, folder / "in.sqlite")
            given = folder / "in.sqlite"
        model = PrivSyn(1.0, 1e-6, DATABASE, seed=1).fit(given)
        model.save(folder / "model")
        saved.add(((folder / "model").read_bytes(), model.ledger_.to_json()))
        made = model.sample(seed=2)
        assert made["visits"]["nurse"].isin(made["staff"]["nurse"].astype(str)).all()
    assert len(saved) == 1


def test_a_column_that_is_dealt_is_there_and_is_not_copied():
    with pytest.raises(InputError, match="no column 'nurse', which dealt names"):
        PrivSyn(1.0, 1e-6, DATABASE).fit({"persons": PERSONS, "visits": VISITS, "staff": STAFF})
    notes = Table(Schema({}), parent="visits", link="visit", constraints=["nurse == visits.nurse"])
    visits = replace(DATABASE.tables["visits"], key="visit")
    with pytest.raises(InputError, match=r"visits.nurse is dealt, and is not copied"):
        Database({**DATABASE.tables, "visits": visits, "notes": notes})


def clinic(first, rng):
    """Tables whose keys begin at a number. Staff of grade x work in ward a, those of y in b."""
    persons, staff, visits = first + np.arange(200), first + np.arange(30), rng.integers(0, 200, 800)
    grade, ward = rng.choice(["x", "y"], 30), rng.choice(["a", "b"], 800)
    of_grade = {ward: np.flatnonzero(grade == names) for ward, names in (("a", "x"), ("b", "y"))}
    nurse = np.array([rng.choice(of_grade[name]) for name in ward])
    rows = pd.DataFrame({"person": persons[np.sort(visits)], "ward": ward, "nurse": staff[nurse]})
    return {
        "persons": pd.DataFrame({"person": persons, "sex": rng.choice(["f", "m"], 200)}),
        "visits": rows.assign(n=range(800)),
        "staff": pd.DataFrame({"nurse": staff, "grade": grade}),
        "shifts": pd.DataFrame({"nurse": np.repeat(staff, 1 + staff % 3)}),
    }


SHIFTS = Database({**DATABASE.tables, "shifts": Table(Schema({}), parent="staff", link="nurse")})


def test_evaluate_has_a_score_of_each_link_of_both_kinds_of_persons():
    real = clinic(0, np.random.default_rng(0))
    nurses = real["visits"]["nurse"].sample(frac=1, random_state=0).array
    dealt = {**real, "visits": real["visits"].assign(nurse=nurses)}
    lost = {**real, "visits": real["visits"].assign(nurse=-1), "shifts": real["shifts"].assign(nurse=0)}
    same, random, wrong = (evaluate(real, made, SHIFTS, models=False).linked for made in (real, dealt, lost))
    assert (
        same.broken["visits: nurse is a key of staff"]
        == random.broken["visits: nurse is a key of staff"]
        == (0, 0)
    )
    assert wrong.broken["visits: nurse is a key of staff"] == (800, 0)
    assert same.alike["visits"]["named_cells"].synthetic == random.alike["visits"]["named"].synthetic == 0
    # Dealt at random, half of the visits name a nurse of the other grade.
    assert abs(random.alike["visits"]["named_cells"].synthetic - 0.5) < 0.1
    assert abs(random.alike["visits"]["named_cells"].independent - 0.5) < 0.1
    assert random.alike["visits"]["named_cells"].real < 0.1
    assert wrong.alike["visits"]["named"].synthetic > 0.9
    assert (
        same.alike["shifts"]["children"].synthetic,
        wrong.alike["shifts"]["children"].synthetic > 0.9,
    ) == (0, True)


@pytest.mark.slow
def test_attack_attacks_each_kind_of_persons_and_says_which_it_did_not():
    real, held_out = (clinic(first, np.random.default_rng(first)) for first in (0, 5000))
    risks = attack(real, real, held_out, SHIFTS)
    assert {"infer persons.sex", "staff: infer staff.grade"} <= {*risks.attacks}
    assert "single out by 4 columns" in risks.leaks
    assert not risks.not_attacked
    only = attack(real, real, held_out, SHIFTS, secrets=["staff.grade"])
    assert [name for name in only.attacks if "infer" in name] == ["staff: infer staff.grade"]
    staff = {name: real[name] for name in ("staff", "shifts")}
    both = attack(real, real, held_out | staff, SHIFTS)
    assert not any(name.startswith("staff") for name in both.attacks)
    assert "persons of 'staff' were not attacked: the control table has persons of the real one" in str(both)
    with pytest.raises(InputError, match="secret 'nobody' is not a compared column"):
        attack(real, real, held_out, SHIFTS, secrets=["nobody"])
