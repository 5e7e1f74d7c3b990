"""Known totals: exact counts that are public, used in place of answers; see docs/proofs.md."""

from __future__ import annotations

from functools import cache
from itertools import combinations, pairwise
from math import fsum, sqrt

import numpy as np
import pandas as pd
import pytest

from privsyn import Categorical, Numerical, PrivSyn, Schema, load

ROWS = 1500
SIZES = {"sex": 2, "race": 3, "school": 4, "job": 5, "home": 3}
SCHEMA = Schema({name: Categorical([*range(size)], nullable=False) for name, size in SIZES.items()})
KNOWN = ("sex", "race", "school")


@cache
def people(seed=0):
    """Rows whose columns depend on a hidden number. No woman has the last school."""
    rng = np.random.default_rng(seed)
    hidden = rng.random(ROWS)
    columns = {
        name: np.minimum(size * np.where(rng.random(ROWS) < 0.7, hidden, rng.random(ROWS)), size - 1)
        for name, size in SIZES.items()
    }
    rows = pd.DataFrame(columns).astype(int)
    rows.loc[(rows["sex"] == 1) & (rows["school"] == 3), "school"] = 2
    return rows


def counts_of(rows, *columns):
    return rows.groupby(list(columns)).size().reset_index(name="count")


@cache
def fitted(*sets, epsilon=1.0, delta=1e-9, seed=1):
    totals = [counts_of(people(), *columns) for columns in sets] or None
    return PrivSyn(epsilon, delta, SCHEMA, seed=seed, totals=totals).fit(people())


def spent(ledger, word=""):
    """Return the cost of the questions that have a word."""
    return fsum(spend.cost for spend in ledger.spends if word in spend.what)


def table(rows, columns):
    """Return counts by code."""
    shape = [SIZES[name] for name in columns]
    cells = np.ravel_multi_index(tuple(rows[name] for name in columns), shape)
    return np.bincount(cells, minlength=int(np.prod(shape))).reshape(shape)


def misses(fitted_tables, *sets):
    """Return by how much tables of a model miss known totals at most, in records."""
    merging, gaps = fitted_tables.merging, [0.0]
    assert merging.merged == merging.original
    for counts in fitted_tables.tables:
        for columns in sets:
            shared = tuple(name for name in counts.attributes if name in columns)
            gap = counts.project(shared).counts - table(people(), shared) if shared else counts.total - ROWS
            gaps.append(np.abs(gap).max())
    return max(gaps)


# --- what is asked -----------------------------------------------------------------------------------------


def test_what_totals_cover_is_not_asked():
    ledger = fitted(KNOWN).ledger_
    (first, *_) = ledger.spends
    assert first.what == "one-way counts of every attribute but known ones"
    assert first.sensitivity == pytest.approx(sqrt(2))
    assert first.answers == SIZES["job"] + SIZES["home"]
    named = [
        frozenset(s.what.partition(" over ")[2].replace(" (look 2)", "").split(", ")) for s in ledger.spends
    ]
    asked = [columns for columns in named if columns <= SIZES.keys()]
    assert frozenset({"sex", "job"}) in asked
    assert not any(columns <= set(KNOWN) for columns in asked)
    singles = {s.what for s in ledger.spends if s.what.startswith("one-way counts of") and s != first}
    assert singles == {"one-way counts of job", "one-way counts of home"}


@pytest.mark.parametrize("delta", [1e-9, 0])
def test_the_budget_goes_to_what_is_not_known(delta):
    with_totals, without = (fitted(*sets, delta=delta).ledger_ for sets in ((KNOWN,), ()))
    assert spent(with_totals) == pytest.approx(spent(without)) == pytest.approx(without.budget)
    assert spent(with_totals, "job") > 1.3 * spent(without, "job")


def test_residuals_of_what_is_known_are_not_asked():
    rows = pd.DataFrame({name: people()[name] > 0 for name in SIZES}).astype(int)
    schema = Schema({name: Categorical([0, 1], nullable=False) for name in SIZES})
    model = PrivSyn(5.0, 1e-9, schema, seed=1, totals=counts_of(rows, *KNOWN)).fit(rows)
    named = [
        s.what.removeprefix("residual over ").split(", ")
        for s in model.ledger_.spends
        if "residual" in s.what
    ]
    assert len(named) == 5 + 10 + 10 - 7
    assert not any(set(columns) <= set(KNOWN) for columns in named)
    known = np.bincount(rows[[*KNOWN]] @ [4, 2, 1], minlength=8).reshape(2, 2, 2)
    for counts in model.release_.fitted.tables:
        shared = tuple(name for name in counts.attributes if name in KNOWN)
        summed = tuple(axis for axis, name in enumerate(KNOWN) if name not in shared)
        assert counts.project(shared).counts == pytest.approx(known.sum(axis=summed))


def test_if_all_is_known_nothing_is_asked():
    model = fitted(tuple(SIZES))
    assert model.ledger_.spends == ()
    assert misses(model.release_.fitted, tuple(SIZES)) < 1e-6


