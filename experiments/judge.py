"""What one judge, a package that others wrote, finds of one synthetic table; experiments/judges.py runs it.

    .judges/sdnist-2.4/bin/python experiments/judge.py sdnist real.csv made.csv control.csv SEED

Runs in the judge's own environment, which holds neither privsyn nor the other judges. The last line printed
is JSON: figures by name, and versions. Nothing is loaded from the network.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

BINS = 20
"""Of a column of numbers, as in sdnist.report.dataset.binning."""
ATTACKS = 1000
"""On links, of which hardly any succeed; for the other attacks the judge's default of 500 is enough."""


def numbers(real: pd.DataFrame) -> list[str]:
    """Return the columns of numbers; the others are categories."""
    return list(real.select_dtypes("number"))


def coded(real: pd.DataFrame, made: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return both tables with categories as codes; missing is -1, which is also what SDNist takes."""
    real, made = real.copy(), made.copy()
    for name in real:
        if name in numbers(real):
            real[name], made[name] = real[name].fillna(-1), made[name].fillna(-1)
        else:
            values = sorted({*real[name].dropna(), *made[name].dropna()})
            real[name] = pd.Categorical(real[name], values).codes
            made[name] = pd.Categorical(made[name], values).codes
    return real, made


def binned(real: pd.Series, made: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return bins of equal shares of the real rows.

    SDNist's own function has the same bins for the real column. It takes for granted that the first of them
    is not empty. Where half of the cells are 0 it is, and synthetic cells would be left as they are.
    """
    share = real.rank(pct=True)
    bins = np.minimum((BINS * share).astype(int), BINS - 1)
    by_value = bins.groupby(real).first()  # equal cells have one rank
    places = np.searchsorted(by_value.index, made).clip(max=len(by_value) - 1)
    return bins.to_numpy(), by_value.to_numpy()[places]


def sdnist(real: pd.DataFrame, made: pd.DataFrame, control: pd.DataFrame, seed: int) -> dict[str, float]:
    """Return the k-marginal score of all pairs of columns, and the propensity error of a decision tree."""
    del control, seed
    import sdnist.report  # noqa: F401 - first, since its parts import each other in a circle
    from sdnist.metrics.kmarginal import KMarginal
    from sdnist.metrics.propensity import PropensityMSE

    real, made = coded(real, made)
    with tempfile.TemporaryDirectory() as folder:
        propensity = PropensityMSE(real, made, Path(folder)).compute_score()
    real_bins, made_bins = real.copy(), made.copy()
    for name in real:
        if real[name].nunique() > BINS:
            real_bins[name], made_bins[name] = binned(real[name], made[name])
    return {"k-marginal": KMarginal(real_bins, made_bins).compute_score(), "propensity": propensity}


def sdmetrics(real: pd.DataFrame, made: pd.DataFrame, control: pd.DataFrame, seed: int) -> dict[str, float]:
    """Return the scores of the quality and the diagnostic report, and of their parts.

    The quality report cuts numbers beside categories into ten bins between the ends of *each table*. *Same
    bins* has those of the real table for both, as the metric has where it is asked alone.
    """
    del control, seed
    from sdmetrics.column_pairs import ContingencySimilarity
    from sdmetrics.reports.single_table import DiagnosticReport, QualityReport

    kinds = {True: "numerical", False: "categorical"}
    about = {"columns": {name: {"sdtype": kinds[name in numbers(real)]} for name in real}}
    figures, reports = {}, {"quality": QualityReport(), "diagnostic": DiagnosticReport()}
    for name, report in reports.items():
        report.generate(real, made, about, verbose=False)
        figures[name] = report.get_score()
        figures |= dict(report.get_properties().to_numpy())
    pairs = reports["quality"].get_details("Column Pair Trends").query("`Meets Threshold?` and Score.notna()")
    scores = []
    for one, other, score in pairs[["Column 1", "Column 2", "Score"]].to_numpy():
        cut = [name for name in (one, other) if name in numbers(real)]
        some, others = real[[one, other]].copy(), made[[one, other]].copy()
        scores.append(score if len(cut) != 1 else ContingencySimilarity.compute(some, others, cut))
    return figures | {"quality, same bins": (figures["Column Shapes"] + float(np.mean(scores))) / 2}


def anonymeter(real: pd.DataFrame, made: pd.DataFrame, control: pd.DataFrame, seed: int) -> dict[str, float]:
    """Return the risks of linking two halves of a row, of singling out, and of inferring the last column.

    As many real rows are attacked as there are control rows: a correction for other numbers is biased
    (docs/attacks.md).
    """
    from anonymeter.evaluators import InferenceEvaluator, LinkabilityEvaluator, SinglingOutEvaluator

    def filled(table: pd.DataFrame) -> pd.DataFrame:
        return table.fillna({name: "missing" for name in table if name not in numbers(real)})

    attacked = filled(real.sample(min(len(control), len(real)), random_state=seed))
    tables = {"ori": attacked, "syn": filled(made), "control": filled(control)}
    names = list(real)
    link = LinkabilityEvaluator(**tables, aux_cols=(names[::2], names[1::2]), n_attacks=ATTACKS).evaluate(1)
    alone = SinglingOutEvaluator(**tables, n_cols=4, seed=seed).evaluate("multivariate")

    *known, secret = names
    inference = InferenceEvaluator(**tables, aux_cols=known, secret=secret).evaluate(1)
    risks = {"linkability": link, "singling out": alone, "inference": inference}
    return {name: attack.risk().value for name, attack in risks.items()}


JUDGES = {judge.__name__: judge for judge in (sdnist, sdmetrics, anonymeter)}


def main() -> None:
    """Print what the judge finds."""
    name, *paths, seed = sys.argv[1:]
    np.random.seed(int(seed))  # noqa: NPY002 - the judges take their random numbers from there
    real, made, control = (pd.read_csv(path, na_values="?") for path in paths)
    figures = {figure: float(value) for figure, value in JUDGES[name](real, made, control, int(seed)).items()}
    versions = {package: version(package) for package in (name, "numpy", "pandas", "scikit-learn")}
    print(json.dumps({"figures": figures, "versions": versions}))  # noqa: T201


if __name__ == "__main__":
    main()
