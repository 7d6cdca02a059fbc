"""What happens to every installation in time: nodes are drained, charts upgraded, replicas added and taken away."""

from __future__ import annotations

import subprocess

import pytest

from dev.e2e import Images
from tests.e2e.kubectl import apply, kubectl, read_all, until
from tests.e2e.release import NAMESPACE, READY_SECONDS, SELECTOR, Release
from tests.e2e.world import APPLICATIONS, Toolbox, active, await_ready, connection, layout, operate, operation, topic

pytestmark = [pytest.mark.whole, pytest.mark.timeout(1200)]

TOPIC = "lasting"


@pytest.fixture(autouse=True, scope="module")
def applied(release: Release) -> None:
    apply(connection(), topic(TOPIC, segments={"initial": 2}), namespace=APPLICATIONS)
    await_ready("scalabletopic", TOPIC)


def test_an_upgrade_to_another_image_replaces_every_replica_under_traffic(
    toolbox: Toolbox, release: Release, images: Images
) -> None:
    before, epoch = release.pods(), layout(TOPIC).epoch
    repository, _, tag = images.next_operator.rpartition(":")
    with toolbox.traffic(TOPIC):
        release.upgrade({"image": {"repository": repository, "tag": tag}})
        until(release.pods, lambda pods: not set(pods) & set(before), what="the pods before the upgrade are gone")
        operate(operation("after-upgrade", TOPIC, type="Split", split={"segment": 0}))
    running = {each["spec"]["containers"][0]["image"] for each in read_all("pods", NAMESPACE, SELECTOR)}
    assert running == {images.next_operator}
    assert layout(TOPIC).epoch == epoch + 1, "the upgrade itself has changed nothing"


def test_two_replicas_become_three_and_then_one(toolbox: Toolbox, release: Release) -> None:
    with toolbox.traffic(TOPIC):
        for replicas in (3, 1, 2):
            release.scale(replicas)
            operate(operation(f"at-{replicas}", TOPIC, type="Split", split={"segment": active(TOPIC)[0]}))


def test_a_drain_leaves_one_replica_until_there_is_another(toolbox: Toolbox, release: Release) -> None:
    before = release.pods()
    (node,) = {each["spec"]["nodeName"] for each in read_all("pods", NAMESPACE, SELECTOR)}
    options = (f"--pod-selector={SELECTOR}", "--delete-emptydir-data", "--ignore-daemonsets", "--timeout=240s")
    with toolbox.traffic(TOPIC):
        # The only node: what is evicted waits for it to be back, and the other replica may not go meanwhile.
        draining = subprocess.Popen(
            ["kubectl", "drain", node, *options], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        try:
            until(lambda: set(before) - set(release.pods()), lambda gone: len(gone) == 1, what="one replica is evicted")
            assert draining.stdout is not None
            said = ""
            while "violate the pod's disruption budget" not in said:
                line = draining.stdout.readline()
                assert line, said
                said += line
            assert len(release.ready_pods()) == 1
            operate(operation("while-drained", TOPIC, type="Split", split={"segment": active(TOPIC)[0]}))
        finally:
            kubectl("uncordon", node)
            rest, _ = draining.communicate(timeout=READY_SECONDS)
        assert draining.returncode == 0, said + rest
        until(release.ready_pods, lambda pods: len(pods) == 2, what="two replicas again", within_seconds=READY_SECONDS)
        assert not set(before) & set(release.pods())
