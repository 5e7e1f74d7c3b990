"""Listed values that have an order: what the model, its accuracy and its rows make of it."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from drafts import draft_text
from scipy.stats import norm

from privsyn import Categorical, Increasing, InputError, Numerical, PrivSyn, Schema, load
from privsyn.table.codec.codec import Codec
from privsyn.table.drafting.draft import draft_schema
from privsyn.table.schema.yaml_file import from_plain, to_plain

STATUS = list(range(-2, 9))
SHARES = np.array([0.13, 0.20, 0.50, 0.06, 0.09, 0.010, 0.004, 0.002, 0.002, 0.001, 0.001])
MONTHS = ["may", "june", "july"]
SIZES = ["small", "medium", "large"]


def statuses(rows=12_000, seed=0):
    """Three months of a status, each correlated by about .7 with the next, and an outcome."""
    rng = np.random.default_rng(seed)
    scores, months = rng.normal(size=rows), {}
    for name in MONTHS:
        codes = np.searchsorted(np.cumsum(SHARES)[:-1], norm.cdf(scores))
        months[name] = np.array(STATUS)[codes]
        scores = 0.78 * scores + np.sqrt(1 - 0.78**2) * rng.normal(size=rows)
    frame = pd.DataFrame(months)
    return frame.assign(paid=(rng.random(rows) < 0.8 - 0.05 * frame["may"]).map({True: "yes", False: "no"}))


def schema(**settings):
    months = dict.fromkeys(MONTHS, Categorical(STATUS, nullable=False, **settings))
    return Schema({**months, "paid": Categorical(["no", "yes"], nullable=False)})


@pytest.fixture(scope="module")
def real():
    return statuses()


@pytest.fixture(scope="module")
def model(real):
    return PrivSyn(1.0, 1e-6, schema(ordered=True), seed=0).fit(real)


def ordered_of(column, cells):
    codec = Codec.for_table(Schema({"x": column}), pd.DataFrame({"x": cells}))
    return codec.domain.ordered, codec.domain.sizes


def test_rows_keep_the_correlation_of_declared_neighbours(real, model):
    rows = model.sample(len(real), seed=0)
    for a, b in combinations(MONTHS, 2):
        assert rows[a].corr(rows[b]) == pytest.approx(real[a].corr(real[b]), abs=0.05)
    assert set(rows["may"]) <= set(STATUS)
    assert rows.dtypes.equals(real.dtypes)


def test_draws_keep_it_too(real, model):
    found = np.mean([draw["may"].corr(draw["june"]) for draw in model.draws(4, seed=0)])
    assert found == pytest.approx(real["may"].corr(real["june"]), abs=0.06)


def test_accuracy_has_their_correlations_and_no_means(real, model):
    correlations = model.accuracy_.correlations
    assert set(correlations["columns"]) == set(combinations(MONTHS, 2))
    assert correlations["covered"].any()
    for row in correlations[correlations["covered"]].itertuples():
        assert row.low <= row.estimate <= row.high
        assert row.low - 0.02 <= real[list(row.columns)].corr("spearman").iloc[0, 1] <= row.high + 0.02
    assert model.accuracy_.means.empty
    assert model.accuracy_.quantiles.empty


def test_a_saved_model_keeps_the_order(model, tmp_path):
    model.save(tmp_path / "a.privsyn")
    again = load(tmp_path / "a.privsyn")
    pd.testing.assert_frame_equal(again.accuracy_.correlations, model.accuracy_.correlations)
    pd.testing.assert_frame_equal(again.sample(50, seed=1), model.sample(50, seed=1))


def test_rows_and_release_agree(real, model):
    rows = model.sample(len(real), seed=0)
    assert model.accuracy_.agreement(rows).empty


def test_values_in_an_order_come_before_other_and_missing_cells():
    cells = ["small", "large", None, "huge"]
    assert ordered_of(Categorical(SIZES, ordered=True), cells) == ((3,), (4,))
    assert ordered_of(Categorical(SIZES, ordered=True, other="else"), cells) == ((3,), (5,))
    assert ordered_of(Categorical([*SIZES, "else"], ordered=True, other="else"), cells) == ((3,), (5,))
    assert ordered_of(Categorical(SIZES, ordered=True, other="small"), cells) == ((3,), (4,))


def test_two_values_have_no_order_and_numbers_have_none_unless_it_is_declared():
    assert ordered_of(Categorical([0, 1], ordered=True), [0, 1])[0] == (0,)
    assert ordered_of(Categorical(STATUS), [0, 1])[0] == (0,)
    assert ordered_of(Categorical(STATUS, ordered=True), [0, 1])[0] == (11,)


def test_listed_values_of_a_dtype_with_an_order_have_it():
    cells = pd.Series(pd.Categorical(["small", "large"], categories=SIZES, ordered=True))
    assert ordered_of(Categorical(SIZES), cells)[0] == (3,)
    assert ordered_of(Categorical(SIZES, ordered=False), cells)[0] == (0,)
    assert ordered_of(Categorical(SIZES), cells.astype(object).astype("category"))[0] == (0,)


@pytest.mark.filterwarnings("ignore::privsyn.errors.ColumnWarning")
def test_an_order_of_the_rows_is_never_used():
    rng = np.random.default_rng(0)
    cells = pd.Categorical(rng.choice(SIZES, 3000), categories=SIZES, ordered=True)
    table = pd.DataFrame({"size": cells, "number": rng.choice([1, 2, 3], 3000)})
    found = PrivSyn(5.0, 1e-6, Schema({"size": Categorical(), "number": Categorical()}), seed=0).fit(table)
    assert found.accuracy_.correlations.empty
    assert found.release_.codec.domain.ordered == (0, 0)


@pytest.mark.parametrize(
    "settings", [{"values": None, "ordered": True}, {"values": SIZES, "ordered": True, "keep": 0.5}]
)
def test_an_order_needs_the_list_and_honest_cells(settings):
    with pytest.raises(InputError, match="ordered needs the list of values"):
        Categorical(**settings)


def test_ordered_is_true_or_false():
    with pytest.raises(InputError, match="ordered"):
        Categorical(SIZES, ordered="yes")


def test_a_schema_file_says_it():
    declared = Schema({"size": Categorical(SIZES, ordered=True), "code": Categorical([1, 2, 3])})
    plain = to_plain(declared)
    assert plain["columns"]["size"]["ordered"] is True
    assert "ordered" not in plain["columns"]["code"]
    assert from_plain(plain) == declared


def test_a_draft_asks_about_the_order_of_known_scales():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.choice(SIZES, 600), "town": rng.choice(["Rome", "Oslo", "Bern"], 600)})
    assert draft_text(table).count("ordered: true") == 1
    assert {column.ordered for column in draft_schema(table).columns.values()} == {None}


def test_they_stand_beside_numbers_and_constraints():
    """Nothing takes the places of a list for numbers: gaps, bounds, groups of cells, conditions."""
    rng = np.random.default_rng(1)
    size = rng.integers(0, 3, 3000)
    low = rng.integers(0, 50, 3000) + 10 * size
    table = pd.DataFrame({"size": np.array(SIZES)[size], "low": low, "high": low + rng.integers(0, 20, 3000)})
    declared = Schema(
        {
            "size": Categorical(SIZES, ordered=True),
            "low": Numerical(0, 100, integer=True),
            "high": Numerical(0, 120, integer=True),
        },
        constraints=[Increasing(["low", "high"])],
    )
    model = PrivSyn(5.0, 1e-6, declared, seed=0).fit(table)
    rows = model.sample(2000, seed=0, given={"size": ["small", "large"]})
    assert (rows["low"] <= rows["high"]).all()
    assert set(rows["size"]) == {"small", "large"}
    assert ("size", "low") in set(model.accuracy_.correlations["columns"])
    assert (
        model.accuracy_.mean("low", "size == 'large'")["estimate"] > model.accuracy_.mean("low")["estimate"]
    )
    assert 0 < model.accuracy_.share("size == 'large'")["estimate"] < 1
