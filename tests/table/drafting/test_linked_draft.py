"""A draft of several tables: keys, parents and orders from names, declarations and cells; and its check."""

import numpy as np
import pandas as pd
import pytest
from hospital import KEYS, SCHEMA, hospital, store
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refuses

from privsyn import PrivSyn
from privsyn.errors import InputError
from privsyn.table.database.database import Database
from privsyn.table.database.yaml_form import database_from_plain
from privsyn.table.discovery.broken_constraints import NO_CELL_FITS, NO_PARENT, SHARED_KEY
from privsyn.table.drafting import linked
from privsyn.table.drafting.check_tables import check_tables
from privsyn.table.drafting.keys import KeyedTable, closeness, links_between
from privsyn.table.drafting.layout import lay_out
from privsyn.table.drafting.linked import LinkedDraft
from privsyn.table.drafting.roles import Roles
from privsyn.table.io.formats import DeclaredTable, every_table
from privsyn.table.schema.yaml_file import parse

HOSPITAL = hospital(300)


def days(numbers):
    return pd.Timestamp("2024-01-01") + pd.to_timedelta(numbers, "D")


def folder_of(tables, path):
    """Write tables as CSV files into a new folder."""
    path.mkdir()
    for name, table in tables.items():
        table.to_csv(path / f"{name}.csv", index=False)
    return path


def text_of(tables, path):
    return LinkedDraft.read(every_table(folder_of(tables, path / "in"))).text(folder=path)[0]


def links_of(database):
    return {
        name: (table.key, table.parent, table.link, table.order) for name, table in database.private.items()
    }


def uncommented(text, *beginnings):
    """Take the proposals whose lines begin with these words."""
    for beginning in beginnings:
        assert f"#{beginning}" in text
        text = text.replace(f"#{beginning}", beginning)
    return database_from_plain(parse(text))


@pytest.fixture(params=["csv", "parquet", "duckdb", "sqlite", "declared.duckdb", "declared.sqlite"])
def place(request, tmp_path):
    """The hospital in every container."""
    if request.param == "csv":
        return folder_of(HOSPITAL, tmp_path / "in")
    if request.param == "parquet":
        (tmp_path / "in").mkdir()
        for name, table in HOSPITAL.items():
            table.to_parquet(tmp_path / "in" / f"{name}.parquet")
        return tmp_path / "in"
    path = tmp_path / f"in.{request.param}"
    store(HOSPITAL, path, KEYS if "declared" in request.param else None)
    return path


@pytest.mark.slow
def test_of_the_hospital_a_person_changes_two_lines(place, tmp_path):
    """Those are the public table, and a constraint."""
    text = LinkedDraft.read(every_table(place)).text(folder=tmp_path)[0]
    drafted = database_from_plain(parse(text))
    true = database_from_plain(parse(SCHEMA))
    assert links_of(drafted) == links_of(true)
    for name, table in true.private.items():
        assert list(drafted.tables[name].schema.columns) == list(table.schema.columns)
        for column, kind in table.schema.columns.items():
            assert type(drafted.tables[name].schema.columns[column]) is type(kind) or column == "days"
    assert "#- arrived < left" in text  # at least an hour
    assert (
        "#derive: {first_arrived: min(visits.arrived), last_arrived: max(visits.arrived), sum_cost:" in text
    )
    assert ("where the patient lay" in text) == (place.name == "in.declared.duckdb")
    whole = uncommented(text, "drugs: {public", "derive: ", "- arrived <")
    assert whole.tables["drugs"].key == "drug"
    assert set(whole.tables["patients"].derive) == {"first_arrived", "last_arrived", "sum_cost"}
    assert len(whole.tables["visits"].schema.constraints) == 1


def test_a_draft_says_that_it_was_read_and_who_is_protected(tmp_path):
    text = text_of(HOSPITAL, tmp_path)
    assert text.startswith("# DRAFT, made from the rows of the private table. Review it")
    assert "others were READ from the rows" in text
    assert "# READ: 300 rows, each a person, who is protected with all rows that belong to it." in text
    assert "READ: prescriptions.drug leads to drugs. If everybody may know that table" in text
    assert "  #drugs: {public: in/drugs.csv, key: drug}\n" in text


