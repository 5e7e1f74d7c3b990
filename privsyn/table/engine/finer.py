"""Count several tables in one scan: the engine adds them up from a finer table, which stays there.

A scan costs the engine more than the cells do, as long as they fit in a processor's cache: 10,000,000 rows in
2^10 cells take DuckDB 0.055 s, and 2^17 cells 0.105 s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import log2, prod

from privsyn.marginals.domain import Attributes, Domain
from privsyn.table.engine.sqlglot_later import exp

BLOCK = 500
"""Tables among which those that share a scan are looked for: the time for this grows with their square."""


def coverings(
    sets: Sequence[Attributes], size_of: Mapping[str, int], finest: int, limit: int
) -> Iterator[tuple[Attributes, list[int]]]:
    """Yield the attributes of finer tables, each with the indices of the sets that it covers.

    A finer table begins with the largest set that is left. Then it gets the attribute that covers the most
    further sets, for the factor by which its cells grow, as long as there are at most `finest`.

    Parameters
    ----------
    sets : sequence of attributes
    size_of : mapping of an attribute to its number of values
    finest : int
        Cells of a finer table, unless one set has more.
    limit : int
        Sets that a finer table covers.

    Examples
    --------
    >>> sets = [("a", "b"), ("a", "c"), ("b", "c"), ("a", "d")]
    >>> list(coverings(sets, {"a": 2, "b": 3, "c": 4, "d": 50}, finest=100, limit=64))
    [(('a', 'd'), [3]), (('b', 'c', 'a'), [0, 1, 2])]
    """
    for start in range(0, len(sets), BLOCK):
        cells = {
            index: prod(size_of[name] for name in sets[index])
            for index in range(start, min(start + BLOCK, len(sets)))
        }
        uncovered = {
            index: frozenset(sets[index]) for index in sorted(cells, key=lambda index: -cells[index])
        }
        while uncovered:
            first = next(iter(uncovered))
            names, size = list(sets[first]), cells[first]
            while True:
                missing = (attributes.difference(names) for attributes in uncovered.values())
                gains = Counter(name for (name, *more) in filter(None, missing) if not more)
                fitting = [name for name in gains if size * size_of[name] <= finest]
                if not fitting:
                    break
                best = max(fitting, key=lambda name: (gains[name] / log2(1 + size_of[name]), name))
                names.append(best)
                size *= size_of[best]
            covered = sorted(
                [index for index, attributes in uncovered.items() if attributes <= {*names}][:limit]
            )
            yield tuple(names), covered
            for index in covered:
                del uncovered[index]


def margin(finer: Domain, attributes: Attributes) -> exp.Expr:
    """Return the cell of a coarser table, from the column `cell` of a finer one.

    >>> margin(Domain(("a", "b", "c"), (2, 3, 4)), ("c", "a")).sql()
    '(cell % 4) * 2 + CAST((cell - cell % 12) / 12 AS INT)'
    """
    digits = []
    for name in attributes:
        number = finer.names.index(name)
        below, size = prod(finer.sizes[number + 1 :]), finer.sizes[number]
        digit: exp.Expr = exp.column("cell")
        if number:
            digit = exp.Mod(this=digit, expression=exp.convert(below * size))
        if below > 1:  # the division is exact, also where it is one of doubles
            rest = exp.Mod(this=exp.column("cell"), expression=exp.convert(below))
            exact = exp.paren(exp.Sub(this=digit, expression=rest))
            digit = exp.cast(
                exp.Div(this=exact, expression=exp.convert(below), typed=False, safe=False), "int"
            )
        digits.append(digit)
    return position(digits, [finer.size_of[name] for name in attributes])


def position(digits: Sequence[exp.Expr], sizes: Sequence[int]) -> exp.Expr:
    """Return the position of a cell in a table, from those along each axis. The last one changes fastest.

    >>> from sqlglot import column
    >>> position([column("a"), column("b"), column("c")], [5, 6, 7]).sql()
    '((a) * 6 + b) * 7 + c'
    """
    cell: exp.Expr | None = None
    for digit, size in zip(digits, sizes, strict=True):
        before = None if cell is None else exp.Mul(this=exp.paren(cell), expression=exp.convert(size))
        cell = digit if before is None else exp.Add(this=before, expression=digit)
    return exp.convert(0) if cell is None else cell
