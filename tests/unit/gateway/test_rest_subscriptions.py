"""R16, R18, R32: subscriptions shown, made and deleted through REST."""

from __future__ import annotations

import asyncio

import pytest

from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.cluster.resources import SUBSCRIPTIONS
from scalable_topics_operator.operations.errors import BackendUnavailable
from tests.unit.gateway.model_kubernetes import BOB
from tests.unit.gateway.model_reconcile import entries, ordered, reconciled, recorded
from tests.unit.gateway.replica import replica
from tests.unit.gateway.rest_world import TOPIC_URL, RestWorld, look, rest_world

LIST_URL = f"{TOPIC_URL}/subscriptions"
URL = f"{LIST_URL}/billing"
CREATED = ("alice", "create", "scalabletopicsubscriptions")
DELETED = ("alice", "delete", "scalabletopicsubscriptions")
DROPPED = ("the operator", "delete", "scalabletopicsubscriptions")
ASSIGNED = {
    "phase": "Active",
    "version": 7,
    "drained": [0],
    "consumers": [
        {
            "name": "reader-1",
            "incarnation": "secret-of-the-session",
            "registeredAt": "2026-01-01T00:00:00Z",
            "assignments": [{"segment": 1, "incarnation": "x"}, {"segment": 2, "buckets": [0, 3]}],
            "releasing": [3],
            "releasingBuckets": [{"segment": 4, "buckets": [1]}],
        }
    ],
}


def _cursors(world: RestWorld, *names: str, consumers: int = 0) -> None:
    for topic in world.brokers.looks:
        world.brokers.looks[topic] = look(consumers=consumers, cursors=names)


async def test_a_list_has_what_is_declared_and_what_was_asked_for() -> None:
    async with rest_world() as world:
        world.change_topic(subscriptions=[{"name": "declared"}, {"name": "new", "initialPosition": "Latest"}])
        recorded(world, "declared")
        recorded(world, "shared", "Deleting", requested=True, initialPosition="Latest", outOfScope=[0])
        ordered(world, "stream", ASSIGNED)
        recorded(world, "stream")
        ordered(world, "checkpoint", type="Checkpoint", group="checkpoint")
        answer = await world.ask("GET", LIST_URL)
        assert answer.status == 200
        shown = {one["subscription"]: one for one in answer.body}
        assert list(shown) == sorted(shown)
        assert {name: (one["type"], one["phase"], one["declaredBy"]) for name, one in shown.items()} == {
            "declared": ("QUEUE", "Active", "spec"),
            "new": ("QUEUE", "Creating", "spec"),
            "shared": ("QUEUE", "Deleting", "request"),
            "stream": ("STREAM", "Active", "object"),
            "checkpoint": ("CHECKPOINT", "Creating", "object"),
        }
        assert (shown["new"]["initialPosition"], shown["shared"]["initialPosition"]) == ("latest", "latest")
        assert shown["shared"]["outOfScope"] == [0]


async def test_an_ordered_one_shows_who_reads_what_and_no_secret() -> None:
    async with rest_world() as world:
        ordered(world, "billing", ASSIGNED)
        recorded(world, "billing")
        answer = await world.ask("GET", URL)
        assert answer.body["assignment"] == {
            "version": 7,
            "drained": [0],
            "consumers": [
                {
                    "name": "reader-1",
                    "registeredAt": "2026-01-01T00:00:00Z",
                    "segments": [{"segment": 1, "buckets": []}, {"segment": 2, "buckets": [0, 3]}],
                    "releasing": [3],
                    "releasingBuckets": [{"segment": 4, "buckets": [1]}],
                }
            ],
        }
        assert "secret" not in str(answer.body)


@pytest.mark.parametrize(
    ("of_topic", "of_object", "shown"),
    [
        ("Active", "Seeking", "Seeking"),
        ("CursorLost", "Active", "CursorLost"),
        ("Deleting", "Active", "Deleting"),
        ("Active", None, "Active"),
    ],
)
async def test_a_subscription_is_as_far_as_its_cursors_and_its_consumers_are(
    of_topic: str, of_object: str | None, shown: str
) -> None:
    async with rest_world() as world:
        ordered(world, "billing", {"phase": of_object} if of_object else {})
        recorded(world, "billing", of_topic)
        assert (await world.ask("GET", URL)).body["phase"] == shown


async def test_what_is_unknown_is_not_found_and_not_made() -> None:
    async with rest_world() as world:
        answer = await world.ask("GET", URL)
        assert (answer.status, "in the topic's stats" in answer.reason) == (404, True)
        assert (await world.ask("DELETE", URL)).status == 404
        assert world.kubernetes.acted == []
        assert entries(world) == {}


