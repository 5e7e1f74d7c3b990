"""A column that lasts keeps its number of changes; the rest follows the tables."""

from __future__ import annotations

import numpy as np
import pytest

from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.synthesis.chains import Chains, Previous
from privsyn.synthesis.linked import Requirements, synthesise_linked
from privsyn.synthesis.paths import Path, alike_until_changed
from privsyn.synthesis.targets import Targets

PERSONS, ROWS, VALUES = 600, 6, 3
PARENTS = np.repeat(np.arange(PERSONS), ROWS)
LATE = np.tile(np.arange(ROWS) >= ROWS // 2, PERSONS).astype(np.int64)
PREVIOUS = {"previous a": Previous("a", np.arange(VALUES, dtype=np.int32))}
CHAINS = Chains(PARENTS, {"late": LATE}, PREVIOUS)


def changes_of(codes, parents=PARENTS):
    """Return in which rows a column differs from the previous row of the same parent."""
    return np.concatenate([[False], (np.diff(codes) != 0) & (np.diff(parents) == 0)])


def one_way(name, counts):
    return Marginal(Domain((name,), (len(counts),)), np.array(counts, np.float64))


def numbers_of_changes(codes):
    return np.bincount(PARENTS, changes_of(codes)).astype(int)


@pytest.mark.parametrize("asked", [False, True])
def test_given_first_values_and_numbers_of_changes_stay_and_values_follow_the_table(asked):
    """After 0 comes 1, after 1 comes 2, after 2 comes 0; without the table any other value may come."""
    first, changes = np.repeat(np.arange(PERSONS) % VALUES, ROWS), np.repeat(np.arange(PERSONS) % 4, ROWS)
    moves = np.roll(np.eye(VALUES), 1, axis=1) * PERSONS
    table = np.vstack([np.eye(VALUES) * PERSONS + moves, np.full(VALUES, PERSONS / VALUES)])
    pair = Marginal(Domain(("previous a", "a"), (VALUES + 1, VALUES)), table)
    targets = Targets((one_way("a", [1200] * VALUES),), (pair,) if asked else ())
    path = Path("a", first, changes, keeps_first=True)
    codes = synthesise_linked(
        targets, CHAINS, np.random.default_rng(0), requirements=Requirements(paths=[path])
    )["a"].astype(int)
    assert (codes[::ROWS] == first[::ROWS]).all()
    assert (numbers_of_changes(codes) == changes[::ROWS]).all()
    later = np.flatnonzero(changes_of(codes))
    cyclic = (codes[later] == (codes[later - 1] + 1) % VALUES).mean()
    assert cyclic > 0.97 if asked else 0.4 < cyclic < 0.6


def test_changes_move_to_the_rows_where_tables_have_them():
    """The value 1 is found in late rows alone, and another column agrees with it."""
    first, changes = np.zeros(len(PARENTS), np.int64), np.repeat(np.arange(PERSONS) % 2, ROWS)
    both = np.array([[1800.0, 1350], [0, 450]])
    tables = (
        Marginal(Domain(("a", "late"), (2, 2)), both),
        Marginal(Domain(("a", "b"), (2, 2)), np.array([[2835.0, 315], [45, 405]])),
    )
    targets = Targets((tables[0].project(("a",)), tables[1].project(("b",))), tables)
    chains = Chains(PARENTS, {"late": LATE}, {})
    path = Path("a", first, changes)
    rows = synthesise_linked(
        targets, chains, np.random.default_rng(0), requirements=Requirements(paths=[path])
    )
    codes = rows["a"].astype(int)
    assert (numbers_of_changes(codes) == changes[::ROWS]).all()
    joint = np.bincount(2 * codes + LATE, minlength=4).reshape(2, 2)
    assert np.abs(joint - both).sum() / 2 < 0.03 * len(PARENTS)
    assert np.mean(rows["b"] == codes) == pytest.approx(0.9, abs=0.02)


@pytest.mark.parametrize("values", [2, 3])
@pytest.mark.parametrize("counted", [False, True])
def test_first_values_follow_tables_of_rows_and_of_first_rows(counted, values):
    """At the start no first value depends on sex, and 0.8 of the rows should have the value of their sex.

    If first rows were counted by sex too, they show something else, and rows meet neither.
    """
    persons = np.repeat(np.arange(5 * PERSONS), 2)
    first, changes = persons % values, persons % 3 // 2
    sex = persons // values % 2
    joint = np.full((values, 2), 0.2 / (values - 1)) * len(sex) / 2
    joint[[0, 1], [0, 1]] = 0.8 * len(sex) / 2
    table = Marginal(Domain(("a", "sex"), (values, 2)), joint)
    requirements = Requirements(paths=[Path("a", first, changes)], of_firsts=[("a", "sex")] * counted)
    chains = Chains(persons, {"sex": sex}, {})
    targets = Targets((table.project(("a",)),), (table,))
    codes = synthesise_linked(targets, chains, np.random.default_rng(0), requirements=requirements)["a"]
    made = np.bincount(persons, changes_of(codes.astype(int), persons)).astype(int)
    assert (made == changes[::2]).all()
    alike = (codes == sex).mean()
    assert 0.6 < alike < 0.77 if counted else alike == pytest.approx(0.8, abs=0.02)


def test_parents_of_one_row_and_columns_of_one_value_have_no_change():
    alone = Chains(np.arange(8), {}, {})
    path = Path("a", np.arange(8) % 2, np.zeros(8, np.int64))
    rows = synthesise_linked(
        Targets((one_way("a", [4, 4]),), ()),
        alone,
        np.random.default_rng(0),
        requirements=Requirements(paths=[path]),
    )
    assert rows["a"].tolist() == [0, 1] * 4
    path = Path("a", np.zeros(len(PARENTS), np.int64), np.full(len(PARENTS), 2))
    rows = synthesise_linked(
        Targets((one_way("a", [3600]),), ()),
        CHAINS,
        np.random.default_rng(0),
        requirements=Requirements(paths=[path]),
    )
    assert not rows["a"].any()


def test_a_run_of_a_merged_code_has_one_original_code():
    domain = Domain(("a",), (3,))
    merged = Records(domain, np.array([[0], [0], [1], [0], [0]]))
    drawn = Records(Domain(("a",), (5,)), np.array([[0], [4], [2], [4], [0]]))
    path = Path("a", np.zeros(5, np.int64), np.zeros(5, np.int64))
    restored = alike_until_changed([path], merged, drawn, np.array([0, 0, 0, 0, 1]))
    assert restored.codes.ravel().tolist() == [0, 0, 2, 4, 0]
