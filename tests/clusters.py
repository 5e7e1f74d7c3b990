"""Spark on this machine, where it can be had."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest

MISSING = ""
"""Why there is no Spark; nothing if there is."""
if find_spec("pyspark") is None:
    MISSING = "pyspark is not installed"
elif not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    MISSING = "Spark needs Java, and none is found"

SETTINGS = {
    # Sessions are short: Java's optimising compiler and parallel collector would cost more than they save.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "Asia/Tokyo",  # a zone that Arrow would not choose
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def spark_session(log: str = "OFF") -> Iterator[Any]:
    """Two threads, and three tries for each task."""
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master("local[2,3]")
        for name, value in {**SETTINGS, "spark.log.level": log}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        yield session
        session.stop()
