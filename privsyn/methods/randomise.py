"""Randomised columns: randomise a table on the respondents' side, and learn from what they sent.

The counts of a table in which every column is randomised cost nothing, so all pairs are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.arguments import check_promise
from privsyn.errors import InputError
from privsyn.inference.consistency import combine_one_ways, estimate_total
from privsyn.inference.fitted import Fitted, one_way_certainty, table_certainties
from privsyn.inference.measured_columns import Estimate, MeasuredColumns, PublicFacts
from privsyn.inference.pairs import estimate_pairs
from privsyn.inference.rare_values import merge_rare
from privsyn.marginals.channel import Channels
from privsyn.marginals.domain import Records
from privsyn.methods.columns import MANY_VALUES
from privsyn.private.local_privacy import (
    LocalPromise,
    Unchanged,
    local_epsilon,
    randomised,
    randomised_counts,
)
from privsyn.private.rows import Rows
from privsyn.private.run_ledger import PUBLIC, RunLedger
from privsyn.progress import ESTIMATING, MEASURING, Progress
from privsyn.table.codec.codec import Codec
from privsyn.table.io.output_type import OutputType
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.schema.schema import Schema, declared, match_names
from privsyn.table.schema.yaml_file import as_schema

if TYPE_CHECKING:
    import pandas as pd

BEFORE = (
    "randomised response on the respondents' side; exact counts of the randomised table, no further noise"
)
NOW = "randomised response, exact draws from operating system entropy"

RANDOMISED = "that the respondents randomised {} as the schema says, each cell on its own"
"""The local promise relies on this: no program can see it in a table."""


@dataclass(frozen=True, eq=False, repr=False)
class Randomised:
    """A randomised table, and what goes with it to whoever collects it.

    Parameters
    ----------
    table : table of the type of the input
    schema : Schema
        For `fit`: it says which columns were randomised, and how.
    ledger : RunLedger
        The local promise.
    form : OutputType
        The type of the table.
    """

    table: Any
    schema: Schema
    ledger: RunLedger
    form: OutputType


def randomize(
    table: Any,
    schema: Schema | str | PathLike[str],
    keep: float | None = None,
    *,
    allow_weak_privacy: bool = False,
) -> Randomised:
    """Replace cells at random, so that no cell reveals much: k-ary randomised response.

    Each cell of a randomised column is kept with probability `keep`. Otherwise it becomes one of the listed
    values, or missing if the column is nullable, all with the same probability. The draws are exact and come
    from the entropy of the operating system.

    Randomise each answer once: epsilons of repeated answers add up.

    Parameters
    ----------
    table : pandas, polars or pyarrow table, or path
    schema : Schema or path of a YAML file
        Lists the values of the columns. Without `keep`, the columns with a ``keep`` are randomised. All
        others stay unchanged: the ledger names them, and says that the table is not private.
    keep : float, optional
        Randomise all columns, with this probability where the schema gives none.
    allow_weak_privacy : bool
        Accept an epsilon above 100 of all columns together.

    Returns
    -------
    Randomised
        With the `table`, the `schema` for `fit`, and the `ledger`.

    Raises
    ------
    InputError
        If a column to be randomised has no public list of values, or all together promise next to nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> from privsyn import Categorical
    >>> answers = pd.DataFrame({"smokes": ["no", "yes", "no"]})
    >>> sent = randomize(answers, Schema({"smokes": Categorical(["no", "yes"], nullable=False)}), keep=0.5)
    >>> set(sent.table["smokes"]) <= {"no", "yes"}, f"{sent.ledger.promised_epsilon:.4f}"
    (True, '1.0986')
    """
    public = declared(as_schema(schema))
    if public is None:
        raise InputError("give a schema: it lists the values of the columns to be randomised")
    settled = keep_in(public, keep)
    source = read_in_memory(table, settled)
    match_names(tuple(source.frame.columns), settled)
    codec = codec_of_randomised(settled, source.frame)
    check_promise(local_epsilon(local_promises(codec)), 0.0, allowed=allow_weak_privacy)
    names = list(codec.names)
    codes = codec.encode(source.frame[names]).codes
    # A function of each cell and of fresh bits alone: a respondent's epsilon is the sum over the columns.
    columns = [
        randomised(codes[:, axis], size, settled.randomised[name])
        for axis, (name, size) in enumerate(codec.domain.size_of.items())
    ]
    drawn = codec.decode(Records(codec.domain, np.stack(columns, axis=1)), np.random.default_rng())
    drawn.index = source.frame.index
    frame = source.frame.assign(**{name: drawn[name] for name in names})
    unchanged = tuple(name for name in frame.columns if name not in names)
    ledger = ledger_of_randomised(local_promises(codec), source.public_inputs, NOW, unchanged)
    return Randomised(source.form.cast(frame, settled), settled, ledger, source.form)


def keep_in(schema: Schema, keep: float | None) -> Schema:
    """Return the schema with `keep` in every column that has none; refuse one without a list of values."""
    columns = dict(schema.columns)
    if keep is not None:
        for name, column in columns.items():
            if not column.listed:
                raise InputError(
                    f"column {name!r}: has no list of values to draw from: list them, or leave out keep and"
                    " give it in the schema to the columns to be randomised"
                )
            columns[name] = column if column.keep is not None else replace(column, keep=keep)
    settled = replace(schema, columns=columns, important=())
    if not settled.randomised:
        raise InputError("no column is to be randomised: give keep, such as 0.75")
    return settled


def codec_of_randomised(schema: Schema, table: pd.DataFrame) -> Codec:
    """Return the codec of the randomised columns alone, from their dtypes.

    Raises
    ------
    InputError
        If the dtype of a column cannot hold all its values, or missing cells. The number of values, and with
        it epsilon and the unbiased counts, follow from the schema alone: all respondents have the same.
    """
    names = [name for name in table.columns if name in schema.randomised]
    part = Schema({name: schema.columns[name] for name in names}, missing=schema.missing, csv=schema.csv)
    codec = Codec.for_table(part, table[names])
    for name, size in codec.domain.size_of.items():
        column: Any = part.columns[name]
        if size != len(column.values) + column.nullable:
            raise InputError(
                f"column {name!r}: its dtype cannot hold all that randomised response draws from: change the"
                " dtype, or say nullable: false"
            )
    return codec


def local_promises(codec: Codec) -> tuple[LocalPromise, ...]:
    """Return what randomised response promises about each randomised column."""
    sizes = codec.domain.size_of
    return tuple(
        LocalPromise(name, probability, sizes[name]) for name, probability in codec.schema.randomised.items()
    )


def ledger_of_randomised(
    local: tuple[LocalPromise, ...],
    inputs: tuple[str, ...],
    randomness: str = BEFORE,
    unchanged: tuple[str, ...] = (),
) -> RunLedger:
    """Return the ledger of randomised columns without any question to a private table.

    It is not private if columns leave `unchanged`.
    """
    return RunLedger(
        (*local, *map(Unchanged, unchanged)),
        promised_epsilon=local_epsilon(local),
        promised_delta=0.0,
        accounting="pure",
        randomness=randomness,
        private=not unchanged,
        public_inputs=(*PUBLIC, "the number of records, and whose they are", *inputs),
    )


def facts_of(local: tuple[LocalPromise, ...]) -> tuple[str, ...]:
    """Return what the local promise relies on."""
    return (RANDOMISED.format(", ".join(repr(promise.column) for promise in local)),) if local else ()


def learn_randomised(rows: Rows, rng: np.random.Generator, report: Progress, facts: PublicFacts) -> Fitted:
    """Count all columns and pairs, make them unbiased, and shrink the pairs as noisy ones are shrunk.

    Parameters
    ----------
    rows : Rows
        All their columns are randomised.
    rng : numpy.random.Generator
        For computations on counts.
    report : callable
    facts : PublicFacts
    """
    report(MEASURING, 0, 1)  # nothing is asked of a private row: what was sent is counted
    channels = Channels.for_domain(facts.retention, rows.domain)
    first = randomised_counts(rows, tuple((name,) for name in rows.domain), facts.retention)
    merging = merge_rare(tuple(map(channels.unbiased, first)), estimate_total(first), spared=MANY_VALUES)
    rows, one_ways = rows.merge(merging), tuple(map(merging.merge_counts, first))
    measured_columns = MeasuredColumns(merging, channels=channels.merge(merging), one_ways=one_ways)
    unbiased = measured_columns.channels.unbiased
    measured = randomised_counts(rows, tuple(combinations(rows.domain.names, 2)), facts.retention)
    report(MEASURING, 1, 1)
    report(ESTIMATING, 0, 1)
    pairs = estimate_pairs(measured_columns, tuple(Estimate(m.marginal, measured=m) for m in measured), rng)
    combined = tuple(map(unbiased, combine_one_ways(rows.domain, one_ways)))
    estimates = [replace(pair, measured=unbiased(pair.measured)) for pair in pairs.estimates]
    certain = table_certainties(estimates, combined)
    certainties = (*map(one_way_certainty, combined, pairs.one_ways), *certain)
    report(ESTIMATING, 1, 1)
    return Fitted(merging, pairs.one_ways, pairs.tables, pairs.total, certainties)
