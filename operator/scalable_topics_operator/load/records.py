"""The load records that the pipeline writes and operators follow: a table by key in a compacted topic (R34, R35). Pure.

Two kinds of keys: a segment's full name, and `PULSE`, which is written last of every batch. Whoever has read a pulse
has read all records of its batch and of those before it; what has no record has been in no answer for long enough.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from scalable_topics.layout.json_fields import MALFORMED, parse_json
from scalable_topics_operator.autoscale.load import Rates

RECORD_VERSION = 1
PULSE = "pulse"


@dataclass(frozen=True, slots=True)
class SegmentRecord:
    """What was told of a segment last.

    Args:
        broker: whose answer it was in, `host:port`.
        sampled_at_ms: when, milliseconds since 1970.
        rates: as of the last material change; None while they do not count: it has just been loaded, or is on a
            broker that gives no answer.
        backlog: messages not yet acknowledged, by subscription.
        changed_at_ms: when the rates were as they are, for the first time.
        cold: when a rate was at or above its merge threshold last, milliseconds since 1970, and those thresholds; None
            while one is.
    """

    broker: str
    sampled_at_ms: int
    rates: Rates | None = None
    backlog: Mapping[str, int] = field(default_factory=dict)
    changed_at_ms: int = 0
    cold: tuple[int, Rates] | None = None


@dataclass(frozen=True, slots=True)
class Pulse:
    """That the pipeline is at work, and what it could not see.

    Args:
        at_ms: when the batch was planned, milliseconds since 1970.
        unseen_seconds: for how long a topic that is loaded may be in no answer.
        settled: whether brokers have been asked for so long that what has no record is not loaded.
        segments: how many segments have a record; whoever has another number has not all of them.
        silent: brokers that gave no answer, and why; under an empty name, why they could not be listed.
    """

    at_ms: int
    unseen_seconds: float
    settled: bool
    segments: int
    silent: Mapping[str, str] = field(default_factory=dict)


def encode_record(record: SegmentRecord) -> bytes:
    """The message of a record."""
    rates = None if record.rates is None else list(record.rates.values)
    return _encode(
        {
            "broker": record.broker,
            "sampledAtMs": record.sampled_at_ms,
            **(
                {}
                if rates is None
                else {
                    "rates": rates,
                    "backlog": dict(record.backlog),
                    "changedAtMs": record.changed_at_ms,
                    **(
                        {}
                        if record.cold is None
                        else {"lastHotAtMs": record.cold[0], "coldBelow": list(record.cold[1].values)}
                    ),
                }
            ),
        }
    )


def encode_pulse(pulse: Pulse) -> bytes:
    """The message of a pulse."""
    return _encode(
        {
            "atMs": pulse.at_ms,
            "unseenSeconds": pulse.unseen_seconds,
            "settled": pulse.settled,
            "segments": pulse.segments,
            "silent": dict(pulse.silent),
        }
    )


def decode_record(message: bytes) -> SegmentRecord:
    """Read a record. Raises ValueError for what is none."""
    data = _decode(message)
    try:
        rates = data.get("rates")
        return SegmentRecord(
            broker=str(data["broker"]),
            sampled_at_ms=int(data["sampledAtMs"]),
            rates=None if rates is None else _rates(rates),
            backlog={str(name): int(count) for name, count in (data.get("backlog") or {}).items()},
            changed_at_ms=int(data.get("changedAtMs", 0)),
            cold=None if "lastHotAtMs" not in data else (int(data["lastHotAtMs"]), _rates(data["coldBelow"])),
        )
    except MALFORMED as error:
        raise ValueError(f"no load record: {error!r}") from None


def decode_pulse(message: bytes) -> Pulse:
    """Read a pulse. Raises ValueError for what is none."""
    data = _decode(message)
    try:
        return Pulse(
            at_ms=int(data["atMs"]),
            unseen_seconds=float(data["unseenSeconds"]),
            settled=bool(data["settled"]),
            segments=int(data["segments"]),
            silent={str(broker): str(why) for broker, why in data["silent"].items()},
        )
    except MALFORMED as error:
        raise ValueError(f"no pulse: {error!r}") from None


def _rates(values: Iterable[Any]) -> Rates:
    rates = Rates(*map(float, values))
    if not rates.is_usable:
        raise ValueError("a rate is a number of 0 or more")
    return rates


def _encode(data: dict[str, Any]) -> bytes:
    return json.dumps({"v": RECORD_VERSION, **data}, separators=(",", ":")).encode()


def _decode(message: bytes) -> dict[str, Any]:
    data = parse_json(message)
    if not isinstance(data, dict) or data.get("v") != RECORD_VERSION:
        raise ValueError(f"no load record of version {RECORD_VERSION}")
    return data
