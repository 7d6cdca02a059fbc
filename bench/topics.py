"""Topics created a second: the operator over a real API server, beside a bare loop that asks the broker the same."""

import asyncio
import time
import uuid

from bench.measurement import Better, Group, Measured, Measurement
from bench.operator_process import operator_process
from bench.section import Run, Section, Servers
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

_TOPICS = 40
_SEGMENTS = 4
_SUBSCRIPTIONS = ("billing", "audit")
_CONCURRENT = 16
_BARE = "bare loop, same broker calls"
_OPERATOR = "operator, from objects to all Ready"
_PULSAR_NAMESPACE = "public/default"


async def _measure(run: Run) -> Measured:
    access = PulsarAccess.from_environment()
    count = run.size(_TOPICS, 4)
    profile = run.profile_to / "topics.prof" if run.profile_to is not None else None
    await asyncio.to_thread(install_crds)
    bare, operator = [], []
    async with KubeClient() as kube:
        namespace = await _namespace(kube, access)
        async with operator_process(_flags(namespace), profile=profile):
            # The first round warms the broker's caches and its policy topic, and waits for the operator.
            await _bare_round(access, 4)
            await _operator_round(kube, namespace, 4)
            for _ in range(run.rounds):
                bare.append(await _bare_round(access, count))
                operator.append(await _operator_round(kube, namespace, count))
    rows = (
        Measurement(_BARE, "topics/s", tuple(bare), Better.HIGHER),
        Measurement(_OPERATOR, "topics/s", tuple(operator), Better.HIGHER),
    )
    title = f"{count} topics at once, of {_SEGMENTS} segments and {len(_SUBSCRIPTIONS)} subscriptions"
    return Measured((Group(title, rows, reference=_BARE, is_peer=True),))


SECTION = Section(
    "topics",
    "Topics created",
    "Objects are created on a real API server, and an operator makes topics of them. Beside it a bare loop that sends "
    "the broker the same calls by the same admin client, without objects, journal and status: that is the most that "
    "any controller could do.",
    _measure,
    Servers.CLASSIC,
    {
        _OPERATOR: "Besides the same calls of the brokers the operator writes a finalizer, a journal and a status into "
        "each object, publishes the layout, and has to be told of each of its own writes by a watch.",
    },
)


async def _namespace(kube: KubeClient, access: PulsarAccess) -> str:
    """A new namespace with a connection."""
    namespace = f"bench-{uuid.uuid4().hex[:8]}"
    await kube.create(NAMESPACES, None, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    await kube.create(SECRETS, namespace, manifests.secret("pulsar-token", token=access.superuser_token))
    limits = {"maxConcurrentRequests": _CONCURRENT}
    await kube.create(CONNECTIONS, namespace, manifests.connection("pulsar", access.admin_url, limits=limits))
    return namespace


def _flags(namespace: str) -> list[str]:
    places = [f"--namespaces={namespace}", f"--operator-namespace={namespace}"]
    return [*places, "--bind-port=0", "--gateway-port=0", "--log-level=WARNING"]


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
