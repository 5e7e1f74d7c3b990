"""A sum of columns that is the same in all rows of a person, such as year - age, is so in synthetic rows."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import run
from refusals import refuses

from privsyn import Categorical, Database, Numerical, PrivSyn, Schema, Table, evaluate, load, report, sheet
from privsyn.table.database.derived_columns import no_more_rows_than_values
from privsyn.table.database.yaml_form import database_from_plain, database_to_plain, persons_and_rows

COLUMNS = {
    "year": Numerical(1984, 1988, integer=True, nullable=False),
    "age": Numerical(25, 64, integer=True, nullable=False),
    "works": Categorical(["no", "yes"], nullable=False),
}
RULES = ["year rises", "year - age is constant"]
OF_PERSONS = {"unit": "who", "identifiers": True, "order": "year"}


def panel(persons=600, seed=0, breaking=0):
    """Persons with rows of different years, in a random order. Ages of the first `breaking` persons jump."""
    rng = np.random.default_rng(seed)
    born, rows = rng.integers(1925, 1960, persons), rng.integers(1, 6, persons)
    rows[:breaking] = 5
    who = np.repeat(np.arange(persons), rows)
    years = np.concatenate([np.sort(rng.choice(np.arange(1984, 1989), n, replace=False)) for n in rows])
    table = pd.DataFrame({"who": who, "year": years, "age": years - born[who]})
    table["works"] = np.where(rng.random(len(who)) < np.where(table["age"] < 50, 0.8, 0.3), "yes", "no")
    table.loc[(table["who"] < breaking) & (table["year"] > 1985), "age"] += 2
    return table.sample(frac=1, random_state=0, ignore_index=True)


def share_constant(table):
    """The share of persons whose year - age is the same in all rows."""
    return float((table["year"] - table["age"]).groupby(table["who"]).nunique().eq(1).mean())


@pytest.mark.parametrize("epsilon", [1.0, pytest.param(0.1, marks=pytest.mark.slow)])
def test_every_synthetic_person_ages_with_the_years(epsilon, tmp_path):
    table, declared = panel(breaking=6), Table(Schema(COLUMNS), constraints=RULES)
    assert share_constant(table) == 0.99
    model = PrivSyn(epsilon, 1e-6, declared, **OF_PERSONS, seed=0).fit(table)
    made = model.sample(seed=1)
    assert share_constant(made) == 1.0
    assert list(made) == list(table)
    assert made["age"].between(25, 64).all()
    assert made["year"].between(1984, 1988).all()
    assert not made.duplicated(["who", "year"]).any()
    assert "year - age" in model.release_.tables["persons"].codec.names
    model.save(tmp_path / "model.privsyn")
    assert load(tmp_path / "model.privsyn").sample(seed=1).equals(made)
    losses = [str(loss) for loss in model.losses_ if loss.kind == "same sum"]
    assert losses == [
        "age: computed as age == year - `year - age`: the first row of each who that has all of these cells"
        " decides, and other cells are not read"
    ]
    for question, by in (("share of works == 'yes'", "age"), ("mean of age", None)):
        with refuses('is not decided: .* as age == year - `year - age`, and .* as in "mean of year - age"'):
            model.ask(question, by=by)
    assert np.isfinite(model.ask("mean of year - age").estimate)  # as the refusal says
    for given in ({"age": 30}, "age >= 30", {"year": 1985}):
        with refuses(r"may differ from row to row of a person.* constant \('year - age'\)"):
            load(tmp_path / "model.privsyn").sample(given=given)
    born = model.sample(given={"year - age": (1930, 1940)})
    assert (born["year"] - born["age"]).between(1930, 1940).all()
    report(model, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "year - age is the same in all rows of one row of persons" in page
    assert "<strong>age</strong> <span>not counted: computed in each row, age == year - `year - age`" in page
    sheet(model, tmp_path / "sheet.md")
    text = (tmp_path / "sheet.md").read_text()
    assert "| age | numerical | 25 to 64 | not counted: computed as age == year - `year - age` |" in text
    assert "| year - age |" not in text
    counts = evaluate(table, made, declared, unit="who", order="year", models=False).linked.broken
    real = evaluate(made, table, declared, unit="who", order="year", models=False).linked.broken
    rule = next(rule for rule in counts if "is constant" in rule)
    assert (counts[rule][0], real[rule][0]) == (0, 6)


def test_ages_are_those_of_the_persons_and_of_their_rows():
    """With hardly any noise, the ages of the rows are those of the table, and so are the numbers of rows."""
    table, declared = panel(3000), Table(Schema(COLUMNS), constraints=RULES)
    made = PrivSyn(9.0, 1e-6, declared, **OF_PERSONS, seed=0).fit(table).sample(seed=1)
    assert abs(made["age"].mean() - table["age"].mean()) < 0.3
    numbers = [rows.groupby("who").size().value_counts(normalize=True) for rows in (table, made)]
    assert (numbers[0] - numbers[1]).abs().sum() / 2 < 0.03
    works = [
        rows.groupby(rows["age"] < 50)["works"].agg(lambda w: (w == "yes").mean()) for rows in (table, made)
    ]
    assert (works[0] - works[1]).abs().max() < 0.05


def test_the_other_rows_of_a_person_are_not_read():
    """Only the first row of a person that has both cells says when the person was born."""
    table, declared = panel(300), Table(Schema(COLUMNS), constraints=RULES)
    is_first = ~table.duplicated("who")
    other_ages = table.assign(age=np.where(is_first, table["age"], 25))
    models = [
        PrivSyn(1.0, 1e-6, declared, **OF_PERSONS, seed=0).fit(rows).sample(seed=1)
        for rows in (table, other_ages)
    ]
    assert models[0].equals(models[1])


def test_missing_cells_are_of_persons_without_a_complete_row():
    columns = COLUMNS | {"age": Numerical(25, 64, integer=True)}
    table = panel(400).astype({"age": "Int64"})
    table.loc[table["who"] < 200, "age"] = pd.NA
    first = ~table.duplicated("who")
    table.loc[first, "age"] = pd.NA  # the first row that has one says it
    several = table["who"].map(table["who"].value_counts()) > 1
    made = (
        PrivSyn(9.0, 1e-6, Table(Schema(columns), constraints=RULES), **OF_PERSONS, seed=0)
        .fit(table)
        .sample()
    )
    missing = made["age"].isna().groupby(made["who"])
    assert missing.first().equals(missing.last())
    complete = (table["age"].notna() & several).groupby(table["who"]).any()
    assert abs(missing.first().mean() - (1 - complete.mean())) < 0.05


@pytest.mark.parametrize(
    ("total", "order", "ages"),
    [("year - age", "year", (25, 64)), ("age - year", "year", (25, 64)), ("age + year", "year", (25, 40))],
)
def test_nobody_has_more_rows_than_values_are_left(total, order, ages):
    """Who was born in 1963 is 25 in 1988 alone: such a person has one row."""
    columns = {**COLUMNS, "age": Numerical(*ages, integer=True, nullable=False)}
    rules = [f"{order} rises", f"{total} is constant"]
    database = persons_and_rows("who", Database.of_one(Table(Schema(columns), constraints=rules)), order)
    (rule,) = database.tables["rows"].constant_sums
    forbidden = no_more_rows_than_values(database, "rows", columns)
    years, sums = np.arange(1984, 1989), np.arange(*rule.kind(columns).bounds)
    sign = -1 if "-" in total else 1
    for total_of_person in sums.astype(int).tolist():
        of_years = sign * (total_of_person - years) if total != "age - year" else total_of_person + years
        left = int(((of_years >= ages[0]) & (of_years <= ages[1])).sum())
        cells = {"count(rows)": np.arange(1, 6), total: np.full(5, total_of_person)}
        allowed = [all(not _within(rule.when, cells, n) for rule in forbidden) for n in range(5)]
        assert allowed == [n <= left for n in range(1, 6)]


def _within(when, cells, n):
    """Whether a row has all values that a rule names."""
    spans = [
        (cells[name][n], span.get("low", -np.inf), span.get("high", np.inf)) for name, span in when.items()
    ]
    return all(low <= value <= high for value, low, high in spans)


def linked(persons=400):
    table = panel(persons)
    return {"people": pd.DataFrame({"who": range(persons)}), "years": table}


LINKED = Database({
    "people": Table(Schema({}), key="who"),
    "years": Table(Schema(COLUMNS), parent="people", link="who", order="year", constraints=RULES),
})  # fmt: skip


@pytest.mark.slow
def test_linked_tables_take_the_rule_too(tmp_path):
    model = PrivSyn(2.0, 1e-6, LINKED, seed=0).fit(linked())
    made = model.sample(seed=0)["years"]
    assert share_constant(made) == 1.0
    old, young = (
        model.ask(f"years: share of works == 'yes' among `year - age` {sign}")
        for sign in ("< 1935", ">= 1945")
    )
    assert young.estimate > old.estimate
    report(model, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "year - age is the same in all rows of one row of people" in page
    assert len(model.sample(50, given={"years.year - age": (1930, 1940)}, seed=0)["people"]) == 50


def test_a_question_names_a_sum_with_or_without_backticks():
    """The name of one sum begins as that of the other, and a quoted value may be like either."""
    columns = COLUMNS | {"age2": Numerical(integer=True), "says": Categorical(["year - age", "none"])}
    rules = [*RULES, "year - age2 is constant"]
    table = panel(300).assign(age2=lambda rows: rows["age"] + 3, says="year - age")
    model = PrivSyn(9.0, 1e-6, Table(Schema(columns), constraints=rules), **OF_PERSONS, seed=0).fit(table)
    for question in (
        "share of says == 'year - age' among {}",
        "persons: share of {} among count(rows) == 1",
    ):
        for condition in ("year - age > 1935", "year - age2 > 1935"):
            name, number = condition.split(" > ")
            answers = [model.ask(question.format(text)) for text in (condition, f"`{name}` > {number}")]
            assert answers[0].estimate == answers[1].estimate
            assert answers[0].estimate > 0.5


def test_yaml_and_pickle_keep_the_rule():
    plain = database_to_plain(LINKED)
    assert plain["tables"]["years"]["constraints"] == ["year - age is constant", "year rises"]
    assert database_from_plain(plain) == LINKED
    assert pickle.loads(pickle.dumps(LINKED)) == LINKED
    assert [str(rule) for rule in LINKED.tables["years"].computed_above.values()] == [
        "age == year - `year - age`"
    ]


@pytest.mark.parametrize(
    ("rules", "settings", "computed"),
    [
        (["year - age is constant"], {"order": "year"}, "age == year - `year - age`"),
        (["age - year is constant"], {"order": "year"}, "age == year + `age - year`"),
        (["age - year is constant"], {}, "year == age - `age - year`"),
        (["age + left is constant", "year rises"], {"order": "year"}, "left == `age + left` - age"),
        (["left - 0.5 * year is constant"], {}, "left == 0.5 * year + `left - 0.5 * year`"),
        (["year - age is constant", "year - left is constant"], {}, "age == year - `year - age`"),
    ],
)
def test_the_column_that_no_other_rule_names_is_computed(rules, settings, computed):
    columns = {**COLUMNS, "age": Numerical(), "year": Numerical(), "left": Numerical()}
    table = Table(Schema(columns), parent="people", link="who", constraints=rules, **settings)
    assert str(next(iter(table.computed_above.values()))) == computed


@pytest.mark.parametrize(
    ("rules", "complaint"),
    [
        (["age is constant"], "of one column alone, add it to the list constant, as in constant: [age]"),
        (["year - year is constant"], "it is about a sum or a difference of columns"),
        (["people.year - age is constant"], "leave out the name of the table"),
        (["year - works is constant"], "'works' is no column of numbers"),
        (["year - wage is constant"], "'wage' is no column of the table that is counted"),
        (["year rises", "age rises", "year - age is constant"], "each has another rule or a factor"),
        (["2 * year - 2 * age is constant"], "each has another rule or a factor"),
        (["year - age is constant", "age - year is constant"], "each has another rule or a factor"),
    ],
)  # fmt: skip
def test_what_cannot_be_constant_is_refused(rules, complaint):
    with refuses(complaint):
        PrivSyn(1.0, 1e-6, Table(Schema(COLUMNS), constraints=rules), **OF_PERSONS).fit(panel(50))


def test_the_column_that_is_computed_has_no_step():
    """Ages that are rounded to multiples of five would not rise with the years."""
    ages, years = Numerical(25, 65, step=5), Numerical(1984, 1988, step=2)
    with refuses(
        "'age' is computed, and its parts do not add up to multiples of its step: leave the step out"
    ):
        PrivSyn(1.0, 1e-6, Table(Schema(COLUMNS | {"age": ages}), constraints=RULES), **OF_PERSONS).fit(
            panel(50)
        )
    every_second = panel(300).query("year % 2 == 0")
    declared = Table(Schema(COLUMNS | {"year": years}), constraints=RULES)
    assert (
        share_constant(PrivSyn(9.0, 1e-6, declared, **OF_PERSONS, seed=0).fit(every_second).sample(seed=0))
        == 1
    )


def test_text_in_a_column_of_the_sum_is_refused_by_its_name():
    with refuses("'year - age is constant': column 'age': its dtype is str, not numbers"):
        PrivSyn(1.0, 1e-6, Table(Schema(COLUMNS), constraints=RULES), **OF_PERSONS).fit(
            panel(50).astype({"age": "str"})
        )


def test_rows_that_belong_to_nobody_have_no_such_rule():
    with refuses(
        "a rule on the rows of one person, as the schema has, needs unit, the column that identifies"
    ):
        PrivSyn(1.0, 1e-6, Table(Schema(COLUMNS), constraints=["year - age is constant"]))


def drafted(table, folder, capsys, monkeypatch):
    """The lines of the draft that propose something, without the sign, each with what the rows show."""
    monkeypatch.chdir(folder)
    table.to_csv("panel.csv", index=False)
    assert (
        run(capsys, "schema", "panel.csv", "--unit", "who", "--order", "year", "-o", "panel.yaml").code == 0
    )
    lines = [line for line in Path("panel.yaml").read_text().splitlines() if line.startswith("#- ")]
    return dict(line.removeprefix("#- ").split("  # READ: ") for line in lines)


def test_the_draft_proposes_the_rule_and_runs_with_it(tmp_path, capsys, monkeypatch):
    table = panel()
    proposals = drafted(table, tmp_path, capsys, monkeypatch)
    steps = len(table) - table["who"].nunique()
    assert proposals["year - age is constant"] == f"{steps:,} rows"
    assert not any(rule.startswith("age ") for rule in proposals)
    draft = Path("panel.yaml").read_text().replace("#- year", "- year")
    Path("panel.yaml").write_text(draft)
    persons = ("--unit", "who", "--order", "year")
    done = run(capsys, "schema", "panel.csv", *persons, "--check", "panel.yaml")
    assert (done.code, done.out) == (0, "every cell fits\nevery row keeps every rule about several rows\n")
    panel(breaking=6).to_csv("panel.csv", index=False)
    done = run(capsys, "schema", "panel.csv", *persons, "--check", "panel.yaml")
    assert done.code == 1
    assert "year - age is constant in the rows of one row of persons: broken 6 times" in done.out
    made = PrivSyn(1.0, 1e-6, "panel.yaml", **OF_PERSONS, seed=0).fit("panel.csv").sample(seed=0)
    assert share_constant(made) == 1.0


@pytest.mark.parametrize(
    ("change", "broken", "far"),
    [
        (lambda table: table, 3, ""),
        (
            lambda table: table.assign(age=table["age"] + (np.arange(len(table)) % 4 == 0)),
            294,
            ", 3 of them by more than one",
        ),
    ],
    ids=["few break it", "off by one"],
)
def test_the_draft_says_how_many_persons_break_it(change, broken, far, tmp_path, capsys, monkeypatch):
    table = change(panel(breaking=3))
    several = int((table.groupby("who").size() > 1).sum())
    says = drafted(table, tmp_path, capsys, monkeypatch)["year - age is constant"]
    words = f"{broken} of {several} persons with several rows break it{far}: the first row decides"
    assert says == f"{len(table) - table['who'].nunique():,} rows; {words}"


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.assign(age=np.random.default_rng(0).permutation(table["age"])),
        lambda table: table.assign(born=table["year"] - table["age"]),
        lambda table: table.assign(age=3 + table["who"] % 40),
        lambda table: table.assign(age=table["year"] - 1950),
        lambda table: table.assign(age=3 + table["who"] % 40 + (table["year"] > 1986)),
    ],
    ids=["by chance", "a column of its own", "the same", "in each row", "seldom changing"],
)
def test_the_draft_proposes_no_other_sum(change, tmp_path, capsys, monkeypatch):
    proposals = drafted(change(panel()), tmp_path, capsys, monkeypatch)
    assert not any("is constant" in rule for rule in proposals)
