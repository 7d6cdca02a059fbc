"""What is left of a topic when its object goes (R31), whatever else goes at the same time."""

from __future__ import annotations

import asyncio
import json

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import CONNECTIONS, SECRETS, TOPICS
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.metrics import read_metric, until_metric
from tests.support.pulsar_client import PulsarClient, close
from tests.support.waiting import eventually
from tests.support.world import World, condition, phase


async def _nothing_left(world: World, local: str) -> None:
    plain_name = world.topic_name(local).persistent
    left = [name for name in await world.pulsar.topics(world.pulsar_namespace) if name.startswith(plain_name)]
    assert left == []


async def test_a_retained_topic_is_recovered_with_layout_and_data(world: World, pulsar_client: PulsarClient) -> None:
    """R1 and R11: our own released claim is recovered silently, and the layout rebuilt from the segments."""
    manifest = manifests.topic(
        "retained", f"{world.pulsar_namespace}/retained", initial=2, subscriptions=["reader"], bucketBudget=8
    )
    await world.apply(manifest)
    await world.until_ready("retained")
    assert phase(await world.operate("retained", "Split", segment=0, at=0x1000)) == "Succeeded"
    assert phase(await world.operate("retained", "Rebucket", segment=3, buckets=7)) == "Succeeded"
    before = await world.until(
        TOPICS, "retained", lambda body: body["status"]["segments"]["sealed"] == 0, what="is pruned"
    )
    layout = await world.layout("retained")
    segments = await world.segment_names("retained", "retained")
    await pulsar_client.send(segments[2], "kept")
    await world.delete(TOPICS, "retained")
    await world.until_gone(TOPICS, "retained")
    plain_name = world.topic_name("retained").persistent
    claim = json.loads((await world.pulsar.properties(plain_name))["scalabletopics.io/claim"])
    assert claim["released"] is True
    assert await world.segment_topics("retained") == sorted(segments.values())
    assert await world.pulsar.terminated(plain_name), "R1: released or not, the plain name is not writable"

    await world.apply(manifest)
    after = await world.until_ready("retained")
    again = await world.layout("retained")
    assert [(s.segment_id, s.hash_range, s.buckets) for s in again.active] == [
        (s.segment_id, s.hash_range, s.buckets) for s in layout.active
    ]
    assert again.next_segment_id >= layout.next_segment_id, "R9: no id is ever used twice"
    assert after["status"]["incarnation"] != before["status"]["incarnation"], "R12"
    await world.until_event("retained", "LayoutRebuilt")
    assert await pulsar_client.receive(segments[2], "reader", 1) == ["kept"]
    claim = json.loads((await world.pulsar.properties(plain_name))["scalabletopics.io/claim"])
    assert (claim["released"], claim["uid"]) == (False, after["metadata"]["uid"])
    assert phase(await world.operate("retained", "Split", segment=2)) == "Succeeded"


async def test_deletion_waits_for_clients_and_then_leaves_nothing(world: World, pulsar_client: PulsarClient) -> None:
    """R31, hazards A1-25717b, A1-25719c, C11, C65: attached clients make it refuse; once they left nothing remains."""
    await world.apply(
        manifests.topic(
            "doomed",
            f"{world.pulsar_namespace}/doomed",
            initial=3,
            subscriptions=["reader"],
            deletionPolicy="Delete",
            policies={"perSegment": {"retentionTimeMinutes": 60}},
        )
    )
    await world.until_ready("doomed")
    assert phase(await world.operate("doomed", "Split", segment=0)) == "Succeeded"
    segments = await world.segment_names("doomed", "doomed")
    producer = await pulsar_client.producer(segments[1])
    consumer = await pulsar_client.consumer(segments[2], "reader")
    await world.delete(TOPICS, "doomed")
    await _until_refused(world, "doomed", "1 producers and 1 consumers")
    assert await world.segment_topics("doomed") == sorted(segments.values()), "it refuses before anything is deleted"
    await close(producer)
    await world.nudge(TOPICS, "doomed")
    await _until_refused(world, "doomed", "0 producers and 1 consumers")
    await close(consumer)
    await world.until_gone(TOPICS, "doomed")
    await _nothing_left(world, "doomed")


