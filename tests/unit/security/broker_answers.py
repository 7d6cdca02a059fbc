"""What a real broker answers to every call whose answer is read, and a cluster whose brokers answer something else."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import dataclass, field
from typing import Any, cast

from scalable_topics.layout import SegmentLayout, TopicName, classic_segment_name, to_pip468
from scalable_topics_operator.backends.admin.call import Answer, Call
from scalable_topics_operator.backends.admin.credentials import Token
from scalable_topics_operator.backends.admin.http import AdminHttp
from scalable_topics_operator.backends.admin.packed_text import PackedText
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.claim_properties import claim_properties
from scalable_topics_operator.backends.classic.segment_record import record_properties
from tests.support.hostile import text_of
from tests.unit.operations.builders import CLAIM, record_of

TOPIC = TopicName.parse("t/n/x")
LAYOUT = SegmentLayout.initial(2, created_at_ms=1000)
SEGMENT = classic_segment_name(TOPIC, LAYOUT.segment(0).hash_range, 0)
STATS: dict[str, Any] = {
    "msgRateIn": 1.5,
    "msgThroughputIn": 300.0,
    "msgRateOut": 3.0,
    "msgThroughputOut": 600.0,
    "msgInCounter": 7,
    "ongoingTxnCount": 0,
    "publishers": [{"producerName": "p", "address": "/10.0.0.1:5", "clientVersion": "Java 4", "metadata": {"a": "b"}}],
    "subscriptions": {
        "s": {
            "type": "Failover",
            "isDurable": True,
            "msgBacklog": 4,
            "consumers": [{"consumerName": "c", "address": "/10.0.0.1:6", "metadata": {}}],
        },
        "__compaction": {"type": "Exclusive", "isDurable": True, "msgBacklog": 0, "consumers": []},
    },
}
INTERNAL: dict[str, Any] = {
    "state": "Terminated",
    "lastConfirmedEntry": "40:4",
    "pendingAddEntriesCount": 0,
    "numberOfEntries": 8,
    "totalSize": 999,
    "ledgers": [{"ledgerId": 38, "entries": 3}, {"ledgerId": 40, "entries": 0}],
    "cursors": {"s": {"markDeletePosition": "40:-1"}, "__compaction": {"markDeletePosition": "40:4"}},
}
LOAD = {"msgRateIn": 1.0, "byteRateIn": 2.0, "msgRateOut": 3.0, "byteRateOut": 4.0}
SCALABLE_STATS: dict[str, Any] = {
    "autoScale": {"policy": {"enabled": True}},
    "layout": {
        "segments": {"0": {"terminated": True, "load": LOAD}, "2": {"terminated": False, "load": LOAD}},
        "lastOperation": {"operation": "merge", "trigger": "manual", "segmentIds": [0, 1], "status": "success"},
    },
    "producers": [{"producerName": "p"}],
    "subscriptions": {
        "q": {
            "type": "QUEUE",
            "msgBacklog": 7,
            "uncoveredSegmentIds": [1],
            "segments": {"2": {"consumerCount": 2, "msgBacklog": 3}},
            "consumers": [{"consumerName": "c"}],
        }
    },
}
PROPERTIES = {
    **claim_properties(CLAIM, {"team": "shop"}),
    **record_properties(record_of(LAYOUT.segment(0), (0, 1), "one", 2)),
    "scalabletopics.io/migrated-from": json.dumps(
        {
            "partitions": 2,
            "atMs": 5,
            "policies": {"messageTtlSeconds": 5},
            "subscriptions": [{"name": "s", "kind": "Q"}],
        }
    ),
}
_SCHEMA = {"version": 0, "type": "STRING", "data": "", "properties": {"a": "b"}, "timestamp": 5}
_BULK = {"t/n": {"0x00000000_0xffffffff": {"persistent": {SEGMENT: {**STATS, "msgInCount": 7}}}}}
_GRANTS = {"role": ["produce", "consume", None]}

ANSWERS: dict[str, Any] = {
    "get-partitions": {"partitions": 2, "deleted": False},
    "get-properties": PROPERTIES,
    "terminate": {"ledgerId": 40, "entryId": 4, "partitionIndex": -1},
    "get-stats": STATS,
    "get-internal-stats": INTERNAL,
    "list-subscriptions": ["s", "__compaction"],
    "get-permissions": _GRANTS,
    "get-version": "4.2.4",
    "list-clusters": ["standalone"],
    "get-cluster": {"serviceUrl": "http://b:8080", "brokerServiceUrl": "pulsar://b:6650"},
    "list-brokers": ["b:8080"],
    "get-configuration": {
        "clusterName": "c",
        "statsUpdateFrequencyInSecs": "60",
        "statsUpdateInitialDelayInSecs": "60",
    },
    "get-broker-stats": _BULK,
    "list-topics": [SEGMENT, "persistent://t/n/x", "persistent://t/n/y-partition-0"],
    "get-namespace-policies": {"auth_policies": {"destination_auth": {SEGMENT: _GRANTS}}, "retention": None},
    "get-namespace-permissions": _GRANTS,
    "get-namespace-inactiveTopicPolicies": {"inactiveTopicDeleteMode": "delete_when_no_subscriptions"},
    "get-namespace-replication": ["c"],
    "get-namespace-maxTopicsPerNamespace": 5,
    "get-namespace-compactionThreshold": 0,
    "get-namespace-subscriptionExpirationTime": 0,
    "get-namespace-retention": {"retentionTimeInMinutes": 5, "retentionSizeInMB": -1},
    "get-namespace-scalableTopicAutoScalePolicy": {"maxSegments": 4},
    "get-namespace-autoTopicCreation": {"allowAutoTopicCreation": True},
    "list-schemas": {"getSchemaResponses": [_SCHEMA]},
    "post-schema": {"version": {"version": 3}},
    "publish": {"messagePublishResults": [{"messageId": "1:2:-1", "errorCode": 0}], "schemaVersion": 0},
    "examine-message": {"version": 1},
    "lookup": {"brokerUrl": "pulsar://b:6650", "httpUrl": "http://b:8080"},
    "get-scalable": {**to_pip468(LAYOUT, PROPERTIES), "autoScalePolicy": {"maxSegments": 5}},
    "get-scalable-stats": SCALABLE_STATS,
    "get-segment-stats": STATS,
    "get-retention": {"retentionTimeInMinutes": 5, "retentionSizeInMB": -1},
    "get-backlogQuotaMap": {"destination_storage": {"limitSize": 5, "policy": "producer_exception"}},
    "get-messageTTL": 5,
    "get-replication": ["c"],
    "get-compactionThreshold": 5,
    "get-inactiveTopicPolicies": {"inactiveTopicDeleteMode": "delete_when_no_subscriptions"},
    "get-publishRate": {"publishThrottlingRateInMsg": 5, "publishThrottlingRateInByte": -1},
    "get-dispatchRate": {"dispatchThrottlingRateInMsg": 5, "dispatchThrottlingRateInByte": -1},
}
"""By the operation of the call. Calls that are not here are answered with nothing, and nothing of them is read."""


@dataclass
class HostileBrokers:
    """Stands for an `AdminHttp` whose brokers answer some calls with what is not as it should be.

    Args:
        rng: chooses which, and what.
        share: of the answers that are hostile.
        heard: operations that were answered.
    """

    rng: random.Random = field(default_factory=lambda: random.Random(0))
    share: float = 1.0
    admin_url: str = "http://b:8080"
    heard: set[str] = field(default_factory=set)

    async def send(self, call: Call) -> Answer:
        """An answer to a call."""
        self.heard.add(call.operation)
        body = ANSWERS.get(call.operation)
        if body is None:
            return Answer(204)
        hostile = self.rng.random() < self.share
        text = text_of(self.rng, body) if hostile else json.dumps(body).encode()
        if call.is_kept_packed:
            return Answer(200, packed=self._packed(text, hostile))
        return Answer(200, text.decode("utf-8", "replace"), message_headers=self._headers(hostile))

    async def send_as(self, call: Call, token: Token) -> Answer:
        """The same with somebody's token."""
        return await self.send(call)

    async def find_owner(self, call: Call) -> None:
        """Nothing is found."""

    def admin(self) -> PulsarAdmin:
        """The client of it."""
        return PulsarAdmin(cast(AdminHttp, self))

    def _packed(self, text: bytes, hostile: bool) -> PackedText:
        encoding = self.rng.choice(("", "gzip", "GZIP") if not hostile else ("", "gzip", "gzip", "br", "\xff"))
        content = gzip.compress(text) if encoding.lower() == "gzip" else text
        if hostile and self.rng.random() < 0.5:
            at = self.rng.randrange(len(content) + 1)
            content = content[:at] + self.rng.choice((b"", b"\xff", content)) + content[at + 1 :]
        return PackedText(content, encoding, most_bytes=10_000_000)

    def _headers(self, hostile: bool) -> dict[str, str]:
        headers = {"producer-name": "p", "sequence-id": "7", "num-batch-message": "3"}
        if hostile:
            headers[self.rng.choice(list(headers))] = self.rng.choice(("", "x", "9" * 5000, "-1", "1e3", "\xff"))
        return headers
