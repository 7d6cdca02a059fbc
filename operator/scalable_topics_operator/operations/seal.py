"""Sealing a segment and making sure that it stays sealed (R14, hazards A1-26680 and A1-26678)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from scalable_topics_operator.operations.context import OperationContext
from scalable_topics_operator.operations.errors import BackendUnavailable, LogFenced, TopicMissing
from scalable_topics_operator.operations.protocols import Position

logger = logging.getLogger(__name__)

_UNLOAD_AFTER_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class Seal:
    """A verified seal.

    Args:
        position: the last entry.
        came_back: producers seen attached between two attempts, when the first did not hold (R15).
        subscriptions: the cursors that count, as of after the seal (R16).
    """

    position: Position
    came_back: frozenset[str]
    subscriptions: frozenset[str]


async def seal_segment(ctx: OperationContext, segment_topic: str, *, is_written_to: bool) -> Seal | None:
    """Terminate a segment and look twice until state and last entry hold still.

    A terminate that coincides with a ledger rollover does not stick, writes in flight may hang for good, and a broker
    may have been overtaken: the first is terminated again, the others are cured by an unload.

    Args:
        ctx: of the topic.
        segment_topic: what to seal.
        is_written_to: producers may still be attached. Without them ledgers hardly roll over, and the pause between
            the looks, in which announced producers wait, is short.

    Returns the verified seal, or None if the segment's topic does not exist.
    Raises BackendUnavailable when the seal does not hold within `settings.seal_attempts`.
    """
    came_back: frozenset[str] = frozenset()
    for attempt in range(ctx.settings.seal_attempts):
        try:
            claimed = await ctx.backend.terminate(segment_topic)
            first = await ctx.backend.look(segment_topic)
            is_restless = is_written_to or attempt or first.producers or first.pending_adds
            await ctx.clock.sleep(
                ctx.settings.restless_seal_look_seconds if is_restless else ctx.settings.seal_look_seconds
            )
            second = await ctx.backend.look(segment_topic)
        except TopicMissing:
            return None
        except LogFenced as fenced:
            # Seen where a broker was killed while it wrote: it refuses for ever, and where nobody writes nothing else
            # makes it load the topic anew.
            await ctx.report("SegmentUnloaded", f"{fenced}; the topic was unloaded")
            await ctx.backend.unload(segment_topic)
            continue
        if second.pending_adds and attempt >= _UNLOAD_AFTER_ATTEMPTS:
            await ctx.report(
                "SegmentUnloaded",
                f"{segment_topic}: {second.pending_adds} writes hang after the seal; the topic was unloaded",
            )
            await ctx.backend.unload(segment_topic)
            continue
        if (
            first.terminated
            and second.terminated
            and not second.pending_adds
            and claimed == first.last_confirmed == second.last_confirmed
        ):
            return Seal(second.last_confirmed, came_back, second.counting)
        came_back |= first.producers | second.producers
        logger.warning("seal of %s did not hold (attempt %d); terminating again", segment_topic, attempt + 1)
    raise BackendUnavailable(
        f"{segment_topic}: the seal did not hold in {ctx.settings.seal_attempts} attempts; it is tried again"
    )
