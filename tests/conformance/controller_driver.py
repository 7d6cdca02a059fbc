"""Runs peer cases of the controller that decides: policies, decision, change and clocks over a time, as ours does them.

Between two looks everything goes through the form it has in the topic's status, as over a change of leader. What needs
brokers and Kubernetes, such as who looks when, is in `tests/integration/operator/test_auto_scale.py`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from scalable_topics.layout import SegmentLayout, from_record, to_record
from scalable_topics_operator.autoscale.clocks import Clocks
from scalable_topics_operator.autoscale.config import SECONDS_MS
from scalable_topics_operator.autoscale.decide import Situation, decide
from scalable_topics_operator.autoscale.load import Rates, SegmentLoad
from scalable_topics_operator.autoscale.policy import KNOBS, Level, resolve
from scalable_topics_operator.operations.requests import plan, requests_of

_PATHS = {
    "enabled": "enabled",
    **{entry.broker[13:14].lower() + entry.broker[14:]: entry.path for entry in KNOBS if entry.broker},
}
_OPERATOR = {
    "splitCooldownS": "split.cooldown",
    "mergeCooldownS": "merge.cooldown",
    "mergeWindowS": "merge.window",
    "splitMsgIn": "split.msgRateIn",
    "rebucketCooldownS": "rebucket.cooldown",
    "cooldownsS": "rebucket.cooldown",
    "enabled": "enabled",
}


@dataclass
class Controller:
    """What decides on one topic.

    Args:
        given: of a peer case: the operator's settings, the overrides of a namespace and of the topic, segments, load.
    """

    given: dict[str, Any]
    now_ms: int = 1_000_000_000
    loads: dict[int, float] = field(default_factory=dict)
    consumers: int = 0

    def __post_init__(self) -> None:
        self._layout = SegmentLayout.initial(self.given["segments"])
        self._clocks = Clocks()
        self.loads = {int(segment): rate for segment, rate in self.given.get("load", {}).items()}
        self.levels = (
            Level("operator", {path: self.given[name] for name, path in _OPERATOR.items() if name in self.given}),
            *(Level(name, _knobs(self.given.get(name, {}))) for name in ("ns", "topic")),
        )

    @property
    def segment_ids(self) -> list[int]:
        """The active segments."""
        return [segment.segment_id for segment in self._layout.active]

    @property
    def active(self) -> int:
        """How many segments are active."""
        return len(self._layout.active)

    @property
    def buckets(self) -> int:
        """All entry buckets."""
        return sum(segment.buckets for segment in self._layout.active)

    def override(self) -> dict[str, Any]:
        """What applies to the topic by its own override."""
        policy = resolve(self.levels)
        return {path: value for path, value in policy.knobs.items() if policy.origins[path] == "topic"}

    def evaluate(self) -> int | None:
        """Look once; answers how long the next look may wait, in milliseconds, if something is held back till then."""
        config = resolve(self.levels).config
        if config is None:
            return None
        # Of a case that speaks of no load at all, every segment is known to be idle; else what is left out is unknown.
        idle = {} if self.loads else dict.fromkeys(self.segment_ids, 0.0)
        loads = {
            segment: SegmentLoad(Rates(msg_rate_in=float(rate)), self.now_ms)
            for segment, rate in (self.loads or idle).items()
        }
        decision = decide(Situation(self._layout, loads, {"s": self.consumers}, config, self._clocks, self.now_ms))
        if decision.action is not None:
            for request in requests_of(decision.action):
                change = plan(self._layout, request, max_records=100_000)
                self._layout = self._layout.reserve(change).apply(change, now_ms=self.now_ms)
                self._clocks = self._clocks.moved(change.kind, self.now_ms)
        return None if decision.look_again_at_ms is None else decision.look_again_at_ms - self.now_ms

    def fail_over(self) -> None:
        """Another leader goes on from what is in the status."""
        self._layout = from_record(json.loads(json.dumps(to_record(self._layout))))
        self._clocks = Clocks.from_json(json.loads(json.dumps(self._clocks.to_json())))

    def wait(self, milliseconds: int) -> None:
        """Let time go by."""
        self.now_ms += milliseconds

    def tick(self) -> None:
        """Let an ordinary interval go by."""
        self.wait(int(self.given.get("tickS", 60) * SECONDS_MS))


def _knobs(given: dict[str, Any]) -> dict[str, Any]:
    return {_PATHS[name]: value for name, value in given.items()}