@pytest.mark.slow
def test_if_all_pairs_are_known_the_budget_is_for_larger_tables():
    model = fitted(*combinations(SIZES, 2))
    assert {len(s.what.split(", ")) for s in model.ledger_.spends if s.what.startswith("counts over")} <= {
        3,
        4,
        5,
    }
    assert spent(model.ledger_) == pytest.approx(model.ledger_.budget, rel=0.05)


# --- what is met -------------------------------------------------------------------------------------------

SETS = {
    "one table": (KNOWN,),
    "two that overlap": (("sex", "race"), ("race", "job", "home")),
    "a column": (("school",),),
    "all columns": tuple((name,) for name in SIZES),
}


@pytest.mark.parametrize("sets", SETS.values(), ids=SETS)
@pytest.mark.parametrize("settings", [{}, {"delta": 0}, {"epsilon": 0.02}], ids=str)
def test_every_table_of_the_model_has_the_totals(sets, settings):
    model = fitted(*sets, **settings)
    assert model.release_.fitted.total == ROWS
    assert misses(model.release_.fitted, *sets) < 1e-6


def test_an_exact_count_has_an_interval_of_no_width_and_no_error():
    known = [c for c in fitted(KNOWN).release_.fitted.certainties if set(c.attributes) <= set(KNOWN)]
    assert len(known) == 7  # three columns, three pairs, and all three
    for certainty in known:
        for laplace in (False, True):
            low, high = certainty.intervals(laplace=laplace)
            assert (low == high).all()
            assert (low == table(people(), certainty.attributes)).all()
        assert certainty.error < 1e-9


@pytest.mark.parametrize(
    ("question", "columns", "codes"),
    [
        ("number of sex == 1", ("sex",), (1,)),
        ("number of sex == 0 and school == 2", ("sex", "school"), (0, 2)),
        ("number of sex == 1 and school == 3", ("sex", "school"), (1, 3)),
    ],
)
def test_an_answer_that_follows_from_totals_is_called_exact(question, columns, codes):
    answer = fitted(KNOWN).ask(question)
    assert answer.low == answer.estimate == answer.high == pytest.approx(table(people(), columns)[codes])
    assert answer.reason == "it is known exactly"


def test_draws_and_a_public_table_keep_the_totals():
    release = fitted(KNOWN).release_
    for frame in (*release.draws(2, seed=1), release.with_public(people(2)).sample(seed=1)):
        assert (table(frame, KNOWN) == table(people(), KNOWN)).all()
    improved = release.with_public(people(2)).fitted
    assert improved.public_rows is not None
    assert misses(improved, KNOWN) < 1e-6


def test_where_totals_count_nobody_no_row_is():
    assert (table(people(), ("sex", "school"))[1] == [*table(people(), ("sex", "school"))[1][:3], 0]).all()
    rows = fitted(KNOWN).sample(seed=3)
    assert not ((rows["sex"] == 1) & (rows["school"] == 3)).any()


def test_a_saved_model_has_its_totals(tmp_path):
    model = fitted(KNOWN)
    model.save(tmp_path / "m.privsyn")
    loaded = load(tmp_path / "m.privsyn")
    (saved,) = loaded.fitted.totals.tables
    assert (saved.marginal.counts == table(people(), KNOWN)).all()
    assert loaded.packed() == model.release_.packed()
    assert misses(loaded.fitted, KNOWN) < 1e-6


def test_counts_of_bands_are_met_inside_which_the_rest_is_asked():
    rng = np.random.default_rng(0)
    ages = pd.DataFrame(
        {"age": np.minimum(rng.gamma(4, 10, 800), 99).astype(int), "sex": rng.integers(0, 2, 800)}
    )
    schema = Schema({"age": Numerical(0, 99, integer=True), "sex": Categorical([0, 1], nullable=False)})
    bands = ages.assign(
        age=pd.cut(ages["age"], [-1, 17, 39, 64, 99], labels=["0-17", "18-39", "40-64", "65-99"])
    )
    totals = bands.groupby(["age", "sex"], observed=False).size().reset_index(name="count")
    model = PrivSyn(0.5, schema=schema, seed=1, totals=totals.astype({"age": str})).fit(ages)
    assert any("age" in spend.what for spend in model.ledger_.spends)
    counts = model.release_.fitted.counts_of("age")
    ends = [0, 18, 40, 65, 100]
    for low, high in pairwise(ends):
        assert counts[low:high].sum() == pytest.approx(((ages["age"] >= low) & (ages["age"] < high)).sum())


# --- what is better ----------------------------------------------------------------------------------------


def error(fitted_tables):
    """Return the mean total variation of all pairs."""
    tables = {t.attributes: t.counts for t in fitted_tables.tables}
    distances = []
    for a, b in combinations(SIZES, 2):
        alone = np.outer(tables[a,], tables[b,]) / fitted_tables.total
        counts = tables.get((a, b), alone)
        distances.append(np.abs(counts - table(people(), (a, b))).sum() / (2 * ROWS))
    return np.mean(distances)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_totals_make_pairs_better(epsilon):
    errors = [
        np.mean([error(fitted(*sets, epsilon=epsilon, seed=seed).release_.fitted) for seed in range(5)])
        for sets in ((KNOWN,), ())
    ]
    assert errors[0] < 0.8 * errors[1]
