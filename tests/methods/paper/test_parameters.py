"""Parameters of the published algorithm: each has an effect, is checked, named in the ledger and saved."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pandas as pd
import pytest
from command import run

from privsyn import Categorical, InputError, PrivSyn, Schema, load, sweep

NAMES = "abcd"
SCHEMA = Schema({name: Categorical([0, 1, 2], nullable=False) for name in NAMES})


def table(rows=2000):
    """Each column mostly repeats the one before; the first pair with the last is a cycle."""
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 3, rows)]
    for _ in NAMES[1:]:
        columns.append(np.where(rng.random(rows) < 0.3, rng.integers(0, 3, rows), columns[-1]))
    return pd.DataFrame(dict(zip(NAMES, columns, strict=True)))


def fitted(**parameters):
    return PrivSyn.paper(2.0, 1e-9, SCHEMA, seed=0, **parameters).fit(table())


def questions(model):
    """What was asked, and the share of the cost of each."""
    ledger = model.ledger_
    return {spend.what: spend.cost / ledger.cost for spend in ledger.spends}


def test_the_defaults_are_those_of_the_paper():
    default = fitted()
    spelled_out = fitted(
        rounds=100,
        step=(1.0, 0.84, 20),
        gamma=5000,
        overlap=2,
        split=(0.1, 0.1, 0.8),
        duplication=(0.5, 1),
    )
    assert default.parameters is spelled_out.parameters is None
    assert default.sample().equals(spelled_out.sample())
    assert not any("parameters" in fact for fact in default.ledger_.public_inputs)


def test_the_split_is_that_of_the_ledger():
    shares = questions(fitted(split=(0.3, 0.2, 0.5)))
    one_ways, dependence, *rest = shares.values()
    assert (one_ways, dependence, sum(rest)) == pytest.approx((0.3, 0.2, 0.5))


def test_gamma_bounds_the_tables_of_several_pairs():
    tables = {
        gamma: [what for what in questions(fitted(gamma=gamma)) if "counts over" in what]
        for gamma in (8, 27, 81)
    }
    assert tables[81] == ["counts over a, b, c, d"]
    assert max(what.count(",") for what in tables[27]) == 2
    assert {what.count(",") for what in tables[8]} == {1}


def test_an_overlap_of_none_keeps_tables_apart():
    several = [what.removeprefix("counts over ").split(", ") for what in questions(fitted(gamma=27))]
    alone = [what.removeprefix("counts over ").split(", ") for what in questions(fitted(gamma=27, overlap=0))]
    assert sum(len(names) == 3 for names in several) == 2
    assert sum(len(names) == 3 for names in alone) == 1


@pytest.mark.parametrize(
    "changed", [{"rounds": 0}, {"step": 0.01, "rounds": 2}, {"duplication": 1, "rounds": 3}]
)
def test_updates_change_the_rows_and_no_question(changed):
    model, other = fitted(gamma=8), fitted(gamma=8, **changed)
    assert questions(model) == questions(other)
    assert not model.sample().equals(other.sample())


BAD = {
    "rounds": (-1, 1.5, True, "9", None, 10_001, [3]),
    "step": (0, -1, "x", None, (), (1, 0.5), (0, 0.5, 2), (1, 0, 2), (1, 1.1, 2), (1, 0.5, 0), (1, 0.5, 1.5)),
    "gamma": (0, 2.5, None, 10**9),
    "overlap": (-1, 3, 0.5, None),
    "split": (
        1,
        (0.5, 0.5),
        (0.1, 0.1, 0.7),
        (0.1, 0.1, 0.9),
        (0, 0.2, 0.8),
        (float("nan"), 0.1, 0.8),
        "abc",
    ),
    "duplication": (-0.1, 1.1, (), (0.5, 2), None, "half", [0.5] * 1001, float("nan")),
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in BAD for value in BAD[name]])
def test_a_parameter_that_cannot_work_is_refused_in_one_line_that_names_it(name, value):
    for make in (
        lambda: PrivSyn.paper(1.0, **{name: value}),
        lambda: PrivSyn(1.0, method="published", parameters={name: value}),
        lambda: PrivSyn.paper(1.0).set_params(parameters={name: value}),
    ):
        with pytest.raises(InputError, match=rf"\A{name} [^\n]*\Z"):
            make()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "published", "parameters": {"round": 5}}, "no parameter 'round'; did you mean 'rounds'"),
        ({"method": "published", "parameters": {"colour": 5}}, "choose from rounds, step, gamma"),
        *(
            ({"method": "published", "parameters": wrong}, "such as rounds=50; got")
            for wrong in (
                5,
                {1: 2},
                "rounds",
                "rounds=",
                "5",
                "rounds=1, rounds=2",
                "*[1]",
                "**{}",
                "rounds=open('x')",
            )
        ),
    ],
)
def test_what_is_no_parameter_is_refused(settings, words):
    with pytest.raises(InputError, match=words):
        PrivSyn(1.0, **settings)


def test_parameters_are_in_the_ledger_and_the_model_samples_with_them(tmp_path):
    model = fitted(rounds=7, duplication=[0, 1], step=0.5)
    (fact,) = [fact for fact in model.ledger_.public_inputs if "parameters" in fact]
    assert fact.endswith("rounds 7, step 0.5, duplication (0.0, 1.0)")
    model.save(tmp_path / "m.privsyn")
    assert load(tmp_path / "m.privsyn").sample(500, seed=3).equals(model.sample(500, seed=3))


@pytest.mark.parametrize("wrong", [{"rounds": 10**9}, {"round": 1}, [1], "rounds=", {"rounds": None}])
def test_a_model_with_parameters_that_no_run_has_is_refused(tmp_path, wrong):
    path = tmp_path / "m.privsyn"
    fitted(rounds=7).save(path)
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    text = json.loads(members["release.json"])
    text["tables"]["rows"]["parameters"] = wrong
    members["release.json"] = json.dumps(text).encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name, content)
    with pytest.raises(InputError, match="is no whole model"):
        load(path)


def test_the_command_takes_them_as_text(folder, capsys):
    table(300).to_csv("t.csv", index=False)
    command = ("synth", "t.csv", "o.csv", "--epsilon", 1, "--seed", 0)
    given = ("--paper", "--parameters", "rounds=3", "--parameters", "duplication=(0.5, 1, 0)")
    assert run(capsys, *command, *given, "--ledger", "l.json").code == 0
    facts = json.loads((folder / "l.json").read_text())["public_inputs"]
    assert any(fact.endswith("rounds 3, duplication (0.5, 1.0, 0.0)") for fact in facts)
    for wrong, words in (
        (("--paper", "--parameters", "rounds=-3"), "rounds must be"),
        (("--paper", "--parameters", "rounds"), "such as rounds=50; got 'rounds'"),
    ):
        said = run(capsys, *command, *wrong, "--force")
        assert (said.code, words in said.err, said.err.count("\n")) == (2, True, 1)


def test_a_sweep_takes_them_with_the_preset():
    presets = ["paper", "paper(rounds=0)", "paper(rounds=0, split=(0.2, 0.1, 0.7))"]
    rows = sweep(table(500), [5], seeds=1, presets=presets, schema=SCHEMA, models=False)
    assert rows["preset"].tolist() == presets
    assert rows["config"].nunique() == 3
    assert rows["pair_mean"][0] < rows["pair_mean"][1]


@pytest.mark.parametrize(
    ("preset", "words"),
    [
        ("paper(rounds=-1)", r"preset 'paper\(rounds=-1\)': rounds must be"),
        ("paper(round=1)", "did you mean 'rounds'"),
        ("paper(rounds=1", "lacks its last parenthesis"),
        ("paper(rounds)", "parameters of preset paper"),
        ("default(rounds=1)", "takes no parameters"),
        ("papr(rounds=1)", "preset is one of default, paper"),
    ],
)
def test_a_sweep_refuses_wrong_ones_before_any_run(preset, words):
    with pytest.raises(InputError, match=words):
        sweep(table(100), [5], presets=["paper", preset], schema=SCHEMA, models=False)


def test_a_sweep_on_the_command_line_keeps_a_preset_in_one_piece(folder, capsys):
    table(300).to_csv("t.csv", index=False)
    preset = "paper,paper(rounds=1, duplication=(0.5, 1))"
    command = ("sweep", "t.csv", "--epsilon", 1, "--seeds", 1, "--out", "r.csv", "--no-models")
    assert run(capsys, *command, "--preset", preset).code == 0
    assert pd.read_csv("r.csv")["preset"].tolist() == ["paper", "paper(rounds=1, duplication=(0.5, 1))"]


@pytest.mark.parametrize("draws", [None, 3])
def test_pairs_that_the_exponential_mechanism_draws_cost_the_share_of_selection(draws):
    model = fitted(select="exponential", **({} if draws is None else {"draws": draws}))
    (share,) = [share for question, share in questions(model).items() if "exponential mechanism" in question]
    assert share == pytest.approx(0.1)
    assert not any("every pair" in question for question in questions(model))
    assert model.ledger_.accounting == "classical"  # a bound from zCDP, in which a draw has this cost
    assert model.ledger_.rho <= model.ledger_.budget
    if draws:
        (spend,) = [spend for spend in model.ledger_.spends if "exponential" in spend.what]
        assert spend.answers == draws


def test_a_rule_of_selection_is_saved_and_checked(tmp_path):
    model = fitted(select="exponential", draws=2)
    model.save(tmp_path / "m.privsyn")
    pd.testing.assert_frame_equal(load(tmp_path / "m.privsyn").sample(50, seed=1), model.sample(50, seed=1))
    assert model.parameters == {"select": "exponential", "draws": 2}
    for odd in ({"select": "greedily"}, {"select": None}, {"draws": 0}, {"draws": 1.5}):
        with pytest.raises(InputError):
            PrivSyn.paper(1.0, **odd)
