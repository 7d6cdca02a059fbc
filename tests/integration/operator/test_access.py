"""Who may use a connection for what (R3); a refusal says what to change, and changing it is enough."""

from __future__ import annotations

from typing import Any

from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from tests.support import manifests
from tests.support.world import World, condition


def _guest_topic(world: World, guest: World, name: str, connection: str, **spec: Any) -> manifests.Manifest:
    reference = {"name": connection, "namespace": world.namespace}
    return manifests.topic(name, f"{guest.pulsar_namespace}/{name}", connectionRef=reference, **spec)


async def test_another_namespace_needs_to_be_allowed(world: World, guest: World) -> None:
    await world.apply(manifests.connection("guarded", world.admin_url))
    await guest.apply(_guest_topic(world, guest, "visitor", "guarded"))
    body = await guest.until_reason("visitor", "NotAllowed")
    message = (
        f"connection {world.namespace}/guarded: namespace {guest.namespace} may not use this connection; add it to "
        "the connection's spec.allow.namespaces"
    )
    assert condition(body, "Stalled")["message"] == message
    assert await guest.until_event("visitor", "NotAllowed") == message
    assert await world.pulsar.topics(world.pulsar_namespace) == []
    await world.change(CONNECTIONS, "guarded", {"allow": {"namespaces": ["shared-*-guest"]}})
    await guest.until_ready("visitor")


async def test_a_connection_may_be_bound_to_some_pulsar_namespaces(world: World) -> None:
    allow = {"pulsarNamespaces": ["public/*", "tests/other"]}
    await world.apply(manifests.connection("bound", world.admin_url, allow=allow))
    await world.apply(manifests.topic("outside", f"{world.pulsar_namespace}/outside", connection_name="bound"))
    body = await world.until_reason("outside", "NotAllowed")
    assert condition(body, "Stalled")["message"] == (
        f"connection {world.namespace}/bound: the connection may not be used for Pulsar namespace "
        f"{world.pulsar_namespace}; its spec.allow.pulsarNamespaces has public/*, tests/other"
    )
    assert await world.pulsar.topics(world.pulsar_namespace) == []
    await world.change(CONNECTIONS, "bound", {"allow": {"pulsarNamespaces": ["tests/t-*"]}})
    await world.until_ready("outside")


async def test_another_namespace_deletes_data_only_if_it_may(world: World, guest: World) -> None:
    await world.apply(manifests.connection("keeping", world.admin_url, allow={"namespaces": [guest.namespace]}))
    await guest.apply(_guest_topic(world, guest, "clinging", "keeping", deletionPolicy="Delete"))
    await guest.until_ready("clinging")
    await guest.delete(TOPICS, "clinging")
    body = await guest.until_reason("clinging", "NotAllowed")
    message = (
        f"namespace {guest.namespace} may not delete through this connection; add Delete to the connection's "
        "spec.allow.operations, or set deletionPolicy: Retain to keep the data"
    )
    assert condition(body, "Stalled")["message"] == message
    assert await guest.until_event("clinging", "NotAllowed") == message
    assert len(await guest.segment_topics("clinging")) == 1
    await world.change(CONNECTIONS, "keeping", {"allow": {"operations": ["Delete"]}})
    await guest.until_gone(TOPICS, "clinging")
    assert await world.pulsar.topics(world.pulsar_namespace) == []


async def test_another_namespace_adopts_only_if_it_may(world: World, guest: World) -> None:
    """The claim belongs to an installation that is long gone; the right to take it over is the connection's to give."""
    await world.apply(manifests.connection("lending", world.admin_url, allow={"namespaces": [guest.namespace]}))
    claim = (
        '{"v":1,"installation":"gone","kubernetes":"gone","uid":"gone","namespace":"elsewhere","name":"old",'
        '"backend":"Classic","released":true}'
    )
    plain_name = world.topic_name("orphan").persistent
    await world.pulsar.create_topic(plain_name, {"scalabletopics.io/claim": claim})
    await guest.apply(_guest_topic(world, guest, "orphan", "lending", adopt=True))
    body = await guest.until_reason("orphan", "NotAllowed")
    assert condition(body, "Stalled")["message"] == (
        f"namespace {guest.namespace} may not adopt through this connection; add Adopt to the connection's "
        "spec.allow.operations"
    )
    assert (await world.pulsar.properties(plain_name))["scalabletopics.io/claim"] == claim
    await world.change(CONNECTIONS, "lending", {"allow": {"operations": ["Adopt"]}})
    await guest.until_ready("orphan")
    await guest.assert_brokers_agree("orphan", "orphan", set())
