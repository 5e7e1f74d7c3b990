"""Keys and links of several columns: students, their terms, and the marks of each term."""

import sqlite3

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from privsyn import Categorical, Database, Numerical, PrivSyn, Schema, Table, evaluate, load
from privsyn.table.database.yaml_form import database_from_plain, database_to_plain
from privsyn.table.io.identifiers import codes_of, fingerprints

ROWS = np.random.default_rng(5)


def rows_below(frame, keys, mean):
    number = ROWS.poisson(mean, len(frame))
    return frame.loc[np.repeat(frame.index, number), keys].reset_index(drop=True)


STUDENTS = pd.DataFrame({"student": range(100, 500), "age": ROWS.integers(18, 30, 400)})
TERMS = rows_below(STUDENTS, ["student"], 2)
TERMS["term"] = TERMS.groupby("student").cumcount() + 7  # the numbers are not those of the synthetic rows
TERMS["passed"] = ROWS.choice(["no", "yes"], len(TERMS))
MARKS = rows_below(TERMS, ["student", "term"], 2).assign(mark=lambda rows: ROWS.integers(1, 6, len(rows)))
TABLES = {"students": STUDENTS, "terms": TERMS, "marks": MARKS}
UNIVERSITY = Database(
    {
        "students": Table(Schema({"age": Numerical(18, 30, integer=True)}), key="student"),
        "terms": Table(
            Schema({"passed": Categorical(["no", "yes"])}),
            key=["student", "term"],
            parent="students",
            link="student",
        ),
        "marks": Table(
            Schema({"mark": Numerical(1, 5, integer=True)}), parent="terms", link=["student", "term"]
        ),
    }
)


@pytest.fixture(scope="module")
def model():
    return PrivSyn(epsilon=5, delta=1e-9, schema=UNIVERSITY, seed=0).fit(TABLES)


def test_a_key_of_several_columns_is_that_of_the_parent_and_a_number(model):
    made = model.sample()
    terms = made["terms"]
    assert len(terms) > 300
    assert not terms.duplicated(["student", "term"]).any()
    assert (terms["term"] == terms.groupby("student").cumcount() + 1).all()
    assert terms["student"].isin(made["students"]["student"]).all()


def test_a_link_of_several_columns_leads_to_a_row(model):
    made = model.sample()
    keys = ["student", "term"]
    joined = made["marks"].merge(made["terms"], "left", keys, validate="many_to_one", indicator=True)
    assert len(joined) > 500
    assert (joined["_merge"] == "both").all()  # `passed` may be missing
    scores = evaluate(TABLES, made, UNIVERSITY, models=False)
    assert (scores.duplicate_keys.synthetic, scores.orphans.synthetic) == (0, 0)


def test_a_saved_model_and_a_schema_file_have_the_same_keys(model, tmp_path):
    path = tmp_path / "university.privsyn"
    model.save(path)
    for name, table in load(path).sample(50, seed=3).items():
        pd.testing.assert_frame_equal(table, model.sample(50, seed=3)[name])
    plain = database_to_plain(UNIVERSITY)
    assert plain["tables"]["terms"]["key"] == ["student", "term"]
    assert database_from_plain(plain).tables["marks"].link == ("student", "term")


def test_the_ledger_names_all_columns_of_a_key(model):
    assert any("share a key in 'student, term'" in fact for fact in model.ledger_.public_inputs)


def test_a_key_that_is_the_link_gives_each_row_above_at_most_one():
    details = STUDENTS[["student"]][::2].assign(smokes=ROWS.choice(["no", "yes"], 200))
    tables = {
        "students": UNIVERSITY.tables["students"],
        "details": Table(
            Schema({"smokes": Categorical(["no", "yes"])}), key="student", parent="students", link="student"
        ),
    }
    model = PrivSyn(epsilon=5, delta=1e-9, schema=Database(tables), seed=0)
    made = model.fit({"students": STUDENTS, "details": details}).sample()
    assert 100 < len(made["details"]) < 300
    assert made["details"]["student"].is_unique


def test_a_row_with_a_part_of_its_link_missing_belongs_to_nobody():
    marks = MARKS.astype({"term": "Int64"})
    marks.loc[marks.index % 2 == 0, "term"] = None
    made = PrivSyn(epsilon=20, delta=1e-9, schema=UNIVERSITY, seed=0).fit(TABLES | {"marks": marks}).sample()
    assert len(made["marks"]) < 0.7 * len(marks)


def test_text_and_numbers_name_the_same_rows_of_a_database_file(tmp_path):
    with sqlite3.connect(tmp_path / "university.sqlite") as base:
        for name, table in TABLES.items():
            table.to_sql(name, base, index=False)
    model = PrivSyn(epsilon=5, delta=1e-9, schema=UNIVERSITY, seed=0).fit(tmp_path / "university.sqlite")
    assert len(model.sample()["marks"]) == pytest.approx(len(MARKS), rel=0.2)


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("student", "has the key 'student', 'term': link names a column for each"),
        (["student", "no"], "no column"),
    ],
)
def test_a_link_that_does_not_fit_the_key_is_refused(link, words):
    marks = Table(Schema({"mark": Numerical(1, 5, integer=True)}), parent="terms", link=link)
    with refuses(words):
        PrivSyn(epsilon=1, schema=Database({**UNIVERSITY.tables, "marks": marks})).fit(TABLES)


