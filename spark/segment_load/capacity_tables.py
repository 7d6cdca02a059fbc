"""What a history says of topics, namespaces and brokers: tables worked out in Spark, of which only results are fetched.

Everything is of minutes: a topic's rate in a minute is the sum of its segments' averages. `load` is what part of
its split threshold a segment has, by the rate that has most, which is how `decide()` compares segments; `need` is the
same of the whole topic, and so how many segments' worth of load it has.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from scalable_topics_operator.autoscale.config import AutoScaleConfig
from segment_load.change_filter import RATES
from segment_load.history_reading import with_ring

PERCENTS = (50, 95, 99)
_DEFAULTS = AutoScaleConfig()


def topic_minutes(minutes: DataFrame, thresholds: DataFrame) -> DataFrame:
    """One row a topic and minute, of the segments that took writes then.

    Args:
        minutes: `MINUTE_SCHEMA`.
        thresholds: `THRESHOLDS_SCHEMA`.
    """
    split, merge = (F.array(*map(F.lit, rates.values)) for rates in (_DEFAULTS.split, _DEFAULTS.merge))
    bound = (
        _not_replaced(with_ring(minutes))
        .join(F.broadcast(thresholds), "topic", "left")
        .withColumns({"split": F.coalesce("split", split), "merge": F.coalesce("merge", merge)})
    )
    averages = [F.col(f"{rate}_avg") for rate in RATES]
    is_cold = reduce(Column.__and__, (one < F.col("merge")[index] for index, one in enumerate(averages)))
    by_topic = (
        bound.withColumns({"load": _furthest(averages), "is_cold": is_cold})
        .groupBy("topic", "minute")
        .agg(
            F.count("*").alias("segments"),
            F.first("split").alias("split"),
            *(F.sum(f"{rate}_avg").alias(rate) for rate in RATES),
            *(F.max(f"{rate}_avg").alias(f"{rate}_busiest") for rate in RATES),
            F.sum("backlog_max").alias("backlog"),
            F.max("load").alias("load"),
            F.bool_and(F.col("is_cold") & (F.col("samples") > 0)).alias("is_cold"),
            F.sort_array(F.collect_list("load")).alias("loads"),
        )
    )
    return by_topic.select(
        "*",
        _furthest([F.col(rate) for rate in RATES]).alias("need"),
        _max_by_mean(F.col("loads")).alias("skew"),
        _gini(F.col("loads")).alias("gini"),
    ).drop("loads")


def namespace_minutes(topics: DataFrame) -> DataFrame:
    """One row a namespace and minute, from `topic_minutes`."""
    named = topics.withColumn("name", F.regexp_extract("topic", r"^topic://([^/]+/[^/]+)/", 1))
    return named.groupBy("name", "minute").agg(*(F.sum(rate).alias(rate) for rate in RATES), _sum_backlog(named))


def broker_minutes(minutes: DataFrame) -> DataFrame:
    """One row a broker and minute: all it serves, segments that only drain among it."""
    named = minutes.withColumnsRenamed({"broker": "name", "backlog_max": "backlog"})
    return named.groupBy("name", "minute").agg(
        *(F.sum(f"{rate}_avg").alias(rate) for rate in RATES), _sum_backlog(named)
    )


def summary(by_minute: DataFrame, name: str) -> DataFrame:
    """Percentiles and peaks of rates, one row a name."""
    return by_minute.groupBy(name).agg(*_spread())


def topic_summary(topics: DataFrame) -> DataFrame:
    """What there is to say of topics, one row each, from `topic_minutes`."""
    return topics.groupBy("topic").agg(
        F.count("*").alias("minutes"),
        *_spread(),
        F.percentile("segments", 0.5).alias("segments_p50"),
        F.max("segments").alias("segments_peak"),
        F.max_by("segments", "minute").alias("segments_last"),
        F.coalesce(F.avg((F.col("load") > 1).cast("double")), F.lit(0.0)).alias("hot_share"),
        F.avg(F.coalesce("is_cold", F.lit(False)).cast("double")).alias("cold_share"),
        F.percentile("load", 0.99).alias("load_p99"),
        F.max("load").alias("load_peak"),
        F.percentile("need", 0.05).alias("need_p05"),
        F.percentile("need", 0.99).alias("need_p99"),
        F.percentile("skew", 0.5).alias("skew"),
        F.percentile("gini", 0.5).alias("gini"),
        *(F.percentile(f"{rate}_busiest", 0.99).alias(f"{rate}_busiest_p99") for rate in RATES),
        F.first("split").alias("split"),
    )


def daily_shape(by_minute: DataFrame, name: str) -> DataFrame:
    """Average and 95th percentile of rates by hour of day, UTC; one row a name and hour."""
    return (
        by_minute.withColumn("hour", F.hour("minute"))
        .groupBy(name, "hour")
        .agg(
            *(F.avg(rate).alias(f"{rate}_avg") for rate in RATES),
            *(F.percentile(rate, 0.95).alias(f"{rate}_p95") for rate in RATES),
        )
        .orderBy(name, "hour")
    )


def timeline(topics: DataFrame, step_ms: int) -> DataFrame:
    """Topics over time, one row a topic and step, from `topic_minutes`.

    Args:
        topics: those that are wanted.
        step_ms: what one row stands for.
    """
    at_ms = F.unix_millis("minute")
    return (
        topics.withColumn("at_ms", at_ms - at_ms % step_ms)
        .groupBy("topic", "at_ms")
        .agg(
            F.max("segments").alias("segments"),
            *(F.avg(rate).alias(rate) for rate in RATES),
            F.max("load").alias("load"),
            F.max("backlog").alias("backlog"),
        )
        .orderBy("topic", "at_ms")
    )


def _not_replaced(minutes: DataFrame) -> DataFrame:
    """Without minutes of segments that a newer one had replaced: one of a higher id, seen where they are in that hour.

    Hour by hour, as a topic may be deleted and made anew, and its ids begin anew then.
    """
    hourly = minutes.withColumn("hour", F.date_trunc("hour", "minute"))
    keys = ("topic", "hour", "segment")
    seen = hourly.groupBy(*keys, "segment_id", "range_start", "range_end").agg(F.min("minute").alias("first"))
    old, new = seen.alias("old"), seen.alias("new")
    col = F.col
    replaced = (
        old.join(
            new,
            (col("old.topic") == col("new.topic"))
            & (col("old.hour") == col("new.hour"))
            & (col("old.segment_id") < col("new.segment_id"))
            & (col("old.range_start") <= col("new.range_end"))
            & (col("new.range_start") <= col("old.range_end")),
        )
        .groupBy(*(col(f"old.{key}").alias(key) for key in keys))
        .agg(F.min("new.first").alias("replaced"))
    )
    joined = hourly.join(replaced, list(keys), "left")
    return joined.where(col("replaced").isNull() | (col("minute") < col("replaced"))).drop("hour", "replaced")


def _spread() -> list[Column]:
    spread = []
    for rate in RATES:
        spread += [F.percentile(rate, percent / 100).alias(f"{rate}_p{percent}") for percent in PERCENTS]
        spread.append(F.max(rate).alias(f"{rate}_peak"))
    return [*spread, F.max("backlog").alias("backlog_peak")]


def _sum_backlog(frame: DataFrame) -> Column:
    return F.sum(frame["backlog"]).alias("backlog")


def _furthest(rates: list[Column]) -> Column:
    """The rate that has most, in parts of its split threshold; one of 0 is none."""
    return F.greatest(*(F.try_divide(rate, F.col("split")[index]) for index, rate in enumerate(rates)))


def _max_by_mean(loads: Column) -> Column:
    """The busiest segment's load in parts of the mean; null of fewer than two, or of none at all."""
    mean = _total(loads) / F.size(loads)
    return F.when((F.size(loads) >= 2) & (mean > 0), F.array_max(loads) / mean)


def _gini(loads: Column) -> Column:
    """The Gini coefficient of ascending loads: 0 where all are alike, towards 1 where one has all."""
    count, total = F.size(loads), _total(loads)
    ranked = F.transform(loads, lambda load, index: (2 * (index + 1) - count - 1) * load)
    return F.when((count >= 2) & (total > 0), _total(ranked) / (count * total))


def _total(numbers: Column) -> Column:
    return F.aggregate(numbers, F.lit(0.0), lambda total, one: total + one)
