"""One HTTP exchange with one server: bounded, without redirects, proxies or cookies."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Mapping

import aiohttp
from aiohttp import ClientHandlerType, ClientMiddlewareType
from yarl import URL

from scalable_topics.scrubbing import scrubbed
from scalable_topics_operator.backends.admin.call import Answer, Call
from scalable_topics_operator.backends.admin.credentials import Credentials
from scalable_topics_operator.backends.admin.origins import Origin
from scalable_topics_operator.backends.admin.packed_text import PackedText
from scalable_topics_operator.backends.admin.reasons import plain, reason_of
from scalable_topics_operator.operations.acting import seconds_to_act
from scalable_topics_operator.operations.errors import BackendRefused, BackendUnavailable

_MESSAGE_HEADER = "x-pulsar-"
_ERROR_BODY_BYTES = 64 * 1024
# Statistics of idle segments are a hundredth of their size when they are packed (measured); of busy ones they are more.
_MOST_TIMES_UNPACKED = 16


class ExchangeFailed(Exception):
    """No complete answer came.

    Args:
        text: which call, which server and what happened; holds no secret.
        unsent: the request certainly did not reach the server.
        tls: the TLS handshake failed, so other credentials may help.
    """

    def __init__(self, text: str, *, unsent: bool = False, tls: bool = False) -> None:
        super().__init__(text)
        self.unsent = unsent
        self.tls = tls

    @property
    def error(self) -> BackendUnavailable:
        """The error to raise when the call is given up."""
        return BackendUnavailable(str(self))


class Wire:
    """Connections to the servers of one cluster.

    Args:
        max_concurrent_requests: requests open at once; more wait for their turn.
        request_timeout_seconds: bound of one exchange, connecting and reading included.
        max_body_bytes: larger answers are refused; of one that is kept packed it bounds what is kept.
    """

    def __init__(self, max_concurrent_requests: int, request_timeout_seconds: float, max_body_bytes: int) -> None:
        self._limit = max_concurrent_requests
        self._timeout_seconds = request_timeout_seconds
        self._max_body_bytes = max_body_bytes
        self._permits = asyncio.Semaphore(max_concurrent_requests)
        self._session: aiohttp.ClientSession | None = None
        self._closed = False
        self._tls: tuple[object, ssl.SSLContext] | None = None
        self._tls_lock = asyncio.Lock()

    async def close(self) -> None:
        """Close all connections, for good."""
        self._closed = True
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def exchange(self, call: Call, url: str, origin: Origin, credentials: Credentials) -> Answer:
        """Send `call` with the credentials to `url`, which lies on `origin`, and read the answer.

        Raises ExchangeFailed; BackendRefused for unusable TLS material or an answer beyond all bounds;
        BackendUnavailable after `close`.
        """
        if self._closed:
            raise BackendUnavailable(f"{call.what}: the connection to {origin} was closed")
        # Brokers compress whatever they may, which for a few hundred bytes costs both sides more than it saves.
        encoding = "gzip" if call.is_large else "identity"
        headers = {"Accept": "application/json", "Accept-Encoding": encoding, **credentials.headers()}
        data: bytes | None = None
        if call.body is not None:
            headers["Content-Type"] = "application/json"
            data = json.dumps(call.body, ensure_ascii=False, separators=(",", ":")).encode()
        tls: ssl.SSLContext | bool = True
        if origin.scheme == "https":
            tls = await self._ssl_context(call, credentials)
        timeout_seconds = self._timeout_seconds
        try:
            async with self._permits:
                timeout_seconds = seconds_to_act(time.monotonic(), self._timeout_seconds)
                if not timeout_seconds:
                    raise BackendUnavailable(
                        f"{call.what}: nothing was sent: another replica may lead this topic by now"
                    )
                async with (
                    asyncio.timeout(timeout_seconds),
                    self._opened().request(
                        call.method,
                        URL(url, encoded=True),
                        data=data,
                        headers=headers,
                        # Brokers answer 415 to the type that would be put on a request without a body.
                        skip_auto_headers=("Content-Type", "User-Agent"),
                        allow_redirects=False,
                        auto_decompress=not call.is_kept_packed,
                        ssl=tls,
                        middlewares=(_send_once(),),
                    ) as response,
                ):
                    return await self._read(call, response, credentials)
        except TimeoutError:
            text = f"{call.what}: no answer from {origin} in {timeout_seconds:.3g} s"
            raise ExchangeFailed(text) from None
        except aiohttp.ClientConnectorError as error:
            text = f"{call.what}: cannot connect to {origin}: {_problem(error, credentials)}"
            raise ExchangeFailed(text, unsent=True, tls=isinstance(error, aiohttp.ClientSSLError)) from None
        except (aiohttp.ClientError, OSError) as error:
            text = f"{call.what}: talking to {origin} failed: {_problem(error, credentials)}"
            raise ExchangeFailed(text, tls=isinstance(error, (aiohttp.ClientSSLError, ssl.SSLError))) from None

    async def _read(self, call: Call, response: aiohttp.ClientResponse, credentials: Credentials) -> Answer:
        failed = response.status >= 300
        limit = _ERROR_BODY_BYTES if failed else self._max_body_bytes
        body = bytearray()
        async for chunk in response.content.iter_any():
            body += chunk
            if len(body) > limit:
                if not failed:
                    raise BackendRefused(f"{call.what}: the answer is larger than {limit} bytes")
                break
        del body[limit:]
        # What is not kept packed is unpacked already.
        encoding = response.headers.get("Content-Encoding", "") if call.is_kept_packed else ""
        if not failed and call.is_kept_packed:
            most_bytes = _MOST_TIMES_UNPACKED * self._max_body_bytes
            return Answer(response.status, packed=PackedText(bytes(body), encoding, most_bytes))
        if not failed:
            text = body.decode("utf-8", "replace")
            return Answer(response.status, text, message_headers=_message_headers(response.headers))
        text = PackedText(bytes(body), encoding).head(_ERROR_BODY_BYTES)
        return Answer(
            response.status,
            # Again at the end: of a page, what is said is decoded first.
            reason=_scrubbed(
                reason_of(response.status, response.content_type, _scrubbed(text, credentials)), credentials
            ),
            location=response.headers.get("Location", ""),
            retry_after=response.headers.get("Retry-After"),
        )

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._limit, ttl_dns_cache=10),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                # A proxy from the environment would see the credentials.
                trust_env=False,
            )
        return self._session

    async def _ssl_context(self, call: Call, credentials: Credentials) -> ssl.SSLContext:
        material = (credentials.certificate, credentials.trusted_ca_pem, credentials.verify_hostname)
        async with self._tls_lock:
            if self._tls is None or self._tls[0] != material:
                try:
                    context = await asyncio.to_thread(credentials.ssl_context)
                except ValueError as error:
                    raise BackendRefused(f"{call.what}: {error}") from None
                self._tls = (material, context)
            return self._tls[1]


def _send_once() -> ClientMiddlewareType:
    # The library would send a call again by itself when the connection breaks: no concern of its own, as not
    # every call bears that.
    sent = False

    async def send(request: aiohttp.ClientRequest, handler: ClientHandlerType) -> aiohttp.ClientResponse:
        nonlocal sent
        if sent:
            raise aiohttp.ClientConnectionError("the connection was closed without an answer")
        sent = True
        return await handler(request)

    return send


def _problem(error: BaseException, credentials: Credentials) -> str:
    cause = getattr(error, "os_error", None) or error
    return plain(_scrubbed(str(cause) or type(cause).__name__, credentials))


def _scrubbed(text: str, credentials: Credentials) -> str:
    return scrubbed(text, credentials.secrets())


def _message_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {
        name.lower().removeprefix(_MESSAGE_HEADER): value
        for name, value in headers.items()
        if name.lower().startswith(_MESSAGE_HEADER)
    }
