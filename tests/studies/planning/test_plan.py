"""A plan says what a run would bring, and no row of the table has a say in it."""

from functools import partial
from importlib import resources

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from command import SCHEMA, run
from refusals import refuses

from privsyn import (
    Categorical,
    Database,
    Datetime,
    Identifier,
    Increasing,
    InputError,
    Numerical,
    PrivSyn,
    Schema,
    Table,
    Total,
    evaluate,
    plan,
    read_schema,
)
from privsyn.inference.rows_per_person import LARGEST_BOUND
from privsyn.methods.budget import (
    FOR_BOUNDS,
    FOR_COMMON_VALUES,
    FOR_LATTICES,
    FOR_ROWS,
    FOR_SIZE,
    FOR_VALUES,
    MOST_FOR_SEARCH,
)
from privsyn.studies.planning import planner
from privsyn.studies.planning.planner import ASSUMED_BOUND

LETTERS = list("abcdefgh")


def table(rows=4000, seed=0):
    """Six columns; each is like the one before in four rows of ten."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 8, rows)]
    for _ in range(5):
        codes.append(np.where(rng.random(rows) < 0.4, codes[-1], rng.integers(0, 8, rows)))
    return pd.DataFrame({name: np.array(LETTERS)[c] for name, c in zip("uvwxyz", codes, strict=True)})


OPEN = Schema({name: Categorical(LETTERS, nullable=False) for name in "uvwxyz"})


# It reads no row


def test_a_csv_is_read_to_the_end_of_its_header_and_no_further(folder):
    schema, whole = read_schema("schema.yaml"), plan("data.csv", 1.0, 1e-9, read_schema("schema.yaml"))
    header = (folder / "data.csv").read_text().splitlines()[0]
    (folder / "other.csv").write_text(header + '\n1\n"open, 2, 3, 4, 5, 6\n')
    assert plan("other.csv", 1.0, 1e-9, schema) == whole
    with pytest.raises(InputError, match="quote"):
        PrivSyn(1.0, 1e-9, schema).fit("other.csv")
    assert plan(schema=schema, epsilon=1.0) == plan("data.csv", 1.0, 1e-9, "schema.yaml") == whole


def test_a_plan_counts_the_columns_and_pairs_of_the_run(tmp_path):
    """A plan once took a time for one column, of which a run counts three: 21 pairs beside 36."""
    rng, rows = np.random.default_rng(0), 2000
    minutes = rng.integers(0, 365 * 1440, rows)
    table = pd.DataFrame({"at": pd.Timestamp("2020-01-01") + pd.to_timedelta(minutes, "min")})
    table = table.assign(sex=rng.choice(["f", "m"], rows), age=rng.integers(0, 90, rows))
    columns = {
        "at": Datetime("2020-01-01 00:00", "2020-12-31 23:59", unit="min", nullable=False),
        "sex": Categorical(["f", "m"], nullable=False),
        "age": Numerical(0, 89, integer=True, nullable=False),
    }
    planned = plan(Schema(columns), 1.0, rows=rows)
    model = PrivSyn(1.0, 1e-9, Schema(columns), seed=0).fit(table)
    assert tuple(planned.sizes) == model.release_.table().codec.domain.names
    assert "5 columns with the parts of times (at), 10 pairs" in str(planned)
    assert " of 10 pairs " in model.outlook()
    assert len(plan(Schema(columns), 1.0, rows=rows, target="at").sizes) == 3  # no target is counted in parts


@pytest.mark.parametrize(("rules", "columns"), [([], 4), (["at rises"], 2), (["at >= homes.since"], 2)])
def test_a_plan_counts_a_time_that_a_rule_compares_as_one_column(rules, columns):
    """As a run does: before, as its date, its time of day and its day of the week."""
    time = Datetime("2020-01-01 00:00", "2020-12-31 23:59", unit="min", nullable=False)
    ward = Categorical(["n", "s"], nullable=False)
    homes = Table(
        Schema({"since": Datetime("2020-01-01", "2020-12-31", nullable=False), "area": ward}), key="home"
    )
    visits = Table(
        Schema({"at": time, "ward": ward}), parent="homes", link="home", order="at", constraints=rules
    )
    database = Database({"homes": homes, "visits": visits})
    (expectation,) = plan(database, 20.0, rows=1000).expectations
    assert expectation.tables[1].columns == columns
    minutes = np.random.default_rng(0).integers(0, 365 * 1440, 3000)
    at = pd.Timestamp("2020-01-01") + pd.to_timedelta(minutes, "min")
    rows = {
        "homes": pd.DataFrame({"home": range(1000), "since": pd.Timestamp("2020-01-01"), "area": "n"}),
        "visits": pd.DataFrame({"home": np.arange(3000) // 3, "at": at, "ward": "s"}),
    }
    release = PrivSyn(20.0, 1e-9, database, seed=0).fit(rows).release_
    assert len(release.tables["visits"].codec.domain) == columns


def test_a_parquet_file_is_read_in_its_schema_alone(folder):
    frame = table()
    frame.to_parquet("data.parquet", index=False)
    whole = plan("data.parquet", 1.0, 1e-9, OPEN)
    raw = bytearray((folder / "data.parquet").read_bytes())
    raw[4 : -pq.read_metadata("data.parquet").serialized_size - 8] = b"\0" * (
        len(raw) - pq.read_metadata("data.parquet").serialized_size - 12
    )
    (folder / "data.parquet").write_bytes(raw)
    assert plan("data.parquet", 1.0, 1e-9, OPEN) == whole
    with pytest.raises(InputError, match="damaged"):
        PrivSyn(1.0, 1e-9, OPEN).fit("data.parquet")


# What it says comes about


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_errors_are_those_that_come_about_within_a_factor_of_three(epsilon):
    """The table is made here and the runs are seeded: nothing is left to chance."""
    frame = table()
    (expected,) = plan(frame, epsilon, 1e-9, OPEN, rows=4000).expectations
    accuracy = PrivSyn(epsilon, 1e-9, OPEN, seed=0).fit(frame).accuracy_
    found = {order: [] for order in (1, 2)}
    for columns in accuracy.tables.query("order < 3")["columns"]:
        cells = accuracy.counts(*columns)
        index = pd.MultiIndex.from_frame(cells[list(columns)])
        true = frame.value_counts(list(columns)).reindex(index, fill_value=0).to_numpy()
        found[len(columns)].append(np.abs(cells["estimate"] - true).sum() / 8000)
    assert 1 / 3 < expected.one_way_error / np.mean(found[1]) < 3
    assert 1 / 3 < expected.pair_error / np.mean(found[2]) < 3


@pytest.mark.parametrize("copied", [0.05, 0.8])
@pytest.mark.parametrize("kind", ["lists", "numbers"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_errors_of_pairs_lie_in_their_range_and_those_of_columns_near_the_plan(copied, kind, epsilon):
    """Each column is like the one before in a part of the rows: weakly or strongly. The runs are seeded."""
    rng, rows, values = np.random.default_rng(5), 4000, 8 if kind == "lists" else 200
    codes = [rng.integers(0, values, rows)]
    for _ in range(5):
        codes.append(np.where(rng.random(rows) < copied, codes[-1], rng.integers(0, values, rows)))
    if kind == "lists":
        schema = OPEN
        frame = pd.DataFrame(dict(zip("uvwxyz", np.array(LETTERS)[np.array(codes)], strict=True)))
    else:
        kinds = {name: Numerical(0, values - 1, integer=True, nullable=False) for name in "uvwxyz"}
        schema, frame = Schema(kinds), pd.DataFrame(dict(zip("uvwxyz", codes, strict=True)))
    (expected,) = plan(schema, epsilon, 1e-9, rows=rows).expectations
    tables = PrivSyn(epsilon, 1e-9, schema, seed=0).fit(frame).accuracy_.tables
    columns, pairs = (tables[tables["order"] == order]["expected_error"].mean() for order in (1, 2))
    low, high = expected.root.pair_range
    assert low < expected.pair_error < high
    assert low <= pairs <= high
    assert 1 / 2 < expected.one_way_error / columns < 2


@pytest.mark.parametrize("delta", [0, 1e-9])
@pytest.mark.parametrize("epsilon", [0.5, 5.0])
@pytest.mark.parametrize("columns", [2, 4])
def test_the_noise_in_counts_of_few_listed_columns_is_that_of_a_run(columns, epsilon, delta):
    """With few columns, pairs have most of the budget and measure each column well. The runs are seeded."""
    names = list("uvwxyz"[:columns])
    (expected,) = plan(letters(columns), epsilon, delta, rows=4000).expectations
    tables = PrivSyn(epsilon, delta, letters(columns), seed=0).fit(table()[names]).accuracy_.tables
    alone = tables[tables["order"] == 1]
    assert expected.root.count_noise == pytest.approx(alone["sigma"].mean(), rel=0.15)
    assert expected.one_way_error == pytest.approx(alone["expected_error"].mean(), rel=0.2)


def test_the_noise_in_pairs_of_numbers_is_not_that_of_each_number_alone():
    """With a budget for pairs that are as fine as the numbers, they measure them better than own counts."""
    schema = Schema({name: Numerical(0, 31, integer=True, nullable=False) for name in "uv"})
    rng = np.random.default_rng(1)
    first, other = rng.integers(0, 32, (2, 4000))
    frame = pd.DataFrame({"u": first, "v": np.where(rng.random(4000) < 0.5, first, other)})
    (expected,) = plan(schema, 5.0, 0, rows=4000).expectations
    tables = PrivSyn(5.0, 0, schema, seed=0).fit(frame).accuracy_.tables
    measured = tables[tables["order"] == 1]["expected_error"].mean()
    assert 2 / 3 < expected.one_way_error / measured < 3 / 2


def test_the_split_is_the_one_that_the_run_makes():
    """The budget of one-ways, scores and pairs, as the ledger has it, to a twentieth: sizes may be merged."""
    (expected,) = plan(schema=OPEN, epsilon=1.0, rows=4000).expectations
    spends = PrivSyn(1.0, 1e-9, OPEN, seed=0).fit(table()).ledger_.spends
    whole = sum(spend.rho for spend in spends)
    one_ways = sum(spend.rho for spend in spends if spend.what.startswith("one-way")) / whole
    scores = sum(spend.rho for spend in spends if spend.what.startswith("distance")) / whole
    assert expected.root.parts["one-ways"] == pytest.approx(one_ways, abs=0.05)
    assert expected.root.parts["scores"] == pytest.approx(scores, abs=0.05)
    assert sum(expected.root.parts.values()) == pytest.approx(1)


def test_what_is_to_be_found_costs_its_share():
    schema = Schema({"a": Categorical(), "b": Numerical()})
    many, few = (plan(schema=schema, epsilon=1.0, rows=rows) for rows in (100_000, 1000))
    assert many.to_find == ("a", "b")
    shares = [found.expectations[0].root.parts["values, bounds and grids"] for found in (many, few)]
    smallest = FOR_COMMON_VALUES + FOR_VALUES + 2 * FOR_SIZE + FOR_BOUNDS + FOR_LATTICES
    largest = FOR_COMMON_VALUES + MOST_FOR_SEARCH + 2 * FOR_SIZE + FOR_LATTICES
    assert shares[0] == pytest.approx(smallest)
    assert smallest < shares[1] <= largest
    assert "to be found: a, b" in str(many)
    assert "most values" not in str(many)  # the numbers of values are assumed


def test_of_a_file_without_types_it_is_said_what_bounds_may_cost(tmp_path):
    table(10).to_csv(tmp_path / "t.csv", index=False)
    said = str(plan(tmp_path / "t.csv", 1.0, rows=1000))
    assert "to find their bounds takes 11% more, or up to 43% if there are few rows" in said
    assert "takes 11%" not in str(plan(tmp_path / "t.csv", 1.0, 1e-9, OPEN, rows=1000))


def test_a_person_of_many_rows_costs_noise():
    frame = table(10).assign(person=range(10))
    noise = [
        plan(frame, 1.0, 1e-9, OPEN, rows=10**6, unit="person", rows_per_unit=k)
        .expectations[0]
        .root.count_noise
        for k in (1, 4)
    ]
    assert noise[1] == pytest.approx(4 * noise[0], rel=0.3)


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (None, f"planned with an assumed bound, {ASSUMED_BOUND} rows of one person; "),
        (5, "planned with the largest bound, 5 rows of one person; "),
        (10**8, f"planned with the largest bound, {LARGEST_BOUND} rows of one person; "),
    ],
)
def test_the_bound_that_is_planned_for_is_said_and_so_is_what_twice_as_many_rows_cost(bound, words):
    settings = {"rows": 10**6, "unit": "person"}
    planned = plan(OPEN, 1.0, **settings, rows_per_unit=bound)
    (line,) = [line for line in planned.notes if "bound" in line]
    assert line.startswith(words)
    assert f"take {FOR_ROWS:.0%} of the budget" in line
    if bound == 5:
        (twice,) = plan(OPEN, 1.0, **settings, rows_per_unit=10).expectations
        assert line.endswith(f"expected error {twice.error:.2%} (1,000,000 rows)")


def test_no_histogram_is_planned_for_persons_of_one_row():
    settings = {"rows": 1000, "unit": "person"}
    one, single = plan(OPEN, 1.0, **settings, rows_per_unit=1), plan(OPEN, 1.0, rows=1000)
    assert (one.expectations, one.notes) == (single.expectations, single.notes)
    several = plan(OPEN, 1.0, **settings)
    assert several.rho == pytest.approx((1 - FOR_ROWS) * single.rho / ASSUMED_BOUND**2)


def test_a_schema_in_the_place_of_the_table_is_the_schema():
    schema = Schema({"age": Numerical(0, 9), "sex": Categorical(["F", "M"])})
    assert plan(schema, 1.0, rows=100) == plan(schema=schema, epsilon=1.0, rows=100)
    with pytest.raises(InputError, match="two schemas"):
        plan(schema, 1.0, schema=schema)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"epsilon": -1.0}, "epsilon"),
        ({"rows": 0}, "rows"),
        ({"target": "nobody"}, "target"),
        ({"schema": None}, "columns"),
        ({"rows_per_unit": 2}, "rows_per_unit"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        plan(**({"epsilon": 1.0, "schema": OPEN} | wrong))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "needs unit, the column that identifies the person, and identifiers; one"),
        ({"unit": "id"}, "needs identifiers"),
        ({"unit": "id", "identifiers": True}, "the rows have no order"),
    ],
)
def test_a_plan_refuses_rules_on_rows_of_persons_where_a_run_does(settings, words):
    years = {"year": Numerical(1984, 1988, integer=True), "age": Numerical(25, 64, integer=True)}
    declared = Table(Schema(years), constraints=["year rises", "year - age is constant"])
    for run_or_plan in (PrivSyn, partial(plan, None)):
        with refuses(words):
            run_or_plan(1.0, 1e-9, declared, **settings)


def test_a_plan_says_what_evaluate_finds_of_few_rows():
    """In 1,000 rows columns are counted in few groups, in which errors are a third of those of ten ranges."""
    rng = np.random.default_rng(1)
    first = rng.normal(50, 15, 1000).clip(0, 100).round()
    rows = pd.DataFrame({f"c{n}": (0.5 * first + rng.normal(25, 12, 1000)).clip(0, 100) for n in range(8)})
    schema = Schema({name: Numerical(0, 100) for name in rows})
    synthetic = PrivSyn(1.0, 1e-9, schema).fit(rows).sample()
    found = evaluate(rows, synthetic, schema, models=False).pairs.errors.mean()
    (expected,) = plan(schema=schema, epsilon=1.0, rows=1000).expectations
    assert expected.root.compared["pair"] == pytest.approx(found, rel=0.4)
    assert expected.pair_error < 0.6 * found


# On the command line


def test_the_command_says_it_all(folder, capsys):
    done = run(capsys, "plan", "data.csv", "--epsilon", 1, "--schema", "schema.yaml", "--rows", 3000)
    assert (done.code, done.err) == (0, "")
    for words in (
        "epsilon 1 at delta",
        "budget for single columns",
        "budget for pairs",
        "error of two columns",
        "the same, if columns were independent",
        "  if they depend weakly",
        "  if they depend strongly",
        "  what `evaluate` may find",
        "is in the range, not at the number",
        "8.00%",
        "time of fit and sample, about",
        "no row was read",
    ):
        assert words in done.out
    alone = run(capsys, "plan", "schema.yaml", "--epsilon", 1, "--rows", 3000)
    assert alone.out == done.out


def test_the_command_refuses_a_schema_twice_and_what_is_not_there(folder, capsys):
    twice = run(capsys, "plan", "schema.yaml", "--schema", "schema.yaml", "--epsilon", 1)
    assert (twice.code, twice.out) == (2, "")
    gone = run(capsys, "plan", "gone.parquet", "--epsilon", 1)
    assert "no such file" in gone.err
    (folder / "bad.parquet").write_text(SCHEMA)
    assert "damaged" in run(capsys, "plan", "bad.parquet", "--epsilon", 1).err


def test_the_rows_of_a_plan_are_given_or_supposed():
    assert "if the table has this many rows" in str(plan(schema=OPEN, epsilon=1.0))
    assert "as given" not in str(plan(schema=OPEN, epsilon=1.0))
    assert "rows of the table, as given" in str(plan(schema=OPEN, epsilon=1.0, rows=700))


def test_a_plan_says_what_its_target_changes():
    aimed = plan(schema=OPEN, epsilon=1.0, rows=700, target="u")
    assert "target u: errors in tables with it weigh 4 times" in str(aimed)
    without = str(plan(schema=OPEN, epsilon=1.0, rows=700))
    assert "target" not in without
    assert "model to train" not in without


@pytest.mark.parametrize(
    ("epsilon", "unit", "model"),
    [
        (0.5, None, "a random forest"),
        (1.0, None, "boosting that a linear model taught (Distilled), on 5 times"),
        (5.0, None, "boosting, on 5 times"),
        (1.0, "person", "a random forest"),
    ],
)
def test_a_plan_names_the_model_to_train(epsilon, unit, model):
    """By the epsilon of one row: a person of several rows has more noise."""
    planned = plan(schema=OPEN, epsilon=epsilon, target="u", unit=unit)
    assert f"a model to train: {model}" in str(planned)


def test_a_plan_says_how_wide_released_cells_are():
    """The width that the plan names is that of a run on rows between the bounds, all equally frequent."""
    rows = pd.DataFrame({"pay": np.linspace(0, 256_000, 20_000, endpoint=False), "age": 40})

    def said(high):
        return str(
            plan(
                schema=Schema({"pay": Numerical(0, high), "age": Numerical(0, 99, integer=True)}), epsilon=1.0
            )
        )

    schema = Schema({"pay": Numerical(0, 256_000, nullable=False), "age": Numerical(0, 99, integer=True)})
    released = PrivSyn(5.0, 1e-6, schema, seed=0).fit(rows).accuracy_.counts("pay")
    assert len(released) == 32
    assert "of about as many rows each: 8,000 wide for pay if" in said(256_000)
    assert "of about as many rows each: 80,000 wide for pay if" in said(2_560_000)
    assert "wide for" not in str(plan(schema=OPEN, epsilon=1.0))


def test_plan_report_and_evaluate_define_their_errors_alike():
    same = "the share of rows that would have to change"
    pages = resources.files("privsyn.pages").joinpath("templates")
    assert same in str(plan(schema=OPEN, epsilon=1.0))
    for page in ("comparison.html", "public.html"):
        text = pages.joinpath(page).read_text(encoding="utf-8")
        assert same in text
        assert "have to move" not in text


# Pure epsilon


PURE_IS_AS_GOOD = (
    "pure epsilon (delta 0) is expected to be at least as accurate as delta 1e-09 at this epsilon"
)


def letters(columns):
    return Schema({name: Categorical(LETTERS, nullable=False) for name in "uvwxyz"[:columns]})


@pytest.mark.parametrize("columns", [2, 3])
def test_a_plan_says_that_few_columns_lose_nothing_without_a_delta_and_runs_agree(columns):
    """The runs are seeded: nothing is left to chance."""
    schema = letters(columns)
    assert PURE_IS_AS_GOOD in str(plan(schema, 1.0)).splitlines()
    assert PURE_IS_AS_GOOD in str(plan(schema, 1.0, 0)).splitlines()
    frame = table()[list("uvwxyz"[:columns])]
    errors = {}
    for delta in (0, 1e-9):
        models = [PrivSyn(1.0, delta, schema, seed=seed).fit(frame) for seed in (1, 2)]
        errors[delta] = np.mean([model.accuracy_.tables["expected_error"].mean() for model in models])
    assert errors[0] < errors[1e-9]


def test_a_plan_for_many_columns_says_what_a_delta_would_gain():
    schema = Schema({f"c{i}": Categorical(LETTERS, nullable=False) for i in range(12)})
    gaussian, pure = plan(schema, 1.0, rows=10_000), plan(schema, 1.0, 0, rows=10_000)
    assert "pure epsilon" not in str(gaussian)
    assert f"with delta 1e-09 the expected error is lower: {gaussian.expectations[0].error:.2%}" in str(pure)
    assert pure.rho == 1.0


def test_a_plan_praises_no_pure_epsilon_that_is_worse_for_single_columns():
    """Of these columns pairs are expected a little nearer, and single columns at twice the error."""
    numbers = {f"n{i}": Numerical(0, 10_000, integer=True, nullable=False) for i in range(9)}
    classes = {f"c{i}": Categorical(LETTERS[:4], nullable=False) for i in range(5)}
    schema = Schema(numbers | classes)
    gaussian, pure = plan(schema, 1.0, rows=3340), plan(schema, 1.0, 0, rows=3340)
    (of_gaussian,), (of_pure,) = gaussian.expectations, pure.expectations
    assert of_pure.error < of_gaussian.error
    assert of_pure.root.compared["column"] > 1.2 * of_gaussian.root.compared["column"]
    assert PURE_IS_AS_GOOD not in str(gaussian)
    assert PURE_IS_AS_GOOD not in str(pure)
    assert "with delta 1e-09 some of the errors below are lower and some higher: plan it too" in str(pure)


@pytest.mark.parametrize("epsilon", [1.0, 10.0])
def test_errors_without_a_delta_come_about_within_a_factor_of_three(epsilon):
    frame = table()
    planned = plan(OPEN, epsilon, 0, rows=len(frame)).expectations[0]
    tables = PrivSyn(epsilon, 0, OPEN, seed=1).fit(frame).accuracy_.tables
    measured = tables[tables["order"] == 2]["expected_error"].mean()
    assert measured / 3 < planned.pair_error < 3 * measured


def test_a_plan_without_a_delta_refuses_values_to_be_found():
    with pytest.raises(InputError, match="delta 0 cannot find the values of 'u'"):
        plan(table()[["u"]], 1.0, 0)


def test_a_plan_names_the_columns_that_it_does_not_count():
    columns = {
        name: Numerical(0, high, integer=True) for name, high in (("part", 9), ("rest", 9), ("total", 18))
    }
    schema = Schema(columns | {"who": Identifier()}, constraints=[Total("total", ["part", "rest"])])
    text = str(plan(schema=schema, epsilon=1.0))
    assert "\n2 columns, 1 pair; most values or cells: part (11), rest (11)\n" in text
    assert "\nnot counted, as they are computed, generated or left out: total, who\n" in text
    assert "not counted" not in str(plan(schema=Schema(columns), epsilon=1.0))


@pytest.mark.parametrize("target", [None, "loan"])
def test_a_plan_sets_aside_what_a_run_spends_on_spreads(target, monkeypatch):
    """A column that is counted whatever it spreads, such as the target, is not asked about."""
    columns = {name: Numerical(0, 99, integer=True) for name in ("loan", "paid")}
    schema = Schema(columns, constraints=["paid <= loan"])
    planned, expected = [], planner.expected_share
    monkeypatch.setattr(
        planner, "expected_share", lambda *a, **k: planned.append(expected(*a, **k)) or planned[-1]
    )
    plan(schema, 1.0, rows=100, target=target)
    table = pd.DataFrame({"loan": [5, 9], "paid": [1, 9]})
    ledger = PrivSyn(1.0, schema=schema, target=target).fit(table).ledger_
    spent = sum(spend.cost for spend in ledger.spends if spend.what.startswith("spreads of"))
    assert planned[0] == pytest.approx(spent / ledger.budget, rel=1e-6)
    assert (spent == 0) == (target is not None)


def test_a_plan_counts_the_columns_of_a_sum_that_a_run_counts():
    bounds = {"revenue": (0, 400_000), "costs": (0, 300_000), "profit": (-60_000, 100_000)}
    columns = {name: Numerical(*ends, integer=True) for name, ends in bounds.items()}
    schema = Schema(columns, constraints=["profit == revenue - costs"])
    assert set(plan(schema, 1.0, rows=100).sizes) == {"costs", "profit"}
    assert set(plan(schema, 1.0, rows=100, target="revenue").sizes) == {"revenue", "profit"}


@pytest.mark.parametrize("important", [(), [["end", "kind"]]], ids=["nothing", "the end"])
def test_a_plan_counts_the_gaps_that_the_run_counts(important):
    """An end that matters most is counted itself, and the begin by its distance: the plan had the reverse."""
    begin = Datetime("2025-01-01", "2025-12-31")
    columns = {"begin": begin, "end": begin, "kind": Categorical(["a", "b"])}
    schema = Schema(columns, constraints=[Increasing(["begin", "end"])])
    days = pd.Timestamp("2025-01-01") + pd.to_timedelta(np.arange(300), "D")
    rows = pd.DataFrame({"begin": days, "end": days + pd.Timedelta("9D"), "kind": ["a", "b"] * 150})
    model = PrivSyn(1.0, 1e-9, schema, important=important, seed=0).fit(rows)
    counted = [names for names in model.accuracy_.tables["columns"] if len(names) == 1]
    planned = plan(schema, 1.0, 1e-9, rows=300, important=important).sizes
    assert {*planned} == {name for (name,) in counted}


def test_the_mean_and_the_largest_error_of_columns_are_those_of_the_release():
    """A flag and a number differ by ten times: the mean alone hid what the page shows of the number."""
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        {f"f{k}": rng.choice(["no", "yes"], 4000) for k in range(8)} | {"n": rng.integers(0, 1000, 4000)}
    )
    flags = {f"f{k}": Categorical(["no", "yes"], nullable=False) for k in range(8)}
    schema = Schema(flags | {"n": Numerical(0, 999, integer=True, nullable=False)})
    (expected,) = plan(schema, 1.0, 1e-9, rows=len(rows)).expectations
    release = PrivSyn(1.0, 1e-9, schema, seed=0).fit(rows).release_
    tables = release.accuracy_.tables
    errors = tables.loc[tables["order"] == 1, "expected_error"]
    assert expected.root.largest > 4 * expected.one_way_error
    assert 2 / 3 < expected.one_way_error / errors.mean() < 1.5
    assert 2 / 3 < expected.root.largest / errors.max() < 1.5
    assert "  of the worst column " in str(plan(schema, 1.0, 1e-9, rows=len(rows)))
