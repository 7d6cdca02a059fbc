"""Credentials of a kubeconfig as kubectl reads them: merged files, contexts, and programs that give tokens.

What the operator itself reads (`cluster.kube_login`) is a service account, or a kubeconfig of the plainest kind. People
have others, above all those of clouds, whose tokens come from a program (`exec`). The official Kubernetes client knows
them, but kopf loads it wherever it is installed, which costs each operator most of a second and tens of megabytes.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kopf
import yaml

from scalable_topics_operator.cli.exec_credential import ExecCredentialError, Issued, issue
from scalable_topics_operator.cluster.kube_login import KubeEndpoint, NoKubernetes, endpoint_of

logger = logging.getLogger(__name__)

Entry = Mapping[str, Any]
_USUAL_PLACE = Path("~/.kube/config")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A context of a kubeconfig with what it names.

    Args:
        name: of the context.
        cluster: its cluster; paths in it are absolute.
        user: its user; likewise.
        namespace: its default namespace; empty if it has none.
    """

    name: str
    cluster: Entry
    user: Entry
    namespace: str


def log_in(context: str | None = None) -> KubeEndpoint:
    """The API server of a kubeconfig, or in a pod that has none, of its service account.

    Args:
        context: which one of the kubeconfig; its current one if None.

    Raises NoKubernetes for what is missing or cannot be read.
    """
    files = _files()
    if not files:
        found = kopf.login_with_service_account(logger=logger, settings=kopf.OperatorSettings())
        if found is None or context is not None:
            raise NoKubernetes(f"no Kubernetes credentials: set KUBECONFIG, or have {_USUAL_PLACE}")
        return endpoint_of(found)
    try:
        chosen = choose([(file, _read(file)) for file in files], context)
        return endpoint_of(_connection(chosen))
    except ExecCredentialError as error:
        raise NoKubernetes(str(error)) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        # Parsers and TLS quote what they were given, which may be a key.
        raise NoKubernetes(f"the Kubernetes credentials cannot be read: {_kind(error)}") from None


def choose(files: list[tuple[Path, Entry]], context: str | None) -> Chosen:
    """The context that counts; of things with one name, those in the first file win. Raises NoKubernetes.

    Args:
        files: paths and contents, in the order of `KUBECONFIG`.
        context: its name; what the first file that has a current one says, if None.
    """
    name = context or next((str(one["current-context"]) for _, one in files if one.get("current-context")), "")
    if not name:
        raise NoKubernetes("the kubeconfig has no current-context: kubectl config use-context, or --context")
    of_context = _named(files, "contexts", "context", name)
    cluster = _named(files, "clusters", "cluster", str(of_context.get("cluster", "")))
    if not cluster.get("server"):
        raise NoKubernetes(f"cluster {of_context.get('cluster')} of the kubeconfig has no server")
    if cluster.get("proxy-url"):
        raise NoKubernetes(
            f"cluster {of_context.get('cluster')} of the kubeconfig has a proxy-url, which is not used here"
        )
    user = _named(files, "users", "user", str(of_context["user"])) if of_context.get("user") else {}
    return Chosen(name, cluster, user, str(of_context.get("namespace") or ""))


def _named(files: list[tuple[Path, Entry]], many: str, one: str, name: str) -> Entry:
    for path, content in files:
        for entry in content.get(many) or ():
            if isinstance(entry, Mapping) and entry.get("name") == name:
                return _absolute(entry.get(one) or {}, path.parent)
    raise NoKubernetes(f"the kubeconfig has no {one} {name!r}")


def _absolute(entry: Entry, folder: Path) -> Entry:
    """Paths are those from the file they stand in."""
    paths = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
    return {key: str(folder / value) if key in paths and value else value for key, value in entry.items()}


def _connection(chosen: Chosen) -> kopf.ConnectionInfo:
    cluster, user = chosen.cluster, chosen.user
    issued = Issued()
    token = user.get("token")
    if user.get("tokenFile"):
        token = Path(user["tokenFile"]).read_text().strip()
    elif not token and user.get("exec"):
        issued = issue(user["exec"], cluster)
        token = issued.token
    return kopf.ConnectionInfo(
        server=str(cluster["server"]),
        ca_path=cluster.get("certificate-authority"),
        ca_data=cluster.get("certificate-authority-data"),
        insecure=cluster.get("insecure-skip-tls-verify"),
        certificate_path=user.get("client-certificate"),
        certificate_data=issued.certificate or user.get("client-certificate-data"),
        private_key_path=user.get("client-key"),
        private_key_data=issued.key or user.get("client-key-data"),
        username=user.get("username"),
        password=user.get("password"),
        token=token,
        default_namespace=chosen.namespace or None,
    )


def _files() -> list[Path]:
    """The files there are to read, as KUBECONFIG lists them; one that is missing is passed over, as kubectl does."""
    listed = os.environ.get("KUBECONFIG")
    if not listed:
        return [place] if (place := _USUAL_PLACE.expanduser()).is_file() else []
    files = [Path(part).expanduser() for part in listed.split(os.pathsep) if part]
    if not any(file.is_file() for file in files):
        raise NoKubernetes(f"no Kubernetes credentials: there is no file {listed}, which KUBECONFIG names")
    return [file for file in files if file.is_file()]


def _read(file: Path) -> Entry:
    found = yaml.safe_load(file.read_text())
    if not isinstance(found, Mapping):
        raise NoKubernetes(f"{file} is no kubeconfig")
    return found


def _kind(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return type(error).__name__
