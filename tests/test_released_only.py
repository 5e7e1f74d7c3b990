"""What a run leaves follows from released answers and public facts, and from nothing else."""

from __future__ import annotations

import logging
import operator
import time
from collections import Counter
from itertools import repeat

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from strategies import StubNoise, find_values

from privsyn import Categorical, Datetime, InputError, Numerical, PrivSyn, Schema
from privsyn.errors import replace_errors
from privsyn.methods import complete_schema as discovering
from privsyn.methods.persons import PersonsInMemory
from privsyn.private import contribution, measure
from privsyn.private import find_values as find
from privsyn.private.find_values import Finder, count_votes
from privsyn.private.randomness import os_entropy
from privsyn.settings import Settings
from privsyn.table.discovery.frequent import FrequentQuestion
from privsyn.table.discovery.open_schema import OpenSchema
from privsyn.table.io import source
from privsyn.table.io.dask_source import DaskParts
from privsyn.table.io.output_type import OutputType
from privsyn.table.io.read_in_batches import read_in_batches
from privsyn.table.io.source import FAILED

SCHEMA = Schema(
    {
        "town": Categorical(),
        "year": Numerical(),
        "job": Categorical(["baker", "clerk"]),
        "age": Numerical(0, 100, integer=True),
        "day": Datetime("2015-01-01", "2020-12-31"),
    }
)


