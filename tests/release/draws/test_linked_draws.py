"""Draws of linked tables are whole samples: keys match, and what links rows differs as the noise does."""

import numpy as np
import pandas as pd
import pytest
from refusals import refuses

from privsyn import Categorical, Database, Numerical, PrivSyn, Schema, Table, load, pool
from privsyn.inference.posterior.tables import draw_linking
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Grouping, Marginal, Measurement

HOMES = Schema({"x": Categorical([0, 1, 2])})
TRIPS = Schema({"y": Numerical(0, 20, integer=True), "z": Categorical(["a", "b"])})
DATABASE = Database(
    {
        "homes": Table(HOMES, key="home"),
        "trips": Table(TRIPS, key="trip", parent="homes", link="home", order="day"),
        "stops": Table(Schema({"shop": Categorical([False, True])}), parent="trips", link="trip"),
        "kinds": Table(public=pd.DataFrame({"z": ["a", "b"], "name": ["car", "bus"]}), key="z"),
    }
)


def tables_of(homes=1500):
    rng = np.random.default_rng(0)
    root = pd.DataFrame({"home": range(homes), "x": rng.integers(0, 3, homes)})
    number = rng.poisson(1.0 + root["x"])
    trips = pd.DataFrame({"home": np.repeat(root["home"], number).to_numpy()})
    x = np.repeat(root["x"], number).to_numpy()
    trips["trip"] = range(len(trips))
    trips["day"] = trips.groupby("home").cumcount() + 1
    trips["y"], trips["z"] = rng.binomial(20, 0.2 + 0.2 * x), np.where(rng.random(len(x)) < 0.3, "a", "b")
    stops = pd.DataFrame({"trip": trips["trip"], "shop": trips["z"] == "a"})
    return {"homes": root, "trips": trips, "stops": stops}


TABLES = tables_of()


def mean_of(tables, x):
    joined = tables["trips"].merge(tables["homes"], on="home")
    return joined.loc[joined["x"] == x, "y"].mean()


@pytest.fixture(scope="module")
def model():
    return PrivSyn(3.0, 1e-6, DATABASE, seed=1).fit(TABLES)


@pytest.fixture(scope="module")
def draws(model):
    return model.draws(3, 200, seed=2)


@pytest.mark.slow
def test_a_draw_is_a_whole_sample(draws):
    assert (len(draws), "3 of 200 rows of 'homes' each" in repr(draws)) == (3, True)
    made = draws[0]
    assert list(made) == ["homes", "trips", "stops", "kinds"]
    assert len(made["homes"]) == 200
    for name, table in TABLES.items():
        assert list(made[name].columns) == list(table.columns)
        assert made[name].dtypes.equals(table.dtypes)
    assert made["trips"]["home"].isin(made["homes"]["home"]).all()
    assert made["stops"]["trip"].isin(made["trips"]["trip"]).all()
    days = made["trips"].groupby("home")["day"].apply(list)
    assert days.map(lambda of: of == [*range(1, len(of) + 1)]).all()


@pytest.mark.slow
def test_a_draw_is_the_same_each_time_and_from_a_file(model, draws, tmp_path):
    model.save(tmp_path / "model")
    again = list(load(tmp_path / "model").draws(3, 200, seed=2))
    for k, tables in enumerate(again):
        for name, table in draws[k].items():
            pd.testing.assert_frame_equal(tables[name], table)
    assert not draws[0]["trips"].equals(draws[1]["trips"])
    assert [tables["homes"].equals(again[-1]["homes"]) for tables in draws[1:]] == [False, True]


@pytest.mark.slow
def test_draws_differ_as_the_noise_does():
    """A mean of child rows by a column of their parent, and the number of rows of each parent."""
    spread = {}
    for epsilon in (1.0, 1000.0):
        made = list(
            PrivSyn(epsilon, 1e-6, DATABASE, seed=1, allow_weak_privacy=True).fit(TABLES).draws(6, seed=1)
        )
        means = [mean_of(tables, 2) for tables in made]
        spread[epsilon] = np.std(means), np.std([len(tables["trips"]) for tables in made])
        found = pool(means, np.zeros(6))
        assert found["low"][0] - 0.5 < mean_of(TABLES, 2) < found["high"][0] + 0.5
    assert spread[1.0][0] > 2 * spread[1000.0][0]
    assert spread[1.0][1] > 2 * spread[1000.0][1]


def test_what_links_rows_is_drawn_with_its_noise():
    """Own margins are those drawn; the rest has about the noise of the measurement."""
    own = Marginal(Domain(("a",), (2,)), np.array([400.0, 600.0]))
    released = Marginal(Domain(("a", "above"), (2, 4)), np.array([[100.0] * 4, [150.0] * 4]))
    for joined in (None, np.array([0, 0, 1, 1], np.int32)):
        grouping = Grouping() if joined is None else Grouping((np.arange(2, dtype=np.int32), joined))
        answers = Marginal(grouping.domain(released.domain), grouping.join(released.counts))
        measured = Measurement(answers, 100.0, grouping)
        rng = np.random.default_rng(0)
        drawn = np.array([draw_linking(released, measured, (own,), rng).counts for _ in range(300)])
        np.testing.assert_allclose(drawn.sum(axis=2), np.tile([400.0, 600.0], (300, 1)), rtol=1e-6)
        np.testing.assert_allclose(drawn.sum(axis=1), np.full((300, 4), 250.0), rtol=1e-6)
        sums = drawn[:, 0, :2].sum(axis=1)  # of two cells: a standard deviation of 7.1 or, together, 5.0
        assert 3 < sums.std() < 10
        assert sums.mean() == pytest.approx(200, abs=3)
        exact = draw_linking(released, Measurement(answers, 0.0, grouping), (own,), rng)
        if joined is None:
            np.testing.assert_allclose(exact.counts, released.counts, rtol=1e-3)


@pytest.mark.slow
def test_draws_of_one_table_of_persons_are_tables():
    table = TABLES["trips"].drop(columns="trip")
    fitted = PrivSyn(5.0, 1e-6, TRIPS, unit="home", identifiers=True, order="day", seed=1).fit(table)
    assert all(rows.dtypes.equals(table.dtypes) for rows in fitted.draws(2, 50, seed=1))


def test_a_mistake_is_one_line(model, draws, tmp_path):
    for call, complaint in (
        (lambda: draws.to_file(tmp_path / "draws.csv"), "save the draws one by one"),
        (lambda: model.draws(1), "m must be"),
        (lambda: model.draws(2, 0), "n must be"),
    ):
        with refuses(complaint):
            call()
    assert not (tmp_path / "draws.csv").exists()
