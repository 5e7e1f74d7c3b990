"""Where error comes from: each stage by its own yardstick, and on the private report alone."""

import numpy as np
import pandas as pd
import pytest
from command import fill, run

from privsyn import Categorical, PrivSyn, Schema
from privsyn.studies.error_trace import trace

SCHEMA = Schema({name: Categorical(list("vwxyz"), nullable=False) for name in "abcd"})


def table(rows=3000):
    """The second column follows the first; the others are by themselves."""
    rng = np.random.default_rng(0)
    a, b, c, d = rng.integers(0, 5, (4, rows))
    codes = [a, np.where(rng.random(rows) < 0.7, a, b), c, d]
    return pd.DataFrame({name: np.array(list("vwxyz"))[c] for name, c in zip("abcd", codes, strict=True)})


def traced(epsilon, method="default"):
    model = PrivSyn(epsilon, 1e-9, SCHEMA, seed=0, method=method, allow_weak_privacy=True).fit(table())
    return {o.title: o for o in trace(model.release_, table(), model.sample())}


@pytest.mark.parametrize("method", ["default", "published"])
def test_every_pair_is_asked_or_not(method):
    found = traced(0.3, method)
    asked = {o.pairs for title, o in found.items() if title.startswith("asked")}
    others = [o.pairs for title, o in found.items() if title.startswith("not asked")]
    assert len(asked) == 1
    assert asked.pop() + sum(others) == 6


def test_noise_is_largest_and_consistency_takes_some_off():
    found = traced(0.3)
    noisy, consistent, made = (o.error for title, o in found.items() if title.startswith("asked"))
    assert noisy > 1.3 * consistent
    assert abs(made - consistent) < 0.02  # 3,000 rows of 25 cells


def test_without_noise_nothing_is_off_but_by_the_rounding_of_rows():
    assert all(o.error < 0.01 for o in traced(10_000.0).values())


def test_a_synthetic_table_that_is_off_shows_in_the_last_stage_alone():
    model = PrivSyn(1_000.0, 1e-9, SCHEMA, seed=0, allow_weak_privacy=True).fit(table())
    rng = np.random.default_rng(1)
    shuffled = model.sample().apply(lambda column: rng.permutation(column.to_numpy()))
    found = {o.title: o.error for o in trace(model.release_, table(), shuffled)}
    assert found["asked: made consistent"] < 0.01
    assert found["asked: in the synthetic table"] > 0.05


def test_the_private_report_shows_it(tmp_path, monkeypatch, capsys):
    fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    settings = ("--epsilon", 1, "--schema", "schema.yaml", "--report", "r.html")
    assert run(capsys, "synth", "data.csv", "out.csv", *settings).code == 0
    text = (tmp_path / "r.html").read_text()
    assert "Where the error comes from" in text
    assert "in the synthetic table" in text
