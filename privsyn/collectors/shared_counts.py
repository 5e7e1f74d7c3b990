"""Counts of rows of which a collector has its shares alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from privsyn.collectors.field import PRIME
from privsyn.marginals.counting import Ask
from privsyn.marginals.domain import Attributes, Domain, Ints
from privsyn.marginals.marginal import NO_GROUPS, Grouping
from privsyn.private.contribution import ONE_ROW, Bound
from privsyn.private.rows import Rows


@dataclass(frozen=True, eq=False)
class SharedCounts(Rows):
    """Rows of which there are only this collector's shares of the counts of columns and of pairs.

    Sums of shares are shares of sums. So counts in groups of codes are added up like those of rows.

    Parameters
    ----------
    tables : mapping of one or two axes to residues
        Of the original codes.
    """

    tables: Mapping[tuple[int, ...], Ints] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, domain: Domain, tables: Mapping[tuple[int, ...], Ints]) -> SharedCounts:
        """Return the counts of rows of a domain."""
        return cls(domain, _no_walk, inf, tables=tables)

    def count(
        self, sets: Sequence[Attributes], bound: Bound = ONE_ROW, groupings: Sequence[Grouping] = ()
    ) -> Iterator[Ints]:
        """Yield the shares of the counts over each set of one or two attributes, in order."""
        if bound != ONE_ROW:
            raise ValueError("each contributor has one row")
        for attributes, grouping in zip(sets, groupings or (NO_GROUPS,) * len(sets), strict=True):
            axes = tuple(self.domain.names.index(name) for name in attributes)
            if len(axes) > 2:
                raise ValueError("collectors count columns and pairs of columns, no larger sets")
            ordered = tuple(sorted(axes))
            counts = self.grouping.project(ordered).join(self.tables[ordered]) % PRIME
            yield grouping.join(counts if axes == ordered else counts.T) % PRIME


def _no_walk(ask: Ask) -> list[Ints]:
    raise ValueError("no walk over rows in shares")
