"""The joint promise of releases that rest on each other: each run once, and the worst set of one person."""

import json
from dataclasses import replace
from importlib import resources
from itertools import combinations
from math import exp, sqrt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from scipy.stats import norm

from privsyn import InputError, Ledger
from privsyn.private.composition import Promise, compose
from privsyn.private.run_ledger import RunLedger
from privsyn.private.series import MOST_SETS, Series
from privsyn.private.spend import ADD_OR_REMOVE, Spend


def ledger(run: str | None, epsilon: float = 1.0, **fields) -> RunLedger:
    return RunLedger((), epsilon, 1e-9, "gaussian", "operating system", True, (), "1.0", run=run, **fields)


def chain(*statements: bool) -> RunLedger:
    """Return the ledger of the last of several runs, each of which rests on the one before."""
    last = ledger("0")
    for number, disjoint in enumerate(statements, start=1):
        last = ledger(str(number), since=last.series, disjoint=disjoint)
    return last


@settings(max_examples=40, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=7))
def test_a_person_is_in_every_set_of_tables_that_no_statement_excludes(statements):
    """By brute force: a set is possible unless a release in it was said to be disjoint from one before."""
    numbers = range(len(statements) + 1)
    possible = [
        members
        for size in range(1, len(numbers) + 1)
        for members in combinations(numbers, size)
        if not any(statements[last - 1] for last in members[1:])
    ]
    largest = {m for m in possible if not any(set(m) < set(other) for other in possible)}
    assert set(chain(*statements).series.sets) == largest


def test_the_promise_is_that_of_the_worst_set():
    joint = chain(True, False, True).over_time
    pair = compose([ledger(None).promise] * 2, ADD_OR_REMOVE)
    assert (joint.releases, joint.epsilon, joint.delta) == (4, pair.epsilon, pair.delta)
    assert chain(True, True, True).over_time.epsilon == 1.0
    summed = compose([ledger(None).promise] * 4, ADD_OR_REMOVE)
    assert chain(False, False, False).over_time.epsilon == summed.epsilon


def test_a_ledger_says_what_it_promises_with_earlier_releases():
    assert "with 2 earlier releases: epsilon 1 at delta 1e-09 (parallel: " in str(chain(True, True))
    assert "earlier release" not in str(ledger("a"))


def test_no_bound_of_a_series_is_given_at_a_delta_below_its_own():
    joint = chain(True, True).series.together(ADD_OR_REMOVE, 1e-10)
    assert all(bound.epsilon == float("inf") for bound in joint.bounds if bound.delta < 1e-9 < bound.delta)
    assert joint.best.theorem != "parallel"


def test_a_run_counts_once_and_one_without_a_name_each_time():
    first, second = ledger("a"), ledger("b", since=ledger("a").series)
    third = Series.join([first.series, second.series, ledger("c").series], disjoint=False)
    assert [release.run for release in third.releases] == ["a", "b", "c"]
    nameless = ledger(None)
    twice = Series.join([nameless.series, ledger("b", since=nameless.series).series], disjoint=False)
    assert len(twice.releases) == 3
    same = Series.join([second.series, second.series], disjoint=False)
    assert len(same.releases) == 2
    # A name with another promise is another run.
    assert len(Series.join([first.series, ledger("a", 0.5).series], disjoint=False).releases) == 2


def test_a_family_that_is_too_large_becomes_the_set_of_all():
    chains = [
        Series.join([Series.of(Promise.pure(1.0), f"{number} {run}") for run in range(12)], disjoint=True)
        for number in range(3)
    ]
    assert len(Series.join(chains[:2], disjoint=False).sets) == 144
    joined = Series.join(chains, disjoint=False)
    assert MOST_SETS < 12**3
    assert joined.sets == (tuple(range(36)),)


def test_a_ledger_with_earlier_releases_comes_back_from_its_text():
    for last in (chain(True, False), ledger("b", since=replace(ledger("a"), run=None).series)):
        assert RunLedger.from_json(last.to_json()) == last
        plain = last.to_dict()["since"]
        assert plain["promise"] == {"epsilon": last.over_time.epsilon, "delta": last.over_time.delta}
    local = Series.of(Promise(1.0, 0.0, "pure", 1.0, local_epsilon=0.5), "a")
    last = ledger("b", since=local)
    assert RunLedger.from_json(last.to_json()) == last
    assert last.alone == ledger(None)
    assert ledger("a").over_time is None


