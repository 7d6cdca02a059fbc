"""Hazard C60: rotated credentials are used without a restart."""

import asyncio

import pytest
from aiohttp import web

from scalable_topics_operator.backends.admin import Credentials, FixedCredentials, Token
from scalable_topics_operator.backends.admin.call import Call
from scalable_topics_operator.backends.admin.reasons import About
from scalable_topics_operator.operations.errors import AccessDenied, BackendRefused

from .scripted_server import FakeClock, RotatingCredentials, connect, redirect, serve

READ = Call("get-stats", "GET", "/stats", "persistent://t/n/x", About.TOPIC, right="any grant")
OLD, NEW = Credentials(Token("old-token")), Credentials(Token("new-token"))


async def _only_new(request: web.Request) -> web.Response:
    if request.headers.get("Authorization") == "Bearer new-token":
        return web.json_response({})
    return web.Response(status=401, text="<html><title>Error 401 Authentication required</title></html>")


async def _lacks_a_right(_: web.Request) -> web.Response:
    return web.json_response({"reason": "Unauthorized to validateTopicOperation [X]"}, status=401)


async def test_c60_a_refused_token_is_read_again_and_the_call_goes_through() -> None:
    source = RotatingCredentials([OLD, NEW])
    async with serve(_only_new) as server, connect(server, source=source) as http:
        assert (await http.send(READ)).status == 200
        assert [seen.authorization for seen in server.seen] == ["Bearer old-token", "Bearer new-token"]
        await http.send(READ)
        assert len(server.seen) == 3
        assert source.refreshes == 1


async def test_c60_calls_refused_together_read_the_secret_once() -> None:
    source = RotatingCredentials([OLD, NEW])
    async with serve(_only_new) as server, connect(server, source=source) as http:
        await asyncio.gather(*(http.send(READ) for _ in range(12)))
    assert source.refreshes == 1


async def test_c60_credentials_that_stay_wrong_are_refused_after_one_look() -> None:
    source = RotatingCredentials([OLD])
    async with serve(_only_new) as server, connect(server, source=source) as http:
        with pytest.raises(AccessDenied, match="does not accept the connection's credentials") as denied:
            await http.send(READ)
        assert len(server.seen) == 1
        assert source.refreshes == 1
        assert "old-token" not in str(denied.value)


async def test_c60_the_new_token_also_goes_along_a_redirect() -> None:
    source = RotatingCredentials([OLD, NEW])
    async with (
        serve(_only_new) as owner,
        serve(redirect(owner.url)) as admin,
        connect(admin, source=source, trusted_brokers=(owner.host_and_port,)) as http,
    ):
        await http.send(READ)
        assert [seen.authorization for seen in owner.seen] == ["Bearer old-token", "Bearer new-token"]


async def test_a_role_that_lacks_a_right_does_not_have_the_secret_read_at_every_call() -> None:
    clock = FakeClock()
    source = RotatingCredentials([OLD])
    async with serve(_lacks_a_right) as server, connect(server, source=source, clock=clock) as http:
        for _ in range(10):
            with pytest.raises(AccessDenied, match="the connection's role needs: any grant"):
                await http.send(READ)
        assert source.refreshes == 1
        clock.now += 6
        with pytest.raises(AccessDenied):
            await http.send(READ)
        assert source.refreshes == 2


async def test_a_source_that_fails_tells_so() -> None:
    class Broken(FixedCredentials):
        async def current(self) -> Credentials:
            raise BackendRefused("Secret ns/name does not exist")

    async with serve(_only_new) as server, connect(server, source=Broken()) as http:
        with pytest.raises(BackendRefused, match="Secret ns/name does not exist"):
            await http.send(READ)
        assert server.seen == []
