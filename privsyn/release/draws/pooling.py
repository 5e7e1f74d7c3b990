r"""Pool estimates from several synthetic tables: one estimate, its standard error, and an interval.

Let :math:`q_k` be the estimate from table k of m, :math:`u_k` its variance as if the table were a sample of
real rows, :math:`\bar q` and U their means, and B the variance of the :math:`q_k`.

**The rule for our draws.** `Release.draws` draws, for each k, the counts of the *private table* from their
posterior given the noisy answers, and makes as many rows as that table has, fitted to these counts. So
:math:`q_k` is a draw of what the private table would have given, and B is the variance by the noise. U is
the variance of the private rows as a sample of the population: the synthetic rows are as many, and are like
them. The variance of :math:`\bar q` about the truth of the population is the sum of both, plus B/m because m
is finite: :math:`T = U + (1 + 1/m) B`. This is the rule of multiple imputation (Rubin 1987), with the
private table as the missing data. T is never negative. The degrees of freedom are
:math:`(m - 1) (1 + U / ((1 + 1/m) B))^2`.

**Fully synthetic data** (Raghunathan, Reiter and Rubin 2003) draw the parameters of the *population*, and
then rows from them at random. Then B holds the sampling of the private rows (about U) and the sampling of
the synthetic rows (again U), so :math:`T = (1 + 1/m) B - U`. For our draws this rule would be wrong: their B
holds neither. It is here for tables of other programs. T may be negative; then, as Reiter (2002) proposes, U
times the number of synthetic over private rows takes its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from privsyn.arguments import check_finite, check_whole
from privsyn.errors import InputError, replace_errors, safe_repr
from privsyn.marginals.domain import Floats

Rule = Literal["imputed", "fully synthetic"]
RULES = ("imputed", "fully synthetic")
LARGEST = 1e9  # degrees of freedom: beyond it, Student's distribution is normal


def pool(
    estimates: Any,
    variances: Any,
    *,
    rule: Rule = "imputed",
    level: float = 0.95,
    scale: float = 1.0,
) -> pd.DataFrame:
    """Pool one or more estimates from m synthetic tables.

    Parameters
    ----------
    estimates : sequence of m numbers, or of m arrays or Series of the same k parameters
    variances : sequence of the same shape
        The square of each standard error, as computed from one synthetic table alone. With 0, the interval
        covers what the private table would give, and not the population.
    rule : "imputed" or "fully synthetic"
        The first is right for `Release.draws`; see the module.
    level : float
        Probability with which an interval contains the truth.
    scale : float
        Rows of a synthetic table over those of the private one, if not the same.

    Returns
    -------
    pandas.DataFrame
        One row for each parameter, with columns ``estimate``, ``low``, ``high``, ``standard_error``,
        ``noise`` (the share of the variance that the noise adds) and ``degrees_of_freedom``.

    Raises
    ------
    InputError
        If there are fewer than two tables, or numbers are missing or negative variances.

    Examples
    --------
    >>> pooled = pool([0.31, 0.34, 0.28], [0.0004, 0.0004, 0.0004])
    >>> pooled.round(3).loc[0, ["estimate", "standard_error", "low", "high"]].tolist()
    [0.31, 0.04, 0.193, 0.427]
    """
    if rule not in RULES:
        raise InputError(f"rule must be {' or '.join(map(repr, RULES))}; got {safe_repr(rule)}")
    level, scale = _checked_level(level), check_finite("scale", scale)
    if not scale > 0:
        raise InputError("scale must be above 0")
    with replace_errors("pool needs two lists: the estimates of each table, and their variances", TypeError):
        estimates, variances = list(estimates), list(variances)
    q, u = _matrix("estimates", estimates), scale * _matrix("variances", variances)
    if q.shape != u.shape or len(q) < 2:
        raise InputError("pool needs the estimates of at least two tables, and as many variances")
    if (u < 0).any():
        raise InputError("variances must be at least 0: give squares of standard errors")
    m = len(q)
    between, within = (1 + 1 / m) * q.var(axis=0, ddof=1), u.mean(axis=0)
    if rule == "imputed":
        total, ratio = between + within, _ratio(within, between)
        noise = _ratio(between, total)
    else:
        total, ratio = between - within, -_ratio(within, between)
        total = np.where(total > 0, total, scale * within)
        noise = np.full(len(total), np.nan)
    freedom = np.maximum((m - 1) * (1 + ratio) ** 2, 1.0)
    centre, error = q.mean(axis=0), np.sqrt(total)
    reach = stdtrit(np.minimum(freedom, LARGEST), 0.5 + level / 2) * error
    index = estimates[0].index if isinstance(estimates[0], pd.Series) else None
    return pd.DataFrame(
        {
            "estimate": centre,
            "low": centre - reach,
            "high": centre + reach,
            "standard_error": error,
            "noise": noise,
            "degrees_of_freedom": freedom,
        },
        index=index,
    )


def _matrix(name: str, values: Sequence[Any]) -> Floats:
    """Return the numbers of all tables, one row for each."""
    with replace_errors(f"{name} must be as many numbers from each table", (TypeError, ValueError)):
        matrix = np.array([np.ravel(np.asarray(value, dtype=np.float64)) for value in values])
    if matrix.ndim != 2 or not np.isfinite(matrix).all():
        raise InputError(f"{name} must be as many finite numbers from each table")
    return matrix


def _ratio(above: Floats, below: Floats) -> Floats:
    huge = np.full_like(above, np.inf)
    return np.divide(above, below, out=np.where(above > 0, huge, 0.0), where=below > 0)


def pooled(
    analyse: Callable[[Any], Any],
    tables: Iterable[Any],
    *,
    level: float = 0.95,
    resamples: int = 20,
    seed: int = 0,
) -> pd.DataFrame:
    """Run an analysis on each synthetic table, and pool the results.

    Parameters
    ----------
    analyse : function of a table
        Returns a pair (estimates, variances), or a fitted model of statsmodels or linearmodels (anything with
        ``params`` and ``cov_params()``), or estimates alone, such as ``coef_`` of scikit-learn. Variances of
        the last are found by the bootstrap.
    tables : iterable
        The tables of `Release.draws`.
    level : float
        See `pool`.
    resamples : int
        Bootstrap samples of each table, if the analysis returns estimates alone. They share the estimation of
        one variance, so few are enough. Tables must be pandas data frames.
    seed : int
        Of the bootstrap.

    Returns
    -------
    pandas.DataFrame
        See `pool`.

    Examples
    --------
    >>> from privsyn import Categorical, PrivSyn, Schema
    >>> people = pd.DataFrame({"sex": ["F", "M"] * 500, "smokes": ["no", "no", "no", "yes"] * 250})
    >>> schema = Schema({"sex": Categorical(["F", "M"]), "smokes": Categorical(["no", "yes"])})
    >>> model = PrivSyn(1.0, 1e-6, schema, seed=0).fit(people)
    >>> found = pooled(lambda table: (table["smokes"] == "yes").mean(), model.draws(5))
    >>> bool(found["low"][0] < 0.25 < found["high"][0])
    True
    """
    if callable(tables) and not callable(analyse):
        raise InputError("the arguments are swapped: write pooled(function, tables)")
    if not callable(analyse):
        raise InputError(f"pooled needs a function of a table first; got {safe_repr(analyse)}")
    if hasattr(tables, "columns") or isinstance(tables, str | PathLike | Mapping | pd.Series | np.ndarray):
        raise InputError("pooled needs several tables, such as model.draws(20); got one")
    if not isinstance(tables, Iterable):
        raise InputError(f"pooled needs several tables, such as model.draws(20); got {safe_repr(tables)}")
    check_whole("resamples", resamples, minimum=2)
    level = _checked_level(level)
    rng = np.random.default_rng(check_whole("seed", seed))
    estimates: list[Any] = []
    variances: list[Any] = []
    for table in tables:
        estimate, variance = _read(analyse(table))
        # Now, and not after the last table: draws and bootstraps take minutes.
        shape = _matrix("estimates", [*estimates[:1], estimate]).shape
        if variance is not None and _matrix("variances", [variance]).shape[1:] != shape[1:]:
            raise InputError("the function must return as many variances as estimates")
        if variance is None:
            if not isinstance(table, pd.DataFrame):
                raise InputError(
                    "the function returns estimates alone: return (estimates, variances), or give pandas data"
                    " frames"
                )
            again = [
                analyse(table.sample(frac=1.0, replace=True, random_state=rng)) for _ in range(resamples)
            ]
            variance = _matrix("what the function returns", again).var(axis=0, ddof=1)
        estimates.append(estimate)
        variances.append(variance)
    if len(estimates) < 2:
        raise InputError(f"pooled needs at least two tables, such as model.draws(20); got {len(estimates)}")
    return pool(estimates, variances, level=level)


def _checked_level(level: float) -> float:
    level = check_finite("level", level)
    if not 0 < level < 1:
        raise InputError(f"level must be between 0 and 1; got {level:g}")
    return level


def _read(result: Any) -> tuple[Any, Any]:
    """Return the estimates and the variances of one analysis; None if it gives no variances."""
    if hasattr(result, "params") and callable(getattr(result, "cov_params", None)):
        return result.params, np.diag(np.asarray(result.cov_params(), np.float64))
    if isinstance(result, tuple):
        if len(result) != 2:
            raise InputError("the function must return a pair (estimates, variances), or a fitted model")
        return result
    return result, None
