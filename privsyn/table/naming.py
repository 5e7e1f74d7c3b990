"""Columns that are called like identifiers: what a name alone says, which is public."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from privsyn.table.dtypes import Dtype, family
from privsyn.table.kinds import Identifier
from privsyn.table.schema import Schema

_NAMES = (
    r"id|uuid|guid|ssn|iban|e?mail|phone|telephone|passport|mrn|imei|isbn",  # a word of the name
    r"(?:account|customer|patient|person|member|employee|invoice|order|serial|record) ?(?:no|nr|number|code)",
)
_NAMING = re.compile(rf"(?:^| )(?:{'|'.join(_NAMES)})(?:$| )")


def names_rows(name: str) -> bool:
    """Whether a column is called what identifiers are called.

    >>> [names_rows(name) for name in ("customer_id", "PatientNumber", "e-mail", "Id", "paid", "width")]
    [True, True, True, True, False, False]
    """
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name)
    return _NAMING.search(re.sub(r"[\W_]+", " ", words.replace("e-mail", "email")).lower()) is not None


def can_name(dtype: Dtype) -> bool:
    """Whether identifiers are of such a dtype."""
    return family(dtype) in ("text", "object", "integer", "real")


def with_identifiers(schema: Schema, dtypes: Mapping[str, Dtype]) -> Schema:
    """A schema that nobody wrote, with the columns that are called like identifiers taken for such.

    No cell has a say: neither names nor dtypes are private.
    """
    columns = {
        name: Identifier() if name in dtypes and names_rows(name) and can_name(dtypes[name]) else column
        for name, column in schema.columns.items()
    }
    return replace(schema, columns=columns)


def called_identifiers(schema: Schema) -> tuple[str, ...]:
    """The columns made anew that are called like identifiers."""
    return tuple(
        name for name, column in schema.columns.items() if isinstance(column, Identifier) and names_rows(name)
    )
