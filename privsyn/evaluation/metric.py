"""Metric and Score: how a number is computed from a comparison, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import pandas as pd

from privsyn.evaluation.comparison import Comparison, Result, Results
from privsyn.evaluation.encoding import Coded
from privsyn.marginals.domain import Floats, Records

TABLES = {"synthetic": "synthetic", "real": "real", "held_out": "held out", "independent": "independent"}
"""The tables that have a score, and their labels."""

STANDARD_ERRORS = 2
"""A model that is better on synthetic rows than on real ones by more standard errors is not credible."""

SHARE = "share of rows"

Compared = TypeVar("Compared", bound=Results)
"""A comparison of tables, or of linked tables."""


def legend(*, own_test: bool, persons: bool = False) -> tuple[str, ...]:
    """Return lines that explain the headers of the scores.

    Parameters
    ----------
    own_test : bool
        The caller gave the test rows.
    persons : bool
        It is known which rows belong together.
    """
    of_persons = (
        "For rows that belong together, real draws persons again, each with all rows, and independent deals",
        "the rows to persons at random.",
    )
    return (
        "Each score of the synthetic table stands beside the same score of three other tables. Errors: lower",
        "is better. Models (AUC, accuracy, F1, R2): higher is better.",
        "AUC of real against synthetic rows: 0.5 is best.",
        "  real: real rows drawn again, which is the best to expect; for a model, trained on real rows",
        "  test rows: those of the test table, compared with the real ones"
        if own_test
        else "  held out: real rows that were set aside, compared with the others",
        "  independent: each column drawn alone; for a model, a guess without the other columns",
        *(of_persons if persons else ()),
    )


@dataclass(frozen=True)
class Score:
    """One number of the synthetic table, with the same number of reference tables. NaN where undefined.

    Parameters
    ----------
    synthetic : float
        The synthetic table.
    real : float
        As many real rows, sampled with replacement: no table of that size is expected to be better. For a
        model: trained on real rows.
    held_out : float
        Held-out real rows, compared with the other real rows.
    independent : float
        A table with the correct distribution of each column and no dependence. For a model: a prediction that
        uses no other column.
    standard_error : float
        Of `synthetic` - `real` over the choice of the test rows, for the AUC and R2 of a model.
    """

    synthetic: float
    real: float = nan
    held_out: float = nan
    independent: float = nan
    standard_error: float = nan

    @property
    def is_implausible(self) -> bool:
        """Whether a model is significantly worse if trained on real rows."""
        return self.synthetic - self.real > STANDARD_ERRORS * self.standard_error

    @property
    def is_defined(self) -> bool:
        """Whether the synthetic table has a number."""
        return self.synthetic == self.synthetic  # not NaN

    def by_table(self) -> dict[str, float]:
        """Return the number of each table, by its label."""
        return {label: getattr(self, name) for name, label in TABLES.items()}


@dataclass(frozen=True)
class Metric(Generic[Compared]):
    """A number that compares a synthetic table with the real one.

    Parameters
    ----------
    label : str
        Its name in tables and plots.
    compute : callable
        Returns the `Score` of a `Comparison`, or of a `LinkedComparison`; NaN where it does not apply.
    group : str
        The section of the report that shows it.
    unit : str
    better : "lower", "higher" or "neither"
    origin : float
        Where its scale begins in the report: 0.5 for an AUC.
    headline : bool
        Whether the plot of a sweep shows it.
    """

    label: str
    compute: Callable[[Compared], Score]
    group: str = "Other metrics"
    unit: str = SHARE
    better: Literal["lower", "higher", "neither"] = "lower"
    origin: float = 0.0
    headline: bool = False

    @property
    def hint(self) -> str:
        """The unit, and which values are better."""
        return self.unit if self.better == "neither" else f"{self.unit}; {self.better} is better"


@dataclass(frozen=True)
class Errors(Generic[Compared]):
    """Several errors of each table, such as one for each pair: the mean and the largest are metrics.

    Parameters
    ----------
    label : str
    errors : function of what is compared
        Return the errors of each table.
    group, unit : str
        See `Metric`.
    mean : str
        What the label calls the mean.
    headline : bool
        Of the mean; see `Metric`.
    """

    label: str
    errors: Callable[[Compared], Mapping[str, Floats]]
    group: str
    unit: str = SHARE
    mean: str = "mean error"
    headline: bool = False

    def metrics(self, name: str) -> dict[str, Metric[Compared]]:
        """Return the metrics ``name_mean`` and ``name_max``."""
        largest = Metric(f"{self.label}, largest", partial(self._score, np.max), self.group, self.unit)
        average = Metric(
            f"{self.label}, {self.mean}",
            partial(self._score, np.mean),
            self.group,
            self.unit,
            headline=self.headline,
        )
        return {f"{name}_mean": average, f"{name}_max": largest}

    def _score(self, statistic: Callable[[Floats], np.floating], comparison: Compared) -> Score:
        by_table = comparison.once(self.errors)
        return Score(
            **{table: float(statistic(errors)) if len(errors) else nan for table, errors in by_table.items()}
        )


def errors_in(
    results: Callable[[Comparison], Mapping[str, Result]], part: Callable[[Result], Floats]
) -> Callable[[Comparison], dict[str, Floats]]:
    """Return the `errors` of `Errors` that are a part of results, which are computed once."""
    return lambda comparison: {table: part(result) for table, result in comparison.once(results).items()}


def for_each_table(
    measure: Callable[[Any, Any], float], *, codes: bool = False
) -> Callable[[Comparison], Score]:
    """Return a `Metric.compute` that applies `measure` to the real table and to each other table.

    Parameters
    ----------
    measure : function of two tables that returns a number
        It is given data frames of the compared columns.
    codes : bool
        Give it `Records` instead: the codes of values and bins, which are the same in all tables.
    """

    def table(coded: Coded) -> pd.DataFrame | Records:
        return coded.records if codes else coded.frame()

    return lambda comparison: Score(
        **comparison.compare_each(lambda real, compared: measure(table(real), table(compared)))
    )
