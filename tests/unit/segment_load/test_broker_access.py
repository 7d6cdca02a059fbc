"""What calls to brokers make of servers that answer strangely, or not at all; no token goes where it should not."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from segment_load.broker_access import BrokerAccess, BrokerSilent
from segment_load.broker_source import BrokerPartition, plan, read
from segment_load.change_filter import RATES

_SECRET = "not-to-be-shown"
Answer = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Answers as the test says."""

    server: Server

    def do_GET(self) -> None:
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        self.server.answer(self)

    do_POST = do_PUT = do_GET

    def log_message(self, format: str, *arguments: object) -> None:
        pass

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle()

    def say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.seen: list[tuple[str, str | None]] = []

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.server_address[1]}"


@dataclass
class Servers:
    made: list[Server] = field(default_factory=list)

    def __call__(self, answer: Answer) -> Server:
        server = Server(answer)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.made.append(server)
        return server


@pytest.fixture
def serve() -> Iterator[Servers]:
    servers = Servers()
    yield servers
    for server in servers.made:
        server.shutdown()
        server.server_close()


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    file = tmp_path / "token"
    file.write_text(_SECRET + "\n")
    return str(file)


@contextmanager
def _silent(match: str) -> Iterator[None]:
    with pytest.raises(BrokerSilent, match=match) as caught:
        yield
    assert _SECRET not in str(caught.value)


def _redirecting(location: str) -> Answer:
    return lambda handler: handler.say(307, Location=location)


def _trickle(handler: Handler) -> None:
    handler.send_response(200)
    handler.end_headers()
    for _ in range(100):
        handler.wfile.write(b" ")
        time.sleep(0.05)


def _begin(handler: Handler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b"{")
    handler.wfile.flush()


def _stall(handler: Handler) -> None:
    _begin(handler)
    time.sleep(3.0)


@pytest.mark.parametrize(
    ("answer", "match"),
    [
        (_stall, "no answer in time"),
        (_begin, "its answer ended too early"),
        (lambda handler: handler.say(500, b"broken"), "it answered 500"),
        (lambda handler: handler.say(401, _SECRET.encode()), "it answered 401"),
        (lambda handler: handler.say(200, b"<html>"), "is no JSON"),
        (lambda handler: handler.say(200, b"[]"), "are no JSON object"),
        (_trickle, "no whole answer within"),
        (lambda handler: time.sleep(3.0), "no answer in time"),
        (_redirecting("http://example.com/"), "it answered 307"),
    ],
)
def test_a_broker_without_a_usable_answer_is_silent_for_a_reason(
    serve: Servers, token_file: str, answer: Answer, match: str
) -> None:
    server = serve(answer)
    access = BrokerAccess(f"http://{server.place}", token_file, timeout_seconds=1.5)
    with _silent(match):
        access.topic_loads(server.place)
    assert server.seen == [("/admin/v2/broker-stats/topics", f"Bearer {_SECRET}")], "who hangs has had its time"


def test_what_passes_is_asked_for_once_more(serve: Servers) -> None:
    server = serve(lambda handler: handler.say(503 if len(handler.server.seen) == 1 else 200, b"[]"))
    assert BrokerAccess(f"http://{server.place}").brokers() == ()
    assert len(server.seen) == 2


def test_nobody_there_is_tried_twice_and_a_token_file_is_read_each_time(serve: Servers, token_file: str) -> None:
    with _silent("no connection"):
        BrokerAccess("http://127.0.0.1:1", token_file).brokers()
    server = serve(lambda handler: handler.say(200, b'["b:1","a:1"]'))
    access = BrokerAccess(f"http://{server.place}", token_file)
    assert access.brokers() == ("a:1", "b:1")
    Path(token_file).write_text("another")
    access.brokers()
    assert [token for _, token in server.seen] == [f"Bearer {_SECRET}", "Bearer another"]
    Path(token_file).unlink()
    with _silent(r"token does not exist"):
        access.brokers()


