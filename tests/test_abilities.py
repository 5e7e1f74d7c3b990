"""What a kind of run does not take is refused in one sentence, by Python, the command and the page alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from command import run

from privsyn import Categorical, InputError, Owners, PrivSyn, Schema, evaluate, load
from privsyn.abilities import (
    ABILITIES,
    ALONE,
    APART,
    CHECK,
    CLUSTER,
    CODEBOOK,
    COLLECTORS,
    DRAWS,
    LINKED,
    METHOD,
    NOBODY,
    OWNERS,
    PERSONS,
    PLAN,
    POPULATION,
    PURE,
    RANDOMISED,
    SWEEP,
    TOGETHER,
)
from privsyn.app.choices import Choices
from privsyn.app.column_entries import Entry
from privsyn.cli.common.options import spelling_of
from privsyn.collectors.board import PrivateKeys, Study
from privsyn.collectors.collectors import Collectors
from privsyn.collectors.promise import Promise
from privsyn.errors import spelling
from privsyn.private.noise import ExactGaussian, ExactLaplace
from privsyn.table.database import opened
from privsyn.table.database.yaml_form import as_database

FILES = {
    "tables.yaml": """\
tables:
  homes: {key: home, columns: {region: {kind: categorical, values: [n, s]}}}
  trips: {key: trip, parent: homes, link: home, columns: {km: {kind: categorical, values: [1, 2]}}}
