"""A sweep: many runs, each with its own epsilon, seed and method, and one row of results.

Runs on real tables are seeded, and their results compare with the real tables: NOT PRIVATE, only for
experiments. Of one table a fifth of the rows is held out from all runs. Models are tested on it. A sweep of a
release reads no private row.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from itertools import product
from math import nan
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from privsyn.arguments import check_between, check_whole, read_parameters
from privsyn.errors import InputError, about, did_you_mean, safe_repr, spelled
from privsyn.evaluation.comparison import TEST_SHARE, Comparison, Learning, chosen_learners
from privsyn.evaluation.evaluate import evaluate
from privsyn.evaluation.linked_comparison import LinkedComparison
from privsyn.evaluation.linked_rows import read_tables
from privsyn.evaluation.registry import add_metric, try_own
from privsyn.evaluation.scores import Scores
from privsyn.files import atomic_path
from privsyn.methods.methods import METHODS
from privsyn.progress import Progress
from privsyn.release.release import Release
from privsyn.studies.own_method import OwnMethod, own_methods
from privsyn.studies.results import check_results, long_form, read_results
from privsyn.studies.simulated import simulated_scores
from privsyn.synthesizer import PrivSyn
from privsyn.table.database.database import Database
from privsyn.table.database.opened import named_tables
from privsyn.table.database.yaml_form import as_database, database_to_plain
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.encoding.dtypes import OBJECT, dtype_text
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.schema.schema import declared
from privsyn.table.schema.yaml_file import SchemaOrPath, as_schema, to_plain

SPLIT_SEED = 20261121
PRESETS: dict[str, str] = {"default": "default", "paper": "published"}
"""The method of each preset. Parameters may follow its name: ``paper(rounds=50)``."""

PROC = Path("/proc/self")


def read_preset(preset: object) -> tuple[str, dict[str, Any]]:
    """Return the name of a preset and its parameters.

    >>> read_preset("paper(rounds=50, duplication=(0.5, 1))"), read_preset("default")
    (('paper', {'rounds': 50, 'duplication': (0.5, 1)}), ('default', {}))
    """
    name, parenthesis, rest = preset.partition("(") if isinstance(preset, str) else ("", "", "")
    if name not in PRESETS:
        raise InputError(
            f"preset is one of {', '.join(PRESETS)}; got {safe_repr(preset)}{did_you_mean(preset, PRESETS)}"
            "; for a function of your own see --method, in Python methods"
        )
    if parenthesis and not rest.endswith(")"):
        raise InputError(f"preset {safe_repr(preset)} lacks its last parenthesis: paper(rounds=50)")
    return name, read_parameters(f"parameters of preset {name}", rest[:-1]) if parenthesis else {}


A = TypeVar("A")


@dataclass(frozen=True)
class Run:
    """One run of a sweep."""

    epsilon: float
    seed: int
    preset: str | OwnMethod = "default"

    def __post_init__(self) -> None:
        if not isinstance(self.preset, OwnMethod):
            read_preset(self.preset)
        check_between("epsilon", self.epsilon)
        check_whole("seed", self.seed)

    @property
    def method(self) -> str:
        """The name of the method in the results."""
        return self.preset.name if isinstance(self.preset, OwnMethod) else self.preset

    def __str__(self) -> str:
        return f"{self.method}, epsilon {self.epsilon:g}, seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class SweepSettings:
    """What all runs of a sweep share, beside the table and its schema.

    Parameters
    ----------
    target : str or None
    delta : float
    models : bool or list of str
        As for `evaluate`.
    metrics : tuple of str
        Further metrics, as for `evaluate`.
    name : str or None
        The name of the table in the results. Default: that of its file.
    allow_weak_privacy : bool
    unit, rows_per_unit, identifiers, order, important, nullable
        As for `PrivSyn`.
    """

    target: str | None = None
    delta: float = 1e-9
    models: bool | Sequence[str] = True
    metrics: tuple[str, ...] = ()
    name: str | None = None
    allow_weak_privacy: bool = False
    unit: str | None = None
    rows_per_unit: int | None = None
    identifiers: bool = False
    order: str | None = None
    important: Sequence[Sequence[str]] | None = None
    nullable: bool = True

    @property
    def of_runs(self) -> dict[str, Any]:
        """The settings of each run that do not depend on its method."""
        names = ("unit", "rows_per_unit", "identifiers", "order", "nullable", "allow_weak_privacy")
        return {name: getattr(self, name) for name in names}

    def checked(self) -> SweepSettings:
        """Register the metrics and return the settings with their names; refuse unknown models."""
        chosen_learners(self.models)
        return replace(self, metrics=tuple(map(add_metric, self.metrics)))


@dataclass(frozen=True, eq=False)
class Bench:
    """A real table, split in two, on which runs are measured.

    Parameters
    ----------
    train, test : pandas.DataFrame
        Rows that runs are fitted to, and held-out rows; see `LinkedBench` for several tables.
    schema : Schema or None
    shared : SweepSettings
    name : str
        The name of the table in the results.
    """

    train: Any
    test: Any
    schema: Any
    shared: SweepSettings = SweepSettings()
    name: str = "table"

    @classmethod
    def of(
        cls, table: Any, schema: SchemaOrPath | None = None, shared: SweepSettings = SweepSettings()
    ) -> Bench:
        """Read a table and hold out a fixed fifth of its rows, or of its persons.

        Nothing is held out where rows belong together: scores of persons need none.
        """
        shared, name = shared.checked(), shared.name
        if name is None:
            name = Path(table).name.split(".")[0] if isinstance(table, str | PathLike) else "table"
        schema = as_schema(schema)
        source = read_in_memory(table, schema, unit=shared.unit)
        schema, frame = declared(schema) or source.schema or schema, source.frame
        if shared.identifiers:
            return cls(frame, None, schema, shared, name)
        held_together = np.arange(len(frame)) if shared.unit is None else pd.factorize(frame[shared.unit])[0]
        order = np.random.default_rng(SPLIT_SEED).permutation(int(held_together.max(initial=-1)) + 1)
        cut = round(TEST_SHARE * len(order))
        if not cut:
            raise InputError("the table has too few rows to hold any out: give a larger table")
        is_test = np.isin(held_together, order[:cut])
        test, train = (frame[rows].reset_index(drop=True) for rows in (is_test, ~is_test))
        return cls(
            train, test if shared.unit is None else test.drop(columns=shared.unit), schema, shared, name
        )

    @property
    def real(self) -> Any:
        """The training rows with the columns of synthetic ones."""
        dropped = self.shared.unit is not None and not self.shared.identifiers
        return self.train.drop(columns=self.shared.unit) if dropped else self.train

    def check(self, runs: Iterable[Run]) -> None:
        """Refuse wrong settings of any run, and metrics that fail on some rows, before the first run."""
        schema, shared = as_database(self.schema).schema, self.shared
        keys = {shared.unit, shared.order} - {None, *(schema.columns if schema is not None else ())}
        data = self.real.drop(columns=[*keys], errors="ignore")
        open_schema = OpenSchema.of(schema, data)
        if self.shared.target is not None:
            open_schema.schema.check_coded("target", self.shared.target, read=True)
        self._check_models(runs)
        if self.shared.metrics:
            learning, test = Learning(self.shared.target), data if self.test is None else self.test
            try_own(Comparison.of(data, test, schema, learning=learning))

    def _check_models(self, runs: Iterable[Run]) -> None:
        """Refuse settings of a run that cannot work. What a function of the user needs is not known."""
        for run in runs:
            if isinstance(run.preset, str):
                self._model(run, run.preset)

    def _model(self, run: Run, preset: str) -> PrivSyn:
        """Return the model that a run fits."""
        name, parameters = read_preset(preset)
        method = PRESETS[name]
        settings: dict[str, Any] = {"method": method, "parameters": parameters or None, "seed": run.seed}
        settings |= self.shared.of_runs
        settings["target"] = self.shared.target if METHODS[method].takes_target else None
        settings["important"] = self.shared.important if METHODS[method].takes_important else None
        with about(f"preset {safe_repr(preset)}") if parameters else nullcontext():
            return PrivSyn(run.epsilon, self.shared.delta, self.schema, **settings)

    @cached_property
    def table(self) -> str:
        """Return a digest of the names, the dtypes and all cells, twelve hexadecimal digits.

        It confirms a guess of the whole table. So do the scores, because the runs are seeded. Sweeps are
        for public tables only.
        """
        return _digest_of_tables(self.train, *([] if self.test is None else [self.test]))

    @cached_property
    def settings(self) -> str:
        """Return a digest of the version and of the settings that all runs share."""
        shared = self.shared
        models = shared.models if isinstance(shared.models, bool) else list(shared.models)
        settings = (shared.delta, shared.target, models, self._plain, *shared.metrics)
        return _digest(version("privsyn"), *settings, shared.of_runs, shared.important)

    @property
    def _plain(self) -> Any:
        """The schema as plain data."""
        if isinstance(self.schema, Database):
            return database_to_plain(self.schema)
        return None if self.schema is None else to_plain(self.schema)

    def key(self, run: Run) -> str:
        """Return a digest of everything that determines the results of a run."""
        source = [run.preset.source] if isinstance(run.preset, OwnMethod) else []
        return _digest(self.table, self.settings, float(run.epsilon), run.seed, run.method, *source)

    def scores(self, synthetic: Any) -> Scores:
        """Compare what a run made with the rows that it was fitted to."""
        shared = self.shared
        unit = shared.unit if shared.identifiers else None
        options: dict[str, Any] = {"unit": unit, "order": shared.order, "models": shared.models}
        return evaluate(self.real, synthetic, self.schema, target=shared.target, test=self.test, **options)

    def made(self, run: Run) -> tuple[Any, float, float]:
        """Return a synthetic table, and the seconds of fitting and of sampling (NaN if it is one step)."""
        start = time.perf_counter()
        if isinstance(run.preset, OwnMethod):
            synthetic = run.preset.sample(self.copied, run.epsilon, run.seed)
            return synthetic, time.perf_counter() - start, nan
        model = self._model(run, run.preset).fit(self.train)
        fitted = time.perf_counter()
        synthetic = model.sample(model.release_.estimated_rows)  # a sweep shows noise too
        return synthetic, fitted - start, time.perf_counter() - fitted

    @property
    def copied(self) -> Any:
        """The training rows for a function of the user, which may change its copy."""
        return self.train.copy()

    def measure(self, run: Run) -> dict[str, Any]:
        """Fit, sample and compare; return the settings, time, memory and all scores."""
        with suppress(OSError):  # resets the peak of memory use, where the system can (Linux)
            (PROC / "clear_refs").write_text("5")
        synthetic, fitting, sampling = self.made(run)
        memory = nan  # MB; NaN where the system does not report it
        with suppress(OSError):
            lines = (PROC / "status").read_text().splitlines()
            peaks = [float(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
            memory = round(peaks[0] / 1024, 1) if peaks else nan
        with about(str(run.preset)) if isinstance(run.preset, OwnMethod) else nullcontext():
            scores = self.scores(synthetic)
        return {
            "private": False,
            "config": self.key(run),
            "name": self.name,
            "table": self.table,
            "settings": self.settings,
            "preset": run.method,
            "epsilon": run.epsilon,
            "delta": self.shared.delta,
            "seed": run.seed,
            "version": version("privsyn"),
            "fit_seconds": round(fitting, 3),
            "sample_seconds": round(sampling, 3),
            "memory_mb": memory,
        } | scores.row()


@dataclass(frozen=True, eq=False)
class LinkedBench(Bench):
    """Real linked tables on which runs are measured; `train` maps their names to frames, `test` is None."""

    @classmethod
    def of_tables(cls, tables: Any, database: Database, shared: SweepSettings) -> LinkedBench:
        """Read linked tables, as for `fit`."""
        if shared.target is not None:
            raise InputError(f"leave out {spelled('target')}: linked tables do not take it")
        shared, name = shared.checked(), shared.name
        if name is None:
            name = Path(tables).stem if isinstance(tables, str | PathLike) else "tables"
        frames = read_tables("real", named_tables(database, tables), database)
        return cls(frames, None, database, shared, name)

    def check(self, runs: Iterable[Run]) -> None:
        """Refuse wrong settings of any run, and metrics that fail on some rows, before the first run."""
        self._check_models(runs)
        if self.shared.metrics:
            both = {"real": self.train, "synthetic": self.train}
            for comparison in LinkedComparison.of(both, self.schema).comparisons.values():
                try_own(comparison)

    @property
    def copied(self) -> Any:
        """The tables for a function of the user, which may change its copies."""
        return {name: frame.copy() for name, frame in self.train.items()}

    @cached_property
    def table(self) -> str:
        """Return a digest of all tables; see `Bench.table`."""
        return _digest({name: _digest_of_tables(frame) for name, frame in self.train.items()})

    @property
    def _plain(self) -> Any:
        return database_to_plain(self.schema)


def sweep(
    table: Any,
    epsilons: Iterable[float] | None = None,
    *,
    seeds: int | None = None,
    presets: Iterable[str] | None = None,
    methods: Mapping[str, Callable[..., Any] | str] | Iterable[str] = (),
    delta: float = 1e-9,
    schema: SchemaOrPath | Database | None = None,
    unit: str | None = None,
    rows_per_unit: int | None = None,
    identifiers: bool = False,
    order: str | None = None,
    target: str | None = None,
    important: Sequence[Sequence[str]] | None = None,
    nullable: bool = True,
    models: bool | Sequence[str] = True,
    metrics: Sequence[str] = (),
    name: str | None = None,
    long: bool = False,
    allow_weak_privacy: bool = False,
    out: str | PathLike[str] | None = None,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Measure runs on a real table, with one row for each. Seeded, and it reads the real table: NOT PRIVATE.

    With a database as the schema, the runs are on its linked tables. A row then has the scores of rows that
    belong together (``next_mean``), and those of each table with its name in front (``visits.pair_mean``).

    A release in the place of the table is swept without a private row, so it costs no further privacy: tables
    that the private one could be stand in for it. Each row says what a model that learns from the release is
    expected to reach on real rows. It takes `target`, `models`, `seeds` and `progress`.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or a path as for `fit`
        With a database, a mapping of names to tables, or the path of a folder or database, as for `fit`. Or a
        release of one table, or a fitted model.
    epsilons : iterable of float
        Of a table.
    seeds : int, optional
        Number of runs for each epsilon and preset, with seeds 0, 1, ... Default: 5. Of a release the number
        of simulated runs; default: 1.
    presets : iterable of "default" or "paper", optional
        The latter may have parameters of `PrivSyn.paper`, as in "paper(rounds=50)". Default: "default", or
        none if there are `methods`.
    methods : mapping of a name to a callable, or iterable of "module:callable"
        Methods of your own, measured in the same way. Each is called as ``(table, epsilon, seed)``, with the
        training rows as a data frame (of linked tables a dict of these), and returns a synthetic table like
        it. It does not receive `delta` or `schema`. Its runs are repeated if its text has changed.
    delta, schema : as for PrivSyn
    unit, rows_per_unit, identifiers, order, important, nullable : as for PrivSyn
        With `unit` a fifth of the persons is held out. With `identifiers` none is, and rows have the scores
        of rows that belong together.
    target : str, optional
        A column that models predict; the default method optimises for it. Not of linked tables.
    models, metrics : as for `evaluate`
    name : str, optional
        The name of the table in the results. Default: that of its file, or "table".
    long : bool
        Return one row for each score and table instead of one for each run; see `long_form`.
    allow_weak_privacy : as for PrivSyn
    out : path, optional
        A .csv file that receives each row when its run is done. Runs in it are not repeated. A file with
        runs on another table is refused. Rows of other settings stay in it.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    pandas.DataFrame
        The rows of this sweep, and those of `out` that differ only in epsilon, seed or preset. Of a release
        one row for each model: the expected `score` on real rows, AUC or R2; `real`, the score of a model
        that learns from real rows; and the `drop` between them, which the noise costs. From ``score_low``
        to ``score_high`` is a 90 % interval. Its lower end may be `guess`, the score of a prediction without
        any column. If the verdict on a model of the target is No, or the expected score exceeds `guess` by at
        most 0.02, the table is `useless`: then intervals, `real` and `drop` are NaN.

    Raises
    ------
    InputError
        If any run is impossible, a metric fails on some rows, or `out` contains runs on another table. Then
        no run is made.

    Examples
    --------
    >>> from privsyn import Categorical, Schema
    >>> rows = pd.DataFrame({"smokes": ["no", "yes"] * 500, "ill": ["no", "yes", "no", "no"] * 250})
    >>> schema = Schema({"smokes": Categorical(["no", "yes"]), "ill": Categorical(["no", "yes"])})
    >>> release = PrivSyn(1.0, 1e-6, schema, seed=0).fit(rows).release_
    >>> (expected,) = sweep(release, target="ill", models=["boosting"]).itertuples()
    >>> expected.measure, expected.score > 0.7, expected.drop < 0.1
    ('AUC', True, True)
    """
    if isinstance(table, Release | PrivSyn):
        of_tables: dict[str, object] = {"epsilons": epsilons, "presets": presets, "methods": methods}
        of_tables |= {"schema": schema, "unit": unit, "important": important}
        of_tables |= {"metrics": metrics, "name": name, "long": long, "out": out}
        scores = simulated_scores(table, target, models, seeds, progress, of_tables)
        return pd.DataFrame([score.row for score in scores])
    if epsilons is None:
        raise InputError(f"a sweep of a table makes runs of several epsilons: give {spelled('epsilons')}")
    methods_given = own_methods(methods, PRESETS)
    if presets is None:
        presets = () if methods_given else ("default",)
    chosen: list[str | OwnMethod] = [
        *_several("presets", presets, fewest=0 if methods_given else 1),
        *methods_given,
    ]
    seeded = range(check_whole("seeds", 5 if seeds is None else seeds, minimum=1))
    cases = product(_several("epsilons", epsilons), seeded, chosen)
    runs = list(dict.fromkeys(Run(*case) for case in cases))  # one that is asked for twice is made once
    rows = read_results(out)
    shared = SweepSettings(
        target=target,
        delta=delta,
        models=models,
        metrics=tuple(metrics),
        name=name,
        allow_weak_privacy=allow_weak_privacy,
        unit=unit,
        rows_per_unit=rows_per_unit,
        identifiers=identifiers,
        order=order,
        important=important,
        nullable=nullable,
    )
    bench: Bench
    database = as_database(schema)
    if database.single is None:
        bench = LinkedBench.of_tables(table, database, shared)
    else:
        bench = Bench.of(table, database.schema, shared)
        if database.about_persons:
            bench = replace(bench, schema=database)
    bench.check(runs)
    check_results(out, rows, bench.table)
    done = set(rows.get("config", ()))
    runs_left = [run for run in runs if bench.key(run) not in done]
    if progress is not None:
        progress("runs", len(runs) - len(runs_left), len(runs))
    for number, run in enumerate(runs_left, start=len(runs) - len(runs_left) + 1):
        rows = pd.concat([rows, pd.DataFrame([bench.measure(run)])], ignore_index=True)
        if out is not None:
            with atomic_path(out) as part:
                rows.to_csv(part, index=False)
        if progress is not None:
            progress("runs", number, len(runs))
    rows = rows[(rows["settings"] == bench.settings) & ~_changed(bench, rows, methods_given)].reset_index(
        drop=True
    )
    return long_form(rows) if long else rows


