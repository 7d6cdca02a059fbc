"""What is done to segments and cursors by hand: each request makes a SegmentOperation and waits for it (R32)."""

from __future__ import annotations

from datetime import UTC, datetime

from aiohttp import web

from scalable_topics_operator.cluster.object_key import ObjectKey, connection_of
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from scalable_topics_operator.gateway import operation_routes, subscription_routes
from scalable_topics_operator.gateway.checkpoint_body import read_positions
from scalable_topics_operator.gateway.common_parameters import CONNECTION, OPERATION, SEGMENT_ID, SUBSCRIPTION
from scalable_topics_operator.gateway.operation_making import PENDING, OperationMaker, given
from scalable_topics_operator.gateway.ordinary_topics import OrdinaryTopics
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.gateway.rest_call import Bound, Call, RestAdmission, Subject
from scalable_topics_operator.gateway.topic_directory import Unfound
from scalable_topics_operator.gateway.waiting import ObjectWaits


class OperationHandlers:
    """Handles split, merge, rebucket, seek, skip-all and restore.

    Args:
        admission: finds topics and asks for rights.
        maker: makes SegmentOperations.
        ordinary: knows topics that are not scalable yet.
        waits: knows what has become of SegmentOperations.
    """

    def __init__(
        self, admission: RestAdmission, maker: OperationMaker, ordinary: OrdinaryTopics, waits: ObjectWaits
    ) -> None:
        self._admission = admission
        self._maker = maker
        self._ordinary = ordinary
        self._waits = waits

    def bound(self) -> list[Bound]:
        """What it answers."""
        return [
            (operation_routes.SPLIT, self._split),
            (operation_routes.MERGE, self._merge),
            (operation_routes.REBUCKET, self._rebucket),
            (operation_routes.GET_OPERATION, self._get),
            (subscription_routes.SEEK, self._seek),
            (subscription_routes.SKIP_ALL, self._skip_all),
            (subscription_routes.RESTORE, self._restore),
        ]

    async def _split(self, call: Call) -> web.StreamResponse:
        subject = await self._scalable(call)
        at, into = call.values.get(operation_routes.AT), call.values.get(operation_routes.INTO)
        if at is not None and into not in (None, 2):
            raise Refusal(400, "at makes exactly two parts; leave out at, or into")
        split = {"segment": _known_segment(subject, call.values.need(SEGMENT_ID)), "at": at, "into": into}
        return await self._maker.operate(call, subject, "Split", given(split))

    async def _merge(self, call: Call) -> web.StreamResponse:
        subject = await self._scalable(call)
        first, second = (
            call.values.need(one) for one in (operation_routes.SEGMENT_ID_1, operation_routes.SEGMENT_ID_2)
        )
        chosen = [first, second, *call.values.all(operation_routes.ALSO)]
        if len(set(chosen)) < len(chosen):
            raise Refusal(400, f"a merge names a segment twice: {chosen}")
        merge = {"segments": [_known_segment(subject, one) for one in chosen]}
        return await self._maker.operate(call, subject, "Merge", merge)

    async def _rebucket(self, call: Call) -> web.StreamResponse:
        subject = await self._scalable(call)
        given = [call.values.get(one) for one in (operation_routes.BUCKETS, operation_routes.BUCKET_COUNT)]
        counts = {count for count in given if count is not None}
        if len(counts) != 1:
            raise Refusal(400, "say how many entry buckets: ?buckets=, or ?bucketCount= as brokers have it")
        rebucket = {"segment": _known_segment(subject, call.values.need(SEGMENT_ID)), "buckets": counts.pop()}
        return await self._maker.operate(call, subject, "Rebucket", rebucket)

    async def _seek(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        to_ms = call.values.need(subscription_routes.TIMESTAMP)
        moment = datetime.fromtimestamp(to_ms / 1000, UTC).isoformat(timespec="milliseconds")
        seek = {"subscription": call.values.need(SUBSCRIPTION), "timestamp": moment.replace("+00:00", "Z")}
        return await self._maker.operate(call, subject, "Seek", seek)

    async def _skip_all(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        return await self._maker.operate(call, subject, "SkipAll", {"subscription": call.values.need(SUBSCRIPTION)})

    async def _restore(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        restore = {
            "subscription": call.values.need(SUBSCRIPTION),
            "positions": read_positions(await call.json()),
            "allowGaps": call.values.get(subscription_routes.ALLOW_GAPS),
        }
        return await self._maker.operate(call, subject, "Restore", given(restore))

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
                "phase": status.get("phase") or PENDING,
                "reason": status.get("reason") or "",
                "message": status.get("message") or "",
            }
        )

    async def _scalable(self, call: Call) -> Subject:
        """The topic whose segments are to be changed. Raises Refusal: 412 where it is an ordinary one."""
        try:
            subject = await self._admission.topic(call)
        except Unfound as unfound:
            if unfound.status == 404 and (
                what := await self._ordinary.describe_undeclared(
                    call.topic, call.values.get(CONNECTION), call.authorization, call.route.rights
                )
            ):
                raise Refusal(412, what) from None
            raise
        if not subject.status.get("layout") and (
            what := await self._ordinary.describe(subject.topic, connection_of(subject.body))
        ):
            raise Refusal(412, what)
        return subject


def _known_segment(subject: Subject, segment_id: int) -> int:
    if segment_id not in subject.layout.segments:
        raise Refusal(404, f"there is no segment {segment_id} in the layout of {subject.topic}")
    return segment_id
