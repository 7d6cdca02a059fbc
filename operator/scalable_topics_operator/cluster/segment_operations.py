"""SegmentOperations as they are made, and how they end. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS

SUCCEEDED, FAILED = "Succeeded", "Failed"
FINISHED = (SUCCEEDED, FAILED)
"""Phases that last."""

_TOPIC_CHARS = 200


def operation_body(
    namespace: str, topic: str, kind: str, block: Mapping[str, Any], *, dry_run: bool | None, ttl_seconds: int | None
) -> Body:
    """A SegmentOperation to be made, with a name of its own.

    Args:
        namespace: of the ScalableTopic, and of the operation.
        topic: name of the ScalableTopic.
        kind: `Split` and so on, as `spec.type` has it.
        block: what the kind needs, as `spec` has it under its own name.
        dry_run: whether nothing is changed; left out if None.
        ttl_seconds: how long it is kept once it has ended; left out if None.
    """
    spec: dict[str, Any] = {
        "scalableTopic": topic,
        "type": kind,
        f"{kind[0].lower()}{kind[1:]}": dict(block),
    }
    if dry_run is not None:
        spec["dryRun"] = dry_run
    if ttl_seconds is not None:
        spec["ttlSecondsAfterFinished"] = ttl_seconds
    return {
        "apiVersion": SEGMENT_OPERATIONS.api_version,
        "kind": SEGMENT_OPERATIONS.kind,
        "metadata": {
            "namespace": namespace,
            "name": f"{topic[:_TOPIC_CHARS].rstrip('-.')}-{kind.lower()}-{uuid.uuid4().hex[:8]}",
        },
        "spec": spec,
    }
