"""The way to the gateway: a URL that is given, or from the kubeconfig alone, and the token that it is asked with."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from scalable_topics_operator.cli.api_server import PODS, ApiServer
from scalable_topics_operator.cli.faults import BadUsage, CliError, Unreachable
from scalable_topics_operator.cli.gateway_client import Gateway
from scalable_topics_operator.cli.gateway_place import Place, is_loopback, places
from scalable_topics_operator.cli.kubernetes import api_server, token_of
from scalable_topics_operator.cli.port_forward import forwarded
from scalable_topics_operator.cluster.lease_record import LEASES
from scalable_topics_operator.cluster.reviews import AUDIENCE

TOKEN_VARIABLE = "STOPICS_TOKEN"
"""A token on the command line would be seen by everybody on the machine."""

OPERATOR_NAMESPACE = "scalable-topics"
"""Where the chart is installed by its instructions."""
_BY_HAND_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """How the gateway is reached.

    Args:
        url: of the gateway; None to find it with the kubeconfig.
        token_file: file with a token for it.
        service_account: `namespace/name` to request a token of, where none is given.
        operator_namespace: where the operator's Leases are; None for the usual places.
    """

    url: str | None = None
    token_file: Path | None = None
    service_account: str | None = None
    operator_namespace: str | None = None

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Where the operator is looked for.

        Never in all: whoever may write Leases somewhere could have tokens sent to a pod of their own.
        """
        if self.operator_namespace is not None:
            return (self.operator_namespace,)
        return (OPERATOR_NAMESPACE, _BY_HAND_NAMESPACE)


@asynccontextmanager
async def gateway(options: GatewayOptions) -> AsyncIterator[Gateway]:
    """The gateway, ready to be asked. Raises CliError."""
    given = given_token(options.token_file)
    if options.url is not None and given is not None:
        async with Gateway(options.url, given) as asked:
            yield asked
        return
    if options.url is not None and options.service_account is None:
        raise BadUsage(_no_token())
    async with api_server() as kube, AsyncExitStack() as stack:
        if options.url is not None:
            token = await token_of(kube, options.service_account or "")
            yield await stack.enter_async_context(Gateway(options.url, token))
        else:
            place, namespace = await find_gateway(kube, options)
            token = given or await _requested(kube, options, place, namespace)
            yield await stack.enter_async_context(reached(kube, namespace, place, token))


async def find_gateway(kube: ApiServer, options: GatewayOptions) -> tuple[Place, str]:
    """The gateway of some replica, and its namespace. Raises CliError, KubeError."""
    unusable: list[str] = []
    for namespace in options.namespaces:
        if not (leases := await kube.list_all(LEASES, namespace)):
            continue
        found = places(leases, await kube.list_all(PODS, namespace))
        # By hand an operator runs where its user does; nothing else that the namespace of everybody says is believed.
        is_trusted = namespace != _BY_HAND_NAMESPACE or options.operator_namespace is not None
        usable = [place for place in found if (is_trusted if place.pod else _is_here(kube, place))]
        if usable:
            return usable[0], namespace
        unusable += [f"{place.host}:{place.port}" for place in found]
    searched = " and ".join(options.namespaces)
    if unusable:
        raise Unreachable(f"the gateway at {unusable[0]} is neither that of a pod nor on this machine; set --gateway")
    raise Unreachable(
        f"no replica of the operator shows itself in namespace {searched}; set --operator-namespace or --gateway"
    )


@asynccontextmanager
async def reached(kube: ApiServer, namespace: str, place: Place, token: str) -> AsyncIterator[Gateway]:
    """A replica's gateway, through the API server if it is in a pod."""
    scheme = "https" if place.is_tls else "http"
    if not place.pod:
        async with Gateway(f"{scheme}://{place.host}:{place.port}", token) as asked:
            yield asked
        return
    async with (
        forwarded(kube, namespace, place.pod, place.port) as forwarding,
        Gateway(
            f"{scheme}://127.0.0.1:{forwarding.port}",
            token,
            f"the gateway of pod {namespace}/{place.pod}",
            _unchecked() if place.is_tls else None,
            lambda: forwarding.error,
        ) as asked,
    ):
        yield asked


async def _requested(kube: ApiServer, options: GatewayOptions, place: Place, namespace: str) -> str:
    if options.service_account is not None:
        return await token_of(kube, options.service_account)
    if not place.service_account:
        raise BadUsage(_no_token())
    # Whoever may have this one needs no other: it sees all topics, and the API server gives it by the user's rights.
    return await token_of(kube, f"{namespace}/{place.service_account}")


def _is_here(kube: ApiServer, place: Place) -> bool:
    """Whether a gateway is on this machine. Where the API server is not, an address of loopback is that of another one,
    and who listens there on this machine must not have tokens.
    """
    return kube.is_local and is_loopback(place.host)


def given_token(token_file: Path | None) -> str | None:
    """The token that the user gives, if any. Raises BadUsage."""
    if token_file is None:
        token, where = os.environ.get(TOKEN_VARIABLE), TOKEN_VARIABLE
        if token is None:
            return None
    else:
        where = str(token_file)
        try:
            token = token_file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise BadUsage(f"the token file {token_file} cannot be read: {type(error).__name__}") from None
    token = token.strip()
    if not token or not token.isascii() or len(token.split()) != 1:
        raise BadUsage(f"{where} holds no token")
    return token


def why(error: CliError) -> str:
    """One line of a failure that is told beside what could be shown."""
    return " ".join(str(error).split())


def _no_token() -> str:
    return (
        f"no token for the gateway: set {TOKEN_VARIABLE} or --token-file (kubectl create token NAME --audience "
        f"{AUDIENCE}), or --service-account namespace/name"
    )


def _unchecked() -> ssl.SSLContext:
    """The API server has led to this pod, nobody else can be in between, and its certificate is for other names."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
