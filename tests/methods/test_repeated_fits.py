"""Who fits a table again in one process is told that the epsilons add up; by public facts alone."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import privsyn
from privsyn import Categorical, Database, PrivSyn, Schema, Table
from privsyn.errors import RefitWarning
from privsyn.methods.repeated_fits import FittedTables


@pytest.fixture(autouse=True)
def new_process(monkeypatch):
    monkeypatch.setattr("privsyn.synthesizer.FITTED", FittedTables())


def people(*names, rows=40):
    names = names or ("a", "b")
    return pd.DataFrame({name: np.random.default_rng(0).choice(["x", "y"], rows) for name in names})


def schema(*names):
    return Schema({name: Categorical(["x", "y"]) for name in names or ("a", "b")})


def warned(*fits):
    """How many of these calls warn."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for fit in fits:
            fit()
    return [each for each in caught if each.category is RefitWarning]


def fit(table, **settings):
    return lambda: PrivSyn(**{"epsilon": 1.0, "schema": schema()} | settings).fit(table)


def test_the_same_table_warns_once_says_what_holds_in_either_case_and_names_the_caller():
    frame = people()
    (only,) = warned(*[fit(frame)] * 4, fit(people()))
    assert "If both are about the same people, the epsilons add up" in str(only.message)
    assert "If they are about different people, they do not" in str(only.message)
    assert "Ledger.compose([first.ledger_, second.ledger_])" in str(only.message)
    assert only.filename == __file__


@pytest.mark.parametrize("other", ["copy", "some rows", "the same object with a new column", "read again"])
def test_a_table_of_the_same_people_warns(other, tmp_path):
    frame = people()
    frame.to_csv(tmp_path / "t.csv", index=False)
    if other == "the same object with a new column":
        fit(frame)()
        frame["c"] = "x"
        assert len(warned(fit(frame, schema=schema("a", "b", "c")))) == 1
        return
    again = {"copy": frame.copy(), "some rows": frame[:20], "read again": pd.read_csv(tmp_path / "t.csv")}
    assert len(warned(fit(frame), fit(again[other]))) == 1


def test_a_path_is_known_by_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    people().to_csv("t.csv", index=False)
    Path("link.csv").symlink_to("t.csv")
    places = ("t.csv", tmp_path / "t.csv", "link.csv")
    for place in places[1:]:
        monkeypatch.setattr("privsyn.synthesizer.FITTED", FittedTables())
        assert len(warned(fit("t.csv"), fit(place))) == 1


def test_a_matrix_is_known_by_its_object_and_warns_once():
    array = np.arange(40.0).reshape(20, 2)
    assert len(warned(*[fit(array, schema=None)] * 3)) == 1


def test_linked_tables_warn_too():
    database = Database({"t": Table(schema(), key="id")})
    frame = people().assign(id=range(40))
    assert len(warned(*[fit({"t": frame}, schema=database)] * 2)) == 1


def test_other_tables_seeded_runs_and_refused_ones_do_not_warn():
    frame, other = people(), people("c", "d")
    assert not warned(fit(frame), fit(other, schema=schema("c", "d")))
    third = people("e", "f")
    assert not warned(*[fit(third, seed=place, schema=schema("e", "f")) for place in range(3)])
    arrays = [np.arange(40.0).reshape(20, 2) for _ in "12"]
    assert not warned(*[fit(array, schema=None) for array in arrays])
    with pytest.raises(privsyn.InputError):
        fit(people("g"), schema=schema("h"))()
    assert not warned(fit(people("g"), schema=schema("g")))


def test_a_sweep_does_not_warn():
    runs = lambda: privsyn.sweep(people(rows=200), [1.0], seeds=3, schema=schema(), models=False)  # noqa: E731
    assert not warned(runs)


def test_a_warning_that_is_an_error_comes_before_the_first_question():
    frame, asked = people(), []
    fit(frame)()
    with warnings.catch_warnings():
        warnings.simplefilter("error", RefitWarning)
        with pytest.raises(RefitWarning):
            fit(frame, progress=lambda stage, *_: asked.append(stage))()
    assert "measuring" not in asked
