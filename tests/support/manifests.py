"""Manifests as a user would write them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from dev.access import NATIVE_ADMIN_URL

API_VERSION = "scalabletopics.io/v1alpha1"
Manifest = dict[str, Any]


def secret(name: str, **data: str) -> Manifest:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


def connection(name: str, admin_url: str, secret_name: str = "pulsar-token", **spec: Any) -> Manifest:
    """A connection; where brokers of Pulsar 5 are, its new topics are Classic nevertheless, unless `spec` says else."""
    if os.environ.get(NATIVE_ADMIN_URL):
        spec = {"backend": "Classic"} | spec
    return {
        "apiVersion": API_VERSION,
        "kind": "ScalableTopicConnection",
        "metadata": {"name": name},
        "spec": {
            "adminUrl": admin_url,
            "auth": {"token": {"secretRef": {"name": secret_name}}},
            "probeIntervalSeconds": 5,
            **spec,
        },
    }


def topic(
    name: str,
    topic_name: str,
    *,
    connection_name: str = "pulsar",
    initial: int = 1,
    subscriptions: Iterable[str | dict[str, str]] = (),
    **spec: Any,
) -> Manifest:
    segments = {"initial": initial, **spec.pop("segments", {})}
    return {
        "apiVersion": API_VERSION,
        "kind": "ScalableTopic",
        "metadata": {"name": name},
        "spec": {
            "topic": topic_name,
            "connectionRef": {"name": connection_name},
            "segments": segments,
            "subscriptions": [{"name": entry} if isinstance(entry, str) else entry for entry in subscriptions],
            **spec,
        },
    }


def operation(name: str, topic_name: str, kind: str, *, dry_run: bool = False, **block: Any) -> Manifest:
    spec: dict[str, Any] = {"scalableTopic": topic_name, "type": kind, "dryRun": dry_run}
    if block:
        spec[kind[:1].lower() + kind[1:]] = block
    return {
        "apiVersion": API_VERSION,
        "kind": "SegmentOperation",
        "metadata": {"name": name},
        "spec": spec,
    }


def policy(name: str, scope: str, target: Manifest, **knobs: Any) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": "SegmentAutoScalePolicy",
        "metadata": {"name": name},
        "spec": {"target": {"scope": scope, **target}, **knobs},
    }


def merged(below: Manifest, above: Manifest) -> Manifest:
    """A mapping with another laid over it, key by key; neither is changed."""
    both = dict(below)
    for key, value in above.items():
        both[key] = merged(both[key], value) if isinstance(value, dict) and isinstance(both.get(key), dict) else value
    return both
