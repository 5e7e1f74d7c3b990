"""No attack gets more out of a release than is claimed, and the best gets nearly all: nothing is wasted.

The noise is the real one, from the operating system, so these tests can fail by chance: each of the bounds
exceeds a true claim with a probability of at most `ERROR`. `make audit` plays the same games longer. Coverage
is not measured here: it would double the time, and other tests run the same lines.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom, binomtest, chi2, norm

from audit import __main__ as full
from audit.distinguishing import lower_bound, play, rows_bound, sample
from audit.games import GAMES
from audit.reconstruction import NO_NOISE, attack
from audit.unique import PROMISED, comes_out, passes

ERROR = 1e-7  # of one bound
CLAIM = 2.0  # with a larger mu fewer runs show as much, but more of it is lost in the rounding of the noise
SHORT = [replace(game, claim=CLAIM) for game in GAMES]
RUNS = {"default": 15, "published": 100}  # the default takes 20 to 40 ms a run, the published method 5 to 9
RESIDUALS = {"default": 11, "published": 2}  # of one run, at least
ROWS_CLAIM = 0.25  # the smaller, the fewer right guesses refute it
ROWS_RUNS = 60  # half of them are counted; if all 30 guesses are right, the bound is above the claim
USED = 0.1  # of the claim is shown by the guesses, at least
SEEN = 0.9  # of mu is left after InDif's share that a pair does not move, and the rounding of the noise


def runs(game):
    return RUNS[game.method]


@pytest.mark.slow
def test_the_answers_tell_no_more_than_is_claimed_and_most_of_that():
    """All games make the same claim, so that their guesses may be counted together too.

    How far the person moves the answers is certain, not likely: in no run further than its mu. How the budget
    is split may follow noise, and so in some runs the person moves them a little less: the run that moved
    them most must come near the claim. Whether the noise has the sigma that the ledger says, the residuals
    tell in few runs. The guesses need no law of the noise, and far more runs to come near the claim: those
    are left to `make audit`.
    """
    right, residuals = [], []
    for game in SHORT:
        rounds = [play(game) for _ in range(runs(game))]
        assert game.moves * game.mu < max(played.moved for played in rounds) <= game.mu * (1 + 1e-9)
        guesses = [played.right for played in rounds]
        assert lower_bound(sum(guesses), len(guesses), error=ERROR) <= game.mu
        right += guesses
        residuals += [residual for played in rounds for residual in played.residuals]
    assert USED * CLAIM < lower_bound(sum(right), len(right), error=ERROR) <= CLAIM
    assert len(residuals) >= sum(runs(game) * RESIDUALS[game.method] for game in SHORT)
    assert chi2.ppf(ERROR, len(residuals)) < np.square(residuals).sum() < chi2.isf(ERROR, len(residuals))


def test_the_guesses_of_the_short_audit_hardly_fail_by_chance():
    """Fewer right guesses than make the bound fall short are seen with a probability under 1e-7."""
    played = sum(map(runs, SHORT))
    few = int(binom.ppf(1e-7, played, norm.cdf(SEEN * CLAIM / 2)))
    assert lower_bound(few, played, error=ERROR) > USED * CLAIM


@pytest.mark.parametrize("factor", [0.6, 1.7])
def test_the_short_audit_finds_noise_of_another_variance(factor):
    """Less or more noise than the ledger says, by these factors, is found out but for a chance of 1e-7."""
    seen = sum(runs(game) * RESIDUALS[game.method] for game in SHORT)
    nearest = chi2.isf(1e-7, seen) if factor < 1 else chi2.ppf(1e-7, seen)
    assert not chi2.ppf(ERROR, seen) < factor * nearest < chi2.isf(ERROR, seen)


@pytest.mark.slow("each case")
@pytest.mark.parametrize("game", [game for game in GAMES if game.settings], ids=lambda game: game.name)
def test_the_sampled_rows_tell_no_more_than_is_claimed(game):
    """Runs that ask question 0 too take long: `make audit` samples from those."""
    game = replace(game, claim=ROWS_CLAIM)
    assert rows_bound([sample(game) for _ in range(ROWS_RUNS)], error=ERROR) <= game.mu


def test_rows_that_always_tell_are_found_out():
    always = [(place % 2 == 0, float(place % 2 == 0)) for place in range(ROWS_RUNS)]
    assert rows_bound(always, error=ERROR) > ROWS_CLAIM


@pytest.mark.slow
def test_what_one_person_alone_holds_never_comes_out():
    """With a chance of 1e-9 at most it does; `make audit` looks at 2,000 releases."""
    assert not any(comes_out() for _ in range(20))


def test_a_threshold_lets_through_as_much_as_it_promises():
    """Half of the noise, or twice as much, or all of delta in each round, is found out."""
    tried = 1500
    assert binomtest(sum(passes() for _ in range(tried)), tried, PROMISED).pvalue > ERROR


def test_the_bound_grows_with_what_is_guessed_right():
    bounds = [lower_bound(right, 1000, error=1e-3) for right in (500, 600, 700, 999, 1000)]
    assert bounds[0] == 0
    assert all(less < more for less, more in pairwise(bounds))


def test_without_noise_the_secrets_can_be_reconstructed():
    """Dinur and Nissim's attack works, so that its failure below says something."""
    rng = np.random.default_rng()
    assert np.mean([attack(NO_NOISE, rng) for _ in range(5)]) > 0.9


@pytest.mark.slow
def test_with_noise_reconstruction_does_no_better_than_the_base_rate():
    """At epsilon 1 (mu is 0.18) the attacker guesses a little more than half of 64 secrets right.

    The share of one release has a standard deviation of 0.065; the mean of 12 independent ones exceeds even
    0.55 by 0.1, 5.3 of its standard deviations, with a probability of 6e-8.
    """
    rng = np.random.default_rng()
    assert np.mean([attack(1.0, rng) for _ in range(12)]) < 0.65


def test_what_an_interrupted_audit_has_finished_is_not_played_again(tmp_path, monkeypatch):
    monkeypatch.setattr(full, "RECORD", tmp_path / "audit.json")
    assert [full._kept(name, lambda name=name: [name]) for name in ("one", "two")] == [["one"], ["two"]]
    assert full._kept("one", lambda: ["played again"]) == ["one"]
