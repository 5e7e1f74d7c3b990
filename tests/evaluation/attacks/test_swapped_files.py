"""Tables in each other's place are refused, or named: attacks on swapped files find nothing, and say so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import run
from scipy.stats import chi2, hypergeom

from privsyn import Categorical, Numerical, PrivSyn, Schema, attack
from privsyn.evaluation.attacks.odd_table import DECIDED, FALSE_ALARM, _statistic, remark_on_tables
from privsyn.evaluation.encoding import Coded
from privsyn.marginals.domain import Domain, Records

COLUMNS = {
    "a": Categorical([*range(20)], nullable=False),
    "b": Numerical(0, 60, integer=True, nullable=False),
}


def people(seed, rows=2000):
    rng = np.random.default_rng(seed)
    a = np.minimum(rng.geometric(0.3, rows) - 1, 19)
    return pd.DataFrame({"a": a, "b": np.minimum(rng.poisson(8 + a), 60)})


@pytest.fixture(scope="module")
def tables():
    real = people(0)
    made = PrivSyn(0.1, 1e-9, Schema(COLUMNS), seed=0).fit(real).sample(2000, seed=0)
    return {"real": real, "made": made, "held_out": people(1)}


@pytest.mark.parametrize(
    ("order", "words"),
    [
        (("real", "made", "held_out"), ""),
        (("made", "real", "held_out"), "the real table may stand in the place of the synthetic one"),
        (("real", "held_out", "made"), "the held-out table may stand in the place of the synthetic one"),
    ],
)
def test_a_synthetic_table_in_the_place_of_another_is_named(tables, order, words):
    risks = attack(*(tables[name] for name in order))
    assert bool(risks.remark) == bool(words)
    assert words in risks.remark
    assert (risks.remark in str(risks).splitlines()) == bool(words)
    assert risks.to_dict()["remark"] == risks.remark


def test_held_out_rows_of_another_population_are_named(tables):
    for b, words in (
        (lambda b: 60 - b, "is of another population"),
        (lambda b: b + 2, "of the same population"),
    ):
        other = tables["held_out"].assign(b=b(tables["held_out"]["b"]))
        assert words in attack(tables["real"], tables["made"], other).remark


def test_rows_of_one_population_are_not_said_to_differ():
    """In 300 splits, each with a false alarm of 1e-6."""
    rng, domain = np.random.default_rng(0), Domain(("a", "b"), (7, 40))
    codes = np.stack([rng.integers(0, 7, 3000), np.minimum(rng.poisson(4, 3000), 39)], axis=1)
    for _ in range(300):
        parts = np.split(codes[rng.permutation(3000)].astype(np.int32), [1000, 2000])
        split = [Coded(Records(domain, part), {}, pd.DataFrame()) for part in parts]
        assert not remark_on_tables(dict(zip(("real", "synthetic", "control"), split, strict=True)))


@pytest.mark.parametrize("sizes", [(5000, 50), (5000, 500), (20_000, 1000), (1000, 1000), (2000, 150)])
def test_rare_values_raise_no_false_alarm(sizes):
    """Exactly, of two groups whose rows are split at random into tables of unlike size."""
    real, control = sizes
    for rare in np.unique(np.geomspace(1, sum(sizes) // 2, 20).astype(int)):
        found = np.arange(max(0, rare - real), min(rare, control) + 1)
        chances = hypergeom.pmf(found, sum(sizes), rare, control)
        alarm = 0.0
        for number, chance in zip(found[chances > 1e-12], chances[chances > 1e-12], strict=True):
            first = np.array([real - rare + number, rare - number])
            statistic, degrees = _statistic(first, np.array([control - number, number]))
            alarm += chance * bool(degrees and chi2.sf(statistic, degrees) < DECIDED)
        assert alarm <= FALSE_ALARM


def test_rare_values_of_many_columns_raise_no_false_alarm():
    """In 300 pairs of tables, of which squares over few expected rows found several unlike."""
    rng, domain = np.random.default_rng(0), Domain(tuple("abcdefghij"), (12,) * 10)
    values = [0.9978, *[0.0002] * 11]
    for _ in range(300):
        parts = {
            name: Coded(
                Records(domain, rng.choice(12, (rows, 10), p=values).astype(np.int32)), {}, pd.DataFrame()
            )
            for name, rows in (("real", 5000), ("synthetic", 5000), ("control", 300))
        }
        assert not remark_on_tables(parts)


def test_the_budget_file_tells_which_table_was_made_from_which(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("real", 0), ("held_out", 1)):
        people(seed, 200).to_csv(f"{name}.csv", index=False)
    assert run(capsys, "synth", "real.csv", "made.csv", "--epsilon", 9).code == 0
    for command in (
        ("attack", "made.csv", "real.csv", "held_out.csv"),
        ("attack", "held_out.csv", "made.csv", "real.csv"),
        ("attack", "real.csv", "held_out.csv", "made.csv"),
        ("evaluate", "made.csv", "real.csv"),
        ("evaluate", "held_out.csv", "made.csv", "--test", "real.csv"),
    ):
        refused = run(capsys, *command)
        assert refused.code == 2
        assert "made.csv has the name of a table made from real.csv, by the budget file beside" in refused.err
        assert refused.out == ""
    assert run(capsys, "attack", "real.csv", "made.csv", "held_out.csv").code == 0


def test_names_that_files_in_several_folders_have_are_no_wrong_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people(0, 200).to_csv("real.csv", index=False)
    people(1, 200).to_csv("held_out.csv", index=False)
    Path("other").mkdir()
    people(1, 200).to_csv("other/made.csv", index=False)
    assert run(capsys, "synth", "real.csv", "made.csv", "--epsilon", 9).code == 0
    assert run(capsys, "attack", "real.csv", "made.csv", "other/made.csv").code == 0
    assert run(capsys, "evaluate", "real.csv", "made.csv", "--test", "other/made.csv").code == 0
    refused = run(capsys, "attack", "real.csv", "held_out.csv", "other/made.csv")
    assert "rename other/made.csv if it is another table" in refused.err


def test_two_private_tables_may_have_had_outputs_of_one_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, seed in (("held_out", 1), ("real", 0)):
        people(seed, 200).to_csv(f"{name}.csv", index=False)
        assert run(capsys, "synth", f"{name}.csv", "made.csv", "--epsilon", 9, "--force").code == 0
    assert run(capsys, "attack", "real.csv", "made.csv", "held_out.csv").code == 0
