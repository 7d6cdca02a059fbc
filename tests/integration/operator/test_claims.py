"""Whose a name is (R1): rivals, other installations, and claims that somebody tampers with."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import TOPICS
from tests.integration.operator.conftest import MakeOperator
from tests.support import manifests
from tests.support.pulsar_client import PulsarClient
from tests.support.pulsar_view import PulsarView
from tests.support.waiting import eventually
from tests.support.world import World, condition
from tests.support.world_making import make_world


async def _claim(world: World, local: str) -> dict[str, Any]:
    properties = await world.pulsar.properties(world.topic_name(local).persistent)
    claim: dict[str, Any] = json.loads(properties["scalabletopics.io/claim"])
    return claim


async def test_of_two_objects_for_one_topic_the_older_wins_and_the_other_takes_over_its_data(
    world: World, pulsar_client: PulsarClient
) -> None:
    full_name = f"{world.pulsar_namespace}/contested"
    await world.apply(manifests.topic("winner", full_name, initial=2, subscriptions=["reader"]))
    winner = await world.until_ready("winner")
    await pulsar_client.send((await world.segment_names("winner", "contested"))[1], "kept")
    await world.apply(manifests.topic("loser", f"persistent://{full_name}", initial=4, subscriptions=["reader"]))
    loser = await world.until_reason("loser", "Conflict")
    message = condition(loser, "Stalled")["message"]
    assert f"is already declared by ScalableTopic {world.namespace}/winner" in message
    assert message.endswith("remove one of them")
    assert await world.until_event("loser", "Conflict") == message
    assert len(await world.segment_topics("contested")) == 2, "the loser must not have made segments of its own"
    assert (await _claim(world, "contested"))["uid"] == winner["metadata"]["uid"]

    await world.delete(TOPICS, "winner")
    body = await world.until_ready("loser")
    assert body["status"]["segments"] == {"active": 2, "sealed": 0}, "the layout is recovered, not made anew"
    assert body["status"]["incarnation"].startswith(body["metadata"]["uid"]), "R12"
    assert (await _claim(world, "contested"))["uid"] == body["metadata"]["uid"]
    segments = await world.segment_names("loser", "contested")
    assert await pulsar_client.receive(segments[1], "reader", 1) == ["kept"]


async def test_one_topic_through_two_connections_to_one_cluster_is_a_conflict(world: World) -> None:
    """hazard C16: the identity of a topic is the cluster's and its name, not the connection's."""
    other_url = world.admin_url.replace("127.0.0.1", "localhost")
    assert other_url != world.admin_url
    await world.apply(manifests.connection("same-cluster", other_url))
    full_name = f"{world.pulsar_namespace}/twice"
    await world.apply(manifests.topic("once", full_name))
    await world.until_ready("once")
    await world.apply(manifests.topic("twice", full_name, connection_name="same-cluster"))
    body = await world.until_reason("twice", "Conflict")
    assert f"already declared by ScalableTopic {world.namespace}/once" in condition(body, "Stalled")["message"]


async def test_deleting_the_loser_leaves_the_winners_topic_alone(world: World) -> None:
    """hazard C14, with the worst policy the loser can have."""
    full_name = f"{world.pulsar_namespace}/guarded"
    await world.apply(manifests.topic("guarded", full_name, initial=2, subscriptions=["reader"]))
    await world.until_ready("guarded")
    await world.apply(manifests.topic("guarded-rival", full_name, deletionPolicy="Delete"))
    await world.until_reason("guarded-rival", "Conflict")
    await world.delete(TOPICS, "guarded-rival")
    await world.until_gone(TOPICS, "guarded-rival")
    await world.assert_brokers_agree("guarded", "guarded", {"reader"})
    assert not (await _claim(world, "guarded"))["released"]


@pytest.mark.both_lines
async def test_a_claim_of_another_installation_is_respected_until_it_is_adopted(
    world: World,
    own_operator: MakeOperator,
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    pulsar_client: PulsarClient,
) -> None:
    """R1 and R4: an installation is known by its id; after an adoption the former owner lets go and says so."""
    operator = await own_operator()
    there = replace(await make_world(kube, view, pulsar, operator.namespace), pulsar_namespace=world.pulsar_namespace)
    full_name = f"{world.pulsar_namespace}/moving"
    await world.apply(manifests.topic("moving", full_name, initial=2, subscriptions=["reader"]))
    await world.until_ready("moving")
    assert await world.operate("moving", "Split", segment=0)
    await pulsar_client.send((await world.segment_names("moving", "moving"))[1], "kept")
    await asyncio.to_thread(operator.start)

    await there.apply(manifests.topic("moving", full_name, subscriptions=["reader"]))
    refused = await there.until_reason("moving", "ClaimedElsewhere")
    message = (
        f"the topic is claimed by ScalableTopic {world.namespace}/moving of another operator installation; "
        "set spec.adopt: true to take it over once that installation has let go of it"
    )
    assert condition(refused, "Stalled")["message"] == message
    assert await there.until_event("moving", "ClaimedElsewhere") == message
    before = await _claim(world, "moving")
    assert before["namespace"] == world.namespace

    await there.change(TOPICS, "moving", {"adopt": True})
    adopted = await there.until_ready("moving")
    assert adopted["status"]["segments"]["active"] == 3
    assert await pulsar_client.receive((await there.segment_names("moving", "moving"))[1], "reader", 1) == ["kept"]

    former = await world.until_reason("moving", "ClaimLost")
    assert f"ScalableTopic {there.namespace}/moving" in condition(former, "Stalled")["message"]
    after = await _claim(world, "moving")
    assert (after["namespace"], after["uid"]) == (there.namespace, adopted["metadata"]["uid"])
    # The former owner's object goes, with the worst policy it can have, and nothing happens to the topic.
    await world.change(TOPICS, "moving", {"deletionPolicy": "Delete"})
    await world.delete(TOPICS, "moving")
    await world.until_gone(TOPICS, "moving")
    await there.assert_brokers_agree("moving", "moving", {"reader"})
    assert await _claim(world, "moving") == after


async def test_a_missing_claim_is_made_again(world: World) -> None:
    """Without it the first producer would auto-create an ordinary topic of the plain name."""
    await world.apply(manifests.topic("unclaimed", f"{world.pulsar_namespace}/unclaimed", properties={"team": "a"}))
    body = await world.until_ready("unclaimed")
    plain_name = world.topic_name("unclaimed").persistent
    await world.pulsar.delete_topic(plain_name)
    await world.until_event("unclaimed", "ClaimRestored")
    assert (await _claim(world, "unclaimed"))["uid"] == body["metadata"]["uid"]
    assert (await world.pulsar.properties(plain_name))["team"] == "a"
    assert await world.pulsar.terminated(plain_name)


async def test_a_claim_lost_to_a_client_that_auto_created_the_name_is_taken_back_and_sealed(
    world: World, pulsar_client: PulsarClient
) -> None:
    """R1, hazard C20: whoever writes to the plain name writes where nobody reads."""
    await world.apply(manifests.topic("squatted", f"{world.pulsar_namespace}/squatted"))
    body = await world.until_ready("squatted")
    plain_name = world.topic_name("squatted").persistent
    # Drift repair does not see the gap between the two.
    async with world.unseen("squatted"):
        await world.pulsar.delete_topic(plain_name)
        await pulsar_client.send(plain_name, "lost")
    await eventually(lambda: world.pulsar.terminated(plain_name), what="the plain name is sealed again")
    assert (await _claim(world, "squatted"))["uid"] == body["metadata"]["uid"]


async def test_an_altered_claim_and_altered_properties_are_put_right(world: World) -> None:
    await world.apply(manifests.topic("altered", f"{world.pulsar_namespace}/altered", properties={"team": "a"}))
    await world.until_ready("altered")
    plain_name = world.topic_name("altered").persistent
    claim = await _claim(world, "altered")
    await world.pulsar.set_properties(
        plain_name, {"scalabletopics.io/claim": json.dumps({**claim, "released": True}), "team": "b", "stray": "x"}
    )

    async def restored() -> bool:
        properties = await world.pulsar.properties(plain_name)
        return await _claim(world, "altered") == claim and properties.get("team") == "a" and "stray" not in properties

    await eventually(restored, what="claim and properties are as declared")
    await world.change(TOPICS, "altered", {"properties": {"team": "c"}})
    await world.until_ready("altered")
    assert (await world.pulsar.properties(plain_name))["team"] == "c"
