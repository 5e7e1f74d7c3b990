"""A small database like those that shops have goes from file to file: keys, look-ups, links, empty tables."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from command import run

from privsyn.cli import main

TABLES = """
create table Region (RegionId integer primary key, Name text);
create table Store (StoreId integer primary key, Street text, RegionId integer references Region (RegionId));
create table Staff (StaffId integer primary key, LastName text, ReportsTo integer references Staff (StaffId));
create table Product (Code text primary key, Name text, Price numeric);
create table Bundle (BundleId integer primary key, Name text);
create table BundleProduct (
    BundleId integer references Bundle (BundleId), Code text references Product (Code),
    primary key (BundleId, Code)
);
create table Customer (
    CustomerId integer primary key, Born integer, StaffId integer not null references Staff (StaffId),
    StoreId integer references Store (StoreId)
);
create table "Order" (
    OrderId integer primary key, CustomerId integer references Customer (CustomerId), Ordered date,
    Freight numeric
);
create table Line (
    OrderId integer references "Order" (OrderId), LineNo integer, Code text references Product (Code),
    Number integer, primary key (OrderId, LineNo)
);
create table Refund (
    OrderId integer, LineNo integer, Share integer,
    foreign key (OrderId, LineNo) references Line (OrderId, LineNo)
);
create table Demographic (TypeId integer primary key, What text);
create table CustomerDemographic (
    CustomerId integer references Customer (CustomerId), TypeId integer references Demographic (TypeId),
    primary key (CustomerId, TypeId)
);
"""
PUBLIC = [
    part for name in ("Region", "Store", "Product", "Bundle", "BundleProduct") for part in ("--public", name)
]


def shop(path):
    rng = np.random.default_rng(3)
    codes = [f"P{number:03d}" for number in range(30)]
    pairs = [(bundle, code) for bundle in range(1, 5) for code in rng.choice(codes, 6, replace=False)]
    customers = pd.DataFrame({"CustomerId": range(10, 410), "Born": rng.integers(1940, 2005, 400)})
    customers = customers.assign(StaffId=rng.integers(1, 9, 400), StoreId=rng.integers(1, 41, 400))
    number = rng.poisson(3, 400)
    orders = pd.DataFrame({"CustomerId": np.repeat(customers["CustomerId"], number).to_numpy()})
    orders.insert(0, "OrderId", range(5000, 5000 + len(orders)))
    days = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, len(orders)), "D")
    orders = orders.assign(Ordered=days.strftime("%Y-%m-%d"), Freight=rng.gamma(2, 10, len(orders)).round(2))
    lines = pd.DataFrame(
        {"OrderId": np.repeat(orders["OrderId"], rng.integers(1, 4, len(orders))).to_numpy()}
    )
    lines["LineNo"] = lines.groupby("OrderId").cumcount() + 1
    lines = lines.assign(Code=rng.choice(codes, len(lines)), Number=rng.integers(1, 9, len(lines)))
    refunds = lines[["OrderId", "LineNo"]].sample(300, random_state=1).assign(Share=50)
    tables = {
        "Region": pd.DataFrame({"RegionId": range(1, 5), "Name": [*"NESW"]}),
        "Store": pd.DataFrame(
            {
                "StoreId": range(1, 41),
                "Street": [f"Mill Road {n}" for n in range(40)],
                "RegionId": [1, 2, 3, 4] * 10,
            }
        ),
        "Staff": pd.DataFrame(
            {"StaffId": range(1, 9), "LastName": [*"ABCDEFGH"], "ReportsTo": [None, 1, 1, 1, 2, 2, 3, 3]}
        ).astype({"ReportsTo": "Int64"}),
        "Product": pd.DataFrame({"Code": codes, "Name": [f"Thing {code}" for code in codes], "Price": 5.5}),
        "Bundle": pd.DataFrame({"BundleId": range(1, 5), "Name": [*"abcd"]}),
        "BundleProduct": pd.DataFrame(pairs, columns=["BundleId", "Code"]),
        "Customer": customers,
        "Order": orders,
        "Line": lines,
        "Refund": refunds,
    }
    with closing(sqlite3.connect(path)) as base:
        base.executescript(TABLES)
        for name, table in tables.items():
            table.to_sql(name, base, index=False, if_exists="append")
        base.commit()
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The draft, the messages and the path of a synthetic shop, with nothing edited."""
    folder = tmp_path_factory.mktemp("shop")
    place, schema, out = shop(folder / "shop.sqlite"), folder / "shop.yaml", folder / "made.sqlite"
    assert main(["schema", str(place), "-o", str(schema), *PUBLIC, "--also", "Staff"]) == 0
    command = ["synth", str(place), str(out), "--schema", str(schema), "--epsilon", "5", "--no-budget"]
    assert main(command) == 0
    return schema.read_text(), out


