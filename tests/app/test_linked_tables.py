"""Several linked tables on the page, without a browser: what is kept, what is refused, what a run makes."""

import io
import re
import sqlite3
import zipfile
from html import unescape

import numpy as np
import pandas as pd
import pytest
from command import CANARY
from screens import linked, press, promise, session_in, shown

from privsyn.app.command import Command
from privsyn.app.results import file_of, listed
from privsyn.app.screens import SCREENS, render
from privsyn.errors import InputError

PERSONS = 300


def hospital():
    """Patients with visits, and drugs, to which a column of visits leads."""
    rng = np.random.default_rng(0)
    each = rng.poisson(2, PERSONS)
    patients = pd.DataFrame(
        {
            "patient": [f"{CANARY}{row}" for row in range(PERSONS)],
            "sex": rng.choice(["F", "M"], PERSONS),
            "born": rng.integers(1940, 2000, PERSONS),
        }
    )
    visits = pd.DataFrame({"patient": patients["patient"].repeat(each), "year": 0})
    visits["year"] = 2000 + visits.groupby("patient").cumcount()
    visits.insert(0, "visit", range(1, len(visits) + 1))
    visits["ward"] = rng.choice(["heart", "eye"], len(visits))
    visits["drug"] = rng.choice(["D1", "D2", "D3"], len(visits))
    drugs = pd.DataFrame({"drug": ["D1", "D2", "D3"], "label": ["a", "b", "c"]})
    return {"drugs": drugs, "patients": patients, "visits": visits}


@pytest.fixture
def start(tmp_path):
    """A start folder with a folder of the tables, and a database of the same."""
    folder = tmp_path / "hospital"
    folder.mkdir()
    with sqlite3.connect(tmp_path / "base.sqlite") as base:
        for name, table in hospital().items():
            table.to_csv(folder / f"{name}.csv", index=False)
            table.to_sql(name, base, index=False)
    base.close()
    return tmp_path


@pytest.fixture
def session(start):
    with session_in(start) as session:
        yield session
        session.workspace.taken = True


@pytest.fixture
def drafted(session):
    """A session with the folder, drafted."""
    assert press(session, "choose", "choose", file="hospital") == "tables"
    assert press(session, "tables", "draft", persons="") == "tables"
    return session


def page(session, name):
    return render(name, session, SCREENS[name].show(session))


ALL = {"confirmed_0": "on", "confirmed_1": "on"}


def test_a_folder_and_a_database_are_offered_as_linked_tables(session, start):
    choose = page(session, "choose")
    assert 'value="hospital"' in choose
    assert 'value="base.sqlite"' in choose
    assert press(session, "choose", "choose", file="base.sqlite") == "choose"
    assert "All together, as they are linked" in page(session, "choose")
    assert press(session, "choose", "table", table="") == "tables"
    assert [*session.choices.tables] == ["drugs", "patients", "visits"]
    press(session, "choose", "choose", file="base.sqlite")
    assert press(session, "choose", "table", table="visits") == "people"
    assert not session.choices.linked


def test_a_folder_with_a_link_that_may_lead_elsewhere_is_refused(session, start):
    (start / "hospital" / "secret.csv").symlink_to(start / "base.sqlite")
    assert session.workspace.folders() == []
    with pytest.raises(InputError, match="in the list"):
        press(session, "choose", "choose", file="hospital")


def test_one_table_has_no_screen_of_links(session):
    press(session, "choose", "choose", file="hospital/visits.csv")
    assert not SCREENS["tables"].ready(session)
    assert ">Tables</" not in page(session, "people")


