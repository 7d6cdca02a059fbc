"""A gateway in a process of its own, over a cache that its parent has filled line by line.

Reads commands from its input, and answers each with a line of JSON: `commit` gives the topic its next state, and the
answer says when (monotonic, which all processes of a machine share); `usage` asks for resident memory and CPU time.
"""

import argparse
import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Mapping
from typing import Any

from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_login import KubeEndpoint
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.peers import Peer
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.topic_work import BY_NAME, canonical_topic
from scalable_topics_operator.gateway.peer_transport import PeerTransport
from scalable_topics_operator.gateway.server import Gateway, load_certificate
from scalable_topics_operator.gateway.session_places import SessionLimits
from scalable_topics_operator.operations.journal import Step
from scalable_topics_operator.telemetry.metrics import Metrics
from tests.unit.gateway.pulsar_cluster import Clusters
from tests.unit.gateway.topics import created, splitting, topic_body

_MANY = 100_000


class _Leader:
    """Implements `Leaders`."""

    def leader_of(self, key: ObjectKey) -> Peer | None:
        return Peer("replica", "127.0.0.1:1", is_me=True, term=1)


def main() -> None:
    """Serve until the input ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--api-server", required=True)
    parser.add_argument("--segments", type=int, required=True)
    parser.add_argument("--certificate", default="")
    parser.add_argument("--key", default="")
    # A session is a file, and so is its connection at the other end.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    asyncio.run(_serve(parser.parse_args()))


async def _serve(arguments: argparse.Namespace) -> None:
    cache = ObjectCache()
    cache.add_index(BY_NAME, TOPICS, canonical_topic)
    state = created(arguments.segments)
    cache.observe(TOPICS, topic_body(state))
    endpoint = KubeEndpoint(arguments.api_server, None, {}, "default")
    async with (
        KubeClient(endpoint) as kube,
        PeerTransport() as transport,
        Gateway(
            host="127.0.0.1",
            port=0,
            address="",
            certificate=load_certificate(arguments.certificate, arguments.key),
            kube=kube,
            cache=cache,
            connections=Clusters(),
            leaders=_Leader(),
            transport=transport,
            metrics=Metrics(),
            hold_seconds=10.0,
            limits=SessionLimits(_MANY, _MANY),
            routes=(),
        ) as gateway,
    ):
        _say({"address": gateway.address})
        commits = 0
        while command := (await asyncio.to_thread(sys.stdin.readline)).strip():
            if command == "commit":
                commits += 1
                announced = splitting(state, 0, Step.ANNOUNCING, announcements=commits)
                body = topic_body(announced, commits + 1)
                at_seconds = time.monotonic()
                cache.observe(TOPICS, body)
                _say({"at": at_seconds})
            else:
                _say(_usage())


def _usage() -> Mapping[str, Any]:
    with open("/proc/self/statm") as statm:
        pages = int(statm.read().split()[1])
    return {"resident": pages * os.sysconf("SC_PAGE_SIZE"), "cpu": time.process_time()}


def _say(answer: Mapping[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
