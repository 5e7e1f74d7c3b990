"""Learn from a table that the respondents randomised: its counts cost nothing, so all pairs are counted."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.errors import InputError
from privsyn.inference.consistency import combine_one_ways, estimate_total
from privsyn.inference.fitted import Fitted, one_way_certainty, table_certainties
from privsyn.inference.pairs import estimate_pairs
from privsyn.inference.problem import Estimate, Problem, PublicFacts
from privsyn.inference.rare_values import merge_rare
from privsyn.marginals.channel import Channels
from privsyn.methods.columns import MANY_VALUES
from privsyn.private.randomised_response import LocalPromise, RandomisedTable
from privsyn.progress import Progress
from privsyn.table.codec.codec import Codec
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    import pandas as pd


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
    for name, size in zip(codec.domain.names, codec.domain.sizes, strict=True):
        column: Any = part.columns[name]
        if size != len(column.values) + column.nullable:
            raise InputError(
                f"column {name!r}: its dtype cannot hold all that randomised response draws from: change the"
                " dtype, or say nullable: false"
            )
    return codec


def check_dtypes(schema: Schema, table: pd.DataFrame) -> None:
    """Refuse a randomised column whose dtype cannot hold all its values, before any question is asked."""
    if schema.randomised:
        codec_of_randomised(schema, table)


def local_promises(codec: Codec) -> tuple[LocalPromise, ...]:
    """Return what randomised response promises about each randomised column."""
    sizes = dict(zip(codec.domain.names, codec.domain.sizes, strict=True))
    return tuple(LocalPromise(name, kept, sizes[name]) for name, kept in codec.schema.randomised.items())


def learn_randomised(
    table: RandomisedTable, rng: np.random.Generator, report: Progress, facts: PublicFacts
) -> Fitted:
    """Count all columns and pairs, make them unbiased, and shrink the pairs as noisy ones are shrunk.

    Parameters
    ----------
    table : RandomisedTable
    rng : numpy.random.Generator
        For computations on counts.
    report : callable
    facts : PublicFacts
    """
    report("counting", 0, 2)
    channels = Channels.for_domain(facts.kept, table.domain)
    first = table.count(tuple((name,) for name in table.domain))
    merging = merge_rare(tuple(map(channels.unbiased, first)), estimate_total(first), spared=MANY_VALUES)
    one_ways = tuple(map(merging.merge_counts, first))
    table = table.merge(merging)
    problem = Problem(merging, channels=channels.merge(merging), one_ways=one_ways)
    unbiased = problem.channels.unbiased
    measured = table.count(tuple(combinations(table.domain.names, 2)))
    report("counting", 1, 2)
    pairs = estimate_pairs(problem, tuple(Estimate(m.marginal, measured=m) for m in measured), rng)
    combined = tuple(map(unbiased, combine_one_ways(table.domain, one_ways)))
    found = [replace(pair, measured=unbiased(pair.measured)) for pair in pairs.estimates]
    certain = table_certainties(found, combined)
    certainties = (*map(one_way_certainty, combined, pairs.one_ways), *certain)
    report("counting", 2, 2)
    return Fitted(merging, pairs.one_ways, pairs.tables, pairs.total, certainties)
