"""Records that others may have edited: status, properties of topics, load records, Leases, what Spark is told.

What cannot be read is refused with the reader's one kind of error, so that it becomes a condition and not a traceback.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given

from scalable_topics.layout import LayoutError, Part, SegmentLayout
from scalable_topics_operator.assignment.group import Group
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.backends.claim_properties import claim_of, migrated_from_of
from scalable_topics_operator.backends.classic.segment_record import record_of
from scalable_topics_operator.cluster.lease_record import TERM_ANNOTATION, LeaseRecord
from scalable_topics_operator.controllers.subscription_status import read_group, situation_of, write_group
from scalable_topics_operator.controllers.topic_status import TopicFacts, recorded_managed, with_state
from scalable_topics_operator.gateway.checkpoint_body import read_positions
from scalable_topics_operator.gateway.refusal import Refusal
from scalable_topics_operator.load.pipeline_job import RunnerPhase, RunnerState
from scalable_topics_operator.load.record_table import RecordTable
from scalable_topics_operator.load.records import PULSE, Pulse, SegmentRecord, encode_pulse, encode_record
from scalable_topics_operator.load.sample import LoadSample
from scalable_topics_operator.load.statistics import read_bulk, read_segment, read_topic
from scalable_topics_operator.load.supervised_job import decode_job, decode_state, encode_job, encode_state
from scalable_topics_operator.operations.errors import BackendRefused
from scalable_topics_operator.operations.journal import Result
from scalable_topics_operator.operations.layout_message import layout_message
from scalable_topics_operator.operations.migrated_from import MigratedFrom, Migration
from scalable_topics_operator.operations.protocols import MessagePosition
from scalable_topics_operator.operations.pruned_segment import PrunedSegment
from scalable_topics_operator.operations.segment_policies import SegmentPolicies
from scalable_topics_operator.operations.subscription_state import SubscriptionPhase, SubscriptionState
from scalable_topics_operator.operations.topic_state import DeletingSegment, TopicState, read_state, write_state
from tests.support.crds import our_schemas
from tests.support.hostile import NESTED_TEXTS, OTHER_TEXTS, fuzzing, mutated, randomness, text_of
from tests.support.schema_values import varied
from tests.unit.operations.builders import split_layout, split_operation
from tests.unit.security.broker_answers import PROPERTIES, SCALABLE_STATS, STATS, TOPIC

LAYOUT = split_layout()
SOURCE = MigratedFrom(2, 5, {"a": "b"}, SegmentPolicies(message_ttl_seconds=5), {"s": "Queue"})
STATE = TopicState(
    layout=LAYOUT,
    operation=replace(
        split_operation(), positions={Part(0): MessagePosition(1, 2)}, migration=Migration(SOURCE, force=False)
    ),
    deleting=(DeletingSegment(0, "persistent://t/n/x", 5),),
    subscriptions={
        "s": SubscriptionState(
            "s", SubscriptionPhase.ACTIVE, True, False, (0,), floors={Part(1, 0): MessagePosition(1, 2)}
        )
    },
    actions=(split_operation().ended(Result.SUCCEEDED, at="2026-01-01T00:00:00Z", epoch=1),),
    incarnation="uid.0",
    settled={0: {"p": 7}},
    clocks=Clocks(1, 2, 3),
    migrated_from=SOURCE,
    pruned=(PrunedSegment.of(LAYOUT.segment(0), child_ids=[1], pruned_at_ms=5),),
)
STATUS: dict[str, Any] = json.loads(json.dumps(write_state({"managedPolicies": ["deduplication"]}, STATE)))
FACTS = TopicFacts(topic="topic://t/n/x", backend="Classic", cluster_id="c", uid="uid", generation=1)
GROUP_STATUS: dict[str, Any] = {
    "version": {"term": 1, "epoch": 2, "counter": 3},
    "drained": [0],
    "consumers": [
        {
            "name": "c1",
            "incarnation": "i1",
            "registeredAt": "2026-01-01T00:00:00Z",
            "assignments": [{"segment": 1}, {"segment": 2, "buckets": [0]}],
            "releasing": [2],
            "releasingBuckets": [{"segment": 2, "buckets": [1]}],
            "sharesSegments": True,
        }
    ],
}
TOPIC_SCHEMA, GROUP_SCHEMA = (
    our_schemas()[kind]["properties"]["status"] for kind in ("ScalableTopic", "ScalableTopicSubscription")
)


@fuzzing(300)
@given(randomness)
def test_a_status_that_the_api_server_takes_is_a_record_or_refused(rng: random.Random) -> None:
    """Somebody edits it, within the schema: what is read can be written, told and looked at."""
    status = varied(rng, STATUS, TOPIC_SCHEMA, 0.05)
    body = {"metadata": {"namespace": "a", "name": "b", "uid": "u", "generation": 1}, "status": status, "spec": {}}
    try:
        state = read_state(status)
    except LayoutError as error:
        refusal = str(error)
        assert 0 < len(refusal) <= 1000
        with pytest.raises(LayoutError):
            situation_of("a/b", body, "s")
        return
    json.dumps(with_state(status, state, FACTS, "2026-01-01T00:00:00Z"))
    recorded_managed(status)
    situation_of("a/b", body, "s")
    assert state.source is None or state.source.topic_count
    if state.layout is not None:
        layout_message(TOPIC, state, term=1, hold_ms=1, segment_topic=lambda topic, segment: segment.topic or "t")


@fuzzing(300)
@given(randomness)
def test_a_status_of_any_form_is_a_record_or_refused(rng: random.Random) -> None:
    status = mutated(rng, STATUS)
    try:
        read_state(status if isinstance(status, dict) else {"layout": status})
    except LayoutError as error:
        refusal = str(error)
        assert 0 < len(refusal) <= 1000


@fuzzing(200)
@given(randomness)
def test_a_group_that_the_api_server_takes_can_be_settled(rng: random.Random) -> None:
    status = varied(rng, GROUP_STATUS, GROUP_SCHEMA, 0.05)
    group = read_group(status)
    assert isinstance(group, Group)
    settled = group.settle(SegmentLayout.initial(2), 1)
    situation = situation_of("a/b", None, "s")
    now = "2026-01-01T00:00:00Z"
    json.dumps(write_group(status, settled, situation.phase, situation.standing, term=1, generation=1, now=now))


@fuzzing(300)
@given(randomness)
def test_properties_of_topics(rng: random.Random) -> None:
    found = {
        key: text_of(rng, json.loads(text)).decode("utf-8", "replace") if key.startswith("scalabletopics") else text
        for key, text in PROPERTIES.items()
    }
    for read in (claim_of, migrated_from_of, record_of):
        try:
            read(found)
        except BackendRefused as error:
            refusal = str(error)
            assert refusal


RECORD = json.loads(encode_record(SegmentRecord("b:1", 5, Rates(1, 2, 3, 4), {"s": 5}, 3, (4, Rates(1, 2, 3, 4)))))
PULSE_RECORD = json.loads(encode_pulse(Pulse(5, 120.0, True, 1, {"b:2": "no answer"})))


@fuzzing(300)
@given(randomness)
@example(random.Random(0))
def test_records_of_the_pipeline(rng: random.Random) -> None:
    """The follower's thread takes ValueError for a message that is none; any other would end it."""
    table = RecordTable()
    messages = [("a", text_of(rng, RECORD)), ("b", json.dumps(RECORD).encode()), (PULSE, text_of(rng, PULSE_RECORD))]
    messages += [(rng.choice(("a", PULSE)), rng.choice((*NESTED_TEXTS, *OTHER_TEXTS)))]
    for key, message in messages:
        try:
            table.take(key, message)
        except ValueError:
            continue
    if table.pulse is not None:
        sample = table.sample(3)
        assert all(one.rates is None or one.rates.is_usable for one in sample.segments.values())
        again = LoadSample.from_json(json.loads(json.dumps(sample.to_json(7))), 7)
        assert again.segments.keys() == sample.segments.keys()


