"""R32, pip-475's resolution rule: who asks for `persistent` gets what there is, and follows its migration."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from scalable_topics.layout import TopicName, migrated_layout, planned_initial
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.gateway import ordinary_watch
from scalable_topics_operator.operations.errors import BackendUnavailable
from scalable_topics_operator.operations.journal import Operation, OperationKind, Request, Step
from scalable_topics_operator.operations.legacy_survey import LegacySurvey
from scalable_topics_operator.operations.migrated_from import MigratedFrom, Migration
from scalable_topics_operator.operations.protocols import Claim, NameState
from scalable_topics_operator.operations.topic_state import TopicState, write_state
from tests.unit.gateway.model_kubernetes import ALICE, BOB
from tests.unit.gateway.rest_world import RestWorld, rest_world
from tests.unit.gateway.watch_gate import Socket, ending, frame

OLD = TopicName("acme", "shop", "old")
OLD_URL = "/admin/v2/scalable/acme/shop/old"
_HANDSHAKE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
}
MIGRATING = TopicState(
    incarnation="uid-5.0",
    operation=Operation(
        id="migrate-1",
        kind=OperationKind.MIGRATE,
        step=Step.CREATING,
        term=3,
        parents=(0, 1),
        children=planned_initial(2, bucket_budget=4, first_id=2),
        subscriptions=(),
        started_at="2026-11-28T00:00:00Z",
        request=Request("SegmentOperation", "migrate-it", "uid-9"),
        next_segment_id=4,
        migration=Migration(MigratedFrom(2, 1_800_000_000_000), force=False),
    ),
)
MIGRATED = TopicState(layout=migrated_layout(OLD, 2, 4, 1_800_000_000_000), incarnation="uid-5.0")


def _announcing() -> TopicState:
    assert MIGRATING.operation is not None
    return replace(MIGRATING, operation=replace(MIGRATING.operation, step=Step.ANNOUNCING, announcements=1))


def _is_ordinary(world: RestWorld, partitions: int = 2) -> None:
    world.brokers.names[OLD] = NameState(exists=True, partitions=partitions)
    world.brokers.surveys[OLD] = LegacySurvey(partitions, (), properties={"team": "old"})


def _declare(world: RestWorld, state: TopicState, name: str = "old") -> Body:
    return world.kubernetes.put(
        {
            "apiVersion": TOPICS.api_version,
            "kind": TOPICS.kind,
            "metadata": {"namespace": "shop", "name": name, "uid": "uid-5"},
            "spec": {"topic": str(OLD), "connectionRef": {"name": "pulsar"}},
            "status": write_state({}, state),
        }
    )


@asynccontextmanager
async def _watching(world: RestWorld, query: str = "", token: str = ALICE) -> AsyncIterator[Socket]:
    url = f"http://{world.replica.gateway.address}{OLD_URL}/watch?domain=persistent{query}"
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as session,
        session.ws_connect(url) as socket,
    ):
        yield socket


async def _refused(world: RestWorld, path: str, authorization: str = f"Bearer {ALICE}") -> tuple[int, str]:
    url = f"http://{world.replica.gateway.address}{OLD_URL}{path}"
    headers = {**_HANDSHAKE, "Authorization": authorization}
    async with aiohttp.ClientSession(headers=headers) as session, session.get(url) as response:
        return response.status, (await response.json())["reason"]


def _topics(layout: dict[str, Any]) -> list[str]:
    assert layout["routing"] == "Modulo"
    assert all((one["range"], one["state"]) == ("0000-ffff", "Active") for one in layout["segments"])
    return [one["topic"].removeprefix(OLD.persistent) for one in layout["segments"]]


async def test_an_ordinary_topic_is_modelled_and_its_growth_and_end_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """R25."""
    monkeypatch.setattr(ordinary_watch, "_COUNT_SECONDS", 0.02)
    async with rest_world() as world:
        _is_ordinary(world, 0)
        async with _watching(world) as socket:
            first = await frame(socket)
            assert (first["type"], first["layout"]["topic"], first["leader"]) == ("layout", str(OLD), None)
            assert (first["layout"]["epoch"], _topics(first["layout"])) == (0, [""])
        _is_ordinary(world, 2)
        async with _watching(world) as socket:
            told = await frame(socket)
            assert _topics(told["layout"]) == ["-partition-0", "-partition-1"]
            async with _watching(world, f"&since={told['position']}") as other:
                assert await frame(other) == {"type": "unchanged", "position": told["position"]}
                world.brokers.error = BackendUnavailable("no route")
                _is_ordinary(world, 3)
                world.brokers.error = None
                for one in (socket, other):
                    grown = await frame(one)
                    assert _topics(grown["layout"]) == ["-partition-0", "-partition-1", "-partition-2"]
                assert grown["layout"]["incarnation"] > told["layout"]["incarnation"]
                del world.brokers.names[OLD]
                for one in (socket, other):
                    assert await frame(one) == {"type": "deleted"}
                    assert (await ending(one))[0] == 1000
        assert world.kubernetes.acted == [], "R32: looking creates nothing"


@pytest.mark.parametrize("declared", [True, False])
async def test_its_migration_is_told_step_by_step(declared: bool) -> None:
    async with rest_world() as world:
        _is_ordinary(world)
        if declared:
            _declare(world, TopicState())
        async with _watching(world) as socket:
            modelled = (await frame(socket))["layout"]
            _declare(world, MIGRATING)
            begun = (await frame(socket))["layout"]
            assert ("announcement" in begun, _topics(begun)) == (False, _topics(modelled))
            _declare(world, _announcing())
            announced = (await frame(socket))["layout"]
            assert announced["announcement"]["parents"] == [0, 1]
            assert [one["id"] for one in announced["announcement"]["children"]] == [2, 3]
            assert announced["step"] > begun["step"]
            async with _watching(world) as late:
                assert (await frame(late))["layout"] == announced
            _declare(world, MIGRATED)
            done = (await frame(socket))["layout"]
            assert ("routing" in done, done["incarnation"]) == (False, announced["incarnation"])
            states = [(one["id"], one["state"]) for one in done["segments"]]
            assert states == [(0, "Sealed"), (1, "Sealed"), (2, "Active"), (3, "Active")]
            # From now on it is watched like every scalable topic.
            assert MIGRATED.layout is not None
            change = MIGRATED.layout.plan_split(2)
            _declare(world, replace(MIGRATED, layout=MIGRATED.layout.apply(change, now_ms=1_800_000_000_001)))
            assert (await frame(socket))["layout"]["epoch"] == 1
        async with _watching(world) as socket:
            assert (await frame(socket))["layout"]["epoch"] == 1


async def test_one_that_is_called_off_is_what_it_was() -> None:
    async with rest_world() as world:
        _is_ordinary(world)
        async with _watching(world) as socket:
            modelled = await frame(socket)
            _declare(world, _announcing())
            assert "announcement" in (await frame(socket))["layout"]
            _declare(world, TopicState())
            assert await frame(socket) == modelled


async def test_one_that_another_installation_migrates_is_looked_for_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordinary_watch, "_COUNT_SECONDS", 0.02)
    async with rest_world() as world:
        _is_ordinary(world)
        async with _watching(world) as socket:
            await frame(socket)
            claim = Claim("other", "other-cluster", "uid-9", "theirs", "old", "Classic")
            world.brokers.names[OLD] = NameState(exists=True, partitions=2, claim=claim)
            assert (await ending(socket))[0] == 1001
        assert (await _refused(world, "/watch?domain=persistent"))[0] == 404


async def test_an_object_of_another_name_is_watched_by_whoever_may_see_it() -> None:
    """R33."""
    async with rest_world() as world:
        _is_ordinary(world)
        async with _watching(world) as socket:
            await frame(socket)
            _declare(world, MIGRATED, name="of-another-name")
            assert (await ending(socket))[0] == 1001


@pytest.mark.parametrize("path", ["", "/watch"])
async def test_only_who_asks_for_it_and_may_is_told_of_an_ordinary_topic(path: str) -> None:
    """R32, R33: `topic://` names a scalable topic, or nothing."""
    async with rest_world() as world:
        for query in ("", "?domain=topic", "?domain=persistent"):
            assert (await _refused(world, path + query))[0] == 404
        _is_ordinary(world)
        for query in ("", "?domain=topic"):
            assert (await _refused(world, path + query))[0] == 404
        status, reason = await _refused(world, f"{path}?domain=non-persistent")
        assert (status, "non-persistent topics cannot be scalable" in reason) == (400, True)
        assert (await _refused(world, f"{path}?domain=segment"))[0] == 400
        assert (await _refused(world, f"{path}?domain=persistent", f"Bearer {BOB}"))[0] == 403
        assert (await _refused(world, f"{path}?domain=persistent", "Pulsar some-t0ken"))[0] in (401, 403)
        assert (await _refused(world, f"{path}?domain=persistent&connection=shop/other"))[0] == 404
        world.brokers.error = BackendUnavailable("no route")
        assert (await _refused(world, f"{path}?domain=persistent"))[0] == 503
        assert world.kubernetes.acted == []


@pytest.mark.parametrize("declared", [True, False])
async def test_its_record_is_the_layout_that_models_it(declared: bool) -> None:
    async with rest_world() as world:
        _is_ordinary(world)
        if declared:
            _declare(world, TopicState())
        answer = await world.ask("GET", f"{OLD_URL}?domain=persistent")
        assert (answer.status, answer.body["routing"], answer.body["properties"]) == (200, "Modulo", {"team": "old"})
        named = [one["legacyTopicName"] for one in answer.body["segments"].values()]
        assert named == [f"{OLD.persistent}-partition-0", f"{OLD.persistent}-partition-1"]
        _declare(world, MIGRATED)
        answer = await world.ask("GET", f"{OLD_URL}?domain=persistent")
        assert ("routing" in answer.body, len(answer.body["segments"])) == (False, 4)


@pytest.mark.parametrize("declared", [True, False])
async def test_ordered_consumers_of_an_ordinary_topic_are_pointed_to_migration(declared: bool) -> None:
    async with rest_world() as world:
        _is_ordinary(world)
        if declared:
            _declare(world, TopicState())
        status, reason = await _refused(world, "/subscriptions/billing/session")
        assert (status, "a partitioned topic (2 partitions)" in reason, "migrate it first" in reason) == (
            404,
            True,
            True,
        )
        status, reason = await _refused(world, "/subscriptions/billing/session", f"Bearer {BOB}")
        assert "partitioned" not in reason
        assert world.kubernetes.acted == []
