"""Our kernel says of every key the segment that Pulsar's V5 client chooses, and on which the broker then has it."""

import random
from collections import Counter

import pytest

from scalable_topics.layout import (
    SegmentLayout,
    TopicName,
    key_hash,
    route,
    routing_key,
    segment_hash,
    synthetic_layout,
)
from tests.support.consumption import Kind
from tests.support.v5_client import V5Client

from .conftest import NativeTopic

pytestmark = pytest.mark.native

KEYS = 10_000
ALPHABETS = (
    range(0x20, 0x7F),
    # Control characters, and what takes 2, 3 and 4 bytes in UTF-8: Latin to Greek, Chinese, beyond the surrogates.
    range(0x20),
    range(0x80, 0x400),
    range(0x4E00, 0x9FFF),
    range(0x1F300, 0x1FA00),
    range(0x10FFF0, 0x10FFFF),
)
LONG_KEYS = 20
LONGEST = 20_000


def random_key(randomness: random.Random, longest: int) -> str:
    """A key of 1 to so many characters, of one alphabet or of all."""
    alphabets = ALPHABETS if randomness.random() < 0.2 else (randomness.choice(ALPHABETS),)
    length = randomness.randint(1, longest)
    return "".join(chr(randomness.choice(randomness.choice(alphabets))) for _ in range(length))


def random_keys(seed: int) -> list[str]:
    """Keys of every kind, empty and very long ones among them, without two the same."""
    randomness = random.Random(seed)
    keys = {"", *(random_key(randomness, LONGEST) for _ in range(LONG_KEYS))}
    while len(keys) < KEYS:
        keys.add(random_key(randomness, 40))
    found = sorted(keys)
    randomness.shuffle(found)
    return found


async def differences(v5: V5Client, topic: NativeTopic, keys: list[str]) -> tuple[list[str], SegmentLayout]:
    """Send to these keys; answers what was on another segment than we say, and the layout meanwhile."""
    layout = await topic.layout()
    queue = await v5.consumer(Kind.QUEUE, topic.url, "all", f"queue-{layout.epoch}")
    told = await v5.produce(topic.url, f"list-{layout.epoch}", keys)
    await queue.until(len(keys), within_seconds=120)
    received = {one.key: one.segment for one in await queue.stop()}
    assert received.keys() == set(keys), "a key came back as another one"
    assert (await topic.layout()).epoch == layout.epoch
    wrong = []
    for key, chosen in zip(keys, told, strict=True):
        ours = route(layout, key_hash(key)).segment_id
        if not ours == chosen == received[key]:
            where = f"we say {ours}, its producer {chosen}, its consumer {received[key]}"
            wrong.append(f"{key[:40]!r} ({segment_hash(key_hash(key)):04x}): {where}")
    assert set(told) == {segment.segment_id for segment in layout.active}, "a segment was without keys"
    return wrong, layout


async def test_every_key_is_routed_as_the_client_of_pulsar_does(v5: V5Client, topic: NativeTopic) -> None:
    seed = random.randrange(2**32)
    print(f"seed of the keys: {seed}")
    keys = random_keys(seed)
    await topic.create(1)
    wrong, _ = await differences(v5, topic, keys)
    assert not wrong, (seed, wrong[:5], len(wrong))
    # Uneven on purpose: 0000-1fff, 2000-3fff, 4000-7fff, 8000-bfff, c000-ffff.
    for segment_id in (0, 1, 2, 3):
        await topic.split(segment_id)
    wrong, layout = await differences(v5, topic, keys)
    assert len(layout.active) == 5
    assert not wrong, (seed, wrong[:5], len(wrong))
    # The children of 3, which is 0000-3fff, become one again.
    await topic.merge(7, 8)
    wrong, layout = await differences(v5, topic, keys)
    assert len(layout.active) == 4
    assert not wrong, (seed, wrong[:5], len(wrong))


async def test_an_empty_key_is_a_key_and_messages_without_one_go_round(v5: V5Client, topic: NativeTopic) -> None:
    await topic.create(4)
    layout = await topic.layout()
    queue = await v5.consumer(Kind.QUEUE, topic.url, "all", "queue")
    keys = [None, "", None, None, "", None, None, None, "", None, None]
    told = await v5.produce(topic.url, "list", keys)
    await queue.until(len(keys))
    received = sorted(await queue.stop(), key=lambda one: one.number)
    chosen = {key: [segment for one, segment in zip(keys, told, strict=True) if one == key] for key in ("", None)}
    assert {key: [one.segment for one in received if one.key == key] for key in ("", None)} == chosen
    assert routing_key(None, "") == b""
    assert key_hash("") == 0
    assert set(chosen[""]) == {route(layout, key_hash("")).segment_id}
    assert routing_key(None, None) is None
    assert Counter(chosen[None]) == {segment.segment_id: 2 for segment in layout.active}


async def test_topic_that_is_not_migrated_is_routed_by_partitions_and_by_ranges_afterwards(
    v5: V5Client, topic: NativeTopic
) -> None:
    seed = random.randrange(2**32)
    print(f"seed of the keys: {seed}")
    keys = random_keys(seed)[:2000]
    name = TopicName.parse(topic.name)
    await topic.view.call("PUT", f"persistent/{topic.name}/partitions", 3)
    told = await v5.produce(name.persistent, "before", keys)
    assert told == [route(synthetic_layout(name, 3), key_hash(key)).segment_id for key in keys], seed

    await topic.call("POST", "/migrate")
    layout = await topic.layout()
    assert [segment.segment_id for segment in layout.active] == [3, 4, 5]
    told = await v5.produce(topic.url, "after", keys)
    assert told == [route(layout, key_hash(key)).segment_id for key in keys], seed
