"""The kubeflow spark-operator beside a control plane: it makes driver pods of SparkApplications, in all namespaces."""

import importlib.util
import subprocess
from pathlib import Path

from dev import prerequisites
from dev.errors import DevError
from dev.kubernetes import Kubernetes
from dev.node.health import is_well
from dev.node.network import NODE_ADDRESS
from dev.pki import RSA_KEY
from dev.processes import ProcessTable

PROCESS = "spark-operator"
HEALTH_PORT = 8081
READY_TIMEOUT_SECONDS = 60
COMMAND_TIMEOUT_SECONDS = 60


class SparkOperator:
    """The operator as a process, with an administrator's rights and without its admission webhook.

    Args:
        directory: of the program and its custom resource definitions.
        kubernetes: the control plane.
        processes: where it is started.
    """

    def __init__(self, directory: Path, kubernetes: Kubernetes, processes: ProcessTable) -> None:
        self._directory = directory
        self._kubernetes = kubernetes
        self._processes = processes

    def start(self) -> None:
        """Start it unless it is running, and wait until it is ready. Within the network."""
        self._define()
        java = prerequisites.java()
        environment = {
            "KUBECONFIG": str(self._kubernetes.kubeconfig_of(PROCESS, f"/O=system:masters/CN={PROCESS}", RSA_KEY)),
            # It hands applications to spark-submit as if it were in a pod.
            "KUBERNETES_SERVICE_HOST": NODE_ADDRESS,
            "KUBERNETES_SERVICE_PORT": str(self._kubernetes.port),
            "SPARK_HOME": str(spark_home()),
            "JAVA_HOME": str(java.executable.resolve().parents[1]),
        }
        command = [
            *(str(self._directory / "spark-operator"), "controller", "start", "--namespaces="),
            f"--health-probe-bind-address={NODE_ADDRESS}:{HEALTH_PORT}",
        ]
        self._processes.start(PROCESS, command, environment)
        self._processes.wait_until(PROCESS, lambda: is_well(HEALTH_PORT, "/readyz"), READY_TIMEOUT_SECONDS)

    def _define(self) -> None:
        # Without its definitions it ends at once.
        options = ["--kubeconfig", str(self._kubernetes.kubeconfig), "--filename", str(self._directory / "crds")]
        kubectl = str(self._kubernetes.kubectl)
        for command in (
            [kubectl, "apply", "--server-side", "--force-conflicts", *options],
            [kubectl, "wait", "--for=condition=Established", f"--timeout={COMMAND_TIMEOUT_SECONDS}s", *options],
        ):
            timeout = 2 * COMMAND_TIMEOUT_SECONDS
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
            if done.returncode != 0:
                raise DevError(f"the spark-operator's kinds could not be defined: {done.stderr.strip()}")


def spark_home() -> Path:
    """Return the Spark of this Python, which is the one in the image: both are what `uv.lock` says."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise DevError("pyspark is needed to submit Spark applications: install the package with its extra `spark`")
    return Path(found.origin).parent
