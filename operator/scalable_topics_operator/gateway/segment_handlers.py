"""Single segments, read; what brokers let be written to them is refused with how it is asked for here (R32)."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from scalable_topics.layout import Segment, segment_descriptor, to_pip468
from scalable_topics_operator.gateway import segment_routes
from scalable_topics_operator.gateway.clients_shown import SegmentCursor
from scalable_topics_operator.gateway.common_parameters import DESCRIPTOR, SUBSCRIPTION
from scalable_topics_operator.gateway.looks import SegmentLooks
from scalable_topics_operator.gateway.refusal import Refusal, error_response
from scalable_topics_operator.gateway.rest_call import Bound, Call, RestAdmission, Subject

_INSTEAD = (
    "segments are written by the operator alone; use /admin/v2/scalable: split, merge and rebucket of the topic, and "
    "subscriptions with their seek and skip-all"
)


class SegmentHandlers:
    """Handles single segments.

    Args:
        admission: finds topics and asks for rights.
        looks: asks brokers.
    """

    def __init__(self, admission: RestAdmission, looks: SegmentLooks) -> None:
        self._admission = admission
        self._looks = looks

    def bound(self) -> list[Bound]:
        """What it answers."""
        return [
            (segment_routes.GET_SEGMENT, self._record),
            (segment_routes.SEGMENT_SUBSCRIPTIONS, self._subscriptions),
            (segment_routes.SEGMENT_BACKLOG, self._backlog),
            *((route, self._refuse) for route in segment_routes.SEGMENT_WRITES),
        ]

    async def _record(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        segment = _segment(call, subject)
        return web.json_response(to_pip468(subject.layout)["segments"][str(segment.segment_id)])

    async def _subscriptions(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        cursors = await self._looks.cursors(subject, _segment(call, subject))
        return web.json_response({name: _cursor(cursor) for name, cursor in sorted(cursors.items())})

    async def _backlog(self, call: Call) -> web.StreamResponse:
        subject = await self._admission.topic(call)
        segment, subscription = _segment(call, subject), call.values.need(SUBSCRIPTION)
        cursors = await self._looks.cursors(subject, segment)
        if subscription not in cursors:
            raise Refusal(404, f"segment {segment.segment_id} has no cursor of subscription {subscription}")
        return web.json_response(cursors[subscription].backlog)

    async def _refuse(self, call: Call) -> web.StreamResponse:
        return error_response(405, _INSTEAD, allow="GET")


def _segment(call: Call, subject: Subject) -> Segment:
    """The segment of the path. Raises Refusal: 404."""
    descriptor = call.values.need(DESCRIPTOR)
    segment = subject.layout.segments.get(int(descriptor.rpartition("-")[2]))
    if segment is None or segment_descriptor(segment.hash_range, segment.segment_id) != descriptor:
        raise Refusal(404, f"there is no segment {descriptor} in the layout of {subject.topic}")
    return segment


def _cursor(cursor: SegmentCursor) -> dict[str, Any]:
    return {
        "backlog": cursor.backlog,
        "markDelete": cursor.mark_delete,
        "consumers": cursor.consumers,
        "counts": cursor.counts,
    }
