"""Scores: what a comparison found, each number beside its yardsticks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np

from privsyn.errors import printable
from privsyn.evaluation.marginals import PairErrors
from privsyn.marginals.domain import Attributes

NOT_PRIVATE = "THIS COMPARISON READS THE REAL TABLE. IT IS NOT PRIVATE: KEEP IT WITH THE REAL TABLE."

DIAGNOSTIC = "diagnostic, not privacy"

STANDARD_ERRORS = 2
"""A model that does better on synthetic rows than on real ones by more than this many is not believed."""


@dataclass(frozen=True)
class Score:
    """One number of the synthetic table, beside the same number of tables one knows what to think of.

    Parameters
    ----------
    synthetic : float
        Of the synthetic table.
    real : float
        Of as many real rows drawn afresh, with replacement; for a model, of one that learnt from real rows.
        No table of that size can be expected to do better.
    held_out : float
        Of real rows held out, against the rest: two samples of the same people.
    independent : float
        Of a table whose columns are right one by one and have nothing to do with each other; for a model, of
        a guess that looks at no other column.

    standard_error : float
        Of `synthetic` - `real` by the choice of the test rows, for the AUC and R2 of a model.

    NaN where a yardstick makes no sense.
    """

    synthetic: float
    real: float = nan
    held_out: float = nan
    independent: float = nan
    standard_error: float = nan

    @property
    def is_upside_down(self) -> bool:
        """Whether a model scores lower by more than chance when it learns from real rows."""
        return self.synthetic - self.real > STANDARD_ERRORS * self.standard_error


class Origin(NamedTuple):
    """The mean error of some pairs of columns after some stage of the making."""

    title: str
    pairs: int
    error: float


TITLES = {
    "one_way_mean": "one column, mean error",
    "one_way_max": "one column, largest",
    "pair_mean": "two columns, mean error",
    "pair_max": "two columns, largest",
    "triple_mean": "three columns, mean error",
    "triple_max": "three columns, largest",
    "query_mean": "range queries, mean error",
    "query_max": "range queries, largest",
    "wasserstein_mean": "numbers moved, mean",
    "wasserstein_max": "numbers moved, largest",
    "cramers_v_mean": "Cramér's V, mean difference",
    "cramers_v_max": "Cramér's V, largest",
    "spearman_mean": "Spearman, mean difference",
    "spearman_max": "Spearman, largest",
    "missing_patterns": "patterns of missing cells",
    "rare_covered": "rare values that occur",
    "unseen": "cells of values never seen",
    "distinct_rows": "distinct rows",
    "propensity": "told from real rows, AUC",
    "propensity_of_numbers": "the same, numbers not in bins",
    "identical_rows": f"rows equal to a real one ({DIAGNOSTIC})",
    "nearest_row": f"columns to nearest row ({DIAGNOSTIC})",
}
"""Every number of `Scores`, in words and in the order in which one looks at them."""


@dataclass(frozen=True)
class Scores:
    """How far a synthetic table is from the real one. It read the real one: NOT PRIVATE.

    Errors of tables are total variation: the share of rows that would have to move.

    Parameters
    ----------
    real_rows, synthetic_rows, test_rows : int
    columns, left_out : tuple of str
        Those compared; those that are not because they are called like identifiers.
    target : str or None
    one_way_mean, one_way_max : Score
        Error of the columns' shares.
    pair_mean, pair_max : Score
        Error of tables of two columns: all of them, or a fixed sample of 1,000.
    triple_mean, triple_max : Score
        Error of tables of three columns, over a fixed sample of 100.
    query_mean, query_max : Score
        Error of the share of rows that 1,000 fixed queries on three columns pick out.
    wasserstein_mean, wasserstein_max : Score
        How far numbers would have to be moved, in standard deviations of the real ones, over columns.
    cramers_v_mean, cramers_v_max, spearman_mean, spearman_max : Score
        Difference of the association of pairs.
    missing_patterns : Score
        Error of which cells of a row are missing.
    rare_covered : Score
        Of values that less than 1 % of the real rows have, the share that occurs.
    unseen : Score
        The share of cells with a value that no real row has there.
    distinct_rows : Score
        The share of rows left without copies, in codes; ``real`` is that of the real table itself.
    propensity, propensity_of_numbers : Score
        AUC of a classifier at telling the table from the real one, on numbers in bins and as they are; 0.5
        where it cannot. NaN without models.
    identical_rows, nearest_row : Score
        Diagnostic, not privacy: the share of rows that equal a real one in codes; in how many columns a row
        differs from the real one most like it.
    learning : mapping of str to Score
        Trained on synthetic rows, tried on real ones: ``boosting_auc``, ``linear_accuracy``, and so on.
    worst : mapping of int to tuple
        The ten margins of one, two and three columns with the largest error: columns and error.
    column_errors : mapping of str to mapping
        For each column its error, how far its numbers moved, and the shares missing.
    pairs : PairErrors
        Matrices over the columns: error, Cramér's V and Spearman of both tables.
    """

    real_rows: int
    synthetic_rows: int
    test_rows: int
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    target: str | None
    one_way_mean: Score
    one_way_max: Score
    pair_mean: Score
    pair_max: Score
    triple_mean: Score
    triple_max: Score
    query_mean: Score
    query_max: Score
    wasserstein_mean: Score
    wasserstein_max: Score
    cramers_v_mean: Score
    cramers_v_max: Score
    spearman_mean: Score
    spearman_max: Score
    missing_patterns: Score
    rare_covered: Score
    unseen: Score
    distinct_rows: Score
    propensity: Score
    propensity_of_numbers: Score
    identical_rows: Score
    nearest_row: Score
    learning: Mapping[str, Score]
    worst: Mapping[int, tuple[tuple[Attributes, float], ...]]
    column_errors: Mapping[str, Mapping[str, float]]
    pairs: PairErrors = field(repr=False, compare=False)

    def table(self) -> dict[str, tuple[str, Score]]:
        """Every score that says something, by its plain name: its title in words, and the score."""
        rows = {name: (title, getattr(self, name)) for name, title in TITLES.items()}
        rows |= {name: (_model_title(name, score), score) for name, score in self.learning.items()}
        return {name: row for name, row in rows.items() if not isnan(row[1].synthetic)}

    @property
    def verdict(self) -> str:
        """What to think of it, in a few sentences."""
        pair, sentences = self.pair_mean, []
        if not isnan(self.gap_closed):
            sentences.append(
                f"In tables of two columns it closes {self.gap_closed:.0%} of the gap between columns drawn"
                f" alone ({pair.independent:.1%} of the rows off) and the real rows drawn afresh"
                f" ({pair.real:.1%}): it is off by {pair.synthetic:.1%}."
            )
        elif not isnan(pair.synthetic):
            sentences.append(f"Tables of two columns are off by {pair.synthetic:.1%} of the rows.")
        sentences += self._of_models()
        return " ".join(sentences) or f"The column is off by {self.one_way_mean.synthetic:.1%} of the rows."

    def _of_models(self) -> list[str]:
        """Say how much is learnt, by the model that learns more from real rows; nothing if none was tried."""
        tried = {name: self.learning[name] for name in HEADLINES if name in self.learning}
        tried = {name: score for name, score in tried.items() if not isnan(score.synthetic - score.real)}
        if not tried:
            return []
        name, score = max(tried.items(), key=lambda item: item[1].real)
        model, measure = HEADLINES[name]
        error = score.standard_error
        chance = "" if isnan(error) else f" (standard error of the difference {error:.3f})"
        if score.is_upside_down:
            return [
                f"No verdict on what can be learnt about {self.target}: {model} reaches {measure}"
                f" {score.synthetic:.3f} from synthetic rows and only {score.real:.3f} from real ones, which"
                f" is lower by more than {STANDARD_ERRORS} standard errors{chance}. Try it on test"
                " rows that the synthetic table was not made from, or on another target."
            ]
        return [
            f"To predict {self.target} on real rows, {model} that learnt from it reaches {measure}"
            f" {score.synthetic:.3f}; learnt from real rows, {score.real:.3f}{chance}."
        ]

    @property
    def gap_closed(self) -> float:
        """Of what independent columns get wrong about pairs beyond chance, the share that is right here.

        1 for a table as good as real rows drawn afresh, 0 for one no better than independent columns, NaN
        where the real columns are as good as independent.
        """
        pair = self.pair_mean
        room = pair.independent - pair.real
        if not room > 0.1 * pair.real:
            return nan
        return float(min(1.0, max(0.0, (pair.independent - pair.synthetic) / room)))

    def row(self) -> dict[str, float]:
        """One tidy row for a table of experiments: flat names, a number each; not private."""
        row: dict[str, float] = {"private": False, "real_rows": self.real_rows}
        row["synthetic_rows"] = self.synthetic_rows
        for name, (_, score) in self.table().items():
            row[name] = score.synthetic
            yardsticks = (
                ("real", score.real),
                ("held_out", score.held_out),
                ("independent", score.independent),
                ("standard_error", score.standard_error),
            )
            row |= {f"{name}_{which}": value for which, value in yardsticks if not isnan(value)}
        return row

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data for JSON, None for NaN; it begins by saying that it is not private."""
        return {"warning": NOT_PRIVATE, "verdict": self.verdict} | {
            part.name: _plain(getattr(self, part.name)) for part in fields(self)
        }

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def __str__(self) -> str:
        rows = [(title, *_cells(score)) for title, score in self.table().values()]
        head = ("", "synthetic", "real, afresh", "held out", "independent")
        width = max(len(row[0]) for row in rows)
        worst = [
            f"worst: {' x '.join(attributes)} ({error:.3f})"
            for order in sorted(self.worst)
            for attributes, error in self.worst[order][:1]
        ]
        lines = [
            NOT_PRIVATE,
            f"{self.synthetic_rows:,} synthetic rows against {self.real_rows:,} real ones,"
            f" {self.test_rows:,} held out; {len(self.columns)} columns",
            *told_of(self.left_out),
            *(f"{row[0]:<{width}}" + "".join(f"{cell:>13}" for cell in row[1:]) for row in [head, *rows]),
            *worst,
            self.verdict,
        ]
        return "\n".join(map(printable, lines))


