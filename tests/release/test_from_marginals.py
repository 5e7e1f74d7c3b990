"""Releases from counts measured elsewhere: as good as ours, and honest about whose promise it is."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from conftest import LEDGER_SCHEMA
from jsonschema import Draft202012Validator
from known_truth import Network, chain

from privsyn import (
    Categorical,
    Forbidden,
    InputError,
    Numerical,
    PrivSyn,
    Schema,
    from_marginals,
    load,
    report,
)
from privsyn.private.ledger import Ledger

CHAIN = Network(chain(4, values=3, stay=0.7))
NAMES = list(CHAIN.columns)
ROWS, SIGMA = 5000, 15.0
PROMISE = "epsilon 1 at delta 1e-9, by the statistics office"
SEX = Schema({"sex": Categorical(["F", "M"]), "smokes": Categorical(["no", "yes"])})


def noisy(names, seed):
    """The expected counts of some columns, with normal noise."""
    counts = ROWS * CHAIN.margin(*names)
    return counts + np.random.default_rng(seed).normal(scale=SIGMA, size=counts.shape)


def chain_tables():
    sets = [*((name,) for name in NAMES), *combinations(NAMES, 2)]
    return {names: (noisy(names, k), SIGMA**2) for k, names in enumerate(sets)}


def errors(sample):
    return np.mean([CHAIN.error(sample, *pair) for pair in combinations(NAMES, 2)])


def test_given_counts_make_a_table_as_good_as_measured_ones():
    """The same number of tables with about the same noise: epsilon 1 gives each a sigma of 14."""
    given = from_marginals(CHAIN.schema, chain_tables(), PROMISE).sample(ROWS, seed=0)
    table = CHAIN.draw(ROWS, np.random.default_rng(0))
    ours = PrivSyn(1.0, 1e-9, CHAIN.schema, seed=0).fit(table).sample(ROWS, seed=0)
    assert errors(given) < 1.2 * errors(ours)
    assert errors(given) < 0.02


def test_the_intervals_of_given_counts_hold():
    """36 + 9 * 3 intervals of 95 %: fewer than 80 % hold with probability below 1e-6."""
    accuracy = from_marginals(CHAIN.schema, chain_tables()).accuracy_
    held = []
    for names in accuracy.tables["columns"]:
        counts = accuracy.counts(*names)
        exact = (ROWS * CHAIN.margin(*names)).ravel()
        held.extend((counts["low"] <= exact) & (exact <= counts["high"]))
    assert np.mean(held) > 0.8


def test_pairs_inform_columns_and_bigger_tables_inform_pairs():
    triples = {names: (noisy(names, 7), SIGMA**2) for names in combinations(NAMES, 3)}
    release = from_marginals(CHAIN.schema, triples)
    assert {2, 3} < set(release.accuracy_.tables["order"])
    assert errors(release.sample(ROWS, seed=0)) < 0.03


def test_numbers_may_be_counted_in_intervals_of_several_tables():
    schema = Schema(
        {
            "age": Numerical(0, 99, integer=True, nullable=False),
            "sex": Categorical(["F", "M"], nullable=False),
        }
    )
    tens = [pd.Interval(10 * k, 10 * k + 10, closed="left") for k in range(10)]
    ages = pd.DataFrame({"age": tens, "count": np.full(10, 100.0), "variance": 1.0})
    halves = [pd.Interval(0, 29, closed="both"), pd.Interval(30, 99, closed="both")]
    pair = pd.DataFrame(
        {"age": halves * 2, "sex": ["F"] * 2 + ["M"] * 2, "count": [290.0, 10, 10, 690], "variance": 1.0}
    )
    sample = from_marginals(schema, [ages, pair]).sample(1000, seed=0)
    assert sample["age"].between(0, 99).all()
    assert abs((sample["age"] < 10).mean() - 0.1) < 0.02
    assert ((sample["age"] < 30) == (sample["sex"] == "F")).mean() > 0.9


def test_missing_cells_are_made_only_where_they_were_counted():
    counted = pd.DataFrame({"sex": ["F", "M", None], "count": [50.0, 30.0, 20.0], "variance": 1.0})
    plain = pd.DataFrame({"smokes": ["no", "yes"], "count": [60.0, 40.0], "variance": 1.0})
    sample = from_marginals(SEX, [counted, plain]).sample(100, seed=0)
    assert 0.1 < sample["sex"].isna().mean() < 0.3
    assert not sample["smokes"].isna().any()


def test_the_last_place_of_an_array_may_be_that_of_missing_cells():
    tables = {"sex": ([50.0, 30.0, 20.0], 1.0), ("smokes", "sex"): ([[30.0, 20, 10], [20, 10, 10]], 1.0)}
    sample = from_marginals(SEX, tables).sample(100, seed=0)
    assert 0.1 < sample["sex"].isna().mean() < 0.3
    assert not sample["smokes"].isna().any()


def test_constraints_hold_in_given_counts():
    schema = Schema(SEX.columns, constraints=[Forbidden({"sex": "F", "smokes": "yes"})])
    release = from_marginals(schema, {("sex", "smokes"): (np.array([[50.0, 9.0], [20.0, 21.0]]), 9.0)})
    sample = release.sample(100, seed=0)
    assert not ((sample["sex"] == "F") & (sample["smokes"] == "yes")).any()


@pytest.fixture(scope="module")
def release():
    return from_marginals(
        SEX, {("sex", "smokes"): (np.array([[480.0, 12.0], [260.0, 251.0]]), 25.0)}, PROMISE
    )


def test_the_ledger_says_that_the_promise_is_somebody_elses(release, tmp_path):
    plain = json.loads(release.ledger.to_json())
    Draft202012Validator(LEDGER_SCHEMA).validate(plain)
    assert plain["elsewhere"] == PROMISE
    assert "promise" not in plain
    assert "epsilon 0" not in str(release.ledger)
    assert PROMISE in str(release.ledger)
    assert Ledger.from_dict(plain) == release.ledger
    release.save(tmp_path / "m.privsyn")
    assert load(tmp_path / "m.privsyn").ledger == release.ledger
    with pytest.raises(InputError, match="elsewhere"):
        Ledger.compose([release.ledger])
    page = report(release, tmp_path / "page.html")
    assert page is None
    text = (tmp_path / "page.html").read_text()
    assert PROMISE in text
    assert "differentially private with epsilon" not in text


def test_given_counts_draw_and_have_error_bars(release):
    assert len(release.draws(2)[0]) == 1003
    share = release.accuracy_.share("smokes == 'yes'")
    assert share["low"] < 263 / 1003 < share["high"]


FRAME = pd.DataFrame({"sex": ["F", "M"], "count": [5.0, 6.0], "variance": 1.0})
SMOKES = pd.DataFrame({"smokes": ["no", "yes"], "count": [5.0, 6.0], "variance": 1.0})


@pytest.mark.parametrize(
    "tables",
    [
        [],
        None,
        [FRAME],
        [FRAME, SMOKES.drop(columns="variance")],
        [FRAME, SMOKES.assign(variance=-1.0)],
        [FRAME, SMOKES.assign(count=[1.0, np.nan])],
        [FRAME, SMOKES.iloc[:1]],
        [FRAME, pd.concat([SMOKES, SMOKES])],
        [FRAME, SMOKES.assign(smokes=["no", "maybe"])],
        [FRAME, SMOKES.rename(columns={"smokes": "drinks"})],
        [FRAME, SMOKES, pd.DataFrame({"count": [1.0], "variance": 1.0})],
        {"sex": (np.ones(4), 1.0), "smokes": (np.ones(2), 1.0)},
        {"sex": np.ones(2), "smokes": (np.ones(2), 1.0)},
        {("sex", "smokes"): (np.ones(2), 1.0)},
    ],
)
def test_tables_that_do_not_fit_are_refused_in_one_line(tables):
    with pytest.raises(InputError) as error:
        from_marginals(SEX, tables)
    assert "\n" not in str(error.value)


def test_open_schemas_are_refused():
    with pytest.raises(InputError):
        from_marginals(Schema({"sex": Categorical()}), [FRAME])
