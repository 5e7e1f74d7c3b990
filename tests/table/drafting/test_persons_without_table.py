"""A draft of tables of which none has the persons, or of which no name says whose rows they are."""

import sqlite3
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
import yaml
from command import run

from privsyn import Database, InputError, Numerical, PrivSyn, Schema, Table

DRAWS = np.random.default_rng(5)
MOVIES = pd.DataFrame({"movie_id": range(500, 540), "genre": ["drama", "comedy"] * 20})
OF_USERS = np.repeat(np.arange(900, 1200), DRAWS.integers(3, 9, 300))
RATINGS = pd.DataFrame({"user_id": OF_USERS, "movie_id": DRAWS.integers(500, 540, len(OF_USERS))})
RATINGS = RATINGS.drop_duplicates(ignore_index=True).assign(stars=lambda rows: rows["movie_id"] % 5 + 1)
FLIGHTS = pd.DataFrame(
    {"carrier": DRAWS.choice(["AA", "DL", "UA"], 600), "delay": DRAWS.integers(0, 90, 600)}
)
CARRIERS = pd.DataFrame({"carrier": ["AA", "DL", "UA", "WN"], "fleet": [4, 3, 2, 1]})


def folder_of(place, **tables):
    """Return a new folder with tables as CSV files."""
    place.mkdir()
    for name, table in tables.items():
        table.to_csv(place / f"{name}.csv", index=False)
    return place


@pytest.fixture
def draft(tmp_path, capsys):
    """Draft tables; return the plain schema, its text as running words, and what the command printed."""

    def drafted(*options, **tables):
        source, file = tmp_path / "in", tmp_path / "s.yaml"
        outcome = run(capsys, "schema", folder_of(source, **tables), "-o", file, *options)
        assert outcome.code == 0, outcome.err
        text = file.read_text()
        words = " ".join(text.replace("#", " ").split())
        return yaml.safe_load(text)["tables"], words, outcome

    return drafted


def test_persons_whom_only_a_column_names_are_protected_and_not_films(draft, tmp_path, capsys):
    tables, words, outcome = draft(movies=MOVIES, ratings=RATINGS)
    assert tables["user"] == {"key": "user_id", "columns": {}}
    assert (tables["ratings"]["parent"], tables["ratings"]["link"]) == ("user", "user_id")
    assert "NO TABLE HAS THE PERSONS: each of 300 different cells of ratings.user_id is one" in words
    assert "see WHO ARE THE PERSONS? in the draft: it decides who is protected" in outcome.err
    assert "see NO TABLE HAS THE PERSONS in the draft" in outcome.err
    arguments = "--epsilon", "5", "--schema", tmp_path / "s.yaml", "--no-budget", "--seed", "1"
    assert run(capsys, "synth", tmp_path / "in", tmp_path / "made", *arguments).code == 0
    made = {name: pd.read_csv(tmp_path / "made" / f"{name}.csv") for name in ("user", "ratings")}
    assert made["user"]["user_id"].is_unique
    assert made["ratings"]["user_id"].isin(made["user"]["user_id"]).all()


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_database_need_not_have_the_table_of_persons(kind, tmp_path, capsys):
    base, made, schema = (tmp_path / name for name in (f"base.{kind}", f"made.{kind}", "s.yaml"))
    connect = sqlite3.connect if kind == "sqlite" else pytest.importorskip("duckdb").connect
    for name, frame in (("movies", MOVIES), ("ratings", RATINGS)):
        with closing(connect(base)) as opened:
            if kind == "sqlite":
                frame.to_sql(name, opened, index=False)
            else:
                opened.execute(f"CREATE TABLE {name} AS FROM frame")
    assert run(capsys, "schema", base, "-o", schema).code == 0
    arguments = "--epsilon", "5", "--schema", schema, "--no-budget", "--seed", "1"
    outcome = run(capsys, "synth", base, made, *arguments)
    assert outcome.code == 0, outcome.err
    assert run(capsys, "evaluate", base, made, "--schema", schema).code == 0
    assert "table 'user': 300 rows" in run(capsys, "schema", base, "--check", schema).out


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_the_table_of_persons_is_not_lacking_where_a_view_or_other_letters_name_it(kind, tmp_path):
    """Before, the persons without a row below them were left out of the counts in silence."""
    users = pd.DataFrame({"user_id": range(900, 1500)})  # half of them rate nothing
    connect = sqlite3.connect if kind == "sqlite" else pytest.importorskip("duckdb").connect
    columns = Schema({"stars": Numerical(1, 5, integer=True)})
    ratings = Table(columns, parent="user", link="user_id")
    declared = Database({"user": Table(Schema({}), key="user_id"), "ratings": ratings})
    for name in ("everybody", "User"):
        base = tmp_path / f"{name}.{kind}"
        for table, frame in ((name, users), ("ratings", RATINGS.drop(columns="movie_id"))):
            with closing(connect(base)) as opened:
                if kind == "sqlite":
                    frame.to_sql(table, opened, index=False)
                else:
                    opened.execute(f'CREATE TABLE "{table}" AS FROM frame')
        if name == "everybody":
            with closing(connect(base)) as opened:
                opened.execute('CREATE VIEW "user" AS SELECT * FROM everybody')
            model = PrivSyn(20.0, 1e-9, declared, seed=0).fit(base)
            assert abs(model.release_.estimated_rows - 600) < 60
        else:
            with pytest.raises(InputError, match=r"has no table 'user', but .*did you mean 'User'"):
                PrivSyn(20.0, 1e-9, declared, seed=0).fit(base)


