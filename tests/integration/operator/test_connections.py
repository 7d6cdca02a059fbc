"""Connections: what they find, what they say when they cannot, and how they come back."""

from __future__ import annotations

import pytest

from dev.access import PulsarAccess
from dev.broker_settings import PulsarLine
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.resources import CONNECTIONS, SECRETS, TOPICS
from tests.integration.operator.conftest import MakeProxied
from tests.support import manifests
from tests.support.fault_proxy import FaultProxy
from tests.support.running_operator import RunningOperator
from tests.support.world import World, condition, phase
from tests.support.world_making import random_name

_WRONG_TOKEN = "not-a-token-and-not-to-be-shown"


def _hosts(pulsar: PulsarAccess) -> list[str]:
    """What `trustedBrokers` names for a role that may not list the brokers."""
    return [url.removeprefix("http://") for url in pulsar.broker_admin_urls]


async def _until_connection_says(world: World, name: str, reason: str, message: str) -> Body:
    def says_so(body: Body) -> bool:
        ready = condition(body, "Ready")
        return ready.get("reason") == reason and message in ready["message"]

    return await world.until(CONNECTIONS, name, says_so, what=f"says {reason}: {message}")


async def test_a_connection_says_what_it_found(world: World, pulsar: PulsarAccess) -> None:
    body = await world.until_reason("pulsar", "Reconciled", resource=CONNECTIONS)
    status = body["status"]
    assert status["backend"] == "Classic"
    assert status["version"][0].isdigit()
    assert status["rights"] == {"superuser": True, "missing": []}
    assert sorted(f"http://{broker}" for broker in status["brokers"]) == sorted(pulsar.broker_admin_urls)
    assert status["observedGeneration"] == body["metadata"]["generation"]


async def test_a_topic_says_which_connection_is_missing_and_is_made_once_it_is_there(world: World) -> None:
    await world.apply(manifests.topic("early", f"{world.pulsar_namespace}/early", connection_name="late"))
    body = await world.until_reason("early", "ConnectionMissing")
    message = f"there is no ScalableTopicConnection {world.namespace}/late; create it or correct spec.connectionRef"
    assert condition(body, "Stalled")["message"] == message
    assert await world.until_event("early", "ConnectionMissing") == message
    await world.apply(manifests.connection("late", world.admin_url))
    await world.until_ready("early")


async def test_what_is_wrong_with_a_secret_is_said_and_the_right_one_is_used_without_a_restart(
    world: World, pulsar: PulsarAccess, shared_operator: RunningOperator
) -> None:
    """hazards C39 and C60, R3: no Secret, no key, a wrong token, the right one; and the token is never shown."""
    await world.apply(manifests.topic("locked", f"{world.pulsar_namespace}/locked", connection_name="locked"))
    await world.apply(manifests.connection("locked", world.admin_url, "locked-token"))
    where = f"Secret {world.namespace}/locked-token"
    await _until_connection_says(world, "locked", "Refused", f"{where} does not exist")
    waiting = await world.until_reason("locked", "ConnectionDown")
    assert condition(waiting, "Ready")["message"] == (f"connection {world.namespace}/locked: {where} does not exist")
    await world.apply(manifests.secret("locked-token", other="x"))
    await world.nudge(CONNECTIONS, "locked")
    await _until_connection_says(world, "locked", "Refused", f"{where} has no key token")
    await _set_token(world, "locked-token", _WRONG_TOKEN)
    await world.nudge(CONNECTIONS, "locked")
    await _until_connection_says(
        world, "locked", "AccessDenied", "the cluster does not accept the connection's credentials"
    )
    await world.until(
        TOPICS, "locked", lambda body: "credentials" in condition(body, "Ready")["message"], what="says why it waits"
    )
    # From here on nobody nudges: a rotated Secret is noticed by itself.
    await _set_token(world, "locked-token", pulsar.superuser_token)
    await world.until_ready("locked")
    await _set_token(world, "locked-token", _WRONG_TOKEN)
    await world.until_reason("locked", "AccessDenied", resource=CONNECTIONS)
    await _set_token(world, "locked-token", pulsar.superuser_token)
    await world.until_reason("locked", "Reconciled", resource=CONNECTIONS)

    shown = [str(await world.get(CONNECTIONS, "locked")), str(await world.get(TOPICS, "locked"))]
    shown += [str(await world.events("locked")), shared_operator.log_text()]
    for token in (_WRONG_TOKEN, pulsar.superuser_token):
        assert not any(token in text for text in shown)


async def _set_token(world: World, name: str, token: str) -> None:
    await world.kube.merge_patch(SECRETS, world.namespace, name, {"stringData": {"token": token}})


async def test_brokers_that_are_away_at_first_are_found_when_they_come(world: World) -> None:
    """Issue 3: a connection that is down says so and recovers by itself."""
    async with FaultProxy(world.admin_url) as proxy:
        await proxy.refuse()
        await world.apply(manifests.connection("away", proxy.url))
        await world.apply(manifests.topic("patient", f"{world.pulsar_namespace}/patient", connection_name="away"))
        down = await world.until_reason("away", "Unreachable", resource=CONNECTIONS)
        assert proxy.url in condition(down, "Ready")["message"]
        assert (condition(down, "Ready")["status"], condition(down, "Reconciling")["status"]) == ("False", "True")
        waiting = await world.until_reason("patient", "ConnectionDown")
        assert condition(waiting, "Reconciling")["status"] == "True"
        await world.until_event("away", "Unreachable", resource=CONNECTIONS)
        await proxy.listen()
        await world.until_ready("patient")
        await world.until_reason("away", "Reconciled", resource=CONNECTIONS)


