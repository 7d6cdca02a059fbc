"""Hazard C63, R27, R34 on two real brokers: topics of the other broker, redirects, late policies, unload."""

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable
from functools import partial
from itertools import pairwise
from typing import TypeVar

import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import TopicName, layout_topic_name
from scalable_topics_operator.backends.admin import (
    AdminHttp,
    Credentials,
    FixedCredentials,
    HttpSettings,
    PulsarAdmin,
    Token,
)
from scalable_topics_operator.backends.admin.message_api import publishing_call
from scalable_topics_operator.backends.admin.retry import RetryPolicy
from scalable_topics_operator.backends.classic import ClassicBackend
from scalable_topics_operator.load.direct import DirectSampler
from scalable_topics_operator.operations.errors import BackendRefused, BackendUnavailable, NameTaken
from scalable_topics_operator.operations.protocols import Inheritance, SchemaVersion, SegmentSetup
from scalable_topics_operator.operations.segment_policies import SegmentPolicies
from tests.support.pulsar_view import PulsarView

from .conftest import CLAIM, record, segment_name
from .plain_http import Clients, PlainHttp, admin_for, eventually, topic_at

T = TypeVar("T")

pytestmark = pytest.mark.two_brokers

# As brokers of a local cluster are set up.
_WEB_THREADS = 8
SETUP = SegmentSetup(
    frozenset({"billing"}),
    Inheritance({"writer": frozenset({"produce"})}, (SchemaVersion("STRING", ""),)),
    SegmentPolicies(message_ttl_seconds=60, retention_minutes=5, deduplication=True),
)


async def repeated(step: Callable[[], Awaitable[T]]) -> T:
    """Do a step as an operation does: again when the cluster says that it may help."""
    for _ in range(10):
        try:
            return await step()
        except BackendUnavailable:
            await asyncio.sleep(0.2)
    return await step()


@pytest.fixture
async def far(pulsar: PulsarAccess, plain: PlainHttp, topic: TopicName) -> PulsarAccess:
    """The cluster, reached through the broker that does not serve the plain name of `topic`."""
    await plain.do("PUT", topic_at(topic.persistent))
    owner = (await plain.get(topic_at(topic.persistent, "stats")))["ownerBroker"]
    await plain.do("DELETE", topic_at(topic.persistent))
    (other,) = (url for url in pulsar.broker_admin_urls if url != f"http://{owner}")
    return dataclasses.replace(pulsar, admin_url=other)


async def test_c63_scalable_topics_are_run_through_either_broker(
    pulsar: PulsarAccess, plain: PlainHttp, clients: Clients, topic: TopicName
) -> None:
    """Eight bundles on two brokers: about half of these calls are redirected, whichever broker is asked."""
    for number, url in enumerate(pulsar.broker_admin_urls * 3):
        one = dataclasses.replace(topic, local=f"x{number}")
        name = segment_name(one)
        async with admin_for(dataclasses.replace(pulsar, admin_url=url), pulsar.superuser_token) as admin:
            backend = ClassicBackend(admin)
            await backend.take_claim(one, CLAIM, properties={"a": "b"})
            await backend.create_segment(one, record(), SETUP)
            assert set(await plain.get(topic_at(name, "subscriptions"))) == {"billing"}
            assert await plain.get(topic_at(name, "messageTTL")) == 60
            assert (await plain.get(topic_at(name, "inactiveTopicPolicies")))["deleteWhileInactive"] is False
            await clients.send(name, "one", "two")
            assert (await backend.look(name)).cursors["billing"].backlog == 2
            assert (await backend.inheritance(one, [name])) == SETUP.inheritance
            await backend.terminate(name)
            await backend.unload(name)
            look = await backend.look(name)
            assert (look.terminated, look.entries) == (True, 2)
            await backend.delete_segment(name)
            await backend.delete_claim(one)
            assert await plain.status(topic_at(name, "properties")) == 404


