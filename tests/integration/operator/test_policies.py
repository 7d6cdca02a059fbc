"""Policies, permissions and schemas of segments follow the spec, through splits and back out again."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.resources import TOPICS
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.pulsar_client import PulsarClient
from tests.support.running_operator import FAST_FLAGS
from tests.support.waiting import eventually
from tests.support.world import World, condition, phase

_MEGABYTE = 1024 * 1024


async def _policies(world: World, segment: str) -> dict[str, Any]:
    names = (
        "messageTTL",
        "retention",
        "backlogQuotaMap",
        "publishRate",
        "dispatchRate",
        "schemaCompatibilityStrategy",
        "deduplicationEnabled",
    )
    found = await asyncio.gather(*(world.pulsar.policy(segment, name) for name in names))
    return {name: value for name, value in zip(names, found, strict=True) if value}


def _expected(active: int) -> dict[str, Any]:
    def share(total: int) -> int:
        return -(-total // active)

    return {
        "messageTTL": 3600,
        "retention": {"retentionTimeInMinutes": 30, "retentionSizeInMB": share(100)},
        "backlogQuotaMap": {
            "destination_storage": {
                "limitSize": share(40 * _MEGABYTE + 1),
                "limitTime": -1,
                "policy": "producer_exception",
            }
        },
        "publishRate": {"publishThrottlingRateInMsg": share(1000), "publishThrottlingRateInByte": -1},
        "dispatchRate": {"dispatchThrottlingRateInMsg": -1, "dispatchThrottlingRateInByte": share(1_000_001)},
        "schemaCompatibilityStrategy": "FULL",
        "deduplicationEnabled": True,
    }


def _agrees(found: Any, expected: Any) -> bool:
    """Whether all that is expected is there; brokers add fields of their own."""
    if isinstance(expected, dict):
        return isinstance(found, dict) and all(_agrees(found.get(key), value) for key, value in expected.items())
    return bool(found == expected)


async def test_totals_are_shared_by_the_active_segments_and_removed_policies_go(world: World) -> None:
    """R27 and hazard C7: shares are rounded up, divided anew after a split, and gone once the spec has none."""
    await world.apply(
        manifests.topic(
            "limits",
            f"{world.pulsar_namespace}/limits",
            initial=2,
            deduplication=True,
            policies={
                "perSegment": {
                    "messageTTLSeconds": 3600,
                    "retentionTimeMinutes": 30,
                    "schemaCompatibilityStrategy": "FULL",
                },
                "total": {
                    "retentionSizeMegabytes": 100,
                    "backlogQuotaBytes": 40 * _MEGABYTE + 1,
                    "backlogQuotaAction": "producer_exception",
                    "publishMessagesPerSecond": 1000,
                    "dispatchBytesPerSecond": 1_000_001,
                },
            },
        )
    )
    await world.until_ready("limits")
    for segment in (await world.segment_names("limits", "limits")).values():
        found = await _policies(world, segment)
        assert _agrees(found, _expected(2)), found
    assert phase(await world.operate("limits", "Split", segment=0)) == "Succeeded"
    active = {s.segment_id for s in (await world.layout("limits")).active}
    names = await world.segment_names("limits", "limits")
    assert active == {1, 2, 3}
    for segment_id in sorted(active):
        await eventually(
            lambda name=names[segment_id]: _policies(world, name),  # type: ignore[misc]
            lambda found: _agrees(found, _expected(3)),
            what=f"segment {segment_id} carries a third of the totals",
        )
    await world.change(TOPICS, "limits", {"policies": None, "deduplication": None})
    body = await world.until_ready("limits")
    for name in (await world.segment_names("limits", "limits")).values():
        assert await _policies(world, name) == {}, name
    assert "managedPolicies" not in body["status"]


async def test_policies_the_spec_does_not_name_are_left_as_they_are(world: World) -> None:
    """Somebody else may own them; only what we set is ours to remove."""
    await world.apply(manifests.topic("shared", f"{world.pulsar_namespace}/shared"))
    await world.until_ready("shared")
    segment = (await world.segment_names("shared", "shared"))[0]
    path = "persistent/" + segment.removeprefix("persistent://")
    await world.pulsar.call("POST", f"{path}/messageTTL?messageTTL=77")
    await world.change(TOPICS, "shared", {"policies": {"perSegment": {"retentionTimeMinutes": 5}}})
    await world.until_ready("shared")
    await world.change(TOPICS, "shared", {"policies": None})
    await world.until_ready("shared")
    assert await _policies(world, segment) == {"messageTTL": 77}


async def test_a_change_that_could_not_be_applied_at_first_is_applied_later(proxied: MakeProxied) -> None:
    """hazard C7: neither an outage nor a pause makes the operator forget what it still has to set or remove."""
    bench = await proxied(flags=(*FAST_FLAGS, "--drift-seconds=600"))
    await bench.start()
    world = bench.world
    await world.apply(
        manifests.topic("delayed", f"{world.pulsar_namespace}/delayed", policies=_ttl(10), permissions=_GRANT)
    )
    await world.until_ready("delayed")
    segment = (await world.segment_names("delayed", "delayed"))[0]
    bench.admin.go_down()
    await world.change(TOPICS, "delayed", {"policies": _ttl(20)})
    await world.until(
        TOPICS, "delayed", lambda body: condition(body, "Ready")["status"] == "False", what="says it cannot"
    )
    bench.admin.come_up()
    await world.until_ready("delayed")
    assert await _policies(world, segment) == {"messageTTL": 20}

    await world.change(TOPICS, "delayed", {"paused": True, "policies": None, "permissions": []})
    await world.until_ready("delayed")
    assert await _policies(world, segment) == {"messageTTL": 20}, "nothing is changed while paused"
    await world.change(TOPICS, "delayed", {"paused": False})
    await world.until_ready("delayed")
    assert await _policies(world, segment) == {}
    assert await world.pulsar.grants(segment) == {}


def _ttl(seconds: int) -> dict[str, Any]:
    return {"perSegment": {"messageTTLSeconds": seconds}}


_GRANT = [{"role": "billing", "actions": ["consume"]}]


async def test_permissions_reach_every_segment_and_are_revoked_when_removed(world: World, pulsar: PulsarAccess) -> None:
    """R26 and hazard C7: also grants that somebody gave a parent by hand, and a client really gets in."""
    await world.apply(
        manifests.topic(
            "grants",
            f"{world.pulsar_namespace}/grants",
            permissions=[
                {"role": "client", "actions": ["produce", "consume"]},
                {"role": "billing", "actions": ["consume"]},
            ],
        )
    )
    await world.until_ready("grants")
    declared = {"client": ["consume", "produce"], "billing": ["consume"]}
    parent = (await world.segment_names("grants", "grants"))[0]
    assert await world.pulsar.grants(parent) == declared
    await world.pulsar.grant(parent, "by-hand", "consume")
    assert phase(await world.operate("grants", "Split", segment=0)) == "Succeeded"
    names = await world.segment_names("grants", "grants")
    for child in (names[1], names[2]):
        assert await world.pulsar.grants(child) == {**declared, "by-hand": ["consume"]}
    with PulsarClient(pulsar.service_url, pulsar.client_token) as client:
        await client.send(names[1], "allowed")

    await world.change(TOPICS, "grants", {"permissions": [{"role": "billing", "actions": ["produce"]}]})
    await world.until_ready("grants")
    for child in (names[1], names[2]):
        grants = await world.pulsar.grants(child)
        assert "client" not in grants
        assert grants["billing"] == ["produce"], "an action taken from the spec is taken from the role"
        assert grants["by-hand"] == ["consume"], "what we did not grant is not ours to revoke"


def _avro(name: str, *fields: str) -> str:
    return json.dumps(
        {
            "type": "record",
            "name": name,
            "fields": [{"name": field, "type": ["null", "string"], "default": None} for field in fields],
        }
    )


async def test_all_schema_versions_are_copied_to_the_children_in_order(world: World) -> None:
    """R28."""
    await world.apply(
        manifests.topic(
            "typed",
            f"{world.pulsar_namespace}/typed",
            policies={"perSegment": {"schemaCompatibilityStrategy": "ALWAYS_COMPATIBLE"}},
        )
    )
    await world.until_ready("typed")
    parent = (await world.segment_names("typed", "typed"))[0]
    await world.pulsar.add_schema(parent, "AVRO", _avro("Order", "id"), {"owner": "billing"})
    await world.pulsar.add_schema(parent, "AVRO", _avro("Order", "id", "note"), {})
    await world.pulsar.add_schema(parent, "JSON", _avro("Order", "id", "note", "city"), {"é": "ü"})
    await world.pulsar.add_schema(parent, "AVRO", _avro("Order", "id"), {"owner": "billing"})
    registered = await world.pulsar.schemas(parent)
    assert [kind for kind, _, _ in registered][:3] == ["AVRO", "AVRO", "JSON"]
    assert phase(await world.operate("typed", "Split", segment=0)) == "Succeeded"
    names = await world.segment_names("typed", "typed")
    assert await world.pulsar.schemas(names[1]) == registered
    assert await world.pulsar.schemas(names[2]) == registered
    assert phase(await world.operate("typed", "Merge", segments=[1, 2])) == "Succeeded"
    assert await world.pulsar.schemas((await world.segment_names("typed", "typed"))[3]) == registered


async def test_a_key_value_schema_is_copied_to_the_children(world: World, pulsar_client: PulsarClient) -> None:
    """R28: registered as a real client does it, since its form in the admin API is particular."""
    await world.apply(manifests.topic("pairs", f"{world.pulsar_namespace}/pairs"))
    await world.until_ready("pairs")
    parent = (await world.segment_names("pairs", "pairs"))[0]
    definition = json.dumps({"key": json.loads(_avro("Key", "id")), "value": json.loads(_avro("Value", "name"))})
    await world.pulsar.add_schema(parent, "KEY_VALUE", definition, _KEY_VALUE_PROPERTIES)
    registered = await world.pulsar.schemas(parent)
    assert [kind for kind, _, _ in registered] == ["KEY_VALUE"]
    assert phase(await world.operate("pairs", "Split", segment=0)) == "Succeeded"
    names = await world.segment_names("pairs", "pairs")
    assert await world.pulsar.schemas(names[1]) == registered
    assert await world.pulsar.schemas(names[2]) == registered


_KEY_VALUE_PROPERTIES = {
    "key.schema.name": "Key",
    "key.schema.type": "AVRO",
    "key.schema.properties": "{}",
    "value.schema.name": "Value",
    "value.schema.type": "AVRO",
    "value.schema.properties": "{}",
    "kv.encoding.type": "INLINE",
}