async def test_a_namespace_admin_does_all_within_its_tenant_and_is_told_what_it_lacks(
    world: World, pulsar: PulsarAccess
) -> None:
    """R3: no superuser is needed for topics; what is missing is named on the connection and at the refusal."""
    team_namespace = f"team/{random_name('t')}"
    await world.pulsar.create_namespace(team_namespace)
    await world.apply(manifests.secret("team-token", token=pulsar.namespace_admin_token))
    await world.apply(manifests.connection("team", world.admin_url, "team-token", trustedBrokers=_hosts(pulsar)))
    connection = await world.until_reason("team", "Reconciled", resource=CONNECTIONS)
    assert connection["status"]["rights"]["superuser"] is False
    missing = connection["status"]["rights"]["missing"]
    assert any(entry.startswith("list brokers (superuser)") for entry in missing)
    assert condition(connection, "Ready")["message"] == "lacks rights: " + "; ".join(missing)

    await world.apply(
        manifests.topic(
            "team-topic",
            f"{team_namespace}/orders",
            connection_name="team",
            initial=2,
            subscriptions=["reader"],
            permissions=[{"role": "client", "actions": ["consume"]}],
            policies={"perSegment": {"messageTTLSeconds": 60}},
            deletionPolicy="Delete",
        )
    )
    await world.until_ready("team-topic")
    assert phase(await world.operate("team-topic", "Split", segment=0)) == "Succeeded"
    assert phase(await world.operate("team-topic", "Merge", segments=[1, 3])) == "Succeeded"
    await world.delete(TOPICS, "team-topic")
    await world.until_gone(TOPICS, "team-topic")
    assert await world.pulsar.topics(team_namespace) == []

    await world.apply(manifests.topic("stranger", f"{world.pulsar_namespace}/stranger", connection_name="team"))
    refused = await world.until_reason("stranger", "AccessDenied")
    message = condition(refused, "Stalled")["message"]
    assert f"persistent://{world.pulsar_namespace}/stranger" in message
    assert "Unauthorized" in message
    assert message.endswith("the connection's role needs: tenant admin")
    assert await world.until_event("stranger", "AccessDenied") == message
    assert await world.segment_topics("stranger") == []


async def test_a_token_with_other_rights_leads_to_the_same_topics(world: World, pulsar: PulsarAccess) -> None:
    """What a cluster is called depends on what a role may ask; the claim tells that the topic is there."""
    team_namespace = f"team/{random_name('t')}"
    await world.pulsar.create_namespace(team_namespace)
    await world.apply(manifests.secret("swapped-token", token=pulsar.superuser_token))
    other_url = world.admin_url.replace("127.0.0.1", "localhost")
    await world.apply(manifests.connection("swapped", other_url, "swapped-token", trustedBrokers=_hosts(pulsar)))
    await world.apply(manifests.topic("swapped", f"{team_namespace}/swapped", connection_name="swapped", initial=2))
    before = await world.until_ready("swapped")
    await _set_token(world, "swapped-token", pulsar.namespace_admin_token)
    connection = await world.until(
        CONNECTIONS, "swapped", lambda body: not body["status"]["rights"]["superuser"], what="has other rights"
    )
    assert connection["status"]["clusterId"] != before["status"]["clusterId"]
    assert phase(await world.operate("swapped", "Split", segment=0)) == "Succeeded"
    after = await world.until_ready("swapped")
    assert after["status"]["clusterId"] == connection["status"]["clusterId"]
    assert after["status"]["incarnation"] == before["status"]["incarnation"]


async def test_nothing_is_made_on_a_cluster_that_the_topic_is_not_on(proxied: MakeProxied) -> None:
    """Hazard C16."""
    bench = await proxied()
    await bench.start()
    world = bench.world
    await world.apply(manifests.topic("elsewhere", f"{world.pulsar_namespace}/elsewhere"))
    await world.until_ready("elsewhere")
    bench.operator.kill()
    for name in await world.pulsar.topics(world.pulsar_namespace):
        await world.pulsar.delete_topic(name, force=True)
    await world.set_status("elsewhere", {"clusterId": "other@http://pulsar.example"})
    await bench.start()
    body = await world.until_reason("elsewhere", "ConnectionChanged")
    assert (
        "is on Pulsar cluster other@http://pulsar.example, but the connection leads to"
        in (condition(body, "Stalled")["message"])
    )
    assert await world.pulsar.topics(world.pulsar_namespace) == []


@pytest.mark.both_lines
async def test_R2_brokers_say_which_backend_new_topics_may_have(world: World, line: PulsarLine) -> None:
    has_own = line is PulsarLine.FIVE
    for backend in ("Auto", "Classic", "Native"):
        await world.apply(manifests.connection(backend.lower(), world.admin_url, backend=backend))
    for name, given in {"auto": "Native" if has_own else "Classic", "classic": "Classic"}.items():
        body = await world.until_reason(name, "Reconciled", resource=CONNECTIONS)
        assert body["status"]["backend"] == given
    if has_own:
        body = await world.until_reason("native", "Reconciled", resource=CONNECTIONS)
        assert body["status"]["backend"] == "Native"
        return
    body = await world.until_reason("native", "BackendUnavailable", resource=CONNECTIONS)
    message = condition(body, "Stalled")["message"]
    assert message.startswith("the brokers (version 4.")
    ending = "they come with Pulsar 5; set spec.backend to Classic or Auto"
    assert message.endswith(f"have no scalable topics of their own; {ending}")
