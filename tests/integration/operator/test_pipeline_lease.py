"""One pipeline a connection, by a Lease on the real API server (R34)."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.lease_record import LEASES
from scalable_topics_operator.cluster.pipeline_lease import (
    HELD_SECONDS,
    LEASE_SECONDS,
    PipelineLease,
    pipeline_lease_name,
)
from scalable_topics_operator.cluster.resources import CONNECTIONS
from tests.support import manifests
from tests.support.world_making import create_namespace, random_name


@dataclass(slots=True)
class Replica:
    """A replica with a clock of its own."""

    kube: KubeClient
    connection: Body
    name: str
    seconds: float = 0.0
    lease: PipelineLease = field(init=False)

    def __post_init__(self) -> None:
        self.lease = PipelineLease(self.kube, self.connection, self.name, lambda: self.seconds)


@pytest.fixture
async def connection(kube: KubeClient) -> Body:
    namespace = random_name("lease")
    await create_namespace(kube, namespace)
    return await kube.create(CONNECTIONS, namespace, manifests.connection("pulsar", "http://localhost:1"))


@pytest.fixture
async def two(kube: KubeClient, connection: Body) -> tuple[Replica, Replica]:
    return Replica(kube, connection, "one"), Replica(kube, connection, "two")


async def _holder(kube: KubeClient, connection: Body) -> str:
    metadata = connection["metadata"]
    lease = await kube.get(LEASES, metadata["namespace"], pipeline_lease_name(metadata["uid"]))
    assert lease["metadata"]["ownerReferences"][0]["uid"] == metadata["uid"], "it goes with the connection"
    return str(lease["spec"].get("holderIdentity") or "")


async def test_one_holds_it_and_others_wait_until_it_has_run_out_by_their_own_clocks(
    kube: KubeClient, connection: Body, two: tuple[Replica, Replica]
) -> None:
    one, other = two
    assert await one.lease.hold()
    assert not await other.lease.hold()
    other.seconds = LEASE_SECONDS - 1
    assert not await other.lease.hold()
    # A renewal counts from when it is seen.
    one.seconds = HELD_SECONDS - 1
    assert await one.lease.hold()
    other.seconds = LEASE_SECONDS + 1
    assert not await other.lease.hold()
    other.seconds = 2 * LEASE_SECONDS + 1
    assert await other.lease.hold()
    assert await _holder(kube, connection) == "two"
    one.seconds += HELD_SECONDS
    assert not one.lease.is_held, "it has stopped long before"
    assert not await one.lease.hold()


async def test_one_that_is_released_is_free_at_once(
    kube: KubeClient, connection: Body, two: tuple[Replica, Replica]
) -> None:
    one, other = two
    assert await one.lease.hold()
    await one.lease.release()
    assert not one.lease.is_held
    assert await _holder(kube, connection) == ""
    assert await other.lease.hold()
    await one.lease.release()
    assert await _holder(kube, connection) == "two", "what is another's is not released"


async def test_one_that_was_deleted_is_taken_by_its_holder_alone_at_first(
    kube: KubeClient, connection: Body, two: tuple[Replica, Replica]
) -> None:
    one, other = two
    assert await one.lease.hold()
    assert not await other.lease.hold()
    metadata = connection["metadata"]
    await kube.delete(LEASES, metadata["namespace"], pipeline_lease_name(metadata["uid"]))
    other.seconds = 1.0
    assert not await other.lease.hold()
    one.seconds = HELD_SECONDS
    assert await one.lease.hold()
    assert await _holder(kube, connection) == "one"


async def test_a_renewal_that_others_have_overtaken_ends_it_at_once(two: tuple[Replica, Replica]) -> None:
    one, other = two
    assert await one.lease.hold()
    assert not await other.lease.hold()
    other.seconds = LEASE_SECONDS
    assert await other.lease.hold()
    one.seconds = HELD_SECONDS / 2
    assert one.lease.is_held
    assert not await one.lease.hold()
    assert not one.lease.is_held
