"""A sweep with metrics and models of the user's choice, in the long form, and beside other programs."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from command import run

from privsyn import InputError, evaluate, sweep
from privsyn.evaluation.comparison import Comparison
from privsyn.evaluation.metric import Metric, for_each_table
from privsyn.evaluation.registry import BUILT_IN, METRICS, add_metric
from privsyn.studies.results import long_form, read_peers

OWN = """
import numpy as np

def other_modes(real, other):
    modes = [table[["a", "b"]].mode().iloc[0] for table in (real, other)]
    return float((modes[0] != modes[1]).mean())

def failing(real, other):
    raise KeyError(real["a"].iloc[0])

def wordy(real, other):
    return real["a"].iloc[0]

def is_late(real, other):
    if len(real) > 500:
        raise ZeroDivisionError
    return 0.0

number = 7
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    a = rng.choice(["x", "y", "z"], 600)
    table = pd.DataFrame({"a": a, "b": np.where(rng.random(600) < 0.8, a, "x"), "n": rng.normal(0, 1, 600)})
    table.to_csv(tmp_path / "survey.csv", index=False)
    (tmp_path / "own_metrics.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in METRICS.keys() - BUILT_IN:
        METRICS.pop(name)
    sys.modules.pop("own_metrics", None)


@pytest.mark.slow
def test_a_sweep_has_own_metrics_a_name_and_a_long_form(folder):
    settings = {"seeds": 1, "models": False, "metrics": ["own_metrics:other_modes"]}
    rows = sweep("survey.csv", [1.0], **settings)
    assert rows["name"].tolist() == ["survey"]
    assert 0 <= rows["other_modes"][0] <= 1
    assert rows["other_modes_real"][0] <= 1
    long = sweep("survey.csv", [1.0], **settings, long=True)
    again = long_form(rows)
    assert long.drop(columns="config").equals(again.drop(columns="config"))
    modes = again[again["score"] == "other_modes"].set_index("of")["value"]
    assert modes["synthetic"] == rows["other_modes"][0]
    assert set(modes.index) == {"synthetic", "real", "held_out", "independent"}


def of_codes(real, other):
    return float((real.codes[:5] == other.codes[:5]).mean())


def of_frames(real, other):
    assert list(real) == list(other) == ["a", "b", "n"]
    assert real.dtypes.equals(other.dtypes)
    real["n"] = 0.0  # of its own: no other metric is given this table
    return float(other["n"].mean())


def test_metrics_take_data_frames_with_the_cells_of_the_tables_and_codes_on_request(folder, monkeypatch):
    monkeypatch.setitem(METRICS, "of_frames", Metric("frames", for_each_table(of_frames)))
    monkeypatch.setitem(METRICS, "of_codes", Metric("codes", for_each_table(of_codes, codes=True)))
    table = pd.read_csv("survey.csv")
    scores = evaluate(table, table.assign(n=table["n"] + 1), models=False)
    assert scores.of_frames.synthetic == pytest.approx(table["n"].mean() + 1)
    assert abs(scores.of_frames.independent - table["n"].mean()) < 0.5  # a fixed seed
    assert 0 <= scores.of_codes.synthetic <= 1
    comparison = Comparison.of(table, table, None)
    other = comparison.independent
    assert np.array_equal(other.numbers["n"], other.frame()["n"])
    again = other.unlink(50, np.random.default_rng(0))
    assert np.array_equal(again.numbers["n"], again.frame()["n"])
    assert np.array_equal(again.take(np.array([3, 3])).frame()["n"], again.numbers["n"][[3, 3]])


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ("failing", "metric 'failing' raised KeyError"),
        ("wordy", "metric 'wordy' must return a number; got a str"),
    ],
)
def test_a_metric_that_fails_is_refused_in_one_line_before_any_fit(
    folder, metric, words, monkeypatch, capsys
):
    monkeypatch.setattr("privsyn.studies.sweep.PrivSyn.fit", None)
    place = f"own_metrics:{metric}"
    compare = ("evaluate", "survey.csv", "survey.csv", "--metric", place)
    for command in (("sweep", "survey.csv", "--epsilon", "1", "--out", "r.csv", "--metric", place), compare):
        done = run(capsys, *command)
        assert done.code == 2
        (line,) = done.err.strip().splitlines()[-1:]
        assert words in line
        assert "Traceback" not in done.err
        assert "'x'" not in done.err  # a cell
    assert not (folder / "r.csv").exists()


