"""A sealed backlog drained by one consumer, by four and by sixteen: `make show-bucket-drain`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.support.bucket_drain import BUCKETS, KEYS, Backlog, Drain
from tests.support.drain_record import DrainRecord
from tests.support.evidence import Evidence, table
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import replicas

_MESSAGES = int(os.environ.get("BACKLOG_MESSAGES", "1000000"))
_CONSUMERS = (1, 4, 16)
# What handling a message takes; 0 for an application that only counts it.
_HANDLING_MS = (1.0, 0.0)
_PART = "What was seen"
_DRAINS = [Drain(consumers, handling_ms) for handling_ms in _HANDLING_MS for consumers in _CONSUMERS]


@pytest.mark.timeout(7200)
async def test_a_sealed_backlog_is_drained_by_several(
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    kube_environment: KubernetesAccess,
    tmp_path: Path,
) -> None:
    title = f"A sealed backlog of {_MESSAGES:,} messages drained by 1, 4 and 16 consumers"
    page = Evidence("bucket-drain.md", title, "make show-bucket-drain", (_PART,))
    records = {}
    async with replicas(1, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, ("--log-level=INFO",)) as one:
        backlog = Backlog(one, pulsar, tmp_path, _MESSAGES)
        await backlog.fill(_DRAINS)
        for drain in _DRAINS:
            record = records[drain] = await backlog.drained(drain)
            assert len(record.shares) == drain.consumers
            assert min(record.shares) > 0, f"{drain}: somebody got nothing of the backlog"
            print(drain, records[drain])
    lines = _told(records, backlog)
    print(*lines, sep="\n")
    page.show(_PART, *lines)
    page.write()


def _told(records: dict[Drain, DrainRecord], backlog: Backlog) -> list[str]:
    lines = [
        f"A segment of {BUCKETS} entry buckets with {_MESSAGES:,} messages over {KEYS:,} keys is split, and "
        f"{backlog.after:,} more messages of these keys go to its children. Each row is a subscription of its own, "
        "which has all of them to read; its consumers are processes that begin together. The time is from "
        "the first message of the backlog that any of them received to the last one, joining and dealing out the "
        "buckets included.",
    ]
    for handling_ms in _HANDLING_MS:
        rows = [
            (
                drain.consumers,
                f"{record.seconds:.1f} s",
                f"{_MESSAGES / record.seconds:,.0f}/s",
                f"{records[Drain(_CONSUMERS[0], handling_ms)].seconds / record.seconds:.2f}",
                f"{record.busy_seconds:.1f} s",
                f"{min(record.shares):,} to {max(record.shares):,}",
                record.lost,
                record.disordered,
                record.again,
            )
            for drain, record in records.items()
            if drain.handling_ms == handling_ms
        ]
        header = ("consumers", "time", "rate", "speed-up", "all busy after", "of the backlog each had", "lost")
        what = f"Handling a message takes {handling_ms:g} ms" if handling_ms else "Messages are only counted"
        end = "." if handling_ms else ", as fast as the machine's cores allow, which run the broker, too."
        lines += ["", what + end, "", *table((*header, "disorder", "came again"), rows)]
    return lines
