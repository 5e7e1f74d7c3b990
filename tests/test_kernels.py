"""The compiled loops, each against its slow twin and the laws of a gradual update."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from math import ceil, floor
from textwrap import dedent

import numpy as np
import pytest
import reference
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import njit
from numba.core.dispatcher import Dispatcher
from reference import binary

from privsyn.compiled import KERNEL
from privsyn.inference import _kernels as inference_kernels
from privsyn.marginals import _kernels as marginal_kernels
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Grouping, Marginal
from privsyn.methods.paper import _kernels as paper_kernels
from privsyn.synthesis import _kernels as synthesis_kernels
from privsyn.synthesis import annealing
from privsyn.synthesis.annealing import lay_out
from privsyn.synthesis.targets import Targets

SHAPE = (3, 4, 2, 3)
compiled = settings(deadline=None)  # the first call compiles
seeds = st.integers(0, 2**32 - 1)
alphas = st.floats(0.05, 1.0)


@dataclass
class Case:
    """Rows of codes and one table over some of their columns."""

    codes: np.ndarray
    columns: np.ndarray
    target: np.ndarray

    @property
    def shape(self):
        return tuple(SHAPE[column] for column in self.columns)

    @property
    def strides(self):
        return np.array([np.prod(self.shape[t + 1 :], dtype=int) for t in range(len(self.shape))])

    @property
    def cells(self):
        return paper_kernels.cell_of_rows(self.codes, self.columns, self.strides)

    @property
    def counts(self):
        return paper_kernels.count_cells(self.cells, len(self.target))

    def update(self, alpha, duplicated, seed=0):
        """The case after one update; itself unchanged."""
        codes = self.codes.copy(order="F")
        rng = np.random.default_rng(seed)
        table = paper_kernels.Target(self.columns, self.strides, self.target)
        paper_kernels.update_table(codes, table, alpha, duplicated, rng)
        return Case(codes, self.columns, self.target)


@st.composite
def cases(draw):
    """Some columns may use fewer codes than they could; the target sums to the number of rows."""
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(seeds))
    codes = np.stack([rng.integers(0, draw(st.integers(1, size)), n) for size in SHAPE], axis=1)
    columns = np.array(draw(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)))
    cells = int(np.prod([SHAPE[column] for column in columns]))
    target = n * rng.dirichlet(np.full(cells, draw(st.sampled_from([0.1, 1.0, 10.0]))))
    return Case(np.array(codes, np.int32, order="F"), columns, target)


@compiled
@given(cases())
def test_rows_find_their_cells(case):
    assert case.cells.tolist() == [reference.cell_of_row(row, case.columns, case.shape) for row in case.codes]


@compiled
@given(cases())
def test_cells_are_counted(case):
    cells = case.cells.tolist()
    assert case.counts.tolist() == [cells.count(cell) for cell in range(len(case.target))]


@compiled
@given(cases())
def test_rows_are_sorted_by_their_cells_and_keep_their_order(case):
    starts, rows = paper_kernels.rows_by_cell(case.cells, case.counts)
    for cell in range(len(case.target)):
        assert rows[starts[cell] : starts[cell + 1]].tolist() == np.flatnonzero(case.cells == cell).tolist()
    assert starts[-1] == len(case.codes)


@compiled
@given(cases(), alphas)
def test_moves_are_planned_as_published(case, alpha):
    gain, loss = paper_kernels.plan_moves(case.counts, case.target, alpha)
    slow_gain, slow_loss = reference.plan_moves(case.counts.tolist(), case.target.tolist(), alpha)
    np.testing.assert_allclose(gain, slow_gain, atol=1e-9)
    np.testing.assert_allclose(loss, slow_loss, atol=1e-9)


@compiled
@given(cases(), alphas, st.floats(0.5, 2.0))
def test_as_much_is_lost_as_gained_and_never_too_much(case, alpha, scale):
    """Whatever the target sums to."""
    target = case.target * scale
    gain, loss = paper_kernels.plan_moves(case.counts, target, alpha)
    gap = target - case.counts
    assert gain.sum() == pytest.approx(loss.sum(), abs=1e-9)
    assert ((gain >= 0) & (gain <= np.maximum(gap, 0) + 1e-9)).all()
    assert ((loss >= 0) & (loss <= np.maximum(-gap, 0) + 1e-9)).all()
    full = case.counts > 0
    assert (gain[full] <= alpha * case.counts[full] + 1e-9).all()


@compiled
@given(st.lists(st.integers(0, 5 * 1024), min_size=1, max_size=20), st.integers(0, 1023))
def test_rounding_is_that_of_exact_arithmetic(numerators, offset):
    """Multiples of 1/1024, which floats add up without error."""
    values, offset = np.array(numerators) / 1024, offset / 1024
    rounded = synthesis_kernels.round_with_offset(values, offset)
    assert rounded.tolist() == reference.round_with_offset(values.tolist(), offset)
    assert rounded.sum() == floor(values.sum() + offset)


@compiled
@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=20), st.floats(0, 1, exclude_max=True))
@example([3.0], np.nextafter(1.0, 0.0))
@example([10_000.0, 3.0, 0.0], 1 - 1e-13)
def test_no_value_is_rounded_past_the_next_whole_number(values, offset):
    rounded = synthesis_kernels.round_with_offset(np.array(values), offset)
    assert all(0 <= r <= ceil(v) for r, v in zip(rounded, values, strict=True))
    assert abs(rounded.sum() - floor(sum(values) + offset)) <= 1


def test_rounding_is_right_on_average():
    """Over all offsets of a fine grid, so to one part of it: 0.3 is rounded up in 300 cases of 1000."""
    values = np.array([0.3, 1.25, 0.0, 2.0, 0.999, 0.001])
    grid = [synthesis_kernels.round_with_offset(values, (k + 0.5) / 1000) for k in range(1000)]
    np.testing.assert_allclose(np.mean(grid, axis=0), values, atol=1.001e-3)


def test_a_shuffled_front_is_a_uniform_sample():
    """Two of five: each ordered pair 1000 times of 20,000, within 5.5 standard deviations; wrong
    with probability under 4e-8 for each of twenty."""
    rng = np.random.default_rng(0)
    drawn: Counter[tuple[int, ...]] = Counter()
    for _ in range(20_000):
        rows = np.arange(5, dtype=np.int32)
        paper_kernels.shuffle_front(rows, 2, rng)
        assert sorted(rows) == [0, 1, 2, 3, 4]
        drawn[tuple(rows[:2].tolist())] += 1
    assert len(drawn) == 20
    assert all(abs(times - 1000) < 5.5 * np.sqrt(1000 * 0.95) for times in drawn.values())


@pytest.mark.slow
@compiled
@given(cases(), alphas, st.floats(0, 1), seeds)
def test_an_update_keeps_the_rows_and_their_domain(case, alpha, duplicated, seed):
    after = case.update(alpha, duplicated, seed)
    assert after.codes.shape == case.codes.shape
    Records(Domain(tuple("abcd"), SHAPE), after.codes)  # refuses a code out of range


@compiled
@given(cases(), alphas, st.floats(0, 1), seeds)
def test_no_cell_ends_farther_from_its_target(case, alpha, duplicated, seed):
    """But for the rounding: one that was nearer than a row may end up as far as that."""
    before = np.abs(case.counts - case.target)
    after = np.abs(case.update(alpha, duplicated, seed).counts - case.target)
    assert (after <= np.maximum(before, 1.0) + 1e-9).all()


@compiled
@given(cases(), alphas, st.floats(0, 1), seeds)
def test_no_more_rows_move_than_are_planned(case, alpha, duplicated, seed):
    gain, loss = paper_kernels.plan_moves(case.counts, case.target, alpha)
    moved = case.update(alpha, duplicated, seed).counts - case.counts
    for plan, done in ((gain, np.maximum(moved, 0)), (loss, np.maximum(-moved, 0))):
        assert (done <= np.ceil(plan - 1e-9)).all()
        assert abs(done.sum() - plan.sum()) < 1 + 1e-9


@compiled
@given(cases(), alphas, st.floats(0, 1), seeds)
def test_rows_of_cells_that_are_not_too_full_stay(case, alpha, duplicated, seed):
    after = case.update(alpha, duplicated, seed)
    stays = (case.counts <= case.target)[case.cells]
    assert np.array_equal(after.codes[stays], case.codes[stays])


@compiled
@given(cases(), alphas, seeds)
def test_a_copied_row_is_copied_whole(case, alpha, seed):
    """Only an empty cell has no row to copy."""
    after = case.update(alpha, 1.0, seed)
    rows = {tuple(row) for row in case.codes}
    empty = case.counts == 0
    assert all(tuple(row) in rows or empty[cell] for row, cell in zip(after.codes, after.cells, strict=True))


@compiled
@given(cases(), alphas, seeds)
def test_an_overwritten_row_keeps_its_other_attributes(case, alpha, seed):
    after = case.update(alpha, 0.0, seed)
    others = [column for column in range(len(SHAPE)) if column not in case.columns]
    assert np.array_equal(after.codes[:, others], case.codes[:, others])


@compiled
@given(cases(), st.floats(0, 1), seeds)
def test_a_full_step_reaches_whole_targets_within_twice_the_rows_of_a_cell(case, duplicated, seed):
    rng = np.random.default_rng(seed)
    target = case.counts
    for gives, takes in rng.integers(0, len(target), (100, 2)):
        if target[gives] > 0 and (target[takes] < 2 * case.counts[takes] or case.counts[takes] == 0):
            target[gives] -= 1
            target[takes] += 1
    case = Case(case.codes, case.columns, target.astype(float))
    assert np.array_equal(case.update(1.0, duplicated, seed).counts, target)


def test_the_copied_share_is_the_one_asked_for():
    """A quarter of 40 rows that the cell gains; the others keep their mark."""
    codes = np.zeros((100, 2), np.int32, order="F")
    codes[50:] = 1
    case = Case(codes, np.array([0]), np.array([90.0, 10.0, 0.0]))
    after = case.update(1.0, 0.25)
    assert after.counts.tolist() == [90, 10, 0]
    assert (after.codes[50:].sum(axis=1) == 0).sum() == 10
    assert ((after.codes[50:, 0] == 0) & (after.codes[50:, 1] == 1)).sum() == 30


def test_empty_cells_are_filled_first(monkeypatch):
    """Where rounding frees one row less than is gained, another cell goes without it."""
    rounded = iter([np.array([0, 2, 2]), np.array([3, 0, 0])])  # gains, losses
    monkeypatch.setattr(paper_kernels, "round_with_offset", lambda values, offset: next(rounded))
    codes = np.repeat([0, 1], [6, 2]).astype(np.int32)[:, np.newaxis]
    one, target = np.ones(1, np.int64), np.array([2.0, 4.0, 2.0])
    update = paper_kernels.update_table.py_func
    update(codes, paper_kernels.Target(one - 1, one, target), 1.0, 0.5, np.random.default_rng(0))
    assert np.bincount(codes[:, 0]).tolist() == [3, 3, 2]


def marked_rows(counts):
    """Rows in the cells of the second column, each with a mark of its own in the first."""
    cells = np.repeat(np.arange(len(counts)), counts)
    codes = np.stack([np.arange(len(cells)), cells], axis=1)
    return np.array(codes, np.int32, order="F")


def updates(counts, target, duplicated, times=1000):
    """The rows after an update, again and again from the same rows."""
    case = Case(marked_rows(counts), np.array([1]), np.array(target))
    return [case.update(1.0, duplicated, seed).codes for seed in range(times)]


def assert_binomial(times, of, share):
    """Two-sided: within 5.5 standard deviations of an independent draw; wrong under 4e-8 a number."""
    assert (np.abs(np.asarray(times) - of * share) < 5.5 * np.sqrt(of * share * (1 - share))).all()


def test_every_row_of_a_cell_too_full_leaves_as_often():
    runs = updates([10, 5], [5.0, 10.0], 0.0)
    assert_binomial(sum(rows[:10, 1] == 1 for rows in runs), 1000, 0.5)


def test_every_row_that_leaves_goes_to_every_cell_as_often():
    """Five leave either of two cells for either of two others; no row is bound for one of them."""
    runs = updates([10, 10, 5, 5], [5.0, 5.0, 10.0, 10.0], 0.0)
    assert_binomial(sum(rows[:10, 1] == 2 for rows in runs), 1000, 0.25)
    assert_binomial(sum(rows[10:20, 1] == 3 for rows in runs), 1000, 0.25)


def test_every_row_of_a_cell_is_copied_as_often():
    """Each of four in half of the runs, for two copies are made."""
    runs = updates([4, 4], [6.0, 2.0], 1.0)
    copied = sum(np.bincount(rows[4:, 0][rows[4:, 0] < 4], minlength=4) for rows in runs)
    assert_binomial(copied, 1000, 0.5)


def test_a_gap_of_less_than_a_row_is_closed_as_often_as_it_is_wide():
    runs = updates([10, 10, 10], [10.3, 9.7, 10.0], 0.5)
    assert_binomial(sum((rows[:, 1] == 0).sum() == 11 for rows in runs), 1000, 0.3)


def test_an_empty_table_of_rows_is_left_alone():
    codes = np.zeros((0, 2), np.int32, order="F")
    table = paper_kernels.Target(np.array([0, 1]), np.array([2, 1]), np.zeros(binary("ab").cells))
    paper_kernels.update_table(codes, table, 1.0, 0.5, np.random.default_rng(0))
    assert codes.shape == (0, 2)


@compiled
@given(
    st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.5]),
    seeds,
)
def test_values_are_drawn_as_if_each_were_tried_out(sets, heat, seed):
    assert_drawn_as_if_tried_out(SHAPE, 6, sets, heat, seed)


def test_large_records_are_annealed_in_one_byte_a_code_and_alike(monkeypatch):
    domain = Domain(("a", "b", "c"), SHAPE[:3])
    rng = np.random.default_rng(0)
    start = Records(domain, np.stack([rng.integers(0, size, 200) for size in domain.sizes], axis=1))
    pairs = (domain.project(("a", "b")), domain.project(("b", "c")))
    tables = tuple(Marginal(pair, rng.dirichlet(np.ones(pair.cells)).reshape(pair.shape)) for pair in pairs)
    types, found = [], []
    original = annealing.anneal_once

    def watched(codes, *rest):
        types.append(codes.dtype)
        return original(codes, *rest)

    monkeypatch.setattr(annealing, "anneal_once", watched)
    for most in (annealing.MANY_CODES, 0):
        monkeypatch.setattr(annealing, "MANY_CODES", most)
        found.append(annealing.finish(start, Targets((), tables), np.random.default_rng(1), sweeps=1).codes)
    assert types == [np.uint16, np.uint8]
    assert np.array_equal(*found)
    assert not np.array_equal(found[0], start.codes)


@pytest.mark.slow
@pytest.mark.parametrize("heat", [0.0, 0.5])
def test_more_rows_and_values_than_are_treated_at_once_are_drawn_alike(heat):
    """Up to 51 values in vectors of 16, and 140 rows in stretches of 128."""
    assert synthesis_kernels.LANES < 17
    assert synthesis_kernels.STRETCH < 140
    assert_drawn_as_if_tried_out((17, 2, 3), 140, [(0, 1), (1, 2), (2, 0)], heat, 1)


def assert_drawn_as_if_tried_out(shape, n, sets, heat, seed):
    """Some tables join codes. The targets are such that no weight is rounded, so no decision may differ."""
    rng = np.random.default_rng(seed)
    domain = Domain(tuple(map(str, range(len(shape)))), shape)
    start = Records(domain, np.stack([rng.integers(0, size, n) for size in shape], axis=1))
    joins = [0 if heat else rng.integers(2) for _ in sets]  # with heat, the order of additions matters
    groups = [
        tuple(np.arange(shape[j], dtype=np.int32) // (1 + join) for j in columns)
        for columns, join in zip(sets, joins, strict=True)
    ]
    shapes = [tuple(group.max() + 1 for group in of_table) for of_table in groups]
    domains = [Domain(tuple(map(str, s)), cells) for s, cells in zip(sets, shapes, strict=True)]
    targets = [rng.choice([0.0, 1.0, 3.0, 7.0], cells) for cells in shapes]
    tables = tuple(Marginal(d, target) for d, target in zip(domains, targets, strict=True))
    together = tuple((str(s[0]), str(s[1])) for s in sets if len(s) > 1)
    codes = np.stack([rng.permutation(column) for column in start.codes.T], axis=1).astype(np.uint16)
    wanted, noise = np.concatenate([target.ravel() for target in targets]), rng.gumbel(size=50)
    noise = noise.astype(np.float32)
    joined = dict(enumerate(map(Grouping, groups)))
    for move in lay_out(domain, start.codes, tables, groups=joined, together=together):
        axes = tuple(dict.fromkeys(move.moved.tolist()))
        counts = [np.zeros(cells, np.int64) for cells in shapes]
        for count, columns, of_table in zip(counts, sets, groups, strict=True):
            np.add.at(count, tuple(g[codes[:, j]] for j, g in zip(columns, of_table, strict=True)), 1)
        own, target = np.concatenate([c.ravel() for c in counts])[move.cells], wanted[move.cells]
        steps = (2 / (target + 1)).astype(np.float32)
        costs, drawn = steps / 2 * (1 + 2 * (own - target)).astype(np.float32), codes.copy()
        barred = [rng.integers(0, shape[axes[0]], rng.integers(3)) for _ in range(n if len(axes) == 1 else 0)]
        if barred:
            ends = np.cumsum([0, *map(len, barred)]).astype(np.uint32)
            move = move._replace(barred_ends=ends, barred=np.concatenate(barred).astype(np.uint32))
        synthesis_kernels.resample(drawn, move, costs, steps, own, heat, noise, np.random.default_rng(seed))
        values = reference.values_of(start.codes, axes)
        slow = np.random.default_rng(seed)
        slow = reference.resample(codes, axes, values, sets, groups, targets, heat, noise, slow, barred)
        assert np.array_equal(drawn, slow)
        np.testing.assert_allclose(costs, steps / 2 * (1 + 2 * (own - target)))


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 4), st.integers(1, 3), st.sampled_from([0.0, 8.0]), st.booleans(), seeds)
def test_changes_are_moved_as_if_each_were_tried_out(size, tables, heat, keeps_first, seed):
    """Two earlier rows in groups, and another column beside; all weights and targets are whole."""
    rng = np.random.default_rng(seed)
    rows, lags, beside = 16, 3, 2
    starts = np.sort(rng.choice(np.arange(1, rows), 3, replace=False))
    ends = np.stack([np.append(0, starts), np.append(starts, rows)], axis=1)[rng.random(4) < 0.8]
    codes, strides = rng.integers(0, size, rows), rng.integers(0, 2, (lags, tables))
    groups = np.stack([np.arange(size + 1), *rng.integers(0, 3, (lags - 1, size + 1))])
    strides *= (beside * np.array([1, size, 3 * size]))[:, np.newaxis]
    step = beside * size * 9  # cells of a table
    cells = (rng.integers(0, beside, (rows, tables)) + step * np.arange(tables)).astype(np.uint32)
    counts, targets = rng.integers(0, 9, (2, step * tables)).astype(np.float64)
    weights = rng.integers(0, 4, step * tables).astype(np.float64)
    arguments = (keeps_first, ends, cells, groups, strides)
    slow_codes, slow_counts = reference.move_changes(
        codes, *arguments, counts, targets, weights, heat, np.random.default_rng(seed)
    )
    synthesis_kernels.move_changes(
        codes, *arguments, counts, targets, weights, heat, np.random.default_rng(seed)
    )
    assert np.array_equal(codes, slow_codes)
    assert np.array_equal(counts, slow_counts)


@compiled
@given(cases(), alphas, seeds)
def test_the_same_seed_moves_the_same_rows(case, alpha, seed):
    assert np.array_equal(case.update(alpha, 0.5, seed).codes, case.update(alpha, 0.5, seed).codes)


FITS = """
import numpy as np
import pandas as pd
from numba.core.registry import CPUDispatcher
from privsyn import Categorical, Numerical, PrivSyn, Schema
from privsyn.cli.common.compiling import loops_compiled_ahead
from privsyn.inference import _kernels as inference
from privsyn.marginals import _kernels as marginals
from privsyn.synthesis import _kernels as synthesis

