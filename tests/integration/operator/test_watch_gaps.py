"""What a watch does not tell, tells late, or tells of somebody else's write (R39, hazards C30, C34)."""

from __future__ import annotations

from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from scalable_topics_operator.operator_process import WATCHED
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.metrics import until_metric
from tests.support.running_operator import FAST_FLAGS
from tests.support.world import World, phase

_WATCHES = len(WATCHED)
_SLOW_FLAGS = ("--relist-seconds=3600", "--drift-seconds=3600", "--prune-seconds=3600")


async def test_c30_what_a_silent_watch_does_not_tell_is_found_by_the_relist(proxied: MakeProxied) -> None:
    bench = await proxied(flags=(*FAST_FLAGS, "--relist-seconds=4"))
    world = bench.world
    await world.apply(manifests.connection("other", world.admin_url))
    await bench.start()
    await until_metric(bench.operator, 'scalable_topics_connection_up{name="other"', lambda up: up == 1)
    await bench.kube.silence_streams(_WATCHES)
    await world.delete(CONNECTIONS, "other")
    await world.apply(manifests.topic("unheard", f"{world.pulsar_namespace}/unheard", subscriptions=["s"]))
    await world.until_ready("unheard", within_seconds=20)
    # Hazard C30: a delete that no watch told of.
    await until_metric(bench.operator, 'scalable_topics_connection_up{name="other"', lambda up: up is None)
    await world.assert_brokers_agree("unheard", "unheard", {"s"})


async def test_c34_a_late_watch_never_causes_a_second_split(proxied: MakeProxied) -> None:
    # A lapse on a busy machine would roll a split back, whose ids are not used again.
    bench = await proxied(flags=(*FAST_FLAGS, "--lease-seconds=15"))
    world = bench.world
    await bench.start()
    await world.apply(manifests.topic("late", f"{world.pulsar_namespace}/late"))
    await world.until_ready("late")
    before = len(bench.kube.seen)
    bench.kube.delay_streams(1.0)
    split = await world.operate("late", "Split", segment=0)
    assert (phase(split), split["status"]["children"]) == ("Succeeded", [1, 2])
    # A second operation goes the whole way of late news once more, after all late news of the first.
    merged = await world.operate("late", "Merge", segments=[1, 2])
    assert (phase(merged), merged["status"]["children"]) == ("Succeeded", [3])
    body = await world.until_ready("late")
    assert [action["kind"] for action in body["status"]["actions"] if action["kind"] != "Prune"] == [
        "Create",
        "Split",
        "Merge",
    ]
    opened = [call for call in bench.kube.writes(before) if call.path.endswith("/late/status") and _opens(call.body)]
    assert len(opened) == 2


async def test_two_changes_of_spec_in_a_row_end_in_the_last_one(world: World) -> None:
    name = f"twice-{world.pulsar_namespace.rsplit('-', 1)[1]}"
    await world.apply(manifests.topic(name, f"{world.pulsar_namespace}/{name}", subscriptions=["s"]))
    await world.until_ready(name)
    await world.change(TOPICS, name, {"segments": {"desired": 4}})
    await world.change(TOPICS, name, {"segments": {"desired": 2}, "properties": {"owner": "second"}})
    await world.until_ready(name, within_seconds=60)
    layout = await world.layout(name)
    assert [str(segment.hash_range) for segment in layout.active] == ["[0000, 7fff]", "[8000, ffff]"]
    claim = await world.pulsar.properties(world.topic_name(name).persistent)
    assert claim["owner"] == "second"


async def test_a_spec_changed_in_the_middle_of_the_work_is_worked_on_afterwards(proxied: MakeProxied) -> None:
    bench = await proxied(flags=_SLOW_FLAGS)
    world = bench.world
    await bench.start()
    await world.apply(manifests.topic("moving", f"{world.pulsar_namespace}/moving", subscriptions=["first"]))
    await world.until_ready("moving")
    seal = bench.admin.hold("POST", "/moving-segment-.*/terminate$")
    await world.change(TOPICS, "moving", {"segments": {"desired": 2}})
    await seal.arrived.wait()
    # The news of this change comes after the operator's own writes, which then stand on the changed object already.
    bench.kube.delay_streams(2.0)
    await world.change(TOPICS, "moving", {"subscriptions": [{"name": "first"}, {"name": "second"}]})
    seal.released.set()
    await world.until_ready("moving")
    await world.assert_brokers_agree("moving", "moving", {"first", "second"})


async def test_a_status_written_by_somebody_else_does_not_lose_the_journal(proxied: MakeProxied) -> None:
    bench = await proxied(flags=_SLOW_FLAGS)
    world = bench.world
    await bench.start()
    await world.apply(manifests.topic("edited", f"{world.pulsar_namespace}/edited", subscriptions=["s"]))
    await world.until_ready("edited")
    seal = bench.admin.hold("POST", "/edited-segment-.*/terminate$")
    await world.apply(manifests.operation("edited-split", "edited", "Split", segment=0))
    await seal.arrived.wait()
    journal = (await world.get(TOPICS, "edited"))["status"]["operation"]
    # Nothing tells the operator of the other write but the conflict it runs into.
    await bench.kube.silence_streams(_WATCHES)
    await world.set_status("edited", {"lastAction": "edited by hand"})
    seal.released.set()
    body = await world.until_ended("edited-split")
    assert (phase(body), body["status"]["operationId"]) == ("Succeeded", journal["id"])
    topic = await world.until_ready("edited")
    splits = [action for action in topic["status"]["actions"] if action["kind"] == "Split"]
    assert [(action["id"], action["result"]) for action in splits] == [(journal["id"], "Succeeded")]
    assert topic["status"]["lastAction"] != "edited by hand"
    assert "changed elsewhere" in bench.operator.log_text(), "the operator's write should have met the other one"


def _opens(body: str) -> bool:
    return '"step": "Creating"' in body and '"operation": {"id"' in body
