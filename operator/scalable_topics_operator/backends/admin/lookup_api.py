"""Looking topics up: where a topic is served, and whether the bearer of a token may know."""

from __future__ import annotations

from dataclasses import dataclass

from scalable_topics_operator.backends.admin.call import Call
from scalable_topics_operator.backends.admin.credentials import Token
from scalable_topics_operator.backends.admin.http import AdminHttp
from scalable_topics_operator.backends.admin.paths import lookup_path
from scalable_topics_operator.backends.admin.reasons import About, is_authorization_refusal

_REFUSALS = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class TokenVerdict:
    """What a cluster says of a token.

    Args:
        authenticated: whether it is one of this cluster's.
        allowed: whether its bearer may look the topic up, as whoever may produce or consume there.
        reason: the broker's, if not.
    """

    authenticated: bool
    allowed: bool
    reason: str = ""


class LookupApi:
    """Lookups of topics of one cluster."""

    def __init__(self, http: AdminHttp) -> None:
        self._http = http

    async def service_url(self, topic: str) -> str:
        """Address for clients of the broker that serves a topic, with TLS where the admin API has it; empty if it has
        none. Raises BackendError.
        """
        answer = await self._http.send(_call(topic))
        found = answer.json(_call(topic).what)
        if not isinstance(found, dict):
            return ""
        is_tls = self._http.admin_url.startswith("https://")
        return str(found.get("brokerUrlTls" if is_tls else "brokerUrl") or "")

    async def judge(self, topic: str, token: Token) -> TokenVerdict:
        """What the cluster says of somebody's token, found by a lookup made with it. Raises BackendError.

        A cluster without authentication lets everybody look topics up, whatever the token.
        """
        answer = await self._http.send_as(_call(topic, allow=_REFUSALS), token)
        if answer.status not in _REFUSALS:
            return TokenVerdict(authenticated=True, allowed=True)
        # Pulsar says 401 also to a known role that lacks a right.
        authenticated = answer.status == 403 or is_authorization_refusal(answer.reason)
        return TokenVerdict(authenticated=authenticated, allowed=False, reason=answer.reason)


def _call(topic: str, allow: frozenset[int] = frozenset()) -> Call:
    return Call("lookup", "GET", lookup_path(topic), topic, About.TOPIC, allow=allow, right="lookup of the topic")
