"""Hazard C63: credentials follow a redirect to brokers of the cluster, and nowhere else."""

import asyncio
from dataclasses import replace

import pytest
from aiohttp import web

from scalable_topics_operator.backends.admin.call import Call
from scalable_topics_operator.backends.admin.credentials import Credentials
from scalable_topics_operator.backends.admin.reasons import About
from scalable_topics_operator.operations.errors import BackendRefused, BackendUnavailable

from .scripted_server import TOKEN, FakeClock, connect, ok, reason, redirect, serve

CALL = Call("create-topic", "PUT", "/admin/v2/persistent/t/n/x", "persistent://t/n/x", About.TOPIC, body={"a": "b"})
BEARER = f"Bearer {TOKEN}"


async def test_c63_the_token_and_the_body_go_along_to_a_listed_broker() -> None:
    async with serve(ok()) as owner, serve(redirect(owner.url)) as admin, connect(admin) as http:
        admin.brokers = [admin.host_and_port, owner.host_and_port]
        assert (await http.send(CALL)).status == 204
        (seen,) = owner.seen
        assert (seen.method, seen.path) == ("PUT", CALL.path)
        assert seen.authorization == BEARER
        assert seen.body == '{"a":"b"}'
        assert seen.content_type == "application/json"


async def test_c63_an_unlisted_port_of_the_same_host_never_sees_the_token() -> None:
    async with serve(ok()) as thief, serve(redirect(thief.url)) as admin, connect(admin) as http:
        admin.brokers = [admin.host_and_port]
        with pytest.raises(BackendRefused, match=r"neither a broker the cluster lists.*nothing was sent") as refused:
            await http.send(CALL)
        assert thief.seen == []
        assert thief.host_and_port in str(refused.value)
        assert TOKEN not in str(refused.value)


async def test_c63_a_second_hop_is_judged_like_the_first() -> None:
    async with (
        serve(ok()) as thief,
        serve(redirect(thief.url)) as owner,
        serve(redirect(owner.url)) as admin,
        connect(admin) as http,
    ):
        admin.brokers = [owner.host_and_port]
        with pytest.raises(BackendRefused, match="neither a broker"):
            await http.send(CALL)
        assert [seen.authorization for seen in owner.seen] == [BEARER]
        assert thief.seen == []


async def test_c63_a_broker_cannot_vouch_for_another_by_its_own_list() -> None:
    async with (
        serve(ok()) as thief,
        serve(redirect(thief.url)) as owner,
        serve(redirect(owner.url)) as admin,
        connect(admin, trusted_brokers=(owner.host_and_port,)) as http,
    ):
        owner.brokers = [thief.host_and_port]
        admin.brokers = [owner.host_and_port]
        with pytest.raises(BackendRefused):
            await http.send(CALL)
        assert thief.seen == []
        assert owner.calls("/admin/v2/brokers") == []


async def test_c63_a_redirect_of_the_broker_list_itself_is_not_followed() -> None:
    async with serve(ok()) as thief, serve(redirect(thief.url)) as admin, connect(admin) as http:
        thief.brokers = [thief.host_and_port]
        with pytest.raises(BackendRefused, match="broker list could not be read"):
            await http.send(CALL)
        assert thief.seen == []


async def test_c63_user_information_in_a_redirect_is_refused() -> None:
    async with serve(ok()) as thief, serve(ok()) as admin, connect(admin) as http:
        admin.brokers = [admin.host_and_port]
        admin.replies = [redirect(f"http://{admin.host_and_port}@{thief.host_and_port}/x")]
        with pytest.raises(BackendRefused, match="user information"):
            await http.send(CALL)
        assert thief.seen == []


async def test_without_the_right_to_list_brokers_the_error_says_what_to_do() -> None:
    async with serve(ok()) as owner, serve(redirect(owner.url)) as admin, connect(admin) as http:
        admin.brokers = web.json_response({"reason": "Unauthorized to [LIST_BROKERS]"}, status=401)
        with pytest.raises(BackendRefused, match=r"trustedBrokers.*Unauthorized to \[LIST_BROKERS\]"):
            await http.send(CALL)
    async with (
        serve(ok()) as owner,
        serve(redirect(owner.url)) as admin,
        connect(admin, trusted_brokers=(owner.host_and_port,)) as http,
    ):
        assert (await http.send(CALL)).status == 204
        assert admin.calls("/admin/v2/brokers") == []


async def test_the_broker_list_is_read_when_a_new_broker_shows_up_but_not_all_the_time() -> None:
    clock = FakeClock()
    async with (
        serve(ok()) as first,
        serve(ok()) as second,
        serve(redirect(first.url)) as admin,
        connect(admin, clock=clock) as http,
    ):
        admin.brokers = [first.host_and_port]
        for _ in range(3):
            await http.send(CALL)
        assert len(admin.calls("/admin/v2/brokers")) == 1
        admin.replies = [redirect(second.url)]
        admin.brokers = [first.host_and_port, second.host_and_port]
        clock.now += 1
        # Too soon to ask again: not an error that needs somebody's hand.
        with pytest.raises(BackendUnavailable, match="neither a broker"):
            await http.send(CALL)
        clock.now += 6
        await http.send(CALL)
        assert len(admin.calls("/admin/v2/brokers")) == 2
        assert len(second.seen) == 1


async def test_many_calls_at_once_read_the_broker_list_once() -> None:
    async with serve(ok()) as owner, serve(redirect(owner.url)) as admin, connect(admin) as http:
        admin.brokers = [owner.host_and_port]
        await asyncio.gather(*(http.send(CALL) for _ in range(20)))
        assert len(admin.calls("/admin/v2/brokers")) == 1
        assert len(owner.seen) == 20


