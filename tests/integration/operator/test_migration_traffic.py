"""Clients of the library run through a migration that the real operator makes (pip-475, R25)."""

from __future__ import annotations

import pytest

from dev.access import PulsarAccess
from tests.support.migrated_traffic import QUEUE, STREAM, migrate_under_traffic
from tests.support.replicas import Replicas


@pytest.mark.parametrize("partitions", [0, 4])
async def test_nothing_is_lost_repeated_or_out_of_order(two: Replicas, pulsar: PulsarAccess, partitions: int) -> None:
    """Hazards A6-25875a, A6-25875b and A6-25875c: our own clients are no old ones, and no send fails at the switch."""
    await two.until_shared()
    found = await migrate_under_traffic(two, pulsar, partitions=partitions, retained=3000)
    assert found.lost == {QUEUE: 0, STREAM: 0}
    assert found.repeated == {QUEUE: 0, STREAM: 0}
    assert (found.disorder, found.failed) == (0, 0)
    assert found.sent > 100
    assert len(found.layout.active) == max(1, partitions)
    print(f"ready after {found.ready_seconds:.1f} s, longest send {found.stall_ms:.0f} ms")
