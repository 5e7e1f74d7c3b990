"""Pooled estimates: the rules, and that their intervals hold in the model for which each is derived."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import stats

from privsyn import InputError, pool, pooled

M, PARAMETERS = 10, 20_000
SAMPLING, NOISE = 1.0, 0.5
"""Variances of the private estimate about the population, and of the noise about the private estimate."""


def test_the_rule_of_our_draws_is_that_of_multiple_imputation():
    q, u = np.array([1.0, 2.0, 4.0, 5.0]), np.array([0.5, 0.7, 0.6, 0.6])
    found = pool(q, u).iloc[0]
    between = 1.25 * q.var(ddof=1)
    assert found["estimate"] == 3.0
    assert found["standard_error"] == pytest.approx(np.sqrt(0.6 + between))
    assert found["degrees_of_freedom"] == pytest.approx(3 * (1 + 0.6 / between) ** 2)
    assert found["noise"] == pytest.approx(between / (0.6 + between))
    reach = stats.t.ppf(0.975, found["degrees_of_freedom"]) * found["standard_error"]
    assert found["high"] - found["low"] == pytest.approx(2 * reach)


def test_the_rule_of_fully_synthetic_data_is_never_negative():
    q, u = np.array([1.0, 3.0, 5.0]), np.array([1.0, 1.0, 1.0])
    assert pool(q, u, rule="fully synthetic").iloc[0]["standard_error"] == pytest.approx(
        np.sqrt(4 * 4 / 3 - 1)
    )
    assert pool(q / 100, u, rule="fully synthetic").iloc[0]["standard_error"] == 1.0


def coverage(draws, variances, **options):
    """The share of intervals that hold a truth of 0; its standard error is 0.0015."""
    found = pool(draws, variances, **options)
    return ((found["low"] <= 0) & (found["high"] >= 0)).mean()


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(1)
    private = rng.normal(0, np.sqrt(SAMPLING), PARAMETERS)
    noisy = private + rng.normal(0, np.sqrt(NOISE), PARAMETERS)
    of_private = noisy + rng.normal(0, np.sqrt(NOISE), (M, PARAMETERS))
    return private, of_private, np.full((M, PARAMETERS), SAMPLING)


def test_intervals_from_draws_of_the_private_table_hold_for_the_population(world):
    _, draws, variances = world
    assert 0.94 < coverage(draws, variances) < 0.96
    assert coverage(draws, 0 * variances) < 0.8  # the test can fail


def test_without_variances_intervals_hold_for_the_private_table(world):
    private, draws, variances = world
    assert 0.94 < coverage(draws - private, 0 * variances) < 0.96


def test_each_way_of_drawing_needs_its_own_rule():
    """Draws of population parameters, then random rows: their spread holds the sampling twice."""
    rng = np.random.default_rng(2)
    noisy = rng.normal(0, np.sqrt(SAMPLING + NOISE), 4000)
    rows = noisy + rng.normal(0, np.sqrt(NOISE + 2 * SAMPLING), (100, 4000))
    ones = np.ones(rows.shape)
    assert 0.93 < coverage(rows, ones, rule="fully synthetic") < 0.97
    assert coverage(rows, ones) > 0.99
    draws = noisy + rng.normal(0, np.sqrt(NOISE), (100, 4000))
    assert coverage(draws, ones) > 0.93
    assert coverage(draws, ones, rule="fully synthetic") < 0.92


def test_tables_of_another_size_have_their_variances_scaled():
    q, u = [1.0, 2.0, 3.0], [1.0, 1.0, 1.0]
    pd.testing.assert_frame_equal(pool(q, u, scale=2.0), pool(q, [2.0, 2.0, 2.0]))


class Result:
    """A fitted model as statsmodels has it."""

    def __init__(self, table):
        self.params = table.mean()
        self._covariance = table.cov() / len(table)

    def cov_params(self):
        return self._covariance


TABLES = [
    pd.DataFrame(np.random.default_rng(seed).normal(size=(200, 2)), columns=["a", "b"]) for seed in range(4)
]


def test_a_fitted_model_a_pair_and_bare_estimates_pool_alike():
    fitted = pooled(Result, TABLES)
    assert list(fitted.index) == ["a", "b"]
    pair = pooled(lambda table: (table.mean(), table.var() / len(table)), TABLES)
    pd.testing.assert_frame_equal(fitted, pair)
    bare = pooled(lambda table: table.mean(), TABLES, resamples=100)
    np.testing.assert_allclose(bare["estimate"], pair["estimate"])
    np.testing.assert_allclose(bare["standard_error"], pair["standard_error"], rtol=0.2)


@pytest.mark.parametrize(
    ("estimates", "variances", "options"),
    [
        ([1.0], [1.0], {}),
        ([1.0, 2.0], [1.0], {}),
        ([1.0, 2.0], [1.0, -1.0], {}),
        ([1.0, np.nan], [1.0, 1.0], {}),
        ([1.0, "x"], [1.0, 1.0], {}),
        ([[1.0], [1.0, 2.0]], [[1.0], [1.0, 1.0]], {}),
        ([1.0, 2.0], [1.0, 1.0], {"rule": "rubin"}),
        ([1.0, 2.0], [1.0, 1.0], {"level": 1.0}),
        ([1.0, 2.0], [1.0, 1.0], {"scale": 0}),
    ],
)
def test_what_cannot_be_pooled_is_refused_in_one_line(estimates, variances, options):
    with refuses():
        pool(estimates, variances, **options)


def mean(table):
    return table["a"].mean()


def text(table):
    return "a cell"


@pytest.mark.parametrize(
    ("analyse", "tables", "words"),
    [
        (mean, TABLES[0], "several tables, such as model.draws"),
        (mean, TABLES[0]["a"], "several tables"),
        (mean, "table.csv", "several tables"),
        (mean, {"a": [1]}, "several tables"),
        (mean, 20, "several tables"),
        (mean, TABLES[:1], "at least two tables, such as model.draws.*got 1"),
        (mean, [], "at least two tables"),
        (TABLES, mean, "swapped"),
        (TABLES, TABLES, "function"),
        (text, TABLES, "numbers"),
        (lambda table: (text(table), 1.0), TABLES, "numbers"),
        (lambda table: None, TABLES, "numbers"),
        (lambda table: np.asarray(table).mean(), [np.zeros((9, 2))] * 2, "pandas data frames"),
    ],
)
def test_pooled_refuses_other_arguments_and_shows_no_cell(analyse, tables, words):
    with refuses(words) as error:
        pooled(analyse, tables)
    assert "cell" not in str(error.value)


@pytest.mark.parametrize("result", ["text", ([1.0, 2.0], [1.0]), (1.0, np.nan), [[1.0, 2.0], [3.0]]])
def test_a_wrong_function_is_refused_after_the_first_table(result):
    seen = []
    with pytest.raises(InputError):
        pooled(lambda _: result, (seen.append(table) or table for table in TABLES))
    assert len(seen) == 1


def test_a_wrong_level_is_refused_before_any_analysis_runs():
    ran = []
    with pytest.raises(InputError, match="level"):
        pooled(ran.append, TABLES, level=95)
    assert not ran
