"""What is done to segments and cursors by hand: each request makes a SegmentOperation and waits for it (R32)."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from scalable_topics_operator.controllers.operation_queue import FINISHED
from scalable_topics_operator.gateway import operation_routes, subscription_routes
from scalable_topics_operator.gateway.acting import CallerWrites
from scalable_topics_operator.gateway.checkpoint_body import read_positions
from scalable_topics_operator.gateway.common_parameters import (
    DRY_RUN,
    FORCE,
    OPERATION,
    SEGMENT_ID,
    SUBSCRIPTION,
    TTL_SECONDS,
)
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Bound, Call, RestAdmission, Subject
from scalable_topics_operator.gateway.waiting import ObjectWaits

OPERATION_HEADER = "X-Scalable-Topics-Operation"

# Of a SegmentOperation that failed: its reason, and what that is in HTTP.
_STATUSES: Mapping[str, int] = {
    "InvalidRequest": 400,
    "SegmentMissing": 404,
    "SubscriptionMissing": 404,
    "NotPossible": 412,
    "CursorLost": 412,
    "CheckpointExpired": 412,
    "NotAvailable": 412,
}
_TOPIC_CHARS = 200
_PENDING = "Pending"


class OperationHandlers:
    """Handles split, merge, rebucket, migrate, seek, skip-all and restore.

    Args:
        admission: finds topics and asks for rights.
        writes: makes objects for callers.
        waits: lets them wait.
    """

    def __init__(self, admission: RestAdmission, writes: CallerWrites, waits: ObjectWaits) -> None:
        self._admission = admission
        self._writes = writes
        self._waits = waits

    def bound(self) -> list[Bound]:
        """What it answers."""
        return [
            (operation_routes.SPLIT, self._split),
            (operation_routes.MERGE, self._merge),
            (operation_routes.REBUCKET, self._rebucket),
            (operation_routes.MIGRATE, self._migrate),
            (operation_routes.GET_OPERATION, self._get),
            (subscription_routes.SEEK, self._seek),
            (subscription_routes.SKIP_ALL, self._skip_all),
            (subscription_routes.RESTORE, self._restore),
        ]

    async def _split(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        at, into = call.values.get(operation_routes.AT), call.values.get(operation_routes.INTO)
        if at is not None and into not in (None, 2):
            raise Refusal(400, "at makes exactly two parts; leave out at, or into")
        split = {"segment": _known_segment(subject, call.values.need(SEGMENT_ID)), "at": at, "into": into}
        return await self._operate(call, subject, "Split", split=_given(split))

    async def _merge(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        first, second = (
            call.values.need(one) for one in (operation_routes.SEGMENT_ID_1, operation_routes.SEGMENT_ID_2)
        )
        chosen = [first, second, *call.values.all(operation_routes.ALSO)]
        if len(set(chosen)) < len(chosen):
            raise Refusal(400, f"a merge names a segment twice: {chosen}")
        merge = {"segments": [_known_segment(subject, one) for one in chosen]}
        return await self._operate(call, subject, "Merge", merge=merge)

    async def _rebucket(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        given = [call.values.get(one) for one in (operation_routes.BUCKETS, operation_routes.BUCKET_COUNT)]
        counts = {count for count in given if count is not None}
        if len(counts) != 1:
            raise Refusal(400, "say how many entry buckets: ?buckets=, or ?bucketCount= as brokers have it")
        rebucket = {"segment": _known_segment(subject, call.values.need(SEGMENT_ID)), "buckets": counts.pop()}
        return await self._operate(call, subject, "Rebucket", rebucket=rebucket)

    async def _migrate(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        return await self._operate(call, subject, "Migrate", migrate={"force": call.values.get(FORCE) or False})

    async def _seek(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        to_ms = call.values.need(subscription_routes.TIMESTAMP)
        moment = datetime.fromtimestamp(to_ms / 1000, UTC).isoformat(timespec="milliseconds")
        seek = {"subscription": call.values.need(SUBSCRIPTION), "timestamp": moment.replace("+00:00", "Z")}
        return await self._operate(call, subject, "Seek", seek=seek)

    async def _skip_all(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        return await self._operate(call, subject, "SkipAll", skipAll={"subscription": call.values.need(SUBSCRIPTION)})

    async def _restore(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        restore = {
            "subscription": call.values.need(SUBSCRIPTION),
            "positions": read_positions(await call.json()),
            "allowGaps": call.values.get(subscription_routes.ALLOW_GAPS),
        }
        return await self._operate(call, subject, "Restore", restore=_given(restore))

    async def _get(self, call: Call) -> web.StreamResponse:
        subject, name = await self._admission.topic(call), call.values.need(OPERATION)
        key = ObjectKey(SEGMENT_OPERATIONS.plural, subject.key.namespace, name)
        body = self._waits.latest(key)
        if body is None or body["spec"]["scalableTopic"] != subject.key.name:
            raise Refusal(
                404,
                f"there is no SegmentOperation {name} of {subject.topic}; those that have ended may have been deleted "
                "(spec.ttlSecondsAfterFinished)",
            )
        status = body.get("status") or {}
        return web.json_response(
            {
                "namespace": key.namespace,
                "name": key.name,
                "type": body["spec"]["type"],
                "phase": status.get("phase") or _PENDING,
                "reason": status.get("reason") or "",
                "message": status.get("message") or "",
            }
        )

    async def _operate(self, call: Call, subject: Subject, kind: str, **block: Any) -> web.StreamResponse:
        """Make the SegmentOperation as the caller, and answer with what becomes of it."""
        self._writes.require_enabled()
        subject.require_changeable()
        self._waits.require_room()
        made = await self._writes.create(call.caller, SEGMENT_OPERATIONS, _manifest(call, subject, kind, block))
        key = key_of(SEGMENT_OPERATIONS, made)
        ended = await self._waits.until(key, lambda body: _ended(body, made))
        headers = {OPERATION_HEADER: f"{key.namespace}/{key.name}"}
        if ended is None:
            status = (self._waits.latest(key) or made).get("status") or {}
            stands = ": ".join(text for text in (status.get("phase") or _PENDING, status.get("message")) if text)
            return web.json_response(
                {
                    "reason": f"SegmentOperation {key.name} has not ended yet; {stands}",
                    "operation": {"namespace": key.namespace, "name": key.name},
                },
                status=202,
                headers=headers,
            )
        status = ended.get("status") or {}
        if status.get("phase") == "Failed":
            raise Refusal(_STATUSES.get(status.get("reason", ""), 409), str(status.get("message", "it failed")))
        if call.values.get(DRY_RUN):
            plan = {"message": status.get("message", ""), "plan": status.get("plan") or {}}
            return web.json_response(plan, headers=headers)
        return web.Response(status=204, headers=headers)


def _manifest(call: Call, subject: Subject, kind: str, block: Mapping[str, Any]) -> Body:
    name = f"{subject.key.name[:_TOPIC_CHARS].rstrip('-.')}-{kind.lower()}-{uuid.uuid4().hex[:8]}"
    spec = {
        "scalableTopic": subject.key.name,
        "type": kind,
        **block,
        "dryRun": call.values.get(DRY_RUN),
        "ttlSecondsAfterFinished": call.values.get(TTL_SECONDS),
    }
    return {
        "apiVersion": SEGMENT_OPERATIONS.api_version,
        "kind": SEGMENT_OPERATIONS.kind,
        "metadata": {"namespace": subject.key.namespace, "name": name},
        "spec": _given(spec),
    }


def _ended(body: Body | None, made: Body) -> Body | None:
    """The object once it has ended."""
    if body is None or body["metadata"]["uid"] != made["metadata"]["uid"]:
        return None
    return body if (body.get("status") or {}).get("phase") in FINISHED else None


def _known_segment(subject: Subject, segment_id: int) -> int:
    if segment_id not in subject.layout.segments:
        raise Refusal(404, f"there is no segment {segment_id} in the layout of {subject.topic}")
    return segment_id


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
