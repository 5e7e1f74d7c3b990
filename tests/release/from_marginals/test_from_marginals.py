"""Releases from counts measured elsewhere: as good as ours, and honest about whose promise it is."""

from __future__ import annotations

import json
from datetime import time
from itertools import combinations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import LEDGER_SCHEMA
from jsonschema import Draft202012Validator
from known_truth import Network, chain
from refusals import refuses

from privsyn import (
    Categorical,
    Identifier,
    InputError,
    Numerical,
    PrivSyn,
    Schema,
    Time,
    from_marginals,
    load,
    report,
)
from privsyn.errors import TotalsWarning
from privsyn.private.ledger import Ledger
from privsyn.private.run_ledger import RunLedger

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
    assert RunLedger.from_dict(plain) == release.ledger
    release.save(tmp_path / "m.privsyn")
    assert load(tmp_path / "m.privsyn").ledger == release.ledger
    with pytest.raises(InputError, match="elsewhere"):
        Ledger.compose([release.ledger])
    page = report(release, tmp_path / "page.html")
    assert page is None
    text = (tmp_path / "page.html").read_text()
    assert PROMISE in text
    assert "differentially private with epsilon" not in text


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
    with refuses():
        from_marginals(SEX, tables)


# Tables as offices and programs write them

PEOPLE = Schema(
    {
        "sex": Categorical(["F", "M"], nullable=False),
        "smokes": Categorical(["no", "yes"], nullable=False),
        "age": Numerical(0, 99, integer=True, nullable=False),
    }
)
EXACT = pd.DataFrame(
    {"sex": ["F"] * 500 + ["M"] * 500, "smokes": (["no"] * 480 + ["yes"] * 20 + ["no"] * 300 + ["yes"] * 200)}
)
AGES = pd.DataFrame({"age": ["0-17", "18-64", "65+"], "count": [200, 600, 200]})


def shares(release):
    sample = release.sample(seed=0)
    return pd.crosstab(sample["sex"], sample["smokes"]).to_numpy().tolist()


@pytest.mark.parametrize(
    "table",
    [
        pd.crosstab(EXACT["sex"], EXACT["smokes"]),
        EXACT.groupby(["sex", "smokes"]).size(),
        EXACT.value_counts(),
        EXACT.value_counts().reset_index(),
        pl.from_pandas(EXACT.value_counts().reset_index()),
        EXACT.groupby("sex")["smokes"].value_counts(),
        EXACT.value_counts().reset_index().astype({"count": str}),
    ],
)
def test_counts_of_pandas_are_taken_as_they_are(table):
    assert shares(from_marginals(PEOPLE, [table, AGES], variance=0)) == [[480, 20], [300, 200]]


@pytest.mark.parametrize("called", ["All", "Total", "insgesamt"])
def test_totals_are_left_out_with_a_warning(called):
    table = pd.crosstab(EXACT["sex"], EXACT["smokes"], margins=True, margins_name=called)
    with pytest.warns(TotalsWarning, match="totals are left out of the tables 'sex', 'smokes'$"):
        release = from_marginals(PEOPLE, [table, AGES], variance=0)
    assert shares(release) == [[480, 20], [300, 200]]


def test_a_mapping_leads_to_crosstabs_and_arrays():
    table = pd.crosstab(EXACT["sex"].to_numpy(), EXACT["smokes"].to_numpy())  # its axes have no names of ours
    release = from_marginals(PEOPLE, {("sex", "smokes"): table, "age": AGES}, variance=0)
    assert shares(release) == [[480, 20], [300, 200]]
    release = from_marginals(PEOPLE, {("sex", "smokes"): table.to_numpy(), "age": AGES}, variance=0)
    assert shares(release) == [[480, 20], [300, 200]]


@pytest.mark.parametrize("written", ["<5", "< 5", "0-4", "0 to 4", "≤4"])
def test_a_count_that_says_its_limits_is_anything_between_them(written):
    table = pd.DataFrame({"smokes": ["no", "yes"], "count": ["1,200", written]})
    release = from_marginals(Schema({"smokes": PEOPLE.columns["smokes"]}), [table], variance=0)
    counts = release.accuracy_.counts("smokes").set_index("smokes").loc["yes"]
    assert 0 <= counts["estimate"] <= 4
    assert counts["low"] <= 0.1
    assert counts["high"] >= 3.9
    assert "1 suppressed counts of 'smokes'" in " ".join(release.ledger.public_inputs)