def test_before_a_draft_no_row_is_read_and_the_links_can_be_chosen(session, start):
    (start / "hospital" / "visits.csv").write_text('visit,patient,year,ward,drug\n1,"never closed\n')
    press(session, "choose", "choose", file="hospital")
    assert not SCREENS["people"].ready(session)
    assert "Not clear yet" in page(session, "tables")
    with pytest.raises(InputError, match="has no parent"):
        press(session, "tables", "next", **linked(session))
    chosen = {"role_0": "left out", "key_1": "patient", "role_2": "rows of patients", "link_2": "patient"}
    assert press(session, "tables", "next", **linked(session, **chosen)) == "people"
    assert [*session.choices.private] == ["patients", "visits"]
    assert "leads" not in page(session, "people")
    with pytest.raises(InputError):
        press(session, "tables", "draft", persons="")


def test_a_draft_is_shown_as_a_diagram_and_in_words_and_must_be_confirmed(drafted):
    text = page(drafted, "tables")
    assert "visits: key visit, in the order of year, 3 columns. Each row belongs to a row of patients" in text
    assert "READ" not in text.replace("This reads", "")
    assert "--persons" not in text
    assert (drafted.choices.persons, drafted.choices.tables["drugs"].use) == ("patients", "left out")
    with pytest.raises(InputError, match="look at the links of 'patients' first"):
        press(drafted, "tables", "next", **linked(drafted))
    assert not SCREENS["people"].ready(drafted)
    assert press(drafted, "tables", "next", **linked(drafted, **ALL)) == "people"


def test_the_persons_can_be_changed(drafted):
    assert press(drafted, "tables", "draft", persons="drugs") == "tables"
    assert drafted.choices.persons == "drugs"
    assert drafted.choices.tables["visits"].links["parent"] == "drugs"


def test_no_table_is_public_unless_the_person_says_so(drafted):
    """A table with names of persons cannot even be ticked."""
    assert "Everybody may know drugs" in page(drafted, "tables")
    press(drafted, "tables", "save", **linked(drafted, **ALL, public_0="on"))
    assert [*drafted.choices.schema().public] == []
    assert drafted.choices.tables["patients"].use == "private"
    press(drafted, "tables", "save", **linked(drafted, **ALL, public_2="on"))
    assert [*drafted.choices.schema().public] == ["drugs"]
    assert "public: hospital/drugs.csv" in drafted.choices.schema_text()
    assert "drugs: key drug, public, as it is." in page(drafted, "tables")
    press(drafted, "tables", "save", **linked(drafted, public_2=""))
    form = {field: value for field, value in linked(drafted).items() if field != "public-2"}
    press(drafted, "tables", "save", **form)
    assert [*drafted.choices.schema().public] == []


def test_a_table_with_addresses_is_public_only_if_the_person_says_so(session, start):
    """It is never proposed; once it is ticked and saved, the next draft links it."""
    drugs = hospital()["drugs"].assign(address=["Mill Road 1", "Mill Road 2", "Mill Road 3"])
    drugs.to_csv(start / "hospital" / "drugs.csv", index=False)
    press(session, "choose", "choose", file="hospital")
    press(session, "tables", "draft", persons="patients")
    assert "it is not proposed as public" in session.choices.tables["visits"].entries[4].remarks[-1]
    assert (session.choices.tables["drugs"].use, [*session.choices.schema().public]) == ("left out", [])
    press(session, "tables", "save", **linked(session, public_2="on"))
    press(session, "tables", "draft", persons="patients")
    press(session, "tables", "save", **linked(session, **ALL))
    assert [*session.choices.schema().public] == ["drugs"]
    assert session.choices.schema().tables["visits"].schema.columns["drug"].values is None
    assert "Column drug leads to drugs." in page(session, "tables")


def test_keys_of_several_columns_stay_as_a_database_declares_them(session, start):
    with sqlite3.connect(start / "wide.sqlite") as base:
        base.executescript(
            "CREATE TABLE patients (patient TEXT PRIMARY KEY, born INTEGER);"
            "CREATE TABLE visits (patient TEXT REFERENCES patients (patient), day INTEGER, ward TEXT,"
            " PRIMARY KEY (patient, day));"
        )
    base.close()
    press(session, "choose", "choose", file="wide.sqlite")
    press(session, "choose", "table", table="")
    links = dict(session.choices.tables["visits"].links)
    assert links == {"key": ["patient", "day"], "parent": "patients", "link": "patient"}
    press(session, "tables", "next", **_typed(page(session, "tables"), session))
    assert session.choices.tables["visits"].links == links
    assert session.choices.schema().tables["visits"].key == ("patient", "day")


