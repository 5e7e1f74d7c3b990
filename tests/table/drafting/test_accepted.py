"""A draft proposes only rules that a run accepts together."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import yaml
from refusals import refuses

from privsyn import Numerical, PrivSyn, Schema, Table, plan
from privsyn.table.database.yaml_form import declared_from_plain
from privsyn.table.drafting.review import draft_files

PERSONS = {"unit": "who", "identifiers": True, "order": "year"}


def panel(persons=600):
    """Persons whose age and tenure step with the years, and so does the number of the wave."""
    rng = np.random.default_rng(0)
    rows = rng.integers(1, 6, persons)
    who = np.repeat(np.arange(persons), rows)
    years = np.concatenate([np.sort(rng.choice(np.arange(1984, 1990), n, replace=False)) for n in rows])
    born, hired = rng.integers(1925, 1960, persons)[who], rng.integers(1960, 1984, persons)[who]
    frame = pd.DataFrame({"who": who, "year": years, "age": years - born, "tenure": years - hired})
    return frame.assign(wave=years - 1980, x=rng.integers(0, 5, len(who)))


def declared(text):
    """Return what a draft declares once the # of each proposal is removed."""
    head, _, proposals = text.partition("\nconstraints:\n")
    lines = re.sub(r"^#(?! [A-Za-z])", "", proposals, flags=re.MULTILINE)
    return declared_from_plain(yaml.safe_load(f"{head}\nconstraints:\n{lines}"))


def test_all_proposals_of_a_panel_are_accepted_together():
    """Before: two sums over one order, of which a run refuses the second, and rules on a shifted year."""
    text, _ = draft_files(panel(), unit="who", order="year")
    proposals = text.partition("\nconstraints:\n")[2]
    assert "#- year - age is constant" in proposals
    assert "not beside it: year - tenure is constant" in proposals
    assert "#- wave rises" in proposals
    assert "#- year - tenure" not in proposals
    database = declared(text)
    PrivSyn(1.0, 1e-6, database, **PERSONS)
    plan(database, 1.0, 1e-6, rows=3000, **PERSONS)


def test_a_rule_on_a_column_that_is_constant_is_named_and_not_proposed():
    """Before, `base_age <= age` stood beside `constant: [base_age]`, and a run refused the draft."""
    rng, who = np.random.default_rng(1), np.repeat(np.arange(400), 3)
    base = rng.integers(6, 15, 400)[who]
    frame = pd.DataFrame({"who": who, "base_age": base, "age": base + 2 * rng.integers(0, 3, 1200)})
    frame["wave"] = np.arange(1200) % 3 + 1
    text, _ = draft_files(frame, unit="who", order="wave")
    assert "#constant: [base_age]" in text
    assert "#- base_age <= age" not in text
    comment = " ".join(text.replace("\n# ", " ").split())
    assert "No rule can name them beside it. So these rules are left out" in comment
    assert "base_age <= age" in comment
    PrivSyn(1.0, 1e-6, declared(text), **PERSONS | {"order": "wave"})


def test_a_draft_whose_rules_go_together_is_as_it_was():
    text, _ = draft_files(panel().drop(columns=["tenure", "wave"]), unit="who", order="year")
    assert "not beside it" not in text
    assert "#- year - age is constant" in text
    assert "#- year rises" in text


def test_a_column_that_is_computed_has_no_step_that_its_parts_lack():
    """Before: ages were rounded to multiples of five, and four of five synthetic rows broke the rule."""
    columns = {
        "year": Numerical(1984, 1989, integer=True, nullable=False),
        "age": Numerical(20, 70, integer=True, step=5, nullable=False),
        "born": Numerical(1920, 1965, integer=True, nullable=False),
    }
    words = "'age' is computed, and its parts do not add up to multiples of its step"
    with refuses(words):
        Schema(columns, constraints=["age == year - born"])
    with refuses(words):
        Table(Schema(columns), constant=["born"], constraints=["age == year - born"])
    fives = columns | {name: Numerical(1920, 1990, step=5, nullable=False) for name in ("year", "born")}
    Schema(fives, constraints=["age == year - born"])
