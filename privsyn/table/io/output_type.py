"""Which kind of table was given, with its own types, so that the synthetic table is of the same kind."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
import pyarrow as pa

from privsyn.errors import replace_errors
from privsyn.table.encoding.dtypes import INDEX
from privsyn.table.io.arrow import public_schema
from privsyn.table.io.formats import Labels
from privsyn.table.schema.columns import Categorical
from privsyn.table.schema.schema import Schema


@dataclass(frozen=True)
class OutputType:
    """The kind and the types of a table that a pandas data frame cannot hold. They are public.

    Parameters
    ----------
    kind : "pandas", "polars" or "pyarrow"
    types : pyarrow.Schema, optional
        The `public_schema` of an Arrow table: types without what programs take from the rows. Nested and
        extension types are left out, because they may hold metadata. Arrow then chooses a type that fits the
        synthetic cells.
    enums : tuple of str
        The columns of type Enum in polars. Their values are those of the schema.
    labels : mapping
        The value labels of a file of Stata or SPSS, so that a synthetic file has the same codes.
    declared : mapping of a column to text
        The types that a table of SQLite declares, such as ``VARCHAR(20)``; a synthetic one has the same.

    Examples
    --------
    >>> from privsyn import Categorical
    >>> form = OutputType.of(pa.table({"a": pa.array([1], pa.uint8())}))
    >>> form.cast(pd.DataFrame({"a": [2, 3]}, dtype="UInt8"), Schema({"a": Categorical([2, 3])})).schema
    a: uint8
    """

    kind: Literal["pandas", "polars", "pyarrow"] = "pandas"
    types: pa.Schema | None = None
    enums: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    declared: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not all(isinstance(text, str) for pair in self.declared.items() for text in pair):
            raise ValueError("a declared type that is no text")

    @classmethod
    def of(cls, table: pa.Table, polars: Any = None) -> OutputType:
        """Return the type of an Arrow table, or of the polars frame that it was made from."""
        bare = pa.schema([field for field in public_schema(table.schema) if _is_bare(field.type)])
        if polars is None:
            return cls("pyarrow", bare)
        enums = (name for name, dtype in polars.schema.items() if str(dtype).startswith("Enum"))
        return cls("polars", bare, tuple(enums))

    def only(self, names: Collection[str]) -> OutputType:
        """Return the type of some columns only. Nothing is kept of columns that are not released."""
        types = None if self.types is None else pa.schema([f for f in self.types if f.name in names])
        labels = {name: codes for name, codes in self.labels.items() if name in names}
        declared = {name: text for name, text in self.declared.items() if name in names}
        enums = tuple(name for name in self.enums if name in names)
        return OutputType(self.kind, types, enums, labels, declared)

    def unordered(self, names: Collection[str]) -> OutputType:
        """Return the type with categories in these columns: an Enum of polars always has an order."""
        return replace(self, enums=tuple(name for name in self.enums if name not in names))

    def listed(self) -> dict[str, Categorical]:
        """Return the columns whose values have labels. They are metadata, so the lists are public."""
        return {name: Categorical([label for _, label in codes]) for name, codes in self.labels.items()}

    @property
    def never_missing(self) -> tuple[str, ...]:
        """The columns whose Arrow field is declared "not null"."""
        return tuple(field.name for field in self.types or () if not field.nullable)

    def cast(self, frame: pd.DataFrame, schema: Schema) -> Any:
        """Return a synthetic table in this type."""
        if self.kind == "pandas":
            return frame
        table = self.arrow(frame, schema)
        return table if self.kind == "pyarrow" else self._polars(table, schema)

    def arrow(self, frame: pd.DataFrame, schema: Schema) -> pa.Table:
        """Return a synthetic table in Arrow, each column in its own type.

        A column is declared "not null" if it was before and the schema says so too.
        """
        if self.types is None:
            return pa.Table.from_pandas(frame, preserve_index=False)
        columns, fields = [], []
        for name in frame.columns:
            if name not in self.types.names:
                columns.append(pa.Array.from_pandas(frame[name]))
                fields.append(pa.field(name, columns[-1].type))
                continue
            field, column = self.types.field(name), schema.columns.get(name)
            nullable = field.nullable or getattr(column, "nullable", False)
            if column is None:
                arrow_type = _type_of_keys(field.type, frame[name])
            else:
                arrow_type = column.output_type(field.type, frame[name].dtype)
            columns.append(_as_type(frame[name], arrow_type))
            fields.append(pa.field(name, columns[-1].type, nullable))
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def _polars(self, table: pa.Table, schema: Schema) -> Any:
        with replace_errors("the model was made from a polars table: run pip install polars", ImportError):
            import polars as pl
        frame: Any = pl.from_arrow(table)
        listed = {name: schema.columns[name] for name in self.enums if name in frame.columns}
        enums = {
            name: pl.Enum([str(value) for value in column.listed])
            for name, column in listed.items()
            if column.listed
        }
        return frame.with_columns(pl.col(name).cast(enum) for name, enum in enums.items())

    def to_plain(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        encoded = None if self.types is None else base64.b64encode(self.types.serialize()).decode("ascii")
        labels = {name: list(codes) for name, codes in self.labels.items()}
        rare = {"labels": labels, "declared": dict(self.declared)}
        needed = {key: value for key, value in rare.items() if value}
        return {"kind": self.kind, "types": encoded, "enums": list(self.enums), **needed}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> OutputType:
        """Return the type that `to_plain` wrote."""
        encoded = plain["types"]
        types = None if encoded is None else pa.ipc.read_schema(pa.py_buffer(base64.b64decode(encoded)))
        labels = {name: tuple(map(tuple, codes)) for name, codes in plain.get("labels", {}).items()}
        return cls(plain["kind"], types, tuple(plain["enums"]), labels, dict(plain.get("declared", {})))


PANDAS = OutputType()


def without_category(cells: pd.Series, value: str) -> pd.Series:
    """Return a column of categories without a value that no cell has; whole numbers become numbers again."""
    rest = cells.cat.remove_categories([value])
    return rest.cat.rename_categories(pd.Index(rest.cat.categories.tolist()))


def _is_bare(kind: pa.DataType) -> bool:
    """Return whether a type has no room for metadata.

    Nested and extension types have: that of polars' Enum, for example, lists all values.
    """
    if pa.types.is_dictionary(kind):
        return _is_bare(kind.value_type)
    has_parts = pa.types.is_nested(kind) or pa.types.is_fixed_size_binary(kind)  # values have any length
    return not (has_parts or isinstance(kind, pa.BaseExtensionType))


def _type_of_keys(kind: pa.DataType, keys: pd.Series) -> pa.DataType:
    """Return the type of new keys, numbered from 1: that of the private keys if they fit.

    >>> _type_of_keys(pa.int8(), pd.Series([1, 2])), _type_of_keys(pa.int8(), pd.Series([1, 200]))
    (DataType(int8), DataType(int64))
    >>> _type_of_keys(pa.int8(), pd.Series([], dtype="Int64"))
    DataType(int8)
    """
    numbered = pa.Array.from_pandas(keys)
    fits = pa.types.is_integer(kind) and bool((keys <= np.iinfo(kind.to_pandas_dtype()).max).all())
    return kind if fits and pa.types.is_integer(numbered.type) else numbered.type


def _as_type(cells: pd.Series, kind: pa.DataType) -> pa.Array:
    """Return the cells as an Arrow array of this type."""
    if not pa.types.is_dictionary(kind):
        return pa.Array.from_pandas(cells).cast(kind)
    if isinstance(cells.dtype, pd.CategoricalDtype):
        listed = cells.cat.categories.tolist()
        values = pa.array(map(str, listed))  # text, if the type of the values cannot hold all of them
        with suppress(pa.ArrowException):
            values = pa.array(listed, kind.value_type)
        codes = cells.cat.codes.to_numpy()
        indices = pa.array(codes, INDEX, mask=codes < 0)
        return pa.DictionaryArray.from_arrays(indices, values, ordered=cells.cat.ordered)
    encoded = pa.Array.from_pandas(cells.array).cast(kind.value_type).dictionary_encode()
    # Without an order: the dictionary has the values in the order of the rows.
    return pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary)
