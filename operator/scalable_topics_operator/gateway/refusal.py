"""The gateway's error style: a status and a sentence that says what to do, as Pulsar's admin API answers."""

from __future__ import annotations

from aiohttp import web

RETRY_SECONDS = 3


class Refusal(Exception):
    """A request is answered with an error.

    Args:
        status: of HTTP.
        reason: what is wrong and what to do about it; holds no secret.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def error_response(status: int, reason: str) -> web.Response:
    """`{"reason": ...}`, and when to come again or how to authenticate where that is the question."""
    headers = {}
    if status in (429, 503):
        headers["Retry-After"] = str(RETRY_SECONDS)
    elif status == 401:
        headers["WWW-Authenticate"] = "Bearer, Pulsar"
    return web.json_response({"reason": reason}, status=status, headers=headers)
