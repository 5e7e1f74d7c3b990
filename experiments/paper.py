"""The experiments of the PrivSyn paper: its three tasks, and what each of its stages is worth.

    python experiments/paper.py --folder DATA [--data adult,nltcs] [--eps 0.2,0.5,1,2] [--seeds 0,1]
        [--part tasks|curves|stages|selection]

Zhang et al., "PrivSyn: Differentially Private Data Synthesis", USENIX Security 2021, Section 6: the error of
all pair margins, of range queries over three attributes, and of classifiers that learnt from synthetic rows;
then the error of pairs from epsilon 0.1 to 10; then selection, consistency and the parts of GUM, each taken
away in turn; then pairs drawn by the exponential mechanism. Rows go to experiments/paper.csv,
paper_curves.csv, paper_stages.csv and paper_selection.csv, means to the end of docs/paper.md. Runs that
those hold are not repeated.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from runs import DELTA, Variant, markdown, measured, parser, write_section

from privsyn.inference.consistency import norm_sub
from privsyn.marginals.marginal import Marginal

HERE = Path(__file__).parent

PUBLISHED = "privsyn.methods.paper.learn."
EVERY_ROUND = 0.84 ** (1 / 20)  # a step that falls as far in a hundred rounds as the paper's

TASKS = {
    "pair_mean": "pair margins, mean total variation",
    "query_mean": "range queries, mean absolute error",
    "misclassified": "misclassified by logistic regression",
}


def every_pair(dependences, domain, rho):
    """No selection: each pair is measured."""
    del domain, rho
    return tuple(dependences)


def by_chance(dependences, domain, rho, *, number=20):
    """So many pairs, whatever their dependence."""
    del domain, rho
    pairs = list(dependences)
    chosen = np.random.default_rng(0).permutation(len(pairs))[:number]
    return tuple(pairs[position] for position in chosen)


def no_pair(dependences, domain, rho):
    """One-ways alone."""
    del dependences, domain, rho
    return ()


def alike(cells, rho):
    """The same budget for each table."""
    return np.full(len(cells), rho / len(cells))


def inconsistent(measurements, total):
    """Make each table non-negative alone, without agreement."""
    return tuple(
        Marginal(
            m.marginal.domain, norm_sub(m.marginal.counts.ravel(), total).reshape(m.marginal.counts.shape)
        )
        for m in measurements
    )


STAGES = (
    Variant("as published", preset="paper"),
    Variant("selection: every pair", {PUBLISHED + "dense_marg": every_pair}, "paper"),
    Variant("selection: 20 pairs by chance", {PUBLISHED + "dense_marg": by_chance}, "paper"),
    Variant("selection: no pair", {PUBLISHED + "dense_marg": no_pair}, "paper"),
    Variant("selection: nothing combined", preset="paper(gamma=1)"),
    Variant("selection: tables of 1,000 cells at most", preset="paper(gamma=1000)"),
    Variant("selection: budget in equal parts", {PUBLISHED + "allocate": alike}, "paper"),
    Variant("consistency: none but norm-sub", {PUBLISHED + "make_consistent": inconsistent}, "paper"),
    Variant("GUM: only whole rows copied", preset="paper(duplication=1)"),
    Variant("GUM: nothing copied", preset="paper(duplication=0)"),
    Variant("GUM: half copied in every round", preset="paper(duplication=0.5)"),
    Variant("GUM: a step that never falls", preset="paper(step=1)"),
    Variant("GUM: a step that falls every round", preset=f"paper(step=(1, {EVERY_ROUND}, 1))"),
    Variant("GUM: 10 rounds", preset="paper(rounds=10)"),
    Variant("GUM: none", preset="paper(rounds=0)"),
    Variant("the default"),
)


BOTH = (STAGES[0], STAGES[-1])
SELECTION = (
    STAGES[0],
    Variant("drawn until the end is drawn", preset="paper(select='exponential')"),
    Variant("30 pairs drawn", preset="paper(select='exponential', draws=30)"),
    Variant("60 pairs drawn", preset="paper(select='exponential', draws=60)"),
)
CURVE = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
PARTS = ("tasks", "curves", "stages", "selection")


def main() -> None:
    """Run what has not been run, and write the page."""
    asking = parser(__doc__, data="adult,br2000,nltcs,hmeq", eps="0.2,0.5,1,2", seeds="0,1")
    asking.add_argument("--part", choices=PARTS, nargs="+", default=PARTS, help="by default all")
    settings = asking.parse_args()
    epsilons = settings.eps
    files = [HERE / f"paper{name}.csv" for name in ("", "_curves", "_stages", "_selection")]
    tasks, curves, stages, selection = files
    if "tasks" in settings.part:
        measured(tasks, settings, BOTH, models=True)
    if "curves" in settings.part:
        settings.eps = CURVE
        measured(curves, settings, BOTH, models=False)
    if "stages" in settings.part:
        settings.eps = [epsilon for epsilon in epsilons if epsilon in (0.2, 1.0)]
        measured(stages, settings, STAGES, models=False)
    if "selection" in settings.part:
        settings.eps = [0.2, 1.0, 5.0]
        measured(selection, settings, SELECTION, models=False)
    rows = [pd.read_csv(path) if path.exists() else pd.DataFrame() for path in files]
    write_section("paper.md", "paper", section(*rows))


def section(tasks: pd.DataFrame, curves: pd.DataFrame, stages: pd.DataFrame, selection: pd.DataFrame) -> str:
    """The tables of means as Markdown."""
    seeds = pd.concat([tasks, curves, stages, selection])["seed"].nunique()
    parts = [
        f"""
