"""A boosting machine trained on the private rows (interpret's DPExplainableBoosting): a model, no rows.

It gets the test rows without their target, and answers with the probability of each class.
"""

from __future__ import annotations

import numpy as np
from interpret.privacy import DPExplainableBoostingClassifier
from peer import Task, main


def synthesize(task: Task):
    """Return the probability of each class for the test rows."""
    sizes = np.delete(task.sizes, task.target)
    x, y = np.delete(task.train, task.target, axis=1), task.train[:, task.target]
    model = DPExplainableBoostingClassifier(
        epsilon=task.epsilon,
        delta=task.delta,
        feature_types=["continuous"] * len(sizes),
        privacy_bounds={index: (0, int(size) - 1) for index, size in enumerate(sizes)},
        n_jobs=1,
        random_state=task.seed,
    ).fit(x, y)
    result = np.zeros((len(task.test), task.sizes[task.target]))
    result[:, model.classes_] = model.predict_proba(task.test)
    return result


main(synthesize)
