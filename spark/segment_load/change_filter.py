"""From what brokers say to what is news of each segment: whole batches against the last known values, in the JVM (R35).

The rules are those of `load.sampling` and `autoscale.load_record`, which direct sampling follows one segment at a time:
a segment counts from one whole period of its broker's statistics after it was first seen where it is; what is on a
broker that gives no answer is not known, and is neither idle nor gone; a record is written anew on a material change of
a rate, when one crosses a threshold, and when the segment turns cold. Tests hold both to the same answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scalable_topics_operator.autoscale.config import AutoScaleConfig
from scalable_topics_operator.autoscale.load import MATERIAL_CHANGE
from scalable_topics_operator.load.statistics import StatisticsTimes
from segment_load.frames import local_frame

RATES = ("msg_rate_in", "bytes_rate_in", "msg_rate_out", "bytes_rate_out")
STATE_SCHEMA = (
    "segment string, broker string, since_ms bigint, seen_ms bigint, absent_ms bigint, messages_in bigint, "
    "rates array<double>, backlog map<string, bigint>, changed_ms bigint, last_hot_ms bigint, hot boolean, "
    "merge array<double>, news boolean, gone boolean, present boolean, sampled array<double>, "
    "sampled_backlog map<string, bigint>"
)
"""What is known of a segment. `rates` are those last told, null while it does not count; `news` and `gone` say what the
batch that wrote this has to tell: a record, or that there is none any more. `present` is whether that batch saw it, and
`sampled` and `sampled_backlog` what it saw, null while it does not count: for the history."""
THRESHOLDS_SCHEMA = "topic string, split array<double>, merge array<double>"
"""Of each topic, in the order of `RATES`; topics that are not among them have the defaults."""

_DEFAULTS = AutoScaleConfig()
_CLASSIC = r"^persistent://(.+)-segment-[0-9a-f]{4}-[0-9a-f]{4}-[0-9]+$"
_NATIVE = r"^segment://(.+)/[0-9a-f]{4}-[0-9a-f]{4}-[0-9]+$"


@dataclass(frozen=True, slots=True)
class Look:
    """One batch.

    Args:
        at_ms: when it was planned, milliseconds since 1970.
        silent: brokers that gave no answer; an empty name where they could not even be listed.
        times: when brokers renew their statistics.
        interval_seconds: how far apart batches are meant to be.
    """

    at_ms: int
    silent: Sequence[str]
    times: StatisticsTimes
    interval_seconds: float


def segments_of(batch: DataFrame) -> DataFrame:
    """The rows of a batch that tell of segments, one a segment; one that two brokers tell of has `twice` set."""
    usable = reduce(Column.__and__, (F.col(rate).between(0, F.lit(1.7e308)) for rate in RATES))
    known = F.col("segment").rlike(_CLASSIC) | F.col("segment").rlike(_NATIVE)
    return (
        batch.where(known & usable)
        .groupBy("segment")
        .agg(
            F.min_by(
                F.struct("broker", F.array(*RATES).alias("rates"), "messages_in", "backlog"), F.col("broker")
            ).alias("one"),
            (F.min("broker") != F.max("broker")).alias("twice"),
        )
        .select("segment", "one.*", "twice")
    )


def topic_of(segment: Column) -> Column:
    """The canonical topic of a segment's full name."""
    classic, native = F.regexp_extract(segment, _CLASSIC, 1), F.regexp_extract(segment, _NATIVE, 1)
    return F.concat(F.lit("topic://"), F.when(classic != "", classic).otherwise(native))