def _typed(text, session):
    """The form as a browser sends it if nobody changes anything, from the HTML."""
    form = {"tables": session.choices.listed}
    for name, options in re.findall(r'<select name="([^"]+-\d)">(.*?)</select>', text, re.DOTALL):
        chosen = re.search(r'<option(?: value="([^"]*)")? selected>([^<]*)', options)
        first = re.search(r'<option value="([^"]*)"', options)
        form[name] = unescape((chosen[1] if chosen[1] is not None else chosen[2]) if chosen else first[1])
    return form


def test_a_form_of_other_tables_is_refused(drafted, start):
    stale = linked(drafted, **ALL)
    press(drafted, "choose", "choose", file="base.sqlite")
    press(drafted, "choose", "table", table="")
    with pytest.raises(InputError, match="for other tables"):
        press(drafted, "tables", "next", **stale)


def test_one_table_comes_after_the_other_and_each_says_what_it_needs(drafted):
    press(drafted, "tables", "next", **linked(drafted, **ALL))
    assert drafted.choices.at == "patients"
    assert "Names rows: new keys are made." in page(drafted, "people")
    with pytest.raises(InputError, match="look at 'sex', 'born' first"):
        press(drafted, "people", "next", **shown(drafted))
    assert press(drafted, "people", "show visits", **shown(drafted, low_2="1930")) == "people"
    assert drafted.choices.at == "visits"
    text = page(drafted, "people")
    assert "2 to do" in text
    press(drafted, "people", "confirm", **shown(drafted))
    assert press(drafted, "people", "next", **shown(drafted)) == "people"
    assert drafted.choices.at == "patients"
    assert drafted.choices.table.entries[2].low == "1930"
    assert not SCREENS["run"].ready(drafted)
    press(drafted, "people", "confirm", **shown(drafted))
    assert press(drafted, "people", "next", **shown(drafted)) == "run"
    assert "One row of patients, with all rows that belong to it in all tables." in page(drafted, "people")


def test_rules_across_tables_are_kept_and_a_summary_only_if_it_is_ticked(drafted):
    press(drafted, "tables", "next", **linked(drafted, **ALL, more_1="children: 0..40"))
    press(drafted, "people", "show visits", **shown(drafted))
    press(drafted, "people", "save", **shown(drafted, rules="year >= patients.born"))
    schema = drafted.choices.schema()
    assert [str(rule) for rule in schema.tables["visits"].constraints] == ["year >= patients.born"]
    assert schema.tables["visits"].children == (0, 40)
    with pytest.raises(InputError, match="no table above"):
        press(drafted, "people", "save", **shown(drafted, rules="year >= nobody.born"))
    press(drafted, "people", "save", **shown(drafted, rules=""))
    press(drafted, "tables", "save", **linked(drafted, more_1="children 1"))
    assert "table 'visits': other settings" in drafted.choices.problem_of_links()


