"""Hazards C22, C53: slow, failing and throttling brokers."""

import asyncio

import pytest
from aiohttp import web

from scalable_topics_operator.backends.admin import RetryPolicy
from scalable_topics_operator.backends.admin.call import Call
from scalable_topics_operator.backends.admin.reasons import About
from scalable_topics_operator.operations.errors import BackendRefused, BackendUnavailable, TopicMissing

from .scripted_server import TOKEN, FakeClock, ScriptedServer, connect, ok, reason, serve

READ = Call("get-stats", "GET", "/admin/v2/persistent/t/n/x/stats", "persistent://t/n/x", About.TOPIC)
ONCE = Call("create-subscription", "PUT", "/x", "persistent://t/n/x", About.TOPIC, body="earliest", idempotent=False)


async def _hang(_: web.Request) -> web.Response:
    await asyncio.sleep(3600)
    raise AssertionError("nobody waits that long")


async def _hang_up(request: web.Request) -> web.Response:
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def test_c22_a_hanging_broker_costs_one_time_out_and_the_call_is_repeated() -> None:
    clock = FakeClock()
    async with serve(_hang, ok({"a": 1})) as server, connect(server, clock=clock, request_timeout_seconds=1.0) as http:
        assert (await http.send(READ)).json("x") == {"a": 1}
        assert len(clock.slept) == 1


async def test_c22_a_broker_that_hangs_for_good_is_given_up_naming_the_object() -> None:
    async with serve(_hang) as server, connect(server, request_timeout_seconds=0.5) as http:
        with pytest.raises(
            BackendUnavailable, match=r"get-stats persistent://t/n/x: no answer from http://.* in 0.5 s"
        ):
            await http.send(READ)
        assert len(server.seen) == 4


@pytest.mark.parametrize(
    "failure",
    [
        _hang_up,
        reason(429, "Too many requests"),
        reason(502, "bad gateway"),
        reason(503, "not yet"),
        reason(500, "Namespace bundle t/n/0x0_0x4 is being unloaded"),
        reason(412, "Can't find owner for topic persistent://t/n/x"),
    ],
)
async def test_what_passes_is_repeated(failure: web.Response) -> None:
    async with serve(failure, failure, ok({"a": 1})) as server, connect(server) as http:
        assert (await http.send(READ)).json("x") == {"a": 1}
        assert len(server.seen) == 3


async def test_what_does_not_pass_is_not_repeated() -> None:
    async with serve(reason(404, "Topic persistent://t/n/x not found")) as server, connect(server) as http:
        with pytest.raises(TopicMissing):
            await http.send(READ)
        assert len(server.seen) == 1


async def test_an_unexplained_500_is_left_to_the_caller_to_repeat() -> None:
    body = "\n --- An unexpected error occurred in the server ---\n\nMessage: boom\n\nStacktrace:\n\nx.Y: boom\n\tat z"
    async with serve(web.Response(status=500, text=body)) as server, connect(server) as http:
        with pytest.raises(BackendUnavailable, match=r"get-stats persistent://t/n/x: boom \(HTTP 500\)$"):
            await http.send(READ)
        assert len(server.seen) == 1


async def test_c53_the_time_a_throttling_broker_names_is_kept() -> None:
    clock = FakeClock()
    replies = (reason(429, "slow down", **{"Retry-After": "3"}), ok({}))
    async with serve(*replies) as server, connect(server, clock=clock) as http:
        await http.send(READ)
        (waited,) = clock.slept
        assert 3.0 <= waited <= 3.1


async def test_c53_a_broker_that_wants_more_time_than_there_is_ends_the_call_at_once() -> None:
    clock = FakeClock()
    reply = reason(429, "slow down", **{"Retry-After": "600"})
    async with serve(reply) as server, connect(server, clock=clock) as http:
        with pytest.raises(BackendUnavailable, match="slow down"):
            await http.send(READ)
        assert clock.slept == []


async def test_repeats_are_bounded_in_number_and_spread_by_jitter() -> None:
    clock = FakeClock()
    policy = RetryPolicy(attempts=6, base_seconds=1.0, cap_seconds=4.0, total_seconds=1000.0)
    async with serve(reason(503, "no")) as server, connect(server, clock=clock, retry=policy) as http:
        for _ in range(2):
            with pytest.raises(BackendUnavailable):
                await http.send(READ)
    assert len(server.seen) == 12
    bounds = [1, 2, 4, 4, 4] * 2
    assert all(0 <= slept <= bound for slept, bound in zip(clock.slept, bounds, strict=True))
    assert len({round(slept, 6) for slept in clock.slept}) > 5


