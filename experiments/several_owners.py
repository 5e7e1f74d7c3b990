"""What several owners cost: error beside one table's, seconds, and bytes sent. Adult, split unevenly.

    PRIVSYN_DATA=folder python experiments/several_owners.py [--runs 2] [--epsilon 1] [--lost]

Each owner is a process of its own on this machine, and runs `privsyn owner`. Owner i has twice as many rows
as owner i - 1. The noise is fresh in every run. With `--lost`, an owner is killed after some answers, and the
others go on without it. The means are in docs/owners.md.
"""

from __future__ import annotations

import argparse
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from tables import add_data_argument, read

from privsyn import PrivSyn, evaluate, load
from privsyn.table.schema.yaml_file import to_yaml

GROUPS = ((3, 3, None), (3, 2, None), (5, 5, None), (5, 3, None))
LOSSES = ((3, 2, None), *((3, 2, (lost, answers)) for lost in (0, 2) for answers in (2, 20, 60)))
"""Owners, how many are trusted, and who is lost after how many answers."""

GIVE_UP_AFTER = 5  # seconds
COMMAND = "import sys; from privsyn.cli.main import main; sys.exit(main())"


def together(
    folder: Path, frame: pd.DataFrame, epsilon: float, owners: int, honest: int, loss: tuple[int, int] | None
) -> dict[str, float]:
    """Seconds, megabytes that the largest owner sent, and the model in `folder` as `all.privsyn`."""
    ends = [round(len(frame) * (2**i - 1) / (2**owners - 1)) for i in range(owners + 1)]
    wires = [socket.create_server(("localhost", 0)) for _ in range(owners)]
    peers = ",".join(f"localhost:{wire.getsockname()[1]}" for wire in wires)
    for wire in wires:
        wire.close()
    for party in range(owners):
        frame[ends[party] : ends[party + 1]].to_parquet(folder / f"{party}.parquet")
    begun = time.monotonic()
    processes = [
        subprocess.Popen(
            [
                *(sys.executable, "-c", COMMAND, "owner", f"{party}.parquet", "--schema", "schema.yaml"),
                *("--epsilon", str(epsilon), "--party", str(party), "--peers", peers),
                *("--honest", str(honest), "--model", f"{party}.privsyn"),
                *(() if loss is None else ("--give-up-after", str(GIVE_UP_AFTER))),
            ],
            cwd=folder,
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        for party in range(owners)
    ]
    if loss is not None:
        lost, answers = loss
        while len(list((folder / f"{lost}.privsyn.run").glob("*.total"))) < answers:
            time.sleep(0.01)
        processes[lost].kill()
    messages = [process.communicate()[1] for process in processes]
    seconds = time.monotonic() - begun
    remain = [party for party in range(owners) if loss is None or party != loss[0]]
    models = {(folder / f"{party}.privsyn").read_bytes() for party in remain}
    if len(models) != 1:
        raise SystemExit("the owners' models differ")
    (folder / "all.privsyn").write_bytes(models.pop())
    sent = [float(re.search(r"sent ([\d.]+) MB", messages[party])[1]) for party in remain]
    rounds = len(list((folder / f"{remain[0]}.privsyn.run").glob("*.total")))
    return {"seconds": seconds, "MB sent": max(sent), "rounds": rounds}


def main() -> None:
    """Print each run and the means."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_data_argument(parser)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--lost", action="store_true")
    settings = parser.parse_args()
    _, frame, schema, _ = read(settings.folder, "adult")
    rows = []
    for run in range(settings.runs):
        begun = time.monotonic()
        central = PrivSyn(settings.epsilon, schema=schema).fit(frame)
        runs = [("one table", central.release_, {"seconds": time.monotonic() - begun})]
        for owners, honest, loss in LOSSES if settings.lost else GROUPS:
            with tempfile.TemporaryDirectory() as name:
                folder = Path(name)
                (folder / "schema.yaml").write_text(to_yaml(schema))
                costs = together(folder, frame, settings.epsilon, owners, honest, loss)
                lost = "" if loss is None else f", owner {loss[0]} lost after {loss[1]} answers"
                runs.append((f"{owners} owners, {honest} trusted{lost}", load(folder / "all.privsyn"), costs))
        for name, release, costs in runs:
            synthetic = release.sample(len(frame), seed=run)
            scores = evaluate(frame, synthetic, schema=schema, models=False)
            scores = {"pair error": scores.pair_mean.synthetic, "rows": len(release.sample(seed=run))}
            rows.append({"run": name, **scores, **costs})
            print(rows[-1], flush=True)  # noqa: T201
    print(pd.DataFrame(rows).groupby("run", sort=False).mean().round(4).to_string())  # noqa: T201


if __name__ == "__main__":
    main()
