"""What a method gets, and how it answers: each runs in an environment of its own.

python from_PACKAGE.py METHOD PROBLEM.npz ANSWER.npz EPSILON DELTA SEED
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Task:
    """Training rows in codes, what is public of them, and the privacy to be kept."""

    method: str
    train: np.ndarray
    sizes: tuple[int, ...]
    columns: tuple[str, ...]
    target: int
    test: np.ndarray
    epsilon: float
    delta: float
    seed: int


def main(synthesize: Callable[[Task], np.ndarray]) -> None:
    """Run a method as the command line says; write its rows and its seconds of processor time."""
    method, problem, answer, epsilon, delta, seed = sys.argv[1:]
    with np.load(problem) as file:
        task = Task(
            method,
            file["train"],
            tuple(map(int, file["sizes"])),
            tuple(map(str, file["columns"])),
            int(file["target"]),
            file["features"],
            float(epsilon),
            float(delta),
            int(seed),
        )
    start = time.process_time()
    rows = synthesize(task)
    np.savez(answer, rows=np.asarray(rows), seconds=time.process_time() - start)
