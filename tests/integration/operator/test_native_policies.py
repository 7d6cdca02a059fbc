"""Auto-scale policies that become the brokers' own, who goes by them, and grants (pip-483, DESIGN §8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import CONNECTIONS, POLICIES, TOPICS
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.native_world import NativeWorld
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS
from tests.support.waiting import eventually
from tests.support.world import NATIVE_CONNECTION, condition
from tests.support.world_making import make_world, random_name

pytestmark = pytest.mark.native

# As operators are by default: the shared one of the tests has automatic changes off.
_FLAGS = (*FAST_FLAGS, "--auto-scale-enabled=true", "--auto-scale-interval-seconds=5")


@pytest.fixture
async def scaled(own_operator: MakeOperator, kube: KubeClient, native_pulsar: PulsarAccess) -> Any:
    """A world whose operator leaves automatic changes on."""
    operator = await own_operator(_FLAGS)
    operator.start()
    async with PulsarView(native_pulsar.admin_url, native_pulsar.superuser_token) as view:
        world = await make_world(
            *(kube, view, native_pulsar, operator.namespace), connection_name=NATIVE_CONNECTION, backend="Auto"
        )
        yield NativeWorld(world)
        await world.tidy_up()


async def _until_override(native: NativeWorld, name: str, holds: Callable[[Any], bool], what: str) -> Any:
    return await eventually(lambda: native.call("GET", name, "/autoScalePolicy"), holds, what=f"{name}: {what}")


async def test_policies_become_one_object_at_the_brokers_and_go_again(scaled: NativeWorld) -> None:
    knobs = {"maxSegments": 8, "split": {"msgRateIn": "20k", "cooldown": "90s"}}
    body = await scaled.make("orders", autoScale=knobs)
    assert await scaled.call("GET", "orders", "/autoScalePolicy") == {
        "maxSegments": 8,
        "splitMsgRateInThreshold": 20000.0,
        "splitCooldownSeconds": 90,
    }
    resolved = (await scaled.stats("orders"))["autoScale"]["policy"]
    assert (resolved["maxSegments"], resolved["splitCooldownSeconds"], resolved["minSegments"]) == (8, 90, 1)
    shown = await scaled.world.until(
        TOPICS, "orders", lambda body: condition(body, "AutoScale").get("reason") == "Brokers", what="says who decides"
    )
    assert condition(shown, "AutoScale")["status"] == "True"
    world, target = scaled.world, {"connectionRef": {"name": NATIVE_CONNECTION}}
    policy = random_name("everybody")
    await world.apply(manifests.policy(policy, "Cluster", target, minSegments=2, maxSegments=32))
    stored = await _until_override(scaled, "orders", lambda found: found.get("minSegments") == 2, "gets the policy's")
    assert stored["maxSegments"] == 8, "the topic's own knob wins"
    await world.delete(POLICIES, policy)
    await _until_override(scaled, "orders", lambda found: "minSegments" not in found, "loses what is not said any more")
    await world.change(TOPICS, "orders", {"autoScale": None})
    await _until_override(scaled, "orders", lambda found: not found, "loses its own")
    assert body["status"]["managedPolicies"] == ["autoScale"]


async def test_what_somebody_else_has_stored_is_put_right(scaled: NativeWorld) -> None:
    await scaled.make("drift", autoScale={"maxSegments": 4})
    await scaled.call("POST", "drift", "/autoScalePolicy", {"maxSegments": 99})
    await _until_override(scaled, "drift", lambda found: found["maxSegments"] == 4, "is what is declared again")


async def test_the_operator_takes_over_and_gives_back(scaled: NativeWorld) -> None:
    """One controller at a time: the brokers' own is off before the operator decides, and on again when it has left."""
    await scaled.make("taken", autoScale={"engine": "Operator", "maxSegments": 4})
    assert await scaled.call("GET", "taken", "/autoScalePolicy") == {"enabled": False}
    body = await scaled.world.until(
        TOPICS,
        "taken",
        lambda body: condition(body, "AutoScale").get("reason") not in (None, "Brokers"),
        what="decides itself",
    )
    assert condition(body, "AutoScale")["status"] == "True"
    await scaled.world.change(TOPICS, "taken", {"autoScale": {"engine": "Broker", "maxSegments": 4}})
    await _until_override(scaled, "taken", lambda found: found.get("maxSegments") == 4, "goes by the policy again")
    await scaled.world.until(
        TOPICS, "taken", lambda body: condition(body, "AutoScale").get("reason") == "Brokers", what="leaves it to them"
    )