async def test_c63_the_token_follows_to_a_broker_that_the_cluster_lists(far: PulsarAccess, topic: TopicName) -> None:
    async with admin_for(far, far.superuser_token) as admin:
        backend = ClassicBackend(admin)
        await backend.take_claim(topic, CLAIM)
        assert (await backend.read_name(topic)).claim == CLAIM


async def test_c63_without_the_right_to_list_brokers_trusted_brokers_are_needed(
    far: PulsarAccess, topic: TopicName
) -> None:
    source = FixedCredentials(Credentials(Token(far.namespace_admin_token)))
    async with PulsarAdmin(AdminHttp(HttpSettings(far.admin_url), source)) as admin:
        with pytest.raises(BackendRefused, match=r"trustedBrokers.*LIST_BROKERS"):
            await ClassicBackend(admin).take_claim(topic, CLAIM)
    async with admin_for(far, far.namespace_admin_token) as admin:
        backend = ClassicBackend(admin)
        await backend.take_claim(topic, CLAIM)
        assert (await backend.read_name(topic)).claim == CLAIM


async def test_r1_claims_made_through_both_brokers_at_once_have_one_winner(
    pulsar: PulsarAccess, topic: TopicName
) -> None:
    ways = [dataclasses.replace(pulsar, admin_url=url) for url in pulsar.broker_admin_urls]
    async with (
        admin_for(ways[0], pulsar.superuser_token) as first,
        admin_for(ways[1], pulsar.superuser_token) as second,
    ):
        backends = [ClassicBackend(first), ClassicBackend(second)]
        for race in range(4):
            one = dataclasses.replace(topic, local=f"race{race}")
            claims = [dataclasses.replace(CLAIM, resource_uid=f"uid-{number}") for number in range(6)]
            results = await asyncio.gather(
                *(backends[number % 2].take_claim(one, claim) for number, claim in enumerate(claims)),
                return_exceptions=True,
            )
            losers = [result for result in results if result is not None]
            assert len(losers) == 5
            assert all(isinstance(loser, NameTaken) for loser in losers)
            winner = claims[results.index(None)]
            for backend in backends:
                assert (await backend.read_name(one)).claim == winner


async def test_c22_work_goes_on_while_bundles_move(pulsar: PulsarAccess, plain: PlainHttp, topic: TopicName) -> None:
    """Topics are unserved for moments: whatever fails is repeated, and then everything is as it should be."""
    topics = [dataclasses.replace(topic, local=f"moving{number}") for number in range(4)]
    names = [segment_name(one) for one in topics]
    settings = HttpSettings(pulsar.admin_url, request_timeout_seconds=2.0)
    source = FixedCredentials(Credentials(Token(pulsar.superuser_token)))
    async with PulsarAdmin(AdminHttp(settings, source)) as admin:
        backend = ClassicBackend(admin)

        async def move() -> None:
            for _ in range(4):
                await plain.call("PUT", f"namespaces/{topic.pulsar_namespace}/unload")
                await asyncio.sleep(0.5)

        async def work(one: TopicName) -> None:
            await repeated(lambda: backend.take_claim(one, CLAIM))
            await repeated(lambda: backend.create_segment(one, record(), SETUP))

        await asyncio.gather(move(), *map(work, topics))
        for one, name in zip(topics, names, strict=True):
            assert (await backend.read_name(one)).terminated
            look = await backend.look(name)
            assert not look.terminated
            assert look.counting == {"billing"}
    for name in names:
        for policy, value in (("messageTTL", 60), ("deduplicationEnabled", True)):
            assert await plain.get(topic_at(name, policy)) == value


async def test_r20_a_layout_is_published_where_its_topic_is_served_now(
    pulsar: PulsarAccess, plain: PlainHttp, clients: Clients, topic: TopicName
) -> None:
    """A broker that served the topic before an unload would take the message and never answer."""
    name = layout_topic_name(topic)
    first, second = pulsar.broker_admin_urls
    async with admin_for(dataclasses.replace(pulsar, admin_url=first), pulsar.superuser_token) as admin:
        backend = ClassicBackend(admin)
        await backend.publish_layout(topic, '{"epoch":0}')
        for epoch, url in enumerate((first, second, first, second), start=1):
            await _move(plain, topic.pulsar_namespace, name, url)
            message = f'{{"epoch":{epoch}}}'
            await asyncio.wait_for(repeated(partial(backend.publish_layout, topic, message)), 20)
    reader = await clients.reader(name)
    read = [(await asyncio.to_thread(reader.read_next, 10_000)).data().decode() for _ in range(5)]
    assert read == [f'{{"epoch":{epoch}}}' for epoch in range(5)]


