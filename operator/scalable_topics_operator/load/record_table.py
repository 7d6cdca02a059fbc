"""The table that load records make, and the samples that pulses make of it (R34, R35). Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from scalable_topics_operator.autoscale.load import Rates
from scalable_topics_operator.load.records import PULSE, Pulse, SegmentRecord, decode_pulse, decode_record
from scalable_topics_operator.load.sample import LoadSample, SegmentSample

_CLOCK_STEP_MS = 10_000


@dataclass(slots=True)
class RecordTable:
    """What a reader of the topic of records has so far, from its beginning on.

    Args:
        problem: why the last pulse made no sample; empty if it did.
        pulse: the last one.
    """

    problem: str = "no pulse has come yet"
    pulse: Pulse | None = None
    _records: dict[str, SegmentRecord] = field(default_factory=dict)

    def take(self, key: str, message: bytes) -> bool:
        """Take in a message; answers whether all records up to a pulse are there now.

        What is older than what is known changes nothing. Raises ValueError for a message that is no record.
        """
        if key == PULSE:
            return self._pulse(decode_pulse(message))
        if not message:
            self._records.pop(key, None)
            return False
        record, known = decode_record(message), self._records.get(key)
        if known is None or record.sampled_at_ms >= known.sampled_at_ms:
            self._records[key] = record
        return False

    def sample(self, shift_ms: int) -> LoadSample:
        """What the last pulse and all records before it come to.

        Args:
            shift_ms: what the reader's clock shows more than the pipeline's.
        """
        assert self.pulse is not None
        return LoadSample(
            at_ms=self.pulse.at_ms + shift_ms,
            unseen_seconds=self.pulse.unseen_seconds,
            segments={
                name: SegmentSample(record.rates, record.backlog, _shifted(record.cold, shift_ms))
                for name, record in self._records.items()
                if record.rates is not None
            },
            unsettled=frozenset(name for name, record in self._records.items() if record.rates is None),
            missing=dict(self.pulse.silent),
            settled=self.pulse.settled,
        )

    def _pulse(self, pulse: Pulse) -> bool:
        # One from long before the last tells of a clock that went back.
        if self.pulse is not None and 0 <= self.pulse.at_ms - pulse.at_ms < _CLOCK_STEP_MS:
            return False
        self.pulse, self.problem = pulse, ""
        if pulse.segments != len(self._records):
            self.problem = f"the pipeline tells of {pulse.segments} segments, and {len(self._records)} have a record"
        elif "" in pulse.silent:
            self.problem = f"the pipeline could not list the brokers: {pulse.silent['']}"
        return not self.problem


def _shifted(cold: tuple[int, Rates] | None, shift_ms: int) -> tuple[int, Rates] | None:
    return None if cold is None else (cold[0] + shift_ms, cold[1])
