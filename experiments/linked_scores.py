"""Score linked tables of privsyn and of other programs, and write a section of docs/linked.md.

    python experiments/linked_scores.py split BENCH FOLDER   # first: the training tables
    PEER/bin/python experiments/linked_peers.py hma FOLDER     # each other program
    python experiments/linked_scores.py ours BENCH FOLDER    # or separate, alone, boot
    python experiments/linked_scores.py page BENCH FOLDER    # last: scores, and the page
    python experiments/linked_scores.py again BENCH          # only ours; of the others the scores are kept
    python experiments/linked_scores.py plan BENCH           # what `plan` expects, beside what runs find

BENCH is the folder of the bench (linked.py); its data lie beside it. Scores are explained in its first lines.
The seed makes the runs repeatable and NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
from importlib.metadata import version
from itertools import product
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
from linked_peers import DELTA, EPSILON, SEED, Tables, note, read, seconds, write
from runs import write_section

from privsyn import Database, Schema, Table, plan

OWN = ("ours", "separate", "alone", "boot")
METHODS = {
    "ours": ("**privsyn**", "epsilon 1"),
    "dpsynth": ("dpsynth", "epsilon 1"),
    "dpsynth6": ("dpsynth, 6 slots", "epsilon 1"),
    "flexsynth": ("flexsynth", "epsilon 1"),
    "separate": ("privsyn, tables apart", "in part"),
    "hma": ("SDV HMA", "no"),
    "par": ("SDV PAR", "no"),
    "boot": ("`boot`", "no"),
    "alone": ("`alone`", "no"),
}
SCORES = ("children", "within", "parent_child", "next", "later", "profile", "sums", "detection", "keys")
ROWS = Path(__file__).parent / "linked_scores.csv"
EPSILONS, SEEDS = (1.0, 5.0), (0, 1, 2)  # of plans
SHAPES = {  # public facts for a plan: rows of the root, and rows of each parent
    "cdnow": (18_856, {"purchases": 2.96}),
    "semcog": (15_638, {"persons": 1.83}),
    "travel": (1_600, {"persons": 2.63, "tours": 1.33, "trips": 2.52}),
}
MAY_BE_NONE = ("tours",)  # all other child tables have at least one row for each parent
PLANNED = {"parent_child": "parent_child", "next": "next", "children": "children"}
HEAD = """Seed {seed}, one run: small differences are chance. Delta {delta:g}, privsyn {version}; made by

    python experiments/linked_scores.py split BENCH FOLDER
    PEER/bin/python experiments/linked_peers.py NAME FOLDER    # hma, par, dpsynth, dpsynth6, flexsynth
    python experiments/linked_scores.py NAME BENCH FOLDER      # ours, separate, boot, alone
    python experiments/linked_scores.py page BENCH FOLDER
"""


def bench_of(folder: Path) -> ModuleType:
    """Return the bench's script as a module."""
    spec = importlib.util.spec_from_file_location("linked", folder / "linked.py")
    assert spec is not None  # noqa: S101
    assert spec.loader is not None  # noqa: S101
    bench = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bench)
    return bench


def halves(bench: ModuleType, data: str) -> tuple[dict, Tables, Tables]:
    """Return the side information, and the training and test tables, divided as the bench does."""
    side, tables = bench.read(bench.HERE.parent / "data" / "linked", data)
    root = bench.root_of(side)
    mixed = tables[root][side["tables"][root]["key"]].sample(frac=1, random_state=0)
    cut = int(0.8 * len(mixed))
    train, test = (bench.subset(side, tables, pd.Index(part)) for part in (mixed[:cut], mixed[cut:]))
    return side, train, test


def split(settings: argparse.Namespace) -> None:
    """Write the training tables of each set, and what is public."""
    bench = bench_of(settings.bench)
    for data in settings.data.split(","):
        side, train, _ = halves(bench, data)
        write(settings.folder / data / "train", side, train)
        (settings.folder / data / "side.json").write_text(json.dumps(side))


def own(method: str, data: str, settings: argparse.Namespace) -> None:
    """Make the tables of privsyn, or those of a yardstick of the bench."""
    bench = bench_of(settings.bench)
    side, train, _ = halves(bench, data)
    folder, rng, root = settings.folder / data / method, np.random.default_rng(SEED), bench.root_of(side)
    keys = train[root][side["tables"][root]["key"]].to_numpy()
    begun = seconds()
    if method == "boot":
        made = bench.subset(side, train, pd.Index(rng.choice(keys, len(keys))))
    elif method == "alone":
        made = bench.alone(side, train, rng)
    else:
        made = getattr(bench, method)(side, train, EPSILON, DELTA, SEED)
    folder.mkdir(parents=True, exist_ok=True)
    write(folder, side, made)
    note(folder, begun)


def scored(settings: argparse.Namespace) -> pd.DataFrame:
    """Return one row a set and method: its scores, or the words of a failure. Scores are kept in files."""
    bench, rows = bench_of(settings.bench), []
    for data in settings.data.split(","):
        side, train, test = halves(bench, data)
        for folder in (settings.folder / data / method for method in METHODS):
            run, scores = folder / "run.json", folder / "scores.json"
            if not run.exists():
                continue
            row = {"data": data, "method": folder.name, **json.loads(run.read_text())}
            if "failed" not in row:
                if not scores.exists() or scores.stat().st_mtime < run.stat().st_mtime:
                    made = read(folder, side)
                    made = {name: bench.typed(made[name], table) for name, table in side["tables"].items()}
                    scores.write_text(json.dumps(bench.score(side, train, made, test)))
                row |= json.loads(scores.read_text())
                row["rows"] = " + ".join(f"{count:,}" for count in row["rows"].values())
            rows.append(row)
    return pd.DataFrame(rows)


