"""The API server as a person's tool asks it: besides objects its version, watches, logs of pods and ways into them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from scalable_topics.layout.json_fields import parse_json
from scalable_topics_operator.cli.gateway_place import is_loopback
from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource, error_of
from scalable_topics_operator.cluster.kube_errors import KubeUnavailable

PODS = Resource("", "v1", "pods", "Pod")
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")
OWN_ACCESS_REVIEWS = Resource("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview")

_WATCH_SECONDS = 300
# Longer than that nothing comes only from who is not there any more.
_WATCH_SILENCE_SECONDS = _WATCH_SECONDS + 30
_LOG_SILENCE_SECONDS = 30
_LINE_BYTES = 4 * 1024 * 1024
_UNAUTHORIZED, _EXPIRED = 401, 410


class WatchExpired(Exception):
    """What a watch was to begin with is too old: list again."""


class ApiServer(KubeClient):
    """The API server of a user's kubeconfig."""

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine."""
        return is_loopback(URL(self._endpoint.server).host or "")

    async def version(self) -> str:
        """Its version, such as `v1.34.1`. Raises KubeError."""
        return str((await self._call("GET", "/version", "get version")).get("gitVersion", "unknown"))

    async def may(self, verb: str, resource: Resource, namespace: str | None, subresource: str = "") -> bool:
        """Whether the user may do something in a namespace, or in all of them if it is None. Raises KubeError."""
        attributes = {
            "group": resource.group,
            "resource": resource.plural,
            "verb": verb,
            "namespace": namespace or "",
            "subresource": subresource,
        }
        review: Body = {
            "apiVersion": OWN_ACCESS_REVIEWS.api_version,
            "kind": OWN_ACCESS_REVIEWS.kind,
            "spec": {"resourceAttributes": attributes},
        }
        return (await self.create(OWN_ACCESS_REVIEWS, None, review)).get("status", {}).get("allowed") is True

    async def watch(
        self, resource: Resource, namespace: str | None, resource_version: str, name: str | None = None
    ) -> AsyncIterator[tuple[str, Body]]:
        """What happens to objects from a version on, as `ADDED`, `MODIFIED` or `DELETED` and the object.

        Ends when the API server ends it, as it does every few minutes: begin again with the last version that was seen.

        Args:
            resource: their kind.
            namespace: None for all.
            resource_version: of a list, or of an object.
            name: of the only one that counts.

        Raises WatchExpired, KubeError.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        if name is not None:
            query["fieldSelector"] = f"metadata.name={name}"
        what = f"watch {resource.plural}"
        async with self._opened(resource.path(namespace), query, what, _WATCH_SILENCE_SECONDS) as response:
            async for line in _lines(response, what):
                event = parse_json(line)
                if event["type"] == "ERROR":
                    if event["object"].get("code") == _EXPIRED:
                        raise WatchExpired
                    raise KubeUnavailable(what, event["object"].get("code", 0), event["object"].get("message", ""))
                yield event["type"], event["object"]

    async def pod_log(self, namespace: str, pod: str, container: str, *, lines: int, previous: bool = False) -> str:
        """The last lines of a container's log. Raises KubeError."""
        query = {"container": container, "tailLines": str(lines), "timestamps": "true"}
        if previous:
            query["previous"] = "true"
        path = PODS.path(namespace, pod, "log")
        what = f"get log of pod {namespace}/{pod}"
        async with self._opened(path, query, what, _LOG_SILENCE_SECONDS) as response:
            return await response.text(errors="replace")

    @asynccontextmanager
    async def web_socket(
        self, path: str, query: Mapping[str, str], protocol: str, what: str
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A WebSocket to the API server, such as one into a pod. Raises KubeError."""
        try:
            async with self._live_session().ws_connect(
                self._endpoint.server + path,
                params=query,
                headers=self._headers(),
                protocols=(protocol,),
                ssl=self._endpoint.ssl_context or True,
                max_msg_size=0,
            ) as opened:
                yield opened
        except aiohttp.WSServerHandshakeError as error:
            raise error_of(what, error.status, error.message) from None
        except (aiohttp.ClientConnectionError, TimeoutError, OSError) as error:
            raise KubeUnavailable(what, 0, str(error) or type(error).__name__) from None

    @asynccontextmanager
    async def _opened(
        self, path: str, query: Mapping[str, str], what: str, silence_seconds: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response whose body is read as it comes, and given up when nothing comes for so long."""

        async def get() -> aiohttp.ClientResponse:
            return await self._live_session().get(
                self._endpoint.server + path,
                params=query,
                headers=self._headers(),
                ssl=self._endpoint.ssl_context or True,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(sock_connect=self._timeout_seconds, sock_read=silence_seconds),
            )

        try:
            response = await get()
            if response.status == _UNAUTHORIZED:
                # Tokens expire; whoever issued this one issues another.
                response.close()
                self._endpoint = self._login()
                response = await get()
            async with response:
                if response.status != 200:
                    raise error_of(what, response.status, await response.text())
                yield response
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubeUnavailable(what, 0, str(error) or type(error).__name__) from None


async def _lines(response: aiohttp.ClientResponse, what: str) -> AsyncIterator[bytes]:
    """Lines of whatever length: an object may take more than a stream reader keeps."""
    kept = b""
    async for chunk in response.content.iter_any():
        *lines, kept = (kept + chunk).split(b"\n")
        for line in lines:
            yield line
        if len(kept) > _LINE_BYTES:
            raise KubeUnavailable(what, 0, "an object is larger than any there is")