@pytest.mark.slow
def test_a_run_makes_linked_tables_and_its_screens_show_each(drafted, start):
    """The epsilon is so large that noise hides no links."""
    press(drafted, "tables", "next", **linked(drafted, **ALL, public_2="on"))
    for _ in range(2):
        press(drafted, "people", "confirm", **shown(drafted))
        press(drafted, "people", "next", **shown(drafted))
    assert promise(drafted, epsilon="10") == "run"
    assert "A row and the one above" in page(drafted, "run")
    text = Command(drafted.choices).text
    # So many links are kept
    assert text.startswith("privsyn synth hospital synthetic --schema schema.yaml --epsilon 10 ")
    press(drafted, "run", "start", ending="", rows="")
    while drafted.job.wait(1.0):
        pass
    assert (drafted.job.code, drafted.job.complaints) == (0, [])
    assert list(start.glob("hospital.budget.jsonl"))

    visits = pd.read_csv(drafted.results / "synthetic" / "visits.csv")
    patients = pd.read_csv(drafted.results / "synthetic" / "patients.csv")
    assert set(visits["patient"]) <= set(patients["patient"])
    first = page(drafted, "result")
    assert "Rows of visits for each row of patients" in first
    assert "The private table patients has about" in first
    press(drafted, "result", "show visits")
    second = page(drafted, "result")
    assert "visits.ward" in second
    assert f"All {len(visits):,} synthetic rows were counted" in second
    counted = {row["label"]: row["synthetic"] for row in _column(drafted, "ward")["rows"]}
    for ward, count in visits["ward"].value_counts().items():
        assert counted[ward] * len(visits) / sum(counted.values()) == pytest.approx(count), ward
    for text in (first, second, page(drafted, "run")):
        assert CANARY not in text

    names = [name for name, _, _ in listed(drafted.results)]
    assert names[0] == "synthetic.zip"
    assert "run-schema.yaml" not in names
    tables = {"synthetic/drugs.csv", "synthetic/patients.csv", "synthetic/visits.csv"}
    assert _inside(drafted, "synthetic.zip") == tables
    others = {"model.privsyn", "ledger.json", "public.html", "sheet.md", "schema.yaml", "command.txt"}
    assert _inside(drafted, "everything.zip") == tables | others

    press(drafted, "compare", "compare")
    while drafted.comparison.wait(1.0):
        pass
    assert drafted.comparison.complaints == []
    compared = page(drafted, "compare")
    assert "<h3>visits</h3>" in compared


def _column(session, name):
    columns = SCREENS["result"].show(session)["columns"]
    return next(column for column in columns if column["name"] == name)


def _inside(session, name):
    with zipfile.ZipFile(io.BytesIO(file_of(session.results, name).read_bytes())) as archive:
        return set(archive.namelist())


def test_persons_who_have_no_table_are_asked_about_at_their_column(session, start):
    """Every table of the page is in a file, so none of keys alone is made."""
    (start / "films").mkdir()
    pd.DataFrame({"film": range(9), "genre": ["a", "b", "c"] * 3}).to_csv(
        start / "films/films.csv", index=False
    )
    ratings = pd.DataFrame({"user_id": np.arange(300) // 5, "film": np.arange(300) % 9, "stars": 3})
    ratings.to_csv(start / "films/ratings.csv", index=False)
    assert press(session, "choose", "choose", file="films") == "tables"
    assert press(session, "tables", "draft", persons="") == "tables"
    assert {*session.choices.tables} == {"films", "ratings"}
    entries = {entry.name: entry for entry in session.choices.tables["ratings"].entries}
    words = " ".join(entries["user_id"].remarks)
    assert "PERSONS WITHOUT A TABLE?" in words
    assert words.endswith(
        "Then add a file whose only column has each cell of user_id once, and choose its table above."
    )
    assert "--" not in words
    ratings[["user_id"]].drop_duplicates().to_csv(start / "films/users.csv", index=False)
    assert press(session, "choose", "choose", file="films") == "tables"
    assert press(session, "tables", "draft", persons="users") == "tables"
    assert session.choices.tables["ratings"].links["parent"] == "users"


def test_rows_to_which_nothing_leads_can_be_the_persons(session, start):
    (start / "air").mkdir()
    pd.DataFrame({"carrier": ["A", "B"], "fleet": [1, 2]}).to_csv(start / "air/carriers.csv", index=False)
    flights = pd.DataFrame({"carrier": ["A", "B"] * 150, "delay": np.arange(300) % 60})
    flights.to_csv(start / "air/flights.csv", index=False)
    assert press(session, "choose", "choose", file="air") == "tables"
    assert press(session, "tables", "draft", persons="flights") == "tables"
    choices = session.choices
    choices.tables["flights"].confirmed = True
    assert not choices.problem_of_links()
    assert choices.persons == "flights"
