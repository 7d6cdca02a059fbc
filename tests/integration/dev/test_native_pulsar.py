"""A broker of Pulsar 5 beside the others: it has scalable topics of its own, and keeps them over a crash."""

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dev.access import ADMIN_URL, KUBECONFIG, NATIVE_ADMIN_URL, PulsarAccess
from dev.broker_settings import PulsarLine
from dev.brokers import NATIVE, broker_name
from dev.errors import DevError
from dev.instance import LocalCluster, Shape
from dev.pulsar_admin import PulsarAdmin

pytestmark = pytest.mark.native
Factory = Callable[[Shape], LocalCluster]
REPOSITORY = Path(__file__).parents[3]
# A dead broker's topics are unserved for a ZooKeeper session of 30 s.
TAKE_OVER_SECONDS = 90
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


def controller_of(admin: PulsarAdmin, topic: str) -> str:
    """Address of the broker that decides on a topic's layout."""
    answer = admin.ask("GET", f"{topic}/stats")
    if answer.location is not None:
        return answer.location.removeprefix("http://").partition("/")[0]
    return str(answer.json()["controllerBroker"])


def active_segments(admin: PulsarAdmin, topic: str) -> dict[str, Any]:
    """The active segments of a topic by id. Sealed ones may be pruned by the broker at any time."""
    layout = admin.ask("GET", topic).json()
    return {number: segment for number, segment in layout["segments"].items() if segment["active"]}


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
    if pulsar != native_pulsar:
        assert superuser(pulsar).ask("GET", SCALABLE).status == 404


def test_tokens_and_tenancy_are_those_of_the_other_brokers(pulsar: PulsarAccess, native_pulsar: PulsarAccess) -> None:
    assert native_pulsar.superuser_token == pulsar.superuser_token
    for token, status in ((native_pulsar.client_token, 401), (None, 401), (native_pulsar.namespace_admin_token, 200)):
        assert PulsarAdmin(native_pulsar.admin_url, token).ask("GET", "namespaces/team").status == status
    for namespace in ("team/apps", "tests/default"):
        allowed = superuser(native_pulsar).ask("GET", f"namespaces/{namespace}/permissions").json()
        assert {role: set(actions) for role, actions in allowed.items()} == {"client": {"produce", "consume"}}


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


@pytest.mark.slow
def test_two_brokers_of_pulsar_5_share_scalable_topics_and_outlive_each_other(local_cluster: Factory) -> None:
    cluster = local_cluster(Shape(kubernetes=False, brokers=2, pulsar=PulsarLine.FIVE))
    access = cluster.pulsar.access
    assert cluster.native == access
    admins = [PulsarAdmin(url, access.superuser_token) for url in access.broker_admin_urls]
    for admin in admins:
        assert sorted(admin.ask("GET", "brokers/local").json()) == sorted(
            url.removeprefix("http://") for url in access.broker_admin_urls
        )
    topic = create_topic(admins[0], 2)
    segments = active_segments(admins[0], topic)
    assert active_segments(admins[1], topic) == segments
    controller = access.broker_admin_urls.index(f"http://{controller_of(admins[0], topic)}")
    cluster.pulsar.kill_broker(controller)
    survivor = admins[1 - controller]
    assert active_segments(survivor, topic) == segments
    deadline = time.monotonic() + TAKE_OVER_SECONDS
    while (answer := survivor.ask("POST", f"{topic}/split/0")).status != 204:
        assert time.monotonic() < deadline, answer
        time.sleep(1)
    assert set(active_segments(survivor, topic)) == {"1", "2", "3"}
    cluster.pulsar.start_broker(controller)
    assert set(active_segments(admins[controller], topic)) == {"1", "2", "3"}


def test_marked_test_fails_in_a_cluster_without_a_broker_of_pulsar_5() -> None:
    kept = {name: value for name, value in os.environ.items() if name != NATIVE_ADMIN_URL}
    environment = kept | {KUBECONFIG: "/somewhere/config", ADMIN_URL: "http://brokers.example:8080"}
    marked = f"{Path(__file__).relative_to(REPOSITORY)}::test_instance_without_a_broker_of_pulsar_5_says_so"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", marked]
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1, done.stdout
    assert "the cluster has no broker of Pulsar 5" in done.stdout
    assert "skipped" not in done.stdout


def test_instance_without_a_broker_of_pulsar_5_says_so(local_cluster: Factory) -> None:
    cluster = local_cluster(Shape(kubernetes=False, brokers=0))
    assert cluster.native is None
    with pytest.raises(DevError, match="has no broker of Pulsar 5"):
        cluster.native_pulsar  # noqa: B018
