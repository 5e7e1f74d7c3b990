"""A person's way through the screens, without a browser: what is kept, what is refused, what a run makes."""

import pandas as pd
import pytest
from jinja2 import Environment
from refusals import refuses
from screens import TYPED, press, promise, session_in, shown

from privsyn import Categorical, Datetime, Identifier, Numerical, Schema, Text, Time
from privsyn.app.column_entries import Entry, entries_of
from privsyn.app.command import Command
from privsyn.app.results import file_of, listed
from privsyn.app.screens import SCREENS, _environment, render
from privsyn.cli.main import main
from privsyn.errors import InputError
from privsyn.pages.sections import environment
from privsyn.table.schema.yaml_file import to_plain


def write_table(folder):
    """Write a table of persons who may have two rows."""
    size = 400
    table = pd.DataFrame(
        {
            "person": [f"p{row // 2}" for row in range(size)],
            "age": [17 + row % 70 for row in range(size)],
            "sex": ["F", "M"] * (size // 2),
            "pay": [100.5 * (row % 9) for row in range(size)],
        }
    )
    table.to_csv(folder / "people.csv", index=False)


def write_public(folder):
    """Write a table that is like it, as if anybody might read it."""
    pd.read_csv(folder / "people.csv").iloc[::-1].to_csv(folder / "last.csv", index=False)


@pytest.fixture
def start(tmp_path):
    """A start folder with the table."""
    write_table(tmp_path)
    return tmp_path


@pytest.fixture
def session(start):
    with session_in(start) as session:
        yield session


VALUES = [
    "no",
    "yes",
    "1",
    1,
    2.5,
    "2.5",
    True,
    "true",
    "2015-01-01",
    "a, b",
    "[x",
    "{y}",
    "#",
    "it's",
    '"',
    " x",
]


@pytest.mark.parametrize(
    "column",
    [
        *(Categorical([value, "other"]) for value in VALUES),
        Categorical(),
        Numerical(0, 120, integer=True, nullable=False),
        Numerical(-0.5, 1e6, step=0.5),
        Datetime("2015-01-01", "2020-12-31", format="%d.%m.%Y", missing=["?", "none"]),
        Time("08:00", "17:30", unit="m"),
        Identifier(pattern="P-[0-9]{4}"),
        Text(),
    ],
    ids=repr,
)
def test_a_declared_column_comes_back_from_the_form_as_it_was(column):
    plain = to_plain(Schema({"x": column}))["columns"]["x"]
    (entry,) = entries_of({"x": plain}, ["x"])
    assert entry.problem == ""
    assert entry.column() == column
    form = {f"{name}-0": [getattr(entry, name)] for name in TYPED}
    form |= {"nullable-0": ["on"]} if entry.nullable else {}
    assert Entry("x").changed(form, 0).column() == column


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ({"kind": "numerical", "low": "0"}, "give both bounds"),
        ({"kind": "numerical", "low": "9", "high": "1"}, "above"),
        ({"kind": "numerical", "low": "ten", "high": "11"}, "number"),
        ({"kind": "datetime", "low": "soon", "high": "2020-01-01"}, ""),
        ({"kind": "categorical", "values": "a\na"}, "alike"),
        ({"kind": "numerical", "more": "intger: true"}, "integer"),
        ({"kind": "numerical", "more": "integer true"}, "other settings"),
        ({"kind": "numerical", "more": "}, {"}, "other settings"),
    ],
)
def test_what_cannot_work_is_said_in_one_line_and_stays_as_it_was_typed(typed, problem):
    entry = Entry("x", **typed)
    assert entry.problem
    assert problem in entry.problem
    assert "\n" not in entry.problem


def test_only_names_and_types_are_read_before_a_person_asks_for_more(session, start):
    (start / "people.csv").write_text('person,age\n1,"never closed\n1,2,3,4\n')
    assert press(session, "choose", "choose", file="people.csv") == "people"
    assert SCREENS["people"].show(session)["table"].names == ["person", "age"]
    assert promise(session, protects="row") == "run"
    assert SCREENS["run"].show(session)["expectations"]
    with pytest.raises(InputError):
        press(session, "people", "draft")


def test_a_schema_declares_all_columns_or_none(session):
    press(session, "choose", "choose", file="people.csv")
    assert session.choices.waiting() == []
    assert session.choices.schema() is None
    press(session, "people", "save", **shown(session, kind_1="numerical"))
    assert [entry.name for entry in session.choices.waiting()] == ["person", "sex", "pay"]
    with pytest.raises(InputError, match="look at 'person'"):
        press(session, "people", "next", **shown(session, protects="row"))
    press(session, "people", "save", **shown(session, kind_1="", first="age", second="sex"))
    assert session.choices.waiting() == []
    assert "--important age,sex" in Command(session.choices).text
    session.choices.settings()


