"""No question moves further than its ledger line says, and every number leaves with noise of its own."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, count, permutations, product
from math import fsum, sqrt
from types import SimpleNamespace

import numpy as np
import pytest
import reference
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import binary, cells_of
from strategies import StubNoise, coded_tables, domains, neighbours

from privsyn.inference.rare_values import merge_rare
from privsyn.marginals import counting
from privsyn.marginals.counting import Packing
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.recoding import Merging
from privsyn.private import measure
from privsyn.private.contribution import Contribution
from privsyn.private.indif import GRID, INDIF_SENSITIVITY
from privsyn.private.measure import PrivateTable
from privsyn.private.noise import ExactGaussian, ExactLaplace
from privsyn.private.rows import CachedWalk, Rows

rhos = st.floats(1e-6, 1e3)
TINY = Domain(("a", "b", "c"), (2, 2, 2))
PAIRS = tuple(combinations("abc", 2))
SIGNS = {"a": np.array([-1, 1]), "b": np.array([1, -1]), "c": np.array([-1, 0])}
MOST = 3  # records in a tiny table; there are 120 of such
EXPECTED = tuple(Marginal(TINY.project(pair), np.array([[0.4, 1.6], [2.5, -1.2]])) for pair in PAIRS)
ONE_A = Merging(
    TINY,
    Domain(TINY.names, (1, 2, 2)),
    tuple(np.array(group, np.int32) for group in ([0, 0], [0, 1], [0, 1])),
    tuple(np.array(shares) for shares in ([0.5, 0.5], [1.0, 1.0], [1.0, 1.0])),
)
THREE = (("a", "b", "c"), ("c", "b"), ("a",))


def one_ways(private, rho=1.0):
    return np.concatenate([m.marginal.counts for m in private.one_ways(rho)])


def columns(private, rho=1.0):
    shares = np.arange(1.0, len(private.domain) + 1)
    return np.concatenate([m.marginal.counts for m in private.one_ways(rho, shares / shares.sum())])


def indifs(private, rho=1.0):
    return np.array([*private.indifs(rho).values()]) * GRID


def departures(private, rho=1.0):
    return private.departures(EXPECTED, rho)[0]


def but_known(private, rho=1.0):
    """The one-ways without the counts of one column, which are public."""
    return np.concatenate([m.marginal.counts for m in private.one_ways(rho, public=private.domain.names[:1])])


def concordances(private, rho=1.0):
    return private.concordances(PAIRS, SIGNS, rho)[0]


def marginals(private, rho=1.0):
    measured = private.marginals(THREE, np.full(3, rho / 3))
    return np.concatenate([m.marginal.counts.ravel() for m in measured])


def residuals(private, rho=1.0):
    """In whole steps: times the number of cells."""
    measured = private.residuals(THREE, np.full(3, rho / 3))
    return np.concatenate([m.marginal.counts.ravel() * m.marginal.domain.cells for m in measured])


QUESTIONS = {
    "one_ways": one_ways,
    "columns": columns,
    "but known": but_known,
    "indifs": indifs,
    "departures": departures,
    "concordances": concordances,
    "marginals": marginals,
    "residuals": residuals,
}
each_question = pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS.keys())


def private_table(codes, domain=TINY, noise=None):
    codes = np.array(codes, np.int64).reshape(-1, len(domain))
    return PrivateTable(Records(domain, codes), noise or StubNoise())


def exactly(ask, codes):
    """The answer without noise, in whole steps of the question's grid."""
    return ask(private_table(codes))


def moves(ask):
    """How far the exact answer moves, a number for each of the tiny tables and each record that is added."""
    cells = list(cells_of(TINY.shape))
    answers = {
        rows: exactly(ask, rows)
        for size in range(MOST + 1)
        for rows in combinations_with_replacement(cells, size)
    }
    return [
        answers[tuple(sorted((*rows, cell)))] - answer
        for rows, answer in answers.items()
        if len(rows) < MOST
        for cell in cells
    ]


def l2(move):
    return sqrt(float(np.sum(move**2)))


