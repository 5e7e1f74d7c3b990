"""Laws of the comparison: the scores of a copy, of an independent table and of a shifted one."""

from __future__ import annotations

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy.stats import contingency

from privsyn import Categorical, Datetime, InputError, Numerical, Schema, evaluate
from privsyn.evaluation import marginals as margins
from privsyn.evaluation.encoding import MISSING, MOST_VALUES, OTHER, code_together
from privsyn.evaluation.link_metrics import METRICS_OF_PERSONS
from privsyn.evaluation.marginals import (
    answer,
    cramers_v,
    make_queries,
    sample_of_margins,
    shares,
    wasserstein,
)
from privsyn.evaluation.models import Task
from privsyn.evaluation.registry import METRICS
from privsyn.evaluation.scores import NOT_PRIVATE
from privsyn.marginals.domain import Domain, Records

ROWS = 2000


def table(seed: int = 0, rows: int = ROWS) -> pd.DataFrame:
    """Pay follows the job, and the job decides who has a start date; a rare job and many missing cells."""
    rng = np.random.default_rng(seed)
    job = rng.choice(["baker", "clerk", "miller", "smith"], size=rows, p=[0.5, 0.3, 0.195, 0.005])
    pay = np.where(job == "baker", 1000.0, 2000.0) + rng.normal(0, 200, rows)
    start = np.where(job == "miller", None, "2019-03-01")
    return pd.DataFrame(
        {
            "job": job,
            "pay": pay.round(2),
            "age": rng.integers(16, 100, rows),
            "start": start,
            "rich": np.where(pay > 1500, "yes", "no"),
        }
    )


SCHEMA = Schema(
    {
        "job": Categorical(["baker", "clerk", "miller", "smith"]),
        "pay": Numerical(0, 4000, decimals=2),
        "age": Numerical(16, 100, integer=True),
        "start": Datetime("2015-01-01", "2020-12-31"),
        "rich": Categorical(["no", "yes"]),
    }
)


@pytest.fixture(scope="module")
def of_a_copy():
    return evaluate(table(), table(), SCHEMA, target="rich")


TEST = table(2, 500)


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["no schema", "schema"])
@pytest.mark.parametrize(
    ("test", "words"),
    [
        (TEST.assign(pay="much"), "column 'pay' of the test table has no number"),
        (TEST.assign(pay=np.nan), "column 'pay' of the test table has no number"),
        (TEST.assign(start="soon"), "column 'start' of the test table has no date"),
        (TEST.assign(rich=None), "target 'rich' has no cell in the test table"),
        (TEST.assign(rich="maybe"), "no cell of the target 'rich' in the test table has a value of the real"),
        (table().sample(frac=1, random_state=0), "the test table has the rows of the real one"),
        (table(1), "the test table has the rows of the synthetic one"),
    ],
)
def test_test_rows_that_fit_no_other_table_are_refused(test, words, schema):
    with pytest.raises(InputError, match=words):
        evaluate(table(), table(1), schema, target="rich", test=test, models=["linear"])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("test", "words"),
    [
        (TEST[:3], ["only 3 test rows"]),
        (pd.concat([TEST, table()[:100]]), ["100 of 600 test rows are rows of the real table too"]),
        (TEST.assign(job="king"), ["column 'job': 100% of the test cells have values that no real row has"]),
        (TEST.astype({"age": object}).replace({"age": {16: "young"}}), ["column 'age': 4 test cells cannot"]),
        (TEST, []),
    ],
)
def test_what_is_odd_about_test_rows_is_in_the_scores(test, words):
    scores = evaluate(table(), table(1), target="rich", test=test, models=["linear"])
    assert len(scores.remarks) == len(words)
    for remark, word in zip(scores.remarks, words, strict=True):
        assert word in remark
        assert f"test table: {remark}" in str(scores)
    assert f"{len(test)} test rows; 5 columns" in str(scores)
    assert "held out" not in str(scores)


