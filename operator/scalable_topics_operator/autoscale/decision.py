"""What was decided, and why nothing else was: every rule with its numbers (DESIGN §8). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias


class Reason(StrEnum):
    """Why an action is taken: names as in the peer's metrics."""

    CONSUMER_COUNT = "consumer-count"
    AT_MAX_SEGMENTS = "at-max-segments"
    BELOW_SPLIT_RATE_FLOOR = "below-split-rate-floor"
    MSG_RATE_IN = "msgRateIn"
    BYTES_RATE_IN = "bytesRateIn"
    MSG_RATE_OUT = "msgRateOut"
    BYTES_RATE_OUT = "bytesRateOut"
    COLD = "cold"
    IDLE_BUCKETS = "idle-buckets"
    BUCKET_DRIFT = "bucket-drift"


@dataclass(frozen=True, slots=True)
class Split:
    """Split a segment into so many parts."""

    segment_id: int
    into: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Merge:
    """Merge two neighbours, in ring order; what comes out counts so many merges in its ancestry (R36)."""

    segment_ids: tuple[int, int]
    merge_depth: int = 1
    reason: Reason = Reason.COLD


@dataclass(frozen=True, slots=True)
class Rebucket:
    """Give segments so many entry buckets, one after the other."""

    segment_ids: tuple[int, ...]
    buckets: int
    reason: Reason


Action: TypeAlias = Split | Merge | Rebucket


class Rule(StrEnum):
    """The rules, in the order in which they are asked."""

    ENABLED = "enabled"
    LOAD_FRESH = "load-fresh"
    CONSUMER_SPLIT = "consumer-split"
    CONSUMER_REBUCKET = "consumer-rebucket"
    LOAD_SPLIT = "load-split"
    MERGE = "merge"
    IDLE_REBUCKET = "idle-rebucket"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one rule found.

    Args:
        rule: which.
        fired: whether the action is this rule's.
        code: a word for metrics and status that does not change with the numbers.
        why: in words, with the numbers.
    """

    rule: Rule
    fired: bool
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class Decision:
    """One action or none, and what every rule asked found.

    Args:
        action: what to do; None for nothing.
        findings: one for each rule that was asked, in order.
        look_again_at_ms: when a cool-down that held something back is over; None if none did.
    """

    action: Action | None
    findings: tuple[Finding, ...]
    look_again_at_ms: int | None = None

    @property
    def can_wait(self) -> bool:
        """Whether the action is for order only: no load and no consumer waits for it."""
        return self.action is not None and self.action.reason in (Reason.IDLE_BUCKETS, Reason.BUCKET_DRIFT)

    @property
    def code(self) -> str:
        """The reason of the action, or why there is none: the code of the rule that came closest."""
        if self.action is not None:
            return self.action.reason.value
        held = [finding for finding in self.findings if finding.code not in ("quiet", "fresh", "on")]
        return held[0].code if held else "quiet"
