"""Randomise a table on the respondents' side, before anybody collects it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from privsyn.errors import InputError
from privsyn.marginals.domain import Records
from privsyn.methods.fit_randomised import codec_of_randomised, local_promises
from privsyn.methods.run_ledger import NOW, ledger_of_randomised
from privsyn.private.ledger import Ledger
from privsyn.private.randomised_response import randomised
from privsyn.table.io.output_type import OutputType
from privsyn.table.io.read_in_memory import read_in_memory
from privsyn.table.schema.columns import Categorical
from privsyn.table.schema.schema import Schema, declared, match_names
from privsyn.table.schema.yaml_file import as_schema


@dataclass(frozen=True, eq=False, repr=False)
class Randomised:
    """A randomised table, and what goes with it to whoever collects it.

    Parameters
    ----------
    table : table of the type of the input
    schema : Schema
        For `fit`: it says which columns were randomised, and how.
    ledger : Ledger
        The local promise.
    form : OutputType
        The type of the table.
    """

    table: Any
    schema: Schema
    ledger: Ledger
    form: OutputType


def randomize(table: Any, schema: Schema | str | PathLike[str], keep: float | None = None) -> Randomised:
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

    Returns
    -------
    Randomised
        With the `table`, the `schema` for `fit`, and the `ledger`.

    Raises
    ------
    InputError
        If a column to be randomised has no public list of values.

    Examples
    --------
    >>> import pandas as pd
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
    names = list(codec.names)
    codes = codec.encode(source.frame[names]).codes
    # A function of each cell and of fresh bits alone: a respondent's epsilon is the sum over the columns.
    columns = [
        randomised(codes[:, place], size, settled.randomised[name])
        for place, (name, size) in enumerate(zip(codec.domain.names, codec.domain.sizes, strict=True))
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
            if not isinstance(column, Categorical) or not column.listed:
                raise InputError(
                    f"column {name!r}: has no list of values to draw from: list them, or leave out keep and"
                    " give it in the schema to the columns to be randomised"
                )
            columns[name] = column if column.keep is not None else replace(column, keep=keep)
    settled = Schema(columns, missing=schema.missing, csv=schema.csv, constraints=schema.constraints)
    if not settled.randomised:
        raise InputError("no column is to be randomised: give keep, such as 0.75")
    return settled
