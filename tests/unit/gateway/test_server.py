"""The gateway's port and certificate."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

import aiohttp
import pytest

from dev.pki import Authority
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.gateway.peer_client import PeerClient, PeerError
from scalable_topics_operator.gateway.peer_transport import PeerTransport
from scalable_topics_operator.gateway.server import Certificate, GatewayUnusable, load_certificate
from scalable_topics_operator.release_check import trust
from scalable_topics_operator.settings import parse_settings
from tests.unit.gateway.api_server import GOOD, api_server
from tests.unit.gateway.replica import PEER_TOKEN, replica
from tests.unit.gateway.test_gateway import EXPLAIN

PULSAR = ObjectKey(CONNECTIONS.plural, "shop", "pulsar")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    made = Authority(tmp_path_factory.mktemp("pki"))
    made.create()
    return made


def certificate(authority: Authority, name: str) -> Certificate:
    # As a Service's: it does not name the addresses at which replicas reach each other.
    pair = authority.server(name, "DNS:gateway.example")
    found = load_certificate(str(pair.certificate), str(pair.key))
    assert found is not None
    return found


async def test_replicas_know_each_other_by_the_certificate_they_share(authority: Authority) -> None:
    shared, other = certificate(authority, "shared"), certificate(authority, "other")
    async with (
        api_server() as (_, kube),
        replica(kube, certificate=shared) as leader,
        replica(kube, certificate=shared) as follower,
        PeerTransport(other.fingerprint) as stranger,
    ):
        leader.known.leader = Peer("r", leader.gateway.address, is_me=True)
        leader.known.view = {"a": 1}
        follower.known.leader = Peer("r", leader.gateway.address, is_me=False)
        unchecked = ssl.create_default_context()
        unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
        headers = {"Authorization": f"Bearer {GOOD}"}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"https://{follower.gateway.address}{EXPLAIN}", ssl=unchecked) as response,
        ):
            assert (response.status, await response.json()) == (200, {"a": 1})
        with pytest.raises(PeerError, match="ServerFingerprintMismatch"):
            await PeerClient(PEER_TOKEN, stranger).load(leader.gateway.address, PULSAR)


def test_files_that_are_no_certificate_are_named(tmp_path: Path) -> None:
    assert load_certificate("", "") is None
    junk = tmp_path / "junk.pem"
    junk.write_text("nothing of use")
    for name in (str(junk), str(tmp_path / "missing")):
        with pytest.raises(GatewayUnusable, match=Path(name).name):
            load_certificate(name, name)


@pytest.mark.parametrize(
    ("host", "address", "expected"),
    [
        ("127.0.0.1", "", "127.0.0.1:"),
        ("127.0.0.1", "10.0.0.7:8081", "10.0.0.7:8081"),
        ("0.0.0.0", "10.0.0.7:8081", "10.0.0.7:8081"),
        # Everywhere is no place to be reached at.
        ("0.0.0.0", "", ""),
    ],
)
async def test_where_other_replicas_reach_it(host: str, address: str, expected: str) -> None:
    async with api_server() as (_, kube), replica(kube, host=host, address=address) as one:
        assert one.gateway.address.startswith(expected)
        assert bool(one.gateway.address) == bool(expected)


async def test_of_several_addresses_others_are_told_the_first() -> None:
    """As in a pod: its own address, and loopback for whoever forwards a port."""
    async with api_server() as (_, kube), replica(kube, host="127.0.0.2,127.0.0.1") as one:
        own, _, port = one.gateway.address.partition(":")
        assert own == "127.0.0.2"
        async with aiohttp.ClientSession() as session:
            for host in ("127.0.0.2", "127.0.0.1"):
                async with session.get(f"http://{host}:{port}{EXPLAIN}") as response:
                    assert response.status == 401


async def test_a_certificate_can_be_trusted_itself_whoever_signed_it(authority: Authority) -> None:
    """As `helm test` does, which knows the gateway by the name of its Service."""
    pair, other = (authority.server(name, "DNS:gateway.example") for name in ("mine", "another"))
    found = load_certificate(str(pair.certificate), str(pair.key))
    async with (
        api_server() as (_, kube),
        replica(kube, certificate=found) as one,
        aiohttp.ClientSession() as session,
    ):
        url = f"https://{one.gateway.address}{EXPLAIN}"
        async with session.get(url, ssl=trust(pair.certificate)) as response:
            assert response.status == 401
        with pytest.raises(aiohttp.ClientSSLError):
            await session.get(url, ssl=trust(other.certificate))


async def test_a_port_that_is_taken_is_named() -> None:
    async with api_server() as (_, kube), replica(kube) as one:
        port = int(one.gateway.address.rpartition(":")[2])
        with pytest.raises(GatewayUnusable, match=f"127.0.0.1:{port}"):
            async with replica(kube, port=port):
                pass


async def test_it_ends_at_once_whatever_is_under_way() -> None:
    async with api_server() as (server, kube):
        async with replica(kube) as one:
            server.gate.clear()
            async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {GOOD}"}) as session:
                waiting = asyncio.create_task(session.get(f"http://{one.gateway.address}{EXPLAIN}"))
                while not server.asked:
                    await asyncio.sleep(0.01)
                began = time.monotonic()
                await one.gateway.__aexit__()
                assert time.monotonic() - began < 1.2
                await asyncio.wait((waiting,))
                assert waiting.exception() is not None
        server.gate.set()


def test_an_address_is_host_and_port() -> None:
    assert parse_settings(["--gateway-address=10.0.0.7:8081"], {}).gateway_address == "10.0.0.7:8081"
    with pytest.raises(SystemExit):
        parse_settings(["--gateway-address=http://10.0.0.7:8081"], {})
