"""The kinds of noise say what they are, and no answer leaves but as an integer with noise."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy.stats import chi2

from privsyn.errors import InputError
from privsyn.private.noise import (
    ExactGaussian,
    Noise,
    OpenDPGaussian,
    SeededGaussian,
    noise_source,
    release,
)
from privsyn.private.sampler import LARGEST_SIGMA

CHANCE = 1e-8
"""Probability with which a test of a distribution fails although the distribution is right."""


# --- kinds of noise ----------------------------------------------------------------------------------------


def test_a_seed_repeats_the_noise_and_is_said_not_to_be_private() -> None:
    one, other = SeededGaussian(3), SeededGaussian(3)
    assert (one.draw(1000.0, 50) == other.draw(1000.0, 50)).all()
    assert (one.draw(1000.0, 50) == other.draw(1000.0, 50)).all()
    assert (one.draw(1000.0, 50) != SeededGaussian(3).draw(1000.0, 50)).any(), "the same noise twice"
    assert (SeededGaussian(4).draw(1000.0, 50) != SeededGaussian(3).draw(1000.0, 50)).any()
    assert not one.private
    assert "NOT PRIVATE" in one.name


def test_entropy_of_the_operating_system_does_not_repeat() -> None:
    one, other = ExactGaussian(), ExactGaussian()
    assert (one.draw(1000.0, 50) != other.draw(1000.0, 50)).any()
    assert one.private
    assert "NOT PRIVATE" not in one.name


def test_opendps_discrete_gaussian_has_its_own_distribution() -> None:
    pytest.importorskip("opendp")
    sigma, size = 7.3, 20_000
    values = np.arange(-20, 21)
    weights = np.exp(-np.square(np.arange(-200.0, 201)) / (2 * sigma**2))
    expected = size * np.exp(-np.square(values) / (2 * sigma**2)) / weights.sum()
    expected = np.append(expected, size - expected.sum())

    def likelihood(scale: float) -> float:
        drawn = OpenDPGaussian().draw(scale, size)
        counts = np.append((drawn[:, None] == values).sum(axis=0), (np.abs(drawn) > 20).sum())
        return float(chi2.sf(np.sum((counts - expected) ** 2 / expected), len(values)))

    assert likelihood(sigma) > CHANCE
    assert likelihood(0.9 * sigma) < CHANCE
    assert likelihood(1.1 * sigma) < CHANCE
    with pytest.raises(InputError, match="epsilon is too small"):
        OpenDPGaussian().draw(2 * LARGEST_SIGMA, 1)


def test_noise_is_chosen_by_name() -> None:
    pytest.importorskip("opendp")
    chosen: list[Noise] = [
        noise_source("exact", None),
        noise_source("exact", 7),
        noise_source("opendp", None),
    ]
    assert [(noise.private, noise.accounting) for noise in chosen] == [
        (True, "gaussian"),
        (False, "gaussian"),
        (True, "zcdp"),
    ]
    assert len({noise.name for noise in chosen}) == 3


@pytest.mark.parametrize(
    ("kind", "seed", "message"),
    [("laplace", None, "laplace"), ("opendp", 3, "takes no seed"), ("exact", -1, "-1"), ("exact", 1.5, "1.5"),
     ("exact", True, "True")],
)  # fmt: skip
def test_a_choice_that_cannot_be_is_refused(kind: str, seed: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        noise_source(kind, seed)


def test_without_opendp_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(InputError, match=r'pip install "privsyn\[opendp\]"'):
        noise_source("opendp", None)


# --- the door ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
def test_a_released_answer_is_the_exact_one_plus_the_noise(dtype: type) -> None:
    exact: np.ndarray = np.arange(12, dtype=dtype).reshape(3, 4)
    noisy = release(exact, 100.0, SeededGaussian(1))
    assert noisy.dtype == np.int64
    assert (noisy - exact == SeededGaussian(1).draw(100.0, 12).reshape(3, 4)).all()
    assert (exact == np.arange(12).reshape(3, 4)).all()


@pytest.mark.parametrize("dtype", [np.float64, bool, np.uint64, object])
def test_only_integers_pass_the_door(dtype: type) -> None:
    with pytest.raises(TypeError, match="integers"):
        release(np.zeros(3, dtype=dtype), 1.0, ExactGaussian())
