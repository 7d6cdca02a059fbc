"""Stream consumers in a pod, through the gateway's Service, over a split and the death of the leader (R7, R21)."""

from __future__ import annotations

import json
import subprocess

import pytest

from dev import pulsar_pod
from tests.e2e.kubectl import apply, kubectl, read, read_all, until
from tests.e2e.pods.ordered_reading import STARTED
from tests.e2e.release import GATEWAY_URL, NAMESPACE, Release
from tests.e2e.world import (
    APPLICATIONS,
    DRAIN_SECONDS,
    TOOLBOX,
    Toolbox,
    await_operation,
    await_ready,
    connection,
    operation,
    topic,
)

pytestmark = pytest.mark.timeout(600)

TOPIC, SUBSCRIPTION = "ordered", "ledger"
_MESSAGES = 1000
# Less than a grace period: they were not only lost.
_LEFT_SECONDS = 20


def test_stream_consumers_keep_the_order_over_a_split_and_the_death_of_the_leader(
    release: Release, toolbox: Toolbox
) -> None:
    apply(connection(), topic(TOPIC, segments={"initial": 2}), namespace=APPLICATIONS)
    await_ready("scalabletopic", TOPIC)
    arguments = [pulsar_pod.SERVICE_URL, GATEWAY_URL, f"topic://public/default/{TOPIC}", SUBSCRIPTION, str(_MESSAGES)]
    command = ["python3", "-m", "tests.e2e.pods.ordered_reading", *arguments]
    with subprocess.Popen(
        ["kubectl", "exec", "--namespace", APPLICATIONS, TOOLBOX, "--", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as reading:
        try:
            assert reading.stdout is not None
            assert reading.stdout.readline().strip() == STARTED, reading.communicate(timeout=DRAIN_SECONDS)
            apply(operation("split-ordered", TOPIC, type="Split", split={"segment": 0}), namespace=APPLICATIONS)
            await_operation("split-ordered")
            leader = release.leader_of(TOPIC)
            kubectl("delete", "pod", leader, "--namespace", NAMESPACE, "--grace-period=0", "--force")
            output, errors = reading.communicate(timeout=DRAIN_SECONDS)
        finally:
            reading.kill()
    assert reading.returncode == 0, errors
    assert json.loads(output.splitlines()[-1]) == {"lost": 0, "disordered": 0, "consumers": 2}
    (name,) = [
        one["metadata"]["name"]
        for one in read_all("stsub", APPLICATIONS)
        if one["spec"]["subscription"] == SUBSCRIPTION
    ]
    # Consumers are told that they have left before that is recorded, with what happens within the same second.
    until(
        lambda: read("stsub", name, APPLICATIONS)["status"],
        lambda status: status["phase"] == "Active" and "consumers" not in status,
        what="both consumers have left",
        within_seconds=_LEFT_SECONDS,
    )
    assert read("scalabletopic", TOPIC, APPLICATIONS)["status"]["segments"]["active"] == 3
