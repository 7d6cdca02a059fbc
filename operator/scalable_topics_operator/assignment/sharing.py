"""Segments dealt to consumers: round robin, and whoever reads a segment keeps it as far as that is fair. Pure.

Shares differ by one at most, and no more segments change hands than that takes. The outcome depends on who reads what
and on the consumers' names, and on nothing else (pip-468 SubscriptionCoordinator, pip-486 for shared segments).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set

Readers = tuple[str, ...]


def share(
    segments: Sequence[int],
    consumers: Collection[str],
    claims: Mapping[int, Sequence[str]],
    most_readers: Mapping[int, int],
    sharers: Collection[str],
) -> dict[int, Readers]:
    """Deal segments to consumers; every segment gets at least one, if there are any.

    Args:
        segments: ids in the order in which they are dealt.
        consumers: names.
        claims: who reads a segment now, or has read the one that it succeeds; the first goes before the others.
        most_readers: how many may share a segment, 1 or more; 1 for those that are not named.
        sharers: those of the consumers that may share a segment with others.
    """
    if not consumers:
        return {}
    deal = _deal if len(consumers) <= len(segments) else _deal_one_each
    first = deal(segments, consumers, claims)
    idle = sorted((set(consumers) & set(sharers)).difference(first.values()))
    room = {segment: most_readers.get(segment, 1) - 1 if first[segment] in sharers else 0 for segment in segments}
    joined = _join(segments, idle, claims, room)
    return {segment: (first[segment], *joined[segment]) for segment in segments}


def deal_buckets(buckets: int, owned: Mapping[str, Set[int]]) -> dict[str, set[int]]:
    """Deal the entry buckets of a segment to those who share it; shares differ by one at most.

    Brokers of Pulsar 5 give consumers adjacent buckets by their place among the names, so that most buckets move
    whenever one joins. Here whoever has a bucket keeps it as far as that is fair.

    Args:
        buckets: how many there are, no fewer than consumers.
        owned: the buckets that each consumer reads now; none that two have.
    """
    least, one_more = divmod(buckets, len(owned))
    # The larger shares go to those who lose least by them.
    order = sorted(owned, key=lambda name: (-len(owned[name]), name))
    dealt: dict[str, set[int]] = {}
    room: dict[str, int] = {}
    for place, name in enumerate(order):
        share_of = least + (place < one_more)
        dealt[name] = set(sorted(owned[name])[:share_of])
        room[name] = share_of - len(dealt[name])
    free = sorted(set(range(buckets)).difference(*dealt.values()))
    for name in sorted(owned):
        dealt[name].update(free[: room[name]])
        free = free[room[name] :]
    return dealt


def _deal(segments: Sequence[int], consumers: Collection[str], claims: Mapping[int, Sequence[str]]) -> dict[int, str]:
    claimants = {segment: _first_of(claims.get(segment, ()), consumers) for segment in segments}
    claimed = Counter(claimants.values())
    least, one_more = divmod(len(segments), len(consumers))
    # The larger shares go to those who lose least by them.
    order = sorted(consumers, key=lambda name: (-claimed[name], name))
    room = {name: least + (place < one_more) for place, name in enumerate(order)}
    dealt: dict[int, str] = {}
    for segment in segments:
        claimant = claimants[segment]
        if claimant is not None and room[claimant]:
            room[claimant] -= 1
            dealt[segment] = claimant
    has = Counter(dealt.values())
    for segment in segments:
        if segment not in dealt:
            name = min((name for name in room if room[name]), key=lambda name: (has[name], name))
            room[name] -= 1
            has[name] += 1
            dealt[segment] = name
    return dealt


def _deal_one_each(
    segments: Sequence[int], consumers: Collection[str], claims: Mapping[int, Sequence[str]]
) -> dict[int, str]:
    """Deal to more consumers than there are segments."""
    dealt: dict[int, str] = {}
    free = set(consumers)

    def give(segment: int, name: str) -> None:
        dealt[segment] = name
        free.discard(name)

    for segment in segments:
        name = _first_of(claims.get(segment, ()), consumers)
        if name in free:
            give(segment, name)
    # Those who have shared what a segment follows go before others.
    for segment in segments:
        name = _first_of(claims.get(segment, ()), free) if segment not in dealt else None
        if name is not None:
            give(segment, name)
    # Who shares a segment already is left where it is, if others are there.
    sharing = {name for segment in segments for name in claims.get(segment, ())}
    for segment in segments:
        if segment not in dealt:
            give(segment, min(free, key=lambda name: (name in sharing, name)))
    return dealt


def _join(
    segments: Sequence[int], idle: Sequence[str], claims: Mapping[int, Sequence[str]], room: Mapping[int, int]
) -> dict[int, Readers]:
    """Let idle consumers share segments, as many each as others, as far as these have room; answers who joins what."""
    waiting = list(idle)
    staying = {
        segment: [name for name in dict.fromkeys(claims.get(segment, ())) if name in waiting] for segment in segments
    }
    places = dict.fromkeys(segments, 0)
    for _ in idle:
        open_segments = [segment for segment in segments if places[segment] < room[segment]]
        if not open_segments:
            break
        # Of those with equally many, where somebody is who need not go.
        segment = min(open_segments, key=lambda one: (places[one], places[one] >= len(staying[one])))
        places[segment] += 1
    joined: dict[int, Readers] = {}
    for segment in segments:
        stay = [name for name in staying[segment] if name in waiting][: places[segment]]
        waiting = [name for name in waiting if name not in stay]
        joined[segment] = tuple(stay)
    for segment in segments:
        missing = places[segment] - len(joined[segment])
        joined[segment] += tuple(waiting[:missing])
        waiting = waiting[missing:]
    return joined


def _first_of(claimants: Sequence[str], consumers: Collection[str]) -> str | None:
    return next((name for name in claimants if name in consumers), None)
