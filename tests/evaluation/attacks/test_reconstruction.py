"""Laws of the reconstruction attack: exact answers give all bits, and the theorem bounds what noise hides."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from command import run
from refusals import refuses
from scipy.optimize import linprog

from privsyn import reconstruct
from privsyn.evaluation.attacks.reconstruction import CANDIDATES_AT_ONCE, METHODS, MOST_PEOPLE
from privsyn.studies.reconstruction import MANY_PEOPLE, MadeDatabase, runs

EVERY = np.array([*product((0, 1), repeat=8)])  # all subsets of eight people


@pytest.mark.parametrize("method", METHODS)
def test_exact_answers_give_every_bit(method):
    rng = np.random.default_rng(0)
    database = MadeDatabase.of(15, rng)
    assert CANDIDATES_AT_ONCE < 2**15  # of several parts of the search
    result = reconstruct(database.counts, database.queries, method)
    assert result.bits.tolist() == database.secret.tolist()
    assert np.abs(result.fractions - database.secret).max() < 1e-5
    assert result.right(database.secret) == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_search_of_all_subsets_has_at_most_four_wrong_bits_for_each_unit_of_error(seed):
    """Dinur and Nissim (2003), Theorem 1.

    The true bits are at most E from all answers, so the candidate is too, and 2 E from the true counts. The
    query of all wrong bits that are 1 is one of the subsets, and so is that of all wrong bits that are 0.
    """
    rng = np.random.default_rng(seed)
    secret = rng.integers(0, 2, 8)
    bits = reconstruct(EVERY @ secret + rng.uniform(-0.7, 0.7, len(EVERY)), EVERY, "exhaustive").bits
    assert np.abs(bits - secret).sum() <= 4 * 0.7


@pytest.mark.parametrize("noise", [0.5, 3.0, 9.0])
def test_the_dual_programme_has_the_optimum_of_the_primal(noise):
    rng = np.random.default_rng(1)
    database = MadeDatabase.of(30, rng)
    answers, (m, n) = database.noisy(noise, rng), database.queries.shape
    primal = linprog(
        np.r_[np.zeros(n), np.ones(2 * m)],
        A_eq=np.hstack([database.queries, np.eye(m), -np.eye(m)]),
        b_eq=answers,
        bounds=[(0, 1)] * n + [(0, None)] * 2 * m,
    )
    fractions = reconstruct(answers, database.queries).fractions
    assert np.abs(answers - database.queries @ fractions).sum() == pytest.approx(primal.fun, rel=1e-6)


def test_a_tenth_of_wild_answers_hides_nothing_from_the_linear_programme():
    """Dwork, McSherry and Talwar (2007): it bears a constant share of answers with any error."""
    database = MadeDatabase.of(64, np.random.default_rng(2))
    answers = database.counts.astype(float)
    answers[::10] = 1e6
    assert reconstruct(answers, database.queries).right(database.secret) == 1
    assert reconstruct(answers, database.queries, "least squares").right(database.secret) < 0.9


def test_little_noise_hides_nothing_and_much_noise_nearly_all():
    rows = [*runs(64, [1.0, 32.0], seeds=3)]
    little, much = (np.mean([row["right"] for row in rows if row["noise"] == noise]) for noise in (1, 32))
    assert little > 0.98
    assert much < 0.7
    assert all(row["error"] <= row["noise"] for row in rows)


def test_the_noise_of_a_release_hides_what_its_answers_without_noise_show():
    shown, hidden = runs(16, epsilons=[1e6, 0.1], seeds=1)
    assert shown["right"] == 1
    assert hidden["error"] > shown["error"]


@pytest.mark.parametrize(
    ("answers", "queries", "method", "words"),
    [
        ([1], np.ones((1, MOST_PEOPLE + 1)), "exhaustive", "21 people has 2.21 candidates: give at most 20"),
        ([1], [[1, 1]], "lineal", "did you mean 'linear'"),
        ([1, 2], [[1, 1]], "linear", "one row for each of 2 answers; got 1 x 2"),
        ([1], [[1, 2]], "linear", "must be 0 or 1"),
        ([np.nan], [[1, 1]], "linear", "answers must be finite numbers in 1 dimension$"),
        (["a"], [[1, 1]], "linear", "answers must be numbers in 1 dimension$"),
        ([1], [1, 1], "linear", "queries must be finite numbers in 2 dimensions$"),
        ([], np.ones((0, 3)), "linear", "one row for each of 0 answers"),
    ],
)
def test_what_no_attack_can_use_is_refused(answers, queries, method, words):
    with refuses(words):
        reconstruct(answers, queries, method)


def test_runs_that_take_too_long_or_have_no_noise_are_refused():
    with refuses("at most 2048"):
        next(runs(MANY_PEOPLE + 1))
    with refuses("noise must be at least 0"):
        next(runs(8, [-1.0]))


def test_the_command_writes_its_runs_and_a_plot_and_overwrites_nothing(tmp_path, capsys):
    out, plot = tmp_path / "runs.csv", tmp_path / "plot.svg"
    command = ["reconstruct", "--people", "16", "--seeds", "2", "--out", out, "--plot", plot]
    done = run(capsys, *command)
    assert done.code == 0
    assert "each at most 0.0 off                 0.0      100.0%" in done.out
    assert out.read_text().startswith("noise,epsilon,seed,error,right\n")
    assert plot.read_text().startswith("<?xml")
    again = run(capsys, *command)
    assert again.code == 2
    assert "--force" in again.err


def test_a_secret_has_one_bit_for_each_person():
    with refuses("one bit for each of 2 people"):
        reconstruct([1, 0], np.eye(2)).right([1])
