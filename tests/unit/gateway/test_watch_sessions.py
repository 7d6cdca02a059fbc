"""Watch sessions over real sockets: who may, what comes, and how they end (R20, R33, docs/sessions.md)."""

from __future__ import annotations

import asyncio
import json
import socket as sockets
import time
from typing import Any

import aiohttp
import pytest
from aiohttp import WSCloseCode, WSMsgType

from scalable_topics_operator.gateway import sessions as sessions_module
from scalable_topics_operator.gateway import websockets as websockets_module
from scalable_topics_operator.gateway.session_places import SessionLimits
from scalable_topics_operator.operations.journal import Step
from tests.unit.gateway.api_server import BAD, GOOD, NO_RIGHTS, OTHER_AUDIENCE
from tests.unit.gateway.pulsar_cluster import (
    BROKER,
    CLIENT,
    OPERATOR,
    OUTSIDER,
    UNKNOWN,
)
from tests.unit.gateway.topics import KEY, ORDERS, created, split, splitting
from tests.unit.gateway.watch_gate import WATCH, Gate, ending, frame, gate


async def test_R20_any_replica_tells_the_state_and_every_change_by_itself() -> None:
    """Its leader is not even reachable."""
    async with gate() as one, one.watching() as socket:
        first = await frame(socket)
        assert (first["type"], first["layout"]["epoch"], first["layout"]["topic"]) == ("layout", 0, str(ORDERS))
        assert first["leader"] == {"identity": "r-other", "address": "127.0.0.1:1"}
        start = created()
        one.commit(splitting(start, 0, Step.ANNOUNCING))
        one.commit(splitting(start, 0, Step.SEALING))
        one.commit(split(start, 0))
        announced, done = await frame(socket), await frame(socket)
        assert announced["layout"]["announcement"]["parents"] == [0]
        assert (done["layout"]["epoch"], [one["state"] for one in done["layout"]["segments"]]) == (
            1,
            ["Sealed", "Active", "Active"],
        )
        assert one.replica.count("scalable_topics_gateway_session_frames_total", kind="watch") == 3
        assert one.server.access["resourceAttributes"]["verb"] == "lookup"


async def test_replicas_tell_the_same_so_that_one_may_come_back_to_any_of_them() -> None:
    async with gate() as one, gate() as other:
        async with one.watching() as socket:
            seen = await frame(socket)
        async with other.watching(f"?since={seen['position']}") as socket:
            assert await frame(socket) == {"type": "unchanged", "position": seen["position"]}
            other.commit(split(created(), 0))
            assert (await frame(socket))["layout"]["epoch"] == 1
        async with other.watching(f"?since={seen['position']}") as socket:
            assert (await frame(socket))["layout"]["epoch"] == 1


async def test_owners_are_told_after_each_layout_to_those_who_ask() -> None:
    async with gate() as one, one.watching("?owners=true") as asking, one.watching("?owners=false") as other:
        assert (await frame(asking))["layout"]["epoch"] == 0
        assert await frame(asking) == {"type": "owners", "epoch": 0, "owners": {"0": BROKER}}
        assert (await frame(other))["layout"]["epoch"] == 0
        one.commit(split(created(), 0))
        assert (await frame(asking))["layout"]["epoch"] == 1
        assert await frame(asking) == {"type": "owners", "epoch": 1, "owners": {"1": BROKER, "2": BROKER}}
        assert (await frame(other))["layout"]["epoch"] == 1
        # The next one is told what was found just now.
        asked = sum(one.cluster.asked.values())
        async with one.watching("?owners=true") as late:
            assert [(await frame(late))["type"], (await frame(late))["type"]] == ["layout", "owners"]
        assert sum(one.cluster.asked.values()) == asked == 3
        # They are the operator's to ask, and R33 keeps the caller's token out of it.
        assert set(one.cluster.asked) == {OPERATOR}


async def test_owners_come_once_brokers_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scalable_topics_operator.gateway.watch_hub._FIRST_PAUSE_SECONDS", 0.02)
    async with gate() as one:
        one.cluster.status = 503
        async with one.watching("?owners=true") as socket:
            assert (await frame(socket))["type"] == "layout"
            async with asyncio.timeout(5):
                while sum(one.cluster.asked.values()) < 3:
                    await asyncio.sleep(0.01)
            one.cluster.status = None
            assert (await frame(socket))["owners"] == {"0": BROKER}


async def test_a_deleted_topic_ends_its_sessions() -> None:
    async with gate() as one, one.watching() as socket:
        await frame(socket)
        one.replica.cache.remove(KEY, "uid-1")
        assert await frame(socket) == {"type": "deleted"}
        assert await ending(socket) == (1000, "the topic was deleted")
        assert (await one.refused())[0] == 404
    assert one.sessions() == 0


