"""Waiting for what the gateway has only begun."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics.admin import (
    AdminClient,
    AdminError,
    Awaited,
    ConflictError,
    Outcome,
    OutcomeState,
    UnavailableError,
    transport,
)
from scalable_topics.admin.retries import MAX_ATTEMPTS
from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from tests.unit.admin.calls import BILLING, NAME, OPERATION, RECORD, TOPIC
from tests.unit.admin.gateway_in_test import Reply, gateway_in_test
from tests.unit.gateway.model_kubernetes import ALICE
from tests.unit.gateway.rest_world import RestWorld, rest_world

GONE = Reply(404, {"reason": "there is none"})
THERE = Reply(200, RECORD)


def _running(awaited: Awaited, **more: Any) -> Outcome:
    return Outcome(NAME, awaited, **{"state": OutcomeState.RUNNING, "subscription": "billing", **more})


def _operation(phase: str, message: str = "") -> Reply:
    named = {"namespace": "shop", "name": OPERATION.name}
    return Reply(200, {**named, "type": "Split", "phase": phase, "reason": "", "message": message})


def _billing(phase: str) -> Reply:
    return Reply(200, {**BILLING, "phase": phase})


@pytest.mark.parametrize(
    ("awaited", "replies"),
    [
        (Awaited.TOPIC_READY, (GONE, THERE)),
        (Awaited.TOPIC_GONE, (THERE, GONE)),
        (Awaited.SUBSCRIPTION_ACTIVE, (_billing("Creating"), _billing("Active"))),
        (Awaited.SUBSCRIPTION_GONE, (_billing("Deleting"), GONE)),
        (Awaited.OPERATION_ENDED, (_operation("Running"), _operation("Succeeded"))),
    ],
)
async def test_it_is_looked_at_until_it_has_ended(awaited: Awaited, replies: tuple[Reply, Reply]) -> None:
    async with gateway_in_test() as gateway, AdminClient(gateway.options()) as client:
        gateway.answers(*replies)
        done = await client.wait(_running(awaited, operation=OPERATION, reason="not yet"))
        assert done == Outcome(NAME, awaited, OutcomeState.DONE, "billing", OPERATION)
        assert len(gateway.heard) == 2
        assert await client.wait(done) is done
        assert len(gateway.heard) == 2


@pytest.mark.parametrize(
    ("awaited", "reply", "why"),
    [
        (Awaited.OPERATION_ENDED, _operation("Failed", "the broker says no"), "the broker says no"),
        (Awaited.SUBSCRIPTION_ACTIVE, _billing("CursorLost"), "lost its cursor"),
    ],
)
async def test_a_failure_is_raised(awaited: Awaited, reply: Reply, why: str) -> None:
    async with gateway_in_test() as gateway, AdminClient(gateway.options()) as client:
        gateway.answers(reply)
        with pytest.raises(ConflictError, match=why):
            await client.wait(_running(awaited, operation=OPERATION))


async def test_waiting_ends_although_it_goes_on() -> None:
    async with gateway_in_test() as gateway, AdminClient(gateway.options()) as client:
        gateway.answers(_operation("Running"))
        with pytest.raises(UnavailableError, match="not ended within 0 s, and goes on: step Creating"):
            await client.wait(_running(Awaited.OPERATION_ENDED, operation=OPERATION, reason="step Creating"), 0)
        with pytest.raises(AdminError, match="did not say which SegmentOperation"):
            await client.wait(_running(Awaited.OPERATION_ENDED))


async def test_a_topic_that_is_declared_and_not_made_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration of many partitions takes longer than a read is repeated."""
    monkeypatch.setattr(transport, "pause_seconds", lambda attempt, retry_after: 0.0)
    not_made = Reply(503, {"reason": "topic://acme/shop/orders is not made yet"})
    async with gateway_in_test() as gateway, AdminClient(gateway.options()) as client:
        gateway.answers(*[not_made] * MAX_ATTEMPTS, THERE)
        assert (await client.wait(_running(Awaited.TOPIC_READY))).done
        assert len(gateway.heard) == MAX_ATTEMPTS + 1
        gateway.answers(Reply(504, {"reason": "somebody in between does not answer"}))
        with pytest.raises(UnavailableError, match="somebody in between"):
            await client.wait(_running(Awaited.TOPIC_READY))


def _client(world: RestWorld) -> AdminClient:
    from scalable_topics.admin import GatewayOptions

    return AdminClient(GatewayOptions(f"http://{world.replica.gateway.address}", token=ALICE))


async def test_the_operators_own_gateway_is_understood() -> None:
    async with rest_world(wait_seconds=0.05) as world, _client(world) as client:
        running = await client.split_segment(TOPIC, 0)
        (made,) = world.kubernetes.all_of(SEGMENT_OPERATIONS)
        assert running.state is OutcomeState.RUNNING
        assert running.operation is not None
        assert running.operation.name == made["metadata"]["name"]
        world.kubernetes.set_status(made, {"phase": "Succeeded"})
        assert (await client.wait(running)).done
        assert (await client.get_operation(TOPIC, running.operation)).ended
        record = await client.get_topic(TOPIC)
        assert dict(record.properties) == {"team": "orders"}
        assert await client.get_segment(TOPIC, record.layout.segments[0]) == record.layout.segments[0]


async def test_r32_what_may_have_been_made_is_not_asked_for_twice() -> None:
    async with rest_world() as world, _client(world) as client:
        world.kubernetes.status = 500
        with pytest.raises(UnavailableError, match="it may have been made"):
            await client.skip_all(TOPIC, "billing")
        assert len(set(world.kubernetes.acted)) == 1
        # The gateway itself tries again under the same name, which makes one object only.
        assert len(world.kubernetes.acted) == 3
