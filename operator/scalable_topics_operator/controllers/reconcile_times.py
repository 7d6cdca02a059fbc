"""How often what is not asked for by events is looked at."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

from scalable_topics_operator.controllers.topic_memory import TopicMemory


@dataclass(frozen=True, slots=True)
class ReconcileTimes:
    """How often what is not asked for by events is looked at.

    Args:
        drift_seconds: between two comparisons of the record with the brokers.
        prune_seconds: between two looks for prunable segments (R19).
        observe_seconds: between two looks at a layout that the brokers own.
        refused_retry_seconds: when to try again what brokers have refused.
    """

    drift_seconds: float = 300.0
    prune_seconds: float = 60.0
    observe_seconds: float = 60.0
    refused_retry_seconds: float = 30.0

    def checked(self, memory: TopicMemory, seconds: float | None = None) -> None:
        """Note that record and brokers have been compared; `seconds` until the next time, if not as with drift."""
        # Spread, so that a fleet that started together does not ask the brokers together for ever.
        memory.drift_due = time.monotonic() + (seconds or self.drift_seconds) * random.uniform(0.8, 1.2)
