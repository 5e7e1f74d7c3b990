"""A plan of linked tables says which links survive, and divides the budget as a run does."""

import numpy as np
import pandas as pd
import pytest
from command import run

from privsyn import Categorical, Database, InputError, Numerical, PrivSyn, Schema, Table, evaluate, plan
from privsyn.methods.budget import FOR_ROWS
from privsyn.methods.budget_of_tables import BudgetOfTables
from privsyn.methods.learning import Inquiry
from privsyn.methods.run_of_tables import Run
from privsyn.owners.party import Alone
from privsyn.private.noise_laws import law_of
from privsyn.private.spend import QueryLog
from privsyn.progress import no_progress
from privsyn.settings import Settings
from privsyn.studies.planning.expectation import LOST_IF_KEPT, NEXT, NUMBER, PARENT
from privsyn.studies.planning.expected_run import ExpectedRun, opened_without_rows

LETTERS = list("abcdef")
HOMES = Table(Schema({"kind": Categorical(LETTERS), "size": Numerical(1, 9, integer=True)}), key="home")
TRIPS = Table(
    Schema({"mode": Categorical(LETTERS), "km": Numerical(0, 40, integer=True)}),
    key="trip",
    parent="homes",
    link="home",
    order="number",
)
STOPS = Table(Schema({"shop": Categorical(LETTERS)}), parent="trips", link="trip")
DATABASE = Database({"homes": HOMES, "trips": TRIPS, "stops": STOPS})
PER_PARENT = {"trips": 2.0, "stops": 1.5}


