"""How the gateway is reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scalable_topics.layout import TopicName
from scalable_topics.sdk import Client, ClientError, ConnectError, GatewayOptions
from scalable_topics.sdk import sync as blocking

SECRET = "s3cret-t0ken"
TOPIC = TopicName.parse("acme/shop/orders")


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"url": "ftp://host", "token": "x"}, "http:// or https://"),
        ({"url": "https://", "token": "x"}, "name a host"),
        ({"url": "https://me:you@host", "token": "x"}, "without credentials"),
        ({"url": "https://host?token=x", "token": "x"}, "without a query"),
        ({"url": "https://host"}, "either a token or a token_file"),
        ({"url": "https://host", "token": "x", "token_file": "y"}, "either a token or a token_file"),
        ({"url": "https://host", "token": "x", "scheme": "Basic"}, "Bearer or Pulsar"),
        ({"url": "https://host", "token": "x", "connection": "pulsar"}, "namespace/name"),
        ({"url": "https://host", "token": "x", "connect_timeout_seconds": 0}, "connect_timeout_seconds is 0"),
        ({"url": "https://host", "token": "x", "register_timeout_seconds": -1}, "register_timeout_seconds is -1"),
    ],
)
def test_bad_settings_say_what_is_wrong(settings: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ValueError, match=wrong):
        GatewayOptions(**settings)


def test_the_token_is_in_no_text() -> None:
    assert SECRET not in repr(GatewayOptions("https://host", token=SECRET))
    assert SECRET not in repr(GatewayOptions("https://host", token=lambda: SECRET))


def test_tokens_come_from_where_they_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{SECRET}\n")
    assert GatewayOptions("https://host", token=SECRET).authorization() == f"Bearer {SECRET}"
    assert GatewayOptions("https://host", token=lambda: SECRET, scheme="Pulsar").authorization() == f"Pulsar {SECRET}"
    assert GatewayOptions("https://host", token_file=file).authorization() == f"Bearer {SECRET}"


def _broken() -> str:
    raise RuntimeError(f"{SECRET} has expired")


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"token": ""}, "the setting token holds no token"),
        ({"token": f"{SECRET}\r\nX-Header: x"}, "characters that tokens cannot have"),
        ({"token": lambda: ""}, "the function that answers tokens holds no token"),
        ({"token": _broken}, "the function that answers tokens has failed: RuntimeError"),
        ({"token_file": "/nowhere/token"}, "cannot read the token file /nowhere/token: FileNotFoundError"),
    ],
)
def test_a_token_that_is_none_is_an_error_without_its_text(settings: dict[str, Any], wrong: str) -> None:
    with pytest.raises(ConnectError, match=wrong) as caught:
        GatewayOptions("https://host", **settings).authorization()
    assert SECRET not in str(caught.value)


def test_addresses_are_encoded() -> None:
    plain = GatewayOptions("https://host/gateway/", token="x")
    assert plain.session_url(TOPIC, "billing") == (
        "https://host/gateway/admin/v2/scalable/acme/shop/orders/subscriptions/billing/session"
    )
    named = GatewayOptions("http://host:8081", token="x", connection="team-a/pulsar")
    assert named.session_url(TopicName("acme", "shop", "a b"), "x/y?z") == (
        "http://host:8081/admin/v2/scalable/acme/shop/a%20b/subscriptions/x%2Fy%3Fz/session?connection=team-a%2Fpulsar"
    )


def test_certificates_are_checked_where_there_are_any(tmp_path: Path) -> None:
    assert GatewayOptions("http://host", token="x").tls() is None
    assert GatewayOptions("https://host", token="x").tls() is not None
    with pytest.raises(ConnectError, match="cannot read the CA bundle"):
        GatewayOptions("https://host", token="x", ca_file=tmp_path / "none").tls()
    (tmp_path / "empty").touch()
    with pytest.raises(ConnectError, match="cannot read the CA bundle"):
        GatewayOptions("https://host", token="x", ca_file=tmp_path / "empty").tls()


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ({"receiver_queue_size": 0}, "receiver_queue_size is 0"),
        ({"consumer_name": ""}, "consumer_name is empty"),
        ({"handover_seconds": -1}, "handover_seconds is -1"),
        ({"handover_seconds": 30}, "less than 30"),
    ],
)
async def test_bad_settings_of_a_consumer_say_what_is_wrong(settings: dict[str, Any], wrong: str) -> None:
    async with Client("pulsar://localhost:1", gateway=GatewayOptions("https://host", token="x")) as client:
        with pytest.raises(ValueError, match=wrong):
            await client.stream_consumer("acme/shop/orders", "billing", **settings)


async def test_a_stream_consumer_needs_a_gateway() -> None:
    async with Client("pulsar://localhost:1") as client:
        with pytest.raises(ClientError, match="gateway=GatewayOptions"):
            await client.stream_consumer("topic://acme/shop/orders", "billing")
        with pytest.raises(ClientError, match="needs a name"):
            await client.stream_consumer("topic://acme/shop/orders", "")


def test_a_blocking_client_has_one_too() -> None:
    with blocking.Client("pulsar://localhost:1") as client, pytest.raises(ClientError, match="gateway=GatewayOptions"):
        client.stream_consumer("topic://acme/shop/orders", "billing")
