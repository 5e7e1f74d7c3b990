"""The concordances are exact but for their noise, and nothing of their budget is lost."""

from __future__ import annotations

from itertools import combinations
from math import fsum

import numpy as np
import pandas as pd
import pytest
import reference
from hypothesis import given
from strategies import StubNoise, coded_tables

from privsyn import Increasing, Numerical, PrivSyn, Schema
from privsyn.inference.measured_columns import Estimate, MeasuredColumns
from privsyn.inference.pairs import Pairs, independent_pairs
from privsyn.inference.prior.smoothing import Waves
from privsyn.inference.selection import near_pairs
from privsyn.marginals.channel import Channel, Channels
from privsyn.marginals.domain import Domain, Records
from privsyn.marginals.marginal import Marginal, groups_at
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.methods.pair_scores import ask_concordances
from privsyn.private.measure import PrivateTable

DOMAIN = Domain(("a", "b", "c", "d"), (4, 6, 5, 3), (4, 5, 5, 0))  # the last code of `b` has no order
MARGINS = tuple(
    Marginal(DOMAIN.project((name,)), np.full(DOMAIN.project((name,)).shape, 6.0)) for name in "abcd"
)
NO_CHANNELS = Channels({})


def asked(records, rho=1.0, possible=NO_ZEROS, channels=NO_CHANNELS, margins=MARGINS):
    private = PrivateTable(records, StubNoise())
    pairs = near_pairs(private.domain.names, 10**6)
    measured_columns = MeasuredColumns(reference.unmerged(private.domain), possible, channels=channels)
    known = tuple(map(Estimate, independent_pairs(private.domain, MARGINS, pairs=pairs)))
    pairs_before = Pairs(1.0, margins, known, Waves(margins))
    pairs_after = ask_concordances(private, measured_columns, pairs_before, rho)
    return pairs_after.concordances, private.spends


def signs(records, name):
    """1 for the rows in the upper half, -1 for those in the lower half, 0 for codes without an order."""
    codes, place = records.codes[:, DOMAIN.names.index(name)], DOMAIN.names.index(name)
    return np.where(codes >= DOMAIN.ordered[place], 0, 2 * groups_at(MARGINS[place], 2)[codes] - 1)


@given(coded_tables(DOMAIN))
def test_a_concordance_is_the_difference_of_two_numbers_of_rows(records):
    found, (spend,) = asked(records)
    assert [one.attributes for one in found] == [*combinations("abc", 2)]
    for one in found:
        both = np.prod([signs(records, name) for name in one.attributes], axis=0)
        assert one.measured == (both == 1).sum() - (both == -1).sum()
        assert one.variance == spend.sigma**2


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
    for counts in ([9.0, 0, 0, 0], [0.0, 0, 0, 0]):
        side = Marginal(DOMAIN.project(("a",)), np.array(counts))
        assert [one.attributes for one in asked(records, margins=(side, *MARGINS[1:]))[0]] == [("b", "c")]
    assert asked(records, rho=0.0) == ((), ())
