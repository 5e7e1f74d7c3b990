"""Noise for numbers: the scale of the theorem, exact laws on a grid, no error that depends on an answer."""

from __future__ import annotations

from fractions import Fraction
from math import exp, inf, log, nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import refuses

from privsyn.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from privsyn.mechanisms.additive import FARTHEST, in_steps
from privsyn.private.accounting import delta_for

DRAWS = 20_000
REAL, WHOLE = (Laplace, Gaussian), (DiscreteLaplace, DiscreteGaussian)


def cost(kind):
    return {"epsilon": 0.5} if kind in (Laplace, DiscreteLaplace) else {"epsilon": 0.5, "delta": 1e-5}


each = pytest.mark.parametrize("kind", [*REAL, *WHOLE])


# --- the scale ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "delta", "sigma"),
    [  # Balle and Wang (2018), by their own program; Dwork and Roth (2014), Theorem A.1
        (0.5, 1e-5, 7.0318),
        (0.1, 1e-6, 36.3045),
        (1.0, 1e-5, 3.7304),
    ],
)
def test_the_analytic_sigma_is_the_published_one_and_the_classical_one_larger(epsilon, delta, sigma):
    analytic = Gaussian(epsilon=epsilon, delta=delta)
    assert analytic.scale == pytest.approx(sigma, rel=2e-4)
    assert delta_for(analytic.cost, epsilon, "gaussian") <= delta
    if epsilon < 1:
        classical = Gaussian(epsilon=epsilon, delta=delta, classical=True)
        assert classical.scale == pytest.approx(sqrt(2 * log(1.25 / delta)) / epsilon, rel=1e-9)
        assert classical.scale > analytic.scale
        assert classical.promise.delta < delta


def test_the_classical_sigma_is_refused_where_its_theorem_ends():
    for epsilon in (1.0, 2.0):
        with refuses("below 1"):
            Gaussian(epsilon=epsilon, delta=1e-6, classical=True)
    with refuses("with a delta"):
        Gaussian(rho=0.1, classical=True)


@each
def test_the_scale_grows_with_the_sensitivity_and_the_cost_stays(kind):
    one, three = (kind(**cost(kind), sensitivity=sensitivity) for sensitivity in (1, 3))
    assert three.scale == pytest.approx(3 * one.scale, rel=1e-5)
    assert three.cost == pytest.approx(one.cost, rel=1e-5)
    assert one.spend.cost == one.cost == pytest.approx(one.promise.budget)
    if kind in (Laplace, DiscreteLaplace):
        assert 0.5 * (1 - 1e-11) < one.promise.epsilon <= 0.5
    else:
        assert one.promise.epsilon == 0.5
        assert one.promise.delta <= 1e-5


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 1},
        {"delta": 1e-6},
        {},
        {"epsilon": 1, "delta": 1e-6, "rho": 0.1},
        {"epsilon": 1, "delta": 1},
    ],
)
def test_gaussian_noise_needs_epsilon_and_delta_or_rho(settings):
    for kind in (Gaussian, DiscreteGaussian):
        with refuses():
            kind(**settings)


@each
@pytest.mark.parametrize("odd", [0, -1, inf, nan, "1"])
def test_what_is_no_epsilon_or_sensitivity_is_refused(kind, odd):
    for name in ("epsilon", "sensitivity"):
        with refuses(name):
            kind(**cost(kind) | {name: odd})


# --- the grid ----------------------------------------------------------------------------------------------


@given(
    st.floats(-1e6, 1e6), st.floats(0, 50), st.sampled_from([2.0**-20, 2.0**-3, 0.1, 1.0, 7.0]), st.booleans()
)
def test_rounding_moves_two_answers_no_further_apart_than_the_sensitivity_in_steps(answer, move, step, back):
    other = answer - move if back else answer + move
    exact = Fraction(step)
    apart = abs(in_steps(other, exact) - in_steps(answer, exact))
    laplace = Laplace(
        epsilon=1, sensitivity=max(abs(Fraction(other) - Fraction(answer)), 1e-9), granularity=step
    )
    assert apart <= laplace.steps


