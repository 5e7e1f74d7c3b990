"""How much luck a single run needs: the score of a model from synthetic rows, over twenty runs.

    python experiments/luck.py --folder DATA [--data adult,hmeq] [--eps 1] [--seeds 0,1,2]

A fifth of the rows is held out. Each run has a seed of its own and the target of the table. A model of
boosting learns from its synthetic rows and is tested on the held-out rows. One row a run goes to
experiments/luck.csv, the median and the worst of all runs to docs/results.md.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from runs import DELTA, Row, markdown, measured_tables, parser, write_section
from tables import Table

from privsyn import PrivSyn, evaluate

HERE = Path(__file__).parent
ROWS = HERE / "luck.csv"
SCORES = {"boosting_auc": "AUC", "boosting_r2": "R2"}


def main() -> None:
    """Run what the command line asks for, and write the section from all rows."""
    options = parser(__doc__, data="adult,br2000,nltcs,hmeq", eps="1", seeds=",".join(map(str, range(20))))
    settings = options.parse_args()
    rows = measured_tables(ROWS, settings, score)
    write_section("results.md", "luck", section(rows))


def score(table: Table, epsilon: float, seed: int) -> Row:
    """Return the score of a model that learns from synthetic rows, and of one that learns from real rows."""
    test = table.frame.sample(frac=0.2, random_state=0)
    train = table.frame.drop(test.index)
    model = PrivSyn(epsilon, DELTA, table.schema, target=table.target, seed=seed).fit(train)
    made = model.sample(len(train), seed=seed)
    scores = evaluate(train, made, table.schema, target=table.target, test=test, models=["boosting"])
    ((name, learnt),) = ((name, scores.learning[name]) for name in SCORES if name in scores.learning)
    return {"measure": SCORES[name], "real": learnt.real, "synthetic": learnt.synthetic}


def section(rows: pd.DataFrame) -> str:
    """Return the median and the worst run of each table and epsilon."""
    lines = []
    for (data, epsilon, measure), runs in rows.groupby(["data", "epsilon", "measure"], sort=False):
        scores = runs["synthetic"]
        shares = [scores.median(), scores.quantile(0.1), scores.min(), scores.median() - scores.min()]
        texts = [f"{number:.3f}" for number in (runs["real"].mean(), *shares)]
        lines.append([data, f"{epsilon:g}", str(len(runs)), measure, *texts])
    heads = ("table", "epsilon", "runs", "score", "real rows", "median", "worst tenth", "worst", "below")
    return markdown(heads, lines)


if __name__ == "__main__":
    main()
