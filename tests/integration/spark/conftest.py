from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dev.access import PulsarAccess
from segment_load.broker_access import BrokerAccess
from segment_load.record_sink import RecordTopic
from segment_load.stream import StreamSettings
from tests.support.load_pipeline import INTERVAL_SECONDS, Pipeline, Segments
from tests.support.pulsar_view import PulsarView
from tests.support.spark import spark
from tests.support.world_making import random_name

__all__ = ["spark"]


@pytest.fixture
def access(pulsar: PulsarAccess) -> BrokerAccess:
    return BrokerAccess(pulsar.admin_url, str(pulsar.superuser_token_file), timeout_seconds=5.0)


@pytest.fixture
async def namespace(view: PulsarView) -> str:
    name = f"tests/{random_name('load')}"
    await view.create_namespace(name)
    return name


@pytest.fixture
async def segments(view: PulsarView, namespace: str, pulsar: PulsarAccess) -> AsyncIterator[Segments]:
    made = Segments(view, namespace, pulsar.service_url, pulsar.superuser_token)
    yield made
    await made.close()


@pytest.fixture
def topic(namespace: str, pulsar: PulsarAccess, access: BrokerAccess) -> RecordTopic:
    return RecordTopic(f"persistent://{namespace}/records", pulsar.service_url, access.token_file)


@pytest.fixture
async def pipeline(
    spark: SparkSession, access: BrokerAccess, topic: RecordTopic, pulsar: PulsarAccess, tmp_path: Path
) -> AsyncIterator[Pipeline]:
    settings = StreamSettings(access, topic, str(tmp_path / "load"), interval_seconds=INTERVAL_SECONDS)
    made = Pipeline(spark, settings, pulsar)
    yield made
    await made.stop()
