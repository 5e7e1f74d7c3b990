"""Runs with a delta of 0: sensitivities in L1, costs that add up exactly, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations_with_replacement

import mpmath
import numpy as np
import pandas as pd
import pytest
from conftest import LEDGER_SCHEMA
from jsonschema import Draft202012Validator
from refusals import refuses
from scipy.stats import binom
from strategies import StubNoise

from privsyn import Categorical, Numerical, PrivSyn, Schema, load
from privsyn.errors import InputError
from privsyn.inference.fitted import laplace_intervals
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.private.accounting import delta_for, epsilon_for, rho_for
from privsyn.private.contribution import Contribution
from privsyn.private.find_values import Finder
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import SeededLaplace
from privsyn.private.noise_laws import LAPLACE, epsilon_of
from privsyn.private.randomness import os_entropy
from privsyn.private.run_ledger import RunLedger
from privsyn.private.samplers.laplace import discrete_laplace
from privsyn.private.spend import Spend

DOMAIN = Domain(("a", "b", "c"), (2, 2, 2))
PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))
EXPECTED = tuple(Marginal(DOMAIN.project(pair), np.ones((2, 2))) for pair in PAIRS)
SIGNS = {name: np.array([-1, 1]) for name in "abc"}
SCHEMA = Schema({name: Categorical(range(3), nullable=False) for name in "abc"})


class Quiet(StubNoise):
    """No noise, priced as Laplace noise."""

    law = LAPLACE


def table(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    return pd.DataFrame({"a": a, "b": (a + (rng.random(n) < 0.2)) % 3, "c": rng.integers(0, 3, n)})


def answers(rows, k, epsilon):
    """Every question to a tiny table, as exact integers, and the private table."""
    private = PrivateTable(Records(DOMAIN, np.array(rows, np.int64).reshape(-1, 3)), Quiet(), Contribution(k))
    exact = [np.concatenate([m.marginal.counts.ravel() for m in private.one_ways(epsilon)])]
    exact.append(private.departures(EXPECTED, epsilon)[0])
    exact.append(private.concordances(PAIRS, SIGNS, epsilon)[0])
    exact += [m.marginal.counts.ravel() for m in private.marginals(PAIRS, np.full(3, epsilon))]
    exact += [m.marginal.counts.ravel() * 4 for m in private.residuals(PAIRS, np.full(3, epsilon))]
    return exact, private


CELLS = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
TABLES = [rows for size in range(3) for rows in combinations_with_replacement(CELLS, size)]


@pytest.mark.slow
@pytest.mark.parametrize("k", [1, 2])
def test_no_person_moves_an_answer_further_in_l1_than_the_ledger_says_and_one_as_far(k):
    """Sensitivity replay: every tiny table, every person of up to k rows, every question."""
    furthest = np.zeros(9)
    for rows in TABLES:
        before, private = answers(rows, k, 1.0)
        for size in range(1, k + 1):
            for person in combinations_with_replacement(CELLS, size):
                after, _ = answers([*rows, *person], k, 1.0)
                moved = [np.abs(y - x).sum() for x, y in zip(before, after, strict=True)]
                furthest = np.maximum(furthest, moved)
    claimed = [spend.sensitivity for spend in private.spends]
    assert claimed == [3.0 * k, 3.0 * k, 3.0 * k, *[1.0 * k] * 3, *[4.0 * k] * 3]
    assert furthest.tolist() == claimed


@pytest.mark.parametrize("k", [1, 2, 7])
def test_k_rows_cost_k_times_as_much_and_no_more_than_their_share(k):
    _, private = answers([], k, 0.01)
    for spend in private.spends:
        cost = epsilon_of(spend.sigma, spend.sensitivity)
        assert cost <= Fraction(0.01) * k
        assert float(cost) == pytest.approx(0.01 * k, rel=1e-9)
        assert spend.law == "laplace"


def test_bounds_of_several_columns_have_their_number_as_sensitivity():
    counts = {name: np.zeros(9, np.int64) for name in "abcd"}
    finder = Finder(SeededLaplace(0), rows_per_unit=3)
    found, (spend,) = finder.cells(counts, 0.5), finder.log.spends
    assert spend.sensitivity == 12.0
    assert epsilon_of(spend.sigma, 12.0) <= Fraction(0.5)
    assert set(found) == set(counts)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 1 / 3])
def test_a_run_spends_all_of_its_epsilon_and_never_more_in_rationals(epsilon):
    ledger = PrivSyn(epsilon, 0, SCHEMA, seed=1).fit(table()).ledger_
    spent = sum(epsilon_of(spend.sigma, spend.sensitivity) for spend in ledger.spends)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**9)) < spent <= Fraction(epsilon)
    assert ledger.promised_delta == ledger.reserved == 0
    assert ledger.epsilon(0.0) == epsilon


def test_a_ledger_that_overspends_by_the_last_bit_cannot_exist():
    def ledger(scale):
        spends = tuple(Spend(str(i), 1, 1.0, scale, law="laplace") for i in range(3))
        return RunLedger(spends, 0.75, 0.0, "pure", "a test", True, (), "1.0")

    assert ledger(4.0).cost == 0.75
    with pytest.raises(ValueError, match="spent epsilon"):
        ledger(np.nextafter(4.0, 0))


@pytest.mark.parametrize(
    ("spend", "delta", "accounting"),
    [
        (Spend("x", 1, 1.0, 100.0), 0.0, "pure"),
        (Spend("x", 1, 1.0, 100.0, law="laplace"), 1e-9, "gaussian"),
        (Spend("x", 1, 1.0, 100.0, law="laplace"), 1e-9, "pure"),
        (Spend("x", 1, 1.0, 100.0, delta=1e-12, law="laplace"), 0.0, "pure"),
    ],
)
def test_noise_and_accounting_of_two_laws_do_not_mix(spend, delta, accounting):
    with pytest.raises(ValueError, match=r"law|pure"):
        RunLedger((spend,), 1.0, delta, accounting, "a test", True, (), "1.0")


def test_a_saved_model_keeps_its_pure_promise(tmp_path):
    model = PrivSyn(1.0, 0, SCHEMA, seed=1).fit(table())
    model.save(tmp_path / "m.privsyn")
    again = load(tmp_path / "m.privsyn")
    assert again.ledger == model.ledger_
    assert RunLedger.from_json(model.ledger_.to_json()) == model.ledger_
    pd.testing.assert_frame_equal(again.sample(50, seed=2), model.sample(50, seed=2))


def test_the_written_ledger_follows_its_schema_and_speaks_of_epsilon():
    plain = PrivSyn(1.0, 0, SCHEMA, seed=1).fit(table()).ledger_.to_dict()
    Draft202012Validator(LEDGER_SCHEMA).validate(json.loads(json.dumps(plain)))
    assert "rho" not in plain
    assert {"scale", "epsilon"} < set(plain["spends"][0])
    text = str(PrivSyn(1.0, 0, SCHEMA, seed=1).fit(table()).ledger_)
    assert "delta 0.0" in text
    assert "discrete Laplace" in text
    assert "rho" not in text


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: PrivSyn.paper(1.0, 0, SCHEMA), "takes no delta of 0: give one such as 1e-9"),
        (
            lambda: PrivSyn(1.0, 0).fit(table().astype(str)),
            "delta 0 cannot find the values of 'a', 'b', 'c': list",
        ),
        (lambda: PrivSyn(1e-9, 0, SCHEMA), "epsilon 1e-09 is too small"),
    ],
)
def test_what_pure_epsilon_cannot_do_is_refused_in_one_line(make, why):
    with refuses(why):
        make()


def test_bounds_are_found_without_a_delta():
    schema = Schema({"x": Numerical(), "y": Categorical([0, 1], nullable=False)})
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.integers(0, 100, 5000), "y": rng.integers(0, 2, 5000)})
    model = PrivSyn(3.0, 0, schema, seed=1).fit(frame)
    assert any(spend.what.startswith("bounds") for spend in model.ledger_.spends)
    assert model.sample(500, seed=1)["x"].between(-200, 400).all()


def test_a_person_with_several_rows_is_protected_without_a_delta():
    frame = table().assign(who=np.repeat(np.arange(1000), 2))
    ledger = PrivSyn(1.0, 0, SCHEMA, unit="who", rows_per_unit=2, seed=1).fit(frame).ledger_
    rows, every, columns = (spend.sensitivity for spend in ledger.spends[:3])
    assert rows == 1.0
    assert f"at most {every:.0f} of each" in ledger.spends[1].what
    assert columns in (6.0, 8.0)  # with classes of the number of rows, if noise makes several
    assert ledger.cost == pytest.approx(1.0)


def test_few_tables_are_measured_where_few_pay():
    """Thirty columns, one strong pair: with Laplace noise the pairs that show nothing are left out."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({f"c{i}": rng.integers(0, 6, 3000) for i in range(14)})
    frame["c1"] = frame["c0"]
    schema = Schema({name: Categorical(range(6), nullable=False) for name in frame})
    model = PrivSyn(2.0, 0, schema, seed=1).fit(frame)
    assert (model.accuracy_.tables["order"] == 2).sum() < 91 / 2


