"""A database declares several tables and their links; a mistake is one line that says what to do."""

import copy
import pickle

import pytest
from refusals import refuses

from privsyn import Categorical, Database, InputError, Numerical, Schema, Table
from privsyn.table.database.summaries import Derived
from privsyn.table.database.yaml_form import as_database, database_from_plain, database_to_plain

PERSONS = Table(Schema({"age": Numerical(0, 110)}), key="person")
VISITS = Table(
    Schema({"ward": Categorical(["a", "b"]), "cost": Numerical(0, 9)}),
    key="visit",
    parent="persons",
    link="person",
    order="number",
)
DRUGS = Table(Schema({"dose": Numerical(0, 9)}), parent="visits", link="visit")
HOSPITAL = Database({"drugs": DRUGS, "visits": VISITS, "persons": PERSONS})


def database_of(visits):
    tables = {"persons": PERSONS, "drugs": Table(public="drugs.csv", key="drug")}
    return Database({**tables, "visits": Table(**{"parent": "persons", "link": "person"} | visits)})


def test_tables_come_after_their_parents():
    assert HOSPITAL.root == "persons"
    assert HOSPITAL.names == ("persons", "visits", "drugs")
    assert HOSPITAL.above("drugs") == ("visits", "persons")
    assert HOSPITAL.children("persons") == ("visits",)
    assert VISITS.keys == ("visit", "person")
    assert VISITS.only_order == "number"
    assert Table(parent="a", link="b", order="c").only_order is None  # its schema may have the column


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda: Database({}), "a database maps names to tables"),
        (lambda: Database({"a": 3}), "table 'a': 3 is not a Table"),
        (lambda: Database({"a/b": PERSONS}), "no name of a file"),
        (lambda: Table(parent="a"), "both parent and link"),
        (lambda: Table(order="a"), "give parent and link, or leave it out"),
        (lambda: Table(key=3), "key must be a name, or a list of names; got 3"),
        (lambda: Table(key=["a", "a"]), "key: 'a' is named twice"),
        (lambda: Table(key=["a", "b"]), "'a' and 'b' are no data, and one column of a key numbers rows"),
        (lambda: Table("a", key="b"), "a: cannot be read"),
        (lambda: Table(3), "the schema of a table is a Schema, not 3"),
        (
            lambda: Table(key="a", parent="b", link="a", children="2"),
            "children: the key is the link, so a row of the parent has at most one",
        ),
        (lambda: Table(Schema({"a": Numerical(0, 9)}), key="a"), "the key 'a' is a column of the schema"),
        (lambda: Table(derive=3), "derive maps names to summaries"),
        (lambda: Table(Schema({"a": Numerical(0, 9)}), derive={"a": "count(b)"}), "choose another name"),
        (lambda: Table(derive={"a": "half(b)"}), "no summary of rows"),
        (lambda: Table(derive={"a": "sum(b)"}), "count takes a table"),
        (lambda: Table(derive={"a": "ever(b.c)"}), "count takes a table"),
        (lambda: Database({"a": PERSONS, "b": PERSONS}), "the tables 'a', 'b' have no parent"),
        (lambda: Database({"a": Table(parent="a", link="b", key="c")}), "the table itself, which is not"),
        (lambda: Database({"a": Table(parent="b", link="c")}), "there is no table 'b'"),
        (lambda: Database({"a": Table(), "b": Table(parent="a", link="c")}), "its parent 'a' needs a key"),
        (
            lambda: Database(
                {"a": Table(key="k", parent="b", link="l"), "b": Table(key="k", parent="a", link="l")}
            ),
            "it belongs to itself",
        ),
        (
            lambda: Database({"a": Table(key="k", derive={"n": "count(a)"})}),
            "'a' is no table whose parent is 'a'",
        ),
        (
            lambda: Database(
                {"persons": Table(key="person", derive={"n": "sum(visits.x)"}), "visits": VISITS}
            ),
            "'visits' has no column 'x'",
        ),
        (  # the summary is right, the parent is misspelled
            lambda: Database(
                {
                    "persons": Table(key="p", derive={"n": "count(visits)"}),
                    "visits": Table(parent="person", link="p"),
                }
            ),
            "table 'visits': there is no table 'person', which is its parent; did you mean 'persons'",
        ),
        (
            lambda: Database(
                {
                    "persons": Table(key="p", derive={"n": "count(visit)"}),
                    "visits": Table(parent="persons", link="p"),
                }
            ),
            "derive 'n': 'visit' is no table whose parent is 'persons'; did you mean 'visits'",
        ),
        (lambda: database_from_plain({"tables": 3}), "'tables:' is a mapping"),
        (lambda: database_from_plain({"tables": {"a": 3}}), "table 'a': a table is a mapping"),
        (
            lambda: database_from_plain({"tables": {"a": {"ordr": "b"}}}),
            "'ordr' is not known here: allowed are key",
        ),
        (
            lambda: Table(key="k", parent="b", link="l", order="l"),
            "'l' is the same in all rows of one parent",
        ),
        (
            lambda: database_from_plain({"tables": {}, "columns": {}}),
            "'columns:' belongs to one table: write it there",
        ),
        (lambda: Table(parent=["a", "b"], link=["c", "d"]), "a table has one parent: leave out the key"),
        (lambda: Table(public="a.csv"), "a public table needs a key"),
        (lambda: Table(public={"a": [1]}, key="a"), "public is the path of a table, or a table, not"),
        (lambda: Table(Schema({}), public="a.csv", key="a"), "no row of it is made: leave out schema"),
        (lambda: Table(public="a.csv", key="a", parent="b", link="c"), "leave out parent"),
        (lambda: Table(public="a.csv", key="a", derive={"n": "count(b)"}), "leave out derive"),
        (lambda: Table(public="a.csv", key="a", order="b"), "leave out order"),
        (lambda: Table(lookups=["a"]), "lookups maps columns to public tables"),
        (lambda: Table(lookups={"a": ["b"]}), "lookups maps columns to public tables"),
        (lambda: Table(key="a", lookups={"a": "b"}), "lookups: 'a' is the key, link or order of the table"),
        (lambda: database_of({"lookups": {"drug": "drug"}}), "no table 'drug'; did you mean 'drugs'"),
        (
            lambda: database_of({"lookups": {"who": "persons"}}),
            "'visits': lookups: 'persons' is private: a table has one private parent, so leave out 'who'",
        ),
        (lambda: database_of({"lookups": {"previous": "visits"}}), "lookups: 'visits' is private"),
        (
            lambda: database_of({"parent": "drugs", "link": "drug"}),
            "'visits': its parent 'drugs' is public: name it in lookups, as {'drug': 'drugs'}",
        ),
        (
            lambda: Database({"a": Table(public="a.csv", key="a")}),
            "all are public: one private table, whose rows are the persons",
        ),
    ],
)
def test_a_mistake_is_one_line(make, complaint):
    with refuses(complaint):
        make()


