"""What all measuring scripts share: rows that outlive an interruption, and variants of the program.

A variant replaces names of the program in passing, to see what a part of it is worth. Scripts use the public
names alone, but for those that tests/test_experiments.py lists, each with what it looks inside for.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from tables import Table, add_data_argument, read

from privsyn.studies.sweep import Bench, Run, SweepSettings

DELTA = 1e-9

Row = dict[str, Any]


@dataclass(frozen=True)
class Variant:
    """The program with one thing taken away or put in another's place.

    Parameters
    ----------
    name : str
    replaced : mapping of a module and attribute to what stands there for the run
    preset : "default" or "paper", with parameters if they are others
    """

    name: str
    replaced: Mapping[str, Any] = field(default_factory=dict)
    preset: str = "default"

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """The named attributes replaced, and put back."""
        targets = {
            name: (import_module(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in self.replaced
        }
        before = {name: getattr(*target) for name, target in targets.items()}
        try:
            for name, target in targets.items():
                setattr(*target, self.replaced[name])
            yield
        finally:
            for name, target in targets.items():
                setattr(*target, before[name])


def resumed(out: Path, cases: Iterable[Row], make: Callable[[Row], Iterable[Row]]) -> pd.DataFrame:
    """Return rows of each of `cases`, beginning with the case and the version.

    Parameters
    ----------
    out : Path
        A CSV that gets them as soon as they are made. What it holds already is not made again, so that a
        script may be stopped and started again.
    cases : iterable of mappings of the same keys
    make : function of one of them
        To one or more mappings.
    """
    rows = pd.read_csv(out) if out.exists() else pd.DataFrame()
    for case in cases:
        stamped = case | {"version": version("privsyn")}
        if len(rows) and tuple(stamped.values()) in set(
            rows[list(stamped)].itertuples(index=False, name=None)
        ):
            continue
        rows = pd.concat([rows, pd.DataFrame([stamped | row for row in make(case)])], ignore_index=True)
        rows.to_csv(out, index=False, float_format="%.6g")
    return rows


def measured(
    out: Path, settings: argparse.Namespace, variants: Iterable[Variant], *, models: bool
) -> pd.DataFrame:
    """A row for each table, epsilon, seed and variant that the settings ask for, as a sweep has them."""
    by_name = {v.name: v for v in variants if v.name in (settings.only or [v.name])}
    benches: dict[str, Bench] = {}

    def make(case: Row) -> Iterator[Row]:
        if case["data"] not in benches:
            table = read(settings.folder, case["data"])
            shared = SweepSettings(target=table.target, delta=DELTA, models=models)
            benches[case["data"]] = Bench.of(table.frame, table.schema, shared)
        variant = by_name[case["variant"]]
        with variant.in_place():
            yield benches[case["data"]].measure(Run(case["epsilon"], case["seed"], variant.preset))

    keys = ("data", "epsilon", "seed", "variant")
    cases = product(settings.data, settings.eps, settings.seeds, by_name)
    return resumed(out, (dict(zip(keys, case, strict=True)) for case in cases), make)


def measured_tables(
    out: Path, settings: argparse.Namespace, measure: Callable[[Table, float, int], Row]
) -> pd.DataFrame:
    """A row of `measure(table, epsilon, seed)` for each table, epsilon and seed that the settings ask for."""
    tables = cache(lambda name: read(settings.folder, name))
    keys = ("data", "epsilon", "seed")
    cases = product(settings.data, settings.eps, settings.seeds)
    return resumed(
        out,
        (dict(zip(keys, case, strict=True)) for case in cases),
        lambda case: [measure(tables(case["data"]), case["epsilon"], case["seed"])],
    )


def parser(text: str | None, *, data: str, eps: str, seeds: str) -> argparse.ArgumentParser:
    """A command line that asks which tables, epsilons and seeds; lists with commas between."""
    options = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_argument(options)
    options.add_argument("--data", type=lambda text: text.split(","), default=data)
    options.add_argument("--eps", type=lambda text: [float(part) for part in text.split(",")], default=eps)
    options.add_argument("--seeds", type=lambda text: [int(part) for part in text.split(",")], default=seeds)
    options.add_argument("--only", nargs="+", metavar="VARIANT", help="by default all")
    return options


def write_section(page: str, name: str, text: str) -> None:
    """Replace what stands between the marks of a section of a page in docs/; all else is written by hand."""
    path = Path(__file__).parents[1] / "docs" / page
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    before, rest = path.read_text(encoding="utf-8").split(begin)
    path.write_text(before + begin + text.strip("\n") + "\n" + end + rest.split(end)[1], encoding="utf-8")


def today() -> Row:
    """Return the date, and the commit of the code."""
    described = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    return {"date": f"{datetime.now(UTC):%Y-%m-%d}", "commit": described.stdout.strip() or "unknown"}


def command() -> str:
    """What was typed, wherever the data lie."""
    typed = sys.argv[1:]
    for position, word in enumerate(typed[:-1]):
        if word == "--folder":
            typed[position + 1] = "DATA"
    return shlex.join(["python", f"experiments/{Path(sys.argv[0]).name}", *typed])


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
