"""The best test between a table with a person and one without."""

import numpy as np
import pytest

from privsyn.evaluation.attacks.trade_off import TradeOff
from privsyn.private.accounting import delta_for

RATES = np.linspace(0.001, 0.999, 999)


@pytest.mark.parametrize(
    "test",
    [
        *(TradeOff(1.0), TradeOff(2.0, 0.05), TradeOff(mu=0.7), TradeOff(300.0), TradeOff(mu=100.0)),
        *(TradeOff(delta=0.4, mu=1.0), TradeOff(delta=0.01, mu=5.0)),  # all recognised before the middle
    ],
)
def test_the_advantage_is_the_largest_at_the_corner(test):
    along = [test.recognised(rate) - rate for rate in RATES]
    assert max(along) <= test.advantage + 1e-12
    assert max(along) == pytest.approx(test.advantage, abs=0.003)
    assert 0.5 <= test.guess <= 1


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_one_gaussian_answer_recognises_no_more_than_its_epsilon_and_delta_allow(epsilon):
    """For each epsilon with its own delta; the line of that epsilon touches the curve at one rate."""
    mu = 0.8
    gaussian, allowed = TradeOff(mu=mu), TradeOff(epsilon, delta_for(mu**2 / 2, epsilon, "gaussian"))
    room = [allowed.recognised(rate) - gaussian.recognised(rate) for rate in RATES]
    assert min(room) > -1e-12
    assert min(room) == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(("epsilon", "guess"), [(1.0, 0.880798), (40.0, 1.0), (800.0, 1.0)])
def test_a_chain_of_releases_that_promises_nothing_bounds_no_guess(epsilon, guess):
    """Two neighbours apart, the delta of a large epsilon is above 1."""
    plain = {"since": {"promise": {"epsilon": epsilon, "delta": 1e-9}}}
    assert TradeOff.of_ledger(plain, steps=2).guess == pytest.approx(guess, abs=1e-6)


def test_two_steps_double_mu_and_delta():
    plain = {"promise": {"epsilon": 1.0, "delta": 1e-9}, "accounting": "gaussian", "reserved_delta": 1e-10}
    once, twice = (TradeOff.of_ledger(plain | {"mu": 0.3}, steps=steps) for steps in (1, 2))
    assert (once.mu, once.delta) == pytest.approx((0.3, 1e-10))
    assert (twice.mu, twice.delta) == pytest.approx((0.6, 2e-10))
