"""Compare two checkouts: run one command with each in turn, on the same machine at the same time.

    python -m benchmarks.turns ../other . -- privsyn synth adult.csv out.csv --epsilon 1 --force

Each run is a process of its own with PYTHONPATH set to the checkout. The first round is not counted.
Other programs slow down both checkouts, so the ratios count. They change processor time least.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple


class Cost(NamedTuple):
    """What one run of the command took: seconds, seconds of processor time, and bytes of peak memory."""

    wall: float
    processor: float
    peak: float


def run(checkout: Path, command: list[str]) -> Cost:
    """Run the command with a checkout, and refuse a run that fails."""
    begun = time.perf_counter()
    environment = os.environ | {"PYTHONPATH": str(checkout.resolve())}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # users do not compile all modules in each run
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed with {checkout}: exit status {process.returncode}")
    wall = time.perf_counter() - begun
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def compare(checkouts: list[Path], command: list[str], rounds: int) -> None:
    """Print the medians of each checkout, and the ratios of the second to the first."""
    costs: dict[Path, list[Cost]] = {checkout: [] for checkout in checkouts}
    for turn in range(rounds + 1):
        for checkout in checkouts:
            cost = run(checkout, command)
            if turn:
                costs[checkout].append(cost)
    medians = [Cost(*map(median, zip(*found, strict=True))) for found in costs.values()]
    for checkout, cost in zip(checkouts, medians, strict=True):
        times = f"{cost.wall:7.2f} s  processor {cost.processor:6.2f} s"
        print(f"{checkout!s:24} {times}  peak {cost.peak / 1e9:5.3f} GB")  # noqa: T201
    wall, processor, peak = (new / old for old, new in zip(*medians, strict=True))
    print(f"{'ratio':24} {wall:7.2f}    processor {processor:6.2f}    peak {peak:5.2f}")  # noqa: T201
    print(f"load of the machine: {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")  # noqa: T201


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.turns", description=__doc__)
    parser.add_argument("checkouts", nargs=2, type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("command", nargs="+")
    given = parser.parse_args()
    compare(given.checkouts, given.command, given.rounds)


if __name__ == "__main__":
    main()