async def test_r20_a_broker_that_lost_the_layout_topic_keeps_its_web_threads(
    pulsar: PulsarAccess, plain: PlainHttp, topic: TopicName
) -> None:
    """What reaches it all the same stays unanswered; but for the schema's version each would take a thread for ever."""
    name = layout_topic_name(topic)
    first, second = pulsar.broker_admin_urls
    settings = HttpSettings(first, request_timeout_seconds=1.0, retry=RetryPolicy(attempts=1))
    source = FixedCredentials(Credentials(Token(pulsar.superuser_token)))
    async with PulsarAdmin(AdminHttp(settings, source)) as admin:
        backend = ClassicBackend(admin)
        await repeated(partial(backend.publish_layout, topic, '{"epoch":0}'))
        await _move(plain, topic.pulsar_namespace, name, first)
        await repeated(partial(backend.publish_layout, topic, '{"epoch":1}'))
        await _move(plain, topic.pulsar_namespace, name, second)
        late = dataclasses.replace(publishing_call(name, "late", 0), owner_path=None)
        sent = await asyncio.gather(*(admin.http.send(late) for _ in range(_WEB_THREADS + 1)), return_exceptions=True)
        assert all(isinstance(one, BackendUnavailable) for one in sent), sent
        assert all(await asyncio.gather(*(repeated(admin.cluster.version) for _ in range(_WEB_THREADS))))


async def test_r34_the_load_of_all_brokers_makes_one_sample(
    pulsar: PulsarAccess, plain: PlainHttp, topic: TopicName
) -> None:
    """Each broker tells of its own topics only."""
    brokers = tuple(url.removeprefix("http://") for url in pulsar.broker_admin_urls)
    names = [segment_name(dataclasses.replace(topic, local=f"loaded{number}")) for number in range(12)]
    async with PulsarView(pulsar.admin_url, pulsar.superuser_token) as view:
        for name in names:
            await view.create_topic(name)
            # These brokers delete idle topics without a subscription within seconds.
            await view.create_subscription(name, "s")
        bundles = {name: await view.bundle(name) for name in names}
        first = names[0]
        second = next(name for name in names if bundles[name] != bundles[first])
        for name, broker in ((first, brokers[0]), (second, brokers[1])):
            await view.move_bundle(topic.pulsar_namespace, bundles[name], broker)
            await eventually(partial(plain.call, "GET", topic_at(name, "stats")), lambda reply: reply.status == 200)
    async with admin_for(pulsar, pulsar.superuser_token) as admin:
        sampler = DirectSampler(admin.cluster, 1.0, 5.0)
        sample = await eventually(
            partial(sampler.sample, brokers), lambda sample: {first, second} <= sample.segments.keys(), seconds=40
        )
        assert not sample.missing
        alone = await DirectSampler(admin.cluster, 1.0, 5.0).sample(brokers[:1])
        assert second not in alone.segments.keys() | alone.unsettled


async def _move(plain: PlainHttp, namespace: str, topic: str, broker_url: str) -> None:
    """Have a broker serve all of a namespace, `topic` among it."""
    broker = broker_url.removeprefix("http://")
    boundaries = (await plain.get(f"namespaces/{namespace}/bundles"))["boundaries"]
    for bundle in map("_".join, pairwise(boundaries)):
        await plain.do("PUT", f"namespaces/{namespace}/{bundle}/unload?destinationBroker={broker}", {})

    async def owner() -> object:
        reply = await plain.call("GET", topic_at(topic, "stats"))
        return reply.body["ownerBroker"] if reply.status == 200 else reply

    await eventually(owner, lambda found: found == broker)