def test_few_kinds_of_rows_are_no_copy():
    """Two columns of two values: all test rows are real rows too, as they must be."""
    real, test = (
        pd.DataFrame(np.random.default_rng(k).integers(0, 2, (n, 2))) for k, n in ((0, 400), (1, 99))
    )
    names = {0: "a", 1: "b"}
    scores = evaluate(real.rename(columns=names), real.rename(columns=names), test=test.rename(columns=names))
    assert scores.remarks == ()


@pytest.mark.parametrize("schema", [None, SCHEMA], ids=["no schema", "schema"])
def test_a_copy_is_without_error(schema):
    scores = evaluate(table(), table(), schema, models=False)
    for name in METRICS.keys() - METRICS_OF_PERSONS.keys():
        of_errors = name.endswith(("_mean", "_max")) and not name.startswith("weighted")
        if of_errors or name in ("missing_patterns", "unseen"):
            assert getattr(scores, name).synthetic == 0, name
    assert scores.rare_covered.synthetic == scores.identical_rows.synthetic == scores.gap_closed == 1


def test_a_copy_is_indistinguishable_and_as_good_for_training(of_a_copy):
    # Half of the copies lie in the other half of the comparison, which can only make the AUC smaller.
    assert of_a_copy.propensity.synthetic < 0.6
    assert of_a_copy.learning["boosting_auc"].synthetic > 0.95
    assert of_a_copy.learning["boosting_auc"].independent == 0.5


@pytest.mark.slow
def test_independent_columns_lose_dependence_and_are_recognised():
    real = table()
    rng = np.random.default_rng(1)
    independent = pd.DataFrame({name: rng.permutation(cells) for name, cells in real.items()})
    scores = evaluate(real, independent, SCHEMA, target="rich")
    assert scores.one_way_max.synthetic == 0
    assert scores.gap_closed < 0.1  # exact shares in each column are worth a little
    assert scores.pair_mean.synthetic == pytest.approx(scores.pair_mean.independent, rel=0.1)
    assert scores.propensity.synthetic > 0.9
    assert 0.3 < scores.learning["boosting_auc"].synthetic < 0.7


@pytest.mark.parametrize("cells", [[98052, 98001, 98052], [98052.0, 98001.0, np.nan]])
def test_codes_of_a_data_frame_are_those_of_a_file(cells):
    """A file has texts where no values are listed; as other values, all rows of one table were errors."""
    texts = pd.DataFrame({"zip": ["98052", "98001", "98052"]})
    schema = Schema({"zip": Categorical()})
    view, (one, two) = code_together([texts, pd.DataFrame({"zip": cells})], schema)
    assert view.labels[0][:2] == ("98052", "98001")
    assert one.records.codes[:2].tolist() == two.records.codes[:2].tolist()


def test_identifiers_are_left_out_by_name_with_a_line():
    ours, theirs = (table(seed).assign(customer_id=range(ROWS)) for seed in (0, 1))
    scores, without = evaluate(ours, theirs, models=False), evaluate(table(), table(1), models=False)
    assert scores.left_out == ("customer_id",)
    assert scores.row() == without.row()
    assert (
        "left out, because their names look like identifiers: customer_id; a schema can include them"
        in str(scores)
    )
    assert not without.left_out
    assert "left out" not in str(without)


def test_cells_too_far_apart_are_refused_and_not_quoted():
    wide = pd.DataFrame({"a": [-1.25e308, 1.25e308, *range(50)]})
    with refuses("column 'a': its range is too wide to be compared") as refused:
        evaluate(wide, wide, Schema({"a": Numerical()}), models=False)
    assert "1.25" not in str(refused.value)


def test_total_variation_is_the_share_of_rows_that_would_have_to_change():
    real = pd.DataFrame({"a": ["x"] * 8 + ["y"] * 2, "b": ["u"] * 10})
    moved = pd.DataFrame({"a": ["x"] * 5 + ["y"] * 5, "b": ["u"] * 10})
    scores = evaluate(real, moved, models=False)
    assert scores.worst[1][0] == (("a",), pytest.approx(0.3))
    assert scores.pair_mean.synthetic == pytest.approx(0.3)


