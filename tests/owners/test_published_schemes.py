"""Published ways to add noise together, as experiments/published_schemes.py has them beside ours."""

from __future__ import annotations

import secrets

import numpy as np
import pytest
from scripts import imported, needed

pytestmark = [needed, pytest.mark.filterwarnings("ignore::DeprecationWarning")]  # the latter of MPyC's import


@pytest.fixture(scope="module")
def schemes():
    with imported("published_schemes") as scripts:
        yield scripts["published_schemes"]


def test_the_noise_of_one_secret_owner_is_in_the_encrypted_sum(schemes, monkeypatch):
    pytest.importorskip("phe")
    monkeypatch.setattr(schemes, "discrete_laplace", lambda scale, size, bits: np.full(size, 1000))
    scheme = schemes.OneSecretOwner(256)
    counts = [np.array([3, 5]), np.array([10, 20]), np.array([0, 7])]
    messages = [scheme.send(own) for own in counts]
    chosen = set()
    while len(chosen) < 3:  # each in turn, if it takes some time
        total, owner = scheme.add(messages)
        chosen.add(owner)
    assert scheme.open(total) == [1013, 1032]


def test_masks_cancel_in_the_sum_of_all_meters_and_of_no_fewer(schemes):
    keys = {(a, b): secrets.token_bytes(32) for a in range(3) for b in range(a + 1, 3)}
    sent = []
    for meter in range(3):
        of_meter = {a + b - meter: key for (a, b), key in keys.items() if meter in (a, b)}
        sent.append(schemes.masked(np.array([meter, 10]), meter, of_meter, np.array([1, -1])))
    assert np.sum(sent, axis=0).tolist() == [3 + 3, 30 - 3]
    assert abs(int((sent[0] + sent[1])[0])) > 2**40


def test_a_part_of_divisible_noise_keeps_a_larger_epsilon(schemes):
    assert schemes.epsilon_left(1.0, 10.0) == pytest.approx(0.1)
    assert [schemes.epsilon_left(r, 10.0) for r in (0.9, 2 / 3, 0.5)] == pytest.approx(
        [0.146, 0.343, 0.606], abs=2e-3
    )
