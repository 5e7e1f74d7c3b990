"""Of each person at most k rows are kept, and which ones is between that person and chance."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from privsyn.private.rows import NOBODY, kept_rows
from privsyn.private.sampler import os_entropy

CHANCE = 1e-8
"""Probability with which a test of a distribution fails although the distribution is right."""

owned = st.lists(st.integers(NOBODY, 4), max_size=25).map(lambda owners: np.array(owners, np.int64))
most = st.integers(1, 6)
seeds = st.integers(0, 2**32)


def lots_of(seed, size):
    """Lots of which no two are alike."""
    return np.random.default_rng(seed).permutation(size).astype(np.uint64)


def drawn(lots):
    return lambda size: lots[:size]


@given(owned, most)
def test_of_each_person_as_many_rows_are_kept_as_may_be_and_none_of_nobody(persons, k):
    kept = kept_rows(persons, k, os_entropy)
    assert kept.dtype == bool
    assert kept.shape == persons.shape
    had = Counter(persons.tolist())
    assert Counter(persons[kept].tolist()) == {p: min(rows, k) for p, rows in had.items() if p != NOBODY}


@given(owned, most, seeds, st.integers(0, 4))
def test_a_person_who_leaves_takes_nothing_but_their_own_rows(persons, k, seed, leaver):
    """With the lots of the others as they were: at most k rows fewer, and none comes in their place."""
    lots = lots_of(seed, len(persons))
    kept = kept_rows(persons, k, drawn(lots))
    stay = persons != leaver
    assert np.array_equal(kept_rows(persons[stay], k, drawn(lots[stay])), kept[stay])
    assert kept[~stay].sum() <= k


@given(owned, most, seeds)
def test_so_does_a_row_of_nobody(persons, k, seed):
    lots = lots_of(seed, len(persons))
    known = persons != NOBODY
    kept = kept_rows(persons, k, drawn(lots))
    assert np.array_equal(kept_rows(persons[known], k, drawn(lots[known])), kept[known])


@given(owned, most, seeds, st.randoms())
def test_the_order_of_the_table_and_the_codes_of_its_people_do_not_matter(persons, k, seed, random):
    """Each row keeps its lot on the way; the people change their codes."""
    lots = lots_of(seed, len(persons))
    order = random.sample(range(len(persons)), len(persons))
    codes = np.array([*random.sample(range(5), 5), NOBODY])
    kept = kept_rows(persons, k, drawn(lots))
    assert np.array_equal(kept_rows(codes[persons][order], k, drawn(lots[order])), kept[order])


def fairness(choices, n, k):
    """Chi-square p-value of sets of k rows of n under the law that all are equally likely."""
    counts = Counter(choices)
    sets = list(combinations(range(n), k))
    assert set(counts) <= set(sets)
    expected = len(choices) / len(sets)
    return float(chi2.sf(sum((counts[s] - expected) ** 2 for s in sets) / expected, len(sets) - 1))


def choices_of(bits, people=20_000):
    kept = kept_rows(np.repeat(np.arange(people), 5), 2, bits).reshape(people, 5)
    return [tuple(np.flatnonzero(row).tolist()) for row in kept]


def test_each_choice_is_equally_likely():
    assert fairness(choices_of(os_entropy), 5, 2) > CHANCE


def test_a_choice_that_leans_is_seen():
    def leaning(size):
        """The first row of five draws the lower of two lots in one case of two."""
        lots = os_entropy(size).reshape(-1, 5).copy()
        better = os_entropy(len(lots))
        lots[:, 0] = np.where(better % 2 == 0, np.minimum(lots[:, 0], better), lots[:, 0])
        return lots.ravel()

    assert fairness(choices_of(leaning), 5, 2) < CHANCE
    assert fairness([(0, 1)] * 20_000, 5, 2) < CHANCE


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_hardly_a_row_is_kept_whole(rows):
    assert kept_rows(np.zeros(rows, np.int64), 1, os_entropy).tolist() == [True] * rows


def test_nobodys_table_is_dropped_whole():
    assert not kept_rows(np.full(7, NOBODY), 3, os_entropy).any()
