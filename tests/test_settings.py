"""A setting is declared once: the model, the command line and the other owners know it from its field."""

import inspect
from dataclasses import fields

import pytest
from command import run

from privsyn import InputError, PrivSyn
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
        ({"rows_per_unit": 2}, "rows_per_unit needs unit, the", "--rows-per-unit needs --unit, the"),
        ({"epsilon": -1}, "epsilon must be a finite number", "--epsilon must be a finite number"),
        (
            {"method": "published", "target": "a"},
            "leave out target, or method",
            "leave out --target, or --paper",
        ),
        ({"memory": "much"}, "memory must be", "--memory must be"),
        ({"target": "c"}, "target 'c' is not one", "--target 'c' is not one"),
    ],
)
def test_a_message_names_the_setting_in_python_and_the_option_on_the_command_line(
    settings, words, on_the_command_line, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=f"^(method 'published' takes no target: )?{words}"):
        PrivSyn(**{"epsilon": 1.0} | settings).fit("t.csv")
    options = [
        "--paper" if value == "published" else f"{spelling_of(name)}={value}"
        for name, value in settings.items()
    ]
    said = run(capsys, "synth", "t.csv", "o.csv", "--epsilon=1", *options)
    assert (said.code, on_the_command_line in said.err) == (2, True)


def test_owners_compare_epsilon_and_delta_as_doubles():
    whole, double = Settings(1, delta=1e-9), Settings(1.0, delta=1e-9)
    assert repr(whole.agreed) == repr(double.agreed)
    assert set(AGREED) >= {"epsilon", "delta", "unit", "rows_per_unit", "target"}
