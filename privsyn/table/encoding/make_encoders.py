"""Make the encoders of all columns of a schema, and the makers of identifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from privsyn.errors import InputError, replace_errors
from privsyn.table.encoding.choose_encoder import choose_encoder
from privsyn.table.encoding.dtypes import family, parse_dtype
from privsyn.table.encoding.encoders import AllMissingEncoder, Encoder, OrderedEncoder
from privsyn.table.encoding.grid import FINE
from privsyn.table.encoding.identifiers import IdentifierMaker, make_maker
from privsyn.table.schema.columns import Identifier, Text
from privsyn.table.schema.schema import Schema


def make_encoders(
    schema: Schema, names: Sequence[str], dtypes: Sequence[str], *, fine: bool
) -> tuple[dict[str, Encoder], dict[str, IdentifierMaker]]:
    """Return the encoder or the identifier maker of each column; free text has neither.

    Parameters
    ----------
    schema : Schema
    names, dtypes : sequences of str
        The columns in the order of the table, and the dtype of each as text.
    fine : bool
        Whether numbers and times are encoded in fine cells.
    """
    encoders: dict[str, Encoder] = {}
    makers: dict[str, IdentifierMaker] = {}
    for name, text in zip(names, dtypes, strict=True):
        match _column(schema, name, text, fine=fine):
            case Encoder() as encoder:
                encoders[name] = encoder
            case IdentifierMaker() as maker:
                makers[name] = maker
    return encoders, makers


def _column(schema: Schema, name: str, text: str, *, fine: bool) -> Encoder | IdentifierMaker | None:
    """Return the encoder or identifier maker of a column; None if the column is left out."""
    column: Any = schema.columns[name]
    dtype = parse_dtype(text)
    if isinstance(column, Text):
        return None
    if family(dtype) == "nothing":
        return AllMissingEncoder(dtype)
    with replace_errors(lambda error: f"column {name!r}: {error}", InputError):
        if isinstance(column, Identifier):
            return make_maker(column, dtype)
        encoder = choose_encoder(column, dtype)
        if fine and isinstance(encoder, OrderedEncoder) and name not in schema.computed:
            return replace(encoder, grid=encoder.grid.fine(max(FINE, column.bins)))
        return encoder
