"""How a test finds out what has become of the V5 client's process, tried on processes that follow a script."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from dev.v5.process import V5Error
from tests.support.consumption import Kind
from tests.support.v5_client import V5Client

Start = Callable[[str], Awaitable[tuple[V5Client, Process]]]
PRELUDE = """
import json, sys
def tell(**report):
    print(json.dumps(report), flush=True)
def call():
    return json.loads(sys.stdin.readline())
def sent(number):
    tell(of="p", **{"is": "sent", "message": ["key", number, 0, 10, 5]})
def done():
    tell(of=call()["id"], **{"is": "done"})
def failed(of):
    tell(of=of, **{"is": "failed", "error": "a.B", "message": "not so"})
def ended(count):
    tell(of="p", **{"is": "ended", "count": count, "p50Ns": 5, "p99Ns": 5, "longestNs": 5})
"""


@pytest.fixture
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """A function that starts a process with a script, and a client that steers it."""
    async with AsyncExitStack() as stack:

        async def started(script: str) -> tuple[V5Client, Process]:
            program = (sys.executable, "-c", PRELUDE + script)
            process = await asyncio.create_subprocess_exec(*program, stdin=PIPE, stdout=PIPE)
            client = V5Client(process, tmp_path / "v5-client.log")
            stack.push_async_callback(client.end)
            return client, process

        yield started


async def test_messages_told_before_the_producer_is_said_to_have_begun_count(start: Start) -> None:
    client, process = await start("sent(0); done(); sent(1); sent(2); ended(3); call()")
    producer = await client.producer("topic://t/n/x", "p", ["key"], total=3)
    assert (await producer.ended()).count == 3
    assert [one.message.counter for one in producer.sent] == [0, 1, 2]
    await client.end()
    assert process.returncode is not None


async def test_wait_for_messages_ends_with_the_producer(start: Start) -> None:
    client, _ = await start("done(); sent(0); ended(1); call()")
    producer = await client.producer("topic://t/n/x", "p", ["key"], total=1)
    with pytest.raises(AssertionError, match=r"p has (ended with|sent) 1 of"):
        await producer.until(2)


async def test_failure_of_a_send_ends_every_wait(start: Start) -> None:
    client, _ = await start("done(); failed('p'); ended(0); call()")
    producer = await client.producer("topic://t/n/x", "p", ["key"], total=1)
    with pytest.raises(V5Error, match=r"a\.B: not so"):
        await producer.until(1)
    with pytest.raises(V5Error, match=r"a\.B: not so"):
        await producer.ended()


async def test_failure_of_a_call_and_of_a_consumer_is_raised(start: Start) -> None:
    client, _ = await start("failed(call()['id']); done(); failed('c'); call()")
    with pytest.raises(V5Error, match=r"a\.B: not so"):
        await client.produce("topic://t/n/x", "list", ["key"])
    consumer = await client.consumer(Kind.QUEUE, "topic://t/n/x", "s", "c")
    with pytest.raises(V5Error, match=r"a\.B: not so"):
        await consumer.until(1)


async def test_wait_that_takes_too_long_says_what_there_is(start: Start) -> None:
    client, _ = await start("done(); sent(0); call()")
    producer = await client.producer("topic://t/n/x", "p", ["key"], total=5)
    with pytest.raises(AssertionError, match=r"p has sent \d of \d after 0 s; its log is .*v5-client.log"):
        await producer.until(5, within_seconds=0.3)


async def test_death_of_the_process_ends_every_wait_and_call(start: Start) -> None:
    client, process = await start("done(); call(); call()")
    producer = await client.producer("topic://t/n/x", "p", ["key"], total=5)
    waiting = asyncio.create_task(producer.until(1))
    calling = asyncio.create_task(client.produce("topic://t/n/x", "list", ["key"]))
    await asyncio.sleep(0)
    process.kill()
    for task in (waiting, calling):
        with pytest.raises(RuntimeError, match="has ended; its log is"):
            await task
    with pytest.raises(RuntimeError, match="has ended; its log is"):
        await client.call("connect")
