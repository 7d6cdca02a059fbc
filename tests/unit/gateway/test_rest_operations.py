"""R32: split, merge, rebucket, seek and skip-all make SegmentOperations as the caller, and wait for them."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics_operator.cluster.resources import SEGMENT_OPERATIONS
from tests.unit.gateway.model_kubernetes import Kubernetes
from tests.unit.gateway.rest_world import TOPIC_URL, RestWorld, rest_world
from tests.unit.gateway.topics import created, split

SUBSCRIPTION_URL = f"{TOPIC_URL}/subscriptions/billing"
SUCCEEDED = {"phase": "Succeeded", "message": "done"}


def _ends(kubernetes: Kubernetes, **status: Any) -> None:
    kubernetes.becomes = lambda body: status if body["kind"] == SEGMENT_OPERATIONS.kind else None


def _spec(world: RestWorld) -> dict[str, Any]:
    (made,) = world.kubernetes.all_of(SEGMENT_OPERATIONS)
    assert made["metadata"]["namespace"] == "shop"
    spec: dict[str, Any] = made["spec"]
    assert spec.pop("scalableTopic") == "orders"
    return spec


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        (f"{TOPIC_URL}/split/0", {"type": "Split", "split": {"segment": 0}}),
        (f"{TOPIC_URL}/split/1?at=40000", {"type": "Split", "split": {"segment": 1, "at": 40000}}),
        (f"{TOPIC_URL}/split/0?into=4", {"type": "Split", "split": {"segment": 0, "into": 4}}),
        (f"{TOPIC_URL}/split/0?at=1&into=2", {"type": "Split", "split": {"segment": 0, "at": 1, "into": 2}}),
        (f"{TOPIC_URL}/merge/1/0", {"type": "Merge", "merge": {"segments": [1, 0]}}),
        (f"{TOPIC_URL}/rebucket/0?buckets=8", {"type": "Rebucket", "rebucket": {"segment": 0, "buckets": 8}}),
        (f"{TOPIC_URL}/rebucket/0?bucketCount=8", {"type": "Rebucket", "rebucket": {"segment": 0, "buckets": 8}}),
        (
            f"{SUBSCRIPTION_URL}/seek?timestamp=1798804800125",
            {"type": "Seek", "seek": {"subscription": "billing", "timestamp": "2027-01-01T12:00:00.125Z"}},
        ),
        (
            f"{TOPIC_URL}/subscriptions/a%2Fb%20c/skip-all?ttlSecondsAfterFinished=60",
            {"type": "SkipAll", "skipAll": {"subscription": "a/b c"}, "ttlSecondsAfterFinished": 60},
        ),
    ],
)
async def test_what_is_asked_becomes_an_object_of_the_callers(path: str, spec: dict[str, Any]) -> None:
    async with rest_world() as world:
        _ends(world.kubernetes, **SUCCEEDED)
        answer = await world.ask("POST", path)
        assert answer.status == 204
        assert _spec(world) == spec
        assert world.kubernetes.acted == [("alice", "create", "segmentoperations")]
        (made,) = world.kubernetes.all_of(SEGMENT_OPERATIONS)
        assert answer.headers["X-Scalable-Topics-Operation"] == f"shop/{made['metadata']['name']}"


async def test_r22_a_checkpoint_is_restored() -> None:
    positions = [
        {"segment": 0, "ledgerId": 7, "entryId": 9},
        {"segment": 1, "ledgerId": 8, "entryId": -1, "batchIndex": 3},
        {"segment": 1, "bucket": 2, "ledgerId": 8, "entryId": 4, "batchIndex": -1},
    ]
    async with rest_world() as world:
        _ends(world.kubernetes, **SUCCEEDED)
        answer = await world.ask("POST", f"{SUBSCRIPTION_URL}/restore?allowGaps=true", body={"positions": positions})
        assert answer.status == 204
        assert _spec(world) == {
            "type": "Restore",
            "restore": {
                "subscription": "billing",
                "positions": [{"bucket": -1, "batchIndex": -1, **one} for one in positions],
                "allowGaps": True,
            },
        }


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (None, "the body: "),
        ({"positions": []}, "positions: "),
        ({"positions": [{"segment": 0, "ledgerId": "7", "entryId": 9}]}, "positions.0.ledgerId: "),
        ({"positions": [{"segment": 0, "ledgerId": 7, "entryId": -2}]}, "positions.0.entryId: "),
        ({"positions": [{"segment": 0, "ledgerId": 2**53, "entryId": 0}]}, "positions.0.ledgerId: "),
        ({"positions": [{"segment": 0, "ledgerId": 7, "entryId": 9, "more": 1}]}, "positions.0.more: "),
        ({"positions": [{"segment": 0, "ledgerId": 7, "entryId": 9}] * 2}, "twice; merge"),
    ],
)
async def test_what_is_no_checkpoint_is_refused_before_anything_is_made(body: Any, why: str) -> None:
    async with rest_world() as world:
        answer = await world.ask("POST", f"{SUBSCRIPTION_URL}/restore", body=body)
        assert answer.status == 400
        assert why in answer.reason
        assert not world.kubernetes.all_of(SEGMENT_OPERATIONS)


async def test_more_than_two_segments_are_merged_at_once() -> None:
    async with rest_world() as world:
        world.change_topic(created(4))
        _ends(world.kubernetes, **SUCCEEDED)
        assert (await world.ask("POST", f"{TOPIC_URL}/merge/0/1?segmentId=2&segmentId=3")).status == 204
        assert _spec(world)["merge"] == {"segments": [0, 1, 2, 3]}


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        (f"{TOPIC_URL}/split/9", 404, "there is no segment 9"),
        (f"{TOPIC_URL}/split/0?at=5&into=3", 400, "leave out at, or into"),
        (f"{TOPIC_URL}/split/0?into=1", 400, "between 2 and 64"),
        (f"{TOPIC_URL}/split/x", 400, "no whole number"),
        (f"{TOPIC_URL}/merge/0/0", 400, "names a segment twice"),
        (f"{TOPIC_URL}/merge/0/1?segmentId=1", 400, "names a segment twice"),
        (f"{TOPIC_URL}/merge/0/9", 404, "there is no segment 9"),
        (f"{TOPIC_URL}/rebucket/0", 400, "say how many entry buckets"),
        (f"{TOPIC_URL}/rebucket/0?buckets=8&bucketCount=9", 400, "say how many entry buckets"),
        (f"{TOPIC_URL}/rebucket/0?buckets=1025", 400, "between 1 and 1024"),
        (f"{SUBSCRIPTION_URL}/seek", 400, "timestamp is missing"),
        (f"{SUBSCRIPTION_URL}/seek?timestamp=-1", 400, "no whole number"),
        (f"{SUBSCRIPTION_URL}/seek?timestamp=99999999999999999", 400, "no whole number"),
        ("/admin/v2/scalable/acme/shop/nothing/split/0", 404, "no ScalableTopic declares"),
    ],
)
async def test_what_cannot_be_makes_no_object(path: str, status: int, words: str) -> None:
    async with rest_world() as world:
        answer = await world.ask("POST", path)
        assert (answer.status, words in answer.reason) == (status, True), answer.body
        assert world.kubernetes.acted == []


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("InvalidRequest", 400),
        ("SegmentMissing", 404),
        ("SubscriptionMissing", 404),
        ("NotPossible", 412),
        ("CursorLost", 412),
        ("NotAvailable", 412),
        ("Unsupported", 412),
        ("BrokerRefused", 409),
        ("CursorsNotMoved", 409),
        (None, 409),
    ],
)
async def test_a_failure_is_told_with_its_reason(reason: str | None, status: int) -> None:
    async with rest_world() as world:
        _ends(world.kubernetes, phase="Failed", reason=reason, message="the broker says no")
        answer = await world.ask("POST", f"{TOPIC_URL}/split/0")
        assert (answer.status, answer.reason) == (status, "the broker says no")


async def test_what_takes_longer_goes_on_and_is_named() -> None:
    async with rest_world(wait_seconds=0.05) as world:
        _ends(world.kubernetes, phase="Running", message="step Creating")
        answer = await world.ask("POST", f"{TOPIC_URL}/split/0")
        (made,) = world.kubernetes.all_of(SEGMENT_OPERATIONS)
        name = made["metadata"]["name"]
        assert answer.status == 202
        assert answer.body["operation"] == {"namespace": "shop", "name": name}
        assert answer.reason == f"SegmentOperation {name} has not ended yet; Running: step Creating"


async def test_what_goes_on_can_be_looked_at_until_it_has_ended() -> None:
    async with rest_world(wait_seconds=0.05) as world:
        named = (await world.ask("POST", f"{TOPIC_URL}/split/0")).body["operation"]
        url = f"{TOPIC_URL}/operations/{named['name']}"
        seen = {**named, "type": "Split", "phase": "Pending", "reason": "", "message": ""}
        assert (await world.ask("GET", url)).body == seen
        (made,) = world.kubernetes.all_of(SEGMENT_OPERATIONS)
        failed = {"phase": "Failed", "reason": "NotPossible", "message": "it is sealed"}
        world.kubernetes.set_status(made, failed)
        assert (await world.ask("GET", url)).body == {**seen, **failed}
        world.kubernetes.put({**made, "spec": {**made["spec"], "scalableTopic": "another"}})
        gone = await world.ask("GET", url)
        assert (gone.status, f"no SegmentOperation {named['name']} of topic://acme/shop/orders" in gone.reason) == (
            404,
            True,
        )


async def test_r32_where_nobody_knows_whether_it_was_made_nobody_is_told_to_come_again() -> None:
    async with rest_world() as world:
        world.kubernetes.status = 500
        answer = await world.ask("POST", f"{TOPIC_URL}/split/0")
        assert answer.status == 503
        assert "it may have been made" in answer.reason
        assert "Retry-After" not in answer.headers


async def test_a_dry_run_answers_with_the_plan() -> None:
    async with rest_world() as world:
        plan = {"parents": [{"id": 0, "range": "0000-7fff"}]}
        _ends(world.kubernetes, phase="Succeeded", message="dry run: nothing was changed", plan=plan)
        answer = await world.ask("POST", f"{TOPIC_URL}/split/0?dryRun=true")
        assert (answer.status, answer.body) == (200, {"message": "dry run: nothing was changed", "plan": plan})
        assert _spec(world)["dryRun"] is True


@pytest.mark.parametrize("path", [f"{TOPIC_URL}/split/0", f"{SUBSCRIPTION_URL}/skip-all"])
async def test_nothing_is_asked_of_a_topic_that_nothing_is_done_with(path: str) -> None:
    async with rest_world() as world:
        world.change_topic(paused=True)
        answer = await world.ask("POST", path)
        assert (answer.status, "spec.paused" in answer.reason) == (409, True)
        body = world.topic
        metadata = {**body["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}
        world.kubernetes.put({**body, "metadata": metadata})
        answer = await world.ask("POST", path)
        assert (answer.status, "is being deleted" in answer.reason) == (409, True)
        assert world.kubernetes.acted == []


async def test_a_sealed_segment_is_known_and_left_to_the_operator_to_refuse() -> None:
    async with rest_world() as world:
        world.change_topic(split(created(2), 0))
        _ends(world.kubernetes, phase="Failed", reason="NotPossible", message="segment 0 is sealed")
        assert (await world.ask("POST", f"{TOPIC_URL}/split/0")).status == 412
        assert (await world.ask("POST", f"{TOPIC_URL}/split/7")).status == 404


@pytest.mark.parametrize(
    ("at_server", "status", "words"),
    [(403, 403, "not today"), (404, 404, "not today"), (422, 400, "not today")],
)
async def test_what_the_api_server_says_is_passed_on(at_server: int, status: int, words: str) -> None:
    async with rest_world() as world:
        world.kubernetes.status = at_server
        answer = await world.ask("POST", f"{TOPIC_URL}/split/0")
        assert (answer.status, words in answer.reason) == (status, True)


async def test_r32_the_api_server_judges_again_and_the_operator_may_be_kept_from_acting_as_others() -> None:
    async with rest_world() as world:
        world.kubernetes.denied_at_server = {("create", "segmentoperations")}
        answer = await world.ask("POST", f"{TOPIC_URL}/split/0")
        assert (answer.status, answer.reason) == (403, 'User "alice" cannot create resource "segmentoperations"')
        world.kubernetes.no_impersonation = True
        answer = await world.ask("POST", f"{TOPIC_URL}/split/0")
        assert answer.status == 403
        assert "gateway.writes.enabled" in answer.reason


async def test_a_lost_answer_makes_no_second_object() -> None:
    async with rest_world() as world:
        _ends(world.kubernetes, **SUCCEEDED)
        world.kubernetes.lose_replies = 1
        assert (await world.ask("POST", f"{TOPIC_URL}/split/0")).status == 204
        assert len(world.kubernetes.all_of(SEGMENT_OPERATIONS)) == 1


async def test_what_a_token_carries_goes_along() -> None:
    async with rest_world() as world:
        world.kubernetes.extra = {"authentication.kubernetes.io/pod-name": ["pod-1"]}
        _ends(world.kubernetes, **SUCCEEDED)
        assert (await world.ask("POST", f"{TOPIC_URL}/split/0")).status == 204
        assert world.kubernetes.heard_extra == {"authentication.kubernetes.io/pod-name": ["pod-1"]}
