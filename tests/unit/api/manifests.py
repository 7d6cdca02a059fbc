"""Manifests that between them use every field of every kind."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

Manifest = dict[str, Any]

KNOBS: Manifest = {
    "enabled": True,
    "minSegments": 2,
    "maxSegments": 32,
    "maxDagDepth": 8,
    "depthRecovery": "1h30m",
    "split": {
        "cooldown": "90s",
        "maxFanout": 4,
        "msgRateIn": "10k",
        "bytesRateIn": "50Mi",
        "msgRateOut": 50000,
        "bytesRateOut": "250M",
    },
    "merge": {
        "cooldown": 300,
        "window": "5m",
        "msgRateIn": "1k",
        "bytesRateIn": "5Mi",
        "msgRateOut": 5000,
        "bytesRateOut": "25M",
    },
    "rebucket": {
        "cooldown": "60s",
        "maxPerSegment": 64,
        "splitVsRebucketMinMsgRateIn": "1k",
        "downWindow": "10m",
        "budget": 8,
        "drainFanOut": False,
    },
}

CONDITIONS: list[Manifest] = [
    {
        "type": "Ready",
        "status": "True",
        "observedGeneration": 3,
        "lastTransitionTime": "2026-11-27T10:00:00Z",
        "reason": "Reconciled",
        "message": "2 active segments",
    },
    {
        "type": "Reconciling",
        "status": "False",
        "observedGeneration": 3,
        "lastTransitionTime": "2026-11-27T10:00:00Z",
        "reason": "Reconciled",
        "message": "",
    },
]

SPARK_APPLICATION: Manifest = {
    "apiVersion": "spark.apache.org/v1",
    "image": "registry.example.com/segment-load:0.1.0",
    "imagePullPolicy": "Always",
    "imagePullSecrets": ["registry", "mirror"],
    "serviceAccount": "segment-load",
    "folder": "/load",
    "volumeClaim": "segment-load",
    "driver": {"cores": 2, "memory": "2g", "cpuLimit": "2"},
    "executor": {"cores": 4, "memory": "1536m", "cpuLimit": "4500m", "instances": 3},
    "dynamicAllocation": {"enabled": False, "minExecutors": 2, "maxExecutors": 8},
    "sparkConf": {"spark.ui.enabled": "true"},
    "environmentSecretRef": {"name": "object-store"},
    "nodeSelector": {"example.com/pool": "spark"},
    "tolerations": [
        {
            "key": "example.com/spark",
            "operator": "Equal",
            "value": "only",
            "effect": "NoExecute",
            "tolerationSeconds": 60,
        }
    ],
    "ttlSeconds": 600,
}

_CONNECTION: Manifest = {
    "adminUrl": "https://pulsar.example.com:8443",
    "serviceUrl": "pulsar+ssl://pulsar.example.com:6651",
    "auth": {"token": {"secretRef": {"name": "pulsar-token", "key": "jwt"}}},
    "superuserAuth": {"token": {"secretRef": {"name": "pulsar-superuser", "key": "jwt"}}},
    "tls": {"caSecretRef": {"name": "pulsar-ca", "key": "bundle.pem"}, "verifyHostname": False},
    "limits": {"maxConcurrentRequests": 8, "requestTimeoutSeconds": 20, "maxRetries": 1},
    "trustedBrokers": ["broker-0.example.com:8443", "broker-1.example.com", "[2001:db8::1]:8443"],
    "backend": "Classic",
    "inactiveTopicProtection": "Namespace",
    "probeIntervalSeconds": 15,
    "allow": {
        "namespaces": ["shop", "team-*"],
        "pulsarNamespaces": ["acme/orders", "public/*"],
        "operations": ["Adopt", "Migrate"],
    },
    "load": {
        "source": "Pipeline",
        "runner": "SparkApplication",
        "intervalSeconds": 30,
        "recordsTopic": "persistent://acme/load/records",
        "history": {"path": "s3a://history/loads", "retentionDays": 7},
        "sparkApplication": SPARK_APPLICATION,
    },
    "pulsarNamespaceMappings": [{"pulsarNamespace": "acme/orders", "namespace": "shop"}],
}

_OTHER_AUTH: tuple[Manifest, ...] = (
    {"basic": {"secretRef": {"name": "admin"}, "usernameKey": "user", "passwordKey": "pass"}},
    {
        "oauth2": {
            "issuerUrl": "https://issuer.example.com/realms/acme",
            "audience": "pulsar",
            "scope": "admin offline_access",
            "credentialsSecretRef": {"name": "client", "key": "client.json"},
        }
    },
    {"mtls": {"secretRef": {"name": "client-certificate"}}},
)

_TOPIC: Manifest = {
    "topic": "topic://acme/shop/orders",
    "connectionRef": {"name": "main", "namespace": "pulsar"},
    "segments": {"initial": 2, "desired": 4},
    "bucketBudget": 8,
    "subscriptions": [
        {"name": "billing", "initialPosition": "Latest", "deletionPolicy": "Delete"},
        {"name": "audit", "initialPosition": "Earliest", "deletionPolicy": "Retain"},
    ],
    "autoScale": {**KNOBS, "engine": "Operator"},
    "permissions": [{"role": "shop", "actions": ["produce", "consume"]}],
    "policies": {
        "perSegment": {
            "messageTTLSeconds": 86400,
            "retentionTimeMinutes": 1440,
            "schemaCompatibilityStrategy": "BACKWARD",
        },
        "total": {
            "retentionSizeMegabytes": 10240,
            "backlogQuotaBytes": 1073741824,
            "backlogQuotaAction": "producer_exception",
            "publishMessagesPerSecond": 100000,
            "publishBytesPerSecond": 104857600,
            "dispatchMessagesPerSecond": -1,
            "dispatchBytesPerSecond": -1,
        },
    },
    "deduplication": True,
    "properties": {"owner": "shop"},
    "migrateFrom": {"topic": "persistent://acme/shop/old-orders", "force": True},
    "deletionPolicy": "Delete",
    "paused": True,
    "adopt": True,
}

_POLICY: Manifest = {
    **KNOBS,
    "target": {"scope": "PulsarNamespace", "connectionRef": {"name": "main"}, "pulsarNamespace": "acme/orders"},
}

_STREAM: Manifest = {
    "scalableTopic": "orders",
    "subscription": "billing",
    "type": "Stream",
    "initialPosition": "Latest",
}


def _operation(kind: str, **block: Any) -> Manifest:
    return {"scalableTopic": "orders", "type": kind, "dryRun": True, "ttlSecondsAfterFinished": 3600, **block}


SPECS: Mapping[str, tuple[Manifest, ...]] = {
    "ScalableTopicConnection": (
        _CONNECTION,
        *({**_CONNECTION, "auth": auth, "superuserAuth": auth} for auth in _OTHER_AUTH),
    ),
    "ScalableTopic": (_TOPIC,),
    "SegmentOperation": (
        _operation("Split", split={"segment": 3, "at": 32768, "into": 2}),
        _operation("Split", split={"segment": 3, "into": 8}),
        _operation("Merge", merge={"segments": [4, 3]}),
        _operation("Rebucket", rebucket={"segment": 3, "buckets": 16}),
        _operation("Prune", prune={"segments": [0, 1]}),
        _operation("Prune"),
        _operation("Migrate", migrate={"force": True}),
        _operation("Migrate"),
        _operation("Seek", seek={"subscription": "billing", "timestamp": "2026-11-27T10:00:00Z"}),
        _operation("SkipAll", skipAll={"subscription": "billing"}),
        _operation(
            "Restore",
            restore={
                "subscription": "billing",
                "positions": [
                    {"segment": 3, "bucket": 1, "ledgerId": 7, "entryId": 9, "batchIndex": 2},
                    {"segment": 4, "bucket": 2, "ledgerId": 8, "entryId": -1, "batchIndex": -1},
                ],
                "allowGaps": True,
            },
        ),
    ),
    "SegmentAutoScalePolicy": (
        _POLICY,
        {**KNOBS, "target": {"scope": "Cluster", "connectionRef": {"name": "main"}}},
        {
            **KNOBS,
            "target": {
                "scope": "Topics",
                "selector": {
                    "matchLabels": {"team": "shop"},
                    "matchExpressions": [
                        {"key": "tier", "operator": "In", "values": ["gold", "silver"]},
                        {"key": "frozen", "operator": "DoesNotExist"},
                    ],
                },
            },
        },
        {**KNOBS, "target": {"scope": "Topic", "topicRef": {"name": "orders"}}},
    ),
    "ScalableTopicSubscription": (
        _STREAM,
        {"scalableTopic": "orders", "subscription": "rebuild", "type": "Checkpoint", "group": "nightly"},
    ),
}

MINIMAL_SPECS: Mapping[str, Manifest] = {
    "ScalableTopicConnection": {"adminUrl": "http://localhost:8080"},
    "ScalableTopic": {"topic": "orders", "connectionRef": {"name": "main"}},
    "SegmentOperation": {"scalableTopic": "orders", "type": "Split", "split": {"segment": 0}},
    "SegmentAutoScalePolicy": {"target": {"scope": "Topics", "selector": {}}},
    "ScalableTopicSubscription": {"scalableTopic": "orders", "subscription": "billing", "type": "Stream"},
}

_CARRIED_POLICIES = {
    "messageTtlSeconds": 3600,
    "retentionMinutes": 1440,
    "retentionMegabytes": 1024,
    "backlogQuotaBytes": 1000000000,
    "backlogQuotaAction": "producer_request_hold",
    "publishMessagesPerSecond": 1000,
    "publishBytesPerSecond": 1000000,
    "dispatchMessagesPerSecond": 2000,
    "dispatchBytesPerSecond": 2000000,
    "schemaCompatibilityStrategy": "FULL",
    "deduplication": True,
}
_MIGRATED_FROM = {
    "partitions": 4,
    "atMs": 1795000000000,
    "properties": {"team": "orders"},
    "policies": _CARRIED_POLICIES,
    "subscriptions": [{"name": "billing", "kind": "Queue"}],
}
_REQUEST: Manifest = {"kind": "SegmentOperation", "name": "split-0", "uid": "5a1f"}

STATUSES: Mapping[str, Manifest] = {
    "ScalableTopicConnection": {
        "observedGeneration": 3,
        "conditions": CONDITIONS,
        "version": "4.2.4",
        "clusterName": "standalone",
        "clusterId": "standalone/6f2c",
        "backend": "Classic",
        "brokers": ["broker-0.example.com:8443", "broker-1.example.com:8443"],
        "rights": {"superuser": True, "missing": ["namespace policies of acme/orders"]},
        "orphans": [{"topic": "topic://acme/shop/left", "segments": 2, "owner": "shop/left"}],
        "namespacePolicies": [{"pulsarNamespace": "acme/orders", "problem": "there is no such namespace"}],
    },
    "ScalableTopic": {
        "observedGeneration": 3,
        "conditions": CONDITIONS,
        "topic": "topic://acme/shop/orders",
        "backend": "Classic",
        "clusterId": "standalone/6f2c",
        "incarnation": "5a1f.0",
        "layout": {
            "version": 1,
            "epoch": 2,
            "nextSegmentId": 3,
            "segments": [
                {
                    "id": 0,
                    "range": "0000-ffff",
                    "state": "SEALED",
                    "parents": ["0-1"],
                    "createdAtEpoch": 1,
                    "sealedAtEpoch": 2,
                    "createdAtMs": 1795000000000,
                    "sealedAtMs": 1795000001000,
                    "buckets": 4,
                    "mergeDepth": 1,
                    "createdBy": "Split",
                    "topic": "persistent://acme/shop/old-orders-partition-0",
                    "sealedPosition": "12:345",
                },
                {"id": 1, "range": "0000-7fff", "state": "ACTIVE"},
            ],
        },
        "segments": {"active": 2, "sealed": 1},
        "selector": "scalabletopics.io/topic=orders",
        "operation": {
            "id": "a1b2",
            "kind": "Split",
            "step": "Sealing",
            "term": 7,
            "parents": [1],
            "children": [{"id": 3, "range": "0000-3fff", "buckets": 2, "mergeDepth": 1}],
            "subscriptions": ["billing"],
            "nextSegmentId": 5,
            "announcements": 2,
            "seekToMs": 1764237600000,
            "positions": [{"segment": 1, "bucket": 0, "ledgerId": 7, "entryId": 9, "batchIndex": 2}],
            "inDoubt": ["payments-1"],
            "startedAt": "2026-11-27T10:00:00Z",
            "request": _REQUEST,
            "sealedPositions": {"1": "13:7"},
            "result": "RolledBack",
            "message": "waiting for producers",
            "reason": "msgRateIn: segment 1 is at 240 % of split.msgRateIn",
            "migration": {"source": _MIGRATED_FROM, "force": True},
        },
        "migratedFrom": _MIGRATED_FROM,
        "pruned": [
            {
                "id": 0,
                "range": "0000-ffff",
                "children": [1, 2],
                "createdBy": "Create",
                "createdAtMs": 1795000000000,
                "sealedAtMs": 1795000001000,
                "prunedAtMs": 1795000060000,
            }
        ],
        "clocks": {"splitAtMs": 1795000001000, "mergeAtMs": 1795000002000, "rebucketAtMs": 1795000003000},
        "settled": [{"segment": 0, "producers": [{"name": "payments-1", "sequenceId": -1}]}],
        "deleting": [
            {
                "id": 0,
                "topic": "persistent://acme/shop/orders-segment-0000-ffff-0",
                "sinceMs": 1795000002000,
                "forceAfterMs": 1795000302000,
                "legacy": True,
            }
        ],
        "subscriptions": [
            {
                "name": "billing",
                "phase": "Active",
                "initialPosition": "Latest",
                "deletionPolicy": "Delete",
                "outOfScope": [0],
                "floors": [{"segment": 3, "bucket": 1, "ledgerId": 7, "entryId": 9, "batchIndex": -1}],
                "requested": True,
                "ordered": True,
                "forced": True,
            }
        ],
        "managedPolicies": ["message_ttl_seconds"],
        "managedPermissions": [{"role": "shop", "actions": ["consume", "produce"]}],
        "actions": [
            {
                "id": "a1b1",
                "kind": "Split",
                "at": "2026-11-27T09:00:00Z",
                "epoch": 2,
                "parents": [0],
                "children": [1, 2],
                "result": "Succeeded",
                "message": "by hand",
                "reason": "cold: segments 1 and 2 are at 0 % of a split threshold together",
                "subscription": "billing",
                "request": _REQUEST,
            }
        ],
        "lastAction": "split 0 into 1 and 2",
        "reports": [{"reason": "SegmentResurrected", "message": "segment 0 holds 3 messages"}],
    },
    "SegmentOperation": {
        "observedGeneration": 1,
        "phase": "Succeeded",
        "step": "Sealing",
        "operationId": "a1b2",
        "message": "split 1 into 3 and 4",
        "reason": "BrokerRefused",
        "conditions": CONDITIONS,
        "plan": {
            "parents": [{"id": 1, "range": "0000-7fff"}],
            "children": [{"id": 3, "range": "0000-3fff", "buckets": 2}],
            "subscriptions": ["billing"],
            "notes": ["2 producers are connected"],
            "migration": {
                "partitions": 4,
                "entries": 100000,
                "storageBytes": 12000000,
                "subscriptions": [{"name": "billing", "kind": "Queue", "backlogEntries": 50000}],
                "clientCount": 1,
                "clients": [
                    {
                        "role": "Consumer",
                        "topic": "persistent://acme/shop/orders-partition-0",
                        "name": "c-1",
                        "address": "/10.0.0.7:51000",
                        "version": "Pulsar-Java-v4.0.0",
                        "subscription": "billing",
                    }
                ],
                "properties": ["team"],
                "policies": _CARRIED_POLICIES,
                "policiesNotCarried": ["maxProducers"],
                "schemas": 2,
                "obstacles": [{"reason": "LegacyClients", "message": "1 connections of clients"}],
            },
        },
        "children": [3, 4],
        "epoch": 3,
        "startedAt": "2026-11-27T10:00:00Z",
        "completedAt": "2026-11-27T10:00:01.250Z",
    },
    "SegmentAutoScalePolicy": {
        "observedGeneration": 1,
        "conditions": CONDITIONS,
        "matchedTopics": 12,
        "effective": [
            {
                "knob": "split.msgRateIn",
                "value": "10000",
                "unit": "messages/s",
                "origin": "SegmentAutoScalePolicy shop/orders",
            },
            {"knob": "enabled", "value": "true", "origin": "default"},
        ],
    },
    "ScalableTopicSubscription": {
        "observedGeneration": 1,
        "conditions": CONDITIONS,
        "phase": "Active",
        "term": 7,
        "version": {"term": 7, "epoch": 3, "counter": 12},
        "consumers": [
            {
                "name": "worker-0",
                "incarnation": "9c0d",
                "registeredAt": "2026-11-27T10:00:00Z",
                "assignments": [{"segment": 3, "buckets": [0, 1]}],
                "releasing": [4],
                "releasingBuckets": [{"segment": 5, "buckets": [3]}],
                "sharesSegments": True,
            }
        ],
        "drained": [0],
    },
}


def manifest(kind: str, spec: Manifest, status: Manifest | None = None, name: str = "example") -> Manifest:
    """A whole object; changing it leaves the examples as they are."""
    body: Manifest = {
        "apiVersion": "scalabletopics.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": copy.deepcopy(spec),
    }
    if status is not None:
        body["status"] = copy.deepcopy(status)
    return body
