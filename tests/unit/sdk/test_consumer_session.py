"""A consumer's session against a gateway that a test scripts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

import pytest

from scalable_topics.layout import Part, TopicName
from scalable_topics.sdk.consumer_session import ConsumerSession
from scalable_topics.sdk.errors import (
    ClientError,
    ConnectError,
    ScalableTopicNotFoundError,
    SessionRefusedError,
)
from scalable_topics.sdk.gateway_options import GatewayOptions
from scalable_topics.sdk.session_frames import AssignedSegment, ConsumerKind
from tests.support.session_server import GatewaySession, SessionServer, serve_sessions

TOPIC = TopicName.parse("t/n/orders")
WITHIN_SECONDS = 30.0


class Holder:
    """Attaches at once, and detaches when a test says so."""

    def __init__(self) -> None:
        self.session: ConsumerSession | None = None
        self.held: dict[Part, AssignedSegment] = {}
        self.given_back: dict[Part, float] = {}
        self.dropped: set[Part] = set()
        self.not_served: set[Part] = set()
        self.changed = asyncio.Event()

    def attach(self, segments: tuple[AssignedSegment, ...]) -> None:
        self.held |= {segment.part: segment for segment in segments}
        self.changed.set()

    def update(self, segment: AssignedSegment) -> None:
        self.held[segment.part] = segment
        self.changed.set()

    def give_back(self, part: Part, within_seconds: float) -> None:
        self.given_back[part] = within_seconds
        self.changed.set()

    def drop(self, part: Part) -> None:
        self.dropped.add(part)
        self.changed.set()
        asyncio.get_running_loop().call_soon(self.detach, part)

    def unserved(self) -> Collection[Part]:
        return self.not_served & set(self.held)

    def detach(self, part: Part) -> None:
        del self.held[part]
        assert self.session is not None
        self.session.detached(part)
        self.changed.set()

    async def until_held(self, ids: set[int]) -> None:
        """Wait until it is attached to these and to nothing else."""
        await self.until_parts({Part(each) for each in ids})

    async def until_parts(self, parts: set[Part]) -> None:
        """Wait until it is attached to these and to nothing else."""
        async with asyncio.timeout(WITHIN_SECONDS):
            while set(self.held) != parts:
                self.changed.clear()
                await self.changed.wait()


class Consumer:
    """A consumer and what became of it."""

    def __init__(self, url: str, *, subscription: str = "billing", **gateway: Any) -> None:
        self.holder = Holder()
        self.errors: list[ClientError] = []
        self.failed = asyncio.Event()
        options = GatewayOptions(url, **({"token": "s3cret"} | gateway))
        self.session = self.holder.session = ConsumerSession(
            TOPIC,
            subscription,
            consumer="c1",
            kind=ConsumerKind.CHECKPOINT,
            initial_position="Earliest",
            gateway=options,
            failed=self._fail,
        )

    def _fail(self, error: ClientError) -> None:
        self.errors.append(error)
        self.failed.set()

    async def register(self, server: SessionServer) -> GatewaySession:
        """Start it."""
        starting = asyncio.create_task(self.session.start(self.holder))
        session = await server.next_session()
        assert (await session.next())["type"] == "register"
        await session.registered()
        await asyncio.wait_for(starting, WITHIN_SECONDS)
        return session

    async def close(self) -> None:
        """End it."""
        self.session.leave()
        await self.session.close()


@pytest.fixture
async def server() -> AsyncIterator[SessionServer]:
    async with serve_sessions() as found:
        yield found


def segment(segment_id: int, **fields: Any) -> dict[str, Any]:
    """A segment as the gateway sends it."""
    topic = f"persistent://t/n/orders-segment-0000-ffff-{segment_id}"
    return {"id": segment_id, "range": "0000-ffff", "topic": topic, "state": "Active", "buckets": []} | fields


async def answer_leave(session: GatewaySession) -> None:
    """Let a consumer go."""
    while (await session.next())["type"] != "leave":
        pass
    await session.left()


async def test_it_registers_and_follows_its_assignments(server: SessionServer) -> None:
    consumer = Consumer(server.url, connection="team-a/pulsar")
    starting = asyncio.create_task(consumer.session.start(consumer.holder))
    session = await server.next_session()
    register = await session.next()
    assert register == {
        "type": "register",
        "consumer": "c1",
        "incarnation": register["incarnation"],
        "resume": False,
        "kind": "Checkpoint",
        "initialPosition": "Earliest",
        "sharesSegments": True,
        "holds": [],
        "holdsBuckets": [],
    }
    assert (session.subscription, session.authorization) == ("billing", "Bearer s3cret")
    assert session.query == {"connection": "team-a/pulsar"}
    await session.registered(handover_ms=10_000)
    await asyncio.wait_for(starting, WITHIN_SECONDS)
    await session.send({"type": "of a later release"})
    await session.assign((1, 0, 1), [segment(0, later="field"), segment(1, state="Sealed", end="7:41")])
    await consumer.holder.until_held({0, 1})
    assert consumer.holder.held[Part(1)].end == (7, 41)
    await session.assign((1, 0, 2), [segment(1, state="Sealed", end="7:41")])
    async with asyncio.timeout(WITHIN_SECONDS):
        while Part(0) not in consumer.holder.given_back:
            await asyncio.sleep(0)
    assert consumer.holder.given_back[Part(0)] < 10
    consumer.holder.detach(Part(0))
    assert await session.next() == {"type": "released", "segments": [0], "buckets": []}
    consumer.session.drained(Part(1))
    assert await session.next() == {"type": "drained", "segments": [1], "buckets": []}
    await asyncio.gather(consumer.close(), answer_leave(session))
    assert consumer.errors == []


async def test_names_of_any_kind_reach_the_gateway_as_they_are(server: SessionServer) -> None:
    consumer = Consumer(server.url, subscription="a/b ?c%2Fd")
    session = await consumer.register(server)
    assert session.subscription == "a/b ?c%2Fd"
    await asyncio.gather(consumer.close(), answer_leave(session))


async def test_R7_A5_25687_a_broken_session_comes_back_with_what_is_held(server: SessionServer) -> None:
    consumer = Consumer(server.url)
    session = await consumer.register(server)
    await session.assign((1, 0, 1), [segment(0), segment(1)])
    await consumer.holder.until_held({0, 1})
    server.refusals = [(503, "no leader is known"), (401, "too old")]
    session.cut()
    again = await server.next_session()
    register = await again.next()
    assert (register["resume"], register["holds"]) == (True, [0, 1])
    assert set(consumer.holder.held) == {Part(0), Part(1)}, "it goes on reading meanwhile"
    await again.registered()
    await again.assign((1, 0, 0), [])
    await again.assign((2, 0, 0), [segment(1)])
    async with asyncio.timeout(WITHIN_SECONDS):
        while not consumer.holder.given_back:
            await asyncio.sleep(0)
    assert set(consumer.holder.given_back) == {Part(0)}, "the assignment that was overtaken changes nothing"
    assert server.refusals == []
    assert consumer.errors == []
    await asyncio.gather(consumer.close(), answer_leave(again))


@pytest.mark.parametrize("sent", ["{", '{"type": "assignment"}', '{"type": "registered", "graceMs": "x"}'])
async def test_a_gateway_that_talks_nonsense_is_asked_again(server: SessionServer, sent: str) -> None:
    consumer = Consumer(server.url)
    session = await consumer.register(server)
    await session.send_raw(sent)
    again = await server.next_session()
    assert (await again.next())["resume"] is True
    assert consumer.errors == []
    await asyncio.gather(consumer.close(), answer_leave(again))


async def test_a_refusal_for_now_makes_it_register_again(server: SessionServer) -> None:
    consumer = Consumer(server.url)
    starting = asyncio.create_task(consumer.session.start(consumer.holder))
    session = await server.next_session()
    await session.refuse(503, "another replica leads now", final=False)
    again = await server.next_session()
    assert (await again.next())["resume"] is False
    await again.registered()
    await asyncio.wait_for(starting, WITHIN_SECONDS)
    await asyncio.gather(consumer.close(), answer_leave(again))


async def test_R21_a_consumer_that_is_replaced_is_told_and_drops_everything(server: SessionServer) -> None:
    consumer = Consumer(server.url)
    session = await consumer.register(server)
    await session.assign((1, 0, 1), [segment(0)])
    await consumer.holder.until_held({0})
    await session.refuse(409, "another consumer has registered as 'c1'", final=True)
    await asyncio.wait_for(consumer.failed.wait(), WITHIN_SECONDS)
    (error,) = consumer.errors
    assert isinstance(error, SessionRefusedError)
    assert error.status == 409
    assert "another consumer has registered as 'c1'" in str(error)
    await consumer.holder.until_held(set())
    await asyncio.wait_for(consumer.close(), WITHIN_SECONDS)
    assert server.sessions.empty()


async def test_R33_a_right_that_is_gone_when_it_comes_back_ends_it(server: SessionServer) -> None:
    consumer = Consumer(server.url)
    session = await consumer.register(server)
    server.refusals = [(403, "needs consume on scalabletopics")]
    session.cut()
    await asyncio.wait_for(consumer.failed.wait(), WITHIN_SECONDS)
    assert "needs consume on scalabletopics" in str(consumer.errors[0])
    await consumer.close()


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, ConnectError), (401, ConnectError), (403, ConnectError), (404, ScalableTopicNotFoundError)],
)
async def test_what_waiting_does_not_mend_is_said_at_once(
    server: SessionServer, status: int, kind: type[ClientError]
) -> None:
    server.refusals = [(status, "for this reason")] * 9
    consumer = Consumer(server.url)
    with pytest.raises(kind, match="for this reason") as caught:
        await asyncio.wait_for(consumer.session.start(consumer.holder), WITHIN_SECONDS)
    assert "s3cret" not in str(caught.value)
    await consumer.close()
    assert consumer.errors == []


@pytest.mark.parametrize("before", [9, 495, 499])
async def test_a_refusal_that_repeats_the_token_does_not_show_it(server: SessionServer, before: int) -> None:
    """Not in part either, where what is said is cut off."""
    server.refusals = [(400, "x" * before + "s3cret")] * 9
    consumer = Consumer(server.url)
    with pytest.raises(ConnectError) as caught:
        await asyncio.wait_for(consumer.session.start(consumer.holder), WITHIN_SECONDS)
    said = str(caught.value)
    assert "xs" not in said
    assert "x*" in said
    await consumer.close()


async def test_R25_a_consumer_that_is_at_work_already_registers_as_often_as_it_takes(server: SessionServer) -> None:
    """The gateway may hear of a migrated topic later than the consumer, or not answer at that moment."""
    server.refusals = [(404, "no such topic"), (503, "no leader"), (401, "who is this")]
    consumer = Consumer(server.url)
    consumer.session.join(consumer.holder)
    session = await server.next_session()
    assert (await session.next())["holds"] == []
    assert server.refusals == []
    await session.registered()
    await session.assign((1, 0, 1), [segment(0)])
    await consumer.holder.until_held({0})
    await asyncio.gather(consumer.close(), answer_leave(session))
    assert consumer.errors == []


async def test_R25_a_right_that_it_never_had_ends_it(server: SessionServer) -> None:
    server.refusals = [(403, "needs consume on scalabletopics")]
    consumer = Consumer(server.url)
    consumer.session.join(consumer.holder)
    await asyncio.wait_for(consumer.failed.wait(), WITHIN_SECONDS)
    assert "needs consume on scalabletopics" in str(consumer.errors[0])
    await consumer.close()


async def test_a_final_refusal_of_the_first_registration_is_raised(server: SessionServer) -> None:
    consumer = Consumer(server.url)
    starting = asyncio.create_task(consumer.session.start(consumer.holder))
    session = await server.next_session()
    await session.refuse(409, "subscription 'billing' is of kind Stream", final=True)
    with pytest.raises(SessionRefusedError, match="of kind Stream"):
        await asyncio.wait_for(starting, WITHIN_SECONDS)
    await asyncio.wait_for(consumer.close(), WITHIN_SECONDS)


async def test_registering_takes_no_longer_than_allowed(server: SessionServer) -> None:
    server.refusals = [(503, "no leader is known")] * 99
    consumer = Consumer(server.url, register_timeout_seconds=1.5)
    with pytest.raises(ConnectError, match=r"within 1\.5 s: .*no leader is known"):
        await consumer.session.start(consumer.holder)
    await consumer.close()


async def test_nobody_listening_is_an_error_with_a_reason() -> None:
    async with serve_sessions() as gone:
        url = gone.url
    consumer = Consumer(url, register_timeout_seconds=0.5)
    with pytest.raises(ConnectError, match="could not register"):
        await consumer.session.start(consumer.holder)
    await consumer.close()


async def test_tokens_are_read_again_at_every_connection(server: SessionServer, tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("first\n")
    consumer = Consumer(server.url, token=None, token_file=token_file, scheme="Pulsar")
    session = await consumer.register(server)
    assert session.authorization == "Pulsar first"
    token_file.unlink()
    session.cut()
    await session.ended.wait()
    token_file.write_text("second")
    again = await server.next_session()
    assert again.authorization == "Pulsar second"
    await asyncio.gather(consumer.close(), answer_leave(again))


async def test_a_missing_token_is_said_at_once(server: SessionServer, tmp_path: Path) -> None:
    consumer = Consumer(server.url, token=None, token_file=tmp_path / "none")
    with pytest.raises(ConnectError, match="cannot read the token file"):
        await asyncio.wait_for(consumer.session.start(consumer.holder), WITHIN_SECONDS)
    await consumer.close()


async def test_entry_buckets_are_held_each_by_itself(server: SessionServer) -> None:
    """And what has a bucket in common with them is attached to once they are detached from."""
    consumer = Consumer(server.url)
    session = await consumer.register(server)
    await session.assign((1, 0, 1), [segment(0, buckets=[1, 3], bucketCount=4), segment(2)])
    await consumer.holder.until_parts({Part(0, 1), Part(0, 3), Part(2)})
    await session.assign((1, 0, 2), [segment(0, bucketCount=4), segment(2)])
    async with asyncio.timeout(WITHIN_SECONDS):
        while set(consumer.holder.given_back) != {Part(0, 1), Part(0, 3)}:
            await asyncio.sleep(0)
    consumer.holder.detach(Part(0, 3))
    assert await session.next() == {
        "type": "released",
        "segments": [],
        "buckets": [{"segment": 0, "buckets": [3]}],
    }
    assert set(consumer.holder.held) == {Part(0, 1), Part(2)}
    consumer.holder.detach(Part(0, 1))
    await consumer.holder.until_held({0, 2})
    await asyncio.gather(consumer.close(), answer_leave(session))


async def test_buckets_that_a_segment_does_not_have_are_refused(server: SessionServer) -> None:
    """It registers again rather than read what others read (hazard A4-26208e)."""
    consumer = Consumer(server.url)
    session = await consumer.register(server)
    await session.assign((1, 0, 1), [segment(0, buckets=[4], bucketCount=4), segment(1)])
    again = await server.next_session()
    assert (await again.next())["holdsBuckets"] == []
    assert consumer.holder.held == {}
    await again.registered()
    await asyncio.gather(consumer.close(), answer_leave(again))


async def test_R7_without_a_session_it_detaches_by_its_own_clock(server: SessionServer) -> None:
    consumer = Consumer(server.url)
    starting = asyncio.create_task(consumer.session.start(consumer.holder))
    session = await server.next_session()
    await session.registered(grace_ms=100)
    await starting
    await session.assign((1, 0, 1), [segment(0), segment(1)])
    await consumer.holder.until_held({0, 1})
    server.refusals = [(503, "no leader is known")] * 99
    consumer.holder.not_served = {Part(0)}
    session.cut()
    await consumer.holder.until_held({1})
    server.refusals = []
    again = await server.next_session()
    assert (await again.next())["holds"] == [1]
    await again.registered()
    await again.assign((1, 0, 1), [segment(0), segment(1)])
    await consumer.holder.until_held({0, 1})
    await asyncio.gather(consumer.close(), answer_leave(again))


async def test_leaving_comes_after_everything_is_detached(server: SessionServer) -> None:
    consumer = Consumer(server.url)
    session = await consumer.register(server)
    await session.assign((1, 0, 1), [segment(0), segment(1)])
    await consumer.holder.until_held({0, 1})
    consumer.session.leave()
    closing = asyncio.create_task(consumer.session.close())
    assert await session.next() == {"type": "leave"}
    assert consumer.holder.held == {}
    await session.left()
    await asyncio.wait_for(closing, WITHIN_SECONDS)


async def test_closing_waits_no_longer_than_it_must_for_a_gateway_that_is_silent(server: SessionServer) -> None:
    consumer = Consumer(server.url)
    session = await consumer.register(server)
    started = asyncio.get_running_loop().time()
    await consumer.close()
    assert 4 < asyncio.get_running_loop().time() - started < 8
    with contextlib.suppress(asyncio.QueueEmpty):
        assert session.received.get_nowait() == {"type": "leave"}
