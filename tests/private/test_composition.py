"""What several releases promise together: never below an independent accountant, and hardly above it."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import exp, fsum, inf, log, prod, sqrt

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld

from privsyn.errors import InputError
from privsyn.private.accounting import epsilon_for, rho_for
from privsyn.private.composition import _least, responses
from privsyn.private.ledger import Ledger
from privsyn.private.local_privacy import LocalPromise
from privsyn.private.run_ledger import RunLedger
from privsyn.private.spend import Elsewhere, Spend

SETS = 120
CLOSE = 1e-3
FEW, FINE = 15, 2e-4  # of the sets are compared on a finer grid too
STEP = 4e-3  # of the independent accountant's grid of losses


def release(epsilon, delta=0.0, *, accounting=None, unit=None, private=True, root=None):
    """A ledger that promises this."""
    rows = None if unit is None else 3
    kind = accounting or ("gaussian" if delta else "pure")
    return RunLedger((), epsilon, delta, kind, "a test", private, (), "1.0", unit, rows, root=root)


def by_theorem(joint):
    return {bound.theorem: bound.epsilon for bound in joint.bounds}


def random_set(rng):
    """Up to five releases, Gaussian and pure, and a delta for all of them together."""
    epsilons = np.exp(rng.uniform(np.log(0.05), np.log(2), rng.integers(1, 6))).round(3)
    releases = [release(e, 10.0 ** -rng.integers(6, 12) if rng.random() < 0.5 else 0.0) for e in epsilons]
    return releases, 10.0 ** -rng.uniform(4, 6)


def accountant(releases, delta, *, pessimistic, step=STEP):
    """The epsilon of the independent accountant: above the truth if pessimistic, and else below it."""
    rho = sum(rho_for(r.promised_epsilon, r.promised_delta, "gaussian") for r in releases if r.promised_delta)
    settings = {"pessimistic_estimate": pessimistic, "value_discretization_interval": step}
    flips = [2 / (1 + exp(r.promised_epsilon)) for r in releases if not r.promised_delta]
    parts = [pld.from_randomized_response(flip, 2, **settings) for flip in flips]
    if rho:
        parts.append(pld.from_gaussian_mechanism(1 / sqrt(2 * rho), use_connect_dots=False, **settings))
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.compose(part)
    return whole.get_epsilon_for_delta(delta)


@pytest.mark.slow
def test_random_sets_lie_between_the_bounds_of_an_independent_accountant():
    rng = np.random.default_rng(1)
    for number in range(SETS):
        releases, delta = random_set(rng)
        joint = Ledger.compose(releases, delta)
        exact = by_theorem(joint)["exact"]
        assert exact >= accountant(releases, delta, pessimistic=False) - 1e-12
        assert exact <= accountant(releases, delta, pessimistic=True) + 1e-9
        if number < FEW:
            assert abs(exact - accountant(releases, delta, pessimistic=True, step=FINE)) < CLOSE
        assert joint.epsilon <= exact
        assert exact <= min(by_theorem(joint)[theorem] for theorem in ("sequential", "optimal")) + 1e-9


def test_pure_losses_are_those_of_all_outcomes():
    """Every combination of answers of randomised response, one by one."""
    epsilons = [0.3, 0.7, 0.3, 1.1]
    outcomes = list(product((-1, 1), repeat=4))
    losses = [sum(s * e for s, e in zip(signs, epsilons, strict=True)) for signs in outcomes]
    chances = [
        prod(1 / (1 + exp(-s * e)) for s, e in zip(signs, epsilons, strict=True)) for signs in outcomes
    ]
    for at in (0.1, 0.9, 1.7, 2.3):
        truth = sum(c * max(0.0, 1 - exp(at - loss)) for c, loss in zip(chances, losses, strict=True))
        ours, shares = responses(epsilons)
        assert shares @ np.maximum(0, 1 - np.exp(at - ours)) == pytest.approx(truth, rel=1e-9)
        joint = Ledger.compose(map(release, epsilons), truth)
        assert by_theorem(joint)["optimal"] == pytest.approx(at, abs=1e-6)
        assert by_theorem(joint)["exact"] == by_theorem(joint)["optimal"]


def test_losses_that_are_too_many_are_rounded_up():
    epsilons = np.random.default_rng(2).uniform(0.01, 0.2, 14).tolist()
    delta = 1e-6
    exact = by_theorem(Ledger.compose(map(release, epsilons), delta))["optimal"]
    losses, chances = responses(epsilons, points=512)
    assert len(losses) <= 1024
    assert chances.sum() == pytest.approx(1)
    rounded = chances @ np.maximum(0, 1 - np.exp(exact - losses))
    assert rounded >= delta * (1 - 1e-6)


def test_a_loss_that_is_rounded_becomes_no_smaller():
    """So large losses are at least as likely as without rounding, wherever "large" begins."""
    epsilons = np.random.default_rng(3).uniform(0.01, 0.2, 14).tolist()
    (exact, chances), (rounded, coarse) = responses(epsilons), responses(epsilons, points=64)
    assert len(rounded) < len(exact)
    for loss in exact:
        assert coarse[rounded >= loss - 1e-12].sum() >= chances[exact >= loss].sum() * (1 - 1e-9)


@pytest.mark.parametrize("least", [0.3, 1.7, 3.0])
def test_a_composed_epsilon_is_rounded_up(least):
    assert _least(lambda epsilon: float(epsilon < least), 0.5, 4.0) >= least


def test_the_pure_promise_is_the_sum_of_epsilons():
    joint = Ledger.compose([release(1.0), release(0.5)])
    assert (joint.epsilon, joint.delta) == (1.5, 0.0)
    assert by_theorem(joint)["advanced"] == by_theorem(joint)["zCDP"] == inf


def test_many_small_releases_gain_from_advanced_composition():
    known = by_theorem(Ledger.compose([release(0.1)] * 50, 1e-6))
    assert known["optimal"] < known["zCDP"] < known["advanced"] < known["sequential"]


def test_no_theorem_gives_less_than_follows_from_the_promises_that_it_rests_on():
    for epsilon, runs in ((0.1, 50), (1.0, 100), (3.0, 20)):
        known = by_theorem(Ledger.compose([release(epsilon)] * runs, 1e-6))
        assert known["optimal"] <= min(known["advanced"], known["sequential"])


def with_threshold(epsilon, delta, reserved):
    """The ledger of a run that reserved a part of its delta for a threshold."""
    return replace(release(epsilon, delta), charges=(Spend("values of a", 1, 1.0, 1e6, delta=reserved),))


def test_what_thresholds_reserve_of_delta_is_not_left_for_the_noise():
    runs = [with_threshold(1.0, 1e-6, 4e-7), with_threshold(0.5, 1e-6, 3e-7)]
    rho = fsum(run.budget for run in runs)
    known = by_theorem(Ledger.compose(runs, 2e-6))
    assert known["exact"] == pytest.approx(epsilon_for(rho, 1.3e-6, "gaussian"), rel=1e-9)
    assert known["zCDP"] == pytest.approx(epsilon_for(rho, 1.3e-6, "zcdp"), rel=1e-9)
    known = by_theorem(Ledger.compose(runs, 6e-7))
    assert known["exact"] == known["zCDP"] == inf


def test_the_delta_of_another_accounting_is_not_left_for_the_noise():
    runs = [release(1.0, 1e-7), release(1.0, 1e-6, accounting="classical")]
    assert by_theorem(Ledger.compose(runs, 9e-7))["exact"] == inf
    without = Ledger.compose([release(1.0, 1e-7), release(1.0)], 1e-6 / (1 - 1e-6))
    assert by_theorem(Ledger.compose(runs, 2e-6))["exact"] == pytest.approx(by_theorem(without)["exact"])


ELSEWHERE = RunLedger((Elsewhere("an office promises it"),), 0.0, 0.0, "gaussian", "elsewhere", True, ())


def test_disjoint_tables_cost_as_the_largest_and_only_if_that_is_stated():
    releases = [release(1.0, 1e-9), release(0.5, 1e-8)]
    assert "parallel" not in by_theorem(Ledger.compose(releases))
    joint = Ledger.compose(releases, disjoint=True)
    assert by_theorem(joint)["parallel"] == 1.0
    assert next(b.delta for b in joint.bounds if b.theorem == "parallel") == 1e-8


def beside_randomised(epsilon, delta=0.0):
    """The ledger of a run that read a randomised column beside others."""
    spend = Spend("one-way counts", 3, 1.0, 1e3, law="gaussian" if delta else "laplace")
    return replace(release(epsilon, delta), charges=(spend, LocalPromise("a", 0.5, 2)))


def test_the_local_epsilon_is_added_if_a_run_has_randomised_columns_beside_others():
    for order in ([0, 1], [1, 0]):
        runs = [beside_randomised(1.0, 1e-9), release(0.5, 1e-8)]
        joint = Ledger.compose([runs[place] for place in order])
        assert list(by_theorem(joint)) == ["sequential"]
        assert joint.epsilon == pytest.approx(1.5 + log(3), rel=1e-12)
        assert joint.epsilon >= 1.5 + log(3)
        assert joint.delta == pytest.approx(1.1e-8)
    both = Ledger.compose([beside_randomised(1.0)] * 2, disjoint=True)
    assert by_theorem(both) == pytest.approx({"sequential": 2 + 2 * log(3), "parallel": 1 + log(3)})


def test_one_release_keeps_its_own_promise():
    for run in (release(1.0, 1e-9), beside_randomised(1.0, 1e-9), beside_randomised(1.0)):
        assert by_theorem(Ledger.compose([run]))["sequential"] == run.promised_epsilon


def test_no_bound_is_given_at_a_delta_below_its_own():
    releases = [release(1.0, 1e-6), release(1.0, 1e-6)]
    known = by_theorem(Ledger.compose(releases, 1e-7, disjoint=True))
    assert known["sequential"] == known["parallel"] == known["optimal"] == known["advanced"] == inf
    assert 1 < known["exact"] < known["zCDP"] < inf


def test_the_published_accounting_is_composed_by_its_promise_and_by_zcdp_only():
    releases = [release(1.0, 1e-6, accounting="classical"), release(1.0, 1e-6, accounting="classical")]
    known = by_theorem(Ledger.compose(releases, 1e-5))
    assert known["exact"] == known["optimal"]
    assert known["zCDP"] < known["exact"]


def test_the_table_shows_every_theorem_and_marks_the_best():
    text = repr(Ledger.compose([release(1.0, 1e-9), release(1.0)]))
    assert text.startswith("2 releases; neighbours: add or remove one record\n")
    assert [line.split()[0] for line in text.splitlines()].count("*") == 1
    assert "* exact" in text


@pytest.mark.parametrize(
    ("releases", "delta", "why"),
    [
        ([], None, "no ledger"),
        ([release(1.0), release(1.0, private=False)], None, "ledger 2 is NOT PRIVATE"),
        ([release(1.0), ELSEWHERE], None, "counts measured elsewhere have no promise of ours"),
        ([release(1.0), release(1.0, unit="who")], None, "ledger 2 protects all rows of one 'who'"),
        (
            [release(1.0, unit="who"), release(1.0, unit="who", root="people")],
            None,
            "ledger 2 protects all rows of 'people' with one 'who', and all rows that lead to them, ledger 1",
        ),
        ([release(1.0, unit="who", root="a"), release(1.0, unit="who", root="b")], None, "rows of 'a'"),
        ([release(1.0)], 1.0, "delta"),
        ([release(1.0)], float("nan"), "delta"),
    ],
)
def test_what_has_no_joint_promise_is_refused(releases, delta, why):
    with pytest.raises(InputError, match=why):
        Ledger.compose(releases, delta)


def test_a_large_delta_needs_no_epsilon():
    assert by_theorem(Ledger.compose([release(0.01)], 0.1))["optimal"] == 0


@pytest.mark.parametrize("runs", [2, 1100, 3000])
def test_at_a_delta_of_zero_pure_promises_add_up_however_many_they_are(runs):
    joint = Ledger.compose([release(0.01)] * runs, 0)
    assert joint.epsilon == pytest.approx(0.01 * runs, rel=1e-9)
    assert joint.epsilon >= 0.01 * runs * (1 - 1e-12)
