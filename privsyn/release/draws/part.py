"""The part of a release that is about some columns, which is drawn in a fraction of the time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from privsyn.inference.fitted import Fitted
from privsyn.progress import Progress
from privsyn.table.codec.codec import Codec
from privsyn.table.io.write import stacked

if TYPE_CHECKING:
    from privsyn.release.release import Release

DRAWS = 20
MOST_ROWS = 20_000  # of a draw: its rows are fitted to the counts, so fewer add little


def frames_of(
    release: Release, columns: frozenset[str] | None, progress: Progress | None
) -> Iterator[pd.DataFrame]:
    """Yield draws of some columns; for None, one synthetic table of all columns."""
    rows = min(round(release.fitted.total), MOST_ROWS)
    if columns is None:
        yield stacked(release.blocks(rows, 0, progress))
    else:
        yield from part_of(release, columns).draws(DRAWS, rows, seed=0, progress=progress).frames()


def part_of(release: Release, columns: Collection[str]) -> Release:
    """Return the release of some columns, and of those that constraints link with them.

    It has the one-way tables of these columns, and the tables of several columns that have no others.
    """
    codec, fitted = codec_of(release.codec, columns), release.fitted
    inside, first = set(codec.domain), len(fitted.one_ways)
    alone = [release.codec.domain.names.index(name) for name in codec.domain]
    kept = [place for place, table in enumerate(fitted.marginals) if inside >= set(table.attributes)]
    part = Fitted(
        fitted.merging.project(codec.domain.names),
        tuple(fitted.one_ways[place] for place in alone),
        tuple(fitted.marginals[place] for place in kept),
        fitted.total,
        tuple(fitted.certainties[place] for place in (*alone, *(first + place for place in kept))),
    )
    return replace(release, codec=codec, fitted=part)


def codec_of(codec: Codec, columns: Collection[str], *, constrained: bool = True) -> Codec:
    """Return the codec of some columns, and of those that constraints link with them.

    With `constrained` False there are no constraints, and no further columns.
    """
    names, chosen = set(columns), codec.schema.constraints if constrained else ()
    while linked := {n for c in chosen if names & set(c.columns) for n in c.columns} - names:
        names |= linked
    schema = replace(
        codec.schema,
        columns={name: column for name, column in codec.schema.columns.items() if name in names},
        constraints=[constraint for constraint in chosen if names & set(constraint.columns)],
    )
    return replace(
        codec,
        schema=schema,
        names=tuple(name for name in codec.names if name in names),
        dtypes=tuple(dtype for name, dtype in zip(codec.names, codec.dtypes, strict=True) if name in names),
        heaps={name: heaps for name, heaps in codec.heaps.items() if name in names},
        split=tuple(name for name in codec.split if name in names),
    )
