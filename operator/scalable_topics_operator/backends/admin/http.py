"""Calls to the admin API of one Pulsar cluster: limits, retries, redirects, credentials (DESIGN §9)."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import urljoin

import aiohttp
from yarl import URL

from scalable_topics_operator.backends.admin.credentials import Credentials, CredentialSource
from scalable_topics_operator.backends.admin.origins import Origin, Trust, parse_trusted_broker
from scalable_topics_operator.backends.admin.reasons import (
    About,
    error_for,
    is_authorization_refusal,
    is_transient,
    plain,
    reason_of,
)
from scalable_topics_operator.backends.admin.retry import RetryPolicy, parse_retry_after
from scalable_topics_operator.operations.errors import BackendError, BackendRefused, BackendUnavailable

log = logging.getLogger(__name__)

Observe = Callable[[str, str, float], None]
"""Called once a call with operation, outcome (`ok` or the error's class name) and seconds."""

_ERROR_BODY_BYTES = 64 * 1024
_BROKERS_PATH = "/admin/v2/brokers"


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """How to talk to one cluster.

    Args:
        admin_url: http(s) URL of a broker, a proxy or a service in front of them.
        trusted_brokers: servers that redirects may lead to besides those the cluster lists.
        max_concurrent_requests: requests open at once, at least 1.
        request_timeout_seconds: bound of one exchange, connecting and reading included; > 0.
        retry: repeats of idempotent calls.
        max_redirects: hops followed in one attempt.
        broker_list_seconds: shortest time between two readings of the broker list.
        max_body_bytes: larger answers are refused.
    """

    admin_url: str
    trusted_brokers: tuple[str, ...] = ()
    max_concurrent_requests: int = 16
    request_timeout_seconds: float = 10.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    max_redirects: int = 5
    broker_list_seconds: float = 5.0
    max_body_bytes: int = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Call:
    """One admin call.

    Args:
        operation: short constant name, used as a metric label.
        method: HTTP method.
        path: path from `paths`, already quoted.
        target: the object the call is about, for error texts.
        about: kind of that object.
        query: query parameters.
        body: sent as JSON unless it is None.
        idempotent: may be repeated after a failure with an unknown outcome.
        allow: statuses besides 2xx that the caller handles itself.
        right: the right the call needs, named when it is denied.
    """

    operation: str
    method: str
    path: str
    target: str
    about: About
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    idempotent: bool = True
    allow: frozenset[int] = frozenset()
    right: str | None = None

    @property
    def what(self) -> str:
        """Operation and object, for error texts."""
        return f"{self.operation} {plain(self.target)}"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that is a success or that the caller asked to handle.

    Args:
        status: HTTP status.
        text: the body.
        reason: the broker's explanation if the status is no success.
    """

    status: int
    text: str
    reason: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def json(self, what: str) -> Any:
        """The body as JSON, None if it is empty. Raises BackendUnavailable if it is something else."""
        if not self.text.strip():
            return None
        try:
            return json.loads(self.text)
        except ValueError:
            raise BackendUnavailable(f"{what}: the answer is not JSON") from None


class _Again(Exception):
    """One attempt failed in a way that another may mend."""

    def __init__(self, error: BackendError, *, unsent: bool = False, retry_after_seconds: float | None = None):
        super().__init__(str(error))
        self.error = error
        self.unsent = unsent
        self.retry_after_seconds = retry_after_seconds


class AdminHttp:
    """Sends calls to the admin API of one cluster.

    Use as an async context manager or call `close`. Credentials go to the admin URL and to brokers that
    `origins.Trust` allows, never elsewhere.

    Args:
        settings: how to talk to the cluster.
        source: where the credentials come from.
        observe: called after every call.
        sleep: replaceable for tests.
        monotonic: replaceable for tests.
    """

    def __init__(
        self,
        settings: HttpSettings,
        source: CredentialSource,
        *,
        observe: Observe | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._source = source
        self._observe = observe
        self._sleep = sleep
        self._monotonic = monotonic
        self._admin_url = settings.admin_url.rstrip("/")
        patterns = tuple(parse_trusted_broker(text) for text in settings.trusted_brokers)
        self._trust = Trust(Origin.parse(self._admin_url), patterns)
        self._permits = asyncio.Semaphore(settings.max_concurrent_requests)
        self._session: aiohttp.ClientSession | None = None
        self._tls: tuple[Credentials, ssl.SSLContext] | None = None
        self._tls_lock = asyncio.Lock()
        self._refresh_lock = asyncio.Lock()
        self._refreshed_at = float("-inf")
        self._brokers_lock = asyncio.Lock()
        self._brokers_read_at = float("-inf")
        self._brokers_problem = ""

    @property
    def admin_url(self) -> str:
        """The connection's admin URL without a trailing slash."""
        return self._admin_url

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(self, call: Call) -> Answer:
        """Send one call and answer 2xx or what `call.allow` names.

        Raises the errors of `operations.errors`, with the object and the broker's reason in the text.
        """
        started = self._monotonic()
        outcome = "cancelled"
        try:
            answer = await self._with_retries(call, started)
            outcome = "ok" if answer.status < 300 else f"http_{answer.status}"
            return answer
        except BackendError as error:
            outcome = type(error).__name__
            raise
        finally:
            if self._observe is not None:
                self._observe(call.operation, outcome, self._monotonic() - started)

    async def _with_retries(self, call: Call, started: float) -> Answer:
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._with_credentials(call)
            except _Again as again:
                wait = self._settings.retry.wait_seconds(
                    attempt,
                    elapsed_seconds=self._monotonic() - started,
                    retry_after_seconds=again.retry_after_seconds,
                )
                if wait is None or not (call.idempotent or again.unsent):
                    raise again.error from None
                log.debug("repeating in %.2f s after: %s", wait, again.error)
                await self._sleep(wait)

    async def _with_credentials(self, call: Call) -> Answer:
        credentials = await self._source.current()
        answer = await self._follow(call, credentials)
        if answer.status == 401:
            renewed = await self._renewed(credentials, answer.reason)
            if renewed != credentials:
                answer = await self._follow(call, renewed)
        return self._judged(call, answer)

    async def _renewed(self, refused: Credentials, reason: str) -> Credentials:
        # Callers refused together refresh once. A role that merely lacks a right is refused all the time,
        # so its refreshes are rate limited.
        async with self._refresh_lock:
            known = await self._source.current()
            if known != refused:
                return known
            recently = self._monotonic() - self._refreshed_at < self._settings.broker_list_seconds
            if recently and is_authorization_refusal(reason):
                return refused
            self._refreshed_at = self._monotonic()
            return await self._source.refresh()

    def _judged(self, call: Call, answer: Answer) -> Answer:
        if answer.status < 300 or answer.status in call.allow:
            return answer
        error = error_for(call.what, answer.status, answer.reason, call.about, right=call.right)
        if is_transient(answer.status, answer.reason):
            raise _Again(error, retry_after_seconds=parse_retry_after(answer.headers.get("Retry-After")))
        raise error

    async def _follow(self, call: Call, credentials: Credentials) -> Answer:
        url = self._admin_url + call.path
        if call.query:
            url = str(URL(url, encoded=True).with_query(dict(call.query)))
        here = self._trust.admin
        for _ in range(self._settings.max_redirects + 1):
            answer = await self._exchange(call, url, here, credentials)
            if answer.status not in (301, 302, 303, 307, 308):
                return answer
            url, here = await self._next_hop(call, answer, url, here, credentials)
        raise _Again(BackendUnavailable(f"{call.what}: more than {self._settings.max_redirects} redirects"))

    async def _next_hop(
        self, call: Call, answer: Answer, url: str, here: Origin, credentials: Credentials
    ) -> tuple[str, Origin]:
        if answer.status not in (307, 308):
            # These would turn the call into a GET of a log-in page.
            raise BackendRefused(f"{call.what}: {here} answered redirect {answer.status}, which brokers never send")
        target_url = urljoin(url, answer.headers.get("Location", ""))
        try:
            target = Origin.parse(target_url)
        except ValueError as error:
            raise BackendRefused(f"{call.what}: {here} sent a redirect that is refused: {error}") from None
        if self._trust.weakens(here, target) or self._trust.weakens(self._trust.admin, target):
            raise BackendRefused(f"{call.what}: {here} redirects from https to {target}; refused, nothing was sent")
        verified = credentials.verify_hostname
        if not self._trust.allows(target, verified_tls=verified):
            await self._read_brokers(credentials)
        if not self._trust.allows(target, verified_tls=verified):
            raise BackendRefused(
                f"{call.what}: {here} redirects to {target}, neither a broker the cluster lists nor in "
                f"trustedBrokers{self._brokers_problem}; refused, nothing was sent"
            )
        return target_url, target

    async def _read_brokers(self, credentials: Credentials) -> None:
        async with self._brokers_lock:
            if self._monotonic() - self._brokers_read_at < self._settings.broker_list_seconds:
                return
            self._brokers_read_at = self._monotonic()
            call = Call("list-brokers", "GET", _BROKERS_PATH, self._admin_url, About.CLUSTER)
            try:
                # Asked of the admin URL itself; a redirect of this call is no answer.
                answer = await self._exchange(call, self._admin_url + call.path, self._trust.admin, credentials)
            except _Again as again:
                self._brokers_problem = f" (reading the broker list failed: {again.error})"
                return
            try:
                brokers = answer.json(call.what) if answer.status == 200 else None
            except BackendError:
                brokers = None
            if not isinstance(brokers, list):
                self._brokers_problem = f" (the broker list could not be read: {answer.reason or 'no list'})"
                return
            self._brokers_problem = ""
            self._trust = self._trust.with_listed(str(broker) for broker in brokers)

    async def _exchange(self, call: Call, url: str, origin: Origin, credentials: Credentials) -> Answer:
        headers = {"Accept": "application/json", **credentials.headers()}
        data: bytes | None = None
        if call.body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(call.body, ensure_ascii=False, separators=(",", ":")).encode()
        tls: ssl.SSLContext | bool = True
        if origin.scheme == "https":
            tls = await self._ssl_context(call, credentials)
        timeout = self._settings.request_timeout_seconds
        try:
            async with (
                self._permits,
                asyncio.timeout(timeout),
                self._opened().request(
                    call.method,
                    URL(url, encoded=True),
                    data=data,
                    headers=headers,
                    allow_redirects=False,
                    ssl=tls,
                ) as response,
            ):
                return await self._read(call, response, credentials)
        except TimeoutError:
            raise _Again(BackendUnavailable(f"{call.what}: no answer from {origin} in {timeout:g} s")) from None
        except aiohttp.ClientConnectorError as error:
            problem = plain(str(error.os_error) if error.os_error else type(error).__name__)
            text = f"{call.what}: cannot connect to {origin}: {problem}"
            raise _Again(BackendUnavailable(text), unsent=True) from None
        except aiohttp.ClientError as error:
            problem = plain(self._scrub(str(error) or type(error).__name__, credentials))
            raise _Again(BackendUnavailable(f"{call.what}: talking to {origin} failed: {problem}")) from None

    async def _read(self, call: Call, response: aiohttp.ClientResponse, credentials: Credentials) -> Answer:
        failed = response.status >= 300
        limit = _ERROR_BODY_BYTES if failed else self._settings.max_body_bytes
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > limit:
                if failed:
                    break
                raise BackendRefused(f"{call.what}: the answer is larger than {limit} bytes")
        text = bytes(body[:limit]).decode("utf-8", "replace")
        if not failed:
            return Answer(response.status, text, headers=response.headers)
        reason = reason_of(response.status, response.content_type, self._scrub(text, credentials))
        return Answer(response.status, "", reason, response.headers)

    def _scrub(self, text: str, credentials: Credentials) -> str:
        for secret in credentials.secrets():
            if secret:
                text = text.replace(secret, "[redacted]")
        return text

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._settings.max_concurrent_requests, ttl_dns_cache=10)
            # Proxies of the environment and cookies are not ours to use: both could leak credentials.
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
            )
        return self._session

    async def _ssl_context(self, call: Call, credentials: Credentials) -> ssl.SSLContext:
        async with self._tls_lock:
            if self._tls is None or self._tls[0] != credentials:
                try:
                    context = await asyncio.to_thread(credentials.ssl_context)
                except ValueError as error:
                    raise BackendRefused(f"{call.what}: {error}") from None
                self._tls = (credentials, context)
            return self._tls[1]