async def test_a_redirect_loop_ends() -> None:
    async with serve(ok()) as admin, connect(admin) as http:
        admin.replies = [redirect(admin.url)]
        with pytest.raises(BackendUnavailable, match="more than 5 redirects"):
            await http.send(CALL)
        assert len(admin.seen) == 4 * 6


async def test_a_repeat_begins_at_the_admin_url_again() -> None:
    async with (
        serve(reason(500, "Namespace bundle t/n/0x0_0x4 is being unloaded"), ok()) as owner,
        serve(redirect(owner.url)) as admin,
        connect(admin, trusted_brokers=(owner.host_and_port,)) as http,
    ):
        await http.send(CALL)
        assert len(admin.seen) == 2
        assert len(owner.seen) == 2


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_other_redirects_are_no_answer_of_a_broker(status: int) -> None:
    async with serve(ok()) as page, serve(redirect(page.url, status)) as admin, connect(admin) as http:
        with pytest.raises(BackendRefused, match=f"redirect {status}"):
            await http.send(CALL)
        assert page.seen == []


async def test_a_relative_redirect_stays_on_the_server() -> None:
    async with serve(redirect("/elsewhere"), ok()) as admin, connect(admin) as http:
        await http.send(CALL)
        assert [seen.path for seen in admin.seen] == [CALL.path, "/elsewhere"]


PRODUCE = Call("publish", "POST", "/topics/x", "persistent://t/n/x", About.TOPIC, owner_path="/admin/v2/x/last")


async def test_r20_who_serves_a_topic_is_asked_before_each_publish() -> None:
    async with serve(ok()) as owner, serve(redirect(owner.url)) as admin, connect(admin) as http:
        admin.brokers = [admin.host_and_port, owner.host_and_port]
        for _ in range(2):
            await http.send(PRODUCE)
        assert [seen.path for seen in owner.seen] == [PRODUCE.owner_path, PRODUCE.path] * 2
        assert admin.calls(PRODUCE.path) == []


async def test_r20_an_owner_found_ahead_serves_one_publish() -> None:
    async with serve(ok()) as owner, serve(redirect(owner.url)) as admin, connect(admin) as http:
        admin.brokers = [admin.host_and_port, owner.host_and_port]
        await http.find_owner(PRODUCE)
        for _ in range(2):
            await http.send(PRODUCE)
        assert [seen.path for seen in owner.seen] == [
            PRODUCE.owner_path,
            PRODUCE.path,
            PRODUCE.owner_path,
            PRODUCE.path,
        ]


async def test_r20_an_owner_found_long_ago_is_looked_for_again() -> None:
    clock = FakeClock()
    async with serve(ok()) as owner, serve(redirect(owner.url)) as admin, connect(admin, clock=clock) as http:
        admin.brokers = [admin.host_and_port, owner.host_and_port]
        await http.find_owner(PRODUCE)
        await clock.sleep(1)
        await http.send(PRODUCE)
        assert len(owner.calls(str(PRODUCE.owner_path))) == 2


async def test_r20_looking_ahead_for_an_owner_in_vain_is_quiet() -> None:
    async with serve(reason(404, "no such topic")) as admin, connect(admin) as http:
        await http.find_owner(PRODUCE)


PROXIED = replace(PRODUCE, lookup_path="/lookup/x")


async def _no_answer(_: web.Request) -> web.StreamResponse:
    await asyncio.sleep(30)
    return web.Response()


async def test_r20_behind_a_proxy_the_owner_is_looked_up_once_a_publish_is_not_answered() -> None:
    """The proxy finds the owner for a GET, and sends the publish to a broker that served the topic before."""
    async with serve(ok()) as owner:
        found = web.json_response({"httpUrl": owner.url})
        async with serve(ok(), _no_answer, ok(), found) as proxy, connect(proxy, request_timeout_seconds=1.5) as http:
            proxy.brokers = [owner.host_and_port]
            await http.send(PROXIED)
            assert [seen.path for seen in proxy.seen] == [
                PROXIED.owner_path,
                PROXIED.path,
                PROXIED.owner_path,
                PROXIED.lookup_path,
                "/admin/v2/brokers",
            ]
            assert [seen.path for seen in owner.seen] == [PROXIED.path]


async def test_r20_credentials_do_not_follow_a_lookup_to_a_server_that_is_no_broker() -> None:
    async with serve(ok()) as stranger:
        found = web.json_response({"httpUrl": stranger.url})
        async with (
            serve(ok(), _no_answer, ok(), found, ok()) as proxy,
            connect(proxy, request_timeout_seconds=1.5) as http,
        ):
            proxy.brokers = []
            await http.send(PROXIED)
            assert stranger.seen == []
            assert proxy.seen[-1].path == PROXIED.path


async def test_r20_a_lookup_that_says_nothing_of_use_leaves_the_publish_to_the_proxy() -> None:
    page = web.Response(text="<html>")
    async with (
        serve(ok(), _no_answer, ok(), page, ok()) as proxy,
        connect(proxy, request_timeout_seconds=1.5) as http,
    ):
        await http.send(PROXIED)
        assert [seen.path for seen in proxy.seen][-2:] == [PROXIED.lookup_path, PROXIED.path]


class _NoCredentials:
    """A Secret that is gone."""

    async def current(self) -> Credentials:
        raise BackendUnavailable("the Secret cannot be read")

    async def refresh(self) -> Credentials:
        return await self.current()


async def test_r20_looking_ahead_for_an_owner_without_credentials_is_quiet() -> None:
    """The layout is committed by then, and is still to be published."""
    async with serve(ok()) as admin, connect(admin, source=_NoCredentials()) as http:
        await http.find_owner(PRODUCE)
        assert admin.seen == []