Section 6 of the paper, done again with `PrivSyn.paper` and beside it the default: delta {DELTA:g}, neighbours
by adding or removing one record, numbers in 32 bins at most; up to {seeds} seeds,
privsyn {version("privsyn")}. Errors are against the rows that were learnt from; classifiers are tried on a
fifth of the rows that no run has seen. Every number of every run is in `experiments/paper.csv`,
`paper_curves.csv`, `paper_stages.csv` and `paper_selection.csv`.
Made by

    python experiments/paper.py --folder DATA

for the tables, epsilons and seeds that the rows below show.
"""
    ]
    if len(tasks):
        parts += ["### The three tasks\n", _tasks(tasks)]
    if len(curves):
        parts += ["### Pair error from epsilon 0.1 to 10\n", _curves(curves)]
    if len(stages):
        parts += ["### What each stage is worth\n", _stages(stages)]
    if len(selection):
        parts += ["### Pairs drawn by the exponential mechanism\n", _selection(selection)]
    return "\n".join(parts)


def _tasks(rows: pd.DataFrame) -> str:
    """A section a task: a line a table and epsilon, beside the yardsticks."""
    right = [f"linear_accuracy{which}" for which in ("", "_real", "_independent")]
    wrong = (1 - rows[right]).rename(columns=lambda name: name.replace("linear_accuracy", "misclassified"))
    rows = pd.concat([rows, wrong], axis=1)
    sections = []
    for task, title in TASKS.items():
        lines = []
        for (data, epsilon), group in rows.groupby(["data", "epsilon"], sort=False):
            means = group.groupby("variant")[task].mean()
            if len(means) < len(BOTH):
                continue  # interrupted
            beside = [group[f"{task}_{which}"].mean() for which in ("real", "independent")]
            numbers = (means["as published"], means["the default"], *beside)
            lines.append([data, f"{epsilon:g}", *(f"{x:.4f}" for x in numbers)])
        heads = ("table", "epsilon", "as published", "default", "real rows", "columns drawn alone")
        sections += [f"{title[0].upper()}{title[1:]}:\n", markdown(heads, lines)]
    return "\n".join(sections)


def _curves(rows: pd.DataFrame) -> str:
    """A line a table and method, a column an epsilon: mean total variation of all pairs."""
    means = rows.pivot_table(index=["data", "variant"], columns="epsilon", values="pair_mean", sort=False)
    lines = [
        [data, variant.removeprefix("the "), *(f"{x:.4f}" for x in row)]
        for (data, variant), row in means.sort_index(axis=1).iterrows()
    ]
    return markdown(["table", "method", *(f"{epsilon:g}" for epsilon in sorted(means.columns))], lines)


def _selection(rows: pd.DataFrame) -> str:
    """A line a table and epsilon, a column a rule of selection: mean total variation of all pairs."""
    means = rows.pivot_table(index=["data", "epsilon"], columns="variant", values="pair_mean", sort=False)
    names = [variant.name for variant in SELECTION]
    lines = [
        [data, f"{epsilon:g}", *(f"{x:.4f}" for x in row)] for (data, epsilon), row in means[names].iterrows()
    ]
    seeds = rows["seed"].nunique()
    text = '`select="exponential"` beside greedy selection by noisy InDif: mean total variation of all pairs,'
    text += f" up to {seeds} seeds.\n\n"
    return text + markdown(["table", "epsilon", "greedy", *names[1:]], lines)


def _stages(rows: pd.DataFrame) -> str:
    """A line a variant, a column a table and epsilon: pair error over that of the published whole."""
    means = rows.pivot_table(index="variant", columns=["data", "epsilon"], values="pair_mean", sort=False)
    first = means.loc["as published"]
    lines = [["pair error as published", *(f"{x:.4f}" for x in first)]]
    lines += [
        [name, *(f"{x:.2f}" for x in row)]
        for name, row in (means / first).drop(index="as published").iterrows()
    ]
    heads = ["", *(f"{data} {epsilon:g}" for data, epsilon in means.columns)]
    return "Mean pair error over that of the published whole: above 1 is worse.\n\n" + markdown(heads, lines)


if __name__ == "__main__":
    main()
