"""What the pairs predict for a set of attributes is found from records of the sets' own attributes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import reference

from privsyn.inference.measured_columns import MeasuredColumns
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.structural_zeros import NO_ZEROS, StructuralZeros
from privsyn.methods import default as estimate

DOMAIN = Domain(tuple("abcd"), (2, 2, 2, 2))
UNMERGED = reference.unmerged(DOMAIN)
SAME, OPPOSITE = np.array([[600.0, 0.0], [0.0, 400.0]]), np.array([[0.0, 600.0], [400.0, 0.0]])
PAIRS = SimpleNamespace(
    one_ways=tuple(
        Marginal(DOMAIN.project((name,)), np.array(counts))
        for name, counts in zip("abcd", ([600.0, 400], [600.0, 400], [400.0, 600], [400.0, 600]), strict=True)
    ),
    tables=tuple(
        Marginal(DOMAIN.project(pair), counts)
        for pair, counts in ((("a", "b"), SAME), (("b", "c"), OPPOSITE), (("c", "d"), SAME[::-1, ::-1]))
    ),
    total=1000.0,
)
NO_A_WITHOUT_D = StructuralZeros(((DOMAIN.project(("a", "d")), np.array([[False, True], [True, False]])),))


@pytest.mark.parametrize(
    ("most", "zeros", "made"), [(2, NO_ZEROS, "abc"), (2, NO_A_WITHOUT_D, "abcd"), (3, NO_ZEROS, "abcd")]
)
def test_with_many_pairs_records_have_the_attributes_of_the_sets_unless_a_constraint_may_need_all(
    monkeypatch, most, zeros, made
):
    monkeypatch.setattr(estimate, "MOST_TABLES", most)
    synthesise, domains = estimate.synthesise, []
    monkeypatch.setattr(
        estimate,
        "synthesise",
        lambda targets, *rest, **more: domains.append(targets.domain) or synthesise(targets, *rest, **more),
    )
    rng = np.random.default_rng(0)
    measured_columns = MeasuredColumns(UNMERGED, zeros)
    (found,), scatter = estimate.predicted_by_pairs(
        measured_columns, (("a", "b", "c"),), PAIRS, rng, UNMERGED
    )
    assert [domain.names for domain in domains] == [tuple(made)]
    assert (found.attributes, scatter) == (("a", "b", "c"), 1.0)
    assert np.abs(found.counts - np.array([[[0, 600], [0, 0]], [[0, 0], [400, 0]]])).max() <= 1