rng, n = np.random.default_rng(0), 400
drawn = {"few": rng.integers(0, 3, n), "many": rng.integers(0, 400, n), "cash": rng.exponential(9, n)}
drawn |= {"kin": 2 - drawn["few"], "fee": drawn["few"] + rng.integers(0, 2, n)}
table = pd.DataFrame(drawn | {"who": rng.integers(0, 300, n)})
known = {"few": Categorical([0, 1, 2]), "many": Categorical(range(400)), "cash": Numerical(0, 99)}
known |= {"kin": Categorical([0, 1, 2]), "fee": Numerical(0, 4, integer=True)}
for columns, unit in ((known, None), (known, "who"), ({"few": known["few"]}, None)):
    rows = table[[*columns, *filter(None, [unit])]]
    PrivSyn(5.0, schema=Schema(columns), unit=unit, seed=1).fit(rows).sample()
for module in (inference, marginals, synthesis):
    for name, loop in vars(module).items():
        if isinstance(loop, CPUDispatcher) and "no_cpython_wrapper" not in loop.targetoptions:
            print(name, len(loop.signatures))
ahead = loops_compiled_ahead()
print("ahead", all(loop.nopython_signatures[0].args == arguments for loop, arguments in ahead))
"""


@pytest.mark.slow
def test_each_loop_is_compiled_once_whatever_the_columns():
    """Each further combination of argument types would be compiled for a second or more in the first run."""
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", FITS], capture_output=True, text=True)
    signatures = dict(line.split() for line in ran.stdout.splitlines())
    assert signatures.pop("ahead") == "True", ran.stderr  # what cli/common/compiling.py compiles is used
    assert signatures["add_counts"] == signatures["resample"] == "1", ran.stderr
    assert set(signatures.values()) <= {"0", "1"}


# --- the same bytes ----------------------------------------------------------------------------------------


@njit(**KERNEL)
def allocated(size):
    """An array that compiled code allocates."""
    return np.empty(size)


def test_classes_are_added_up_in_one_order_wherever_the_arrays_lie():
    """The allocations before make the loop's own array follow the shares of the classes in some calls."""
    rng, classes = np.random.default_rng(0), 20
    values, observed, shares = rng.random((7, classes)), rng.random(12), rng.random(classes)
    edges, shapes, results = np.array([[0, 3]]), np.array([[3, 4]]), set()
    kept = [allocated(classes) for _ in range(40_000)]  # so that no freed place far away is used again
    for call in range(3_000):
        kept += [np.empty(classes), allocated(classes), bytearray(int(rng.integers(100, 260)))][call % 3 :: 2]
        evidence = np.zeros((7, classes))
        inference_kernels.add_class_evidence(values, shares.copy(), observed, edges, shapes, evidence)
        results.add(evidence.tobytes())
    assert len(results) == 1


def test_a_function_whose_sums_may_be_reordered_writes_to_no_array():
    reordered = set()
    for module in (inference_kernels, marginal_kernels, paper_kernels, synthesis_kernels):
        for name, loop in vars(module).items():
            if not isinstance(loop, Dispatcher):
                continue
            allowed = loop.targetoptions.get("fastmath", False)
            if allowed is True or (allowed and {"fast", "reassoc"} & {*allowed}):
                reordered.add(name)
                nodes = ast.walk(ast.parse(dedent(inspect.getsource(loop.py_func))))
                assert not [
                    node
                    for node in nodes
                    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
                ]
    assert reordered == {"sums_over_grid"}