""",
    "kept.yaml": "columns: {job: {kind: categorical, values: [cook, smith], keep: 0.5}}\n",
    "partly.yaml": "columns: {job: {kind: categorical, values: [cook, smith], keep: 0.5},"
    " who: {kind: categorical, values: [0, 1, 2]}}\n",
    "open.yaml": "columns: {job: {kind: categorical}, who: {kind: identifier}}\n",
    "lives.yaml": "columns: {job: {kind: categorical, values: [cook, smith]}}\n"
    "constraints: [job is unique]\n",
    "listed.yaml": "columns: {job: {kind: categorical, values: [cook, smith]}}\n",
    "weights.yaml": "columns: {job: {kind: categorical, values: [cook, smith]},"
    " who: {kind: weight, low: 1, high: 9}}\n",
    "accept.yaml": "criteria: [{margin: [job], error: 0.5}]\n",
}
ROWS = pd.DataFrame({"who": np.arange(40) % 8, "job": ["cook", "smith"] * 20})
PEERS = [f"localhost:{port}" for port in (7001, 7002, 7003)]
ALL_OWNERS = ("--party", 0, "--peers", ",".join(PEERS), "--model", "own.privsyn")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Private tables, schemas, and a model of linked tables and one of rows that belong together."""
    folder = tmp_path_factory.mktemp("abilities")
    for name, text in FILES.items():
        (folder / name).write_text(text)
    for party in range(3):
        keys = PrivateKeys.of_file(folder / f"{party}.key")
        Study.join(folder / "study", party, 3, keys, bytes(32), Promise(1.0, 1e-9, "gaussian", lost=1))
    (folder / "in").mkdir()
    homes = pd.DataFrame({"home": range(60), "region": ["n", "s"] * 30})
    trips = pd.DataFrame({"home": np.arange(120) // 2, "trip": range(120), "km": [1, 2] * 60})
    homes.to_csv(folder / "in" / "homes.csv", index=False)
    trips.to_csv(folder / "in" / "trips.csv", index=False)
    ROWS.to_csv(folder / "rows.csv", index=False)
    PrivSyn(9.0, 1e-6, folder / "tables.yaml", seed=0).fit({"homes": homes, "trips": trips}).save(
        folder / "linked.privsyn"
    )
    PrivSyn(9.0, 1e-6, folder / "listed.yaml", seed=0).fit(ROWS[["job"]]).save(folder / "one.privsyn")
    together = PrivSyn(9.0, 1e-6, folder / "listed.yaml", unit="who", identifiers=True, seed=0).fit(ROWS)
    together.save(folder / "together.privsyn")
    return folder


EARLIER = {
    "parameters": ["--parameters", "rounds=9"],
    "since": ["--since", "one.privsyn"],
    "disjoint": ["--disjoint"],
}
"""Options of `synth` that its studies do not take."""


@dataclass(frozen=True)
class Way:
    """How users ask for what is refused: in Python, by a command, on the page."""

    python: Callable[[], object] | None = None
    command: tuple[object, ...] = ()
    page: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)


def settings(schema: str | None, *options: object, page: Any = None, facts: Any = None, **given: Any) -> Way:
    """A setting of `PrivSyn` and the option of `privsyn synth`, if it has one."""
    source, out = ("in", "made") if schema == "tables.yaml" else ("rows.csv", "made.csv")
    known = () if schema is None else ("--schema", schema)
    command = ("synth", source, out, "--epsilon", 1, *known, *options) if options else ()
    data = "in" if schema == "tables.yaml" else ROWS
    return Way(
        lambda: PrivSyn(**{"epsilon": 1.0, "schema": schema} | given).fit(data),
        command,
        page or {},
        facts or {},
    )


def together(*options: object, **given: Any) -> Way:
    person = ("--unit", "who", "--identifiers")
    return settings(
        "listed.yaml", *((*person, *options) if options else ()), unit="who", identifiers=True, **given
    )


def published(*options: object, schema: str = "listed.yaml", **given: Any) -> Way:
    return settings(
        schema, "--paper", *options, method="published", facts={"algorithm": "published"}, **given
    )


def sample(model: str, *options: object, **given: Any) -> Way:
    return Way(lambda: load(model).sample(3, **given), ("sample", model, "made.csv", "--rows", 3, *options))


def draws(model: str) -> Way:
    return Way(
        lambda: load(model).draws(2, 3).to_file("made.csv"),
        ("sample", model, "made.csv", "--rows", 3, "--draws", 2),
    )


def of_owners(*options: object, schema: str = "listed.yaml", data: Any = ROWS, **given: Any) -> Way:
    facts = given.pop("facts", {})
    read = "in" if schema == "tables.yaml" else "rows.csv"
    command = ("owner", read, "--epsilon", 1, "--schema", schema, *ALL_OWNERS, *options) if options else ()
    owners = {"party": 0, "peers": PEERS, "folder": "run", "patience": 1}
    fit = lambda: PrivSyn(**{"epsilon": 1.0, "schema": schema} | given).fit(Owners(data, **owners))  # noqa: E731
    return Way(fit, command, {}, facts)


def of_collectors(*options: object, schema: str = "listed.yaml", **given: Any) -> Way:
    facts = given.pop("facts", {})
    study = ("--party", 0, "--keys", "0.key", "--model", "own.privsyn")
    command = ("collect", "study", "--epsilon", 1, "--schema", schema, *study, *options) if options else ()

    def fit() -> None:
        PrivSyn(**{"epsilon": 1.0, "schema": schema} | given).fit(
            Collectors("study", party=0, keys="0.key", patience=1)
        )

    return Way(fit, command, {}, facts)


def of_cluster() -> None:
    """Open a source of rows that are not near, as those of Dask and Spark are."""

    class Far:
        near = False

    database, patched = as_database("tables.yaml"), pytest.MonkeyPatch()
    with patched.context() as patch:
        patch.setattr(opened, "open_table", lambda *_, **__: Far())
        opened._source(database.tables["homes"], None)


COMPARE = ("evaluate", "in", "in", "--schema", "tables.yaml")
IMPORTANT = [["job", "who"]]
KEPT = {"values": "cook\nsmith", "more": "keep: 0.5"}
BOOK = ("schema", "--from", "book.json")

WAYS = {
    (LINKED, "unit"): settings("tables.yaml", "--unit", "home", unit="home"),
    (LINKED, "identifiers"): settings("tables.yaml", "--identifiers", identifiers=True),
    (LINKED, "order"): settings("tables.yaml", "--order", "km", order="km"),
    (LINKED, "derive"): settings("tables.yaml", derive={"a": "count()"}),
    (LINKED, "important"): settings("tables.yaml", "--important", "km,trip", important=[["km", "trip"]]),
    (LINKED, "target"): settings("tables.yaml", "--target", "km", target="km"),
    (LINKED, "y"): Way(lambda: PrivSyn(1.0, schema="tables.yaml").fit("in", [1])),
    (LINKED, "test"): Way(lambda: evaluate("in", "in", "tables.yaml", test="in"), (*COMPARE, "--test", "in")),
    (LINKED, "accept"): settings("tables.yaml", "--accept", "accept.yaml", accept="accept.yaml"),
    (LINKED, "totals"): settings("tables.yaml", "--totals", "rows.csv", totals="rows.csv"),
    (LINKED, "method"): settings("tables.yaml", "--paper", method="published"),
    (LINKED, "balance"): sample("linked.privsyn", "--balance", "region", balance="region"),
    (LINKED, "population"): sample("linked.privsyn", "--population", population=True),
    (LINKED, "draws"): draws("linked.privsyn"),
    **{
        (LINKED, name): Way(None, (*COMPARE, f"--{name}", ";"))
        for name in ("delimiter", "encoding", "decimal", "thousands")
    },
    (LINKED, "header"): Way(None, (*COMPARE, "--header")),
    (TOGETHER, "target"): together("--target", "job", target="job"),
    (TOGETHER, "y"): Way(lambda: PrivSyn(1.0, unit="who", identifiers=True).fit(ROWS, [1] * 40)),
    (TOGETHER, "important"): together("--important", "job,who", important=IMPORTANT),
    (TOGETHER, "accept"): together("--accept", "accept.yaml", accept="accept.yaml"),
    (TOGETHER, "totals"): together("--totals", "rows.csv", totals="rows.csv"),
    (TOGETHER, "method"): together("--paper", method="published"),
    (TOGETHER, "weight"): settings(
        "weights.yaml", "--unit", "job", "--identifiers", unit="job", identifiers=True
    ),
    (TOGETHER, "population"): sample("together.privsyn", "--population", population=True),
    (TOGETHER, "balance"): sample("together.privsyn", "--balance", "job", balance="job"),
    (TOGETHER, "draws"): draws("together.privsyn"),
    (PERSONS, "totals"): settings(
        "listed.yaml", "--unit", "who", "--totals", "rows.csv", unit="who", totals="rows.csv"
    ),
    (ALONE, "rules"): settings("lives.yaml"),
    (ALONE, "order"): settings("listed.yaml", "--order", "job", order="job"),
    (ALONE, "derive"): settings("listed.yaml", derive={"n": "count()"}),
    (APART, "order"): settings("listed.yaml", "--unit", "who", "--order", "job", unit="who", order="job"),
    (APART, "derive"): settings("listed.yaml", unit="who", derive={"n": "count()"}),
    (APART, "rules"): settings("lives.yaml", "--unit", "who", unit="who"),
    (NOBODY, "rules"): Way(
        lambda: evaluate(ROWS, ROWS, "lives.yaml"),
        ("evaluate", "rows.csv", "rows.csv", "--schema", "lives.yaml"),
    ),
    (NOBODY, "identifiers"): settings("listed.yaml", "--identifiers", identifiers=True),
    (NOBODY, "rows_per_unit"): settings("listed.yaml", "--rows-per-unit", 2, rows_per_unit=2),
    (NOBODY, "order"): Way(
        lambda: evaluate(ROWS, ROWS, order="job"), ("evaluate", "rows.csv", "rows.csv", "--order", "job")
    ),
    (METHOD, "target"): published("--target", "job", target="job"),
    (METHOD, "matters_most"): published("--important", "job,who", important=IMPORTANT),
    (METHOD, "weight"): published(schema="weights.yaml"),
    (METHOD, "pure"): published("--delta", 0, delta=0),
    (METHOD, "keep"): published(schema="partly.yaml"),
    (METHOD, "totals"): published("--totals", "rows.csv", totals="rows.csv"),
    (METHOD, "parameters"): settings(
        None, "--parameters", "rounds=3", parameters={"rounds": 3}, facts={"algorithm": "default"}
    ),
    (RANDOMISED, "matters_most"): settings(
        "kept.yaml",
        *("--important", "job,who"),
        important=IMPORTANT,
        page={"important": IMPORTANT, "job": KEPT, "who": KEPT},
    ),
    (RANDOMISED, "epsilon"): settings("kept.yaml", "--memory", "1GB", page={"job": KEPT, "who": KEPT}),
    (RANDOMISED, "unit"): Way(lambda: PrivSyn(schema="kept.yaml", unit="who")),
    (RANDOMISED, "since"): Way(lambda: PrivSyn(schema="kept.yaml", since="rows.csv")),
    (RANDOMISED, "totals"): Way(lambda: PrivSyn(schema="kept.yaml", totals="rows.csv")),
    (PURE, "values"): settings(
        "open.yaml",
        "--delta",
        0,
        delta=0,
        page={"delta": 0.0, "job": {}, "unit": "who"},
        facts={"columns": "'job'"},
    ),
    (OWNERS, "tables"): of_owners("--force", schema="tables.yaml"),
    (OWNERS, "identifiers"): of_owners(unit="who", identifiers=True),
    (OWNERS, "randomised"): of_owners(schema="kept.yaml", epsilon=None),
    (OWNERS, "accept"): of_owners(accept="accept.yaml"),
    (OWNERS, "public"): of_owners(public="rows.csv"),
    (OWNERS, "since"): of_owners(since="rows.csv"),
    (OWNERS, "totals"): of_owners(totals="rows.csv"),
    (OWNERS, "seed"): of_owners(seed=1),
    (OWNERS, "method"): of_owners(method="published"),
    (OWNERS, "values"): of_owners("--force", schema="open.yaml", facts={"columns": "'job'"}),
    (COLLECTORS, "tables"): of_collectors("--force", schema="tables.yaml"),
    (COLLECTORS, "unit"): of_collectors("--unit", "who", unit="who"),
    (COLLECTORS, "randomised"): of_collectors(schema="kept.yaml", epsilon=None),
    (COLLECTORS, "keep"): of_collectors("--force", schema="partly.yaml"),
    (COLLECTORS, "accept"): of_collectors(accept="accept.yaml"),
    (COLLECTORS, "public"): of_collectors(public="rows.csv"),
    (COLLECTORS, "since"): of_collectors(since="rows.csv"),
    (COLLECTORS, "totals"): of_collectors(totals="rows.csv"),
    (COLLECTORS, "seed"): of_collectors(seed=1),
    (COLLECTORS, "method"): of_collectors(method="published"),
    (COLLECTORS, "values"): of_collectors("--force", schema="open.yaml", facts={"columns": "'job'"}),
    (CLUSTER, "tables"): Way(of_cluster),
    (DRAWS, "population"): Way(None, ("sample", "one.privsyn", "made.csv", "--draws", 2, "--population")),
    (POPULATION, "given"): sample(
        "one.privsyn", "--population", "--given", "job=cook", given={"job": "cook"}, population=True
    ),
    (POPULATION, "balance"): sample(
        "one.privsyn", "--population", "--balance", "job", balance="job", population=True
    ),
    (DRAWS, "given"): Way(None, ("sample", "one.privsyn", "made.csv", "--draws", 2, "--given", "job=cook")),
    (DRAWS, "balance"): Way(None, ("sample", "one.privsyn", "made.csv", "--draws", 2, "--balance", "job")),
    **{
        (PLAN, name): Way(None, ("plan", "rows.csv", "--schema", "listed.yaml", "--epsilon", 1, *options))
        for name, options in {**EARLIER, "method": ["--paper"]}.items()
    },
    **{
        (SWEEP, name): Way(None, ("sweep", "rows.csv", "--epsilon", 1, "--out", "sweep.csv", *options))
        for name, options in {
            **EARLIER,
            "seed": ["--seed", 1],
            "public": ["--public", "rows.csv"],
            "totals": ["--totals", "rows.csv"],
            "accept": ["--accept", "accept.yaml"],
        }.items()
    },
    (CHECK, "out"): Way(None, ("schema", "rows.csv", "--check", "listed.yaml", "-o", "made.yaml")),
    (CHECK, "from_dtypes"): Way(None, ("schema", "rows.csv", "--check", "listed.yaml", "--from-dtypes")),
    (CHECK, "persons"): Way(None, ("schema", "in", "--check", "tables.yaml", "--persons", "homes")),
    (CHECK, "also"): Way(None, ("schema", "in", "--check", "tables.yaml", "--also", "homes")),
    (CHECK, "public"): Way(None, ("schema", "in", "--check", "tables.yaml", "--public", "homes")),
    (CHECK, "from"): Way(None, ("schema", "rows.csv", "--check", "listed.yaml", "--from", "book.json")),
    (CODEBOOK, "check"): Way(None, (*BOOK, "--check", "listed.yaml")),
    (CODEBOOK, "from_dtypes"): Way(None, (*BOOK, "--from-dtypes")),
    **{
        (CODEBOOK, name): Way(None, (*BOOK, f"--{name}", ";" if name == "delimiter" else "."))
        for name in ("unit", "order", "delimiter", "encoding", "decimal", "thousands")
    },
    (CODEBOOK, "header"): Way(None, (*BOOK, "--header")),
}


@pytest.mark.parametrize("refusal", ABILITIES, ids=lambda row: f"{row.kind.split(' {')[0]} {row.name}")
def test_python_the_command_and_the_page_refuse_in_the_same_words(refusal, folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    for noise in (ExactGaussian, ExactLaplace):
        monkeypatch.setattr(noise, "draw", lambda *_: pytest.fail("something was asked of the rows"))
    way = WAYS[refusal.kind, refusal.name]
    before = written(folder)
    if way.python is not None:
        with pytest.raises(InputError) as raised:
            way.python()
        assert str(raised.value) == refusal.sentence(**way.facts)
    if way.command:
        with spelling(spelling_of):
            sentence = refusal.sentence(**way.facts)
        done = run(capsys, *way.command)
        refused = done.err.replace("privsyn: reading: 0 of 1\nprivsyn: reading: 1 of 1\n", "")
        assert (done.code, refused, done.out) == (2, f"privsyn: {sentence}\n", "")
    if way.page:
        with pytest.raises(InputError) as raised:
            on_the_page(dict(way.page))
        assert str(raised.value) == refusal.sentence(**way.facts)
    assert written(folder) == before


def written(folder: Path) -> set[str]:
    """The files in the folder, without the folders of answers of owners and collectors: there is none yet."""
    return {path.name for path in folder.iterdir()} - {"run", "own.privsyn.run", "0.key.run"}


def on_the_page(chosen: dict[str, Any]) -> None:
    """Choose what the page offers, and look at what to expect."""
    choices = Choices(Path("rows.csv"))
    table = choices.table
    table.entries = [Entry(name, "categorical", **chosen.pop(name, {})) for name in table.names]
    table.links = {"link": chosen.pop("unit")} if "unit" in chosen else {}
    for name, value in chosen.items():
        setattr(table if hasattr(table, name) else choices, name, value)
    choices.settings()
    choices.plan()


def test_every_refusal_has_a_way_to_it_and_stands_once():
    assert WAYS.keys() == {(row.kind, row.name) for row in ABILITIES}
    assert len(ABILITIES) == len(WAYS)


def test_what_is_not_asked_for_is_not_refused():
    assert PrivSyn(1.0, schema=Schema({"a": Categorical(["x"])}), order=None, identifiers=False).kinds == (
        ALONE,
        APART,
        NOBODY,
    )


@pytest.mark.parametrize("name", ["unit", "target", "order", "accept"])
def test_empty_text_is_a_value_that_linked_tables_refuse(name, folder, monkeypatch, capsys):
    """As of `--unit "$UNSET"`. It was not refused, and the run failed after epsilon was spent."""
    monkeypatch.chdir(folder)
    with pytest.raises(InputError, match=f"linked tables take no {name}"):
        PrivSyn(1.0, schema="tables.yaml", **{name: ""})
    command = ("synth", "in", "made", "--epsilon", 1, "--schema", "tables.yaml")
    done = run(capsys, *command, f"--{name}", "")
    assert done.code == 2
    assert f"linked tables take no --{name}" in done.err


def test_a_delta_of_another_type_is_not_taken_for_zero():
    assert PrivSyn.paper(1.0, np.float64(1e-9)).requests["pure"] is False


def test_a_delta_that_is_zero_as_a_double_is_zero_for_the_noise_too():
    model = PrivSyn(1.0, Fraction(1, 10**400), Schema({"job": Categorical(["cook", "smith"])}))
    assert model.fit(ROWS[["job"]]).ledger_.accounting == "pure"


def test_the_ledger_names_a_unit_whose_column_has_no_name():
    """It said that the run protects one row."""
    ledger = (
        PrivSyn(9.0, 1e-6, Schema({"job": Categorical(["cook", "smith"])}), unit="")
        .fit(ROWS.rename(columns={"who": ""}))
        .ledger_
    )
    assert (ledger.unit, ledger.rows_per_unit is None) == ("", False)