# --- sensitivity: all tables of up to three records, and every record that may be added to them ------------


@pytest.mark.slow
@each_question
def test_no_record_moves_an_answer_further_than_the_ledger_says(ask):
    private = private_table([])
    ask(private)
    furthest = max(map(l2, moves(ask)))
    assert furthest <= sqrt(fsum(spend.sensitivity**2 for spend in private.spends)) * (1 + 1e-12)


def test_one_ways_move_by_one_cell_an_attribute():
    assert {l2(move) for move in moves(one_ways)} == {sqrt(3)}
    assert {float(np.abs(move).max()) for move in moves(one_ways)} == {1.0}


def test_each_departure_moves_by_1():
    assert {tuple(np.abs(move)) for move in moves(departures)} == {(1.0, 1.0, 1.0)}


def test_a_concordance_moves_by_the_product_of_two_signs():
    assert {tuple(np.abs(move)) for move in moves(concordances)} == {(1.0, 1.0, 1.0), (1.0, 0.0, 0.0)}


@pytest.mark.parametrize(
    "signs", [np.array([0, 2]), np.array([np.nan, 1.0]), np.array([0.5, 1.0]), np.array([1]), np.ones((2, 1))]
)
def test_signs_that_would_break_the_sensitivity_are_refused_before_a_row_is_counted(signs):
    private = private_table([])
    with pytest.raises(ValueError, match="-1, 0 or 1"):
        private.concordances((("a", "b"),), SIGNS | {"b": signs}, 1.0)
    assert not private.spends


def test_each_marginal_moves_by_one_cell():
    for move in moves(marginals):
        assert [np.abs(part).tolist().count(1) for part in np.split(move, [8, 12])] == [1, 1, 1]
        assert np.abs(move).sum() == 3


@pytest.mark.parametrize("shape", [(2,), (2, 2), (5,), (2, 3, 4)])
def test_every_record_moves_a_residual_exactly_as_far_as_the_ledger_says(shape):
    """The root of prod k (k - 1), from any table; never further than that in L1 with Laplace noise."""
    domain = Domain(tuple("abc"[: len(shape)]), shape)
    for row in cells_of(shape):
        before = private_table([(0,) * len(shape)], domain)
        after = private_table([(0,) * len(shape), row], domain)
        one, two = (
            table.residuals((domain.names,), np.ones(1))[0].marginal.counts * domain.cells
            for table in (before, after)
        )
        (spend,) = before.spends
        assert l2(two - one) == pytest.approx(spend.sensitivity, rel=1e-12)
        assert np.abs(two - one).sum() <= spend.sensitivity**2 * (1 + 1e-12)


@given(coded_tables())
def test_a_residual_has_no_margins_and_is_what_the_counts_add_to_them(records):
    assume(min(records.domain.sizes) > 1)
    (answer,) = PrivateTable(records, StubNoise()).residuals((records.domain.names,), np.ones(1))
    counts = reference.count(records, records.domain.names).counts
    for axis in range(counts.ndim):
        counts = counts - counts.mean(axis=axis, keepdims=True)
    assert np.allclose(answer.marginal.counts, counts)


def test_the_noise_of_a_residual_is_that_of_independent_cells_without_its_margins():
    private, rows = private_table([(0, 1, 1)], noise=StubNoise(count(1))), private_table([(0, 1, 1)])
    (noisy,), (plain,) = (table.residuals((("a", "b"),), np.ones(1)) for table in (private, rows))
    excess = (noisy.marginal.counts - plain.marginal.counts) * 4
    independent = np.arange(1.0, 5.0).reshape(2, 2)
    independent -= independent.mean(axis=0)
    assert np.allclose(excess, independent - independent.mean(axis=1, keepdims=True))
    assert np.allclose(noisy.variance, private.spends[0].sigma ** 2 / 16)