# --- accounting --------------------------------------------------------------------------------------------


def test_pure_epsilon_is_its_own_budget_and_falls_with_delta_as_randomised_response():
    assert rho_for(0.7, 0, "pure") == epsilon_for(0.7, 0, "pure") == 0.7
    for delta in (1e-9, 1e-3, 0.2):
        epsilon = epsilon_for(0.7, delta, "pure")
        assert epsilon < 0.7
        with mpmath.workdps(40):
            whole = mpmath.exp(mpmath.mpf(0.7))
            truth = (whole - mpmath.exp(mpmath.mpf(epsilon))) / (1 + whole)
        assert delta * (1 - 1e-6) < truth <= delta
        assert delta_for(0.7, epsilon, "pure") == pytest.approx(delta, rel=1e-6)
    assert delta_for(0.7, 0.7, "pure") == 0
    with pytest.raises(InputError, match="delta"):
        rho_for(0.7, -1, "pure")


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_the_gaussian_answer_that_stands_for_a_pure_ledger_is_no_more_private(epsilon):
    ledger = RunLedger((), epsilon, 0.0, "pure", "a test", True, (), "1.0")
    for at in np.linspace(0.01, 0.99, 9) * epsilon:
        assert delta_for(ledger.mu**2 / 2, at, "gaussian") >= delta_for(epsilon, at, "pure") * (1 - 1e-9)


