"""Stage 2, second half: chosen pairs that form a small clique are measured as one table."""

from __future__ import annotations

import networkx as nx

from privsyn.answers.domain import Attributes, Domain

GAMMA = 5000  # most cells of a combined table; the paper's value
OVERLAP = 2  # most attributes that a clique may share with those already combined
SEARCH_STEPS = 100_000  # of the search for one clique; where they do not suffice, the best so far is taken


def combine(pairs: tuple[Attributes, ...], domain: Domain) -> tuple[Attributes, ...]:
    """Replace cliques of pairs by one table each.

    Cliques of three or more attributes are taken from the largest down, if they have at most `GAMMA`
    cells and share at most `OVERLAP` attributes with all that were taken before. Of cliques equally
    large the one of fewest cells comes first; then that whose smallest attribute is smaller, then its
    second, and so on; of attributes equally small, the one that the domain names first. Pairs inside a
    taken clique are dropped, the others stay.

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
    """The clique that `combine` takes next; () if there is none."""
    size = dict(zip(domain.names, domain.sizes, strict=True))
    best: Attributes = ()
    least = 0  # cells of the best
    steps = 0

    def promising(length: int, cells: int, room: int, candidates: list[str]) -> bool:
        """Whether the smallest of the candidates, were they all linked, could still make a better clique."""
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
                later = [other for other in candidates[place + 1 :] if graph.has_edge(name, other)]
                grow((*clique, name), cells * size[name], left, later)

    by_size = sorted(graph, key=lambda name: (size[name], domain.axes((name,))))
    grow((), 1, OVERLAP, by_size)
    return tuple(sorted(best, key=lambda name: domain.axes((name,))))