@pytest.mark.parametrize("d", [2, 3, 6])
def test_the_extreme_table_moves_all_dependences_at_once(d):
    """n records that are all alike and one that differs in everything: short of the bound by two steps."""
    domain = binary("abcdef"[:d])
    alike = np.zeros((200, d), int)
    private = private_table(np.vstack([alike, np.ones((1, d), int)]), domain)
    move = indifs(private) - indifs(private_table(alike, domain))
    assert (move == 4 * 200 * GRID // 201).all()
    assert l2(move) == pytest.approx(sqrt(len(move)) * (INDIF_SENSITIVITY - 2))
    assert private.spends[0].sensitivity == sqrt(len(move)) * INDIF_SENSITIVITY


@pytest.mark.parametrize("names", ["a", "ab", "abc", "abcdef"])
def test_the_sensitivities_are_those_of_the_proofs(names):
    domain = binary(names)
    private = private_table([], domain)
    pairs = tuple(combinations(names, 2))
    private.one_ways(1.0)
    if pairs:
        private.indifs(1.0)
        private.departures(tuple(Marginal(domain.project(pair), np.ones((2, 2))) for pair in pairs), 1.0)
        private.concordances(pairs, {name: np.ones(2, int) for name in names}, 1.0)
    private.marginals((*pairs, tuple(names)), np.ones(len(pairs) + 1))
    root = sqrt(len(pairs))
    expected = [sqrt(len(names)), *([root * INDIF_SENSITIVITY, root, root] if pairs else [])]
    assert [spend.sensitivity for spend in private.spends] == [*expected, *[1.0] * (len(pairs) + 1)]


@given(neighbours(), st.data())
def test_neither_do_answers_about_other_tables(pair, data):
    fewer, more = (PrivateTable(records, StubNoise()) for records in pair)
    names = tuple(data.draw(st.permutations(fewer.domain.names)))
    tables = (names, names[:1], names[1:])
    for ask in (lambda table: table.one_ways(1.0), lambda table: table.marginals(tables, np.ones(3))):
        for a, b in zip(ask(fewer), ask(more), strict=True):
            assert np.abs(b.marginal.counts - a.marginal.counts).sum() == 1
    for a, b in zip(fewer.indifs(1.0).values(), more.indifs(1.0).values(), strict=True):
        assert abs(a - b) * GRID <= INDIF_SENSITIVITY


# --- the person: all rows of one come and go together ------------------------------------------------------


def person_moves(ask, k):
    """How far the exact answer moves, for each tiny table and each person of up to k rows that joins it."""
    cells = list(cells_of(TINY.shape))
    tables = [rows for size in range(MOST + 1) for rows in combinations_with_replacement(cells, size)]
    answers = {rows: exactly(ask, rows) for rows in tables}
    return [
        answers[tuple(sorted((*rows, *person)))] - answer
        for rows, answer in answers.items()
        for person in tables
        if 0 < len(person) <= k and len(rows) + len(person) <= MOST
    ]


@pytest.mark.slow
@each_question
@pytest.mark.parametrize("k", [1, 2, 3])
def test_no_person_moves_an_answer_further_than_the_ledger_says(ask, k):
    private = PrivateTable(Records(TINY, np.zeros((0, 3), int)), StubNoise(), Contribution(k))
    ask(private)
    claimed = sqrt(fsum(spend.sensitivity**2 for spend in private.spends))
    furthest = max(map(l2, person_moves(ask, k)))
    assert furthest <= claimed * (1 + 1e-12)
    if ask is not indifs:  # which no tiny table moves furthest: see below
        assert furthest == pytest.approx(claimed)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_person_unlike_all_others_moves_all_dependences_at_once(k):
    alike = np.zeros((4000, 3), int)
    records = Records(TINY, np.vstack([alike, np.ones((k, 3), int)]))
    private = PrivateTable(records, StubNoise(), Contribution(k))
    move = indifs(private) - indifs(private_table(alike))
    assert private.spends[0].sensitivity == k * sqrt(3) * INDIF_SENSITIVITY
    assert 0.96 * private.spends[0].sensitivity < l2(move) <= private.spends[0].sensitivity


@given(st.data(), st.integers(1, 4))
def test_nor_do_people_of_other_tables(data, k):
    fewer = data.draw(coded_tables())
    person = data.draw(coded_tables(fewer.domain, max_rows=k))
    more = Records(fewer.domain, np.vstack([fewer.codes, person.codes]))
    tables = [PrivateTable(records, StubNoise(), Contribution(k)) for records in (fewer, more)]
    expected = tuple(
        Marginal(fewer.domain.project(pair), np.ones(fewer.domain.project(pair).shape))
        for pair in combinations(fewer.domain.names, 2)
    )

    sizes = [*zip(fewer.domain.names, fewer.domain.sizes, strict=True)]

    def answers(private):
        asked = [m.marginal.counts.ravel() for m in private.one_ways(1.0)]
        yield np.concatenate(asked)
        if expected:
            yield np.array([*private.indifs(1.0).values()]) * GRID
            yield private.departures(expected, 1.0)[0]
            pairs = tuple(table.attributes for table in expected)
            signs = {name: np.arange(size) % 3 - 1 for name, size in sizes}
            yield private.concordances(pairs, signs, 1.0)[0]
        yield private.marginals((fewer.domain.names,), np.ones(1))[0].marginal.counts

    moved = [l2(b - a) for a, b in zip(*map(answers, tables), strict=True)]
    for move, spend in zip(moved, tables[0].spends, strict=True):
        assert move <= spend.sensitivity * (1 + 1e-12)


@each_question
@given(rho=rhos, k=st.integers(1, 1000))
def test_the_budget_of_a_row_is_a_persons_over_k_squared(ask, rho, k):
    """The noise is what `rho` buys for one row; the ledger is told what that costs for k."""
    row, person = (
        PrivateTable(Records(TINY, np.zeros((0, 3), int)), StubNoise(), Contribution(rows)) for rows in (1, k)
    )
    for private in (row, person):
        ask(private, rho)
    for one, many in zip(row.spends, person.spends, strict=True):
        assert many.sigma == pytest.approx(one.sigma)
        assert many.sensitivity == pytest.approx(k * one.sensitivity)
        assert many.rho == pytest.approx(k**2 * one.rho)
        assert many.rho <= k**2 * one.rho * (1 + 1e-12)


# --- noise: of the scale that is written down, fresh for every number, and none without a line -------------


@each_question
@given(rho=rhos)
def test_the_sigma_that_is_used_is_the_one_that_is_written_down(ask, rho):
    noise = StubNoise()
    private = private_table([(0, 1, 1), (1, 0, 1)], noise=noise)
    answers = ask(private, rho)
    used = iter(noise.drawn)
    for spend in private.spends:
        answered = 0
        while answered < spend.answers:
            sigma, size = next(used)
            assert sigma == spend.sigma
            answered += size
        assert answered == spend.answers
    assert next(used, None) is None
    assert sum(spend.answers for spend in private.spends) == len(answers)


@each_question
@given(rho=rhos)
def test_the_cost_is_the_budget_and_not_more(ask, rho):
    private = private_table([])
    ask(private, rho)
    costs = [spend.sensitivity**2 / (2 * spend.sigma**2) for spend in private.spends]
    assert rho * (1 - 1e-9) <= fsum(costs) <= rho * (1 + 1e-12)
    assert fsum(spend.rho for spend in private.spends) <= rho * (1 + 1e-12)


def test_every_number_has_noise_of_its_own():
    """The stub counts on from 1: what the answers have in excess is each of its numbers, once."""
    rows = [(0, 1, 1), (1, 0, 1), (1, 1, 1)]
    private = private_table(rows, noise=StubNoise(count(1)))
    asked = [ask for ask in QUESTIONS.values() if ask is not residuals]  # these lose their margins
    excess = np.concatenate([ask(private) - exactly(ask, rows) for ask in asked])
    assert excess.tolist() == [*range(1, len(excess) + 1)]
    assert len(excess) == sum(spend.answers for spend in private.spends)


def test_what_an_answer_says_of_its_noise_is_so():
    private = private_table([])
    (departure, sigma), answers = private.departures(EXPECTED, 0.3), private.marginals(THREE, np.arange(1, 4))
    _, variance = private.concordances(PAIRS, SIGNS, 0.3)
    assert len(departure) == len(EXPECTED)
    first, *others, last = private.spends
    assert sigma == first.sigma
    assert variance == last.sigma**2
    for answer, spend in zip(answers, others, strict=True):
        assert set(answer.variance.ravel().tolist()) == {spend.sigma**2}
    for answer in private.one_ways(0.5):
        assert set(answer.variance.tolist()) == {private.spends[-1].sigma ** 2}


def test_nothing_leaves_but_through_the_one_door(monkeypatch):
    """With the door painted over, all answers show the paint and none the table."""
    monkeypatch.setattr(measure, "release", lambda exact, sigma, noise: np.full_like(exact, 7 * GRID))
    for ask in QUESTIONS.values():
        assert len(set(exactly(ask, [(0, 1, 1), (1, 1, 0)]).tolist())) == 1


def test_the_questions_are_written_down_in_words():
    private = private_table([])
    for ask in QUESTIONS.values():
        ask(private)
    assert [spend.what for spend in private.spends] == [
        "one-way counts of every attribute",
        "one-way counts of a",
        "one-way counts of b",
        "one-way counts of c",
        "one-way counts of every attribute but known ones",
        "dependence (InDif) of every pair, in 1/16 records",
        "distance from expected counts, tables",
        "concordance of pairs of numbers",
        "counts over a, b, c",
        "counts over c, b",
        "counts over a",
        "residual over a, b, c",
        "residual over c, b",
        "residual over a",
    ]


def test_what_is_asked_again_is_called_another_look():
    private = private_table([])
    for _ in range(3):
        private.one_ways(1.0)
    first, second, third = (spend.what for spend in private.spends)
    assert (second, third) == (f"{first} (look 2)", f"{first} (look 3)")


@each_question
def test_a_question_is_written_down_before_any_noise_is_drawn(ask):
    """So that one which fails half-way is in the ledger too."""

    class Broken(StubNoise):
        def draw(self, sigma, size):
            raise OSError

    private = private_table([], noise=Broken())
    with pytest.raises(OSError):  # noqa: PT011
        ask(private)
    assert len(private.spends) == 1


def test_shares_divide_the_cost_of_the_one_ways():
    private = private_table([])
    measured = private.one_ways(0.6, np.array([1, 2, 3]) / 6)
    assert [spend.rho for spend in private.spends] == pytest.approx([0.1, 0.2, 0.3])
    for answer, spend in zip(measured, private.spends, strict=True):
        assert set(answer.variance.tolist()) == {spend.sigma**2}


def test_a_column_without_a_share_is_not_asked():
    private = private_table([])
    (second,) = private.one_ways(0.6, np.array([0.0, 1.0, 0.0]))
    assert second.attributes == (private.domain.names[1],)
    assert [spend.rho for spend in private.spends] == pytest.approx([0.6])


def test_nothing_is_asked_of_columns_that_are_all_known():
    private = private_table([])
    assert private.one_ways(0.6, public=private.domain.names) == ()
    assert private.spends == ()


def test_what_was_asked_cannot_be_taken_back():
    private = private_table([])
    private.one_ways(1.0)
    assert isinstance(private.spends, tuple)
    assert len(private.spends) == 1


def test_a_single_attribute_has_no_pairs_and_pays_for_none():
    private = private_table([0, 1, 1], binary("a"))
    assert private.indifs(1.0) == {}
    assert private.spends == ()


# --- the exact values --------------------------------------------------------------------------------------


@given(coded_tables(), st.data())
def test_counting_is_counting(records, data):
    names = data.draw(st.lists(st.sampled_from(records.domain.names), unique=True))
    counts = counting.count(records, tuple(names))
    assert counts.dtype == np.int64
    assert np.array_equal(counts, reference.count(records, tuple(names)).counts)


@given(coded_tables())
def test_each_question_asks_what_it_says(records):
    private = PrivateTable(records, StubNoise())
    for answer in private.one_ways(1.0):
        assert np.array_equal(answer.marginal.counts, reference.count(records, answer.attributes).counts)
    pairs = tuple(permutations(records.domain.names, 2))
    counts = [reference.count(records, pair) for pair in pairs]
    for pair, exact, answer in zip(pairs, counts, private.marginals(pairs, np.ones(len(pairs))), strict=True):
        assert answer.attributes == pair
        assert np.array_equal(answer.marginal.counts, exact.counts)
    for pair, answer in private.indifs(1.0).items():
        exact = reference.indif(reference.count(records, pair).counts.astype(int))
        assert 0 <= exact - answer < 1 / GRID


@given(coded_tables(TINY), st.lists(st.floats(-9, 99), min_size=4, max_size=4))
def test_a_departure_is_the_distance_from_the_rounded_expectation(records, expected):
    table = Marginal(TINY.project(("c", "a")), np.array(expected).reshape(2, 2))
    answer, _ = PrivateTable(records, StubNoise()).departures((table,), 1.0)
    exact = reference.count(records, ("c", "a")).counts
    assert answer.tolist() == [sum(abs(exact[c] - round(table.counts[c])) for c in cells_of((2, 2)))]


@given(coded_tables(TINY))
def test_in_blocks_a_departure_is_the_distance_of_the_joined_counts(records):
    """Two values of `a` are one block; the spread of what was expected is of blocks too."""
    table = Marginal(ONE_A.merged.project(("c", "a")), np.array([[1.0], [4.4]]))
    answer, _ = PrivateTable(records, StubNoise()).departures((table,), 1.0, ONE_A)
    exact = reference.count(records, ("c", "a")).counts.sum(axis=1)
    assert answer.tolist() == [abs(exact[0] - 1) + abs(exact[1] - 4)]


def test_expected_counts_over_other_cells_than_are_counted_are_refused():
    """Along such an axis one record would count in every cell."""
    table = Marginal(ONE_A.merged.project(("c", "a")), np.ones((2, 1)))
    private = private_table([])
    private._rows = SimpleNamespace(domain=TINY)  # it cannot count
    with pytest.raises(ValueError, match=r"expected counts \(2, 1\) over a domain of \(2, 2, 2\)"):
        private.departures((table,), 1.0)
    assert private.spends == ()


def test_a_merging_of_other_codes_is_refused_before_the_rows_are_looked_at():
    """Codes without a group would be read from beyond its end, counts without a place added elsewhere."""
    other = Domain(TINY.names, (5, 2, 2))
    private = PrivateTable(Records(other, np.array([(4, 1, 1)])), StubNoise())
    table = Marginal(ONE_A.merged.project(("c", "a")), np.ones((2, 1)))
    with pytest.raises(ValueError, match=r"a merging of \(2, 2, 2\) for rows of \(5, 2, 2\)"):
        private.merge(ONE_A)
    private._rows = SimpleNamespace(domain=other)  # it cannot count
    with pytest.raises(ValueError, match=r"blocks of \(2, 2, 2\) for a table of \(5, 2, 2\)"):
        private.departures((table,), 1.0, ONE_A)
    assert private.spends == ()


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 2.0**54, -1e19])
def test_expected_counts_that_are_no_integers_are_refused_before_the_rows_are_looked_at(odd):
    table = Marginal(TINY.project(("c", "a")), np.full((2, 2), 0.0))
    table.counts.flags.writeable = True  # a table refuses some of these itself
    table.counts[0, 1] = odd
    private = private_table([])
    private._rows = SimpleNamespace(domain=TINY)  # it cannot count
    with pytest.raises(ValueError, match="2\\^53"):
        private.departures((table,), 1.0)
    assert private.spends == ()


