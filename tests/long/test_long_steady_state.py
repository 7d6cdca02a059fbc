"""Five minutes of a fleet at rest, and three hundred topics at once: `make show-steady-state`."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.integration.operator.conftest import MakeProxied
from tests.support.evidence import Evidence, table
from tests.support.fleet import Fleet, Quiet
from tests.support.processes import process_cpu_seconds, process_memory_mb
from tests.support.pulsar_client import PulsarClient

_TOPICS, _WATCHED_SECONDS = 50, 300.0
_MANY_TOPICS = 300
_MOST_OF_A_CORE = 0.25
_DEFAULTS_PART = "At rest, with the default intervals"
_FAST_PART = "At rest, with a look at every topic every 3 s"
_RESTART_PART = "Restart over the same topics"
_MANY_PART = f"{_MANY_TOPICS} topics at once"
_FAST = (
    "--drift-seconds=3",
    "--drift-per-second=1000",
    "--prune-seconds=1",
    "--settle-window-seconds=0",
    "--relist-seconds=20",
)


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    parts = (_DEFAULTS_PART, _FAST_PART, _RESTART_PART, _MANY_PART)
    page = Evidence("steady-state.md", "A fleet at rest", "make show-steady-state", parts)
    yield page
    page.write()


@pytest.mark.timeout(1200)
async def test_c24_c25_fifty_topics_are_not_written_to_in_five_minutes(
    proxied: MakeProxied, pulsar_client: PulsarClient, evidence: Evidence
) -> None:
    bench = await proxied(flags=_FAST)
    fleet = Fleet(bench, _TOPICS)
    await bench.start()
    await fleet.create(within_seconds=300)
    await fleet.keep_a_sealed_segment(pulsar_client)
    await fleet.settle(within_seconds=120)
    quiet = await fleet.watch(_WATCHED_SECONDS)
    _assert_quiet(quiet)
    assert quiet.fewest_looks_at_a_topic >= 5
    kube_from, admin_from = len(bench.kube.seen), len(bench.admin.seen)
    await bench.restart()
    restarted = await fleet.watch(60.0)
    assert bench.kube.writes(kube_from) == []
    assert bench.admin.writes(admin_from) == []
    assert restarted.changed_objects == []
    assert restarted.fewest_looks_at_a_topic >= 1
    evidence.show(_FAST_PART, *_lines(quiet))
    evidence.show(
        _RESTART_PART,
        f"The operator was killed and started again over the {_TOPICS} topics and watched from its start for 60 s:",
        "0 writes to the API server, 0 writes to the brokers, no resource version changed; each topic was compared",
        f"with the brokers at least {restarted.fewest_looks_at_a_topic} times.",
    )


@pytest.mark.timeout(1200)
async def test_c24_c25_fifty_topics_at_default_intervals_are_not_written_to_in_five_minutes(
    proxied: MakeProxied, pulsar_client: PulsarClient, evidence: Evidence
) -> None:
    bench = await proxied(flags=())
    fleet = Fleet(bench, _TOPICS)
    await bench.start()
    await fleet.create(within_seconds=300)
    await fleet.keep_a_sealed_segment(pulsar_client)
    await fleet.settle(within_seconds=120)
    quiet = await fleet.watch(_WATCHED_SECONDS)
    _assert_quiet(quiet)
    evidence.show(_DEFAULTS_PART, *_lines(quiet))


@pytest.mark.timeout(1200)
async def test_c21_c22_c27_three_hundred_topics_at_once_all_become_ready(
    proxied: MakeProxied, evidence: Evidence
) -> None:
    bench = await proxied(flags=())
    fleet = Fleet(bench, _MANY_TOPICS)
    await bench.start()
    cpu_before, started = process_cpu_seconds(bench.operator.pid), time.monotonic()
    await fleet.create(within_seconds=900)
    seconds = time.monotonic() - started
    cpu_seconds = process_cpu_seconds(bench.operator.pid) - cpu_before
    writes, calls = len(bench.kube.writes()), len(bench.admin.seen)
    await fleet.settle(within_seconds=120)
    quiet = await fleet.watch(60.0)
    _assert_quiet(quiet)
    assert quiet.cpu_seconds < _MOST_OF_A_CORE * quiet.seconds
    evidence.show(
        _MANY_PART,
        f"{_MANY_TOPICS} topics of 2 segments and 2 subscriptions each were applied at once, with policies, a grant",
        "and a property each; all became Ready and none was lost.",
        "",
        *table(
            ("what", "measured"),
            (
                ("until all were Ready", f"{seconds:.0f} s"),
                ("processor time of the operator", f"{cpu_seconds:.1f} s"),
                ("its resident memory then", f"{process_memory_mb(bench.operator.pid):.0f} MB"),
                ("writes to the API server", f"{writes} ({writes / _MANY_TOPICS:.1f} a topic)"),
                ("admin calls", f"{calls} ({calls / _MANY_TOPICS:.1f} a topic)"),
                ("writes to the API server in the minute after", len(quiet.kube_writes)),
                ("processor in the minute after", f"{100 * quiet.cpu_seconds / quiet.seconds:.1f} % of a core"),
            ),
        ),
    )


def _assert_quiet(quiet: Quiet) -> None:
    assert quiet.kube_writes == []
    assert quiet.admin_writes == []
    assert quiet.changed_objects == []


def _lines(quiet: Quiet) -> list[str]:
    return [
        f"{_TOPICS} topics, one of them with a sealed segment that waits for its backlog; the counts are of all calls",
        "the operator makes, which go through proxies.",
        "",
        *table(
            ("what", "measured"),
            (
                ("watched for", f"{quiet.seconds:.0f} s"),
                ("writes to the API server", len(quiet.kube_writes)),
                ("writes to the brokers", len(quiet.admin_writes)),
                ("objects whose resource version changed", len(quiet.changed_objects)),
                ("least often compared with the brokers", f"{quiet.fewest_looks_at_a_topic} times"),
                ("reads from the API server, watches included", quiet.kube_reads),
                ("reads from the brokers", quiet.admin_reads),
                ("processor", f"{100 * quiet.cpu_seconds / quiet.seconds:.1f} % of a core"),
            ),
        ),
    ]
