"""Topics that brokers have migrated, as their layout tells of it (pip-475)."""

from __future__ import annotations

import pytest

from scalable_topics.layout import SegmentLayout, TopicName, migrated_layout
from scalable_topics_operator.operations.native.migrate import is_migrated, was_migrated
from scalable_topics_operator.operations.native.protocols import NativeTopic
from tests.unit.operations.native.test_news import as_brokers_tell

_TOPIC = TopicName.parse("tenant/space/orders")


@pytest.mark.parametrize("partitions", [0, 1, 4])
def test_a_migration_is_found_again_when_its_old_topics_are_pruned_already(partitions: int) -> None:
    """Brokers do that within a minute, and who has journaled the migration may be dead for longer."""
    count = max(1, partitions)
    layout = migrated_layout(_TOPIC, partitions, 4, 5, first_child_id=count)
    assert was_migrated(NativeTopic(as_brokers_tell(layout)), count)
    pruned = NativeTopic(as_brokers_tell(layout.prune(range(count))))
    assert not is_migrated(pruned)
    assert was_migrated(pruned, count)


def test_a_topic_that_was_made_as_such_is_none() -> None:
    made = SegmentLayout.initial(4, created_at_ms=1)
    assert not was_migrated(NativeTopic(made), 4)
    assert not was_migrated(NativeTopic(as_brokers_tell(made.split(0, now_ms=2).prune([0]))), 4)
