"""PrivSyn as published: Zhang et al., USENIX Security 2021, Algorithm 3, without the synthesis."""

from __future__ import annotations

import numpy as np

from privsyn.inference.consistency import combine_one_ways, estimate_total
from privsyn.inference.error_bars import one_way_certainty, table_certainties
from privsyn.inference.fitted import Fitted
from privsyn.inference.problem import Estimate
from privsyn.inference.rare_values import merge_rare
from privsyn.methods.facts import PublicFacts
from privsyn.methods.paper.consistency import make_consistent
from privsyn.methods.paper.dense_marg import allocate, combine, dense_marg
from privsyn.private.measure import PrivateTable
from privsyn.progress import Progress

ONE_WAYS, DEPENDENCES, MARGINALS = 0.1, 0.1, 0.8  # shares of the budget; Section 5.4


def learn(
    private: PrivateTable, rho: float, rng: np.random.Generator, report: Progress, facts: PublicFacts
) -> Fitted:
    """Measure the one-ways, the dependences of all pairs, and the marginals that DenseMarg selects."""
    del rng, facts  # the published algorithm uses neither before the synthesis
    report("counting", 0, 3)
    one_ways = private.one_ways(ONE_WAYS * rho)
    merging = merge_rare(one_ways, estimate_total(one_ways), join_neighbours=False)
    private = private.merge(merging)
    one_ways = tuple(merging.merge_counts(one_way) for one_way in one_ways)
    report("counting", 1, 3)
    dependences = private.indifs(DEPENDENCES * rho)
    left = (MARGINALS if dependences else DEPENDENCES + MARGINALS) * rho
    chosen = combine(dense_marg(dependences, private.domain, left), private.domain)
    # If no pair is worth its noise, the rest of the budget measures the one-ways again.
    asked = chosen or tuple((name,) for name in private.domain)
    report("counting", 2, 3)
    cells = np.array([float(private.domain.project(attributes).cells) for attributes in asked])
    measured = private.marginals(asked, allocate(cells, left))
    total = estimate_total((*one_ways, *measured))
    tables = make_consistent((*one_ways, *measured), total)
    margins, marginals = tables[: len(one_ways)], tables[len(one_ways) :] if chosen else ()
    # How much noise consistency removes is unknown, so the expected errors assume that it removes none.
    combined = combine_one_ways(private.domain, (*one_ways, *measured))
    found = [
        Estimate(table, measured=m, left=m.variance) for table, m in zip(marginals, measured, strict=False)
    ]
    certainties = table_certainties(found, combined)
    report("counting", 3, 3)
    return Fitted(
        merging, margins, marginals, total, (*map(one_way_certainty, combined, margins), *certainties)
    )
