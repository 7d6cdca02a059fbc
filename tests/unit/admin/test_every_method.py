"""Every method asks for what the gateway's document describes, and every operation of the document has a method."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from scalable_topics.admin import AdminClient, AutoScalePolicy, sync
from scalable_topics.admin.rest_operations import RestOperation
from tests.unit.admin.calls import CALLS, Call
from tests.unit.admin.gateway_in_test import DOCUMENT, OPERATIONS, TOKEN, GatewayInTest, gateway_in_test

# Methods that ask for nothing of their own.
_OWN = {"close", "wait"}
_CURSOR = "/admin/v2/segments/{tenant}/{namespace}/{topic}/{descriptor}/subscription/{subscription}"
# Writes to single cursors are in no admin client of the specifications, and are refused whoever asks.
_NOT_SERVED = {("PUT", _CURSOR), ("DELETE", _CURSOR), ("POST", f"{_CURSOR}/seek"), ("POST", f"{_CURSOR}/skip-all")}
# What people see: the console and what it asks for.
_OTHERS = {
    ("GET", "/openapi.json"),
    ("GET", "/internal/load/{namespace}/{connection}"),
    ("GET", "/console"),
    ("GET", "/console/"),
    ("GET", "/console/{file}"),
    ("GET", "/admin/v2/scalable"),
    ("GET", "/admin/v2/scalable/{tenant}/{namespace}/{topic}/status"),
    ("GET", "/admin/v2/scalable/{tenant}/{namespace}/{topic}/rights"),
}


def _sessions() -> set[tuple[str, str]]:
    return {key for key, operation in OPERATIONS.items() if "101" in operation["responses"]}


def _methods(kind: type) -> dict[str, Any]:
    return {
        name: method
        for name, method in vars(kind).items()
        if not name.startswith("_") and inspect.isfunction(method) and name not in _OWN
    }


def _check_request(gateway: GatewayInTest, call: Call) -> None:
    (heard,) = gateway.heard
    operation = OPERATIONS[call.asks]
    described = [*operation.get("parameters", [])]
    in_query = {one["name"]: one for one in described if one["in"] == "query"}
    assert heard.operation == call.asks
    assert heard.query == {**call.query, "connection": ["shop/pulsar"]}
    assert heard.query.keys() <= in_query.keys()
    assert {name for name, one in in_query.items() if one["required"]} <= heard.query.keys()
    for name, values in heard.query.items():
        schema = in_query[name]["schema"]
        assert len(values) == 1 or schema["type"] == "array"
        assert all(value in schema.get("enum", [value]) for value in values)
    of_namespace = "topic" not in heard.path
    assert heard.path == {
        "tenant": "acme",
        "namespace": "shop",
        **({} if of_namespace else {"topic": "orders"}),
        **call.path,
    }
    assert heard.body == call.body
    assert heard.body is None or "requestBody" in operation
    assert str(call.reply.status) in operation["responses"] or operation["summary"].startswith("Not served")
    assert heard.authorization == f"Bearer {TOKEN}"


def _check_result(call: Call, result: Any) -> None:
    if isinstance(call.result, Mapping) and not isinstance(result, Mapping):
        assert {name: getattr(result, name) for name in call.result} == call.result
    else:
        assert result == call.result


@pytest.mark.parametrize("call", CALLS, ids=str)
async def test_a_method_asks_for_its_operation_and_reads_the_answer(call: Call) -> None:
    async with gateway_in_test() as gateway:
        gateway.answers(call.reply)
        async with AdminClient(gateway.options(connection="shop/pulsar")) as client:
            result = await getattr(client, call.method)(*call.arguments, **call.options)
        _check_request(gateway, call)
        _check_result(call, result)


async def test_the_blocking_client_does_the_same() -> None:
    async with gateway_in_test() as gateway:

        def ask(client: sync.AdminClient, call: Call) -> Any:
            return getattr(client, call.method)(*call.arguments, **call.options)

        client = await asyncio.to_thread(sync.AdminClient, gateway.options(connection="shop/pulsar"))
        try:
            for call in CALLS:
                gateway.heard.clear()
                gateway.answers(call.reply)
                result = await asyncio.to_thread(ask, client, call)
                _check_request(gateway, call)
                _check_result(call, result)
        finally:
            await asyncio.to_thread(client.close)


def test_every_method_is_tried() -> None:
    assert _methods(AdminClient).keys() == {call.method for call in CALLS}


def test_every_operation_of_the_document_has_a_method_and_the_other_way_round() -> None:
    from scalable_topics.admin import rest_operations

    known = {(one.method, one.path) for one in vars(rest_operations).values() if isinstance(one, RestOperation)}
    assert known == {call.asks for call in CALLS}
    assert known == OPERATIONS.keys() - _sessions() - _NOT_SERVED - _OTHERS


def test_both_clients_have_the_same_methods() -> None:
    blocking, waiting = _methods(sync.AdminClient), _methods(AdminClient)
    assert blocking.keys() == waiting.keys()
    for name in (*blocking, "wait"):
        assert inspect.signature(getattr(sync.AdminClient, name)) == inspect.signature(getattr(AdminClient, name))


def test_an_override_has_the_fields_of_the_document() -> None:
    operation = DOCUMENT["paths"]["/admin/v2/scalable/{tenant}/{namespace}/{topic}/autoScalePolicy"]["post"]
    described = operation["requestBody"]["content"]["application/json"]["schema"]["properties"]
    everything = dict.fromkeys(described, 1)
    read = AutoScalePolicy.from_json(everything)
    assert (read.extra, read.to_json()) == ({}, everything)
    later = {"enabled": None, "ofALaterRelease": [1]}
    assert AutoScalePolicy.from_json(later).to_json() == {"ofALaterRelease": [1]}
