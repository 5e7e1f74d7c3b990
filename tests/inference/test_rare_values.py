"""Which values are pooled, and what becomes of missing cells that the noise hides."""

import numpy as np
import pytest

from privsyn.inference.rare_values import merge_rare
from privsyn.marginals.domain import Domain
from privsyn.marginals.marginal import Marginal, Measurement

SIGMA = 10.0


def merged(counts, **settings):
    marginal = Marginal(Domain(("a",), (len(counts),)), np.array(counts, float))
    return merge_rare(
        (Measurement(marginal, SIGMA**2),), float(sum(counts)), nullable={"a": 20.0}, **settings
    )


@pytest.mark.parametrize("settings", [{"spared": 9}, {"spared": 9, "doubtful": ("a",)}, {"spared": 2}])
@pytest.mark.parametrize(
    ("missing", "drawn"), [(-4.0, False), (15.0, False), (19.9, False), (20.1, True), (25.0, True)]
)
@pytest.mark.parametrize("others", [(500.0, 400.0, 25.0, 28.0), (500.0, 400.0), (15.0, 15.0), (500.0,)])
def test_missing_cells_are_drawn_from_their_threshold_on(settings, missing, drawn, others):
    merging = merged((*others, missing), **settings)
    assert (merging.shares[0][-1] > 0) == drawn
    assert np.allclose(np.bincount(merging.groups[0], merging.shares[0]), 1)