def test_a_drafted_column_is_not_used_before_it_is_confirmed(session):
    press(session, "choose", "choose", file="people.csv")
    press(session, "people", "draft")
    names = [entry.name for entry in session.choices.waiting()]
    assert names == ["person", "age", "sex", "pay"]
    with pytest.raises(InputError, match="say whom to protect"):
        press(session, "people", "next", **shown(session))
    with pytest.raises(InputError, match="look at 'person', 'age', 'sex' and 1 more column"):
        press(session, "people", "next", **shown(session, protects="row"))
    with pytest.raises(InputError, match="confirmed"):
        press(session, "run", "start", ending=".csv")
    press(session, "people", "confirm", **shown(session))
    assert press(session, "people", "next", **shown(session)) == "run"


def test_a_mark_for_missing_cells_and_a_constraint_are_used_if_they_are_ticked(session, start):
    table = pd.DataFrame({"first": ["3", "?", "5", "7"] * 50, "last": [9, 10, 11, 12] * 50})
    table["same"] = table["last"]
    table.to_csv(start / "marks.csv", index=False)
    press(session, "choose", "choose", file="marks.csv")
    press(session, "people", "draft")
    choices = session.choices
    assert choices.table.marks == ("?",)
    assert len(choices.table.proposals) >= 1
    assert (choices.schema().missing, choices.schema().constraints) == ((), ())
    (line, *_), *_ = choices.table.proposed()
    press(session, "people", "confirm", **shown(session, mark="?", accept=line))
    assert (choices.schema().missing, len(choices.schema().constraints)) == (("?",), 1)


def test_value_labels_in_a_file_are_confirmed_too(session, start):
    """A program makes them from the rows, as pandas does: one row can have added one."""
    table = pd.DataFrame({"age": range(4), "sex": pd.Categorical(["F", "M", "M", "seen once"])})
    table.to_stata(start / "labelled.dta", write_index=False)
    press(session, "choose", "choose", file="labelled.dta")
    assert [entry.name for entry in session.choices.waiting()] == ["sex"]
    assert "made them from the rows" in render("people", session, SCREENS["people"].show(session))
    press(session, "people", "confirm", **shown(session))
    assert "seen once" in session.choices.schema_text()


def test_a_page_that_is_older_than_a_draft_accepts_no_constraint_that_it_did_not_show(session, start):
    table = pd.read_csv(start / "people.csv")
    table["older"] = table["age"] + 10
    table.to_csv(start / "people.csv", index=False)
    press(session, "choose", "choose", file="people.csv")
    press(session, "people", "draft")
    (line, *_), *_ = session.choices.table.proposed()
    table["older"] = table["age"] + table["pay"] + 5
    table.to_csv(start / "people.csv", index=False)
    press(session, "people", "draft")
    lines = [rule.line for rule in session.choices.table.proposed()]
    assert lines
    assert line not in lines
    press(session, "people", "save", **shown(session, accept=line))
    assert session.choices.schema_text().count("constraints") == 0
    press(session, "people", "save", **shown(session, accept=lines[0].replace("\n", "\r\n")))
    assert session.choices.table.accepted == {0}


def test_what_was_entered_is_there_on_the_way_back(session):
    press(session, "choose", "choose", file="people.csv")
    changes = {"kind_0": "identifier", "kind_1": "numerical", "low_1": "0", "high_1": "120"}
    changes |= {"kind_2": "categorical", "kind_3": "numerical", "rules": "age <= 120", "first": "age"}
    press(session, "people", "save", **shown(session, **changes, second="sex"))
    promise(session, "save", "2", "0", protects="person", unit="person")
    choices = session.choices
    entry = SCREENS["people"].show(session)["table"].entries[1]
    assert (entry.kind, entry.low, entry.high, choices.table.rules) == ("numerical", "0", "120", "age <= 120")
    assert (choices.table.important, choices.unit, choices.epsilon, choices.delta) == (
        [["age", "sex"]],
        "person",
        2,
        0,
    )
    press(session, "people", "save", **shown(session, rules=""))  # the pair was not ticked
    assert (choices.table.important, choices.table.rules) == ([], "")