@pytest.mark.parametrize(
    ("query", "authorization", "status"),
    [
        ("", "", 401),
        ("", f"Bearer {BAD}", 401),
        ("", f"Bearer {OTHER_AUDIENCE}", 401),
        ("", f"Pulsar {UNKNOWN}", 401),
        ("", f"Bearer {NO_RIGHTS}", 403),
        ("", f"Pulsar {OUTSIDER}", 403),
        ("?connection=shop/other", f"Bearer {GOOD}", 404),
        ("?owners=perhaps", f"Bearer {GOOD}", 400),
    ],
)
async def test_R33_a_refused_handshake_says_why(query: str, authorization: str, status: int) -> None:
    async with gate() as one:
        answered, reason = await one.refused(query, authorization)
        assert (answered, bool(reason)) == (status, True)
        assert "t0ken" not in reason
        assert one.sessions() == 0


async def test_R33_the_right_to_get_the_object_is_not_the_right_to_watch_it() -> None:
    async with gate() as one:
        one.server.denied = {"lookup"}
        status, reason = await one.refused()
        assert status == 403
        assert "verb lookup" in reason


async def test_what_is_no_handshake_is_told_what_to_do() -> None:
    async with (
        gate() as one,
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {GOOD}"}) as session,
        session.get(f"http://{one.replica.gateway.address}{WATCH}") as response,
    ):
        assert response.status == 400
        assert "is a WebSocket" in (await response.json())["reason"]


async def test_R33_a_token_of_pulsar_is_enough_to_watch_and_no_token_goes_to_the_other_side() -> None:
    async with gate() as one:
        async with one.watching(authorization=f"Pulsar {CLIENT}") as socket:
            assert (await frame(socket))["type"] == "layout"
        assert not one.server.asked
        async with one.watching("?owners=true") as socket:
            await frame(socket)
            await frame(socket)
        assert set(one.cluster.asked) == {CLIENT, OPERATOR}
        assert CLIENT not in "".join(one.server.heard)


@pytest.fixture
def judged_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(sessions_module, "_JUDGE_SECONDS", (0.1, 0.15))
    monkeypatch.setattr(sessions_module, "_JUDGE_AGAIN_SECONDS", (0.05, 0.06))
    monkeypatch.setattr(sessions_module, "_ANSWER_SECONDS", 0.05)


@pytest.mark.usefixtures("judged_often")
async def test_R33_a_session_ends_with_the_right_it_rests_on() -> None:
    async with gate() as one:
        async with one.watching() as socket:
            await frame(socket)
            one.server.denied = {"lookup"}
            code, reason = await ending(socket)
            assert code == 4403
            assert reason.startswith("alice lacks the right to lookup")
        async with one.watching(authorization=f"Pulsar {CLIENT}") as socket:
            await frame(socket)
            one.cluster.may.discard(CLIENT)
            one.cluster.known.add(CLIENT)
            assert (await ending(socket))[0] == 4403
        assert (one.dropped("no right"), one.sessions()) == (2, 0)


@pytest.mark.usefixtures("judged_often")
async def test_R33_a_session_ends_with_the_token_it_began_with() -> None:
    async with gate() as one:
        async with one.watching() as socket:
            await frame(socket)
            one.server.users.clear()
            assert (await ending(socket))[0] == 4401
        async with one.watching(authorization=f"Pulsar {CLIENT}") as socket:
            await frame(socket)
            one.cluster.may.discard(CLIENT)
            assert (await ending(socket))[0] == 4401
        assert one.dropped("unknown caller") == 2


@pytest.mark.usefixtures("judged_often")
async def test_R7_while_nobody_can_tell_sessions_go_on_and_are_judged_as_soon_as_somebody_can() -> None:
    async with gate() as one, one.watching() as socket:
        await frame(socket)
        one.server.status, asked = 503, sum(one.server.asked.values())
        async with asyncio.timeout(10):
            while sum(one.server.asked.values()) < asked + 3:
                await asyncio.sleep(0.01)
        one.commit(split(created(), 0))
        assert (await frame(socket))["layout"]["epoch"] == 1
        one.server.denied, one.server.status = {"lookup"}, None
        assert (await ending(socket))[0] == 4403


async def test_many_sessions_of_one_caller_cost_one_review(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "_LOOK_SECONDS", 0.02)
    monkeypatch.setattr(sessions_module, "_JUDGE_SECONDS", (0.1, 0.3))
    monkeypatch.setattr(sessions_module, "_ANSWER_SECONDS", 60.0)
    judged = []
    judge = sessions_module.Session.judge

    async def noted(self: sessions_module.Session, access: Any) -> bool:
        judged.append(self)
        return await judge(self, access)

    monkeypatch.setattr(sessions_module.Session, "judge", noted)
    async with gate() as one, one.watching(), one.watching(), one.watching():
        async with asyncio.timeout(10):
            while len(judged) < 6:
                await asyncio.sleep(0.01)
        assert one.server.asked == {"tokenreviews": 1, "subjectaccessreviews": 1}


