"""A draft of several tables: whose rows are the persons, and what is never proposed as public."""

import re
import sqlite3

import numpy as np
import pandas as pd
import pytest

from privsyn.cli.main import main

ROWS = np.random.default_rng(11)
CUSTOMERS = pd.DataFrame({"customer_id": range(100, 400), "age": ROWS.integers(18, 80, 300)})
LAST_NAMES = ["Ames", "Berg", "Cole", "Dahl", "Eco", "Falk", "Gil", "Hay", "Ito", "Jay"]
ORDERS = pd.DataFrame({"order_id": range(7000, 7900), "customer_id": ROWS.integers(100, 400, 900)})


def draft_of(tables, folder, capsys, *options):
    """Return the draft of tables in a folder of CSV files, with its comments as running text."""
    (folder / "in").mkdir()
    for name, table in tables.items():
        table.to_csv(folder / "in" / f"{name}.csv", index=False)
    assert main(["schema", str(folder / "in"), "-o", str(folder / "s.yaml"), *options]) == 0
    draft = (folder / "s.yaml").read_text().partition("tables:\n")[2]
    return " ".join(re.sub("\n *# ", " ", draft).split())


def items_with(**columns):
    """Return orders that lead to 30 items, and the items with further columns."""
    orders = ORDERS.assign(item_id=ROWS.integers(500, 530, len(ORDERS)))
    items = pd.DataFrame({"item_id": range(500, 530), **columns})
    return {"customers": CUSTOMERS, "orders": orders, "items": items}