def test_a_file_of_persons_in_other_letters_is_not_passed_over(tmp_path):
    users = pd.DataFrame({"user_id": range(900, 1500)})
    folder = folder_of(tmp_path / "in", ratings=RATINGS[["user_id", "stars"]], User=users)
    ratings = Table(Schema({"stars": Numerical(1, 5, integer=True)}), parent="user", link="user_id")
    declared = Database({"user": Table(Schema({}), key="user_id"), "ratings": ratings})
    with pytest.raises(InputError, match=r"User.csv: the name of the table is 'user': rename the file"):
        PrivSyn(20.0, 1e-9, declared, seed=0).fit(folder)
    (folder / "User.csv").rename(folder / "user.csv")
    assert abs(PrivSyn(20.0, 1e-9, declared, seed=0).fit(folder).release_.estimated_rows - 600) < 60


def test_a_key_of_values_that_are_to_be_found_is_no_key_of_the_draft(draft):
    """Else a person would have as many rows as values were found, which noise decides."""
    tables, words, _ = draft(movies=MOVIES, ratings=RATINGS)
    assert "key" not in tables["ratings"]
    assert "table has them all, add key: [user_id, movie_id]" in words


def test_a_key_of_public_values_is_the_key_of_the_draft(draft):
    tables, _, _ = draft("--public", "movies", movies=MOVIES, ratings=RATINGS)
    assert tables["ratings"]["key"] == ["user_id", "movie_id"]


