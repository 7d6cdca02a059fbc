"""Guards taken out of the operations one at a time; the simulation must notice each.

A mutation replaces a piece of a function's source and names the script and the faults that show the loss.
"""

from __future__ import annotations
import __future__

import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from scalable_topics_operator.operations import (
    announce,
    claims,
    create,
    cursor_moves,
    drift,
    journal,
    prune,
    rebuild,
    recover,
    reshape,
    seal,
    seek,
    subscriptions,
    teardown,
    topic_state,
)
from tests.simulation.faults import FaultKind
from tests.simulation.operator_process import OperatorProcess

_CRASHES = (FaultKind.CRASH_BEFORE, FaultKind.CRASH_AFTER)


@dataclass(frozen=True, slots=True)
class Removal:
    """One guard taken out.

    Args:
        name: what no longer holds.
        function: the function it is taken out of.
        old: a piece of its source, there exactly once.
        new: what stands there instead.
    """

    name: str
    function: Callable[..., Any]
    old: str
    new: str

    def __str__(self) -> str:
        return self.name

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Run with the guard gone: the function's code is replaced, so whoever imported it is affected."""
        source = textwrap.dedent(inspect.getsource(self.function))
        if source.count(self.old) != 1:
            raise ValueError(f"{self.name}: the source of {self.function.__name__} has {self.old!r} not exactly once")
        code = compile(
            source.replace(self.old, self.new),
            inspect.getfile(self.function),
            "exec",
            flags=__future__.annotations.compiler_flag,
        )
        names = dict(self.function.__globals__)
        exec(code, names)
        original = self.function.__code__
        self.function.__code__ = names[self.function.__name__].__code__
        try:
            yield
        finally:
            self.function.__code__ = original


@dataclass(frozen=True, slots=True)
class Mutation(Removal):
    """A guard of the operations taken out, and what shows it.

    Args:
        script: the story that does.
        faults: kinds of faults that do; none when the story alone does.
    """

    script: str
    faults: tuple[FaultKind, ...] = ()