# --- merging -----------------------------------------------------------------------------------------------


@st.composite
def merged_neighbours(draw):
    """Neighbouring tables over a domain and a merging of its values by counts drawn from the air."""
    fewer, more = draw(neighbours(draw(domains(max_size=6))))
    counts = st.integers(-20, 60).map(float)
    answers = tuple(
        Measurement(
            Marginal(
                fewer.domain.project((name,)), np.array(draw(st.lists(counts, min_size=size, max_size=size)))
            ),
            25.0,
        )
        for name, size in zip(fewer.domain.names, fewer.domain.sizes, strict=True)
    )
    return fewer, more, merge_rare(answers, 100.0)


@given(merged_neighbours())
def test_rows_are_merged_one_by_one(case):
    records, _, merging = case
    private = PrivateTable(records, StubNoise()).merge(merging)
    rows = [
        [int(group[code]) for group, code in zip(merging.groups, row, strict=True)] for row in records.codes
    ]
    merged = Records(merging.merged, np.array(rows, int).reshape(-1, len(merging.merged)))
    assert private.domain == merging.merged
    names = merging.merged.names
    (answer,) = private.marginals((names,), np.ones(1))
    assert np.array_equal(answer.marginal.counts, reference.count(merged, names).counts)


def test_counts_that_were_kept_before_a_merging_are_added_up():
    """Not replaced by the last of them: the answer is that of a table that was not asked before."""
    rows = [(0, 1, 1), (0, 0, 1), (1, 0, 1)]
    asked = private_table(rows)
    asked.one_ways(1.0)
    assert one_ways(asked.merge(ONE_A)).tolist() == one_ways(private_table(rows).merge(ONE_A)).tolist()
    assert one_ways(asked.merge(ONE_A)).tolist() == [3, 2, 1, 0, 3]


