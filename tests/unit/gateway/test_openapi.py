"""The document, the reference and the application are made of one table of routes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from scalable_topics_operator.gateway.openapi import answers_of, document, openapi_text, rest_page
from scalable_topics_operator.gateway.route import Route, Who
from scalable_topics_operator.gateway.route_table import ROUTES
from tests.unit.gateway.rest_world import rest_world

REFERENCE = Path(__file__).parents[3] / "docs" / "reference"


def _described() -> set[tuple[str, str]]:
    found = document("1.0")["paths"]
    return {(method.upper(), path) for path, operations in found.items() for method in operations}


async def test_every_route_of_the_application_is_in_the_document_and_the_other_way_round() -> None:
    async with rest_world() as world:
        served = {
            (route.method, route.resource.canonical)
            for route in world.replica.gateway.application.router.routes()
            if isinstance(route, web.AbstractRoute) and route.resource is not None
        }
    assert served == _described()


def test_names_are_unique_and_of_a_form_that_clients_make_functions_of() -> None:
    names = [route.name for route in ROUTES]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isalnum() and name.islower() for name in names)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_the_parameters_of_a_path_are_all_described(route: Route) -> None:
    in_path = {part.partition("}")[0] for part in route.path.split("{")[1:]}
    assert in_path == {one.name for one in route.parameters if one.place == "path"}
    queried = [one.name for one in route.parameters if one.place == "query"]
    assert len(set(queried)) == len(queried)


@pytest.mark.parametrize("route", [route for route in ROUTES if route.who is Who.USER], ids=lambda route: route.name)
def test_every_answer_is_told(route: Route) -> None:
    answers = answers_of(route)
    assert {400, 401, 500, 503} <= answers.keys()
    assert (403 in answers) == bool(route.rights)
    assert (404 in answers) or "{topic}" not in route.path
    assert (413 in answers) == (route.body is not None)
    if route.writes and route.rights:
        assert {405, 409, 429} <= answers.keys()
    if not route.writes:
        assert answers.keys() & {200, 101}


def test_the_document_refers_to_nothing_that_is_not_in_it() -> None:
    found = document("1.0")
    assert found["openapi"].startswith("3.1")

    def references(part: Any) -> set[str]:
        if isinstance(part, dict):
            own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
            return own.union(*(references(one) for one in part.values()))
        return set().union(*(references(one) for one in part)) if isinstance(part, list) else set()

    for reference in references(found):
        place: Any = found
        for step in reference.removeprefix("#/").split("/"):
            place = place[step]
    schemes = found["components"]["securitySchemes"].keys()
    used = {
        name for path in found["paths"].values() for one in path.values() for entry in one["security"] for name in entry
    }
    assert used == schemes


async def test_each_replica_shows_the_document_to_anybody() -> None:
    async with rest_world() as world:
        answer = await world.ask("GET", "/openapi.json", token=None)
        assert answer.status == 200
        assert answer.body == json.loads((REFERENCE / "openapi.json").read_text())


def test_the_reference_is_what_is_generated() -> None:
    assert (REFERENCE / "rest.md").read_text() == rest_page()
    version = json.loads((REFERENCE / "openapi.json").read_text())["info"]["version"]
    assert (REFERENCE / "openapi.json").read_text() == openapi_text(version)
    for route in ROUTES:
        assert f"`{route.method} {route.path}`" in rest_page()
