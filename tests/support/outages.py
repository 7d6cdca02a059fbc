"""Outages of a broker and of the API server in the middle of a split, for short and for long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from tests.support import manifests
from tests.support.metrics import until_metric
from tests.support.proxied_operator import ProxiedOperator
from tests.support.world import condition, phase

DECLARED, FOUND = "declared", "found"
_OTHER_UP = 'scalable_topics_connection_up{name="other"'
_DOWN_REASONS = ("ConnectionDown", "BrokerUnavailable")


@dataclass(frozen=True, slots=True)
class Moment:
    """When in a split of topic `cut` the brokers go.

    Args:
        name: for people.
        method: of the admin call at which they go.
        path: its path, a regular expression.
        step: of the journal then.
    """

    name: str
    method: str
    path: str
    step: str


BEFORE_THE_SEAL = Moment("while the children are made", "PUT", "/cut-segment-[^/]+$", "Creating")
AT_THE_SEAL = Moment("when the parent is to be sealed", "POST", "/cut-segment-[^/]+/terminate$", "Sealing")


@dataclass(frozen=True, slots=True)
class OutageReport:
    """How an outage went: seconds from the cut until it was said, its length, and until the split was done after it."""

    noticed_seconds: float
    outage_seconds: float
    done_seconds: float


async def brokers_go_in_the_middle_of_a_split(
    bench: ProxiedOperator,
    moment: Moment,
    stop: Callable[[], Awaitable[None]],
    start: Callable[[], Awaitable[None]],
    outage_seconds: float,
) -> OutageReport:
    """Stop all brokers at a moment of a split and start them again; checks that all is as if nothing had been."""
    world = bench.world
    await bench.start()
    await world.apply(manifests.topic("cut", f"{world.pulsar_namespace}/cut", subscriptions=[DECLARED]))
    await world.until_ready("cut")
    await world.pulsar.create_subscription((await world.segment_topics("cut"))[0], FOUND)
    hold = bench.admin.hold(moment.method, moment.path)
    await world.apply(manifests.operation("cut-split", "cut", "Split", segment=0))
    await asyncio.wait_for(hold.arrived.wait(), 40)
    process = bench.operator.pid
    await stop()
    hold.drop()
    cut_at = time.monotonic()
    await world.until_reason("pulsar", "Unreachable", resource=CONNECTIONS)
    topic = await world.until(
        TOPICS,
        "cut",
        lambda body: condition(body, "Ready").get("reason") in _DOWN_REASONS,
        what="says that the brokers are away",
    )
    noticed_seconds = time.monotonic() - cut_at
    assert topic["status"]["operation"]["step"] == moment.step
    await asyncio.sleep(outage_seconds - noticed_seconds)
    await start()
    back_at = time.monotonic()
    body = await world.until_ended("cut-split", within_seconds=120)
    done_seconds = time.monotonic() - back_at
    assert (phase(body), body["status"]["children"]) == ("Succeeded", [1, 2])
    await world.until_ready("cut")
    await world.assert_brokers_agree("cut", "cut", {DECLARED, FOUND})
    await world.until_reason("pulsar", "Reconciled", resource=CONNECTIONS)
    assert bench.operator.running
    assert bench.operator.pid == process
    assert "Unreachable" in [reason for reason, _ in await world.events("pulsar", resource=CONNECTIONS)]
    return OutageReport(noticed_seconds, back_at - cut_at, done_seconds)


async def api_server_goes_in_the_middle_of_a_split(
    bench: ProxiedOperator, stop: Callable[[], Awaitable[None]], start: Callable[[], Awaitable[None]]
) -> OutageReport:
    """Stop the API server when a parent has just been sealed; checks that the same process finishes the split.

    It must also hear of all it missed: a topic made and a connection deleted while it was cut off.

    Args:
        bench: the operator.
        stop: makes the API server unreachable for the operator, and for it alone if it is not to be missed long.
        start: called once it is; makes it reachable again, after as long as the outage shall last.
    """
    world = bench.world
    await world.apply(manifests.connection("other", world.admin_url))
    await bench.start()
    await world.apply(manifests.topic("cut", f"{world.pulsar_namespace}/cut", subscriptions=[DECLARED]))
    await world.until_ready("cut")
    await until_metric(bench.operator, _OTHER_UP, lambda up: up == 1)
    process = bench.operator.pid
    hold = bench.admin.hold(AT_THE_SEAL.method, AT_THE_SEAL.path, after=True)
    await world.apply(manifests.operation("cut-split", "cut", "Split", segment=0))
    await asyncio.wait_for(hold.arrived.wait(), 40)
    cut_at = time.monotonic()
    await stop()
    hold.released.set()
    await start()
    back_at = time.monotonic()
    body = await world.until_ended("cut-split", within_seconds=120)
    done_seconds = time.monotonic() - back_at
    assert (phase(body), body["status"]["children"]) == ("Succeeded", [1, 2])
    topic = await world.until_ready("cut")
    splits = [action["result"] for action in topic["status"]["actions"] if action["kind"] == "Split"]
    assert splits == ["Succeeded"], "done once, and not rolled back"
    await world.assert_brokers_agree("cut", "cut", {DECLARED})
    await world.until_ready("born", within_seconds=60)
    await until_metric(bench.operator, _OTHER_UP, lambda up: up is None, within_seconds=60)
    heard_seconds = time.monotonic() - back_at
    # Watches, not only lists, tell of news again.
    await world.change(TOPICS, "born", {"segments": {"desired": 2}})
    await world.until(TOPICS, "born", lambda it: it["status"]["segments"]["active"] == 2, what="is scaled")
    assert bench.operator.running
    assert bench.operator.pid == process
    return OutageReport(heard_seconds, back_at - cut_at, done_seconds)


async def change_behind_its_back(bench: ProxiedOperator) -> None:
    """What users do while the operator is cut off."""
    world = bench.world
    await world.delete(CONNECTIONS, "other")
    await world.apply(manifests.topic("born", f"{world.pulsar_namespace}/born", subscriptions=["s"]))