@pytest.mark.parametrize("k", [1, 3])
def test_a_person_has_as_many_rows_in_merged_codes(k):
    private = PrivateTable(Records(TINY, np.zeros((0, 3), int)), StubNoise(), Contribution(k)).merge(ONE_A)
    private.one_ways(1.0)
    assert private.spends[0].sensitivity == k * sqrt(3)


@pytest.mark.parametrize("memory", [0, 5, np.inf])
def test_a_row_is_counted_once_in_each_question_whether_or_not_it_is_kept(memory):
    blocks = [counting.block_of(Records(TINY, np.array([row] * 4))) for row in ((0, 1, 1), (1, 0, 1))]
    walk = CachedWalk(lambda ask: ask(iter(blocks)), Packing(TINY.sizes), memory)
    for _ in range(3):
        one, three = walk(counting.Tables(TINY, (("a",), ("c", "b", "a"))).count)
        assert one.tolist() == [4, 4]
        assert three.sum() == 8


@given(merged_neighbours())
def test_merged_neighbours_are_neighbours(case):
    *pair, merging = case
    answers = []
    for records in pair:
        private = PrivateTable(records, StubNoise()).merge(merging)
        answers.append(private.marginals((merging.merged.names,), np.ones(1))[0].marginal.counts)
    assert np.abs(answers[1] - answers[0]).sum() == 1


