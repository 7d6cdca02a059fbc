"""Topics of 100,000 messages are migrated under traffic: `make show-migration`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.support.evidence import Evidence, table
from tests.support.migrated_traffic import QUEUE, STREAM, migrate_under_traffic
from tests.support.operator_guarantee import percentile
from tests.support.pulsar_view import PulsarView
from tests.support.replicas import replicas

_RETAINED = 100_000
_PARTITIONS = (0, 1, 4, 16)
_RUNS = "Migrations"


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence("migration.md", "Ordinary topics migrated under traffic", "make show-migration", (_RUNS,))
    yield page
    page.write()


@pytest.mark.timeout(2400)
async def test_nothing_is_lost_repeated_or_out_of_order(
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    kube_environment: KubernetesAccess,
    tmp_path: Path,
    evidence: Evidence,
) -> None:
    # As people run it, but for the log.
    rows = []
    async with replicas(2, kube, view, pulsar, kube_environment.kubeconfig, tmp_path, ("--log-level=INFO",)) as two:
        await two.until_shared()
        for partitions in _PARTITIONS:
            found = await migrate_under_traffic(two, pulsar, partitions=partitions, retained=_RETAINED)
            assert (found.lost, found.repeated) == ({QUEUE: 0, STREAM: 0}, {QUEUE: 0, STREAM: 0})
            assert (found.disorder, found.failed) == (0, 0)
            rows.append(
                (
                    str(partitions) if partitions else "none",
                    f"{found.retained + found.sent:,}",
                    sum(found.lost.values()),
                    sum(found.repeated.values()),
                    found.disorder,
                    f"{found.ready_seconds:.1f} s",
                    f"{percentile(sorted(found.latencies_ms), 0.5):.0f} ms",
                    f"{percentile(sorted(found.latencies_ms), 0.99):.0f} ms",
                    f"{max(found.latencies_ms):.0f} ms",
                )
            )
    evidence.show(
        _RUNS,
        f"{_RETAINED:,} keyed messages are there, half of them read by a queue consumer and by two stream consumers "
        "of the library, which read on; a producer of the library sends some 400 messages a second from before the "
        "manifest with `migrateFrom` is applied until after the topic is Ready. Messages are of 200 keys. Latencies "
        "are of messages sent meanwhile, from the call to the outcome.",
        "",
        *table(
            (
                "partitions",
                "messages",
                "lost",
                "repeated",
                "out of order in their key",
                "until Ready",
                "median",
                "p99",
                "longest",
            ),
            rows,
        ),
    )
