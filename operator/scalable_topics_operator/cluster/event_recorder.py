"""Kubernetes Events: what people see under `kubectl describe`."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeError
from scalable_topics_operator.cluster.resources import EVENTS

logger = logging.getLogger(__name__)

COMPONENT = "scalable-topics-operator"
_MESSAGE_LIMIT = 1024
_REMEMBERED = 4096


class EventRecorder:
    """Posts Events about objects; the same event about the same object is posted once per `repeat_seconds`.

    An Event that cannot be written is logged and dropped: it must never hold up the work it tells of.
    """

    def __init__(
        self,
        kube: KubeClient,
        *,
        repeat_seconds: float = 3600.0,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._kube = kube
        self._repeat_seconds = repeat_seconds
        self._monotonic = monotonic
        self._posted: dict[str, float] = {}

    async def normal(self, about: Mapping[str, Any], reason: str, message: str) -> None:
        """Tell of something that went as it should."""
        await self._post(about, "Normal", reason, message)

    async def warning(self, about: Mapping[str, Any], reason: str, message: str) -> None:
        """Tell of something a person should look at."""
        await self._post(about, "Warning", reason, message)

    async def _post(self, about: Mapping[str, Any], kind: str, reason: str, message: str) -> None:
        metadata = about["metadata"]
        digest = hashlib.sha256(f"{metadata['uid']}{kind}{reason}{message}".encode()).hexdigest()[:16]
        now = self._monotonic()
        if now - self._posted.get(digest, -self._repeat_seconds) < self._repeat_seconds:
            return
        self._remember(digest, now)
        stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        namespace = metadata.get("namespace", "default")
        body: Body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {
                "name": f"{metadata['name'][:200]}.{digest}{int(time.time()):x}",
                "namespace": namespace,
            },
            "involvedObject": {
                "apiVersion": about["apiVersion"],
                "kind": about["kind"],
                "name": metadata["name"],
                "namespace": namespace,
                "uid": metadata["uid"],
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            "type": kind,
            "reason": reason,
            "message": message[:_MESSAGE_LIMIT],
            "source": {"component": COMPONENT},
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
            "count": 1,
        }
        try:
            await self._kube.create(EVENTS, namespace, body)
        except KubeConflict:
            return
        except KubeError as error:
            logger.warning("event not written: %s", error)

    def _remember(self, digest: str, now: float) -> None:
        if len(self._posted) >= _REMEMBERED:
            for old in sorted(self._posted, key=self._posted.__getitem__)[: _REMEMBERED // 2]:
                del self._posted[old]
        self._posted[digest] = now
