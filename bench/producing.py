"""Keyed messages sent a second: the library on a scalable topic, beside pulsar-client on a partitioned one."""

import asyncio
import os
import threading
import time
import uuid

import pulsar

from bench.measurement import Better, Group, Measured, Measurement, Of, Target
from bench.profiles import profiled
from bench.section import Run, Section, Servers
from dev.access import PulsarAccess
from scalable_topics.layout import TopicName
from scalable_topics.sdk import Client, ProducerOptions
from tests.support.pulsar_view import PulsarView
from tests.support.scripted_leader import ScriptedLeader

_MESSAGES = 60_000
_SEGMENTS = 4
_PLAIN = f"pulsar-client, {_SEGMENTS} partitions"
_LIBRARY = f"library, {_SEGMENTS} segments"
_TARGET = Target("the library sends at least 0.95 of what pulsar-client does", 0.95, Of.RATIO)
_KEYS = [f"key-{number}" for number in range(1000)]
_PAYLOAD = os.urandom(256)
_PULSAR_NAMESPACE = "public/default"


async def _measure(run: Run) -> Measured:
    access = PulsarAccess.from_environment()
    count = run.size(_MESSAGES, 2_000)
    plain, library = [], []
    topic = TopicName.parse(f"{_PULSAR_NAMESPACE}/bench-{uuid.uuid4().hex[:10]}")
    partitioned = f"persistent://{_PULSAR_NAMESPACE}/bench-{uuid.uuid4().hex[:10]}"
    async with (
        PulsarView(access.admin_url, access.superuser_token) as view,
        ScriptedLeader(topic, view, access.service_url, access.superuser_token, segments=_SEGMENTS),
    ):
        await view.create_partitioned(partitioned, _SEGMENTS)
        # The first round warms both ways and does not count.
        for _ in range(run.rounds + 1):
            plain.append(await asyncio.to_thread(_plain_round, access, partitioned, count))
            library.append((await library_round(access, topic, count))[0])
        if run.profile_to is not None:
            with profiled(run.profile_to / "producing.prof"):
                await library_round(access, topic, count)
    rows = (
        Measurement(_PLAIN, "messages/s", tuple(plain[1:]), Better.HIGHER),
        Measurement(_LIBRARY, "messages/s", tuple(library[1:]), Better.HIGHER, _TARGET),
    )
    return Measured((Group(f"{count:,} messages a round", rows, reference=_PLAIN, is_peer=True),))


SECTION = Section(
    "producing",
    "Messages sent",
    f"Keyed messages of {len(_PAYLOAD)} bytes, sent asynchronously by one producer in one process, with batching: by "
    "the library on a scalable topic, and by pulsar-client, which the library is built on, on a partitioned topic. "
    "Both have the same batches and the same bound on what is under way. Until the last message is stored.",
    _measure,
    Servers.CLASSIC,
    {
        _LIBRARY: "Each message is sent by pulsar-client in the end, and costs some Python besides: its key's segment, "
        "its place in the order, and what is known of it until it is stored: "
        "[profile](evidence/profiles/producing.txt).",
    },
    is_profiled=True,
)


def _plain_round(access: PulsarAccess, topic: str, count: int) -> float:
    """With the same batching and the same bound as the library's."""
    options = ProducerOptions()
    client = pulsar.Client(
        access.service_url,
        authentication=pulsar.AuthenticationToken(access.superuser_token),
        logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error),
    )
    producer = client.create_producer(
        topic,
        send_timeout_millis=0,
        block_if_queue_full=True,
        max_pending_messages=options.max_pending_messages,
        max_pending_messages_across_partitions=options.max_pending_messages,
        batching_enabled=True,
        batching_max_messages=options.batching_max_messages,
        batching_max_allowed_size_in_bytes=options.batching_max_bytes,
        batching_max_publish_delay_ms=options.batching_max_publish_delay_ms,
    )
    stored, done = 0, threading.Event()

    def told(result: pulsar.Result, _: pulsar.MessageId) -> None:
        nonlocal stored
        if result != pulsar.Result.Ok:
            raise RuntimeError(f"a message was refused: {result}")
        stored += 1
        if stored == count:
            done.set()

    started = time.perf_counter()
    for number in range(count):
        producer.send_async(_PAYLOAD, told, partition_key=_KEYS[number % len(_KEYS)])
    producer.flush()
    if not done.wait(60):
        raise RuntimeError(f"{count - stored} of {count} messages have no outcome")
    rate = count / (time.perf_counter() - started)
    client.close()
    return rate


async def library_round(access: PulsarAccess, topic: TopicName, count: int) -> tuple[float, float]:
    """Send `count` messages by the library; answers messages a second, and messages in an entry on average."""
    authentication = pulsar.AuthenticationToken(access.superuser_token)
    async with Client(access.service_url, authentication) as client, await client.producer(str(topic)) as producer:
        started = time.perf_counter()
        sent = [await producer.submit(_PAYLOAD, key=_KEYS[number % len(_KEYS)]) for number in range(count)]
        await producer.flush()
        rate = count / (time.perf_counter() - started)
        for message in sent:
            message.result()
        return rate, count / sum(batches.entries for batches in producer.batches)
