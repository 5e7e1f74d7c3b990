"""A sweep: many runs on one real table, each with its own epsilon, seed and method, one tidy row a run.

Its runs are seeded and their results compare with the real table: NOT PRIVATE, for experiments alone. A fifth
of the rows is held out, learnt from by no run, and what models say is tried on those.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from itertools import product
from math import nan
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from privsyn.arguments import check_column, check_finite, check_whole
from privsyn.errors import InputError, replace_errors, safe_repr
from privsyn.evaluation.comparison import TEST_SHARE
from privsyn.evaluation.evaluate import evaluate
from privsyn.files import atomic_path, check_target
from privsyn.inference.fitted import Method
from privsyn.progress import Progress
from privsyn.synthesizer import PrivSyn
from privsyn.table.discovery.open_schema import OpenSchema, by_names
from privsyn.table.encoding.dtypes import dtype_text
from privsyn.table.io.read import read_table
from privsyn.table.schema.schema import Schema
from privsyn.table.schema.yaml_file import to_plain

SPLIT_SEED = 20261121
PRESETS = {"default": "default", "paper": "published"}
"""The method of each preset."""

PROC = Path("/proc/self")

A = TypeVar("A")


@dataclass(frozen=True)
class Run:
    """One run of a sweep."""

    epsilon: float
    seed: int
    preset: str = "default"

    def __post_init__(self) -> None:
        if self.preset not in PRESETS:
            raise InputError(f"preset is one of {', '.join(PRESETS)}; got {safe_repr(self.preset)}")
        check_finite("epsilon", self.epsilon)
        check_whole("seed", self.seed)

    def __str__(self) -> str:
        return f"{self.preset}, epsilon {self.epsilon:g}, seed {self.seed}"


@dataclass(frozen=True, eq=False)
class Bench:
    """A real table, cut in two, on which runs are measured.

    Parameters
    ----------
    train, test : pandas.DataFrame
        What runs learn from, and what they never see.
    schema : Schema or None
    target : str or None
    delta : float
    models : bool
        Whether to train any: they take most of the time.
    """

    train: pd.DataFrame
    test: pd.DataFrame
    schema: Schema | None
    target: str | None = None
    delta: float = 1e-9
    models: bool = True

    @classmethod
    def of(
        cls,
        table: Any,
        schema: Schema | None = None,
        *,
        target: str | None = None,
        delta: float = 1e-9,
        models: bool = True,
    ) -> Bench:
        """Read a table and hold out a fifth of its rows, the same ones each time."""
        source = read_table(table, schema)
        order = np.random.default_rng(SPLIT_SEED).permutation(len(source.frame))
        cut = round(TEST_SHARE * len(order))
        if not cut:
            raise InputError("the table has too few rows to hold any out: a sweep needs more")
        test, train = (
            source.frame.iloc[np.sort(part)].reset_index(drop=True) for part in (order[:cut], order[cut:])
        )
        return cls(train, test, schema or source.schema, target, delta, models)

    def check(self, runs: Iterable[Run]) -> None:
        """Refuse what `measure` would refuse of any of the runs, by names, dtypes and settings."""
        unknown = OpenSchema.of(self.schema or by_names(self.train), self.train)
        if self.target is not None:
            check_column("target", self.target, unknown.schema.coded)
        for run in runs:
            self.model(run)

    def model(self, run: Run) -> PrivSyn:
        """What is fitted in a run."""
        method: Method = PRESETS[run.preset]  # type: ignore[assignment]
        target = self.target if method == "default" else None  # the published algorithm knows none
        return PrivSyn(run.epsilon, self.delta, self.schema, target=target, seed=run.seed, method=method)

    @cached_property
    def table(self) -> str:
        """Twelve digits that differ for another table: names, dtypes, or any cell of any row.

        Whoever guesses a table can compare. The scores beside it tell as much, for the runs are seeded; so
        sweeps are for public tables.
        """
        columns = [[str(name), dtype_text(dtype)] for name, dtype in self.train.dtypes.items()]
        cells = [_digest_of_cells(part) for part in (self.train, self.test)]
        return _digest(columns, *cells)

    @cached_property
    def settings(self) -> str:
        """Twelve digits that differ where a setting does that all runs share, or the version."""
        schema = None if self.schema is None else to_plain(self.schema)
        return _digest(version("privsyn"), self.delta, self.target, self.models, schema)

    def key(self, run: Run) -> str:
        """Twelve digits that differ where anything differs that decides the row of a run."""
        return _digest(self.table, self.settings, float(run.epsilon), run.seed, run.preset)

    def measure(self, run: Run) -> dict[str, Any]:
        """Fit, sample and compare: what was asked for, what it took, and every number of the comparison."""
        model = self.model(run)
        _forget_peak()
        begun = time.perf_counter()
        model.fit(self.train)
        fitted = time.perf_counter()
        synthetic = model.sample()
        sampled = time.perf_counter()
        memory = _peak()
        scores = evaluate(
            self.train, synthetic, self.schema, target=self.target, test=self.test, models=self.models
        )
        about: dict[str, Any] = {
            "config": self.key(run),
            "table": self.table,
            "settings": self.settings,
            "preset": run.preset,
            "epsilon": run.epsilon,
            "delta": self.delta,
            "seed": run.seed,
            "version": version("privsyn"),
            "fit_seconds": round(fitted - begun, 3),
            "sample_seconds": round(sampled - fitted, 3),
            "memory_mb": memory,
        }
        return {"private": False} | about | scores.row()


def sweep(
    table: Any,
    epsilons: Iterable[float],
    *,
    seeds: int = 5,
    presets: Iterable[str] = ("default",),
    delta: float = 1e-9,
    schema: Schema | None = None,
    target: str | None = None,
    models: bool = True,
    out: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Measure runs on a real table, one row a run. Seeded, and it reads the real table: NOT PRIVATE.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or a path as for `fit`
    epsilons : iterable of float
    seeds : int
        Runs of each epsilon and preset, with seeds from 0 up.
    presets : iterable of "default" or "paper"
    delta, schema : as for PrivSyn
    target : str, optional
        A column that models learn and predict; the default is told of it.
    models : bool
        Whether to train any.
    out : path, optional
        A .csv file that gets each row as soon as its run is done. Runs that it holds already are not
        repeated. A file that holds runs on another table is refused; rows of other settings stay in it.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    pandas.DataFrame
        The rows of this sweep, and those of `out` with the same settings but for epsilon, seed and preset.

    Raises
    ------
    InputError
        If any of the runs cannot be made, or `out` holds runs on another table; then none is made.
    """
    each = range(check_whole("seeds", seeds, least=1))
    runs = [Run(*run) for run in product(_several("epsilons", epsilons), each, _several("presets", presets))]
    rows = _kept(out)
    bench = Bench.of(table, schema, target=target, delta=delta, models=models)
    bench.check(runs)
    _check_table(out, rows, bench.table)
    done = set(rows.get("config", ()))
    left = [run for run in runs if bench.key(run) not in done]
    if progress is not None:
        progress("runs", len(runs) - len(left), len(runs))
    for place, run in enumerate(left, start=len(runs) - len(left) + 1):
        rows = pd.concat([rows, pd.DataFrame([bench.measure(run)])], ignore_index=True)
        if out is not None:
            with atomic_path(out) as part:
                rows.to_csv(part, index=False)
        if progress is not None:
            progress("runs", place, len(runs))
    return rows[rows["settings"] == bench.settings].reset_index(drop=True)


