"""Load samples between replicas: one of them asks the brokers, the others ask that one (R34)."""

from __future__ import annotations

import asyncio
import json
import logging
import time

from scalable_topics.layout.json_fields import MALFORMED
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.controllers.load_watch import LoadWatch
from scalable_topics_operator.gateway.peer_client import PeerClient, PeerError
from scalable_topics_operator.gateway.views import Leaders
from scalable_topics_operator.load.sample import LoadSample

logger = logging.getLogger(__name__)


class PeerLoads:
    """Asks the leader of a connection for its last sample.

    Args:
        client: reaches other replicas.
        leaders: who leads what.
    """

    def __init__(self, client: PeerClient, leaders: Leaders) -> None:
        self._client = client
        self._leaders = leaders

    async def ask(self, connection: ObjectKey) -> LoadSample | None:
        """The last sample of a connection that another replica leads; None if there is none to be had now."""
        leader = self._leaders.leader_of(connection)
        if leader is None or leader.is_me or not leader.address:
            return None
        try:
            answer = await self._client.load(leader.address, connection)
            # In a thread, as that of a large cluster takes a while.
            return await asyncio.to_thread(LoadSample.from_json, answer, _now_ms()) if answer is not None else None
        except PeerError as error:
            logger.info("%s", error)
        except MALFORMED as error:
            logger.warning("replica %s sent a sample of %s that cannot be read: %r", leader.identity, connection, error)
        return None


class OwnLoads:
    """What other replicas are told; implements `LoadSource`.

    Args:
        loads: the samples.
    """

    def __init__(self, loads: LoadWatch) -> None:
        self._loads = loads

    async def sample(self, key: ObjectKey) -> bytes | None:
        """The last sample this replica has made of a connection; None of one that it only heard of."""
        sample = self._loads.own_sample(key)
        return await asyncio.to_thread(_encoded, sample, _now_ms()) if sample is not None else None


def _encoded(sample: LoadSample, now_ms: int) -> bytes:
    return json.dumps(sample.to_json(now_ms), separators=(",", ":")).encode()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
