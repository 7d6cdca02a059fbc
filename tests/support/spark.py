"""One Spark session for the tests of a process, small enough to share a machine with brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from segment_load.broker_source import BrokerStatistics
from segment_load.session import make_session

CORES = 2


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The session; it knows the data source."""
    session = make_session(
        f"local[{CORES}]",
        spark_sql_shuffle_partitions=str(CORES),
        spark_driver_memory="768m",
        spark_sql_adaptive_enabled="false",
    )
    session.sparkContext.setLogLevel("ERROR")
    session.dataSource.register(BrokerStatistics)
    yield session
    session.stop()
