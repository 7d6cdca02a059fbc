"""The gateway's error style: a status and a sentence that says what to do, as Pulsar's admin API answers."""

from __future__ import annotations

from aiohttp import web

RETRY_SECONDS = 3


class Refusal(Exception):
    """A request is answered with an error.

    Args:
        status: of HTTP.
        reason: what is wrong and what to do about it; holds no secret.
        manifest: what to apply instead, as YAML.
        again: whether the same may be asked again where nobody could answer: nothing was begun.
    """

    def __init__(self, status: int, reason: str, *, manifest: str = "", again: bool = True) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.manifest = manifest
        self.again = again


def error_response(
    status: int, reason: str, *, manifest: str = "", allow: str = "", again: bool = True
) -> web.Response:
    """`{"reason": ...}`, and when to come again or how to authenticate where that is the question.

    Args:
        status: of HTTP.
        reason: what is wrong and what to do about it.
        manifest: what to apply instead, if anything.
        allow: methods that there are, if this one is not among them.
        again: whether 429 and 503 say when to come again.
    """
    headers = {"Allow": allow} if allow else {}
    if status in (429, 503) and again:
        headers["Retry-After"] = str(RETRY_SECONDS)
    elif status == 401:
        headers["WWW-Authenticate"] = "Bearer, Pulsar"
    body = {"reason": reason, "manifest": manifest} if manifest else {"reason": reason}
    return web.json_response(body, status=status, headers=headers)
