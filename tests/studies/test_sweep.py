"""A sweep writes one row for each run, resumes after an interruption, and says that it is not private."""

import gzip
import sys

import numpy as np
import pandas as pd
import pytest
import yaml
from command import run
from hypothesis import given
from refusals import refuses
from strategies import tables

import privsyn
from privsyn import Categorical, Database, InputError, Schema, Table, sweep
from privsyn.errors import CutWarning
from privsyn.studies.sweep import Bench, Run, SweepSettings
from privsyn.table.database.yaml_form import database_to_plain

SCHEMA = Schema({"a": Categorical(["x", "y"]), "b": Categorical(["x", "y"]), "c": Categorical(["x", "y"])})


def table(rows=400):
    """The second column repeats the first; the third is independent."""
    first, third = np.random.default_rng(0).choice(["x", "y"], (2, rows))
    return pd.DataFrame({"a": first, "b": first, "c": third})


def swept(out=None, epsilons=(1.0, 10.0), **settings):
    """Of the quick method: what a sweep keeps does not depend on it."""
    settings = {"presets": ("paper",)} | settings
    return sweep(table(), epsilons, seeds=2, schema=SCHEMA, models=False, out=out, **settings)


@pytest.mark.slow
def test_each_run_has_a_row_with_its_settings_costs_and_scores(folder):
    rows = swept("r.csv", presets=("default", "paper"))
    assert rows[["epsilon", "seed", "preset"]].apply(tuple, axis=1).tolist() == [
        (epsilon, seed, preset) for epsilon in (1, 10) for seed in (0, 1) for preset in ("default", "paper")
    ]
    assert rows["config"].nunique() == 8
    assert (rows["version"] == privsyn.__version__).all()
    assert (rows[["fit_seconds", "sample_seconds"]] > 0).all(axis=None)
    assert (rows["real_rows"] == 320).all()
    assert not rows["private"].any()
    assert {"pair_mean", "pair_mean_real", "triple_mean", "distinct_rows"} <= set(rows)
    pd.testing.assert_frame_equal(pd.read_csv("r.csv", dtype={"config": str}), rows, check_dtype=False)


@pytest.mark.slow
def test_more_budget_less_error():
    means = swept().groupby("epsilon")["pair_mean"].mean()
    assert means[10.0] < means[1.0]


@pytest.mark.slow
def test_an_interrupted_sweep_resumes(folder, monkeypatch):
    def stop(stage, done, total):
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        swept("r.csv", progress=stop)
    measured = []
    monkeypatch.setattr(
        Bench,
        "measure",
        lambda bench, run: (
            measured.append(run)
            or {"config": bench.key(run), "table": bench.table, "settings": bench.settings}
        ),
    )
    assert len(swept("r.csv")) == 4
    assert measured == [Run(10.0, 1, "paper")]
    swept("r.csv")
    assert len(measured) == 1
    swept("r.csv", delta=1e-6)
    assert len(measured) == 5


def test_a_run_can_be_repeated():
    bench = Bench.of(table(), SCHEMA, SweepSettings(models=False))
    once, again = bench.measure(Run(1.0, 7)), bench.measure(Run(1.0, 7))
    for changing in ("fit_seconds", "sample_seconds", "memory_mb"):
        once.pop(changing), again.pop(changing)
    assert once == again