def _changed(bench: Bench, rows: pd.DataFrame, methods_given: Sequence[OwnMethod]) -> pd.Series:
    """Return which rows are of a function of the user whose text has changed since."""
    by_name = {method.name: method for method in methods_given}
    changed = [
        name in by_name and bench.key(Run(float(epsilon), int(seed), by_name[name])) != config
        for name, epsilon, seed, config in rows[["preset", "epsilon", "seed", "config"]].to_numpy(OBJECT)
    ]
    return pd.Series(changed, rows.index, dtype=bool)


def _several(name: str, values: Iterable[A], *, fewest: int = 1) -> list[A]:
    """Return the values as a list; refuse a single value and a list that is too short."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a list: give [{safe_repr(values)}]")
    if len(several := list(values)) < fewest:
        raise InputError(f"{name} is an empty list: give at least one value")
    return several


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()[:12]


def _digest_of_tables(table: pd.DataFrame, *further: pd.DataFrame) -> str:
    """Return a digest of the names and dtypes of columns, and of all cells of tables that share them."""
    columns = [[str(name), dtype_text(dtype)] for name, dtype in table.dtypes.items()]
    digests = []
    for frame in (table, *further):
        digest = hashlib.sha256()
        for _, cells in frame.items():
            hashes = pd.util.hash_pandas_object(cells, index=False, categorize=False)
            digest.update(hashes.to_numpy().tobytes())
        digests.append(digest.hexdigest())
    return _digest(columns, *digests)