@given(
    st.lists(st.tuples(st.floats(-100, 100), st.floats(-2, 2)), min_size=1, max_size=6), st.floats(0.01, 3)
)
def test_neither_do_several_numbers_in_either_norm(pairs, step):
    apart = np.array([in_steps(v + m, Fraction(step)) - in_steps(v, Fraction(step)) for v, m in pairs])
    exact = np.array([float(Fraction(v + m) - Fraction(v)) for v, m in pairs])
    sums, roots = max(np.abs(exact).sum(), 1e-6), max(float(np.sqrt((exact**2).sum())), 1e-6)
    settings = {"answers": len(pairs), "granularity": step}
    assert np.abs(apart).sum() <= Laplace(epsilon=1, sensitivity=sums * (1 + 1e-12), **settings).steps
    assert sqrt(float((apart**2).sum())) <= Gaussian(rho=1, sensitivity=roots * (1 + 1e-12), **settings).steps


def test_the_default_grid_adds_nothing_to_the_sensitivity_of_one_number():
    for sensitivity in (1, 72, 0.375, 2.0**-40):
        assert Laplace(epsilon=1, sensitivity=sensitivity).spend.sensitivity == sensitivity
    assert Laplace(epsilon=1, sensitivity=0.1).spend.sensitivity == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize("kind", REAL)
def test_answers_lie_on_the_grid_whatever_the_exact_one_is(kind):
    mechanism = kind(**cost(kind), granularity=0.25)
    for exact in (0.1, 1e-300, 3.3, -7.77):
        assert mechanism.release(exact) % 0.25 == 0


@each
def test_no_answer_raises_an_error_or_leaves_without_noise(kind):
    mechanism = kind(**cost(kind), seed=1)
    numbers = [10**30, -(10**30)] if kind in WHOLE else [inf, -inf, nan, 1e308, -1e308]
    assert all(np.isfinite(mechanism.release(number)) for number in numbers)
    assert in_steps(inf, Fraction(1)) == -in_steps(-inf, Fraction(1)) == FARTHEST
    two = kind(**cost(kind), seed=1, answers=2)
    for numbers in ([2**64, 1], [2**63, -1], [-(10**400), True], np.array([2**63, 1], np.uint64)):
        assert np.isfinite(two.release(numbers)).all()


@each
def test_an_answer_of_another_type_or_size_is_refused(kind):
    mechanism = kind(**cost(kind), answers=3)
    with refuses("say answers="):
        mechanism.release([1, 2])
    for odd in ("many", None, [object()] * 3, [1 + 1j] * 3):
        with refuses("must be"):
            mechanism.release(odd)
    if kind in WHOLE:
        with refuses("whole"):
            mechanism.release([1.0, 2.0, 3.0])


@each
def test_shapes_and_types_are_kept(kind):
    one, six = kind(**cost(kind), seed=1), kind(**cost(kind), seed=1, answers=6)
    assert type(one.release(3)) is (int if kind in WHOLE else float)
    released = six.release(np.arange(6).reshape(2, 3))
    assert released.shape == (2, 3)
    assert released.dtype == (np.int64 if kind in WHOLE else np.float64)
    assert np.unique(released - np.arange(6).reshape(2, 3)).size > 1


# --- intervals and seeds -----------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_an_interval_contains_the_exact_answer_as_often_as_it_says(kind, level):
    mechanism = kind(**cost(kind), answers=DRAWS, sensitivity=4, seed=62)
    low, high = mechanism.interval(level)
    noise = mechanism.release(np.zeros(DRAWS, int))
    share = float(((low <= noise) & (noise <= high)).mean())
    assert level - 0.02 < share < level + (0.08 if kind in WHOLE else 0.02)
    assert mechanism.interval(level, 100.0) == (100 + low, 100 + high)


def test_the_interval_of_laplace_noise_is_the_logarithm():
    low, high = Laplace(epsilon=1).interval(0.95)
    assert high == -low == pytest.approx(log(20), abs=1e-4)
    whole = DiscreteLaplace(epsilon=1).interval(0.95)[1]
    beyond = [2 * exp(-(q + 1)) / (1 + exp(-1)) for q in (whole, whole - 1)]
    assert beyond[0] <= 0.05 < beyond[1]


@each
def test_a_seed_repeats_the_noise_and_is_no_secret(kind):
    first, second = (kind(**cost(kind), seed=7) for _ in range(2))
    assert [first.release(5) for _ in range(9)] == [second.release(5) for _ in range(9)]
    assert not first.private
    assert kind(**cost(kind)).private


def test_without_a_seed_noise_does_not_repeat():
    mechanism = Laplace(epsilon=0.01)
    assert len({mechanism.release(0) for _ in range(50)}) > 40


@each
def test_noise_beyond_every_count_is_refused_before_anything_is_charged(kind):
    with refuses("too small"):
        kind(**({"epsilon": 1e-13} if kind in (Laplace, DiscreteLaplace) else {"rho": 1e-30}))
