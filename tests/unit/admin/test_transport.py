"""What is repeated and what is not, what errors say, and what they never say."""

from __future__ import annotations

import asyncio
import inspect
import logging
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import unused_port
from hypothesis import given
from hypothesis import strategies as st

from dev.pki import Authority
from scalable_topics.admin import (
    AdminClient,
    AdminError,
    ConflictError,
    GatewayOptions,
    NotAllowedError,
    NotFoundError,
    UnavailableError,
    sync,
)
from scalable_topics.admin.retries import MAX_ATTEMPTS, may_repeat, pause_seconds
from scalable_topics.layout import LayoutArgumentError
from tests.unit.admin.calls import RECORD, TOPIC
from tests.unit.admin.gateway_in_test import TOKEN, Heard, Reply, gateway_in_test

COME_AGAIN = {"Retry-After": "0"}


def _refused(status: int, reason: str = "no", **headers: str) -> Reply:
    return Reply(status, {"reason": reason}, headers)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, AdminError),
        (401, NotAllowedError),
        (403, NotAllowedError),
        (404, NotFoundError),
        (405, NotAllowedError),
        (409, ConflictError),
        (412, ConflictError),
        (413, AdminError),
        (429, UnavailableError),
        (500, AdminError),
        (503, UnavailableError),
        (504, UnavailableError),
        (302, AdminError),
    ],
)
async def test_every_error_status_has_its_class_and_the_gateways_reason(status: int, kind: type[AdminError]) -> None:
    async with gateway_in_test() as gateway, AdminClient(gateway.options()) as client:
        gateway.answers(Reply(status, {"reason": "this and that", "manifest": "kind: ScalableTopic"}))
        with pytest.raises(AdminError) as caught:
            await client.create_topic(TOPIC)
        assert type(caught.value) is kind
        assert (caught.value.status, caught.value.reason) == (status, "this and that")
        assert caught.value.manifest == "kind: ScalableTopic"
        assert str(caught.value) == f"{status}: this and that"
        assert len(gateway.heard) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_reads_are_repeated_until_somebody_answers(status: int) -> None:
    async with gateway_in_test() as gateway, AdminClient(gateway.options()) as client:
        gateway.answers(_refused(status, **COME_AGAIN), _refused(status), Reply(200, RECORD))
        assert (await client.get_topic(TOPIC)).topic.local == "orders"
        assert len(gateway.heard) == 3


@pytest.mark.parametrize("status", [429, 503])
async def test_writes_are_repeated_where_nothing_was_begun(status: int) -> None:
    async with gateway_in_test() as gateway, AdminClient(gateway.options()) as client:
        gateway.answers(_refused(status, **COME_AGAIN), Reply(204))
        assert (await client.split_segment(TOPIC, 0)).done
        assert len(gateway.heard) == 2


async def test_what_an_earlier_attempt_has_deleted_is_gone() -> None:
    async with gateway_in_test() as gateway, AdminClient(gateway.options()) as client:
        gateway.answers(_refused(503, **COME_AGAIN), _refused(404))
        assert (await client.delete_subscription(TOPIC, "billing")).done
        with pytest.raises(NotFoundError):
            await client.delete_subscription(TOPIC, "billing")


async def test_nothing_is_repeated_for_ever() -> None:
    async with gateway_in_test() as gateway, AdminClient(gateway.options()) as client:
        gateway.answers(_refused(503, "no leader is known", **COME_AGAIN))
        with pytest.raises(UnavailableError, match="503: no leader is known"):
            await client.get_topic(TOPIC)
        assert len(gateway.heard) == MAX_ATTEMPTS


async def test_a_call_ends_within_its_time() -> None:
    async with gateway_in_test() as gateway, AdminClient(gateway.options(), timeout_seconds=2.0) as client:
        gateway.answers(_refused(503, **{"Retry-After": "5"}))
        began = time.monotonic()
        with pytest.raises(UnavailableError):
            await client.get_topic(TOPIC)
        assert time.monotonic() - began < 5
        assert len(gateway.heard) == 1


