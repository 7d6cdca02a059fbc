"""Who leads which shards: what one replica does next about the Leases (R5, R6). Pure.

A replica is told what it saw and what became of its writes, with its own monotonic clock, and says what to write. It
holds a shard until a deadline that counts from when its last successful renewal was sent; it takes over what has not
changed for a whole lease by its own clock. Replicas share the shards evenly: who has more than its share hands over
what it has too much, who has less takes what is free.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from scalable_topics_operator.cluster.lease_record import (
    REPLICA,
    SHARD,
    LeaseRecord,
    replica_lease_name,
    shard_lease_name,
)

_FORGET_AFTER_LEASES = 10


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """How long leadership lasts without renewal.

    Args:
        lease_seconds: a Lease that has not changed for so long may be taken over; 1 or more. A holder stops acting
            after two thirds of it and renews every fifth of it.
    """

    lease_seconds: float = 15.0

    @property
    def acting_seconds(self) -> float:
        """How long a holder acts after it sent its last successful renewal."""
        return self.lease_seconds * 2 / 3

    @property
    def renew_seconds(self) -> float:
        """Time between two renewals, and two looks at the Leases."""
        return self.lease_seconds / 5


class Purpose(Enum):
    """What a write is for."""

    ACQUIRE = "acquire"
    RENEW = "renew"
    RELEASE = "release"
    PRESENCE = "presence"
    FORGET = "forget"


@dataclass(frozen=True, slots=True)
class Write:
    """A Lease to be created, replaced on condition of its version, or (FORGET) deleted."""

    purpose: Purpose
    lease: LeaseRecord


@dataclass(slots=True)
class Held:
    """A shard this replica leads.

    Args:
        lease: as last written or seen.
        deadline_seconds: monotonic time until which it may act.
        handing_over: it is to be released as soon as its work has ended.
    """

    lease: LeaseRecord
    deadline_seconds: float
    handing_over: bool = False


@dataclass(slots=True)
class _Seen:
    lease: LeaseRecord
    since_seconds: float


class Election:
    """One replica's part in the election.

    Args:
        identity: unique for each start of a process.
        shards: how many there are.
        times: how long leadership lasts.
    """

    def __init__(self, identity: str, shards: int, times: LeaseTimes) -> None:
        self._identity = identity
        self._shards = shards
        self._times = times
        self._seen: dict[str, _Seen] = {}
        self._lowest_terms: dict[int, int] = {}
        self.held: dict[int, Held] = {}

    def observe(self, leases: Iterable[LeaseRecord], now_seconds: float) -> None:
        """Take in a complete list of the Leases, asked for at or after `now_seconds`."""
        found = {lease.name: lease for lease in leases}
        for name in self._seen.keys() - found.keys():
            del self._seen[name]
        for name, lease in found.items():
            known = self._seen.get(name)
            if known is None or known.lease.version != lease.version:
                self._seen[name] = _Seen(lease, now_seconds)
        for shard, held in list(self.held.items()):
            current = found.get(shard_lease_name(shard))
            if current is None or (current.holder, current.term) != (self._identity, held.lease.term):
                # Somebody deleted it or took it; there is nothing to wait for.
                del self.held[shard]
            else:
                held.lease = current

    def expire(self, now_seconds: float) -> list[int]:
        """Give up what could not be renewed in time; answers those shards."""
        late = [shard for shard, held in self.held.items() if now_seconds >= held.deadline_seconds]
        for shard in late:
            del self.held[shard]
        return late

    def renewals(self) -> list[Write]:
        """What to write to keep what is held."""
        return [Write(Purpose.RENEW, held.lease) for held in self.held.values()]

    def decide(self, now_seconds: float) -> list[Write]:
        """What else to write now."""
        writes = self._presence(now_seconds)
        share = self._share(now_seconds)
        self._plan_hand_over(share, now_seconds)
        wanted = share - len(self.held)
        for shard in range(self._shards):
            lease = self._free(shard, now_seconds, is_wanted=wanted > 0)
            if lease is not None:
                writes.append(Write(Purpose.ACQUIRE, lease))
                wanted -= 1
        return writes

    def release(self, shards: Iterable[int]) -> list[Write]:
        """What to write to let others have these shards at once; they are not held any more."""
        writes = []
        for shard in shards:
            held = self.held.pop(shard, None)
            if held is not None:
                writes.append(Write(Purpose.RELEASE, replace(held.lease, holder="")))
        return writes

    def leave(self) -> list[Write]:
        """What to write to be gone for the others."""
        seen = self._seen.get(replica_lease_name(self._identity))
        return [Write(Purpose.FORGET, seen.lease)] if seen is not None else []

    def written(self, write: Write, answer: LeaseRecord, sent_seconds: float) -> None:
        """A write succeeded, which was sent at `sent_seconds`."""
        if write.purpose is Purpose.FORGET:
            self._seen.pop(write.lease.name, None)
            return
        self._seen[answer.name] = _Seen(answer, sent_seconds)
        deadline_seconds = sent_seconds + self._times.acting_seconds
        if write.purpose is Purpose.ACQUIRE:
            self.held[answer.shard] = Held(answer, deadline_seconds)
        elif write.purpose is Purpose.RENEW and answer.shard in self.held:
            held = self.held[answer.shard]
            held.lease, held.deadline_seconds = answer, deadline_seconds

    def raise_term(self, shard: int, above: int) -> None:
        """Records of a shard carry a higher term than its Lease, which was made anew (R5): acquire it again."""
        self._lowest_terms[shard] = max(above, self._lowest_terms.get(shard, 0))
        if shard in self.held:
            del self.held[shard]

    def _presence(self, now_seconds: float) -> list[Write]:
        mine = replica_lease_name(self._identity)
        seen = self._seen.get(mine)
        version = seen.lease.version if seen is not None else ""
        writes = []
        if seen is None or now_seconds - seen.since_seconds > self._times.lease_seconds / 2:
            lease = LeaseRecord(mine, REPLICA, self._identity, 0, 2 * self._times.lease_seconds, version)
            writes.append(Write(Purpose.PRESENCE, lease))
        for name, other in self._seen.items():
            gone_seconds = _FORGET_AFTER_LEASES * max(other.lease.duration_seconds, self._times.lease_seconds)
            if other.lease.part == REPLICA and name != mine and now_seconds - other.since_seconds > gone_seconds:
                writes.append(Write(Purpose.FORGET, other.lease))
        return writes

    def _replicas(self, now_seconds: float) -> Sequence[str]:
        """Identities of the replicas that live, in an order all agree on."""
        alive = {
            seen.lease.holder
            for seen in self._seen.values()
            if seen.lease.part == REPLICA and now_seconds - seen.since_seconds <= seen.lease.duration_seconds
        }
        return sorted(alive | {self._identity})

    def _share(self, now_seconds: float) -> int:
        replicas = self._replicas(now_seconds)
        least, more = divmod(self._shards, len(replicas))
        return least + (1 if replicas.index(self._identity) < more else 0)

    def _plan_hand_over(self, share: int, now_seconds: float) -> None:
        """Hand over what is too much, but only to others that live."""
        staying = sorted(shard for shard, held in self.held.items() if not held.handing_over)
        if len(self._replicas(now_seconds)) > 1:
            for shard in staying[share:]:
                self.held[shard].handing_over = True

    def _free(self, shard: int, now_seconds: float, *, is_wanted: bool) -> LeaseRecord | None:
        """The Lease to acquire a shard with, if it may be: what nobody else takes is taken beyond one's share, too."""
        if shard in self.held:
            return None
        name = shard_lease_name(shard)
        seen = self._seen.get(name)
        if seen is None:
            return self._mine(LeaseRecord(name, SHARD, "", 0, self._times.lease_seconds)) if is_wanted else None
        lease = seen.lease
        patience_seconds = 0.0 if is_wanted else self._times.lease_seconds
        if lease.holder not in ("", self._identity):
            patience_seconds += max(lease.duration_seconds, self._times.lease_seconds)
        if now_seconds - seen.since_seconds < patience_seconds:
            return None
        return self._mine(lease)

    def _mine(self, lease: LeaseRecord) -> LeaseRecord:
        shard = lease.shard
        term = max(lease.term, self._lowest_terms.get(shard, 0)) + 1
        return replace(
            lease,
            holder=self._identity,
            term=term,
            duration_seconds=self._times.lease_seconds,
            transitions=lease.transitions + 1,
        )
