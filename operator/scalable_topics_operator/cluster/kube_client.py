"""A small typed Kubernetes client for the hot path: plain aiohttp, explicit resource versions.

The official client costs more than twice the CPU a call, and kopf's patching does not carry a resource
version to the status subresource; the compare-and-swap of R39 needs one.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import math
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import aiohttp
from multidict import CIMultiDict

from scalable_topics.layout.json_fields import MALFORMED, parse_json
from scalable_topics_operator.cluster.caller import Caller, Headers, impersonation_headers
from scalable_topics_operator.cluster.kube_errors import (
    KubeConflict,
    KubeError,
    KubeForbidden,
    KubeInvalid,
    KubeNotFound,
    KubeUnavailable,
)
from scalable_topics_operator.cluster.kube_login import KubeEndpoint, load_endpoint
from scalable_topics_operator.operations.acting import seconds_to_act

logger = logging.getLogger(__name__)

Body = dict[str, Any]

MANAGER = "scalable-topics-operator"
LIST_CHUNK = 500
_TRIES = 4
_FIRST_PAUSE_SECONDS = 0.2
_TIMEOUT_SECONDS = 15.0
_UNAUTHORIZED = 401
_STATUS_ERRORS: Mapping[int, type[KubeError]] = {
    400: KubeInvalid,
    403: KubeForbidden,
    404: KubeNotFound,
    409: KubeConflict,
    422: KubeInvalid,
}


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind as the API server's URLs name it.

    Args:
        group: API group, empty for the core group.
        version: API version.
        plural: plural resource name.
        kind: the kind in manifests.
    """

    group: str
    version: str
    plural: str
    kind: str

    @property
    def api_version(self) -> str:
        """`group/version` as manifests write it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """URL path of the collection, of one object or of its subresource."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/" + "/".join(parts)


