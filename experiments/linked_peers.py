"""Make linked tables by other programs, each in an environment of its own. linked_scores.py scores them.

    PEER/bin/python experiments/linked_peers.py hma FOLDER [--data semcog,cdnow]

The other names are par, dpsynth, dpsynth6 and flexsynth. FOLDER has for each set `side.json`, what is public,
and `train`, the training tables (linked_scores.py split). Besides the program, only numpy and pandas are
needed. `flexsynth` needs R and its package flexsynth. Seeds make the runs repeatable and NOT PRIVATE.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pandas as pd

EPSILON, DELTA, SEED = 1.0, 1e-9, 0
# Most child rows of a parent, for programs that need a bound: 99.4 % of the households of semcog have no more
# persons, and 99 % of the customers of cdnow no more purchases.
MOST = {"semcog": 6, "cdnow": 20}
Tables = dict[str, pd.DataFrame]


# --- tables in and out ----------------------------------------------------------------------------------
def read(folder: Path, side: dict) -> Tables:
    """Read tables: numbers as numbers, dates as dates, and other columns, keys included, as text."""
    tables = {}
    for name, table in side["tables"].items():
        frame = pd.read_csv(folder / f"{name}.csv", dtype=str, keep_default_na=False, na_values=[""])
        for column in table["columns"]:
            if column["kind"] == "numerical":
                frame[column["name"]] = pd.to_numeric(frame[column["name"]])
            elif column["kind"] == "datetime":
                frame[column["name"]] = pd.to_datetime(frame[column["name"]])
        tables[name] = frame
    return tables


def write(folder: Path, side: dict, tables: Tables) -> None:
    """Write tables: whole numbers where the side information says so, dates without the time of day."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in side["tables"].items():
        frame = tables[name].copy()
        for column in table["columns"]:
            if column["kind"] == "numerical" and column["integer"]:
                frame[column["name"]] = pd.to_numeric(frame[column["name"]]).round().astype("Int64")
            elif column["kind"] == "datetime":
                frame[column["name"]] = pd.to_datetime(frame[column["name"]]).dt.strftime("%Y-%m-%d")
        keep = [
            table.get("key"),
            table.get("link"),
            table.get("order"),
            *(c["name"] for c in table["columns"]),
        ]
        frame[[c for c in dict.fromkeys(keep) if c]].to_csv(folder / f"{name}.csv", index=False)


def only_order(table: dict) -> str | None:
    """Return the name of the column that is only there for the order."""
    order = table.get("order")
    return order if order not in [c["name"] for c in table["columns"]] else None


def placed(side: dict, tables: Tables) -> Tables:
    """Number the rows of each parent 1, 2, 3, ... where a column is only there for the order."""
    made = {}
    for name, table in side["tables"].items():
        frame = tables[name]
        if order := only_order(table):
            frame = frame.assign(**{order: pd.to_numeric(frame[order])}).sort_values(order, kind="stable")
            frame = frame.assign(**{order: frame.groupby(table["link"]).cumcount() + 1})
        made[name] = frame.sort_index()
    return made


def days(side: dict, tables: Tables, *, back: bool = False) -> Tables:
    """Return dates as days since the first allowed one, or such days as dates."""
    made = {name: frame.copy() for name, frame in tables.items()}
    for name, table in side["tables"].items():
        for column in table["columns"]:
            if column["kind"] == "datetime":
                x, low = made[name][column["name"]], pd.Timestamp(column["low"])
                made[name][column["name"]] = (
                    low + pd.to_timedelta(x.round(), "D") if back else (x - low).dt.days
                )
    return made


def filled(side: dict, tables: Tables) -> tuple[dict, Tables]:
    """Give a table without columns of data one, always 0, for programs that refuse such a table."""
    empty = [name for name, table in side["tables"].items() if not table["columns"]]
    column = {"name": "nothing", "kind": "categorical", "values": ["0", "1"]}
    more = {name: side["tables"][name] | {"columns": [column]} for name in empty}
    rows = {name: tables[name].assign(nothing="0") for name in empty}
    return side | {"tables": side["tables"] | more}, tables | rows


