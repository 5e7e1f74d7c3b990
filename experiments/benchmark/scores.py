"""Scores of a synthetic table of codes: errors of pairs and triples, and a model that is trained on it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from problems import Problem
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

MOST_TRIPLES = 100
DENSE = 4_000_000  # cells of a table that is counted as a whole


def scores(problem: Problem, rows: np.ndarray) -> dict[str, float]:
    """Return the mean error of all pairs and of at most 100 triples, and the AUC of boosting.

    The error is the total variation distance from the training rows. The AUC is that of a model trained on
    the synthetic rows and tested on real rows that no method saw; see `auc`.
    """
    return {
        "pairs": error(problem, rows, list(combinations(range(len(problem.sizes)), 2))),
        "triples": error(problem, rows, triples(len(problem.sizes))),
        "auc": auc(problem, predictions(problem, rows)),
    }


def triples(columns: int) -> list[tuple[int, ...]]:
    """Return all triples of columns, or 100 drawn with a fixed seed."""
    every = list(combinations(range(columns), 3))
    if len(every) <= MOST_TRIPLES:
        return every
    drawn = np.random.default_rng(0).choice(len(every), MOST_TRIPLES, replace=False)
    return [every[index] for index in sorted(drawn)]


def error(problem: Problem, rows: np.ndarray, cliques: list[tuple[int, ...]]) -> float:
    """Return the mean total variation distance of the marginals of some cliques."""
    return float(np.mean(list(distances(problem, rows, cliques))))


def distances(problem: Problem, rows: np.ndarray, cliques: list[tuple[int, ...]]) -> Iterator[float]:
    """Yield the total variation distance of the marginal of each clique."""
    for clique in cliques:
        shape = [problem.sizes[j] for j in clique]
        cells = [np.ravel_multi_index(table[:, clique].T, shape) for table in (problem.train, rows)]
        if np.prod(shape) > DENSE:
            _, joined = np.unique(np.concatenate(cells), return_inverse=True)
            cells = [joined[: len(cells[0])], joined[len(cells[0]) :]]
        length = max(part.max() for part in cells) + 1
        real, synthetic = (np.bincount(part, minlength=length) / len(part) for part in cells)
        yield np.abs(real - synthetic).sum() / 2


def features(problem: Problem, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and the target of some rows."""
    return np.delete(rows, problem.target, axis=1), rows[:, problem.target]


def predictions(problem: Problem, rows: np.ndarray) -> np.ndarray:
    """Return the probability of each class for the test rows, by boosting that was trained on `rows`."""
    x, y = features(problem, rows)
    classes = problem.sizes[problem.target]
    result = np.full((len(problem.test), classes), 1 / classes)
    if len(np.unique(y)) > 1:
        model = HistGradientBoostingClassifier(random_state=0).fit(x, y)
        result[:] = 0
        result[:, model.classes_] = model.predict_proba(features(problem, problem.test)[0])
    return result


def auc(problem: Problem, probabilities: np.ndarray) -> float:
    """Return the AUC on the test rows; of several classes the mean of each against the rest."""
    truth = problem.test[:, problem.target]
    classes = np.unique(truth)
    if problem.sizes[problem.target] == 2:
        classes = classes[1:]
    return float(np.mean([roc_auc_score(truth == value, probabilities[:, value]) for value in classes]))
