"""The draws of the operating system are those of a seed in tests; see `repeatable`."""

import numpy as np
import pytest

from privsyn.private.randomness import os_entropy


@pytest.fixture(params=[1, 2])
def drawn(request):
    """Bits, a seed of a table of rows, and a draw."""
    return draw()


def draw():
    return [*os_entropy(2).tolist(), np.random.SeedSequence().entropy, np.random.default_rng().random()]


@pytest.fixture
def repeatable(request):
    if request.config.getoption("entropy"):
        pytest.skip("--entropy draws other ones")


@pytest.mark.parametrize("time", [1, 2])
def test_a_test_and_its_fixtures_have_seeds_of_their_own(repeatable, drawn, time, request):
    mine, again = draw(), draw()
    assert not {*mine, *drawn} & {*again}
    seen = request.config.stash.setdefault(DRAWS, {})
    assert seen.setdefault(("fixture", request.node.callspec.params["drawn"]), drawn) == drawn
    assert mine not in seen.values()
    seen["test", request.node.name] = mine


DRAWS = pytest.StashKey[dict]()