@pytest.mark.parametrize("dense", [2**22, 1], ids=["dense", "sparse"])
def test_shares_are_the_same_whether_all_cells_are_kept_or_only_those_with_rows(monkeypatch, dense):
    monkeypatch.setattr(margins, "DENSE", dense)
    rng = np.random.default_rng(0)
    domain = Domain(("a", "b", "c"), (3, 4, 5))
    one, two = (Records(domain, rng.integers(0, 3, (50, 3))) for _ in range(2))
    ours, theirs = shares([one, two], ("a", "c"))
    counts = [pd.crosstab(t.codes[:, 0], t.codes[:, 2]).to_numpy() / 50 for t in (one, two)]
    assert np.abs(ours - theirs).sum() == pytest.approx(np.abs(counts[0] - counts[1]).sum())


@pytest.mark.parametrize(("n", "order"), [(6, 1), (6, 2), (7, 3)])
def test_the_sample_of_margins_is_a_sorted_part_of_all(n, order):
    names = tuple("abcdefg"[:n])
    everything = list(combinations(names, order))
    assert sample_of_margins(names, order, 1000) == everything
    some = sample_of_margins(names, order, 4)
    assert len(set(some)) == 4
    assert some == sorted(some)
    assert set(some) <= set(everything)


def test_a_wide_table_is_compared_on_a_bounded_sample():
    names = tuple(f"c{place}" for place in range(300))
    assert len(sample_of_margins(names, 2, margins.MOST_PAIRS)) == margins.MOST_PAIRS
    assert len(set(sample_of_margins(names, 3, margins.TRIPLES))) == margins.TRIPLES


def test_associations_are_those_of_scipy():
    rng = np.random.default_rng(3)
    a = rng.integers(0, 6, 500)
    b = np.clip(a + rng.integers(-1, 3, 500), 0, 7)
    counts = pd.crosstab(a, b).to_numpy()
    assert cramers_v(counts / 500) == pytest.approx(contingency.association(counts, method="cramer"))


def test_queries_count_what_they_say():
    domain = Domain(("a", "b", "c"), (4, 5, 6), ordered=(4, 0, 0))
    rng = np.random.default_rng(5)
    records = Records(domain, rng.integers(0, 4, (40, 3)))
    queries = make_queries(records)
    for place in range(20):
        picked = [
            all(low <= row[axis] <= high for axis, low, high in zip(*query, strict=True))
            for row in records.codes
            for query in [(queries.axes[place], queries.first[place], queries.last[place])]
        ]
        assert answer(queries, records)[place] == np.mean(picked)


def test_a_shift_by_a_constant_is_its_wasserstein_distance():
    cells = np.array([1.0, 5.0, np.nan, 9.0])
    assert wasserstein(cells, cells + 2) == pytest.approx(2 / np.nanstd(cells))
    nothing = np.array([np.nan])
    assert wasserstein(cells, nothing) == 1
    assert wasserstein(nothing, nothing) == wasserstein(np.ones(3), np.ones(2)) == 0


def test_rare_and_unseen_values_are_counted():
    real = table()[["job"]]
    synthetic = real.replace({"smith": "baker", "miller": "nurse"})
    scores = evaluate(real, synthetic, models=False)
    assert scores.unseen.synthetic == pytest.approx((synthetic["job"] == "nurse").mean())
    assert scores.rare_covered.synthetic == 0
    assert scores.rare_covered.real == 1


def test_patterns_of_missing_cells_are_compared_across_columns():
    real = pd.DataFrame({"a": ["x", None] * 50, "b": ["y", None] * 50})
    other = pd.DataFrame({"a": ["x", None] * 50, "b": [None, "y"] * 50})
    assert evaluate(real, other, models=False).missing_patterns.synthetic == 1


