"""Public rows are weighted to released counts, as far as these show that the rows are near."""

import io

import numpy as np
import pandas as pd
import pytest
import reference
from hospital import store
from refusals import refuses

from privsyn import Categorical, InputError, Numerical, PrivSyn, Schema, load
from privsyn.cli.main import main
from privsyn.inference import _kernels
from privsyn.inference.public.weights import _Answers, weighted_counts
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.release.public_table import PublicTable
from privsyn.synthesis.targets import Targets

NAMES = tuple("abcdef")


def chained(rows: int, seed: int, stays: float, first: float = 0.5) -> pd.DataFrame:
    """Return columns each of which is the one before with probability `stays`, else one of four at random."""
    rng = np.random.default_rng(seed)
    columns = [np.where(rng.random(rows) < first, 0, rng.integers(0, 4, rows))]
    for _ in NAMES[1:]:
        same = rng.random(rows) < stays
        columns.append(np.where(same, columns[-1], rng.integers(0, 4, rows)))
    return pd.DataFrame(dict(zip(NAMES, columns, strict=True)))


SCHEMA = Schema({name: Categorical([0, 1, 2, 3], nullable=False) for name in NAMES})
PRIVATE = chained(3000, 0, 0.8, 0.4)
NEAR, FAR = chained(3000, 1, 0.8), chained(3000, 2, 0.0, 0.9)


@pytest.fixture(scope="module")
def release():
    return PrivSyn(0.15, 1e-9, SCHEMA, seed=0).fit(PRIVATE).release_


def error(rows: pd.DataFrame) -> float:
    """Return the mean total variation of all sets of three columns to the private rows."""
    sets = [[a, b, c] for a in NAMES for b in NAMES for c in NAMES if a < b < c]
    shares = [[t[s].value_counts(normalize=True) for s in sets] for t in (rows, PRIVATE)]
    return float(np.mean([0.5 * a.sub(b, fill_value=0).abs().sum() for a, b in zip(*shares, strict=True)]))


def test_weights_are_those_of_the_slow_twin():
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 3, (4, 50)).astype(np.int32)
    starts, counts, variances = np.arange(0, 15, 3), rng.normal(30, 9, 12), rng.uniform(0, 50, 12)
    weights, multipliers = np.full(50, 2.0), np.zeros(12)
    ridges = np.array([0.1, 1.0, 0.01, 0.3])
    slow = reference.weigh(cells, starts, counts, variances, ridges, weights, multipliers)
    for _ in range(2):
        _kernels.weigh(cells, _kernels.CellCounts(starts, counts, variances, ridges), weights, multipliers)
    assert np.allclose(weights, slow, rtol=1e-6)


def test_without_noise_the_counts_are_met():
    rows = Records(Domain(("a", "b"), (4, 4)), NEAR[["a", "b"]].to_numpy())
    counts = np.array([1000.0, 900, 600, 500, 1200.0, 800, 400, 600])
    weights = np.full(len(rows), 1.0)
    for _ in range(50):
        noisy = _kernels.CellCounts(np.array([0, 4, 8]), counts, np.zeros(8), np.ones(2))
        _kernels.weigh(rows.codes.T, noisy, weights, np.zeros(8))
    assert np.allclose(np.concatenate(weighted_counts(rows, [("a",), ("b",)], weights)), counts)


def test_a_column_that_departs_with_another_is_moved_with_it():
    """Twice as many private records have a 1 in both. Once the first has its weights, the second agrees."""
    domain = Domain(("a", "b"), (2, 2))
    rows = Records(domain, np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], [600, 60, 40, 300], axis=0))
    counts = {"a": [320.0, 680.0], "b": [364.8, 635.2]}
    measured = [
        Measurement(Marginal(Domain((name,), (2,)), np.array(c)), np.full(2, 25.0))
        for name, c in counts.items()
    ]
    ridges = _Answers.of(rows, measured).ridges(measured, 1000.0)
    assert ridges[1] > 20 * ridges[0]


