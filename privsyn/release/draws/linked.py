"""Draws of linked tables: each a dict of tables, from its own draw of the private tables' counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privsyn.errors import about
from privsyn.inference.posterior.tables import Posterior, draw_linking, made_up
from privsyn.marginals.domain import Records
from privsyn.progress import Progress, no_progress
from privsyn.release.draws.draws import Draws, posterior_of

if TYPE_CHECKING:
    from privsyn.release.linked import LinkedRelease
    from privsyn.release.saved.linked_file import ReleasedLevel
    from privsyn.table.database.synthetic import SyntheticRows


class LinkedDraws(Draws):
    """Synthetic tables that differ as much as the noise leaves the private tables open.

    A sequence of what `LinkedRelease.sample` returns. How many rows the root has is not drawn, but how many
    belong to each of its rows.

    Parameters
    ----------
    release : LinkedRelease
    m : int
        Number of draws, at least 2.
    n : int, optional
        Rows of the root in each. Default: the private estimate.
    seed : int, optional
    progress : callable, optional
    """

    def __init__(
        self,
        release: LinkedRelease,
        m: int,
        n: int | None = None,
        seed: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        super().__init__(release.levels[release.database.root].release, m, n, seed, progress)
        self._linked, self._kinds = release, release.kinds
        below = {name: level for name, level in release.levels.items() if level.links is not None}
        self._below = {name: posterior_of(level.release) for name, level in below.items()}

    def __repr__(self) -> str:
        root = self._linked.database.root
        return f"<LinkedDraws: {len(self)} of {self._n} rows of {root!r} each, from {self._linked!r}>"

    def _table(self, k: int) -> Any:
        return self._linked.tables_of(self._rows(k))

    def _rows(self, k: int) -> dict[str, SyntheticRows]:
        """Return the rows of all tables."""
        made = {self._linked.database.root: self._linked.root_rows(self.frame(k))}
        seeds = np.random.SeedSequence(self._entropy, spawn_key=(k, 1)).spawn(len(self._below))
        for (name, posterior), seed in zip(self._below.items(), seeds, strict=True):
            with about(f"table {name!r}"):
                made[name] = self._drawn(name, posterior, made, seed)
        return made

    def _drawn(
        self,
        name: str,
        posterior: Posterior,
        made: Mapping[str, SyntheticRows],
        seed: np.random.SeedSequence,
    ) -> SyntheticRows:
        """Return the rows of a child table, made twice as those of one table: see `Posterior`."""
        level, (first, second, of_draw) = self._linked.levels[name], seed.spawn(3)
        links, rng = level.links, np.random.default_rng(of_draw)
        if links is None:
            raise ValueError(f"{name}: nothing links its rows")
        fitted = posterior.draw(rng)
        tables = draw_linking(links.tables, links.measured, fitted.one_ways, rng)
        drawn = replace(
            level, release=replace(level.release, fitted=fitted), links=replace(links, tables=tables)
        )
        rows = self._with(name, drawn).below(name, made, first, no_progress)
        codes = np.stack([*rows.codes.values()], axis=1).astype(np.int32)
        if not len(codes):
            return rows
        fitted = made_up(fitted, Records(fitted.merging.merged, codes), posterior.numbers)
        drawn = replace(drawn, release=replace(level.release, fitted=fitted))
        return self._with(name, drawn).below(name, made, second, no_progress)

    def _with(self, name: str, level: ReleasedLevel) -> LinkedRelease:
        """Return the release with another model of one table."""
        return replace(self._linked, levels={**self._linked.levels, name: level})