@pytest.mark.slow
def test_the_same_rows_give_the_same_draft(tmp_path):
    """Whatever the order of the files."""
    places = every_table(folder_of(HOSPITAL, tmp_path / "in"))
    other = dict(reversed(places.items()))
    assert LinkedDraft.read(places).text() == LinkedDraft.read(places).text()
    assert links_of(database_from_plain(parse(LinkedDraft.read(other).text()[0]))) == links_of(
        database_from_plain(parse(LinkedDraft.read(places).text()[0]))
    )


@pytest.mark.parametrize(
    ("column", "table", "key", "close"),
    [
        ("patient_id", "patients", "patient_id", 4),
        ("patientId", "tbl_patients", "id", 3),
        ("patient", "patients", "patient_no", 3),
        ("person_id", "people", "id", 3),
        ("customerid", "customers", "id", 3),
        ("treating_doctor_id", "doctors", "id", 2),
        ("parent_tour_id", "tours", "tour_id", 2),
        ("id", "patients", "id", 0),
        ("patients", "patients", "id", 0),
        ("number", "patients", "patient_id", 0),
        ("age", "patients", "patient_id", 0),
    ],
)
def test_names_say_where_a_column_leads(column, table, key, close):
    assert closeness(column, table, key) == close


def keyed(**tables):
    return {name: KeyedTable(name, frame) for name, frame in tables.items()}


ROWS = np.random.default_rng(0)
PATIENTS = pd.DataFrame({"id": range(1, 401), "age": ROWS.integers(1, 90, 400)})
DOCTORS = pd.DataFrame({"id": range(1, 41), "field": ROWS.choice(["a", "b"], 40)})
VISITS = pd.DataFrame(
    {
        "id": range(1, 1201),
        "patient_id": ROWS.integers(1, 401, 1200),
        "doctor_id": ROWS.integers(1, 41, 1200),
        "score": ROWS.integers(1, 40, 1200),
    }
)


def test_of_numbers_that_are_keys_of_all_tables_the_names_decide():
    """All numbers of visits are keys of patients, and those of doctors too."""
    links = links_between(keyed(patients=PATIENTS, doctors=DOCTORS, visits=VISITS))
    found = {column: [link.parent for link in links] for (_, column), links in links.items()}
    assert found == {"patient_id": ["patients"], "doctor_id": ["doctors"]}


@pytest.mark.parametrize("names", [("details", "persons"), ("persons", "details")])
def test_of_two_tables_with_equal_keys_the_one_they_are_named_after_is_the_parent(names):
    keys = [f"P{number:04d}" for number in range(100)]
    tables = {name: KeyedTable(name, pd.DataFrame({"person_id": keys, "cell": 0})) for name in names}
    found = links_between(tables)
    assert [(place, links[0].parent) for place, links in found.items()] == [
        (("details", "person_id"), "persons")
    ]


def test_a_declared_key_comes_before_names():
    said = DeclaredTable(("id",), {("score",): ("patients", ("id",))})
    links = links_between(keyed(patients=PATIENTS) | {"visits": KeyedTable("visits", VISITS, said)})
    assert links["visits", "score"][0].declared
    layout = lay_out(keyed(patients=PATIENTS) | {"visits": KeyedTable("visits", VISITS, said)})
    assert layout.parents["visits"].column == "score"


def test_texts_lead_to_a_key_whatever_their_column_is_called():
    drugs = pd.DataFrame({"code": [f"A{place}" for place in range(50)], "route": ["eye"] * 50})
    given_ = pd.DataFrame({"person": range(200), "what": ROWS.choice(drugs["code"], 200)})
    links = links_between(keyed(drugs=drugs, given=given_))
    assert [(column, links[0].parent) for (_, column), links in links.items()] == [("what", "drugs")]


def test_two_private_parents_are_said_in_one_remark(tmp_path):
    text = text_of({"patients": PATIENTS, "doctors": DOCTORS, "visits": VISITS}, tmp_path)
    database = database_from_plain(parse(text))
    assert links_of(database) == {
        "patients": ("id", None, None, None),
        "visits": ("id", "patients", "patient_id", None),
    }
    assert "READ: leads to doctors, a second private parent if its rows are persons" in text
    assert "doctor_id: {kind: text}" in text
    assert "NOT DRAFTED: the table doctors." in text


