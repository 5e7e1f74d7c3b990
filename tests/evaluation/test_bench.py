"""Where an independent evaluator has the same number, it is the same to 1e-9."""

from __future__ import annotations

import importlib.util
import os
import sys
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from privsyn.evaluation import models
from privsyn.evaluation.encoding import Coded, View
from privsyn.evaluation.marginals import (
    TRIPLES,
    compare_pairs,
    margin_errors,
    query_errors,
    sample_of_margins,
)
from privsyn.evaluation.models import Task, learning
from privsyn.marginals.domain import Domain, Records

BENCH = Path(os.environ.get("PRIVSYN_BENCH", Path(__file__).parents[3] / "shared" / "bench"))
TABLES = ["hmeq", "nltcs"]  # mixed with missing cells; many small columns

pytestmark = pytest.mark.skipif(
    not (BENCH / "evaluate.py").is_file(), reason="no bench here: PRIVSYN_BENCH names its folder"
)


def bench(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCH / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=TABLES)
def problem(request):
    return bench("coding").Problem(request.param)


def synthetic(train: np.ndarray) -> np.ndarray:
    """Rows drawn afresh, and a fifth of the cells drawn from anywhere in their column."""
    rng = np.random.default_rng(0)
    rows = train[rng.integers(len(train), size=len(train))]
    strange = rng.random(rows.shape) < 0.2
    return np.where(strange, rng.permuted(train, axis=0), rows)


def domain_of(problem) -> Domain:
    ordered = [size if kind == "num" else 0 for size, kind in zip(problem.sizes, problem.kinds, strict=True)]
    return Domain(tuple(problem.columns), tuple(problem.sizes), tuple(ordered))


def test_margins_and_queries_agree(problem):
    judge = bench("evaluate")
    made = synthetic(problem.train)
    theirs = judge.marginal_errors(made, problem.train, problem.sizes)
    theirs |= judge.query_errors(made, problem.train, problem.test, problem.sizes, problem.kinds)
    domain = domain_of(problem)
    real, other = Records(domain, problem.train), {"synthetic": Records(domain, made)}
    ours = {
        "tvd1": margin_errors(real, other, sample_of_margins(domain.names, 1, len(domain)))["synthetic"],
        "tvd2": compare_pairs(real, other)["synthetic"].errors,
        "tvd3": margin_errors(real, other, sample_of_margins(domain.names, 3, TRIPLES))["synthetic"],
    }
    queries = query_errors(real, other)["synthetic"]
    found = {f"{name}_mean": errors.mean() for name, errors in ours.items()}
    found |= {f"{name}_max": errors.max() for name, errors in ours.items()}
    found |= {"query_mae": queries.mean(), "query_max": queries.max()}
    assert found == pytest.approx({name: theirs[name] for name in found}, abs=1e-9)


def test_models_agree(monkeypatch):
    boosting = HistGradientBoostingClassifier.__name__
    monkeypatch.setattr(models, boosting, HistGradientBoostingClassifier)  # a hundred trees, as the bench has
    problem = bench("coding").Problem("hmeq")
    made = synthetic(problem.train)
    with threadpool_limits(1), warnings.catch_warnings():  # the bench turns warnings off for good
        theirs = bench("evaluate").ml_efficacy(
            made, problem.test, problem.sizes, problem.kinds, problem.target
        )
    domain = domain_of(problem)
    kinds = tuple("number" if bins else "category" for bins in domain.ordered)
    view = View(domain, kinds, tuple(tuple(map(str, range(size))) for size in domain.sizes))
    coded = [Coded(Records(domain, codes), {}, pd.DataFrame()) for codes in (made, problem.test)]
    task = Task.of(view, coded[1], problem.columns[problem.target])
    ours = learning(view, task, *coded)
    names = {"gb": "boosting", "lr": "linear"}
    scores = {"acc": "accuracy", "auc": "auc", "f1": "f1"}
    found = {f"{m}_{s}": ours[f"{names[m]}_{scores[s]}"].value for m in names for s in scores}
    linear = {name: score for name, score in found.items() if name.startswith("lr")}
    assert linear == pytest.approx({name: theirs[name] for name in linear}, abs=1e-9)
    assert found == pytest.approx(theirs, abs=0.02)  # the leaves of its boosting have no penalty
