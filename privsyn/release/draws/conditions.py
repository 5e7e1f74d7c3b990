"""Shares and means of the rows that meet a condition, from the counts or draws of a release."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.inference.ordered.number_intervals import Interval
from privsyn.marginals.domain import Floats, Mask, Records
from privsyn.progress import Progress
from privsyn.release.draws.bias import Bias
from privsyn.release.draws.pooling import pool
from privsyn.table.codec.codec import Codec

KEPT = 4  # sets of columns whose draws are kept in memory
POINTS = 20_000  # drawn in all cells of a column
LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`""")
"""A text, or a name in backticks."""
PLAIN = (
    *(ast.Expression, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Name, ast.Constant, ast.List),
    *(ast.Tuple, ast.expr_context, ast.boolop, ast.unaryop, ast.operator, ast.cmpop),
)
"""What a condition may be made of: no attribute, no call, no index."""
NAMES = re.compile(r"`([^`]*)`|([^\W\d]\w*)")
POSITIONS = {"index", "columns", "ilevel_0"}
"""What pandas calls the positions of rows and columns in a condition; a column may have such a name."""

Draw = Callable[[frozenset[str] | None, Progress | None], Iterable[pd.DataFrame]]
"""Yields draws of some columns; for None, one synthetic table of all columns."""

Meets = Callable[[pd.DataFrame], Mask]
"""Returns which rows of a table meet a condition."""

ShareOf = Callable[[str, Meets], Interval | None]
"""Returns the share of rows that meet a condition by the counts of one column; None if it has none."""

WORDS = ("and", "or", "not", "in", "True", "False", "None")


class Conditions:
    """Estimates for the private table from the draws of a release.

    Parameters
    ----------
    specimen : DataFrame
        Rows of the synthetic table, from public facts alone.
    draw : Draw
    measured : collection of sets of columns
        The tables of counts that were measured.
    bias : Bias
        What the noisy counts say about the bias of a mean.
    share_of : ShareOf, optional
    listed : mapping of a column to its values, optional
        Columns in which rows with other values were counted together, as one value of the list.
    """

    def __init__(
        self,
        specimen: pd.DataFrame,
        draw: Draw,
        measured: Collection[frozenset[str]],
        bias: Bias,
        share_of: ShareOf = lambda column, meets: None,
        listed: Mapping[str, Collection[Any]] = MappingProxyType({}),
    ) -> None:
        self._specimen, self._draw, self._measured = specimen, draw, measured
        self._bias, self._share_of, self._listed = bias, share_of, listed
        self._kept: dict[frozenset[str] | None, list[pd.DataFrame]] = {}

    def share(self, where: str, progress: Progress | None = None) -> pd.Series:
        """Return the share of the rows that meet a condition; see `Accuracy.share`."""
        columns = self._columns(where)
        self._rows(self._specimen, where)  # refuses what is no condition, before draws are made
        if len(columns) == 1:
            found = self._share_of(next(iter(columns)), lambda frame: self._rows(frame, where))
            if found is not None:
                return self._result(columns, found, where)
        shares = [float(self._rows(frame, where).mean()) for frame in self._draws(columns, progress)]
        found = _pooled(shares)
        found = replace(found, low=max(found.low, 0.0), high=min(found.high, 1.0))
        return self._result(columns, found, where)

    def mean(self, column: str, where: str | None = None, progress: Progress | None = None) -> pd.Series:
        """Return the mean of a column over the rows that meet a condition; see `Accuracy.mean`."""
        if column not in self._specimen.columns:
            meant = did_you_mean(column, self._specimen.columns)
            raise InputError(f"there is no column {safe_repr(column)} in the synthetic table{meant}")
        if _numbers(self._specimen[column]).size == 0:
            raise InputError(
                f"column {safe_repr(column)} has no numbers: `share` estimates how often a value occurs"
            )
        if where is not None:
            self._rows(self._specimen, where)
        columns = self._columns(where or "") | {column}
        frames = self._draws(columns, progress)
        numbers, met = [], []
        for frame in frames:
            cells = pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float64, na_value=np.nan)
            kept = ~np.isnan(cells)
            if where is not None:
                kept &= self._rows(frame, where)
            if not kept.any():
                raise InputError(
                    "a draw has no such row with a number: choose a condition that more rows meet"
                )
            numbers.append(cells)
            met.append(kept)
        found = [float(cells[kept].mean()) for cells, kept in zip(numbers, met, strict=True)]
        variance = self._bias.variance(frames, columns, np.concatenate(numbers), np.concatenate(met))
        return self._result(columns, _pooled(found, variance), where or "")

    def _draws(self, columns: frozenset[str], progress: Progress | None) -> list[pd.DataFrame]:
        """Return draws of the smallest table that holds the columns; else one table of all columns."""
        holding = [table for table in self._measured if columns <= table]
        key = min(holding, key=len) if holding else None
        if key not in self._kept:
            made = list(self._draw(key, progress))
            while len(self._kept) >= KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = made
        return self._kept[key]

    def _rows(self, frame: pd.DataFrame, where: str) -> Any:
        """Return which rows of a draw meet the condition."""
        try:
            _require_plain(where, frame.columns)
            found = frame.eval(where, local_dict={}, global_dict={})
            rows = np.asarray(found, dtype=object)
            kinds = {type(row) for row in set(rows.tolist())}
            if rows.shape != (len(frame),) or not kinds <= {bool, _NA}:
                raise TypeError
        except Exception:  # pandas raises many kinds; the condition is the caller's own
            raise InputError(
                f"{safe_repr(where)} is no condition, which is made of comparisons of columns with values,"
                f" such as \"age >= 65 and sex == 'Female'\"{self._unknown(where)}"
            ) from None
        return np.array([row is True for row in rows.tolist()])

    def _unknown(self, where: str) -> str:
        """Return the first name in a condition that no column has, for a message; "" if there is none."""
        try:
            _require_plain(where, self._specimen.columns)
        except Exception:  # names that are called are no columns
            return ""
        known = {*self._specimen.columns, *WORDS}
        unknown = min(_names(where) - known, default=None)
        if unknown is None:
            return ""
        return f": there is no column {safe_repr(unknown)}{did_you_mean(unknown, self._specimen.columns)}"

    def _result(self, columns: frozenset[str], found: Interval, where: str) -> pd.Series:
        """Return the estimate, its interval for the private table, and whether it is covered."""
        covered = any(columns <= table for table in self._measured) and not self._names_replaced(where)
        shown = found if covered else replace(found, low=np.nan, high=np.nan)
        return pd.Series({**vars(shown), "covered": covered}, dtype=object)

    def _names_replaced(self, where: str) -> bool:
        """Return whether a condition compares a column with a value that may have been replaced in it.

        No count is of such a value alone.
        """
        quoted: list[str] = []  # names in backticks, for which a plain name stands

        def plain(found: re.Match[str]) -> str:
            if found[0][0] != "`":
                return found[0]
            quoted.append(found[0][1:-1])
            return f"quoted{len(quoted) - 1}_"

        nodes = ast.walk(ast.parse(LITERAL.sub(plain, where)))
        for inside in (list(ast.walk(node)) for node in nodes if isinstance(node, ast.Compare)):
            names = {node.id for node in inside if isinstance(node, ast.Name)}
            names |= {name for place, name in enumerate(quoted) if f"quoted{place}_" in names}
            values = [node.value for node in inside if isinstance(node, ast.Constant)]
            if any(
                value not in self._listed[name] for name in names & self._listed.keys() for value in values
            ):
                return True
        return False

    def _columns(self, where: str) -> frozenset[str]:
        return frozenset(_names(str(where)).intersection(self._specimen.columns))


