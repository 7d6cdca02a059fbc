"""What brokers are asked to compress: what grows with the fleet, and nothing else."""

from __future__ import annotations

import inspect

import pytest

from scalable_topics_operator.backends.admin import PulsarAdmin

from .scripted_server import connect, ok, serve

TOPIC = "persistent://t/n/x"


@pytest.mark.parametrize(
    ("method", "arguments", "answer", "encoding"),
    [
        ("namespaces.topics", ["t/n"], [TOPIC], "gzip"),
        ("namespaces.topic_grants", ["t/n"], {}, "gzip"),
        ("namespaces.policies", ["t/n"], {}, "gzip"),
        ("cluster.topic_loads", [], {}, "gzip"),
        ("namespaces.max_topics", ["t/n"], 5, "identity"),
        ("topics.stats", [TOPIC], {}, "identity"),
        ("topics.properties", [TOPIC], {}, "identity"),
    ],
)
async def test_brokers_compress_what_grows_with_the_fleet(
    method: str, arguments: list[str], answer: object, encoding: str
) -> None:
    part, name = method.split(".")
    async with serve(ok(answer)) as server, PulsarAdmin(connect(server)) as admin:
        asked = getattr(getattr(admin, part), name)(*arguments)
        await (asked if inspect.isawaitable(asked) else anext(asked, None))
        assert [seen.accept_encoding for seen in server.seen] == [encoding]
