"""Which layout is followed: the operator's or the synthetic one (R25, pip-475 "once scalable, always scalable")."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from scalable_topics.layout import HashRange, TopicName, legacy_topics
from scalable_topics.sdk.layout_choice import LayoutChoice
from scalable_topics.sdk.layout_message import Announcement, FollowedSegment, LayoutMessage, Routing

TOPIC = TopicName.parse("t/n/x")
RANGES = LayoutMessage(
    str(TOPIC), "uid.0", 0, 1003, 1, {2: FollowedSegment(2, HashRange.full(), "persistent://t/n/x-segment-0000-ffff-2")}
)
MODULO = LayoutMessage(
    str(TOPIC),
    "uid.0",
    0,
    1002,
    1,
    {0: FollowedSegment(0, HashRange.full(), TOPIC.persistent)},
    routing=Routing.MODULO,
)
ANNOUNCED = replace(MODULO, step=1001, announcement=Announcement("op", (0,), tuple(RANGES.segments.values()), 10.0))


def topics(message: LayoutMessage | None) -> tuple[str, ...]:
    """Topics of what is followed."""
    assert message is not None
    return tuple(segment.topic for segment in message.active)


def test_an_ordinary_topic_has_a_synthetic_layout() -> None:
    choice = LayoutChoice(TOPIC, may_be_ordinary=True)
    assert choice.wants_count
    found = choice.counted(2)
    assert found is not None
    assert found.routing is Routing.MODULO
    assert topics(found) == ("persistent://t/n/x-partition-0", "persistent://t/n/x-partition-1")
    assert choice.counted(2) is None


def test_growth_is_a_new_layout_and_nothing_else_is() -> None:
    choice = LayoutChoice(TOPIC, may_be_ordinary=True)
    first = choice.counted(2)
    assert choice.counted(0) is None
    assert choice.counted(1) is None
    second = choice.counted(3)
    assert len(topics(second)) == 3
    assert second is not None
    assert second.supersedes(first)
    assert second.changes_layout(first)
    flat = LayoutChoice(TOPIC, may_be_ordinary=True)
    assert topics(flat.counted(0)) == (TOPIC.persistent,)
    assert flat.counted(2) is None, "what is attached to a topic without partitions keeps it"


def test_a_migration_is_followed_and_never_gone_back_from() -> None:
    choice = LayoutChoice(TOPIC, may_be_ordinary=True)
    choice.counted(0)
    assert choice.published(ANNOUNCED) is ANNOUNCED
    assert choice.counted(0) is None
    assert choice.published(RANGES) is RANGES
    assert choice.is_scalable
    assert not choice.wants_count
    assert choice.published(RANGES) is None
    assert choice.published(replace(MODULO, step=2000)) is None
    assert choice.published(replace(ANNOUNCED, incarnation="other.0")) is None
    assert choice.counted(4) is None


def test_a_migration_called_off_leads_back_to_what_the_client_finds_itself() -> None:
    choice = LayoutChoice(TOPIC, may_be_ordinary=True)
    first = choice.counted(2)
    choice.published(ANNOUNCED)
    assert choice.counted(3) is None
    again = choice.published(MODULO)
    assert len(topics(again)) == 3
    assert again is not None
    assert again.supersedes(first)
    assert again.announcement is None
    assert choice.published(replace(ANNOUNCED, step=1003)) is not None


def test_a_layout_topic_that_is_gone_means_that_the_migration_was_called_off() -> None:
    """Who was without connection meanwhile has missed what said so."""
    choice = LayoutChoice(TOPIC, may_be_ordinary=True)
    choice.counted(0)
    assert choice.nothing_published() is None
    choice.published(ANNOUNCED)
    assert topics(choice.nothing_published()) == (TOPIC.persistent,)
    assert choice.nothing_published() is None
    assert choice.published(ANNOUNCED) is None
    assert choice.published(RANGES) is RANGES
    assert choice.nothing_published() is None


def test_a_client_that_comes_after_a_migration_was_called_off_counts_first() -> None:
    choice = LayoutChoice(TOPIC, may_be_ordinary=True)
    assert choice.published(MODULO) is None
    assert choice.wants_count
    assert topics(choice.counted(1)) == ("persistent://t/n/x-partition-0",)


def test_who_wants_a_scalable_topic_gets_no_other() -> None:
    choice = LayoutChoice(TOPIC, may_be_ordinary=False)
    assert not choice.wants_count
    assert choice.published(ANNOUNCED) is None
    assert choice.published(MODULO) is None
    assert not choice.is_scalable
    assert choice.published(RANGES) is RANGES


@given(
    st.integers(0, 4),
    st.lists(
        st.one_of(
            st.none(),
            st.integers(0, 4),
            st.builds(
                lambda base, step, uid: replace(base, step=step, incarnation=uid),
                st.sampled_from([RANGES, MODULO, ANNOUNCED]),
                st.integers(1, 4),
                st.sampled_from(["a.0", "a.1", "b.0"]),
            ),
        )
    ),
)
def test_what_is_followed_always_supersedes_and_scalable_stays_so(
    partitions: int, events: list[int | LayoutMessage | None]
) -> None:
    choice = LayoutChoice(TOPIC, may_be_ordinary=True)
    latest = choice.counted(partitions)
    most = partitions
    for event in events:
        match event:
            case None:
                found = choice.nothing_published()
            case int():
                found = choice.counted(event)
                most = max(most, event)
            case _:
                found = choice.published(event)
        if found is not None:
            assert found.supersedes(latest)
            assert latest is None or not (latest.routing is Routing.RANGES and found.routing is Routing.MODULO)
            if found.routing is Routing.MODULO and found.announcement is None:
                assert set(topics(found)) <= set(legacy_topics(TOPIC, most)) | {TOPIC.persistent}
            latest = found
        assert choice.is_scalable == (latest is not None and latest.routing is Routing.RANGES)
