"""Names, refusals and the face without asyncio."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pulsar as pulsar_client
import pytest

from dev.access import PulsarAccess
from scalable_topics.sdk import (
    Client,
    ClientError,
    ClosedError,
    ConnectError,
    QueueFullError,
    ScalableTopicNotFoundError,
    sync,
)
from tests.integration.sdk.conftest import MakeLeader
from tests.support.pulsar_view import PulsarView
from tests.support.stored_messages import stored_on

TIMEOUT_SECONDS = 20


@pytest.mark.parametrize("form", ["topic://{}", "persistent://{}", "{}"])
async def test_names_are_read_by_the_rule_of_pip_475(lead: MakeLeader, client: Client, form: str) -> None:
    leader = await lead()
    topic = leader.topic
    name = form.format(f"{topic.tenant}/{topic.namespace}/{topic.local}")
    async with await client.producer(name) as producer:
        assert producer.topic == str(topic)
        assert (await producer.send(b"x", key="k")).segment_id == 0


@pytest.mark.parametrize("name", ["non-persistent://t/n/x", "segment://t/n/x/0000-ffff-0", "a/b", "", "t/n/x-layout"])
async def test_names_that_are_none_of_a_scalable_topic_are_refused(client: Client, name: str) -> None:
    with pytest.raises(ClientError):
        await client.producer(name)
    with pytest.raises(ClientError):
        await client.queue_consumer(name, "s")


async def test_a_missing_topic_is_not_found(client: Client, namespace: str) -> None:
    """Whether brokers create topics by themselves or not; the text says what it may mean on Native."""
    for _ in range(2):
        with pytest.raises(ScalableTopicNotFoundError, match="Native"):
            await client.producer(f"topic://{namespace}/nothing")
    with pytest.raises(ScalableTopicNotFoundError, match=f"topic://{namespace}/nothing"):
        await client.queue_consumer(f"topic://{namespace}/nothing", "s")


async def test_an_ordinary_topic_is_no_scalable_one(client: Client, view: PulsarView, namespace: str) -> None:
    await view.create_topic(f"persistent://{namespace}/ordinary")
    with pytest.raises(ScalableTopicNotFoundError):
        await client.producer(f"topic://{namespace}/ordinary")


async def test_a_role_without_rights_is_told_so(lead: MakeLeader, pulsar: PulsarAccess) -> None:
    leader = await lead()
    token = pulsar.namespace_admin_token
    async with Client(pulsar.service_url, pulsar_client.AuthenticationToken(token)) as stranger:
        with pytest.raises(ConnectError, match="Authoriz") as refusal:
            await stranger.producer(str(leader.topic))
        assert token not in str(refusal.value)


async def test_a_layout_of_a_later_release_is_refused(lead: MakeLeader, client: Client) -> None:
    leader = await lead()
    await leader.publish_raw(b'{"version": 2, "topic": "topic://x", "segments": []}')
    with pytest.raises(ClientError, match="upgrade"):
        await client.producer(str(leader.topic))


async def test_a_message_nobody_can_read_changes_nothing(lead: MakeLeader, client: Client) -> None:
    """R7: once there is a layout, traffic goes on."""
    leader = await lead()
    async with await client.producer(str(leader.topic)) as producer:
        await leader.publish_raw(b"{")
        await leader.publish_raw(b'{"version": 2, "topic": "topic://x", "segments": []}')
        await leader.split(0)
        await asyncio.sleep(0)
        sent = await producer.send(b"x", key="k")
        assert sent.segment_id in (0, 1, 2)


async def test_settings_out_of_range_are_refused(client: Client, pulsar: PulsarAccess) -> None:
    for options in ({"max_pending_messages": 0}, {"send_timeout_seconds": 0}, {"batching_max_messages": 0}):
        with pytest.raises(ValueError, match=next(iter(options))):
            await client.producer("x", **options)
    for consumer in ({"receiver_queue_size": 0}, {"unacked_messages_timeout_ms": 5}):
        with pytest.raises(ValueError, match=next(iter(consumer))):
            await client.queue_consumer("x", "s", **consumer)
    with pytest.raises(ValueError, match="operation_timeout_seconds"):
        Client(pulsar.service_url, operation_timeout_seconds=0)
    with pytest.raises(ClientError, match="name"):
        await client.queue_consumer("x", "")


@pytest.mark.parametrize("address", ["localhost:6650", "http://localhost:8080", "pulsar://"])
async def test_an_address_that_is_none_is_refused_at_once(address: str) -> None:
    with pytest.raises(ValueError, match="service_url"):
        Client(address)


async def test_settings_pulsar_client_refuses_do_not_hang() -> None:
    async with Client("pulsar://localhost:1", authentication="not an authentication") as strange:
        with pytest.raises(ConnectError, match="topic://t/n/x"):
            await asyncio.wait_for(strange.producer("t/n/x"), TIMEOUT_SECONDS)


async def test_flush_does_not_wait_for_a_batch_to_fill(lead: MakeLeader, client: Client) -> None:
    leader = await lead(segments=2)
    async with await client.producer(str(leader.topic), batching_max_publish_delay_ms=60_000) as producer:
        sent = [await producer.submit(b"x", key=f"k{number}") for number in range(10)]
        await asyncio.wait_for(producer.flush(), TIMEOUT_SECONDS)
        assert {message.result().segment_id for message in sent} == {0, 1}
        change = await leader.prepare(leader.layout.plan_split(0))
        await leader.publish(change)
        assert await leader.until_unused([0])
        held = [await producer.submit(b"x", key=f"k{number}") for number in range(10)]
        flushing = asyncio.create_task(producer.flush())
        await leader.seal([0])
        await leader.commit(change)
        await asyncio.wait_for(flushing, TIMEOUT_SECONDS)
        assert {message.result().segment_id for message in held} == {1, 2, 3}


async def test_an_outcome_does_not_wait_for_a_stream_that_follows_it(lead: MakeLeader, client: Client) -> None:
    leader = await lead()
    async with await client.producer(str(leader.topic), batching_max_publish_delay_ms=20) as producer:
        first, latest = await producer.submit(b"x", key="k"), None
        deadline = time.monotonic() + TIMEOUT_SECONDS
        # Only what is under way still at the first one's end shows that nobody waited for the end of the stream.
        while not first.done() or latest is None:
            assert time.monotonic() < deadline
            latest = await producer.submit(b"x", key="k")
            await asyncio.sleep(0.001)
            if first.done() and latest.done():
                # On a machine that stood still both have come meanwhile: once more.
                first, latest = await producer.submit(b"x", key="k"), None


async def test_send_nowait_refuses_beyond_the_bound(lead: MakeLeader, client: Client) -> None:
    leader = await lead()
    async with await client.producer(str(leader.topic), max_pending_messages=3) as producer:
        sent = [producer.send_nowait(b"x", key="k") for _ in range(3)]
        with pytest.raises(QueueFullError):
            producer.send_nowait(b"x", key="k")
        await asyncio.gather(*sent)
        await producer.send_nowait(b"x", key="k")


async def test_closing_a_client_closes_what_it_made(lead: MakeLeader, pulsar: PulsarAccess, view: PulsarView) -> None:
    leader = await lead(subscriptions=["s"])
    threads = threading.active_count()
    client = Client(pulsar.service_url, pulsar_client.AuthenticationToken(pulsar.superuser_token))
    producer = await client.producer(str(leader.topic))
    consumer = await client.queue_consumer(str(leader.topic), "s")
    sent = await producer.submit(b"x", key="k")
    await client.close()
    assert sent.result().segment_id == 0
    stats = await view.stats(leader.segment_topic(0))
    assert stats["publishers"] == []
    assert stats["subscriptions"]["s"]["consumers"] == []
    with pytest.raises(ClosedError):
        await producer.send(b"x")
    with pytest.raises(ClosedError):
        await consumer.receive()
    with pytest.raises(ClosedError):
        await client.producer(str(leader.topic))
    await client.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("layout of")]
    assert threading.active_count() <= threads + 5


async def test_the_face_without_asyncio(lead: MakeLeader, pulsar: PulsarAccess) -> None:
    leader = await lead(segments=2, subscriptions=["s"])

    def work() -> set[bytes]:
        token = pulsar_client.AuthenticationToken(pulsar.superuser_token)
        with (
            sync.Client(pulsar.service_url, token) as client,
            client.producer(str(leader.topic), max_pending_messages=50) as producer,
            client.queue_consumer(str(leader.topic), "s") as consumer,
        ):
            assert producer.send(b"first", key="k").segment_id in (0, 1)
            futures = [producer.send_async(b"%d" % number, key=f"k{number % 5}") for number in range(200)]
            producer.flush()
            assert all(future.result().segment_id in (0, 1) for future in futures)
            with pytest.raises(TypeError):
                producer.send("text")
            received: set[bytes] = set()
            while len(received) < 201:
                messages = consumer.receive_many(100, TIMEOUT_SECONDS)
                consumer.acknowledge_many(messages)
                received |= {message.data for message in messages}
            with pytest.raises(TimeoutError):
                consumer.receive(0.2)
            return received

    assert await asyncio.to_thread(work) == {b"first", *(b"%d" % number for number in range(200))}


async def test_the_face_without_asyncio_says_that_it_is_closed(lead: MakeLeader, pulsar: PulsarAccess) -> None:
    """Whoever waits in another thread is told so, and nobody waits for ever afterwards."""
    leader = await lead(subscriptions=["s"])

    def work() -> None:
        client = sync.Client(pulsar.service_url, pulsar_client.AuthenticationToken(pulsar.superuser_token))
        producer = client.producer(str(leader.topic))
        consumer = client.queue_consumer(str(leader.topic), "s")
        with ThreadPoolExecutor(1) as thread:
            receiving = thread.submit(consumer.receive)
            client.close()
            with pytest.raises(ClosedError):
                receiving.result(TIMEOUT_SECONDS)
        with pytest.raises(ClosedError):
            producer.send_async(b"x").result(TIMEOUT_SECONDS)
        for refused in (producer.flush, consumer.receive, lambda: client.producer(str(leader.topic))):
            with pytest.raises(ClosedError):
                refused()
        client.close()

    await asyncio.to_thread(work)


async def test_the_face_without_asyncio_keeps_the_order_of_a_thread(lead: MakeLeader, pulsar: PulsarAccess) -> None:
    leader = await lead()

    def work() -> None:
        token = pulsar_client.AuthenticationToken(pulsar.superuser_token)
        with sync.Client(pulsar.service_url, token) as client, client.producer(str(leader.topic)) as producer:
            for number in range(500):
                producer.send_async(b"%d" % number, key="k")

    await asyncio.to_thread(work)
    stored = await stored_on(pulsar.service_url, pulsar.superuser_token, [leader.segment_topic(0)])
    assert [message.number for message in stored] == list(range(500))