def _cells(score: Score) -> tuple[str, ...]:
    values = score.synthetic, score.real, score.held_out, score.independent
    return tuple("" if isnan(value) else shown_number(value) for value in values)


def told_of(left_out: Sequence[str]) -> list[str]:
    """A line on columns that nobody looked at, if there are any.

    >>> told_of(["customer_id"]), told_of([])
    (['left out, being called like identifiers: customer_id; a schema can say otherwise'], [])
    """
    names = ", ".join(left_out)
    return [f"left out, being called like identifiers: {names}; a schema can say otherwise"] if names else []


def shown_number(value: float) -> str:
    """A number in four decimals, or fewer where it is large.

    >>> shown_number(0.01234), shown_number(41234.5)
    ('0.0123', '41,234')
    """
    return f"{value:.4f}" if abs(value) < 100 else f"{value:,.0f}"


HEADLINES = {
    "boosting_auc": ("gradient boosting", "an AUC of"),
    "linear_auc": ("a linear model", "an AUC of"),
    "boosting_r2": ("gradient boosting", "an R2 of"),
    "linear_r2": ("a linear model", "an R2 of"),
}
"""The scores of models that a verdict may speak of, in words."""


def _model_title(name: str, score: Score) -> str:
    """``boosting_auc`` in words, with a remark if no verdict can rest on it."""
    model, measure = name.split("_", 1)
    words = {"auc": "AUC", "f1": "macro-F1", "r2": "R2", "mean_error": "mean error"}
    title = f"{'gradient boosting' if model == 'boosting' else 'linear model'}, {words.get(measure, measure)}"
    return f"{title} (no verdict)" if score.is_upside_down else title


def _plain(value: Any) -> Any:
    match value:
        case Score() | PairErrors():
            return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
        case np.ndarray():
            return _plain(value.tolist())
        case Mapping():
            return {str(key): _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case float() if isnan(value):
            return None
        case _:
            return value
