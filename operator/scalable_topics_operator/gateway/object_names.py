"""Names of the objects that REST makes. Pure."""

from __future__ import annotations

import hashlib
import re

_NAME_CHARS = 200


def object_name(local: str) -> str:
    """What the object of a topic is called that REST makes: the topic's own name, where objects may have it."""
    plain = re.sub("[^a-z0-9.]+", "-", local.lower())
    plain = re.sub(r"[-.]*\.[-.]*", ".", plain).strip("-.")[:_NAME_CHARS].strip("-.")
    if plain == local:
        return plain
    digest = hashlib.sha256(local.encode()).hexdigest()[:8]
    return f"{plain}-{digest}" if plain else f"topic-{digest}"
