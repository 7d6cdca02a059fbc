"""SegmentOperations made for callers, who wait for what becomes of them (R32)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aiohttp import web

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import key_of
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from scalable_topics_operator.cluster.segment_operations import FAILED, FINISHED, operation_body
from scalable_topics_operator.gateway.acting import CallerWrites
from scalable_topics_operator.gateway.common_parameters import DRY_RUN, TTL_SECONDS
from scalable_topics_operator.gateway.reason_statuses import status_of
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Call, Subject
from scalable_topics_operator.gateway.waiting import ObjectWaits

OPERATION_HEADER = "X-Scalable-Topics-Operation"
PENDING = "Pending"


class OperationMaker:
    """Makes SegmentOperations as callers, and waits for them.

    Args:
        writes: makes objects for callers.
        waits: lets them wait.
    """

    def __init__(self, writes: CallerWrites, waits: ObjectWaits) -> None:
        self._writes = writes
        self._waits = waits

    async def operate(self, call: Call, subject: Subject, kind: str, block: Mapping[str, Any]) -> web.StreamResponse:
        """Make the SegmentOperation as the caller, and answer with what becomes of it. Raises Refusal.

        Args:
            call: the request.
            subject: the topic.
            kind: `Split` and so on.
            block: what the kind needs, as a SegmentOperation has it.
        """
        self._writes.require_enabled()
        subject.require_changeable()
        self._waits.require_room()
        body = operation_body(
            subject.key.namespace,
            subject.key.name,
            kind,
            block,
            dry_run=call.values.get(DRY_RUN),
            ttl_seconds=call.values.get(TTL_SECONDS),
        )
        made = await self._writes.create(call.caller, SEGMENT_OPERATIONS, body)
        key = key_of(SEGMENT_OPERATIONS, made)
        ended = await self._waits.until(key, lambda body: _ended(body, made))
        headers = {OPERATION_HEADER: f"{key.namespace}/{key.name}"}
        if ended is None:
            status = (self._waits.latest(key) or made).get("status") or {}
            stands = ": ".join(text for text in (status.get("phase") or PENDING, status.get("message")) if text)
            return web.json_response(
                {
                    "reason": f"SegmentOperation {key.name} has not ended yet; {stands}",
                    "operation": {"namespace": key.namespace, "name": key.name},
                },
                status=202,
                headers=headers,
            )
        status = ended.get("status") or {}
        if status.get("phase") == FAILED:
            raise Refusal(status_of(status.get("reason", "")), str(status.get("message", "it failed")))
        if call.values.get(DRY_RUN):
            plan = {"message": status.get("message", ""), "plan": status.get("plan") or {}}
            return web.json_response(plan, headers=headers)
        return web.Response(status=204, headers=headers)


def _ended(body: Body | None, made: Body) -> Body | None:
    """The object once it has ended."""
    if body is None or body["metadata"]["uid"] != made["metadata"]["uid"]:
        return None
    return body if (body.get("status") or {}).get("phase") in FINISHED else None


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those values that there are."""
    return {name: value for name, value in values.items() if value is not None}
