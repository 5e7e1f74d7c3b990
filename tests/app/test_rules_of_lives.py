"""Rules from row to row of one person: proposed in words, ticked, and kept by every synthetic row."""

import re

import numpy as np
import pandas as pd
import pytest
from screens import press, session_in, shown

from privsyn.app.screens import SCREENS, render
from privsyn.errors import InputError

WORKERS = 400


def careers():
    """Return a row for each of a worker's years, in another order than theirs; one tenure falls."""
    rng = np.random.default_rng(0)
    rows = rng.integers(1, 9, WORKERS)
    table = pd.DataFrame({"worker": np.repeat([f"w{n}" for n in range(WORKERS)], rows)})
    years = [np.sort(rng.choice(np.arange(2000, 2016), n, replace=False)) for n in rows]
    table["year"] = np.concatenate(years)
    table["born"] = np.repeat(rng.integers(1950, 1981, WORKERS), rows)
    table["age"] = table["year"] - table["born"]
    persons = table["worker"].to_numpy()
    married = pd.Series(rng.random(len(table)) < 0.2).groupby(persons).cummax()
    table["married"] = np.where(married, "yes", "no")
    table["tenure"] = pd.Series(rng.integers(0, 3, len(table))).groupby(persons).cumsum().to_numpy()
    table.loc[np.flatnonzero((table["tenure"] > 5) & (persons == table["worker"].shift(1)))[0], "tenure"] = 0
    return table.sample(frac=1, random_state=0)


@pytest.fixture
def session(tmp_path):
    careers().to_csv(tmp_path / "careers.csv", index=False)
    with session_in(tmp_path) as session:
        yield session


def proposed(session):
    table = session.choices.table
    return {str(p.plain): rule for p, rule in zip(table.proposals, table.proposed(), strict=True)}


@pytest.mark.slow
def test_rules_that_were_read_of_other_persons_are_dropped(session):
    """They were confirmed of workers: of rows of one tenure nobody confirmed any."""
    press(session, "choose", "choose", file="careers.csv")
    workers = {"protects": "person", "unit": "worker", "order": "year"}
    press(session, "people", "draft", **workers)
    press(session, "people", "confirm", **shown(session))
    rules = proposed(session)
    accept = [rules[line].line for line in ("year rises", "age == year - born")]
    press(session, "people", "save", **shown(session, accept=accept, constant=["born"]))
    table = session.choices.table
    assert table.constraints == ["year rises", "age == year - born"]
    assert table.constant == ("born",)
    others = workers | {"unit": "tenure"}
    press(session, "people", "save", **shown(session, accept=accept, constant=["born"], **others))
    assert (table.constraints, table.constant, table.steady) == (["age == year - born"], (), ())
    press(session, "people", "save", **shown(session, **workers))
    assert 'value="rules"' in render("people", session, SCREENS["people"].show(session))


@pytest.mark.slow
def test_a_ticked_rule_from_row_to_row_holds_in_every_synthetic_row(session):
    press(session, "choose", "choose", file="careers.csv")
    press(session, "people", "draft", protects="row")
    assert "year rises" not in proposed(session)  # of rows that are persons there are no lives
    press(session, "people", "confirm", **shown(session))
    persons = {"protects": "person", "unit": "worker", "order": "year"}
    press(session, "people", "save", **shown(session, **persons))
    assert 'value="rules"' in render("people", session, SCREENS["people"].show(session))
    press(session, "people", "rules", **shown(session))
    table, rules = session.choices.table, proposed(session)
    assert not table.waiting()  # what was confirmed stays so
    lines = [line for line in rules if line.split()[0] in ("year", "married", "tenure", "age")]
    assert lines == ["year rises", "married stays 'yes'", "tenure never falls", "age == year - born"]
    assert rules["married stays 'yes'"].words.startswith("married stays yes: once a row of one worker has it")
    assert rules["tenure never falls"].remark.endswith(" rows, 1 breaks it")
    assert "none breaks it" in rules["year rises"].remark
    assert "born" in table.steady
    accept = [rules[line].line for line in lines]
    page = render("people", session, SCREENS["people"].show(session))
    assert "year rises from row to row of one worker, and no two rows have the same." in page
    assert "born is the same in all rows of one worker." in page
    assert 'value="rules"' not in page
    assert press(session, "people", "next", **shown(session, accept=accept, constant=["born"])) == "run"

    run_page = render("run", session, SCREENS["run"].show(session))
    assert "needs identifiers" not in run_page  # the plan is of the run that will be made
    assert re.search(r"\d persons</th>.*\d rows</th>", run_page, re.DOTALL)
    press(session, "run", "start", epsilon="5", delta="1e-9")
    while session.job.wait(60):
        pass
    assert session.job.code == 0, session.job.complaints
    command = (session.results / "command.txt").read_text()
    assert "--unit worker --order year" in command
    assert "--identifiers" in command
    assert "constant:" in (session.results / "schema.yaml").read_text()
    made = pd.read_csv(session.results / "synthetic.csv").sort_values(["worker", "year"])
    before = made.groupby("worker").shift(1)
    later = before["year"].notna()
    assert later.sum() > WORKERS
    assert (made["year"] > before["year"])[later].all()
    assert (made["tenure"] >= before["tenure"])[later].all()
    assert ((made["married"] == "yes") | (before["married"] == "no"))[later].all()
    assert (made["age"] == made["year"] - made["born"]).all()
    assert made.groupby("worker")["born"].nunique().max() == 1
    assert "year" in render("result", session, SCREENS["result"].show(session))

    press(session, "compare", "compare")
    while session.comparison.wait(60):
        pass
    assert session.comparison.code == 0, session.comparison.complaints
    assert SCREENS["compare"].show(session)["found"]
    press(session, "result", "about", title="Careers")
    assert "title: Careers" in (session.results / "schema.yaml").read_text()


def test_the_column_of_persons_gives_their_rows_no_order(session):
    press(session, "choose", "choose", file="careers.csv")
    with pytest.raises(InputError, match="gives their rows no order"):
        press(session, "people", "save", **shown(session, protects="person", unit="worker", order="worker"))


def test_a_rule_from_row_to_row_needs_persons(session):
    press(session, "choose", "choose", file="careers.csv")
    press(session, "people", "draft", protects="row")
    press(session, "people", "confirm", **shown(session))
    with pytest.raises(InputError, match=r"year rises.*: choose one person with all rows"):
        press(session, "people", "next", **shown(session, rules="year rises"))


@pytest.mark.parametrize("rule", ["year falls", "year never rises"])
def test_a_rule_that_contradicts_the_order_is_refused_before_a_run(session, rule):
    press(session, "choose", "choose", file="careers.csv")
    persons = {"protects": "person", "unit": "worker", "order": "year"}
    press(session, "people", "draft", **persons)
    press(session, "people", "confirm", **shown(session, **persons))
    with pytest.raises(InputError, match=f"'{rule}': rows are put in the order of 'year', the least first"):
        press(session, "people", "next", **shown(session, **persons, rules=rule))