def advance(segments: DataFrame, known: DataFrame, thresholds: DataFrame, look: Look) -> DataFrame:
    """What is known after a batch.

    Args:
        segments: `segments_of` the batch.
        known: what was known before, as `STATE_SCHEMA`.
        thresholds: of topics, as `THRESHOLDS_SCHEMA`.
        look: the batch.
    """
    period_ms = int(look.times.period_seconds * 1000)
    unseen_ms = int(look.times.unseen_seconds * 1000)
    most_gap_ms = int(look.times.most_gap_seconds(look.interval_seconds) * 1000)
    col = F.col
    # A column and no literal: Spark writes literals into the code it makes, which Java would compile for every batch.
    at, clock = col("at_ms"), local_frame(segments.sparkSession, [(look.at_ms,)], "at_ms bigint")
    split, merge = (F.array(*map(F.lit, rates.values)) for rates in (_DEFAULTS.split, _DEFAULTS.merge))
    # While any broker is silent, what the others do not have may be there, and will not be shown at once afterwards.
    hidden = F.lit(len(look.silent) > 0)
    joined = (
        segments.alias("now")
        .join(known.where("not gone").alias("was"), col("now.segment") == col("was.segment"), "full_outer")
        .crossJoin(F.broadcast(clock))
    )
    # Step by step, as each column is worked out once so, and not again for every one that is made of it.
    stays = joined.select(
        at,
        F.coalesce("now.segment", "was.segment").alias("segment"),
        col("now.segment").isNotNull().alias("present"),
        col("was.segment").isNull().alias("new"),
        (col("now.segment").isNull() & ~hidden).alias("absent"),
        F.coalesce(
            (col("was.broker") == col("now.broker"))
            & ~col("now.twice")
            & (col("now.messages_in") >= col("was.messages_in"))
            & (at - col("was.seen_ms")).between(0, most_gap_ms),
            F.lit(False),
        ).alias("goes_on"),
        F.coalesce("now.broker", "was.broker").alias("broker"),
        col("was.since_ms").alias("was_since_ms"),
        F.when(col("now.segment").isNotNull(), at).otherwise(col("was.seen_ms")).alias("seen_ms"),
        col("was.absent_ms").alias("was_absent_ms"),
        F.coalesce("now.messages_in", "was.messages_in").alias("messages_in"),
        *(col(f"{side}.{name}").alias(f"{side}_{name}") for side in ("now", "was") for name in ("rates", "backlog")),
        *(col(f"was.{name}").alias(f"was_{name}") for name in ("changed_ms", "last_hot_ms", "hot", "merge")),
    )
    bound = stays.join(F.broadcast(thresholds), topic_of(col("segment")) == col("topic"), "left").select(
        stays["*"],
        F.coalesce(thresholds["split"], split).alias("split"),
        F.coalesce(thresholds["merge"], merge).alias("merge"),
        F.when(~col("present") | col("goes_on"), col("was_since_ms")).otherwise(at).alias("since_ms"),
        F.when(col("absent"), F.least(F.coalesce("was_absent_ms", at), at)).alias("absent_ms"),
    )
    before, sampled = _parts(col("was_rates")), _parts(col("now_rates"))
    high, low = _parts(col("split")), _parts(col("merge"))
    judged = bound.select(
        "*",
        (col("present") & (at - col("since_ms") >= period_ms)).alias("counts"),
        # What was told is worth something only if it was told of the same stay, by the same thresholds.
        F.coalesce(
            col("goes_on") & col("was_rates").isNotNull() & (col("was_merge") == col("merge")), F.lit(False)
        ).alias("told"),
        _any(rate >= limit for rate, limit in zip(sampled, low, strict=True)).alias("hot"),
        (
            _any(
                ((old == 0) != (new == 0)) | (F.abs(new - old) > MATERIAL_CHANGE * old)
                for old, new in zip(before, sampled, strict=True)
            )
            | _any(
                ((old > above) != (new > above)) | ((old >= below) != (new >= below))
                for old, new, above, below in zip(before, sampled, high, low, strict=True)
            )
            | _backlog_moved(col("was_backlog"), col("now_backlog"))
        ).alias("moved"),
    )
    ended = judged.select(
        "*", (~col("told") | col("moved")).alias("renewed"), F.coalesce("was_hot", F.lit(False)).alias("was_so")
    )

    def counted(renewed: Column, kept: Column) -> Column:
        return F.when(col("counts"), F.when(col("renewed"), renewed).otherwise(kept))

    return ended.select(
        "segment",
        "broker",
        "since_ms",
        "seen_ms",
        "absent_ms",
        "messages_in",
        counted(col("now_rates"), col("was_rates")).alias("rates"),
        counted(col("now_backlog"), col("was_backlog")).alias("backlog"),
        counted(at, col("was_changed_ms")).alias("changed_ms"),
        F.when(col("counts"), F.when(col("hot") | ~col("told"), at).otherwise(col("was_last_hot_ms"))).alias(
            "last_hot_ms"
        ),
        F.when(col("counts"), col("hot")).alias("hot"),
        "merge",
        F.when(col("counts"), col("renewed") | (col("was_so") != col("hot")))
        .otherwise(col("new") | col("was_rates").isNotNull())
        .alias("news"),
        F.coalesce(col("absent") & (at - col("absent_ms") >= unseen_ms), F.lit(False)).alias("gone"),
        "present",
        F.when(col("counts"), col("now_rates")).alias("sampled"),
        F.when(col("counts"), col("now_backlog")).alias("sampled_backlog"),
    )


def _parts(rates: Column) -> list[Column]:
    return [rates[index] for index in range(len(RATES))]


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(Column.__or__, (F.coalesce(condition, F.lit(False)) for condition in conditions))


def _backlog_moved(before: Column, now: Column) -> Column:
    """Whether the backlog of any subscription changed materially."""
    empty = F.create_map().cast("map<string, bigint>")
    changes = F.map_zip_with(
        F.coalesce(before, empty),
        F.coalesce(now, empty),
        lambda _, old, new: (
            ((F.coalesce(old, F.lit(0)) == 0) != (F.coalesce(new, F.lit(0)) == 0))
            | (
                F.abs(F.coalesce(new, F.lit(0)) - F.coalesce(old, F.lit(0)))
                > MATERIAL_CHANGE * F.coalesce(old, F.lit(0))
            )
        ),
    )
    return F.exists(F.map_values(changes), lambda one: one)
