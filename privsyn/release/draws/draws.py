"""Draws: several samples of a release, each from its own draw of the private tables' counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np
import pandas as pd

from privsyn.abilities import check_abilities
from privsyn.errors import InputError, about
from privsyn.inference.posterior.tables import Posterior, draw_linking, made_up
from privsyn.marginals.domain import Records
from privsyn.progress import Progress, no_progress
from privsyn.release.draws.frames import FrameDraws, posterior_of
from privsyn.release.linked_rows import LinkedRows, Rows
from privsyn.table.io.write import write_blocks

if TYPE_CHECKING:
    from privsyn.release.table_model import TableModel
    from privsyn.table.codec.codec import Codec
    from privsyn.table.database.database import Database
    from privsyn.table.database.synthetic import SyntheticRows


NUMBER = "draw"
"""The column of a file that says to which draw a row belongs, from 1 up."""


class Drawable(Protocol):
    """What draws need of a `Release`, which says what each is."""

    @property
    def database(self) -> Database: ...  # noqa: D102
    @property
    def tables(self) -> Mapping[str, TableModel]: ...  # noqa: D102
    @property
    def is_linked(self) -> bool: ...  # noqa: D102
    @property
    def kinds(self) -> tuple[str, ...]: ...  # noqa: D102
    @property
    def codec(self) -> Codec: ...  # noqa: D102
    @property
    def linked_rows(self) -> LinkedRows: ...  # noqa: D102
    def table(self) -> TableModel: ...  # noqa: D102
    def published(self, rows: Mapping[str, SyntheticRows]) -> Any: ...  # noqa: D102


class Draws(Sequence[Any]):
    """Synthetic tables that differ as much as the noise leaves the private tables open.

    A sequence of what `Release.sample` returns. Each is made when it is asked for, and is the same each time.
    Of linked tables, it is not drawn how many rows the root has, but how many rows belong to each of its
    rows.

    Parameters
    ----------
    release : Release
    m : int
        Number of samples, at least 2.
    n : int, optional
        Rows of each, at least 1; of linked tables, rows of the root. Default: the private estimate.
    seed : int, optional
    progress : callable, optional
    """

    def __init__(
        self,
        release: Drawable,
        m: int,
        n: int | None = None,
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._release = release
        self._root = FrameDraws(release.tables[release.database.root], m, n, seed, progress)
        below = {name: model for name, model in release.tables.items() if model.links is not None}
        self._below = {name: posterior_of(model) for name, model in below.items()}
        self._other_roots = {
            name: FrameDraws(release.tables[name], m, release.linked_rows.rows_of_other(name), seed, progress)
            for name in release.database.roots[1:]
        }

    def __len__(self) -> int:
        return self._root.m

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> list[Any]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[k] for k in range(len(self))[index]]
        return self._sample(range(len(self))[index])

    def __repr__(self) -> str:
        of_root = f" of {self._release.database.root!r}" if self._release.is_linked else ""
        return f"<Draws: {len(self)} of {self._root.n} rows{of_root} each, from {self._release!r}>"

    def __iter__(self) -> Iterator[Any]:
        return self._root.each(self._sample)

    def frames(self) -> Iterator[pd.DataFrame]:
        """Yield all tables as pandas data frames; an `InputError` if rows are linked."""
        return self._root.each(self.frame)

    def frame(self, k: int) -> pd.DataFrame:
        """Return one table as a pandas data frame; an `InputError` if rows are linked."""
        if self._release.is_linked:
            raise InputError("draws of linked rows are samples, not frames of one table: take draws[k]")
        return self._root.frame(k)

    def to_file(self, path: str | PathLike[str], *, excel_safe: bool = False) -> tuple[int, int]:
        """Write all tables to one file, one below the other, with the number of the draw in column "draw".

        Returns
        -------
        rows, columns : int

        Raises
        ------
        InputError
            If the file cannot be written, the table has a column of that name, or rows are linked: the keys
            of all draws are alike.
        """
        check_abilities(self._release.kinds, {"draws": self})
        codec, form = self._release.codec, self._release.table().form
        if NUMBER in codec.names:
            raise InputError(f"a column is called {NUMBER!r}, as is that of the draws: save them one by one")
        blocks = (
            pd.concat([pd.Series(k, frame.index, name=NUMBER), frame], axis=1)
            for k, frame in enumerate(self.frames(), start=1)
        )
        return write_blocks(blocks, path, codec.schema, form, excel_safe=excel_safe)

    def _sample(self, k: int) -> Any:
        """Return one sample, of the type of the private tables."""
        frame = self._root.frame(k)
        if not self._release.is_linked:
            return self._release.table().form.cast(frame, self._release.codec.schema)
        rows = {self._release.database.root: self._release.linked_rows.root_rows(frame)}
        linked_rows = self._release.linked_rows
        for name, frames in self._other_roots.items():
            rows[name] = linked_rows.root_rows(frames.frame(k), name)
        *seeds, seed_of_dealt = np.random.SeedSequence(self._root.entropy, spawn_key=(k, 1)).spawn(
            len(self._below) + 1
        )
        for (name, posterior), seed in zip(self._below.items(), seeds, strict=True):
            with about(f"table {name!r}"):
                rows[name] = self._drawn(name, posterior, rows, seed)
        return self._release.published(linked_rows.with_dealt(rows, seed_of_dealt))

    def _drawn(
        self, name: str, posterior: Posterior, rows: Rows, seed: np.random.SeedSequence
    ) -> SyntheticRows:
        """Return the rows of a child table, made twice, as `FrameDraws.frame` makes rows: see `Posterior`."""
        model, (first, second, of_draw) = self._release.tables[name], seed.spawn(3)
        links, rng = model.links, np.random.default_rng(of_draw)
        if links is None:
            raise ValueError(f"{name}: nothing links its rows")
        fitted = posterior.draw(rng)
        linking = (
            replace(linking, table=draw_linking(linking.table, linking.measured, fitted.one_ways, rng))
            for linking in links.linking
        )
        drawn = replace(model, fitted=fitted, links=replace(links, linking=tuple(linking)))
        its_rows = self._with_model(name, drawn).child_rows(name, rows, first, no_progress)
        codes = np.stack([*its_rows.codes.values()], axis=1).astype(np.int32)
        if not len(codes):
            return its_rows
        fitted = made_up(fitted, Records(fitted.merging.merged, codes), posterior.numbers)
        return self._with_model(name, replace(drawn, fitted=fitted)).child_rows(
            name, rows, second, no_progress
        )

    def _with_model(self, name: str, model: TableModel) -> LinkedRows:
        """Return the linked tables with another model of one table."""
        return LinkedRows(self._release.database, {**self._release.tables, name: model})
