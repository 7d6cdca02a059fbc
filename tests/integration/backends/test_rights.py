"""What a connection can do with the rights it has, and what it says about those it lacks."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dev.access import PulsarAccess
from scalable_topics.layout import TopicName
from scalable_topics_operator.backends.classic import ClassicBackend
from scalable_topics_operator.operations.errors import AccessDenied
from scalable_topics_operator.operations.protocols import Inheritance, SchemaVersion, SegmentSetup
from scalable_topics_operator.operations.segment_policies import SegmentPolicies

from .conftest import CLAIM, record, segment_name
from .plain_http import PlainHttp, admin_for, topic_at

SETUP = SegmentSetup(
    frozenset({"billing"}),
    Inheritance({"writer": frozenset({"produce"})}, (SchemaVersion("STRING", ""),)),
    SegmentPolicies(message_ttl_seconds=60),
)


async def test_a_superuser_lacks_nothing(pulsar: PulsarAccess) -> None:
    async with admin_for(pulsar, pulsar.superuser_token) as admin:
        probe = await admin.probe()
    assert probe.superuser
    assert probe.missing_rights == ()
    assert probe.version[0].isdigit()
    assert set(probe.brokers) == {url.removeprefix("http://") for url in pulsar.broker_admin_urls}
    assert probe.cluster_name in probe.cluster_id
    assert probe.scalable_api is probe.version.startswith("5.")


@pytest.mark.parametrize("role", ["namespace_admin_token", "client_token"])
async def test_a_probe_works_without_superuser_and_tells_what_is_missing(pulsar: PulsarAccess, role: str) -> None:
    async with admin_for(pulsar, getattr(pulsar, role)) as admin:
        probe = await admin.probe()
    assert not probe.superuser
    assert probe.brokers == ()
    assert any("trustedBrokers" in missing for missing in probe.missing_rights)
    assert probe.version[0].isdigit()


async def test_unknown_credentials_are_denied_without_showing_them(pulsar: PulsarAccess) -> None:
    token = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.bm90LWEtc2lnbmF0dXJl"
    async with admin_for(pulsar, token) as admin:
        with pytest.raises(AccessDenied, match="does not accept the connection's credentials") as denied:
            await admin.probe()
    assert token not in str(denied.value)


async def test_a_namespace_administrator_can_run_scalable_topics(
    pulsar: PulsarAccess, plain: PlainHttp, topic: TopicName
) -> None:
    name = segment_name(topic)
    async with admin_for(pulsar, pulsar.namespace_admin_token) as admin:
        for backend in (ClassicBackend(admin), ClassicBackend(admin, protection="Namespace")):
            await backend.take_claim(topic, CLAIM, properties={"a": "b"})
            await backend.create_segment(topic, record(), SETUP)
            assert await backend.inheritance(topic, [name]) == SETUP.inheritance
            assert len(await backend.list_segments(topic)) == 1
            await backend.apply_policies(name, SegmentPolicies(), managed_before=frozenset({"message_ttl_seconds"}))
            await backend.ensure_cursors(name, ["audit"])
            await backend.terminate(name)
            assert (await backend.look(name)).counting == {"billing", "audit"}
            await backend.unload(name)
            await backend.revoke(name, ["writer"])
            await backend.delete_cursor(name, "audit")
            assert await backend.retention_minutes(name) == 0
            await backend.delete_segment(name)
            await backend.rewrite_claim(topic, CLAIM)
            await backend.delete_claim(topic)
    left = await plain.get(f"persistent/{topic.pulsar_namespace}")
    assert [found for found in left if "/__" not in found] == []


@pytest.mark.parametrize(
    ("act", "right"),
    [
        (lambda backend, topic: backend.take_claim(topic, CLAIM), "tenant admin"),
        (lambda backend, topic: backend.create_segment(topic, record(1), SETUP), "tenant admin"),
        (lambda backend, topic: backend.terminate(segment_name(topic)), "tenant admin"),
        (lambda backend, topic: backend.unload(segment_name(topic)), "tenant admin"),
        (lambda backend, topic: backend.delete_segment(segment_name(topic)), "tenant admin"),
        (
            lambda backend, topic: backend.grant(segment_name(topic), {"r": frozenset({"produce"})}),
            "tenant admin",
        ),
        (lambda backend, topic: backend.inheritance(topic, [segment_name(topic)]), "tenant admin"),
        (
            lambda backend, topic: backend.apply_policies(
                segment_name(topic), SegmentPolicies(message_ttl_seconds=5), managed_before=frozenset()
            ),
            "tenant admin",
        ),
    ],
    ids=["take_claim", "create_segment", "terminate", "unload", "delete_segment", "grant", "inheritance", "policies"],
)
async def test_a_plain_client_is_denied_naming_the_right_and_nothing_happens(
    pulsar: PulsarAccess,
    plain: PlainHttp,
    backend: ClassicBackend,
    topic: TopicName,
    act: Callable[[ClassicBackend, TopicName], Awaitable[Any]],
    right: str,
) -> None:
    await backend.create_segment(topic, record(), SETUP)
    await plain.do("POST", f"namespaces/{topic.pulsar_namespace}/permissions/client", ["produce", "consume"])
    before = await plain.get(f"namespaces/{topic.pulsar_namespace}")
    async with admin_for(pulsar, pulsar.client_token) as admin:
        with pytest.raises(AccessDenied, match=f"the connection's role needs: {right}"):
            await act(ClassicBackend(admin), topic)
    assert await plain.status(topic_at(topic.persistent, "properties")) == 404
    assert (await plain.get(topic_at(segment_name(topic), "internalStats")))["state"] == "LedgerOpened"
    assert await plain.get(topic_at(segment_name(topic), "messageTTL")) == 60
    assert await plain.get(f"namespaces/{topic.pulsar_namespace}") == before
