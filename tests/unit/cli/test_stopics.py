"""`stopics`: what it shows, whom it asks with which token, and how it fails."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from scalable_topics_operator.cli import gateway_client
from tests.unit.cli.fake_servers import REQUESTED, TOKEN, Servers, servers

TOPIC = "topic://acme/shop/orders"
EXPLANATION: dict[str, Any] = {
    "topic": TOPIC,
    "observedAt": "2026-01-01T00:00:00Z",
    "decision": {
        "action": {"kind": "Split", "segments": [3], "into": 2, "buckets": None, "reason": "msgRateIn"},
        "code": "msgRateIn",
    },
    "findings": [
        {"rule": "consumer-split", "fired": False, "code": "quiet", "why": "2 consumers, 4 active segments"},
        {"rule": "load-split", "fired": True, "code": "msgRateIn", "why": "segment 3 is at 150 % of split.msgRateIn"},
    ],
    "load": {
        "fresh": True,
        "ageSeconds": 12.4,
        "why": "",
        "segments": [
            {
                "id": 3,
                "range": "0000-7fff",
                "msgRateIn": 15000.5,
                "bytesRateIn": 1500000,
                "msgRateOut": 0,
                "bytesRateOut": 0,
                "lastHotAt": "2026-01-01T00:00:00Z",
            }
        ],
    },
    "consumers": {"billing": 2},
    "clocks": {"split": "2025-12-31T00:00:00Z", "merge": None, "rebucket": None},
    "nextLookSeconds": 47.6,
}
POLICY = {
    "topic": TOPIC,
    "problem": "merge.msgRateIn must be lower than split.msgRateIn",
    "knobs": [
        {"knob": "enabled", "value": True, "origin": "default"},
        {"knob": "split.msgRateIn", "value": 10000, "origin": "SegmentAutoScalePolicy acme/orders"},
    ],
}


@pytest.fixture
async def found(tmp_path: Path) -> AsyncIterator[Servers]:
    async with servers(tmp_path) as running:
        running.answer = web.json_response(EXPLANATION)
        yield running


async def test_explain_shows_the_decision_and_every_rule_with_its_numbers(found: Servers) -> None:
    """Hazards A2-26639 and C48."""
    result = await found.run("explain", TOPIC)
    assert result.exit_code == 0, result.output
    for words in (
        "decision: Split of segment 3 into 2 (msgRateIn)",
        "next look: in 47.6 s",
        "load: fresh, 12 s old",
        "consumers: billing 2",
        "last: split 2025-12-31T00:00:00Z",
    ):
        assert words in result.output
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "rule fired code why" in lines
    assert "consumer-split no quiet 2 consumers, 4 active segments" in lines
    assert "load-split yes msgRateIn segment 3 is at 150 % of split.msgRateIn" in lines
    assert "3 0000-7fff 15000.5 1500000 0 0 2026-01-01T00:00:00Z" in lines
    assert found.asked == [("/admin/v2/scalable/acme/shop/orders/autoScale/explain", f"Bearer {TOKEN}")]


async def test_explain_says_when_nothing_is_to_be_done_and_takes_an_answer_of_the_least(found: Servers) -> None:
    found.answer = web.json_response({"topic": TOPIC, "decision": {"action": None, "code": "load-stale"}, "load": {}})
    result = await found.run("explain", TOPIC)
    assert result.exit_code == 0, result.output
    assert "decision: nothing (load-stale)" in result.output
    assert "load: stale" in result.output


async def test_names_that_users_chose_cannot_steer_the_terminal(found: Servers) -> None:
    found.answer = web.json_response({"topic": TOPIC, "consumers": {"\x1b[2J[red]x": 1}})
    result = await found.run("explain", TOPIC)
    assert "?[2J[red]x 1" in result.output


async def test_resolve_shows_which_level_gave_what(found: Servers) -> None:
    found.answer = web.json_response(POLICY)
    result = await found.run("policy", "resolve", TOPIC)
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "problem: merge.msgRateIn must be lower than split.msgRateIn" in lines
    assert "knob value origin" in lines
    assert "enabled true default" in lines
    assert "split.msgRateIn 10000 SegmentAutoScalePolicy acme/orders" in lines
    assert found.asked[0][0] == "/admin/v2/scalable/acme/shop/orders/autoScalePolicy/effective"


@pytest.mark.parametrize(("command", "answer"), [(("explain",), EXPLANATION), (("policy", "resolve"), POLICY)])
async def test_machines_get_the_gateways_json(found: Servers, command: tuple[str, ...], answer: dict[str, Any]) -> None:
    found.answer = web.json_response(answer)
    result = await found.run(*command, TOPIC, "-o", "json")
    assert json.loads(result.output) == answer


@pytest.mark.parametrize(("options", "namespace"), [((), "shop"), (("-n", "other"), "other")])
async def test_an_objects_name_is_looked_up_in_kubernetes(
    found: Servers, options: tuple[str, ...], namespace: str
) -> None:
    result = await found.run("explain", "orders", *options)
    assert result.exit_code == 0, result.output
    path = "/admin/v2/scalable/acme/shop/orders/autoScale/explain"
    assert found.asked[0][0] == f"{path}?connection={namespace}/pulsar"


async def test_a_name_with_odd_characters_stays_one_part_of_the_path(found: Servers) -> None:
    await found.run("explain", "topic://acme/shop/a?b#c%2F")
    assert found.asked[0][0] == "/admin/v2/scalable/acme/shop/a%3Fb%23c%252F/autoScale/explain"


async def test_without_a_token_one_is_requested_for_the_gateway_only(found: Servers) -> None:
    """What the kubeconfig holds is meant for the API server and never sent to the gateway."""
    result = await found.run("explain", TOPIC, "--service-account", "ops/dashboard", STOPICS_TOKEN=None)
    assert result.exit_code == 0, result.output
    ((path, body),) = found.token_requests
    assert path == "/api/v1/namespaces/ops/serviceaccounts/dashboard/token"
    assert body["spec"]["audiences"] == ["scalable-topics"]
    assert found.asked[0][1] == f"Bearer {REQUESTED}"


async def test_a_file_comes_before_the_environment(found: Servers, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-a-file\n")
    await found.run("explain", TOPIC, "--token-file", str(file))
    assert found.asked[0][1] == "Bearer from-a-file"


@pytest.mark.parametrize(
    ("status", "exit_code"), [(400, 1), (401, 1), (403, 1), (404, 1), (302, 3), (500, 3), (503, 3)]
)
async def test_what_the_gateway_refuses_is_one_line(found: Servers, status: int, exit_code: int) -> None:
    found.answer = web.json_response({"reason": "because\nof this"}, status=status, headers={"Location": "/elsewhere"})
    result = await found.run("explain", TOPIC)
    assert result.exit_code == exit_code
    assert result.stderr.startswith("stopics: ")
    assert result.stderr.count("\n") == 1
    assert f"{status} because of this" in result.stderr
    assert result.stdout == ""
    assert len(found.asked) == 1
    assert "t0ken" not in result.output


@pytest.mark.parametrize(
    ("arguments", "environment", "exit_code", "words"),
    [
        (("explain", "nothing"), {}, 1, 'get scalabletopics shop/nothing: 404 scalabletopics "nothing" not found'),
        (("explain", "topic://a/b"), {}, 2, "is not a topic name"),
        (("explain", TOPIC), {"STOPICS_TOKEN": None}, 2, "kubectl create token NAME --audience scalable-topics"),
        (("explain", TOPIC), {"STOPICS_TOKEN": "two words"}, 2, "STOPICS_TOKEN holds no token"),
        (("explain", TOPIC, "--token-file", "/nowhere"), {}, 2, "/nowhere cannot be read: FileNotFoundError"),
        (("explain", TOPIC, "--service-account", "x"), {"STOPICS_TOKEN": None}, 2, "'x' is not namespace/name"),
        (
            ("explain", TOPIC, "--service-account", "a/b"),
            {"STOPICS_TOKEN": None},
            1,
            "403 serviceaccounts is forbidden",
        ),
        (("explain", TOPIC, "--gateway", "localhost:8081"), {}, 2, "must be http(s)://host:port"),
        (("explain", TOPIC, "--gateway", "http://u:s3cret@h:1"), {}, 2, "must be http(s)://host:port"),
        (("explain", TOPIC, "--gateway", "http://127.0.0.1:1"), {}, 3, "http://127.0.0.1:1 cannot be reached"),
        (("explain", "orders"), {"KUBECONFIG": "/nowhere"}, 2, "Kubernetes credentials"),
        (("explain",), {}, 2, "Missing argument"),
        (("explain", TOPIC, "-o", "xml"), {}, 2, "Invalid value"),
        (("nonsense",), {}, 2, "No such command"),
    ],
)
async def test_failures_say_what_to_do_and_scripts_tell_them_apart(
    found: Servers, arguments: tuple[str, ...], environment: dict[str, str | None], exit_code: int, words: str
) -> None:
    result = await found.run(*arguments, **environment)
    assert result.exit_code == exit_code, result.output
    assert words in result.stderr
    assert "Traceback" not in result.output
    for secret in ("t0ken", "s3cret"):
        assert secret not in result.output


async def test_a_gateway_that_hangs_is_given_up(found: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_client, "_TIMEOUT_SECONDS", 0.2)
    found.answer = None
    result = await found.run("explain", TOPIC)
    assert result.exit_code == 3
    assert "did not answer in 0.2 s" in result.stderr


async def test_what_is_no_gateway_is_told(found: Servers) -> None:
    for text in ("<html>", "[]", "\xff"):
        found.answer = web.Response(text=text)
        result = await found.run("explain", TOPIC)
        assert result.exit_code == 3
        assert "something else than a gateway's answer" in result.stderr
