"""Texts that are kept as they came."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.backends.admin import PulsarAdmin, cluster_api
from scalable_topics_operator.backends.admin.packed_text import PackedText
from scalable_topics_operator.operations.errors import BackendRefused, BackendUnavailable

from .scripted_server import Reply, connect, ok, serve

MANY = 10**9


@given(st.binary(max_size=3000) | st.text(max_size=1000).map(str.encode), st.sampled_from(["", "gzip", "GZIP "]))
def test_its_parts_are_the_text(content: bytes, encoding: str) -> None:
    sent = gzip.compress(content) if encoding else content
    text = content.decode("utf-8", "replace")
    packed = PackedText(sent, encoding, MANY)
    assert "".join(packed.parts()) == text
    assert "".join(packed.parts()) == text, "as often as it is read"
    assert packed.head(10) == content[:10].decode("utf-8", "replace")


def test_characters_may_lie_across_parts() -> None:
    text = "x" + "ß" * 400_000
    for sent, encoding in ((text.encode(), ""), (gzip.compress(text.encode()), "gzip")):
        parts = list(PackedText(sent, encoding, MANY).parts())
        assert len(parts) > 2
        assert "".join(parts) == text


@given(st.binary(min_size=1, max_size=3000), st.data())
def test_what_was_cut_off_is_not_taken_for_the_whole(content: bytes, data: st.DataObject) -> None:
    sent = gzip.compress(content)
    cut = PackedText(sent[: data.draw(st.integers(0, len(sent) - 1))], "gzip", MANY)
    with pytest.raises(ValueError, match="it was cut off"):
        list(cut.parts())
    assert content.decode("utf-8", "replace").startswith(cut.head(10**6).rstrip("�"))


@pytest.mark.parametrize(
    ("sent", "encoding", "words"),
    [
        (b"{}", "gzip", "not packed as it is said to be"),
        (gzip.compress(b"{}") + b"x", "gzip", "more behind its end"),
        (b"{}", "br", "an encoding that nobody asked for"),
        (gzip.compress(b"x" * 5000), "gzip", "larger than 4000 bytes"),
        (b"x" * 5000, "", "larger than 4000 bytes"),
    ],
    ids=["no gzip", "more behind", "another encoding", "larger packed", "larger"],
)
def test_what_is_wrong_is_said(sent: bytes, encoding: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        list(PackedText(sent, encoding, 4000).parts())


def test_a_part_is_in_memory_at_a_time() -> None:
    packed = PackedText(gzip.compress(b"x" * 50_000_000), "gzip", MANY)
    tracemalloc.start()
    try:
        assert sum(len(part) for part in packed.parts()) == 50_000_000
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


LOADS = {"t/n": {"0x0_0x1": {"persistent": {"persistent://t/n/a": {"msgRateIn": 1.5}, "persistent://t/n/ß": {}}}}}


def _packed(status: int, body: bytes) -> Reply:
    async def reply(_: web.Request) -> web.Response:
        return web.Response(
            status=status,
            body=gzip.compress(body),
            headers={"Content-Encoding": "gzip", "Content-Type": "application/json"},
        )

    return reply


async def _loads(admin: PulsarAdmin) -> list[tuple[str, object]]:
    return [found async for found in admin.cluster.topic_loads()]


async def test_statistics_are_read_packed_or_not() -> None:
    body = json.dumps(LOADS, ensure_ascii=False).encode()
    for reply in (_packed(200, body), ok(LOADS)):
        async with serve(reply) as server, PulsarAdmin(connect(server)) as admin:
            assert await _loads(admin) == [("persistent://t/n/a", {"msgRateIn": 1.5}), ("persistent://t/n/ß", {})]


async def test_a_packed_reason_is_read() -> None:
    async with serve(_packed(400, b'{"reason": "the moon is full"}')) as server, PulsarAdmin(connect(server)) as admin:
        with pytest.raises(BackendRefused, match="the moon is full"):
            await _loads(admin)


async def test_what_unpacks_without_end_is_given_up() -> None:
    """Hazard of packed answers: a few kilobytes may be gigabytes."""
    one = json.dumps("persistent://t/n/a") + ": {}"
    many = f'{{"t/n": {{"b": {{"persistent": {{{", ".join([one] * 80_000)}}}}}}}}}'
    async with serve(_packed(200, many.encode())) as server:
        async with PulsarAdmin(connect(server, max_body_bytes=100_000)) as admin:
            with pytest.raises(BackendUnavailable, match="larger than 1600000 bytes"):
                await _loads(admin)
        async with PulsarAdmin(connect(server)) as admin:
            assert len(await _loads(admin)) == 80_000


@pytest.mark.parametrize("begin", [b'{"a": "', b'{"a": ?', b'{"a": {', b'{"t": {"b": {"persistent": {"x": ['])
async def test_what_has_no_end_of_a_topic_is_given_up_before_it_fills_memory(
    begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_api, "_MOST_CHARACTERS_OF_A_TOPIC", 300_000)
    async with (
        serve(_packed(200, begin + b'"b": {}, ' * 200_000)) as server,
        PulsarAdmin(connect(server)) as admin,
    ):
        tracemalloc.start()
        try:
            with pytest.raises(BackendUnavailable, match="not as brokers give it"):
                await _loads(admin)
            assert tracemalloc.get_traced_memory()[1] < 4_000_000
        finally:
            tracemalloc.stop()