def test_a_row_of_two_persons_is_said_to_protect_one(tmp_path):
    users = pd.DataFrame({"user_id": range(1, 101), "age": ROWS.integers(1, 90, 100)})
    both = ROWS.integers(1, 101, (2, 900))
    sent = pd.DataFrame(
        {"sender_user_id": both[0], "receiver_user_id": both[1], "size": ROWS.integers(1, 9, 900)}
    )
    text = " ".join(text_of({"users": users, "messages": sent}, tmp_path).replace("#", "").split())
    assert (
        f"READ: {(both[0] != both[1]).sum()} rows of two persons: sender_user_id leads to another row" in text
    )
    assert "its person alone is protected" in text


def test_a_table_belongs_to_the_parent_that_is_furthest_from_the_root():
    """Tours name their household too. Participants name other persons of the household."""
    homes = pd.DataFrame({"home_id": range(500, 600), "zone_id": ROWS.integers(1, 21, 100)})
    people = pd.DataFrame({"person_id": range(1000, 1300), "home_id": ROWS.integers(500, 600, 300)})
    tours = pd.DataFrame({"tour_id": range(7000, 7900), "person_id": ROWS.integers(1000, 1300, 900)})
    tours["home_id"] = people["home_id"].to_numpy()[tours["person_id"] - 1000]
    tours["from_zone_id"], tours["to_zone_id"] = ROWS.integers(1, 21, (2, 900))
    tours["after_tour_id"] = ROWS.integers(7000, 7900, 900)
    zones = pd.DataFrame({"zone_id": range(1, 21), "size": ROWS.integers(1, 9, 20)})
    layout = lay_out(keyed(zones=zones, tours=tours, people=people, homes=homes))
    assert layout.root == "homes"
    assert {name: link.parent for name, link in layout.parents.items()} == {
        "people": "homes",
        "tours": "people",
    }
    assert layout.public == {"zones": "zone_id"}
    assert layout.lookups_of("tours") == {"from_zone_id": "zones", "to_zone_id": "zones"}
    assert "follows from person_id" in layout.left_out["tours", "home_id"]
    assert "another row of tours" in layout.left_out["tours", "after_tour_id"]


def test_accounts_are_no_look_up_table_though_each_has_many_rows():
    """Else a transaction would be a person."""
    accounts = pd.DataFrame({"account": [f"A{place}" for place in range(20)], "opened": range(20)})
    rows = pd.DataFrame({"transaction": range(2000), "account": ROWS.choice(accounts["account"], 2000)})
    items = pd.DataFrame({"transaction": ROWS.integers(0, 2000, 5000), "item": ROWS.choice(list("ab"), 5000)})
    layout = lay_out(keyed(accounts=accounts, transactions=rows, items=items))
    assert (layout.root, layout.public) == ("accounts", {})


def test_keys_that_are_written_in_another_way_are_not_taken_and_said(tmp_path):
    """`fit` compares texts of CSV files: 412.0 is no key 412."""
    visits = (
        VISITS[["patient_id", "score"]].astype({"patient_id": float}).assign(other_id=VISITS["patient_id"])
    )
    text = text_of({"patients": PATIENTS, "visits": visits}, tmp_path)
    assert database_from_plain(parse(text)).names == ("patients",)
    layout = lay_out(
        {"patients": KeyedTable("patients", PATIENTS), "visits": KeyedTable("visits", visits, is_csv=True)}
    )
    assert "visits" in layout.outside


def test_a_key_that_a_few_rows_share_is_still_the_key(tmp_path):
    twice = pd.concat([PATIENTS, PATIENTS[:2]])
    text = text_of({"patients": twice, "visits": VISITS}, tmp_path)
    assert "READ: 2 rows without a id of its own" in text
    assert database_from_plain(parse(text)).tables["visits"].parent == "patients"


def ordered(**columns):
    """100 patients with 3 rows each, which have these columns."""
    rows = pd.DataFrame({"patient_id": np.repeat(PATIENTS["id"][:100], 3).to_numpy(), **columns})
    return {"patients": PATIENTS[:100], "rows": rows}


DAYS = np.sort(ROWS.integers(0, 300, (100, 3)) * 3 + [0, 1, 2], axis=1).ravel()
NUMBERS = np.tile([1, 2, 3], 100)