def test_the_key_differs_with_everything_that_determines_a_row():
    keys = [
        Bench.of(table(), SCHEMA).key(Run(1.0, 0)),
        Bench.of(table(), SCHEMA).key(Run(2.0, 0)),
        Bench.of(table(), SCHEMA).key(Run(1.0, 1)),
        Bench.of(table(), SCHEMA).key(Run(1.0, 0, "paper")),
        Bench.of(table(), SCHEMA, SweepSettings(target="a")).key(Run(1.0, 0)),
        Bench.of(table(), SCHEMA, SweepSettings(delta=1e-6)).key(Run(1.0, 0)),
        Bench.of(table(), SCHEMA, SweepSettings(models=False)).key(Run(1.0, 0)),
        Bench.of(table(), None).key(Run(1.0, 0)),
        Bench.of(table().rename(columns={"c": "d"}), None).key(Run(1.0, 0)),
        Bench.of(table().assign(c=1), None).key(Run(1.0, 0)),
    ]
    assert len(set(keys)) == len(keys)
    assert Bench.of(table(), SCHEMA).key(Run(1, 0)) == keys[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.replace("y", "x"),
        lambda frame: frame.iloc[::-1],
        lambda frame: frame.iloc[:-1],
        lambda frame: frame.assign(c=frame.c.where(frame.index != 7)),
        lambda frame: frame.astype("category"),
        lambda frame: frame[["b", "a", "c"]],
    ],
)
def test_runs_on_another_table_are_refused(folder, change):
    """Their scores would be taken for scores of this table."""
    settings = {"epsilons": (1.0,), "presets": ("paper",), "out": "r.csv"}
    swept(**settings)
    kept = (folder / "r.csv").read_bytes()
    with pytest.raises(InputError, match=r"^r.csv: contains runs on another table"):
        sweep(change(table()), seeds=2, schema=SCHEMA, models=False, **settings)
    assert (folder / "r.csv").read_bytes() == kept


def test_a_table_has_the_same_digest_from_every_source(folder):
    frame = table()
    frame.to_csv("t.csv", index=False)
    assert Bench.of("t.csv", SCHEMA).table == Bench.of("t.csv", SCHEMA).table
    assert Bench.of(frame.set_index(np.arange(400) * 2), SCHEMA).table == Bench.of(frame, SCHEMA).table


@pytest.mark.slow
def test_rows_of_a_version_that_did_not_note_the_table_are_refused(folder):
    rows = swept("r.csv", epsilons=(1.0,))
    rows.drop(columns=["table", "settings"]).to_csv("r.csv", index=False)
    with pytest.raises(InputError, match="without a digest of the table"):
        swept("r.csv")


@pytest.mark.slow
def test_rows_of_other_settings_stay_in_the_file_and_out_of_the_result(folder):
    first = swept("r.csv", epsilons=(1.0,))
    other = swept("r.csv", epsilons=(1.0,), delta=1e-6)
    again = swept("r.csv", epsilons=(1.0, 2.0))
    assert set(other.delta) == {1e-6}
    assert len(other) == 2
    assert again.epsilon.tolist() == [1, 1, 2, 2]
    assert set(again.delta) == {1e-9}
    assert again.config.tolist()[:2] == first.config.tolist()
    assert len(pd.read_csv("r.csv")) == 6


@pytest.mark.slow
@given(tables())
def test_every_table_has_a_digest(drawn):
    _, frame = drawn
    assert Bench(frame, frame, None).table == Bench(frame.copy(), frame.copy(), None).table


def test_held_out_rows_are_used_by_no_run():
    bench = Bench.of(table().assign(row=range(400)), None)
    assert sorted([*bench.train["row"], *bench.test["row"]]) == list(range(400))
    assert len(bench.test) == 80


def test_impossible_settings_are_refused(folder):
    (folder / "notes.csv").write_text("a,b\n1,2\n")
    for settings, words in (
        ({"out": "notes.csv"}, "no results"),
        ({"presets": ("best",)}, "preset"),
        ({"epsilons": (-1.0,)}, "epsilon"),
        ({"epsilons": 1}, r"epsilons must be a list: give \[1\]"),
        ({"epsilons": ()}, "epsilons is an empty list"),
        ({"presets": "paper"}, r"give \['paper'\]"),
        ({"out": "absent/r.csv"}, "there is no folder"),
    ):
        with pytest.raises(InputError, match=words):
            swept(**settings)
    with pytest.raises(InputError, match="too few rows"):
        Bench.of(table(2))


