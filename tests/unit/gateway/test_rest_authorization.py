"""R33, R32: every route of the table refuses whoever it should, and says what is lacking."""

from __future__ import annotations

import aiohttp
import pytest

from scalable_topics_operator.gateway.route import Right, Route, Who
from scalable_topics_operator.gateway.route_table import ROUTES
from scalable_topics_operator.gateway.session_routes import SESSION_ROUTES
from tests.unit.gateway.model_kubernetes import ALICE, BOB, OTHER_AUDIENCE, STRANGER
from tests.unit.gateway.replica import PEER_TOKEN
from tests.unit.gateway.rest_world import rest_world, sample_body, sample_path

# WebSockets have tests of their own.
SERVED = [route for route in ROUTES if route not in SESSION_ROUTES]
OF_USERS = [route for route in SERVED if route.who is Who.USER]
RIGHTS = [(route, right) for route in OF_USERS for right in route.rights]


def _named(value: object) -> str:
    return value.name if isinstance(value, Route) else str(value)


@pytest.mark.parametrize("route", OF_USERS, ids=_named)
async def test_whoever_nobody_knows_is_told_nothing(route: Route) -> None:
    """Hazard A6-25618."""
    async with rest_world() as world:
        for token in (None, STRANGER, OTHER_AUDIENCE, PEER_TOKEN):
            answer = await world.ask(route.method, sample_path(route), token=token, body=sample_body(route))
            assert answer.status == 401
            assert "audience scalable-topics" in answer.reason
            assert "WWW-Authenticate" in answer.headers
        assert world.kubernetes.acted == []


@pytest.mark.parametrize("route", [route for route in OF_USERS if route.rights], ids=_named)
async def test_somebody_without_any_right_is_told_which(route: Route) -> None:
    async with rest_world() as world:
        answer = await world.ask(route.method, sample_path(route), token=BOB, body=sample_body(route))
        assert answer.status == 403
        assert f"lacks the right to {route.rights[0].verb} {route.rights[0].resource.plural}" in answer.reason
        assert f"{route.rights[0].resource.plural}.scalabletopics.io in namespace shop" in answer.reason
        assert world.kubernetes.acted == [], "nothing was tried"


@pytest.mark.parametrize(("route", "right"), RIGHTS, ids=_named)
async def test_each_right_is_needed(route: Route, right: Right) -> None:
    """Hazard A6-25618."""
    async with rest_world() as world:
        world.kubernetes.denied = {(right.verb, right.resource.plural)}
        answer = await world.ask(route.method, sample_path(route), body=sample_body(route))
        assert answer.status == 403
        assert f"lacks the right to {right.verb} {right.resource.plural}" in answer.reason
        assert world.kubernetes.acted == []


@pytest.mark.parametrize("route", OF_USERS, ids=_named)
async def test_with_all_rights_it_is_answered(route: Route) -> None:
    async with rest_world() as world:
        answer = await world.ask(route.method, sample_path(route), token=ALICE, body=sample_body(route))
        assert answer.status not in (401, 403, 500), answer.body


@pytest.mark.parametrize("route", [route for route in OF_USERS if route.writes and route.rights], ids=_named)
async def test_r32_no_route_writes_where_writes_are_switched_off(route: Route) -> None:
    async with rest_world(writes=False) as world:
        answer = await world.ask(route.method, sample_path(route), body=sample_body(route))
        assert answer.status == 405
        assert "--gateway-writes=false" in answer.reason
        assert world.kubernetes.acted == []


async def test_replicas_and_anybody_have_their_own_routes() -> None:
    async with rest_world() as world:
        for route in SERVED:
            if route.who is Who.ANYBODY:
                assert (await world.ask(route.method, sample_path(route), token=None)).status == 200
            if route.who is Who.REPLICA:
                for token in (None, ALICE):
                    assert (await world.ask(route.method, sample_path(route), token=token)).status == 401
                assert (await world.ask(route.method, sample_path(route), token=PEER_TOKEN)).status == 404


@pytest.mark.parametrize("route", OF_USERS, ids=_named)
async def test_a_token_of_pulsar_is_of_no_use_here(route: Route) -> None:
    async with rest_world() as world:
        url = f"http://{world.replica.gateway.address}{sample_path(route)}"
        async with (
            aiohttp.ClientSession(headers={"Authorization": "Pulsar some-t0ken"}) as session,
            session.request(route.method, url) as response,
        ):
            assert response.status == 403
            assert "a token of Pulsar is good to lookup and to consume only" in (await response.json())["reason"]