@pytest.mark.parametrize(
    ("columns", "order", "left"),
    [
        ({"number": NUMBERS, "ward": ROWS.choice(["a", "b"], 300)}, "number", ("ward",)),
        ({"seen": days(DAYS), "left": days(DAYS + 2)}, "seen", ("seen", "left")),
        (  # its mean is the earlier one, because late rows lack it
            {"left": days(DAYS + 2).where(np.quantile(DAYS, 0.95) > DAYS), "seen": days(DAYS)},
            "seen",
            ("left", "seen"),
        ),
        (
            {"row_no": NUMBERS, "row_id": np.arange(300), "ward": ROWS.choice(["a", "b"], 300)},
            "row_no",
            ("ward",),
        ),
        ({"number": NUMBERS, "seen": days(DAYS)}, "seen", ("seen",)),
        ({"number": NUMBERS, "born": days(ROWS.integers(0, 9000, 300))}, "number", ("born",)),
        ({"start_hour": DAYS, "load": ROWS.integers(0, 99, 300)}, "start_hour", ("start_hour", "load")),
        ({"load": ROWS.integers(0, 9, 300)}, None, ("load",)),
        ({"film_id": DAYS}, None, ("film_id",)),  # the file is sorted by patient and film
        ({"rank_seen": DAYS}, "rank_seen", ("rank_seen",)),
    ],
)
def test_the_order_is_a_time_or_a_number_of_the_rows(tmp_path, columns, order, left):
    database = database_from_plain(parse(text_of(ordered(**columns), tmp_path)))
    assert database.tables["rows"].order == order
    assert tuple(database.tables["rows"].schema.coded) == left


def test_what_never_differs_within_a_parent_is_remarked(tmp_path):
    town = np.repeat(ROWS.choice(["Rome", "Oslo"], 100), 3)
    text = text_of(ordered(town=town, ward=ROWS.choice(["a", "b"], 300)), tmp_path)
    assert text.count("never differs among the rows of one row of patients") == 1
    assert text.index("never differs") < text.index("town:") < text.index("ward:")


def test_others_may_add_remarks(tmp_path, monkeypatch):
    monkeypatch.setattr(
        linked, "REMARKS", [lambda drafted: [("rows", "", "READ: mine"), ("rows", "ward", "too")]]
    )
    text = text_of(ordered(ward=ROWS.choice(["a", "b"], 300)), tmp_path)
    assert "    # READ: mine\n    parent: patients\n" in text
    assert "      # too\n      ward:" in text


def test_a_draft_needs_a_key_and_rows(tmp_path):
    with pytest.raises(InputError, match="has a key: give one a column"):
        text_of({"a": pd.DataFrame({"x": [1.5, 2]}), "b": pd.DataFrame({"y": [1, 1]})}, tmp_path)
    with pytest.raises(InputError, match="no table: no rows to draft from"):
        LinkedDraft.read(every_table(folder_of({"a": PATIENTS[:0], "b": PATIENTS[:0]}, tmp_path / "empty")))


def test_which_files_are_tables(tmp_path):
    """Parquet files with the same columns are one table."""
    for name, frame in (("one", PATIENTS[:9]), ("two", PATIENTS[9:])):
        (tmp_path / name).mkdir()
        frame.to_parquet(tmp_path / name / "part.parquet")
    assert every_table(tmp_path) == {}
    (tmp_path / "_notes.csv").touch()
    (tmp_path / "notes.csv").touch()
    assert every_table(tmp_path) == {}
    VISITS.to_parquet(tmp_path / "visits.parquet")
    (tmp_path / "notes.csv").unlink()
    assert list(every_table(tmp_path)) == ["visits", "one", "two"]
    PATIENTS.to_csv(tmp_path / "one" / "homes.csv", index=False)
    assert list(every_table(tmp_path / "one")) == ["homes", "part"]
    assert every_table(tmp_path / "visits.parquet") == {}
    store({"patients": PATIENTS}, tmp_path / "one.sqlite")
    assert every_table(tmp_path / "one.sqlite") == {}


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4), st.booleans())
def test_any_tables_give_a_schema_that_is_read(seed, number, dense):
    """Numbers from 1 up are keys of many tables: whichever links are found, they make no circle."""
    rng = np.random.default_rng(seed)
    tables = {}
    for place in range(number):
        rows = int(rng.integers(2, 60))
        frame = {"id": rng.permutation(rows) + 1 + (0 if dense else 10**6 * place)}
        frame |= {f"t{k}_id": rng.integers(1, 30, rows) for k in range(number) if rng.random() < 0.5}
        frame |= {"x": rng.normal(size=rows)} if rng.random() < 0.5 else {}
        tables[f"t{place}"] = pd.DataFrame(frame)
    layout = lay_out({name: KeyedTable(name, frame) for name, frame in tables.items()})
    assert {*layout.names, *layout.public, *layout.outside} == {*tables}
    above = {name: layout.parents[name].parent for name in layout.parents}
    for name in layout.parents:
        seen = set()
        while name in above:
            assert name not in seen
            seen.add(name)
            name = above[name]
        assert name == layout.root


