"""Accounting is tight and errs to the safe side: against mpmath, dp-accounting and its own inverse."""

from __future__ import annotations

from fractions import Fraction
from math import fsum, log, sqrt

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import gaussian_mechanism
from dp_accounting.pld import privacy_loss_distribution
from dp_accounting.pld.common import DifferentialPrivacyParameters
from hypothesis import example, given, settings
from hypothesis import strategies as st

from privsyn.errors import InputError
from privsyn.private.accounting import Accounting, delta_for, epsilon_for, rho_for, rho_of, sigma_for
from privsyn.private.run_ledger import RunLedger
from privsyn.private.spend import Spend

ALL: tuple[Accounting, ...] = ("gaussian", "zcdp", "classical")
ways = st.sampled_from(ALL)
epsilons = st.floats(np.log(1e-3), np.log(100)).map(lambda x: float(np.exp(x)))
deltas = st.floats(np.log(1e-15), np.log(0.5)).map(lambda x: float(np.exp(x)))
rhos = st.floats(np.log(1e-10), np.log(1e3)).map(lambda x: float(np.exp(x)))


def true_delta(rho: float, epsilon: float, accounting: Accounting) -> mpmath.mpf:
    """The formulas as they are printed, at 50 digits."""
    with mpmath.workdps(50):
        rho, epsilon = mpmath.mpf(rho), mpmath.mpf(epsilon)
        if accounting == "gaussian":  # Balle and Wang, Theorem 8, with sensitivity over sigma = mu
            mu = mpmath.sqrt(2 * rho)
            return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
                -mu / 2 - epsilon / mu
            )
        if accounting == "classical":  # Bun and Steinke, Proposition 1.3
            return mpmath.exp(-((epsilon - rho) ** 2) / (4 * rho)) if epsilon > rho else mpmath.mpf(1)
        low, high = 1 + mpmath.mpf("1e-30"), (epsilon + 1) / (2 * rho) + 2  # Canonne, Kamath and Steinke
        for _ in range(300):
            alpha = (low + high) / 2
            slope = (2 * alpha - 1) * rho - epsilon + mpmath.log1p(-1 / alpha)
            low, high = (alpha, high) if slope < 0 else (low, alpha)
        bound = mpmath.exp((alpha - 1) * (alpha * rho - epsilon)) / (alpha - 1) * (1 - 1 / alpha) ** alpha
        return min(mpmath.mpf(1), bound)


# --- against the truth -------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(ways, epsilons, deltas)
@example("gaussian", 1e-3, 1e-15)
@example("gaussian", 100.0, 0.5)
@example("gaussian", 1000.0, 1e-100)
@example("zcdp", 1e-3, 1e-15)
@example("zcdp", 100.0, 0.5)
@example("zcdp", 1000.0, 1e-100)
def test_a_budget_keeps_its_promise_and_leaves_nothing_on_the_table(
    way: Accounting, epsilon: float, delta: float
) -> None:
    spent = true_delta(rho_for(epsilon, delta, way), epsilon, way)
    assert delta * (1 - 1e-6) < spent <= delta


@settings(max_examples=60, deadline=None)
@given(ways, epsilons, rhos)
@example("gaussian", 1.0, 1e-14)
@example("gaussian", 1e-3, 2e-8)  # two terms that cancel: without `CANCELLATION`, too small by 5e-12
@example("gaussian", 1e-3, 1e3)
@example("zcdp", 1e-3, 1e3)
@example("classical", 5.0, 0.01)  # without `MARGIN`, too small by 7e-14
@example("zcdp", 0.5, 1e-4)
def test_delta_is_never_below_the_truth(way: Accounting, epsilon: float, rho: float) -> None:
    computed, truth = delta_for(rho, epsilon, way), true_delta(rho, epsilon, way)
    assert 1 >= computed >= truth
    assert computed <= truth * (1 + 1e-6) + 1e-18  # the 1e-18: what the difference of the profile costs


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(ways, rhos, deltas)
def test_epsilon_is_never_below_the_truth_and_hardly_above(way: Accounting, rho: float, delta: float) -> None:
    epsilon = epsilon_for(rho, delta, way)
    if epsilon > 0:
        assert delta_for(rho, epsilon, way) <= delta
        assert true_delta(rho, epsilon, way) <= delta < true_delta(rho, epsilon * (1 - 1e-6), way)
    else:
        assert true_delta(rho, 0.0, way) <= delta


# --- against another's program -----------------------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(rhos, deltas)
def test_epsilon_agrees_with_dp_accounting(rho: float, delta: float) -> None:
    with np.errstate(divide="ignore"):  # its search may try an epsilon whose delta underflows
        theirs = gaussian_mechanism.get_epsilon_gaussian(1 / sqrt(2 * rho), delta)
    # theirs is found to 1e-12, from a difference of logarithms that keeps some ten digits
    assert theirs * (1 - 1e-7) - 1e-11 <= epsilon_for(rho, delta, "gaussian") <= theirs * (1 + 1e-3) + 1e-11


