"""One request to the gateway, as a value: where it goes and what it carries. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from scalable_topics.admin.rest_operations import RestOperation
from scalable_topics.layout import LayoutArgumentError, Segment, TopicName, segment_descriptor
from scalable_topics.sdk.checkpoint import Checkpoint

QueryValue = str | int | bool | Sequence[str] | Sequence[int] | None


@dataclass(frozen=True, slots=True)
class Request:
    """A request.

    Args:
        operation: what is asked for.
        target: path and query, percent-encoded.
        body: of JSON; None for none.
    """

    operation: RestOperation
    target: str
    body: Any = field(default=None, repr=False)


def make_request(
    operation: RestOperation,
    path: Mapping[str, str | int],
    query: Mapping[str, QueryValue] | None = None,
    body: Any = None,
) -> Request:
    """Put a request together.

    Args:
        operation: what is asked for.
        path: values of the path's parameters.
        query: parameters; those that are None or false are left out, of lists each one is given.
        body: of JSON; None for none.

    Raises:
        LayoutArgumentError: a value of the path that no address can have.
    """
    values = {name: _path_part(name, str(value)) for name, value in path.items()}
    pairs: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        if value is None or value is False:
            continue
        several = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        pairs.extend((name, "true" if one is True else str(one)) for one in several)
    target = operation.path.format(**values)
    return Request(operation, f"{target}?{urlencode(pairs)}" if pairs else target, body)


def topic_path(topic: TopicName, **more: str | int) -> dict[str, str | int]:
    """Values of the path of what belongs to a topic."""
    return {"tenant": topic.tenant, "namespace": topic.namespace, "topic": topic.local, **more}


def namespace_path(namespace: str) -> dict[str, str | int]:
    """Values of the path of a Pulsar namespace. Raises LayoutArgumentError unless it is `tenant/namespace`."""
    tenant, _, local = namespace.partition("/")
    if not tenant or not local or "/" in local:
        raise LayoutArgumentError(f"{namespace!r} is no Pulsar namespace; write tenant/namespace")
    return {"tenant": tenant, "namespace": local}


def descriptor_of(segment: Segment | str) -> str:
    """`hhhh-hhhh-id` of a segment, which may be given so, or as the layout has it."""
    return segment if isinstance(segment, str) else segment_descriptor(segment.hash_range, segment.segment_id)


def positions_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """The body that restores a checkpoint."""
    positions = [
        {
            "segment": part.segment_id,
            **({} if part.is_whole else {"bucket": part.bucket}),
            "ledgerId": position.ledger_id,
            "entryId": position.entry_id,
            "batchIndex": position.batch_index,
        }
        for part, position in sorted(checkpoint.positions.items())
    ]
    return {"positions": positions}


def _path_part(name: str, value: str) -> str:
    # Those are steps in a path for everything on the way.
    if value in {"", ".", ".."}:
        raise LayoutArgumentError(f"{name} cannot be {value!r}")
    return quote(value, safe="")
