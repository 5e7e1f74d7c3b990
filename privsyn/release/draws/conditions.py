"""Shares and means of the rows that meet a condition, with intervals, from the draws of a release."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import pandas as pd

from privsyn.errors import InputError, did_you_mean, safe_repr
from privsyn.release.draws.bias import Bias
from privsyn.release.draws.pooling import pool

DRAWS = 20
MOST_ROWS = 200_000  # of a draw; all draws are kept in memory
LITERAL = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`""")
"""A text, or a name in backticks."""
PLAIN = (
    *(ast.Expression, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Name, ast.Constant, ast.List),
    *(ast.Tuple, ast.expr_context, ast.boolop, ast.unaryop, ast.operator, ast.cmpop),
)
"""What a condition may be made of: no attribute, no call, no index."""
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
NAMES = re.compile(r"`([^`]*)`|([^\W\d]\w*)")


class Conditions:
    """Estimates for the private table from the draws of a release.

    Parameters
    ----------
    make : function that yields the draws
        Called once, when the first estimate is asked for.
    measured : collection of sets of columns
        The tables of counts that were measured.
    bias : Bias
        What the noisy counts say about the bias of a mean.
    """

    def __init__(
        self,
        make: Callable[[], Iterable[pd.DataFrame]],
        measured: Collection[frozenset[str]],
        bias: Bias,
    ) -> None:
        self._make, self._measured, self._bias = make, measured, bias
        self._frames: list[pd.DataFrame] | None = None

    @property
    def frames(self) -> list[pd.DataFrame]:
        """The draws, kept for the next estimate."""
        if self._frames is None:
            self._frames = list(self._make())
        return self._frames

    def share(self, where: str) -> pd.Series:
        """Return the share of the rows that meet a condition; see `Accuracy.share`."""
        found = [float(self._rows(frame, where).mean()) for frame in self.frames]
        return self._pooled(found, [where], lowest=0.0, highest=1.0)

    def mean(self, column: str, where: str | None = None) -> pd.Series:
        """Return the mean of a column over the rows that meet a condition; see `Accuracy.mean`."""
        if column not in self.frames[0].columns:
            meant = did_you_mean(column, self.frames[0].columns)
            raise InputError(f"there is no column {safe_repr(column)} in the synthetic table{meant}")
        numbers, met = [], []
        for frame in self.frames:
            cells = pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float64, na_value=np.nan)
            kept = ~np.isnan(cells)
            if where is not None:
                kept &= self._rows(frame, where)
            if not kept.any():
                raise InputError(
                    "some draw has no number there: choose a column of numbers, and a condition of more rows"
                )
            numbers.append(cells)
            met.append(kept)
        found = [float(cells[kept].mean()) for cells, kept in zip(numbers, met, strict=True)]
        texts = [f"`{column}`", *([] if where is None else [where])]
        variance = self._bias.variance(
            self.frames, self._columns(*texts), np.concatenate(numbers), np.concatenate(met)
        )
        return self._pooled(found, texts, variance=variance)

    def _rows(self, frame: pd.DataFrame, where: str) -> Any:
        """Return which rows of a draw meet the condition."""
        try:
            _require_plain(where)
            found = frame.eval(where, local_dict={}, global_dict={})
            rows = np.asarray(found, dtype=object)
            kinds = {type(row) for row in set(rows.tolist())}
            if rows.shape != (len(frame),) or not kinds <= {bool, _NA}:
                raise TypeError
        except Exception:  # pandas raises many kinds; the condition is the caller's own
            raise InputError(
                f"{safe_repr(where)} is no condition in the query syntax of pandas,"
                " such as \"age >= 65 and sex == 'Female'\""
            ) from None
        return np.array([row is True for row in rows.tolist()])

    def _pooled(
        self,
        found: list[float],
        texts: list[str],
        lowest: float = -np.inf,
        highest: float = np.inf,
        variance: float = 0.0,
    ) -> pd.Series:
        """Return the estimate, its interval for the private table, and whether it is covered."""
        pooled = pool(found, [variance] * len(found)).iloc[0]
        columns = self._columns(*texts)
        covered = any(columns <= table for table in self._measured)
        low, high = (
            (max(pooled["low"], lowest), min(pooled["high"], highest)) if covered else (np.nan, np.nan)
        )
        cells = {"estimate": pooled["estimate"], "low": low, "high": high, "covered": covered}
        return pd.Series(cells, dtype=object)

    def _columns(self, *texts: str) -> frozenset[str]:
        names = (quoted or plain for text in texts for quoted, plain in NAMES.findall(QUOTED.sub("''", text)))
        return frozenset(name for name in names if name in self.frames[0].columns)


def _require_plain(where: str) -> None:
    """Refuse a condition that does more than compare columns with values: `eval` would run it as code."""
    if any(sign in where for sign in ("'''", '"""', "\n", "\r")):
        raise TypeError
    bare = LITERAL.sub(lambda found: "name" if found[0][0] == "`" else "''", where)
    if "#" in bare or not all(isinstance(node, PLAIN) for node in ast.walk(ast.parse(bare, mode="eval"))):
        raise TypeError


_NA = type(pd.NA)
