"""Classic topics of Pulsar 4.2 and native ones of Pulsar 5 side by side, in one run: `make show-native`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from tests.integration.operator.conftest import MakeOperator
from tests.support.evidence import Evidence, table
from tests.support.operator_guarantee import percentile
from tests.support.side_by_side import (
    CREATE,
    FLAGS,
    KEYS,
    MERGE,
    PER_SECOND,
    SEGMENTS,
    SIZE_BYTES,
    SPLIT,
    Side,
    measured,
)

pytestmark = pytest.mark.native

_TURNS = int(os.environ.get("NATIVE_TURNS", "40"))
_CREATIONS = int(os.environ.get("NATIVE_CREATIONS", "30"))
_TIMES, _STALLS = "How long a change takes", "How long a producer waits for it"


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence("native.md", "Classic and Native side by side", "make show-native", (_TIMES, _STALLS))
    yield page
    page.write()


@pytest.mark.timeout(1800)
async def test_side_by_side(
    own_operator: MakeOperator,
    kube: KubeClient,
    pulsar: PulsarAccess,
    native_pulsar: PulsarAccess,
    tmp_path: Path,
    evidence: Evidence,
) -> None:
    operator = await own_operator(FLAGS)
    await asyncio.to_thread(operator.start)
    sides = await measured(
        kube, operator.namespace, pulsar, native_pulsar, tmp_path, creations=_CREATIONS, turns=_TURNS
    )
    _show(evidence, sides)


def _show(evidence: Evidence, sides: Sequence[Side]) -> None:
    kinds = (CREATE, SPLIT, MERGE)
    times = [
        row
        for kind in kinds
        for way, measured in (
            ("object", [side.objects_ms[kind] for side in sides]),
            ("brokers' calls alone", [side.bare_ms[kind] for side in sides]),
        )
        for row in _rows(f"{kind}, {way}", sides, measured)
    ]
    stalls = [row for kind in (SPLIT, MERGE) for row in _rows(kind, sides, [side.stalls_ms(kind) for side in sides])]
    header = ("", "how many", "p50", "p90", "p99", "lowest to highest", "ratio of p50")
    evidence.show(
        _TIMES,
        "One operator, one API server and one broker of each line; the two sides took turns. A topic of "
        f"{SEGMENTS} segments and a subscription is made until its object is Ready; a segment is split and its halves "
        "merged again, under the traffic below until the SegmentOperation is Succeeded (looked at every 10 ms). The "
        "brokers' calls alone are made on a topic without clients: on Pulsar 5 the call itself, on Classic the topics "
        "made at once and those terminated, without cursors, records, announcement or a look whether it is so.",
        "",
        *table(header, times),
    )
    evidence.show(
        _STALLS,
        f"On each side one producer of {PER_SECOND:.0f} messages a second of {SIZE_BYTES} bytes, {KEYS} keys, one "
        "after the other and unbatched, and a queue consumer: this library on Classic, Pulsar's V5 client for Java on "
        "Native, each in a process of its own. The longest that a message under way during a change took to be "
        "stored, changes asked for by objects. Nothing was lost; "
        + ", ".join(f"{side.repeated} messages came again on {side.backend}" for side in sides)
        + ".",
        "",
        *table(header, stalls),
        "",
        "All messages, for comparison:",
        "",
        *table(header, _rows("send", sides, [[1000 * took for _, took in side.sends] for side in sides])),
    )
    print(*table(header, [*times, *stalls]), sep="\n")


def _rows(what: str, sides: Sequence[Side], measured: Sequence[Sequence[float]]) -> list[tuple[str, ...]]:
    """A row a side; the ratio is to the first one's."""
    base = percentile(sorted(measured[0]), 0.5)
    rows = []
    for side, found in zip(sides, measured, strict=True):
        ms = sorted(found)
        shares = (f"{percentile(ms, share):.0f} ms" for share in (0.5, 0.9, 0.99))
        spread = f"{ms[0]:.0f} to {ms[-1]:.0f} ms"
        ratio = f"{percentile(ms, 0.5) / base:.2f}"
        rows.append((f"{what}: {side.name}", str(len(ms)), *shares, spread, ratio))
    return rows
