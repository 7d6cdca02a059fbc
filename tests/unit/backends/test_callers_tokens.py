"""R33: a caller's own token is judged by the cluster, and goes nowhere but to the cluster."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from aiohttp import web

from dev.pki import Authority
from scalable_topics_operator.backends.admin import ClientCertificate, Credentials, FixedCredentials, Token
from scalable_topics_operator.backends.admin.lookup_api import LookupApi, TokenVerdict
from scalable_topics_operator.operations.errors import BackendRefused, BackendUnavailable, TopicMissing

from .scripted_server import TOKEN, FakeClock, connect, ok, reason, redirect, serve

SEGMENT = "persistent://acme/shop/orders-segment-0000-ffff-0"
LOOKUP = "/lookup/v2/topic/persistent/acme/shop/orders-segment-0000-ffff-0"
CALLERS = "callers-t0ken"
ALLOWED = TokenVerdict(authenticated=True, allowed=True)


@pytest.mark.parametrize(
    ("status", "text", "authenticated"),
    [
        (401, "Authentication required", False),
        (401, "Unauthorized to validateTopicOperation for originalPrincipal [null] and clientAppId [client]", True),
        (403, "Don't have permission to administrate resources on this topic", True),
    ],
)
async def test_R33_a_refused_token_is_told_apart_from_a_role_without_the_right(
    status: int, text: str, authenticated: bool
) -> None:
    async with serve(reason(status, text)) as server, connect(server) as http:
        verdict = await LookupApi(http).judge(SEGMENT, Token(CALLERS))
        assert verdict == TokenVerdict(authenticated, False, text)
        (seen,) = server.seen
        assert (seen.method, seen.path, seen.authorization) == ("GET", LOOKUP, f"Bearer {CALLERS}")


async def test_R33_it_follows_to_brokers_that_the_operator_finds_listed_and_no_further() -> None:
    async with (
        serve(ok({"brokerUrl": "pulsar://b:6650"})) as owner,
        serve(redirect(owner.url)) as admin,
        connect(admin) as http,
    ):
        admin.brokers = [owner.host_and_port]
        assert await LookupApi(http).judge(SEGMENT, Token(CALLERS)) == ALLOWED
        assert [seen.authorization for seen in owner.seen] == [f"Bearer {CALLERS}"]
        # Whom to trust is not for the caller's rights to decide.
        assert [seen.authorization for seen in admin.calls("/admin/v2/brokers")] == [f"Bearer {TOKEN}"]
    async with serve(ok({})) as thief, serve(redirect(thief.url)) as admin, connect(admin) as http:
        admin.brokers = [admin.host_and_port]
        with pytest.raises(BackendRefused, match="neither a broker the cluster lists") as refused:
            await LookupApi(http).judge(SEGMENT, Token(CALLERS))
        assert thief.seen == []
        assert CALLERS not in str(refused.value)


async def test_the_operators_certificate_does_not_vouch_for_a_caller(tmp_path: Path) -> None:
    """Brokers that know the operator by its certificate would find it to be the caller."""
    authority = Authority(tmp_path)
    authority.create()
    pair, own = authority.server("server", "IP:127.0.0.1"), authority.client("operator", "/CN=operator")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.pair.certificate))
    tls.load_cert_chain(pair.certificate, pair.key)
    tls.verify_mode = ssl.CERT_OPTIONAL
    shown: list[bool] = []

    async def note(request: web.Request) -> web.Response:
        assert request.transport is not None
        shown.append(bool(request.transport.get_extra_info("peercert")))
        return web.json_response({"brokerUrlTls": "pulsar+ssl://b:6651", "brokerUrl": "pulsar://b:6650"})

    certificate = ClientCertificate(own.certificate.read_bytes(), own.key.read_bytes())
    source = FixedCredentials(Credentials(None, certificate, authority.pair.certificate.read_bytes()))
    async with serve(note, tls=tls) as server, connect(server, source=source) as http:
        lookups = LookupApi(http)
        assert await lookups.service_url(SEGMENT) == "pulsar+ssl://b:6651"
        assert await lookups.judge(SEGMENT, Token(CALLERS)) == ALLOWED
        assert await lookups.service_url(SEGMENT) == "pulsar+ssl://b:6651"
        assert shown == [True, False, True]
        assert [seen.authorization for seen in server.seen] == [None, f"Bearer {CALLERS}", None]


async def test_callers_hold_up_nobody_else_and_are_few_at_a_time() -> None:
    gate, under_way, most = asyncio.Event(), 0, 0

    async def slow(request: web.Request) -> web.Response:
        nonlocal under_way, most
        if request.headers["Authorization"] == f"Bearer {TOKEN}":
            return web.json_response({"brokerUrl": "pulsar://b:6650"})
        under_way += 1
        most = max(most, under_way)
        await gate.wait()
        under_way -= 1
        return web.json_response({})

    async with serve(slow) as server, connect(server, max_concurrent_requests=1) as http:
        lookups = LookupApi(http)
        judging = [asyncio.create_task(lookups.judge(SEGMENT, Token(f"{CALLERS}-{number}"))) for number in range(20)]
        while under_way < 4:
            await asyncio.sleep(0.01)
        assert await lookups.service_url(SEGMENT) == "pulsar://b:6650"
        gate.set()
        assert await asyncio.gather(*judging) == [ALLOWED] * 20
        assert most == 4


async def test_a_cluster_that_cannot_say_is_asked_again_and_given_up() -> None:
    clock = FakeClock()
    async with serve(reason(503, "not today")) as server, connect(server, clock=clock) as http:
        with pytest.raises(BackendUnavailable):
            await LookupApi(http).judge(SEGMENT, Token(CALLERS))
        assert len(server.seen) == 4
    async with serve(reason(404, "HTTP 404")) as server, connect(server) as http:
        with pytest.raises(TopicMissing):
            await LookupApi(http).judge(SEGMENT, Token(CALLERS))


async def test_a_broker_without_an_address_of_the_wanted_kind_is_no_address() -> None:
    async with serve(ok({"brokerUrlTls": "pulsar+ssl://b:6651"})) as server, connect(server) as http:
        assert await LookupApi(http).service_url(SEGMENT) == ""
    async with serve(ok([])) as server, connect(server) as http:
        assert await LookupApi(http).service_url(SEGMENT) == ""
