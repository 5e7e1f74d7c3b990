"""Laws of the membership attack: copies are told, new rows are not, and a release stays within its epsilon.

Seeds are fixed; the stated probabilities are those of a wrong verdict with random seeds.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, log, sqrt

import numpy as np
import pandas as pd
import pytest
from command import run
from refusals import refuses
from scipy.stats import binom

from privsyn import Categorical, Numerical, PrivSyn, Schema, attack
from privsyn.app.choices import best_guess
from privsyn.evaluation.attacks import attack as attacks
from privsyn.evaluation.attacks.trade_off import TradeOff
from privsyn.private.local_privacy import LocalPromise
from privsyn.private.run_ledger import RunLedger

JOBS = ["baker", "clerk", "miller", "smith"]
SCHEMA = Schema(
    {"job": Categorical(JOBS), "town": Categorical([f"t{n}" for n in range(12)]), "pay": Numerical(0, 100)}
)
ERROR = 1e-6
TOLD = "tell members"


def people(seed: int, rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    job = rng.integers(0, 4, rows)
    town = (3 * job + rng.integers(0, 5, rows)) % 12
    pay = np.clip(20 * job + rng.normal(20, 10, rows), 0, 100).round(1)
    return pd.DataFrame({"job": np.array(JOBS)[job], "town": [f"t{n}" for n in town], "pay": pay})


def game(real, synthetic, control, **settings):
    return attack(real, synthetic, control, secrets=[], membership=True, **settings)


@pytest.fixture(scope="module", autouse=True)
def _fewer_tries():
    """For speed: these tests are about another attack."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attacks, "TRIES", 20)
        yield


REAL, HELD_OUT = people(1, 200), people(2, 400)


@pytest.fixture(scope="module")
def of_a_copy():
    return game(REAL, REAL, HELD_OUT, epsilon=1.0)


def test_a_copy_is_told_and_exceeds_its_epsilon(of_a_copy):
    played = of_a_copy.membership
    assert TOLD in of_a_copy.leaks
    assert played.exceeds
    assert played.advantage_interval[0] > 0.5
    assert played.auc_interval[0] > 0.9
    assert 0 < played.advantage_interval[1] <= 1
    assert "MORE THAN EPSILON ALLOWS" in str(of_a_copy)
    assert "NOT PRIVATE" in str(of_a_copy)
    assert of_a_copy.to_dict()["membership"]["verdict"] == played.verdict


def test_the_order_of_rows_does_not_matter(of_a_copy):
    real, held_out = REAL.sample(frac=1, random_state=3), HELD_OUT.sample(frac=1, random_state=4)
    again = game(real, REAL.sample(frac=1, random_state=5), held_out, epsilon=1.0)
    assert again.membership.to_dict() == of_a_copy.membership.to_dict()


def test_the_promise_allows_what_randomised_response_gives(of_a_copy):
    # The curve of a pure epsilon: the answer is right with probability e / (1 + e).
    allowed = of_a_copy.membership.allowed
    assert allowed.advantage == pytest.approx((exp(1) - 1) / (exp(1) + 1))
    assert allowed.auc == pytest.approx(exp(1) / (1 + exp(1)))
    assert allowed.recognised(0.01) == pytest.approx(exp(1) * 0.01)


def test_a_ledger_allows_what_the_public_page_says(tmp_path):
    ledger = RunLedger((), 1.0, 1e-9, "gaussian", "operating system", True, ())
    path = tmp_path / "ledger.json"
    path.write_text(ledger.to_json())
    for given in (ledger, ledger.to_dict(), path):
        played = game(REAL, REAL, HELD_OUT, ledger=given).membership
        assert played.allowed.guess == best_guess(1.0, 1e-9)
        assert "the ledger allows 53.6%" in played.verdict
        (line,) = [line for line in played.lines("row") if line.startswith("allowed: at ")]
        assert "the public page has exactly 10% and 1%" in line
    worst = game(REAL, REAL, HELD_OUT, epsilon=1.0, delta=1e-9).membership
    assert "epsilon 1 at delta 1e-09 allows 73.1% of any method" in worst.verdict
    with refuses("the ledger has epsilon and delta: give it alone"):
        game(REAL, REAL, HELD_OUT, ledger=ledger, epsilon=1.0)
    with refuses("a ledger needs membership"):
        attack(REAL, REAL, HELD_OUT, ledger=ledger)
    with refuses("it bounds no guess"):
        game(REAL, REAL, HELD_OUT, ledger=replace(ledger, private=False))
    wages = PrivSyn(1.0, 1e-9, Schema({"wage": Numerical(0, 9)}), seed=0).fit(
        pd.DataFrame({"wage": [1.0] * 99})
    )
    with refuses("the ledger is of another table: its run counted 'wage', which the real table has not"):
        game(REAL, REAL, HELD_OUT, ledger=replace(wages.ledger_, private=True))
    for text in ("{}", "[" * 100_000):
        path.write_text(text)
        with refuses("this is no ledger"):
            game(REAL, REAL, HELD_OUT, ledger=path)