@given(st.integers(100, 599), st.sampled_from([None, "0", "3"]))
def test_a_write_is_repeated_only_where_the_gateway_says_when(status: int, retry_after: str | None) -> None:
    again = may_repeat(status, retry_after, reads=False)
    assert again == (status in (429, 503) and retry_after is not None)
    assert may_repeat(status, retry_after, reads=True) or not again


@given(st.integers(1, 60), st.sampled_from([None, "0", "3", "9999999999", "Wed, 21 Oct 2026 07:28:00 GMT", "-1"]))
def test_pauses_are_bounded_and_keep_to_what_the_gateway_says(attempt: int, retry_after: str | None) -> None:
    pause = pause_seconds(attempt, retry_after)
    assert (3 if retry_after == "3" else 0) <= pause <= 31


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.read()
    finally:
        writer.close()


async def _hangs_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.close()


@pytest.mark.parametrize(
    ("behaviour", "what"), [(_silent, "no answer in time"), (_hangs_up, "ServerDisconnectedError")]
)
async def test_a_write_without_an_answer_is_not_repeated_and_may_have_been_done(
    behaviour: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any], what: str
) -> None:
    connections = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        await behaviour(reader, writer)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        options = GatewayOptions(f"http://127.0.0.1:{port}", token=TOKEN)
        async with AdminClient(options, timeout_seconds=1.5) as client:
            with pytest.raises(UnavailableError, match=f"{what}; whether it was done is not known") as caught:
                await client.skip_all(TOPIC, "billing")
            assert caught.value.status is None
        assert connections == 1


async def test_nobody_there_is_tried_again_even_for_a_write() -> None:
    port = unused_port()
    async with AdminClient(GatewayOptions(f"http://127.0.0.1:{port}", token=TOKEN)) as client:
        with pytest.raises(UnavailableError, match=f"the gateway at http://127.0.0.1:{port} does not answer") as caught:
            await client.skip_all(TOPIC, "billing")
        assert "not known" not in caught.value.reason
        writing = asyncio.create_task(client.skip_all(TOPIC, "billing"))
        async with gateway_in_test(port) as gateway:
            assert (await writing).done
            assert len(gateway.heard) == 1


async def test_a_token_file_is_read_again_and_the_scheme_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first-t0ken\n")
    async with gateway_in_test() as gateway:
        options = GatewayOptions(gateway.url, token_file=file, scheme="Pulsar")
        async with AdminClient(options) as client:
            await client.remove_auto_scale_policy(TOPIC)
            file.write_text("second-t0ken\n")
            await client.remove_auto_scale_policy(TOPIC)
            file.unlink()
            with pytest.raises(AdminError, match="cannot read the token file"):
                await client.remove_auto_scale_policy(TOPIC)
        assert [one.authorization for one in gateway.heard] == ["Pulsar first-t0ken", "Pulsar second-t0ken"]


