"""What one person adds to a count is bounded, and decided between that person's rows and chance."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import chi2
from strategies import StubNoise

from privsyn.marginals.counting import Packing, ranks
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import NO_GROUPS, Grouping
from privsyn.private.acceptance import Acceptance, Verdict
from privsyn.private.contribution import (
    NOBODY,
    Bound,
    Contribution,
    NumbersInMemory,
    WithinSquares,
    classes,
    first_rows,
    previous_rows,
    random_order,
    rows_of_all,
    rows_per_person,
    shares_that_stay,
    values_of_one_row,
)
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import SeededGaussian
from privsyn.private.noise_laws import HEADROOM
from privsyn.private.randomness import os_entropy
from privsyn.private.rows import PersonsTogether, Rows
from privsyn.private.run_ledger import RunLedger
from privsyn.private.spend import QueryLog

CHANCE = 1e-8
"""Probability with which a test of a distribution fails although the distribution is right."""

owned = st.lists(st.integers(NOBODY, 4), max_size=25).map(lambda owners: np.array(owners, np.int64))
heavy = st.lists(st.integers(NOBODY, 1), min_size=8, max_size=40).map(lambda who: np.array(who, np.int64))
most = st.integers(1, 6)
seeds = st.integers(0, 2**32)


def words_of(seed, size):
    """Random words of which no two are alike."""
    return np.random.default_rng(seed).permutation(size).astype(np.uint64)


def drawn(words):
    return lambda size: words[:size]


def kept_rows(persons, k, bits):
    """Whether each row is among the first `k` of its person."""
    order = random_order(persons, bits)
    kept = np.zeros(len(persons), bool)
    kept[order[ranks(persons[order]) < k]] = True
    return kept


# --- the order of a person's rows --------------------------------------------------------------------------


@given(owned, most)
def test_of_each_person_as_many_rows_are_kept_as_may_be_and_none_of_nobody(persons, k):
    kept = kept_rows(persons, k, os_entropy)
    had = Counter(persons.tolist())
    assert Counter(persons[kept].tolist()) == {p: min(rows, k) for p, rows in had.items() if p != NOBODY}


@given(
    st.lists(st.tuples(st.integers(-1, 3), st.sampled_from([0, 1, 2, 2**62, 2**63, 2**63 + 1, 2**64 - 1]))),
    st.integers(0, 2**40),
)
def test_rows_are_sorted_by_their_person_and_then_by_all_bits_of_their_word(rows, last):
    """Words that differ in their last bits alone are compared too, and equal ones keep the table's order."""
    persons = np.array([person if person < 3 else last for person, _ in rows], np.int64)
    words = np.array([word for _, word in rows], np.uint64)
    slow = sorted(np.flatnonzero(persons >= 0), key=lambda row: (persons[row], words[row]))
    assert random_order(persons, lambda _: words).tolist() == slow


@given(owned, most, seeds, st.integers(0, 4))
def test_a_person_who_leaves_takes_nothing_but_their_own_rows(persons, k, seed, leaver):
    """With the words of the others as they were: at most k rows fewer, and none comes in their place."""
    words = words_of(seed, len(persons))
    kept = kept_rows(persons, k, drawn(words))
    stay = persons != leaver
    assert np.array_equal(kept_rows(persons[stay], k, drawn(words[stay])), kept[stay])
    assert kept[~stay].sum() <= k


@given(owned, most, seeds)
def test_so_does_a_row_of_nobody(persons, k, seed):
    words = words_of(seed, len(persons))
    known = persons != NOBODY
    kept = kept_rows(persons, k, drawn(words))
    assert np.array_equal(kept_rows(persons[known], k, drawn(words[known])), kept[known])


@given(owned, most, seeds, st.randoms())
def test_the_order_of_the_table_and_the_codes_of_its_people_do_not_matter(persons, k, seed, random):
    """Each row keeps its word on the way; the people change their codes."""
    words = words_of(seed, len(persons))
    order = random.sample(range(len(persons)), len(persons))
    codes = np.array([*random.sample(range(5), 5), NOBODY])
    kept = kept_rows(persons, k, drawn(words))
    assert np.array_equal(kept_rows(codes[persons][order], k, drawn(words[order])), kept[order])


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
        """The first row of five draws the lower of two words in one case of two."""
        words = os_entropy(size).reshape(-1, 5).copy()
        better = os_entropy(len(words))
        words[:, 0] = np.where(better % 2 == 0, np.minimum(words[:, 0], better), words[:, 0])
        return words.ravel()

    assert fairness(choices_of(leaning), 5, 2) < CHANCE
    assert fairness([(0, 1)] * 20_000, 5, 2) < CHANCE


