"""PrivSyn as published: Zhang et al., USENIX Security 2021, Algorithm 3, without the synthesis.

Stage 2 chooses the pairs of attributes to be measured (DenseMarg). A pair that is left out is assumed to be
independent, and its error is its dependence (InDif). The error of a measured pair is its noise. Pairs are
added greedily while the sum of both errors falls. Attributes that lie in a single pair are left out of GUM
and appended afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import pi

import numpy as np

from privsyn.inference.consistency import combine_one_ways, estimate_total
from privsyn.inference.error_bars import one_way_certainty, table_certainties
from privsyn.inference.fitted import Fitted
from privsyn.inference.problem import Estimate
from privsyn.inference.rare_values import merge_rare
from privsyn.marginals.domain import Attributes, Domain
from privsyn.marginals.graphs import components as connected
from privsyn.marginals.marginal import Marginal
from privsyn.marginals.types import Floats
from privsyn.methods.facts import PublicFacts
from privsyn.methods.paper.consistency import make_consistent
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


@dataclass(frozen=True)
class Peeled:
    """Tables, split into a core for GUM and leaves that can be appended exactly.

    Parameters
    ----------
    core : tuple of Marginal
    leaves : tuple of Marginal over (anchor, leaf)
        In the order of appending: each anchor exists before its leaf.
    """

    core: tuple[Marginal, ...]
    leaves: tuple[Marginal, ...]


def components(names: Attributes, tables: tuple[Marginal, ...]) -> list[Attributes]:
    """Return the sets of attributes that tables connect, each in the order of `names`."""
    parts = connected([*((name,) for name in names), *(table.attributes for table in tables)])
    return [tuple(name for name in names if name in part) for part in parts]


def peel(tables: tuple[Marginal, ...]) -> Peeled:
    """Remove attributes that lie in a single table, if it is a pair, until none is left.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 5.3, "appending".

    Examples
    --------
    A chain a - b - c is peeled to its last attribute, and nothing is left for GUM:

    >>> import numpy as np
    >>> from privsyn.marginals.domain import Domain
    >>> ab = Marginal(Domain(("a", "b"), (1, 1)), np.ones((1, 1)))
    >>> bc = Marginal(Domain(("b", "c"), (1, 1)), np.ones((1, 1)))
    >>> peeled = peel((ab, bc))
    >>> peeled.core, [leaf.attributes for leaf in peeled.leaves]
    ((), [('c', 'b'), ('b', 'a')])
    """
    core = list(tables)
    leaves: list[Marginal] = []
    while leaf := _leaf(core):
        place, anchor, name = leaf
        leaves.append(core.pop(place).project((anchor, name)))
    return Peeled(tuple(core), tuple(reversed(leaves)))


def _leaf(tables: list[Marginal]) -> tuple[int, str, str] | None:
    """Return a pair of which one attribute lies in no other table: (index, anchor, leaf)."""
    for place, table in enumerate(tables):
        if len(table.attributes) == 2:
            others = {name for other in tables if other is not table for name in other.attributes}
            for anchor, name in (table.attributes[::-1], table.attributes):
                if name not in others:
                    return place, anchor, name
    return None


GAMMA = 5000  # most cells of a combined table; the paper's value
OVERLAP = 2  # most attributes that a clique may share with combined ones
SEARCH_STEPS = 100_000  # most steps of the search for one clique, which then takes the best so far


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


def combine(pairs: tuple[Attributes, ...], domain: Domain) -> tuple[Attributes, ...]:
    """Replace each clique of pairs by one table.

    Cliques of three or more attributes are taken from the largest down. A clique may have at most `GAMMA`
    cells and share at most `OVERLAP` attributes with those taken before. Among cliques of the same size, the
    one with the fewest cells comes first. Ties are broken by the size of the smallest attribute, then of the
    second smallest, and so on, and then by the order of the domain. Pairs inside a taken clique are dropped.
    The other pairs stay.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 4.2, Algorithm 2. The paper lists all cliques
    first. A complete graph on 30 attributes has 2^30 of them, so this function searches for the next one to
    take.

    Examples
    --------
    >>> domain = Domain(("a", "b", "c", "d"), (2, 2, 2, 2))
    >>> combine((("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")), domain)
    (('a', 'b', 'c'), ('c', 'd'))
    """
    graph: dict[str, set[str]] = {name: set() for pair in pairs for name in pair}
    for a, b in pairs:
        graph[a].add(b)
        graph[b].add(a)
    taken: list[Attributes] = []
    covered: set[str] = set()
    while clique := _largest_clique(graph, domain, covered):
        taken.append(clique)
        covered.update(clique)
    kept = [pair for pair in pairs if not any(set(pair) <= set(clique) for clique in taken)]
    return (*taken, *kept)


def _largest_clique(graph: Mapping[str, set[str]], domain: Domain, covered: set[str]) -> Attributes:
    """Return the clique that `combine` takes next, or () if there is none."""
    size = dict(zip(domain.names, domain.sizes, strict=True))
    best: Attributes = ()
    least = 0  # number of cells of the best
    steps = 0

    def promising(length: int, cells: int, room: int, candidates: list[str]) -> bool:
        """Return whether the smallest candidates could make a better clique if all were linked."""
        for name in candidates:
            if name in covered and not room:
                continue
            if cells * size[name] > GAMMA:
                break
            length, cells, room = length + 1, cells * size[name], room - (name in covered)
        return length > 2 and (-length, cells) < (-len(best), least)

    def grow(clique: Attributes, cells: int, room: int, candidates: list[str]) -> None:
        nonlocal best, least, steps
        steps += 1
        if len(clique) > 2 and (-len(clique), cells) < (-len(best), least):
            best, least = clique, cells
        for place, name in enumerate(candidates):
            if steps > SEARCH_STEPS or not promising(len(clique), cells, room, candidates[place:]):
                return
            left = room - (name in covered)
            if cells * size[name] <= GAMMA and left >= 0:
                later = [other for other in candidates[place + 1 :] if other in graph[name]]
                grow((*clique, name), cells * size[name], left, later)

    by_size = sorted(graph, key=lambda name: (size[name], domain.axes((name,))))
    grow((), 1, OVERLAP, by_size)
    return tuple(sorted(best, key=lambda name: domain.axes((name,))))
