"""Means, quantiles and correlations of a release, with intervals, from released answers alone."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Datetime, Increasing, Numerical, PrivSyn, Schema, Total, load
from privsyn.inference.departures import NO_CONCORDANCES, Concordances
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Grouping, Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.release.accuracy.ordered_columns import OrderedColumns

ROWS = 3000


def table(seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=ROWS)
    frame = pd.DataFrame(
        {
            "x": np.clip(np.rint(50 + 15 * x), 0, 100),
            "y": np.clip(20 + 5 * (x + rng.normal(size=ROWS)), 0, 40).round(2),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 200, ROWS), unit="D"),
            "sex": rng.choice(["f", "m"], ROWS),
        }
    )
    frame.loc[rng.random(ROWS) < 0.2, "y"] = np.nan
    return frame


SCHEMA = Schema(
    {
        "x": Numerical(0, 100, integer=True),
        "y": Numerical(0, 40, decimals=2),
        "day": Datetime("2020-01-01", "2020-12-31"),
        "sex": Categorical(["f", "m"]),
    }
)


@pytest.fixture(scope="module")
def precise():
    return PrivSyn(1000.0, 1e-6, SCHEMA, seed=0, allow_weak_privacy=True).fit(table())


def test_with_little_noise_estimates_and_intervals_are_those_of_the_private_table(precise):
    real = table()
    means = precise.accuracy_.means.set_index("column")
    assert means.index.tolist() == ["x", "y", "day"]
    assert means.loc["x", "estimate"] == pytest.approx(real["x"].mean(), abs=0.05)
    assert abs(means.loc["y", "estimate"] - real["y"].mean()) <= means.loc["y", "within_cells"] + 0.01
    assert abs(means.loc["day", "estimate"] - real["day"].mean()) < pd.Timedelta("1D")
    quantiles = precise.accuracy_.quantiles.query("column == 'x'")
    assert quantiles["share"].tolist() == [0.05, 0.25, 0.5, 0.75, 0.95, 0.99]
    truth = np.quantile(real["x"], quantiles["share"], method="inverted_cdf")
    assert (quantiles["low"] <= truth).all()
    assert (truth <= quantiles["high"]).all()
    assert (quantiles["high"] - quantiles["low"] <= 2).all()
    rows = precise.accuracy_.correlations
    found = rows[rows["columns"] == ("x", "y")].iloc[0]
    assert found["estimate"] == pytest.approx(real["x"].corr(real["y"], "spearman"), abs=0.02)
    assert found["low"] <= real["x"].corr(real["y"], "spearman") <= found["high"]
    assert rows["columns"].tolist() == [("x", "y"), ("x", "day"), ("y", "day")]


def test_times_are_cells_of_the_table(precise):
    means, quantiles = precise.accuracy_.means, precise.accuracy_.quantiles
    for frame in (means, quantiles):
        cells = frame[frame["column"] == "day"][["estimate", "low", "high"]].to_numpy().ravel()
        assert all(isinstance(cell, pd.Timestamp) for cell in cells)
        assert (frame.query("column == 'day'")["low"] <= frame.query("column == 'day'")["high"]).all()


@pytest.mark.slow
def test_intervals_hold_in_most_fits():
    """Of 30 intervals of 95 % at least 12 fail with a probability below 1e-8."""
    real, failed = table(), 0
    truths = {"x": real["x"].mean(), "y": real["y"].mean()}
    rank = real["x"].corr(real["y"], "spearman")
    for _ in range(10):
        accuracy = PrivSyn(1.0, 1e-6, SCHEMA).fit(real).accuracy_
        means = accuracy.means.set_index("column")
        for name, truth in truths.items():
            away = means.loc[name, "within_cells"]
            failed += not means.loc[name, "low"] - away <= truth <= means.loc[name, "high"] + away
        found = accuracy.correlations.iloc[0]
        failed += bool(found["covered"]) and not found["low"] <= rank <= found["high"]
    assert failed < 12


def test_a_mean_without_a_condition_is_that_of_the_page(precise):
    means = precise.accuracy_.means.set_index("column")
    for name in means.index[means["covered"].astype(bool)]:
        found = precise.accuracy_.mean(name)
        assert found.to_dict() == means.loc[name, list(found.index)].to_dict()


def test_a_release_whose_accuracy_was_read_can_be_pickled(precise):
    means = precise.accuracy_.means
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(precise.release_)).accuracy_.means, means)


def test_what_constraints_link_or_compute_is_not_covered():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 20, 1000)
    b = a + rng.integers(0, 20, 1000)
    real = pd.DataFrame({"a": a, "b": b, "both": a + b, "c": rng.integers(0, 50, 1000)})
    columns = {name: Numerical(0, 100, integer=True, nullable=False) for name in real}
    columns["both"] = Numerical(0, 200, integer=True, nullable=False)
    schema = Schema(columns, constraints=[Increasing(["a", "b"]), Total("both", ["a", "b"])])
    accuracy = PrivSyn(100.0, 1e-6, schema, seed=0).fit(real).accuracy_
    rows = accuracy.correlations.set_index("columns")
    assert not rows.loc[[("a", "b")], "covered"].any()
    assert rows.loc[[("a", "b")], ["low", "high"]].isna().all(axis=None)
    assert schema.computed == ("both",)
    means = accuracy.means.set_index("column")["covered"]
    assert means["a"]
    assert means["c"]
    assert not means["both"]
    assert not rows.loc[[("a", "both")], "covered"].any()


def test_a_table_without_numbers_has_empty_frames():
    real = pd.DataFrame({"sex": ["f", "m"] * 200, "smokes": ["no", "yes"] * 200})
    schema = Schema({"sex": Categorical(["f", "m"]), "smokes": Categorical(["no", "yes"])})
    accuracy = PrivSyn(1.0, 1e-6, schema, seed=0).fit(real).accuracy_
    assert accuracy.means.empty
    assert accuracy.quantiles.empty
    assert accuracy.correlations.columns.tolist() == ["columns", "estimate", "low", "high", "covered"]


def test_one_column_alone_has_a_mean_and_no_correlation():
    accuracy = PrivSyn(1.0, 1e-6, Schema({"x": SCHEMA.columns["x"]}), seed=0).fit(table()[["x"]]).accuracy_
    assert accuracy.means["covered"].all()
    assert accuracy.correlations.empty


def test_numbers_of_which_only_missing_cells_are_drawn_have_a_mean():
    """All of them share one group with the missing cells, which take all of its records."""
    people = pd.DataFrame({"x": pd.array([1, 2, None, None], dtype="Int64")})
    fitted = PrivSyn.paper(0.01, 1e-6, Schema({"x": Numerical(1, 9, integer=True)}), seed=0).fit(people)
    release = fitted.release_
    merging = release.fitted.merging
    missing = np.zeros(merging.original.sizes[0])
    missing[-1] = 1.0
    group = np.zeros(len(missing), np.int32)
    merged = Domain(merging.original.names, (1,), (1,))
    merging = Merging(merging.original, merged, (group,), (missing,))
    cells = OrderedColumns(release.codec, replace(release.fitted, merging=merging)).cells("x")
    assert (cells.lows, cells.middles, cells.highs) == (1.0, 5.0, 9.0)


def test_a_column_whose_rare_numbers_are_pooled_has_no_intervals_and_the_others_have():
    """The published method pools rare numbers wherever they lie."""
    people = pd.DataFrame({"x": np.tile([1, 3, 5, 50, 95], 100), "y": np.tile([1, 2], 250)})
    people.loc[:1, "x"] = 8, 70
    columns = {"x": Numerical(0, 99, integer=True), "y": Numerical(1, 2, integer=True)}
    accuracy = PrivSyn.paper(5.0, 1e-6, Schema(columns), seed=0).fit(people).accuracy_
    assert accuracy.means.set_index("column")["covered"].to_dict() == {"x": False, "y": True}
    assert accuracy.quantiles.set_index("column")["low"].isna().groupby("column").all().to_dict() == {
        "x": True,
        "y": False,
    }
    assert not accuracy.correlations["covered"].any()


def test_a_pool_after_missing_cells_has_no_place_in_the_order():
    """The published method pools the rare numbers at the end: their code follows that of missing cells."""
    cells = [*np.repeat(np.arange(10.0), 500), *np.repeat(np.arange(10.0, 14.0), 20), *[np.nan] * 500]
    schema = Schema({"x": Numerical(0, 13, integer=True)})
    fitted = PrivSyn.paper(1.0, 1e-6, schema, seed=0).fit(pd.DataFrame({"x": cells}))
    assert fitted.release_.fitted.merging.groups[0].tolist() == [*range(10), 11, 11, 11, 11, 10]
    assert fitted.accuracy_.means["covered"].tolist() == [False]
    assert len(fitted.sample(100, seed=1)) == 100


def many_numbers(rows: int, columns: int) -> pd.DataFrame:
    """Neighbours depend on each other, others less and less."""
    rng = np.random.default_rng(3)
    walk = rng.normal(size=(rows, columns))
    for j in range(1, columns):
        walk[:, j] = 0.6 * walk[:, j - 1] + 0.8 * walk[:, j]
    return pd.DataFrame(np.clip(np.rint(50 + 15 * walk), 0, 100), columns=[f"x{j}" for j in range(columns)])


def unmeasured(accuracy) -> pd.DataFrame:
    measured = {frozenset(columns) for columns in accuracy.tables["columns"]}
    found = accuracy.correlations
    return found[[frozenset(pair) not in measured for pair in found["columns"]]]


def test_pairs_that_were_not_measured_have_intervals_from_their_distances(tmp_path):
    frame = many_numbers(800, 14)
    schema = Schema({name: Numerical(0, 100, integer=True, nullable=False) for name in frame})
    model = PrivSyn(0.5, 1e-6, schema, seed=1).fit(frame)
    found, real = unmeasured(model.accuracy_), frame.corr(method="spearman")
    assert len(found) > 20
    assert 0 < found["covered"].mean() < 1  # of the others, noise hides the distance
    covered = found[found["covered"].astype(bool)]
    assert np.mean([row.low <= real.loc[row.columns] <= row.high for row in covered.itertuples()]) > 0.95
    assert ((covered["low"] <= covered["estimate"]) & (covered["estimate"] <= covered["high"])).all()
    model.save(tmp_path / "m.privsyn")
    pd.testing.assert_frame_equal(
        load(tmp_path / "m.privsyn").accuracy_.correlations, model.accuracy_.correlations
    )


def test_a_concordance_makes_the_interval_of_a_pair_that_was_not_measured_narrower(tmp_path):
    frame = many_numbers(3000, 4)
    schema = Schema({name: Numerical(0, 100, integer=True, nullable=False) for name in frame})
    model = PrivSyn(1.0, 1e-6, schema, seed=1).fit(frame)
    table = model.release_.table()
    signs = np.where(frame - frame.median() < 0, -1, 1)
    halves = {
        name: int(np.searchsorted(np.cumsum(table.fitted.one_way(name).counts), len(frame) / 2))
        for name in frame
    }
    known = Concordances((("x0", "x1"),), np.array([float(signs[:, 0] @ signs[:, 1])]), 25.0**2, halves)
    keeps = [index for index, one in enumerate(table.fitted.certainties) if {*one.attributes} != {"x0", "x1"}]
    few = replace(
        table.fitted,
        marginals=tuple(one for one in table.fitted.marginals if {*one.attributes} != {"x0", "x1"}),
        certainties=tuple(table.fitted.certainties[index] for index in keeps),
        concordances=known,
    )
    (row,) = unmeasured(replace(table, fitted=few).accuracy_).itertuples()
    real = frame.corr(method="spearman").loc["x0", "x1"]
    assert row.covered
    assert row.low <= real <= row.high < row.low + 0.4
    assert row.low > 0
    (row,) = unmeasured(
        replace(table, fitted=replace(few, concordances=NO_CONCORDANCES)).accuracy_
    ).itertuples()
    assert not row.covered
    assert np.isnan(row.low)


def test_a_table_of_one_group_says_less_than_the_concordance_of_its_pair():
    frame = many_numbers(3000, 4)
    schema = Schema({name: Numerical(0, 100, integer=True, nullable=False) for name in frame})
    model = PrivSyn(1.0, 1e-6, schema, seed=1).fit(frame)
    table = model.release_.table()
    assert len(table.fitted.concordances.pairs) == 6
    certainties = [
        replace(one, measured=one_group(one.measured)) if {*one.attributes} == {"x0", "x1"} else one
        for one in table.fitted.certainties
    ]
    coarse = replace(table, fitted=replace(table.fitted, certainties=tuple(certainties)))
    (row,) = (row for row in coarse.accuracy_.correlations.itertuples() if row.columns == ("x0", "x1"))
    assert row.low > 0
    assert row.low <= frame.corr(method="spearman").loc["x0", "x1"] <= row.high


def one_group(measured: Measurement) -> Measurement:
    """Return a measurement of a pair whose first column is counted in one group."""
    joined = measured.marginal.counts.sum(axis=0, keepdims=True)
    groups = measured.grouping.groups
    grouping = Grouping((np.zeros(len(groups[0]), np.int32), groups[1]))
    counts = Marginal(Domain(measured.attributes, joined.shape, (1, joined.shape[1])), joined)
    return Measurement(counts, np.full(joined.shape, float(measured.variance.sum())), grouping)