@pytest.mark.parametrize("rows", [0, 1])
def test_a_table_of_hardly_a_row_is_kept_whole(rows):
    assert kept_rows(np.zeros(rows, np.int64), 1, os_entropy).tolist() == [True] * rows


def test_nobodys_table_is_dropped_whole():
    assert not kept_rows(np.full(7, NOBODY), 3, os_entropy).any()


# --- the rows of a person together -------------------------------------------------------------------------

DOMAIN = Domain(("a", "b", "c"), (3, 300, 2))


def table_of(persons, seed, alike=0.5):
    """Codes of a row each. Many of a person are alike, or no bound on squares would matter."""
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, len(persons)) for size in DOMAIN.sizes], axis=1)
    codes[rng.random(len(persons)) < alike] = 1
    return codes


def rows_of(codes, persons, words, *, memory=np.inf, batch=7, of_persons=()):
    """The rows as a private table counts them, read from blocks of a few."""
    kinds = (np.uint8, np.uint16, np.uint8)

    def walk(ask):
        blocks = (codes[start : start + batch].T for start in range(0, len(codes), batch))
        return ask(tuple(column.astype(kind) for column, kind in zip(b, kinds, strict=True)) for b in blocks)

    order = random_order(persons, drawn(words))
    together = PersonsTogether(walk, persons, order, of_persons, Packing(DOMAIN.sizes), memory)
    return Rows(DOMAIN, together, np.inf, of_persons=True)


def test_no_text_of_the_rows_of_persons_shows_their_codes_or_order():
    rows = rows_of(np.array([[7, 8, 1], [9, 8, 1]]), np.array([4, 5]), words_of(0, 2))
    assert all("array" not in text for text in (repr(rows), repr(rows.walk)))


def twin(codes, persons, words, names, most, groups=None):
    """Count within squares, one row after another."""
    axes = DOMAIN.axes(names)
    sizes = [DOMAIN.sizes[axis] for axis in axes] if groups is None else [max(group) + 1 for group in groups]
    counts = np.zeros(tuple(sizes), int)
    for person in set(persons.tolist()) - {NOBODY}:
        own = Counter()
        for row in sorted(np.flatnonzero(persons == person), key=lambda row: words[row]):
            cell = tuple(int(codes[row, axis]) for axis in axes)
            if groups is not None:
                cell = tuple(int(group[code]) for group, code in zip(groups, cell, strict=True))
            own[cell] += 1
            if sum(times**2 for times in own.values()) > most**2:
                break
            counts[cell] += 1
    return counts


SETS = [("a", "b"), ("c", "a"), ("a", "b", "c")]


