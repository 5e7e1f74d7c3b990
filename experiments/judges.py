"""What packages that others wrote say of a synthetic Adult: fixed floors, and a page.

    make judges PRIVSYN_DATA=folder          # makes the environments in .judges first
    python experiments/judges.py [--folder DATA] [--seeds 0,1,2] [--judges sdnist]  # JUDGES=folder

The table is made as a stranger would make it: by the command line, with no schema. Beside it stand real rows
drawn again with replacement, and columns drawn alone. Each judge runs in an environment of its own, without
the network. Writes a section of docs/results.md, and ends with status 1 if a figure of any seed does not
meet its floor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

import numpy as np
import pandas as pd
from runs import Row, markdown, write_section
from tables import add_data_argument, fetched

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = Path(os.environ.get("JUDGES", ROOT / ".judges"))
EPSILON = 1
HELD_OUT = 0.2
"""Share of the rows that attacks need for comparison; for other judges the table is made of all rows."""


@dataclass(frozen=True)
class Figure:
    """One number of a judge, and its floor: the value that every seed must reach.

    Parameters
    ----------
    judge, name : str
        As experiments/judge.py names them.
    floor : float
        A figure is good if it is at least this.
    reason : str
        Why the floor lies there.
    at_most : bool
        A figure is good if it is at most its floor instead.
    """

    judge: str
    name: str
    floor: float
    reason: str
    at_most: bool = False

    def is_met(self, value: float) -> bool:
        """Return whether the value reaches the floor; a number that is missing does not."""
        return value <= self.floor if self.at_most else value >= self.floor

    def worst(self, values: list[float]) -> float:
        """Return the value that is furthest on the wrong side."""
        return next(
            (value for value in values if np.isnan(value)), max(values) if self.at_most else min(values)
        )


FIGURES = (
    Figure("sdnist", "k-marginal", 973, "2 points below the lowest of three seeds"),
    Figure("sdnist", "propensity", 0.014, "half of it is one column: rare values are one text", at_most=True),
    Figure("sdmetrics", "quality", 0.88, "that of independent columns: the largest numbers decide"),
    Figure("sdmetrics", "quality, same bins", 0.98, "nine tenths of the way from independent columns"),
    Figure("sdmetrics", "diagnostic", 0.998, "2 in 1,000 cells may be beyond the real ones"),
    Figure("anonymeter", "linkability", 0.05, "more than 1,000 attacks that find nothing show", at_most=True),
    Figure("anonymeter", "singling out", 0.10, "more than 500 attacks that find nothing show", at_most=True),
    Figure("anonymeter", "inference", 0.30, "more than 500 attacks that find nothing show", at_most=True),
)
JUDGES = tuple(dict.fromkeys(figure.judge for figure in FIGURES))
NEEDS_CONTROL = {"anonymeter"}


def released(real: pd.DataFrame, folder: Path, seed: int) -> pd.DataFrame:
    """Return what the command line makes of a CSV file."""
    source, target = folder / "real.csv", folder / "made.csv"
    real.to_csv(source, index=False)
    options = ["--epsilon", str(EPSILON), "--seed", str(seed)]
    typed = [sys.executable, "-m", "privsyn", "synth", str(source), str(target), *options]
    subprocess.run(typed, check=True, stdout=subprocess.DEVNULL)
    return pd.read_csv(target)


def redrawn(real: pd.DataFrame, folder: Path, seed: int) -> pd.DataFrame:
    """Return real rows, with replacement."""
    del folder
    return real.sample(len(real), replace=True, random_state=seed)


def independent(real: pd.DataFrame, folder: Path, seed: int) -> pd.DataFrame:
    """Return the real columns, each in an order of its own."""
    del folder
    rng = np.random.default_rng(seed)
    return real.apply(lambda cells: rng.permutation(cells.to_numpy()))


TABLES: dict[str, Callable[[pd.DataFrame, Path, int], pd.DataFrame]] = {
    "privsyn": released,
    "redrawn": redrawn,
    "independent": independent,
}


def interpreter(judge: str, environments: Path = ENVIRONMENTS) -> Path:
    """Return the Python of a judge's environment, which ``make judges`` makes."""
    pythons = sorted(environments.glob(f"{judge}-*/bin/python"))
    if not pythons:
        raise SystemExit(f"{judge} has no environment in {environments}: make judges")
    return pythons[-1]