async def test_there_are_only_so_many_sessions_of_a_replica_and_of_a_caller() -> None:
    async with gate(SessionLimits(most=3, most_per_caller=2)) as one:
        async with one.watching() as first, one.watching():
            status, reason = await one.refused()
            assert (status, "the caller has 2 sessions" in reason) == (429, True)
            # Another caller is not concerned, until there is no room at all.
            async with one.watching(authorization=f"Pulsar {CLIENT}"):
                one.server.users["another"] = "alice"
                status, reason = await one.refused(authorization=f"Pulsar {CLIENT}")
                assert (status, "this replica serves 3 sessions" in reason) == (429, True)
            # The same user with another token is the same caller.
            assert (await one.refused(authorization="Bearer another"))[0] == 429
            await first.close()
            async with asyncio.timeout(5):
                while one.sessions() > 1:
                    await asyncio.sleep(0.01)
            async with one.watching() as again:
                assert (await frame(again))["type"] == "layout"
        async with asyncio.timeout(5):
            while one.sessions():
                await asyncio.sleep(0.01)


async def _reading_nothing(one: Gate) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A client that has shaken hands and then lets everything lie, with little room for it."""
    host, _, port = one.replica.gateway.address.partition(":")
    raw = sockets.socket()
    raw.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4096)
    raw.setblocking(False)
    await asyncio.get_running_loop().sock_connect(raw, (host, int(port)))
    reader, writer = await asyncio.open_connection(sock=raw, limit=1024)
    writer.write(
        f"GET {WATCH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {GOOD}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
    )
    await reader.readuntil(b"\r\n\r\n")
    return reader, writer


async def test_a_reader_that_is_too_slow_is_dropped_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websockets_module, "CLOSE_SECONDS", 0.3)
    monkeypatch.setattr(sessions_module, "CLOSE_SECONDS", 0.3)
    async with gate() as one, one.watching(max_msg_size=0) as quick:
        reader, writer = await _reading_nothing(one)
        await frame(quick)
        many, sent = created(256), 0
        async with asyncio.timeout(120):
            while not one.dropped("slow"):
                sent += 1
                assert sent < 1000
                one.commit(splitting(many, 0, Step.ANNOUNCING, announcements=sent))
                assert (await frame(quick))["layout"]["step"] % 1000 == sent
            while one.sessions() > 1:
                await asyncio.sleep(0.01)
        assert one.dropped("slow") == 1
        writer.close()
        del reader


async def test_a_slow_reader_that_wakes_up_in_time_is_told_to_come_again() -> None:
    async with gate() as one, one.watching() as socket:
        await frame(socket)
        for number in range(sessions_module.WAITING_FRAMES + 1):
            one.commit(splitting(created(), 0, Step.ANNOUNCING, announcements=number))
        assert await ending(socket) == (WSCloseCode.TRY_AGAIN_LATER, "frames were not taken fast enough; come again")


async def test_clients_are_pinged_and_the_silent_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hazard A5-25697."""
    monkeypatch.setattr(sessions_module, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(sessions_module, "_PING_SECONDS", (0.1, 0.2))
    monkeypatch.setattr(sessions_module, "SILENT_SECONDS", 1.0)
    async with gate() as one, one.watching() as answering, one.watching(autoping=False) as silent:
        await frame(answering)
        began = time.monotonic()
        reading = asyncio.create_task(answering.receive())
        assert (await ending(silent))[0] == WSCloseCode.GOING_AWAY
        assert 0.9 < time.monotonic() - began < 5
        assert one.dropped("silent") == 1
        assert one.sessions() == 1
        assert not reading.done()
        one.commit(split(created(), 0))
        message = await asyncio.wait_for(reading, 5)
        assert json.loads(message.data)["layout"]["epoch"] == 1


async def test_a_loop_that_stood_still_takes_nobody_for_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    """As after a process was stopped: the pongs that came meanwhile are still to be read."""
    monkeypatch.setattr(sessions_module, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(sessions_module, "_PING_SECONDS", (0.1, 0.2))
    monkeypatch.setattr(sessions_module, "SILENT_SECONDS", 0.5)
    async with gate() as one, one.watching() as socket:
        await frame(socket)
        reading = asyncio.create_task(socket.receive())
        await asyncio.sleep(0.2)
        time.sleep(1.0)  # noqa: ASYNC251
        await asyncio.sleep(0.3)
        assert (one.dropped("silent"), one.sessions(), reading.done()) == (0, 1, False)
        reading.cancel()


async def test_what_clients_say_is_ignored_and_bounded() -> None:
    async with gate() as one, one.watching(autoping=False) as socket:
        await frame(socket)
        await socket.send_str("hello?")
        await socket.send_bytes(b"\x00")
        await socket.ping(b"there?")
        answer = await socket.receive(5)
        assert (answer.type, answer.data) == (WSMsgType.PONG, b"there?")
        await socket.send_str("x" * 5000)
        assert (await ending(socket))[0] == WSCloseCode.MESSAGE_TOO_BIG


async def test_a_replica_that_ends_sends_watchers_to_another_at_once() -> None:
    async with gate() as one, one.watching() as socket:
        await _reading_nothing(one)
        await frame(socket)
        began = time.monotonic()
        told, _ = await asyncio.gather(ending(socket), one.replica.gateway.__aexit__())
        assert told == (WSCloseCode.GOING_AWAY, "this replica ends; ask another one")
        assert time.monotonic() - began < 1.5
        assert one.sessions() == 0
