"""A public table beside a release: its rows in the codes of the release, and which of them fit no column."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, plural, replace_errors, safe_repr
from privsyn.inference.ordered.tails import Tails
from privsyn.inference.public_weights import with_public_rows
from privsyn.marginals.domain import Records
from privsyn.release.saved.file_format import TEXT, read_model
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.encoders import missing_cells
from privsyn.table.io.read_in_memory import digest, read_in_memory
from privsyn.table.schema.schema import Schema

if TYPE_CHECKING:
    from privsyn.release.table_model import TableModel

ROWS = "{}: {:.0%} of the synthetic rows are rows of it as they are"
COUNTS = "{}: with a weight of {:.0%} in the counts from which rows are made"
WITHOUT_TARGET = "; no row of it is a synthetic one, because it lacks the target {}"
FAR = "{}: it is far from the released answers, so that nothing is made from it"
EMPTY = "{}: no row of it has only values of the schema, so that nothing is made from it"
DEFECT = "{}: it could not be used ({}), so that nothing is made from it: please report this defect"
DROPPED = "; {} with values that the schema does not have are left out"
MOST_DRAWN = 50_000  # rows drawn of a release


@dataclass(frozen=True, eq=False)
class PublicTable:
    """A table that its user says is public, such as last year's, or rows drawn from an earlier release.

    Parameters
    ----------
    title : str
        What the ledger calls it, with its SHA-256.
    rows : pandas.DataFrame
    """

    title: str
    rows: pd.DataFrame

    @classmethod
    def read(cls, table: Any, schema: Schema | None) -> PublicTable:
        """Read a table, the path of one, a release or the path of a saved one."""
        name = f" {str(table)!r}" if isinstance(table, str | PathLike) else ""
        if name and _is_model(Path(table)):
            table = read_model(table)[1]
            if len(table) > 1:
                raise InputError(f"the public model{name} has several tables: give one table")
            (table,) = table.values()
        if (model := getattr(table, "single", table)) is not None and hasattr(model, "blocks"):
            ledger = model.ledger
            rows = model.frame(min(model.estimated_rows, MOST_DRAWN), seed=0)
            promise = f"epsilon {ledger.promised_epsilon:g} at delta {ledger.promised_delta:g}"
            return cls(
                f"rows drawn from the release{name} of {promise}, which adds up ({digest(rows)})", rows
            )
        rows = read_in_memory(table, schema).frame.reset_index(drop=True)
        return cls(f"the public table{name} of {plural(len(rows), 'row')} ({digest(rows)})", rows)

    def encoded(self, codec: Codec) -> tuple[Records, int]:
        """Return the codes of the rows, of attributes whose columns they have; and how many rows do not fit.

        Raises
        ------
        InputError
            If no column is one of the codec's, or a column has cells of another type.
        """
        specimen = codec.specimen(np.random.default_rng(0))
        fits, cells = np.full(len(self.rows), True), dict[str, pd.Series]()
        for name in codec.schema.coded:
            if name not in specimen:
                continue
            if name not in self.rows:
                cells[name] = specimen[name].iloc[[0] * len(self.rows)].reset_index(drop=True)
                continue
            complaint = f"{short(self.title)}: column {safe_repr(name)} has cells of another type"
            with replace_errors(complaint, (TypeError, ValueError)):
                cells[name] = self.rows[name].astype(specimen[name].dtype)
            lost = missing_cells(cells[name]) & ~missing_cells(self.rows[name])
            fits &= codec.fits(name, cells[name]) & ~lost
        rows = pd.DataFrame(cells).reindex(columns=list(codec.names))[fits]
        names = tuple(name for name in codec.domain if codec.columns_behind(name).issubset(self.rows.columns))
        if not names:
            raise InputError(f"{short(self.title)}: it has no column of the private table")
        return codec.encode(rows).project(names), int((~fits).sum())

    def improve(self, model: TableModel, *, rows: bool, target: str | None = None) -> TableModel:
        """Return a model that this table improves; see `Release.with_public`."""
        lacks_target = target is not None and target not in self.rows
        records, dropped = self.encoded(model.codec)
        merged = model.fitted.merging.project(records.domain.names).merge(records)
        tails = Tails(model.fitted.merging, model.codec.axes, ranked=model.codec.ranked)
        fitted = with_public_rows(model.fitted, merged, model.zeros, tails, np.random.default_rng(0))
        fact = (FAR if len(records) else EMPTY).format(self.title)
        if (public := fitted.public_rows) is not None:
            drawn = rows and not lacks_target
            fact = (ROWS if drawn else COUNTS).format(self.title, public.share)
            fact += WITHOUT_TARGET.format(safe_repr(target)) if rows and lacks_target else ""
            fitted = fitted if drawn else replace(fitted, public_rows=None)
        fact += DROPPED.format(plural(dropped, "row")) if dropped else ""
        return self.beside(replace(model, fitted=fitted), fact)

    def beside(self, model: TableModel, fact: str) -> TableModel:
        """Return a model whose ledger says what became of this table."""
        ledger = replace(model.ledger, public_inputs=(*model.ledger.public_inputs, fact))
        return replace(model, ledger=ledger)


def is_same_table(public: object, private: object) -> bool:
    """Return whether both are one object, or paths of one file. No cell is compared.

    >>> is_same_table("people.csv", Path("./people.csv")), is_same_table("last.csv", "people.csv")
    (True, False)
    """
    if isinstance(public, str | PathLike) and isinstance(private, str | PathLike):
        return Path(public).resolve() == Path(private).resolve()
    return public is not None and public is private


def short(fact: str) -> str:
    """Return a fact about a public table without its SHA-256, which the ledger has.

    >>> short("the public table of 2 rows (SHA-256 07e5): it is far from the released answers")
    'the public table of 2 rows: it is far from the released answers'
    """
    return re.sub(r" \(SHA-256 [0-9a-f]+\)", "", fact)


def _is_model(path: Path) -> bool:
    """Return whether a file is a saved release."""
    return path.is_file() and zipfile.is_zipfile(path) and TEXT in zipfile.ZipFile(path).namelist()
