"""Answers that are what the caller has already: whoever asks again and again is sent only what is new."""

from __future__ import annotations

import hashlib

from aiohttp import ETag, web

_TAG_BYTES = 12
_ANY = "*"


def unless_known(request: web.Request, response: web.StreamResponse) -> web.StreamResponse:
    """The response, with an ETag of what it says; 304 without a body where the caller's `If-None-Match` has that.

    It is a hash, so that it is the same whichever replica answers.

    Args:
        request: the caller's.
        response: the answer to it.
    """
    if request.method != "GET" or response.status != 200 or not isinstance(response, web.Response):
        return response
    if not isinstance(response.body, bytes):
        return response
    tag = hashlib.blake2b(response.body, digest_size=_TAG_BYTES).hexdigest()
    if _knows(request.if_none_match, tag):
        kept = {name: value for name, value in response.headers.items() if not name.lower().startswith("content-")}
        response = web.Response(status=304, headers=kept)
    response.etag = tag
    return response


def _knows(known: tuple[ETag, ...] | None, tag: str) -> bool:
    return any(one.value in (tag, _ANY) for one in known or ())
