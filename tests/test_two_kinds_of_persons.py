"""Persons of two tables: every promise names both, and no cell of a column that is dealt is read."""

from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd
import pytest
from command import run, visible
from hospital import store

from privsyn import Categorical, Database, InputError, Ledger, PrivSyn, Schema, Table, load
from privsyn.account.budget_file import runs_in
from privsyn.studies.publication.data_sheet import render as render_sheet
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
