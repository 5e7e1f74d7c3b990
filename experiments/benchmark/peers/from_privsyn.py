"""privsyn with its default settings, and with the target named; all columns are lists of codes."""

from __future__ import annotations

import pandas as pd
from peer import Task, main

from privsyn import Categorical, PrivSyn, Schema


def synthesize(task: Task):
    """Return synthetic codes."""
    schema = Schema(
        {
            name: Categorical(list(range(size)), nullable=False)
            for name, size in zip(task.columns, task.sizes, strict=True)
        }
    )
    target = task.columns[task.target] if task.method == "target" else None
    model = PrivSyn(task.epsilon, task.delta, schema, target=target, seed=task.seed)
    model.fit(pd.DataFrame(task.train, columns=task.columns))
    return model.sample(len(task.train), seed=task.seed)[list(task.columns)].to_numpy()


main(synthesize)
