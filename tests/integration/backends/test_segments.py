"""R11, R26, R28: segment topics are complete or an error, can be completed, listed and deleted without a trace."""

import asyncio
import dataclasses
import json
from typing import Any

import pulsar
import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import HashRange, Segment, TopicName, classic_segment_name
from scalable_topics_operator.backends.admin import PulsarAdmin
from scalable_topics_operator.backends.classic import ClassicBackend
from scalable_topics_operator.operations.errors import (
    BackendRefused,
    BackendUnavailable,
    ClientsAttached,
    NamespaceMissing,
    NameTaken,
    TopicMissing,
)
from scalable_topics_operator.operations.protocols import FoundSegment, Inheritance, SchemaVersion, SegmentSetup
from scalable_topics_operator.operations.segment_policies import SegmentPolicies

from .conftest import CLAIM, record, segment_name
from .plain_http import Clients, PlainHttp, admin_for, eventually, topic_at

A0 = '{"type":"record","name":"A","fields":[{"name":"x","type":"int"}]}'
A1 = A0[:-2] + ',{"name":"y","type":["null","int"],"default":null}]}'
A_OTHER = '{"type":"record","name":"A","fields":[{"name":"z","type":"string"}]}'
AVRO = (SchemaVersion("AVRO", A0, {"p": "q"}), SchemaVersion("AVRO", A1))

FULL_SETUP = SegmentSetup(
    subscriptions=frozenset({"billing", "a/b c", "ümlaut%41+"}),
    inheritance=Inheritance({"writer": frozenset({"produce"}), "spiffe://x/y": frozenset({"consume"})}, AVRO),
    policies=SegmentPolicies(message_ttl_seconds=600, retention_minutes=10, schema_compatibility_strategy="FULL"),
)


async def _schemas(plain: PlainHttp, name: str) -> list[tuple[str, str, dict[str, str]]]:
    found = await plain.get(topic_at(name, "schemas").replace("persistent/", "schemas/", 1))
    return [(one["type"], one["data"], one["properties"]) for one in found["getSchemaResponses"]]


async def _grants(plain: PlainHttp, topic: TopicName, name: str) -> dict[str, Any]:
    policies = await plain.get(f"namespaces/{topic.pulsar_namespace}")
    return {role: set(actions) for role, actions in policies["auth_policies"]["destination_auth"].get(name, {}).items()}