def test_gaussian_runs_of_one_person_are_together_one_gaussian_answer():
    """Two runs move sqrt(2) mu, three of which one is of other persons no more; its profile gives epsilon."""
    first, both, three = ledger("0"), chain(False), chain(False, True)
    assert "since" not in first.to_dict()
    for last in (both, three):
        since = last.to_dict()["since"]
        assert since["mu"] == pytest.approx(sqrt(2) * first.mu)
        assert since["reserved_delta"] == 0
    # By the oracle of one Gaussian answer: the exact theorem of the composition is the profile of this mu.
    mu = both.to_dict()["since"]["mu"]
    joint = both.over_time
    above, below = norm.cdf(mu / 2 - joint.epsilon / mu), norm.cdf(-mu / 2 - joint.epsilon / mu)
    profile = above - exp(joint.epsilon) * below
    assert joint.best.theorem == "exact"
    assert profile == pytest.approx(joint.delta, rel=1e-6)


def test_one_gaussian_answer_has_the_delta_of_thresholds_beside_it():
    """Without it a reader would take mu for the whole promise."""
    validator = Draft202012Validator(
        json.loads(resources.files("privsyn.private").joinpath("ledger.schema.json").read_text("utf-8"))
    )
    plain = chain(False).to_dict()

    def is_valid(*left_out):
        since = {name: value for name, value in plain["since"].items() if name not in left_out}
        return validator.is_valid(plain | {"since": since})

    assert is_valid()
    assert is_valid("mu", "reserved_delta")  # a run was not Gaussian
    assert not any(map(is_valid, ("mu", "reserved_delta", "promise")))


def test_thresholds_of_all_runs_of_one_person_reserve_their_deltas():
    threshold = Spend("values", 1, 1.0, 10.0, delta=4e-10)
    first = replace(ledger("0"), charges=(threshold,))
    both = replace(first, run="1", since=first.series)
    assert both.to_dict()["since"]["reserved_delta"] == 8e-10
    apart = replace(both, disjoint=True)
    assert apart.to_dict()["since"]["reserved_delta"] == 4e-10
    assert apart.to_dict()["since"]["mu"] == pytest.approx(first.mu)


@pytest.mark.parametrize(
    "other",
    [
        Promise.pure(1.0),
        Promise(1.0, 1e-9, "zcdp", 0.02),
        Promise(1.0, 1e-9, "gaussian", 0.03, local_epsilon=0.5),
    ],
)
def test_a_run_that_is_no_gaussian_answer_leaves_the_series_epsilon_and_delta(other):
    since = ledger("b", since=Series.of(other, "a")).to_dict()["since"]
    assert "mu" not in since
    assert since["promise"]["epsilon"] > 1


@pytest.mark.parametrize(
    "change",
    [
        {"releases": []},
        {"sets": [[0], [2]]},
        {"sets": [[0, True]]},
        {"disjoint": 1},
        {"releases": [("epsilon", -1.0)]},
        {"releases": [("epsilon", 0.0)]},
        {"releases": [("delta", float("inf"))]},
        {"releases": [("budget", 0.0)]},
        {"releases": [("reserved", 1e-9)]},
        {"releases": [("accounting", "none")]},
        {"releases": [("run", 7)]},
        {"releases": [("run", "1")]},
    ],
)
def test_a_changed_series_is_no_ledger(change):
    plain = json.loads(chain(False, True).to_json())
    for key, value in change.items():
        if key == "releases" and value:
            ((field, other),) = value
            plain["since"]["releases"][0][field] = other
        else:
            plain["since"][key] = value
    with pytest.raises(InputError, match="not a ledger"):
        RunLedger.from_dict(plain)


def test_nothing_is_disjoint_from_no_release():
    with pytest.raises(ValueError, match="disjoint from no earlier release"):
        ledger("a", disjoint=True)


def test_an_open_ledger_and_a_series_have_a_joint_promise():
    account = Ledger(epsilon=0.5)
    joint = Ledger.compose([chain(True), account])
    assert joint.releases == 3
    assert joint.epsilon < 2.5
    assert Ledger.compose([chain(True), account], disjoint=True).epsilon == 1.0
