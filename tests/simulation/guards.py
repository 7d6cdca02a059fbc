"""The guards of R5–R9, R13, R14, R17, R19 and R21, and stories that notice when one is gone.

`tests/long/test_simulated.py` takes each out and tells stories from seed 0 on until one fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from scalable_topics_operator.assignment import barrier, group
from scalable_topics_operator.cluster.election import Election
from scalable_topics_operator.cluster.leadership import Leadership
from scalable_topics_operator.controllers import segment_looks
from scalable_topics_operator.controllers.coordinator import Coordinator
from scalable_topics_operator.controllers.session_room import Room
from scalable_topics_operator.controllers.shard_work import ShardWork
from scalable_topics_operator.controllers.topic_work import TopicWorkMaker
from tests.simulation.kinds import Story
from tests.simulation.mutations import MUTATIONS, Removal

MOST_SEEDS = 2000

_OPERATIONS, _REPLICAS, _CONSUMERS = "operations", "replicas", "consumers"


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard.

    Args:
        rule: that it keeps.
        removal: takes it out.
        kind: of the stories that notice.
        others: what has to be taken out besides, since it does the same later: either one is enough.
    """

    rule: str
    removal: Removal
    kind: str
    others: tuple[Removal, ...] = ()

    def __str__(self) -> str:
        return "; ".join(removal.name for removal in (self.removal, *self.others))

    @contextmanager
    def removed(self) -> Iterator[None]:
        """Run without it."""
        with ExitStack() as stack:
            for removal in (self.removal, *self.others):
                stack.enter_context(removal.applied())
            yield


_OF_LEADERSHIP = (
    Guard(
        "R5",
        Removal(
            "R5: a shard is acquired in the term it had",
            Election._mine,
            "self._lowest_terms.get(shard, 0)) + 1",
            "self._lowest_terms.get(shard, 1))",
        ),
        _REPLICAS,
    ),
    Guard(
        "R5",
        Removal(
            "R5: a shard is led in a term below that of its records",
            ShardWork.gained,
            "if highest >= term:",
            "if False:",
        ),
        _REPLICAS,
        (
            Removal(
                "and a journal is gone on with in a lower term than it was opened in",
                TopicWorkMaker._store,
                "if operation is not None and operation.term > term:",
                "if False:",
            ),
            Removal(
                "and segments are assigned in a lower term than before",
                Coordinator._term,
                "if recorded > term:",
                "if False:",
            ),
        ),
    ),
    Guard(
        "R6",
        Removal(
            "R6: a shard is taken over before its Lease has run out",
            Election._free,
            "if now_seconds - seen.since_seconds < patience_seconds:",
            "if False:",
        ),
        _REPLICAS,
    ),
    Guard(
        "R6",
        Removal(
            "R6: a leader goes on behind its deadline",
            Leadership.hold,
            " and time.monotonic() < hold.deadline_seconds",
            "",
        ),
        _REPLICAS,
    ),
    Guard(
        "R6",
        Removal(
            "R6: the deadline counts from the reply to a renewal",
            Leadership._write,
            "self._election.written(write, written, sent_at)",
            "self._election.written(write, written, time.monotonic())",
        ),
        _REPLICAS,
    ),
    Guard(
        "R6",
        Removal(
            "R6: what was begun acts on behind the deadline",
            ShardWork.run,
            "lambda: leadership.acting_until_seconds(shard, term)",
            "lambda: 1e18",
        ),
        _REPLICAS,
    ),
    Guard(
        "R7",
        Removal(
            "R7: a new leader removes at once who has not come back to it",
            Room.watch,
            "if session is None or name in overdue:\n            self.away.setdefault(name, now + self.grace_seconds)",
            "if session is None or name in overdue:\n            self.away.setdefault(name, now)",
        ),
        _REPLICAS,
    ),
    Guard(
        "R7",
        Removal(
            "R7: a consumer is removed whom its broker still serves",
            segment_looks.SegmentLooks.may_serve,
            "consumer in cursor.consumer_names",
            "False",
        ),
        _REPLICAS,
    ),
    Guard(
        "R21",
        Removal(
            "R21: a bucket is given while somebody may be reading it, or the whole segment",
            group._is_free,
            "not any(part.conflicts_with(other) and (holder, other) != (name, part) for holder, other in held)",
            "True",
        ),
        _REPLICAS,
    ),
    Guard(
        "R21",
        Removal(
            "R21: a segment is given Exclusive beside readers of its buckets, and the other way round",
            group._is_free,
            "part.conflicts_with(other)",
            "part == other",
        ),
        _CONSUMERS,
    ),
    Guard(
        "R17",
        Removal(
            "R17: children are read before their parents",
            barrier.readable_segments,
            "all(parent.segment_id in drained for parent in layout.parents_of(segment.segment_id))",
            "True",
        ),
        _REPLICAS,
    ),
    Guard(
        "R17",
        Removal(
            "R17: a segment counts as read when it is sealed",
            segment_looks.SegmentLooks.drained,
            "look is not None and is_read_to_its_end(self._layout.segment(segment_id), look, subscription)",
            "look is not None",
        ),
        _REPLICAS,
    ),
)

# Guards of operations that keep one of these rules, and are named after something else.
_ALSO_OF = {
    "A1-26680": "R14",
    "A1-26678": "R14",
    "B1": "R14",
    "DESIGN §7: the layout is committed before its parents are sealed": "R14",
    "A3-26274": "R19",
    "B6": "R19",
}
# In these stories seals come undone more often.
_SEEN_BY_REPLICAS = frozenset(
    {
        "A1-26680: the reply of a terminate is believed",
        "A1-26680: one look is enough",
        "A1-26678: writes in flight at the seal are ignored",
    }
)
_RULES = ("R8", "R9", "R13", "R14", "R17", "R19")


def _of_operations() -> Iterator[Guard]:
    for mutation in MUTATIONS:
        named = mutation.name.partition(":")[0]
        rule = _ALSO_OF.get(mutation.name) or _ALSO_OF.get(named) or named
        if rule in _RULES:
            yield Guard(rule, mutation, _REPLICAS if mutation.name in _SEEN_BY_REPLICAS else _OPERATIONS)


GUARDS = (*_OF_LEADERSHIP, *_of_operations())


def first_to_notice(guard: Guard, most_seeds: int = MOST_SEEDS) -> tuple[Story, str] | None:
    """The first story that fails without a guard, and what it says; None if none of so many does."""
    with guard.removed():
        for seed in range(most_seeds):
            story = Story(guard.kind, seed)
            if wrong := story.what_went_wrong():
                return story, wrong.partition(": ")[2]
    return None
