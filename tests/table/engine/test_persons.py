"""The rows of persons in a database: identifiers as in memory, and the same bounds in an order of its own."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from refusals import refuses
from replay import Answers, moved
from same_model import assert_same_model
from sqlglot import exp
from table.engine.databases import in_duckdb, in_postgres, in_sqlite

from privsyn import Categorical, Numerical, PrivSyn, Schema
from privsyn.methods import reading
from privsyn.owners.party import Alone
from privsyn.private.contribution import NOBODY, NumbersInMemory, classes
from privsyn.table.engine.engine import Cells
from privsyn.table.engine.engine_table import EngineTable
from privsyn.table.engine.persons import PERSON, column
from privsyn.table.engine.rows_in_order import RowsInOrder
from privsyn.table.io.identifiers import persons_of
from privsyn.table.io.read_in_batches import read_in_batches

pytestmark = pytest.mark.filterwarnings("ignore")

WORDS = [1, 2, 3, 4]
KEY = "".join(f"{word:016x}" for word in WORDS)


@dataclass
class Database:
    kind: str
    url: str = ""

    def __call__(self, frame):
        """Return the table of ibis with these rows."""
        if self.kind == "postgres":
            return in_postgres(self.url, arrow(frame))
        return (in_duckdb if self.kind == "duckdb" else in_sqlite)(arrow(frame))


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def stored(request):
    """Return what stores data frames in a database."""
    url = request.getfixturevalue("postgres") if request.param == "postgres" else ""
    return Database(request.param, url)


def arrow(frame):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return table.cast(pa.schema([(field.name, _narrow(field.type)) for field in table.schema]))


def _narrow(kind):
    return pa.string() if pa.types.is_large_string(kind) else kind


MARKS = ["", " NA ", "\u00a0nan\u2003", "NULL", "None", "none", None]
ALIKE = ["7", "007", " 7", "7 ", "Ann", "ann", "ANN", "e\u0301", "\u00e9", "a\ufffdb", "it's", "Ann", "7"]
IDENTIFIERS = {
    "text": pd.Series([*MARKS, *ALIKE], dtype="str"),
    "integer": pd.Series([7, 7, -(2**63), 2**63 - 1, None, 0], dtype="Int64"),
    "double": pd.Series([7.0, 7.0, 0.5, -0.0, 0.0, 2.0**53, 2.0**53 - 1, -(2.0**53), np.nan, np.inf, 1e300]),
    "single": pd.Series([7.0, 7.0, 0.5, 2.0**24, 2.0**24 - 1, np.nan], dtype="float32"),
}


@pytest.mark.parametrize("family", IDENTIFIERS)
def test_identifiers_are_those_of_memory(stored, family):
    frame = pd.DataFrame({"who": IDENTIFIERS[family], "line": np.arange(len(IDENTIFIERS[family]))})
    if family == "single" and stored.kind == "sqlite":
        pytest.skip("SQLite has no floats of 32 bits")
    expected, table = persons_of(frame, "who"), stored(frame)
    rows = RowsInOrder.of(EngineTable.of(table), "who", KEY)
    query = exp.select(column("line"), column(PERSON)).from_(
        rows.rows.identity.rows(rows.rows.table.relation, ["line"])
    )
    answer = table.get_backend().raw_sql(rows.rows.table.engine.dialect.write(query)).fetchall()
    of_rows = {int(line): person for line, person in answer}
    assert of_rows.keys() == set(np.flatnonzero(expected != NOBODY).tolist())
    persons: dict[int, str] = {}
    assert all(persons.setdefault(expected[line], person) == person for line, person in of_rows.items())
    assert len({*persons.values()}) == len(persons)


def visits(seed, people=40, most=9):
    """Rows of persons, in no order. Some are equal, and some have no person."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(-1, people), rng.integers(1, most + 1, people + 1))
    rng.shuffle(who)
    ill = rng.choice(["cold", "flu", "well"], len(who))
    return pd.DataFrame(
        {
            "ill": pd.Series(np.where(who % 3 == 0, "flu", ill), dtype="str"),
            "who": pd.Series(who, dtype="Int64").mask(who < 0),
            "age": pd.Series(rng.integers(0, 4, len(who)) * 20, dtype="Int64").mask(
                rng.random(len(who)) < 0.1
            ),
        }
    )


SCHEMA = Schema({"ill": Categorical(["cold", "flu", "well"]), "age": Numerical(0, 100, integer=True)})