@pytest.mark.parametrize("sign", ["*", "-", "..", "", None, np.nan, "c"])
def test_a_sign_needs_limits(sign):
    schema = Schema({"smokes": PEOPLE.columns["smokes"]})
    table = pd.DataFrame({"smokes": ["no", "yes"], "count": pd.Series([1200, sign], dtype=object)})
    with pytest.raises(InputError, match=r"'smokes': 1 counts are blank or signs: .*suppressed=\(0, 4\)"):
        from_marginals(schema, [table], variance=0)
    release = from_marginals(schema, [table], variance=0, suppressed=(1, 4))
    assert release.fitted.total == pytest.approx(1202.5)


@pytest.mark.parametrize(
    "bands",
    [
        ["0-17", "18-64", "65+"],
        ["Under 18 years", "18 to 64 years", "65 years and over"],
        ["<18", "18–64", "≥65"],
        ["[0, 18)", "[18, 65)", "[65, 99]"],
        ["(-1, 17]", "(17, 64]", "(64, 99]"],
        ["0-18", "18-65", "65-99"],
    ],
)
def test_bands_are_read_from_text(bands):
    frame = AGES.assign(age=bands)
    ages = from_marginals(Schema({"age": PEOPLE.columns["age"]}), [frame], variance=0).sample(seed=0)["age"]
    assert [(ages < 18).sum(), (ages.between(18, 64)).sum(), (ages >= 65).sum()] == [200, 600, 200]


TWO = Schema({name: PEOPLE.columns[name] for name in ("sex", "age")})
SEXES = pd.DataFrame({"sex": ["F", "M"], "count": [1, 2]})


@pytest.mark.parametrize(
    ("tables", "settings", "words"),
    [
        ([SEXES, AGES], {}, "'sex': has no 'variance': add this column, or give variance="),
        ([SEXES, AGES], {"variance": -1}, "variance must be at least 0"),
        ([SEXES, AGES], {"variance": 0, "suppressed": 5}, "suppressed is"),
        ([SEXES, AGES], {"variance": 0, "suppressed": (4, 1)}, "suppressed is"),
        ([SEXES, AGES.iloc[:2]], {"variance": 0}, "no row counts '65 to 99' of 'age'"),
        ([SEXES, AGES.assign(age=["0-17", "18-64", "old"])], {"variance": 0}, "'old' is no number or band"),
        ([SEXES, AGES.assign(age=["0-17", "10-64", "65+"])], {"variance": 0}, "that another row counts too"),
        (
            [SEXES.assign(sex=["F", "m"]), AGES],
            {"variance": 0},
            "'m' is no value of 'sex'.* did you mean 'M'",
        ),
        ([SEXES.rename(columns={"count": "n"}), AGES], {"variance": 0}, "without 'count' is a crosstab"),
        ([SEXES.set_index("sex").rename_axis("sxe")["count"], AGES], {"variance": 0}, "did you mean 'sex'"),
        ([SEXES.assign(sex="Total"), AGES], {"variance": 0}, "nothing but totals"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_do(tables, settings, words):
    with refuses(words) as error:
        from_marginals(TWO, tables, **settings)
    assert len(str(error.value)) < 240


def test_open_schemas_are_refused():
    with pytest.raises(InputError):
        from_marginals(Schema({"sex": Categorical()}), [FRAME])


def test_times_of_day_and_identifiers_are_those_of_a_csv():
    schema = Schema({"at": Time(low="08:00", high="09:00", unit="h"), "id": Identifier()})
    table = pd.DataFrame({"at": [time(8), time(9)], "count": [40, 60], "variance": 0.0})
    rows = from_marginals(schema, [table]).sample(100, seed=1)
    assert rows["at"].value_counts().to_dict() == {time(8): 40, time(9): 60}
    assert rows["id"].tolist() == list(range(1, 101))
