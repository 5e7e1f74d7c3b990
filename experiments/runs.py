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
from importlib import import_module
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from tables import add_data_argument, read

from privsyn.studies.sweep import Bench, Run

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
        places = {
            name: (import_module(name.rpartition(".")[0]), name.rpartition(".")[2]) for name in self.replaced
        }
        before = {name: getattr(*place) for name, place in places.items()}
        try:
            for name, place in places.items():
                setattr(*place, self.replaced[name])
            yield
        finally:
            for name, place in places.items():
                setattr(*place, before[name])


def resumed(out: Path, asked: Iterable[Row], make: Callable[[Row], Iterable[Row]]) -> pd.DataFrame:
    """Rows of each of `asked`, beginning with what was asked and the version.

    Parameters
    ----------
    out : Path
        A CSV that gets them as soon as they are made. What it holds already is not made again, so that a
        script may be stopped and started again.
    asked : iterable of mappings of the same keys
    make : function of one of them
        To one or more mappings.
    """
    kept = pd.read_csv(out) if out.exists() else pd.DataFrame()
    for one in asked:
        known = one | {"version": version("privsyn")}
        if len(kept) and tuple(known.values()) in set(kept[list(known)].itertuples(index=False, name=None)):
            continue
        kept = pd.concat([kept, pd.DataFrame([known | row for row in make(one)])], ignore_index=True)
        kept.to_csv(out, index=False, float_format="%.6g")
    return kept


def measured(
    out: Path, settings: argparse.Namespace, variants: Iterable[Variant], *, models: bool
) -> pd.DataFrame:
    """A row for each table, epsilon, seed and variant that the settings ask for, as a sweep has them."""
    by_name = {v.name: v for v in variants if v.name in (settings.only or [v.name])}
    benches: dict[str, Bench] = {}

    def make(one: Row) -> Iterator[Row]:
        if one["data"] not in benches:
            table = read(settings.folder, one["data"])
            benches[one["data"]] = Bench.of(
                table.frame, table.schema, target=table.target, delta=DELTA, models=models
            )
        variant = by_name[one["variant"]]
        with variant.in_place():
            yield benches[one["data"]].measure(Run(one["epsilon"], one["seed"], variant.preset))

    keys = ("data", "epsilon", "seed", "variant")
    asked = product(settings.data, settings.eps, settings.seeds, by_name)
    return resumed(out, (dict(zip(keys, one, strict=True)) for one in asked), make)


def parser(text: str | None, *, data: str, eps: str, seeds: str) -> argparse.ArgumentParser:
    """A command line that asks which tables, epsilons and seeds; lists with commas between."""
    found = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_data_argument(found)
    found.add_argument("--data", type=lambda text: text.split(","), default=data)
    found.add_argument("--eps", type=lambda text: [float(part) for part in text.split(",")], default=eps)
    found.add_argument("--seeds", type=lambda text: [int(part) for part in text.split(",")], default=seeds)
    found.add_argument("--only", nargs="+", metavar="VARIANT", help="by default all")
    return found


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
    for place, word in enumerate(typed[:-1]):
        if word == "--folder":
            typed[place + 1] = "DATA"
    return shlex.join(["python", f"experiments/{Path(sys.argv[0]).name}", *typed])


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table."""
    names = list(head)
    lines = [names, ["---"] * len(names), *(list(row) for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