def test_pairs_with_a_look_up_are_unique_and_keep_their_types():
    """Three courses: nobody can take a fourth one, however many rows noise gives a student."""
    courses = pd.DataFrame({"course": [101, 205, 309], "title": [*"abc"]})
    pairs = STUDENTS[["student"]].merge(courses[["course"]], how="cross").sample(frac=0.6, random_state=2)
    taken = pairs.assign(passed=ROWS.choice(["no", "yes"], len(pairs)))
    database = Database(
        {
            "students": UNIVERSITY.tables["students"],
            "taken": Table(
                Schema({"passed": Categorical(["no", "yes"])}),
                key=["student", "course"],
                parent="students",
                link="student",
                lookups={"course": "courses"},
            ),
            "courses": Table(public=courses, key="course"),
        }
    )
    for seed in range(3):
        model = PrivSyn(epsilon=0.5, delta=1e-9, schema=database, seed=seed)
        made = model.fit({"students": STUDENTS, "taken": taken}).sample()
        assert len(made["taken"]) > 200
        assert not made["taken"].duplicated(["student", "course"]).any()
        assert made["taken"]["course"].isin(courses["course"]).all()
        assert made["taken"]["course"].dtype == courses["course"].dtype


def test_a_link_to_another_kind_of_person_and_to_own_rows_is_valid_and_says_nothing(tmp_path):
    staff = pd.DataFrame({"nurse": range(10, 40), "grade": ROWS.choice(["a", "b"], 30)})
    staff["boss"] = pd.array([None, *ROWS.choice(staff["nurse"], 29)], "Int64")
    terms = TERMS.assign(nurse=ROWS.choice(staff["nurse"], len(TERMS)))
    database = Database(
        {
            "students": UNIVERSITY.tables["students"],
            "terms": Table(
                Schema({"passed": Categorical(["no", "yes"])}),
                key=["student", "term"],
                parent="students",
                link="student",
                dealt={"nurse": "staff"},
            ),
            "staff": Table(Schema({"grade": Categorical(["a", "b"])}), key="nurse", dealt={"boss": "staff"}),
        }
    )
    assert (database.root, database.roots, database.below) == ("students", ("students", "staff"), ("terms",))
    assert database_from_plain(database_to_plain(database)) == database
    tables = {"students": STUDENTS, "terms": terms, "staff": staff}
    model = PrivSyn(epsilon=5, delta=1e-9, schema=database, seed=0).fit(tables)
    assert any("rows of 'staff' are persons of their own" in fact for fact in model.ledger_.public_inputs)
    model.save(tmp_path / "m.privsyn")
    drawn = next(iter(model.draws(2, seed=1)))
    for made in (model.sample(), load(tmp_path / "m.privsyn").sample(), drawn):
        assert made["terms"]["nurse"].isin(made["staff"]["nurse"]).all()
        assert made["staff"]["boss"].isna().sum() == 1
        assert (made["staff"]["boss"].dropna() < made["staff"]["nurse"][1:]).all()  # so there is no circle
    few = model.sample(20, given={"age": (18, 20)})
    assert len(few["students"]) == 20
    assert len(few["staff"]) == pytest.approx(30, abs=25)
    evaluate(tables, model.sample(), database, models=False)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"dealt": {"nurse": "nobody"}}, "dealt: there is no table 'nobody'"),
        ({"dealt": {"nurse": "terms"}}, "dealt: 'terms' needs a key of one column"),
        ({"dealt": {"student": "students"}}, "dealt: 'student' is a key, link, order or look-up too"),
        ({"dealt": ["nurse"]}, "dealt maps columns to private tables"),
    ],
)
def test_what_cannot_be_dealt_is_refused(settings, words):
    with refuses(words):
        terms = Table(
            Schema({"passed": Categorical(["no", "yes"])}),
            key=["student", "term"],
            parent="students",
            link="student",
            **settings,
        )
        Database({"students": UNIVERSITY.tables["students"], "terms": terms})


def test_two_tables_of_persons_need_a_link():
    with refuses("the tables 'students', 'staff' have no parent: .* name another one in dealt"):
        Database({"students": UNIVERSITY.tables["students"], "staff": Table(Schema({}), key="nurse")})


def test_two_keys_have_one_fingerprint_only_if_all_their_parts_are_equal():
    """Parts are compared one by one: ("1", "23") is not ("12", "3"), and a missing part makes no key."""
    first, second = ["1", "12", "1", "1", None, "1", "23"], ["23", "3", "23", "24", "23", None, "1"]
    table = pd.DataFrame({"a": first, "b": second}, dtype="str")
    prints = fingerprints(table, ("a", "b"), b"k" * 16)
    assert codes_of(prints).tolist() == [0, 1, 0, 2, -1, -1, 4]
    numbers = table.dropna().astype({"a": "int64", "b": "float64"})  # whole numbers name the same rows
    assert (fingerprints(numbers, ("a", "b"), b"k" * 16) == prints[numbers.index]).all()
    exchanged = fingerprints(table, ("b", "a"), b"k" * 16)
    assert codes_of(np.concatenate([prints[:1], exchanged[:1], exchanged[6:]])).tolist() == [0, 1, 0]


def test_rows_for_which_a_key_leaves_no_value_are_said():
    """A student of six terms in a schema with two of them: four rows of six cannot differ."""
    students = pd.DataFrame({"student": range(300)})
    terms = pd.DataFrame({"student": np.repeat(range(300), 6), "term": [*"abcdef"] * 300})
    columns = Schema({"term": Categorical(["a", "b"], nullable=False)})
    below = Table(columns, key=["student", "term"], parent="students", link="student")
    database = Database({"students": Table(Schema({}), key="student"), "terms": below})
    model = PrivSyn(epsilon=5, delta=1e-9, schema=database, seed=0)
    model.fit({"students": students, "terms": terms})
    with pytest.warns(UserWarning, match=r"terms: [\d,]+ rows, 1,\d\d\d in the release: no value is left"):
        made = model.sample(seed=0)["terms"]
    assert not made.duplicated(["student", "term"]).any()