async def test_the_gateways_certificate_is_checked(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    authority.create()
    pair = authority.server("admin-client", "IP:127.0.0.1")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    async with gateway_in_test(tls=context) as gateway:
        async with AdminClient(gateway.options(ca_file=authority.pair.certificate)) as client:
            await client.remove_auto_scale_policy(TOPIC)
        async with AdminClient(gateway.options()) as client:
            with pytest.raises(UnavailableError, match="certificate is not trusted"):
                await client.remove_auto_scale_policy(TOPIC)
        async with AdminClient(gateway.options(ca_file="nowhere.pem")) as client:
            with pytest.raises(AdminError, match="cannot read the CA bundle nowhere"):
                await client.remove_auto_scale_policy(TOPIC)
    assert len(gateway.heard) == 1


async def test_a_token_is_nowhere_but_in_its_header(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with gateway_in_test() as gateway:
        options = gateway.options()
        client = AdminClient(options)
        shown = [repr(options), repr(client), repr(vars(client))]
        for reply in (_refused(400, f"you said {TOKEN}"), Reply(502, text=f"<html>{TOKEN}"), Reply(200, text=TOKEN)):
            gateway.answers(reply)
            for call in (client.create_topic(TOPIC), client.explain(TOPIC)):
                with pytest.raises(AdminError) as caught:
                    await call
                shown += [str(caught.value), repr(caught.value), repr(vars(caught.value))]
        await client.close()
    assert TOKEN not in " ".join(shown) + caplog.text


async def test_no_token_is_shown_in_part_where_what_is_said_is_cut_off() -> None:
    async with gateway_in_test() as gateway, AdminClient(gateway.options()) as client:
        for before in range(3995, 4000):
            gateway.answers(_refused(400, "x" * before + TOKEN))
            with pytest.raises(AdminError) as caught:
                await client.get_topic(TOPIC)
            assert set(caught.value.reason) == {"x", "*"}
            assert len(caught.value.reason) <= 4000


@pytest.mark.parametrize("answer", [{}, [], {"segments": {}}, {**RECORD, "epoch": "x"}, {**RECORD, "properties": 3}])
async def test_an_answer_of_another_release_is_an_error_that_names_the_field(answer: Any) -> None:
    async with gateway_in_test() as gateway, AdminClient(gateway.options()) as client:
        gateway.answers(Reply(200, answer))
        with pytest.raises(AdminError, match="the gateway's answer cannot be read"):
            await client.get_topic(TOPIC)


@pytest.mark.parametrize("topic", ["", "a/b", "non-persistent://a/b/c", "topic://a/b/..", "topic://./b/c"])
async def test_names_that_cannot_be_are_not_sent(topic: str) -> None:
    async with gateway_in_test() as gateway, AdminClient(gateway.options()) as client:
        with pytest.raises(LayoutArgumentError):
            await client.get_topic(topic)
        for namespace in ("", "acme", "acme/", "a/b/c", "../b"):
            with pytest.raises(LayoutArgumentError):
                await client.list_topics(namespace)
        with pytest.raises(LayoutArgumentError):
            await client.get_subscription(TOPIC, "..")
        assert gateway.heard == []


async def test_a_closed_client_says_so() -> None:
    async with gateway_in_test() as gateway:
        client = AdminClient(gateway.options())
        await client.close()
        with pytest.raises(AdminError, match="closed"):
            await client.get_topic(TOPIC)
        blocking = await asyncio.to_thread(sync.AdminClient, gateway.options())
        await asyncio.to_thread(blocking.close)
        await asyncio.to_thread(blocking.close)
        with pytest.raises(AdminError, match="closed"):
            await asyncio.to_thread(blocking.get_topic, TOPIC)


async def test_closing_the_blocking_client_ends_what_is_under_way() -> None:
    asked = asyncio.Event()

    async def hang(heard: Heard) -> None:
        asked.set()
        await asyncio.Event().wait()

    async with gateway_in_test() as gateway:
        gateway.before = hang
        client = await asyncio.to_thread(sync.AdminClient, gateway.options())
        reading = asyncio.create_task(asyncio.to_thread(client.get_topic, TOPIC))
        await asyncio.wait_for(asked.wait(), 10)
        await asyncio.to_thread(client.close)
        with pytest.raises(AdminError, match="closed meanwhile"):
            await reading


def test_a_timeout_is_above_zero() -> None:
    options = GatewayOptions("http://127.0.0.1:1", token=TOKEN)
    for kind in (AdminClient, sync.AdminClient):
        with pytest.raises(ValueError, match="timeout_seconds is 0"):
            kind(options, timeout_seconds=0)
    assert inspect.signature(AdminClient) == inspect.signature(sync.AdminClient)