def test_a_promise_that_means_nothing_is_refused_and_the_old_one_stays(session):
    press(session, "choose", "choose", file="people.csv")
    for epsilon, delta in (("1000", "1e-9"), ("0", "0"), ("1", "0.5"), ("nan", "0"), ("one", "0"), ("", "")):
        with pytest.raises(InputError):
            press(session, "run", "save", epsilon=epsilon, delta=delta)
    with pytest.raises(InputError, match="whom"):
        press(session, "people", "next", **shown(session))
    with pytest.raises(InputError, match="column that names"):
        press(session, "people", "next", **shown(session, protects="person", unit=""))
    assert (session.choices.epsilon, session.choices.protects) == (1.0, False)


def test_the_column_of_persons_is_no_column_of_the_schema(session):
    press(session, "choose", "choose", file="people.csv")
    press(session, "people", "draft")
    press(session, "people", "confirm", **shown(session))
    promise(session, protects="person", unit="person")
    assert "person" not in session.choices.schema().columns
    assert "--unit person" in Command(session.choices).text
    promise(session, epsilon="0.9999996", protects="row")
    assert "--epsilon 0.9999996 --delta 1e-09 " in Command(session.choices).text  # not more than was chosen


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A session whose run has ended, with a seed, so that it can be repeated. Tests only read its files."""
    start = tmp_path_factory.mktemp("start")
    write_table(start)
    write_public(start)
    with session_in(start) as session:
        press(session, "choose", "choose", file="people.csv")
        press(session, "people", "draft")
        press(session, "people", "confirm", **shown(session))
        promise(session, protects="row", target="sex", public="last.csv")
        session.choices.seed = 1
        press(session, "run", "start", ending=".csv", rows="")
        while session.job.wait(1.0):
            pass
        assert (session.job.code, session.job.complaints) == (0, [])
        yield session


@pytest.mark.slow
def test_a_run_makes_the_bytes_of_the_command_shown(finished, start, monkeypatch):
    session, place = finished, start
    write_public(place)
    (place / "schema.yaml").write_text(session.choices.schema_text(), encoding="utf-8")
    monkeypatch.chdir(place)
    words = Command(session.choices).text.split()
    assert words[0] == "privsyn"
    assert main(words[1:]) == 0
    for name in ("synthetic.csv", "model.privsyn", "ledger.json", "public.html", "sheet.md", "schema.yaml"):
        assert (place / name).read_bytes() == (session.results / name).read_bytes(), name
    page = render("result", session, SCREENS["result"].show(session))
    assert "<p>The public table &#39;last.csv&#39; of 400 rows: " in page


@pytest.mark.slow
def test_what_was_made_is_shown_with_the_choices_that_it_was_made_from(session):
    """A person may change them afterwards, and draft again what nobody has confirmed yet."""
    press(session, "choose", "choose", file="people.csv")
    promise(session, protects="row")
    press(session, "run", "start", ending=".csv", rows="10")
    while session.job.wait(1.0):
        pass
    screens = ("result",)

    def content(name):
        return render(name, session, SCREENS[name].show(session)).split("<main")[1]

    before = [content(name) for name in screens]
    assert "It protects one row." in before[0]
    promise(session, epsilon="2", protects="person", unit="person")
    press(session, "people", "draft")
    with pytest.raises(InputError, match="whole number"):
        press(session, "run", "start", ending=".xlsx", rows="many", again="on")
    assert [content(name) for name in screens] == before
    assert "17" in session.choices.schema_text()  # drafted, and not confirmed
    assert "schema.yaml" not in content("run")


@pytest.mark.slow
def test_the_last_look_says_what_was_spent_before_and_what_a_policy_leaves(session, start):
    press(session, "choose", "choose", file="people.csv")
    promise(session, delta="0", protects="person", unit="person")
    with pytest.raises(InputError, match="delta 0 cannot find the values of 'age'"):
        press(session, "run", "start", ending=".csv", rows="10")
    promise(session, protects="row")
    assert SCREENS["run"].show(session)["spent"] == ["spent on this table so far: nothing"]
    press(session, "run", "start", ending=".csv", rows="10")
    while session.job.wait(1.0):
        pass
    assert session.job.complaints == []
    (start / "privsyn.policy.yaml").write_text("epsilon: 1.5\ndelta: 1e-6\n")
    shown_ = SCREENS["run"].show(session)
    assert len(shown_["before"]) == 1
    assert shown_["spent"][0] == "spent on this table so far: epsilon 1 at delta 1e-09, 1 release"
    assert "epsilon 0.5 at delta 9.99e-07 is left" in shown_["spent"][1]
    with pytest.raises(InputError, match="spent once more"):
        press(session, "run", "start", ending=".csv", rows="10")
    press(session, "run", "start", ending=".csv", rows="10", again="on")
    while session.job.wait(1.0):
        pass
    assert (session.job.code, session.job.spent) == (2, False)
    assert "0.5" in session.job.complaints[0]


def test_an_upload_has_its_budget_and_its_policy_in_the_start_folder(session, start):
    (start / "privsyn.policy.yaml").write_text("epsilon: 1\ndelta: 1e-6\n")
    upload = session.workspace.new("uploads") / "elsewhere.csv"
    upload.write_bytes((start / "people.csv").read_bytes())
    session.open(upload)
    assert Command(session.choices).files.path == start.resolve() / "elsewhere.csv.budget.jsonl"
    arguments = Command(session.choices).run()
    assert arguments[arguments.index("--policy") + 1] == str(start.resolve() / "privsyn.policy.yaml")
    assert "1e-06 is left" in Command(session.choices).spent()[1][1]


def test_the_csv_of_the_page_runs_nothing_in_a_spreadsheet(session):
    press(session, "choose", "choose", file="people.csv")
    assert session.choices.out.endswith(".csv")
    assert "--excel-safe" in Command(session.choices).arguments("people.csv")
    session.choices.ending = ".parquet"
    assert "--excel-safe" not in Command(session.choices).arguments("people.csv")


@pytest.mark.slow
def test_the_table_can_be_taken_in_each_format_with_the_same_rows(finished):
    names = [name for name, _, _ in listed(finished.results)]
    assert names[:3] == ["synthetic.csv", "synthetic.parquet", "synthetic.xlsx"]
    csv = pd.read_csv(file_of(finished.results, "synthetic.csv"))
    parquet = pd.read_parquet(file_of(finished.results, "synthetic.parquet"))
    excel = pd.read_excel(file_of(finished.results, "synthetic.xlsx"))
    for other in (parquet, excel):
        pd.testing.assert_frame_equal(other, csv, check_dtype=False)
    assert parquet["age"].dtype.kind == "i"
    assert file_of(finished.results, "everything.zip").is_file()
    for wrong in ("../people.csv", "lock", "private-comparison.html", "synthetic.sav", ""):
        assert file_of(finished.results, wrong) is None


def test_a_paid_model_that_nobody_took_is_kept(session, start, endless):
    press(session, "choose", "choose", file="people.csv")
    session.ran, session.job, endless.code = session.choices, endless, 0  # a run that has ended
    session.workspace.taken = False
    (session.results / "model.privsyn").write_text("paid for")
    assert SCREENS["result"].ready(session)
    press(session, "choose", "choose", file="people.csv")  # begins again
    assert (start / "model.kept.privsyn").read_text() == "paid for"
    assert session.job is None
    assert not SCREENS["result"].ready(session)
    press(session, "choose", "choose", file="people.csv")
    session.forget()
    assert len(list(start.glob("*.kept.privsyn"))) == 1
    assert not list(session.results.iterdir())


@pytest.mark.parametrize(
    ("text", "delimiter", "encoding"),
    [
        ("name;größe\na;1,5\n".encode("cp1252"), ";", "cp1252"),
        (b"a\tb\tc\n1\t2\t3\n", "\t", "utf-8"),
        ("größe|b\n1|2\n".encode(), "|", "utf-8"),
        (b"alone\n1;2\n", ",", "utf-8"),
        (b"a,b;c,d\n1,2,3\n", ",", "utf-8"),
    ],
)
def test_the_header_shows_how_a_csv_is_written(session, start, text, delimiter, encoding):
    (start / "written.csv").write_bytes(text)
    assert press(session, "choose", "choose", file="written.csv") == "people"
    assert (session.choices.csv.delimiter, session.choices.csv.encoding) == (delimiter, encoding)


def test_a_form_of_another_table_is_refused(session, start):
    press(session, "choose", "choose", file="people.csv")
    stale = shown(session, kind_1="identifier")
    (start / "others.csv").write_text("name,age\na,1\n")
    press(session, "choose", "choose", file="others.csv")
    with pytest.raises(InputError, match="another table"):
        press(session, "people", "next", **stale)
    assert [entry.kind for entry in session.choices.table.entries] == ["", ""]


def test_a_refused_answer_stays_on_the_screen_as_it_was_typed(session):
    press(session, "choose", "choose", file="people.csv")
    with pytest.raises(InputError, match="contact"):
        press(session, "people", "next", **shown(session, protects="row", title="Visits", contact="me"))
    typed = SCREENS["people"].show(session)["typed"]
    assert (typed["protects"], typed["title"], typed["contact"]) == ("row", "Visits", "me")
    assert session.choices.about == {}
    with pytest.raises(InputError, match="numbers"):
        press(session, "run", "save", epsilon="much", delta="0")
    assert SCREENS["run"].show(session)["typed"]["epsilon"] == "much"
    press(session, "run", "save", epsilon="1,5", delta="1e-9")
    assert session.choices.epsilon == 1.5
    assert SCREENS["run"].show(session)["typed"]["epsilon"] == "1.5"


def test_the_words_of_the_publisher_are_in_the_schema(session):
    press(session, "choose", "choose", file="people.csv")
    words = {"title": "Visits", "publisher": "Office of Health", "licence": "cc-by-4.0", "contact": ""}
    promise(session, protects="row", **words)
    assert session.choices.settings().schema.about.line == "Visits. Office of Health. Licence: CC-BY-4.0."
    assert not session.choices.schema().columns
    assert "publisher: Office of Health" in session.choices.schema_text()
    promise(session, title="", publisher="", licence="")
    assert session.choices.schema() is None


def test_values_that_may_not_be_named_are_left_out_of_the_schema_and_come_back(session):
    press(session, "choose", "choose", file="people.csv")
    press(session, "people", "draft")
    assert 'name="unnamed" value="sex"' in render("people", session, SCREENS["people"].show(session))
    form = shown(session, offered=["sex"], unnamed=["sex"])
    press(session, "people", "confirm", **form)
    assert session.choices.schema().columns["sex"].values is None
    promise(session, protects="row")
    assert "sex" in SCREENS["run"].show(session)["open"]
    with refuses("a rule may name values of 'sex'"):
        press(session, "people", "save", **shown(session, rules="age > 20 implies sex == F"))
    press(session, "people", "save", **shown(session, offered=["sex"]))
    assert session.choices.schema().columns["sex"].values == ("F", "M")


def test_nothing_is_forgotten_by_one_click(session, start):
    press(session, "choose", "choose", file="people.csv")
    with pytest.raises(InputError, match="taken what you need"):
        press(session, "result", "forget")
    assert press(session, "result", "forget", sure="on") == "choose"


def test_a_schema_file_says_that_it_was_drafted(session):
    press(session, "choose", "choose", file="people.csv")
    press(session, "people", "draft")
    ones = {f"confirmed_{place}": "on" for place in range(4)}
    press(session, "people", "save", **shown(session, **ones))
    assert "confirmed each column and each link as public" in session.choices.schema_text()
    press(session, "people", "draft")
    press(session, "people", "confirm", **shown(session, low_1="30", confirmed_0="on"))
    assert session.choices.schema_text().startswith("# Drafted from the private rows")
    assert "confirmed 3 columns together, and each other column" in session.choices.schema_text()
    assert "The draft had 17 to 86" in render("people", session, SCREENS["people"].show(session))


def test_a_public_table_of_the_start_folder_is_chosen_and_the_private_one_refused(session, start):
    write_public(start)
    press(session, "choose", "choose", file="people.csv")
    page = render("people", session, SCREENS["people"].show(session))
    assert "Only a table that anybody may read" in page
    assert "<option>last.csv</option>" in page
    assert "<option>people.csv</option>" not in page
    with refuses("the public table is the private table itself"):
        promise(session, "save", protects="row", public="people.csv")
    with refuses("choose a table that is in the list"):
        promise(session, "save", protects="row", public="../last.csv")
    promise(session, "save", protects="row", public="last.csv")
    assert " --public last.csv " in Command(session.choices).text
    run = Command(session.choices).run()
    assert run[run.index("--public") + 1] == str(session.workspace.start / "last.csv")
    page = render("people", session, SCREENS["people"].show(session))
    assert "<option selected>last.csv</option>" in page
    promise(session, "save", protects="row", public="")
    assert "--public " not in Command(session.choices).text


def test_templates_are_compiled_once_and_those_of_other_pages_know_no_screen(monkeypatch):
    compiled = []
    compile_ = Environment.compile
    monkeypatch.setattr(
        Environment, "compile", lambda *source, **more: compiled.append(0) or compile_(*source, **more)
    )
    environment.cache_clear()
    _environment.cache_clear()
    for _ in range(2):
        for templates, name in ((environment(), "diagram.svg"), (_environment(), "choose.html")):
            templates.get_template(name)
    assert len(compiled) == 2
    assert not {"size", "in_the_form"} & environment().filters.keys()
