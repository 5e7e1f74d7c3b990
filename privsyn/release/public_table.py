"""A public table beside a release: its rows in the codes of the release, and which of them fit no column."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, plural, replace_errors, safe_repr
from privsyn.inference.public_weights import with_public_rows
from privsyn.marginals.domain import Records
from privsyn.table.codec.codec import Codec
from privsyn.table.encoding.encoders import missing_cells
from privsyn.table.io.read_in_memory import read_in_memory

if TYPE_CHECKING:
    from privsyn.release.table_model import TableModel

ROWS = (
    "the rows of {}: {:.0%} of the synthetic rows are rows of it as they are; who published it may have made"
    " them from private ones"
)
NO_ROWS = "the rows of {}: they are far from the released answers, so that no synthetic row is made from them"
DROPPED = "; {} with values that the schema does not have are left out"


def with_public_table(model: TableModel, table: Any) -> TableModel:
    """Return the model of a table with the rows of a public one; see `Release.with_public`."""
    name, frame = _read(table, model.codec)
    rows, dropped = _encoded(frame, model.codec, name)
    records = model.fitted.merging.project(rows.domain.names).merge(rows)
    mixed = with_public_rows(model.fitted, records, model.zeros, np.random.default_rng(0))
    shares = mixed.public_rows
    fact = NO_ROWS.format(name) if shares is None else ROWS.format(name, shares.share)
    fact += DROPPED.format(plural(dropped, "row")) if dropped else ""
    ledger = replace(model.ledger, public_inputs=(*model.ledger.public_inputs, fact))
    return replace(model, fitted=mixed, ledger=ledger)


def _read(table: Any, codec: Codec) -> tuple[str, pd.DataFrame]:
    """Return what the ledger calls a public table, with its SHA-256, and its rows."""
    frame = read_in_memory(table, codec.schema).frame
    if isinstance(table, str | PathLike):
        file = Path(table)
        parts = [file] if file.is_file() else sorted(file.iterdir())
        digest = sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()
        return f"the public table {str(table)!r} (SHA-256 {digest})", frame
    content = pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes()
    return f"a public table of {plural(len(frame), 'row')} (SHA-256 {sha256(content).hexdigest()})", frame


def _encoded(frame: pd.DataFrame, codec: Codec, title: str) -> tuple[Records, int]:
    """Return the codes of public rows, of the attributes whose columns they have; and how many fit none."""
    specimen = codec.specimen(np.random.default_rng(0))
    fits, cells = np.full(len(frame), True), dict[str, pd.Series]()
    for name in codec.schema.coded:
        if name not in specimen:
            continue
        if name not in frame:
            cells[name] = specimen[name].iloc[[0] * len(frame)].reset_index(drop=True)
            continue
        with replace_errors(
            f"{title}: column {safe_repr(name)} has cells of another type", (TypeError, ValueError)
        ):
            cells[name] = frame[name].reset_index(drop=True).astype(specimen[name].dtype)
        fits &= codec.fits(name, cells[name]) & (
            ~missing_cells(cells[name]) | missing_cells(frame[name].reset_index(drop=True))
        )
    rows = pd.DataFrame(cells).reindex(columns=list(codec.names))[fits]
    names = tuple(name for name in codec.domain if codec.columns_behind(name).issubset(frame.columns))
    if not names:
        raise InputError(f"{title}: it has no column of the release")
    return codec.encode(rows).project(names), int((~fits).sum())