def random_run(rng: np.random.Generator) -> RunLedger:
    """A run as methods make them: promise first, thresholds next, then looks that share what is left.

    Each look's sensitivity, and its part of the budget, is drawn as if earlier answers had decided it.
    """
    epsilon, delta = np.exp(rng.uniform(np.log([0.01, 1e-12]), np.log([20.0, 1e-3]))).tolist()
    reserved = delta * rng.choice([0.0, rng.uniform(0, 0.5)])
    left, spends = rho_for(epsilon, delta - reserved, "gaussian"), []
    looks = int(rng.integers(1, 9))
    for number in range(looks):
        part = left if number == looks - 1 else rng.uniform(0.02, 0.9) * left
        sensitivity = float(
            rng.choice([1.0, sqrt(rng.integers(2, 400)), 65 * rng.uniform(1, 30), 1024 * 3.0])
        )
        threshold = reserved if number == 0 else 0.0
        spends.append(Spend(f"look {number}", 5, sensitivity, sigma_for(part, sensitivity), delta=threshold))
        left -= part
    return RunLedger(
        tuple(spends),
        promised_epsilon=epsilon,
        promised_delta=delta,
        accounting="gaussian",
        randomness="",
        private=True,
        public_inputs=(),
        version="1",
    )


@pytest.mark.slow
@pytest.mark.no_cover  # it would double the time, and other tests run the same lines
def test_random_runs_agree_with_dp_accounting() -> None:
    """The ledger's epsilon, at the promised delta and at one far from it, never below and 1e-3 above at most.

    dp-accounting gets the looks as one Gaussian of the same mu, the sum taken here from sensitivities and
    sigmas, and what thresholds leave of delta. Its own composition of losses and thresholds takes seconds a
    run: `test_one_gaussian_stands_for_the_composition_of_many` does that for a few.
    """
    rng = np.random.default_rng(4)
    for _ in range(300):
        ledger = random_run(rng)
        mu = sqrt(fsum((spend.sensitivity / spend.sigma) ** 2 for spend in ledger.spends))
        delta = ledger.promised_delta * rng.choice([1.0, 30.0])
        with np.errstate(divide="ignore"):
            theirs = gaussian_mechanism.get_epsilon_gaussian(1 / mu, delta - ledger.reserved)
        # theirs is found to 1e-12, from a difference of logarithms that keeps some ten digits
        assert theirs * (1 - 1e-7) - 1e-11 <= ledger.epsilon(delta) <= theirs * (1 + 1e-3) + 1e-11
        assert ledger.epsilon(ledger.promised_delta) <= ledger.promised_epsilon * (1 + 1e-9)


def test_a_threshold_beside_gaussians_costs_no_less_than_dp_accounting_finds() -> None:
    """Composed there as losses, the threshold's as one that is infinite with probability delta."""
    gaussian = privacy_loss_distribution.from_gaussian_mechanism(3.0, value_discretization_interval=1e-3)
    for delta, share in ((1e-5, 0.1), (1e-6, 0.5), (1e-9, 0.1)):
        threshold = privacy_loss_distribution.from_privacy_parameters(
            DifferentialPrivacyParameters(0, share * delta), value_discretization_interval=1e-3
        )
        theirs = gaussian.compose(threshold).get_epsilon_for_delta(delta)
        ours = epsilon_for(1 / 18, delta * (1 - share), "gaussian")
        assert ours == pytest.approx(theirs, rel=2e-3)  # theirs is rounded up to its grid
        assert ours * (1 + 1e-7) >= gaussian_mechanism.get_epsilon_gaussian(3.0, delta * (1 - share))


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "delta"), [(0.002, 1e-5), (0.02, 1e-9), (0.5, 1e-6)])
def test_one_gaussian_stands_for_the_composition_of_many(rho: float, delta: float) -> None:
    """The sum of costs against the convolution of privacy losses, which bounds epsilon from both sides."""
    sigmas = [sigma_for(share * rho, 1.0) for share in (0.1, 0.1, 0.5, 0.3)]

    def bound(*, above: bool) -> float:
        losses = [
            privacy_loss_distribution.from_gaussian_mechanism(
                sigma, pessimistic_estimate=above, value_discretization_interval=sqrt(rho) / 1000
            )
            for sigma in sigmas
        ]
        whole = losses[0]
        for loss in losses[1:]:
            whole = whole.compose(loss)
        return float(whole.get_epsilon_for_delta(delta))

    ours = epsilon_for(sum(rho_of(sigma, 1.0) for sigma in sigmas), delta, "gaussian")
    assert bound(above=False) <= ours <= bound(above=True) * (1 + 1e-9)
    assert bound(above=True) < bound(above=False) * 1.01  # the bounds do bound


