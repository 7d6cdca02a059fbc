"""How the gateway is reached; checked when it is made."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode, urlsplit

from scalable_topics.layout import TopicName
from scalable_topics.sdk.errors import ConnectError

_HTTP = ("http", "https")
_SCHEMES = ("Bearer", "Pulsar")
_CONNECTION = re.compile(r"[^/\s]+/[^/\s]+")
_TOKEN = re.compile(r"[!-~]+")


@dataclass(frozen=True, slots=True)
class GatewayOptions:
    """How the gateway of the operator is reached (docs/gateway.md). Only coordinated consumers need it.

    Args:
        url: `http://` or `https://` address, of any replica or of a Service in front of them.
        token: the caller's token, or a function that answers it; called in a thread, at every connection. Either this
            or `token_file`.
        token_file: file that holds the token; read again at every connection, since Kubernetes renews projected ones.
        scheme: `Bearer` for a Kubernetes token made for audience `scalable-topics`, `Pulsar` for one of the Pulsar
            cluster.
        ca_file: CA bundle that the gateway's certificate is checked against; None for the system's.
        connection: `namespace/name` of the ScalableTopicConnection that is meant, where several clusters have a topic
            of this name.
        connect_timeout_seconds: of one attempt to connect, above 0.
        register_timeout_seconds: how long a new consumer tries to register before it gives up, above 0. Later it tries
            for ever.

    Raises:
        ValueError: a setting is out of range, or tokens come from nowhere or from two places.
    """

    url: str
    token: str | Callable[[], str] | None = field(default=None, repr=False)
    token_file: str | Path | None = None
    scheme: str = "Bearer"
    ca_file: str | Path | None = None
    connection: str | None = None
    connect_timeout_seconds: float = 10.0
    register_timeout_seconds: float = 30.0

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in _HTTP or not parts.hostname:
            raise ValueError("url must begin with http:// or https:// and name a host")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("url must be an address alone, without credentials and without a query")
        if (self.token is None) == (self.token_file is None):
            raise ValueError("give the gateway either a token or a token_file")
        if self.scheme not in _SCHEMES:
            raise ValueError(f"scheme is {self.scheme!r}; it must be {' or '.join(_SCHEMES)}")
        if self.connection is not None and not _CONNECTION.fullmatch(self.connection):
            raise ValueError(f"connection is {self.connection!r}; it must be namespace/name")
        for name in ("connect_timeout_seconds", "register_timeout_seconds"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be above 0")

    def authorization(self) -> str:
        """The header that says who is calling. Blocks.

        Raises:
            ConnectError: there is no token; the text never holds any of it.
        """
        return f"{self.scheme} {self._current_token()}"

    def tls(self) -> ssl.SSLContext | None:
        """What certificates are checked with; None where there are none to check. Blocks.

        Raises:
            ConnectError: the CA bundle cannot be read.
        """
        if urlsplit(self.url).scheme == "http":
            return None
        try:
            return ssl.create_default_context(cafile=None if self.ca_file is None else str(self.ca_file))
        except OSError as error:
            raise ConnectError(f"cannot read the CA bundle {self.ca_file}: {error.strerror or error}") from None

    def session_url(self, topic: TopicName, subscription: str) -> str:
        """Address of a subscription's consumer sessions."""
        path = "/".join(quote(part, safe="") for part in (topic.tenant, topic.namespace, topic.local))
        query = f"?{urlencode({'connection': self.connection})}" if self.connection else ""
        base = self.url.rstrip("/")
        return f"{base}/admin/v2/scalable/{path}/subscriptions/{quote(subscription, safe='')}/session{query}"

    def _current_token(self) -> str:
        if self.token_file is not None:
            try:
                token = Path(self.token_file).read_text().strip()
            except (OSError, UnicodeDecodeError) as error:
                raise ConnectError(f"cannot read the token file {self.token_file}: {type(error).__name__}") from None
            source = f"the token file {self.token_file}"
        elif callable(self.token):
            source = "the function that answers tokens"
            try:
                token = self.token().strip()
            except Exception as error:
                # Its text may hold anything.
                raise ConnectError(f"{source} has failed: {type(error).__name__}") from None
        else:
            token, source = (self.token or "").strip(), "the setting token"
        if not _TOKEN.fullmatch(token):
            raise ConnectError(f"{source} holds no token: it is empty, or holds characters that tokens cannot have")
        return token
