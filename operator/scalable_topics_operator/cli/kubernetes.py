"""What the command line asks the Kubernetes API server, with the user's own kubeconfig."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextvars import ContextVar
from dataclasses import dataclass

from scalable_topics.layout import LayoutError, TopicName
from scalable_topics_operator.cli.api_server import ApiServer
from scalable_topics_operator.cli.exec_credential import PROGRAM_SECONDS
from scalable_topics_operator.cli.faults import BadUsage, Refused, Unreachable
from scalable_topics_operator.cli.kubeconfig import log_in
from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeError, KubeUnavailable
from scalable_topics_operator.cluster.kube_login import KubeEndpoint, NoKubernetes
from scalable_topics_operator.cluster.object_key import connection_text
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.cluster.reviews import request_token

CHOSEN_CONTEXT: ContextVar[str | None] = ContextVar("chosen_context", default=None)
"""The context of the kubeconfig that `--context` names; None for its current one."""

# Of one command, by context; asyncio.run gives each a context of its own. None before the first login.
_LOGINS: ContextVar[dict[str | None, KubeEndpoint] | None] = ContextVar("logins", default=None)
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


def parse_topic(text: str) -> TopicName:
    """A topic's name as a user writes it. Raises BadUsage."""
    try:
        return TopicName.parse(text)
    except LayoutError as error:
        raise BadUsage(str(error)) from None


async def find_object(
    kube: KubeClient, name: str, namespace: str | None, missing: str = "set -n to the namespace of its object"
) -> Body:
    """The ScalableTopic that a user means. Raises CliError, KubeError.

    Args:
        kube: the API server.
        name: of the object, or of the topic that it declares.
        namespace: of the object; that of the kubeconfig if None.
        missing: what to do where nothing declares the topic.
    """
    where = namespace or kube.default_namespace
    if "/" not in name:
        return await kube.get(TOPICS, where, name)
    wanted = parse_topic(name)
    found = [body for body in await kube.list_all(TOPICS, where) if _declares(body, wanted)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise Refused(f"no ScalableTopic in namespace {where} declares {wanted}; {missing}")
    several = ", ".join(sorted(body["metadata"]["name"] for body in found))
    raise Refused(f"ScalableTopics {several} in namespace {where} declare {wanted}; name one of them")


async def list_of(kube: KubeClient, resource: Resource, body: Body) -> list[Body]:
    """The objects of a kind that are about a ScalableTopic, in its namespace. Raises KubeError."""
    name = body["metadata"]["name"]
    found = await kube.list_all(resource, body["metadata"]["namespace"])
    return [one for one in found if (one.get("spec") or {}).get("scalableTopic") == name]


def ref_of(body: Body) -> TopicRef:
    """A ScalableTopic as the gateway is asked for it. Raises Refused."""
    try:
        return TopicRef(TopicName.parse(body["spec"]["topic"]), connection_text(body))
    except LayoutError as error:
        raise Refused(f"ScalableTopic {body['metadata']['name']}: {error}") from None


async def find_topic(name: str, namespace: str | None) -> TopicRef:
    """The topic that a user means, which needs no kubeconfig if it is named in full. Raises CliError.

    Args:
        name: `topic://tenant/namespace/name`, or the name of a ScalableTopic object.
        namespace: of the object; that of the kubeconfig if None.
    """
    if "/" in name:
        return TopicRef(parse_topic(name))
    async with api_server() as kube:
        return ref_of(await kube.get(TOPICS, namespace or kube.default_namespace, name))


async def token_of(kube: KubeClient, service_account: str) -> str:
    """A token of a service account (`namespace/name`) for the gateway. Raises CliError, KubeError."""
    namespace, slash, name = service_account.partition("/")
    if not (namespace and slash and name) or "/" in name:
        raise BadUsage(f"{service_account!r} is not namespace/name of a service account")
    return await request_token(kube, namespace, name, _TOKEN_SECONDS)


@contextlib.asynccontextmanager
async def api_server(login_seconds: float = PROGRAM_SECONDS) -> AsyncIterator[ApiServer]:
    """The API server of the kubeconfig; what it refuses within raises CliError.

    A command logs in once, and again when the API server does not know the login any more: it may be a program's.

    Args:
        login_seconds: how long a program of the kubeconfig that gives credentials is waited for.
    """
    logins, context = _logins(), CHOSEN_CONTEXT.get()

    def login() -> KubeEndpoint:
        logins[context] = log_in(context, login_seconds)
        return logins[context]

    try:
        async with ApiServer(
            logins.get(context), manager="stopics", timeout_seconds=_TIMEOUT_SECONDS, tries=_TRIES, login=login
        ) as kube:
            yield kube
    except NoKubernetes as error:
        raise BadUsage(str(error)) from None
    except KubeUnavailable as error:
        raise Unreachable(f"the Kubernetes API server: {error}") from None
    except KubeError as error:
        raise Refused(f"the Kubernetes API server: {error}") from None


def forget_logins() -> None:
    """Have the next use of an API server log in afresh."""
    _logins().clear()


def _logins() -> dict[str | None, KubeEndpoint]:
    if (found := _LOGINS.get()) is None:
        found = {}
        _LOGINS.set(found)
    return found


def _declares(body: Body, wanted: TopicName) -> bool:
    try:
        return TopicName.parse(body["spec"]["topic"]) == wanted
    except LayoutError:
        return False
