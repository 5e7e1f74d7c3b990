"""PrivSyn as published: Zhang et al., USENIX Security 2021, Algorithm 3, without the synthesis.

DenseMarg chooses the pairs of attributes to be measured. A pair that is left out is assumed to be
independent, and its error is its dependence (InDif). The error of a measured pair is its noise. Pairs are
added greedily while the sum of both errors falls. `make_consistent` makes the noisy marginals agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, islice
from math import pi, sqrt

import numpy as np

from privsyn.inference.consistency import combine_one_ways, estimate_total, norm_sub, variance_of_total
from privsyn.inference.fitted import Fitted, one_way_certainty, table_certainties
from privsyn.inference.measured_columns import Estimate, PublicFacts
from privsyn.inference.rare_values import merge_rare_as_published
from privsyn.marginals.domain import Attributes, Domain, Floats
from privsyn.marginals.marginal import Marginal, Measurement
from privsyn.marginals.tolerances import TINY_VARIANCE
from privsyn.methods.paper.parameters import PAPER, Parameters
from privsyn.private.measure import PrivateTable
from privsyn.progress import ESTIMATING, MEASURING, Progress

STAGES = 3  # of questions


def learn(
    private: PrivateTable,
    rho: float,
    rng: np.random.Generator,
    report: Progress,
    facts: PublicFacts,
    *,
    parameters: Parameters = PAPER,
) -> Fitted:
    """Measure the one-ways, the dependences of all pairs, and the marginals that DenseMarg selects."""
    del rng, facts  # the published algorithm uses neither before the synthesis
    rho_one_ways, rho_dependences = (share * rho for share in parameters.shares)
    one_ways = private.one_ways(rho_one_ways)
    merging = merge_rare_as_published(one_ways, estimate_total(one_ways))
    private = private.merge(merging)
    one_ways = tuple(merging.merge_counts(one_way) for one_way in one_ways)
    report(MEASURING, 1, STAGES)
    # The rest, by subtraction: shares of a split may sum to slightly more than 1.
    remaining = rho - rho_one_ways - (rho_dependences if len(private.domain) > 1 else 0.0)
    pairs = _selected(private, rho_dependences, remaining, parameters)
    chosen = combine(pairs, private.domain, gamma=parameters.gamma, overlap=parameters.overlap)
    # If no pair is worth its noise, the rest of the budget measures the one-ways again.
    queries = chosen or tuple((name,) for name in private.domain)
    report(MEASURING, 2, STAGES)
    cells = np.array([float(private.domain.project(attributes).cells) for attributes in queries])
    measured = private.marginals(queries, allocate(cells, remaining))
    report(MEASURING, STAGES, STAGES)
    report(ESTIMATING, 0, 1)
    total, variance = (function((*one_ways, *measured)) for function in (estimate_total, variance_of_total))
    tables = make_consistent((*one_ways, *measured), total)
    margins, marginals = tables[: len(one_ways)], tables[len(one_ways) :] if chosen else ()
    # How much noise consistency removes is unknown, so the expected errors assume that it removes none.
    combined = combine_one_ways(private.domain, (*one_ways, *measured))
    estimates = [
        Estimate(table, measured=m, posterior_variance=m.variance)
        for table, m in zip(marginals, measured, strict=False)
    ]
    certainties = table_certainties(estimates, combined)
    report(ESTIMATING, 1, 1)
    return Fitted(
        *(merging, margins, marginals, total),
        (*map(one_way_certainty, combined, margins), *certainties),
        variance,
    )


def _selected(
    private: PrivateTable, rho: float, remaining: float, parameters: Parameters
) -> tuple[Attributes, ...]:
    """Select pairs at the cost `rho`, to be measured at the cost `remaining`."""
    if parameters.select == "greedy":
        return dense_marg(private.indifs(rho), private.domain, remaining)

    def penalties(drawn: tuple[Attributes, ...]) -> dict[Attributes, float]:
        return noise_added(drawn, private.domain, remaining)

    return private.draw_pairs(penalties, parameters.draws, rho)


MOST_CLIQUES = 10_000  # maximal cliques that are listed: a dense graph may have far more


def allocate(cells: Floats, rho: float) -> Floats:
    r"""Split `rho` in proportion to cells^(2/3), which minimises the sum of the expected L1 errors.

    Parameters
    ----------
    cells : array of shape (k,)
        Number of cells of each table.
    rho : float
        Budget of all tables together, in zCDP.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 4.2: minimise
    :math:`\sum c_i / \sqrt{\pi \rho_i}` subject to :math:`\sum \rho_i = \rho`.

    Examples
    --------
    >>> allocate(np.array([8.0, 1.0]), 1.0).tolist()
    [0.8, 0.2]
    """
    weights = np.cbrt(cells) ** 2
    return rho * weights / weights.sum()


def dense_marg(dependences: dict[Attributes, float], domain: Domain, rho: float) -> tuple[Attributes, ...]:
    """Select pairs greedily while the total expected error falls.

    Parameters
    ----------
    dependences : dict of pair to float
        Noisy InDif of each pair, in records. A negative InDif counts as 0.
    domain : Domain
        Sizes of the attributes.
    rho : float
        Budget that will be spent on the selected pairs.

    Returns
    -------
    tuple of pairs, in the order of selection

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 4.2, Eq. (1) and Algorithm 1. Two running sums give
    the total error, so each step costs one pass over the pairs.

    Examples
    --------
    >>> domain = Domain(("a", "b", "c"), (2, 2, 2))
    >>> dense_marg({("a", "b"): 900.0, ("a", "c"): 2.0, ("b", "c"): 0.5}, domain, rho=0.1)
    (('a', 'b'),)
    """
    pairs = list(dependences)
    left_out = np.maximum(np.array([dependences[pair] for pair in pairs]), 0.0)
    weights = np.cbrt([float(domain.project(pair).cells) for pair in pairs]) ** 2
    chosen: list[int] = []
    weight, dependence = 0.0, float(left_out.sum())
    error = dependence
    open_pairs = np.ones(len(pairs), np.bool_)
    while open_pairs.any():
        errors = (weight + weights) ** 1.5 / np.sqrt(pi * rho) + dependence - left_out
        best = int(np.argmin(np.where(open_pairs, errors, np.inf)))
        if errors[best] >= error:
            break
        error, weight, dependence = errors[best], weight + weights[best], dependence - left_out[best]
        open_pairs[best] = False
        chosen.append(best)
    return tuple(pairs[i] for i in chosen)


def noise_added(drawn: tuple[Attributes, ...], domain: Domain, rho: float) -> dict[Attributes, float]:
    """Return by how much each further pair raises the expected noise error of all measured pairs, in records.

    InDif less this is what DenseMarg gains by a pair: the error that is avoided less the noise that is added.

    Examples
    --------
    >>> domain = Domain(("a", "b", "c"), (2, 2, 2))
    >>> added = noise_added((("a", "b"),), domain, rho=0.1)
    >>> round(added["a", "c"], 1), round(noise_added((), domain, rho=0.1)["a", "c"], 1)
    (13.0, 7.1)
    """
    weights: dict[Attributes, float] = {
        pair: domain.project(pair).cells ** (2 / 3) for pair in combinations(domain.names, 2)
    }
    weight = sum(weights[pair] for pair in drawn)
    return {pair: ((weight + added) ** 1.5 - weight**1.5) / sqrt(pi * rho) for pair, added in weights.items()}


def combine(
    pairs: tuple[Attributes, ...],
    domain: Domain,
    *,
    gamma: int = PAPER.gamma,
    overlap: int = PAPER.overlap,
) -> tuple[Attributes, ...]:
    """Replace each clique of pairs by one table.

    Cliques of three or more attributes are taken from the largest down. A clique may have at most `gamma`
    cells and share at most `overlap` attributes with earlier cliques. Among cliques of the same size, the
    one with the fewest cells comes first. Ties are broken by the size of the smallest attribute, then of the
    second smallest, and so on, and then by the order of the domain. Pairs inside a taken clique are dropped.
    An `overlap` of at most 2 takes no clique twice: each has three attributes and more.
    The other pairs stay.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 4.2, Algorithm 2. The paper lists all cliques
    first. A complete graph on 30 attributes has 2^30 of them, so this function lists the maximal ones, and
    finds the best part of each.

    Examples
    --------
    >>> domain = Domain(("a", "b", "c", "d"), (2, 2, 2, 2))
    >>> combine((("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")), domain)
    (('a', 'b', 'c'), ('c', 'd'))
    """
    import networkx as nx

    names = {name for pair in pairs for name in pair}
    order = sorted(names, key=lambda name: (domain.size_of[name], domain.axes((name,))))
    index = {name: number for number, name in enumerate(order)}
    # Numbers are in the same order in every process, unlike the hashes of names.
    graph = nx.Graph([(index[a], index[b]) for a, b in pairs])
    cliques = [sorted(clique) for clique in islice(nx.find_cliques(graph), MOST_CLIQUES)]
    sizes = [domain.size_of[name] for name in order]
    taken: list[Attributes] = []
    covered: set[int] = set()
    while clique := _best_part(cliques, sizes, covered, gamma, overlap):
        taken.append(tuple(sorted((order[number] for number in clique), key=domain.names.index)))
        covered.update(clique)
    remaining = [pair for pair in pairs if not any(set(pair) <= set(clique) for clique in taken)]
    return (*taken, *remaining)


def _best_part(
    cliques: Sequence[Sequence[int]], sizes: Sequence[int], covered: set[int], gamma: int, overlap: int
) -> tuple[int, ...]:
    """Return the part of one of the maximal cliques that `combine` takes next, or () if there is none.

    Of each clique the smallest attributes are taken, but no more than `overlap` covered ones, as long as they
    fit. Sets with at most `overlap` covered attributes are a matroid, so this greedy choice has the fewest
    cells for each number of attributes, and the most attributes within `gamma`.
    """
    best: tuple[int, int, tuple[int, ...]] = (0, 0, ())
    for clique in cliques:
        part: list[int] = []
        cells, room = 1, overlap
        for attribute in clique:
            if attribute in covered and not room:
                continue
            if cells * sizes[attribute] > gamma:
                break
            part.append(attribute)
            cells, room = cells * sizes[attribute], room - (attribute in covered)
        if len(part) > 2:
            best = min(best, (-len(part), cells, tuple(part)))
    return best[2]


AVERAGINGS = 100  # most repetitions of averaging and norm-sub
NEGLIGIBLE = 0.01  # records; a negative cell smaller than this ends the repetition


def make_consistent(measurements: tuple[Measurement, ...], total: float) -> tuple[Marginal, ...]:
    """Return non-negative tables with one total that agree on all shared attributes.

    Weighted averages make the tables agree, and norm-sub removes their negative cells, in turn. After the
    last average, cells that are still negative are set to 0, and each table is rescaled to the total. Only
    there do tables stop agreeing exactly: by the sum of the cells that were set to 0, each under `NEGLIGIBLE`
    records if the repetition converged.

    Parameters
    ----------
    measurements : tuple of Measurement
        Over any sets of attributes. One-way tables are treated like all others.
    total : float
        Number of records to which every table sums, above 0.

    Returns
    -------
    tuple of Marginal, one for each measurement, in the same order

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 4.3. The weights are from Qardaji et al.,
    "PriView", SIGMOD 2014, Section 4.4.

    Examples
    --------
    >>> from privsyn.marginals.domain import Domain
    >>> one = Measurement(Marginal(Domain(("a",), (2,)), np.array([7.0, 3.0])), 1.0)
    >>> two = Measurement(Marginal(Domain(("a", "b"), (2, 2)), np.array([[2.0, 2.0], [3.0, 3.0]])), 0.5)
    >>> a, ab = make_consistent((one, two), 10.0)
    >>> a.counts.round(6).tolist(), ab.counts.round(6).tolist()
    ([5.5, 4.5], [[2.75, 2.75], [2.25, 2.25]])
    """
    # All sets of attributes that two tables share, closed under intersection. Small sets come first: an even
    # correction over a larger set does not change a smaller set on which the tables already agree.
    sets = {frozenset[str]()}
    new = {frozenset(a.attributes) & frozenset(b.attributes) for a, b in combinations(measurements, 2)}
    while new - sets:
        sets |= new
        new = {a & b for a, b in combinations(sets, 2)}
    shared = sorted((tuple(sorted(attributes)) for attributes in sets), key=lambda s: (len(s), s))
    weights = {
        attributes: {
            index: 1.0 / max(float(measurement.project(attributes).variance.mean()), TINY_VARIANCE)
            for index, measurement in enumerate(measurements)
            if set(attributes) <= set(measurement.attributes)
        }
        for attributes in shared
    }
    tables = _agree([m.marginal for m in measurements], weights, total)
    for _ in range(AVERAGINGS):
        if min(float(table.counts.min()) for table in tables) > -NEGLIGIBLE:
            break
        tables = [Marginal(table.domain, norm_sub(table.counts, total)) for table in tables]
        tables = _agree(tables, weights, total)
    positive = [np.maximum(table.counts, 0.0) for table in tables]
    return tuple(
        Marginal(table.domain, counts * (total / counts.sum()))
        for table, counts in zip(tables, positive, strict=True)
    )


def _agree(
    tables: list[Marginal], weights: dict[Attributes, dict[int, float]], total: float
) -> list[Marginal]:
    """Make the tables agree exactly by weighted averages over all shared sets; counts may be negative."""
    tables = list(tables)
    for attributes, weight in weights.items():
        projections = {i: tables[i].project(attributes) for i in weight}
        scale = sum(weight.values())
        mean = np.array(total)
        if attributes:
            mean = sum((weight[i] / scale * p.counts for i, p in projections.items()), np.array(0.0))
        for i, projection in projections.items():
            tables[i] = tables[i].spread(Marginal(projection.domain, mean - projection.counts))
    return tables
