"""What enforces NetworkPolicies on the node's pods: kube-router's firewall, by iptables and ipset."""

from pathlib import Path

from dev.errors import DevError
from dev.kubernetes import SERVICE_RANGE, Kubernetes
from dev.node.health import is_well
from dev.processes import ProcessTable

PROCESS = "policy-enforcer"
HEALTH_PORT = 20244
READY_TIMEOUT_SECONDS = 60
# Pods of a node share a bridge; what goes over it is filtered only where the kernel has this switch, and it is on.
BRIDGE_IS_FILTERED = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")


class PolicyEnforcer:
    """The enforcer as a process, with an administrator's rights. A pod of which it has not heard yet is free.

    Args:
        program: as `artifacts.policy_enforcer` makes it.
        node_name: whose pods are meant.
        kubernetes: the control plane.
        processes: where it is started.
    """

    def __init__(self, program: Path, node_name: str, kubernetes: Kubernetes, processes: ProcessTable) -> None:
        self._program = program
        self._node_name = node_name
        self._kubernetes = kubernetes
        self._processes = processes

    def start(self) -> None:
        """Start it unless it is running, and wait until it knows what there is. Within the network. Raises DevError."""
        _require_filtered_bridge()
        options = {
            "kubeconfig": str(self._kubernetes.kubeconfig),
            "hostname-override": self._node_name,
            "service-cluster-ip-range": SERVICE_RANGE,
            "health-port": str(HEALTH_PORT),
            # They are no part of the program, but it takes them for dead unless it is told.
            "run-router": "false",
            "run-service-proxy": "false",
        }
        arguments = [f"--{name}={value}" for name, value in options.items()]
        self._processes.start(PROCESS, [str(self._program), *arguments])
        self._processes.wait_until(PROCESS, lambda: is_well(HEALTH_PORT, "/healthz"), READY_TIMEOUT_SECONDS)


def _require_filtered_bridge() -> None:
    if not BRIDGE_IS_FILTERED.exists() or BRIDGE_IS_FILTERED.read_text().strip() != "1":
        raise DevError(
            "network policies cannot be enforced, as traffic between pods passes no filter: load the kernel module"
            f" br_netfilter (modprobe br_netfilter), and see that {BRIDGE_IS_FILTERED} is 1 in new networks"
        )
