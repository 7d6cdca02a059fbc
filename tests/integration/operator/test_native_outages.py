"""Brokers of Pulsar 5 that go away in the middle of a change, and operators that die in it: all of it converges.

What became of a call whose answer was lost is read from the layout, and never asked for again blindly.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from dev.access import PulsarAccess
from dev.instance import LocalCluster, Shape
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS, TOPICS
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.native_world import NativeWorld
from tests.support.proxied_operator import ProxiedOperator
from tests.support.world import SHARED_CONNECTION, phase

pytestmark = pytest.mark.native

_SPLIT = r"/scalable/.*/split/0$"


async def _asked_for_a_split(bench: ProxiedOperator, name: str) -> NativeWorld:
    """A topic whose only segment is to be split, by an operator that runs."""
    await bench.start()
    native = NativeWorld(bench.world)
    await native.make(name, initial=1, subscriptions=["s"], connection_name=SHARED_CONNECTION)
    await bench.world.apply(manifests.operation(f"{name}-split", name, "Split", segment=0))
    return native


async def _assert_split_once(native: NativeWorld, name: str) -> None:
    ended = await native.world.until_ended(f"{name}-split")
    assert (phase(ended), ended["status"].get("children")) == ("Succeeded", [1, 2]), ended["status"]
    layout = await native.until_same(name)
    assert ([one.segment_id for one in layout.active], layout.epoch) == ([1, 2], 1)
    body = await native.world.until_ready(name)
    assert [one["kind"] for one in body["status"]["actions"]] == ["Create", "Split"], "nothing was done twice"


async def test_a_split_whose_answer_was_lost_is_found_in_the_layout(
    proxied: MakeProxied, native_pulsar: PulsarAccess
) -> None:
    bench = await proxied(native_pulsar, backend="Auto")
    hold = bench.admin.hold("POST", _SPLIT, after=True)
    native = await _asked_for_a_split(bench, "lost")
    await asyncio.wait_for(hold.arrived.wait(), 30)
    bench.operator.kill()
    hold.orphaned = True
    hold.drop()
    await bench.start()
    await _assert_split_once(native, "lost")
    splits = [call for call in bench.admin.seen if call.method == "POST" and "/split/" in call.path]
    assert len(splits) == 1, "it was done: nobody asks again"


async def test_a_split_that_arrives_late_is_the_one_that_was_asked_for(
    proxied: MakeProxied, native_pulsar: PulsarAccess
) -> None:
    """A dead process's call comes after its successor's: brokers split a segment once at most."""
    bench = await proxied(native_pulsar, backend="Auto")
    hold = bench.admin.hold("POST", _SPLIT)
    native = await _asked_for_a_split(bench, "late")
    await asyncio.wait_for(hold.arrived.wait(), 30)
    bench.operator.kill()
    hold.orphaned = True
    await bench.start()
    await _assert_split_once(native, "late")
    hold.released.set()
    await asyncio.wait_for(hold.answered.wait(), 30)
    assert hold.call is not None
    assert hold.call.status >= 400, "the late one is refused"
    await native.world.nudge(TOPICS, "late")
    await _assert_split_once(native, "late")


async def test_a_creation_whose_answer_was_lost_is_found_again(
    proxied: MakeProxied, native_pulsar: PulsarAccess
) -> None:
    bench = await proxied(native_pulsar, backend="Auto")
    hold = bench.admin.hold("PUT", r"/scalable/.*/made$", after=True)
    await bench.start()
    native = NativeWorld(bench.world)
    await bench.world.apply(native.topic("made", initial=2, connection_name=SHARED_CONNECTION))
    await asyncio.wait_for(hold.arrived.wait(), 30)
    bench.operator.kill()
    hold.orphaned = True
    hold.drop()
    await bench.start()
    body = await bench.world.until_ready("made")
    assert body["status"]["segments"]["active"] == 2
    await native.until_same("made")


@pytest.mark.slow
async def test_brokers_killed_in_the_middle_of_a_split_come_back_to_what_was_asked_for(
    proxied: MakeProxied, local_cluster: Callable[[Shape], LocalCluster]
) -> None:
    """The brokers' controller of the topic dies with the broker; whoever is it next has not heard of the call."""
    cluster = await asyncio.to_thread(local_cluster, Shape(kubernetes=False, brokers=0, native=True))
    assert cluster.native is not None
    bench = await proxied(cluster.native, backend="Auto")
    hold = bench.admin.hold("POST", _SPLIT)
    native = await _asked_for_a_split(bench, "killed")
    await asyncio.wait_for(hold.arrived.wait(), 30)
    await asyncio.to_thread(cluster.native_pulsar.kill_broker, 0)
    hold.released.set()
    running = await bench.world.until(
        SEGMENT_OPERATIONS, "killed-split", lambda body: phase(body) == "Running", what="waits for the brokers"
    )
    assert running["status"]["step"] == "Calling"
    await asyncio.to_thread(cluster.native_pulsar.start_broker, 0)
    await _assert_split_once(native, "killed")
