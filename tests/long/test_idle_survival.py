"""Three minutes without a client on brokers that delete idle topics (R27): `make show-idle-survival`."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from scalable_topics_operator.cluster.resources import CONNECTIONS
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.evidence import Evidence
from tests.support.waiting import eventually
from tests.support.world import World, phase

_SECONDS = 180.0
# Nothing is looked at meanwhile: what were deleted would not be made again, and would be missed.
_NO_REPAIR = ("--drift-seconds=3600", "--prune-seconds=3600", "--relist-seconds=3600")
_SCOPES = ("Topic", "Namespace")


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    parts = [_part(scope) for scope in _SCOPES]
    page = Evidence("idle-survival.md", "Segments without clients", "make show-idle-survival", parts)
    yield page
    page.write()


def _part(scope: str) -> str:
    return f"inactiveTopicProtection: {scope}"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scope", _SCOPES)
async def test_r27_segments_and_claim_survive_three_minutes_without_a_client(
    proxied: MakeProxied, evidence: Evidence, scope: str
) -> None:
    bench = await proxied(flags=_NO_REPAIR)
    world = bench.world
    await bench.start()
    await world.change(CONNECTIONS, "pulsar", {"inactiveTopicProtection": scope})
    await world.apply(manifests.topic("idle", str(world.topic_name("idle")), initial=4))
    await world.until_ready("idle")
    assert phase(await world.operate("idle", "Split", segment=0)) == "Succeeded"
    assert phase(await world.operate("idle", "Merge", segments=[2, 3])) == "Succeeded"
    layout = await world.layout("idle")
    segments = await world.segment_names("idle", "idle")
    kept = {"claim": world.topic_name("idle").persistent} | {
        f"segment {segment_id} ({layout.segment(segment_id).state})": topic for segment_id, topic in segments.items()
    }
    before = await _records(world, kept)
    started = time.monotonic()
    canaries = [await _canary(world, scope, number) for number in range(2)]
    await world.pulsar.unload_namespace(world.pulsar_namespace)
    for topic in kept.values():
        # Looking at a topic loads it again; brokers delete only what is loaded.
        await world.pulsar.internal(topic)
    while time.monotonic() - started < _SECONDS:
        canaries.append(await _canary(world, scope, len(canaries)))
    seconds = time.monotonic() - started
    after = await _records(world, kept)
    assert after == before
    for what, topic in kept.items():
        assert await world.pulsar.terminated(topic) == ("Active" not in what), what
    told = {reason for reason, _ in await world.events("idle")}
    assert not {"SegmentLost", "ClaimRestored"} & told
    evidence.show(
        _part(scope),
        f"A topic with {len(layout.active)} active and {len(layout.sealed)} sealed segments, none with a producer, a "
        f"consumer or a subscription, was left alone for {seconds:.0f} s. The brokers delete topics that were idle for "
        "10 s and look every 5 s; meanwhile all topics of the namespace were unloaded once. Drift repair was off.",
        "",
        "All are still there, each with the record that was written when it was made: " + ", ".join(kept) + ".",
        "",
        f"{len(canaries)} unprotected topics made meanwhile, one after the other, were deleted by the brokers, each "
        f"after {min(canaries):.0f} to {max(canaries):.0f} s.",
    )


async def _canary(world: World, scope: str, number: int) -> float:
    """Make an unprotected topic and see the brokers delete it; answers how many seconds it lived."""
    namespace = world.pulsar_namespace
    if scope == "Namespace":
        # The whole namespace is protected: it needs another one.
        namespace += "-canaries"
        await world.pulsar.create_namespace(namespace)
    topic = f"persistent://{namespace}/canary-{number}"
    made = time.monotonic()
    await world.pulsar.create_topic(topic)

    async def gone() -> bool:
        return not await world.pulsar.exists(topic)

    await eventually(gone, what=f"the brokers delete {topic}", within_seconds=60, every_seconds=0.5)
    return time.monotonic() - made


async def _records(world: World, topics: dict[str, str]) -> dict[str, dict[str, str]]:
    """What each topic says of itself: written once, when it was made, so that it tells it from a later namesake."""
    return {what: await world.pulsar.properties(topic) for what, topic in topics.items()}
