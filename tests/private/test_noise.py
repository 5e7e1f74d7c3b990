"""The kinds of noise say what they are, and no answer leaves but as an integer with noise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from privsyn.errors import InputError
from privsyn.private.noise import (
    ExactGaussian,
    ExactLaplace,
    SeededGaussian,
    SeededLaplace,
    noise_source,
    release,
)
from privsyn.private.randomness import Noise

CHANCE = 1e-8
"""Probability with which a test of a distribution fails although the distribution is right."""


# --- kinds of noise ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seeded", [SeededGaussian, SeededLaplace])
def test_a_seed_repeats_the_noise_and_is_said_not_to_be_private(seeded):
    one, other = seeded(3), seeded(3)
    assert (one.draw(1000.0, 50) == other.draw(1000.0, 50)).all()
    assert (one.draw(1000.0, 50) == other.draw(1000.0, 50)).all()
    assert (one.draw(1000.0, 50) != seeded(3).draw(1000.0, 50)).any(), "the same noise twice"
    assert (seeded(4).draw(1000.0, 50) != seeded(3).draw(1000.0, 50)).any()
    assert not one.private
    assert "NOT PRIVATE" in one.name
    assert ("discrete Laplace" in one.name) == (seeded is SeededLaplace)


@pytest.mark.parametrize("exact", [ExactGaussian, ExactLaplace])
def test_entropy_of_the_operating_system_does_not_repeat(exact):
    one, other = exact(), exact()
    assert (one.draw(1000.0, 50) != other.draw(1000.0, 50)).any()
    assert one.private
    assert "NOT PRIVATE" not in one.name


@pytest.mark.parametrize(
    ("exact", "maker", "distance", "wrong"),
    [
        (ExactGaussian, "make_gaussian", lambda dp: dp.l2_distance(T="f64"), (0.9, 1.1)),
        (ExactLaplace, "make_laplace", lambda dp: dp.l1_distance(T="i64"), (0.8, 1.25)),
    ],
)
def test_our_noise_is_distributed_like_that_of_opendp(exact, maker, distance, wrong):
    """A rounded and a discrete Gaussian (Canonne, Kamath and Steinke, 2020) differ by less than 1 % here."""
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    scale, size, values = 7.3, 20_000, np.arange(-20, 21)
    space = dp.vector_domain(dp.atom_domain(T="i64")), distance(dp)
    theirs = np.array(getattr(dp.m, maker)(*space, scale=scale)([0] * size), dtype=np.int64)

    def histogram(draws):
        return np.append((draws[:, None] == values).sum(axis=0), (np.abs(draws) > 20).sum())

    def likelihood(tried):
        ours = histogram(exact().draw(tried, size))
        return float(chi2_contingency([histogram(theirs), ours]).pvalue)

    assert likelihood(scale) > CHANCE
    for factor in wrong:
        assert likelihood(factor * scale) < CHANCE


def test_a_seed_decides_the_kind_of_noise() -> None:
    chosen: list[Noise] = [noise_source(None), noise_source(7)]
    assert [noise.private for noise in chosen] == [True, False]
    assert {noise.law.accounting for noise in chosen} == {"gaussian"}
    assert len({noise.name for noise in chosen}) == 2


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_a_wrong_seed_is_refused(seed: int) -> None:
    with pytest.raises(InputError, match=str(seed)):
        noise_source(seed)


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