def test_a_database_is_written_and_read(tmp_path):
    derived = {"visits": "count(visits)", "paid": "sum(visits.cost)", "in_a": "ever(visits.ward == a)"}
    persons = Table(PERSONS.schema, key="person", derive=derived)
    database = Database({"persons": persons, "visits": VISITS, "drugs": Table(parent="visits", link="visit")})
    assert database_from_plain(database_to_plain(database)) == database
    looked = database_of({"lookups": {"given": "drugs"}})
    assert database_from_plain(database_to_plain(looked)) == pickle.loads(pickle.dumps(looked)) == looked
    assert (looked.names, list(looked.public)) == (("persons", "visits"), ["drugs"])
    assert pickle.loads(pickle.dumps(database)) == copy.deepcopy(database) == database
    assert persons.derive["in_a"] == Derived("ever", "visits", "ward", "a")
    path = tmp_path / "hospital.yaml"
    path.write_text("tables:\n  a: {key: id, columns: {b: {kind: numerical, low: 0, high: 9}}}\n")
    assert as_database(path) == Database({"a": Table(Schema({"b": Numerical(0, 9)}), key="id")})
    path.write_text("tables:\n  a: {key: id, colums: {}}\n")
    with pytest.raises(InputError, match=r"hospital.yaml: table 'a': 'colums' is not known"):
        as_database(path)


def test_a_schema_is_a_database_of_one_table_without_a_name():
    schema = Schema({"a": Numerical(0, 9)})
    assert as_database(schema) == Database({"rows": Table(schema)}, single="rows")
    assert as_database(schema).schema is schema
    assert as_database(schema).shown_names == ()
    assert as_database(None) == Database.of_one()
