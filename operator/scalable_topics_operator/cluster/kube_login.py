"""Where the Kubernetes API is and how to speak to it, from a pod's service account or a kubeconfig."""

from __future__ import annotations

import base64
import contextlib
import logging
import ssl
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kopf
import yaml

from scalable_topics_operator.cluster.caller import Headers

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class KubeEndpoint:
    """One API server and the credentials for it.

    Args:
        server: base URL without a trailing slash.
        ssl_context: trust and client certificate; None for plain HTTP.
        headers: the authorization header, if any; never logged.
        namespace: default namespace of the credentials.
        impersonation: headers that make calls another user's; none if empty.
    """

    server: str
    ssl_context: ssl.SSLContext | None
    headers: dict[str, str]
    namespace: str
    impersonation: Headers = ()

    def __repr__(self) -> str:
        return f"KubeEndpoint({self.server})"


class NoKubernetes(Exception):
    """Neither a service account nor a kubeconfig was found that can be read."""


def load_endpoint() -> KubeEndpoint:
    """Read the service account of the pod, else the kubeconfig (`KUBECONFIG` or the usual place).

    Raises NoKubernetes when there is neither, or what there is cannot be read. Safe to call again: tokens are read
    afresh.
    """
    try:
        info = login()
    except (OSError, yaml.YAMLError, kopf.LoginError, KeyError, TypeError, AttributeError) as error:
        raise NoKubernetes(f"the Kubernetes credentials cannot be read: {error}") from error
    if info is None:
        raise NoKubernetes("no Kubernetes credentials: run in a pod with a service account or set KUBECONFIG")
    return endpoint_of(info)


def endpoint_of(info: kopf.ConnectionInfo) -> KubeEndpoint:
    """The API server that credentials are for. Raises OSError for certificates that cannot be read."""
    headers: dict[str, str] = {}
    if info.token:
        headers["Authorization"] = f"{info.scheme or 'Bearer'} {info.token}"
    elif info.username and info.password:
        pair = base64.b64encode(f"{info.username}:{info.password}".encode()).decode()
        headers["Authorization"] = f"Basic {pair}"
    server = str(info.server).rstrip("/")
    return KubeEndpoint(
        server=server,
        ssl_context=_ssl_context(info) if server.startswith("https") else None,
        headers=headers,
        namespace=info.default_namespace or "default",
    )


def login() -> kopf.ConnectionInfo | None:
    """Credentials in kopf's form, read afresh; None when there are none."""
    settings = kopf.OperatorSettings()
    return kopf.login_with_service_account(logger=logger, settings=settings) or kopf.login_with_kubeconfig(
        logger=logger, settings=settings
    )


def _ssl_context(info: Any) -> ssl.SSLContext:
    context = ssl.create_default_context(
        cafile=str(info.ca_path) if info.ca_path else None,
        cadata=_pem(info.ca_data) if info.ca_data else None,
    )
    if info.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    certificate = info.certificate_path or info.certificate_data
    key = info.private_key_path or info.private_key_data
    if certificate and key:
        with (
            _as_file(info.certificate_path, info.certificate_data) as certificate_file,
            _as_file(info.private_key_path, info.private_key_data) as key_file,
        ):
            context.load_cert_chain(certificate_file, key_file)
    return context


def _pem(data: Any) -> str:
    text = data.decode() if isinstance(data, bytes) else str(data)
    return text if "-----BEGIN" in text else base64.b64decode(text).decode()


@contextlib.contextmanager
def _as_file(path: Any, data: Any) -> Iterator[str]:
    """The standard library loads a client certificate from files only."""
    if path:
        yield str(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pem"
        file.touch(mode=0o600)
        file.write_text(_pem(data))
        yield str(file)
