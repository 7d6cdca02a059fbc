"""Questions to the gateway."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Self
from urllib.parse import quote

import aiohttp
from yarl import URL

from scalable_topics.layout import TopicName
from scalable_topics.layout.json_fields import parse_json
from scalable_topics_operator.cli.faults import Absent, BadUsage, Refused, Unreachable, Unrecognised
from scalable_topics_operator.cli.kubernetes import TopicRef

_TIMEOUT_SECONDS = 10.0
_UNAUTHORIZED, _NOT_FOUND = 401, 404


class Gateway:
    """A gateway, and who asks it. Use as an async context manager, whose end ends what is being asked.

    Connections are kept for the next question: where the API server leads to a pod each takes a WebSocket of its own.

    Args:
        base: its URL.
        token: of the caller; goes into a header and nowhere else.
        name: what it is called in messages.
        ssl_context: how its certificate is checked; as the machine checks others, if None.
        broken: why the way to it is, or None.
    """

    def __init__(
        self,
        base: str,
        token: str,
        name: str = "",
        ssl_context: ssl.SSLContext | None = None,
        broken: Callable[[], object] = lambda: None,
    ) -> None:
        self._origin = _origin(base)
        self._token = token
        self._name = name or f"the gateway at {self._origin}"
        self._ssl = ssl_context
        self._broken = broken
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS),
            # Who asks much bounds it; a question that waits for a connection would have less time for its answer.
            connector=aiohttp.TCPConnector(limit=0),
            # Who asks is in the token alone.
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, ref: TopicRef, what: str) -> dict[str, Any]:
        """Ask for one thing about a topic; answers the JSON object. Raises CliError.

        Args:
            ref: the topic.
            what: the last part of the path, such as `autoScale/explain`.
        """
        url = URL(f"{self._origin}/admin/v2/scalable/{_parts(ref.topic)}/{what}", encoded=True)
        return await self._object(url, ref)

    async def cursors(self, ref: TopicRef, descriptor: str) -> dict[str, Any]:
        """The cursors of a segment, by subscription. Raises CliError.

        Args:
            ref: the topic.
            descriptor: of the segment, such as `0000-7fff-0`.
        """
        url = URL(f"{self._origin}/admin/v2/segments/{_parts(ref.topic)}/{descriptor}/subscriptions", encoded=True)
        return await self._object(url, ref)

    async def version(self) -> str:
        """The operator's version, which nobody needs a token for. Raises CliError."""
        status, text = await self._get(URL(f"{self._origin}/openapi.json"), {})
        answer = _object(text) or {}
        if status != 200 or not isinstance(answer.get("info"), dict):
            raise Unreachable(f"{self._name} answers {status} to the question for its version")
        return str(answer["info"].get("version"))

    async def _object(self, url: URL, ref: TopicRef) -> dict[str, Any]:
        if ref.connection is not None:
            url = url.with_query(connection=ref.connection)
        status, text = await self._get(url, {"Authorization": f"Bearer {self._token}"})
        answer = _object(text)
        if status == 200 and answer is not None:
            return answer
        reason = str((answer or {}).get("reason") or "something else than a gateway's answer")
        if status == _UNAUTHORIZED:
            raise Unrecognised(f"{ref.topic}: {status} {reason}")
        if status == _NOT_FOUND:
            raise Absent(f"{ref.topic}: {status} {reason}")
        if 400 <= status < 500:
            raise Refused(f"{ref.topic}: {status} {reason}")
        raise Unreachable(f"{ref.topic}: {self._name} answers {status} {reason}")

    async def _get(self, url: URL, headers: dict[str, str]) -> tuple[int, str]:
        if self._session is None:
            raise RuntimeError("Gateway is used outside its context manager")
        if self._session.closed:
            raise Unreachable(f"{self._name} is not asked any more")
        try:
            async with self._session.get(
                url, headers=headers, allow_redirects=False, ssl=self._ssl or True
            ) as response:
                return response.status, await response.text()
        except asyncio.CancelledError:
            # Closing a session cancels what waits for a connection of it, and not whoever asked.
            task = asyncio.current_task()
            if not self._session.closed or task is None or task.cancelling():
                raise
            raise Unreachable(f"{self._name} is not asked any more") from None
        except TimeoutError:
            raise Unreachable(f"{self._name} did not answer in {_TIMEOUT_SECONDS:g} s") from None
        except (aiohttp.ClientConnectorError, aiohttp.ClientSSLError) as error:
            # aiohttp's own text tells of TLS where there is none.
            what = getattr(error, "strerror", None) or error
            advice = "stopics doctor says whether the operator runs, --gateway names another"
            raise Unreachable(f"{self._name} cannot be reached: {what}; {advice}") from None
        except (aiohttp.ClientError, OSError, UnicodeDecodeError) as error:
            raise Unreachable(f"{self._name} broke off: {self._broken() or type(error).__name__}") from None


def _parts(topic: TopicName) -> str:
    return "/".join(quote(part, safe="") for part in (topic.tenant, topic.namespace, topic.local))


def _origin(base: str) -> str:
    try:
        url = URL(base)
        usable = url.scheme in ("http", "https") and bool(url.host) and url.port is not None
    except ValueError:
        usable = False
    # A password in it would show up in messages.
    if not usable or url.user is not None or url.password is not None:
        raise BadUsage("the gateway's URL must be http(s)://host:port, without user and password")
    return base.rstrip("/")


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = parse_json(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
