"""The chart as a release, with the images of the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from dev.chart_values import CHART
from dev.e2e import Images
from scalable_topics_operator.cluster.lease_record import shard_lease_name
from scalable_topics_operator.cluster.shards import shard_of
from tests.e2e.kubectl import Manifest, helm, kubectl, read, read_all, run, until
from tests.support.manifests import merged

NAME = "scalable-topics"
NAMESPACE = "scalable-topics"
SELECTOR = "app.kubernetes.io/name=scalable-topics,app.kubernetes.io/component=operator"
GATEWAY_URL = f"http://{NAME}-gateway.{NAMESPACE}.svc:8081"
SHARDS = 4
# Another replica takes over what a dead one led after so long; the chart's default would only make the tests wait.
LEASE_SECONDS = 5
READY_SECONDS = 180

Values = dict[str, Any]


class Release:
    """The release of this chart in a cluster.

    Args:
        images: what its pods run.
        values: of the chart, besides.
    """

    def __init__(self, images: Images, values: Values) -> None:
        self._images = images
        self._values = values

    def install(self, chart: Path = CHART) -> str:
        """Install it and wait until all replicas are ready; answers what helm says."""
        said = self._helm("install", chart, "--create-namespace")
        self.await_leaders()
        return said

    def ensure_installed(self) -> None:
        """Install it unless it is, as it may not be after a test that failed."""
        if not self.pods():
            self.install()

    def upgrade(self, values: Values | None = None, chart: Path = CHART) -> str:
        """Upgrade it, with other values from now on where they are given, and wait as `install` does."""
        self._values = merged(self._values, values or {})
        said = self._helm("upgrade", chart)
        self.await_leaders()
        return said

    def uninstall(self) -> str:
        """Uninstall it, and wait until its pods are gone; answers what helm says."""
        said = helm("uninstall", NAME, "--namespace", NAMESPACE, "--wait", "--timeout", "3m")
        until(self.pods, lambda pods: pods == [], what="the pods are gone", within_seconds=90)
        return said

    def pods(self) -> list[str]:
        """Names of the operator's pods."""
        return [each["metadata"]["name"] for each in read_all("pods", NAMESPACE, SELECTOR)]

    def ready_pods(self) -> list[str]:
        """Names of those that are ready and not about to end."""
        return [
            each["metadata"]["name"]
            for each in read_all("pods", NAMESPACE, SELECTOR)
            if "deletionTimestamp" not in each["metadata"]
            and any(one["type"] == "Ready" and one["status"] == "True" for one in each["status"].get("conditions", []))
        ]

    def await_leaders(self) -> None:
        """Wait until every shard is led by a pod that is there."""

        def led_by() -> list[str]:
            leases = (read("lease", shard_lease_name(shard), NAMESPACE) for shard in range(SHARDS))
            return [str(lease["spec"].get("holderIdentity")) for lease in leases]

        def all_there(holders: list[str]) -> bool:
            pods = self.pods()
            return all(any(holder.startswith(pod) for pod in pods) for holder in holders)

        until(led_by, all_there, what="every shard has a leader", within_seconds=60)

    def leader_of(self, topic: str) -> str:
        """Name of the pod that leads `public/default/{topic}`."""
        lease = read("lease", shard_lease_name(shard_of(f"topic://public/default/{topic}", SHARDS)), NAMESPACE)
        holder = str(lease["spec"]["holderIdentity"])
        return next(pod for pod in self.pods() if holder.startswith(pod))

    def manifests(self) -> list[Manifest]:
        """The objects of the release as it is installed."""
        text = run("helm", "get", "manifest", NAME, "--namespace", NAMESPACE)
        return [document for document in yaml.safe_load_all(text) if document]

    def scale(self, replicas: int) -> None:
        """Have so many replicas, as `kubectl scale` does, and wait until they are ready."""
        kubectl("scale", "--namespace", NAMESPACE, f"deployment/{NAME}", f"--replicas={replicas}")
        until(
            lambda: (self.pods(), self.ready_pods()),
            lambda seen: len(seen[0]) == len(seen[1]) == replicas,
            what=f"{replicas} replicas are ready",
            within_seconds=READY_SECONDS,
        )
        self.await_leaders()

    def _helm(self, verb: str, chart: Path, *options: str) -> str:
        where = ["--namespace", NAMESPACE, "--wait", "--timeout", f"{READY_SECONDS}s", "--values", "-"]
        return helm(verb, NAME, str(chart), *where, *options, text=yaml.safe_dump(self._all_values()))

    def _all_values(self) -> Values:
        repository, _, tag = self._images.operator.rpartition(":")
        spark_repository, _, spark_tag = self._images.spark.rpartition(":")
        made: Values = {
            "image": {"repository": repository, "tag": tag},
            "operator": {"shards": SHARDS, "leaseSeconds": LEASE_SECONDS},
        }
        if spark_tag:
            made["loadPipeline"] = {"image": {"repository": spark_repository, "tag": spark_tag}}
        return merged(made, self._values)
