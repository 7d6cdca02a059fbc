"""R5, R6: one leader a shard at any time, whatever stops, dies or gets lost; shards evenly shared when nothing does."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalable_topics_operator.cluster.election import Election, LeaseTimes, Purpose, Write
from scalable_topics_operator.cluster.lease_record import LeaseRecord, replica_lease_name, shard_lease_name
from scalable_topics_operator.cluster.peers import Peer

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

    def __init__(self, name: str, offset_seconds: float, times: LeaseTimes = TIMES, *, gateways: bool = True) -> None:
        # The first of all has made the installation's record.
        until_seconds = offset_seconds + times.lease_seconds if name in ("r0", "a") else -math.inf
        address = f"{name}:81" if gateways else ""
        self.election = Election(name, SHARDS, times, address, nobody_led_until_seconds=until_seconds)
        self.offset_seconds = offset_seconds
        self.asleep_until = 0.0
        self.has_looked = False
        self.name = name
        self.terms: list[tuple[int, int]] = []

    def clock(self, now: float) -> float:
        return now + self.offset_seconds

    def leads(self, shard: int, now: float) -> bool:
        """Whether it would act."""
        held = self.election.held.get(shard)
        return held is not None and self.clock(now) < held.deadline_seconds

    def has_seen(self, lease: LeaseRecord | None) -> bool:
        """Whether it knows who holds a Lease now."""
        seen = None if lease is None else self.election._seen.get(lease.name)
        return (
            lease is not None
            and seen is not None
            and (seen.lease.holder, seen.lease.term) == (lease.holder, lease.term)
        )

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

        self.election.expire(self.clock(now))
        write(self.election.renewals())
        if not lost():
            self.has_looked = True
            self.election.observe(list(leases.found.values()), self.clock(now))
            write(self.election.decide(self.clock(now)))
        for shard in [shard for shard, held in self.election.held.items() if held.handing_over]:
            write(self.election.release([shard]))
        self.election.expire(self.clock(now))


def all_turn(replicas: list[Replica], leases: Leases, now: float) -> float:
    """Everybody looks once; answers when they look next."""
    for replica in replicas:
        replica.turn(leases, now)
    return now + TIMES.renew_seconds


@given(seed=st.integers(0, 2**32), replicas=st.integers(1, 4), trouble=st.sampled_from([0.0, 0.1, 0.4]))
def test_R6_no_shard_has_two_leaders_and_terms_rise(seed: int, replicas: int, trouble: float) -> None:
    """Processes stop for a while, die, are born, and lose requests and replies; somebody deletes Leases."""
    random = Random(seed)
    leases = Leases()
    alive = [Replica(f"r{number}", random.uniform(-1000, 1000)) for number in range(replicas)]
    born = replicas
    every: list[Replica] = list(alive)
    deleted: set[int] = set()
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
        elif event < 0.08 and leases.found:
            shards = set(range(SHARDS)) if random.random() < 0.3 else {random.randrange(SHARDS)}
            # One that was made and deleted between two looks of somebody, nobody could notice.
            noticed = [leases.found.get(shard_lease_name(shard)) for shard in shards]
            if all(one.has_seen(lease) for one in alive if one.has_looked for lease in noticed):
                deleted |= shards
                for name in [name for name, lease in leases.found.items() if lease in noticed or len(shards) > 1]:
                    del leases.found[name]
        elif event < 0.12:
            random.choice(alive).asleep_until = now + random.choice([5.0, 12.0, 20.0, 60.0])
        replica = random.choice(alive)
        if replica.asleep_until <= now:
            replica.turn(leases, now, random, trouble)
        for shard in range(SHARDS):
            leaders = [one for one in alive if one.leads(shard, now)]
            assert len(leaders) <= 1, f"shard {shard} has {len(leaders)} leaders at {now}"
        for one in alive:
            seen = one.election.leaders(one.clock(now)).values()
            # Whoever is told of an address may send callers' tokens there: never to another than the leader named.
            assert all(peer.address in ("", f"{peer.identity}:81") for peer in seen)
            assert all(peer.is_me == (peer.identity == one.name) for peer in seen)
    # Of a Lease made anew only the records know the terms there were (R5).
    for shard in set(range(SHARDS)) - deleted:
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
    assert len(other.election.held) == SHARDS, "who let them run out counts as dead, so that all of them are wanted"
    assert all(held.lease.term == 2 for held in other.election.held.values())


def test_what_a_dead_replica_held_is_shared_by_the_others_within_a_lease_and_two_looks() -> None:
    leases = Leases()
    replicas = [Replica(f"r{number}", 100.0 * number) for number in range(3)]
    now = 0.0
    while now < 5 * TIMES.lease_seconds:
        now = all_turn(replicas, leases, now)
    dead = max(replicas, key=lambda replica: len(replica.election.held))
    assert len(dead.election.held) == 2
    replicas.remove(dead)
    died_at = now
    while sum(len(replica.election.held) for replica in replicas) < SHARDS:
        now = all_turn(replicas, leases, now)
    assert now - died_at <= TIMES.lease_seconds + 2 * TIMES.renew_seconds
    assert [len(replica.election.held) for replica in replicas] == [2, 2]
    held = [set(replica.election.held) for replica in replicas]
    while now - died_at < 5 * TIMES.lease_seconds:
        now = all_turn(replicas, leases, now)
        # The dead one's own Lease still looks fresh for a while; nothing is set aside for it.
        assert [set(replica.election.held) for replica in replicas] == held


def test_one_that_comes_moves_no_more_than_its_share() -> None:
    """Whoever has one shard more than others keeps it."""
    leases = Leases()
    replicas = [Replica("r1", 0.0), Replica("r2", 0.0)]
    now = 0.0
    while now < 5 * TIMES.lease_seconds:
        now = all_turn(replicas, leases, now)
    before = [set(replica.election.held) for replica in replicas]
    # Its name comes first.
    replicas.append(Replica("r0", 0.0))
    for _ in range(3):
        now = all_turn(replicas, leases, now)
    after = [set(replica.election.held) for replica in replicas]
    assert sum(len(had - has) for had, has in zip(before, after, strict=False)) == 1
    assert sorted(map(len, after)) == [1, 1, 2]


def test_one_that_is_started_again_is_not_counted_twice() -> None:
    """Others delete what a dead one left to show that it lives, as soon as they know."""
    leases = Leases()
    replicas = [Replica(f"r{number}", 0.0) for number in range(3)]
    now = 0.0
    while now < 5 * TIMES.lease_seconds:
        now = all_turn(replicas, leases, now)
    dead = replicas.pop(0)
    assert dead.election.held
    died_at = now
    while now - died_at < TIMES.lease_seconds / 2:
        now = all_turn(replicas, leases, now)
    replicas.append(Replica("again", 0.0))
    while now - died_at <= TIMES.lease_seconds + TIMES.renew_seconds:
        now = all_turn(replicas, leases, now)
    assert sum(len(replica.election.held) for replica in replicas) == SHARDS, "the new one has not watched long enough"
    until = now + 2 * TIMES.lease_seconds + 2 * TIMES.renew_seconds
    while now < until:
        now = all_turn(replicas, leases, now)
    assert replica_lease_name("r0") not in leases.found
    assert sorted(len(replica.election.held) for replica in replicas) == [1, 1, 2]


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


@pytest.mark.parametrize("slept_seconds", [11.0, 20.0])
def test_R5_R6_the_same_process_acquires_what_ran_out_under_a_higher_term(slept_seconds: float) -> None:
    """As after a sleep: what was dropped meanwhile must begin anew, so that a renewal is not enough."""
    leases = Leases()
    replica = Replica("a", 0.0)
    replica.turn(leases, 0.0)
    assert replica.election.expire(slept_seconds) == [0, 1, 2, 3]
    replica.turn(leases, slept_seconds)
    assert {held.lease.term for held in replica.election.held.values()} == {2}


@pytest.mark.parametrize(
    ("times", "survived_seconds", "fatal_seconds"), [(LeaseTimes(15.0), 8.0, 30.0), (LeaseTimes(60.0), 30.0, 60.0)]
)
def test_a_slow_api_server_costs_no_leadership_and_one_that_is_away_ends_it_cleanly(
    times: LeaseTimes, survived_seconds: float, fatal_seconds: float
) -> None:
    """Hazard C73: how long may be set, and the process goes on either way."""
    leases = Leases()
    replica = Replica("a", 0.0, times)
    replica.turn(leases, 0.0)
    held = sorted(replica.election.held)
    assert held
    assert replica.election.expire(survived_seconds) == []
    for write in replica.election.renewals():
        answer = leases.write(write)
        assert answer is not None
        replica.election.written(write, answer, survived_seconds)
    assert replica.election.expire(survived_seconds + times.lease_seconds / 2) == [], "it has come through since"
    assert replica.election.expire(survived_seconds + fatal_seconds) == held
    assert not replica.election.held
    replica.turn(leases, survived_seconds + fatal_seconds)
    assert sorted(replica.election.held) == held, "it stands for election again"


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


def test_R6_one_that_comes_when_all_leases_were_deleted_waits_a_lease() -> None:
    """Found by the simulation: it took them for ones that nobody had ever held."""
    leases = Leases()
    leader, other = Replica("r0", 0.0), Replica("r1", 300.0)
    leader.turn(leases, 0.0)
    leases.found.clear()
    other.turn(leases, 1.0)
    assert leader.leads(0, 1.0)
    assert not other.election.held
    other.turn(leases, 1.0 + TIMES.lease_seconds + TIMES.renew_seconds)
    other.turn(leases, 1.0 + TIMES.lease_seconds + 2 * TIMES.renew_seconds)
    assert len(other.election.held) == SHARDS


def test_R6_what_ran_out_in_the_middle_of_a_turn_may_have_been_led_by_another_since() -> None:
    """Found by the simulation: a renewal hung for longer than its lease, meanwhile another replica took over, and then
    somebody deleted the Lease. To whom had it last the missing Lease was its own.
    """
    leases = Leases()
    hung, other = Replica("a", 0.0), Replica("b", 0.0)
    hung.turn(leases, 0.0)
    other.turn(leases, 0.0)
    assert len(hung.election.held) == SHARDS
    renewals = hung.election.renewals()
    now = TIMES.lease_seconds + TIMES.renew_seconds
    other.turn(leases, now)
    assert other.election.held
    leases.found.clear()
    assert not any(leases.write(write) for write in renewals)
    hung.election.observe([], now)
    assert not any(write.purpose is Purpose.ACQUIRE for write in hung.election.decide(now))
    assert not hung.election.held


def test_only_who_made_the_record_takes_what_has_no_lease_at_once_and_shares_it_then() -> None:
    leases = Leases()
    replicas = [Replica(name, 0.0) for name in ("r1", "r0", "r2")]
    now = all_turn(replicas, leases, 0.0)
    assert [len(one.election.held) for one in replicas] == [0, SHARDS, 0]
    for _ in range(4):
        now = all_turn(replicas, leases, now)
    assert sorted(len(one.election.held) for one in replicas) == [1, 1, 2]
    assert now < TIMES.lease_seconds + 1


def test_R6_what_somebody_deleted_is_waited_out_like_any_change_and_terms_go_on() -> None:
    """Its holder does not know yet, and acts."""
    leases = Leases()
    holder, other = Replica("a", 0.0), Replica("b", 0.0)
    now = 0.0
    while now < 3 * TIMES.lease_seconds:
        holder.turn(leases, now)
        other.turn(leases, now)
        now += TIMES.renew_seconds
    held = set(holder.election.held)
    assert len(held) == 2
    leases.found.clear()
    other.turn(leases, now)
    assert held.isdisjoint(other.election.held)
    # The holder is away for good.
    deleted_at = now
    while len(other.election.held) < SHARDS:
        other.turn(leases, now)
        now += TIMES.renew_seconds
        assert now - deleted_at < 3 * TIMES.lease_seconds
    assert now - deleted_at > TIMES.lease_seconds
    assert all(other.election.held[shard].lease.term > 1 for shard in held)


def test_a_replica_that_shows_itself_and_takes_nothing_makes_nobody_let_go_again_and_again() -> None:
    """One that crashes right after its start, for instance."""
    leases = Leases()
    replica = Replica("a", 0.0)
    replica.turn(leases, 0.0)
    ghost = replace(leases.found[replica_lease_name("a")], name=replica_lease_name("g"), holder="g", version="77")
    leases.found[ghost.name] = ghost
    now, acquired = 0.0, len(replica.terms)
    while now < 2 * TIMES.lease_seconds:
        now += TIMES.renew_seconds
        replica.turn(leases, now)
    assert len(replica.terms) - acquired <= 2, "each half of the shards moves once, and comes back"
    assert len(replica.election.held) == SHARDS


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


def test_every_replica_knows_who_leads_and_where_that_one_is_without_a_further_write() -> None:
    def writes(gateways: bool) -> tuple[int, list[Replica], Leases, float]:
        leases = Leases()
        replicas = [Replica("a", 0.0, gateways=gateways), Replica("b", 50.0, gateways=gateways)]
        now = 0.0
        while now < 5 * TIMES.lease_seconds:
            now = all_turn(replicas, leases, now)
        return leases.versions, replicas, leases, now

    count, replicas, leases, now = writes(True)
    assert count == writes(False)[0]
    for one in replicas:
        leaders = one.election.leaders(one.clock(now))
        assert sorted(leaders) == list(range(SHARDS))
        for shard, peer in leaders.items():
            lease = leases.found[shard_lease_name(shard)]
            holder = lease.holder
            assert peer == Peer(holder, f"{holder}:81", is_me=holder == one.name, term=lease.term)


def test_a_leader_that_has_run_out_is_named_no_more() -> None:
    leases = Leases()
    dead, other = Replica("a", 0.0), Replica("b", 0.0)
    dead.turn(leases, 0.0)
    other.turn(leases, 0.0)
    assert {peer.identity for peer in other.election.leaders(1.0).values()} == {"a"}
    assert other.election.leaders(TIMES.lease_seconds) == {}
