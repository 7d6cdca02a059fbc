"""Requests over HTTP: within bounds, repeated where that is safe, with a token that is fresh each time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from yarl import URL

from scalable_topics.admin.errors import AdminError, UnavailableError, error_of
from scalable_topics.admin.requests import Request
from scalable_topics.admin.retries import MAX_ATTEMPTS, may_repeat, pause_seconds
from scalable_topics.layout.json_fields import parse_json
from scalable_topics.scrubbing import scrubbed
from scalable_topics.sdk.errors import ConnectError
from scalable_topics.sdk.gateway_options import GatewayOptions

_MOST_ANSWER_BYTES = 32 * 1024 * 1024
_MOST_REASON = 4000
_RETRY_AFTER = "Retry-After"
# Longer than the gateway looks at brokers for an answer.
_READ_SECONDS = 25.0
_LEAST_SECONDS = 0.001
# Those are for people to see to.
_TLS_ERRORS = (aiohttp.ClientSSLError, aiohttp.ClientConnectorCertificateError)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the gateway answered to a request that it did not refuse.

    Args:
        status: of HTTP.
        headers: of the answer.
        body: of JSON; None for none.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: Any


_GONE = Answer(204, {}, None)


@dataclass(frozen=True, slots=True)
class _Sent:
    status: int
    headers: Mapping[str, str]
    text: bytes
    authorization: str = field(repr=False)


class Transport:
    """Sends requests of one client.

    Args:
        gateway: how it is reached.
        timeout_seconds: of one request, its repetitions included; above 0.
    """

    def __init__(self, gateway: GatewayOptions, timeout_seconds: float) -> None:
        self._gateway = gateway
        self._timeout_seconds = timeout_seconds
        self._session: aiohttp.ClientSession | None = None
        self._opening = asyncio.Lock()
        self._closed = False

    async def send(self, request: Request) -> Answer:
        """Send a request. Raises AdminError for whatever is no success."""
        deadline = time.monotonic() + self._timeout_seconds
        for attempt in range(1, MAX_ATTEMPTS + 1):
            retry_after = None
            try:
                sent = await self._attempt(request, deadline - time.monotonic())
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                failure: AdminError = self._unreached(request, error)
                again = (request.operation.reads or _nothing_sent(error)) and not isinstance(error, _TLS_ERRORS)
            else:
                retry_after = sent.headers.get(_RETRY_AFTER)
                if not may_repeat(sent.status, retry_after, reads=request.operation.reads):
                    return _GONE if attempt > 1 and _is_gone(request, sent) else _answer(sent)
                failure, again = _refusal(sent), True
            pause = pause_seconds(attempt, retry_after)
            if not again or attempt == MAX_ATTEMPTS or time.monotonic() + pause >= deadline:
                raise failure
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt answers or raises")

    async def close(self) -> None:
        """Close the connections. Nothing can be sent any more."""
        self._closed = True
        if self._session is not None:
            await self._session.close()

    async def _attempt(self, request: Request, left_seconds: float) -> _Sent:
        session = await self._open()
        most_seconds = min(left_seconds, _READ_SECONDS) if request.operation.reads else left_seconds
        authorization = await asyncio.to_thread(_authorization, self._gateway)
        async with session.request(
            request.operation.method,
            URL(self._gateway.url.rstrip("/") + request.target, encoded=True),
            json=request.body,
            headers={"Authorization": authorization},
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(
                total=max(most_seconds, _LEAST_SECONDS), sock_connect=self._gateway.connect_timeout_seconds
            ),
        ) as response:
            return _Sent(response.status, response.headers, await _bounded(response), authorization)

    async def _open(self) -> aiohttp.ClientSession:
        async with self._opening:
            if self._closed:
                raise AdminError("the client is closed")
            if self._session is None:
                tls = await asyncio.to_thread(_tls, self._gateway)
                connector = aiohttp.TCPConnector(ssl=True if tls is None else tls)
                self._session = aiohttp.ClientSession(connector=connector)
            return self._session

    def _unreached(self, request: Request, error: Exception) -> UnavailableError:
        what = "no answer in time" if isinstance(error, TimeoutError) else _kind(error)
        known = request.operation.reads or _nothing_sent(error)
        unknown = "" if known else "; whether it was done is not known, so look before you repeat it"
        return UnavailableError(f"the gateway at {self._gateway.url} does not answer: {what}{unknown}")


def _authorization(gateway: GatewayOptions) -> str:
    try:
        return gateway.authorization()
    except ConnectError as error:
        raise AdminError(str(error)) from None


def _tls(gateway: GatewayOptions) -> Any:
    try:
        return gateway.tls()
    except ConnectError as error:
        raise AdminError(str(error)) from None


def _kind(error: Exception) -> str:
    """What went wrong, without the request: it carries the token."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    return f"{type(error).__name__}: {error.strerror}" if isinstance(error, OSError) else type(error).__name__


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    text = bytearray()
    async for chunk in response.content.iter_any():
        text += chunk
        if len(text) > _MOST_ANSWER_BYTES:
            raise AdminError(f"the answer is longer than {_MOST_ANSWER_BYTES} bytes", response.status)
    return bytes(text)


def _nothing_sent(error: Exception) -> bool:
    return isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)


def _is_gone(request: Request, sent: _Sent) -> bool:
    """Whether what is to be deleted is not there, by an earlier attempt whose answer was lost on its way here."""
    return request.operation.method == "DELETE" and sent.status == 404


def _answer(sent: _Sent) -> Answer:
    """The answer; raises AdminError for one that is no success, or no JSON."""
    if not 200 <= sent.status < 300:
        raise _refusal(sent)
    try:
        body = parse_json(sent.text) if sent.text.strip() else None
    except ValueError:
        raise AdminError("the answer is no JSON; is this the address of the gateway?", sent.status) from None
    return Answer(sent.status, sent.headers, body)


def _refusal(sent: _Sent) -> AdminError:
    """The error that an answer is."""
    try:
        body = parse_json(sent.text)
    except ValueError:
        body = None
    reason = body.get("reason") if isinstance(body, dict) else None
    if not isinstance(reason, str):
        return error_of(sent.status, "no reason is given; perhaps something in front of the gateway has answered")
    manifest = body.get("manifest") if isinstance(body, dict) else None
    # Something in front of the gateway may repeat what it was sent, and say whatever it likes.
    token = sent.authorization.partition(" ")[2]
    shown = scrubbed(manifest, [token], "***") if isinstance(manifest, str) else ""
    # Cut off last: nobody would know the beginning of a token that was cut in two.
    return error_of(sent.status, scrubbed(reason, [token], "***")[:_MOST_REASON], shown)