# Methods of the user


def shuffled(rows, epsilon, seed):
    """Each column in an order of its own."""
    rng = np.random.default_rng(seed)
    rows["c"] = "x"  # it may change its copy
    return pd.DataFrame({name: rng.permutation(cells) for name, cells in rows.items()})


def test_a_method_of_the_user_is_measured_like_a_preset():
    rows = swept(presets=None, methods={"mine": shuffled}, epsilons=[1.0])
    assert rows["preset"].tolist() == ["mine", "mine"]
    assert (rows["real_rows"] == 320).all()
    assert rows["pair_mean"].gt(rows["pair_mean_real"]).all()
    assert rows["fit_seconds"].ge(0).all()
    assert rows["sample_seconds"].isna().all()  # a function is one step


def test_a_method_whose_text_has_changed_is_measured_again(folder):
    swept("r.csv", presets=None, methods={"mine": lambda rows, epsilon, seed: rows}, epsilons=[1.0])
    rows = swept("r.csv", presets=None, methods={"mine": shuffled}, epsilons=[1.0])
    assert len(rows) == 2
    assert rows["pair_mean"].gt(0).all()
    assert len(pd.read_csv("r.csv")) == 4


def failing(rows, epsilon, seed):
    raise ValueError(rows["a"][0])


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({"mine": failing}, "method 'mine' raised ValueError"),
        ({"mine": lambda rows, epsilon, seed: None}, "method 'mine' returned None"),
        ({"mine": lambda rows, epsilon, seed: rows[["a"]]}, "method 'mine': .*'b'"),
        ({"mine": lambda rows, epsilon, seed: 5}, "method 'mine': "),
        ({"mine": lambda rows: rows}, "three arguments"),
        ({"mine": 5}, "method 'mine': .* got 5"),
        ({"paper": shuffled}, "method 'paper': this name is taken"),
        ([shuffled], "with their names"),
        (["nowhere:method"], "method 'nowhere:method': it cannot be imported"),
        (["method"], "module:function"),
        ("method", "methods is a mapping"),
    ],
)
def test_a_method_that_cannot_be_measured_is_refused_in_one_line(methods, words):
    with refuses(words):
        swept(presets=None, methods=methods, epsilons=[1.0])


def test_the_command_runs_a_method_of_the_working_folder(folder, capsys):
    (folder / "own_methods_here.py").write_text("def same(table, epsilon, seed):\n    return table\n")
    done = run(capsys, *SWEEP, "--out", "r.csv", "--method", "own_methods_here:same")
    assert done.code == 0
    rows = pd.read_csv("r.csv")
    assert rows["preset"].tolist() == ["same"] * 2
    assert (rows["pair_mean"] == 0).all()


# What is asked for, and what is in the file