def test_a_table_whose_noise_hides_all_is_moved_as_far_as_other_tables():
    """The answers are the public counts. Alone, the noise of the large table leaves nearly any dispersion."""
    rng = np.random.default_rng(0)
    rows = Records(Domain(("a", "b", "c"), (2, 2, 2)), rng.integers(0, 2, (1000, 3)).astype(np.int32))
    sets = [("a", "b"), ("a", "c"), ("b", "c"), ("a", "b", "c")]
    measured = [
        Measurement(Marginal(rows.domain.project(names), counts), np.full(counts.shape, variance))
        for names, counts, variance in zip(
            sets, weighted_counts(rows, sets, np.ones(1000)), [25.0, 25.0, 25.0, 1e6], strict=True
        )
    ]
    ridges = _Answers.of(rows, measured).ridges(measured, 1000.0)
    assert ridges.max() < 1.5 * ridges.min()


def test_a_near_table_makes_rows_better(release):
    better = release.with_public(NEAR)
    assert better.fitted.public_rows.share > 0.3
    assert error(better.sample(3000, seed=0)) < 0.8 * error(release.sample(3000, seed=0))
    assert "the public table of 3,000 rows (SHA-256 " in better.ledger.public_inputs[-1]


def test_a_far_table_changes_nothing(release):
    same = release.with_public(FAR)
    assert same.fitted is release.fitted
    assert same.sample(100, seed=0).equals(release.sample(100, seed=0))
    assert "it is far from the released answers" in same.ledger.public_inputs[-1]
    assert same.ledger.epsilon(1e-9) == release.ledger.epsilon(1e-9)


def test_it_comes_back_from_a_file_as_it_was(release):
    better, file = release.with_public(NEAR), io.BytesIO()
    better.save(file)
    file.seek(0)
    loaded = load(file)
    assert loaded.packed() == better.packed()
    assert loaded.sample(500, seed=1).equals(better.sample(500, seed=1))


def test_a_table_may_lack_columns_and_have_other_values(release):
    public = NEAR.drop(columns=["c", "f"]).assign(more="x")
    public.loc[:9, "a"] = 7
    better = release.with_public(public)
    assert better.ledger.public_inputs[-1].endswith(
        "10 rows with values that the schema does not have, in 'a', are left out"
    )
    assert "in most rows: 'c'" in release.with_public(NEAR.assign(c=7)).ledger.public_inputs[-1]
    without = release.with_public(NEAR.drop(columns="c"))
    assert without.sample(100, seed=0).equals(release.with_public(NEAR.assign(c=7)).sample(100, seed=0))
    rows = better.sample(3000, seed=0)
    assert list(rows.columns) == list(NAMES)
    alone = release.sample(3000, seed=0)
    assert (rows["c"] == rows["b"]).mean() > (alone["c"] == alone["b"]).mean() - 0.05
    with pytest.raises(InputError, match="no column of the private table"):
        release.with_public(NEAR[[]].assign(more="x"))


def test_a_table_of_listed_text_and_numbers_is_read_as_the_release_reads_it(tmp_path):
    schema = Schema({"age": Numerical(0, 99, integer=True), "sex": Categorical(["f", "m"])})
    rng = np.random.default_rng(0)

    def table(rows):
        sex = rng.choice(["f", "m"], rows)
        return pd.DataFrame({"age": np.where(sex == "f", 60, 30) + rng.integers(0, 20, rows), "sex": sex})

    release = PrivSyn(1.0, 1e-9, schema, seed=0).fit(table(2000)).release_
    public = table(500)
    public.to_csv(tmp_path / "last.csv", index=False)
    read, dropped = PublicTable.read(tmp_path / "last.csv", schema).encoded(release.codec)
    cells = public.astype({"sex": release.codec.specimen(rng)["sex"].dtype})
    assert np.array_equal(read.codes, release.codec.encode(cells).codes)
    assert dropped == ""
    assert "last.csv" in release.with_public(tmp_path / "last.csv").ledger.public_inputs[-1]