@pytest.mark.parametrize(("kind", "manifest"), [("STREAM", "Stream"), ("CHECKPOINT", "Checkpoint")])
async def test_an_ordered_one_becomes_an_object_of_the_callers(kind: str, manifest: str) -> None:
    async with rest_world() as world, reconciled(world):
        answer = await world.ask("PUT", f"{URL}?type={kind}&initialPosition=latest")
        assert answer.status == 204
        (made,) = world.kubernetes.all_of(SUBSCRIPTIONS)
        group = {"group": "billing"} if kind == "CHECKPOINT" else {}
        assert made["spec"] == {
            "scalableTopic": "orders",
            "subscription": "billing",
            "type": manifest,
            "initialPosition": "Latest",
            **group,
        }
        assert world.kubernetes.acted == [CREATED]
        assert (await world.ask("PUT", f"{URL}?type={kind}")).status == 204, "once more"
        assert world.kubernetes.acted == [CREATED]


async def test_a_shared_one_is_recorded_by_the_topics_reconcile() -> None:
    async with rest_world() as world, reconciled(world):
        assert (await world.ask("PUT", f"{URL}?type=QUEUE&initialPosition=latest")).status == 204
        assert entries(world)["billing"] == {
            "name": "billing",
            "phase": "Active",
            "initialPosition": "Latest",
            "deletionPolicy": "Retain",
            "requested": True,
        }
        assert (await world.ask("PUT", f"{URL}?type=QUEUE")).status == 204, "where it started stays as it was"
        assert entries(world)["billing"]["initialPosition"] == "Latest"
        assert world.kubernetes.acted == []


async def test_one_name_is_of_one_kind() -> None:
    async with rest_world() as world, reconciled(world):
        assert (await world.ask("PUT", f"{URL}?type=QUEUE")).status == 204
        answer = await world.ask("PUT", f"{URL}?type=STREAM")
        assert (answer.status, answer.reason) == (409, "subscription billing is there already, of type QUEUE")
        ordered(world, "audit")
        answer = await world.ask("PUT", f"{LIST_URL}/audit?type=QUEUE")
        assert (answer.status, answer.reason) == (409, "subscription audit is there already, of type STREAM")
        assert CREATED not in world.kubernetes.acted


@pytest.mark.parametrize("kind", ["QUEUE", "STREAM"])
async def test_one_that_is_being_deleted_is_not_made_meanwhile(kind: str) -> None:
    async with rest_world() as world, reconciled(world, settles=False):
        recorded(world, "billing", "Deleting", requested=True)
        answer = await world.ask("PUT", f"{URL}?type={kind}")
        assert (answer.status, "is being deleted" in answer.reason) == (409, True)


async def test_r17_a_lost_cursor_is_told() -> None:
    async with rest_world() as world, reconciled(world, loses="billing"):
        answer = await world.ask("PUT", f"{URL}?type=STREAM")
        assert (answer.status, "lost its cursor" in answer.reason) == (409, True)
        recorded(world, "shared", "CursorLost", requested=True)
        answer = await world.ask("PUT", f"{LIST_URL}/shared?type=QUEUE")
        assert (answer.status, "delete it first" in answer.reason) == (409, True)


async def test_what_takes_longer_is_told_with_where_it_stands() -> None:
    async with rest_world(wait_seconds=0.05) as world, reconciled(world, settles=False):
        answer = await world.ask("PUT", f"{URL}?type=QUEUE")
        assert (answer.status, answer.reason) == (202, "subscription billing is Creating; look at it again later")
        answer = await world.ask("DELETE", URL)
        assert (answer.status, answer.reason) == (202, "subscription billing is Deleting; look at it again later")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (f"{URL}?type=QUEU", "is none of STREAM, QUEUE, CHECKPOINT"),
        (f"{URL}?initialPosition=first", "is none of earliest, latest"),
        (f"{URL}?force=true", "there is no query parameter 'force'"),
        (f"{LIST_URL}/__compaction", "the brokers' own"),
        (f"{LIST_URL}/pulsar.dedup", "the brokers' own"),
        (f"{LIST_URL}/{'x' * 256}", "between 1 and 255 characters"),
    ],
)
async def test_bad_input_makes_nothing(path: str, words: str) -> None:
    async with rest_world() as world, reconciled(world):
        answer = await world.ask("PUT", path)
        assert (answer.status, words in answer.reason) == (400, True)
        assert world.kubernetes.acted == []
        assert entries(world) == {}


async def test_a_shared_one_is_deleted_in_the_topics_queue() -> None:
    async with rest_world() as world, reconciled(world):
        recorded(world, "billing", requested=True)
        recorded(world, "other", requested=True)
        _cursors(world, "billing", "other")
        assert (await world.ask("DELETE", URL)).status == 204
        assert entries(world).keys() == {"other"}
        assert world.kubernetes.acted == []


async def test_one_that_consumers_made_is_deleted_too() -> None:
    async with rest_world() as world, reconciled(world, settles=False):
        _cursors(world, "billing")
        assert (await world.ask("DELETE", URL)).status == 202
        assert entries(world)["billing"]["phase"] == "Deleting"