async def _until_refused(world: World, name: str, counts: str) -> None:
    message = (
        f"{counts} are attached to the topic's segments; stop them, or set deletionPolicy: Retain to keep the data"
    )

    def says_so(body: Body) -> bool:
        stalled = condition(body, "Stalled")
        return (stalled.get("reason"), stalled.get("message")) == ("ClientsAttached", message)

    await world.until(TOPICS, name, says_so, what=f"says that {counts} are attached")
    await eventually(
        lambda: world.events(name), lambda events: ("ClientsAttached", message) in events, what="an Event says so too"
    )


async def test_a_refused_deletion_can_be_turned_into_a_release(world: World, pulsar_client: PulsarClient) -> None:
    await world.apply(manifests.topic("spared", f"{world.pulsar_namespace}/spared", deletionPolicy="Delete"))
    await world.until_ready("spared")
    segment = (await world.segment_names("spared", "spared"))[0]
    producer = await pulsar_client.producer(segment)
    await world.delete(TOPICS, "spared")
    await world.until_reason("spared", "ClientsAttached")
    await world.change(TOPICS, "spared", {"deletionPolicy": "Retain"})
    await world.until_gone(TOPICS, "spared", within_seconds=8)
    await asyncio.to_thread(producer.send, b"still there")
    await close(producer)


async def test_delete_and_create_again_at_once(world: World) -> None:
    """hazard C18: what is remembered of an object is remembered by uid, so its namesake is not ignored."""
    manifest = manifests.topic("quick", f"{world.pulsar_namespace}/quick", initial=2, deletionPolicy="Delete")
    await world.apply(manifest)
    await world.until_ready("quick")
    uids = set()
    for initial in (3, 4, 5):
        uids.add((await world.get(TOPICS, "quick"))["metadata"]["uid"])
        await world.delete(TOPICS, "quick")
        await world.until_gone(TOPICS, "quick")
        manifest["spec"]["segments"]["initial"] = initial
        await world.apply(manifest)
        body = await world.until_ready("quick")
        assert body["status"]["segments"]["active"] == initial
        assert len(await world.segment_topics("quick")) == initial
    assert (await world.get(TOPICS, "quick"))["metadata"]["uid"] not in uids
    await world.assert_brokers_agree("quick", "quick", set())


async def test_deleted_before_it_was_ever_made(world: World) -> None:
    await world.apply(manifests.topic("unborn", "tests/no-such-namespace/unborn", deletionPolicy="Delete"))
    await world.until_reason("unborn", "NamespaceMissing")
    await world.delete(TOPICS, "unborn")
    await world.until_gone(TOPICS, "unborn", within_seconds=8)


async def test_object_connection_and_secret_deleted_together(world: World, pulsar: PulsarAccess) -> None:
    """hazard C10: nothing is left to ask, so the object goes, and an Event says that data was left."""
    await world.apply(manifests.secret("brief-token", token=pulsar.superuser_token))
    await world.apply(manifests.connection("brief", pulsar.admin_url, "brief-token"))
    for policy in ("Retain", "Delete"):
        name = f"brief-{policy}".lower()
        await world.apply(
            manifests.topic(name, str(world.topic_name(name)), connection_name="brief", deletionPolicy=policy)
        )
        await world.until_ready(name)
    await world.delete(SECRETS, "brief-token")
    await world.delete(CONNECTIONS, "brief")
    await world.delete(TOPICS, "brief-retain")
    await world.delete(TOPICS, "brief-delete")
    await world.until_gone(TOPICS, "brief-retain")
    await world.until_gone(TOPICS, "brief-delete")
    assert len(await world.segment_topics("brief-retain")) == 1
    if await world.segment_topics("brief-delete"):
        # Unless the last call still got through before the connection was seen to go.
        assert await world.until_event("brief-delete", "DataLeft") == (
            "the topic's data was left on the brokers: there is no ScalableTopicConnection "
            f"{world.namespace}/brief; create it or correct spec.connectionRef"
        )


async def test_a_big_annotation_does_not_block_deletion(world: World) -> None:
    """hazard C13: nothing is copied into annotations, so an object near their limit still gets its way."""
    manifest = manifests.topic("stuffed", f"{world.pulsar_namespace}/stuffed", deletionPolicy="Delete")
    manifest["metadata"]["annotations"] = {"example.com/notes": "n" * 200_000}
    await world.apply(manifest)
    body = await world.until_ready("stuffed")
    assert list(body["metadata"]["annotations"]) == ["example.com/notes"]
    await world.delete(TOPICS, "stuffed")
    await world.until_gone(TOPICS, "stuffed")
    await _nothing_left(world, "stuffed")


