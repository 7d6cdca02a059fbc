"""What the operator asks of the brokers to create one topic, recorded once, and sent by a bare loop beside it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import aiohttp
from yarl import URL

from bench.measurement import Better, Group, Measurement, Of, Target
from bench.stage import Stage
from dev.access import PulsarAccess
from scalable_topics_operator.cluster.resources import TOPICS
from tests.support import manifests
from tests.support.fault_proxy import SeenCall
from tests.support.proxied_operator import ProxiedOperator, proxied_operator

SEGMENTS = 4
SUBSCRIPTIONS = ("billing", "audit")
POLICIES = {"perSegment": {"messageTTLSeconds": 3600}, "total": {"publishMessagesPerSecond": 1000}}
SENDERS = 16
"""Calls under way at a time, as many as a connection allows the operator by default."""

BESIDE_BARE = Target("0.8 of a bare loop that sends the same calls", 0.8, Of.RATIO)
OPERATOR = "operator, from objects to all Ready"

# The operator whose calls are recorded looks at no other topic meanwhile.
_RECORDING_FLAGS = ("--relist-seconds=3600", "--drift-seconds=3600", "--prune-seconds=3600")
_BARE, _BARE_NAMESPACE = "bare loop, same calls", "tests/bare"
_REFUSED = 400
_FIRST, _PATTERN = "first-topic", "recorded-topic"
# Probes of the connection are not about a topic.
_OF_TOPICS = ("/admin/v2/persistent/", "/admin/v2/namespaces/", "/admin/v2/schemas/", "/topics/persistent/")


def manifest(name: str, pulsar_namespace: str) -> manifests.Manifest:
    """A topic of 4 segments, which stay, 2 subscriptions and 2 policies."""
    return manifests.topic(
        name,
        f"{pulsar_namespace}/{name}",
        initial=SEGMENTS,
        subscriptions=SUBSCRIPTIONS,
        policies=POLICIES,
        # Nobody sends anything, and what idles is merged after some minutes, down to this.
        autoScale={"minSegments": SEGMENTS},
    )


@dataclass(frozen=True, slots=True)
class TopicCalls:
    """The calls of one creation, from the manifest to the end of the first look at the topic.

    Args:
        calls: in the order in which they were sent.
        pulsar_namespace: of the topic that was recorded.
    """

    calls: Sequence[SeenCall]
    pulsar_namespace: str

    def __len__(self) -> int:
        return len(self.calls)

    async def send(self, session: aiohttp.ClientSession, admin_url: str, pulsar_namespace: str, name: str) -> None:
        """Send them for another topic, one after the other; whatever is answered is read to its end."""
        for call in self.calls:
            path, query, body = (
                text.replace(self.pulsar_namespace, pulsar_namespace).replace(_PATTERN, name)
                for text in (call.path, call.query, call.body)
            )
            url = URL(f"{admin_url}{path}{'?' if query else ''}{query}", encoded=True)
            headers = {"Content-Type": "application/json"} if body else {}
            async with session.request(call.method, url, data=body or None, headers=headers) as response:
                await response.read()
                # A policy that is read back may not be there yet.
                if response.status != call.status and response.status >= _REFUSED:
                    raise RuntimeError(f"{call.method} {path}: {response.status} instead of {call.status}")


async def recorded(on: Stage) -> TopicCalls:
    """Have an operator create a topic, and answer what it sent; `send_many` has a namespace from then on."""
    await on.view.create_namespace(_BARE_NAMESPACE)
    async with proxied_operator(on.pulsar, on.folder, _RECORDING_FLAGS) as bench:
        return await _recorded(bench)


async def _recorded(bench: ProxiedOperator) -> TopicCalls:
    """Others of its namespace were created before."""
    await bench.start()
    for name in (_FIRST, _PATTERN):
        await bench.admin.until_quiet(2.0)
        since = len(bench.admin.seen)
        await bench.world.apply(manifest(name, bench.world.pulsar_namespace))
        await bench.world.until_ready(name)
    await bench.admin.until_quiet(2.0)
    calls = [call for call in bench.admin.seen[since:] if call.path.startswith(_OF_TOPICS) and _FIRST not in call.path]
    await bench.world.kube.delete(TOPICS, bench.world.namespace, _PATTERN)
    return TopicCalls(calls, bench.world.pulsar_namespace)


async def send_many(calls: TopicCalls, access: PulsarAccess, prefix: str, counts: Sequence[int]) -> dict[int, float]:
    """Create topics by the bare loop; answers the seconds until so many were there.

    Args:
        calls: of one topic.
        access: the brokers that they were recorded on.
        prefix: of their names.
        counts: ascending; the last is how many are created.
    """
    numbers = iter(range(counts[-1]))
    done = 0
    seconds: dict[int, float] = {}
    headers = {"Authorization": f"Bearer {access.superuser_token}", "Accept-Encoding": "identity"}
    started = time.perf_counter()
    async with aiohttp.ClientSession(
        headers=headers, timeout=aiohttp.ClientTimeout(total=60), connector=aiohttp.TCPConnector(limit=SENDERS)
    ) as session:

        async def sender() -> None:
            nonlocal done
            for number in numbers:
                await calls.send(session, access.admin_url, _BARE_NAMESPACE, f"{prefix}-{number}")
                done += 1
                if done in counts:
                    seconds[done] = time.perf_counter() - started

        await asyncio.gather(*(sender() for _ in range(SENDERS)))
    return seconds


def beside_bare(title: str, bare: Sequence[float], operator: Sequence[float]) -> Group:
    """A table of topics a second: of the operator, beside those of the bare loop, which it is to come near to.

    Args:
        title: of the table.
        bare: of the bare loop's rounds; none where it was not run.
        operator: of the operator's.
    """
    ours = Measurement(OPERATOR, "topics/s", tuple(operator), Better.HIGHER, BESIDE_BARE if bare else None)
    if not bare:
        return Group(title, (ours,))
    peer = Measurement(_BARE, "topics/s", tuple(bare), Better.HIGHER)
    return Group(title, (peer, ours), reference=_BARE, is_peer=True)
