"""Seeded runs of this package that touch each kind of column, constraint, option, method and law of noise.

Each writes to a folder of its own: ledger, model, samples, draws, intervals, public page and sheet. Others
write drafts, plans, sweeps, scores of `evaluate`, and the help of all commands. Only public names are used,
so that other commits can do the same. Several owners have no seed and are left out. NOT PRIVATE.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from os import chdir
from pathlib import Path
from shutil import rmtree
from typing import Any

import pandas as pd
from tables import (
    ACCEPT,
    ALL_RANDOMISED,
    CATEGORIES,
    COLUMNS,
    HOSPITAL,
    LIVES,
    NAMES,
    NUMBERS,
    OPEN,
    RANDOMISED,
    ROWS,
    RULES,
    TIMES,
    answers,
    arrow,
    categories,
    drugs,
    hospital,
    part_of,
    people,
    polars,
    workers,
)

import privsyn

DELTA = 1e-6


@dataclass(frozen=True)
class Fit:
    """A run of `fit`, and what is asked of its release."""

    name: str
    epsilon: float | None
    schema: str | None = COLUMNS
    columns: list[str] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    given: Any = None
    share: str | None = None
    table: Callable[[pd.DataFrame], Any] = lambda frame: frame

    def write(self) -> None:
        """Fit, and write all files to the folder."""
        frame = people()
        names = list(frame.columns) if self.columns is None else self.columns
        schema = None
        if self.schema is not None:
            Path("schema.yaml").write_text(part_of(names, self.schema) if self.columns else self.schema)
            schema = privsyn.read_schema("schema.yaml")
            frame = frame[
                [name for name in frame if name in schema.columns or name == self.settings.get("unit")]
            ]
            Path("explained.txt").write_text(schema.explain())
        else:
            frame = frame[names]
        settings = {"delta": DELTA, "seed": 1} | self.settings
        model = privsyn.PrivSyn(self.epsilon, schema=schema, **settings).fit(self.table(frame))
        write_release(model.release_, self.given, self.share)


def write_release(release: Any, given: Any = None, share: str | None = None) -> None:
    """Write what a release says, in a file for each way of asking."""
    Path("ledger.json").write_text(release.ledger_.to_json())
    Path("ledger.txt").write_text(str(release.ledger_))
    release.save("model.privsyn")
    try:
        release.sample_to("sample.csv", seed=2)
    except privsyn.InputError as error:  # too little signal
        Path("refused.txt").write_text(str(error))
    release.sample_to("twice.parquet", 2 * ROWS, seed=3)
    if given is not None:
        release.sample(200, given=given, seed=4).to_csv("given.csv")
    accuracy = release.accuracy_
    for name in ("tables", "means", "quantiles", "correlations"):
        asked = getattr(accuracy, name)
        (asked() if callable(asked) else asked).to_csv(f"{name}.csv")
    Path("accuracy.txt").write_text(str(accuracy))
    if share is not None:
        Path("share.txt").write_text(accuracy.share(share).to_string())
    privsyn.report(release, "page.html")
    privsyn.sheet(release, "sheet.md")
    try:
        release.draws(2, 300, seed=5).to_file("draws.csv")
    except privsyn.InputError as error:
        Path("draws.txt").write_text(str(error))


def strong(epsilon: float, name: str, **more: Any) -> Fit:
    """Return a run on all columns with all constraints."""
    return Fit(name, epsilon, COLUMNS + RULES, **more)


FITS = [
    Fit("all_half", 0.5, given={"age": (18, 65), "city": "Rome"}, share="age >= 65 and married == 'yes'"),
    Fit("all_five", 5.0, given={"called": ("2024-02-01", None)}),
    strong(0.5, "rules_half", given={"age": (None, 17)}),
    strong(5.0, "rules_five", given={"married": "yes"}),
    Fit("categories_half", 0.5, columns=CATEGORIES, share="city == 'Rome'"),
    Fit("categories_five", 5.0, columns=CATEGORIES),
    Fit("categories_pure", 2.0, columns=CATEGORIES, settings={"delta": 0}),
    Fit("numbers_half", 0.5, columns=NUMBERS, given={"height": None}),
    Fit("numbers_five", 5.0, columns=NUMBERS, share="height > 150"),
    Fit("numbers_pure", 5.0, columns=NUMBERS, settings={"delta": 0}),
    Fit("numbers_target", 1.0, columns=NUMBERS, settings={"target": "height"}),
    Fit("times_half", 0.5, columns=TIMES),
    Fit("times_five", 5.0, columns=TIMES),
    Fit("open_half", 0.5, OPEN),
    Fit("open_five", 5.0, OPEN, table=categories),
    Fit("none", 3.0, None, [*NAMES, "called", "stay"]),
    Fit("arrow", 3.0, None, [*NAMES, "called"], table=arrow),
    Fit("polars", 3.0, None, NAMES, table=polars),
    Fit("target", 1.0, columns=NAMES, settings={"target": "married"}),
    Fit("complete", 1.0, columns=NAMES, settings={"nullable": False}),
    Fit("unit", 3.0, columns=NAMES, settings={"unit": "person", "rows_per_unit": 2}),
    Fit(
        "unit_open",
        5.0,
        part_of(["city", "age", "room"], OPEN),
        settings={"unit": "person", "rows_per_unit": 3},
    ),
    Fit("accept", 5.0, columns=NAMES, settings={"accept": ACCEPT}),
    Fit("accept_refused", 0.5, columns=NAMES, settings={"accept": ACCEPT, "target": "married"}),
    Fit("published_half", 0.5, columns=NAMES, settings={"method": "published"}),
    Fit("published_five", 5.0, columns=CATEGORIES, settings={"method": "published"}),
    Fit("published_open", 5.0, OPEN, settings={"method": "published"}),
    Fit("batches", 1.0, columns=NAMES, settings={"memory": 20_000}),
    Fit("few", 1.0, columns=NAMES, table=lambda frame: frame[:40]),
    Fit("empty", 1.0, columns=NAMES, table=lambda frame: frame[:0]),
]


LOCAL = [
    Fit("randomised", None, ALL_RANDOMISED, table=answers),
    Fit("randomised_partly", 1.0, RANDOMISED, table=answers),
]


@dataclass(frozen=True)
class Linked:
    """A run of `fit` on three linked tables with a look-up table, and what is asked of its release."""

    name: str
    epsilon: float
    settings: dict[str, Any] = field(default_factory=dict)

    def write(self) -> None:
        """Fit, and write all files to the folder."""
        Path("schema.yaml").write_text(HOSPITAL)
        drugs().to_csv("drugs.csv", index=False)
        settings = {"delta": DELTA, "seed": 1} | self.settings
        model = privsyn.PrivSyn(self.epsilon, schema="schema.yaml", **settings).fit(hospital())
        write_linked(model)


def write_linked(model: Any) -> None:
    """Write what a release of linked tables says, in a file for each way of asking."""
    release = model.release_
    Path("ledger.json").write_text(release.ledger_.to_json())
    Path("ledger.txt").write_text(str(release.ledger_))
    release.save("model.privsyn")
    write_tables("sample", release.sample(seed=2))
    write_tables("some", release.sample(50, seed=3))
    write_tables("draw", release.draws(2, 100, seed=4)[0])
    Path("accuracy.txt").write_text(repr(release.accuracy_))
    privsyn.report(release, "page.html")
    privsyn.sheet(release, "sheet.md")


def write_tables(name: str, tables: Any) -> None:
    """Write one table, or each of several."""
    for table, rows in tables.items() if isinstance(tables, dict) else [("table", tables)]:
        rows.to_csv(f"{name}-{table}.csv", index=False)


LINKED = [
    Linked("linked_half", 0.5),
    Linked("linked_five", 5.0),
    Linked("linked_pure", 5.0, {"delta": 0}),
]


def identifiers() -> None:
    """Write rows of persons with new identifiers, their order and a summary of them."""
    frame = people()[["city", "age", "arrival", "room", "person"]]
    settings = {"unit": "person", "identifiers": True, "order": "arrival", "derive": {"spent": "sum(room)"}}
    write_linked(privsyn.PrivSyn(3.0, DELTA, seed=1, **settings).fit(frame))


def lives() -> None:
    """Write workers and their years, which keep rules from row to row."""
    Path("schema.yaml").write_text(LIVES)
    write_linked(privsyn.PrivSyn(2.0, DELTA, schema="schema.yaml", seed=1).fit(workers()))


def linked_studies() -> None:
    """Write the plan, the scores and the attack of linked tables, and the plan of one table."""
    Path("schema.yaml").write_text(HOSPITAL)
    drugs().to_csv("drugs.csv", index=False)
    Path("plan.txt").write_text(str(privsyn.plan(None, 1.0, DELTA, "schema.yaml", rows=5000)))
    Path("columns.yaml").write_text(COLUMNS + RULES)
    Path("plan_of_one.txt").write_text(str(privsyn.plan(None, 1.0, DELTA, "columns.yaml", rows=5000)))
    real, other = hospital(300), hospital(300, seed=1)
    scores = privsyn.evaluate(real, other, "schema.yaml", models=False, report="compared.html")
    Path("scores.txt").write_text(str(scores))
    for name, tables in (("real", real), ("other", other), ("control", hospital(300, seed=2))):
        Path(name).mkdir()
        for table, rows in tables.items():
            rows.to_csv(f"{name}/{table}.csv", index=False)
    Path("attack.txt").write_text(printed("attack real other control --schema schema.yaml --seed 1"))


def printed(command: str) -> str:
    """Return what a command prints, and its exit status."""
    from privsyn.cli import main

    text = StringIO()
    with redirect_stdout(text), redirect_stderr(text):
        code = main(command.split())
    return f"{text.getvalue()}exit status {code}\n"


def elsewhere() -> None:
    """Write a release of tables that were counted elsewhere."""
    Path("schema.yaml").write_text(part_of(CATEGORIES))
    schema = privsyn.read_schema("schema.yaml")
    counts = {"city": ([90.0, 45.0, 14.0, 1.0], 4.0), "country": ([135.0, 15.0], 4.0)}
    kept = privsyn.Schema({name: schema.columns[name] for name in counts})
    write_release(privsyn.from_marginals(kept, counts, "a census"))


COMMANDS = {
    "draft": "schema people.csv -o draft.yaml",
    "dtypes": "schema people.csv --from-dtypes",
    "check": "schema people.csv --check schema.yaml",
    "plan": "plan people.csv --epsilon 1 --schema schema.yaml --rows 1500",
    "synth": "synth small.csv out.csv --schema small.yaml --epsilon 1 --seed 1 --model m.privsyn",
    "synth_drafted": "synth people.csv drafted.csv --epsilon 3 --schema draft.yaml --seed 1",
    "sample": "sample m.privsyn old.csv --rows 100 --seed 2 --given age=65.. --given job=cook",
    "evaluate": "evaluate small.csv out.csv --schema small.yaml --target married --report r.html",
    "sweep_release": "sweep m.privsyn --target married",
    "attack": "attack small.csv out.csv small.csv --seed 1",
    "unknown": "synth small.csv no.csv --epsilon 1 --schema small.yaml --target maried",
    "negative": "synth small.csv no.csv --epsilon -1 --schema small.yaml",
    "no_file": "synth none.csv no.csv --epsilon 1",
    "both": "synth small.csv no.csv --epsilon 1 --rows-per-unit 3",
    "given": "sample m.privsyn no.csv --given age=abc",
}
"""Each by the name of the file with what it prints. The last ones are wrong."""


def commands() -> None:
    """Write what each command prints and makes."""
    from privsyn.cli import main

    frame = people()
    for name, text, columns in (
        ("people", COLUMNS + RULES, list(frame)),
        ("small", part_of(NAMES), NAMES),
    ):
        Path(f"{name}.yaml").write_text(text)
        frame[columns].to_csv(f"{name}.csv", index=False)
    Path("schema.yaml").write_text(COLUMNS + RULES)
    groups = sys.modules[main.__module__].COMMANDS.values()
    helps = {f"help_{name}": f"{name} --help" for names in groups for name in names}
    for name, words in (COMMANDS | helps).items():
        Path(f"{name}.txt").write_text(printed(words))


def sweeps() -> None:
    """Write a sweep of both methods, without its times and its memory."""
    frame = people()[NAMES].dropna().reset_index(drop=True)
    Path("schema.yaml").write_text(part_of(NAMES))
    settings = {"seeds": 2, "presets": ("default", "paper"), "models": ["linear"], "target": "married"}
    found = privsyn.sweep(frame, [0.5, 5.0], schema=privsyn.read_schema("schema.yaml"), **settings)
    found.drop(columns=[name for name in found if "seconds" in name or name == "memory_mb"]).to_csv(
        "sweep.csv"
    )


RUNS: dict[str, Callable[[], None]] = {
    **{fit.name: fit.write for fit in (*FITS, *LOCAL, *LINKED)},
    "identifiers": identifiers,
    "lives": lives,
    "linked_studies": linked_studies,
    "elsewhere": elsewhere,
    "commands": commands,
    "sweeps": sweeps,
}


def main() -> None:
    """Do the runs whose names contain a word, or all, each in a folder of its own, if it is not there yet."""
    warnings.simplefilter("ignore")
    home, words = Path(sys.argv[1]).absolute(), sys.argv[2:] or [""]
    for name, run in RUNS.items():
        if not any(word in name for word in words) or (home / name).exists():
            continue
        rmtree(unfinished := home / f"{name}.unfinished", ignore_errors=True)
        unfinished.mkdir(parents=True)
        chdir(unfinished)
        run()
        unfinished.rename(home / name)


if __name__ == "__main__":
    main()
