"""Who leads which shards: what one replica does next about the Leases (R5, R6). Pure.

A replica is told what it saw and what became of its writes, with its own monotonic clock, and says what to write. It
holds a shard until a deadline that counts from when its last successful renewal was sent; it takes over what has not
changed for a whole lease by its own clock. Replicas share the shards evenly: who has more than its share hands over
what it has too much, who has less takes what is free.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from scalable_topics_operator.cluster.lease_record import (
    REPLICA,
    SHARD,
    LeaseRecord,
    replica_lease_name,
    shard_lease_name,
)
from scalable_topics_operator.cluster.peers import Peer

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
        gateway: host and port at which the others reach this replica; empty if they cannot.
        nobody_led_until_seconds: monotonic time before which nobody else can have led anything, as for the replica that
            made the installation's record: until then it takes every shard without a Lease at once. For all others
            such a Lease may have been deleted, and its holder may not know yet.
    """

    def __init__(
        self,
        identity: str,
        shards: int,
        times: LeaseTimes,
        gateway: str = "",
        *,
        nobody_led_until_seconds: float = -math.inf,
    ) -> None:
        self._identity = identity
        self._nobody_led_until_seconds = nobody_led_until_seconds
        self._gateway = gateway
        self._shards = shards
        self._times = times
        self._seen: dict[str, _Seen] = {}
        self._lowest_terms: dict[int, int] = {}
        # Lease of a replica -> its version when the replica was found dead.
        self._dead: dict[str, str] = {}
        # Until when others are not offered what is too much.
        self._keeps_until_seconds = -math.inf
        self.held: dict[int, Held] = {}

    def observe(self, leases: Iterable[LeaseRecord], now_seconds: float) -> None:
        """Take in a complete list of the Leases, which had been answered by `now_seconds` (R6)."""
        found = {lease.name: lease for lease in leases}
        for name in self._seen.keys() - found.keys():
            self._vanished(name, now_seconds)
        self._note_missing(found, now_seconds)
        for name, lease in found.items():
            known = self._seen.get(name)
            if known is None or known.lease.version != lease.version:
                self._seen[name] = _Seen(lease, now_seconds)
        self._note_dead(now_seconds)
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
        replicas = self._replicas(now_seconds)
        share = self._share(replicas)
        if len(replicas) > 1 and now_seconds >= self._keeps_until_seconds:
            self._plan_hand_over(share)
        wanted = share - len(self.held)
        # Each begins elsewhere, so that those who share what a dead one held do not all reach for the same shard.
        first = replicas.index(self._identity)
        for shard in sorted(range(self._shards), key=lambda shard: (shard - first) % self._shards):
            is_first = now_seconds < self._nobody_led_until_seconds and shard_lease_name(shard) not in self._seen
            lease = self._free(shard, now_seconds, is_wanted=wanted > 0 or is_first)
            if lease is not None:
                writes.append(Write(Purpose.ACQUIRE, lease))
                if wanted <= 0 and not is_first:
                    # Those whose share it is have not taken it; so they are not offered it again at once.
                    self._keeps_until_seconds = now_seconds + 2 * self._times.lease_seconds
                wanted -= 1
        return writes

    def leaders(self, now_seconds: float) -> dict[int, Peer]:
        """Who leads each shard, as far as this replica has seen: another that has not run out, or itself."""
        leaders = {
            shard: Peer(self._identity, self._gateway, is_me=True, term=held.lease.term)
            for shard, held in self.held.items()
        }
        for seen in self._seen.values():
            lease = seen.lease
            if lease.part != SHARD or lease.holder in ("", self._identity) or self._has_run_out(seen, now_seconds):
                continue
            own = self._seen.get(replica_lease_name(lease.holder))
            gateway = own.lease.gateway if own is not None else ""
            leaders[lease.shard] = Peer(lease.holder, gateway, is_me=False, term=lease.term)
        return leaders

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
        self._note_term(shard, above)
        self.held.pop(shard, None)

    def _presence(self, now_seconds: float) -> list[Write]:
        mine = replica_lease_name(self._identity)
        seen = self._seen.get(mine)
        version = seen.lease.version if seen is not None else ""
        writes = []
        if seen is None or now_seconds - seen.since_seconds > self._times.lease_seconds / 2:
            seconds = 2 * self._times.lease_seconds
            lease = LeaseRecord(mine, REPLICA, self._identity, 0, seconds, version, gateway=self._gateway)
            writes.append(Write(Purpose.PRESENCE, lease))
        for name, other in self._seen.items():
            gone_seconds = _FORGET_AFTER_LEASES * self._counts_seconds(other.lease)
            is_dead = self._is_dead(name, other) or now_seconds - other.since_seconds > gone_seconds
            if other.lease.part == REPLICA and name != mine and is_dead:
                writes.append(Write(Purpose.FORGET, other.lease))
        return writes

    def _replicas(self, now_seconds: float) -> Sequence[str]:
        """Identities of the replicas that live, in an order all agree on.

        One that let a shard run out is taken for dead until it shows itself again.
        """
        alive = {self._identity}
        for name, seen in self._seen.items():
            is_fresh = now_seconds - seen.since_seconds <= seen.lease.duration_seconds
            if seen.lease.part == REPLICA and is_fresh and not self._is_dead(name, seen):
                alive.add(seen.lease.holder)
        return sorted(alive)

    def _is_dead(self, name: str, seen: _Seen) -> bool:
        return self._dead.get(name) == seen.lease.version

    def _note_missing(self, found: Mapping[str, LeaseRecord], now_seconds: float) -> None:
        """A Lease that was never seen may have been deleted right before, and its holder may not know yet."""
        if now_seconds < self._nobody_led_until_seconds:
            return
        for name in map(shard_lease_name, range(self._shards)):
            if name not in found and name not in self._seen:
                self._seen[name] = _Seen(self._never_taken(name), now_seconds)

    def _vanished(self, name: str, now_seconds: float) -> None:
        """Somebody deleted a Lease: its holder may not know yet, so that it counts as changed, and goes on counting."""
        seen = self._seen[name]
        if seen.lease.part == SHARD:
            self._note_term(seen.lease.shard, seen.lease.term)
            if seen.lease.version:
                holder, held = seen.lease.holder, self.held.get(seen.lease.shard)
                if holder == self._identity and (held is None or now_seconds >= held.deadline_seconds):
                    # Lost while this replica slept, if only by the time: somebody may have led it since.
                    holder = ""
                self._seen[name] = _Seen(replace(seen.lease, holder=holder, version=""), now_seconds)
        else:
            del self._seen[name]

    def _note_term(self, shard: int, term: int) -> None:
        """Acquire a shard above this term from now on (R5)."""
        self._lowest_terms[shard] = max(term, self._lowest_terms.get(shard, 0))

    def _note_dead(self, now_seconds: float) -> None:
        for seen in list(self._seen.values()):
            if seen.lease.part == SHARD and seen.lease.holder and self._has_run_out(seen, now_seconds):
                name = replica_lease_name(seen.lease.holder)
                shown = self._seen.get(name)
                self._dead[name] = shown.lease.version if shown is not None else ""
        self._dead = {name: version for name, version in self._dead.items() if name in self._seen}

    def _has_run_out(self, seen: _Seen, now_seconds: float) -> bool:
        return now_seconds - seen.since_seconds >= self._counts_seconds(seen.lease)

    def _counts_seconds(self, lease: LeaseRecord) -> float:
        """How long after its last change a Lease counts: by its own word, and by what this replica is set to."""
        return max(lease.duration_seconds, self._times.lease_seconds)

    def _never_taken(self, name: str) -> LeaseRecord:
        return LeaseRecord(name, SHARD, "", 0, self._times.lease_seconds)

    def _share(self, replicas: Sequence[str]) -> int:
        holders = Counter(seen.lease.holder for seen in self._seen.values() if seen.lease.part == SHARD)
        # Who has more than others keeps it, so that as little as possible moves.
        ordered = sorted(replicas, key=lambda replica: (-holders[replica], replica))
        least, more = divmod(self._shards, len(ordered))
        return least + (1 if ordered.index(self._identity) < more else 0)

    def _plan_hand_over(self, share: int) -> None:
        """Hand over what is too much."""
        staying = sorted(shard for shard, held in self.held.items() if not held.handing_over)
        for shard in staying[share:]:
            self.held[shard].handing_over = True

    def _free(self, shard: int, now_seconds: float, *, is_wanted: bool) -> LeaseRecord | None:
        """The Lease to acquire a shard with, if it may be.

        What nobody takes at its first look is taken beyond one's share, too: one that was just started and has a share
        to come cannot take over what it has not watched for a lease.
        """
        if shard in self.held:
            return None
        name = shard_lease_name(shard)
        seen = self._seen.get(name)
        if seen is None:
            return self._mine(self._never_taken(name)) if is_wanted else None
        lease = seen.lease
        patience_seconds = 0.0 if is_wanted else self._times.renew_seconds
        if lease.holder != self._identity and (lease.holder or not lease.version):
            patience_seconds += self._counts_seconds(lease)
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
