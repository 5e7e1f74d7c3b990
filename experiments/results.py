"""Run the comparison bench and write docs/results.md: our errors beside the peers' recorded ones.

    python experiments/results.py BENCH [--data adult,nltcs] [--eps 0.2,1,5] [--seeds 0,1] [--presets paper]

BENCH is the folder of the bench (bench.py, peers.json, domains/); the data lie beside it. The bench uses
privsyn's public names alone, with seeds, so its runs are repeatable and NOT PRIVATE. Runs that are not asked
for keep their rows in experiments/results.csv. The page says which commit made which.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from math import inf
from pathlib import Path
from typing import Any

import pandas as pd
from runs import markdown, today, write_section

METRICS = {"tvd2_mean": "pairs", "tvd3_mean": "triples", "gb_auc": "AUC", "run_s": "seconds"}
ROWS = Path(__file__).parent / "results.csv"
RUN = ["data", "eps", "seed", "preset"]
"""The columns that name a run."""


def main() -> None:
    """Run what the command line asks for, and write the page from all rows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bench", type=Path)
    parser.add_argument("--data", default="adult,br2000,nltcs,hmeq,hotel-bookings")
    parser.add_argument("--eps", default="0.2,1,5")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--presets", type=lambda text: text.split(","), default=["default", "paper"])
    settings = parser.parse_args()
    peers = json.loads((settings.bench / "peers.json").read_text())
    new = pd.concat([run(settings, preset) for preset in settings.presets])
    recorded = [pd.read_csv(ROWS)] if ROWS.exists() else []
    rows = pd.concat([*recorded, new]).drop_duplicates(RUN, keep="last", ignore_index=True)
    rows.to_csv(ROWS, index=False, float_format="%.5f")
    write_section("results.md", "results", section(rows, peers))


def section(rows: pd.DataFrame, peers: dict[str, Any]) -> str:
    """Return which commits made the rows, and a table for each data set and epsilon."""
    days = rows.groupby(["commit", "date", "preset"], sort=False)["data"].unique()
    made = [[commit, date, preset, ", ".join(tables)] for (commit, date, preset), tables in days.items()]
    sections = [
        f"{rows['seed'].nunique()} seeds; a row is of the last run of its table and method:\n\n"
        + markdown(("commit", "date", "method", "tables"), made)
    ]
    for (data, epsilon), group in rows.groupby(["data", "eps"], sort=False):
        means = {f"**privsyn** ({preset})": r[list(METRICS)].mean() for preset, r in group.groupby("preset")}
        means |= {name: pd.Series(row) for name, row in peers.get(data, {}).get(f"{epsilon:g}", {}).items()}
        real = peers.get(data, {}).get("real", {}).get("gb_auc", float("nan"))
        head = f"## {data}, epsilon {epsilon:g}\n\nTrained on real rows: AUC {real:.4f}.\n\n"
        sections.append(head + table(means))
    return "\n".join(sections)


def run(settings: argparse.Namespace, preset: str) -> pd.DataFrame:
    """Return a row for each run of the bench, with date and commit."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "runs.jsonl"
        options = [
            "--data",
            settings.data,
            "--eps",
            settings.eps,
            "--seeds",
            settings.seeds,
            "--preset",
            preset,
        ]
        subprocess.run([sys.executable, settings.bench / "bench.py", *options, "--out", out], check=True)
        rows = pd.read_json(out, lines=True).drop(columns="peak_rss_mb")
    return rows.assign(**today())


def table(rows: dict[str, pd.Series]) -> str:
    """The rows as Markdown, least pair error first; a model that was trained directly has a score alone."""
    lines = ["| method | " + " | ".join(METRICS.values()) + " |", "|---|" + "---|" * len(METRICS)]
    for name, row in sorted(rows.items(), key=lambda item: item[1].get("tvd2_mean", inf)):
        cells = [f"{row[key]:.4f}" if key in row else "-" for key in METRICS if key != "run_s"]
        seconds = f"{row['run_s']:.1f}" if "run_s" in row else "-"
        lines.append(f"| {name} | " + " | ".join([*cells, seconds]) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