def tables_of(homes=6000, seed=0):
    """Homes with trips, which have stops; numbers of rows are geometric."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 6, homes)
    root = pd.DataFrame(
        {"home": range(homes), "kind": np.array(LETTERS)[kind], "size": rng.integers(1, 10, homes)}
    )
    of = np.repeat(np.arange(homes), rng.geometric(1 / 3, homes) - 1)
    mode = np.where(rng.random(len(of)) < 0.4, kind[of], rng.integers(0, 6, len(of)))
    trips = pd.DataFrame({"home": of, "trip": range(len(of)), "mode": np.array(LETTERS)[mode]})
    trips["number"] = trips.groupby("home").cumcount() + 1
    trips["km"] = 5 * mode + rng.integers(0, 16, len(of))
    of = np.repeat(np.arange(len(trips)), rng.geometric(0.4, len(trips)) - 1)
    stops = pd.DataFrame({"trip": of, "shop": rng.choice(LETTERS, len(of))})
    return {"homes": root, "trips": trips, "stops": stops}


@pytest.mark.parametrize("epsilon", [2.0, 10.0])
def test_the_budget_is_divided_as_in_a_run(epsilon):
    settings = Settings(epsilon, 1e-9, DATABASE, seed=0)
    law, tables = law_of(1e-9), tables_of()
    with Alone(tables, settings) as alone:
        opened = Run.of(DATABASE, tables, settings, alone.bits())
        rho = opened.budget(law).rho_of_questions
        inquiry = Inquiry(alone.noise(), QueryLog(), alone.generator(), no_progress)
        of_run = opened._count_rows(inquiry, rho)
    plans = BudgetOfTables(DATABASE, opened.tables, of_run, law, (1 - FOR_ROWS) * rho).plans
    planned = ExpectedRun.of(opened_without_rows(settings, DATABASE), PER_PARENT, 6000)
    for table in planned.expected:
        assert table.share == pytest.approx(plans[table.name].rho / rho, rel=0.2)
        if table.parent is not None:
            assert planned.rows_per_person[table.name].total == pytest.approx(
                of_run[table.name].total, rel=0.1
            )


@pytest.mark.slow("each case")
@pytest.mark.parametrize("epsilon", [1.0, 5.0])
def test_errors_are_of_the_measured_size(epsilon):
    """Within a factor of 2. The run is seeded; docs/linked.md compares real tables."""
    tables = tables_of()
    made = PrivSyn(epsilon, 1e-9, DATABASE, seed=0).fit(tables).sample(seed=0)
    found = evaluate(tables, made, DATABASE, models=False).row()
    expected = plan(DATABASE, epsilon, rows=6000, rows_per_parent=PER_PARENT).expectations[0].tables
    trips, pairs = expected[1], {PARENT: (4, 2), NEXT: (4, 1)}  # as many of trips and of stops
    for link, (of_trips, of_stops) in pairs.items():
        mean = np.average([trips.errors[link], expected[2].errors[link]], weights=[of_trips, of_stops])
        assert 1 / 2 < mean / found[f"{link}_mean"] < 2
    low, high = trips.pair_range
    assert low < found["trips.pair_mean"] < high


def test_more_persons_and_a_larger_epsilon_lower_all_errors():
    def errors(epsilon, rows):
        (found,) = plan(DATABASE, epsilon, rows=rows, rows_per_parent=PER_PARENT).expectations
        return np.array([error for table in found.tables for error in table.errors.values()])

    base = errors(1.0, 10_000)
    assert (errors(4.0, 10_000) < base).all()
    assert (errors(1.0, 100_000) < base).all()


def test_rows_that_a_bound_leaves_out_make_no_column_more_exact():
    """Noise hides all numbers of rows here, and two of each home are counted at most: of 8 as of one."""

    def trips(rows_each):
        found = plan(DATABASE, 0.2, rows=1500, rows_per_parent={"trips": rows_each, "stops": 1.5})
        return found.expectations[0].tables[1]

    few, many = trips(1.0), trips(8.0)
    assert few.bound == many.bound == 2
    noise = few.count_noise / many.count_noise  # the shares of the budget differ
    assert many.errors["column"] * noise > 0.5 * few.errors["column"]


LISTS = Schema({name: Categorical(LETTERS[: 2 + size]) for size, name in enumerate("vwxyz")})
NUMBERS = Schema({name: Numerical(0, 1000) for name in "wxyz"})
PEOPLE = Schema({"age": Numerical(16, 100, integer=True), "sex": Categorical(["F", "M"])})


@pytest.mark.parametrize("delta", [0.0, 1e-9])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
@pytest.mark.parametrize("schema", [LISTS, NUMBERS, PEOPLE], ids=["lists", "numbers", "people"])
def test_a_root_errs_more_than_its_schema_alone_as_it_has_less_of_the_budget(schema, epsilon, delta):
    """With the whole budget, with a part of it as a root, and with a part of that part."""
    root, trips = Table(schema, key="home"), Table(TRIPS.schema, key="trip", parent="homes", link="home")
    alone = plan(schema, epsilon, delta, rows=20_000).expectations[0]
    (two,) = plan(Database({"homes": root, "trips": trips}), epsilon, delta, rows=20_000).expectations
    three = Database({"homes": root, "trips": trips, "stops": STOPS})
    (three,) = plan(three, epsilon, delta, rows=20_000).expectations
    assert 1 > two.tables[0].share > three.tables[0].share
    fewer = 1.0 if schema is LISTS else 1.25  # with more noise, numbers are counted in fewer groups
    for kind, error in {"column": alone.one_way_error, "pair": alone.pair_error}.items():
        assert error < fewer * two.tables[0].errors[kind] < fewer**2 * three.tables[0].errors[kind]


def test_the_epsilon_that_a_plan_names_keeps_the_link():
    (first,) = plan(DATABASE, 0.5, rows=5_000, rows_per_parent=PER_PARENT).expectations
    assert ("trips", PARENT) in first.enough
    enough = first.enough["trips", PARENT]
    (then,) = plan(DATABASE, enough, rows=5_000, rows_per_parent=PER_PARENT).expectations
    assert first.tables[1].lost(PARENT) > LOST_IF_KEPT >= then.tables[1].lost(PARENT)
    assert "how they depend on the row of homes" in next(then.sentences).split(";")[0]
    assert f"kept from epsilon {enough:.2g} on" in next(first.sentences)


def test_a_table_has_the_links_that_its_columns_allow():
    bare = Database({"homes": Table(Schema({}), key="home"), "trips": TRIPS})
    homes, trips = plan(bare, 1.0, rows=5_000).expectations[0].tables
    assert homes.links == []
    assert set(trips.links) == {NUMBER, NEXT}
    assert trips.errors[NUMBER] < 0.05


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_all_that_a_database_may_declare_can_be_planned(delta, tmp_path):
    (tmp_path / "drugs.csv").write_text("drug,price\na,1\nb,2\n")
    doses = Table(
        Schema({"given": Numerical(0, 90), "cost": Numerical(0, 9), "paid": Categorical(["n", "y"])}),
        parent="homes",
        link="home",
        lookups={"drug": "drugs"},
        children="1..4",
        constant=["paid"],
        constraints=["given >= homes.begins"],
    )
    homes = Table(Schema({"begins": Numerical(0, 90)}), key="home", derive={"spent": "sum(doses.cost)"})
    drugs = Table(key="drug", public=tmp_path / "drugs.csv")
    declared = Database({"homes": homes, "doses": doses, "drugs": drugs})
    found = plan(declared, 1.0, delta, rows=20_000, rows_per_parent={"doses": 2})
    assert 0 < found.expectations[0].tables[1].errors[PARENT] < 0.2
    with pytest.raises(InputError, match="children"):
        plan(declared, 1.0, rows_per_parent={"doses": 5})


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"rows_per_parent": {"trip": 2}}, "did you mean 'trips'"),
        ({"rows_per_parent": {"trips": 0}}, "above 0"),
        ({"target": "km"}, "target"),
        ({"table": pd.DataFrame({"km": [1]}), "schema": DATABASE}, "leave out the data"),
        ({"table": HOMES.schema, "rows_per_parent": {"trips": 1}}, "give a schema with tables"),
        ({"table": Database({"homes": Table(key="home"), "trips": TRIPS})}, "declare them"),
    ],
)
def test_what_cannot_be_planned_is_refused(asked, said):
    with pytest.raises(InputError, match=said):
        plan(**{"table": DATABASE, "epsilon": 1.0} | asked)


SCHEMA = """
tables:
  homes: {key: home, columns: {region: {kind: categorical, values: [n, s]}}}
  trips:
    key: trip
    parent: homes
    link: home
    columns: {km: {kind: numerical, low: 0, high: 9, integer: true}}
