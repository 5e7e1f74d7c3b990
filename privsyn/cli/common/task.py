"""What `privsyn synth` was asked for, of one table or of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privsyn.account.account import Account
    from privsyn.progress import Progress


@dataclass(frozen=True, eq=False)
class Task:
    """Synthetic tables to be made from private ones.

    Parameters
    ----------
    data, out : Path
    settings : mapping
        As for `PrivSyn`; the schema is its path.
    results : mapping of an option to a Path
        The model, the ledger, the public page and the data sheet; None if one was not asked for.
    account : Account
        Where the run is recorded.
    shown : callable
        Returns what shows progress.
    rows : int, optional
        Number of rows, of several tables those of the one without a parent.
    force, excel_safe
        As for the command `synth`.
    """

    data: Path
    out: Path
    settings: Mapping[str, Any]
    results: Mapping[str, Path | None]
    account: Account
    shown: Callable[[], AbstractContextManager[Progress | None]]
    rows: int | None
    force: bool
    excel_safe: bool
