"""Hazards C62 and C63 over TLS: private authorities, client certificates, and redirects that give up encryption."""

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from aiohttp import web

from dev.pki import Authority, KeyPair
from scalable_topics_operator.backends.admin import ClientCertificate, Credentials, FixedCredentials, Token
from scalable_topics_operator.backends.admin.call import Call
from scalable_topics_operator.backends.admin.reasons import About
from scalable_topics_operator.operations.errors import BackendRefused, BackendUnavailable

from .scripted_server import TOKEN, RotatingCredentials, connect, ok, redirect, serve

READ = Call("get-stats", "GET", "/stats", "persistent://t/n/x", About.TOPIC)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    authority = Authority(tmp_path_factory.mktemp("pki"))
    authority.create()
    return authority


@pytest.fixture(scope="module")
def server_pair(authority: Authority) -> KeyPair:
    return authority.server("server", "IP:127.0.0.1")


@pytest.fixture
def server_tls(server_pair: KeyPair) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(server_pair.certificate, server_pair.key)
    return context


@pytest.fixture
def trusting(authority: Authority) -> Callable[..., Credentials]:
    def credentials(certificate: ClientCertificate | None = None, verify_hostname: bool = True) -> Credentials:
        return Credentials(Token(TOKEN), certificate, authority.pair.certificate.read_bytes(), verify_hostname)

    return credentials


async def test_c62_a_private_authority_from_a_secret_is_trusted(
    server_tls: ssl.SSLContext, trusting: Callable[..., Credentials]
) -> None:
    async with (
        serve(ok({}), tls=server_tls) as server,
        connect(server, source=FixedCredentials(trusting())) as http,
    ):
        await http.send(READ)
        assert server.seen[0].authorization == f"Bearer {TOKEN}"


async def test_c62_an_unknown_authority_gets_no_request(server_tls: ssl.SSLContext) -> None:
    async with serve(ok({}), tls=server_tls) as server, connect(server) as http:
        with pytest.raises(BackendUnavailable, match="certificate verify failed"):
            await http.send(READ)
        assert server.seen == []


async def test_c60_a_renewed_authority_is_read_when_the_handshake_fails(
    server_tls: ssl.SSLContext, trusting: Callable[..., Credentials]
) -> None:
    source = RotatingCredentials([Credentials(Token(TOKEN)), trusting()])
    async with serve(ok({}), tls=server_tls) as server, connect(server, source=source) as http:
        await http.send(READ)
        assert source.refreshes == 1
        assert len(server.seen) == 1


async def test_a_certificate_of_another_name_is_refused_unless_names_are_not_checked(
    authority: Authority, trusting: Callable[..., Credentials]
) -> None:
    pair = authority.server("elsewhere", "DNS:elsewhere.example")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    async with serve(ok({}), tls=context) as server:
        async with connect(server, source=FixedCredentials(trusting())) as http:
            with pytest.raises(BackendUnavailable, match="IP address mismatch"):
                await http.send(READ)
        async with connect(server, source=FixedCredentials(trusting(verify_hostname=False))) as http:
            await http.send(READ)


async def test_a_client_certificate_is_shown(
    authority: Authority, server_tls: ssl.SSLContext, trusting: Callable[..., Credentials], tmp_path: Path
) -> None:
    server_tls.load_verify_locations(authority.pair.certificate)
    server_tls.verify_mode = ssl.CERT_REQUIRED
    pair = authority.client("operator", "/CN=operator")
    certificate = ClientCertificate(pair.certificate.read_bytes(), pair.key.read_bytes())
    names: list[object] = []

    async def remember(request: web.Request) -> web.Response:
        assert request.transport is not None
        names.append(request.transport.get_extra_info("peercert")["subject"])
        return web.json_response({})

    async with serve(remember, tls=server_tls) as server:
        async with connect(server, source=FixedCredentials(trusting(certificate))) as http:
            await http.send(READ)
        async with connect(server, source=FixedCredentials(trusting())) as http:
            with pytest.raises(BackendUnavailable):
                await http.send(READ)
    assert names == [((("commonName", "operator"),),)]


async def test_c63_a_redirect_from_https_to_http_is_refused_even_to_a_listed_broker(
    server_tls: ssl.SSLContext, trusting: Callable[..., Credentials]
) -> None:
    async with (
        serve(ok({})) as plain,
        serve(redirect(plain.url), tls=server_tls) as admin,
        connect(admin, source=FixedCredentials(trusting()), trusted_brokers=(plain.host_and_port,)) as http,
    ):
        admin.brokers = [plain.host_and_port]
        with pytest.raises(BackendRefused, match="redirects from https to http://"):
            await http.send(READ)
        assert plain.seen == []


async def test_c63_encryption_is_not_given_up_by_a_detour_either(
    server_tls: ssl.SSLContext, trusting: Callable[..., Credentials]
) -> None:
    async with (
        serve(ok({})) as plain,
        serve(redirect(plain.url), tls=server_tls) as middle,
        serve(redirect(middle.url)) as admin,
        connect(
            admin,
            source=FixedCredentials(trusting()),
            trusted_brokers=(plain.host_and_port, middle.host_and_port),
        ) as http,
    ):
        with pytest.raises(BackendRefused, match="redirects from https to http://"):
            await http.send(READ)
        assert plain.seen == []


async def test_r34_a_listed_broker_may_redirect_to_its_tls_port(
    server_tls: ssl.SSLContext, trusting: Callable[..., Credentials]
) -> None:
    """Brokers are listed with their plain port and redirect TLS callers to the other one."""
    async with (
        serve(ok({}), tls=server_tls) as owner,
        serve(redirect(owner.url), tls=server_tls) as admin,
        connect(admin, source=FixedCredentials(trusting())) as http,
    ):
        admin.brokers = ["127.0.0.1:8080"]
        await http.send(READ)
        assert owner.seen[0].authorization == f"Bearer {TOKEN}"


async def test_unusable_tls_material_is_refused_naming_the_call(server_tls: ssl.SSLContext) -> None:
    broken = FixedCredentials(Credentials(trusted_ca_pem=b"no pem"))
    async with serve(ok({}), tls=server_tls) as server, connect(server, source=broken) as http:
        with pytest.raises(BackendRefused, match=r"get-stats persistent://t/n/x: the trusted CA bundle"):
            await http.send(READ)


async def test_c63_a_lookup_does_not_lead_from_https_to_http_even_to_a_listed_broker(
    server_tls: ssl.SSLContext, trusting: Callable[..., Credentials]
) -> None:
    async def no_answer(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(30)
        return web.Response()

    publish = Call(
        "publish", "POST", "/x", "persistent://t/n/x", About.TOPIC, owner_path="/last", lookup_path="/lookup"
    )
    async with serve(ok()) as plain:
        found = web.json_response({"httpUrlTls": plain.url})
        async with (
            serve(ok(), no_answer, ok(), found, ok(), tls=server_tls) as proxy,
            connect(proxy, source=FixedCredentials(trusting()), request_timeout_seconds=1.5) as http,
        ):
            proxy.brokers = [plain.host_and_port]
            await http.send(publish)
            assert plain.seen == []
            assert proxy.seen[-1].path == publish.path
