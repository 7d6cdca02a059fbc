"""Spark sessions of the pipeline."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession


def make_session(master: str = "", **settings: str) -> SparkSession:
    """A session.

    Args:
        master: such as `local[2]`, which serves on the loopback address only; empty for what spark-submit says.
        settings: more of Spark's configuration, with `_` for `.`.
    """
    # Executors on this machine run what this process runs.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("segment-load")
    if master:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.master(master).config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1")
        builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
        # The ordinary 200 are for clusters; here each would be a task of nothing.
        builder = builder.config("spark.sql.shuffle.partitions", "4")
    # What is beside the stream, as the history, gets half of the cores that become free, not all it asks for first.
    builder = builder.config("spark.scheduler.mode", "FAIR")
    # A stream's planner has overflowed the default stack.
    builder = builder.config("spark.driver.extraJavaOptions", "-Xss4m").config("spark.sql.session.timeZone", "UTC")
    # It would note for every column where in our code it was made: a second for each batch.
    builder = builder.config("spark.python.sql.dataFrameDebugging.enabled", "false")
    # For people at a terminal; in a log it is noise.
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    for name, value in settings.items():
        builder = builder.config(name.replace("_", "."), value)
    return builder.getOrCreate()