def people(rows: int, seed: int) -> pd.DataFrame:
    """A table of three towns, in which any cell but a town may be missing or unknown to the schema."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 3000, rows), "D")
    return pd.DataFrame(
        {
            "town": rng.permutation(np.resize(["Lima", "Oslo", "Rome"], rows)),
            "year": rng.integers(1990, 2021, rows),
            "job": pd.Series(rng.choice(["baker", "clerk", "mayor"], rows)).where(rng.random(rows) < 0.9),
            "age": pd.Series(rng.integers(-5, 120, rows), dtype="Int64").mask(rng.random(rows) < 0.1),
            "day": days.to_series(index=range(rows)).mask(rng.random(rows) < 0.1),
            "who": rng.integers(0, rows // 3 + 1, rows),
        }
    )


FEW, MANY = people(400, 1), pd.concat([people(733, 2), people(1, 3).assign(town="a town of one")])


def paint(exact, sigma, noise):
    """The same counts, whatever the exact ones are."""
    return 30 + 40 * (np.arange(exact.size) % 4).reshape(exact.shape)


def paint_found(exact, sigma, noise):
    """The first three values, or cells, stand out: of the towns those that both tables have."""
    return np.where(np.arange(exact.size) < 3, 10**9 * (exact.size >= 3), 0)


def left_by(table, method, folder, caplog, capfd, **options):
    """Everything that a run leaves or says: files, log records, progress, texts."""
    steps = []
    caplog.clear()
    model = PrivSyn(
        1.0, 1e-9, SCHEMA, method=method, seed=1, progress=lambda *step: steps.append(step), **options
    )
    model.fit(table)
    folder.mkdir()
    model.save(folder / "model.privsyn")
    for name in ("sample.csv", "sample.csv.gz", "sample.parquet"):
        model.sample_to(folder / name, 50)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    records = [(record.name, record.getMessage()) for record in caplog.records]
    texts = (
        repr(model),
        repr(model.release_),
        str(model.ledger_),
        model.ledger_.to_json(),
        str(model.accuracy_),
    )
    return files, records, steps, texts, [*capfd.readouterr()], sorted(vars(model))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["default", "published"])
@pytest.mark.parametrize("people", [{}, {"unit": "who", "rows_per_unit": 2}], ids=["rows", "persons"])
def test_tables_that_got_the_same_answers_leave_the_same_bytes(
    method, people, tmp_path, monkeypatch, caplog, capfd
):
    """Tables of 400 and of 734 rows, one of which has a town of its own, with all answers painted over."""
    caplog.set_level(logging.WARNING, logger="numba")  # which tells what it compiles
    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(measure, "release", paint)
    monkeypatch.setattr(contribution, "release", paint)
    monkeypatch.setattr(find, "release", paint_found)
    tables = [table if people else table.drop(columns="who") for table in (FEW, MANY)]
    left = [
        left_by(table, method, tmp_path / str(place), caplog, capfd, **people)
        for place, table in enumerate(tables)
    ]
    for of_few, of_many in zip(*left, strict=True):
        assert of_few == of_many


def test_fit_leaves_a_release_and_nothing_else():
    model = PrivSyn(1.0, 1e-9, SCHEMA, unit="who", rows_per_unit=2)
    settings = set(vars(model))
    assert set(vars(model.fit(FEW))) - settings == {
        "release_",
        "not_found_",
        "counted_",
        "feature_names_in_",
        "n_features_in_",
    }


# --- question 0 --------------------------------------------------------------------------------------------


def test_found_values_come_in_the_order_of_their_noisy_votes():
    held = {("town", "str"): (["Oslo", "Rome"], np.repeat([0, 1], [900, 800]))}
    for swapped in (False, True):
        noise = StubNoise(iter([0, 300_000 * swapped]))
        found, _ = find_values(
            ["town"], lambda found: count_votes(held, found), rho=1.0, delta=1e-9, noise=noise
        )
        assert found == {"town": ("Rome", "Oslo") if swapped else ("Oslo", "Rome")}


def test_both_looks_at_bounds_leave_with_noise(monkeypatch):
    """Each count has the 7 of the noise in it, in whatever is made of it."""
    asked = []
    for name in ("settled", "bounds_of"):
        method = getattr(OpenSchema, name)

        def spy(open_schema, *released, method=method):
            asked.append(released)
            return method(open_schema, *released)

        monkeypatch.setattr(OpenSchema, name, spy)
    discovering.discover(
        OpenSchema.of(None, FEW[["year"]]),
        read_in_batches(FEW[["year"]]),
        Settings(1.0),
        rho=0.001,
        delta=0.0,
        finder=Finder(StubNoise(repeat(7))),
    )
    (first,), *later = asked
    looks = [first, *(closer for _, _, closer, *_ in later[1:])]
    for look in looks:
        counts, _ = look["year"]
        assert counts.min() >= 7
        assert counts.sum() == len(FEW) + 7 * counts.size


def test_frequent_numbers_follow_from_noisy_counts(monkeypatch):
    seen, found = [], FrequentQuestion.frequent_numbers

    def spy(asked, released, *of):
        seen.append(released["price"])
        return found(asked, released, *of)

    monkeypatch.setattr(FrequentQuestion, "frequent_numbers", spy)
    table = pd.DataFrame({"price": np.repeat([12.99, 9.5], 6000)})
    schema = Schema({"price": Numerical(0, 500, decimals=2)})
    finder = Finder(StubNoise(repeat(7)))
    discovering.discover(
        OpenSchema.of(schema, table),
        read_in_batches(table),
        Settings(1.0),
        rho=0.06,
        delta=0.0,
        finder=finder,
    )
    assert [(counts.min(), counts.max()) for counts in seen] == [(7, 6007)]


# --- noise -------------------------------------------------------------------------------------------------


def test_every_draw_has_entropy_of_its_own():
    """No two of 8,192 words are alike (by chance: 2e-12), and each bit is set in half of them.

    A count of 4,096 +- 362, eight standard deviations, is left with a probability of 1e-15 a bit.
    """
    words = np.concatenate([os_entropy(4096), os_entropy(4096)])
    assert len(np.unique(words)) == len(words)
    set_bits = [int((words >> np.uint64(place) & np.uint64(1)).sum()) for place in range(64)]
    assert max(abs(count - 4096) for count in set_bits) < 362


# --- persons and parts -------------------------------------------------------------------------------------


def test_of_a_person_in_many_parts_no_more_rows_are_kept():
    dask = pytest.importorskip("dask")
    frame = pytest.importorskip("dask.dataframe").from_pandas(
        FEW[["who"]].assign(name=FEW["who"]), npartitions=5
    )
    with dask.config.set(scheduler="sync"):
        source = DaskParts.of(frame)
        bounded = PersonsInMemory.of(source, "who", os_entropy).bounded(source, 2)
        names = bounded.ask(lambda frames: [name for part in frames for name in part["name"]], operator.add)
    assert Counter(names) == {name: min(rows, 2) for name, rows in Counter(FEW["who"]).items()}


def test_adding_two_parts_changes_neither():
    """A cluster that loses a machine adds the same part again: a row would count twice."""
    some, others = ([np.array([1, 2])], [np.array([3, 4])])
    assert [counts.tolist() for counts in source.add_counts(some, others)] == [[4, 6]]
    look, more = ([{("a", "str"): {"x": n}}, {"b": np.array([n])}, {"c": np.array([n + 4])}] for n in (1, 2))
    assert discovering._add(look, more) == [{("a", "str"): {"x": 3}}, {"b": [3]}, {"c": [11]}]
    assert (some[0].tolist(), others[0].tolist()) == ([1, 2], [3, 4])
    assert look == [{("a", "str"): {"x": 1}}, {"b": [1]}, {"c": [5]}]
    assert more == [{("a", "str"): {"x": 2}}, {"b": [2]}, {"c": [6]}]


def test_what_fails_on_a_part_is_not_quoted():
    with pytest.raises(InputError, match="could not be counted") as raised, replace_errors(FAILED):
        raise ValueError("secret")
    assert "secret" not in str(raised.value)
    assert raised.value.__context__ is None


# --- files -------------------------------------------------------------------------------------------------


def test_no_note_beside_the_types_reaches_the_model(tmp_path):
    """pandas notes the last label of its index, and so the number of rows; others may note it at a column."""
    table = pa.Table.from_pandas(FEW[["year"]])
    noted = table.schema.with_metadata({b"rows": b"400", **table.schema.metadata})
    noted = noted.set(0, noted.field(0).with_metadata({b"rows": b"400"}))
    pq.write_table(table.cast(noted), tmp_path / "table.parquet")
    for form in (OutputType.of(table.cast(noted)), read_in_batches(tmp_path / "table.parquet").form):
        assert form.types.metadata is None
        assert [field.metadata for field in form.types] == [None]
        assert form.to_plain() == OutputType.of(
            FEW[["year"]].head(3).pipe(pa.Table.from_pandas)
        ).to_plain() | {"kind": form.kind}


@pytest.mark.parametrize("people", [126, 127])
def test_the_model_does_not_keep_the_type_of_identifiers(people):
    """The indices of a dictionary are as wide as there are people, and the identifiers never come out."""
    who = pd.DataFrame({"who": pd.Categorical(map(str, range(people))), "job": "baker"})
    table = pa.Table.from_pandas(who, preserve_index=False)
    assert table.schema.field("who").type.index_type == (pa.int8() if people < 127 else pa.int16())
    model = PrivSyn(1.0, 1e-9, Schema({"job": Categorical(["baker"])}), unit="who", rows_per_unit=1)
    assert model.fit(table).release_.table().form.types.names == ["job"]


def test_a_saved_file_does_not_tell_when_it_was_saved(tmp_path, monkeypatch):
    model = PrivSyn(1.0, 1e-9, SCHEMA, method="published").fit(FEW.drop(columns="who"))
    written = []
    for now in (1e9, 1.5e9):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        model.save(tmp_path / "model")
        for name in ("sample.csv", "sample.csv.gz", "sample.parquet"):
            model.sample_to(tmp_path / name, 20, seed=1)
        written.append({path.name: path.read_bytes() for path in tmp_path.iterdir()})
    assert written[0] == written[1]