"""


def test_the_command_plans_a_schema_of_several_tables(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "homes.yaml").write_text(SCHEMA)
    options = ("--epsilon", 1, "--rows", 10_000, "--rows-per-parent", "trips=2")
    found = run(capsys, "plan", "--schema", "homes.yaml", *options)
    assert found.code == 0
    assert "assumed" not in found.out
    assert "10,000 rows of homes" in found.out
    assert "trips: kept: how many rows" in found.out
    assert run(capsys, "plan", "homes.yaml", *options).out == found.out
    assert "assumed" in run(capsys, "plan", "homes.yaml", "--epsilon", 1).out
    assert "like visits=3" in run(capsys, "plan", "homes.yaml", "--epsilon", 1, "--rows-per-parent", "2").err
    (tmp_path / "homes").mkdir()
    assert "leave out homes" in run(capsys, "plan", "homes", "--schema", "homes.yaml", "--epsilon", 1).err


def test_declared_columns_lead_to_keys_that_are_numbers(tmp_path):
    (tmp_path / "zones.csv").write_text("zone,area\n1,2.5\n2,4.0\n")
    homes = Table(Schema({"at": Categorical()}), key="home", lookups={"at": "zones"})
    zones = Table(key="zone", public=tmp_path / "zones.csv")
    declared = Database({"homes": homes, "trips": TRIPS, "zones": zones})
    assert plan(declared, 1.0, rows=5_000).expectations[0].tables[0].errors