async def test_r11_a_segment_is_created_with_all_it_must_carry(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    name = segment_name(topic)
    await backend.create_segment(topic, record(), FULL_SETUP)
    properties = await plain.get(topic_at(name, "properties"))
    assert json.loads(properties["scalabletopics.io/segment"])["operation"] == "create-1"
    assert await backend.read_record(name) == record()
    assert (await plain.get(topic_at(name, "inactiveTopicPolicies")))["deleteWhileInactive"] is False
    assert set(await plain.get(topic_at(name, "subscriptions"))) == FULL_SETUP.subscriptions
    assert await _grants(plain, topic, name) == {"writer": {"produce"}, "spiffe://x/y": {"consume"}}
    assert await _schemas(plain, name) == [("AVRO", A0, {"p": "q"}), ("AVRO", A1, {})]
    assert await plain.get(topic_at(name, "messageTTL")) == 600
    assert await plain.get(topic_at(name, "retention")) == {"retentionTimeInMinutes": 10, "retentionSizeInMB": -1}
    assert await plain.get(topic_at(name, "schemaCompatibilityStrategy")) == "FULL"
    # No other policy came along.
    for other in ("publishRate", "dispatchRate", "deduplicationEnabled", "maxProducers"):
        assert await plain.get(topic_at(name, other)) is None


async def test_r11_a_half_made_segment_of_the_same_operation_is_completed(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    name = segment_name(topic)
    await backend.create_segment(topic, record(), SegmentSetup(frozenset({"billing"})))
    await plain.do("DELETE", topic_at(name, "inactiveTopicPolicies"))
    await backend.create_segment(topic, record(), FULL_SETUP)
    await backend.create_segment(topic, record(), FULL_SETUP)
    assert set(await plain.get(topic_at(name, "subscriptions"))) == FULL_SETUP.subscriptions
    assert await _schemas(plain, name) == [("AVRO", A0, {"p": "q"}), ("AVRO", A1, {})]
    assert (await plain.get(topic_at(name, "inactiveTopicPolicies")))["deleteWhileInactive"] is False


async def test_r9_a_segment_of_another_operation_is_not_touched(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    await backend.create_segment(topic, record(operation_id="create-1"), SegmentSetup())
    with pytest.raises(NameTaken, match="made by operation 'create-1'"):
        await backend.create_segment(topic, record(operation_id="create-2"), FULL_SETUP)
    assert await plain.get(topic_at(segment_name(topic), "subscriptions")) == []
    assert await backend.read_record(segment_name(topic)) == record(operation_id="create-1")


async def test_a1_25719a_a_segment_that_a_client_resurrected_is_not_taken(
    backend: ClassicBackend, clients: Clients, topic: TopicName
) -> None:
    await clients.send(segment_name(topic), "x")
    assert await backend.read_record(segment_name(topic)) is None
    with pytest.raises(NameTaken, match="carries no segment record"):
        await backend.create_segment(topic, record(), SegmentSetup())


async def test_a_segment_cannot_be_made_without_its_namespace(backend: ClassicBackend) -> None:
    with pytest.raises(NamespaceMissing):
        await backend.create_segment(TopicName("team", "no-such-namespace", "x"), record(), SegmentSetup())


async def test_r27_a_segment_without_cursors_outlives_idle_topics(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    sister = f"{topic.persistent}-unprotected"
    await backend.create_segment(topic, record(), SegmentSetup())
    await plain.do("PUT", topic_at(sister), {"a": "b"})
    await eventually(lambda: plain.status(topic_at(sister, "properties")), lambda status: status == 404, 60)
    assert await backend.read_record(segment_name(topic)) == record()


async def test_r28_a_history_that_today_would_be_refused_is_copied_all_the_same(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    name = segment_name(topic)
    history = (SchemaVersion("AVRO", A0), SchemaVersion("AVRO", A_OTHER), SchemaVersion("STRING", ""))
    setup = SegmentSetup(inheritance=Inheritance(schemas=history))
    await backend.create_segment(topic, record(), setup)
    assert [(type_, data) for type_, data, _ in await _schemas(plain, name)] == [
        ("AVRO", A0),
        ("AVRO", A_OTHER),
        ("STRING", ""),
    ]
    # The laxer strategy served the copy only.
    assert await plain.get(topic_at(name, "schemaCompatibilityStrategy")) is None


KEY_VALUE_PROPERTIES = {
    "key.schema.name": "K",
    "key.schema.properties": "{}",
    "key.schema.type": "AVRO",
    "value.schema.name": "V",
    "value.schema.properties": '{"x":"1"}',
    "value.schema.type": "STRING",
    "kv.encoding.type": "SEPARATED",
}


@pytest.mark.parametrize(
    ("type_", "schema", "properties"),
    [
        ("STRING", "", {}),
        ("INT64", "", {"unit": "s"}),
        ("NONE", "", {}),
        ("JSON", A0, {"__alwaysAllowNull": "true"}),
        ("KEY_VALUE", f'{{"key":{A0},"value":""}}', KEY_VALUE_PROPERTIES),
        (
            "KEY_VALUE",
            f'{{"key":"","value":{A1}}}',
            {**KEY_VALUE_PROPERTIES, "key.schema.type": "STRING", "value.schema.type": "AVRO"},
        ),
    ],
)
async def test_r28_schemas_survive_the_way_from_parent_to_child(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName, type_: str, schema: str, properties: dict[str, str]
) -> None:
    parent, child = segment_name(topic, 0), segment_name(topic, 1)
    await backend.create_segment(topic, record(0), SegmentSetup())
    path = topic_at(parent, "schema").replace("persistent/", "schemas/", 1)
    await plain.do("POST", path, {"type": type_, "schema": schema, "properties": properties})
    inheritance = await backend.inheritance(topic, [parent])
    await backend.create_segment(topic, record(1, "split-1"), SegmentSetup(inheritance=inheritance))
    assert len(inheritance.schemas) == 1
    assert await _schemas(plain, child) == await _schemas(plain, parent)


async def test_r28_a_malformed_schema_fails_the_creation(backend: ClassicBackend, topic: TopicName) -> None:
    setup = SegmentSetup(inheritance=Inheritance(schemas=(SchemaVersion("AVRO", "no schema"),)))
    with pytest.raises(BackendRefused, match="Invalid schema definition"):
        await backend.create_segment(topic, record(), setup)


async def test_r26_inheritance_is_what_the_parents_were_granted_themselves(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    parents = [segment_name(topic, number) for number in range(2)]
    for number in range(2):
        await backend.create_segment(topic, record(number, f"op-{number}"), SegmentSetup())
    await plain.do("POST", f"namespaces/{topic.pulsar_namespace}/permissions/everywhere", ["produce", "consume"])
    await plain.do("POST", topic_at(parents[0], "permissions", "both"), ["produce"])
    await plain.do("POST", topic_at(parents[1], "permissions", "both"), ["consume"])
    await plain.do("POST", topic_at(parents[1], "permissions", "everywhere"), ["consume"])
    path = topic_at(parents[1], "schema").replace("persistent/", "schemas/", 1)
    await plain.do("POST", path, {"type": "STRING", "schema": "", "properties": {}})
    assert await backend.inheritance(topic, parents) == Inheritance(
        permissions={"both": frozenset({"produce", "consume"}), "everywhere": frozenset({"consume"})},
        schemas=(SchemaVersion("STRING", ""),),
    )
    assert await backend.inheritance(topic, parents[:1]) == Inheritance({"both": frozenset({"produce"})}, ())
    assert await backend.inheritance(topic, []) == Inheritance()


async def test_r26_grants_are_added_to_and_never_narrowed(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    """A grant replaces what the role had before (measured)."""
    name = segment_name(topic)
    await backend.create_segment(topic, record(), SegmentSetup())
    await plain.do("POST", topic_at(name, "permissions", "role"), ["functions"])
    await backend.grant(name, {"role": frozenset({"produce"}), "new/role": frozenset({"consume"})})
    assert await _grants(plain, topic, name) == {"role": {"functions", "produce"}, "new/role": {"consume"}}


async def test_c7_a_role_is_narrowed_where_that_is_asked_for(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    name = segment_name(topic)
    await backend.create_segment(topic, record(), SegmentSetup())
    await plain.do("POST", topic_at(name, "permissions", "role"), ["produce", "consume"])
    await plain.do("POST", topic_at(name, "permissions", "other"), ["produce", "consume"])
    wanted = {"role": frozenset({"consume"}), "other": frozenset({"consume"})}
    await backend.grant(name, wanted, exactly=["role"])
    assert await _grants(plain, topic, name) == {"role": {"consume"}, "other": {"produce", "consume"}}


async def test_c7_grants_are_revoked_on_the_topic_only(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    name = segment_name(topic)
    setup = SegmentSetup(inheritance=Inheritance({"gone": frozenset({"produce"}), "stays": frozenset({"produce"})}))
    await backend.create_segment(topic, record(), setup)
    await plain.do("POST", f"namespaces/{topic.pulsar_namespace}/permissions/everywhere", ["consume"])
    await backend.revoke(name, ["gone", "everywhere", "unknown"])
    assert await _grants(plain, topic, name) == {"stays": {"produce"}}
    assert await plain.get(f"namespaces/{topic.pulsar_namespace}/permissions") == {"everywhere": ["consume"]}
    await backend.revoke(name, ["gone"])


async def test_granting_on_a_missing_segment_is_an_error(backend: ClassicBackend, topic: TopicName) -> None:
    with pytest.raises(TopicMissing):
        await backend.grant(segment_name(topic), {"role": frozenset({"produce"})})
    await backend.revoke(segment_name(topic), ["role"])


async def test_segments_are_found_by_name_and_only_those(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    assert await backend.list_segments(topic) == ()
    halves = [HashRange(0, 0x7FFF), HashRange(0x8000, 0xFFFF)]
    expected = []
    for number, half in enumerate(halves, start=10):
        name = classic_segment_name(topic, half, number)
        await backend.create_segment(
            topic, dataclasses.replace(record(number), hash_range=half), SegmentSetup(frozenset({"s"}))
        )
        expected.append(FoundSegment(number, half, name))
    for other in (
        f"{topic.persistent}-segment-0000-7fff",
        f"{topic.persistent}-segment-8000-7fff-1",
        f"{topic.persistent}-segment-0000-7FFF-1",
        f"{topic.persistent}-segment-0000-7fff-01",
        classic_segment_name(dataclasses.replace(topic, local="orders2"), halves[0], 1),
    ):
        await plain.do("PUT", topic_at(other), {"a": "b"})
    assert await backend.list_segments(topic) == expected
    other_topic = dataclasses.replace(topic, local="orders2")
    assert [found.segment_id for found in await backend.list_segments(other_topic)] == [1]


async def test_one_listing_serves_all_topics_of_a_namespace(
    pulsar: PulsarAccess, backend: ClassicBackend, topic: TopicName
) -> None:
    observed: list[tuple[str, str, float]] = []
    async with admin_for(pulsar, pulsar.superuser_token, observed) as admin:
        listing = ClassicBackend(admin)
        names = [dataclasses.replace(topic, local=f"x{number}") for number in range(40)]
        await asyncio.gather(*(listing.list_segments(name) for name in names))
        assert sum(operation == "list-topics" for operation, _, _ in observed) <= 2
        await backend.create_segment(topic, record(), SegmentSetup())
        assert await listing.list_segments(topic, max_age_seconds=60) == ()
        assert len(await listing.list_segments(topic)) == 1
        assert len(await listing.list_segments(topic, max_age_seconds=60)) == 1


async def test_a1_25719c_clients_keep_a_segment_unless_it_is_forced(
    backend: ClassicBackend, plain: PlainHttp, clients: Clients, topic: TopicName
) -> None:
    name = segment_name(topic)
    await backend.create_segment(topic, record(), FULL_SETUP)
    consumer = await clients.consumer(name, "billing")
    with pytest.raises(ClientsAttached, match="1"):
        await backend.delete_segment(name)
    assert await backend.read_record(name) == record()
    assert (await _grants(plain, topic, name)).keys() == {"writer", "spiffe://x/y"}
    await asyncio.to_thread(consumer.close)
    await backend.delete_segment(name)
    assert await plain.status(topic_at(name, "properties")) == 404


async def test_a1_25719c_force_reaches_the_broker(
    backend: ClassicBackend, plain: PlainHttp, clients: Clients, topic: TopicName
) -> None:
    """The attached consumer re-creates the name empty (hazards A1-25719a and C65), but never with our record."""
    name = segment_name(topic)
    await backend.create_segment(topic, record(), SegmentSetup())
    await clients.send(name, "x")
    await clients.consumer(name, "billing")
    await backend.delete_segment(name, force=True)
    if await plain.status(topic_at(name, "properties")) == 200:
        assert await backend.read_record(name) is None
        assert (await backend.look(name)).entries == 0


async def test_a_deleted_segment_leaves_nothing_behind(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    name = segment_name(topic)
    await backend.create_segment(topic, record(), FULL_SETUP)
    await backend.delete_segment(name)
    assert await plain.status(topic_at(name, "properties")) == 404
    assert await _grants(plain, topic, name) == {}
    assert await _schemas(plain, name) == []
    assert name not in await plain.get(f"persistent/{topic.pulsar_namespace}")
    await backend.delete_segment(name)
    # R14: made again at once, it has all it must have; and nothing of the old one comes back by itself.
    await backend.create_segment(topic, record(), SegmentSetup(inheritance=FULL_SETUP.inheritance))
    assert await _grants(plain, topic, name) == {"writer": {"produce"}, "spiffe://x/y": {"consume"}}
    assert [schema[1] for schema in await _schemas(plain, name)] == [A0, A1]
    await backend.delete_segment(name)
    await plain.do("PUT", topic_at(name), {"a": "b"})
    assert await plain.get(topic_at(name, "messageTTL")) is None
    assert await plain.get(topic_at(name, "subscriptions")) == []


async def test_a_segment_that_vanishes_while_it_is_made_is_not_reported_as_made(
    admin: PulsarAdmin, backend: ClassicBackend, plain: PlainHttp, topic: TopicName, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hazard A1-25719b: something deletes the child between its creation and its cursors."""
    name = segment_name(topic)
    create = admin.topics.create_subscription

    async def deleted_meanwhile(topic_name: str, subscription: str, *, latest: bool = False) -> bool:
        await plain.do("DELETE", topic_at(name))
        return await create(topic_name, subscription, latest=latest)

    monkeypatch.setattr(admin.topics, "create_subscription", deleted_meanwhile)
    with pytest.raises(BackendUnavailable, match="vanished meanwhile"):
        await backend.create_segment(topic, record(), SegmentSetup(frozenset({"billing"})))
    assert await plain.status(topic_at(name, "properties")) == 404


@pytest.mark.parametrize("local", ["a%41+é:b", "a&b=c?d#e", "x-segment-0", "a%2Fb", "日本.語;~"])
async def test_hard_names_live_and_die_like_others(
    backend: ClassicBackend, plain: PlainHttp, clients: Clients, topic: TopicName, local: str
) -> None:
    topic = dataclasses.replace(topic, local=local)
    name = segment_name(topic)
    await backend.take_claim(topic, CLAIM)
    await backend.create_segment(topic, record(), FULL_SETUP)
    assert [found.topic for found in await backend.list_segments(topic)] == [name]
    assert set(await plain.get(f"persistent/{topic.pulsar_namespace}")) >= {topic.persistent, name}
    await clients.send(name, "one")
    assert await clients.receive_all(name, "a/b c", 1) == ["one"]
    assert (await backend.look(name)).cursors["billing"].backlog == 1
    assert await backend.inheritance(topic, [name]) == FULL_SETUP.inheritance
    typed = classic_segment_name(topic, HashRange.full(), 7)
    await asyncio.to_thread((await clients.producer(typed, schema=pulsar.schema.StringSchema())).close)
    assert [schema.type for schema in (await backend.inheritance(topic, [typed])).schemas] == ["STRING"]
    await backend.delete_segment(typed)
    await backend.delete_segment(name)
    await backend.delete_claim(topic)
    left = await plain.get(f"persistent/{topic.pulsar_namespace}")
    assert [found for found in left if "/__" not in found] == []


async def test_names_of_segments(backend: ClassicBackend, topic: TopicName) -> None:
    assert backend.kind == "Classic"
    derived = Segment(3, HashRange(0, 0x7FFF))
    assert backend.segment_topic(topic, derived) == f"{topic.persistent}-segment-0000-7fff-3"
    wrapped = Segment(3, HashRange.full(), topic="persistent://t/n/old-partition-0")
    assert backend.segment_topic(topic, wrapped) == "persistent://t/n/old-partition-0"


async def test_r11_records_that_cannot_be_read_are_refused(
    backend: ClassicBackend, plain: PlainHttp, topic: TopicName
) -> None:
    await plain.do("PUT", topic_at(segment_name(topic)), {"scalabletopics.io/segment": "{}"})
    with pytest.raises(BackendRefused, match="cannot read"):
        await backend.read_record(segment_name(topic))
