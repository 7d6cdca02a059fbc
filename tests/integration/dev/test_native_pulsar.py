"""A broker of Pulsar 5 beside the others: it has scalable topics of its own, and keeps them over a crash."""

import uuid
from collections.abc import Callable
from typing import Any

import pytest

from dev.access import PulsarAccess
from dev.brokers import NATIVE, broker_name
from dev.errors import DevError
from dev.instance import LocalCluster, Shape
from dev.pulsar_admin import PulsarAdmin

Factory = Callable[[Shape], LocalCluster]
NAME = broker_name(0, NATIVE)
SCALABLE = "scalable/tests/default"


def superuser(access: PulsarAccess | None) -> PulsarAdmin:
    assert access is not None
    return PulsarAdmin(access.admin_url, access.superuser_token)


def create_topic(admin: PulsarAdmin, segments: int) -> str:
    """Create a scalable topic under a name that nobody else has; answers its path."""
    topic = f"{SCALABLE}/t-{uuid.uuid4().hex[:10]}"
    answer = admin.ask("PUT", f"{topic}?numInitialSegments={segments}")
    assert answer.status == 204, answer
    return topic


def active_segments(admin: PulsarAdmin, topic: str) -> dict[str, Any]:
    """The active segments of a topic by id. Sealed ones may be pruned by the broker at any time."""
    layout = admin.ask("GET", topic).json()
    return {number: segment for number, segment in layout["segments"].items() if segment["active"]}


@pytest.mark.native
def test_scalable_topics_are_listed_where_they_are_native_and_unknown_to_the_others(
    pulsar: PulsarAccess, native_pulsar: PulsarAccess
) -> None:
    admin = superuser(native_pulsar)
    topic = create_topic(admin, 4)
    listed = admin.ask("GET", SCALABLE)
    assert listed.status == 200
    assert f"topic://{topic.removeprefix('scalable/')}" in listed.json()
    starts = [segment["hashRange"]["start"] for segment in active_segments(admin, topic).values()]
    assert sorted(starts) == [0x0000, 0x4000, 0x8000, 0xC000]
    assert admin.ask("DELETE", f"{topic}?force=true").status == 204
    if pulsar.admin_url != native_pulsar.admin_url:
        assert superuser(pulsar).ask("GET", SCALABLE).status == 404


@pytest.mark.native
def test_tokens_and_tenancy_are_those_of_the_other_brokers(pulsar: PulsarAccess, native_pulsar: PulsarAccess) -> None:
    assert native_pulsar.superuser_token == pulsar.superuser_token
    for token, status in ((native_pulsar.client_token, 401), (None, 401), (native_pulsar.namespace_admin_token, 200)):
        assert PulsarAdmin(native_pulsar.admin_url, token).ask("GET", "namespaces/team").status == status
    for namespace in ("team/apps", "tests/default"):
        permissions = f"namespaces/{namespace}/permissions"
        expected = superuser(pulsar).ask("GET", permissions).json()
        assert superuser(native_pulsar).ask("GET", permissions).json() == expected


def test_native_broker_keeps_layouts_and_ports_over_crash_and_restart(local_cluster: Factory) -> None:
    cluster = local_cluster(Shape(kubernetes=False, native=True))
    environment, pulsar = cluster.environment(), cluster.native_pulsar
    main = cluster.running()["broker-0"]
    topic = create_topic(superuser(cluster.native), 4)
    assert superuser(cluster.native).ask("POST", f"{topic}/split/0").status == 204
    segments = active_segments(superuser(cluster.native), topic)
    assert set(segments) == {"1", "2", "3", "4", "5"}

    pulsar.kill_broker(0)
    assert cluster.running() == {"broker-0": main}
    with pytest.raises(DevError, match="got no answer"):
        superuser(cluster.native).ask("GET", topic, timeout_seconds=2)
    pulsar.start_broker(0)
    assert active_segments(superuser(cluster.native), topic) == segments

    pulsar.restart()
    assert active_segments(superuser(cluster.native), topic) == segments
    assert cluster.environment() == environment
    assert cluster.running()["broker-0"] == main

    cluster.pulsar.stop()
    assert list(cluster.running()) == [NAME]
    with pytest.raises(DevError, match="no broker 1"):
        pulsar.kill_broker(1)


def test_instance_without_a_broker_of_pulsar_5_says_so(local_cluster: Factory) -> None:
    cluster = local_cluster(Shape(kubernetes=False, brokers=0))
    assert cluster.native is None
    with pytest.raises(DevError, match="has no broker of Pulsar 5"):
        cluster.native_pulsar  # noqa: B018
