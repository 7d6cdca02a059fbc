"""What must not leave a cluster in a support bundle is taken out of objects and texts. Pure.

Secrets are never read. What is taken out here is what people put where it does not belong, and what users of topics
have written for themselves: values of properties and annotations, environments of pods, and whatever looks like a
credential.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import GROUP

LEFT_OUT = "(left out)"

_SECRET = (
    r"(?:pass(?:word|wd|phrase)?|secret|token|credential|authorization|cookie|(?:api|access|private|signing)[._-]?key)"
)
# Fields that name a Secret, one of its keys or a file, and hold none of it.
_NAME_ENDINGS = ("Name", "Names", "Ref", "File", "Path", "Url", "Seconds", "passwordKey", "usernameKey", "tokenKey")
_IS_NO_NAME = "".join(f"(?<!{ending})" for ending in _NAME_ENDINGS)
_SECRET_FIELD = re.compile(rf"{_SECRET}.*{_IS_NO_NAME}$", re.IGNORECASE | re.DOTALL)
# Of bounded length before a mark: a long run of characters costs no more than its length.
_TEXTS = (
    # PEM blocks of keys.
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), LEFT_OUT),
    # JSON Web Tokens, whoever made them.
    (re.compile(r"\beyJ[\w-]{5,}\.[\w-]{5,}\.[\w-]*"), LEFT_OUT),
    # What follows the scheme of a header. The shorter of them are words, too.
    (re.compile(r"\b(Bearer[ \t]+)[\w.~+/=-]{8,}", re.IGNORECASE), rf"\1{LEFT_OUT}"),
    (re.compile(r"\b((?:Basic|Pulsar)[ \t]+)[\w.~+/=-]{20,}", re.IGNORECASE), rf"\1{LEFT_OUT}"),
    # User and password of an address.
    (re.compile(r"(://)[^\s/@:]{0,200}:[^\s/@]{0,2000}@"), rf"\1{LEFT_OUT}@"),
    # name=value, "name": "value", and so on.
    (
        re.compile(
            rf"""({_SECRET}[\w.-]{{0,60}}{_IS_NO_NAME}\\?["']?[ \t]*[=:][ \t]*\\?["']?)"""
            rf"""(?!{re.escape(LEFT_OUT)})[^\s"'\\,;&{{}}\[\]]+""",
            re.IGNORECASE,
        ),
        rf"\1{LEFT_OUT}",
    ),
)


def redacted(body: Body) -> Body:
    """An object as it may be shown to strangers."""
    found = _of_mapping(body)
    metadata = dict(found.get("metadata") or {})
    metadata.pop("managedFields", None)
    if annotations := metadata.get("annotations"):
        # kubectl keeps whole objects in one of them.
        kept = {name: value if f"{GROUP}/" in name else LEFT_OUT for name, value in annotations.items()}
        metadata["annotations"] = kept
    return {**found, "metadata": metadata} if metadata else found


def redacted_text(text: str) -> str:
    """A text without what looks like a credential."""
    for pattern, instead in _TEXTS:
        text = pattern.sub(instead, text)
    return text


def _of_mapping(found: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): _of_field(str(name), value) for name, value in found.items()}


def _of_field(name: str, value: Any) -> Any:
    if name == "properties" and isinstance(value, Mapping):
        return dict.fromkeys(map(str, value), LEFT_OUT)
    if name == "env" and isinstance(value, list):
        return [_variable(one) if isinstance(one, Mapping) else LEFT_OUT for one in value]
    if isinstance(value, str | int) and not isinstance(value, bool) and _is_secret(name):
        return LEFT_OUT
    return _of_value(value)


def _of_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _of_mapping(value)
    if isinstance(value, list | tuple):
        return [_of_value(one) for one in value]
    return redacted_text(value) if isinstance(value, str) else value


def _variable(found: Mapping[str, Any]) -> dict[str, Any]:
    """An environment variable: where its value comes from may be told, what it is may not."""
    return {**_of_mapping(found), **({"value": LEFT_OUT} if "value" in found else {})}


def _is_secret(name: str) -> bool:
    return _SECRET_FIELD.search(name) is not None