def section(rows: pd.DataFrame) -> str:
    """Return the page: one table a set, and what failed."""
    parts = [HEAD.format(version=version("privsyn"), delta=DELTA, seed=SEED)]
    for data, group in rows.groupby("data", sort=False):
        columns = ["method", "private", *SCORES, "rows", "seconds"]
        lines = [f"### {data}\n", "| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
        for row in group.to_dict("records"):
            label, private = METHODS[row["method"]]
            label += "".join(
                f", {row[option]:,.0f} {option}" for option in ("roots", "epochs") if row.get(option, 0) > 0
            )
            if isinstance(row.get("failed"), str):
                cells = [*["-"] * len(SCORES), f"failed: `{row['failed']}`"]
            else:
                cells = ["-" if pd.isna(row.get(name)) else f"{row[name]:.3f}" for name in SCORES[:-1]]
                cells += [f"{row['keys']:.0f}", row["rows"]]
            lines.append("| " + " | ".join([label, private, *cells, f"{row['seconds']:,.0f}"]) + " |")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def replaced(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that are kept, with these in their places."""
    if not ROWS.exists():
        return rows
    keys, recorded = ["data", "method"], pd.read_csv(ROWS)
    both = pd.concat([rows, recorded]).drop_duplicates(keys).set_index(keys)
    return both.loc[list(recorded[keys].itertuples(index=False, name=None))].reset_index()[recorded.columns]


def database_of(bench, side: dict) -> Database:
    """Return what is public about the tables of a set."""
    return Database(
        {
            name: Table(
                Schema(bench.columns_of(table)),
                **{part: table.get(part) for part in ("key", "parent", "link", "order")},
                children="1.." if "parent" in table and name not in MAY_BE_NONE else None,
            )
            for name, table in side["tables"].items()
        }
    )


def planned(side: dict, database: Database, data: str, epsilon: float) -> dict[str, float]:
    """Return the expected scores: means over as many pairs of columns as the bench compares."""
    rows, per_parent = SHAPES[data]
    tables = plan(database, epsilon, DELTA, rows=rows, rows_per_parent=per_parent).expectations[0].tables
    columns = {name: len(table["columns"]) for name, table in side["tables"].items()}
    weighted: dict[str, list[tuple[float, int]]] = {}
    for table in tables:
        number_of_columns, above = columns[table.name], columns.get(table.parent or "", 0)
        pairs = {
            "parent_child": number_of_columns * above,
            "next": number_of_columns**2,
            "children": 1 + above,
        }
        for kind, number in pairs.items():
            if kind in table.errors:
                weighted.setdefault(kind, []).append((table.errors[kind], number))
    means = {}
    for kind, pairs_of_tables in weighted.items():
        errors, weights = zip(*pairs_of_tables, strict=True)
        means[PLANNED[kind]] = float(np.average(errors, weights=weights))
    return means


def measured(bench, side: dict, train: dict, test: dict, epsilon: float) -> dict[str, float]:
    """Return the mean scores of runs."""
    runs = []
    for seed in SEEDS:
        made = bench.ours(side, train, epsilon, DELTA, seed)
        made = {name: bench.typed(made[name], table) for name, table in side["tables"].items()}
        runs.append(bench.score(side, train, made, test))
    scores = [score for score in PLANNED.values() if score in runs[0]]
    return {score: float(np.mean([run[score] for run in runs])) for score in scores}


def plans(bench: ModuleType) -> None:
    """Print the errors that `plan` expects beside those of runs."""
    sys.stdout.write("| | " + " | ".join(PLANNED.values()) + " |\n|" + "---|" * (len(PLANNED) + 1) + "\n")
    for data, epsilon in product(SHAPES, EPSILONS):
        side, train, test = halves(bench, data)
        database = database_of(bench, side)
        expected = planned(side, database, data, epsilon)
        scores = measured(bench, side, train, test, epsilon)
        both = [f"{expected[s]:.3f} / {scores[s]:.3f}" if s in expected else "" for s in PLANNED.values()]
        sys.stdout.write(f"| {data}, epsilon {epsilon:g} | " + " | ".join(both) + " |\n")
        sys.stdout.flush()


def main() -> None:
    """Carry out one step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("step", choices=["split", *OWN, "page", "again", "plan"])
    parser.add_argument("bench", type=Path)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--data", default="semcog,cdnow")
    settings = parser.parse_args()
    if settings.step == "plan":
        plans(bench_of(settings.bench))
        return
    with tempfile.TemporaryDirectory() as empty:
        again = settings.step == "again"
        settings.folder = Path(empty) if again else settings.folder
        if settings.step == "split":
            split(settings)
        elif settings.step != "page":
            for data in settings.data.split(","):
                own("ours" if again else settings.step, data, settings)
        if settings.step in ("page", "again"):
            rows = replaced(scored(settings)) if again else scored(settings)
            rows.to_csv(ROWS, index=False, float_format="%.5f")
            write_section("linked.md", "linked", section(rows))


if __name__ == "__main__":
    main()