MUTATIONS = (
    Mutation(
        "R9: ids are not reserved when the journal opens",
        reshape.open_reshape,
        "layout.reserve(change)",
        "layout",
        "split",
        _CRASHES,
    ),
    Mutation(
        "R8: parents are sealed before the journal says so",
        reshape._announce,
        "replace(operation, step=Step.SEALING)",
        "operation",
        "split",
    ),
    Mutation(
        "R8: an operation is rolled back after its point of no return",
        reshape.advance_reshape,
        "if operation.step is Step.CREATING:",
        "if operation.step in (Step.CREATING, Step.SEALING):",
        "split",
        _CRASHES,
    ),
    Mutation(
        "DESIGN §7: the layout is committed before its parents are sealed",
        seal.seal_segment,
        "claimed = await ctx.backend.terminate(segment_topic)",
        "look = await ctx.backend.look(segment_topic)\n"
        "            return Seal(look.last_confirmed, came_back, look.counting)",
        "split",
    ),
    Mutation(
        "R16: subscriptions are not looked for again after the seal",
        reshape._seal_and_commit,
        "_counting(ctx, [seal.subscriptions for seal in seals.values()])",
        "frozenset(operation.subscriptions)",
        "split",
        (FaultKind.SUBSCRIBED,),
    ),
    Mutation(
        "R16: a subscription that is being deleted is found again",
        reshape._counting,
        " - ctx.store.state.not_discovered",
        "",
        "split while a subscription is deleted",
    ),
    Mutation(
        "R8: a child that vanished before the commit is not made again",
        reshape._seal_and_commit,
        "if not present:",
        "if False:",
        "split",
        (FaultKind.DROPPED, FaultKind.CRASH_BEFORE),
    ),
    Mutation(
        "A1-26680: the reply of a terminate is believed",
        seal.seal_segment,
        "first = await ctx.backend.look(segment_topic)",
        "return Seal(claimed, came_back, (await ctx.backend.look(segment_topic)).counting)",
        "split",
        (FaultKind.REOPENED,),
    ),
    Mutation(
        "A1-26680: one look is enough",
        seal.seal_segment,
        "second = await ctx.backend.look(segment_topic)",
        "second = first",
        "split",
        (FaultKind.REOPENED,),
    ),
    Mutation(
        "A1-26678: writes in flight at the seal are ignored",
        seal.seal_segment,
        "and not second.pending_adds",
        "",
        "split",
        (FaultKind.HANGING,),
    ),
    Mutation(
        "R17: segments are pruned undrained",
        prune.judge_segment,
        "if undrained:",
        "if False:",
        "prune of what is unread",
    ),
    Mutation(
        "R14: segments are pruned by a position that is not their end any more",
        prune.judge_segment,
        "look.last_confirmed != position",
        "position is None",
        "prune of what was open again",
    ),
    Mutation(
        "A3-26274: segments are pruned before what comes before them is read",
        prune._in_order,
        "if finding.blocked_by or not unread:",
        "if True:",
        "prune of what is empty",
    ),
    Mutation(
        "B6: pruned segments are not listed to be deleted",
        prune.prune,
        "deleting=(*state.deleting, *deleting)",
        "deleting=state.deleting",
        "prune",
    ),
    Mutation(
        "B6: a failed delete is forgotten",
        prune.delete_pruned,
        "if not deleted)",
        "if False)",
        "prune with readers attached",
    ),
    Mutation(
        "R11: a rebuild throws away children that were written to",
        rebuild._sort_group,
        " or _was_used(reading, group)",
        "",
        "reopened",
        (FaultKind.WIPED,),
    ),
    Mutation(
        "R11: a rebuild leaves a half sealed operation unfinished",
        rebuild._sort_group,
        "len(sealed) == len(known)",
        "sealed or not known",
        "merge",
        (FaultKind.WIPED,),
    ),
    Mutation(
        "R16: a rebuild does not carry over the cursors of the last operation",
        rebuild._carry_over,
        "if on_parents - witness.subscriptions:",
        "if False:",
        "rollover",
        (FaultKind.WIPED,),
    ),
    Mutation(
        "R9: a rebuild counts on from the ids it sees",
        rebuild._assemble,
        " + ID_GAP",
        "",
        "split",
        (FaultKind.DENIED,),
    ),
    Mutation(
        "R9: a creation insists on a name that somebody took",
        create._create,
        "except NameTaken as taken:",
        "except ZeroDivisionError as taken:",
        "create",
        (FaultKind.REPLACED,),
    ),
    Mutation(
        "R11: a status restored from a backup is acted on",
        recover.rebuild_if_outdated,
        "if layout is None:",
        "if True:",
        "scale",
        (FaultKind.RESTORED,),
    ),
    Mutation(
        "R1: a topic whose claim was lost with its status is created over its data",
        recover.recover_unclaimed,
        "if not any(witness.entries for witness in witnesses)",
        "if True",
        "claim lost",
        (FaultKind.WIPED,),
    ),
    Mutation(
        "R1: a claim released late is taken for somebody else's",
        claims.why_lost,
        "if claim.released and",
        "if False and",
        "retain and declare again",
        (FaultKind.TIMED_OUT,),
    ),
    Mutation(
        "B2: a segment that a repair left without cursors passes for whole",
        drift._find_strangers,
        "record is None or (record.operation_id == _repair_id(segment) and not wanted <= look.cursors.keys())",
        "record is None",
        "recreate",
        (FaultKind.CRASH_AFTER,),
    ),
    Mutation(
        "A1-25719: a segment that a client made again passes for ours",
        drift._find_strangers,
        "if strange]",
        "if False]",
        "rebucket",
        (FaultKind.REPLACED,),
    ),
    Mutation(
        "R19: what late calls leave behind is not swept",
        drift._sweep_one,
        "await ctx.backend.delete_segment(stray.topic, force=look.consumers > 0)",
        "pass",
        "split",
        (FaultKind.CRASH_LATE,),
    ),
    Mutation(
        "R14: the new end of a seal that was repaired is not recorded",
        drift._record_positions,
        "if layout is None or not findings.positions:",
        "if True:",
        "reopened",
    ),
    Mutation(
        "B1: a segment sealed behind our back stays",
        drift._replace,
        "look.terminated or made_again",
        "made_again",
        "rollover",
    ),
    Mutation(
        "A1-26008: fields that are not ours are dropped from the status",
        topic_state.write_state,
        "if key not in _OWNED",
        "if False",
        "create",
    ),
    Mutation(
        "R16: a declared subscription is recorded without its cursors",
        subscriptions.settle_cursors,
        "skipped = await cursors.create(entry)",
        "pass",
        "subscribe",
    ),
    Mutation(
        "C14: whoever is deleted deletes the topic, owner or not",
        teardown.delete_topic,
        "if name.exists and (name.claim is None or name.claim.resource_uid != ctx.claim.resource_uid):",
        "if False:",
        "rival deleted",
    ),
    Mutation(
        "hazard of DESIGN §7: deleting leaves topics that the record does not know",
        teardown._all_segment_topics,
        "*recorded, *found, *(entry.topic for entry in state.deleting)",
        "*recorded",
        "delete",
        (FaultKind.CRASH_LATE, FaultKind.WIPED),
    ),
    Mutation(
        "R20: a layout is published before it is committed",
        reshape._seal_and_commit,
        "await alongside(ctx.backend.expect_layout(ctx.topic), ctx.store.commit(after))",
        "await publish(replace(ctx, store=type('Early', (), {'state': after})()))\n    await ctx.store.commit(after)",
        "split",
    ),
    Mutation(
        "R13: a seal is not announced",
        reshape.advance_reshape,
        "operation = await _announce(ctx, operation)",
        "operation = replace(operation, step=Step.SEALING)\n"
        "        await ctx.store.commit(replace(ctx.store.state, operation=operation))\n"
        "        from scalable_topics_operator.operations.context import Announced\n"
        "        ctx.published.announced = Announced(operation.id, 1, ctx.clock.monotonic_seconds())",
        "split",
    ),
    Mutation(
        "R13: a segment is sealed after its producers went on",
        announce.is_announced,
        "ctx.clock.monotonic_seconds() - announced.sent_at_seconds < usable_seconds",
        "True",
        "split",
        (FaultKind.UNAVAILABLE,),
    ),
    Mutation(
        "R13: whoever takes an operation over seals without announcing it again",
        reshape._announced,
        "if is_announced(ctx, operation):",
        "if is_announced(ctx, operation) or operation.id not in ctx.opened_here:",
        "split",
        _CRASHES,
    ),
    Mutation(
        "R13: an announcement is made again under the number that producers know",
        announce._may_be_known,
        "announced.number >= operation.announcements",
        "False",
        "split",
        (FaultKind.UNAVAILABLE, FaultKind.LOST_REPLY),
    ),
    Mutation(
        "R15: who was attached to a sealed segment is not told what was stored",
        reshape._seal_and_commit,
        "{segment: last for segment, last in settled.items() if last}",
        "{}",
        "split",
    ),
    Mutation(
        "R15: who came back before a seal held is not told what was stored",
        reshape._seal_and_commit,
        "seals[parent.segment_id].came_back.union(operation.in_doubt)",
        "operation.in_doubt",
        "rollover",
        (FaultKind.REOPENED,),
    ),
    Mutation(
        "R15: the first entry of a producer is taken for its last",
        announce.settle_tail,
        "found.setdefault(entry.producer, entry.last_sequence_id)",
        "found[entry.producer] = 0",
        "split",
    ),
    Mutation(
        "R20: a publication that failed is forgotten",
        announce.publish,
        "published.message, published.behind = None, True",
        "published.message = message",
        "create",
        (FaultKind.UNAVAILABLE,),
    ),
    Mutation(
        "R12: clients are told of a record that is older than what they know",
        announce.publish,
        "told >= committed",
        "False",
        "prune",
        (FaultKind.RESTORED,),
    ),
    Mutation(
        "R20: drift repair does not look at the layout topic",
        OperatorProcess._check_drift,
        "ctx.published.message = None",
        "pass",
        "layout topic lost",
    ),
    Mutation(
        "DESIGN §7: the layout topic outlives the topic",
        teardown.delete_topic,
        "await ctx.backend.delete_layout_topic(ctx.topic)",
        "pass",
        "delete",
    ),
    Mutation(
        "R18: cursors move while consumers read",
        seek.advance_seek,
        "if not ctx.readers.have_let_go(subscription):",
        "if False:",
        "seek on, with consumers",
    ),
    Mutation(
        "R18: the cursors of sealed segments stay where they are",
        seek._moves,
        "(*layout.active, *layout.sealed)",
        "layout.active",
        "seek back",
    ),
    Mutation(
        "R22: what follows a checkpoint's segments stays where it is",
        cursor_moves.moves_of_restore,
        "Move.TO_THE_BEGINNING if segment_id in behind else Move.STAYS",
        "Move.STAYS",
        "restore a checkpoint",
    ),
    Mutation(
        "R22: a dead leader's successor has forgotten the positions",
        journal.Operation.to_json,
        "if self.positions:",
        "if False:",
        "restore a checkpoint",
    ),
    Mutation(
        "R32: nobody remembers that a subscription was asked for",
        subscriptions._wished_for,
        "requested=True",
        "requested=False",
        "subscribe by request",
    ),
    Mutation(
        "R32: a subscription is made anew because its object is still there",
        subscriptions._waits_for_object,
        "entry.requested and declared is not None and declared.by_object",
        "False",
        "unsubscribe by request what an object declares",
    ),
    Mutation(
        "R32: nobody remembers that consumers are to be disconnected",
        subscriptions._SegmentCursors.delete,
        "force=entry.forced",
        "force=False",
        "unsubscribe by request",
    ),
)