class KubeClient:
    """Calls to one API server with timeouts, bounded retries and errors that name the object.

    Use as an async context manager. Reads and conditional writes are retried on connection errors, 429 and
    5xx: a conditional write whose first reply was lost answers 409, which callers handle anyway.

    Args:
        endpoint: the API server; looked for if left out.
        field_validation: what the API server does with fields it does not know.
        manager: who owns the fields that are written.
        timeout_seconds: bound of one exchange.
        tries: exchanges of a call that may be repeated, 1 or more.
        login: reads the credentials afresh when the API server knows them no more.
    """

    def __init__(
        self,
        endpoint: KubeEndpoint | None = None,
        *,
        field_validation: str = "Warn",
        manager: str = MANAGER,
        timeout_seconds: float = _TIMEOUT_SECONDS,
        tries: int = _TRIES,
        login: Callable[[], KubeEndpoint] = load_endpoint,
    ) -> None:
        self._login = login
        self._endpoint = endpoint or login()
        self._field_validation = field_validation
        self._manager = manager
        self._timeout_seconds = timeout_seconds
        self._tries = tries
        self._impersonation: Headers = ()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            # The API server names the owner of each field by this.
            headers={"User-Agent": self._manager},
            timeout=aiohttp.ClientTimeout(total=None),
            connector=aiohttp.TCPConnector(limit=64),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    def acting_as(self, caller: Caller) -> KubeClient:
        """This client for calls that the API server judges and records as another user's (R32).

        It lives as long as this one. Raises ValueError for a user who cannot be named in headers.
        """
        acting = copy.copy(self)
        acting._impersonation = impersonation_headers(caller)
        return acting

    @property
    def default_namespace(self) -> str:
        """Namespace of the credentials in use."""
        return self._endpoint.namespace

    async def get(self, resource: Resource, namespace: str | None, name: str) -> Body:
        """Read one object. Raises KubeNotFound."""
        return await self._call("GET", resource.path(namespace, name), _what("get", resource, namespace, name))

    async def list_pages(
        self, resource: Resource, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[tuple[list[Body], str]]:
        """Read a collection in chunks; each page comes with the resource version of the whole list."""
        token = ""
        while True:
            query = {"limit": str(LIST_CHUNK)}
            if token:
                query["continue"] = token
            if label_selector:
                query["labelSelector"] = label_selector
            if field_selector:
                query["fieldSelector"] = field_selector
            page = await self._call(
                "GET", resource.path(namespace), _what("list", resource, namespace, None), query=query
            )
            metadata = page.get("metadata", {})
            yield page.get("items", []), metadata.get("resourceVersion", "")
            token = metadata.get("continue", "")
            if not token:
                return

    async def list_all(self, resource: Resource, namespace: str | None = None) -> list[Body]:
        """Read a whole collection."""
        return [item async for page, _ in self.list_pages(resource, namespace) for item in page]

    async def create(self, resource: Resource, namespace: str | None, body: Body) -> Body:
        """Create an object. Raises KubeConflict when it exists."""
        name = body.get("metadata", {}).get("name")
        return await self._call(
            "POST",
            resource.path(namespace),
            _what("create", resource, namespace, name),
            body=body,
            retried=False,
        )

    async def create_subresource(
        self, resource: Resource, namespace: str | None, name: str, subresource: str, body: Body
    ) -> Body:
        """Ask an object's subresource for something new, such as a token. Raises KubeNotFound."""
        what = _what("create", resource, namespace, name) + f" {subresource}"
        return await self._call("POST", resource.path(namespace, name, subresource), what, body=body, retried=False)

    async def replace(self, resource: Resource, namespace: str | None, body: Body) -> Body:
        """Write a whole object, on condition of its resource version. Raises KubeConflict, KubeNotFound."""
        name = body["metadata"]["name"]
        what = _what("replace", resource, namespace, name)
        return await self._call("PUT", resource.path(namespace, name), what, body=body)

    async def merge_patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        patch: Body,
        *,
        subresource: str | None = None,
    ) -> Body:
        """Apply a JSON merge patch. With `metadata.resourceVersion` in it the write is conditional.

        Raises KubeConflict when the object changed since that version, KubeNotFound when it is gone.
        """
        what = _what("patch", resource, namespace, name) + (f" {subresource}" if subresource else "")
        conditional = bool(patch.get("metadata", {}).get("resourceVersion"))
        return await self._call(
            "PATCH",
            resource.path(namespace, name, subresource),
            what,
            body=patch,
            content_type="application/merge-patch+json",
            retried=conditional,
        )

    async def delete(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> None:
        """Delete an object, only if its uid and its version are the given ones; quiet when it is gone.

        With propagation `Foreground` it stays, marked, until what it owns is gone. A dry run only finds out whether it
        could be deleted.
        """
        body: Body = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": propagation}
        given = {"uid": uid, "resourceVersion": resource_version}
        if preconditions := {name: value for name, value in given.items() if value}:
            body["preconditions"] = preconditions
        if dry_run:
            body["dryRun"] = ["All"]
        try:
            await self._call(
                "DELETE",
                resource.path(namespace, name),
                _what("delete", resource, namespace, name),
                body=body,
            )
        except KubeNotFound:
            return

    async def _call(
        self,
        method: str,
        path: str,
        what: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Body | None = None,
        content_type: str = "application/json",
        retried: bool = True,
    ) -> Body:
        params = dict(query or {})
        if method in ("POST", "PATCH") and self._field_validation != "Warn":
            params["fieldValidation"] = self._field_validation
        tries = self._tries if retried else 1
        logged_in_again = False
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._once(method, path, what, params, body, content_type)
            except KubeUnavailable:
                if attempt >= tries:
                    raise
                await asyncio.sleep(random.uniform(0, _FIRST_PAUSE_SECONDS * 2**attempt))
            except KubeError as error:
                # Service account tokens expire; the new one is in the same file.
                if error.status != _UNAUTHORIZED or logged_in_again:
                    raise
                logged_in_again = True
                self._endpoint = self._login()

    async def _once(
        self, method: str, path: str, what: str, params: dict[str, str], body: Body | None, content_type: str
    ) -> Body:
        timeout_seconds = seconds_to_act(time.monotonic(), self._timeout_seconds)
        if not timeout_seconds:
            raise KubeUnavailable(what, 0, "nothing was sent: another replica may lead this object by now")
        headers = self._headers()
        headers["Accept"] = "application/json"
        data = None
        if body is not None:
            headers["Content-Type"] = content_type
            data = json.dumps(body)
        try:
            status, text = await self._exchange(method, path, params, headers, data, timeout_seconds)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise KubeUnavailable(what, 0, str(error) or type(error).__name__) from error
        if status < 300:
            try:
                return parse_json(text) if text else {}
            except ValueError:
                # Something in front of the API server has answered.
                raise KubeUnavailable(what, status, "the answer is no JSON") from None
        raise error_of(what, status, text)

    def _headers(self) -> CIMultiDict[str]:
        """Who asks, in each request; some of them stand more than once."""
        headers = CIMultiDict(self._endpoint.headers)
        headers.extend(self._impersonation or self._endpoint.impersonation)
        return headers

    async def _exchange(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        headers: CIMultiDict[str],
        data: str | None,
        timeout_seconds: float,
    ) -> tuple[int, str]:
        """Send one request; answers its status and text. Raises ClientError, TimeoutError, OSError."""
        async with self._live_session().request(
            method,
            self._endpoint.server + path,
            params=params,
            data=data,
            headers=headers,
            ssl=self._endpoint.ssl_context or True,
            allow_redirects=False,
            # To the point: aiohttp would let longer ones end up to a second late.
            timeout=aiohttp.ClientTimeout(total=timeout_seconds, ceil_threshold=math.inf),
        ) as response:
            return response.status, await response.text()

    def _live_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError(f"{type(self).__name__} is used outside its context manager")
        return self._session


def error_of(what: str, status: int, text: str) -> KubeError:
    """What an answer that is none comes to.

    Args:
        what: the call and the object it was for.
        status: HTTP status.
        text: of the answer.
    """
    try:
        message = str(parse_json(text).get("message", text[:300]))
    except MALFORMED:
        message = text[:300]
    if status == 429 or status >= 500:
        return KubeUnavailable(what, status, message)
    return _STATUS_ERRORS.get(status, KubeError)(what, status, message)


def _what(verb: str, resource: Resource, namespace: str | None, name: str | None) -> str:
    return " ".join([verb, resource.plural, "/".join(part for part in (namespace, name) if part)]).strip()
