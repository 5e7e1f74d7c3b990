"""What engines say by themselves while we call them, kept from telling of rows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""Of pyspark: they print what failed on the screen, and quote the cell."""

_HUSHED = ContextVar("_HUSHED", default=False)


@contextmanager
def dask_quiet() -> Iterator[None]:
    """Let Dask not warn of the size of what is sent, for with `unit` it grows with the number of rows.

    Only where there may be a cluster: set before `distributed` has set all else, it would leave it without.
    """
    from dask import config

    if "distributed" not in sys.modules:
        yield
        return
    with config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
        yield


@contextmanager
def spark_quiet() -> Iterator[None]:
    """Let pyspark not print why something failed, in this thread; what Spark logs is not Python's."""
    from pyspark.logger import PySparkLogger

    for name in LOGGERS:
        PySparkLogger.getLogger(name).addFilter(_is_heard)  # once, however often it is said
    before = _HUSHED.set(True)
    try:
        yield
    finally:
        _HUSHED.reset(before)


def _is_heard(record: object) -> bool:
    return not _HUSHED.get()