def test_what_is_asked_for_twice_is_run_once(folder, capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(
        Bench,
        "measure",
        lambda bench, run: (
            asked.append(run)
            or {
                "config": bench.key(run),
                "table": bench.table,
                "settings": bench.settings,
                "preset": run.method,
                "epsilon": run.epsilon,
                "seed": run.seed,
            }
        ),
    )
    options = ("--epsilon", "5,0.5", "--preset", "paper", "--preset", "default,paper")
    assert run(capsys, *SWEEP, *options, "--out", "r.csv").code == 0
    assert sorted(map(str, asked)) == sorted(map(str, set(asked)))
    assert {(made.epsilon, made.method) for made in asked} == {
        (epsilon, preset) for epsilon in (0.5, 5.0) for preset in ("default", "paper")
    }


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize("cut", [1, 3, 200])
def test_a_run_whose_line_was_cut_is_repeated(folder, cut, ending):
    out = f"r.{ending}"
    settings = {"presets": None, "methods": {"mine": shuffled}, "epsilons": [1.0]}
    whole = swept(out, **settings)
    read = gzip.open if ending.endswith("gz") else open
    with read(out, "rt") as file:
        text = file.read()
    with read(out, "wt") as file:
        file.write(text[:-cut])
    with pytest.warns(CutWarning, match=f"{out}: 1 line cut short"):
        again = swept(out, **settings)
    changing = ["fit_seconds", "memory_mb"]
    pd.testing.assert_frame_equal(
        again.drop(columns=changing), whole.drop(columns=changing), check_dtype=False, check_exact=False
    )


# On the command line

SWEEP = ("sweep", "data.csv", "--schema", "schema.yaml", "--epsilon", "0.5,5", "--seeds", 1, "--no-models")
QUICK = (*SWEEP, "--preset", "paper", "--out", "r.csv")


@pytest.mark.slow
def test_the_command_shows_progress_and_says_that_it_is_not_private(folder, capsys):
    done = run(capsys, *SWEEP, "--out", "r.csv")
    assert done.code == 0
    assert done.err.splitlines()[0] == "0 of 2 runs"
    assert "1 of 2 runs, about" in done.err
    assert "not private" in done.out
    assert len(pd.read_csv("r.csv")) == 2


@pytest.mark.slow
def test_the_command_says_what_the_file_keeps_and_refuses_another_table(folder, capsys):
    assert "also keeps" not in run(capsys, *QUICK).out
    other = run(capsys, *QUICK, "--delta", 1e-6)
    assert other.out.startswith("r.csv: 2 runs, one row each.")
    assert "r.csv: also keeps 2 runs of other settings or another version" in other.out
    changed = pd.read_csv("data.csv")
    changed.loc[0, "age"] += 1
    changed.to_csv("data.csv", index=False)
    refused = run(capsys, *QUICK)
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "r.csv: contains runs on another table" in refused.err


def test_a_table_with_a_policy_is_not_swept(folder, capsys, monkeypatch):
    monkeypatch.setattr(Bench, "of", None)
    (folder / "privsyn.policy.yaml").write_text("epsilon: 2\ndelta: 1e-8\n")
    done = run(capsys, *QUICK)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert "privsyn.policy.yaml: allows no sweep of data.csv: its runs are seeded" in done.err
    assert not (folder / "r.csv").exists()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("--epsilon", "1,0"), "epsilon"),
        (("--delta", 2), "delta"),
        (("--target", "jbo"), "target 'jbo' is not one of the columns"),
        (("--schema", "other.yaml"), "'shoe'"),
        (("--out", "r.json"), "r.json: results are CSV"),
        (("--out", "r.parquet"), "r.parquet: results are CSV"),
        (("--preset", "default,best"), "'best'"),
    ],
)
def test_what_any_run_would_refuse_is_refused_before_the_first(folder, capsys, monkeypatch, wrong, words):
    monkeypatch.setattr(Bench, "measure", None)
    (folder / "other.yaml").write_text("columns:\n  shoe: {kind: categorical, values: [a, b]}\n")
    done = run(capsys, *SWEEP, "--out", "r.csv", *wrong)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert words in done.err
    assert not list(folder.glob("r.*"))


@pytest.mark.slow("each case")
@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_plot_of_errors_against_epsilon(folder, capsys, ending):
    pytest.importorskip("matplotlib")
    done = run(capsys, *QUICK, "--plot", f"r.{ending}")
    assert done.code == 0
    plot = (folder / f"r.{ending}").read_bytes()
    assert plot.startswith(b"\x89PNG") if ending == "png" else b"<svg" in plot


def test_mistakes_are_reported_before_the_first_run(folder, capsys, monkeypatch):
    monkeypatch.setattr(Bench, "of", None)
    assert "--epsilon" in run(capsys, "sweep", "data.csv", "--out", "r.csv", "--epsilon", "1,many").err
    assert "ending" in run(capsys, *SWEEP, "--out", "r.csv", "--plot", "r.txt").err
    assert "too" in run(capsys, *SWEEP, "--out", "data.csv").err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "privsyn[plot]" in run(capsys, *SWEEP, "--out", "r.csv", "--plot", "r.png").err


