"""One question to the gateway."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import aiohttp
from yarl import URL

from scalable_topics_operator.cli.faults import BadUsage, Refused, Unreachable
from scalable_topics_operator.cli.kubernetes import TopicRef

_TIMEOUT_SECONDS = 10.0


async def ask_gateway(base: str, token: str, ref: TopicRef, what: str) -> dict[str, Any]:
    """Ask for one thing about a topic; answers the JSON object. Raises CliError.

    Args:
        base: URL of the gateway.
        token: of the caller; goes into a header and nowhere else.
        ref: the topic.
        what: the last part of the path, such as `autoScale/explain`.
    """
    origin = _origin(base)
    topic = ref.topic
    parts = "/".join(quote(part, safe="") for part in (topic.tenant, topic.namespace, topic.local))
    url = URL(f"{origin}/admin/v2/scalable/{parts}/{what}", encoded=True)
    if ref.connection is not None:
        url = url.with_query(connection=ref.connection)
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)) as session,
            session.get(url, headers={"Authorization": f"Bearer {token}"}, allow_redirects=False) as response,
        ):
            status, text = response.status, await response.text()
    except TimeoutError:
        raise Unreachable(f"the gateway at {origin} did not answer in {_TIMEOUT_SECONDS:g} s") from None
    except (aiohttp.ClientConnectorError, aiohttp.ClientSSLError) as error:
        raise Unreachable(f"the gateway at {origin} cannot be reached: {error}; set --gateway") from None
    except (aiohttp.ClientError, OSError, UnicodeDecodeError) as error:
        raise Unreachable(f"the gateway at {origin} broke off: {type(error).__name__}") from None
    answer = _object(text)
    if status == 200 and answer is not None:
        return answer
    reason = str((answer or {}).get("reason") or "something else than a gateway's answer")
    if 400 <= status < 500:
        raise Refused(f"{topic}: {status} {reason}")
    raise Unreachable(f"{topic}: the gateway at {origin} answers {status} {reason}")


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
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
