"""Which server a redirect may send us, and our credentials, to (DESIGN end of §9, R34; hazard C63).

Pure. Pulsar answers 307 to the broker that owns a topic. Credentials follow only to a server that the
administrator or the cluster itself names: whoever can forge one answer must not collect tokens.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host in lower case without trailing dot, and port of a server."""

    scheme: str
    host: str
    port: int

    @classmethod
    def parse(cls, url: str) -> Origin:
        """Read the origin of an http(s) URL.

        Raises ValueError for other schemes, a missing host, a bad port, or user information in the URL
        (`https://trusted@evil/` names evil); the text does not repeat the URL.
        """
        if any(character in url for character in "\\\t\r\n ") or not url.isprintable():
            raise ValueError("the URL holds characters that parsers disagree on")
        parts = urlsplit(url)
        if parts.scheme not in _DEFAULT_PORTS:
            raise ValueError("the URL is neither http nor https")
        if "@" in parts.netloc:
            raise ValueError("the URL carries user information")
        try:
            port = parts.port
        except ValueError:
            raise ValueError("the URL has no usable port") from None
        host = (parts.hostname or "").rstrip(".")
        if not host or port == 0:
            raise ValueError("the URL names no server")
        return cls(parts.scheme, host, _DEFAULT_PORTS[parts.scheme] if port is None else port)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class _Pattern:
    host: str
    port: int | None

    def matches(self, origin: Origin) -> bool:
        if self.port is not None and self.port != origin.port:
            return False
        if self.host.startswith("*."):
            return origin.host.endswith(self.host[1:]) and len(origin.host) > len(self.host) - 1
        return origin.host == self.host


def parse_trusted_broker(text: str) -> _Pattern:
    """Read one `trustedBrokers` entry: `host:port`, `host` (any port), `*.domain` or `*.domain:port`.

    Raises ValueError for anything else.
    """
    wildcard = text.startswith("*.")
    bare = text[2:] if wildcard else text
    if not bare or any(character in bare for character in "/@*?#") or not bare.isascii():
        raise ValueError(f"not a host or host:port: {text[:80]!r}")
    parts = urlsplit(f"//{bare}")
    try:
        port = parts.port
    except ValueError:
        raise ValueError(f"not a host or host:port: {text[:80]!r}") from None
    host = (parts.hostname or "").rstrip(".")
    if not host:
        raise ValueError(f"not a host or host:port: {text[:80]!r}")
    return _Pattern(f"*.{host}" if wildcard else host, port)


@dataclass(frozen=True, slots=True)
class Trust:
    """The servers that may see the credentials of one connection.

    Args:
        admin: the connection's own admin URL.
        trusted_brokers: the connection's `trustedBrokers`.
        listed: `host:port` of the brokers as the cluster lists them.
    """

    admin: Origin
    trusted_brokers: tuple[_Pattern, ...] = ()
    listed: frozenset[tuple[str, int]] = frozenset()

    def with_listed(self, brokers: Iterable[str]) -> Trust:
        """The same with another broker list; entries that cannot be read are left out."""
        listed = set()
        for broker in brokers:
            try:
                pattern = parse_trusted_broker(broker)
            except ValueError:
                continue
            if pattern.port is not None and not pattern.host.startswith("*."):
                listed.add((pattern.host, pattern.port))
        return Trust(self.admin, self.trusted_brokers, frozenset(listed))

    def weakens(self, source: Origin, target: Origin) -> bool:
        """Whether going from `source` to `target` gives up encryption."""
        return source.scheme == "https" and target.scheme == "http"

    def allows(self, target: Origin, *, verified_tls: bool = True) -> bool:
        """Whether `target` may see the credentials (the scheme is judged by `weakens`).

        A listed host is also trusted on another port over TLS that checks host names: brokers list their
        plain port, redirect to their TLS port, and prove by certificate that they are that host.
        """
        if target == self.admin or any(pattern.matches(target) for pattern in self.trusted_brokers):
            return True
        if (target.host, target.port) in self.listed:
            return True
        hosts = {host for host, _ in self.listed} | {self.admin.host}
        return verified_tls and target.scheme == "https" and target.host in hosts
