"""Earlier releases of a table that grows: rows drawn from them serve a later release as its public tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import fsum
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from privsyn.errors import InputError, plural, safe_repr, spelled
from privsyn.private.run_ledger import RunLedger
from privsyn.private.series import Series
from privsyn.progress import no_progress
from privsyn.release.linked_rows import LinkedRows
from privsyn.release.public_table import PublicTable, is_release
from privsyn.release.public_tables import PublicTables
from privsyn.release.saved.file_format import read_model
from privsyn.table.database.database import Database
from privsyn.table.io.read_in_memory import digest

if TYPE_CHECKING:
    from privsyn.release.table_model import TableModel

DRAWN = 30_000  # rows of all earlier releases together: more than a table has, so that chance adds little
MOST_DRAWN = 50_000  # rows of the table without a parent, if tables are linked


def refuse_promise_apart(name: str, ledger: RunLedger, advice: str) -> None:
    """Refuse a release whose promise is not known, or protects no rows of a table that grows."""
    if ledger.elsewhere is not None:
        raise InputError(
            f"{name}: its counts were measured elsewhere, with a promise that is not known here: {advice}"
        )
    if ledger.all_local:
        raise InputError(
            f"{name}: respondents randomised its table, so its promise does not add up with this: {advice}"
        )


@dataclass(frozen=True, eq=False)
class EarlierRelease:
    """A release of earlier rows of a table that grows.

    Parameters
    ----------
    name : str
        What messages call it.
    database : Database
    tables : mapping of a table to its TableModel
    """

    name: str
    database: Database
    tables: Mapping[str, TableModel]

    @classmethod
    def read(cls, item: Any) -> EarlierRelease:
        """Read a release, a fitted model, or the path of a saved release."""
        if isinstance(item, str | PathLike):
            return cls(f"the earlier release {Path(item).name!r}", *read_model(item))
        if not is_release(item):
            raise InputError(
                f"{spelled('since')} takes a release, the path of a saved one, or a list of them; got"
                f" {safe_repr(item)}"
            )
        release = getattr(item, "release_", item)
        return cls("the earlier release", release.database, release.tables)

    @property
    def root(self) -> TableModel:
        """The model of the table without a parent."""
        return self.tables[self.database.root]

    @property
    def ledger(self) -> RunLedger:
        """Its promise, and those of the releases on which it rests itself."""
        return self.root.ledger

    def check(self, protected: str, *, private: bool) -> None:
        """Refuse it if its promise does not add up with that of a run; see `EarlierReleases.check`."""
        ledger = self.ledger
        refuse_promise_apart(self.name, ledger, "leave it out")
        if private and not ledger.private:
            raise InputError(
                f"{self.name}: is NOT PRIVATE, because it has a seed, so it has no promise to add up: fit it"
                " again without the seed"
            )
        if ledger.protects != protected:
            raise InputError(
                f"{self.name}: protects {ledger.protects}, and this run {protected}:"
                " promises add up only if they protect the same"
            )

    def linked_tables(self) -> Iterator[tuple[str, pd.DataFrame]]:
        """Yield linked tables that are drawn from it, by their names."""
        linked = LinkedRows(self.database, self.tables)
        rows = linked.sample(min(self.root.estimated_rows, MOST_DRAWN), None, 0, no_progress)
        for name in self.database.shown:
            frame = PublicTable.read(linked.published(name, rows)[0], None).rows
            yield self.database.single or name, frame


@dataclass(frozen=True, eq=False)
class EarlierReleases:
    """Releases of earlier rows of a table that grows, each with a promise of its own.

    Parameters
    ----------
    releases : tuple of EarlierRelease
    """

    releases: tuple[EarlierRelease, ...]

    @classmethod
    def read(cls, since: Any) -> EarlierReleases:
        """Read a release, the path of a saved one, or a list of them.

        Raises
        ------
        InputError
            If one is no release.
        """
        listed = list(since) if isinstance(since, list | tuple) else [since]
        if not listed:
            raise InputError(f"{spelled('since')}: an empty list: give at least one release, or leave it out")
        return cls(tuple(map(EarlierRelease.read, listed)))

    def check(self, protected: str, delta: float, *, private: bool) -> None:
        """Refuse releases whose promises do not add up with that of a run.

        Parameters
        ----------
        protected : str
            Who is protected by the run, in the words of its ledger.
        delta : float
            Which the run promises.
        private : bool
            Whether the run is private. One that is not has no promise to keep.

        Raises
        ------
        InputError
            If a release has no promise, or protects others than the run; or if the sum of all deltas is no
            probability.
        """
        for release in self.releases:
            release.check(protected, private=private)
        deltas = [published.promise.delta for published in self._series(disjoint=True).releases]
        if private and (joint := fsum([*deltas, delta])) >= 1:
            raise InputError(
                f"the deltas of this run and of the earlier releases are {joint:g} together, and no promise"
                " has one of 1 or more: give a smaller delta, or fewer releases"
            )

    def _series(self, *, disjoint: bool) -> Series:
        """Return all releases, and those on which they rest."""
        return Series.join([release.ledger.series for release in self.releases], disjoint=disjoint)

    def drawn(self, database: Database) -> PublicTables:
        """Return rows drawn from all releases, of the columns that all of them have.

        Parameters
        ----------
        database : Database
            Of the private tables of the run.
        """
        (first, *rest) = self.releases
        for release in self.releases:
            if release.database.is_linked is not database.is_linked:
                number = "several tables" if release.database.is_linked else "one table"
                why = f"is of {number}, unlike this run"
                if release.database.is_linked and release.database.single is not None:
                    why = (
                        f"keeps the rows of a person together: give {spelled('identifiers')} for this run too"
                    )
                raise InputError(f"{release.name}: {why}")
        title = plural(len(self.releases), "earlier release") if rest else first.name
        if not database.is_linked:
            frames = [
                release.root.frame(DRAWN // len(self.releases), seed=number)
                for number, release in enumerate(self.releases)
            ]
            tables = {database.root: pd.concat(frames, join="inner", ignore_index=True)}
        elif rest:
            raise InputError(f"{spelled('since')}: linked tables take one earlier release: give the last one")
        else:
            tables = dict(first.linked_tables())
        drawn = {
            name: PublicTable(f"rows drawn from {title} (these have {digest(rows)})", rows)
            for name, rows in tables.items()
        }
        return PublicTables(drawn, database)

    def before(self, ledger: RunLedger, *, disjoint: bool) -> RunLedger:
        """Return the ledger of a later release that says what all together promise."""
        if ledger.since is not None:
            raise InputError(
                f"the release rests on earlier ones already: give all of them together to {spelled('since')}"
            )
        return replace(ledger, since=self._series(disjoint=disjoint), disjoint=disjoint)