@pytest.mark.parametrize(
    "columns",
    [
        {"size": ["S", "M", "L"] * 10},
        {"day": [f"2024-05-{day:02d}" for day in range(1, 31)]},
        {"ean": [f"40063813{i}" for i in range(10, 40)]},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_a_plain_look_up_table_is_still_proposed(columns, tmp_path, capsys):
    draft = draft_of(items_with(**columns), tmp_path, capsys)
    assert "#items: {public:" in draft


@pytest.mark.parametrize(
    ("first", "words"),
    [("JFK", "Its cells are keys there."), (50, "All its numbers are keys there. Or numerical?")],
)
def test_a_column_by_another_name_leads_to_a_look_up_by_its_cells(first, words, tmp_path, capsys):
    keys = [first + 97 * k if isinstance(first, int) else f"{first}{k}" for k in range(30)]
    tables = items_with(size=["S", "M", "L"] * 10)
    tables["orders"]["source"] = ROWS.choice(keys, len(ORDERS))
    tables["sites"] = pd.DataFrame({"site": keys, "height": range(30)})
    draft = draft_of(tables, tmp_path, capsys)
    assert f"leads to sites. {words} Common values" in draft


@pytest.mark.parametrize(
    "columns",
    [
        {"delivery_address": [f"Mill {i}" for i in range(30)]},
        {"where": [f"Mill Road {i}" for i in range(30)]},
        {"wohin": [f"Lange Straße {i}a" for i in range(30)]},
        {"phone": range(30)},
        {"contact": [f"p{i}@example.org" for i in range(30)]},
        {"line": [f"+49 30 12345{i}" for i in range(10, 40)]},
        {"date_of_birth": [f"19{i}-05-07" for i in range(50, 80)]},
        {"name": [f"{first} {last}" for first in ("Ann", "Bob", "Eve") for last in LAST_NAMES]},
    ],
    ids=lambda columns: next(iter(columns)),
)
def test_a_table_with_names_addresses_or_the_like_is_never_proposed_as_public(columns, tmp_path, capsys):
    draft = draft_of(items_with(**columns), tmp_path, capsys)
    assert "{public:" not in draft
    assert "item_id: {kind: text}" in draft
    assert "orders leads to it" in draft


def test_a_table_whose_rows_lead_on_is_not_proposed_as_public(tmp_path, capsys):
    """A bill leads to its payer, whatever payers are called."""
    bills = pd.DataFrame({"bill_id": range(9000, 9030), "zahler_id": ROWS.integers(40, 60, 30)})
    tables = {
        "customers": CUSTOMERS,
        "orders": ORDERS.assign(bill_id=ROWS.integers(9000, 9030, len(ORDERS))),
        "bills": bills,
        "zahler": pd.DataFrame({"zahler_id": range(40, 60), "year": ROWS.integers(1, 9, 20)}),
    }
    draft = draft_of(tables, tmp_path, capsys)
    assert "{public:" not in draft
    assert "leads to bills, whose rows lead to zahler" in draft


def test_homes_with_few_persons_each_are_not_proposed_as_public(tmp_path, capsys):
    places = pd.DataFrame({"place_id": range(50, 150), "rooms": ROWS.integers(1, 9, 100)})
    customers = CUSTOMERS.assign(place_id=ROWS.integers(50, 150, 300))
    draft = draft_of({"customers": customers, "orders": ORDERS, "places": places}, tmp_path, capsys)
    assert "#places" not in draft


def test_the_persons_are_customers_and_not_their_few_representatives(tmp_path, capsys):
    """More rows hang below the staff, but the data are about customers."""
    staff = pd.DataFrame({"staff_id": range(1, 9), "grade": ["a", "b"] * 4})
    customers = CUSTOMERS.assign(staff_id=ROWS.integers(1, 9, 300))
    tables = {"staff": staff, "customers": customers, "orders": ORDERS}
    draft = draft_of(tables, tmp_path, capsys)
    assert "customers: READ: 300 rows, each a person" in draft
    assert "WHO ARE THE PERSONS?" in draft
    assert "staff (" in draft
    assert "staff: {public" not in draft


def test_another_table_can_be_named_for_the_persons(tmp_path, capsys):
    shops = pd.DataFrame({"shop_id": range(20, 40), "size": ROWS.integers(1, 9, 20)})
    tables = {
        "shops": shops,
        "customers": CUSTOMERS,
        "orders": ORDERS.assign(shop_id=ROWS.integers(20, 40, 900)),
    }
    draft = draft_of(tables, tmp_path, capsys, "--persons", "shops")
    assert "shops: READ: 20 rows, each a person" in draft
    assert main(["schema", str(tmp_path / "in"), "--persons", "shop"]) == 2
    assert "--persons 'shop' is none of the tables" in capsys.readouterr().err


def test_tables_without_rows_are_named_and_the_others_drafted(tmp_path, capsys):
    """Also if a declared key leads to one."""
    link = sqlite3.connect(tmp_path / "a.sqlite")
    link.executescript(
        "create table ward(ward_id integer primary key, name text);"
        "create table customer(customer_id integer primary key, age int, ward_id integer references ward);"
        "create table note(id integer primary key, customer_id integer references customer, what text);"
    )
    CUSTOMERS.assign(ward_id=None).to_sql("customer", link, if_exists="append", index=False)
    link.close()
    assert main(["schema", str(tmp_path / "a.sqlite"), "-o", str(tmp_path / "s.yaml")]) == 0
    draft = (tmp_path / "s.yaml").read_text()
    assert "NOT DRAFTED: the table note. READ: it has no rows." in draft
    assert "NOT DRAFTED: the table ward. READ: it has no rows." in draft
    assert "not drafted: 2 tables" in capsys.readouterr().err


def test_a_database_without_a_row_is_refused(tmp_path, capsys):
    link = sqlite3.connect(tmp_path / "a.sqlite")
    link.executescript("create table a(id integer primary key); create table b(id integer primary key);")
    link.close()
    assert main(["schema", str(tmp_path / "a.sqlite")]) == 2
    assert "no rows to draft from" in capsys.readouterr().err


def test_rows_with_an_empty_link_are_counted(tmp_path, capsys):
    orders = ORDERS.astype({"customer_id": "Int64"})
    orders.loc[orders.index % 5 == 0, "customer_id"] = None
    draft = draft_of({"customers": CUSTOMERS, "orders": orders}, tmp_path, capsys)
    assert "180 rows (20 %) without a customer_id" in draft


def test_a_link_table_is_named(tmp_path, capsys):
    courses = pd.DataFrame({"course_id": range(50, 70), "hours": ROWS.integers(1, 9, 20)})
    pairs = pd.MultiIndex.from_product([CUSTOMERS["customer_id"], courses["course_id"]]).to_frame(index=False)
    pairs = pairs.set_axis(["customer_id", "course_id"], axis=1).sample(2000, random_state=1).sort_index()
    draft = draft_of({"customers": CUSTOMERS, "courses": courses, "taken": pairs}, tmp_path, capsys)
    assert "LINK TABLE, customer_id and course_id together differ in every row" in draft