def test_open_bounds_and_values_come_from_both_tables():
    open_schema = Schema({"job": Categorical(), "pay": Numerical(), "start": Datetime()})
    real = table()[["job", "pay", "start"]]
    other = real.assign(job="nurse", pay=9000.0, start="2024-05-01")
    view, (one, two) = code_together([real, other], open_schema)
    assert one.records.domain == two.records.domain
    assert set(view.labels[0]) == {"baker", "clerk", "miller", "smith", "nurse"}
    assert set(two.records.codes[:, 1]) == {31}
    assert view.labels[2][-1] == MISSING
    assert view.labels[2][-2].endswith("2024-05-01")


def test_an_unlisted_value_and_a_mark_are_not_the_same():
    schema = Schema({"job": Categorical(["baker"], missing="?")})
    view, (codes,) = code_together([pd.DataFrame({"job": ["baker", "?", "clerk", None]})], schema)
    assert view.labels[0] == ("baker", OTHER, MISSING)
    assert codes.records.codes[:, 0].tolist() == [0, 2, 1, 2]


def test_a_column_of_names_keeps_its_most_frequent_values():
    names = pd.DataFrame({"name": [f"n{place}" for place in range(2 * MOST_VALUES)]})
    view, _ = code_together([names])
    assert len(view.labels[0]) == MOST_VALUES + 1
    assert view.labels[0][-1] == OTHER


def test_the_dtype_does_not_matter():
    real = table()
    other = real.assign(
        job=real["job"].astype("category"),
        age=real["age"].astype("float32"),
        start=pd.to_datetime(real["start"]),
        pay=real["pay"].astype(str),
    )
    assert evaluate(real, other, SCHEMA, models=False).triple_max.synthetic == 0


def test_numbers_are_predicted_by_regression():
    scores = evaluate(table(), table(1), SCHEMA, target="pay")
    assert set(scores.learning) == {
        f"{model}_{score}" for model in ("boosting", "linear") for score in ("r2", "mean_error")
    }
    assert 0.7 < scores.learning["boosting_r2"].synthetic <= 1
    assert abs(scores.learning["linear_r2"].independent) < 0.05


def test_a_target_of_many_values_keeps_the_most_frequent_ones():
    letters = pd.DataFrame({"a": [f"v{value}" for value in range(30) for _ in range(1 + value)]})
    view, (coded,) = code_together([letters])
    classes = Task.of(view, coded, "a").classes
    frequent = [view.labels[0].index(f"v{value}") for value in range(29, 20, -1)]
    assert classes[frequent].tolist() == list(range(9))
    assert set(np.delete(classes, frequent)) == {9}


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("target", ["rich", "pay"])
def test_the_smallest_tables_are_compared(rows, target):
    scores = evaluate(table(rows=rows), table(1, rows), SCHEMA, target=target)
    assert 0 <= scores.one_way_mean.synthetic <= 1
    json.loads(scores.to_json(), parse_constant=pytest.fail)
    str(scores)


def test_the_verdict_on_a_table_that_is_worse_than_independent_columns_names_both_errors():
    real = pd.DataFrame({"a": np.arange(200) % 2, "b": np.arange(200) % 2})
    scores = evaluate(real, real.assign(b=1 - real["b"]))  # each column is exact, no row is
    pair = scores.pair_mean
    both = f"{pair.synthetic:.1%} of the rows are off, with independent columns {pair.independent:.1%}."
    assert "no nearer than independent columns: 100.0% of" in scores.verdict
    assert both in scores.verdict


@pytest.mark.slow
@pytest.mark.parametrize("columns", [["job"], ["age"], ["job", "age"]], ids=str)
def test_one_or_two_columns_are_compared(columns):
    scores = evaluate(table()[columns], table(1)[columns])
    assert np.isnan(scores.triple_mean.synthetic)
    assert scores.verdict.endswith(".")


def test_every_output_says_that_it_is_not_private(of_a_copy):
    assert str(of_a_copy).startswith(NOT_PRIVATE)
    assert of_a_copy.to_dict()["warning"] == NOT_PRIVATE
    for name in ("identical_rows", "nearest_row"):
        assert "diagnostic, not privacy" in METRICS[name].label


