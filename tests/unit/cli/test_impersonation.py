"""Whoever acts as another user by their kubeconfig does so in every request, as with kubectl."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from scalable_topics_operator.cli.kubernetes import api_server
from scalable_topics_operator.cluster.resources import TOPICS
from tests.unit.cli.kubeconfig_file import answering

ACTING = {
    "as": "jane",
    "as-uid": "7",
    "as-groups": ["developers", "viewers"],
    "as-user-extra": {"Reason/why": ["drill", "training"]},
}
HEADERS = [
    ("Impersonate-Extra-%52eason%2fwhy", "drill"),
    ("Impersonate-Extra-%52eason%2fwhy", "training"),
    ("Impersonate-Group", "developers"),
    ("Impersonate-Group", "viewers"),
    ("Impersonate-Uid", "7"),
    ("Impersonate-User", "jane"),
]


class _ApiServer:
    """Answers each request by its kind and remembers as whom it was made."""

    def __init__(self) -> None:
        self.seen: dict[str, list[tuple[str, str]]] = {}
        self.is_expired = False

    async def answer(self, request: web.Request) -> web.StreamResponse:
        if self.is_expired:
            self.is_expired = False
            return web.json_response({"message": "Unauthorized"}, status=401)
        what = "socket" if "Upgrade" in request.headers else f"{request.method} {request.path.rsplit('/', 1)[1]}"
        found = [(name, value) for name, value in request.headers.items() if name.startswith("Impersonate-")]
        self.seen["watch" if "watch" in request.query else what] = sorted(found)
        assert request.headers["Authorization"] == "Bearer kubeconfigs-t0ken"
        if what == "socket":
            socket = web.WebSocketResponse(protocols=("p",))
            await socket.prepare(request)
            await socket.close()
            return socket
        if "watch" in request.query:
            return web.Response(text=json.dumps({"type": "ADDED", "object": {}}) + "\n")
        return web.json_response({"status": {"allowed": True}})


async def _requests(folder: Path, monkeypatch: pytest.MonkeyPatch, acting: dict[str, Any]) -> _ApiServer:
    """One of every way in which the API server is asked."""
    found = _ApiServer()
    async with answering(folder, found.answer) as file:
        content = yaml.safe_load(file.read_text())
        content["users"][0]["user"].update(acting)
        file.write_text(yaml.safe_dump(content))
        monkeypatch.setenv("KUBECONFIG", str(file))
        async with api_server() as kube:
            found.is_expired = True
            await kube.get(TOPICS, "shop", "orders")
            await kube.may("list", TOPICS, None)
            assert [event async for event in kube.watch(TOPICS, "shop", "1")] == [("ADDED", {})]
            await kube.pod_log("shop", "pod", "operator", lines=1)
            async with kube.web_socket("/socket", {}, "p", "try"):
                pass
    return found


async def test_every_request_is_made_as_the_user_that_the_kubeconfig_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after the credentials were read again."""
    seen = (await _requests(tmp_path, monkeypatch, ACTING)).seen
    assert sorted(seen) == ["GET log", "GET orders", "POST selfsubjectaccessreviews", "socket", "watch"]
    assert [one for one in seen.values() if one != HEADERS] == []


async def test_who_acts_as_nobody_else_sends_nothing_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = (await _requests(tmp_path, monkeypatch, {})).seen
    assert len(seen) == 5
    assert [one for one in seen.values() if one] == []
