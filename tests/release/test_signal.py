"""A table is made of a signal and not of noise alone: the released number of rows decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import run

from privsyn import Categorical, Database, InputError, Numerical, PrivSyn, Schema, Table, load
from privsyn.errors import NoSignalWarning

pytestmark = pytest.mark.filterwarnings("ignore::privsyn.errors.NoiseWarning")

SCHEMA = Schema({"age": Numerical(0, 99, integer=True), "sex": Categorical(["F", "M"])})
HOMES = Database(
    {
        "homes": Table(Schema({"region": Categorical(["n", "s"])}), key="home"),
        "trips": Table(Schema({"km": Numerical(0, 9, integer=True)}), parent="homes", link="home"),
    }
)


def people(rows):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(0, 100, rows), "sex": rng.choice(["F", "M"], rows)})


def homes(rows):
    rng = np.random.default_rng(0)
    region, km = rng.choice(["n", "s"], rows), rng.integers(0, 10, 2 * rows)
    trips = pd.DataFrame({"home": np.repeat(np.arange(rows), 2), "km": km})
    return {"homes": pd.DataFrame({"home": range(rows), "region": region}), "trips": trips}


@pytest.mark.parametrize(
    ("table", "schema"), [(people(2000), SCHEMA), (people(2000), None), (homes(500), HOMES)]
)
def test_fit_warns_and_keeps_the_model_and_sample_refuses_noise(table, schema, tmp_path):
    model = PrivSyn(1e-5, schema=schema, seed=3)
    with pytest.warns(NoSignalWarning, match="too little signal: about .* mostly noise"):
        model.fit(table)
    model.save(tmp_path / "m.privsyn")
    for release in (model, load(tmp_path / "m.privsyn")):
        with pytest.raises(InputError, match="too little signal"):
            release.sample()
        with pytest.raises(InputError, match="too little signal"):
            release.draws(2)
        assert len(release.sample(5)) in (2, 5)  # tables, or rows


@pytest.mark.filterwarnings("error:too little signal")
def test_a_warning_that_is_an_error_loses_no_paid_model():
    model = PrivSyn(1e-5, schema=SCHEMA, seed=3).fit(people(100))
    assert model.release_.too_little_signal is not None


@pytest.mark.parametrize("delta", [1e-9, 0])
def test_a_small_table_is_made(delta):
    """Of 100 rows the ratio is 7.5 in the mean, with deviation 1: below 2 with probability 1e-8."""
    model = PrivSyn(1.0, delta, SCHEMA).fit(people(100))
    assert model.release_.too_little_signal is None
    assert len(model.sample()) > 20


@pytest.mark.slow
def test_the_command_writes_the_model_and_no_table(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    people(2000).to_csv("t.csv", index=False)
    settings = ("--epsilon", 1e-5, "--seed", 3)
    done = run(capsys, "synth", "t.csv", "o.csv", *settings, "--rows", 50, "--ledger", "l.json")
    assert (done.code, done.err) == (1, "")
    assert "o.csv: not written: too little signal: about" in done.out
    assert "l.json: all queries" in done.out
    assert "spent on this table so far" in done.out
    rescue = "o.csv.rescue.privsyn"
    assert sorted(map(str, Path().iterdir())) == [
        "l.json",
        rescue,
        "t.csv",
        "t.csv.budget.jsonl",
    ]
    assert "say how many rows: n (--rows)" in run(capsys, "sample", rescue, "o.csv").err
    assert run(capsys, "sample", rescue, "o.csv", "--rows", 7).code == 0
    Path("data").mkdir()
    for name, table in homes(500).items():
        table.to_csv(f"data/{name}.csv", index=False)
    Path("homes.yaml").write_text(
        "tables:\n  homes: {key: home, columns: {region: {kind: categorical, values: [n, s]}}}\n"
        "  trips: {parent: homes, link: home, columns: {km: {kind: numerical, low: 0, high: 9}}}\n"
    )
    linked = run(capsys, "synth", "data", "made", *settings, "--schema", "homes.yaml", "--model", "m.privsyn")
    assert (linked.code, Path("made").exists(), Path("m.privsyn").exists()) == (1, False, True)
    assert "made: not written: too little signal" in linked.out


def test_criteria_lose_no_paid_model_of_noise():
    accept = [{"proportion": {"sex": "F"}, "within": 0.1}]
    model = PrivSyn(0.002, schema=SCHEMA, accept=accept, seed=3).fit(people(50))
    assert model.ledger_.acceptance is not None
    assert model.release_.too_little_signal is not None


def test_of_a_table_of_persons_the_message_counts_persons():
    """Before, the number of persons was said to be one of rows."""
    trips = homes(100)["trips"]
    model = PrivSyn(1e-3, unit="home", identifiers=True, schema=HOMES.tables["trips"].schema, seed=3)
    with pytest.warns(NoSignalWarning, match=r"about [0-9,]+ persons?, .* table of more persons"):
        model.fit(trips)
    with pytest.raises(InputError, match="say how many persons: n"):
        model.sample()


def with_trips(homes_, rows):
    rng = np.random.default_rng(rows)
    trips = pd.DataFrame({"home": rng.integers(0, homes_, rows), "km": rng.integers(0, 10, rows)})
    return {"homes": homes(homes_)["homes"], "trips": trips}


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "is_noise"), [(0, True), (10, True), (1000, False)])
def test_a_further_table_of_noise_is_made_and_named(rows, is_noise):
    """One that nearly no row of the first table has. The ratio is below 0.6, and for 1,000 rows above 10."""
    for seed in range(3):
        release = PrivSyn(1.0, schema=HOMES, seed=seed).fit(with_trips(2000, rows)).release_
        assert release.too_little_signal is None
        assert len(release.sample()["homes"]) > 1000
        named = [loss for loss in release.losses if "mostly noise" in loss.text]
        assert [(loss.column, loss.kind) for loss in named] == [("trips", "number of rows")] * is_noise
        outlook = release.outlooks()["trips"]
        assert ("which are mostly noise: the column is poor" in outlook) is is_noise