BAD = """
tables:
  patients: {key: id, columns: {age: {kind: numerical, low: 0, high: 80, integer: true}}}
  visits:
    key: id
    parent: patients
    link: patient_id
    order: at
    columns: {score: {kind: numerical, low: 0, high: 50, integer: true}}
"""


def test_a_check_counts_orphans_repeated_keys_and_rows_of_a_parent(tmp_path):
    patients = pd.concat([PATIENTS.assign(age=40), PATIENTS[:2].assign(age=99)])
    visits = VISITS[["id", "patient_id", "score"]][:60].copy()
    visits["patient_id"] = pd.array(np.repeat([1, 2, 3], 20), "Int64")
    visits["at"] = np.where(np.arange(60) < 5, None, np.arange(60))
    visits.loc[[0, 1, 2], "patient_id"] = [900, 901, pd.NA]
    visits.loc[59, "id"] = 1
    database: Database = database_from_plain(parse(BAD))
    lines = check_tables(folder_of({"patients": patients, "visits": visits}, tmp_path / "in"), database)
    assert lines == [
        "table 'patients': 402 rows",
        "table 'patients': the key 'id' of 2 rows is that of another row: of each key one row is kept",
        "table 'patients': column 'age': 2 of 402 cells do not fit: they are clipped to the bounds, or"
        " missing if unreadable",
        "table 'visits': 60 rows",
        "table 'visits': the key 'id' of 1 row is that of another row: rows below belong to one of them",
        "table 'visits': 2 of 60 rows name no row of 'patients' in 'patient_id': they are left out",
        "table 'visits': 1 of 60 rows have no 'patient_id': they are left out",
        "table 'visits': rows per row of 'patients': mean 0.14, median 0, maximum 20; 399 have none",
        "table 'visits': 5 rows without the order 'at': they come last",
        "table 'visits': every cell fits",
    ]


def test_a_check_marks_a_table_of_which_no_row_is_linked(tmp_path):
    """Keys with leading zeros are others in a CSV."""
    visits = VISITS[["id", "patient_id", "score"]].assign(at=1)
    visits["patient_id"] = visits["patient_id"].map("{:05d}".format)
    lines = check_tables(
        folder_of({"patients": PATIENTS, "visits": visits}, tmp_path / "in"), database_from_plain(parse(BAD))
    )
    assert [line for line in lines if getattr(line, "advice", None) == NO_PARENT] == [
        "table 'visits': 1,200 of 1,200 rows name no row of 'patients' in 'patient_id': they are left out"
    ]
    assert not any(getattr(line, "advice", None) == NO_CELL_FITS for line in lines)


def test_a_check_marks_keys_that_two_persons_share(tmp_path):
    """If one of them leaves, rows below become the other's. Two rows of one person may share a key."""
    stays = "  stays: {parent: visits, link: visit, columns: {}}"
    database: Database = database_from_plain(parse(BAD + stays))
    visits = pd.DataFrame({"id": [7, 7, 8, 8, 9, 9], "patient_id": [1, 2, 3, 3, 1, 99], "score": 1, "at": 1})
    tables = {
        "patients": pd.DataFrame({"id": [1, 2, 3], "age": 40}),
        "visits": visits,
        "stays": pd.DataFrame({"visit": [7, 7, 8]}),
    }
    lines = check_tables(folder_of(tables, tmp_path / "in"), database)
    repeated = (
        "table 'visits': the key 'id' of 3 rows is that of another row: rows below belong to one of them"
    )
    assert repeated in lines
    assert [line for line in lines if getattr(line, "advice", None) == SHARED_KEY] == [
        "table 'visits': the key 'id' is the same in rows of two persons, 1 time: the promise does not hold"
        " for them"
    ]
    visits.loc[0, "id"] = 6
    lines = check_tables(folder_of(tables, tmp_path / "new"), database)
    assert not any(getattr(line, "advice", None) == SHARED_KEY for line in lines)


