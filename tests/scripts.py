"""The scripts of experiments/, imported for a test and forgotten again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[1] / "experiments"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))
needed = pytest.mark.skipif(not NAMES, reason="the scripts are in the repository alone")


@contextmanager
def imported(*names: str) -> Iterator[dict[str, ModuleType]]:
    """Import scripts by name; what importing them brings from their folder is forgotten at the end."""
    before = set(sys.modules)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(FOLDER))
        yield {name: import_module(name) for name in names}
    for name in (set(sys.modules) - before) & set(NAMES):
        del sys.modules[name]