# Linked tables

PAIRS = Table(Schema({name: Categorical(["x", "y"]) for name in "ab"}), key="home")
ROOMS = Table(SCHEMA, parent="homes", link="home")
LINKED = Database({"homes": PAIRS, "rooms": ROOMS})


def homes(number=300):
    """Homes of two rooms; these repeat the first column of their home."""
    root = table(number)[["a", "b"]].assign(home=range(number))
    of = np.repeat(np.arange(number), 2)
    rooms = table(2 * number).assign(a=root["a"].to_numpy()[of], home=of)
    return {"homes": root, "rooms": rooms}


def swept_homes(out=None, tables=None, **settings):
    settings = {"epsilons": (1.0, 50.0), "seeds": 1, "schema": LINKED, "models": False, "out": out} | settings
    return sweep(homes() if tables is None else tables, **settings)


@pytest.mark.slow
def test_linked_tables_have_the_scores_of_links_and_of_each_table(folder):
    rows = swept_homes("r.csv")
    assert rows["real_rows"].tolist() == [900, 900]
    assert {"children_mean", "parent_child_mean", "next_mean", "rooms.pair_mean", "homes.pair_mean"} <= set(
        rows
    )
    assert rows["parent_child_mean"][1] < rows["parent_child_mean"][0]
    again = swept_homes("r.csv", progress=lambda stage, done, total: None)
    pd.testing.assert_frame_equal(again, rows, check_dtype=False)
    with pytest.raises(InputError, match="runs on another table"):
        swept_homes("r.csv", tables=homes(200))


@pytest.mark.slow
def test_the_long_form_says_which_linked_table_a_score_is_about():
    long = swept_homes(epsilons=[50.0], long=True)
    of = long[long["of"] == "synthetic"].groupby("linked_table")["score"].agg(set)
    assert set(of.index) == {"", "homes", "rooms"}
    assert "next_mean" in of[""] - of["rooms"]
    assert "pair_mean" in of["rooms"] - of[""]
    assert "linked_table" not in swept(epsilons=[1.0], long=True)


@pytest.mark.slow
def test_a_sweep_of_linked_tables_reads_what_fit_reads(folder):
    for name, frame in homes().items():
        (folder / "made").mkdir(exist_ok=True)
        frame.to_csv(folder / "made" / f"{name}.csv", index=False)
    rows = swept_homes(tables=folder / "made", epsilons=[50.0])
    assert rows["name"].tolist() == ["made"]
    assert rows["parent_child_mean"][0] == swept_homes(epsilons=[50.0])["parent_child_mean"][0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"target": "a"}, "target"),
        ({"presets": ["paper"]}, "method"),
        ({"tables": homes()["homes"]}, "mapping"),
        ({"tables": {"homes": homes()["homes"]}}, "rooms"),
    ],
)
def test_what_linked_tables_do_not_take_is_refused_before_a_run(asked, said):
    with pytest.raises(InputError, match=said):
        swept_homes(**asked)


@pytest.mark.slow
def test_the_command_sweeps_a_folder_of_linked_tables(folder, capsys):
    (folder / "made").mkdir()
    for name, frame in homes().items():
        frame.to_csv(folder / "made" / f"{name}.csv", index=False)
    (folder / "homes.yaml").write_text(yaml.safe_dump(database_to_plain(LINKED)))
    options = ("--schema", "homes.yaml", "--epsilon", 20, "--seeds", 1, "--no-models", "--long", "long.csv")
    found = run(capsys, "sweep", "made", *options, "--out", "r.csv")
    assert found.code == 0
    assert "rooms.pair_mean" in pd.read_csv("r.csv")
    assert set(pd.read_csv("long.csv", keep_default_na=False)["linked_table"]) == {"", "homes", "rooms"}