@pytest.mark.parametrize(("first", "says"), [(0, True), (300, False)])
def test_a_draft_says_how_to_declare_that_every_parent_has_rows(tmp_path, first, says):
    trips = pd.DataFrame({"home": [*range(300), *range(200)], "km": [4, 5] * 250}).iloc[first:]
    homes = pd.DataFrame({"home": range(300), "size": [1, 2, 3] * 100})
    text = text_of({"homes": homes, "trips": trips}, tmp_path)
    assert ("100 have none" in text) == (not says)
    children = (1, 2) if says else (0, 1)
    assert database_from_plain(parse(text)).tables["trips"].children != children
    assert uncommented(text, "children: ").tables["trips"].children == children


def test_sums_and_numbers_of_the_rows_below_are_proposed_and_can_be_taken(tmp_path):
    rows = ROWS.integers(0, 5, 300)
    lines = pd.DataFrame(
        {"order_id": np.repeat(range(300), rows), "price": ROWS.integers(1, 900, rows.sum()) / 100}
    )
    total = lines.groupby("order_id")["price"].sum().reindex(range(300), fill_value=0).round(2).to_numpy()
    orders = pd.DataFrame(
        {"order_id": range(300), "total": total, "items": rows, "other": total + (total == total[7])}
    )
    text = text_of({"orders": orders, "lines": lines}, tmp_path)
    assert "#- total == sum(lines.price)  # READ: 300 rows" in text
    assert "#- items == count(lines)  # READ: 300 rows" in text
    assert "other ==" not in text
    assert "sum_price" in text  # of orders, as a summary: the sums themselves are none
    database = uncommented(text, "- total", "- items")
    assert check_tables(tmp_path / "in", database)[-1].endswith("every cell fits")
    assert {*database.tables["orders"].computed} == {"total", "items"}


@pytest.mark.slow
def test_dates_that_never_pass_one_above_are_proposed_and_all_proposals_can_be_taken(tmp_path):
    patients = pd.DataFrame({"patient": range(900), "joined": days(ROWS.integers(0, 600, 900))})
    visits = pd.DataFrame({"patient": np.repeat(range(900), 2), "visit": range(1800)})
    joined = patients["joined"].to_numpy()[visits["patient"]]
    visits["arrived"] = joined + pd.to_timedelta(ROWS.integers(0, 90, 1800), "D")
    visits["nights"] = ROWS.integers(0, 9, 1800)
    visits["left"] = visits["arrived"] + pd.to_timedelta(visits["nights"], "D")
    visits["asked"] = visits["arrived"] - pd.to_timedelta(ROWS.integers(0, 40, 1800), "D")
    doses = pd.DataFrame({"visit": np.repeat(range(1800), 2)})
    nights = visits["nights"].to_numpy()[doses["visit"]]
    doses["given"] = visits["arrived"].to_numpy()[doses["visit"]] + pd.to_timedelta(
        (ROWS.random(3600) * (nights + 1)).astype(int), "D"
    )
    doses["mg"] = ROWS.integers(1, 5, 3600)
    tables = {"patients": patients, "visits": visits, "doses": doses}
    text = text_of(tables, tmp_path)
    across = ["arrived >= patients.joined", "given >= visits.arrived", "given <= visits.left"]
    for rule in across:
        assert f"#- {rule}  # READ: " in text
    assert text.count("patients.joined") == 1  # what follows from others is left out
    within = ["left == arrived + nights", "asked <= arrived"]
    database = uncommented(text, *(f"- {rule}" for rule in [*across, *within]))
    assert check_tables(tmp_path / "in", database)[-1].endswith("every cell fits")
    made = PrivSyn(3.0, 1e-6, database, seed=0).fit(tables).sample(seed=0)
    found = made["doses"].merge(made["visits"], on="visit").merge(made["patients"], on="patient")
    assert not found.isna().any(axis=None)
    assert (found["joined"] <= found["arrived"]).all()
    assert (found["arrived"] <= found["given"]).all()
    assert (found["given"] <= found["left"]).all()


