"""How a cluster is reached: addresses and credentials, as values and as environment variables."""

import os
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from dev.errors import DevError

KUBECONFIG = "KUBECONFIG"
ADMIN_URL = "PULSAR_ADMIN_URL"
SERVICE_URL = "PULSAR_SERVICE_URL"
BROKER_ADMIN_URLS = "PULSAR_BROKER_ADMIN_URLS"
NATIVE_ADMIN_URL = "PULSAR_NATIVE_ADMIN_URL"
NATIVE_SERVICE_URL = "PULSAR_NATIVE_SERVICE_URL"
NATIVE_BROKER_ADMIN_URLS = "PULSAR_NATIVE_BROKER_ADMIN_URLS"
SUPERUSER_TOKEN_FILE = "PULSAR_ADMIN_TOKEN_FILE"
NAMESPACE_ADMIN_TOKEN_FILE = "PULSAR_NAMESPACE_ADMIN_TOKEN_FILE"
CLIENT_TOKEN_FILE = "PULSAR_CLIENT_TOKEN_FILE"
NODE_IMAGE = "NODE_PIPELINE_IMAGE"
NODE_SHARED_DIRECTORY = "NODE_SHARED_DIRECTORY"
NODE_NETWORK = "NODE_NETWORK"


@dataclass(frozen=True, slots=True)
class KubernetesAccess:
    """A Kubernetes API server and an administrator's way into it.

    Attributes:
        kubeconfig: file with the address and the credentials.
        url: address of the API server.
    """

    kubeconfig: Path
    url: str

    @classmethod
    def from_kubeconfig(cls, kubeconfig: Path) -> "KubernetesAccess":
        """Read the address out of the current context of a kubeconfig file."""
        content = yaml.safe_load(kubeconfig.read_text())
        context = _named(content["contexts"], content["current-context"])["context"]
        return cls(kubeconfig, _named(content["clusters"], context["cluster"])["cluster"]["server"])

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "KubernetesAccess":
        """Read what `environment` describes."""
        return cls.from_kubeconfig(Path(_variable(environment, KUBECONFIG)))

    def environment(self) -> dict[str, str]:
        """Return the variables that describe this API server."""
        return {KUBECONFIG: str(self.kubeconfig)}


@dataclass(frozen=True, slots=True)
class PulsarAccess:
    """Pulsar brokers and tokens for three roles.

    Attributes:
        admin_url: address of the admin API (the first broker's).
        service_url: address for clients; names every broker.
        broker_admin_urls: address of each broker's admin API.
        superuser_token_file: may do everything.
        namespace_admin_token_file: administers tenant `team` and nothing else.
        client_token_file: may only produce and consume, in `public/default`, `team/apps` and `tests/default`.
    """

    admin_url: str
    service_url: str
    broker_admin_urls: tuple[str, ...]
    superuser_token_file: Path
    namespace_admin_token_file: Path
    client_token_file: Path

    @property
    def superuser_token(self) -> str:
        """The superuser's token."""
        return self.superuser_token_file.read_text()

    @property
    def namespace_admin_token(self) -> str:
        """The namespace administrator's token."""
        return self.namespace_admin_token_file.read_text()

    @property
    def client_token(self) -> str:
        """The plain client's token."""
        return self.client_token_file.read_text()

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "PulsarAccess":
        """Read what `environment` describes."""
        admin_url = _variable(environment, ADMIN_URL)
        return cls(
            admin_url=admin_url,
            service_url=_variable(environment, SERVICE_URL),
            broker_admin_urls=tuple(environment.get(BROKER_ADMIN_URLS, admin_url).split(",")),
            superuser_token_file=Path(_variable(environment, SUPERUSER_TOKEN_FILE)),
            namespace_admin_token_file=Path(_variable(environment, NAMESPACE_ADMIN_TOKEN_FILE)),
            client_token_file=Path(_variable(environment, CLIENT_TOKEN_FILE)),
        )

    @classmethod
    def native_from_environment(cls, environment: Mapping[str, str] = os.environ) -> "PulsarAccess | None":
        """Read what `environment` says of the brokers of Pulsar 5; None if it tells of none."""
        admin_url = environment.get(NATIVE_ADMIN_URL)
        if not admin_url:
            return None
        main = {
            ADMIN_URL: admin_url,
            SERVICE_URL: _variable(environment, NATIVE_SERVICE_URL),
            BROKER_ADMIN_URLS: environment.get(NATIVE_BROKER_ADMIN_URLS, admin_url),
        }
        return cls.from_environment(ChainMap(main, dict(environment)))

    def environment(self) -> dict[str, str]:
        """Return the variables that describe these brokers."""
        return {
            ADMIN_URL: self.admin_url,
            SERVICE_URL: self.service_url,
            BROKER_ADMIN_URLS: ",".join(self.broker_admin_urls),
            **self._token_variables(),
        }

    def native_environment(self) -> dict[str, str]:
        """Return the variables that describe these brokers as those of Pulsar 5. They share tokens with the others."""
        return {
            NATIVE_ADMIN_URL: self.admin_url,
            NATIVE_SERVICE_URL: self.service_url,
            NATIVE_BROKER_ADMIN_URLS: ",".join(self.broker_admin_urls),
            **self._token_variables(),
        }

    def _token_variables(self) -> dict[str, str]:
        return {
            SUPERUSER_TOKEN_FILE: str(self.superuser_token_file),
            NAMESPACE_ADMIN_TOKEN_FILE: str(self.namespace_admin_token_file),
            CLIENT_TOKEN_FILE: str(self.client_token_file),
        }


@dataclass(frozen=True, slots=True)
class NodeAccess:
    """A real node, which runs pods.

    Attributes:
        pipeline_image: name of the image of the load pipeline; None where the node has none.
        shared_directory: a folder of the node that every pod may mount and write to.
        network: file of the network that the whole instance is in, for `nsenter --net`.
    """

    pipeline_image: str | None
    shared_directory: Path
    network: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "NodeAccess":
        """Read what `environment` describes."""
        return cls(
            pipeline_image=environment.get(NODE_IMAGE),
            shared_directory=Path(_variable(environment, NODE_SHARED_DIRECTORY)),
            network=Path(_variable(environment, NODE_NETWORK)),
        )

    def environment(self) -> dict[str, str]:
        """Return the variables that describe this node."""
        described = {NODE_SHARED_DIRECTORY: str(self.shared_directory), NODE_NETWORK: str(self.network)}
        return described | ({NODE_IMAGE: self.pipeline_image} if self.pipeline_image else {})


def existing_cluster(environment: Mapping[str, str] = os.environ) -> bool:
    """Tell whether the environment names both an API server and brokers, so that nothing is to be started."""
    return bool(environment.get(KUBECONFIG)) and bool(environment.get(ADMIN_URL))


def _variable(environment: Mapping[str, str], name: str) -> str:
    if value := environment.get(name):
        return value
    raise DevError(f"{name} is not set")


def _named(entries: list[dict[str, Any]], name: str) -> dict[str, Any]:
    for entry in entries:
        if entry["name"] == name:
            return entry
    raise DevError(f"the kubeconfig has no entry {name!r}")
