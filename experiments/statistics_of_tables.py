"""What an analyst estimates from a table: each statistic with its variance, as for a sample of rows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Found = tuple[float, float]
Statistic = tuple[str, Callable[..., Found]]


def mean(x: np.ndarray) -> Found:
    """The mean and its variance."""
    return float(x.mean()), float(x.var(ddof=1) / len(x))


def difference(x: np.ndarray, group: np.ndarray) -> Found:
    """The difference of two groups' means."""
    (one, a), (other, b) = mean(x[group]), mean(x[~group])
    return one - other, a + b


def correlation(x: np.ndarray, y: np.ndarray) -> Found:
    """Fisher's z of the correlation."""
    return float(np.arctanh(np.corrcoef(x, y)[0, 1])), 1 / (len(x) - 3)


def odds(x: np.ndarray, y: np.ndarray) -> Found:
    """The logarithm of the odds ratio of two conditions."""
    cells = np.array([[np.sum(a & b) for b in (y, ~y)] for a in (x, ~x)]) + 0.5
    logs = np.log(cells)
    return float(logs[0, 0] + logs[1, 1] - logs[0, 1] - logs[1, 0]), float((1 / cells).sum())


def logistic(y: np.ndarray, *columns: np.ndarray) -> Found:
    """The first coefficient of a logistic regression of `y` on the columns."""
    x = np.column_stack([np.ones(len(y)), *columns]).astype(float)
    beta = np.zeros(x.shape[1])
    for _ in range(12):
        p = 1 / (1 + np.exp(-x @ beta))
        information = x.T @ (x * (p * (1 - p))[:, np.newaxis])
        beta = beta + np.linalg.solve(information, x.T @ (y - p))
    return float(beta[1]), float(np.linalg.inv(information)[1, 1])
