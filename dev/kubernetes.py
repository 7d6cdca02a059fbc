"""A Kubernetes control plane on loopback: etcd, the API server (RBAC on) and the controller manager."""

import base64
import http.client
import os
import ssl
from pathlib import Path

import yaml

from dev.access import KubernetesAccess
from dev.pki import Authority, KeyPair
from dev.ports import LOOPBACK
from dev.workspace import Workspace

PORT_NAMES = ("etcd-client", "etcd-peer", "kube-apiserver", "kube-controller-manager")
# Stopped wave after wave: whatever depends on something goes before it.
STOP_WAVES = (("kube-controller-manager",), ("kube-apiserver",), ("etcd",))
SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
READY_TIMEOUT_SECONDS = 90
REQUEST_TIMEOUT_SECONDS = 5
# The controllers that act on API objects alone; there are no nodes and no pods here.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "validatingadmissionpolicy-status-controller",
)


class Kubernetes:
    """The control plane of one instance. It keeps its data, certificates and ports over a restart.

    Args:
        name: of the instance; names the kubeconfig's context.
        programs: directory of the programs to run.
        workspace: has a port for each of `PORT_NAMES`.
    """

    def __init__(self, name: str, programs: Path, workspace: Workspace) -> None:
        self._name = name
        self._programs = programs
        self._directory = workspace.directory
        self._ports = workspace.ports
        self._reservations = workspace.reservations
        self._processes = workspace.processes
        self._authority = Authority(workspace.directory / "pki")

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://{LOOPBACK}:{self._ports['kube-apiserver']}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig file."""
        return self._directory / "kubeconfig"

    @property
    def access(self) -> KubernetesAccess:
        """How the API server is reached."""
        return KubernetesAccess(self.kubeconfig, self.url)

    @property
    def kubectl(self) -> Path:
        """The kubectl of the same version."""
        return self._programs / "kubectl"

    def start(self) -> None:
        """Start what is not running and wait until the API server and the controllers serve."""
        admin = self._create_credentials()
        self._start_etcd()
        self._start_apiserver()
        context = self._tls_context(admin)
        self._processes.wait_until("kube-apiserver", lambda: self._answers("/readyz", context), READY_TIMEOUT_SECONDS)
        self._start_controller_manager()
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._processes.wait_until(
            "kube-controller-manager", lambda: self._answers(account, context), READY_TIMEOUT_SECONDS
        )

    def stop(self) -> None:
        """Stop the servers, the dependent ones first. The data stays."""
        for wave in STOP_WAVES:
            self._processes.stop(*wave)

    def restart(self) -> None:
        """Stop and start on the same data and ports."""
        self.stop()
        self.start()

    def _create_credentials(self) -> KeyPair:
        self._authority.create()
        names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"]
        addresses = [LOOPBACK, SERVICE_ADDRESS]
        alternatives = ",".join([*(f"DNS:{name}" for name in names), *(f"IP:{each}" for each in addresses)])
        self._authority.server("kube-apiserver", alternatives)
        self._authority.signing_key("service-accounts")
        admin = self._authority.client("admin", "/O=system:masters/CN=admin")
        self._write_kubeconfig(self.kubeconfig, admin)
        controller_manager = "system:kube-controller-manager"
        pair = self._authority.client("kube-controller-manager", f"/CN={controller_manager}")
        self._write_kubeconfig(self._controller_manager_kubeconfig, pair)
        return admin

    @property
    def _controller_manager_kubeconfig(self) -> Path:
        return self._directory / "kube-controller-manager.kubeconfig"

    def _start_etcd(self) -> None:
        self._reservations.hand_over("etcd-client", "etcd-peer")
        peer = f"http://{LOOPBACK}:{self._ports['etcd-peer']}"
        options = {
            "name": "local",
            "data-dir": str(self._directory / "etcd"),
            "listen-client-urls": self._etcd_url,
            "advertise-client-urls": self._etcd_url,
            "listen-peer-urls": peer,
            "initial-advertise-peer-urls": peer,
            "initial-cluster": f"local={peer}",
            "unsafe-no-fsync": "true",
            "log-level": "warn",
        }
        self._start("etcd", options)

    def _start_apiserver(self) -> None:
        self._reservations.hand_over("kube-apiserver")
        pki = self._directory / "pki"
        options = {
            "etcd-servers": self._etcd_url,
            "bind-address": LOOPBACK,
            "advertise-address": LOOPBACK,
            "endpoint-reconciler-type": "none",
            "secure-port": str(self._ports["kube-apiserver"]),
            "tls-cert-file": str(pki / "kube-apiserver.crt"),
            "tls-private-key-file": str(pki / "kube-apiserver.key"),
            "client-ca-file": str(pki / "ca.crt"),
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": str(pki / "service-accounts.crt"),
            "service-account-signing-key-file": str(pki / "service-accounts.key"),
            "service-cluster-ip-range": SERVICE_RANGE,
            "authorization-mode": "RBAC",
            "profiling": "false",
        }
        self._start("kube-apiserver", options)

    def _start_controller_manager(self) -> None:
        self._reservations.hand_over("kube-controller-manager")
        pki = self._directory / "pki"
        options = {
            "kubeconfig": str(self._controller_manager_kubeconfig),
            "bind-address": LOOPBACK,
            "secure-port": str(self._ports["kube-controller-manager"]),
            "controllers": ",".join(CONTROLLERS),
            "use-service-account-credentials": "true",
            "service-account-private-key-file": str(pki / "service-accounts.key"),
            "root-ca-file": str(pki / "ca.crt"),
            "leader-elect": "false",
            "profiling": "false",
        }
        self._start("kube-controller-manager", options)

    def _start(self, program: str, options: dict[str, str]) -> None:
        arguments = [f"--{name}={value}" for name, value in options.items()]
        self._processes.start(program, [str(self._programs / program), *arguments])

    @property
    def _etcd_url(self) -> str:
        return f"http://{LOOPBACK}:{self._ports['etcd-client']}"

    def _write_kubeconfig(self, file: Path, user: KeyPair) -> None:
        name = f"scalable-topics-{self._name}"
        cluster = {
            "server": self.url,
            "certificate-authority-data": _base64(self._authority.pair.certificate),
        }
        credentials = {
            "client-certificate-data": _base64(user.certificate),
            "client-key-data": _base64(user.key),
        }
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": credentials}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
        }
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as handle:
            yaml.safe_dump(content, handle, sort_keys=False)

    def _tls_context(self, user: KeyPair) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self._authority.pair.certificate))
        context.load_cert_chain(user.certificate, user.key)
        return context

    def _answers(self, path: str, context: ssl.SSLContext) -> bool:
        port = self._ports["kube-apiserver"]
        timeout = REQUEST_TIMEOUT_SECONDS
        connection = http.client.HTTPSConnection(LOOPBACK, port, timeout=timeout, context=context)
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.client.OK
        except (http.client.HTTPException, OSError):
            return False
        finally:
            connection.close()


def _base64(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
