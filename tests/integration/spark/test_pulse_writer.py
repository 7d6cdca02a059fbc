"""Whether the topic of records holds what this pipeline wrote and nothing else, on a real broker (R34)."""

from __future__ import annotations

import asyncio

from scalable_topics_operator.load.records import Pulse
from segment_load import record_sink
from segment_load.broker_access import BrokerAccess
from segment_load.record_sink import PulseWriter, RecordTopic
from tests.support.load_pipeline import FOREIGN, Segments
from tests.support.pulsar_view import PulsarView


async def test_what_somebody_else_writes_is_noticed_at_any_moment(
    topic: RecordTopic, access: BrokerAccess, segments: Segments, view: PulsarView
) -> None:
    writer = PulseWriter(topic, access)
    pulse = Pulse(1, 10.0, settled=True, segments=0)

    async def begin() -> None:
        await asyncio.to_thread(record_sink.prepare, topic, access)
        await asyncio.to_thread(writer.mark)
        await asyncio.to_thread(writer.write, pulse, 0)

    async def is_ours() -> bool:
        return await asyncio.to_thread(writer.is_last)

    try:
        assert not await is_ours(), "nothing is known of it before it is marked"
        await begin()
        assert await is_ours()
        assert await is_ours()
        # Three records and their pulse.
        for key in "abc":
            await segments.write(topic.name, key, b"{}")
        await asyncio.to_thread(writer.write, pulse, 3)
        assert await is_ours()
        # Between two batches, and in the midst of one: there the pulse is the last message again.
        await segments.write(topic.name, "stranger", FOREIGN)
        assert not await is_ours()
        await begin()
        await segments.write(topic.name, "stranger", FOREIGN)
        await asyncio.to_thread(writer.write, pulse, 0)
        assert not await is_ours()
        # A broker that loads the topic counts anew, and nobody has written.
        await begin()
        await view.unload_topic(topic.name)
        assert await is_ours()
        await segments.write(topic.name, "stranger", FOREIGN)
        await asyncio.to_thread(writer.write, pulse, 0)
        assert not await is_ours()
        await begin()
        await view.delete_topic(topic.name, force=True)
        assert not await is_ours()
    finally:
        await asyncio.to_thread(writer.close)