def limits(column: dict) -> tuple[float, float]:
    """Return the public bounds of a number, or of the days of a date."""
    if column["kind"] == "datetime":
        return 0, (pd.Timestamp(column["high"]) - pd.Timestamp(column["low"])).days
    return column["low"], column["high"]


def parent_and_child(side: dict) -> tuple[str, str]:
    """Return the names of the only two tables."""
    parent, child = sorted(side["tables"], key=lambda name: "parent" in side["tables"][name])
    return parent, child


# --- SDV ------------------------------------------------------------------------------------------------
def sdtype(column: dict) -> dict:
    """Return SDV's type of a column."""
    if column["kind"] == "datetime":
        return {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"}
    return {"sdtype": column["kind"]}


def hma(side: dict, tables: Tables, folder: Path) -> Tables:
    """Return tables by SDV's HMASynthesizer, with its defaults. The place in the order is one more number."""
    from sdv.metadata import Metadata
    from sdv.multi_table import HMASynthesizer

    metadata = Metadata()
    for name, table in side["tables"].items():
        metadata.add_table(name)
        for key in filter(None, (table.get("key"), table.get("link"))):
            metadata.add_column(key, name, sdtype="id")
        for column in table["columns"]:
            metadata.add_column(column["name"], name, **sdtype(column))
        if order := only_order(table):
            metadata.add_column(order, name, sdtype="numerical")
        metadata.set_primary_key(table["key"], name)
    for name, table in side["tables"].items():
        if parent := table.get("parent"):
            metadata.add_relationship(parent, name, side["tables"][parent]["key"], table["link"])
    model = HMASynthesizer(metadata, verbose=False)
    model.fit(placed(side, tables))
    parent, _ = parent_and_child(side)
    return model.sample(num_rows=len(tables[parent]), main_table_name=parent)


def par(side: dict, tables: Tables, folder: Path, epochs: int, made_roots: int | None) -> Tables:
    """Return tables by SDV's PARSynthesizer: child rows are a sequence, columns of the parent its context."""
    import torch
    from sdv.metadata import Metadata
    from sdv.sequential import PARSynthesizer

    torch.manual_seed(SEED)
    parent, child = parent_and_child(side)
    above, below = (side["tables"][name] for name in (parent, child))
    context = {f"{parent}_{c['name']}": c for c in above["columns"]}
    head = tables[parent].rename(columns={c["name"]: of for of, c in context.items()})
    rows = placed(side, tables)[child].drop(columns=below["key"])
    rows = rows.merge(head, left_on=below["link"], right_on=above["key"])
    rows = rows.sort_values([below["link"], below["order"]], kind="stable")
    metadata = Metadata()
    metadata.add_table(child)
    metadata.add_column(below["link"], child, sdtype="id")
    for name, column in {**context, **{c["name"]: c for c in below["columns"]}}.items():
        metadata.add_column(name, child, **sdtype(column))
    if order := only_order(below):
        metadata.add_column(order, child, sdtype="numerical")
    metadata.set_sequence_key(below["link"], child)
    metadata.set_sequence_index(below["order"], child)
    model = PARSynthesizer(metadata, context_columns=list(context), epochs=epochs, cuda=False)
    model.fit({child: rows[metadata.get_column_names(table_name=child)]})
    made = model.sample_sequences(num_sequences=made_roots or len(head))[child]
    first = made.groupby(below["link"], sort=False).first().reset_index()
    heads = first.rename(
        columns={below["link"]: above["key"], **{of: c["name"] for of, c in context.items()}}
    )
    return {parent: heads, child: made.assign(**{below["key"]: range(len(made))})}


# --- dpsynth --------------------------------------------------------------------------------------------
def dpsynth(side: dict, tables: Tables, folder: Path, most: int = 0, slots: int = 3) -> Tables:
    """Return tables by dpsynth's relational synthesis, set as in its example of households and persons."""
    import dpsynth as peer

    def attribute(column: dict) -> object:
        if column["kind"] == "categorical":
            return peer.CategoricalAttribute(column["values"])
        dtype = "int" if column.get("integer", True) else "float"
        return peer.NumericalAttribute(*limits(column), dtype=dtype, interval_handling="sample")

    side, tables = filled(side, tables)
    parent, child = parent_and_child(side)
    most = most or MOST[side["name"]]
    above, below = (side["tables"][name] for name in (parent, child))
    given = days(side, placed(side, tables))
    domains = {
        name: {c["name"]: attribute(c) for c in table["columns"]} for name, table in side["tables"].items()
    }
    if order := only_order(below):
        domains[child][order] = peer.CategoricalAttribute([str(k + 1) for k in range(most)])
        given[child][order] = given[child][order].clip(upper=most).astype(str)
    relation = peer.ForeignKeyRelation(
        parent_table=parent,
        parent_primary_key=above["key"],
        child_table=child,
        child_foreign_key=below["link"],
        max_children_per_parent=most,
    )
    config = peer.MultiTableConfig(
        domains=domains,
        foreign_keys=[relation],
        discrete_mechanism=peer.discrete_mechanisms.MSTConfig(pgm_iters=100),
        num_permutation_slots=slots,
        exploration_strategy="size_sliced",
    )
    result = config.calibrate(epsilon=EPSILON, delta=DELTA)(np.random.default_rng(SEED), given)
    made = days(side, dict(result.synthetic_tables), back=True)
    if order:
        made[child][order] = pd.to_numeric(made[child][order])
    return {parent: made[parent], child: made[child].assign(**{below["key"]: range(len(made[child]))})}


def dpsynth6(side: dict, tables: Tables, folder: Path) -> Tables:
    """Return tables by dpsynth with at most six child rows a parent, each of which it measures."""
    return dpsynth(side, tables, folder, most=6, slots=6)


# --- flexsynth, in R ------------------------------------------------------------------------------------
FLEXSYNTH = """
tables <- lapply(given$tables, function(table) {
  rows <- read.csv(table$file, colClasses = "character")
  for (name in names(table$values)) rows[[name]] <- factor(rows[[name]], levels = table$values[[name]])
  for (name in table$numbers) rows[[name]] <- as.numeric(rows[[name]])
  rows
})
structures <- lapply(given$tables, function(table) as.formula(table$structure))
keys <- lapply(given$tables, function(table) table$key)
privacy <- flexsynth::dp_control(
  epsilon = given$epsilon, delta = given$delta, mechanism = "gaussian", domain = "public",
  bounds = given$bounds, max_rows_per_person = given$most, longitudinal = names(given$most),
  cross_table = TRUE)
made <- as.list(flexsynth::synth_linked(tables, structures, keys, privacy = privacy, seed = given$seed))
for (name in names(made)) write.csv(made[[name]], paste0(name, ".csv"), row.names = FALSE, na = "")
"""


def in_r(value: object) -> str:
    """Return a value as R writes it."""
    match value:
        case dict():
            return "list(" + ", ".join(f"`{name}` = {in_r(one)}" for name, one in value.items()) + ")"
        case list():
            return "c(" + ", ".join(map(in_r, value)) + ")"
        case bool():
            return "TRUE" if value else "FALSE"
        case _:
            return json.dumps(value)


def flexsynth(side: dict, tables: Tables, folder: Path) -> Tables:
    """Return tables by flexsynth: a row depends on the one before it, the first also on its parent."""
    side, tables = filled(side, tables)
    parent, child = parent_and_child(side)
    above, below = (side["tables"][name] for name in (parent, child))
    place = "place"
    given = days(side, placed(side, tables))
    inside = folder / "in"
    inside.mkdir(parents=True, exist_ok=True)
    described: dict[str, dict] = {}
    bounds: dict[str, list[float]] = {}
    for name, table in side["tables"].items():
        keys = [above["key"]] if name == parent else [below["link"], place]
        values = {c["name"]: c["values"] for c in table["columns"] if c["kind"] == "categorical"}
        numbers = {c["name"]: c for c in table["columns"] if c["kind"] != "categorical"}
        bounds |= {of: list(limits(column)) for of, column in numbers.items()}
        rows = given[name]
        if name == child:
            rows = rows.sort_values([below["link"], below["order"]], kind="stable")
            rows = rows.assign(**{place: rows.groupby(below["link"]).cumcount() + 1})
        rows[[*keys, *values, *numbers]].to_csv(inside / f"{name}.csv", index=False)
        described[name] = {
            "file": f"in/{name}.csv",
            "structure": "~ " + " / ".join(keys),
            "key": keys,
            "values": values,
            "numbers": [*numbers, *keys[1:]],
        }
    options = {
        "tables": described,
        "bounds": bounds,
        "most": {child: MOST[side["name"]]},
        "epsilon": EPSILON,
        "delta": DELTA,
        "seed": SEED,
    }
    script = folder / "run.R"
    script.write_text(f"given <- {in_r(options)}\n{FLEXSYNTH}")
    done = subprocess.run(["Rscript", script.name], cwd=folder, capture_output=True, text=True)  # noqa: S607
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    made = {
        name: pd.read_csv(folder / f"{name}.csv", dtype=dict.fromkeys(described[name]["values"], str))
        for name in side["tables"]
    }
    made = days(side, made, back=True)
    rows = made[child].assign(**{below["key"]: range(len(made[child]))})
    if order := only_order(below):
        rows = rows.rename(columns={place: order})
    return {parent: made[parent], child: rows}


# --- running --------------------------------------------------------------------------------------------
PEERS = {of.__name__: of for of in (hma, par, dpsynth, dpsynth6, flexsynth)}
PARTS = ("sdv", "rdt", "copulas", "deepecho", "torch", "jax", "pandas", "numpy")


def seconds() -> float:
    """Return the processor time of this process and of those that it started and that ended."""
    used = [resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def versions(method: str) -> dict[str, str]:
    """Return the versions of the packages that matter, of those that are here."""
    found = {}
    if method == "flexsynth":
        asked = 'cat(paste(R.version$major, R.version$minor, sep = "."), paste(packageVersion("flexsynth")))'
        words = subprocess.run(["Rscript", "-e", asked], capture_output=True, text=True).stdout  # noqa: S607
        return dict(zip(("R", "flexsynth"), words.split(), strict=False))
    for name in PARTS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def few(side: dict, tables: Tables, roots: int | None) -> Tables:
    """Return the first roots with their rows. The bench has shuffled them."""
    parent, child = parent_and_child(side)
    head = tables[parent].head(len(tables[parent]) if roots is None else roots)
    links = tables[child][side["tables"][child]["link"]]
    return {parent: head, child: tables[child][links.isin(head[side["tables"][parent]["key"]])]}


def note(folder: Path, begun: float, **more: object) -> None:
    """Note beside the tables what they took, and what is given."""
    told = more | {"seconds": seconds() - begun}
    (folder / "run.json").write_text(json.dumps(told, indent=1))
    print(folder, told, flush=True)  # noqa: T201


def main() -> None:
    """Run a program on each set, and note the words with which it fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", default="semcog,cdnow")
    parser.add_argument("--roots", type=int, help="learn from so many roots, and make as many (default: all)")
    parser.add_argument("--epochs", type=int, default=128, help="of par")
    parser.add_argument(
        "--make", type=int, help="of par: make so many roots (default: as many as learned from)"
    )
    settings = parser.parse_args()
    options = {"epochs": settings.epochs, "made_roots": settings.make} if settings.peer == "par" else {}
    for data in settings.data.split(","):
        side = json.loads((settings.folder / data / "side.json").read_text())
        tables = few(side, read(settings.folder / data / "train", side), settings.roots)
        folder, begun = settings.folder / data / settings.peer, seconds()
        folder.mkdir(parents=True, exist_ok=True)
        told = {"versions": versions(settings.peer), "roots": settings.roots, **options}
        try:
            write(folder, side, PEERS[settings.peer](side, tables, folder, **options))
        except Exception as error:
            told["failed"] = f"{type(error).__name__}: {error}"
        note(folder, begun, **told)


if __name__ == "__main__":
    main()
