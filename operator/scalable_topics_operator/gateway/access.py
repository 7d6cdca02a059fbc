"""Who calls, and whether that one may see a topic: Kubernetes decides, and is asked once a minute at most (R33)."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.cluster.reviews import AUDIENCE, Caller, review_access, review_token
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.review_cache import ReviewCache

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REVIEW_SECONDS = 1.5
_REVIEWS_AT_A_TIME = 8
_SCHEME = "bearer"


class Access:
    """Authenticates and authorizes callers. Tokens are neither kept nor named: answers are found again by a keyed hash.

    Args:
        kube: the API server.
        monotonic: clock of the cache.
    """

    def __init__(self, kube: KubeClient, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._salt = secrets.token_bytes(32)
        self._reviews = asyncio.Semaphore(_REVIEWS_AT_A_TIME)
        self._callers: ReviewCache[bytes, Caller | None] = ReviewCache(lambda one: one is not None, monotonic=monotonic)
        self._rights: ReviewCache[tuple[bytes, str, str, str], bool] = ReviewCache(bool, monotonic=monotonic)

    async def caller(self, authorization: str | None) -> tuple[bytes, Caller]:
        """Who sends an Authorization header, and by what that one's rights are kept.

        Raises Refusal: 401 for nobody we know, 503 when that cannot be found out.
        """
        token = bearer_token(authorization)
        if token is None:
            raise Refusal(401, f"send `Authorization: Bearer` with a Kubernetes token made for audience {AUDIENCE}")
        fingerprint = hashlib.blake2b(token.encode(), digest_size=32, key=self._salt).digest()
        caller = await self._callers.get(
            fingerprint, lambda: self._ask("token", lambda: review_token(self._kube, token))
        )
        if caller is None:
            raise Refusal(
                401, f"the token is not valid for audience {AUDIENCE}: kubectl create token NAME --audience {AUDIENCE}"
            )
        return fingerprint, caller

    async def require(self, authorization: str | None, verb: str, key: ObjectKey) -> None:
        """Make sure that a caller may do something with a ScalableTopic. Raises Refusal: 401, 403, 503."""
        fingerprint, caller = await self.caller(authorization)
        allowed = await self._rights.get(
            (fingerprint, verb, key.namespace, key.name),
            lambda: self._ask(
                "access", lambda: review_access(self._kube, caller, verb, TOPICS, key.namespace, key.name)
            ),
        )
        if not allowed:
            raise Refusal(
                403,
                f"{caller.name} lacks the right to {verb} {key}; bind a Role with verb {verb} on "
                f"{TOPICS.plural}.{TOPICS.group} in namespace {key.namespace}",
            )

    async def close(self) -> None:
        """Give up reviews under way."""
        await self._callers.close()
        await self._rights.close()

    async def _ask(self, what: str, review: Callable[[], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(_REVIEW_SECONDS), self._reviews:
                return await review()
        except (KubeError, TimeoutError) as error:
            logger.warning("a %s review failed: %s", what, str(error) or f"no answer in {_REVIEW_SECONDS} s")
            raise Refusal(
                503, f"the Kubernetes API server does not answer the {what} review, so nothing is shown; try again"
            ) from None


def bearer_token(authorization: str | None) -> str | None:
    """The token in an Authorization header, if there is one."""
    scheme, _, token = (authorization or "").partition(" ")
    token = token.strip()
    return token if scheme.lower() == _SCHEME and token and token.isascii() else None