def words_of(frame):
    """Return the word of each row with which it has the place in memory that it has in the database."""
    times: dict[str, int] = {}
    words = []
    for ill, who, age in frame.itertuples(index=False):
        person = sha256(f"{KEY}{who}".encode()).hexdigest()[:32]
        cells = person + "".join("-" if pd.isna(cell) else f"|{cell}" for cell in (ill, age))
        content = sha256(cells.encode()).hexdigest()
        times[content] = times.get(content, 0) + 1
        words.append(int(sha256(f"{content}|{times[content]}".encode()).hexdigest()[:16], 16))
    return np.array(words, np.uint64)


@contextmanager
def drawn(words, bound):
    """Give out these random words, and bound the rows of each person."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Alone, "bits", lambda _: lambda size: np.array(words, np.uint64)[:size])
        patch.setattr(reading, "best_bound", lambda *_: bound)
        yield


def fitted(table, words, bound, delta=1e-9, epsilon=20.0):
    with drawn(words, bound):
        return PrivSyn(epsilon, delta, SCHEMA, unit="who", seed=5, allow_weak_privacy=True).fit(table)


@pytest.mark.parametrize(("bound", "delta"), [(1, 1e-9), (2, 1e-9), (4, 1e-9), (3, 0)])
def test_a_fit_in_a_database_is_that_in_memory_with_rows_in_its_order(stored, bound, delta):
    frame = visits(bound)
    table = stored(frame)
    there = EngineTable.of(table)
    here = read_in_batches(arrow(frame).cast(there.types))
    here = replace(here, form=there.form, public_inputs=there.public_inputs)
    models = [fitted(here, words_of(frame), bound, delta), fitted(table, WORDS, bound, delta)]
    assert [model.ledger_.squares for model in models] == [bound > 1 and delta > 0] * 2
    assert_same_model(*(model.release_.packed() for model in models))


def ratios(store, frame, leaver, bound):
    """Return how far each answer moves if a person leaves, over its sensitivity; all else stays the same."""
    first = Answers()
    with first.run():
        before = fitted(store(frame), WORDS, bound)
    second = Answers(first.released)
    with second.run():
        after = fitted(store(frame[(frame["who"] != leaver).fillna(True)]), WORDS, bound)
    assert after.ledger_ == before.ledger_
    assert_same_model(before.release_.packed(), after.release_.packed())
    steps = zip(before.ledger_.spends, first.exact, second.exact, strict=True)
    return [moved(some, others, spend.law) / spend.sensitivity for spend, some, others in steps]


@pytest.mark.slow
@pytest.mark.parametrize("bound", [2, 3])
def test_whoever_leaves_a_database_moves_nothing_further_than_the_ledger_says(stored, bound):
    frame = visits(7, people=60, most=6)
    many = pd.DataFrame({"ill": "flu", "who": 1000, "age": [0] * 30 + [60] * 10})
    frame = pd.concat([frame, many.astype(frame.dtypes)]).sample(frac=1, random_state=1)
    worst = [max(ratios(stored, frame, leaver, bound)) for leaver in (1000, 3)]
    assert max(worst) <= 1 + 1e-12
    assert worst[0] > 0.9  # whoever has many equal rows attains the bound of some answer


def test_numbers_of_rows_are_those_of_memory(stored):
    frame = visits(4, most=20)
    rows, memory = RowsInOrder.of(EngineTable.of(stored(frame)), "who", KEY), persons_of(frame, "who")
    numbers, begins = NumbersInMemory(memory), classes(30)
    assert rows.in_classes(begins).tolist() == numbers.in_classes(begins).tolist()
    assert [rows.within(bound) for bound in (1, 5, 99)] == [numbers.within(bound) for bound in (1, 5, 99)]


def test_the_key_is_in_no_log(stored):
    statements: list[str] = []
    table = EngineTable.of(stored(visits(0)), statements.append)
    rows = RowsInOrder.of(table, "who", KEY)
    rows.within(2)
    assert any("SHA256" in statement.upper() for statement in statements)
    assert not any(KEY in statement for statement in statements)


def test_no_row_is_in_the_table_of_a_bound_of_0(stored):
    rows = RowsInOrder.of(EngineTable.of(stored(visits(0))), "who", KEY)
    bounded = rows.bounded(0, ["who"])
    assert list(bounded.head.columns) == ["ill", "age"]
    (counts,) = bounded.engine.count(bounded.relation, [Cells(exp.convert(0), 1)])
    assert counts.tolist() == [0]


@pytest.mark.parametrize(
    ("unit", "message"),
    [("whom", "has no column 'whom'"), ("day", "an identifier is text or a whole number")],
)
def test_columns_that_identify_nobody_are_refused(unit, message):
    frame = visits(0).assign(day=pd.Timestamp("2020-01-01"))
    table = in_duckdb(arrow(frame))
    with refuses(message):
        PrivSyn(1.0, 1e-9, SCHEMA, unit=unit).fit(table)
