"""The API server's rules that leadership, records and finalizers stand on (R5, R6, R8, R31, R39)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeInvalid, KubeNotFound
from scalable_topics_operator.cluster.lease_record import LEASES, PART_LABEL, REPLICA, SHARD, LeaseRecord
from scalable_topics_operator.cluster.resources import FINALIZER, SUBSCRIPTIONS, TOPICS
from scalable_topics_operator.cluster.status_store import StaleStatus, StatusStore
from tests.support import manifests
from tests.support.waiting import eventually

from .conftest import watched_topic

FOREIGN = "example.com/hold"


async def make(kube: KubeClient, namespace: str) -> Body:
    body = manifests.topic("orders", "topic://public/default/orders", initial=1)
    return await kube.create(TOPICS, namespace, body)


async def patch(kube: KubeClient, namespace: str, change: Body, *, subresource: str | None = None) -> Body:
    return await kube.merge_patch(TOPICS, namespace, "orders", change, subresource=subresource)


async def test_an_object_is_made_once_and_is_missing_before_and_after(kube: KubeClient, namespace: str) -> None:
    with pytest.raises(KubeNotFound):
        await kube.get(TOPICS, namespace, "orders")
    made = await make(kube, namespace)
    assert made["metadata"]["generation"] == 1
    assert made["metadata"]["creationTimestamp"]
    with pytest.raises(KubeConflict):
        await make(kube, namespace)
    await kube.delete(TOPICS, namespace, "orders", uid=made["metadata"]["uid"])
    with pytest.raises(KubeNotFound):
        await patch(kube, namespace, {"spec": {"paused": True}})
    again = await make(kube, namespace)
    assert again["metadata"]["uid"] != made["metadata"]["uid"]


async def test_the_generation_tells_of_the_spec_alone_and_the_version_of_everything(
    kube: KubeClient, namespace: str
) -> None:
    made = await make(kube, namespace)
    labelled = await patch(kube, namespace, {"metadata": {"labels": {"team": "shop"}}})
    told = await patch(kube, namespace, {"status": {"observedGeneration": 1}}, subresource="status")
    paused = await patch(kube, namespace, {"spec": {"paused": True}})
    versions = [int(body["metadata"]["resourceVersion"]) for body in (made, labelled, told, paused)]
    assert versions == sorted(set(versions))
    assert [body["metadata"]["generation"] for body in (made, labelled, told, paused)] == [1, 1, 1, 2]
    assert paused["status"] == {"observedGeneration": 1}
    assert paused["metadata"]["labels"] == {"team": "shop"}


async def test_a_change_that_changes_nothing_is_none(kube: KubeClient, namespace: str) -> None:
    await make(kube, namespace)
    once = await patch(kube, namespace, {"status": {"observedGeneration": 1}}, subresource="status")
    twice = await patch(kube, namespace, {"status": {"observedGeneration": 1}}, subresource="status")
    assert once["metadata"]["resourceVersion"] == twice["metadata"]["resourceVersion"]


async def test_each_way_in_writes_its_own_part(kube: KubeClient, namespace: str) -> None:
    await make(kube, namespace)
    by_status = await patch(
        kube, namespace, {"spec": {"paused": True}, "status": {"observedGeneration": 1}}, subresource="status"
    )
    assert not by_status["spec"].get("paused")
    by_object = await patch(kube, namespace, {"status": {"observedGeneration": 2}})
    assert by_object["status"]["observedGeneration"] == 1
    emptied = await patch(kube, namespace, {"status": {"observedGeneration": None}}, subresource="status")
    assert not emptied.get("status")


@pytest.mark.parametrize("subresource", [None, "status"])
async def test_a_write_names_the_version_that_it_is_for(
    kube: KubeClient, namespace: str, subresource: str | None
) -> None:
    made = await make(kube, namespace)
    await patch(kube, namespace, {"metadata": {"labels": {"team": "shop"}}})
    version, uid = made["metadata"]["resourceVersion"], made["metadata"]["uid"]
    for metadata in ({"resourceVersion": version}, {"resourceVersion": version, "uid": uid}):
        change = {"metadata": metadata, "spec": {"paused": True}, "status": {"observedGeneration": 7}}
        with pytest.raises(KubeConflict):
            await patch(kube, namespace, change, subresource=subresource)
    found = await kube.get(TOPICS, namespace, "orders")
    assert not found["spec"].get("paused")
    assert not found.get("status")


async def test_a_uid_alone_protects_an_object_and_not_its_status(kube: KubeClient, namespace: str) -> None:
    """Which is why every write of ours names a version, too: nobody else's object has it."""
    await make(kube, namespace)
    change = {"metadata": {"uid": "somebody-else"}, "spec": {"paused": True}, "status": {"observedGeneration": 7}}
    with pytest.raises(KubeInvalid):
        await patch(kube, namespace, change)
    written = await patch(kube, namespace, change, subresource="status")
    assert written["status"] == {"observedGeneration": 7}
    assert not written["spec"].get("paused")


