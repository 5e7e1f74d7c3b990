"""What to expect of a run: the errors of each table, and which links between rows are kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import comb, inf, nan
from types import MappingProxyType

import numpy as np

from privsyn.studies.planning.counted_table import STRONG, USUAL_DEPENDENCE, USUAL_LINK, WEAK, CountedTable
from privsyn.table.database.database import ROWS

COLUMN, PAIR, NUMBER, PARENT, NEXT = "column", "pair", "children", "parent_child", "next"
"""Kinds of tables of counts."""

LINKS = {
    NUMBER: "how many rows a row of {} has",
    PARENT: "how they depend on the row of {}",
    NEXT: "how a row depends on the one before it",
}
"""The links of a child table in words; of the name of its parent."""

LOST_IF_KEPT, LOST_IN_PART = 0.5, 0.8
"""Largest error over that without the link of a link that is kept, and of one that is kept in part."""

STEP, LARGEST = 1.25, 100.0
"""Factor between the values of epsilon that are tried, and the largest."""

# Seconds on one core of 2025, and bytes, fitted to tables of 6,000 to 49,000 rows.
START, A_PAIR, A_CELL = 0.7, 0.5e-6, 2.5e-6  # s; a pair and row of the fit; a cell of the synthetic table
PROGRAM, A_ROW = 250e6, 80.0  # bytes; a cell of the table


@dataclass(frozen=True)
class TableExpectation:
    """What to expect of one table.

    Parameters
    ----------
    name : str
    parent : str or None
    rows : float
        Expected number of rows.
    columns : int
        Number of counted columns.
    share : float
        What the table gets of the budget.
    bound : int
        On what a person adds to a table of counts.
    parts : mapping of a question to its share of the table's budget
    count_noise : float
        Standard deviation of the noise in a one-way count, from all measurements combined, in rows.
    pair_cost : float
        Budget of one pair, if all are measured, for one row; 0 if there is none.
    errors : mapping of str to float
        Mean expected total variation of single columns, of pairs of columns, of pairs with a column of the
        parent and of the next row, and of the number of rows of a parent, alone and with each column of the
        parent. Kinds of tables of counts that the table does not have are left out.
    pair_range : pair of float
        The error of pairs if all columns depend weakly, and if all depend strongly. NaN without pairs.
    important : mapping of a set of columns to its expected error
        The columns that matter most together; see `in_words`.
    compared : mapping of str to float
        Mean errors of columns and of pairs that `evaluate` is expected to find; see
        `CountedTable.compared_error`.
    largest : float
        Largest expected total variation of a single column; NaN without columns.
    """

    name: str
    parent: str | None
    rows: float
    columns: int
    share: float
    bound: int
    parts: Mapping[str, float]
    count_noise: float
    pair_cost: float
    errors: Mapping[str, float]
    pair_range: tuple[float, float] = (nan, nan)
    important: Mapping[str, float] = field(default_factory=dict)
    compared: Mapping[str, float] = field(default_factory=dict)
    largest: float = nan

    def lost(self, link: str) -> float:
        """Return the error of a link over the error without it."""
        return self.errors[link] / USUAL_LINK

    @property
    def links(self) -> list[str]:
        """The links of the table."""
        return [link for link in (NUMBER, PARENT, NEXT) if link in self.errors]


@dataclass(frozen=True)
class Expectation:
    """What to expect of a run with this number of rows.

    Parameters
    ----------
    rows : int
        Of the table without a parent.
    tables : tuple of TableExpectation
        Each after its parent.
    enough : mapping of a table and a link to an epsilon
        The smallest epsilon tried with which the link is kept; infinite if there is none. Links that are kept
        are left out.
    """

    rows: int
    tables: tuple[TableExpectation, ...]
    enough: Mapping[tuple[str, str], float] = field(default_factory=dict)

    @property
    def root(self) -> TableExpectation:
        """What to expect of the table without a parent."""
        return self.tables[0]

    @property
    def one_way_error(self) -> float:
        """The mean expected total variation of single columns of the first table."""
        return self.root.errors.get(COLUMN, nan)

    @property
    def pair_error(self) -> float:
        """The mean expected total variation of pairs of columns of the first table; NaN without pairs."""
        return self.root.errors.get(PAIR, nan)

    @property
    def error(self) -> float:
        """The error of two columns, or of one if there are no two."""
        return self.root.errors.get(PAIR, self.one_way_error)

    def is_no_worse_than(self, rival: Expectation) -> bool:
        """Return whether no mean error of the first table is larger, nor one that `evaluate` may find.

        Noise that hides less of the pairs may hide more of single columns.
        """
        return all(
            error <= rival_errors[kind]
            for errors, rival_errors in (
                (self.root.errors, rival.root.errors),
                (self.root.compared, rival.root.compared),
            )
            for kind, error in errors.items()
        )

    @property
    def seconds(self) -> float:
        """The expected time of fit and sample."""
        pairs = sum(table.rows * comb(table.columns, 2) for table in self.tables)
        return START + A_PAIR * pairs + A_CELL * self._cells

    @property
    def memory(self) -> float:
        """The expected memory in bytes."""
        return PROGRAM + A_ROW * self._cells

    @property
    def _cells(self) -> float:
        return sum(table.rows * table.columns for table in self.tables)

    @property
    def ranges(self) -> Iterator[str]:
        """The range of the error of pairs of each table that has any."""
        for table in self.tables:
            if PAIR in table.errors:
                low, high = table.pair_range
                yield f"{table.name}: two columns {low:.1%} if they depend weakly, {high:.1%} if strongly"

    @property
    def sentences(self) -> Iterator[str]:
        """What is kept of each child table, what not, and with which epsilon it would be."""
        for table in self.tables[1:]:
            by_verdict: dict[str, list[str]] = {"kept": [], "in part": [], "lost": []}
            for link in table.links:
                words, lost = LINKS[link].format(table.parent), table.lost(link)
                verdict = "kept" if lost <= LOST_IF_KEPT else "in part" if lost <= LOST_IN_PART else "lost"
                if (enough := self.enough.get((table.name, link))) is not None:
                    words += (
                        f" (no epsilon up to {LARGEST:g} keeps it)"
                        if enough == inf
                        else f" (kept from epsilon {enough:.2g} on)"
                    )
                by_verdict[verdict].append(words)
            phrases = [f"{verdict}: {', '.join(words)}" for verdict, words in by_verdict.items() if words]
            if phrases:
                yield f"{table.name}: {'; '.join(phrases)}"


def expected_of(
    table: CountedTable,
    columns: Sequence[str],
    links: Mapping[str, Sequence[float]] = MappingProxyType({}),
    important: Mapping[str, float] = MappingProxyType({}),
    *,
    rows: float,
) -> TableExpectation:
    """Return what to expect of some columns of a table, and of its links.

    Parameters
    ----------
    table : CountedTable
    columns : sequence of str
    links : mapping of a kind of link, such as `PARENT`, to the expected errors of its pairs
    important : mapping of a set of columns to its expected error
    rows : float
        Expected number of rows.
    """
    pairs = [*combinations(columns, 2)]
    weak, usual, strong = (
        [table.error(pair, dependence) for pair in pairs] for dependence in (WEAK, USUAL_DEPENDENCE, STRONG)
    )
    errors = {COLUMN: [table.one_way_errors[name] for name in columns], PAIR: usual, **links}
    means = {kind: float(np.mean(values)) for kind, values in errors.items() if values}
    compared = {COLUMN: [table.compared_error((name,)) for name in columns]}
    compared[PAIR] = [table.compared_error(pair) for pair in pairs]
    pair_range = (float(np.mean(weak)), float(np.mean(strong))) if pairs else (nan, nan)
    noise = float(np.mean([table.sigmas[name] for name in table.sizes]))
    cost = table.pair_costs[1] if pairs else 0.0
    return TableExpectation(
        name=ROWS,
        parent=None,
        rows=rows,
        columns=len(table.sizes),
        share=1.0,
        bound=table.bound,
        parts=table.parts,
        count_noise=noise,
        pair_cost=cost,
        errors=means,
        pair_range=pair_range,
        important=important,
        compared={kind: float(np.mean(values)) for kind, values in compared.items() if values},
        largest=max(errors[COLUMN], default=nan),
    )
