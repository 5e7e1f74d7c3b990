"""Run the comparison bench and write docs/results.md: our errors beside the peers' recorded ones.

    python experiments/results.py BENCH [--data adult,nltcs] [--eps 0.2,1,5] [--seeds 0,1] [--paper-seeds 0]
        [--only paper]

BENCH is the folder of the bench (bench.py, peers.json, domains/); the data lie beside it. The bench uses
privsyn's public names alone, with seeds, so its runs are repeatable and NOT PRIVATE. With --only, the runs of
the other preset are those that experiments/results.csv holds.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pandas as pd

METRICS = {"tvd2_mean": "pairs", "tvd3_mean": "triples", "gb_auc": "AUC", "run_s": "seconds"}
PAGE = Path(__file__).parents[1] / "docs" / "results.md"
ROWS = Path(__file__).parent / "results.csv"
HEAD = """# Results

Mean total variation distance between the synthetic and the training table over all pairs and 100 fixed
triples, AUC of gradient boosting trained on synthetic rows and tested on real ones, and seconds for fit and
sample. delta 1e-9, neighbours by adding or removing one record, categorical columns and numbers in 32 equal
bins; the mean of {seeds} seeds, for PrivSyn.paper of {paper_seeds}. `floor-resample` draws as many rows
from the real table, with replacement, and `floor-indep` draws its columns alone: for comparison, not
private. The peers' numbers are as recorded with the bench, their seconds on another machine; a `-` was not
recorded.{note}

privsyn {version}; made by

    {command}
"""


def main() -> None:
    """Run what the command line asks for and write the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("bench", type=Path)
    parser.add_argument("--data", default="adult,br2000,nltcs,hmeq,hotel-bookings")
    parser.add_argument("--eps", default="0.2,1,5")
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--paper-seeds", default="0,1,2", help="for PrivSyn.paper")
    parser.add_argument("--only", choices=["default", "paper"], help="run this preset alone")
    parser.add_argument("--note", default="", help="what else the page is to say, of the machine's load say")
    settings = parser.parse_args()
    peers = json.loads((settings.bench / "peers.json").read_text())
    recorded = pd.read_csv(ROWS) if settings.only else None
    runs = pd.concat(
        [
            run(settings, preset, seeds).drop(columns="peak_rss_mb")
            if recorded is None or preset == settings.only
            else recorded[recorded["preset"] == preset]
            for preset, seeds in (("default", settings.seeds), ("paper", settings.paper_seeds))
        ]
    )
    runs.to_csv(ROWS, index=False, float_format="%.5f")
    seeds, paper_seeds = (len(text.split(",")) for text in (settings.seeds, settings.paper_seeds))
    command = " ".join(["python experiments/results.py BENCH", *sys.argv[2:]])
    note = f" {settings.note}" if settings.note else ""
    sections = [
        HEAD.format(
            seeds=seeds, paper_seeds=paper_seeds, note=note, version=version("privsyn"), command=command
        )
    ]
    for (data, epsilon), group in runs.groupby(["data", "eps"], sort=False):
        rows = {f"**privsyn** ({preset})": r[list(METRICS)].mean() for preset, r in group.groupby("preset")}
        rows |= {name: pd.Series(row) for name, row in peers.get(data, {}).get(f"{epsilon:g}", {}).items()}
        real = peers.get(data, {}).get("real", {}).get("gb_auc", float("nan"))
        head = f"## {data}, epsilon {epsilon:g}\n\nTrained on real rows: AUC {real:.4f}.\n\n"
        sections.append(head + table(rows))
    PAGE.write_text("\n".join(sections), encoding="utf-8")


def run(settings: argparse.Namespace, preset: str, seeds: str) -> pd.DataFrame:
    """One row a run of the bench."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "runs.jsonl"
        options = [
            "--data",
            settings.data,
            "--eps",
            settings.eps,
            "--seeds",
            seeds,
            "--preset",
            preset,
        ]
        subprocess.run([sys.executable, settings.bench / "bench.py", *options, "--out", out], check=True)
        return pd.read_json(out, lines=True)


def table(rows: dict[str, pd.Series]) -> str:
    """The rows as Markdown, least pair error first."""
    lines = ["| method | " + " | ".join(METRICS.values()) + " |", "|---|" + "---|" * len(METRICS)]
    for name, row in sorted(rows.items(), key=lambda item: item[1]["tvd2_mean"]):
        cells = [f"{row[key]:.4f}" if key in row else "-" for key in METRICS if key != "run_s"]
        seconds = f"{row['run_s']:.1f}" if "run_s" in row else "-"
        lines.append(f"| {name} | " + " | ".join([*cells, seconds]) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
