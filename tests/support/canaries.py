"""In which forms a secret may show itself in a text."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in an address": lambda text: quote(text, safe=""),
    "in a path": quote,
    "in a form": quote_plus,
    "in JSON": lambda text: json.dumps(text)[1:-1],
    "in a page": html.escape,
    "letter by letter": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "percent by percent": lambda text: "".join(f"%{ord(letter):02x}" for letter in text),
    "in base64": lambda text: base64.b64encode(text.encode()).decode(),
    "in base64 after something": lambda text: base64.b64encode(b"user:" + text.encode() + b", and more").decode(),
    "in base64 for addresses": lambda text: base64.urlsafe_b64encode(b"u" + text.encode()).decode(),
    "in hexadecimal": lambda text: text.encode().hex(),
}


def forms_in(text: str, secret: str) -> list[str]:
    """By which names a secret is in a text."""
    readings = (text, html.unescape(text))
    shown = [name for name, form in FORMS.items() if any(form(secret) in reading for reading in readings)]
    # Of base64 that begins elsewhere, what of it depends on the secret alone.
    cores = {base64.b64encode(b"x" * shift + secret.encode()).decode()[4:-4] for shift in range(3)}
    return shown + [core for core in cores if core in text]
