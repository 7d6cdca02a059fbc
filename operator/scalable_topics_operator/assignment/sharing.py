"""Segments dealt to consumers: round robin, and whoever reads a segment keeps it as far as that is fair. Pure.

Shares differ by one at most, and no more segments change hands than that takes. The outcome depends on who reads what
and on the consumers' names, and on nothing else (pip-468 SubscriptionCoordinator, pip-486 for shared segments).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

Readers = tuple[str, ...]


def share(
    segments: Sequence[int],
    consumers: Collection[str],
    claims: Mapping[int, Sequence[str]],
    most_readers: Mapping[int, int],
) -> dict[int, Readers]:
    """Deal segments to consumers; every segment gets at least one, if there are any.

    Args:
        segments: ids in the order in which they are dealt.
        consumers: names.
        claims: who reads a segment now, or has read the one that it succeeds; the first goes before the others.
        most_readers: how many may share a segment, 1 or more; 1 for those that are not named.
    """
    if not consumers:
        return {}
    readers: dict[int, Readers] = {segment: (reader,) for segment, reader in _deal(segments, consumers, claims).items()}
    employed = {reader for one in readers.values() for reader in one}
    return _join(segments, sorted(set(consumers) - employed), readers, claims, most_readers)


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


def _join(
    segments: Sequence[int],
    idle: Sequence[str],
    readers: dict[int, Readers],
    claims: Mapping[int, Sequence[str]],
    most_readers: Mapping[int, int],
) -> dict[int, Readers]:
    """Let idle consumers share segments, one a segment in turn, as far as these may be shared."""
    waiting = list(idle)

    def has_room(segment: int) -> bool:
        return len(readers[segment]) < most_readers.get(segment, 1)

    for segment in segments:
        for name in claims.get(segment, ()):
            if name in waiting and has_room(segment):
                waiting.remove(name)
                readers[segment] = (*readers[segment], name)
    while waiting and (open_segments := [segment for segment in segments if has_room(segment)]):
        fewest = min(len(readers[segment]) for segment in open_segments)
        segment = next(segment for segment in open_segments if len(readers[segment]) == fewest)
        readers[segment] = (*readers[segment], waiting.pop(0))
    return readers


def _first_of(claimants: Sequence[str], consumers: Collection[str]) -> str | None:
    return next((name for name in claimants if name in consumers), None)