def test_merging_costs_nothing_and_asks_nothing():
    noise = StubNoise()
    private = private_table([(0, 1, 1)], noise=noise)
    private.merge(merge_rare(private.one_ways(1.0), 1.0))
    assert (len(private.spends), len(noise.drawn)) == (1, 1)


def test_the_table_that_was_given_is_not_changed():
    records = Records(TINY, np.array([(0, 1, 1), (1, 0, 1)]))
    private = PrivateTable(records, StubNoise())
    before = records.codes.copy()
    merged = private.merge(
        merge_rare(tuple(Measurement(m.marginal, 1e9) for m in private.one_ways(1.0)), 2.0)
    )
    assert (private.domain.sizes, merged.domain.sizes) == ((2, 2, 2), (1, 1, 1))
    assert np.array_equal(records.codes, before)


def test_a_table_and_its_merged_one_have_one_list_of_what_was_asked():
    private = private_table([(0, 1, 1)])
    merged = private.merge(merge_rare(private.one_ways(1.0), 1.0))
    merged.one_ways(1.0)
    private.one_ways(1.0)
    assert private.spends == merged.spends
    first, second, third = (spend.what for spend in private.spends)
    assert (second, third) == (f"{first} (look 2)", f"{first} (look 3)")


@pytest.mark.parametrize("memory", [0, 40, 10**6])
def test_tables_are_counted_once_each_in_walks_that_fit_in_memory(memory):
    """Those that fit are kept; the answers are the same."""
    walks = []

    def walk(ask):
        walks.append(ask)
        return ask(iter([counting.block_of(Records(TINY, np.array([[0, 1, 1], [1, 0, 1]])))]))

    rows = Rows(TINY, walk, memory)
    sets = [("a",), ("b",), ("a", "b"), ("a",)]
    found = [[counts.tolist() for counts in rows.count(sets)] for _ in range(2)]
    assert found[0] == found[1] == [[1, 1], [1, 1], [[0, 1], [1, 0]], [1, 1]]
    assert len(walks) == {0: 8, 40: 3, 10**6: 1}[memory]


