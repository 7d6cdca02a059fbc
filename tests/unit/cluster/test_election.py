"""R5, R6: one leader a shard at any time, whatever stops, dies or gets lost; shards evenly shared when nothing does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.cluster.election import Election, LeaseTimes, Purpose, Write
from scalable_topics_operator.cluster.lease_record import LeaseRecord, replica_lease_name, shard_lease_name

SHARDS = 4
TIMES = LeaseTimes(15.0)


@dataclass
class Leases:
    """What the API server has: compare-and-swap by version."""

    found: dict[str, LeaseRecord] = field(default_factory=dict)
    versions: int = 0

    def write(self, write: Write) -> LeaseRecord | None:
        """The object as written; None on a conflict."""
        lease = write.lease
        known = self.found.get(lease.name)
        if write.purpose is Purpose.FORGET:
            return self.found.pop(lease.name, None)
        if (known.version if known is not None else "") != lease.version:
            return None
        self.versions += 1
        self.found[lease.name] = replace(lease, version=str(self.versions))
        return self.found[lease.name]


class Replica:
    """One process: its clock runs with an offset of its own."""

    def __init__(self, name: str, offset_seconds: float, times: LeaseTimes = TIMES) -> None:
        self.election = Election(name, SHARDS, times)
        self.offset_seconds = offset_seconds
        self.asleep_until = 0.0
        self.terms: list[tuple[int, int]] = []

    def clock(self, now: float) -> float:
        return now + self.offset_seconds

    def leads(self, shard: int, now: float) -> bool:
        """Whether it would act."""
        held = self.election.held.get(shard)
        return held is not None and self.clock(now) < held.deadline_seconds

    def turn(self, leases: Leases, now: float, random: Random | None = None, trouble: float = 0.0) -> None:
        """As `Leadership` does it, with lost requests and replies."""

        def lost() -> bool:
            return random is not None and random.random() < trouble

        def write(writes: list[Write]) -> None:
            for one in writes:
                if lost():
                    continue
                answer = leases.write(one)
                if answer is not None and not lost():
                    if one.purpose is Purpose.ACQUIRE:
                        self.terms.append((answer.shard, answer.term))
                    self.election.written(one, answer, self.clock(now))

        write(self.election.renewals())
        if not lost():
            self.election.observe(list(leases.found.values()), self.clock(now))
            write(self.election.decide(self.clock(now)))
        for shard in [shard for shard, held in self.election.held.items() if held.handing_over]:
            write(self.election.release([shard]))
        self.election.expire(self.clock(now))


@given(seed=st.integers(0, 2**32), replicas=st.integers(1, 4), trouble=st.sampled_from([0.0, 0.1, 0.4]))
def test_R6_no_shard_has_two_leaders_and_terms_rise(seed: int, replicas: int, trouble: float) -> None:
    """Processes stop for a while, die, are born, and lose requests and replies."""
    random = Random(seed)
    leases = Leases()
    alive = [Replica(f"r{number}", random.uniform(-1000, 1000)) for number in range(replicas)]
    born = replicas
    every: list[Replica] = list(alive)
    now = 0.0
    for _ in range(200):
        now += random.uniform(0.1, 2.0)
        event = random.random()
        if event < 0.03 and len(alive) > 1:
            alive.remove(random.choice(alive))
        elif event < 0.06 and len(alive) < 4:
            alive.append(Replica(f"r{born}", random.uniform(-1000, 1000)))
            every.append(alive[-1])
            born += 1
        elif event < 0.12:
            random.choice(alive).asleep_until = now + random.choice([5.0, 12.0, 20.0, 60.0])
        replica = random.choice(alive)
        if replica.asleep_until <= now:
            replica.turn(leases, now, random, trouble)
        for shard in range(SHARDS):
            leaders = [one for one in alive if one.leads(shard, now)]
            assert len(leaders) <= 1, f"shard {shard} has {len(leaders)} leaders at {now}"
    for shard in range(SHARDS):
        terms = [term for one in every for of, term in one.terms if of == shard]
        assert len(terms) == len(set(terms)), "a term was given twice"


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_shards_are_shared_evenly_when_nothing_happens(count: int) -> None:
    leases = Leases()
    replicas = [Replica(f"r{number}", 100.0 * number) for number in range(count)]
    for step in range(40):
        for replica in replicas:
            replica.turn(leases, step * TIMES.renew_seconds)
    shares = sorted(len(replica.election.held) for replica in replicas)
    assert sum(shares) == SHARDS
    assert shares[-1] - shares[0] <= 1


def test_what_a_dead_replica_held_is_taken_after_a_lease_and_not_before() -> None:
    leases = Leases()
    dead, other = Replica("a", 0.0), Replica("b", 50.0)
    dead.turn(leases, 0.0)
    assert len(dead.election.held) == SHARDS
    now = 0.0
    while not other.election.held:
        other.turn(leases, now)
        now += 1.0
        assert now < 60
    assert now > TIMES.lease_seconds
    while len(other.election.held) < SHARDS:
        other.turn(leases, now)
        now += 1.0
        assert now < 120
    assert all(held.lease.term == 2 for held in other.election.held.values())


def test_R6_a_holder_counts_from_when_it_sent_its_renewal() -> None:
    leases = Leases()
    replica = Replica("a", 0.0)
    replica.turn(leases, 0.0)
    (write, *_) = replica.election.renewals()
    answer = leases.write(write)
    assert answer is not None
    # The reply took eight seconds.
    replica.election.written(write, answer, 3.0)
    assert replica.election.held[answer.shard].deadline_seconds == 3.0 + TIMES.acting_seconds


def test_R5_the_same_process_acquires_under_a_higher_term() -> None:
    leases = Leases()
    replica = Replica("a", 0.0)
    replica.turn(leases, 0.0)
    assert replica.election.expire(20.0) == [0, 1, 2, 3]
    replica.turn(leases, 20.0)
    assert {held.lease.term for held in replica.election.held.values()} == {2}


def test_R5_a_lease_made_anew_is_raised_above_the_records() -> None:
    leases = Leases()
    replica = Replica("a", 0.0)
    replica.turn(leases, 0.0)
    replica.election.raise_term(2, above=7)
    replica.turn(leases, 3.0)
    assert replica.election.held[2].lease.term == 8
    assert replica.election.held[1].lease.term == 1


def test_a_lease_that_was_deleted_or_taken_is_lost_at_once() -> None:
    leases = Leases()
    replica = Replica("a", 0.0)
    replica.turn(leases, 0.0)
    del leases.found[shard_lease_name(1)]
    taken = leases.found[shard_lease_name(2)]
    leases.found[taken.name] = replace(taken, holder="b", term=9, version="99")
    replica.election.observe(list(leases.found.values()), 1.0)
    assert sorted(replica.election.held) == [0, 3]


def test_released_shards_are_taken_at_once() -> None:
    """A clean shutdown costs the others no lease."""
    leases = Leases()
    leaving, staying = Replica("a", 0.0), Replica("b", 0.0)
    leaving.turn(leases, 0.0)
    staying.turn(leases, 0.1)
    for write in (*leaving.election.release(list(leaving.election.held)), *leaving.election.leave()):
        leases.write(write)
    staying.turn(leases, 0.2)
    assert len(staying.election.held) == SHARDS


def test_replicas_long_gone_are_forgotten() -> None:
    leases = Leases()
    Replica("a", 0.0).turn(leases, 0.0)
    other = Replica("b", 0.0)
    now = 0.0
    while now < 20 * TIMES.lease_seconds * 2:
        other.turn(leases, now)
        now += TIMES.renew_seconds
    assert replica_lease_name("a") not in leases.found
    assert replica_lease_name("b") in leases.found
