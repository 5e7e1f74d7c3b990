"""Thousands of contributors, three collectors: are all sums right, and what does a contribution cost? Adult.

    PRIVSYN_DATA=folder python experiments/contributors.py [--rows 10000] [--epsilon 1]

Of the contributors 2 % never come, 1 % come twice with two rows, 1 % send garbage of three kinds, and some
come after the collection has ended. Each collector is a process. Collector 2 is killed in the second
question, after it dealt its noise, and does not come back. All collectors write down their noise. So each sum
that was opened can be compared with the counts of the honest rows plus this noise, and the model with that of
the same answers. The numbers are in docs/owners.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from tables import add_data_argument, read

from privsyn import PrivSyn, evaluate, load, read_schema
from privsyn.cli.main import main as command
from privsyn.collectors.board import Board
from privsyn.collectors.collectors import CollectedNoise
from privsyn.table.schema.yaml_file import to_yaml

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from collectors.simulation import begin, contribute, replayed

KILLED_AT = "answers/000001.sum"  # the second question: its noise is dealt, the sum is not opened


def collector(party: int, noises: Path, killed: bool, arguments: list[str]) -> int:
    """Run `privsyn collect` in this process, write down the noise, and end hard where it is to be killed."""
    draw, post, drawn = CollectedNoise.draw, Board.post, {}

    def drawing(self: CollectedNoise, scale: float, size: int) -> np.ndarray:
        drawn[f"{party}.{len(drawn)}"] = draw(self, scale, size)
        np.savez(noises, **drawn)
        return list(drawn.values())[-1]

    def posting(self: Board, name: str, content: bytes) -> None:
        if killed and name == KILLED_AT:
            os._exit(9)
        post(self, name, content)

    with mock.patch.object(CollectedNoise, "draw", drawing), mock.patch.object(Board, "post", posting):
        return command(arguments)


def run_collectors(folder: Path, schema: Path, late: Iterator[Path], *, killed: bool) -> list[float]:
    """Run all collectors, one of whom may be killed; return their processor seconds."""
    home, processes = folder.parent, []
    for party in range(3):
        arguments = [
            *("collect", str(folder), "--party", str(party), "--schema", str(schema)),
            *("--model", str(home / f"{party}.privsyn"), "--force"),
            *("--keys", str(home / f"{party}.key"), "--patience", "60"),
        ]
        words = [str(party), str(home / f"noise.{party}.npz"), str(int(killed and party == 2))]
        processes.append(
            subprocess.Popen(
                [sys.executable, __file__, "--collector", *words, *arguments],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    while not (folder / "contributions.set").exists():
        time.sleep(0.1)
    list(late)
    seconds = []
    for party, process in enumerate(processes):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        message = process.communicate()[1]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if process.returncode != (9 if killed and party == 2 else 0):
            raise SystemExit(f"collector {party}: {message}")
    return seconds


def main() -> None:
    """Print what was compared, the costs, and the errors of pairs."""
    if sys.argv[1:2] == ["--collector"]:
        party, noises, killed, *arguments = sys.argv[2:]
        sys.exit(collector(int(party), Path(noises), bool(int(killed)), arguments))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_argument(parser)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    options = parser.parse_args()
    _, frame, schema, _ = read(options.folder, "adult")
    frame = frame.sample(options.rows, random_state=0, ignore_index=True)
    with tempfile.TemporaryDirectory() as name:
        home, folder = Path(name), Path(name) / "study"
        (home / "schema.yaml").write_text(to_yaml(schema))
        frame.to_csv(home / "rows.csv", index=False)
        settings: PrivSyn[Any] = PrivSyn(options.epsilon, schema=read_schema(home / "schema.yaml"))
        study = begin(folder, settings)
        honest, costs, late = contribute(folder, study, settings, home / "rows.csv", seed=0)
        print(json.dumps({"contributor": costs, "rows that count": len(honest)}), flush=True)  # noqa: T201
        again = home / "again" / "study"  # the same rows to three more collectors, for a comparison
        again.parent.mkdir()
        contribute(again, begin(again, settings, lost=0), settings, home / "rows.csv", seed=0)
        begun = time.monotonic()
        seconds = run_collectors(folder, home / "schema.yaml", late, killed=True)
        sent = [sum(f.stat().st_size for f in folder.rglob(f"*.{party}")) for party in range(3)]
        print(json.dumps({"collectors' seconds": seconds, "bytes": sent, "wall": time.monotonic() - begun}))  # noqa: T201
        if (home / "0.privsyn").read_bytes() != (home / "1.privsyn").read_bytes():
            raise SystemExit("the models differ")
        noises = {
            tuple(map(int, key.split("."))): array
            for party in range(3)
            for key, array in np.load(home / f"noise.{party}.npz").items()
        }
        rows = frame.iloc[honest].reset_index(drop=True)
        rows.to_csv(home / "honest.csv", index=False)
        repeated, questions = replayed(folder, settings, home / "honest.csv", noises)
        model = load(home / "0.privsyn")
        same = model.sample(1000, seed=0).equals(repeated.sample(1000, seed=0))
        print(json.dumps({"sums compared": questions, "the same model from the rows": same}), flush=True)  # noqa: T201
        central = PrivSyn(options.epsilon, schema=schema).fit(rows)
        run_collectors(again, home / "schema.yaml", iter(()), killed=False)
        for title, release in (
            ("one table", central.release_),
            ("3 collectors, 1 may be lost", model),
            ("3 collectors, none may be lost", load(again.parent / "0.privsyn")),
        ):
            scores = evaluate(rows, release.sample(len(rows), seed=0), schema=schema, models=False)
            print(json.dumps({"run": title, "pair error": scores.pair_mean.synthetic}), flush=True)  # noqa: T201


if __name__ == "__main__":
    pd.set_option("display.width", 200)
    main()