def test_a_metric_that_fails_on_all_rows_alone_is_named_too(folder, monkeypatch):
    monkeypatch.setattr("privsyn.evaluation.registry.TRIED_ROWS", 100)
    table = pd.read_csv("survey.csv")
    with pytest.raises(InputError, match="metric 'is_late' raised ZeroDivisionError"):
        evaluate(table, table, models=False, metrics=["own_metrics:is_late"])


@pytest.mark.slow
def test_own_metrics_are_other_settings(folder):
    first = sweep("survey.csv", [1.0], seeds=1, models=False, name="one", out="r.csv")
    both = sweep("survey.csv", [1.0], seeds=1, models=False, metrics=["own_metrics:other_modes"], out="r.csv")
    assert first["settings"][0] != both["settings"][0]
    assert pd.read_csv("r.csv")["name"].tolist() == ["one", "survey"]


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("own_metrics:none", "cannot be imported"),
        ("no_such_module:f", "cannot be imported"),
        ("none", "write module:function, or the name of an entry point"),
        ("own_metrics:number", "neither a function nor a Metric"),
        ("builtins:pair_mean", "cannot be imported"),
    ],
)
def test_a_metric_that_is_none_is_refused_before_the_first_run(folder, place, words):
    with pytest.raises(InputError, match=words):
        sweep("survey.csv", [1.0], metrics=[place])


def test_a_metric_may_be_an_entry_point_and_keeps_the_names_of_the_package(folder, monkeypatch):
    class Point:
        def load(self):
            return Metric("modes", lambda comparison: None)

    points = {"modes": [Point()], "pair_mean": [Point()]}
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group, name: points.get(name, []))
    assert add_metric("modes") == "modes"
    assert METRICS["modes"].label == "modes"
    with pytest.raises(InputError, match="there is a metric with this name"):
        add_metric("pair_mean")


@pytest.mark.slow("each case")
@pytest.mark.parametrize("target", ["b", "n"])
def test_models_are_chosen_by_name(folder, target):
    table, names = pd.read_csv("survey.csv"), ["forest", "mlp", "linear", "distilled"]
    scores = evaluate(table, table, target=target, models=names)
    measure = "auc" if target == "b" else "r2"
    assert {f"{model}_{measure}" for model in names} <= set(scores.learning)
    assert "boosting_auc" not in scores.learning
    if target == "b":  # 0.8 of the cells are those of a
        assert min(scores.values[f"{model}_auc"].synthetic for model in names) > 0.8
    for models in ("forest", ["tree"]):
        with pytest.raises(InputError, match="boosting, linear, forest, mlp, distilled"):
            evaluate(table, table, target=target, models=models)


@pytest.mark.slow
def test_the_command_plots_chosen_scores_beside_those_of_others(folder, capsys):
    pytest.importorskip("matplotlib")
    peers = pd.DataFrame({"method": ["MST", "AIM"], "epsilon": [1.0, 1.0], "pair_mean": [0.05, 0.04]})
    peers.to_csv("peers.csv", index=False)
    settings = [
        "--epsilon",
        1,
        "--seeds",
        1,
        "--no-models",
        "--out",
        "r.csv",
        "--metric",
        "own_metrics:other_modes",
    ]
    ran = run(
        capsys,
        *("sweep", "survey.csv", *settings, "--long", "long.csv", "--plot", "p.svg"),
        *("--score", "pair_mean,other_modes", "--peers", "peers.csv"),
    )
    assert ran.code == 0, ran.err
    picture = (folder / "p.svg").read_text()
    assert all(f"<!-- {label} -->" in picture for label in ("MST", "AIM", "other_modes"))
    assert {"score", "of", "value"} <= set(pd.read_csv("long.csv"))
    for extra, words in [
        (["--score", "pair_mean"], "add --plot"),
        (["--plot", "p.svg", "--score", "none"], "no score 'none'"),
        (["--plot", "p.svg", "--peers", "survey.csv"], "method, epsilon, and scores"),
    ]:
        refused = run(capsys, "sweep", "survey.csv", *settings, *extra, "--force")
        assert refused.code == 2
        assert words in refused.err


def test_peers_need_a_score(folder):
    pd.DataFrame({"method": ["MST"], "epsilon": [1.0], "speed": [1]}).to_csv("peers.csv")
    with pytest.raises(InputError, match="scores such as pair_mean"):
        read_peers("peers.csv")