async def test_what_was_written_elsewhere_is_never_overwritten(kube: KubeClient, namespace: str) -> None:
    made = await make(kube, namespace)
    store = StatusStore(kube, TOPICS, made)
    await patch(kube, namespace, {"metadata": {"labels": {"team": "shop"}}})
    assert await store.write({"observedGeneration": 1}), "another label is no other status"
    await patch(kube, namespace, {"status": {"observedGeneration": 5}}, subresource="status")
    with pytest.raises(StaleStatus):
        await store.write({"observedGeneration": 2})


async def test_an_object_with_finalizers_stays_until_the_last_is_gone(kube: KubeClient, namespace: str) -> None:
    made = await make(kube, namespace)
    held = await patch(kube, namespace, {"metadata": {"finalizers": [FINALIZER, FOREIGN]}})
    await kube.delete(TOPICS, namespace, "orders", uid=made["metadata"]["uid"])
    going = await kube.get(TOPICS, namespace, "orders")
    assert going["metadata"]["deletionTimestamp"]
    assert going["metadata"]["generation"] == held["metadata"]["generation"] + 1
    await kube.delete(TOPICS, namespace, "orders")
    again = await kube.get(TOPICS, namespace, "orders")
    assert again["metadata"]["resourceVersion"] == going["metadata"]["resourceVersion"]
    written = await patch(kube, namespace, {"status": {"observedGeneration": 1}}, subresource="status")
    assert written["status"] == {"observedGeneration": 1}
    left = await patch(kube, namespace, {"metadata": {"finalizers": [FOREIGN]}})
    assert left["metadata"]["finalizers"] == [FOREIGN]
    last = await patch(kube, namespace, {"metadata": {"finalizers": []}})
    assert not last["metadata"].get("finalizers")
    with pytest.raises(KubeNotFound):
        await kube.get(TOPICS, namespace, "orders")


async def test_a_delete_that_names_another_object_deletes_nothing(kube: KubeClient, namespace: str) -> None:
    await make(kube, namespace)
    with pytest.raises(KubeConflict):
        await kube.delete(TOPICS, namespace, "orders", uid="somebody-else")
    assert await kube.get(TOPICS, namespace, "orders")
    await kube.delete(TOPICS, namespace, "nothing-of-the-kind")


async def test_a_list_is_complete_and_has_a_version_that_no_item_exceeds(kube: KubeClient, namespace: str) -> None:
    assert await kube.list_all(TOPICS, namespace) == []
    made = await make(kube, namespace)
    pages = [page async for page in kube.list_pages(TOPICS, namespace)]
    assert [item["metadata"]["uid"] for items, _ in pages for item in items] == [made["metadata"]["uid"]]
    assert all(int(version) >= int(made["metadata"]["resourceVersion"]) for _, version in pages)


def lease(name: str, part: str, holder: str, term: int) -> LeaseRecord:
    return LeaseRecord(name, part, holder, term, 15.0)


async def test_of_two_who_reach_for_a_lease_one_has_it(kube: KubeClient, namespace: str) -> None:
    first = lease("scalable-topics-shard-0", SHARD, "a", 1)
    made = LeaseRecord.parse(await kube.create(LEASES, namespace, first.body(namespace, acquired=True)))
    assert made is not None
    assert (made.holder, made.term, made.duration_seconds) == ("a", 1, 15.0)
    with pytest.raises(KubeConflict):
        await kube.create(LEASES, namespace, lease(first.name, SHARD, "b", 1).body(namespace, acquired=True))
    taken, other = replace(made, holder="b", term=2), replace(made, holder="c", term=2)
    won = LeaseRecord.parse(await kube.replace(LEASES, namespace, taken.body(namespace, acquired=True)))
    assert won is not None
    with pytest.raises(KubeConflict):
        await kube.replace(LEASES, namespace, other.body(namespace, acquired=True))
    found = LeaseRecord.parse(await kube.get(LEASES, namespace, first.name))
    assert found == won