def drawing(monkeypatch, codes, draws):
    """The scores and the scale of each draw of pairs, and its spend. The first pair is drawn each time."""
    drawn = []
    monkeypatch.setattr(measure, "exponential", lambda scores, scale, _: drawn.append((scores, scale)) or 0)
    private = private_table(codes, noise=ExactGaussian())
    private.draw_pairs(lambda chosen: dict.fromkeys(PAIRS, 0.5 + len(chosen)), draws, rho=0.3)
    (spend,) = private.spends
    return drawn, spend


@pytest.mark.parametrize("draws", [None, 2])
def test_the_losses_of_a_draw_of_pairs_lie_within_the_interval_that_its_rho_says(monkeypatch, draws):
    """For neighbours among tiny tables: ln P(x) - ln P'(x) of the candidates x, but for a common term."""
    cells = list(product(range(2), repeat=3))
    tables = [rows for size in range(1, 5) for rows in combinations_with_replacement(cells, size)]
    widest = 0.0
    for rows in [*tables, ((0, 0, 0),) * 40 + ((1, 1, 0),)]:
        first, spend = drawing(monkeypatch, np.array(rows), draws)
        second, _ = drawing(monkeypatch, np.array(rows[:-1]).reshape(-1, 3), draws)
        assert len(first) == spend.answers == (len(PAIRS) if draws is None else draws)
        epsilon = sqrt(8 * spend.rho / spend.answers)
        for (scores, scale), (others, same) in zip(first, second, strict=True):
            assert scale == same
            losses = [float((one - other) / scale) for one, other in zip(scores, others, strict=True)]
            widest = max(widest, (max(losses) - min(losses)) / epsilon)
    assert 0.45 < widest <= 1


def test_pairs_are_drawn_by_their_dependence_until_none_is_worth_its_noise():
    a = np.arange(4_000) % 2
    codes = np.stack([a, a, np.arange(4_000) // 2 % 2], axis=1)
    private = private_table(codes, noise=ExactGaussian())
    assert private.draw_pairs(lambda _: dict.fromkeys(PAIRS, 100.0), None, 10.0) == (("a", "b"),)
    assert set(private.draw_pairs(lambda _: dict.fromkeys(PAIRS, 1e6), 2, 10.0)) < set(PAIRS)
    assert private.draw_pairs(lambda _: dict.fromkeys(PAIRS, 1e6), None, 10.0) == ()


def test_pairs_are_not_drawn_where_the_cost_of_a_draw_would_be_another():
    with pytest.raises(ValueError, match="zCDP"):
        private_table(np.zeros((3, 3), int), noise=ExactLaplace()).draw_pairs(lambda _: {}, None, 1.0)


def test_of_a_single_column_no_pair_is_drawn_and_nothing_is_charged():
    private = PrivateTable(Records(Domain(("a",), (3,)), np.zeros((5, 1), int)), ExactGaussian())
    assert private.draw_pairs(lambda _: {}, None, 1.0) == ()
    assert not private.spends