def test_a_ledger_bounds_guesses_about_what_it_protects_alone():
    tables = [
        table.assign(who=range(first, first + len(table)))
        for first, table in ((0, REAL), (0, REAL), (1_000, HELD_OUT))
    ]
    rows = RunLedger((), 1.0, 1e-9, "gaussian", "operating system", True, ())
    with refuses("the ledger protects single rows"):
        game(*tables, unit="who", ledger=rows)
    persons = replace(rows, unit="who", rows_per_unit=1)
    assert game(*tables, unit="who", ledger=persons).membership.by_ledger
    randomised = RunLedger((LocalPromise("job", 0.5, 2),), 2.0, 0.0, "pure", "respondents", True, ())
    with refuses("the ledger is of randomised answers"):
        game(REAL, REAL, HELD_OUT, ledger=randomised)
    with refuses("this is no ledger"):
        game(REAL, REAL, HELD_OUT, ledger=rows.to_dict() | {"mu": float("nan")})


def test_a_release_that_rests_on_an_earlier_one_is_bounded_by_both_promises():
    first = RunLedger((), 1.0, 0.0, "pure", "operating system", True, (), run="first")
    second = replace(first, run="second", since=first.series)
    allowed = game(REAL, REAL, HELD_OUT, ledger=second).membership.allowed
    assert allowed.guess == pytest.approx(exp(2) / (1 + exp(2)))
    first = replace(first, promised_delta=1e-9, accounting="gaussian")
    second = replace(first, run="second", since=first.series)
    allowed = game(REAL, REAL, HELD_OUT, ledger=second).membership.allowed
    assert allowed.mu == pytest.approx(sqrt(2) * first.mu)
    assert allowed.epsilon == second.over_time.epsilon
    assert allowed.guess == pytest.approx(0.5512, abs=1e-4)
    assert TradeOff(allowed.epsilon, second.over_time.delta).guess > 0.8  # what the two numbers alone allow


def test_rows_that_a_filter_keeps_away_are_told_too():
    # Whoever drops each synthetic row that equals a real one says which rows are real.
    real, crowd, held_out = (table.round(0) for table in (REAL, people(3, 8000), HELD_OUT))
    made = crowd[~crowd.apply(tuple, axis=1).isin(set(real.apply(tuple, axis=1)))]
    played = game(real, made, held_out).membership
    assert played.advantage_interval[0] > 0.3
    assert "reversed" in played.score


def test_persons_are_told_and_not_their_rows():
    def visits(seed, first):
        rows = people(seed, 240)
        return rows.assign(person=first + np.arange(240) // 2)

    real, held_out = visits(1, 0), visits(2, 1000)
    played = game(real, real, held_out, unit="person").membership
    assert played.tests[""].recognised.attacks == 60 - 60 // 3
    assert played.advantage_interval[0] > 0.5


def test_a_game_that_cannot_be_played_is_refused(tmp_path, capsys):
    with refuses("membership needs at least 30 rows or persons of the real table, and 60 held-out ones"):
        game(REAL, REAL, HELD_OUT[:50])
    with refuses("epsilon needs membership"):
        attack(REAL, REAL, HELD_OUT, epsilon=1.0)
    with refuses("delta needs epsilon"):
        attack(REAL, REAL, HELD_OUT, membership=True, delta=1e-9)
    path = tmp_path / "real.csv"
    REAL.to_csv(path, index=False)
    without = run(capsys, "attack", path, path, "--membership")
    assert without.code == 2
    assert "CONTROL" in without.err
    told = run(capsys, "attack", path, path, path, "--epsilon", 1)
    assert told.code == 2


@pytest.mark.slow
def test_choices_do_not_flatter():
    # Of rows of which the synthetic table knows nothing, half of the guesses are right (Hoeffding's bound).
    results = [
        game(people(10 + seed, 30), people(50 + seed, 60), people(90 + seed, 60)).membership.right
        for seed in range(20)
    ]
    guesses = sum(rate.attacks for rate in results)
    right = sum(rate.successes for rate in results)
    assert abs(right - guesses / 2) < sqrt(guesses * log(2 / ERROR) / 2)


@pytest.mark.slow
def test_a_release_stays_within_its_epsilon():
    # A coin decided who was held out. But for chance, at most Binomial(n, e / (1 + e)) guesses are right, and
    # no fewer than those of a coin.
    everybody = people(5, 3000)
    inside = np.random.default_rng(0).random(len(everybody)) < 0.5
    real, held_out = everybody[inside], everybody[~inside]
    made = PrivSyn(epsilon=1.0, delta=0.0, schema=SCHEMA, seed=1).fit(real).sample(seed=2)
    played = game(real, made, held_out, epsilon=1.0).membership
    n = played.right.attacks
    assert n > 900
    assert binom.ppf(ERROR / 2, n, 0.5) <= played.right.successes
    assert played.right.successes <= binom.isf(ERROR / 2, n, exp(1) / (1 + exp(1)))
    assert not played.exceeds
