"""A Kubernetes control plane: etcd, the API server (RBAC on) and the controller manager."""

import base64
import http.client
import json
import os
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from dev.access import KubernetesAccess
from dev.pki import EC_KEY, Authority, KeyPair
from dev.ports import LOOPBACK
from dev.workspace import Workspace

PORT_NAMES = ("etcd-client", "etcd-peer", "kube-apiserver", "kube-controller-manager")
# Stopped wave after wave: whatever depends on something goes before it.
STOP_WAVES = (("kube-controller-manager",), ("kube-apiserver",), ("etcd",))
CLUSTER_DOMAIN = "cluster.local"
SERVICE_RANGE = "10.96.0.0/16"
SERVICE_ADDRESS = "10.96.0.1"
READY_TIMEOUT_SECONDS = 90
REQUEST_TIMEOUT_SECONDS = 5
# The ordinary 15 s would only make people wait here.
HPA_PERIOD = "2s"
# The controllers that act on API objects alone, where there are no nodes and no pods.
CONTROLLERS = (
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "horizontal-pod-autoscaler-controller",
    "namespace-controller",
    "root-ca-certificate-publisher-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
    "validatingadmissionpolicy-status-controller",
)

# Who asked for what, of pods alone: from this the rights that a program really uses are read.
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    userGroups: ["system:serviceaccounts:kube-system"]
  - level: Metadata
    userGroups: ["system:serviceaccounts"]
  - level: None
"""

# Nobody looks for the API server behind its Service.
NO_NODE_OPTIONS = {"authorization-mode": "RBAC", "endpoint-reconciler-type": "none"}


class Kubernetes:
    """The control plane of one instance. It keeps its data, certificates and ports over a restart.

    Args:
        name: of the instance; names the kubeconfig's context.
        programs: directory of the programs to run.
        workspace: has a port for each of `PORT_NAMES`.
        node_address: where the API server serves if a node is to join: pods must reach it. Else it is on loopback.
    """

    def __init__(self, name: str, programs: Path, workspace: Workspace, node_address: str | None = None) -> None:
        self._name = name
        self._programs = programs
        self._directory = workspace.directory
        self._ports = workspace.ports
        self._reservations = workspace.reservations
        self._processes = workspace.processes
        self._has_node = node_address is not None
        self._address = node_address or LOOPBACK
        self._authority = Authority(workspace.directory / "pki")

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://{self._address}:{self.port}"

    @property
    def port(self) -> int:
        """The port of the API server."""
        return self._ports["kube-apiserver"]

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig file."""
        return self._directory / "kubeconfig"

    @property
    def authority_certificate(self) -> Path:
        """The certificate of the authority that signs for servers and users."""
        return self._authority.pair.certificate

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
        self._create_credentials()
        self._start_etcd()
        self._start_apiserver()
        self._processes.wait_until("kube-apiserver", lambda: self._answers("/readyz"), READY_TIMEOUT_SECONDS)
        self._start_controller_manager()
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._processes.wait_until("kube-controller-manager", lambda: self._answers(account), READY_TIMEOUT_SECONDS)

    def kubeconfig_of(self, name: str, subject: str, key: Sequence[str] = EC_KEY) -> Path:
        """Return a kubeconfig file for a subject such as `/CN=system:kube-scheduler`, made under a name."""
        file = self._directory / f"{name}.kubeconfig"
        self._write_kubeconfig(file, self._authority.client(name, subject, key))
        return file

    def read(self, path: str) -> dict[str, Any] | None:
        """Return what the API server says of a path to an administrator, or None if it is not there or not heard."""
        status, body = self._get(path)
        return json.loads(body) if status == http.client.OK else None

    def stop(self) -> None:
        """Stop the servers, the dependent ones first. The data stays."""
        for wave in STOP_WAVES:
            self._processes.stop(*wave)

    def restart(self) -> None:
        """Stop and start on the same data and ports."""
        self.stop()
        self.start()

    def _create_credentials(self) -> None:
        self._authority.create()
        service = "kubernetes.default.svc"
        names = ["localhost", "kubernetes", "kubernetes.default", service, f"{service}.{CLUSTER_DOMAIN}"]
        addresses = [LOOPBACK, self._address, SERVICE_ADDRESS]
        alternatives = ",".join([*(f"DNS:{name}" for name in names), *(f"IP:{each}" for each in addresses)])
        self._authority.server("kube-apiserver", alternatives)
        self._authority.signing_key("service-accounts")
        self._write_kubeconfig(self.kubeconfig, self._admin)

    @property
    def _admin(self) -> KeyPair:
        return self._authority.client("admin", "/O=system:masters/CN=admin")

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
            "bind-address": self._address,
            "advertise-address": self._address,
            "secure-port": str(self.port),
            "tls-cert-file": str(pki / "kube-apiserver.crt"),
            "tls-private-key-file": str(pki / "kube-apiserver.key"),
            "client-ca-file": str(pki / "ca.crt"),
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": str(pki / "service-accounts.crt"),
            "service-account-signing-key-file": str(pki / "service-accounts.key"),
            "service-cluster-ip-range": SERVICE_RANGE,
            "profiling": "false",
            **(self._node_options() if self._has_node else NO_NODE_OPTIONS),
        }
        self._start("kube-apiserver", options)

    @property
    def audit_log(self) -> Path:
        """What pods have asked of the API server, a JSON object a line, where there is a node."""
        return self._directory / "audit.log"

    def _node_options(self) -> dict[str, str]:
        policy = self._directory / "audit-policy.yaml"
        policy.write_text(AUDIT_POLICY)
        # Logs of pods and commands in them come from kubelet, which asks who wants them.
        return {
            "authorization-mode": "Node,RBAC",
            "audit-policy-file": str(policy),
            "audit-log-path": str(self.audit_log),
            "kubelet-client-certificate": str(self._admin.certificate),
            "kubelet-client-key": str(self._admin.key),
            "kubelet-preferred-address-types": "InternalIP",
        }

    def _start_controller_manager(self) -> None:
        self._reservations.hand_over("kube-controller-manager")
        pki = self._directory / "pki"
        options = {
            "kubeconfig": str(self.kubeconfig_of("kube-controller-manager", "/CN=system:kube-controller-manager")),
            "bind-address": LOOPBACK,
            "secure-port": str(self._ports["kube-controller-manager"]),
            "controllers": "*" if self._has_node else ",".join(CONTROLLERS),
            "horizontal-pod-autoscaler-sync-period": HPA_PERIOD,
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

    def _answers(self, path: str) -> bool:
        return self._get(path)[0] == http.client.OK

    def _get(self, path: str) -> tuple[int | None, bytes]:
        context = ssl.create_default_context(cafile=str(self.authority_certificate))
        context.load_cert_chain(self._admin.certificate, self._admin.key)
        timeout = REQUEST_TIMEOUT_SECONDS
        connection = http.client.HTTPSConnection(self._address, self.port, timeout=timeout, context=context)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        except (http.client.HTTPException, OSError):
            return None, b""
        finally:
            connection.close()


def _base64(file: Path) -> str:
    return base64.b64encode(file.read_bytes()).decode()