def test_a_date_whose_bounds_do_not_reach_those_above_is_proposed_with_a_note(tmp_path):
    """Who joined last has no visit yet."""
    homes = pd.DataFrame({"home": range(400), "joined": days(ROWS.integers(0, 300, 400))})
    homes.loc[0, "joined"] = days(1500)
    visits = pd.DataFrame({"home": np.repeat(range(1, 400), 2)})
    visits["day"] = homes["joined"].to_numpy()[visits["home"]] + pd.to_timedelta(
        ROWS.integers(0, 90, 798), "D"
    )
    text = text_of({"homes": homes, "visits": visits}, tmp_path)
    assert (
        "#- day >= homes.joined  # READ: 798 rows; let the bounds of day reach those of homes.joined" in text
    )


def test_a_date_is_compared_with_one_above_if_rows_without_rows_below_break_what_would_imply_it(tmp_path):
    """Visits without a dose may be before the registration; no dose is."""
    people = pd.DataFrame({"person": range(400), "joined": days(ROWS.integers(0, 300, 400))})
    visits = pd.DataFrame({"person": range(400), "visit": range(400)})
    visits["day"] = people["joined"] + pd.to_timedelta(ROWS.integers(0, 90, 400), "D")
    visits.loc[:49, "day"] -= pd.Timedelta(99, "D")
    doses = pd.DataFrame({"visit": np.repeat(range(50, 400), 2)})
    later = pd.to_timedelta(ROWS.integers(0, 9, 700), "D")
    doses["given"] = visits["day"].to_numpy()[doses["visit"]] + later
    text = text_of({"people": people, "visits": visits, "doses": doses}, tmp_path)
    assert "#- given >= visits.day  # READ: 700 rows" in text
    assert "#- given >= people.joined  # READ: 700 rows" in text
    assert "day >= people.joined" not in text


def test_no_rule_is_proposed_on_a_date_that_would_be_measured_from_a_complete_one(tmp_path):
    homes = pd.DataFrame({"home": range(400), "joined": days(ROWS.integers(0, 300, 400))})
    visits = pd.DataFrame({"home": np.repeat(range(400), 2)})
    joined = homes["joined"].to_numpy()[visits["home"]]
    visits["day"] = joined + pd.to_timedelta(ROWS.integers(0, 90, 800), "D")
    visits["asked"] = visits["day"] - pd.to_timedelta(ROWS.integers(0, 30, 800), "D")
    rules = "#- asked <= day", "#- day >= homes.joined"
    (tmp_path / "complete").mkdir()
    text = text_of({"homes": homes, "visits": visits}, tmp_path / "complete")
    assert [rule in text for rule in rules] == [True, True]
    visits.loc[:99, "day"] = pd.NaT
    text = text_of({"homes": homes, "visits": visits}, tmp_path)
    assert [rule in text for rule in rules] == [True, False]


def school():
    rng = np.random.default_rng(0)
    students, teachers = np.arange(500, 560), np.arange(700, 720)
    courses = pd.DataFrame({"course": [f"C{n}" for n in range(30)], "teacher": rng.choice(teachers, 30)})
    marks = pd.DataFrame(
        {"student": np.repeat(students, 4), "course": rng.choice(courses["course"], 240), "mark": 1}
    )
    return {
        "students": pd.DataFrame({"student": students, "age": rng.integers(10, 20, 60)}),
        "teachers": pd.DataFrame({"teacher": teachers, "born": rng.integers(1950, 1999, 20)}),
        "courses": courses,
        "marks": marks,
    }


@pytest.mark.parametrize(
    ("public", "also", "words"),
    [
        (("courses",), ("teachers",), "--public 'courses': its column 'teacher' has keys of teachers"),
        ((), ("teachers",), "--also 'teachers': no private table leads to it, only courses"),
    ],
)
def test_a_public_table_holds_no_keys_of_protected_rows(tmp_path, public, also, words):
    tables = every_table(folder_of(school(), tmp_path / "in"))
    with refuses(words):
        LinkedDraft.read(tables, roles=Roles(public=public, also=also))


def test_a_public_table_without_the_keys_of_protected_rows_is_drafted(tmp_path):
    tables = school()
    tables["courses"] = tables["courses"].assign(teacher=1.5)
    tables["marks"] = tables["marks"].assign(teacher=np.resize(tables["teachers"]["teacher"], 240))
    places = every_table(folder_of(tables, tmp_path / "in"))
    draft = LinkedDraft.read(places, roles=Roles(public=("courses",), also=("teachers",)))
    assert draft.layout.dealt == {("marks", "teacher"): "teachers"}
