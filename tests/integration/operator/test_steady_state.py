"""A fleet at rest costs no writes, neither before nor after a restart (hazards C6, C24, C25, C38)."""

from __future__ import annotations

from tests.integration.operator.conftest import MakeProxied
from tests.support.fleet import SUBSCRIPTIONS, Fleet
from tests.support.pulsar_client import PulsarClient
from tests.support.running_operator import FAST_FLAGS
from tests.support.waiting import eventually
from tests.support.world import segment_topic

_TOPICS = 10
_WATCHED_SECONDS = 20.0


async def test_c24_c25_a_fleet_at_rest_is_not_written_to_and_a_restart_changes_nothing(
    proxied: MakeProxied, pulsar_client: PulsarClient
) -> None:
    """Hazard C6."""
    bench = await proxied(flags=(*FAST_FLAGS, "--auto-scale-enabled=true", "--auto-scale-interval-seconds=5"))
    fleet = Fleet(bench, _TOPICS)
    await bench.start()
    await fleet.create()
    await fleet.keep_a_sealed_segment(pulsar_client)
    await fleet.settle()
    quiet = await fleet.watch(_WATCHED_SECONDS)
    assert quiet.kube_writes == []
    assert quiet.admin_writes == []
    assert quiet.changed_objects == []
    # FAST_FLAGS look for drift every 3 s; a topic that nobody looks at would prove nothing.
    assert quiet.fewest_looks_at_a_topic >= 3
    kube_from, admin_from = len(bench.kube.seen), len(bench.admin.seen)
    await bench.restart()
    restarted = await fleet.watch(_WATCHED_SECONDS / 2)
    assert bench.kube.writes(kube_from) == []
    assert bench.admin.writes(admin_from) == []
    assert restarted.changed_objects == []
    assert restarted.fewest_looks_at_a_topic >= 1


async def test_c38_drift_from_before_the_start_is_repaired(proxied: MakeProxied) -> None:
    """Hazard C41."""
    bench = await proxied(flags=("--relist-seconds=3600", "--drift-seconds=3600"))
    world, fleet = bench.world, Fleet(bench, 1)
    name = fleet.names[0]
    await bench.start()
    await fleet.create()
    bench.operator.kill()
    lost = segment_topic(world.topic_name(name), (await world.layout(name)).active[0])
    await world.pulsar.delete_topic(lost, force=True)
    await bench.start()

    async def told() -> bool:
        return "SegmentLost" in [reason for reason, _ in await world.events(name)]

    await eventually(told, what="the loss is told")
    await world.assert_brokers_agree(name, name, set(SUBSCRIPTIONS))
