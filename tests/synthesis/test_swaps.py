"""Blocks of tied columns are exchanged between rows: what a block keeps, and what rows gain by it."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st

from privsyn import Categorical, Forbidden, PrivSyn, Schema
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.ipf import fit_margins
from privsyn.marginals.marginal import Grouping, Marginal
from privsyn.marginals.structural_zeros import StructuralZeros
from privsyn.synthesis import _kernels, annealing, swaps
from privsyn.synthesis.annealing import finish
from privsyn.synthesis.chains import Chains, Previous
from privsyn.synthesis.linked import synthesise_linked
from privsyn.synthesis.swaps import lay_out_swaps, pair_couplings, tied_blocks
from privsyn.synthesis.targets import Targets

compiled = settings(deadline=None)  # the first call compiles
seeds = st.integers(0, 2**32 - 1)
SHAPE = (3, 2, 4, 2)
some_sets = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True), min_size=1, max_size=5
).filter(lambda sets: any(0 < len({0, 1} & {*columns}) < len(columns) for columns in sets))


def joint(codes, columns):
    """How often each combination of codes occurs, whatever the order of the rows."""
    return sorted(map(tuple, codes[:, list(columns)].tolist()))


def counted(codes, sets, groups, shapes):
    """The counts of all tables, from the rows."""
    tables = [np.zeros(cells, np.int64) for cells in shapes]
    for table, columns, of_columns in zip(tables, sets, groups, strict=True):
        np.add.at(table, tuple(g[codes[:, j]] for j, g in zip(columns, of_columns, strict=True)), 1)
    return np.concatenate([table.ravel() for table in tables])


def changes_of(counts, targets):
    """By how much a row more, and a row less, raises (count - target)^2 / (target + 1)."""
    misfits = [(counts + more - targets) ** 2 / (targets + 1) for more in (-1, 0, 1)]
    return np.stack([misfits[2] - misfits[1], misfits[0] - misfits[1]], axis=1).astype(np.float32)


@compiled
@given(some_sets, st.sampled_from([0.0, 0.5]), seeds)
def test_a_swap_is_that_of_counting_afresh_and_keeps_what_it_must(sets, heat, seed):
    """Targets of 0, 1, 3 or 7 records, so that no weight is rounded. Some tables join codes."""
    rng, block, n = np.random.default_rng(seed), (0, 1), 7
    groups = [
        tuple(np.arange(SHAPE[j], dtype=np.int32) // (1 + join) for j in columns)
        for columns, join in zip(sets, rng.integers(2, size=len(sets)), strict=True)
    ]
    shapes = [tuple(group.max() + 1 for group in of_columns) for of_columns in groups]
    targets = [rng.choice([0.0, 1.0, 3.0, 7.0], cells) for cells in shapes]
    tables = tuple(
        Marginal(Domain(tuple(map(str, columns)), target.shape), target)
        for columns, target in zip(sets, targets, strict=True)
    )
    domain = Domain(tuple("0123"), SHAPE)
    (swap,) = lay_out_swaps(domain, tables, [("0", "1")], dict(enumerate(map(Grouping, groups))))
    before = np.stack([rng.integers(0, size, n) for size in SHAPE], axis=1)
    pairs = np.array([rng.permutation(n)[:2] for _ in range(12)]).T.astype(np.uint32)
    codes, wanted = before.astype(np.uint16, order="F"), np.concatenate([t.ravel() for t in targets])
    counts, weights = counted(before, sets, groups, shapes), 1 / (wanted + 1)
    changes, steps = changes_of(counts, wanted), (2 * weights).astype(np.float32)
    _kernels.swap_blocks(codes, swap, pairs, changes, steps, counts, heat, np.random.default_rng(seed))
    slow = reference.swap(
        before,
        block,
        pairs,
        sets,
        groups,
        targets,
        [1 / (target + 1) for target in targets],
        heat,
        np.random.default_rng(seed),
    )
    assert np.array_equal(codes, slow)
    assert np.array_equal(counts, counted(codes, sets, groups, shapes))
    assert np.array_equal(changes, changes_of(counts, wanted))
    for columns in ((0, 1), (2, 3)):  # every table inside the block, and every table outside of it
        assert joint(codes, columns) == joint(before, columns)


def test_swaps_leave_their_stationary_distribution_as_it_is():
    """Rows that begin with probability exp(-misfit / heat) / sum end with it.

    All 12 arrangements are enumerated. Each count of 8,000 draws lies within 5.5 standard deviations, in both
    directions: correct swaps fail with a probability below 12 * 4e-8 < 1e-6.
    """
    heat, outside = 4.0, np.array([0, 0, 1, 2])
    domain = Domain(tuple("abc"), (2, 2, 3))
    targets = np.array([[0.0, 1.0, 3.0], [3.0, 0.0, 0.0]]), np.array([[1.0, 0.0, 0.0], [0.0, 3.0, 1.0]])
    tables = tuple(
        Marginal(Domain(n, t.shape), t) for n, t in zip((("a", "c"), ("b", "c")), targets, strict=True)
    )
    (swap,) = lay_out_swaps(domain, tables, [("a", "b")])
    states = sorted(set(permutations([(0, 0), (0, 1), (1, 1), (1, 1)])))
    wanted = np.concatenate([t.ravel() for t in targets])
    weights = 1 / (wanted + 1)
    arranged = [np.column_stack([np.array(state), outside]) for state in states]
    groups = [(np.arange(2), np.arange(3))] * 2
    counts = [counted(codes, [(0, 2), (1, 2)], groups, [(2, 3)] * 2) for codes in arranged]
    misfits = np.array([weights @ (c - wanted) ** 2 for c in counts])
    shares = np.exp(-misfits / heat)
    shares /= shares.sum()
    assert shares.min() > 0.005
    assert shares.max() > 3 * shares.min()
    rng, n = np.random.default_rng(0), 8000
    ended, moved = np.zeros(len(states), int), 0
    for began in rng.choice(len(states), n, p=shares):
        codes = arranged[began].astype(np.uint16, order="F")
        changes, steps = changes_of(counts[began], wanted), (2 * weights).astype(np.float32)
        pairs = np.array([rng.permutation(4)[:2] for _ in range(6)]).T.astype(np.uint32)
        _kernels.swap_blocks(codes, swap, pairs, changes, steps, counts[began].copy(), heat, rng)
        end = states.index(tuple(map(tuple, codes[:, :2].tolist())))
        ended[end] += 1
        moved += end != began
    assert moved > n / 2
    assert (np.abs(ended - n * shares) < 5.5 * np.sqrt(n * shares * (1 - shares))).all()


def two_blocks(n=2000):
    """Rows in which a determines everything, and tables by which only a, b, c and x, y, z are tied.

    No row has a = 0 and x = 3; otherwise a and x are to be as independent as can be.
    """
    a = np.arange(n) % 4
    x = (a + 1) % 4
    domain = Domain(tuple("abcxyz"), (4,) * 6)
    start = Records(domain, np.stack([a, (a + 1) % 4, 3 - a, x, (x + 1) % 4, 3 - x], axis=1))
    possible = np.ones((4, 4), bool)
    possible[0, 3] = False
    sides = tuple(reference.count(start, (name,)) for name in "ax")
    across = fit_margins(Marginal(domain.project(("a", "x")), possible * 1.0), sides, iterations=100)
    inside = (reference.count(start, names) for names in (*combinations("abc", 2), *combinations("xyz", 2)))
    return start, (*inside, across), StructuralZeros(((across.domain, possible),))


def test_only_swaps_bring_blocks_together_and_no_row_enters_a_structural_zero():
    start, tables, zeros = two_blocks()
    (*inside, across), missed = tables, {}
    for tied in ((), swaps.TIED):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(swaps, "TIED", tied)
            ended = finish(start, Targets((), tables, zeros), np.random.default_rng(0))
        missed[tied] = reference.distance(ended, across) / (2 * len(start))
        assert all(reference.distance(ended, table) < 0.03 * len(start) for table in inside)
        assert zeros.mask(across.domain)[ended.codes[:, 0], ended.codes[:, 3]].all()
    assert missed[()] > 0.5
    assert missed[swaps.TIED] < 0.01


def test_what_is_still_does_not_move_with_its_block():
    start, tables, zeros = two_blocks()
    ended = finish(start, Targets((), tables, zeros), np.random.default_rng(0), still=("x", "a"))
    assert np.array_equal(ended.codes[:, [0, 3]], start.codes[:, [0, 3]])
    strengths = pair_couplings(tables)
    assert tied_blocks(tables, strengths, "abcxyz") == (("a", "b", "c"), ("x", "y", "z"))
    assert tied_blocks(tables, strengths, "bcyz") == (("b", "c"), ("y", "z"))


def test_two_numbers_are_no_block_unless_one_may_be_missing():
    """A number can move to the next code, but not alone to or from the code of missing ones."""
    for ordered, blocks in (((4, 4), ()), ((4, 3), (("a", "b"),)), ((0, 4), (("a", "b"),))):
        table = Marginal(Domain(("a", "b"), (4, 4), ordered), np.eye(4))
        assert tied_blocks((table,), pair_couplings((table,)), "ab") == blocks


def test_swaps_look_up_at_most_a_share_of_the_tables_that_moves_look_up(monkeypatch):
    """Of many columns in many blocks, fewer pairs of rows are swapped."""
    start, tables, _ = two_blocks()
    looked_up, original = [], _kernels.swap_blocks

    def watched(codes, swap, pairs, *rest):
        assert len({*pairs.ravel().tolist()}) == pairs.size
        looked_up.append(pairs.shape[1] * len(swap.starts))
        return original(codes, swap, pairs, *rest)

    monkeypatch.setattr(_kernels, "swap_blocks", watched)
    finish(start, Targets((), tables), np.random.default_rng(0), sweeps=1)
    assert looked_up == [len(start) // 2] * 2
    looked_up.clear()
    monkeypatch.setattr(annealing, "SWAPPED", 0.01)
    finish(start, Targets((), tables), np.random.default_rng(0), sweeps=1)
    assert 0 < sum(looked_up) <= 0.01 * len(start) * sum(len(t.attributes) for t in tables)


def test_linked_rows_exchange_blocks_between_persons():
    """Of persons of kind 0, `both` was not asked. So the start gives their rows too little work.

    Work determines two other columns, and most rows of a person have the work of the row before.
    """
    rng, n = np.random.default_rng(0), 8000
    owners = np.repeat(np.arange(n // 4), 4)
    kind, busy = rng.integers(0, 2, (2, n // 4))[:, owners]
    work = np.where(rng.random(n) < 0.7, busy, rng.integers(0, 2, n)) * rng.integers(1, 5, n)
    both = np.where((work > 0) & (kind > 0), 1 + rng.integers(0, 3, n), 0)
    columns = {"work": work, "pay": (work + 1) % 5, "hours": 4 - work, "both": both}
    of = Chains(
        owners,
        {"kind": kind.astype(np.int32)},
        {"before": Previous("work", np.minimum(np.arange(5), 1).astype(np.int32))},
    )
    before = np.where(of.positions > 0, np.minimum(np.roll(work, 1), 1), 2)
    known = Records(
        Domain(("kind", "before", *columns), (2, 3, 5, 5, 5, 4)),
        np.column_stack([kind, before, *columns.values()]),
    )
    names = [("kind", "both"), ("kind", "work"), ("before", "work"), *combinations(columns, 2)]
    tables = [reference.count(known, pair) for pair in names]
    one_ways = {name: reference.count(known, (name,)) for name in columns}
    missed = {}
    for tied in ((), swaps.TIED):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(swaps, "TIED", tied)
            rows = synthesise_linked(Targets((*one_ways.values(),), (*tables,)), of, np.random.default_rng(0))
        before = np.where(of.positions > 0, np.minimum(np.roll(rows["work"], 1), 1), 2)
        ended = Records(known.domain, np.column_stack([kind, before, *rows.values()]))
        missed[tied] = {
            names: reference.distance(ended, table) / (2 * n)
            for names, table in zip(names, tables, strict=True)
        }
    strangers = [("kind", "work"), ("before", "work")]
    assert all(missed[()][pair] > 0.12 and missed[swaps.TIED][pair] < 0.07 for pair in strangers)
    assert all(missed[swaps.TIED][pair] < 0.01 for pair in names if pair not in strangers)


def survey(n, seed):
    """A survey of 40 columns. In year 0 the questions a0 to a6 were not asked; only workers answer w0 to w6.

    Year and work are independent. One question, `both`, was asked of workers from year 1 on.
    """
    rng = np.random.default_rng(seed)
    year, age = rng.integers(0, 4, n), rng.integers(0, 6, n)
    work = rng.random(n) < np.array([0.3, 0.8, 0.9, 0.8, 0.5, 0.1])[age]
    taste, skill = rng.normal(size=(2, n))

    def answers(mean, most):
        return np.clip(np.round(mean + rng.normal(size=n)), 0, most).astype(int)

    columns = {"year": year, "age": age, "work": work * 1}
    columns |= {f"a{k}": np.where(year > 0, 1 + answers(1.5 + taste, 3), 0) for k in range(7)}
    columns |= {f"w{k}": np.where(work, 1 + answers(1.5 + skill, 3), 0) for k in range(7)}
    columns["hours"] = np.where(work, 1 + answers(3 + skill, 7), 0)
    columns["both"] = np.where(work & (year > 0), 1 + rng.integers(0, 3, n), 0)
    columns |= {f"o{k}": answers(2 + (taste + skill) / 2, 4) for k in range(40 - len(columns))}
    return pd.DataFrame(columns)


@pytest.mark.slow("each case")
@pytest.mark.parametrize("seed", [0, 1])
def test_a_survey_has_the_means_by_year_that_were_measured(seed):
    """Without swaps the mean of hours in year 0 is 0.5 to 0.8 too small: the start follows `both`.

    A rule over a column of each block holds in all rows.
    """
    table = survey(20_000, seed)
    columns = {name: Categorical(sorted(table[name].unique().tolist()), nullable=False) for name in table}
    rule = Forbidden({"year": 0, "both": [1, 2, 3]})
    model = PrivSyn(1.0, 1e-9, Schema(columns, constraints=[rule]), seed=seed).fit(table)
    missed = {}
    for tied in ((), swaps.TIED):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(swaps, "TIED", tied)
            rows = model.sample(len(table), seed=seed)
        assert not ((rows["year"] == 0) & (rows["both"] > 0)).any()
        missed[tied] = (
            (rows.groupby("year")["hours"].mean() - table.groupby("year")["hours"].mean()).abs().max()
        )
    assert missed[()] > 0.4
    assert missed[swaps.TIED] < 0.2
