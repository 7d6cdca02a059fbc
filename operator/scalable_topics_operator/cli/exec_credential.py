"""Credentials that a program gives, as kubeconfigs of clouds ask for them (`client.authentication.k8s.io`)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
# Some open a browser and wait for somebody to log in.
_TIMEOUT_SECONDS = 120.0
_CLUSTER_FIELDS = ("server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority-data", "proxy-url")


class ExecCredentialError(Exception):
    """A program gives no credentials that can be used."""


@dataclass(frozen=True, slots=True)
class Issued:
    """What a program has given.

    Args:
        token: bearer token, if any.
        certificate: client certificate as PEM, if any.
        key: its key.
    """

    token: str | None = None
    certificate: str | None = None
    key: str | None = None

    def __repr__(self) -> str:
        return "Issued()"


def issue(settings: Mapping[str, Any], cluster: Mapping[str, Any]) -> Issued:
    """Run the program of a kubeconfig's user and take what it prints. Raises ExecCredentialError.

    Args:
        settings: the user's `exec`.
        cluster: the cluster it is for.
    """
    command, version = str(settings.get("command") or ""), settings.get("apiVersion")
    if version not in _VERSIONS:
        raise ExecCredentialError(f"the kubeconfig's exec wants {version}; {' and '.join(_VERSIONS)} are known")
    hint = f"; {settings['installHint']}" if settings.get("installHint") else ""
    try:
        done = subprocess.run(
            [command, *map(str, settings.get("args") or ())],
            stdout=subprocess.PIPE,
            check=False,
            env={**os.environ, **_environment(settings), "KUBERNETES_EXEC_INFO": _info(settings, cluster)},
            timeout=_TIMEOUT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ExecCredentialError(
            f"{command} of the kubeconfig gave no credentials in {_TIMEOUT_SECONDS:g} s"
        ) from None
    except OSError as error:
        raise ExecCredentialError(f"{command!r} of the kubeconfig cannot be run: {error.strerror}{hint}") from None
    if done.returncode != 0:
        raise ExecCredentialError(f"{command} of the kubeconfig ended with {done.returncode}{hint}")
    return _issued(command, done.stdout)


def _environment(settings: Mapping[str, Any]) -> dict[str, str]:
    return {str(one["name"]): str(one["value"]) for one in settings.get("env") or ()}


def _info(settings: Mapping[str, Any], cluster: Mapping[str, Any]) -> str:
    """What the program is told of the call."""
    spec: dict[str, Any] = {"interactive": os.isatty(0)}
    if settings.get("provideClusterInfo"):
        spec["cluster"] = {name: cluster[name] for name in _CLUSTER_FIELDS if name in cluster}
    return json.dumps({"apiVersion": settings["apiVersion"], "kind": "ExecCredential", "spec": spec})


def _issued(command: str, output: bytes) -> Issued:
    try:
        status = json.loads(output)["status"]
        found = Issued(status.get("token"), status.get("clientCertificateData"), status.get("clientKeyData"))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ExecCredentialError(f"{command} of the kubeconfig printed no ExecCredential with a status") from None
    if not found.token and not (found.certificate and found.key):
        raise ExecCredentialError(f"{command} of the kubeconfig gave neither a token nor a certificate with its key")
    return found
