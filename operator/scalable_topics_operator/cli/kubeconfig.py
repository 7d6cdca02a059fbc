"""Credentials of a kubeconfig as kubectl reads them: merged files, contexts, and programs that give tokens.

What the operator itself reads (`cluster.kube_login`) is a service account, or a kubeconfig of the plainest kind. People
have others, above all those of clouds, whose tokens come from a program (`exec`). The official Kubernetes client knows
them, but kopf loads it wherever it is installed, which costs each operator most of a second and tens of megabytes.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import kopf
import yaml

from scalable_topics_operator.cli.exec_credential import PROGRAM_SECONDS, ExecCredentialError, Issued, issue
from scalable_topics_operator.cli.kubeconfig_entries import Cluster, Context, Entry, User
from scalable_topics_operator.cluster.caller import Caller, Headers, impersonation_headers
from scalable_topics_operator.cluster.kube_login import KubeEndpoint, NoKubernetes, endpoint_of

logger = logging.getLogger(__name__)

Content = Mapping[str, Any]
AnyEntry = TypeVar("AnyEntry", bound=Entry)
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
    cluster: Cluster
    user: User
    namespace: str


def log_in(context: str | None = None, timeout_seconds: float = PROGRAM_SECONDS) -> KubeEndpoint:
    """The API server of a kubeconfig, or in a pod that has none, of its service account.

    Args:
        context: which one of the kubeconfig; its current one if None.
        timeout_seconds: how long a program that gives credentials is waited for.

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
        return replace(endpoint_of(_connection(chosen, timeout_seconds)), impersonation=_impersonation(chosen.user))
    except ExecCredentialError as error:
        raise NoKubernetes(str(error)) from None
    except (OSError, ValueError, yaml.YAMLError) as error:
        # Parsers and TLS quote what they were given, which may be a key.
        raise NoKubernetes(f"the Kubernetes credentials cannot be read: {_kind(error)}") from None


def choose(files: list[tuple[Path, Content]], context: str | None) -> Chosen:
    """The context that counts; of things with one name, those in the first file win. Raises NoKubernetes.

    Args:
        files: paths and contents, in the order of `KUBECONFIG`.
        context: its name; what the first file that has a current one says, if None.
    """
    name = context or next((str(one["current-context"]) for _, one in files if one.get("current-context")), "")
    if not name:
        raise NoKubernetes("the kubeconfig has no current-context: kubectl config use-context, or --context")
    context_entry = _named(files, "contexts", "context", name, Context)
    cluster = _named(files, "clusters", "cluster", context_entry.cluster or "", Cluster)
    if not cluster.server:
        raise NoKubernetes(f"cluster {context_entry.cluster} of the kubeconfig has no server")
    for setting, value in (("proxy-url", cluster.proxy_url), ("tls-server-name", cluster.tls_server_name)):
        if value:
            raise NoKubernetes(
                f"cluster {context_entry.cluster} of the kubeconfig has a {setting}, which is not used here"
            )
    user = _named(files, "users", "user", context_entry.user, User) if context_entry.user else User()
    return Chosen(name, cluster, user, context_entry.namespace or "")


def _named(files: list[tuple[Path, Content]], many: str, one: str, name: str, kind: type[AnyEntry]) -> AnyEntry:
    for path, content in files:
        entries = content.get(many) or []
        if not isinstance(entries, list):
            raise NoKubernetes(f"{many} of {path} is no list")
        for entry in entries:
            if isinstance(entry, Mapping) and entry.get("name") == name:
                return kind.read(_absolute(entry.get(one) or {}, path.parent), f"{one} {name!r} of {path}")
    raise NoKubernetes(f"the kubeconfig has no {one} {name!r}")


def _absolute(found: Any, folder: Path) -> Any:
    """Paths are those from the file they stand in."""
    if not isinstance(found, Mapping):
        return found
    paths = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
    given = {key: found[key] for key in paths if isinstance(found.get(key), str) and found[key]}
    return {**found, **{key: str(folder / value) for key, value in given.items()}}


def _connection(chosen: Chosen, timeout_seconds: float) -> kopf.ConnectionInfo:
    cluster, user = chosen.cluster, chosen.user
    issued = Issued()
    token = user.token
    if user.token_file:
        token = Path(user.token_file).read_text().strip()
    elif not token and user.exec:
        issued = issue(user.exec, cluster, timeout_seconds)
        token = issued.token
    if token and not token.isprintable():
        raise NoKubernetes("the token of the kubeconfig's user holds characters that no header may have")
    return kopf.ConnectionInfo(
        server=cluster.server or "",
        ca_path=cluster.certificate_authority,
        ca_data=cluster.certificate_authority_data,
        insecure=cluster.insecure_skip_tls_verify,
        certificate_path=user.client_certificate,
        certificate_data=issued.certificate or user.client_certificate_data,
        private_key_path=user.client_key,
        private_key_data=issued.key or user.client_key_data,
        username=user.username,
        password=user.password,
        token=token,
        default_namespace=chosen.namespace or None,
    )


def _impersonation(user: User) -> Headers:
    """Whose name calls are made in, where it is not that of the credentials."""
    if not user.as_user:
        if user.as_uid or user.as_groups or user.as_user_extra:
            raise NoKubernetes("the kubeconfig's user has as-uid, as-groups or as-user-extra without as")
        return ()
    caller = Caller(user.as_user, user.as_uid or "", tuple(user.as_groups or ()), user.as_user_extra or {})
    try:
        return impersonation_headers(caller)
    except ValueError as error:
        raise NoKubernetes(f"as whom the kubeconfig's user acts: {error}") from None


def _files() -> list[Path]:
    """The files there are to read, as KUBECONFIG lists them; one that is missing is passed over, as kubectl does."""
    listed = os.environ.get("KUBECONFIG")
    if not listed:
        return [place] if (place := _USUAL_PLACE.expanduser()).is_file() else []
    files = [Path(part).expanduser() for part in listed.split(os.pathsep) if part]
    if not any(file.is_file() for file in files):
        raise NoKubernetes(f"no Kubernetes credentials: there is no file {listed}, which KUBECONFIG names")
    return [file for file in files if file.is_file()]


def _read(file: Path) -> Content:
    found = yaml.safe_load(file.read_text())
    if not isinstance(found, Mapping):
        raise NoKubernetes(f"{file} is no kubeconfig")
    return found


def _kind(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return type(error).__name__