@pytest.mark.parametrize("failure", [_hang_up, _hang])
async def test_a_call_with_an_unknown_outcome_is_not_repeated_unless_that_is_harmless(failure: web.Response) -> None:
    async with serve(failure, ok()) as server, connect(server, request_timeout_seconds=1.0) as http:
        with pytest.raises(BackendUnavailable):
            await http.send(ONCE)
        assert len(server.seen) == 1


async def test_a_call_that_certainly_was_not_sent_is_always_repeated() -> None:
    clock = FakeClock()
    async with serve(ok()) as server:
        gone = ScriptedServer(url=server.url)
    async with connect(gone, clock=clock) as http:
        with pytest.raises(BackendUnavailable, match=r"cannot connect to http://127\.0\.0\.1"):
            await http.send(ONCE)
    assert len(clock.slept) == 3


async def test_no_more_requests_are_open_than_allowed() -> None:
    open_now = 0
    most = 0

    async def count(_: web.Request) -> web.Response:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await asyncio.sleep(0.02)
        open_now -= 1
        return web.json_response({})

    async with serve(count) as server, connect(server, max_concurrent_requests=3) as http:
        await asyncio.gather(*(http.send(READ) for _ in range(15)))
    assert most == 3


async def test_c22_a_waiting_repeat_holds_no_place_others_need() -> None:
    released = asyncio.Event()
    waiting = asyncio.Event()

    class BlockedClock(FakeClock):
        async def sleep(self, seconds: float) -> None:
            waiting.set()
            await released.wait()

    replies = (reason(503, "no"), ok({}))
    async with serve(*replies) as server, connect(server, clock=BlockedClock(), max_concurrent_requests=1) as http:
        first = asyncio.create_task(http.send(READ))
        await waiting.wait()
        await asyncio.wait_for(http.send(READ), timeout=5)
        released.set()
        await first


async def test_an_answer_without_bound_is_cut_off() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65536)
            await asyncio.sleep(0)

    async with serve(endless) as server, connect(server, max_body_bytes=300_000) as http:
        with pytest.raises(BackendRefused, match="larger than 300000 bytes"):
            await http.send(READ)


async def test_an_error_page_without_bound_is_cut_off() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=400)
        await response.prepare(request)
        for _ in range(1000):
            await response.write(b"x" * 65536)
        return response

    async with serve(endless) as server, connect(server) as http:
        with pytest.raises(BackendRefused, match="x…"):
            await http.send(READ)


async def test_an_answer_that_is_not_json_is_told() -> None:
    async with serve(web.Response(text="<html>hello")) as server, connect(server) as http:
        with pytest.raises(BackendUnavailable, match="get-stats: the answer is not JSON"):
            (await http.send(READ)).json("get-stats")


async def test_the_token_is_not_repeated_when_a_server_echoes_it() -> None:
    async with serve(reason(400, f"do not like Bearer {TOKEN}")) as server, connect(server) as http:
        with pytest.raises(BackendRefused, match=r"do not like Bearer \[redacted\]") as refused:
            await http.send(READ)
        assert TOKEN not in str(refused.value)


async def test_closing_ends_calls_in_flight_and_refuses_later_ones() -> None:
    arrived = asyncio.Event()

    async def hang(_: web.Request) -> web.Response:
        arrived.set()
        await asyncio.sleep(3600)
        raise AssertionError("nobody waits that long")

    async with serve(hang) as server:
        http = connect(server)
        call = asyncio.create_task(http.send(READ))
        await arrived.wait()
        await http.close()
        with pytest.raises(BackendUnavailable, match="was closed"):
            await asyncio.wait_for(call, 5)
        with pytest.raises(BackendUnavailable, match="was closed"):
            await http.send(READ)
        assert len(server.seen) == 1


async def test_calls_are_observed_once_with_their_outcome() -> None:
    observed: list[tuple[str, str, float]] = []
    replies = (reason(503, "no"), ok({}), reason(404, "Topic x not found"), reason(409, "This topic already exists"))
    async with serve(*replies) as server, connect(server, observed=observed) as http:
        await http.send(READ)
        with pytest.raises(TopicMissing):
            await http.send(READ)
        await http.send(Call("create-topic", "PUT", "/x", "x", About.TOPIC, allow=frozenset({409})))
    assert [(operation, outcome) for operation, outcome, _ in observed] == [
        ("get-stats", "ok"),
        ("get-stats", "TopicMissing"),
        ("create-topic", "http_409"),
    ]
    assert observed[0][2] > 0


async def test_a_request_without_body_names_no_content_type() -> None:
    """Brokers answer 415 to `PUT /namespaces/...` with the type that HTTP clients like to add (measured)."""
    async with serve(ok()) as server, connect(server) as http:
        await http.send(Call("unload-topic", "PUT", "/x", "x", About.TOPIC))
        assert server.seen[0].content_type is None
        assert server.seen[0].body == ""
