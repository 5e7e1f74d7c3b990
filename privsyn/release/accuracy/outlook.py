"""Outlook: a verdict in a sentence, and what a release is good for: from released counts, so it is free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from privsyn.errors import plural
from privsyn.inference.consistency import norm_sub
from privsyn.marginals.tolerances import TINY_SHARE
from privsyn.release.accuracy.link_levels import LinkLevel, link_levels
from privsyn.release.accuracy.table_accuracy import TableAccuracy
from privsyn.release.accuracy.verdicts import (
    KEPT_WELL,
    RELATIONSHIPS,
    Relationship,
    error_unseen,
    level_of_relationships,
    signal_of,
)
from privsyn.release.losses.of_table import in_doubt, spoiled
from privsyn.release.losses.rows import one_class_left

if TYPE_CHECKING:
    from privsyn.inference.fitted import Certainty, Fitted
    from privsyn.release.fitted_table import FittedTable
    from privsyn.table.schema.schema import Schema

COLUMNS = (0.04, 0.15)
"""Mean expected errors of single columns below which they are called usable, and rough. See `Outlook.of`."""

TARGET = (5.0, 1.5)
"""Strengths over expected errors of the strongest relationship of the target from which a model of it is said
to work, and perhaps to work. docs/epsilon.md has what models kept of their scores above and below."""

INSIDE = 0.5
"""Expected error inside a group of values that were counted together, for a probability of 1 that two rows
share one. The thresholds and this number were chosen on the tables of experiments/unprepared.py."""


FAR, FAR_ROWS = 2.0, 0.02
"""A column is named if its expected error exceeds noise alone by this factor and this share of rows."""

EPSILONS = (0.1, 0.2, 0.5, 1, 2, 3, 5, 10)
"""Values of epsilon that are suggested."""

POWER = 1.5
"""Errors are divided by less than epsilon is multiplied by: the more budget, the finer the counts."""

COLUMNS_ARE = "usable", "rough", "poor"
RELATIONSHIPS_ARE = "usable", "rough", "no better than independent columns"
A_MODEL = (
    "likely keeps 3/4 of its lead over guessing",
    "may lose half of its lead over guessing",
    "likely fails",
)
"""What a model of the target does if it learns from synthetic rows in place of private ones: see `TARGET`."""

WORDS = "Yes", "Roughly", "No"

THIN = "No, too thin to publish"
"""Where noise hides even single columns: too few rows or persons for the epsilon."""

FEW_NAMED = 3
"""Most columns of a rule that are named."""

MOVED_NAMED = 2
"""Most columns far above the noise that are named."""

NAMED = 5
"""Most columns with many lost cells that are named."""

MANY = 10
"""From this number of columns, fewer are suggested."""


@dataclass(frozen=True)
class Outlook:
    """How good the columns, the relationships and a model of the target are likely to be.

    Parameters
    ----------
    columns : int
        Number of columns that were counted.
    rows : float
        The private estimate of the number of rows.
    epsilon : float
        0 if it is no setting: the counts were measured elsewhere, or the respondents randomised them.
    lost : bool
        Whether values or bounds of a column were not found.
    error : float
        Mean expected total variation of a single column.
    strength : float
        Mean strength of the measured pairs of columns over their mean expected error; 0 if none was measured.
    of_target : float, optional
        The largest strength over expected error of a pair with the target. None if there is no target.
    takes_target : bool
        Whether a target may be named; not for linked rows.
    spoiled : tuple of str
        Columns that cannot be called usable, because many of their cells are lost.
    doubtful : tuple of str
        Columns of which most cells are missing, at a bound of the schema or the first value listed. They are
        usable only if these cells are true, which the owner knows.
    is_noise : bool
        Whether the number of rows is mostly noise.
    pairs, measured, pairs_kept, pairs_kept_well : int
        Number of all pairs of columns, of measured ones, of those that are kept well or roughly, and of those
        that are kept well.
    pair_error : float
        Mean expected error of the measured pairs.
    moved : tuple of str
        Phrases on columns whose expected error is far above that of noise alone, the worst first.
    links : tuple of LinkLevel
        How good the links with each table above and with the row before are.
    uncounted : int
        Number of columns that were not counted, because they follow from others or are generated.
    constant : int
        Number of columns that are the same in all rows of one parent, and were counted with the parents.
    summaries : int
        Number of counted columns that sum up rows below, such as their number. No synthetic table has them.
    weighted_noise : float
        Median of the variance of the noise in a weighted share or mean, over that of the rows. 0 if rows have
        no weights.
    """

    columns: int
    rows: float
    epsilon: float
    lost: bool
    error: float
    strength: float
    of_target: float | None = None
    takes_target: bool = True
    spoiled: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    is_noise: bool = False
    pairs: int = 0
    measured: int = 0
    pairs_kept: int = 0
    pairs_kept_well: int = 0
    pair_error: float = 0.0
    moved: tuple[str, ...] = ()
    links: tuple[LinkLevel, ...] = ()
    uncounted: int = 0
    constant: int = 0
    summaries: int = 0
    weighted_noise: float = 0.0

    @classmethod
    def of(cls, model: FittedTable, target: str | None = None) -> Outlook:
        """Return the outlook of a release; see `Release.outlook`.

        The default is the target that the rows were made for, which the release has. So the command, the page
        and the data sheet give one verdict.

        The error of a column includes what its counts do not show. A column of which nothing was found has
        the error 1. Where several values were counted together, their shares inside the group are unknown:
        the error grows with the probability that two rows share such a group. Where it is not known how a
        column depends on the number of rows of a person, `error_unseen` adds to it. The share of the cells
        that a spoiled column lost is an error too.
        """
        codec, fitted, lost = model.codec, model.fitted, frozenset(model.not_found)
        target = fitted.target if target is None else target
        errors, shares = [], spoiled(model)
        for axis, certainty in enumerate(fitted.certainties[: len(fitted.one_ways)]):
            unseen = error_unseen(fitted, certainty.attributes)
            error = min(certainty.error + error_inside(fitted, axis) + unseen, 1.0)
            column = codec.column_of(*certainty.attributes)
            errors.append(1.0 if column in lost else max(error, shares.get(column, 0.0)))
        error = float(np.mean(errors)) if errors else 0.0
        pairs = pairs_of(model)
        error_of_pairs = sum(pair.error_with_chance + error_unseen(fitted, pair.columns) for pair in pairs)
        of_target = None
        if target is not None and target in codec.schema.coded:
            ratios = [
                pair.strength_beyond_chance / max(pair.error_with_chance, TINY_SHARE)
                for pair in pairs
                if target in map(codec.column_of, pair.columns)
            ]
            of_target = 0.0 if one_class_left(model, target) else max(ratios, default=0.0)
        counted = set(map(codec.column_of, codec.domain))
        decided = [
            pair.how_kept
            for pair in pairs
            if pair.is_decided and lost.isdisjoint(map(codec.column_of, pair.columns))
        ]
        return cls(
            columns=len(counted),
            rows=fitted.total,
            epsilon=0.0 if model.ledger.local else model.ledger.promised_epsilon,
            lost=bool(lost),
            error=error,
            strength=sum(pair.strength_beyond_chance for pair in pairs) / max(error_of_pairs, TINY_SHARE),
            of_target=of_target,
            spoiled=tuple(name for name in shares if name not in lost),
            doubtful=tuple(name for name in in_doubt(model) if name not in lost),
            takes_target=not model.name and model.links is None,
            is_noise=model.is_mostly_noise,
            pairs=comb(len(codec.domain), 2),
            measured=len(pairs),
            pairs_kept=len(decided),
            pairs_kept_well=decided.count(KEPT_WELL),
            pair_error=error_of_pairs / max(len(pairs), 1),
            moved=moved_columns(model),
            uncounted=len({*(model.columns or codec.names)} - counted - {*model.constant}),
            constant=len(model.constant),
            summaries=len(model.unpublished),
            links=link_levels(model, error),
            weighted_noise=0.0 if codec.schema.weight is None else noise_of_weighted(model),
        )

    @property
    def level_of_columns(self) -> int:
        """0 if single columns are usable, 1 if they are rough, 2 if they are poor."""
        if self.is_noise:
            return 2
        return max(level_of_column(self.error), int(bool(self.spoiled or self.doubtful)))

    @property
    def level_of_relationships(self) -> int:
        """0 if relationships are usable, 1 if they are rough, 2 if independent columns are as good.

        They are, too, if no pair is kept.
        """
        none_kept = 0 if self.pairs_kept or not self.pairs else 1 if self.links else 2
        return level_of_relationships(self.strength, level_if_none_is_kept=none_kept, **self._noise)

    @property
    def _noise(self) -> dict[str, float]:
        """What hides relationships: the share of measured pairs, and the errors of pairs and columns."""
        share = self.measured / self.pairs if self.pairs else 1.0
        return {"measured": share, "error": self.pair_error, "error_of_columns": self.error}

    @property
    def worst_level(self) -> int:
        """The worst of the levels of relationships and links."""
        return max([self.level_of_relationships, *(link.level for link in self.links)])

    @property
    def links_are(self) -> list[str]:
        """How good the links with each table above and with the row before are, in words."""
        levels = map(self._with_columns, (link.level for link in self.links))
        return [
            f"links to {link.partner} are {RELATIONSHIPS_ARE[level]}"
            for link, level in zip(self.links, levels, strict=True)
        ]

    def _with_columns(self, level: int) -> int:
        """Return the level of relationships in words: where single columns are rough, at most rough."""
        return max(level, min(self.level_of_columns, 1))

    @property
    def level_of_target(self) -> int:
        """0 if a model of the target likely keeps its score, 1 if it may lose half, 2 if it likely fails."""
        return 0 if self.of_target is None else sum(self.of_target < limit for limit in TARGET)

    @property
    def is_thin(self) -> bool:
        """Whether noise hides even the columns of which values and bounds are known."""
        return self.level_of_columns == 2 and not self.lost

    @property
    def verdict(self) -> str:
        """The first sentence, which can say No; of linked rows, it names each kind of link too."""
        if not self.links or self.level_of_columns == 2:
            return self._verdict
        levels = [(self.level_of_columns, "the column" if self.columns < 2 else "single columns")]
        if self.pairs:
            levels.append((self._with_columns(self.level_of_relationships), "relationships"))
        levels += [(self._with_columns(link.level), f"links to {link.partner}") for link in self.links]
        words = sorted({level for level, _ in levels}, reverse=any(level == 2 for level, _ in levels))
        phrases = [
            f"{WORDS[word].lower()} for {joined([subject for level, subject in levels if level == word])}"
            for word in words
        ]
        phrases[0] = phrases[0][0].upper() + phrases[0][1:]
        numbers = [f"{self._pairs_in_words}{self._well_in_words}"] if self.pairs else []
        numbers += [f"{len(link.pairs_kept):,} of {link.pairs:,} with {link.partner}" for link in self.links]
        return f"{', '.join(phrases)}: {joined(numbers)} are kept."

    @property
    def _pairs_in_words(self) -> str:
        """How many of which pairs are kept. Columns that nobody gets are counted in them too."""
        counted = ""
        if self.summaries:
            summaries = f"{self.summaries} {'is a summary' if self.summaries == 1 else 'are summaries'}"
            counted = f" of {plural(self.columns, 'column')} (of which {summaries} of rows below)"
        return f"{self.pairs_kept:,} of {plural(self.pairs, 'pair')}{counted}"

    @property
    def _well_in_words(self) -> str:
        """How many of the kept pairs are kept well, in parentheses; "" if none is kept."""
        return f" ({self.pairs_kept_well:,} of them well)" if self.pairs_kept else ""

    @property
    def _verdict(self) -> str:
        columns, relationships = self.level_of_columns, self._with_columns(self.level_of_relationships)
        if self.columns < 2:
            return f"{THIN if self.is_thin else WORDS[columns]}: the column is {COLUMNS_ARE[columns]}."
        are = "is" if 1 in (self.pairs_kept, self.pairs) else "are"
        pairs = f"{self._pairs_in_words} {are} kept{self._well_in_words}"
        if columns == 2:
            return f"{THIN if self.is_thin else 'No'}: single columns are poor, and {pairs}."
        of_model = "" if self.of_target is None else WORDS[self.level_of_target]
        if relationships == 2:
            if of_model and self.level_of_target < 2:
                return f"{of_model} for a model of the target, no for other relationships: {pairs}."
            return f"No for relationships: {pairs}; use the columns one at a time."
        strong = "strong " if columns == 0 and self.columns > 2 else ""
        if columns == relationships and of_model == WORDS[columns]:
            return f"{of_model}, for columns, {strong}relationships and a model of the target: {pairs}."
        of_model = f", {of_model.lower()} for a model of the target" if of_model else ""
        if columns == relationships:
            return f"{WORDS[columns]}, for columns and {strong}relationships{of_model}: {pairs}."
        words = WORDS[relationships].lower()
        return f"{WORDS[columns]} for single columns, {words} for relationships{of_model}: {pairs}."

    def __str__(self) -> str:
        return f"{self.verdict} {self.detail}"

    @property
    def detail(self) -> str:
        """What follows the verdict: how good columns and relationships are, and what may help."""
        shape = plural(self.columns + self.constant, "column") + (
            f" counted, {self.uncounted} not," if self.uncounted else ""
        )
        shape += f" at epsilon {self.epsilon:g}" if self.epsilon else ""
        columns, relationships = self.level_of_columns, self._with_columns(self.level_of_relationships)
        # The mean strength over the mean error decides, and weak pairs may be lost where it is good.
        is_strong = self.level_of_relationships == 0 and self.columns > 2
        which = "strong relationships" if is_strong else "relationships"
        if self.columns < 2:
            parts = [f"the column is {COLUMNS_ARE[columns]}"]
        elif columns == relationships < 2:
            parts = [f"single columns and {which} are {COLUMNS_ARE[columns]}"]
        else:
            parts = [
                f"single columns are {COLUMNS_ARE[columns]}",
                f"{which} are {RELATIONSHIPS_ARE[relationships]}",
            ]
        if self.spoiled:
            parts.append(f"many cells of {_listed(self.spoiled)} are lost")
        if self.doubtful:
            parts.append(
                f"most cells of {_listed(self.doubtful)} are missing, at a bound or one value, which the"
                " schema may cause"
            )
        parts += self.links_are
        if links_kept := [phrase for link in self.links for phrase in link.pairs_kept]:
            parts.append(f"kept links are {_listed(links_kept)}")
        if self.of_target is not None:
            parts.append(f"a model of the target {A_MODEL[self.level_of_target]}")
        if self.weighted_noise:
            parts.append(f"weighted shares have {self.weighted_noise:.1f} times the noise of those of rows")
        parts += self.moved[:MOVED_NAMED]
        *more, last = self._help() or [""]
        advice = f"; {', '.join(more)}{' or ' if more else ''}{last} may help" if last else ""
        rows = f"{plural(self.rows, 'row')}{', which are mostly noise' if self.is_noise else ''}"
        return f"{shape} on about {rows}: {', '.join(parts)}{advice}"

    def _help(self) -> list[str]:
        """Return what would make a result better that is not usable."""
        weak = self.columns > 1 and self.level_of_relationships > 0
        level = level_of_column(self.error) or int(bool(self.spoiled))  # no budget helps against doubts
        if not (level or weak or self.level_of_target):
            return []
        advice = ["a schema that fits"] if self.spoiled else ["a schema"] if self.lost else []
        if self.columns >= MANY:
            advice.append("fewer columns")
        if weak and self.columns > 2 and self.of_target is None:
            advice += ["a target", "important pairs"] if self.takes_target else []
        if self.epsilon:
            for_columns, for_relationships = self.error / COLUMNS[level - 1] if level else 1.0, 1.0
            if weak:
                worst = self.level_of_relationships == 2
                signal = signal_of(self.strength, **self._noise) if worst else self.strength
                for_relationships = RELATIONSHIPS[self.level_of_relationships - 1] / max(signal, TINY_SHARE)
            lacking = max(for_columns, for_relationships)
            enough = next((e for e in EPSILONS if e > self.epsilon and e >= self.epsilon * lacking**POWER), 0)
            advice.append(f"epsilon {enough:g}" if enough else "more rows")
        return advice


def noise_of_weighted(model: FittedTable) -> float:
    """Return the median factor of the noise in weighted shares and means; 0 if none has an interval."""
    weighted = TableAccuracy(model).weighted
    factors = weighted.loc[weighted["covered"], "noise"].dropna()
    return float(factors.median()) if len(factors) else 0.0


def joined(phrases: Sequence[str]) -> str:
    """Return phrases as a list in a sentence.

    >>> joined(["single columns"]), joined(["a", "b", "c"])
    ('single columns', 'a, b and c')
    """
    *first, last = phrases
    return f"{', '.join(first)} and {last}" if first else last


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are.

    >>> _listed(["age"]), _listed(["age", "pay", "job", "town", "sex", "name"])
    ('age', 'age, pay, job, town, sex and 1 more')
    """
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def pairs_of(model: FittedTable) -> list[Relationship]:
    """Return the relationships of the measured pairs of columns."""
    measured = model.fitted.measured_marginals
    return [Relationship.of(*pair) for pair in measured if len(pair[0].attributes) == 2]


