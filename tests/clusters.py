"""A Spark cluster on this machine, where it can be had."""

from __future__ import annotations

import os
import shutil
import socket
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
if find_spec("pyspark") is None or find_spec("grpc") is None:
    MISSING = "pyspark[connect] is not installed"
elif not (shutil.which("java") or os.environ.get("JAVA_HOME")):
    MISSING = "Spark needs Java, and none is found"

SETTINGS = {
    # Sessions are short: Java's optimising compiler and parallel collector would cost more than they save.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.memory": "512m",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.log.level": "OFF",
    "spark.executor.syncLogLevel.enabled": "true",
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
    """A standalone cluster of two worker processes of a core each.

    Java writes the driver's log to a file, and the workers' logs to the folder `work` beside it.
    """
    import pyspark
    from pyspark.sql import SparkSession

    for part in Path(pyspark.__file__).parent.iterdir():  # a home of our own: workers write into it
        (log.parent / part.name).symlink_to(part)
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
        patch.setenv("SPARK_HOME", str(log.parent))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master("local-cluster[2,1,512]")
        for name, value in (SETTINGS | {"spark.connect.grpc.binding.port": str(_free_port())}).items():
            builder = builder.config(name, value)
        with output_into(log):
            session = builder.getOrCreate()
        yield session
        session.stop()


@contextmanager
def connected(session: Any) -> Iterator[Any]:
    """A client of the cluster's Spark Connect server: it knows the cluster by its address alone."""
    port = session.conf.get("spark.connect.grpc.binding.port")
    with warnings.catch_warnings(action="ignore"):  # about pandas 3
        from pyspark.sql.connect.session import SparkSession

        client = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
    yield client
    client.stop()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
