"""A setting is declared once: the model, the command line and the other owners know it from its field."""

import inspect
from dataclasses import fields

import pandas as pd
import pytest
from command import run

import privsyn
from privsyn import Categorical, Database, InputError, PrivSyn, Schema, Table
from privsyn.cli.common.options import spelling_of
from privsyn.cli.synth import synth
from privsyn.settings import AGREED, Settings

OPTIONS = [each for each in fields(Settings) if "help" in each.metadata]


def test_the_parameters_of_the_model_are_the_settings():
    names = [each.name for each in fields(Settings)]
    assert list(inspect.signature(PrivSyn).parameters) == names == list(PrivSyn(1.0).get_params())


@pytest.mark.parametrize("setting", OPTIONS, ids=lambda setting: setting.name)
def test_each_setting_with_a_help_is_an_option_of_synth_with_its_default(setting):
    option = inspect.signature(synth).parameters[setting.name]
    assert option.default == (False if "flag" in setting.metadata else setting.default)
    assert setting.metadata["help"] in option.annotation.__metadata__[0].help


def test_a_flag_gives_the_value_that_it_means(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("privsyn.PrivSyn", lambda **settings: seen.append(settings) or PrivSyn(epsilon=-1))
    for flags in ({}, {"nullable": True, "method": True}):
        (tmp_path / "t.csv").write_text("a\n1\n")
        with pytest.raises(InputError):
            synth(tmp_path / "t.csv", tmp_path / "o.csv", epsilon=1.0, **flags)
    assert [(one["nullable"], one["method"]) for one in seen] == [(True, "default"), (False, "published")]


@pytest.mark.parametrize(
    ("settings", "words", "on_the_command_line"),
    [
        ({"epsilon": -1}, "epsilon must be a finite number", "--epsilon must be a finite number"),
        ({"memory": "much"}, "memory must be", "--memory must be"),
        ({"target": "c"}, "target 'c' is not one", "--target 'c' is not one"),
    ],
)
def test_a_message_names_the_setting_in_python_and_the_option_on_the_command_line(
    settings, words, on_the_command_line, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=f"^{words}"):
        PrivSyn(**{"epsilon": 1.0} | settings).fit("t.csv")
    options = [f"{spelling_of(name)}={value}" for name, value in settings.items()]
    said = run(capsys, "synth", "t.csv", "o.csv", "--epsilon=1", *options)
    assert (said.code, on_the_command_line in said.err) == (2, True)


def test_owners_compare_epsilon_and_delta_as_doubles():
    whole, double = Settings(1, delta=1e-9), Settings(1.0, delta=1e-9)
    assert repr(whole.agreed) == repr(double.agreed)
    assert set(AGREED) >= {"epsilon", "delta", "unit", "rows_per_unit", "target"}


@pytest.mark.filterwarnings("ignore::privsyn.errors.NoiseWarning")
def test_the_budget_and_the_share_of_tests_must_suffice_for_the_largest_bound():
    """The bound is chosen during the run, which must not fail halfway."""
    tests = {"share": 0.01, "criteria": [{"proportion": {"a": 1}, "within": 0.1}]}
    for few, settings in (1e-6, {}), (1e-5, {"accept": tests}):
        PrivSyn(few, 1e-9, unit="who", rows_per_unit=1, **settings)
        for bound in (None, 10**8, 16):
            with pytest.raises(InputError, match="exceeds every count"):
                PrivSyn(few, 1e-9, unit="who", rows_per_unit=bound, **settings)


WEAK = {
    "epsilon": {"epsilon": 1e9},
    "just above": {"epsilon": 100.1},
    "delta": {"epsilon": 1.0, "delta": 0.5},
}


@pytest.mark.parametrize("promise", WEAK)
def test_a_promise_of_next_to_nothing_needs_a_flag_wherever_it_is_made(promise):
    given = WEAK[promise]
    epsilon, delta = given["epsilon"], given.get("delta", 1e-9)
    answers = pd.DataFrame({"a": ["x", "y"] * 50})
    schema = Schema({"a": Categorical(["x", "y"])})
    runs = {
        "model": lambda **flag: PrivSyn(**given, **flag),
        "published": lambda **flag: PrivSyn.paper(epsilon, delta, **flag),
        "linked": lambda **flag: PrivSyn(epsilon, delta, Database({"t": Table(schema)}), **flag),
        "plan": lambda **flag: privsyn.plan(schema, epsilon, delta, rows=100, **flag),
        "sweep": lambda **flag: privsyn.sweep(
            answers, [epsilon], seeds=1, delta=delta, schema=schema, models=False, **flag
        ),
    }
    for name, run_ in runs.items():
        with pytest.raises(InputError, match="promises next to nothing: take an epsilon of 10 at most"):
            run_()
        assert run_(allow_weak_privacy=True) is not None, name
    model = PrivSyn(1.0)
    with pytest.raises(InputError, match="insist with allow_weak_privacy"):
        model.set_params(**given)
    assert PrivSyn(100.0, 1e-3).epsilon == 100.0


def test_respondents_who_lose_nearly_everything_need_the_flag_too():
    columns = {f"a{place}": Categorical(["x", "y"], nullable=False, keep=1 - 1e-9) for place in range(6)}
    answers = pd.DataFrame(dict.fromkeys(columns, ["x", "y"] * 5))
    with pytest.raises(InputError, match="promises next to nothing"):
        privsyn.randomize(answers, Schema(columns))
    assert privsyn.randomize(answers, Schema(columns), allow_weak_privacy=True).ledger.promised_epsilon > 100