def rows(path, query):
    with closing(sqlite3.connect(path)) as base:
        return base.execute(query).fetchall()


def test_every_foreign_key_leads_to_a_row_and_every_key_is_unique(made):
    _, out = made
    assert rows(out, "pragma foreign_key_check") == []
    names = {name for (name,) in rows(out, "select name from sqlite_master where type = 'table'")}
    assert {
        "Customer",
        "Order",
        "Line",
        "Refund",
        "Store",
        "Region",
        "Product",
        "Bundle",
        "BundleProduct",
    } <= names
    for name in sorted(names):
        key = [column for _, column, *_, part in rows(out, f'pragma table_info("{name}")') if part]
        if key:
            table = pd.DataFrame(rows(out, f'select {", ".join(key)} from "{name}"'))  # noqa: S608
            assert len(table) > 0, name
            assert not table.duplicated().any(), name
    assert len(rows(out, "pragma foreign_key_list(Refund)")) == 2  # one foreign key of two columns
    assert {row[2] for row in rows(out, "pragma foreign_key_list(Customer)")} == {"Staff", "Store"}
    assert {row[2] for row in rows(out, "pragma foreign_key_list(Staff)")} == {"Staff"}
    assert {row[2] for row in rows(out, "pragma foreign_key_list(Line)")} == {"Order", "Product"}


def test_declared_types_stay(made):
    _, out = made
    types = {column: kind.upper() for _, column, kind, *_ in rows(out, 'pragma table_info("Order")')}
    assert types == {"OrderId": "INTEGER", "CustomerId": "INTEGER", "Ordered": "DATE", "Freight": "NUMERIC"}


def test_the_draft_says_what_becomes_of_each_table(made):
    draft, _ = made
    text = " ".join(draft.replace("#", "").split())
    assert "NOT DRAFTED: the table Demographic. READ: it has no rows." in text
    assert "Persons of their own, as --also says: the promise is for them too." in text
    for line in (
        "dealt: {StaffId: Staff}",
        "dealt: {ReportsTo: Staff}",
        "lookups: {RegionId: Region}",
        "key: [OrderId, LineNo]",
        "link: [OrderId, LineNo]",
    ):
        assert line in draft


def test_no_table_with_addresses_is_proposed_as_public(tmp_path, capsys):
    draft = run(capsys, "schema", shop(tmp_path / "shop.sqlite"))
    assert "#Store: {public" not in draft.out
    text = " ".join(draft.out.replace("#", "").split())
    assert "If everybody may know Store, draft again with --public Store." in text
    assert "With --also Staff its rows are persons of their own" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--public", "Stores"], "--public 'Stores' is none of the tables"),
        (["--public", "Customer", "--persons", "Customer"], "its rows are the persons, so it is not public"),
        (
            ["--also", "Store", "--public", "Store"],
            "--also 'Store': it is named by --persons or --public too",
        ),
        (["--also", "BundleProduct"], "--also 'BundleProduct': the table has no key of one column"),
    ],
)
def test_a_public_table_that_cannot_be_is_refused(tmp_path, capsys, options, words):
    refused = run(capsys, "schema", shop(tmp_path / "shop.sqlite"), *options)
    assert refused.code == 2
    assert words in refused.err