@pytest.mark.parametrize("acquired", [True, False])
async def test_r6_nobody_makes_a_deleted_lease_anew_unawares(kube: KubeClient, namespace: str, acquired: bool) -> None:
    """It may have been taken, and deleted, since it was seen: a write that names no object would make it anew."""
    first = lease("scalable-topics-shard-0", SHARD, "a", 4)
    made = LeaseRecord.parse(await kube.create(LEASES, namespace, first.body(namespace, acquired=True)))
    assert made is not None
    again = replace(made, holder="b", term=5).body(namespace, acquired=acquired)
    await kube.delete(LEASES, namespace, first.name)
    with pytest.raises(KubeConflict):
        await kube.replace(LEASES, namespace, again)
    there = await kube.create(LEASES, namespace, first.body(namespace, acquired=True))
    with pytest.raises(KubeConflict):
        await kube.replace(LEASES, namespace, again)
    assert await kube.get(LEASES, namespace, first.name) == there
    await kube.delete(LEASES, namespace, first.name)
    del again["metadata"]["uid"]
    assert (await kube.replace(LEASES, namespace, again))["spec"]["holderIdentity"] == "b"


async def test_leases_are_listed_by_their_label(kube: KubeClient, namespace: str) -> None:
    for name, part in (("scalable-topics-shard-1", SHARD), ("scalable-topics-replica-a", REPLICA)):
        await kube.create(LEASES, namespace, lease(name, part, "a", 1).body(namespace, acquired=True))
    stranger = lease("other", SHARD, "x", 1).body(namespace, acquired=True)
    del stranger["metadata"]["labels"]
    await kube.create(LEASES, namespace, stranger)
    found = [
        item["metadata"]["name"]
        async for page, _ in kube.list_pages(LEASES, namespace, label_selector=PART_LABEL)
        for item in page
    ]
    assert sorted(found) == ["scalable-topics-replica-a", "scalable-topics-shard-1"]


async def test_a_subscription_object_is_made_with_an_owner(kube: KubeClient, namespace: str) -> None:
    made = await make(kube, namespace)
    owner = {"apiVersion": TOPICS.api_version, "kind": TOPICS.kind, "name": "orders", "uid": made["metadata"]["uid"]}
    body = {
        "apiVersion": SUBSCRIPTIONS.api_version,
        "kind": SUBSCRIPTIONS.kind,
        "metadata": {"name": "orders-a", "ownerReferences": [owner]},
        "spec": {"scalableTopic": "orders", "subscription": "a", "type": "Stream", "initialPosition": "Earliest"},
    }
    found = await kube.create(SUBSCRIPTIONS, namespace, body)
    assert found["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]


async def test_a_watch_tells_every_change_once_in_the_order_of_versions(kube: KubeClient, namespace: str) -> None:
    async with watched_topic(kube, namespace, "orders") as told:
        await make(kube, namespace)
        await patch(kube, namespace, {"metadata": {"finalizers": [FINALIZER]}})
        await patch(kube, namespace, {"status": {"observedGeneration": 1}}, subresource="status")
        await patch(kube, namespace, {"status": {"observedGeneration": 1}}, subresource="status")
        await kube.delete(TOPICS, namespace, "orders")
        last = await patch(kube, namespace, {"metadata": {"finalizers": []}})

        async def kinds() -> list[str]:
            return [kind for kind, _ in told()]

        wanted = ["ADDED", "MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]
        await eventually(kinds, lambda found: found == wanted, what="every change is told")
        versions = [int(body["metadata"]["resourceVersion"]) for _, body in told()]
        assert versions == sorted(set(versions))
        assert told()[-1][1]["metadata"]["uid"] == last["metadata"]["uid"]
        assert told()[3][1]["metadata"]["deletionTimestamp"]