async def test_a_combination_that_brokers_would_silently_switch_off_is_told(scaled: NativeWorld) -> None:
    """Each layer is valid by itself; together they are not, and the brokers say so in their log only (measured)."""
    world = scaled.world
    await world.pulsar.call(
        "POST", f"namespaces/{world.pulsar_namespace}/scalableTopicAutoScalePolicy", {"minSegments": 32}
    )
    await world.apply(scaled.topic("odd", autoScale={"maxSegments": 4}))
    body = await world.until(
        TOPICS, "odd", lambda body: condition(body, "AutoScale").get("reason") == "NotInForce", what="tells of it"
    )
    assert condition(body, "AutoScale")["status"] == "False"
    assert "minSegments" in condition(body, "AutoScale")["message"]


async def test_knobs_that_brokers_do_not_know_are_told_of(scaled: NativeWorld) -> None:
    await scaled.make("unknown", autoScale={"depthRecovery": "2h"}, properties={"a": "1"})
    body = await scaled.world.until(
        TOPICS, "unknown", lambda body: body["status"].get("reports"), what="reports what is not applied"
    )
    assert "depthRecovery" in body["status"]["reports"][0]["message"]


async def test_grants_are_made_and_taken_back(native: NativeWorld) -> None:
    await native.make("granted", permissions=[{"role": "bob", "actions": ["produce"]}])
    assert await native.call("GET", "granted", "/permissions") == {"bob": ["produce"]}
    await native.call("POST", "granted", "/permissions/somebody", ["consume"])
    await native.world.change(TOPICS, "granted", {"permissions": []})
    await eventually(
        lambda: native.call("GET", "granted", "/permissions"),
        lambda found: found == {"somebody": ["consume"]},
        what="the operator's grant is gone, the other one is not",
    )


async def test_a_policy_of_a_pulsar_namespace_is_stored_with_it_and_taken_away(scaled: NativeWorld) -> None:
    """For topics there that no object declares; what somebody else has stored with other namespaces stays."""
    world, name = scaled.world, random_name("space")
    path = f"namespaces/{world.pulsar_namespace}/scalableTopicAutoScalePolicy"
    target = {"connectionRef": {"name": NATIVE_CONNECTION}, "pulsarNamespace": world.pulsar_namespace}
    await world.apply(manifests.policy(name, "PulsarNamespace", target, maxSegments=12))
    await eventually(
        lambda: world.pulsar.call("GET", path), lambda found: found == {"maxSegments": 12}, what="it is stored"
    )
    await scaled.call("PUT", "undeclared", "?numInitialSegments=1", {})
    assert (await scaled.stats("undeclared"))["autoScale"]["policy"]["maxSegments"] == 12
    connection = await world.until(
        CONNECTIONS, NATIVE_CONNECTION, lambda body: body["status"].get("namespacePolicies"), what="tells of it"
    )
    assert connection["status"]["namespacePolicies"] == [{"pulsarNamespace": world.pulsar_namespace}]
    await world.delete(POLICIES, name)
    await eventually(lambda: world.pulsar.call("GET", path), lambda found: not found, what="it is taken away")
    await world.until(
        CONNECTIONS, NATIVE_CONNECTION, lambda body: not body["status"].get("namespacePolicies"), what="forgets it"
    )