@given(owned, most, seeds, st.sampled_from([np.inf, 60.0, 1.0]))
@example(np.array([0, 1, 0, 2]), 2, 0, 1.0)  # several parts, in every run
def test_counts_within_squares_are_those_of_a_slow_twin_whatever_fits_in_memory(persons, k, seed, memory):
    words, codes = words_of(seed, len(persons)), table_of(persons, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("privsyn.private.rows.ROWS_AT_ONCE", 1)
        rows = rows_of(codes, persons, words, memory=memory)
    for names, counts in zip(SETS, rows.count(SETS, Bound(k, "squares")), strict=True):
        assert np.array_equal(counts, twin(codes, persons, words, names, k))
    for names, counts in zip(SETS, rows.count(SETS, Bound(k)), strict=True):
        kept = kept_rows(persons, k, drawn(words))
        expected = np.zeros(counts.shape, int)
        np.add.at(expected, tuple(codes[kept][:, axis] for axis in DOMAIN.axes(names)), 1)
        assert np.array_equal(counts, expected)


@given(heavy, most, seeds, st.integers(0, 1))
def test_whoever_leaves_moves_a_table_by_no_more_than_the_bound(persons, k, seed, leaver):
    """In codes and in groups of codes, within squares and by rows; nobody else's rows change."""
    words, codes, stay = words_of(seed, len(persons)), table_of(persons, seed, 0.8), persons != leaver
    halves = Grouping(tuple(np.arange(DOMAIN.size_of[name]) // 2 for name in SETS[0]))
    tables = [rows_of(codes, persons, words), rows_of(codes[stay], persons[stay], words[stay])]
    for bound in (Bound(k, "squares"), Bound(k)):
        for groupings in ([NO_GROUPS] * 3, [halves, NO_GROUPS, NO_GROUPS]):
            whole, rest = (list(rows.count(SETS, bound, groupings)) for rows in tables)
            for one, other in zip(whole, rest, strict=True):
                assert ((one - other) >= 0).all()
                assert np.linalg.norm(one - other) <= k


def test_tables_with_the_classes_of_persons_bound_the_rows():
    """From these it follows what all rows are like, so the rows that are kept must be a random sample."""
    persons, words = np.repeat(np.arange(3), 20), np.arange(60, dtype=np.uint64)
    rows = rows_of(table_of(persons, 0), persons, words)
    of_classes = Contribution(3, squares=True, of_tables=2.0, classes="c")
    private = PrivateTable(rows, StubNoise(), of_classes)
    sets = (("a", "b"), ("c", "a"), ("a", "b", "c"))
    answers = private.marginals(sets, np.full(3, 0.5))
    bounds = [Bound(3, "squares"), Bound(3), Bound(3)]
    for names, bound, answer in zip(sets, bounds, answers, strict=True):
        (exact,) = rows.count([names], bound)
        assert answer.marginal.counts.tolist() == exact.tolist()
        assert (exact.sum() > 9) == (bound.by == "squares")
    assert [spend.sensitivity for spend in private.spends] == [3.0] * 3


def test_without_tables_nothing_is_counted():
    rows = rows_of(table_of(np.zeros(3, np.int64), 0), np.zeros(3, np.int64), np.arange(3, dtype=np.uint64))
    assert [list(rows.count([], bound)) for bound in (Bound(2), Bound(2, "squares"))] == [[], []]
    assert PrivateTable(rows, StubNoise(), Contribution(2)).marginals((), np.zeros(0)) == ()


def test_the_bound_is_attained():
    """By rows that are all alike, and by rows that are all different: C, and C^2 of them."""
    persons, words = np.zeros(60, np.int64), np.arange(60, dtype=np.uint64)
    alike = np.ones((60, 3), np.int64)
    different = np.stack([np.zeros(60), np.arange(60), np.zeros(60)], axis=1).astype(np.int64)
    for codes, kept in ((alike, 4), (different, 16)):
        (counts,) = rows_of(codes, persons, words).count([("a", "b")], Bound(4, "squares"))
        assert np.linalg.norm(counts) == 4
        assert counts.sum() == kept


@given(owned, most, seeds)
@example(np.zeros(60, np.int64), 3, 0)  # nine different rows, of one group, in every run
def test_groups_are_bounded_as_groups(persons, k, seed):
    """The norm in groups may exceed the norm in codes: so groups are counted, and not joined afterwards."""
    words, codes = words_of(seed, len(persons)), table_of(persons, seed, 0.0)
    groups = tuple(np.arange(DOMAIN.size_of[name]) // 100 for name in ("b", "c"))
    rows = rows_of(codes, persons, words)
    (counts,) = rows.count([("b", "c")], Bound(k, "squares"), [Grouping(groups)])
    assert np.array_equal(counts, twin(codes, persons, words, ("b", "c"), k, groups))


def test_rows_that_do_not_stand_together_cannot_be_counted_within_squares():
    rows = Rows(DOMAIN, lambda ask: ask([]), np.inf)
    with pytest.raises(ValueError, match="squares"):
        list(rows.count(SETS, Bound(2, "squares")))


def test_columns_of_the_person_stand_beside_their_rows():
    persons, words = np.array([1, 0, 1, NOBODY]), np.arange(4, dtype=np.uint64)
    codes, seen = np.array([[0, 5, 0], [1, 6, 0], [2, 7, 1], [0, 8, 0]]), []
    of_persons = (np.array([9, 4, 4], np.uint8),)  # in the order of the rows of persons 0, 1 and 1
    rows_of(codes, persons, words, of_persons=of_persons).walk(lambda blocks: seen.extend(blocks) or [])
    (block,) = seen
    assert [column.tolist() for column in block] == [[1, 0, 2], [6, 5, 7], [0, 0, 1], [9, 4, 4], [0, 0, 1]]


def test_no_person_is_in_two_blocks(monkeypatch):
    monkeypatch.setattr("privsyn.private.rows.ROWS_AT_ONCE", 3)
    persons = np.array([0] * 5 + [1] * 2 + [2] * 4)
    blocks = []
    rows = rows_of(table_of(persons, 0), persons, words_of(0, 11))
    rows.walk(lambda found: blocks.extend(found) or [])
    assert all(block[-1][0] == 0 for block in blocks)
    assert sum(len(block[-1]) for block in blocks) == 11


def test_rows_of_a_source_that_is_asked_part_by_part_stand_together():
    persons, words, domain = np.array([0, 1, 0, 1]), words_of(0, 4), Domain(("a",), (4,))
    parts, blocks = [[np.array([0, 1], np.uint8)], [np.array([2, 3], np.uint8)]], []

    def walk(ask):
        answers = [ask([tuple(part)]) for part in parts]
        return answers[0]

    order = random_order(persons, drawn(words))
    together = PersonsTogether(walk, persons, order, (), Packing(domain.sizes), np.inf)
    together(lambda found: blocks.extend(found) or [])
    assert [column.tolist() for column in blocks[0]] == [order.tolist(), [0, 1, 0, 1]]
    parts.pop()
    with pytest.raises(RuntimeError, match="not all rows"):
        PersonsTogether(walk, persons, order, (), Packing(domain.sizes), np.inf)(list)


def test_first_rows_of_a_block_that_needs_no_cut_are_the_block():
    block = (np.array([1, 2], np.uint8), np.array([0, 1], np.uint32))
    assert next(first_rows([block], 2)) is block


# --- rows per person ---------------------------------------------------------------------------------------


@given(owned, seeds, st.integers(0, 4))
def test_a_person_moves_the_numbers_of_rows_per_person_by_one_cell(persons, seed, leaver):
    def exact(codes):
        """Without noise to speak of."""
        return rows_per_person(NumbersInMemory(codes), QueryLog(), SeededGaussian(0), 1e6)[0]

    stay = persons[persons != leaver]
    change = exact(persons) - exact(stay)
    assert np.abs(change).sum() == (leaver in persons)
    rows = Counter(persons[persons != NOBODY].tolist()).values()
    begins = classes(100_000)
    expected = [sum(begin <= n < end for n in rows) for begin, end in pairwise([*begins, 10**9])]
    assert exact(persons).tolist() == expected


def test_the_ledger_has_the_question_of_rows_per_person():
    log = QueryLog()
    _, variance = rows_per_person(NumbersInMemory(np.repeat(np.arange(9), 3)), log, SeededGaussian(0), 0.005)
    (spend,) = log.spends
    assert (spend.what, spend.sensitivity, spend.sigma) == ("rows per person", 1.0, 10.0 * (1 + HEADROOM))
    assert variance == spend.sigma**2


@given(owned, seeds, st.integers(0, 4), st.integers(1, 4))
def test_a_person_moves_the_number_of_all_rows_by_at_most_the_bound(persons, seed, leaver, most):
    def exact(codes):
        """Without noise to speak of."""
        return rows_of_all(NumbersInMemory(codes), most, QueryLog(), SeededGaussian(0), 1e6)[0]

    rows = Counter(persons[persons != NOBODY].tolist())
    assert exact(persons) == sum(min(n, most) for n in rows.values())
    assert exact(persons) - exact(persons[persons != leaver]) == min(rows[leaver], most)


@given(owned, seeds, st.integers(0, 4))
@example(np.array([0] * 20 + [1, 1]), 0, 0)
def test_a_person_moves_the_shares_that_stay_by_at_most_one_each(persons, seed, leaver):
    """The rows of a person are in random order, and each row follows the one before it."""
    codes = np.random.default_rng(seed).integers(0, 2, len(persons))

    def exact(stay):
        order = np.argsort(persons[stay], kind="stable")
        of, values = persons[stay][order], codes[stay][order]
        previous = previous_rows(of)
        log = QueryLog()
        sums = shares_that_stay("a", of, previous, values, log, SeededGaussian(0), 1e9)[0]
        (spend,) = log.spends
        assert (spend.what, spend.answers) == ("how often a stays the same", 2)
        assert spend.sensitivity == pytest.approx(16 * 2**0.5)
        first = np.flatnonzero((np.diff(of, prepend=NOBODY) != 0) & (of != NOBODY))
        one_row = values_of_one_row("a", values[first], 2, QueryLog(), SeededGaussian(0), 1e9)[0]
        return sums, one_row

    every = np.full(len(persons), True)
    (sums, one_row), (rest, others) = exact(every), exact(persons != leaver)
    moved = sums - rest
    has_several = np.count_nonzero(persons == leaver) > 1
    assert moved[1] == pytest.approx(float(has_several), abs=0.01)
    assert -0.01 <= moved[0] <= moved[1] + 0.01
    assert np.abs(one_row - others).sum() == int((persons == leaver).any())


def test_a_share_is_that_of_rows_with_the_value_of_the_row_before():
    persons, codes = np.array([0, 0, 0, 0, 0, 1, 1, 2]), np.array([1, 1, 1, 1, 0, 0, 1, 1])
    previous = previous_rows(persons, np.arange(8.0))
    sums, variance = shares_that_stay("a", persons, previous, codes, QueryLog(), SeededGaussian(0), 1e9)
    assert sums == pytest.approx([0.75, 2], abs=0.01)
    assert variance < 1e-6


def test_the_ledger_has_the_question_of_all_rows():
    log = QueryLog()
    _, variance = rows_of_all(NumbersInMemory(np.repeat(np.arange(9), 3)), 5, log, SeededGaussian(0), 0.005)
    (spend,) = log.spends
    assert (spend.what, spend.sensitivity) == ("rows of all persons, at most 5 of each", 5.0)
    assert (spend.sigma, variance) == (50.0 * (1 + HEADROOM), spend.sigma**2)


def test_every_number_of_rows_has_a_class():
    begins = classes(100_000)
    assert begins[:12].tolist() == list(range(1, 13))
    assert (np.diff(begins) > 0).all()
    assert prod(begins[-1:].tolist()) * 3 // 2 > 100_000


def test_a_table_within_squares_may_have_any_axes():
    squares = WithinSquares(DOMAIN, [("c", "b")], NO_GROUPS, [NO_GROUPS], 2)
    columns = (([0], "u1"), ([299], "u2"), ([1], "u1"), ([0], "u4"))
    block = tuple(np.array(column, kind) for column, kind in columns)
    (counts,) = squares.count([block])
    assert counts.shape == (2, 300)
    assert counts[1, 299] == counts.sum() == 1


# --- the previous row of the same person -------------------------------------------------------------------


@given(owned, seeds, st.booleans())
def test_the_previous_row_is_the_one_before_it_of_the_same_person(persons, seed, sort):
    persons = np.sort(persons[persons != NOBODY])
    keys = np.random.default_rng(seed).permutation(len(persons)).astype(float) if sort else None
    previous = previous_rows(persons, keys)
    by = np.arange(len(persons)) if keys is None else keys
    for row, before in enumerate(previous.tolist()):
        earlier = [at for at in np.flatnonzero(persons == persons[row]) if by[at] < by[row]]
        assert before == max(earlier, key=lambda at: by[at], default=-1)


def test_columns_of_the_previous_row_stand_in_the_block_and_extend_the_rows():
    """Whoever leaves moves a table over neighbours by no more than the bound, too."""
    rng = np.random.default_rng(0)
    persons, words = np.sort(rng.integers(0, 6, 40)), words_of(0, 40)
    codes, names = table_of(persons, 0, 0.7), (*DOMAIN.names, "previous a")

    def counts(stay):
        order = random_order(persons[stay], drawn(words[stay]))
        kept = rows_of(codes[stay], persons[stay], words[stay]).walk
        kept.previous = previous_rows(persons[stay][order], None)
        rows = Rows(DOMAIN, kept, np.inf, of_persons=True)
        groups = np.array([0, 1, 1, 2], np.int32)  # of the codes of a, and of rows without a previous one
        rows = rows.extend(Domain(names, (*DOMAIN.sizes, 3)), [groups])
        return next(rows.count([("previous a", "a")], Bound(3, "squares"))), order

    whole, _ = counts(np.ones(40, bool))
    assert next(iter(whole.shape)) == 3
    assert whole[2].sum() == 6  # each person's first row is counted, and has none before it
    for leaver in range(6):
        rest, _ = counts(persons != leaver)
        assert ((whole - rest) >= 0).all()
        assert np.linalg.norm(whole - rest) <= 3
    with pytest.raises(ValueError, match="attributes"):
        Rows(DOMAIN, lambda ask: ask([]), np.inf).extend(Domain(names, (*DOMAIN.sizes, 3)), [])


def test_columns_of_the_second_row_before_are_those_of_the_previous_row_of_the_previous_row():
    rng = np.random.default_rng(0)
    persons, words = np.sort(rng.integers(0, 6, 40)), words_of(0, 40)
    codes, order = table_of(persons, 0, 0.2), random_order(persons, drawn(words_of(0, 40)))
    walk = rows_of(codes, persons, words).walk
    walk.previous, walk.lags = previous_rows(persons[order], None), 2
    found = []

    def collect(blocks):
        found.extend(blocks)
        return []

    walk(collect)
    found = [np.concatenate(column) for column in zip(*found, strict=True)]
    assert len(found) == 3 * len(DOMAIN) + 1
    for place, size in enumerate(DOMAIN.sizes):
        of_row = codes[order, place]
        for lag in (1, 2):
            before = np.roll(of_row, lag)
            before[found[-1] < lag] = size  # the last column: how many rows of the person stand before
            assert found[lag * len(DOMAIN) + place].tolist() == before.tolist()


def test_a_table_with_more_attributes_keeps_its_log_and_its_bound():
    persons, words = np.array([0, 0, 1]), words_of(0, 3)
    rows = rows_of(table_of(persons, 0), persons, words)
    rows.walk.previous = previous_rows(persons[random_order(persons, drawn(words))], None)
    private = PrivateTable(rows, SeededGaussian(0), Contribution(2, squares=True, of_tables=1.0))
    domain = Domain((*DOMAIN.names, "previous a"), (*DOMAIN.sizes, 4))
    longer = private.extend(domain, [np.arange(4, dtype=np.int32)])
    longer.marginals((("previous a", "c"),), np.array([0.1]))
    assert [spend.sensitivity for spend in private.spends] == [2.0]
    with pytest.raises(ValueError, match="one table of counts"):
        private.residuals((("a", "c"),), np.array([0.1]))


def test_the_ledger_says_how_rows_are_bounded():
    ledger = RunLedger(
        (),
        promised_epsilon=1.0,
        promised_delta=1e-9,
        accounting="gaussian",
        randomness="",
        private=True,
        public_inputs=(),
        unit="who",
        rows_per_unit=3,
        squares=True,
    )
    assert "rows whose squared counts sum to at most 3^2" in ledger.kept
    # No bound is part of the definition of neighbours.
    assert ledger.neighbours == "add or remove one person: all rows of one 'who'"
    tested = replace(ledger, acceptance=Acceptance(0.1, 0.05, (Verdict("pairs", met=True, bound=0.1),)))
    assert tested.kept == f"{ledger.kept}; in tests of criteria as many as their sensitivities say"


def test_rows_can_leave_out_their_last_attributes():
    rows = rows_of(table_of(np.zeros(9, np.int64), 0), np.zeros(9, np.int64), words_of(0, 9))
    assert rows.project(DOMAIN) is rows
    first = DOMAIN.project(("a", "b"))
    assert np.array_equal(next(rows.project(first).count([("a",)])), next(rows.count([("a",)])))
    with pytest.raises(ValueError, match="do not begin"):
        rows.project(DOMAIN.project(("b",)))