@fuzzing(200)
@given(randomness)
def test_statistics_of_brokers(rng: random.Random) -> None:
    """What is not as brokers write it is not known, and never a number that decides."""
    found = [reading for _, reading in read_bulk(mutated(rng, {"t/n": {"b": {"persistent": {"x": STATS}}}}))]
    found += [one for one in (read_topic(mutated(rng, STATS)), read_segment(mutated(rng, SCALABLE_STATS), 0)) if one]
    assert all(one.rates.is_usable for one in found)


LEASE: dict[str, Any] = {
    "metadata": {
        "name": "scalable-topics-shard-3",
        "labels": {"scalabletopics.io/part": "shard"},
        "annotations": {TERM_ANNOTATION: "7", "scalabletopics.io/gateway": "10.0.0.1:8081"},
        "resourceVersion": "5",
        "uid": "u",
    },
    "spec": {"holderIdentity": "r", "leaseDurationSeconds": 15, "leaseTransitions": 3},
}


@fuzzing(200)
@given(randomness)
def test_leases_of_others(rng: random.Random) -> None:
    """Whatever texts somebody wrote where the API server lets them, a Lease is read."""
    lease = json.loads(json.dumps(LEASE))
    text = rng.choice(("", "9" * 5000, "-1", "٣", "²", "0x1", "1e9", " 7", "7\n", "x" * 9000, "\u202e"))
    place = rng.choice(("annotations", "labels", "spec", "gateway", "name"))
    if place == "annotations":
        lease["metadata"]["annotations"][TERM_ANNOTATION] = text
    elif place == "gateway":
        lease["metadata"]["annotations"]["scalabletopics.io/gateway"] = text
    elif place == "labels":
        lease["metadata"]["labels"] = rng.choice((None, {}, {"scalabletopics.io/part": text}))
    elif place == "name":
        lease["metadata"]["name"] = rng.choice(("scalable-topics-shard-", "scalable-topics-shard-" + "9" * 200, "x"))
    else:
        key = rng.choice(list(lease["spec"]))
        lease["spec"][key] = {"holderIdentity": text}.get(key, rng.choice((None, 0, -1, 2**31 - 1)))
    record = LeaseRecord.parse(lease)
    if record is not None:
        assert 0 <= record.term < 2**53
        json.dumps(replace(record, term=record.term + 1).body("ns", acquired=True))
        assert record.part != "shard" or record.shard >= 0


@fuzzing(200)
@given(randomness)
def test_checkpoints_to_restore(rng: random.Random) -> None:
    body = {"positions": [{"segment": 1, "bucket": 0, "ledgerId": 1, "entryId": 2, "batchIndex": 3}]}
    try:
        assert read_positions(mutated(rng, body))
    except Refusal as refusal:
        found = refusal
        assert found.status == 400
        assert len(found.reason) < 500


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (encode_job(["stream"]), decode_job),
        (encode_state(RunnerState(RunnerPhase.STARTING, "a", "b")), decode_state),
    ],
)
@fuzzing(100)
@given(randomness)
def test_files_between_operator_and_supervisor(text: str, read: Callable[[str], Any], rng: random.Random) -> None:
    with suppress(AttributeError, LookupError, TypeError, ValueError):
        read(text_of(rng, json.loads(text)).decode("utf-8", "replace"))
