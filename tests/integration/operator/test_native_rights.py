"""Two levels of credentials to brokers of Pulsar 5: a namespace's admin, and a superuser for changes of layouts."""

from __future__ import annotations

from typing import Any

import pytest

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import CONNECTIONS
from tests.support import manifests
from tests.support.native_world import NativeWorld
from tests.support.world import condition, phase
from tests.support.world_making import random_name

pytestmark = pytest.mark.native

# Role namespace-admin administers this tenant.
_NAMESPACE = "team/apps"
_TOKENS = ("admin-token", "superuser-token", "client-token")


@pytest.fixture
async def levels(native: NativeWorld, native_pulsar: PulsarAccess) -> NativeWorld:
    """Secrets of both levels."""
    tokens = (native_pulsar.namespace_admin_token, native_pulsar.superuser_token, native_pulsar.client_token)
    for name, token in zip(_TOKENS, tokens, strict=True):
        await native.world.apply(manifests.secret(f"{_own(native)}-{name}", token=token))
    return native


def _own(native: NativeWorld) -> str:
    return native.world.pulsar_namespace.split("/")[1]


async def _connect(levels: NativeWorld, ordinary: str, superuser: str | None = None) -> str:
    """A connection with ordinary credentials, and with others for what takes a superuser."""
    name, own = random_name("levels"), _own(levels)
    extra: dict[str, Any] = (
        {"superuserAuth": {"token": {"secretRef": {"name": f"{own}-{superuser}"}}}} if superuser else {}
    )
    await levels.world.apply(
        manifests.connection(name, levels.world.admin_url, f"{own}-{ordinary}", backend="Auto", **extra)
    )
    await levels.world.until_reason(name, "Reconciled", resource=CONNECTIONS)
    return name


async def _topic(levels: NativeWorld, connection: str) -> str:
    name = random_name("rights")
    topic = manifests.topic(name, f"topic://{_NAMESPACE}/{name}", connection_name=connection, deletionPolicy="Delete")
    await levels.world.apply(topic)
    await levels.world.until_ready(name)
    return name


async def _split(levels: NativeWorld, topic: str) -> Body:
    return await levels.world.operate(topic, "Split", segment=0)


async def test_an_admin_of_the_namespace_is_enough_for_everything_but_what_brokers_tell(levels: NativeWorld) -> None:
    """Of Pulsar 5.0.1 only calls about single segments and about brokers take a superuser (measured)."""
    connection = await _connect(levels, "admin-token")
    body = await levels.world.get(CONNECTIONS, connection)
    assert not body["status"]["rights"]["superuser"]
    assert any("no bulk load" in missing for missing in body["status"]["rights"]["missing"])
    topic = await _topic(levels, connection)
    assert phase(await _split(levels, topic)) == "Succeeded"


async def test_a_superuser_beside_the_admin_does_what_takes_one(levels: NativeWorld) -> None:
    connection = await _connect(levels, "admin-token", "superuser-token")
    body = await levels.world.get(CONNECTIONS, connection)
    assert body["status"]["rights"] == {"superuser": True, "missing": []}
    topic = await _topic(levels, connection)
    assert phase(await _split(levels, topic)) == "Succeeded"


async def test_superuser_credentials_that_are_none_are_told(levels: NativeWorld) -> None:
    connection = await _connect(levels, "admin-token", "admin-token")
    body = await levels.world.get(CONNECTIONS, connection)
    assert "superuserAuth is not a superuser's" in condition(body, "Ready")["message"]


async def test_a_client_s_credentials_are_told_which_right_they_lack(levels: NativeWorld) -> None:
    connection = await _connect(levels, "client-token")
    name = random_name("rights")
    await levels.world.apply(manifests.topic(name, f"topic://{_NAMESPACE}/{name}", connection_name=connection))
    body = await levels.world.until_reason(name, "AccessDenied")
    assert "the connection's role needs: tenant admin" in condition(body, "Ready")["message"]
    record = await levels.world.pulsar.call("GET", f"scalable/{_NAMESPACE}/{name}", allow=(404,))
    assert record == 404, "nothing is left behind"