async def test_the_object_of_an_ordered_one_goes_once_the_deletion_is_recorded() -> None:
    async with rest_world() as world, reconciled(world):
        ordered(world, "billing")
        recorded(world, "billing")
        assert (await world.ask("DELETE", URL)).status == 204
        assert world.kubernetes.all_of(SUBSCRIPTIONS) == []
        assert entries(world) == {}
        assert world.kubernetes.acted == [DELETED, DROPPED], "the caller's was a dry run"


async def test_r32_whoever_may_not_delete_the_object_deletes_nothing() -> None:
    async with rest_world() as world, reconciled(world):
        ordered(world, "billing")
        recorded(world, "billing")
        world.kubernetes.denied_at_server = {("delete", "scalabletopicsubscriptions")}
        assert (await world.ask("DELETE", URL)).status == 403
        assert (await world.ask("DELETE", URL, token=BOB)).status == 403
        assert entries(world)["billing"]["phase"] == "Active"
        assert len(world.kubernetes.all_of(SUBSCRIPTIONS)) == 1


@pytest.mark.parametrize("at", ["broker", "coordinator"])
async def test_r16_consumers_keep_a_subscription_unless_they_are_to_be_forced_off(at: str) -> None:
    async with rest_world() as world, reconciled(world):
        if at == "broker":
            recorded(world, "billing", requested=True)
            _cursors(world, "billing", consumers=1)
        else:
            ordered(world, "billing", ASSIGNED)
            recorded(world, "billing")
        answer = await world.ask("DELETE", URL)
        assert (answer.status, "are attached; stop them, or use ?force=true" in answer.reason) == (412, True)
        assert entries(world)["billing"]["phase"] == "Active"
        assert (await world.ask("DELETE", f"{URL}?force=true")).status == 204
        assert entries(world) == {}


async def test_a_forced_deletion_is_recorded_as_one() -> None:
    async with rest_world(wait_seconds=0.05) as world, reconciled(world, settles=False):
        recorded(world, "billing", requested=True)
        assert (await world.ask("DELETE", f"{URL}?force=true")).status == 202
        assert entries(world)["billing"]["forced"] is True


async def test_r16_what_the_spec_declares_is_deleted_there() -> None:
    async with rest_world() as world, reconciled(world):
        world.change_topic(subscriptions=[{"name": "billing"}])
        recorded(world, "billing")
        answer = await world.ask("DELETE", URL)
        assert (answer.status, "is in spec.subscriptions; remove it there" in answer.reason) == (409, True)
        assert entries(world)["billing"]["phase"] == "Active"


async def test_brokers_that_do_not_answer_keep_a_subscription() -> None:
    async with rest_world() as world, reconciled(world):
        recorded(world, "billing", requested=True)
        world.brokers.error = BackendUnavailable("no answer")
        assert (await world.ask("DELETE", URL)).status == 503
        assert entries(world)["billing"]["phase"] == "Active"


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
async def test_nothing_is_asked_of_a_topic_that_nothing_is_done_with(method: str) -> None:
    async with rest_world() as world, reconciled(world):
        recorded(world, "billing", requested=True)
        world.change_topic(paused=True)
        answer = await world.ask(method, f"{URL}?type=QUEUE" if method == "PUT" else URL)
        assert (answer.status, "spec.paused" in answer.reason) == (409, True)


async def test_r10_a_busy_topic_records_nothing_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scalable_topics_operator.gateway.subscription_handlers._RECORD_SECONDS", 0.05)
    async with rest_world() as world:
        answer = await world.ask("PUT", f"{URL}?type=QUEUE")
        assert (answer.status, "nothing was recorded, try again" in answer.reason) == (503, True)
        async with reconciled(world) as reconcile:
            while not reconcile.turns:
                await asyncio.sleep(0)
            assert entries(world) == {}, "it was given up"


@pytest.mark.parametrize(("method", "query"), [("PUT", "?type=QUEUE"), ("DELETE", "")])
async def test_r31_a_replica_that_does_not_lead_has_the_leader_do_it(method: str, query: str) -> None:
    async with rest_world() as world, reconciled(world):
        recorded(world, "billing", requested=True)
        kube, leader = world.kube, Peer("r-leader", world.replica.gateway.address, is_me=False)
        async with replica(kube, cache=world.replica.cache, clusters=world.clusters) as follower:
            follower.known.leader = leader
            answer = await world.ask(method, URL + query, at=follower)
            assert answer.status == 204
            assert entries(world).keys() == ({"billing"} if method == "PUT" else set())
            assert not follower.known.woken.is_set()
            shown = await world.ask("GET", LIST_URL, at=follower)
            assert (shown.status, len(shown.body)) == (200, len(entries(world))), "any replica shows them"
            follower.known.leader = None
            assert (await world.ask(method, URL + query, at=follower)).status == 503