def _numbers(cells: pd.Series) -> Floats:
    """Return the numbers among cells."""
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    return np.asarray(numbers[~np.isnan(numbers)])


def _pooled(found: list[float], variance: float = 0.0) -> Interval:
    """Return the estimate of all draws and its interval, which a single table does not have."""
    if len(found) == 1:
        return Interval(found[0], np.nan, np.nan)
    pooled = pool(found, [variance] * len(found)).iloc[0]
    return Interval(*map(float, pooled[["estimate", "low", "high"]]))


def share_of_codes(codec: Codec, meets: Meets) -> Floats:
    """Return the share of the rows of each code that meet a condition, for a codec of one column.

    Numbers are drawn inside their cells as those of a release are.
    """
    (size,) = codec.domain.sizes
    each = max(POINTS // size, 1) if codec.domain.ordered[0] else 1
    codes = np.repeat(np.arange(size, dtype=np.int32), each)
    rng = np.random.default_rng(0)
    frame = codec.decode(Records(codec.domain, codes[:, np.newaxis]), rng)
    return np.asarray(meets(frame).reshape(size, each).mean(axis=1))


def _require_plain(where: str, columns: Collection[str]) -> None:
    """Refuse a condition that does more than compare columns with values: `eval` would run it as code."""
    if any(sign in where for sign in ("'''", '"""', "\n", "\r")):
        raise TypeError
    bare = LITERAL.sub(lambda found: "name" if found[0][0] == "`" else "''", where)
    if "#" in bare or not all(isinstance(node, PLAIN) for node in ast.walk(ast.parse(bare, mode="eval"))):
        raise TypeError
    if _names(where) & POSITIONS - {*columns}:
        raise TypeError


def _names(where: str) -> set[str]:
    """Return the words of a condition outside its texts, among them the names of columns."""
    bare = LITERAL.sub(lambda found: found[0] if found[0][0] == "`" else "''", where)
    return {quoted or plain for quoted, plain in NAMES.findall(bare)}


_NA = type(pd.NA)
