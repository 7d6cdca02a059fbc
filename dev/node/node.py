"""The one node of an instance: container runtime, kubelet, service addresses, names; maybe the spark-operator."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import yaml

from dev import prerequisites
from dev.access import NodeAccess
from dev.console import say
from dev.errors import DevError
from dev.images.base import local_base
from dev.images.engine import Engine
from dev.images.project import tree_image
from dev.kubernetes import CLUSTER_DOMAIN, Kubernetes
from dev.node.archive import Image
from dev.node.artifacts import node_programs, spark_operator
from dev.node.cgroups import ControlGroups
from dev.node.network import NODE_ADDRESS, Network
from dev.node.pause_image import pause_image
from dev.node.policy_enforcer import PROCESS as POLICY_ENFORCER
from dev.node.policy_enforcer import PolicyEnforcer
from dev.node.runtime import Runtime
from dev.node.spark_operator import PROCESS as SPARK_OPERATOR
from dev.node.spark_operator import SparkOperator
from dev.processes import ProcessTable

NODE_NAME = "node"
READY_TIMEOUT_SECONDS = 90
POD_RANGE = "10.244.0.0/16"
# Where kubelet links the logs of all pods, wherever they are told to be.
LOG_LINKS = Path("/var/log/containers")
# What acts on pods goes first; the container runtime last, as it has to remove them.
AGENTS = (SPARK_OPERATOR, POLICY_ENFORCER, "kube-scheduler", "kubelet", "kube-proxy", "coredns")

# Names of Services and pods, and of nothing else: there is no way out to ask for others.
CORE_FILE = """\
. {{
  bind {address}
  errors
  cache 5
  kubernetes {domain} in-addr.arpa {{
    kubeconfig {kubeconfig}
    pods insecure
  }}
}}
"""


@dataclass(frozen=True, slots=True)
class SparkArtifacts:
    """What runs SparkApplications.

    Attributes:
        operator: directory of the spark-operator.
        engine: has the image.
        pipeline_image: name of the image of the pipeline as it is in this tree.
    """

    operator: Path
    engine: Engine
    pipeline_image: str


@dataclass(frozen=True, slots=True)
class NodeArtifacts:
    """What a node is made of.

    Attributes:
        programs: directory of `NODE_PROGRAMS`.
        pause: the image that every pod needs.
        spark: what runs SparkApplications; None where nobody asks for that.
    """

    programs: Path
    pause: Image
    spark: SparkArtifacts | None

    @classmethod
    def made(cls, *, spark: bool) -> Self:
        """Build and fetch what is not in the cache."""
        prerequisites.node_tools()
        return cls(node_programs(), pause_image(), _spark_artifacts() if spark else None)


class Node:
    """The node of one instance. Its pods end when it stops; its images and folders stay until the data goes.

    Args:
        directory: of the instance.
        processes: where its servers are started.
    """

    def __init__(self, directory: Path, processes: ProcessTable) -> None:
        self._directory = directory / "node"
        self._processes = processes
        self.network = Network(directory)
        self._groups = ControlGroups(self.network.name)
        self._runtime = Runtime(self._directory / "containerd", processes)

    @property
    def access(self) -> NodeAccess:
        """What is to be known to run pods on it, once it is prepared."""
        image = self._pipeline_name.read_text() if self._pipeline_name.exists() else None
        return NodeAccess(image, self._shared, self.network.file)

    def prepare(self, artifacts: NodeArtifacts) -> None:
        """Start the container runtime, unless it is running, and give it its images. Within the network."""
        self._groups.create()
        self._shared.mkdir(parents=True, exist_ok=True)
        # Pods run as users of their own.
        self._shared.chmod(0o777)
        # Whoever stops it may have another tree, of which other programs and another image would be made.
        self._programs.unlink(missing_ok=True)
        self._programs.symlink_to(artifacts.programs)
        self._runtime.start()
        self._runtime.load(artifacts.pause.name, artifacts.pause.write)
        if artifacts.spark:
            self.load(artifacts.spark.engine, artifacts.spark.pipeline_image)
            self._pipeline_name.write_text(artifacts.spark.pipeline_image)

    def load(self, engine: Engine, image: str) -> None:
        """Have an image of Docker's or podman's for pods, unless it is there already. Raises DevError."""
        self._runtime.load(image, lambda stream: engine.save(image, stream))

    def join(self, kubernetes: Kubernetes, artifacts: NodeArtifacts) -> None:
        """Make it a node of a running control plane, and start what else pods need. Within the network."""
        self._start_scheduler(kubernetes)
        self._start_names(kubernetes)
        self._start_kubelet(kubernetes)
        self._start_proxy(kubernetes)
        self._processes.wait_until("kubelet", lambda: _is_ready(kubernetes), READY_TIMEOUT_SECONDS)
        if artifacts.spark:
            SparkOperator(artifacts.spark.operator, kubernetes, self._processes).start()

    def enforce_policies(self, program: Path, kubernetes: Kubernetes) -> None:
        """Have NetworkPolicies enforced on its pods from now on. Within the network. Raises DevError.

        Args:
            program: as `artifacts.policy_enforcer` makes it.
            kubernetes: the control plane.
        """
        PolicyEnforcer(program, NODE_NAME, kubernetes, self._processes).start()

    def stop(self) -> None:
        """Stop it: no pod, process, mount or control group is left. Harmless when it is not running."""
        self._processes.stop(*AGENTS)
        if self._runtime.is_running:
            try:
                self._runtime.remove_pods(self._programs / "remove-pods")
            except DevError as error:
                say(f"{error}; what is left of them is ended by its control group")
        self._runtime.stop()
        self._groups.remove()
        self._runtime.unmount(self._directory)
        for link in LOG_LINKS.glob("*"):
            if link.is_symlink() and link.readlink().is_relative_to(self._directory):
                link.unlink()

    def _start_scheduler(self, kubernetes: Kubernetes) -> None:
        kubeconfig = str(kubernetes.kubeconfig_of("kube-scheduler", "/CN=system:kube-scheduler"))
        options = {
            "kubeconfig": kubeconfig,
            "authentication-kubeconfig": kubeconfig,
            "authorization-kubeconfig": kubeconfig,
            "bind-address": NODE_ADDRESS,
            "leader-elect": "false",
        }
        self._start("kube-scheduler", options)

    def _start_names(self, kubernetes: Kubernetes) -> None:
        file = self._directory / "Corefile"
        file.write_text(CORE_FILE.format(address=NODE_ADDRESS, domain=CLUSTER_DOMAIN, kubeconfig=kubernetes.kubeconfig))
        self._processes.start("coredns", [str(self._programs / "coredns"), "-conf", str(file)])

    def _start_kubelet(self, kubernetes: Kubernetes) -> None:
        subject = f"/O=system:nodes/CN=system:node:{NODE_NAME}"
        file = self._directory / "kubelet.yaml"
        file.write_text(yaml.safe_dump(self._kubelet_settings(kubernetes)))
        options = {
            "config": str(file),
            "kubeconfig": str(kubernetes.kubeconfig_of("kubelet", subject)),
            "hostname-override": NODE_NAME,
            "node-ip": NODE_ADDRESS,
            "root-dir": str(self._directory / "kubelet"),
            "cert-dir": str(self._directory / "kubelet-certificates"),
        }
        self._start("kubelet", options)

    def _kubelet_settings(self, kubernetes: Kubernetes) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "containerRuntimeEndpoint": self._runtime.endpoint,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self._groups.path,
            # Machines with control groups of version 1 serve as well.
            "failCgroupV1": False,
            # Lowering it takes a right that root lacks in some virtual machines.
            "oomScoreAdj": 0,
            "failSwapOn": False,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(kubernetes.authority_certificate)},
            },
            "authorization": {"mode": "Webhook"},
            "clusterDomain": CLUSTER_DOMAIN,
            "clusterDNS": [NODE_ADDRESS],
            "resolvConf": "",
            "podLogsDir": str(self._directory / "pod-logs"),
            "volumePluginDir": str(self._directory / "volume-plugins"),
            # A machine for development is often full, and its images must not be thrown away: there is no registry.
            "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "100Mi"},
            "imageGCHighThresholdPercent": 100,
            "enforceNodeAllocatable": ["pods"],
            "nodeStatusUpdateFrequency": "5s",
        }

    def _start_proxy(self, kubernetes: Kubernetes) -> None:
        options = {
            "kubeconfig": str(kubernetes.kubeconfig_of("kube-proxy", "/CN=system:kube-proxy")),
            "hostname-override": NODE_NAME,
            "proxy-mode": "nftables",
            "cluster-cidr": POD_RANGE,
            "oom-score-adj": "0",
            # The kernel's connection tracking is set up for the whole machine, and not from within a network.
            "conntrack-max-per-core": "0",
            "conntrack-tcp-timeout-established": "0s",
            "conntrack-tcp-timeout-close-wait": "0s",
        }
        self._start("kube-proxy", options)

    def _start(self, program: str, options: dict[str, str]) -> None:
        arguments = [f"--{name}={value}" for name, value in options.items()]
        self._processes.start(program, [str(self._programs / program), *arguments])

    @property
    def _programs(self) -> Path:
        return self._directory / "programs"

    @property
    def _pipeline_name(self) -> Path:
        return self._directory / "pipeline-image"

    @property
    def _shared(self) -> Path:
        return self._directory / "shared"


def _spark_artifacts() -> SparkArtifacts:
    engine = Engine.found()
    return SparkArtifacts(spark_operator(), engine, tree_image(engine, "spark", local_base(engine)))


def _is_ready(kubernetes: Kubernetes) -> bool:
    node = kubernetes.read(f"/api/v1/nodes/{NODE_NAME}")
    conditions = node["status"].get("conditions", []) if node else []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
