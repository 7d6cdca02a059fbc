"""Credentials that a program gives, as kubeconfigs of clouds ask for them (`client.authentication.k8s.io`)."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

from scalable_topics.layout.json_fields import MALFORMED, parse_json
from scalable_topics_operator.cli.kubeconfig_entries import Cluster, Program

PROGRAM_SECONDS = 120.0
"""How long a program is waited for: some open a browser and wait for somebody to log in."""

_GROUP = "client.authentication.k8s.io"
_VERSIONS = (f"{_GROUP}/v1", f"{_GROUP}/v1beta1")
_CLUSTER_FIELDS = {"server", "insecure_skip_tls_verify", "certificate_authority_data"}


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


def issue(program: Program, cluster: Cluster, timeout_seconds: float = PROGRAM_SECONDS) -> Issued:
    """Run the program of a kubeconfig's user and take what it prints. Raises ExecCredentialError.

    Args:
        program: the user's `exec`.
        cluster: the cluster it is for.
        timeout_seconds: how long it is waited for.
    """
    command, version = program.command or "", program.api_version
    if version not in _VERSIONS:
        raise ExecCredentialError(f"the kubeconfig's exec wants {version}; {' and '.join(_VERSIONS)} are known")
    hint = f"; {program.install_hint}" if program.install_hint else ""
    try:
        done = subprocess.run(
            [command, *(program.args or ())],
            stdout=subprocess.PIPE,
            check=False,
            env={**os.environ, **_environment(program), "KUBERNETES_EXEC_INFO": _info(program, cluster)},
            timeout=timeout_seconds,
        )
    except subprocess.TimeoutExpired:
        raise ExecCredentialError(f"{command} of the kubeconfig gave no credentials in {timeout_seconds:g} s") from None
    except OSError as error:
        raise ExecCredentialError(f"{command!r} of the kubeconfig cannot be run: {error.strerror}{hint}") from None
    if done.returncode != 0:
        raise ExecCredentialError(f"{command} of the kubeconfig ended with {done.returncode}{hint}")
    return _issued(command, done.stdout)


def _environment(program: Program) -> dict[str, str]:
    return {one.name: one.value for one in program.env or ()}


def _info(program: Program, cluster: Cluster) -> str:
    """What the program is told of the call."""
    spec: dict[str, Any] = {"interactive": os.isatty(0)}
    if program.provide_cluster_info:
        spec["cluster"] = cluster.model_dump(by_alias=True, include=_CLUSTER_FIELDS, exclude_none=True)
    return json.dumps({"apiVersion": program.api_version, "kind": "ExecCredential", "spec": spec})


def _issued(command: str, output: bytes) -> Issued:
    try:
        status = parse_json(output)["status"]
        given = [status.get(field) for field in ("token", "clientCertificateData", "clientKeyData")]
        if not all(one is None or isinstance(one, str) for one in given):
            raise TypeError
        found = Issued(*given)
    except MALFORMED:
        raise ExecCredentialError(f"{command} of the kubeconfig printed no ExecCredential with a status") from None
    if not found.token and not (found.certificate and found.key):
        raise ExecCredentialError(f"{command} of the kubeconfig gave neither a token nor a certificate with its key")
    return found
