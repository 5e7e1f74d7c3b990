"""An open ledger refuses what would break its promise, and its theorems are those of the field."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from contextlib import suppress
from math import exp, expm1, inf, log, log1p, sqrt

import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, RandomizedResponseDpEvent
from dp_accounting.rdp import RdpAccountant
from refusals import refuses
from scipy.stats import norm

from privsyn.errors import InputError
from privsyn.mechanisms import DiscreteGaussian, Exponential, Gaussian, Laplace, RandomizedResponse
from privsyn.private.accounting import delta_for, epsilon_for, rho_for
from privsyn.private.composition import Promise, compose, per_query
from privsyn.private.ledger import Ledger
from privsyn.private.local_privacy import LocalPromise
from privsyn.private.run_ledger import RunLedger
from privsyn.private.spend import ADD_OR_REMOVE, CHANGE, Spend


def hockey_stick(first, second, epsilon):
    """The delta of two distributions on the same points, in this direction."""
    return float(np.maximum(first - exp(epsilon) * second, 0).sum())


def geometric(shift, scale, reach=400):
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1) - shift) / scale)
    return weights / weights.sum()


# --- charges -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "times"), [(0.1, 10), (1 / 3, 3), (0.7, 1)])
def test_epsilons_add_up_to_the_promise_and_not_beyond(epsilon, times):
    ledger = Ledger(epsilon=epsilon * times)
    for _ in range(times):
        ledger.charge(Laplace(epsilon=epsilon))
    assert ledger.cost == pytest.approx(epsilon * times)
    with refuses("this needs epsilon 0.001"):
        ledger.charge(Laplace(epsilon=0.001))
    assert len(ledger.charges) == len(ledger.spends) == times


def test_of_several_mechanisms_all_are_charged_or_none():
    ledger = Ledger(epsilon=1)
    with refuses("2 mechanisms"):
        ledger.charge(Laplace(epsilon=0.9), Laplace(epsilon=0.2))
    assert ledger.cost == 0


@pytest.mark.parametrize("odd", [(), ("Laplace",), (None,), (Laplace(epsilon=0.1), 3)])
def test_what_is_no_mechanism_and_no_run_is_refused(odd):
    with refuses("mechanisms, or ledgers"):
        Ledger(epsilon=1).charge(*odd)


def test_deltas_add_up_too():
    ledger = Ledger(epsilon=3, delta=1e-6)
    ledger.charge(*[Gaussian(epsilon=1, delta=5e-7)] * 2)
    with refuses("delta"):
        ledger.charge(Gaussian(epsilon=0.1, delta=1e-9))
    ledger.charge(Laplace(epsilon=1))


def test_rhos_add_up_also_those_of_pure_epsilons():
    ledger = Ledger(epsilon=1, delta=1e-6, accounting="zcdp")
    assert ledger.budget == rho_for(1, 1e-6, "zcdp")
    with refuses("needs rho 0.25"):  # epsilon 1 in sum, but far beyond the rho that the ledger promises
        ledger.charge(*[Laplace(epsilon=0.5)] * 2)
    mixed = Ledger(epsilon=1, delta=1e-6, accounting="zcdp")
    mixed.charge(
        Gaussian(rho=0.01), DiscreteGaussian(rho=0.01), Exponential(epsilon=0.1), Laplace(epsilon=0.05)
    )
    assert mixed.cost == pytest.approx(0.02 + 0.01 / 8 + 0.0025 / 2)
    with refuses("rho"):
        mixed.charge(Gaussian(rho=0.01))


def test_gaussian_answers_that_cost_the_budget_together_are_accepted():
    whole = rho_for(1, 1e-6, "gaussian")
    ledger = Ledger(epsilon=1, delta=1e-6, accounting="gaussian")
    ledger.charge(*[Gaussian(rho=whole / 10)] * 10)
    with refuses():
        ledger.charge(Gaussian(rho=whole / 1000))
    for mechanism in (DiscreteGaussian(rho=0.001), Gaussian(epsilon=1, delta=1e-6)):
        with refuses():
            ledger.charge(mechanism)


def test_mechanisms_of_disjoint_parts_cost_what_the_most_expensive_costs():
    ledger = Ledger(epsilon=1, delta=1e-6)
    ledger.charge(
        Laplace(epsilon=0.9), Laplace(epsilon=0.6), Gaussian(epsilon=0.2, delta=1e-6), disjoint=True
    )
    assert (ledger.cost, ledger.delta_spent) == (pytest.approx(0.9), pytest.approx(1e-6))
    in_rho = Ledger(epsilon=1, delta=1e-6, accounting="zcdp")
    in_rho.charge(Gaussian(rho=0.01), Laplace(epsilon=0.15), disjoint=True)
    assert in_rho.cost == pytest.approx(0.15**2 / 2)


def test_parts_are_not_disjoint_where_a_record_can_move_between_them():
    ledger = Ledger(epsilon=1, neighbours=CHANGE)
    with refuses("not disjoint"):
        ledger.charge(Laplace(epsilon=0.5), Laplace(epsilon=0.5), disjoint=True)
    with refuses("not disjoint"):
        Ledger.compose([ledger, ledger], disjoint=True)


@pytest.mark.parametrize("accounting", ["zcdp", "gaussian"])
def test_whatever_a_ledger_accepts_its_curve_covers(accounting):
    """The largest Laplace answer that is accepted, at deltas besides the promised one, and twice."""
    ledger = Ledger(epsilon=1, delta=1e-6, accounting=accounting)
    for epsilon in (0.999, 0.5, 0.15):
        with suppress(InputError):
            ledger.charge(Laplace(epsilon=epsilon))
    answer = geometric(0, 1 / 0.15), geometric(1, 1 / 0.15)
    assert len(ledger.charges) == 1
    for delta in (1e-6, 1e-3, 1e-2):
        assert hockey_stick(*answer, ledger.epsilon(delta)) <= delta
    both = [np.outer(one, one).ravel() for one in answer]
    joint = Ledger.compose([ledger, ledger])
    assert hockey_stick(*both, joint.epsilon) <= joint.delta


def test_a_ledger_is_charged_by_one_thread_at_a_time_and_has_no_copy(monkeypatch):
    ledger = Ledger(epsilon=1)
    for double in (copy.copy, copy.deepcopy, pickle.dumps):
        with refuses("copied"):
            double(ledger)
    with monkeypatch.context() as fork, refuses("process"):
        fork.setattr(os, "getpid", lambda: -1)
        ledger.charge(Laplace(epsilon=0.1))
    inside, holds = threading.Barrier(2, timeout=0.2), ledger._holds

    def slow(promises):
        with suppress(threading.BrokenBarrierError):
            inside.wait()  # until both threads look at once, which they must not
        return holds(promises)

    ledger._holds = slow
    refused = []

    def charge():
        try:
            ledger.charge(Laplace(epsilon=0.7))
        except InputError as error:
            refused.append(error)

    threads = [threading.Thread(target=charge) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.charges) == len(refused) == 1


def test_runs_whose_cost_is_not_theirs_alone_are_not_charged():
    local = LocalPromise("smokes", 0.5, 2)
    run = RunLedger(
        (Spend("ages", 2, 1.0, 100.0), local), 0.5, 1e-9, "gaussian", "operating system", True, ()
    )
    with refuses("randomised"):
        Ledger(epsilon=1, delta=1e-8).charge(run)
    with refuses("elsewhere"):
        Ledger(epsilon=1, delta=1e-8).charge(RunLedger.measured_elsewhere("somebody", public_inputs=()))


def test_monotone_scores_are_not_monotone_if_a_record_is_changed():
    with refuses("open a ledger for these"):
        Ledger(epsilon=1, neighbours=CHANGE).charge(Exponential(epsilon=0.1, monotone=True))
    Ledger(epsilon=1, neighbours=CHANGE).charge(Exponential(epsilon=0.1))
    Ledger(epsilon=1).charge(Exponential(epsilon=0.1, monotone=True))


def test_what_changes_a_record_is_not_charged_where_records_come_and_go():
    with refuses("open a ledger for these"):
        Ledger(epsilon=2).charge(RandomizedResponse())
    ledger = Ledger(epsilon=2, neighbours=CHANGE)
    ledger.charge(RandomizedResponse())
    assert ledger.cost == pytest.approx(log(3))


def test_a_run_is_charged_with_its_budget():
    run = RunLedger((), 0.5, 1e-9, "gaussian", "operating system", True, ())
    for accounting in ("sequential", "zcdp", "gaussian"):
        ledger = Ledger(epsilon=1, delta=1e-8, accounting=accounting)
        ledger.charge(run, question="spring")
        assert ledger.cost == pytest.approx(0.5 if accounting == "sequential" else run.budget)
    of_persons = RunLedger(
        (), 0.5, 1e-9, "gaussian", "operating system", True, (), unit="who", rows_per_unit=3
    )
    with refuses("add or remove one person"):
        ledger.charge(of_persons)
    Ledger(epsilon=1, delta=1e-8, neighbours=of_persons.neighbours).charge(of_persons)


def test_a_mechanism_with_a_rho_alone_is_charged_by_its_rho_and_has_no_epsilon():
    gaussian = Gaussian(rho=0.02, sensitivity=1)
    ledger = Ledger(1.2, 1e-5, accounting="zcdp")
    ledger.charge(gaussian)
    assert ledger.cost == pytest.approx(0.02)
    assert ledger.composition.best.theorem in ("zCDP", "exact", "RDP")
    with refuses("needs epsilon inf"):
        Ledger(1.2, 1e-5).charge(gaussian)


def test_a_seed_is_shouted():
    ledger = Ledger(epsilon=1)
    assert "NOT PRIVATE" not in repr(ledger)
    ledger.charge(Laplace(epsilon=0.1, seed=1))
    assert "NOT PRIVATE" in repr(ledger)
    with refuses("NOT PRIVATE"):
        Ledger.compose([ledger])


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 0},
        {"epsilon": inf},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "accounting": "zcdp"},
        {"epsilon": 1, "delta": 1e-6, "accounting": "moments"},
    ],
)
def test_what_is_no_promise_is_refused(settings):
    with refuses():
        Ledger(**settings)


def test_ledgers_and_runs_of_the_same_neighbours_compose():
    ledger = Ledger(epsilon=0.5)
    run = RunLedger((), 1.0, 1e-9, "gaussian", "operating system", True, ())
    assert run.neighbours == ADD_OR_REMOVE
    joint = Ledger.compose([ledger, run])
    assert {bound.theorem: bound.epsilon for bound in joint.bounds}["sequential"] == 1.5
    with refuses("compose them apart"):
        Ledger.compose([run, Ledger(epsilon=0.5, neighbours=CHANGE)])


def test_each_theorem_shows_its_formula():
    ledger = Ledger(epsilon=1)
    ledger.charge(Laplace(epsilon=0.5), question="count of all rows")
    text = ledger.explain()
    assert "count of all rows" in text
    assert "epsilon = sum of epsilon_i" in text
    assert "Phi" in text
    with refuses("nothing was charged"):
        _ = Ledger(epsilon=1).composition


# --- groups, samples, mixtures -----------------------------------------------------------------------------


@pytest.mark.parametrize("size", [2, 3, 7])
def test_a_group_has_the_formula_of_its_accounting(size):
    assert Ledger(epsilon=0.3).epsilon(group=size) == pytest.approx(0.3 * size)
    together = Ledger(epsilon=0.3, delta=1e-6).promise.group(size)
    assert together.epsilon == pytest.approx(0.3 * size)
    assert together.delta == pytest.approx(1e-6 * sum(exp(0.3 * i) for i in range(size)))
    gaussian = Ledger(epsilon=0.3, delta=1e-6, accounting="gaussian")
    mu = size * sqrt(2 * gaussian.budget)
    truth = epsilon_for(mu**2 / 2, 1e-6, "gaussian")
    assert gaussian.epsilon(group=size) == pytest.approx(truth, rel=1e-9)
    zcdp = Ledger(epsilon=0.3, delta=1e-6, accounting="zcdp")
    assert zcdp.epsilon(group=size) == epsilon_for(size**2 * zcdp.budget, 1e-6, "zcdp")


@pytest.mark.parametrize("size", [1, 2, 4])
def test_the_promise_to_a_group_holds_for_noisy_counts(size):
    """Counts that are `size` apart, with discrete Laplace and with Gaussian noise: the largest advantage."""
    apart = geometric(0, 4.0), geometric(size, 4.0)
    assert hockey_stick(*apart, Ledger(epsilon=0.25).epsilon(group=size)) == pytest.approx(0, abs=1e-12)
    assert hockey_stick(*apart, 0.99 * 0.25 * size) > 1e-3
    ledger = Ledger(epsilon=0.5, delta=1e-3, accounting="gaussian")
    sigma = 1 / sqrt(2 * ledger.budget)
    x = np.linspace(-20, 20, 80_001) * sigma
    steps = norm.pdf(x, 0, sigma) * (x[1] - x[0]), norm.pdf(x, size, sigma) * (x[1] - x[0])
    assert hockey_stick(*steps, ledger.epsilon(group=size)) == pytest.approx(1e-3, rel=1e-3)


def test_a_group_has_a_point_of_the_curve_if_thresholds_reserve_a_part():
    promise = Promise(1.0, 1e-6, "gaussian", rho_for(1.0, 9e-7, "gaussian"), 1e-7)
    bound = promise.group(3, 1e-4)
    each = bound.epsilon / 3
    assert promise.delta_at(each) * (exp(3 * each) - 1) / expm1(each) <= 1e-4
    assert promise.group(3, 1e-8).epsilon == inf
    assert promise.group(1).epsilon == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("rate", [0.01, 0.3, 1.0])
def test_a_sample_is_as_private_as_its_formula_says_and_not_more(rate):
    """A count of the sample with discrete Laplace noise: a record is in it with this probability."""
    without, full = geometric(0, 1.0), geometric(1, 1.0)
    mixture = (1 - rate) * without + rate * full
    bound = Ledger(epsilon=1).subsampled(rate)
    assert (bound.epsilon, bound.delta) == (pytest.approx(log1p(rate * expm1(1.0))), 0.0)
    for pair in ((mixture, without), (without, mixture)):
        assert hockey_stick(*pair, bound.epsilon) == pytest.approx(0, abs=1e-12)
    assert hockey_stick(mixture, without, 0.99 * bound.epsilon) > 1e-6


@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_a_sample_keeps_epsilon_and_delta_of_gaussian_noise(rate):
    ledger = Ledger(epsilon=1, delta=1e-3, accounting="gaussian")
    sigma = 1 / sqrt(2 * ledger.budget)
    x = np.linspace(-12, 12, 50_001) * sigma
    without, full = (norm.pdf(x, mean, sigma) * (x[1] - x[0]) for mean in (0, 1))
    mixture = (1 - rate) * without + rate * full
    bound = ledger.subsampled(rate)
    assert bound.delta == rate * 1e-3
    # It is tight
    assert hockey_stick(mixture, without, bound.epsilon) == pytest.approx(bound.delta, rel=1e-2)
    assert hockey_stick(without, mixture, bound.epsilon) <= bound.delta
    other = ledger.subsampled(rate, delta=1e-6)
    assert hockey_stick(mixture, without, other.epsilon) <= 1e-6 * 1.01


@pytest.mark.parametrize("rate", [0, -0.5, 1.5])
def test_a_rate_is_a_probability_and_changed_records_have_no_formula(rate):
    with refuses("rate"):
        Ledger(epsilon=1).subsampled(rate)
    with refuses("add or remove"):
        Ledger(epsilon=1, neighbours=CHANGE).subsampled(0.5)


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.9])
def test_a_mixture_of_private_mechanisms_is_private(chance):
    """Convexity: a public coin chooses the mechanism. Nobody sees the coin, or everybody does."""
    epsilon = 0.5
    pure = geometric(0, 2.0), geometric(1, 2.0)
    scale = 1.5  # less private: its delta at epsilon is above 0
    other = geometric(0, scale), geometric(1, scale)
    delta = hockey_stick(*other, epsilon)
    mixture = [chance * one + (1 - chance) * two for one, two in zip(pure, other, strict=True)]
    shown = [np.concatenate([chance * one, (1 - chance) * two]) for one, two in zip(pure, other, strict=True)]
    assert 0 < hockey_stick(*shown, epsilon) <= (1 - chance) * delta + 1e-12
    assert hockey_stick(*mixture, epsilon) <= hockey_stick(*shown, epsilon) + 1e-12


# --- theorems ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0, 20.0])
def test_a_pure_epsilon_and_a_bounded_range_are_no_less_private_than_their_gaussian_answer(epsilon):
    """At every corner of a trade-off function of two segments: type II error of the Gaussian is no larger."""
    mu = sqrt(2 * Promise.pure(epsilon).gaussian_rho)
    corner = 1 / (1 + exp(epsilon))
    assert norm.cdf(norm.isf(corner) - mu) <= corner * (1 + 1e-9)
    mu = sqrt(2 * Promise.pure(epsilon, bounded_range=True).gaussian_rho)
    for top in epsilon * np.linspace(0.001, 0.999, 400):  # losses from top - epsilon to top
        less = -expm1(top - epsilon) / (exp(top) - exp(top - epsilon))  # P'(loss = top)
        alpha, beta = less, 1 - exp(top) * less
        assert norm.cdf(norm.isf(alpha) - mu) <= beta * (1 + 1e-9)
    middle = 1 / (1 + exp(epsilon / 2))
    assert norm.cdf(norm.isf(middle) - mu * 0.999) > middle


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 3.0])
def test_a_bounded_range_has_the_renyi_divergences_of_its_rho(epsilon):
    promise = Promise.pure(epsilon, bounded_range=True)
    for top in epsilon * np.linspace(0.01, 0.99, 50):
        q = -expm1(top - epsilon) / (exp(top) - exp(top - epsilon))
        p = exp(top) * q
        for order in (1.01, 2.0, 10.0, 50.0):
            divergence = np.logaddexp(
                order * log(p) + (1 - order) * log(q), order * log1p(-p) + (1 - order) * log1p(-q)
            )
            assert divergence / (order - 1) <= order * promise.rho * (1 + 1e-9)


@pytest.mark.parametrize(
    ("epsilons", "rho"), [((0.3,) * 5, 0.02), ((0.1, 0.2, 1.0), 0.001), ((0.05,) * 40, 0.0)]
)
def test_renyi_divergences_agree_with_dp_accounting(epsilons, rho):
    delta = 1e-6
    accountant = RdpAccountant(
        orders=(1 + np.geomspace(1e-2, 1e3, 800)).tolist(),
        neighboring_relation=NeighboringRelation.REPLACE_ONE,
    )
    promises = [Promise.pure(epsilon) for epsilon in epsilons]
    for epsilon in epsilons:
        accountant.compose(RandomizedResponseDpEvent(2 / (1 + exp(epsilon)), 2))
    if rho:
        accountant.compose(GaussianDpEvent(1 / sqrt(2 * rho)))
        promises.append(Promise(inf, 0.0, "zcdp", rho))
    bounds = {bound.theorem: bound.epsilon for bound in compose(promises, ADD_OR_REMOVE, delta).bounds}
    assert bounds["RDP"] == pytest.approx(accountant.get_epsilon(delta), rel=1e-3)
    assert bounds["RDP"] < bounds["zCDP"]


@pytest.mark.parametrize("queries", [1, 10, 300])
def test_epsilon_per_query_is_the_largest_that_the_theorem_allows(queries):
    allowed = per_query(queries, 1.0, 1e-6)
    for bound in allowed.bounds:
        for factor, holds in ((1.0, True), (1.001, bound.epsilon == 1.0)):
            joint = compose([Promise.pure(factor * bound.epsilon)] * queries, ADD_OR_REMOVE, 1e-6)
            epsilon = {b.theorem: b.epsilon for b in joint.bounds}[bound.theorem]
            assert (epsilon <= 1.0 + 1e-9) is holds or queries == 1
    assert allowed.epsilon == max(bound.epsilon for bound in allowed.bounds) >= 1 / queries - 1e-12


def test_the_textbook_epsilon_per_query_is_allowed_by_the_advanced_theorem():
    """Dwork and Roth (2014), Corollary 3.21: epsilon / (2 sqrt(2 k ln(1 / delta)))."""
    textbook = 1 / (2 * sqrt(2 * 100 * log(1e6)))
    allowed = {bound.theorem: bound.epsilon for bound in per_query(100, 1.0, 1e-6).bounds}
    assert textbook < allowed["advanced"] < 2 * textbook


def test_a_ledger_prices_its_budget_at_any_delta():
    ledger = Ledger(epsilon=1, delta=1e-6, accounting="gaussian")
    assert ledger.epsilon() == pytest.approx(1, rel=1e-9)
    assert ledger.epsilon(1e-9) > 1 > ledger.epsilon(1e-5)
    assert delta_for(ledger.budget, ledger.epsilon(1e-9), "gaussian") <= 1e-9
    assert Ledger(epsilon=1, delta=1e-6).epsilon(1e-9) == inf


def test_a_refusal_names_the_delta_that_a_pure_ledger_lacks():
    with refuses("has epsilon 1 and delta 0 left, and this needs epsilon 0.1 and delta 1e-05"):
        Ledger(1).charge(Gaussian(epsilon=0.1, delta=1e-5))


def test_only_ledgers_are_composed():
    with refuses("compose takes a list of ledgers"):
        Ledger.compose(Ledger(1))
    with refuses("compose takes ledgers"):
        Ledger.compose([1, 2])


def test_an_open_ledger_is_shown_with_its_charges_and_its_epsilon_per_query_with_formulas():
    ledger = Ledger(epsilon=1, delta=1e-6)
    ledger.charge(Laplace(epsilon=0.25))
    for text in (str(ledger), ledger._repr_html_()):
        assert "Laplace mechanism" in text
        assert "0.25" in text
    allowed = ledger.per_query(100)
    lines = str(allowed).splitlines()
    assert lines[0] == "100 queries: epsilon 1.0, delta 1e-06 together"
    assert len(lines) == 2 + len(allowed.bounds)
    (starred,) = [line for line in lines if line.startswith("*")]
    assert starred.split()[1] == allowed.best.theorem
    assert all(bound.formula in line for bound, line in zip(allowed.bounds, lines[2:], strict=True))
