"""The concordances are exact but for their noise, and one more row moves each by one."""

from __future__ import annotations

from itertools import combinations
from math import fsum, sqrt

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from strategies import StubNoise, coded_tables

from privsyn import Increasing, Numerical, PrivSyn, Schema
from privsyn.inference.selection import near_pairs
from privsyn.marginals.channel import Channel, Channels
from privsyn.marginals.coarse import groups_at
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.methods.concordance import measure_concordances
from privsyn.private.measure import PrivateTable

DOMAIN = Domain(("a", "b", "c", "d"), (4, 6, 5, 3), (4, 5, 5, 0))  # the last code of `b` has no order
MARGINS = tuple(
    Marginal(DOMAIN.project((name,)), np.full(DOMAIN.project((name,)).shape, 6.0)) for name in "abcd"
)
NO_CHANNELS = Channels({})


def asked(records, rho=1.0, possible=NO_ZEROS, channels=NO_CHANNELS, margins=MARGINS):
    private = PrivateTable(records, StubNoise())
    pairs = near_pairs(private.domain.names, 10**6)
    return measure_concordances(private, margins, pairs, rho, possible, channels), private.spends


def upper(records, name):
    """Whether each record is in the upper half, or has no order."""
    place = DOMAIN.names.index(name)
    return groups_at(MARGINS[place], 2)[records.codes[:, place]] > 0


@given(coded_tables(DOMAIN))
def test_a_concordance_is_the_difference_of_two_numbers_of_rows(records):
    found, _ = asked(records)
    assert [one.attributes for one in found] == [*combinations("abc", 2)]
    for one in found:
        same = upper(records, one.attributes[0]) == upper(records, one.attributes[1])
        assert one.found == same.sum() - (~same).sum()


@given(coded_tables(DOMAIN))
def test_one_more_row_moves_each_concordance_by_one_and_the_ledger_says_so(records):
    row = np.array([[3, 5, 0, 1]], records.codes.dtype)
    more = Records(DOMAIN, np.concatenate([records.codes, row]))
    (before, spends), (after, _) = asked(records), asked(more)
    assert [abs(b.found - a.found) for a, b in zip(before, after, strict=True)] == [1.0] * 3
    (spend,) = spends
    assert spend.sensitivity == pytest.approx(sqrt(3))
    assert [one.variance for one in before] == pytest.approx([spend.sigma**2] * 3)


def test_nothing_of_the_budget_is_lost_where_no_pair_can_be_asked():
    """All pairs of numbers are ruled by a constraint."""
    names = list("abc")
    columns = {name: Numerical(0, 100, nullable=False) for name in names}
    schema = Schema(columns, constraints=[Increasing(["a", "b"]), Increasing(["b", "c"])])
    table = pd.DataFrame(np.sort(np.random.default_rng(0).uniform(0, 100, (2000, 3))), columns=names)
    spends = PrivSyn(1.0, 1e-9, schema, seed=1).fit(table).ledger_.spends
    free = PrivSyn(1.0, 1e-9, Schema(columns), seed=1).fit(table).ledger_.spends
    assert fsum(spend.rho for spend in spends) == pytest.approx(fsum(spend.rho for spend in free))


def test_ruled_out_randomised_and_one_sided_columns_have_no_concordance():
    records = Records(DOMAIN, np.zeros((5, 4), np.int32))
    ruled = np.ones((4, 6), bool)
    ruled[0, 0] = False
    possible = StructuralZeros(((DOMAIN.project(("a", "b")), ruled),))
    assert [one.attributes for one in asked(records, possible=possible)[0]] == [("a", "c"), ("b", "c")]
    channels = Channels({"c": Channel(0.5, np.full(5, 0.2))})
    assert [one.attributes for one in asked(records, channels=channels)[0]] == [("a", "b")]
    one_half = Marginal(DOMAIN.project(("a",)), np.array([9.0, 0, 0, 0]))
    assert [one.attributes for one in asked(records, margins=(one_half, *MARGINS[1:]))[0]] == [("b", "c")]
    assert asked(records, rho=0.0) == ((), ())
