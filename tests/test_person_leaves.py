"""If all rows of a person are removed, no exact answer moves further than the ledger says, nor anything else.

The second run is without the person. It gets the released answers of the first, and the rows of all others
keep their random words. Then the model of both runs must be the same, byte by byte.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from replay import Answers, moved

from privsyn import Categorical, Numerical, PrivSyn, Schema
from privsyn.methods import reading
from privsyn.owners.party import Alone
from privsyn.private import rows

OPEN = {
    "job": Categorical(["baker", "clerk", "cook"], nullable=False),
    "age": Numerical(0, 99, integer=True),
    "town": Categorical(),
    "year": Numerical(),
}
ALIKE, UNLIKE = "alike", "unlike"
"""The persons with many rows: of one kind, and as different as can be."""


def table_of(others=80, most=150):
    """Rows of persons with a few rows each, and of two with many, in no order."""
    rng = np.random.default_rng(3)
    few = rng.integers(1, 9, others)
    who = np.concatenate([np.repeat([f"p{place}" for place in range(others)], few), [ALIKE, UNLIKE] * most])
    table = pd.DataFrame(
        {
            "job": rng.choice(["baker", "clerk", "cook"], len(who)),
            "age": rng.integers(0, 100, len(who)),
            "town": rng.choice(["Lima", "Oslo", "Rome", "Bonn"], len(who)),
            "year": rng.integers(1950, 2020, len(who)),
            "who": who,
        }
    )
    table.loc[table["who"] == ALIKE, ["job", "age", "town", "year"]] = ["cook", 99, "Atlantis", 2400]
    table.loc[table["who"] == UNLIKE, "town"] = [f"town {place}" for place in range(most)]
    return table.sample(frac=1, random_state=1).reset_index(drop=True)


def as_folder(table, folder):
    (folder / "parts").mkdir()
    for place in range(0, len(table), 200):
        table[place : place + 200].to_parquet(folder / "parts" / f"{place:05d}.parquet", index=False)
    return folder / "parts"


def as_csv(table, folder):
    table.to_csv(folder / "t.csv", index=False)
    return folder / "t.csv"


def as_parquet(table, folder):
    pq.write_table(pa.Table.from_pandas(table, preserve_index=False), folder / "t.parquet", row_group_size=99)
    return folder / "t.parquet"


def as_parts(table, _):
    return pytest.importorskip("dask.dataframe").from_pandas(table, npartitions=4)


FORMS = {
    "pandas": lambda table, _: table,
    "polars": lambda table, _: pl.from_pandas(table),
    "arrow": lambda table, _: pa.Table.from_pandas(table, preserve_index=False),
    "csv": as_csv,
    "parquet": as_parquet,
    "folder": as_folder,
    "parts": as_parts,
}
MODELS = {
    "default": (1e-6, "default", Schema(OPEN)),
    "published": (1e-6, "published", Schema(OPEN)),
    "pure": (0, "default", Schema({name: kind for name, kind in OPEN.items() if name != "town"})),
}
TABLE = table_of()
WORDS = np.random.default_rng(8).permutation(len(TABLE)).astype(np.uint64)


def left_by(table, words, answers, model, form, bound, folder):
    """Fit under a bound, and return the ledger and the bytes of the model."""
    delta, method, schema = MODELS[model]
    names = [*schema.columns, "who"]
    folder.mkdir()
    with answers.run(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "best_bound", lambda *_: bound)
        patch.setattr(Alone, "bits", lambda _: lambda size: words[:size])
        patch.setattr(rows, "ROWS_AT_ONCE", 200)
        settings = {"unit": "who", "method": method, "seed": 1, "memory": "2GB" if bound % 6 else 0}
        fitted = PrivSyn(20.0, delta, schema, **settings).fit(FORMS[form](table[names], folder))
    fitted.save(folder / "model")
    return fitted.ledger_, (folder / "model").read_bytes()


def ratios(model, form, bound, leaver, folder):
    """Return for each question how far it moves if a person leaves, over its sensitivity; check the rest."""
    first = Answers()
    whole = left_by(TABLE, WORDS, first, model, form, bound, folder / "whole")
    second, stay = Answers(first.released), TABLE["who"] != leaver
    rest = TABLE[stay].reset_index(drop=True)
    assert left_by(rest, WORDS[stay], second, model, form, bound, folder / "rest") == whole
    ledger = whole[0]
    assert ledger.rows_per_unit == bound
    return {
        spend.what: moved(some, others, spend.law) / spend.sensitivity
        for spend, some, others in zip(ledger.spends, first.exact, second.exact, strict=True)
    }


RUNS = [(form, [*MODELS][(turn + place) % 3]) for turn in range(3) for place, form in enumerate(FORMS)]
EACH = [(*run, 1 + place % 20, (ALIKE, UNLIKE)[(place + place // 7) % 2]) for place, run in enumerate(RUNS)]
"""Each form with each model, and each bound from 1 to 20."""


@pytest.mark.slow
@pytest.mark.parametrize(("form", "model", "bound", "leaver"), EACH)
def test_nothing_moves_further_than_the_ledger_says(form, model, bound, leaver, tmp_path):
    found = ratios(model, form, bound, leaver, tmp_path)
    assert max(found.values()) <= 1 + 1e-12
    assert found["rows per person"] == 1
    if leaver == ALIKE:  # which moves the counts of every column in the same cells
        columns = [ratio for what, ratio in found.items() if what.startswith("one-way counts")]
        assert columns == pytest.approx([1] * len(columns))
        assert max(ratio for what, ratio in found.items() if what.startswith("counts over")) > 0.7
