"""The claim on a scalable topic's plain name as topic properties (R1). Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scalable_topics.layout.json_fields import MALFORMED, parse_json
from scalable_topics_operator.operations.errors import BackendRefused
from scalable_topics_operator.operations.migrated_from import MigratedFrom
from scalable_topics_operator.operations.protocols import Claim

RESERVED_PREFIX = "scalabletopics.io/"
"""Property keys that start like this are ours and never the user's."""

CLAIM_KEY = RESERVED_PREFIX + "claim"
MIGRATED_KEY = RESERVED_PREFIX + "migrated-from"
_VERSION = 1


def claim_to_json(claim: Claim) -> dict[str, Any]:
    """Compact JSON form of a claim."""
    return {
        "v": _VERSION,
        "installation": claim.installation_id,
        "kubernetes": claim.kubernetes_uid,
        "uid": claim.resource_uid,
        "namespace": claim.resource_namespace,
        "name": claim.resource_name,
        "backend": claim.backend,
        "released": claim.released,
    }


def claim_from_json(found: Any) -> Claim:
    """Read the JSON form; unknown keys are tolerated. Raises ValueError when it is no claim."""
    if not isinstance(found, Mapping):
        raise ValueError("a claim is a JSON object")
    released = found.get("released", False)
    if not isinstance(released, bool):
        raise ValueError("released is true or false")
    return Claim(
        installation_id=_text(found, "installation"),
        kubernetes_uid=_text(found, "kubernetes"),
        resource_uid=_text(found, "uid"),
        resource_namespace=_text(found, "namespace"),
        resource_name=_text(found, "name"),
        backend=_text(found, "backend"),
        released=released,
    )


def claim_properties(claim: Claim, properties: Mapping[str, str] | None) -> dict[str, str]:
    """Properties of a base-name topic: the claim and the user's own.

    Raises BackendRefused if the user's use the reserved prefix.
    """
    own = dict(properties or {})
    for key in own:
        if key.startswith(RESERVED_PREFIX):
            raise BackendRefused(f"property {key!r}: names that start with {RESERVED_PREFIX} are reserved")
    return {**own, CLAIM_KEY: json.dumps(claim_to_json(claim), separators=(",", ":"))}


def claim_of(properties: Mapping[str, str]) -> Claim | None:
    """The claim that a topic's properties carry; None if they carry none.

    Raises BackendRefused if there is one that this release cannot read: it is somebody's.
    """
    text = properties.get(CLAIM_KEY)
    if text is None:
        return None
    try:
        return claim_from_json(parse_json(text))
    except ValueError as error:
        raise BackendRefused(f"the topic carries a claim that this release cannot read: {error}") from None


def migrated_from_of(properties: Mapping[str, str]) -> MigratedFrom | None:
    """What a topic was before it was migrated, as its properties say; None if they do not.

    Raises BackendRefused if they say it in a way that this release cannot read.
    """
    text = properties.get(MIGRATED_KEY)
    if text is None:
        return None
    try:
        return MigratedFrom.from_json(parse_json(text))
    except MALFORMED as error:
        raise BackendRefused(f"what the topic was migrated from cannot be read by this release: {error!r}") from None


def migration_properties(claim: Claim, source: MigratedFrom) -> dict[str, str]:
    """What a topic that is being migrated carries besides its own properties."""
    return {**claim_properties(claim, None), MIGRATED_KEY: json.dumps(source.to_json(), separators=(",", ":"))}


def user_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """The user's own properties, without ours."""
    return {key: value for key, value in properties.items() if not key.startswith(RESERVED_PREFIX)}


def _text(found: Mapping[str, Any], key: str) -> str:
    value = found.get(key)
    if not isinstance(value, str):
        raise ValueError(f"{key} is not a text")
    return value
