"""Whatever brokers answer, calls answer something of the right kind or raise a `BackendError` that is fit for a log."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given

from scalable_topics_operator.backends.admin import Token
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.admin.reasons import (
    MAX_REASON_CHARACTERS,
    About,
    error_for,
    is_transient,
    reason_of,
)
from scalable_topics_operator.backends.admin.topic_policy_api import OTHER_POLICIES, TopicPolicy
from scalable_topics_operator.backends.classic.backend import ClassicBackend
from scalable_topics_operator.backends.classic.settling import Settling
from scalable_topics_operator.backends.native.backend import NativeBackend
from scalable_topics_operator.load.direct import DirectSampler, sample_native_topic, sample_topic
from scalable_topics_operator.load.sampling import Sampling
from scalable_topics_operator.operations.errors import BackendError
from scalable_topics_operator.operations.layout_message import (
    announcement_number,
    content_of,
    message_order,
    says_the_same,
)
from scalable_topics_operator.operations.protocols import MessagePosition, Position
from tests.support.hostile import NESTED_TEXTS, OTHER_TEXTS, fuzzing, randomness, text_of
from tests.unit.backends.scripted_server import TOKEN, connect, serve
from tests.unit.operations.builders import CLAIM
from tests.unit.security.broker_answers import ANSWERS, SEGMENT, TOPIC, HostileBrokers

Read = Callable[[PulsarAdmin], Awaitable[Any]]


async def _all_policies(admin: PulsarAdmin) -> list[Any]:
    return [await admin.topic_policies.get(SEGMENT, policy) for policy in TopicPolicy]


# Every method of the admin client whose answer is read, by its place in the client.
READS: dict[str, Read] = {
    "topics.partitions": lambda admin: admin.topics.partitions(SEGMENT),
    "topics.properties": lambda admin: admin.topics.properties(SEGMENT),
    "topics.terminate": lambda admin: admin.topics.terminate(SEGMENT),
    "topics.stats": lambda admin: admin.topics.stats(SEGMENT),
    "topics.internal_stats": lambda admin: admin.topics.internal_stats(SEGMENT),
    "topics.subscriptions": lambda admin: admin.topics.subscriptions(SEGMENT),
    "topics.permissions": lambda admin: admin.topics.permissions(SEGMENT),
    "cluster.version": lambda admin: admin.cluster.version(),
    "cluster.clusters": lambda admin: admin.cluster.clusters(),
    "cluster.cluster_data": lambda admin: admin.cluster.cluster_data("c"),
    "cluster.brokers": lambda admin: admin.cluster.brokers(),
    "cluster.runtime_configuration": lambda admin: admin.cluster.runtime_configuration(),
    "cluster.topic_loads": lambda admin: _all(admin.cluster.topic_loads()),
    "cluster.probe": lambda admin: admin.cluster.probe(),
    "namespaces.topics": lambda admin: admin.namespaces.topics("t/n"),
    "namespaces.policies": lambda admin: admin.namespaces.policies("t/n"),
    "namespaces.topic_grants": lambda admin: admin.namespaces.topic_grants("t/n"),
    "namespaces.permissions": lambda admin: admin.namespaces.permissions("t/n"),
    "namespaces.inactive_topic_policies": lambda admin: admin.namespaces.inactive_topic_policies("t/n"),
    "namespaces.replication_clusters": lambda admin: admin.namespaces.replication_clusters("t/n"),
    "namespaces.max_topics": lambda admin: admin.namespaces.max_topics("t/n"),
    "namespaces.compaction_threshold_bytes": lambda admin: admin.namespaces.compaction_threshold_bytes("t/n"),
    "namespaces.subscription_expiration_minutes": lambda admin: admin.namespaces.subscription_expiration_minutes("t/n"),
    "namespaces.retention_minutes": lambda admin: admin.namespaces.retention_minutes("t/n"),
    "namespaces.auto_scale_policy": lambda admin: admin.namespaces.auto_scale_policy("t/n"),
    "namespaces.auto_topic_creation": lambda admin: admin.namespaces.auto_topic_creation("t/n"),
    "topic_policies.get": _all_policies,
    "topic_policies.is_set": lambda admin: admin.topic_policies.is_set(SEGMENT, OTHER_POLICIES[0]),
    "topic_policies.replication_clusters": lambda admin: admin.topic_policies.replication_clusters(SEGMENT),
    "topic_policies.compaction_threshold_bytes": lambda admin: admin.topic_policies.compaction_threshold_bytes(SEGMENT),
    "schemas.versions": lambda admin: admin.schemas.versions(SEGMENT),
    "schemas.post": lambda admin: admin.schemas.post(SEGMENT, "STRING", "", {}),
    "messages.publish": lambda admin: admin.messages.publish(SEGMENT, "{}", 0),
    "messages.latest": lambda admin: admin.messages.latest(SEGMENT),
    "messages.entry": lambda admin: admin.messages.entry(SEGMENT, 1, 2),
    "lookups.service_url": lambda admin: admin.lookups.service_url(SEGMENT),
    "lookups.judge": lambda admin: admin.lookups.judge(SEGMENT, Token("t")),
    "scalable.layout": lambda admin: admin.scalable.layout(TOPIC),
    "scalable.stats": lambda admin: admin.scalable.stats(TOPIC),
    "scalable.segment_stats": lambda admin: admin.scalable.segment_stats(TOPIC, 0),
    "scalable.permissions": lambda admin: admin.scalable.permissions(TOPIC),
}

# What makes more of the answers than the admin client does.
USES: dict[str, Read] = {
    "look": lambda admin: _classic(admin).look(SEGMENT),
    "producers": lambda admin: _classic(admin).producers(SEGMENT),
    "terminate": lambda admin: _classic(admin).terminate(SEGMENT),
    "read_name": lambda admin: _classic(admin).read_name(TOPIC),
    "read_record": lambda admin: _classic(admin).read_record(SEGMENT),
    "take_claim": lambda admin: _classic(admin).take_claim(TOPIC, CLAIM),
    "topic_properties": lambda admin: _classic(admin).topic_properties(TOPIC),
    "require_fit": lambda admin: _classic(admin).require_fit(TOPIC, more_topics=1),
    "survey": lambda admin: _classic(admin).survey(TOPIC),
    "legacy_clients": lambda admin: _classic(admin).legacy_clients([SEGMENT]),
    "list_segments": lambda admin: _classic(admin).list_segments(TOPIC),
    "list_topics": lambda admin: _classic(admin).list_topics("t/n"),
    "inheritance": lambda admin: _classic(admin).inheritance(TOPIC, [SEGMENT]),
    "ensure_cursors": lambda admin: _classic(admin).ensure_cursors(SEGMENT, ["s", "other"]),
    "move_behind": lambda admin: _classic(admin).move_behind(SEGMENT, "s", MessagePosition(1, 2)),
    "kept_minutes": lambda admin: _classic(admin).kept_minutes(SEGMENT),
    "retention_minutes": lambda admin: _classic(admin).retention_minutes(SEGMENT),
    "published_layout": lambda admin: _classic(admin).published_layout(TOPIC),
    "tail_entries": lambda admin: _all(_classic(admin).tail_entries(SEGMENT, 5)),
    "native read": lambda admin: NativeBackend(admin, admin).read(TOPIC),
    "native look": lambda admin: NativeBackend(admin, admin).look(TOPIC),
    "native require_creatable": lambda admin: NativeBackend(admin, admin).require_creatable(TOPIC),
    "direct sample": lambda admin: DirectSampler(admin.cluster, 5.0, 5.0).sample(("b:8080", "c:8080")),
    "topic sample": lambda admin: sample_topic(admin.topics, [SEGMENT], Sampling(), 5.0),
    "native sample": lambda admin: sample_native_topic(admin.scalable, TOPIC, {0: "a", 2: "b"}, Sampling(), 5.0),
}


async def _all(found: AsyncIterator[Any]) -> list[Any]:
    return [one async for one in found]


def _classic(admin: PulsarAdmin) -> ClassicBackend:
    return ClassicBackend(admin, settling=Settling(timeout_seconds=0.0, first_wait_seconds=0.001))


@pytest.mark.parametrize("name", [*READS, *USES])
def test_no_answer_breaks_a_call(name: str) -> None:
    read = READS.get(name) or USES[name]
    with asyncio.Runner() as runner:

        @fuzzing(12)
        @given(randomness)
        def check(rng: random.Random) -> None:
            # Where several answers are read, most have to be right for the last one to be reached.
            brokers = HostileBrokers(rng, share=1.0 if name in READS else 0.5)
            refusal = ""
            try:
                runner.run(_awaited(read(brokers.admin())))
            except BackendError as error:
                refusal = str(error)
            assert len(refusal) <= 2 * MAX_REASON_CHARACTERS
            json.dumps(refusal).encode()

        check()


async def _awaited(found: Awaitable[Any]) -> Any:
    return await found


def test_right_answers_are_read_and_none_is_forgotten() -> None:
    heard: set[str] = set()
    refusals: list[str] = []
    with asyncio.Runner() as runner:
        for read in (*READS.values(), *USES.values()):
            brokers = HostileBrokers(share=0.0)
            try:
                runner.run(_awaited(read(brokers.admin())))
            except BackendError as error:
                refusals.append(str(error))
            heard |= brokers.heard
    assert heard >= ANSWERS.keys()
    # The namespace is full, the name is taken, and nothing is ever written: that is as it was answered.
    as_answered = ("maxTopicsPerNamespace", "the name belongs to", "exists", "does not show", "do not show")
    assert [text for text in refusals if not any(known in text for known in as_answered)] == []


def test_every_method_that_reads_an_answer_is_tried() -> None:
    admin = HostileBrokers().admin()
    methods = {
        f"{part}.{name}"
        for part, api in vars(admin).items()
        if part != "http"
        for name, method in inspect.getmembers(type(api), inspect.iscoroutinefunction)
        if not name.startswith("_") and inspect.signature(method).return_annotation not in ("None", "bool")
    }
    assert methods <= READS.keys(), methods - READS.keys()


@fuzzing(300)
@given(randomness)
def test_what_stands_in_the_layout_topic(rng: random.Random) -> None:
    """The operator reads back what it has published, or what somebody else has."""
    published = {
        "incarnation": "uid-1.0",
        "epoch": 3,
        "step": 3000,
        "term": 2,
        "announcement": {"operation": "one"},
        "segments": [],
    }
    one, other = (text_of(rng, published).decode("utf-8", "replace") for _ in range(2))
    order = message_order(one, "uid-1")
    assert order is None or order.epoch == int(order.epoch)
    assert announcement_number(one, "one") >= 0
    assert says_the_same(one, one)
    assert says_the_same(one, other) is says_the_same(other, one)
    content_of(one)


@fuzzing(300)
@given(randomness)
def test_positions(rng: random.Random) -> None:
    text = "".join(rng.choice("0123456789:-+ _٣e.") for _ in range(rng.randrange(12)))
    try:
        found = Position.parse(text)
    except ValueError:
        return
    assert Position.parse(str(found)) == found


@pytest.mark.parametrize(
    ("status", "content_type", "body"),
    [
        *((200, "application/json", text) for text in (NESTED_TEXTS[0], *OTHER_TEXTS)),
        *((status, "text/html", text) for status in (400, 409) for text in (NESTED_TEXTS[1], *OTHER_TEXTS[:14])),
        (200, "application/json; charset=hex", b'{"a": "b"}'),
        (409, "text/plain; charset=no-such", b"already exists"),
        (404, "application/json", b'{"reason": {"a": [1]}}'),
        (412, "application/json", b'{"reason": "' + b"topic namespace not " * 3000 + b'"}'),
        (409, "application/json", b'{"reason": "' + b"a.b.C: " * 8000 + b'"}'),
        (409, "text/html", b"<title>" * 9000),
        (409, "text/html", b"<th>MESSAGE:</th>" * 3000),
        (409, "application/json", f'{{"reason": "{TOKEN} \\u001b[31m\\n{TOKEN}"}}'.encode()),
    ],
)
async def test_answers_as_they_come_over_the_wire(status: int, content_type: str, body: bytes) -> None:
    async def reply(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers={"Content-Type": content_type})

    async with serve(reply) as server, connect(server) as http, asyncio.timeout(5):
        refusal = ""
        try:
            await PulsarAdmin(http).topics.properties("persistent://t/n/x")
        except BackendError as error:
            refusal = str(error)
    assert len(refusal) <= 2 * MAX_REASON_CHARACTERS
    assert TOKEN not in refusal
    assert refusal.isprintable()


@pytest.mark.parametrize(
    "piece", ["<title>", "<th>MESSAGE:</th>", "<", "a.Error:", "topic namespace ", "\n\tat ", "&#"]
)
def test_a_reason_is_found_in_bounded_time(piece: str) -> None:
    """A page that opens and never closes: half a minute of the only thread, when each opening looked for its end."""
    for text in (piece * (65_536 // len(piece)), "<title>" + piece * 9000 + "</title>"):
        began = time.thread_time()
        for content_type in ("text/html", "application/json"):
            reason = reason_of(409, content_type, text)
            is_transient(409, reason)
            error_for("x", 404, reason, About.TOPIC)
        assert time.thread_time() - began < 1.0


@pytest.mark.parametrize(
    "location",
    [
        "",
        "//",
        "http://[",
        "http://[::1",
        "http://a:99999/",
        "https://user@b/",
        "file:///etc/passwd",
        "\xff",
        "a" * 9000,
    ],
)
async def test_redirects_to_what_is_no_server(location: str) -> None:
    async def reply(_: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": location})

    async with serve(reply) as server, connect(server, max_redirects=2) as http, asyncio.timeout(5):
        with pytest.raises(BackendError) as refusal:
            await PulsarAdmin(http).topics.properties("persistent://t/n/x")
    assert len(str(refusal.value)) <= 2 * MAX_REASON_CHARACTERS
    assert TOKEN not in str(refusal.value)
