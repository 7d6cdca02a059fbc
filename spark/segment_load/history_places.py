"""Where the history keeps what, and in which form: Parquet by UTC date and hour.

`raw/…/QUERY-BATCH.parquet` are samples as they come, a file a batch. Of an hour that is over, upkeep makes
`minutes/…` and `hours/…`: roll-ups, and the same samples in few files. These two are there once they have their
`_SUCCESS`, which is written last; `hours` then stands for the files in `raw`, which are taken away later.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

from segment_load.change_filter import RATES
from segment_load.hadoop_files import HadoopFiles

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
RAW, HOURS, MINUTES = "raw", "hours", "minutes"
STAGING = "_staging"
DONE = "_SUCCESS"

SAMPLE_SCHEMA = (
    "at timestamp, topic string, segment string, broker string, counts boolean, "
    + ", ".join(f"{rate} double" for rate in RATES)
    + ", backlog map<string, bigint>"
)
"""One row a segment and batch. Rates and backlog (messages, by subscription) are null unless `counts`."""
MINUTE_SCHEMA = (
    "minute timestamp, topic string, segment string, broker string, seen bigint, samples bigint, "
    + ", ".join(f"{rate}_avg double, {rate}_max double" for rate in RATES)
    + ", backlog_max bigint"
)
"""One row a segment and minute: how often it was seen and how often it counted, and of these the average and maximum of
each rate and the highest backlog of all subscriptions together; `broker` is the last one."""

_PLACE = re.compile(r"/date=(\d{4}-\d{2}-\d{2})/hour=(\d{2})(?:/|$)")


def date_of(at_ms: int) -> str:
    """The UTC date, as partitions have it."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d")


def date_start_ms(date: str) -> int | None:
    """When a date begins, milliseconds since 1970; None for what is no date."""
    try:
        return int(datetime.strptime(date, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()) * 1000
    except ValueError:
        return None


def hour_of(at_ms: int) -> int:
    """When the hour of a time begins, milliseconds since 1970."""
    return at_ms - at_ms % HOUR_MS


def place_of(kind: str, hour_ms: int) -> str:
    """The folder of one hour."""
    hour = datetime.fromtimestamp(hour_ms / 1000, UTC).strftime("%H")
    return f"{kind}/date={date_of(hour_ms)}/hour={hour}"


def hours_of(files: HadoopFiles, kind: str) -> set[int]:
    """Hours of which there is something; of all kinds but `RAW`, those that are done."""
    pattern = f"{kind}/date=*/hour=*" + ("" if kind == RAW else f"/{DONE}")
    found = (_PLACE.search(path) for path in files.matching(pattern))
    return {
        start_ms + int(match[2]) * HOUR_MS
        for match in found
        if match is not None and (start_ms := date_start_ms(match[1])) is not None
    }