def test_a_change_follows_redirects_to_listed_brokers_only(serve: Servers, token_file: str) -> None:
    owner = serve(lambda handler: handler.say(204))
    stranger = serve(lambda handler: handler.say(204))
    goals = {"/ours": f"http://{owner.place}/ours", "/theirs": f"http://{stranger.place}/theirs"}

    def answer(handler: Handler) -> None:
        if handler.path in goals:
            handler.say(307, Location=goals[handler.path])
        else:
            handler.say(200, f'["{owner.place}"]'.encode())

    access = BrokerAccess(f"http://{serve(answer).place}", token_file)
    access.send("PUT", "/ours")
    assert owner.seen == [("/ours", f"Bearer {_SECRET}")]
    with _silent("is no listed broker"):
        access.send("PUT", "/theirs")
    assert stranger.seen == []


def test_what_cannot_be_listed_or_asked_is_a_row_and_never_no_load(serve: Servers) -> None:
    access = BrokerAccess("http://127.0.0.1:1")
    (blind,) = plan(access, 1_000)
    assert isinstance(blind, BrokerPartition)
    (row,) = _rows(access, blind)
    assert (row["broker"], row["segment"]) == ("", None)
    assert "no connection" in row["silence"]
    (row,) = _rows(access, BrokerPartition("127.0.0.1:1", 1_000))
    assert (row["at"].timestamp(), row["broker"]) == (1.0, "127.0.0.1:1")
    assert "no connection" in row["silence"]


def test_what_a_broker_says_is_a_row_a_topic_after_its_heartbeat(serve: Servers) -> None:
    rates = {"msgRateIn": 1.5, "msgThroughputIn": 15, "msgRateOut": 2, "msgThroughputOut": 20}
    topics = {
        "persistent://t/n/a": {**rates, "msgInCount": 7, "subscriptions": {"s": {"msgBacklog": 3}, "u": {}}},
        "persistent://t/n/b": {**rates},
        "persistent://t/n/no-rates": {"msgInCount": 1},
    }
    body = json.dumps({"t/n": {"0x00_0xff": {"persistent": topics}}}).encode()
    place = serve(lambda handler: handler.say(200, body)).place
    heartbeat, one, other = _rows(BrokerAccess(f"http://{place}"), BrokerPartition(place, 1_000))
    assert (heartbeat["broker"], heartbeat["silence"], heartbeat["segment"]) == (place, None, None)
    assert [one[rate] for rate in RATES] == [1.5, 15.0, 2.0, 20.0]
    assert (one["segment"], one["messages_in"], dict(one["backlog"])) == ("persistent://t/n/a", 7, {"s": 3, "u": 0})
    assert (other["segment"], other["messages_in"], dict(other["backlog"])) == ("persistent://t/n/b", 0, {})


def _rows(access: BrokerAccess, partition: BrokerPartition) -> list[dict[str, Any]]:
    return [row for batch in read(access, partition) for row in batch.to_pylist()]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({}, "option adminUrl is missing"),
        ({"adminUrl": "broker:8080"}, "adminUrl must be http"),
        ({"adminUrl": "http://user:word@broker:8080"}, "without credentials"),
        ({"adminUrl": "http://:word@broker:8080"}, "without credentials"),
        ({"adminUrl": "http://broker:8080", "timeoutSeconds": "soon"}, "timeoutSeconds is no number: 'soon'"),
        ({"adminUrl": "http://broker:8080", "timeoutSeconds": "0"}, "greater than 0"),
    ],
)
def test_options_that_cannot_be_used_are_refused(options: dict[str, str], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        BrokerAccess.from_options(options)


def test_options_are_read_whatever_their_case() -> None:
    access = BrokerAccess.from_options({"ADMINURL": "http://b:1", "tokenfile": "/t", "timeoutSECONDS": "3"})
    assert access == BrokerAccess("http://b:1", "/t", timeout_seconds=3.0)
