"""Who calls, and whether that one may do something with a topic: Kubernetes decides, or the topic's Pulsar cluster;
either is asked once a minute at most (R33).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from scalable_topics_operator.cluster.caller import Caller
from scalable_topics_operator.cluster.kube_client import KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import POLICIES, SEGMENT_OPERATIONS, SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.cluster.reviews import AUDIENCE, review_access, review_token
from scalable_topics_operator.gateway.pulsar_tokens import PulsarTokens
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.review_cache import ReviewCache

logger = logging.getLogger(__name__)

T = TypeVar("T")

LOOKUP, CONSUME, PRODUCE = "lookup", "consume", "produce"
"""Verbs on `scalabletopics` besides the ordinary ones (R33)."""

UNFOUND_FOR_TOKEN = (
    "no topic of this name is known whose Pulsar cluster accepts the token: check the name, the token, and where "
    "several clusters have the topic say which with ?connection=namespace/name"
)
"""What a token of Pulsar is told that nobody knows: not even whether there is the topic."""

_REVIEW_SECONDS = 1.5
_TURN_SECONDS = 5.0
"""How long a review may take, the wait for its turn included."""
_REVIEWS_AT_A_TIME = 8
NAMESPACES_AT_A_TIME = 2
"""Reviews for those who ask about all namespaces, beside the others: whoever asks about one never waits for these."""
_NAMESPACES_KEPT = 32_768
_BEARER, _PULSAR = "bearer", "pulsar"
_PULSAR_VERBS = frozenset({LOOKUP, CONSUME})
_RESOURCES: Mapping[str, Resource] = {one.plural: one for one in (TOPICS, SUBSCRIPTIONS, SEGMENT_OPERATIONS, POLICIES)}


class Access:
    """Authenticates and authorizes callers. Tokens are neither kept nor named: answers are found again by a keyed hash.

    Args:
        kube: the API server, which judges Kubernetes tokens.
        pulsar: judges tokens of Pulsar.
        monotonic: clock of the cache.
    """

    def __init__(self, kube: KubeClient, pulsar: PulsarTokens, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._kube = kube
        self._pulsar = pulsar
        self._salt = secrets.token_bytes(32)
        self._reviews = asyncio.Semaphore(_REVIEWS_AT_A_TIME)
        self._callers: ReviewCache[bytes, Caller | None] = ReviewCache(lambda one: one is not None, monotonic=monotonic)
        self._rights: ReviewCache[tuple[bytes, str, ObjectKey], bool] = ReviewCache(bool, monotonic=monotonic)
        self._namespace_reviews = asyncio.Semaphore(NAMESPACES_AT_A_TIME)
        # A page shows what is in hundreds of namespaces and is asked for every few seconds: a refusal counts as long
        # as a right, or each of these would be asked about again for every page.
        self._shown: ReviewCache[tuple[bytes, str, ObjectKey], bool] = ReviewCache(
            bool, refused_seconds=60.0, most=_NAMESPACES_KEPT, monotonic=monotonic
        )

    async def recognize(self, authorization: str | None, verb: str) -> None:
        """Make sure that a caller may be somebody, before anything is told of topics.

        A token of Pulsar is known by the cluster of a topic only, so that what follows must tell its bearer nothing
        else than `UNFOUND_FOR_TOKEN` as long as it was not judged.

        Raises Refusal: 401 for nobody we know, 403 for a verb that the token is no good for, 503.
        """
        if pulsar_token(authorization) is None:
            await self._caller(authorization, math.inf)
        else:
            _require_pulsar_verb(verb)

    async def require(
        self, authorization: str | None, verb: str, key: ObjectKey, *, granted_within_seconds: float = math.inf
    ) -> str:
        """Make sure that a caller may do something with an object; answers by what that one is counted.

        Args:
            authorization: the header.
            verb: an ordinary one, or on a ScalableTopic `lookup`, `consume` or `produce`.
            key: of the object; without a name it stands for all of its kind in the namespace.
            granted_within_seconds: how old a good answer may be that was given before.

        Raises Refusal: 401, 403, 503.
        """
        token = pulsar_token(authorization)
        if token is not None:
            return await self._require_of_pulsar(token, verb, key, granted_within_seconds)
        fingerprint, caller = await self._caller(authorization, granted_within_seconds)
        if not await self._may(fingerprint, caller, verb, key, granted_within_seconds):
            raise lacking(caller, verb, key)
        return f"user {caller.name}"

    async def allows(self, authorization: str | None, verb: str, key: ObjectKey) -> bool:
        """Whether the bearer of a Kubernetes token may do something, as for `require`. Raises Refusal: 401, 503."""
        fingerprint, caller = await self._caller(authorization, math.inf)
        return await self._may(fingerprint, caller, verb, key, math.inf)

    async def shows(self, authorization: str | None, verb: str, key: ObjectKey) -> bool:
        """As `allows`, for somebody who looks at many namespaces: asked a few at a time, and kept for a minute.

        Raises Refusal: 401, 503.
        """
        fingerprint, caller = await self._caller(authorization, math.inf)
        return await self._shown.get(
            (fingerprint, verb, key), lambda: self._review(caller, verb, key, self._namespace_reviews)
        )

    async def caller(self, authorization: str | None) -> Caller:
        """Whose token of Kubernetes a header carries. Raises Refusal: 401, 503."""
        return (await self._caller(authorization, math.inf))[1]

    async def close(self) -> None:
        """Give up reviews under way."""
        await self._callers.close()
        await self._rights.close()
        await self._shown.close()
        await self._pulsar.close()

    async def _may(
        self, fingerprint: bytes, caller: Caller, verb: str, key: ObjectKey, granted_within_seconds: float
    ) -> bool:
        return await self._rights.get(
            (fingerprint, verb, key),
            lambda: self._review(caller, verb, key, self._reviews),
            granted_within_seconds=granted_within_seconds,
        )

    async def _review(self, caller: Caller, verb: str, key: ObjectKey, turns: asyncio.Semaphore) -> bool:
        resource = _RESOURCES[key.plural]
        return await self._ask(
            "access", lambda: review_access(self._kube, caller, verb, resource, key.namespace, key.name), turns
        )

    async def _caller(self, authorization: str | None, granted_within_seconds: float) -> tuple[bytes, Caller]:
        token = bearer_token(authorization)
        if token is None:
            raise Refusal(
                401,
                f"send `Authorization: Bearer` with a Kubernetes token made for audience {AUDIENCE}, or, to {LOOKUP} "
                f"or {CONSUME}, `Authorization: Pulsar` with a token of the topic's Pulsar cluster",
            )
        fingerprint = self._fingerprint(token)
        caller = await self._callers.get(
            fingerprint,
            lambda: self._ask("token", lambda: review_token(self._kube, token), self._reviews),
            granted_within_seconds=granted_within_seconds,
        )
        if caller is None:
            raise Refusal(
                401, f"the token is not valid for audience {AUDIENCE}: kubectl create token NAME --audience {AUDIENCE}"
            )
        return fingerprint, caller

    async def _require_of_pulsar(self, token: str, verb: str, key: ObjectKey, granted_within_seconds: float) -> str:
        _require_pulsar_verb(verb)
        fingerprint = self._fingerprint(token)
        verdict = await self._pulsar.judge(token, fingerprint, key, granted_within_seconds)
        if not verdict.authenticated:
            raise Refusal(401, UNFOUND_FOR_TOKEN)
        if not verdict.allowed:
            raise Refusal(
                403,
                f"the topic's Pulsar cluster does not let the token's role look its segments up: {verdict.reason}; "
                "grant consume or produce on the namespace",
            )
        return f"token {fingerprint.hex()}"

    def _fingerprint(self, token: str) -> bytes:
        return hashlib.blake2b(token.encode(), digest_size=32, key=self._salt).digest()

    async def _ask(self, what: str, review: Callable[[], Awaitable[T]], turns: asyncio.Semaphore) -> T:
        try:
            # The API server is given its time from when it is asked: many who ask at once are no reason to doubt it.
            async with asyncio.timeout(_TURN_SECONDS), turns, asyncio.timeout(_REVIEW_SECONDS):
                return await review()
        except (KubeError, TimeoutError) as error:
            why = f"no answer in {_REVIEW_SECONDS} s, or no turn to ask in {_TURN_SECONDS} s"
            logger.warning("a %s review failed: %s", what, str(error) or why)
            raise Refusal(
                503, f"the Kubernetes API server does not answer the {what} review, so nothing is shown; try again"
            ) from None


def lacking(caller: Caller, verb: str, key: ObjectKey) -> Refusal:
    """What to tell somebody who was found to have no right.

    Args:
        caller: who.
        verb: what that one may not do.
        key: of the object; without a name it stands for all of its kind in the namespace.
    """
    resource = _RESOURCES[key.plural]
    what = str(key) if key.name else f"{key.plural} in namespace {key.namespace}"
    return Refusal(
        403,
        f"{caller.name} lacks the right to {verb} {what}; bind a Role with verb {verb} on "
        f"{resource.plural}.{resource.group} in namespace {key.namespace}",
    )


def bearer_token(authorization: str | None) -> str | None:
    """The token of Kubernetes, or of a replica, in an Authorization header, if there is one."""
    return _token(authorization, _BEARER)


def pulsar_token(authorization: str | None) -> str | None:
    """The token of Pulsar in an Authorization header, if there is one."""
    return _token(authorization, _PULSAR)


def _token(authorization: str | None, wanted: str) -> str | None:
    scheme, _, token = (authorization or "").partition(" ")
    token = token.strip()
    return token if scheme.lower() == wanted and token and token.isascii() else None


def _require_pulsar_verb(verb: str) -> None:
    if verb not in _PULSAR_VERBS:
        raise Refusal(
            403,
            f"a token of Pulsar is good to {LOOKUP} and to {CONSUME} only; to {verb}, send `Authorization: Bearer` "
            f"with a Kubernetes token made for audience {AUDIENCE}",
        )