def test_a_run_with_a_public_table_is_the_run_without_it_and_improved(release, tmp_path):
    release.save(tmp_path / "year.privsyn")
    for public in (NEAR, FAR):
        model = PrivSyn(0.15, 1e-9, SCHEMA, seed=0, public=public).fit(PRIVATE)
        assert model.release_.packed() == release.with_public(public).packed()
    year = tmp_path / "year.privsyn"
    model = PrivSyn(0.15, 1e-9, SCHEMA, seed=0, since=year).fit(PRIVATE)
    assert model.release_.packed() == release.with_since(year).packed()
    assert "rows drawn from the earlier release '" in model.ledger_.public_inputs[-1]
    tables = PrivSyn(0.15, 1e-9, SCHEMA, seed=0, public=NEAR, public_rows=False).fit(PRIVATE)
    assert tables.release_.fitted.public_rows is None
    assert "in the counts of rows from which synthetic ones are made" in tables.ledger_.public_inputs[-1]


def numbers(rows: int, mean: float, slope: float, rng: np.random.Generator) -> pd.DataFrame:
    """Return two columns of whole numbers; the slope is that of the second, in standard deviations."""
    z = rng.standard_normal(rows)
    y = slope * z + np.sqrt(1 - slope**2) * rng.standard_normal(rows)
    return pd.DataFrame({"x": np.clip(mean + 12 * z, 0, 99), "y": np.clip(50 + 12 * y, 0, 99)}).round()


TWO_NUMBERS = Schema({name: Numerical(0, 99, integer=True) for name in ("x", "y")})


@pytest.mark.parametrize(("rows", "epsilon"), [(4000, 0.3), (1000, 0.3), (1000, 0.5)])
def test_numbers_of_a_near_table_help_and_of_a_far_one_stay_away(rows, epsilon):
    """Rows of the other sign can have the counts of columns and of a coarse pair: concordances object."""
    rng = np.random.default_rng(0)
    release = PrivSyn(epsilon, 1e-9, TWO_NUMBERS, seed=0).fit(numbers(rows, 45, 0.9, rng)).release_
    improved = release.with_public(numbers(2000, 45, 0.9, rng))
    assert improved.fitted.public_rows.share > 0.5
    correlations = [r.sample(rows, seed=0).corr().loc["x", "y"] for r in (release, improved)]
    assert correlations[0] < correlations[1]
    assert release.with_public(numbers(2000, 57, -0.3, rng)).fitted is release.fitted


def test_of_a_table_without_the_target_no_row_is_a_synthetic_one(release):
    public = NEAR.drop(columns="f")
    improved = release.with_public(public, target="f")
    assert improved.fitted.public_rows is None
    assert improved.ledger.public_inputs[-1].endswith("because it lacks the target 'f'")
    assert improved.packed() != release.packed()
    assert release.with_public(public, target="a").fitted.public_rows is not None
    assert release.with_public(NEAR.assign(f=7), target="f").fitted.public_rows is None
    model = PrivSyn(0.15, 1e-9, SCHEMA, seed=1, target="f", public=public).fit(PRIVATE)
    assert "lacks the target" in model.ledger_.public_inputs[-1]
    with refuses("target 'g' is not one of the columns"):
        release.with_public(public, target="g")


def test_the_command_betters_a_saved_model(release, tmp_path):
    release.save(tmp_path / "model.privsyn")
    NEAR.to_csv(tmp_path / "year.csv", index=False)
    files = [str(tmp_path / name) for name in ("model.privsyn", "out.csv")]
    assert (
        main(["sample", *files, "--rows", "50", "--seed", "0", "--public", str(tmp_path / "year.csv")]) == 0
    )
    rows = release.with_public(tmp_path / "year.csv").sample(50, seed=0)
    assert pd.read_csv(tmp_path / "out.csv").equals(rows.astype("int64"))