def test_a_row_is_flat_and_all_its_cells_are_numbers(of_a_copy):
    row = of_a_copy.row()
    assert row["private"] is False
    assert row["pair_mean"] == 0
    assert row["boosting_auc_real"] > 0.95
    assert all(isinstance(value, int | float) and not np.isnan(value) for value in row.values())
    assert pd.DataFrame([row]).shape == (1, len(row))


@pytest.mark.slow
def test_the_same_tables_give_the_same_scores():
    small = table(rows=200), table(1, 200)
    first, second = (evaluate(*small, SCHEMA, target="rich").row() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"synthetic": table(rows=0)}, "the synthetic table has no rows"),
        ({"synthetic": table().drop(columns="age")}, "column 'age' is not in both tables"),
        ({"schema": None, "synthetic": table().drop(columns="age")}, "other columns than the real one"),
        ({"target": "wage"}, "target 'wage' is not a compared column"),
        ({"synthetic": table().assign(age=[[1]] * ROWS)}, "neither numbers, dates nor text"),
        ({"synthetic": table().assign(job=[["x"]] * ROWS)}, "neither numbers, dates nor text"),
    ],
)
def test_mistakes_are_reported_in_one_line(change, words):
    arguments = {"real": table(), "synthetic": table(), "schema": SCHEMA, "target": None} | change
    with refuses(words):
        evaluate(**arguments, models=False)