def test_the_published_accounting_agrees_with_dp_accountings_renyi_bound() -> None:
    """Classical and CKS bracket what an accountant of Renyi divergences finds with its list of orders."""
    accountant = dp_accounting.rdp.RdpAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(1 / sqrt(2 * 0.03)))
    renyi = accountant.get_epsilon(1e-5)
    assert epsilon_for(0.03, 1e-5, "zcdp") <= renyi < epsilon_for(0.03, 1e-5, "classical")
    assert renyi < epsilon_for(0.03, 1e-5, "zcdp") * 1.001


# --- laws --------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(ways, epsilons, deltas)
def test_budget_and_promise_are_inverse(way: Accounting, epsilon: float, delta: float) -> None:
    rho = rho_for(epsilon, delta, way)
    assert delta_for(rho, epsilon, way) <= delta < delta_for(rho * (1 + 1e-6), epsilon, way)
    assert epsilon_for(rho, delta, way) == pytest.approx(epsilon, rel=1e-5)


@settings(max_examples=60, deadline=None)
@given(ways, epsilons, deltas, st.floats(1.001, 3))
def test_more_may_be_spent_on_a_weaker_promise(
    way: Accounting, epsilon: float, delta: float, more: float
) -> None:
    rho = rho_for(epsilon, delta, way)
    assert rho < rho_for(epsilon * more, delta, way)
    assert rho < rho_for(epsilon, 1 - (1 - delta) / more, way)
    assert epsilon_for(rho * more, delta, way) > epsilon_for(rho, delta, way)


@settings(max_examples=60, deadline=None)
@given(rhos, deltas)
def test_each_accounting_is_tighter_than_the_next(rho: float, delta: float) -> None:
    exact, zcdp, classical = (epsilon_for(rho, delta, way) for way in ALL)
    assert exact <= zcdp <= classical * (1 + 1e-9)


@pytest.mark.parametrize(
    ("epsilon", "gain"), [(0.1, 0.221), (0.5, 0.19), (1, 0.176), (2, 0.16), (4, 0.147), (10, 0.122)]
)
def test_the_exact_profile_buys_more_rho_than_zcdp(epsilon: float, gain: float) -> None:
    assert rho_for(epsilon, 1e-5, "gaussian") / rho_for(epsilon, 1e-5, "zcdp") == pytest.approx(
        1 + gain, abs=0.006
    )


def test_the_published_conversion_is_solved_by_hand() -> None:
    assert rho_for(2.0, 1e-5, "classical") == pytest.approx(
        (sqrt(log(1e5) + 2) - sqrt(log(1e5))) ** 2, rel=1e-9
    )


def test_nothing_spent_is_nothing_lost() -> None:
    for way in ALL:
        assert delta_for(0.0, 1.0, way) == 0.0
        assert epsilon_for(0.0, 1e-9, way) == 0.0


def test_extremes_neither_overflow_nor_promise_too_much() -> None:
    for way in ALL:
        assert 0 < delta_for(1e-300, 100.0, way) < 1e-300
        assert delta_for(1e12, 1.0, way) == 1.0
        assert epsilon_for(1e200, 1e-9, way) >= 1e200


@given(rhos, st.floats(0.1, 1e4))
@example(0.1, sqrt(14))
def test_sigma_is_rounded_up_and_its_cost_too(rho: float, sensitivity: float) -> None:
    sigma = sigma_for(rho, sensitivity)
    exact = Fraction(sensitivity) ** 2 / (2 * Fraction(sigma) ** 2)
    assert exact <= Fraction(rho_of(sigma, sensitivity)) <= Fraction(rho)
    assert sigma == pytest.approx(sensitivity / sqrt(2 * rho), rel=1e-15)


# --- mistakes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [-1, 0, float("inf"), float("nan"), "1", None, True])
def test_an_epsilon_that_cannot_be_is_refused(epsilon: float) -> None:
    for call in (lambda: rho_for(epsilon, 1e-9, "gaussian"), lambda: delta_for(0.1, epsilon, "gaussian")):
        with pytest.raises(InputError, match=f"epsilon must be a finite number above 0; got {epsilon!r}"):
            call()


@pytest.mark.parametrize("delta", [-1, 0, 1, 1.5, float("nan"), "1e-9", None])
def test_a_delta_that_cannot_be_is_refused(delta: float) -> None:
    for call in (lambda: rho_for(1.0, delta, "gaussian"), lambda: epsilon_for(0.1, delta, "gaussian")):
        with pytest.raises(InputError, match=f"usually below 1 / rows, or 0 for pure epsilon; got {delta!r}"):
            call()


def test_other_mistakes_are_refused() -> None:
    with pytest.raises(InputError, match=r"rho must be a finite number of at least 0; got -0\.1"):
        delta_for(-0.1, 1.0, "gaussian")
    with pytest.raises(
        InputError, match="accounting must be one of gaussian, zcdp, classical, pure; got 'renyi'"
    ):
        rho_for(1.0, 1e-9, "renyi")  # type: ignore[arg-type]
