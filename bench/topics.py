"""Topics created a second: the operator over a real API server, beside a bare loop that asks the broker the same."""

import asyncio
import os
import sys
import time
import uuid

from bench.measuring import Rate, table
from dev.access import PulsarAccess
from scalable_topics.layout import TopicName, planned_initial
from scalable_topics_operator.backends.admin.credentials import Credentials, FixedCredentials, Token
from scalable_topics_operator.backends.admin.http import AdminHttp, HttpSettings
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.classic.backend import ClassicBackend
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.resources import CONNECTIONS, NAMESPACES, SECRETS, TOPICS
from scalable_topics_operator.operations.protocols import Claim, SegmentRecord, SegmentSetup
from tests.support import manifests
from tests.support.crds import install_crds
from tests.support.world import is_ready

_SEGMENTS = 4
_SUBSCRIPTIONS = ("billing", "audit")
_CONCURRENT = 16
_PULSAR_NAMESPACE = "public/default"


async def report(count: int, rounds: int) -> str:
    """Create `count` topics of 4 segments and 2 subscriptions in each round, both ways in turn."""
    access = PulsarAccess.from_environment()
    await asyncio.to_thread(install_crds)
    bare, operator = [], []
    async with KubeClient() as kube, _OperatorUnderTest(kube, access) as namespace:
        await _bare_round(access, 4)  # warms the broker's caches and its policy topic
        for _ in range(rounds):
            bare.append(await _bare_round(access, count))
            operator.append(await _operator_round(kube, namespace, count))
    rates = [Rate("bare loop, same broker calls", tuple(bare)), Rate("operator", tuple(operator))]
    return table(f"Topics created ({_SEGMENTS} segments, {len(_SUBSCRIPTIONS)} subscriptions)", "topics/s", rates)


async def _bare_round(access: PulsarAccess, count: int) -> float:
    source = FixedCredentials(Credentials(Token(access.superuser_token)))
    settings = HttpSettings(access.admin_url, max_concurrent_requests=_CONCURRENT)
    async with PulsarAdmin(AdminHttp(settings, source)) as admin:
        backend = ClassicBackend(admin)
        started = time.perf_counter()
        names = [TopicName.parse(f"{_PULSAR_NAMESPACE}/bare-{uuid.uuid4().hex[:10]}") for _ in range(count)]
        await asyncio.gather(*(_create(backend, name) for name in names))
        return count / (time.perf_counter() - started)


async def _create(backend: ClassicBackend, name: TopicName) -> None:
    claim = Claim("bench", "bench", uuid.uuid4().hex, "bench", name.local, backend.kind)
    await backend.read_name(name)
    await backend.take_claim(name, claim)
    children = planned_initial(_SEGMENTS)
    await asyncio.gather(
        *(
            backend.create_segment(
                name,
                SegmentRecord(
                    segment_id=child.segment_id,
                    hash_range=child.hash_range,
                    parent_ids=(),
                    buckets=child.buckets,
                    merge_depth=0,
                    created_at_epoch=0,
                    created_at_ms=0,
                    created_by="Create",
                    operation_id=claim.resource_uid,
                    sibling_ids=tuple(other.segment_id for other in children),
                    next_segment_id=len(children),
                    claim=claim,
                ),
                SegmentSetup(subscriptions=frozenset(_SUBSCRIPTIONS)),
            )
            for child in children
        )
    )


async def _operator_round(kube: KubeClient, namespace: str, count: int) -> float:
    prefix = f"t-{uuid.uuid4().hex[:8]}"
    started = time.perf_counter()
    for index in range(count):
        name = f"{prefix}-{index}"
        manifest = manifests.topic(name, f"{_PULSAR_NAMESPACE}/{name}", initial=_SEGMENTS, subscriptions=_SUBSCRIPTIONS)
        await kube.create(TOPICS, namespace, manifest)
    while True:
        bodies = await kube.list_all(TOPICS, namespace)
        mine = [body for body in bodies if body["metadata"]["name"].startswith(prefix)]
        if all(is_ready(body) for body in mine):
            return count / (time.perf_counter() - started)
        await asyncio.sleep(0.1)


class _OperatorUnderTest:
    """An operator process with a namespace and a connection."""

    def __init__(self, kube: KubeClient, access: PulsarAccess) -> None:
        self._kube = kube
        self._access = access
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> str:
        namespace = f"bench-{uuid.uuid4().hex[:8]}"
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        await self._kube.create(NAMESPACES, None, body)
        await self._kube.create(
            SECRETS, namespace, manifests.secret("pulsar-token", token=self._access.superuser_token)
        )
        await self._kube.create(
            CONNECTIONS,
            namespace,
            manifests.connection("pulsar", self._access.admin_url, limits={"maxConcurrentRequests": _CONCURRENT}),
        )
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "scalable_topics_operator",
            f"--namespaces={namespace}",
            f"--operator-namespace={namespace}",
            "--bind-port=0",
            "--gateway-port=0",
            "--log-level=WARNING",
            env=dict(os.environ),
        )
        return namespace

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            await self._process.wait()