async def test_a_broker_that_is_away_delays_a_deletion_and_does_not_lose_it(proxied: MakeProxied) -> None:
    """hazard C11: it says what it waits for, and goes on by itself."""
    bench = await proxied()
    await bench.start()
    world = bench.world
    await world.apply(
        manifests.topic("waiting", f"{world.pulsar_namespace}/waiting", initial=2, deletionPolicy="Delete")
    )
    await world.until_ready("waiting")
    bench.admin.go_down()
    await world.delete(TOPICS, "waiting")
    await world.until(
        TOPICS, "waiting", lambda body: condition(body, "Ready")["status"] == "False", what="says it waits"
    )
    assert len(await world.segment_topics("waiting")) == 2
    bench.admin.come_up()
    await world.until_gone(TOPICS, "waiting")
    await _nothing_left(world, "waiting")


async def test_c44_an_object_that_is_gone_is_not_tried_again(proxied: MakeProxied) -> None:
    """Somebody took the finalizer away that the operator could not, and what it had to repeat has nobody any more."""
    bench = await proxied()
    await bench.start()
    world, name = bench.world, "abandoned"
    await world.apply(manifests.topic(name, str(world.topic_name(name)), initial=2, deletionPolicy="Delete"))
    await world.until_ready(name)
    bench.admin.go_down()
    await world.delete(TOPICS, name)
    retried = 'scalable_topics_reconciles_total{kind="scalabletopics",result="retried"}'
    await until_metric(bench.operator, retried, lambda times: bool(times and times >= 3))
    await world.kube.merge_patch(TOPICS, world.namespace, name, {"metadata": {"finalizers": None}})
    await world.until_gone(TOPICS, name)
    await until_metric(bench.operator, 'scalable_topics_objects{kind="ScalableTopic"}', lambda objects: objects == 0)
    times, calls = await read_metric(bench.operator, retried), len(bench.admin.seen)
    # Longer than its pauses had become: it is the absence of another try that is tested.
    await asyncio.sleep(10)
    assert await read_metric(bench.operator, retried) == times
    assert [call.path for call in bench.admin.seen[calls:] if name in call.path] == []


async def test_a_conflict_on_the_finalizer_is_no_end(proxied: MakeProxied) -> None:
    """hazards C1 and C2: somebody labels the object between our read and our write, at both ends of its life."""
    bench = await proxied()
    await bench.start()
    world = bench.world
    path = f"/namespaces/{world.namespace}/scalabletopics/raced$"
    adding = bench.kube.hold("PATCH", path, body='"finalizers": \\["scalabletopics')
    await world.apply(manifests.topic("raced", f"{world.pulsar_namespace}/raced", deletionPolicy="Delete"))
    await adding.arrived.wait()
    await world.nudge(TOPICS, "raced")
    adding.released.set()
    await world.until_ready("raced")
    dropping = bench.kube.hold("PATCH", path, body='"finalizers": \\[\\]')
    await world.delete(TOPICS, "raced")
    await dropping.arrived.wait()
    await _nothing_left(world, "raced")
    await world.nudge(TOPICS, "raced")
    dropping.released.set()
    await world.until_gone(TOPICS, "raced")
    assert adding.call is not None
    assert dropping.call is not None
    assert (adding.call.status, dropping.call.status) == (409, 409), "the conflicts were real"


async def test_a_claim_lost_to_a_client_does_not_keep_the_data_of_a_deleted_topic(
    proxied: MakeProxied, pulsar_client: PulsarClient
) -> None:
    """hazards C10 and C20: the operator is away while the claim is lost, a client writes to the plain name, and the
    object is deleted."""
    bench = await proxied()
    await bench.start()
    world = bench.world
    await world.apply(
        manifests.topic("overrun", f"{world.pulsar_namespace}/overrun", initial=2, deletionPolicy="Delete")
    )
    await world.until_ready("overrun")
    bench.operator.kill()
    plain_name = world.topic_name("overrun").persistent
    await world.pulsar.delete_topic(plain_name)
    await pulsar_client.send(plain_name, "written where nobody reads")
    await world.delete(TOPICS, "overrun")
    await bench.start()
    await world.until_gone(TOPICS, "overrun")
    await _nothing_left(world, "overrun")
