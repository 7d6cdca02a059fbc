"""The client library survives whatever a gateway, a layout topic or a store of checkpoints may hold.

Only `ClientError` and `AdminError` leave it, of a length that can be logged, and what was read can be worked with.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import example, given
from hypothesis import strategies as st

from scalable_topics.admin import AdminClient, AdminError, GatewayOptions
from scalable_topics.admin.requests import Request
from scalable_topics.admin.transport import Transport, _Sent
from scalable_topics.layout import Part, TopicName
from scalable_topics.sdk.checkpoint import Checkpoint, SegmentPosition
from scalable_topics.sdk.consumer_session import _explain, _HandshakeRefusedError
from scalable_topics.sdk.errors import ClientError
from scalable_topics.sdk.layout_choice import LayoutChoice
from scalable_topics.sdk.layout_message import LayoutMessage, parse_layout_message
from scalable_topics.sdk.message_id import MessageId
from scalable_topics.sdk.session_frames import ConsumerKind, Frame, parse_frame
from scalable_topics.sdk.session_state import AttachTo, Drop, GiveBack, SendFrame, SessionState
from tests.support.hostile import NESTED_TEXTS, OTHER_TEXTS, fuzzing, randomness, text_of
from tests.unit.admin.calls import CALLS, Call
from tests.unit.admin.gateway_in_test import TOKEN

MOST_ERROR_CHARACTERS = 1000
_VECTORS = Path(__file__).parents[2] / "vectors" / "messages.json"
MESSAGES: list[dict[str, Any]] = [
    json.loads(case["body"]) for case in json.loads(_VECTORS.read_text(encoding="utf-8"))["cases"] if case["valid"]
]
_VERSION = {"term": 1, "epoch": 2, "counter": 3}
_SEGMENT = {
    "id": 7,
    "range": "0000-ffff",
    "topic": "persistent://t/n/x",
    "state": "Sealed",
    "end": "5:9",
    "start": "5:4",
    "bucketCount": 4,
    "buckets": [1, 3],
    "floors": [{"bucket": 3, "position": "5:6"}, {"bucket": 1, "position": "5:9:2"}],
}
FRAMES: list[dict[str, Any]] = [
    {"type": "registered", "graceMs": 60_000, "handoverMs": 30_000, "record": "uid"},
    {"type": "assignment", "version": _VERSION, "segments": [_SEGMENT, {**_SEGMENT, "id": 8, "buckets": []}]},
    {"type": "left"},
    {"type": "refused", "status": 409, "reason": "another one", "final": False},
]
CHECKPOINT = json.loads(
    Checkpoint("topic://a/b/c", "g", {Part(3): SegmentPosition(1, 2), Part(4, 1): SegmentPosition(1, 2, 3)}).serialize()
)


def read_or_refused(read: Callable[[], Any]) -> Any:
    """What was read; None for a refusal, which has to be fit for a log."""
    try:
        return read()
    except ClientError as error:
        refusal = str(error)
    assert len(refusal) <= MOST_ERROR_CHARACTERS
    return None


@fuzzing(300)
@given(randomness.map(lambda rng: [text_of(rng, rng.choice(MESSAGES)) for _ in range(4)]))
@example(list(NESTED_TEXTS))
@example(list(OTHER_TEXTS))
@example([json.dumps({**MESSAGES[0], "topic": "x" * 10_000, "version": 2}).encode()])
def test_layout_messages(texts: list[bytes]) -> None:
    choice = LayoutChoice(TopicName.parse("a/b/c"), may_be_ordinary=True)
    for text in texts:
        message = read_or_refused(lambda text=text: parse_layout_message(text))  # type: ignore[misc]
        if message is not None:
            assert isinstance(message, LayoutMessage)
            choice.published(message)
            if message.announcement is not None:
                assert message.announcement.hold_seconds < 2**64


@fuzzing(300)
@given(randomness.map(lambda rng: [text_of(rng, rng.choice(FRAMES)) for _ in range(6)]))
@example([*NESTED_TEXTS, *OTHER_TEXTS])
@example([json.dumps({**FRAMES[0], "graceMs": 10**400}).encode()])
def test_frames_of_a_gateway(texts: list[bytes]) -> None:
    state = SessionState("c1", "i", ConsumerKind.CHECKPOINT, "Earliest")
    state.opened()
    for number, text in enumerate(texts):
        # Frames come as text: what is no UTF-8 ends the socket.
        frame: Frame | None = read_or_refused(
            lambda text=text: parse_frame(text.decode("utf-8", "surrogateescape"))  # type: ignore[misc]
        )
        effects = [] if frame is None else state.received(frame)
        state.heard(float(number))
        for effect in effects:
            match effect:
                case SendFrame(sent):
                    json.dumps(sent)
                case Drop(part):
                    state.detached(part)
                case GiveBack(part, seconds):
                    assert abs(seconds) < 2**64
                    state.detached(part)
                case AttachTo(segments):
                    assert segments
        assert not any(one is not other and one.conflicts_with(other) for one in state.holds for other in state.holds)
        state.passed(float(number), ())


@fuzzing(300)
@given(randomness.map(lambda rng: text_of(rng, CHECKPOINT)))
@example(b'{"version": 2, "topic": "a", "group": "b", "positions": {"3": [1e999, 0]}, "buckets": {}}')
@example(NESTED_TEXTS[0])
def test_kept_checkpoints(text: bytes) -> None:
    found = read_or_refused(lambda: Checkpoint.deserialize(text))
    if found is not None:
        assert read_or_refused(lambda: Checkpoint.deserialize(found.serialize())) == found
        found.merged(found)
        found.following(found)


@fuzzing(100)
@given(st.one_of(st.binary(max_size=64), st.binary(max_size=40).map(lambda rest: MessageId(7).serialize() + rest)))
def test_kept_message_ids(data: bytes) -> None:
    found = read_or_refused(lambda: MessageId.deserialize(data))
    if found is not None:
        hash(found)
        repr(found)


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_answers_to_every_call_of_the_admin_client(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the gateway, or something in front of it, answers to each method."""
    sent: list[bytes] = []

    async def attempt(self: Transport, request: Request, left_seconds: float) -> _Sent:
        headers = {"X-Scalable-Topics-Operation": "/" * 3, "Retry-After": "9" * 400}
        return _Sent(call.reply.status, headers, sent[0], f"Bearer {TOKEN}")

    monkeypatch.setattr(Transport, "_attempt", attempt)
    client = AdminClient(GatewayOptions("http://gateway.invalid:1", token=TOKEN))
    method = getattr(client, call.method)

    body = {"message": "done", "plan": {}} if call.reply.body is None else call.reply.body

    @fuzzing(40)
    @given(randomness.map(lambda rng: text_of(rng, body)))
    @example(NESTED_TEXTS[0])
    def check(text: bytes) -> None:
        sent[:] = [text]
        # Nothing is waited for: the answer is there at once.
        step, refusal = method(*call.arguments, **call.options), ""
        try:
            step.send(None)
        except StopIteration:
            return
        except AdminError as error:
            refusal = str(error)
        assert refusal, "it waits for something"
        assert TOKEN not in refusal
        assert len(refusal) <= 4 * MOST_ERROR_CHARACTERS + 100

    check()


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"Content-Type": "application/json; charset=hex"}, b'{"reason": "no"}'),
        ({"Content-Type": "application/json; charset=\xff".encode("latin-1").decode("latin-1")}, b"{}"),
        ({"Content-Type": "text/html"}, b"<html>" + b"x" * (8 << 20)),
        ({"Content-Type": "application/json"}, NESTED_TEXTS[0]),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, b"no gzip"),
        ({"Content-Type": "application/json"}, b'{"reason": {"a": 1}}'),
        ({"Content-Type": "application/json"}, json.dumps({"reason": "x" * 60_000}).encode()),
    ],
    ids=["no text encoding", "no charset", "8 MiB", "nested", "no gzip", "no text", "long"],
)
async def test_a_refused_handshake_is_read_in_bounds(headers: dict[str, str], body: bytes) -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=403, body=body, headers=headers)

    app = web.Application()
    app.router.add_get("/", refuse)
    async with TestServer(app) as server, aiohttp.ClientSession(raise_for_status=_explain) as http:
        with pytest.raises(_HandshakeRefusedError) as refusal:
            await http.ws_connect(server.make_url("/"))
    assert refusal.value.status == 403
    assert len(refusal.value.reason) <= 500
