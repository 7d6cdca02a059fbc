"""What the command line asks the Kubernetes API server, with the user's own kubeconfig."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass

from scalable_topics.layout import LayoutError, TopicName
from scalable_topics_operator.cli.faults import BadUsage, Refused, Unreachable
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError, KubeUnavailable
from scalable_topics_operator.cluster.kube_login import NoKubernetes
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.cluster.reviews import request_token

_TIMEOUT_SECONDS = 10.0
_TRIES = 2
# The API server gives none for a shorter time.
_TOKEN_SECONDS = 600


@dataclass(frozen=True, slots=True)
class TopicRef:
    """A topic as the gateway is asked for it.

    Args:
        topic: its name.
        connection: `namespace/name` of its connection; None if the name says enough.
    """

    topic: TopicName
    connection: str | None = None


async def find_topic(name: str, namespace: str | None) -> TopicRef:
    """The topic that a user means. Raises CliError.

    Args:
        name: `topic://tenant/namespace/name`, or the name of a ScalableTopic object.
        namespace: of the object; that of the kubeconfig if None.
    """
    if "/" in name:
        try:
            return TopicRef(TopicName.parse(name))
        except LayoutError as error:
            raise BadUsage(str(error)) from None
    async with api_server() as kube:
        body = await kube.get(TOPICS, namespace or kube.default_namespace, name)
    spec, reference = body["spec"], body["spec"]["connectionRef"]
    where = reference.get("namespace") or body["metadata"]["namespace"]
    try:
        return TopicRef(TopicName.parse(spec["topic"]), f"{where}/{reference['name']}")
    except LayoutError as error:
        raise Refused(f"ScalableTopic {name}: {error}") from None


async def token_of(service_account: str) -> str:
    """A token of a service account (`namespace/name`) for the gateway. Raises CliError."""
    namespace, slash, name = service_account.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise BadUsage(f"{service_account!r} is not namespace/name of a service account")
    async with api_server() as kube:
        return await request_token(kube, namespace, name, _TOKEN_SECONDS)


@contextlib.asynccontextmanager
async def api_server() -> AsyncIterator[KubeClient]:
    """The API server of the kubeconfig; what it refuses within raises CliError."""
    try:
        async with KubeClient(manager="stopics", timeout_seconds=_TIMEOUT_SECONDS, tries=_TRIES) as kube:
            yield kube
    except NoKubernetes as error:
        raise BadUsage(str(error)) from None
    except KubeUnavailable as error:
        raise Unreachable(f"the Kubernetes API server: {error}") from None
    except KubeError as error:
        raise Refused(f"the Kubernetes API server: {error}") from None
