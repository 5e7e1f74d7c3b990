"""Spark's daemon, with our modules loaded: each worker that it forks has them at once."""

from pyspark.daemon import manager

import privsyn.table.codec.codec
import privsyn.table.io.spark_source  # noqa: F401

if __name__ == "__main__":
    manager()