def cities(rows: int = 1000) -> tuple[pd.DataFrame, pd.DataFrame]:
    """A table of which 40 % of the cells have rare values, and the same with these values pooled."""
    rare = [f"town {place}" for place in range(80)]
    city = np.array(["Rome"] * 400 + ["Oslo"] * 200 + [rare[place % 80] for place in range(400)])
    real = pd.DataFrame({"city": city, "number": np.arange(rows) % 7, "sex": ["F", "M"] * (rows // 2)})
    return real, real.assign(city=real["city"].where(~real["city"].isin(rare), "(other)"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "schema",
    [
        None,
        Schema({"city": Categorical(), "sex": Categorical(["F", "M"])}),
        Schema({"city": Categorical(["Rome", "Oslo"], other="(other)"), "sex": Categorical(["F", "M"])}),
    ],
    ids=["no schema", "found", "listed"],
)
def test_pooled_values_are_a_score_of_their_own_and_no_error_of_what_was_kept(schema):
    """A column was "38.5 % off" where every bar agreed."""
    real, synthetic = cities()
    scores = evaluate(real, synthetic, schema, models=False)
    assert scores.column_errors["city"]["error"] == scores.pair_max.synthetic == 0
    assert scores.column_errors["city"]["pooled"] == pytest.approx(0.4)
    assert scores.pooled.synthetic == pytest.approx(0.4 / len(scores.columns))
    assert scores.unseen.synthetic == 0
    assert "pooled rare values, which the errors leave out: city 40.0% of the cells (80 values)" in str(
        scores
    )
    again = evaluate(real, real, schema, models=False)
    if schema is None or schema.columns["city"].values is None:
        assert again.column_errors["city"]["pooled"] == 0
        assert "pooled" not in str(again)


def test_too_few_pooled_rows_are_an_error():
    real, synthetic = cities()
    synthetic["city"] = np.where(np.arange(1000) < 900, "Rome", synthetic["city"])
    scores = evaluate(real, synthetic, models=False)
    assert scores.column_errors["city"]["error"] == pytest.approx(0.5)


def test_a_real_value_called_as_the_pool_pools_nothing():
    real, synthetic = cities()
    real.loc[0, "city"] = "(other)"
    assert evaluate(real, synthetic, models=False).column_errors["city"]["error"] > 0.39


def test_codes_pooled_as_text_are_compared_with_whole_numbers():
    real = pd.DataFrame({"zip": [98001] * 50 + [98052] * 40 + [*range(98100, 98110)], "a": ["x", "y"] * 50})
    synthetic = real.assign(zip=["98001"] * 50 + ["98052"] * 40 + ["(other)"] * 10)
    scores = evaluate(real, synthetic, models=False, test=real.sample(40, random_state=0))
    assert scores.column_errors["zip"]["error"] == 0
    assert scores.column_errors["zip"]["pooled"] == pytest.approx(0.1)


@pytest.mark.parametrize("dtype", [object, "category"])
@pytest.mark.parametrize(
    "column", [Categorical([1, 2], other="(other)"), Categorical()], ids=["listed", "found"]
)
def test_numbers_beside_a_word_are_compared_as_numbers(column, dtype):
    """They were all compared as text, so every cell was pooled, and the column was 90 % off."""
    real = pd.DataFrame({"a": [1] * 50 + [2] * 40 + [*range(10, 20)], "b": ["x", "y"] * 50})
    synthetic = real.assign(a=[1] * 50 + [2] * 40 + ["(other)"] * 10)
    schema = Schema({"a": column, "b": Categorical(["x", "y"])})
    scores = evaluate(real.astype({"a": dtype}), synthetic.astype({"a": dtype}), schema, models=False)
    assert scores.column_errors["a"]["error"] == 0
    assert scores.column_errors["a"]["pooled"] == pytest.approx(0.1)


def determined(rows: int = 1000) -> pd.DataFrame:
    """The number determines the level, and a few rows break the rule."""
    rng = np.random.default_rng(0)
    number, noise = rng.integers(0, 5, rows), rng.normal(size=rows)
    level = np.where(rng.random(rows) < 0.01, "low", np.where(number > 2, "high", "low"))
    return pd.DataFrame({"number": number.astype(str), "noise": noise, "level": level, "pay": 10.0 * number})


TARGETS = {"level": Categorical(), "pay": Numerical(0, 40, bins=8)}


@pytest.mark.slow("each case")
@pytest.mark.parametrize("target", TARGETS)
def test_a_column_that_determines_the_target_is_named_and_can_be_left_out(target):
    """An AUC of 1.000 was called quality."""
    schema = Schema({"number": Categorical(), "noise": Numerical(-5, 5), target: TARGETS[target]})
    scores = evaluate(determined(), determined(), schema, target=target, models=["linear"])
    assert scores.determined_by == ("number",)
    assert f"number alone determines {target}, or nearly" in scores.verdict
    assert "leave_out=['number']" in scores.verdict
    left = evaluate(
        determined(), determined(), schema, target=target, models=["linear"], leave_out=["number"]
    )
    assert left.determined_by == ()
    assert "quality" not in left.verdict
    assert "models did not learn from: number" in str(left)
    (score,) = (one for name, one in left.learning.items() if name in ("linear_auc", "linear_r2"))
    assert score.real < 0.65
    assert left.pair_mean.synthetic == scores.pair_mean.synthetic


def test_a_strong_predictor_determines_nothing():
    rows = determined()
    rows["level"] = np.where(np.arange(len(rows)) % 5 == 0, "low", rows["level"])
    assert evaluate(rows, rows, target="level", models=["linear"]).determined_by == ()


@pytest.mark.parametrize(
    ("leave_out", "target", "words"),
    [
        (["jobs"], "rich", "leave_out: 'jobs' is not a compared column; did you mean 'job'"),
        (["rich"], "rich", "leave_out: 'rich' is the target"),
        (["job"], None, "leave_out needs a target"),
        ("job", "rich", "leave_out is a list of columns"),
        (None, "rich", "leave_out is a list of columns"),
        (5, "rich", "leave_out is a list of columns"),
        (["job", "pay", "age", "start"], "rich", "no column is left to learn from"),
    ],
)
def test_columns_that_cannot_be_left_out_are_refused(leave_out, target, words):
    with pytest.raises(InputError, match=words):
        evaluate(table(), table(), SCHEMA, target=target, leave_out=leave_out)
