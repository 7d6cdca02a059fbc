"""Who may ask what: every row of the table in docs/security.md against a gateway, and every route has its row.

`tests/unit/gateway/test_rest_authorization.py` takes what a route says of itself for granted; this is what it ought
to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from scalable_topics_operator.gateway.route import Route
from scalable_topics_operator.gateway.route_table import ROUTES
from tests.unit.gateway.model_kubernetes import ALICE, BOB, OTHER_AUDIENCE, STRANGER
from tests.unit.gateway.replica import PEER_TOKEN
from tests.unit.gateway.rest_world import RestWorld, rest_world, sample_body, sample_path

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
_ROW = re.compile(r"^\| `(?P<method>[A-Z]+) (?P<path>/\S*)` \| (?P<who>\w+) \| (?P<rights>[^|]*)\|(?P<pulsar>[^|]*)\|$")

# Headers that are no proof of anything. A token that has expired is one that TokenReview does not know, too.
NO_PROOF = (
    "",
    "Bearer",
    "Bearer ",
    f"Bearer  {STRANGER}",
    f"bearer {STRANGER}\t",
    f"Basic {ALICE}",
    f"Token {ALICE}",
    ALICE,
    f"Bearer {ALICE} {ALICE}",
    f"Bearer {ALICE},{ALICE}",
    f"Bearer {ALICE}é",
    f"Bearer {'x' * 6000}",
    f"Bearer {STRANGER}",
    f"Bearer {OTHER_AUDIENCE}",
    "Negotiate YII=",
)
# What somebody may send to be taken for somebody else.
FORGED = {
    "Impersonate-User": "alice",
    "Impersonate-Group": "system:masters",
    "X-Remote-User": "alice",
    "X-Forwarded-User": "alice",
    "X-Forwarded-For": "127.0.0.1",
    "X-Scalable-Topics-Forwarded": "true",
    "Cookie": f"token={ALICE}",
}


@dataclass(frozen=True)
class Row:
    """A row of the table."""

    method: str
    path: str
    who: str
    rights: frozenset[tuple[str, str]]
    takes_pulsar: bool


def rows() -> dict[tuple[str, str], Row]:
    """The table, by method and path."""
    return {(row.method, row.path): row for row in _rows()}


def _rows() -> Iterator[Row]:
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := _ROW.match(line):
            rights = re.findall(r"`(\w+) (\w+)`", found["rights"])
            yield Row(found["method"], found["path"], found["who"], frozenset(rights), found["pulsar"].strip() == "yes")


ROWS = rows()
OF_USERS = [route for route in ROUTES if (row := ROWS.get((route.method, route.path))) and row.who == "user"]


def _row(route: Route) -> Row:
    return ROWS[route.method, route.path]


def _named(route: Route) -> str:
    return route.name


async def _status(world: RestWorld, route: Route, headers: dict[str, str]) -> int:
    url = f"http://{world.replica.gateway.address}{sample_path(route)}"
    async with (
        aiohttp.ClientSession(headers=headers) as session,
        session.request(route.method, url, json=sample_body(route)) as response,
    ):
        await response.read()
        return response.status


def test_every_route_has_a_row_and_every_row_a_route() -> None:
    """Whoever adds a route says in docs/security.md who may ask it."""
    assert ROWS.keys() == {(route.method, route.path) for route in ROUTES}
    assert len(list(_rows())) == len(ROWS)


@pytest.mark.parametrize("route", OF_USERS, ids=_named)
async def test_what_a_row_says_is_refused_and_served(route: Route) -> None:
    row = _row(route)
    async with rest_world() as world:
        for authorization in NO_PROOF:
            assert await _status(world, route, {"Authorization": authorization}) in (400, 401), authorization[:40]
        assert await _status(world, route, {}) == 401
        assert await _status(world, route, FORGED) == 401
        assert await _status(world, route, {"Authorization": f"Bearer {PEER_TOKEN}"}) == 401
        if not row.takes_pulsar:
            assert await _status(world, route, {"Authorization": "Pulsar t0ken"}) == 403
        if row.rights:
            assert await _status(world, route, {"Authorization": f"Bearer {BOB}"}) == 403
            assert await _status(world, route, {"Authorization": f"Bearer {BOB}", **FORGED}) == 403
        assert world.kubernetes.acted == [], "nobody of them was acted for"
        assert await _status(world, route, {"Authorization": f"Bearer {ALICE}"}) not in (401, 403, 500)


@pytest.mark.parametrize("route", [route for route in OF_USERS if _row(route).rights], ids=_named)
async def test_each_right_alone_is_enough_only_if_it_is_the_only_one(route: Route) -> None:
    row = _row(route)
    everything = {right for one in ROWS.values() for right in one.rights} | {("patch", "scalabletopics")}
    for kept in row.rights:
        async with rest_world() as world:
            world.kubernetes.denied = everything - {kept}
            status = await _status(world, route, {"Authorization": f"Bearer {ALICE}"})
            assert status not in (401, 500)
            assert (status == 403) == (len(row.rights) > 1), (kept, status)
    if len(row.rights) == 1:
        return
    async with rest_world() as world:
        world.kubernetes.denied = everything - row.rights
        assert await _status(world, route, {"Authorization": f"Bearer {ALICE}"}) not in (401, 403, 500)


@pytest.mark.parametrize("route", [route for route in OF_USERS if _row(route).rights], ids=_named)
async def test_rights_in_another_namespace_are_none(route: Route) -> None:
    async with rest_world() as world:
        world.kubernetes.denied_in = {(*right, namespace) for right in _row(route).rights for namespace in ("shop", "")}
        answer = await world.ask(route.method, sample_path(route), body=sample_body(route))
        assert answer.status == 403
        assert world.kubernetes.acted == []


async def test_anybody_sees_what_holds_nothing_and_replicas_have_their_own_token() -> None:
    async with rest_world() as world:
        for route in ROUTES:
            who = _row(route).who
            if who == "anybody":
                assert await _status(world, route, {}) == 200
                assert await _status(world, route, {"Authorization": f"Bearer {STRANGER}"}) == 200
            elif who == "replica":
                for authorization in (*NO_PROOF, f"Bearer {ALICE}", f"Pulsar {PEER_TOKEN}", f"Basic {PEER_TOKEN}"):
                    assert await _status(world, route, {"Authorization": authorization}) in (400, 401)
            else:
                assert who == "user"


async def test_other_methods_and_paths_are_nobodys() -> None:
    """No route is reached by a method, a case or a slash that the table does not have."""
    paths = {sample_path(route).partition("?")[0] for route in ROUTES}
    async with rest_world() as world:
        for route in ROUTES:
            path = sample_path(route).partition("?")[0]
            served = {row.method for row in ROWS.values() if row.path == route.path}
            for method in {"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS", "TRACE"} - served:
                answer = await world.ask(method, path, token=ALICE)
                assert answer.status in (404, 405), (method, path, answer.status)
            # Whoever reached a route of users without a token would be answered with 401.
            for other in {path + "/", "/" + path, path.upper()} - paths:
                answer = await world.ask(route.method, other, token=None)
                assert answer.status in (404, 405), (route.method, other, answer.status)
            dotted = path.replace("/admin/v2", "/admin/v2/.", 1)
            if dotted != path:
                answer = await world.ask(route.method, dotted, token=None)
                assert answer.status in (401, 404, 405), (route.method, dotted, answer.status)
        assert world.kubernetes.acted == []


def test_every_test_that_the_page_names_is_there() -> None:
    tests = Path(__file__).parents[2]
    named = re.findall(r"`((?:unit|integration|e2e)/[\w/.]+)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 20
    assert [one for one in named if not (tests / one).exists()] == []
