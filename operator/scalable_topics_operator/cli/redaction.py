"""What must not leave a cluster in a support bundle is taken out of objects. Pure.

Secrets are never read. What is taken out here is what people put where it does not belong, and what users of topics
have written for themselves: values of properties and annotations, environments of pods, and whatever looks like a
credential.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from scalable_topics_operator.cli.redacted_text import LEFT_OUT, is_secret, redacted_text
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import GROUP

# Beneath a field such as `secret` of a volume or `token` of a connection: what only tells where the credential is.
_POINTERS = re.compile(r"name|namespace|path|audience|defaultMode|.*(?:Name|Ref|Seconds)")
# A key of a Secret and the file it becomes.
_KEY_TO_PATH = frozenset(("key", "path", "mode"))
_ARGUMENT = re.compile(r"(?P<name>-{0,2}[\w.-]+)(?P<value>=.*)?", re.DOTALL)


def redacted(body: Body) -> Body:
    """An object as it may be shown to strangers."""
    return _of_mapping(body)


def _of_mapping(found: Mapping[str, Any]) -> dict[str, Any]:
    return {str(name): _of_field(str(name), value) for name, value in found.items()}


def _of_field(name: str, value: Any) -> Any:
    if name == "metadata" and isinstance(value, Mapping):
        # Templates of pods have one of their own.
        return _of_mapping({key: one for key, one in value.items() if key != "managedFields"})
    if name == "annotations" and isinstance(value, Mapping):
        # kubectl keeps whole objects in one of them.
        return {str(key): _of_value(one) if f"{GROUP}/" in str(key) else LEFT_OUT for key, one in value.items()}
    if name in ("properties", "env") and isinstance(value, Mapping):
        return dict.fromkeys(map(str, value), LEFT_OUT)
    if name == "subscriptions" and isinstance(value, Mapping):
        # By name, which says nothing of what is beneath.
        return {str(key): _of_value(one) for key, one in value.items()}
    if name == "env" and isinstance(value, list):
        return [_variable(one) if isinstance(one, Mapping) else LEFT_OUT for one in value]
    return _of_secret(value) if is_secret(name) else _of_value(value)


def _of_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _of_mapping(value)
    if isinstance(value, list | tuple):
        return _of_list(value)
    return redacted_text(value) if isinstance(value, str) else value


def _of_list(found: list[Any] | tuple[Any, ...]) -> list[Any]:
    """A list, which may be that of a program's arguments: what follows `--password` is one."""
    kept: list[Any] = []
    is_awaited = False
    for one in found:
        if is_awaited and isinstance(one, str) and not one.startswith("-"):
            kept.append(LEFT_OUT)
            is_awaited = False
            continue
        argument = _ARGUMENT.fullmatch(one) if isinstance(one, str) else None
        is_awaited = False
        if argument is None or not is_secret(argument["name"]):
            kept.append(_of_value(one))
        elif argument["value"]:
            kept.append(f"{argument['name']}={LEFT_OUT}")
        else:
            kept.append(one)
            is_awaited = one.startswith("-")
    return kept


def _of_secret(value: Any) -> Any:
    """What a field holds that is named as credentials are."""
    if isinstance(value, Mapping):
        if "path" in value and value.keys() <= _KEY_TO_PATH:
            return _of_mapping(value)
        return {
            str(name): _of_field(str(name), one) if _POINTERS.fullmatch(str(name)) else _of_secret(one)
            for name, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [_of_secret(one) for one in value]
    return value if value is None or isinstance(value, bool) else LEFT_OUT


def _variable(found: Mapping[str, Any]) -> dict[str, Any]:
    """An environment variable: where its value comes from may be told, what it is may not."""
    return {**_of_mapping(found), **({"value": LEFT_OUT} if "value" in found else {})}