@pytest.mark.parametrize(
    "public", ["none.csv", NEAR[["a"]].assign(a="x"), NEAR[["a"]].rename(columns=str.upper)]
)
def test_a_table_that_cannot_be_used_is_refused_before_any_question(public):
    def watch(stage, done, total):
        assert stage != "measuring"

    with pytest.raises(InputError):
        PrivSyn(0.15, 1e-9, SCHEMA, public=public, progress=watch).fit(PRIVATE)


def test_the_private_table_is_no_public_one(tmp_path):
    with refuses("public is the private table itself"):
        PrivSyn(0.15, 1e-9, SCHEMA, public=PRIVATE).fit(PRIVATE)
    PRIVATE.to_csv(tmp_path / "people.csv", index=False)
    with refuses("public is the private table itself"):
        PrivSyn(0.15, 1e-9, SCHEMA, public=str(tmp_path / "people.csv")).fit(tmp_path / "people.csv")


def test_the_private_table_has_several_names(tmp_path):
    (tmp_path / "here").mkdir()
    database, people = tmp_path / "people.sqlite", tmp_path / "here" / "people.csv"
    store({"people": PRIVATE[:50], "last_year": NEAR[:50]}, database)
    PRIVATE[:50].to_csv(people, index=False)
    (tmp_path / "there").symlink_to("here")
    (tmp_path / "linked.sqlite").symlink_to(database)
    (tmp_path / "hard.csv").hardlink_to(people)
    for private, public in [
        (f"{database}::people", tmp_path / "linked.sqlite::people"),
        (f"{database}::people", database),
        (people, tmp_path / "there" / "people.csv"),
        (people, tmp_path / "hard.csv"),
    ]:
        with refuses("public is the private table itself"):
            PrivSyn(0.15, 1e-9, SCHEMA, public=public).fit(private)
    PrivSyn(0.15, 1e-9, SCHEMA, public=f"{database}::last_year").fit(f"{database}::people")


def test_a_defect_after_the_questions_costs_the_public_table_and_not_the_paid_run(release, monkeypatch):
    def fails(*_):
        raise ZeroDivisionError

    monkeypatch.setattr("privsyn.release.public_tables.with_public_rows", fails)
    model = PrivSyn(0.15, 1e-9, SCHEMA, seed=0, public=NEAR).fit(PRIVATE)
    assert "could not be used (ZeroDivisionError)" in model.ledger_.public_inputs[-1]
    pd.testing.assert_frame_equal(model.sample(500, seed=1), release.sample(500, seed=1))


def test_a_public_table_of_no_row_is_not_called_far(release):
    fact = release.with_public(NEAR[:0]).ledger.public_inputs[-1]
    assert "no row of it has only values of the schema" in fact


def test_the_summary_says_what_became_of_the_public_table(tmp_path, capsys):
    PRIVATE.to_csv(tmp_path / "people.csv", index=False)
    NEAR.to_csv(tmp_path / "year.csv", index=False)
    command = ["synth", *(str(tmp_path / name) for name in ("people.csv", "out.csv")), "--epsilon", "1"]
    assert main([*command, "--public", str(tmp_path / "year.csv")]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("the public table")]
    assert "SHA-256" not in line


def test_targets_of_the_other_records_add_up():
    domain = Domain(("a", "b"), (2, 2))
    pair = Marginal(domain, np.array([[40.0, 10.0], [20.0, 30.0]]))
    targets = Targets((pair.project(("a",)), pair.project(("b",))), (pair,))
    some = Records(domain, np.array([[0, 0]] * 10 + [[1, 1]] * 5))
    (rest,) = targets.beside(some, 100).tables
    assert rest.counts.tolist() == [[30.0, 10.0], [20.0, 25.0]]
