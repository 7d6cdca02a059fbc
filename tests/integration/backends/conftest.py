import uuid
from collections.abc import AsyncIterator, Iterator

import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import HashRange, TopicName, classic_segment_name
from scalable_topics_operator.backends.admin import PulsarAdmin
from scalable_topics_operator.backends.classic import ClassicBackend
from scalable_topics_operator.operations.protocols import Claim, SegmentRecord

from .plain_http import Clients, PlainHttp, admin_for


@pytest.fixture
def plain(pulsar: PulsarAccess) -> PlainHttp:
    """A superuser who uses none of our code."""
    return PlainHttp(pulsar.admin_url, pulsar.superuser_token)


@pytest.fixture
async def namespace(plain: PlainHttp) -> str:
    """A Pulsar namespace of this test alone, in the tenant of the namespace administrator."""
    name = f"team/b{uuid.uuid4().hex[:12]}"
    await plain.do("PUT", f"namespaces/{name}")
    return name


@pytest.fixture
def topic(namespace: str) -> TopicName:
    """A name for a scalable topic."""
    tenant, _, local = namespace.partition("/")
    return TopicName(tenant, local, "orders")


@pytest.fixture
async def admin(pulsar: PulsarAccess) -> AsyncIterator[PulsarAdmin]:
    """The client under test, as superuser."""
    async with admin_for(pulsar, pulsar.superuser_token) as client:
        yield client


@pytest.fixture
def backend(admin: PulsarAdmin) -> ClassicBackend:
    """The backend under test, as superuser."""
    return ClassicBackend(admin)


@pytest.fixture
def clients(pulsar: PulsarAccess) -> Iterator[Clients]:
    """Producers and consumers."""
    found = Clients(pulsar.service_url, pulsar.superuser_token)
    yield found
    found.close()


CLAIM = Claim("installation", "kubernetes-uid", "resource-uid", "shop", "orders", "Classic")


def record(segment_id: int = 0, operation_id: str = "create-1") -> SegmentRecord:
    """A record of the first segment of a topic."""
    return SegmentRecord(
        segment_id=segment_id,
        hash_range=HashRange.full(),
        parent_ids=(),
        buckets=4,
        merge_depth=0,
        created_at_epoch=0,
        created_at_ms=1_795_812_431_992,
        created_by="Create",
        operation_id=operation_id,
        sibling_ids=(segment_id,),
        next_segment_id=segment_id + 1,
        claim=CLAIM,
    )


def segment_name(topic: TopicName, segment_id: int = 0) -> str:
    """Name of a segment made from `record`."""
    return classic_segment_name(topic, HashRange.full(), segment_id)