@pytest.mark.parametrize("cost", [0.01, 1.0, 5.0, 20.0, 100.0])
def test_gaussian_noise_of_the_rho_of_a_cost_has_the_variance_of_the_laplace_noise(cost):
    """Discrete noise is smaller than continuous noise of the same scale, by far if it is mostly 0."""
    assert 1 / (2 * LAPLACE.rho(cost)) == pytest.approx(LAPLACE.variance(1 / cost), rel=1e-9)
    assert float(LAPLACE.rho(np.array([cost]))[0]) == LAPLACE.rho(cost)


def test_the_rho_of_laplace_noise_is_half_the_square_of_its_epsilon():
    spends = (Spend("a", 1, 1.0, 4.0, law="laplace"), Spend("b", 1, 1.0, 2.0, law="laplace"))
    assert [spend.rho for spend in spends] == [1 / 32, 1 / 8]
    assert RunLedger(spends, 0.75, 0.0, "pure", "a test", True, (), "1.0").rho == 0.75**2 / 2


# --- error bars --------------------------------------------------------------------------------------------

RUNS = 40_000
ERROR = 1e-7


@pytest.mark.parametrize(("scale", "most"), [(0.7, 1.0), (3.0, 0.99), (40.0, 0.96)])
@pytest.mark.parametrize("count", [0, 1, 50, 1000])
def test_intervals_of_single_cells_cover_their_counts(scale, most, count):
    noisy = count + discrete_laplace(scale, RUNS, os_entropy)
    low, high = laplace_intervals(noisy.astype(float), np.full(RUNS, LAPLACE.variance(scale)))
    covered = int(((low <= count) & (count <= high)).sum())
    assert covered >= binom.ppf(ERROR, RUNS, 0.95)
    if count > 6 * scale:
        assert covered <= binom.ppf(1 - ERROR, RUNS, most)


@pytest.mark.parametrize("cells", [2, 5, 30])
@pytest.mark.parametrize("count", [0, 60, 2000])
def test_intervals_of_sums_of_cells_cover_their_counts(cells, count):
    noisy = count + discrete_laplace(40.0, RUNS * cells, os_entropy).reshape(RUNS, cells).sum(axis=1)
    low, high = laplace_intervals(noisy.astype(float), np.full(RUNS, cells * LAPLACE.variance(40.0)))
    covered = int(((low <= count) & (count <= high)).sum())
    assert binom.ppf(ERROR, RUNS, 0.95) <= covered
    if count == 2000:
        assert covered <= binom.ppf(1 - ERROR, RUNS, 0.97)
