"""Calls to the admin API of one Pulsar cluster: retries, redirects, credentials (DESIGN end of §9, R34)."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urljoin

from yarl import URL

from scalable_topics_operator.backends.admin.call import Answer, Call
from scalable_topics_operator.backends.admin.credentials import Credentials, CredentialSource, Token
from scalable_topics_operator.backends.admin.origins import Origin, Trust, parse_trusted_broker
from scalable_topics_operator.backends.admin.reasons import (
    About,
    error_for,
    is_authorization_refusal,
    is_transient,
)
from scalable_topics_operator.backends.admin.retry import RetryPolicy, parse_retry_after
from scalable_topics_operator.backends.admin.wire import ExchangeFailed, Wire
from scalable_topics_operator.operations.acting import seconds_to_act
from scalable_topics_operator.operations.errors import BackendError, BackendRefused, BackendUnavailable

log = logging.getLogger(__name__)

Observe = Callable[[str, str, float], None]
"""Called once a call with operation, outcome (`ok`, `http_409`, an error's class name) and seconds."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BROKERS_PATH = "/admin/v2/brokers"
_CALLERS_REQUESTS = 4
_CALLERS_BODY_BYTES = 64 * 1024
_OWNER_SECONDS = 0.5
"""How long a broker that was found ahead may be taken for the owner still."""


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
        refresh_seconds: shortest time between two readings of the broker list, and of credentials whose
            role merely lacks a right.
        max_body_bytes: larger answers are refused; of one that is kept packed it bounds what is kept, and 16 times as
            much what it may be unpacked.
    """

    admin_url: str
    trusted_brokers: tuple[str, ...] = ()
    max_concurrent_requests: int = 16
    request_timeout_seconds: float = 10.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    max_redirects: int = 5
    refresh_seconds: float = 5.0
    max_body_bytes: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        if self.max_concurrent_requests < 1 or not self.request_timeout_seconds > 0:
            raise ValueError("at least 1 concurrent request and a request timeout greater than 0 are needed")


class _TransientAnswer(Exception):
    def __init__(self, error: BackendError, retry_after_seconds: float | None) -> None:
        super().__init__(str(error))
        self.error = error
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

    Raises ValueError for an admin URL or trusted broker that cannot be read.
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
        self._wire = Wire(settings.max_concurrent_requests, settings.request_timeout_seconds, settings.max_body_bytes)
        self._callers_wire = Wire(_CALLERS_REQUESTS, settings.request_timeout_seconds, _CALLERS_BODY_BYTES)
        self._refresh_lock = asyncio.Lock()
        self._refreshed_at = float("-inf")
        self._brokers_lock = asyncio.Lock()
        self._brokers_read_at = float("-inf")
        self._brokers_problem = ""
        self._owners: dict[str, tuple[str, Origin, float]] = {}
        self._unanswered: set[str] = set()

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
        await self._wire.close()
        await self._callers_wire.close()

    async def send(self, call: Call) -> Answer:
        """Send one call and answer 2xx or what `call.allow` names.

        Raises the errors of `operations.errors`, with the object and the broker's reason in the text.
        """
        return await self._observed(call, lambda: self._with_credentials(call))

    async def send_as(self, call: Call, token: Token) -> Answer:
        """Send one call with the token of somebody else, whom the brokers are to judge by it; else like `send`.

        The token goes where the connection's own credentials may go. These do not go along, not even a client
        certificate, or brokers would judge the operator. Such calls are few at a time, and hold up no others.
        """
        return await self._observed(call, lambda: self._with_token(call, token))

    async def _observed(self, call: Call, send: Callable[[], Awaitable[Answer]]) -> Answer:
        started = self._monotonic()
        outcome = "cancelled"
        try:
            answer = await self._with_retries(call, send, started)
            outcome = "ok" if answer.status < 300 else f"http_{answer.status}"
            return answer
        except BackendError as error:
            outcome = type(error).__name__
            raise
        finally:
            if self._observe is not None:
                self._observe(call.operation, outcome, self._monotonic() - started)

    async def find_owner(self, call: Call) -> None:
        """Find the broker that a call with an `owner_path` goes to, so that the next such call need not, if it follows
        at once. Quiet when it is not found.
        """
        assert call.owner_path is not None
        found_at = self._monotonic()
        with suppress(BackendError, ExchangeFailed, _TransientAnswer):
            answer, server, here = await self._chase_owner(call, call.owner_path, await self._source.current())
            if answer.status < 300:
                self._owners[call.owner_path] = server, here, found_at

    async def _with_retries(self, call: Call, send: Callable[[], Awaitable[Answer]], started: float) -> Answer:
        attempt = 0
        while True:
            attempt += 1
            repeatable = call.idempotent
            retry_after_seconds: float | None = None
            try:
                return await send()
            except ExchangeFailed as failed:
                error: BackendError = failed.error
                repeatable = repeatable or failed.unsent
            except _TransientAnswer as transient:
                error = transient.error
                retry_after_seconds = transient.retry_after_seconds
            elapsed_seconds = self._monotonic() - started
            wait_seconds = self._settings.retry.wait_seconds(
                attempt, elapsed_seconds=elapsed_seconds, retry_after_seconds=retry_after_seconds
            )
            if wait_seconds is None or not repeatable:
                raise error
            log.debug("repeating in %.2f s after: %s", wait_seconds, error)
            await self._sleep(wait_seconds)

    async def _with_credentials(self, call: Call) -> Answer:
        credentials = await self._source.current()
        try:
            answer = await self._follow(call, credentials)
        except ExchangeFailed as failed:
            if not failed.tls or (renewed := await self._renewed(credentials, limited=True)) == credentials:
                raise
            return self._judged(call, await self._follow(call, renewed))
        if answer.status == 401:
            # Pulsar says 401 also to a known role that lacks a right; new credentials rarely mend that.
            limited = is_authorization_refusal(answer.reason)
            if (renewed := await self._renewed(credentials, limited=limited)) != credentials:
                answer = await self._follow(call, renewed)
        return self._judged(call, answer)

    async def _with_token(self, call: Call, token: Token) -> Answer:
        own = await self._source.current()
        shown = Credentials(token, trusted_ca_pem=own.trusted_ca_pem, verify_hostname=own.verify_hostname)
        answer, _, _ = await self._chase(call, self._admin_url, self._trust.admin, own, shown)
        return self._judged(call, answer)

    async def _renewed(self, refused: Credentials, *, limited: bool) -> Credentials:
        # Callers refused together read the new credentials once (hazard C60).
        async with self._refresh_lock:
            known = await self._source.current()
            if known != refused:
                return known
            if limited and self._monotonic() - self._refreshed_at < self._settings.refresh_seconds:
                return refused
            self._refreshed_at = self._monotonic()
            return await self._source.refresh()

    def _judged(self, call: Call, answer: Answer) -> Answer:
        if answer.status < 300 or answer.status in call.allow:
            return answer
        error = error_for(call.what, answer.status, answer.reason, call.about, right=call.right)
        if is_transient(answer.status, answer.reason):
            raise _TransientAnswer(error, parse_retry_after(answer.retry_after))
        raise error

    async def _follow(self, call: Call, credentials: Credentials) -> Answer:
        if call.owner_path is not None:
            return await self._follow_to_owner(call, call.owner_path, credentials)
        server, here = self._admin_url, self._trust.admin
        if call.broker:
            server, here = await self._listed_broker(call, credentials)
        answer, _, _ = await self._chase(call, server, here, credentials)
        return answer

    async def _listed_broker(self, call: Call, credentials: Credentials) -> tuple[str, Origin]:
        """Address of a broker to be asked itself; reached like the admin URL, encrypted or not."""
        server = f"{self._trust.admin.scheme}://{call.broker}"
        try:
            broker = Origin.parse(server)
        except ValueError as error:
            raise BackendRefused(f"{call.what}: the cluster lists a broker that cannot be asked: {error}") from None
        trusted, _ = await self._trusts(broker, credentials, self._monotonic())
        if not trusted:
            raise BackendUnavailable(f"{call.what}: {broker} is not among the brokers that the cluster lists")
        return server, broker

    async def _follow_to_owner(self, call: Call, owner_path: str, credentials: Credentials) -> Answer:
        ahead = self._owners.pop(owner_path, None)
        if ahead is not None and self._monotonic() - ahead[2] < _OWNER_SECONDS:
            server, here, _ = ahead
        else:
            answer, server, here = await self._chase_owner(call, owner_path, credentials)
            if answer.status >= 300:
                return answer
        if owner_path in self._unanswered and here == self._trust.admin:
            server, here = await self._looked_up(call, credentials)
        try:
            answer, _, _ = await self._chase(call, server, here, credentials)
        except ExchangeFailed:
            self._unanswered.add(owner_path)
            raise
        self._unanswered.discard(owner_path)
        return answer

    async def _looked_up(self, call: Call, credentials: Credentials) -> tuple[str, Origin]:
        """The address of the broker a call is for, if that may be known and trusted, else the admin URL."""
        admin = self._admin_url, self._trust.admin
        if call.lookup_path is None:
            return admin
        began_at = self._monotonic()
        look = Call("lookup", "GET", call.lookup_path, call.target, call.about)
        answer, _, _ = await self._chase(look, *admin, credentials)
        name = "httpUrlTls" if self._trust.admin.scheme == "https" else "httpUrl"
        try:
            found = answer.json(look.what) if answer.status < 300 else None
            server = str(found.get(name) or "").rstrip("/") if isinstance(found, dict) else ""
            broker = Origin.parse(server)
        except (BackendUnavailable, ValueError):
            return admin
        if self._trust.weakens(self._trust.admin, broker):
            return admin
        trusted, _ = await self._trusts(broker, credentials, began_at)
        return (server, broker) if trusted else admin

    async def _trusts(self, server: Origin, credentials: Credentials, began_at: float) -> tuple[bool, bool]:
        """Whether a server may see the credentials, and whether that is known from a list no older than `began_at`."""
        verified = credentials.verify_hostname
        if self._trust.allows(server, verified_tls=verified):
            return True, True
        current = await self._read_brokers(credentials, began_at)
        return self._trust.allows(server, verified_tls=verified), current

    async def _chase_owner(self, call: Call, owner_path: str, credentials: Credentials) -> tuple[Answer, str, Origin]:
        find = Call("find-owner", "GET", owner_path, call.target, call.about)
        answer, url, here = await self._chase(find, self._admin_url, self._trust.admin, credentials)
        # Without what the redirect added to the path.
        server = self._admin_url if here == self._trust.admin else str(URL(url, encoded=True).origin())
        return answer, server, here

    async def _chase(
        self, call: Call, server: str, here: Origin, credentials: Credentials, shown: Credentials | None = None
    ) -> tuple[Answer, str, Origin]:
        """Send a call to a server and follow redirects; answers who has answered, too.

        Servers are shown the connection's credentials, or others in their place.
        """
        url = server + call.path
        if call.query:
            url = str(URL(url, encoded=True).with_query(dict(call.query)))
        began_at = self._monotonic()
        for _ in range(self._settings.max_redirects + 1):
            if shown is None:
                answer = await self._wire.exchange(call, url, here, credentials)
            else:
                answer = await self._callers_wire.exchange(call, url, here, shown)
            if answer.status not in _REDIRECTS:
                return answer, url, here
            url, here = await self._next_hop(call, answer, url, here, credentials, began_at)
        text = f"{call.what}: more than {self._settings.max_redirects} redirects"
        raise _TransientAnswer(BackendUnavailable(text), None)

    async def _next_hop(
        self, call: Call, answer: Answer, url: str, here: Origin, credentials: Credentials, began_at: float
    ) -> tuple[str, Origin]:
        if answer.status not in (307, 308):
            # These would turn the call into a GET, of a log-in page for example.
            raise BackendRefused(f"{call.what}: {here} answered redirect {answer.status}; brokers send 307")
        try:
            target_url = urljoin(url, answer.location)
            target = Origin.parse(target_url)
        except ValueError as error:
            raise BackendRefused(f"{call.what}: {here} sent a redirect that is refused: {error}") from None
        if self._trust.weakens(here, target) or self._trust.weakens(self._trust.admin, target):
            raise BackendRefused(f"{call.what}: {here} redirects from https to {target}; refused, nothing was sent")
        trusted, current = await self._trusts(target, credentials, began_at)
        if trusted:
            return target_url, target
        text = (
            f"{call.what}: {here} redirects to {target}, neither a broker the cluster lists nor in "
            f"trustedBrokers{self._brokers_problem}; refused, nothing was sent"
        )
        # A broker that has just joined may be missing from a list read before this call.
        raise BackendRefused(text) if current else BackendUnavailable(text)

    async def _read_brokers(self, credentials: Credentials, began_at: float) -> bool:
        """Read the broker list from the admin URL itself; False if it is older than `began_at` but too recent to
        ask again.
        """
        async with self._brokers_lock:
            if self._brokers_read_at >= began_at:
                return True
            if self._monotonic() - self._brokers_read_at < self._settings.refresh_seconds:
                return False
            asked_at = self._monotonic()
            call = Call("list-brokers", "GET", _BROKERS_PATH, self._admin_url, About.CLUSTER)
            try:
                answer = await self._wire.exchange(call, self._admin_url + call.path, self._trust.admin, credentials)
                brokers = answer.json(call.what) if answer.status == 200 else None
            except (ExchangeFailed, BackendError) as error:
                if not seconds_to_act(time.monotonic(), 1.0):
                    # It says nothing about the brokers that this caller must not ask any more.
                    return False
                self._brokers_problem = f" (the broker list could not be read: {error})"
                self._brokers_read_at = asked_at
                return True
            self._brokers_read_at = asked_at
            if isinstance(brokers, list):
                self._trust = self._trust.with_listed(str(broker) for broker in brokers)
                self._brokers_problem = ""
            else:
                self._brokers_problem = f" (the broker list could not be read: {answer.reason or 'no list'})"
            return True
