"""Stage 2, second half: chosen pairs that form a small clique are measured as one table."""

from __future__ import annotations

import networkx as nx

from privsyn.answers.domain import Attributes, Domain

GAMMA = 5000  # most cells of a combined table; the paper's value
OVERLAP = 2  # most attributes that a clique may share with those already combined
SEARCH_STEPS = (
    100_000  # of the search for one clique; in a graph too dense for more, the best so far is taken
)


def combine(pairs: tuple[Attributes, ...], domain: Domain) -> tuple[Attributes, ...]:
    """Replace cliques of pairs by one table each.

    Cliques of three or more attributes are taken from the largest down, small tables first, if they
    have at most `GAMMA` cells and share at most `OVERLAP` attributes with all that were taken before.
    Pairs inside a taken clique are dropped, the others stay.

    References
    ----------
    Zhang et al., "PrivSyn", USENIX Security 2021, Section 4.2, Algorithm 2. The paper lists all cliques
    first; a complete graph on 30 attributes has 2^30, so here the next one to take is searched for.

    Examples
    --------
    >>> domain = Domain(("a", "b", "c", "d"), (2, 2, 2, 2))
    >>> combine((("a", "b"), ("b", "c"), ("a", "c"), ("c", "d")), domain)
    (('a', 'b', 'c'), ('c', 'd'))
    """
    graph: nx.Graph[str] = nx.Graph()
    graph.add_edges_from((a, b) for a, b in pairs)
    taken: list[Attributes] = []
    covered: set[str] = set()
    while clique := _largest_clique(graph, domain, covered):
        taken.append(clique)
        covered.update(clique)
    kept = [pair for pair in pairs if not any(set(pair) <= set(clique) for clique in taken)]
    return (*taken, *kept)


def _largest_clique(graph: nx.Graph[str], domain: Domain, covered: set[str]) -> Attributes:
    """The clique that `combine` takes next: most attributes, then fewest cells; () if there is none."""
    size = dict(zip(domain.names, domain.sizes, strict=True))
    best: Attributes = ()
    steps = 0

    def fitting(cells: int, names: list[str]) -> int:
        """How many of the names could join before the table is too large: a bound on the growth."""
        count = 0
        for factor in sorted(size[name] for name in names):
            cells *= factor
            count += cells <= GAMMA
        return count

    def grow(clique: Attributes, cells: int, candidates: list[str]) -> None:
        nonlocal best, steps
        steps += 1
        if len(clique) > 2 and (-len(clique), cells) < (-len(best), domain.project(best).cells):
            best = clique
        for place, name in enumerate(candidates):
            reach = len(clique) + fitting(cells, candidates[place:])
            # Ties in size are searched only while they could still have fewer cells.
            tied = reach == len(best) and cells >= domain.project(best).cells
            if steps > SEARCH_STEPS or reach < max(len(best), 3) or tied:
                return
            too_near = name in covered and len(covered.intersection(clique)) == OVERLAP
            if cells * size[name] <= GAMMA and not too_near:
                later = [other for other in candidates[place + 1 :] if graph.has_edge(name, other)]
                grow((*clique, name), cells * size[name], later)

    by_size = sorted(graph, key=lambda name: (size[name], domain.axes((name,))))
    grow((), 1, by_size)
    return tuple(sorted(best, key=lambda name: domain.axes((name,))))
