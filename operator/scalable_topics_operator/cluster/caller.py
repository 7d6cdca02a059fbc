"""A user as Kubernetes knows one, and how calls are made in that user's name (R32, R33). Pure."""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Names of headers are the same in capitals and small letters, so that capitals of a key are quoted, too.
_PLAIN = frozenset(string.ascii_lowercase + string.digits + "!#$&'*+-.^_`|~")

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Caller:
    """A user as Kubernetes knows one.

    Args:
        name: of the user, such as `system:serviceaccount:demo:dashboard`.
        uid: of the user, if there is one.
        groups: it is in.
        extra: what else its authenticator knows.
    """

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)


def impersonation_headers(caller: Caller) -> Headers:
    """What makes the API server take a call for this user's.

    Raises ValueError for a user who cannot be named in headers.
    """
    headers = [("Impersonate-User", caller.name)]
    if caller.uid:
        headers.append(("Impersonate-Uid", caller.uid))
    headers += [("Impersonate-Group", group) for group in caller.groups]
    for key, values in caller.extra.items():
        headers += [(f"Impersonate-Extra-{_quoted(key)}", str(value)) for value in values]
    for _, value in headers:
        if not value.isprintable():
            raise ValueError(f"{value!r} cannot be written in a header")
    return tuple(headers)


def _quoted(key: str) -> str:
    return "".join(chr(byte) if chr(byte) in _PLAIN else f"%{byte:02x}" for byte in key.encode())
