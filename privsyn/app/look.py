"""The synthetic rows beside the public estimates of their release."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def looked_at(model: Path, table: Path) -> dict[str, Any]:
    """Return what the screen shows of a release and of its synthetic table."""
    return {}
