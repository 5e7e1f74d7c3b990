"""Randomised response: the channel by exact enumeration, its promise, and exact counts of its tables."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import nextafter

import mpmath
import numpy as np
import pytest
from conftest import LEDGER_SCHEMA
from jsonschema import Draft202012Validator
from refusals import refuses
from scipy.stats import binom

from privsyn.errors import InputError
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.recoding import Merging
from privsyn.private.ledger import Ledger
from privsyn.private.local_privacy import (
    LocalPromise,
    Unchanged,
    keep_probability,
    local_epsilon,
    randomised,
    randomised_counts,
    uniform_below,
)
from privsyn.private.randomness import os_entropy
from privsyn.private.rows import Rows
from privsyn.private.run_ledger import RunLedger
from privsyn.private.spend import Spend

CHANNELS = [(keep, size) for keep in (0.9, 0.75, 0.5, 0.3, 0.01) for size in (1, 2, 3, 16)]


def channel(keep, size):
    """P(value | cell) as fractions, from all pairs of draws: every pair of words is equally likely."""
    parts = keep_probability(keep).denominator
    pairs = np.array(list(product(range(parts), range(size))), np.uint64)
    rows = []
    for cell in range(size):
        words = iter([pairs[:, 0], pairs[:, 1]])
        drawn = randomised(np.full(len(pairs), cell), size, keep, lambda _, words=words: next(words))
        rows.append([Fraction(int(n), len(pairs)) for n in np.bincount(drawn, minlength=size)])
    return rows


def largest_ratio(rows):
    return max(one[v] / other[v] for one in rows for other in rows for v in range(len(rows)))


@pytest.mark.parametrize(("keep", "size"), CHANNELS)
def test_the_epsilon_of_a_column_is_that_of_all_draws_enumerated(keep, size):
    rows, exact = channel(keep, size), keep_probability(keep)
    for cell, row in enumerate(rows):
        assert row == [(1 - exact) / size + exact * (v == cell) for v in range(size)]
    promise = LocalPromise("a", keep, size)
    assert largest_ratio(rows) == promise.ratio or size == 1
    with mpmath.workdps(50):
        true = mpmath.log(mpmath.mpf(promise.ratio.numerator) / promise.ratio.denominator)
        assert true <= mpmath.mpf(promise.epsilon) <= true * (1 + mpmath.mpf(2) ** -50)


def test_the_epsilon_of_a_record_is_that_of_all_its_columns_enumerated():
    columns = [(0.9, 2), (0.5, 3), (0.75, 2)]
    alone = [channel(*column) for column in columns]
    joint = [
        [
            np.prod([rows[c][v] for rows, c, v in zip(alone, cells, values, strict=True)])
            for values in product(*(range(size) for _, size in columns))
        ]
        for cells in product(*(range(size) for _, size in columns))
    ]
    promises = [LocalPromise("a", *column) for column in columns]
    with mpmath.workdps(50):
        ratio = largest_ratio(joint)
        true = mpmath.log(mpmath.mpf(ratio.numerator) / ratio.denominator)
        assert true <= mpmath.mpf(local_epsilon(promises)) <= true * (1 + mpmath.mpf(2) ** -48)


def test_a_keep_probability_is_the_decimal_number_that_was_written():
    assert keep_probability(0.9) == Fraction(9, 10)
    assert keep_probability(0.1) == Fraction(1, 10)
    for keep in (0.0, 1.0, -0.5, 1.5, 5e-324):
        with pytest.raises(InputError, match="keep must be a probability"):
            keep_probability(keep)


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 2**62, 3 * 2**60])
def test_words_that_would_favour_small_numbers_are_drawn_again(bound):
    last = 2**64 // bound * bound - 1
    words = [[last, min(last + 1, 2**64 - 1)], [2**64 - 1], [5]]
    stream = iter(np.array(each, np.uint64) for each in words)
    drawn = uniform_below(bound, 2, lambda size: next(stream))
    assert drawn.tolist() == ([bound - 1, 5 % bound] if last < 2**64 - 1 else [bound - 1] * 2)


def test_draws_from_the_operating_system_have_the_distribution():
    """Two-sided, with a probability of error below 1e-7 for each of eight numbers."""
    n = 200_000
    drawn = randomised(np.full(n, 1), 4, 0.3)
    for value, share in enumerate([0.175, 0.475, 0.175, 0.175]):
        low, high = binom.ppf([5e-8, 1 - 5e-8], n, share)
        assert low <= (drawn == value).sum() <= high
    assert (uniform_below(2**40, 1000, os_entropy) != uniform_below(2**40, 1000, os_entropy)).mean() > 0.99


def test_the_number_of_words_does_not_depend_on_the_cells():
    def drawn(cells):
        sizes = []

        def bits(size):
            sizes.append(size)
            return np.arange(size, dtype=np.uint64)

        randomised(cells, 3, 0.75, bits)
        return sizes

    assert drawn(np.zeros(50, int)) == drawn(np.full(50, 2)) == [50, 50]


def rows():
    return Rows.in_memory(Records(Domain(("a", "b"), (2, 2)), np.array([[0, 1], [1, 1], [0, 1]])))


def test_exact_counts_need_that_every_column_is_randomised():
    tables = randomised_counts(rows(), (("a",), ("a", "b")), {"a", "b", "c"})
    assert [table.marginal.counts.tolist() for table in tables] == [[2, 1], [[0, 2], [0, 1]]]
    assert not any(table.variance.any() for table in tables)
    with pytest.raises(ValueError, match="not randomised"):
        randomised_counts(rows(), (("a",),), {"a"})


def test_merged_codes_are_counted_exactly_too():
    domain = rows().domain
    together = Merging(
        domain, Domain(domain.names, (1, 2)), (np.zeros(2, int), np.arange(2)), (np.full(2, 0.5), np.ones(2))
    )
    tables = randomised_counts(rows().merge(together), (("a",), ("b",)), {"a", "b"})
    assert [table.marginal.domain for table in tables] == [together.merged.project(n) for n in ("a", "b")]
    assert [table.marginal.counts.tolist() for table in tables] == [[3], [0, 3]]


PROMISES = (LocalPromise("a", 0.5, 2), LocalPromise("b", 0.75, 3))


TOGETHER = local_epsilon(PROMISES)


def ledger(epsilon=TOGETHER, local=PROMISES, unchanged=(), **changed):
    settings = {
        "promised_delta": 0.0,
        "accounting": "pure",
        "randomness": "randomised response",
        "private": True,
        "public_inputs": (),
        "version": "1.0",
    }
    return RunLedger((*local, *map(Unchanged, unchanged)), epsilon, **{**settings, **changed})


@pytest.mark.parametrize("values", [0, -1, 1.99, 2.0, True, "2"])
def test_a_promise_that_would_lower_the_epsilon_of_others_is_refused(values):
    with pytest.raises(ValueError, match="values must be a whole number, at least 1"):
        LocalPromise("a", 0.4, values)
    plain = json.loads(ledger().to_json())
    plain["local"]["columns"][0]["values"] = values
    with pytest.raises(InputError):
        RunLedger.from_dict(plain)


def test_a_ledger_of_randomised_columns_states_each_epsilon_and_their_sum():
    plain = json.loads(ledger().to_json())
    Draft202012Validator(LEDGER_SCHEMA).validate(plain)
    assert RunLedger.from_json(ledger().to_json()) == ledger()
    assert [column["epsilon"] for column in plain["local"]["columns"]] == [p.epsilon for p in PROMISES]
    assert plain["local"]["epsilon"] == plain["promise"]["epsilon"] == ledger().cost == ledger().epsilon(0)
    assert "randomised by the respondents: 'b', keep 0.75, 3 values: epsilon 2.3026" in str(ledger())
    assert "all randomised cells of a record together: epsilon 3.4012" in str(ledger())
    assert ledger().neighbours == "change the randomised cells of one record ('a', 'b'), before randomisation"
    assert "counts" not in str(ledger())


def test_epsilons_of_linked_tables_add_up_over_one_row_in_each_table():
    spend = Spend("homes: one-way counts of every attribute", 3, 1.0, 10.0)
    local = tuple(replace(promise, column=f"t.{promise.column}") for promise in PROMISES)
    linked = ledger(
        9.0,
        (spend, *local),
        promised_delta=1e-6,
        accounting="gaussian",
        unit="home",
        root="homes",
        rows_per_unit=1,
    )
    assert linked.local_epsilon == TOGETHER
    assert "all randomised cells of a row in each table together: epsilon 3.4012" in str(linked)


def test_a_randomised_table_with_exact_columns_is_not_private_and_its_first_lines_name_them():
    partial = ledger(private=False, unchanged=("n", "id"))
    plain = json.loads(partial.to_json())
    Draft202012Validator(LEDGER_SCHEMA).validate(plain)
    assert RunLedger.from_json(partial.to_json()) == partial
    assert next(iter(plain)) == "warning"
    assert plain["warning"] == "NOT PRIVATE: NOT RANDOMISED, EXACT IN THE TABLE: 'n', 'id'. DO NOT PUBLISH."
    assert plain["private"] is False
    assert plain["local"]["unchanged"] == ["n", "id"]
    assert plain["neighbours"] == partial.neighbours
    cells = "change the randomised cells of one record ('a', 'b'), before randomisation"
    assert partial.neighbours == f"{cells}; NOT RANDOMISED, exact: 'n', 'id'"
    assert str(partial).splitlines()[0] == partial.warning
    assert partial.neighbours in str(partial).splitlines()[1]


def test_a_ledger_of_exact_columns_cannot_claim_to_be_private():
    for changed in ({"private": True}, {"private": False, "local": ()}):
        with pytest.raises(ValueError, match="it is not private"):
            ledger(unchanged=("n",), **changed)
    plain = ledger(private=False, unchanged=("n",)).to_dict()
    with pytest.raises(InputError):
        RunLedger.from_dict(plain | {"private": True})


def test_a_ledger_that_promises_less_than_its_channels_keep_cannot_exist():
    with pytest.raises(ValueError, match="does not keep this promise"):
        ledger(nextafter(TOGETHER, 0))
    with pytest.raises(ValueError, match="does not keep this promise"):
        ledger(unit="who", rows_per_unit=2)
    with pytest.raises(ValueError, match="does not keep this promise"):
        ledger(9.0, promised_delta=1e-9, accounting="gaussian")


def test_randomised_columns_beside_questions_change_neither_cost_nor_neighbours():
    spends = (Spend("one-way counts", answers=3, sensitivity=1.0, sigma=8.0),)
    settings = (1.0, 1e-9, "gaussian", "os", True, (), "1.0")
    with_local, without = RunLedger((*PROMISES, *spends), *settings), RunLedger(spends, *settings)
    assert with_local.cost == without.cost
    assert with_local.neighbours == without.neighbours == "add or remove one record"
    assert RunLedger.from_json(with_local.to_json()) == with_local


def test_ledgers_of_randomised_tables_are_left_out_only_beside_releases_from_that_table():
    with refuses("ledger 1 is of a randomised table") as refused:
        Ledger.compose([ledger(), ledger()])
    assert "only if all other releases are made from that randomised table" in str(refused.value)
    assert "two randomisations of the same answers" in str(refused.value)
    with pytest.raises(InputError, match="ledger 1 is NOT PRIVATE: it is of a table with unchanged columns"):
        Ledger.compose([ledger(private=False, unchanged=("n",))])