def _several(name: str, values: Iterable[A]) -> list[A]:
    """What is given in a list; one by itself is refused."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} are several, in a list: give [{safe_repr(values)}]")
    if not (several := list(values)):
        raise InputError(f"{name} is an empty list: there is nothing to run")
    return several


def _kept(out: str | PathLike[str] | None) -> pd.DataFrame:
    """The rows of runs that were measured before."""
    if out is not None:
        check_target(out)
        if not str(out).lower().endswith((".csv", ".csv.gz")):
            raise InputError(f"{out}: results are CSV: let the name end in .csv")
    if out is None or not Path(out).exists():
        return pd.DataFrame()
    with replace_errors(f"{out}: is there, and holds no results of a sweep: give another name"):
        rows = pd.read_csv(out, dtype=dict.fromkeys(("config", "table", "settings"), str))
        rows["config"]
        return rows


def _check_table(out: object, rows: pd.DataFrame, table: str) -> None:
    """Refuse kept rows of another table: their scores would stand among those of this one."""
    if not len(rows):
        return
    if not {"table", "settings"} <= set(rows):
        raise InputError(
            f"{out}: its runs are of an earlier version, which did not note their table: give another name"
        )
    if (rows["table"] != table).any():
        raise InputError(
            f"{out}: holds runs on another table (other rows, names or types): give another name or delete it"
        )


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]


def _digest_of_cells(frame: pd.DataFrame) -> str:
    digest = hashlib.sha256()
    for _, cells in frame.items():
        digest.update(pd.util.hash_pandas_object(cells, index=False, categorize=False).to_numpy().tobytes())
    return digest.hexdigest()


def _forget_peak() -> None:
    """Let the largest memory use count from now on, where the system can (Linux)."""
    with suppress(OSError):
        (PROC / "clear_refs").write_text("5")


def _peak() -> float:
    """Largest memory use of this process, in MB; NaN where the system does not say."""
    with suppress(OSError):
        for line in (PROC / "status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return round(int(line.split()[1]) / 1024, 1)
    return nan
