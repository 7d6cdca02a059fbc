"""Texts of others without our secrets: whoever is sent one may say it again, in whatever form it came or is written."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable
from urllib.parse import quote, quote_plus, unquote_plus

INSTEAD = "[redacted]"
_LEAST_CHARACTERS = 4


def scrubbed(text: str, secrets: Iterable[str], instead: str = INSTEAD) -> str:
    """A text without secrets: neither as they are, nor quoted as in addresses and JSON, nor in base64.

    A text that still holds one once it is unquoted, in a way that is not foreseen, is left out as a whole.

    Args:
        text: what somebody else has said.
        secrets: what it must not show; those of less than 4 characters are words that stand anywhere.
        instead: what stands in their place.
    """
    known = [secret for secret in secrets if len(secret) >= _LEAST_CHARACTERS]
    for secret in known:
        # The longest first: a form may begin with another one.
        for form in sorted(_forms(secret), key=len, reverse=True):
            text = text.replace(form, instead)
    readings = (html.unescape(text), unquote_plus(text), html.unescape(unquote_plus(text)))
    return instead if any(secret in reading for secret in known for reading in readings) else text


def _forms(secret: str) -> set[str]:
    encoded = secret.encode(errors="replace")
    return {
        secret,
        quote(secret, safe="", errors="replace"),
        quote(secret, errors="replace"),
        quote_plus(secret, errors="replace"),
        json.dumps(secret)[1:-1],
        html.escape(secret),
        encoded.hex(),
        *_base64_forms(encoded),
    }


def _base64_forms(secret: bytes) -> set[str]:
    """Wherever it stands in what was encoded: the letters that depend on it alone."""
    found = set()
    for shift in range(3):
        padded = base64.b64encode(b"\x00" * shift + secret).decode("ascii")
        inner = padded[(0, 2, 3)[shift] :].rstrip("=")
        # The last letter may depend on what follows.
        inner = inner if (shift + len(secret)) % 3 == 0 else inner[:-1]
        found |= {inner, inner.replace("+", "-").replace("/", "_")} if len(inner) >= _LEAST_CHARACTERS else set()
    return found
