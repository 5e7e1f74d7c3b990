"""Scores: the results of a comparison, each number with its reference values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from io import BytesIO
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np

from privsyn.errors import InputError, plural, printable, replace_errors, safe_repr
from privsyn.evaluation.comparison import LEARNERS, left_out_line, pooled_line
from privsyn.evaluation.link_metrics import SCORES
from privsyn.evaluation.linked_scores import LinkedScores
from privsyn.evaluation.marginals import PairErrors
from privsyn.evaluation.metric import STANDARD_ERRORS, TABLES, Score, legend
from privsyn.evaluation.numbers import METHODS, Correlations
from privsyn.evaluation.predictions import about_determining
from privsyn.evaluation.registry import COLUMN_ERRORS, METRICS, MODELS
from privsyn.marginals.domain import Attributes
from privsyn.notebook import html, html_table

NOT_PRIVATE = "THIS COMPARISON READS THE REAL TABLE. IT IS NOT PRIVATE: KEEP IT WITH THE REAL TABLE."


HEADLINES = {
    f"{model}_{score}": (label if "boosting" in label else f"a {label}", f"an {measure} of")
    for score, measure in (("auc", "AUC"), ("r2", "R2"))
    for model, label in LEARNERS.items()
}
"""The scores of models that a verdict may mention, in words."""


MARKS = {"synthetic": ("o", "#1f5fa8"), "real": ("|", "#222222"), "held_out": ("x", "#888888")}
MARKS["independent"] = ("D", "#c2571a")
"""The marker and the colour of each table."""


class Origin(NamedTuple):
    """The mean error of some pairs of columns after one stage of the algorithm."""

    title: str
    pairs: int
    error: float


@dataclass(frozen=True)
class Scores:
    """How far a synthetic table is from the real one. It reads the real table: NOT PRIVATE.

    Every metric is an attribute: ``scores.pair_mean.synthetic``. `METRICS` lists them. Errors of tables are
    total variation: the share of rows that would have to change.

    Parameters
    ----------
    real_rows, synthetic_rows, test_rows : int
    columns, left_out : tuple of str
        Columns that were compared; columns left out because their names look like identifiers.
    target : str or None
    values : mapping of str to Score
        The score of each metric.
    worst : mapping of int to tuple
        The ten marginals of one, two and three columns with the largest error: columns and error.
    column_errors : mapping of str to mapping
        For each column its error, the shares of missing cells, and the share and the number of the real
        values that the synthetic table pools, which is no part of the error. Of numbers and times also the
        Wasserstein distance, the errors of quantiles, of the 99 % quantile and of the standard deviation.
    pairs : PairErrors
        Matrices over the columns: error, and Cramér's V of both tables.
    correlations : Correlations
        Matrices over the columns: Spearman's and Pearson's correlation of both tables.
    worst_correlations : mapping of str to tuple
        The ten pairs whose Spearman and Pearson correlations have the largest error: columns, real and
        synthetic correlation.
    quantiles : mapping of str to mapping
        For each ordered column its quantiles in the real and in the synthetic table; dates in days since
        1970, other times in their steps.
    classes : tuple of mappings
        For each class of the target its test rows and their share. For each model that learnt from synthetic
        and from real rows: the recall, and the mean predicted probability.
    remarks : tuple of str or None
        What is odd about the test rows that the caller gave; None if a part of the real rows was held out.
    determined_by : tuple of str
        Columns each of which alone determines the target in the real rows.
    leave_out : tuple of str
        Columns from which models did not learn.
    persons : tuple of int
        The number of persons in the real and in the synthetic tables; empty if it is not known which rows
        belong together. Then so are the next two.
    numbers_of_rows : mapping of str to tuple
        For each table whose rows belong to a parent: the shares of the parents that have 0, 1, 2, ..., 25 or
        more rows, in the real and in the synthetic tables.
    worst_of_persons : mapping of str to tuple
        For each score of rows that belong together the ten largest errors: what is off, and the error.
    tables : mapping of str to Scores
        Of a database with columns in several tables, the scores of each. Its other attributes are about rows
        that belong together.
    linked : LinkedScores or None
        Of a database: how often its keys, orders and rules are broken, and how alike each table is.
    """

    real_rows: int
    synthetic_rows: int
    test_rows: int
    columns: tuple[str, ...]
    left_out: tuple[str, ...]
    target: str | None
    values: Mapping[str, Score]
    worst: Mapping[int, tuple[tuple[Attributes, float], ...]]
    column_errors: Mapping[str, Mapping[str, float]]
    pairs: PairErrors = field(repr=False, compare=False)
    correlations: Correlations = field(repr=False, compare=False)
    worst_correlations: Mapping[str, tuple[tuple[Attributes, float, float], ...]] = field(
        default_factory=dict, repr=False
    )
    quantiles: Mapping[str, Mapping[str, tuple[float, float]]] = field(default_factory=dict, repr=False)
    classes: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
    remarks: tuple[str, ...] | None = None
    determined_by: tuple[str, ...] = ()
    leave_out: tuple[str, ...] = ()
    persons: tuple[int, ...] = ()
    numbers_of_rows: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = field(
        default_factory=dict, repr=False
    )
    worst_of_persons: Mapping[str, tuple[tuple[str, float], ...]] = field(default_factory=dict, repr=False)
    tables: Mapping[str, Scores] = field(default_factory=dict, repr=False)
    linked: LinkedScores | None = None

    def __getattr__(self, name: str) -> Score:
        """Return the score of a metric."""
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(f"no metric is called {name!r}") from None

    @property
    def learning(self) -> dict[str, Score]:
        """Return the scores of models that predict the target: ``boosting_auc`` and so on."""
        return {n: score for n, score in self.values.items() if n in MODELS and not isnan(score.synthetic)}

    def table(self) -> dict[str, tuple[str, Score]]:
        """Return the label and the score of each metric that applies, by its name."""
        return {
            name: (METRICS[name].label + (" (no verdict)" if score.is_implausible else ""), score)
            for name, score in self.values.items()
            if not isnan(score.synthetic)
        }

    @property
    def verdict(self) -> str:
        """Return a conclusion in a few sentences."""
        pair, sentences = self.pair_mean, []
        if not isnan(self.gap_closed) and pair.synthetic >= pair.independent:
            sentences.append(
                "In tables of two columns it is no nearer than independent columns:"
                f" {pair.synthetic:.1%} of the rows are off, with independent columns {pair.independent:.1%}."
            )
        elif not isnan(self.gap_closed):
            sentences.append(
                f"In tables of two columns it closes {self.gap_closed:.0%} of the gap between independent"
                f" columns ({pair.independent:.1%} of the rows off) and resampled real rows"
                f" ({pair.real:.1%}): it is off by {pair.synthetic:.1%}."
            )
        elif not isnan(pair.synthetic):
            sentences.append(f"Tables of two columns are off by {pair.synthetic:.1%} of the rows.")
        sentences += [*self._lines_on_persons(), *self._lines_on_models()]
        sentences += [f"Table {name}: {table_scores.verdict}" for name, table_scores in self.tables.items()]
        return " ".join(sentences) or f"The column is off by {self.one_way_mean.synthetic:.1%} of the rows."

    def _lines_on_persons(self) -> list[str]:
        """Say how far the rows of persons are off; return nothing if it is not known whose rows they are."""
        next_row = self.values.get("next_mean")
        if next_row is None or isnan(next_row.synthetic):
            return []
        return [
            f"Of the pairs of a person's row and the next one, {next_row.synthetic:.1%} are off (rows dealt"
            f" to persons at random: {next_row.independent:.1%}; real persons drawn again:"
            f" {next_row.real:.1%})."
        ]

    def _lines_on_models(self) -> list[str]:
        """Judge the model that scores higher if trained on real rows; return nothing without models."""
        models = {name: self.learning[name] for name in HEADLINES if name in self.learning}
        models = {name: score for name, score in models.items() if not isnan(score.real)}
        if not models:
            return []
        name, score = max(models.items(), key=lambda item: item[1].real)
        model, measure = HEADLINES[name]
        error = score.standard_error
        chance = "" if isnan(error) else f" (standard error of the difference {error:.3f})"
        if score.is_implausible:
            return [
                f"No verdict on predicting {self.target}: {model} reaches {measure} {score.synthetic:.3f}"
                f" trained on synthetic rows and only {score.real:.3f} trained on real ones. This is lower"
                f" by more than {STANDARD_ERRORS} standard errors{chance}. Test it on rows that the synthetic"
                " table was not made from, or choose another target."
            ]
        return [
            f"To predict {self.target} on real rows, {model} trained on synthetic rows reaches {measure}"
            f" {score.synthetic:.3f}; trained on real rows, {score.real:.3f}{chance}.",
            *about_determining(self.determined_by, self.target),
        ]

    @property
    def about_rows(self) -> str:
        """Return how many rows each table has."""
        rows = f"{self.synthetic_rows:,} synthetic rows, {self.real_rows:,} real ones"
        held_out = "of these held out" if self.remarks is None else "test rows"
        persons = "; {1:,} synthetic persons, {0:,} real ones".format(*self.persons) if self.persons else ""
        return f"{rows}, {self.test_rows:,} {held_out}{persons}"

    @property
    def notes(self) -> list[str]:
        """Return lines on what was left out or pooled."""
        lines = left_out_line(self.left_out)
        lines += [f"models did not learn from: {', '.join(self.leave_out)}"] if self.leave_out else []
        return lines + pooled_line(self.column_errors)

    @property
    def heads(self) -> tuple[str, ...]:
        """Return the headers of the tables that have a score."""
        test_head = {} if self.remarks is None else {"held_out": "test rows"}
        return tuple((TABLES | test_head).values())

    @property
    def gap_closed(self) -> float:
        """Return the share of the error of independent columns in pairs, beyond chance, that is removed.

        1 for a table as good as resampled real rows, 0 for one no better than independent columns, NaN where
        independent columns are as good as real ones.
        """
        pair = self.pair_mean
        gap = pair.independent - pair.real
        if not gap > 0.1 * pair.real:
            return nan
        return float(min(1.0, max(0.0, (pair.independent - pair.synthetic) / gap)))

    def row(self) -> dict[str, float]:
        """Return one flat row for a table of experiments: a number for each name; not private."""
        row: dict[str, float] = {"private": False, "real_rows": self.real_rows}
        row["synthetic_rows"] = self.synthetic_rows
        for name, (_, score) in self.table().items():
            numbers = vars(score)
            row[name] = score.synthetic
            row |= {f"{name}_{key}": numbers[key] for key in [*numbers][1:] if not isnan(numbers[key])}
        for table, scores in self.tables.items():
            row |= {f"{table}.{name}": number for name, number in scores.row().items() if name != "private"}
        return row

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data for JSON, None for NaN, with a warning that it is not private."""
        scores = {name: score for name, score in self.values.items() if name not in MODELS}
        parts = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "values"}
        plain: dict[str, Any] = _plain(parts | scores | {"learning": self.learning})
        plain["pairs"] |= plain.pop("correlations")
        return {"warning": NOT_PRIVATE, "verdict": self.verdict} | plain

    def to_json(self) -> str:
        """Return `to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False)

    def _repr_html_(self) -> str:
        rows = [(label, *shown(score).values()) for label, score in self.table().values()]
        remarks = [f"test table: {remark}" for remark in self.remarks or ()]
        lines = [NOT_PRIVATE, self.verdict, *remarks, *self.notes]
        return html("Scores", lines, html_table(("", *self.heads), rows))

    def plot(self, names: Sequence[str] = ()) -> Any:
        """Return a plot of scores beside those of the reference tables, as a matplotlib figure: NOT PRIVATE.

        Parameters
        ----------
        names : list of str, optional
            Metrics, as in `METRICS`. Default: the headline metrics, and all scores of models.

        Raises
        ------
        InputError
            If matplotlib is not installed, or there is no such score.
        """
        return plot_scores(self, names)

    def __str__(self) -> str:
        explained = legend(own_test=self.remarks is not None, persons=bool(self.persons))
        first = [] if self.linked is None else [*self.linked.lines(), ""]
        lines = [NOT_PRIVATE, *first, self.verdict, "", *self._lines(explained)]
        for name, table_scores in self.tables.items():
            lines += ["", f"Table {name}", *table_scores._lines()]
        return "\n".join(map(printable, lines))

    def _lines(self, explained: Sequence[str] = ()) -> list[str]:
        """Return lines on what was compared, on the scores and on where they are worst."""
        rows = [(label, *shown(score).values()) for label, score in self.table().values()]
        head = ("", *self.heads)
        width = max(len(row[0]) for row in rows)
        worst = [
            f"worst: {' x '.join(attributes)} ({error:.3f})"
            for order in sorted(self.worst)
            for attributes, error in self.worst[order][:1]
        ]
        worst += [
            f"worst {METHODS[method]}: {' x '.join(pair)} (real {real:.2f}, synthetic {synthetic:.2f})"
            for method, pairs in self.worst_correlations.items()
            for pair, real, synthetic in pairs[:1]
        ]
        for key in WORST_NUMBERS:
            errors = COLUMN_ERRORS[key]
            positive = {
                name: facts[key] for name, facts in self.column_errors.items() if facts.get(key, 0.0) > 0
            }
            if positive:
                name = max(positive, key=positive.__getitem__)
                worst.append(f"worst {errors.label}: {name} ({positive[name]:.2f}, {errors.unit})")
        for score, pairs in self.worst_of_persons.items():
            worst.append(f"worst, {SCORES[score][0]}: {pairs[0][0]} ({pairs[0][1]:.3f})")
        return [
            f"{self.about_rows}; {plural(len(self.columns), 'column')}",
            *(f"test table: {remark}" for remark in self.remarks or ()),
            *self.notes,
            "",
            *explained,
            *(f"{row[0]:<{width}}" + "".join(f"{cell:>13}" for cell in row[1:]) for row in [head, *rows]),
            "",
            *([ABOUT_WORST] if worst else []),
            *worst,
        ]


WORST_NUMBERS = ("tail", "wasserstein", "spread")
"""Errors of single columns of numbers whose worst column is named."""

ABOUT_WORST = "Where it is worst: the columns whose tables have the largest error, as a share of the rows."


def plot_scores(scores: Scores, names: Sequence[str]) -> Any:
    """Return a matplotlib figure with one panel for each metric, and in it one mark for each table."""
    with replace_errors('plot needs matplotlib: run pip install "privsyn[plot]"', ImportError):
        from matplotlib.figure import Figure  # not pyplot: it needs no screen and no global state

    shown_scores = scores.table()
    for name in names:
        if name not in shown_scores:
            raise InputError(f"there is no score {safe_repr(name)}: choose from {', '.join(shown_scores)}")
    chosen = list(names) or [
        name for name in shown_scores if METRICS[name].headline or name in scores.learning
    ]
    chosen = chosen or list(shown_scores)[:1]

    class Plot(Figure):
        def _repr_png_(self) -> bytes:
            self.savefig(png := BytesIO(), format="png", dpi=100)
            return png.getvalue()

    figure = Plot(figsize=(7, 0.7 * len(chosen) + 0.9), layout="constrained")
    panels = figure.subplots(len(chosen), 1, squeeze=False)[:, 0]
    for panel, name in zip(panels, chosen, strict=True):
        label, score = shown_scores[name]
        for table, (marker, colour) in MARKS.items():
            if not isnan(number := getattr(score, table)):
                panel.plot(number, 0, marker, color=colour, ms=8, label=TABLES[table], linestyle="")
        panel.set_yticks([0], [printable(label).replace("$", r"\$")])  # or matplotlib would read a formula
        panel.set_xlabel(METRICS[name].hint, fontsize=7)
        panel.tick_params(labelsize=8)
        panel.margins(x=0.15)
        panel.spines[["top", "right", "left"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=8, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
    figure.suptitle("Not private: made from the real table", fontsize=9)
    return figure


def shown(score: Score) -> dict[str, str]:
    """Return the formatted number of each table, by its label; empty where undefined."""
    return {label: "" if isnan(x) else shown_number(x) for label, x in score.by_table().items()}


def shown_number(value: float) -> str:
    """Return a number with four decimals, or as an integer if it is large.

    >>> shown_number(0.01234), shown_number(41234.5)
    ('0.0123', '41,234')
    """
    return f"{value:.4f}" if abs(value) < 100 else f"{value:,.0f}"


def _plain(value: Any) -> Any:
    match value:
        case Scores():
            return value.to_dict()
        case Score() | PairErrors() | Correlations() | LinkedScores():
            return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
        case np.ndarray():
            return _plain(value.tolist())
        case Mapping():
            return {str(key): _plain(element) for key, element in value.items()}
        case list() | tuple():
            return [_plain(element) for element in value]
        case float() if isnan(value):
            return None
        case _:
            return value
