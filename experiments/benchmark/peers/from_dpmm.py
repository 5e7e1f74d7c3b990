"""AIM, MST and PrivBayes of the package dpmm 0.1.9 with its default settings, on codes."""

from __future__ import annotations

import pandas as pd
from dpmm.pipelines import aim, mst, priv_bayes
from peer import Task, main

PIPELINES = {"aim": aim.AIMPipeline, "mst": mst.MSTPipeline, "privbayes": priv_bayes.PrivBayesPipeline}


def synthesize(task: Task):
    """Return synthetic codes."""
    frame = pd.DataFrame(task.train, columns=task.columns)
    domain = dict(zip(task.columns, map(int, task.sizes), strict=True))
    model = PIPELINES[task.method](
        epsilon=task.epsilon, delta=task.delta, disable_processing=True, proc_epsilon=None, n_jobs=1
    )
    model.fit(frame, domain=domain, random_state=task.seed)
    return model.generate(n_records=len(frame), random_state=task.seed)[list(task.columns)].to_numpy()


main(synthesize)
