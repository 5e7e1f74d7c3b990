"""Spark on this machine, where it can be had."""

from __future__ import annotations

import os
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
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
    "spark.log.level": "OFF",
    "spark.python.daemon.module": "spark_daemon",  # beside this file
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "Asia/Tokyo",  # a zone that Arrow would not choose
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


@contextmanager
def output_into(path: Path) -> Iterator[None]:
    """Let the processes that start meanwhile write to a file."""
    screen = {stream: os.dup(stream) for stream in (1, 2)}
    with path.open("ab") as file:
        for stream in screen:
            os.dup2(file.fileno(), stream)
        yield
    for stream, saved in screen.items():
        os.dup2(saved, stream)
        os.close(saved)


@contextmanager
def spark_session(log: Path) -> Iterator[Any]:
    """Two threads, and two tries for each task. Java writes its log to a file."""
    from pyspark.sql import SparkSession

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master("local[2,2]")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        with output_into(log):
            session = builder.getOrCreate()
        yield session
        session.stop()
