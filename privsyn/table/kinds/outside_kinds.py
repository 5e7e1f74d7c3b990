"""Register kinds of column from outside the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from privsyn.table.encoding.dtypes import Dtype, Family
from privsyn.table.encoding.encoders import Encoder

if TYPE_CHECKING:
    from privsyn.table.kinds.column import Column
    from privsyn.table.kinds.csv_format import CsvFormat


def register_column(
    kind: str,
    class_: type[Column],
    make_encoder: Callable[[Any, Dtype, Family], Encoder] | None = None,
    read: Callable[[Any, Sequence[str | None], CsvFormat], pd.Series] | None = None,
) -> None:
    """Register a column type.

    Parameters
    ----------
    kind : str
        The name of the type in a schema file.
    class_ : type
        The frozen dataclass that declares a column.
    make_encoder : callable, optional
        Returns the encoder for a column, a dtype and the family of the dtype. It raises `InputError` if the
        dtype cannot hold the column. Default: the method `make_encoder`.
    read : callable, optional
        Returns the cells for a column, texts and a `CsvFormat`. Default: the method `read_texts`.
    """
    methods = {"make_encoder": make_encoder, "read_texts": read}
    for name, function in methods.items():
        if function is not None:
            setattr(class_, name, _method(function))
    class_.register_as(kind)


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return any callable as a method, which gets the column first."""
    return lambda column, *arguments: function(column, *arguments)
