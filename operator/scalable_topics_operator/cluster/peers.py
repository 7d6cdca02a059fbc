"""Where replicas find each other. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([-.A-Za-z0-9]*[A-Za-z0-9])?):[0-9]{1,5}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Peer:
    """A replica that leads a shard, as another one or itself sees it.

    Args:
        identity: of its process.
        address: host and port of its gateway; empty if it does not say.
        is_me: whether it is the one that asks.
        term: under which it leads.
    """

    identity: str
    address: str
    is_me: bool
    term: int = 0


def is_address(text: str) -> bool:
    """Whether a text is `host:port` and nothing else, so that it can stand in a URL."""
    return _ADDRESS.fullmatch(text) is not None and int(text.rpartition(":")[2]) < 65536


def make_address(host: str, port: int) -> str:
    """`host:port`, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