def test_a_table_that_everybody_may_know_has_no_persons(draft):
    movies = MOVIES.assign(maker_id=np.arange(40) // 2)
    ratings = RATINGS.drop(columns="movie_id").assign(rating_id=range(len(RATINGS)))
    tables, words, _ = draft("--public", "ratings", movies=movies, ratings=ratings)
    assert "NO TABLE HAS THE PERSONS" not in words
    assert "public" in tables["ratings"]


def test_a_column_of_persons_is_asked_about_where_another_table_was_named(draft):
    tables, words, outcome = draft("--persons", "movies", movies=MOVIES, ratings=RATINGS)
    assert next(iter(tables)) == "movies"
    assert "PERSONS WITHOUT A TABLE?" in words
    assert "draft again with --persons ratings.user_id" in words
    assert "PERSONS WITHOUT A TABLE?" in outcome.err
    assert "WHO ARE THE PERSONS?" not in words  # somebody has said it


def test_numbers_with_a_point_are_asked_about_and_not_taken(draft):
    """pandas writes 900.0 where a cell is missing. In a file of text 900.0 is another key than 900."""
    ratings = RATINGS.assign(user_id=RATINGS["user_id"].where(RATINGS.index > 5))
    tables, words, outcome = draft(movies=MOVIES, ratings=ratings)
    assert next(iter(tables)) == "movies"
    advice = "write its numbers without a point, and draft again with --persons ratings.user_id"
    assert "PERSONS WITHOUT A TABLE? Its name says so" in words
    assert advice in words
    assert "see PERSONS WITHOUT A TABLE? in the draft" in outcome.err


def test_the_table_of_persons_has_a_name_that_no_file_has(draft, tmp_path, capsys):
    """Before, `user` was also an empty file: a run took it for the persons, and left out all rows."""
    tables, words, _ = draft(movies=MOVIES, ratings=RATINGS, user=pd.DataFrame({"user_id": []}))
    assert next(iter(tables)) == "user_2"
    assert "NOT DRAFTED: the table user. READ: it has no rows" in words
    arguments = "--epsilon", "5", "--schema", tmp_path / "s.yaml", "--no-budget", "--seed", "1"
    assert run(capsys, "synth", tmp_path / "in", tmp_path / "made", *arguments).code == 0


def test_a_column_can_be_named_for_the_persons(draft):
    first = pd.DataFrame({"id": DRAWS.integers(0, 50, 300), "x": DRAWS.integers(0, 9, 300)})
    second = pd.DataFrame({"id": DRAWS.integers(40, 70, 300), "y": DRAWS.integers(0, 9, 300)})
    tables, words, _ = draft("--persons", "first.id", first=first, second=second)
    assert tables["persons"]["key"] == "id"
    assert {tables[name]["parent"] for name in ("first", "second")} == {"persons"}
    assert "cells of first.id, second.id is one" in words


def test_a_column_that_leads_to_a_table_names_no_other_persons(draft):
    users = pd.DataFrame({"user_id": range(900, 1200), "age": DRAWS.integers(18, 80, 300)})
    tables, words, _ = draft(users=users, movies=MOVIES, ratings=RATINGS)
    assert next(iter(tables)) == "users"
    assert "WITHOUT A TABLE" not in words
    assert "NO TABLE HAS" not in words


@pytest.mark.parametrize(
    ("persons", "message"),
    [
        ("ratings.stars_of", "ratings has no column 'stars_of'"),
        ("ratings.share", "identifiers are texts, or whole numbers without a point; its cells are not"),
        ("rating.user_id", "is none of the tables movies, ratings"),
        ("ratings.movie_id", "its cells are keys of movies: give --persons movies"),
        ("movies.movie_id", "its cells are keys of movies: give --persons movies"),
        ("ratings.user_id --public ratings", "its rows are the persons, or belong to them"),
        ("ratings.user_id --also ratings", "named by --persons or --public too"),
    ],
)
def test_a_column_that_names_nobody_is_refused(persons, message, tmp_path, capsys):
    source = folder_of(tmp_path / "in", movies=MOVIES, ratings=RATINGS.assign(share=0.5))
    outcome = run(capsys, "schema", source, "--persons", *persons.split())
    assert outcome.code == 2
    assert message in outcome.err


def test_where_no_name_says_who_the_persons_are_rows_alone_are_asked_about(draft):
    _, words, outcome = draft(carriers=CARRIERS, flights=FLIGHTS)
    assert "No name says so. carriers was taken because of its 600 rows below" in words
    assert "It could also be: flights (each of its 600 rows alone)" in words
    assert "WHO ARE THE PERSONS?" in outcome.err


@pytest.mark.parametrize("name", ["pupils", "students", "children", "persons"])
def test_pupils_without_a_key_are_the_persons_rather_than_their_schools(name, draft):
    schools = pd.DataFrame({"school": range(1000, 1320, 8), "sector": ["public", "private"] * 20})
    rows = pd.DataFrame({"school": DRAWS.choice(schools["school"], 800), "sex": ["f", "m"] * 400})
    tables, words, outcome = draft(schools=schools, **{name: rows})
    assert [*tables] == [name]
    assert not {"key", "parent"} & {*tables[name]}
    assert f"Names and links speak for {name}. It could also be: schools (800 rows below it)." in words
    assert "see WHO ARE THE PERSONS? in the draft" in outcome.err


def test_rows_to_which_nothing_leads_can_be_the_persons_without_a_key(draft, tmp_path, capsys):
    options = "--persons", "flights", "--public", "carriers"
    tables, words, outcome = draft(*options, carriers=CARRIERS, flights=FLIGHTS)
    assert not {"key", "parent"} & {*tables["flights"]}
    assert "600 rows, each a person" in words
    assert "WHO ARE THE PERSONS?" not in outcome.err
    schema = tmp_path / "s.yaml"
    planned = run(capsys, "plan", "--schema", schema, "--rows", "600", "--epsilon", "3")
    assert planned.code == 0
    assert "600 rows of flights:" in planned.out
    arguments = "--epsilon", "5", "--schema", schema, "--no-budget", "--seed", "1"
    outcome = run(capsys, "synth", tmp_path / "in", tmp_path / "made", *arguments)
    assert outcome.code == 0, outcome.err
    made = pd.read_csv(tmp_path / "made" / "flights.csv")
    assert list(made) == list(FLIGHTS)
    assert made["carrier"].dropna().isin(CARRIERS["carrier"]).all()
    assert pd.read_csv(tmp_path / "made" / "carriers.csv").equals(CARRIERS)


def test_tables_without_keys_are_refused_with_both_ways_out(tmp_path, capsys):
    source = folder_of(tmp_path / "in", first=FLIGHTS, second=FLIGHTS)
    outcome = run(capsys, "schema", source)
    assert outcome.code == 2
    assert "--persons TABLE, if each of its rows is one, or --persons TABLE.COLUMN" in outcome.err


def test_a_link_by_the_same_name_is_seen_though_many_rows_of_the_parent_are_gone(draft):
    """A third of the values are no keys. Such rows are counted, and nobody reads that no key leads there."""
    planes = pd.DataFrame({"tail": [f"N{n}" for n in range(100, 200)], "seats": DRAWS.integers(2, 300, 100)})
    flights = pd.DataFrame({"tail": [f"N{n}" for n in DRAWS.integers(100, 250, 900)], "delay": 1})
    lost = int((~flights["tail"].isin(planes["tail"])).sum())
    tables, words, _ = draft(planes=planes, flights=flights)
    assert tables["flights"]["parent"] == "planes"
    assert f"{lost} rows whose tail is no key of planes" in words
