"""What is said first of linked tables: whether keys and rules hold, and how alike each table is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan, nan

from privsyn.errors import plural
from privsyn.evaluation.integrity import broken_rules
from privsyn.evaluation.link_metrics import BROKEN, KINDS, by_table
from privsyn.evaluation.linked_comparison import LinkedComparison
from privsyn.evaluation.metric import Score

WITHIN = "within"
"""The score of pairs of columns of one row. `KINDS` has the others."""

ABOUT = (
    "Each number is the mean over all columns, or pairs of them: the share of the counts that would have to",
    "change (0 is perfect, 1 is all). Sums are in standard deviations. Beside it the same number of",
    "  redrawn: as many real {persons}, drawn again with all their rows: the best to expect",
    "  independent: real rows dealt to parents at random, or each column drawn alone: dependence is lost",
)


@dataclass(frozen=True)
class LinkedScores:
    """Whether keys and rules of linked tables hold, and how alike each table is. NOT PRIVATE.

    Parameters
    ----------
    root : str
        The table whose rows are the persons.
    parents : mapping of str to str
        For each child table the table above it.
    dealt : mapping of str to str
        For each table with columns that are dealt the tables that they name, in words.
    rows : mapping of str to (int, int)
        For each table the numbers of rows that belong to somebody, synthetic and real.
    broken : mapping of str to (int, int)
        What must hold, and how often it does not: in the synthetic tables, in the real ones.
    alike : mapping of str to mapping of str to Score
        For each table the mean error of "children", "parent_child", "ancestors", "within", "next", "later",
        "profile", "sums", "named" and "named_cells", of those that it has.
    """

    root: str
    parents: Mapping[str, str]
    dealt: Mapping[str, str]
    rows: Mapping[str, tuple[int, int]]
    broken: Mapping[str, tuple[int, int]]
    alike: Mapping[str, Mapping[str, Score]]

    @classmethod
    def of(cls, linked: LinkedComparison, within: Mapping[str, Score]) -> LinkedScores:
        """Return the summary of a comparison, given the mean error of pairs of each table with columns."""
        database, alike, of_rows = linked.database, {}, by_table(linked)
        for name in database.names:
            scores = dict(of_rows.get(name, {}))
            for kind in {"children", "named"}.intersection(scores):  # rows that are dealt keep these numbers
                scores[kind] = replace(scores[kind], independent=nan)
            scores[WITHIN] = replace(within.get(name, Score(nan)), held_out=nan)
            order = (*[*KINDS][:3], WITHIN, *[*KINDS][3:])
            alike[name] = {kind: scores[kind] for kind in order if kind in scores and scores[kind].is_defined}
        both = linked.sides["synthetic"], linked.truth
        sides = linked.broken["synthetic"], linked.broken["real"]
        broken = {label: (getattr(sides[0], name), getattr(sides[1], name)) for name, label in BROKEN.items()}
        ours = broken_rules(linked.frames["synthetic"], both[0].linked, database)
        real = broken_rules(linked.frames["real"], both[1].linked, database)
        broken |= {rule: (times, real[rule]) for rule, times in ours.items()}
        return cls(
            database.root,
            {name: database.above(name)[0] for name in linked.children},
            {
                name: " or ".join(dict.fromkeys(database.tables[name].dealt.values()))
                for name in linked.dealing
            },
            {name: (both[0].size(name), both[1].size(name)) for name in database.names},
            broken,
            alike,
        )

    @property
    def holds(self) -> str:
        """Return a sentence on what is broken in the synthetic tables."""
        wrong = {label: times for label, (times, _) in self.broken.items() if times}
        if not wrong:
            return f"All {len(self.broken)} hold in the synthetic tables: keys, order and rules, 0 broken."
        worst, rules = max(wrong, key=wrong.__getitem__), plural(len(wrong), "rule")
        return f"BROKEN: {rules} of {len(self.broken)}, most of all {worst} ({wrong[worst]:,})."

    def label(self, table: str, kind: str) -> str:
        """Return what a score of a table compares, in words."""
        up, dealt = self.parents.get(table, ""), self.dealt.get(table, "")
        return {
            "children": f"how many {table} each row of {up} has",
            "parent_child": f"a column of {table} and one of {up}",
            "ancestors": f"a column of {table} and one further up",
            WITHIN: "two columns of one row",
            "next": "a row and the next one",
            "later": "a row and the next but one",
            "profile": f"how many {table} of a row of {up} have a value",
            "sums": f"sum, mean, first, ... over the {table} of a row of {up}",
            "named": f"how many {table} name each row of {dealt}",
            "named_cells": f"a column of {table} and one of the row of {dealt} that it names",
        }[kind]

    def about(self, table: str) -> str:
        """Return a line on a table: what its rows belong to, and how many there are."""
        up = f", rows of {self.parents[table]}" if table in self.parents else ", one row a person"
        return "{}{}: {:,} synthetic, {:,} real".format(table, up, *self.rows[table])

    def lines(self) -> list[str]:
        """Return the summary as text."""
        labels = [
            self.label(name, kind) for name, scores_of_table in self.alike.items() for kind in scores_of_table
        ]
        width = max(map(len, [*self.broken, *labels]))
        heads = "".join(f"{head:>13}" for head in ("synthetic", "redrawn", "independent"))
        lines = [f"{'What must hold: times broken':<{width + 2}}{'synthetic':>13}{'real':>13}"]
        lines += [f"  {label:<{width}}{ours:>13,}{real:>13,}" for label, (ours, real) in self.broken.items()]
        lines += [self.holds, "", *(line.format(persons=self.root) for line in ABOUT)]
        for name, scores in self.alike.items():
            lines += ["", self.about(name)]
            lines += [f"{'':<{width + 2}}{heads}"] if scores else []
            for kind, score in scores.items():
                numbers = (score.synthetic, score.real, score.independent)
                cells = "".join(f"{'' if isnan(number) else f'{number:.4f}':>13}" for number in numbers)
                lines.append(f"  {self.label(name, kind):<{width}}{cells}")
        return lines