def split(rows: pd.DataFrame, seed: int, share: float) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows that tables are made of, and those that are held out."""
    held_out = np.random.default_rng(seed).random(len(rows)) < share
    return rows[~held_out], rows[held_out]


def verdict(python: Path, judge: str, tables: list[pd.DataFrame], folder: Path, seed: int) -> Row:
    """Return the figures and versions that a judge's own process prints about real, made and control rows."""
    paths = [folder / f"{name}.csv" for name in ("judged-real", "judged-made", "judged-control")]
    for table, path in zip(tables, paths, strict=True):
        table.to_csv(path, index=False)
    typed = [str(python), str(Path(__file__).with_name("judge.py")), judge, *map(str, paths), str(seed)]
    ended = subprocess.run(typed, stdout=subprocess.PIPE, check=True, text=True)
    return json.loads(ended.stdout.splitlines()[-1])


def judged(rows: pd.DataFrame, judges: list[str], seeds: list[int], folder: Path) -> Iterator[Row]:
    """Yield figures: of the program's tables for each seed, of the others for the first one."""
    for seed in seeds:
        for with_control in sorted({judge in NEEDS_CONTROL for judge in judges}):
            real, control = split(rows, seed, HELD_OUT if with_control else 0)
            for name, make in TABLES.items() if seed == seeds[0] else [("privsyn", released)]:
                made = make(real, folder, seed)
                for judge in judges:
                    if (judge in NEEDS_CONTROL) == with_control:
                        answer = verdict(interpreter(judge), judge, [real, made, control], folder, seed)
                        row = {"seed": seed, "table": name, "judge": judge, **answer}
                        print(json.dumps(row), flush=True)  # noqa: T201
                        yield row


def values(rows: list[Row], figure: Figure, table: str) -> list[float]:
    """Return one figure of all seeds."""
    ours = [row for row in rows if row["judge"] == figure.judge and row["table"] == table]
    return [row["figures"][figure.name] for row in ours]


def breaches(rows: list[Row]) -> list[str]:
    """Return a line for each floor that a seed does not meet."""
    lines = []
    for figure in FIGURES:
        ours = values(rows, figure, "privsyn")
        if ours and not figure.is_met(worst := figure.worst(ours)):
            lines.append(f"{figure.judge}: {figure.name} {worst:.4g}, not {bound(figure)}: {figure.reason}")
    return lines


def bound(figure: Figure) -> str:
    """Return the floor in words."""
    return f"at {'most' if figure.at_most else 'least'} {figure.floor:g}"


def table_of(figures: list[Row]) -> str:
    """Return the figures as a table, and what they were made with."""
    lines = []
    for figure in FIGURES:
        ours, *comparisons = (values(figures, figure, table) for table in TABLES)
        if ours:
            shown = (f"{median(some):.4g}" if some else "" for some in comparisons)
            numbers = (f"**{median(ours):.4g}**", f"{figure.worst(ours):.4g}", *shown)
            lines.append([figure.judge, figure.name, *numbers, bound(figure), figure.reason])
    head = ("judge", "figure", "median", "worst", "redrawn rows", "independent columns", "floor", "why there")
    made_with = []
    for judge in JUDGES:
        rows = [row for row in figures if row["judge"] == judge and row["table"] == "privsyn"]
        if rows:
            versions, seeds = rows[0]["versions"], ", ".join(str(row["seed"]) for row in rows)
            made_with.append(f"{judge} {versions[judge]} (pandas {versions['pandas']}), seeds {seeds}")
    text = f"{'; '.join(made_with)}. privsyn {version('privsyn')}; made by `make judges PRIVSYN_DATA=folder`."
    return f"{markdown(head, lines)}\n{text}\n"


def main() -> int:
    """Measure, write the page, and say which floors are not met."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_argument(parser)
    parser.add_argument(
        "--seeds", type=lambda text: [int(part) for part in text.split(",")], default=[0, 1, 2]
    )
    parser.add_argument("--judges", type=lambda text: text.split(","), default=list(JUDGES))
    settings = parser.parse_args()
    for judge in settings.judges:
        interpreter(judge)  # a missing environment is found before the first table is made
    folder = ENVIRONMENTS / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    rows = fetched("adult", settings.folder)
    rows_of_judges = list(judged(rows, settings.judges, settings.seeds, folder))
    print(text := table_of(rows_of_judges))  # noqa: T201
    if set(settings.judges) == set(JUDGES):
        write_section("results.md", "judges", text)
    missed = breaches(rows_of_judges)
    sys.stderr.writelines(f"{line}\n" for line in missed)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