def noise_alone(certainty: Certainty, total: float) -> float:
    """Return the expected error of a one-way table if nothing but noise moved its counts."""
    return certainty.distance(norm_sub(certainty.measured.marginal.counts, total))


def moved_columns(model: FittedTable) -> tuple[str, ...]:
    """Return a phrase on each column whose expected error is far above that of noise alone."""
    fitted, errors = model.fitted, dict[str, tuple[float, float]]()
    for certainty in fitted.certainties[: len(fitted.one_ways)]:
        column = model.codec.column_of(*certainty.attributes)
        if column not in model.not_found:
            errors[column] = certainty.error, noise_alone(certainty, fitted.total)
    return far_above_noise(model.codec.schema, errors)


def far_above_noise(schema: Schema, errors: Mapping[str, tuple[float, float]]) -> tuple[str, ...]:
    """Return a phrase on each column whose error is far above that of noise alone, the worst first.

    Parameters
    ----------
    schema : Schema
    errors : mapping of a column to its error, and the error of noise alone
    """
    phrases = []
    for column, (error, noise) in errors.items():
        if error <= max(FAR * noise, noise + FAR_ROWS):
            continue
        rules = [rule.columns for rule in schema.constraints if column in rule.columns]
        cause = ": rules move it" if rules else ""
        if len(rules) == 1:
            cause = f": the rule on {' and '.join(rules[0][:FEW_NAMED])} moves it"
        phrases.append((error, f"{column}: {error:.0%} off, noise alone {noise:.0%}{cause}"))
    return tuple(phrase for _, phrase in sorted(phrases, reverse=True))


def level_of_column(error: float) -> int:
    """Return 0 if a column with this expected error is usable, 1 if it is rough, 2 if it is poor."""
    return sum(error >= limit for limit in COLUMNS)


def error_inside(fitted: Fitted, axis: int) -> float:
    """Return the expected error of an attribute inside groups of values that were counted together."""
    group, share = fitted.merging.groups[axis], fitted.merging.shares[axis]
    counts = fitted.one_ways[axis].counts
    unknown = 1 - np.bincount(group, share**2)  # 0 where one value has all rows of its group
    weights = counts / max(counts.sum(), 1.0)
    return INSIDE * float((weights**2 * unknown).sum())
