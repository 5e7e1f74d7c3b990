"""Rules of lives are sentences; a mistake in one is one line that says what to do."""

import pickle
from dataclasses import replace

import pandas as pd
import pytest
from refusals import refuses

from privsyn import Categorical, Database, Numerical, Schema, Table, evaluate
from privsyn.table.database.life_sentences import read_life
from privsyn.table.database.yaml_form import as_database, database_from_plain, database_to_plain
from privsyn.table.schema.yaml_file import dump

PERSONS = Table(Schema({"born": Numerical(1900, 1999, integer=True)}), key="id")
LIVES = Table(
    Schema(
        {
            "year": Numerical(1990, 2030, integer=True),
            "job class": Categorical(["a", "b"]),
            "married": Categorical(["no", "yes"]),
            "sector": Categorical(["x", "y"]),
            "place": Categorical(["n", "s"]),
            "role": Categorical(["head", "member"]),
        }
    ),
    parent="persons",
    link="id",
    order="year",
)
SENTENCES = [
    "year rises",
    "married stays 'yes'",
    "`job class` lasts",
    "(sector, place) is unique",
    "at most 2 role == 'head'",
]


def database_of(*constraints, **settings):
    return Database({"persons": PERSONS, "lives": replace(LIVES, constraints=constraints, **settings)})


def test_sentences_are_written_and_read(tmp_path):
    database = database_of(*SENTENCES, "year >= persons.born", "year >= 1990")
    (tmp_path / "lives.yaml").write_text(dump(database_to_plain(database), flow=False))
    for same in (
        pickle.loads(pickle.dumps(database)),
        database_from_plain(database_to_plain(database)),
        as_database(tmp_path / "lives.yaml"),
    ):
        assert list(map(str, same.tables["lives"].lives)) == SENTENCES
        assert len(same.tables["lives"].compared) == len(same.tables["lives"].schema.constraints) == 1


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("married   stays yes", "married stays 'yes'"),
        ("n stays 3", "n stays 3"),
        ("tenure never   falls", "tenure never falls"),
        ("`a b` never rises", "`a b` never rises"),
        ("(a,b) is unique", "(a, b) is unique"),
        ("(a) is unique", "a is unique"),
        ("at most 12 role==head", "at most 12 role == 'head'"),
    ],
)
def test_a_sentence_may_be_written_in_several_ways(text, written):
    assert str(read_life(text)) == written
    assert read_life(written) == read_life(text)


@pytest.mark.parametrize("text", ["year >= 3", "a == 'it rises'", "year rises and falls", "a is missing", 3])
def test_other_constraints_are_no_sentences(text):
    assert read_life(text) is None


@pytest.mark.parametrize(
    ("rules", "settings", "complaint"),
    [
        (["yaer rises"], {}, "'yaer rises': 'lives' has no column of data 'yaer'; did you mean 'year'"),
        (["year rises"], {"order": None}, "'year rises': the rows have no order"),
        (["married stays yes"], {"order": None}, "the rows have no order"),
        (["married rises"], {}, "'married' is neither"),
        (["married stays maybe"], {}, "the schema lists no value 'maybe' of 'married'"),
        (["year stays 1990"], {}, "declare 'year' as categorical"),
        (["at most 0 married == yes"], {}, "no row would have the value"),
        (["(year, year) is unique"], {}, "names a column twice"),
        (["year rises", "year never falls"], {}, "drop one of them"),
        (["year is unique", "year is unique"], {}, "two constraints are the same"),
        (["married stays yes", "(married, place) is unique"], {}, "both about 'married'"),
        (["married stays yes", "married == 'no' implies place == 'n'", "place is unique"], {}, "joins"),
        (["married stays yes"], {"one": "married == 'no'"}, "are about one column"),
        (["married lasts", "married stays yes"], {}, "both about 'married': drop one of them"),
        (["year lasts"], {}, "declare 'year' as categorical, with its list of values"),
        (["married lasts"], {"one": "married == no"}, "one row alone has the value"),
        (["married lasts"], {"order": None}, "the rows have no order"),
        (["married lasts"], {"constant": ["married"]}, "'married' follows from another table"),
        (["married lasts"], {"parent": None, "link": None, "order": None}, "this table has no parent"),
    ],
)
def test_a_mistake_is_one_line(rules, settings, complaint):
    with refuses(complaint):
        database_of(*rules, **settings)


@pytest.mark.parametrize(
    "rule",
    [
        "married last",
        "year rise",
        "year climbs",
        "married stays",
        "year never fall",
        "at most two married == 'no'",
    ],
)
def test_a_sentence_with_a_mistake_is_answered_by_those_that_there_are(rule):
    with refuses("is no rule on the rows of one parent: such are year rises"):
        database_of(rule)


def test_evaluate_counts_the_rows_that_break_a_rule():
    persons = pd.DataFrame({"id": [1, 2], "born": [1950, 1960]})
    lives = pd.DataFrame(
        {
            "id": [1, 1, 1, 1, 2],
            "year": [2000, 2000, 2001, 2002, 1999],
            "job class": ["a", "a", "b", None, "a"],
            "married": ["no", "yes", None, "no", "no"],
            "sector": ["x", "x", "x", None, "x"],
            "place": ["n", "s", "n", "n", "n"],
            "role": ["head", "head", "member", "head", "head"],
        }
    )
    tables = {"persons": persons, "lives": lives}
    broken = evaluate(tables, tables, database_of(*SENTENCES), models=False).linked.broken
    rules = {text.removeprefix("lives: "): number for text, number in broken.items() if "lives: " in text}
    assert rules == {sentence: (1, 1) for sentence in SENTENCES if "lasts" not in sentence}
