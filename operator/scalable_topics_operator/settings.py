"""The operator's own settings: flags with environment variables behind them."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scalable_topics_operator.cluster.election import LeaseTimes
from scalable_topics_operator.controllers.topic_reconciler import ReconcileTimes
from scalable_topics_operator.operations.context import OperationSettings


@dataclass(frozen=True, slots=True)
class OperatorSettings:
    """How one operator process runs.

    Args:
        namespaces: Kubernetes namespaces watched; empty for all.
        operator_namespace: where the installation's record and the Leases are kept.
        shards: into how many parts the topics are divided among replicas; the same in all of them (R4).
        lease: how long leadership lasts without renewal.
        workers: objects worked on at a time, and as many connections besides.
        relist_seconds: between two complete lists.
        bind_host: address of the metrics and health page.
        bind_port: its port; 0 takes a free one.
        log_level: of our own loggers.
        plain_logs: readable lines instead of JSON.
        per_topic_metrics: series that carry a topic's name.
        times: how often topics are looked at without an event.
        operations: times and bounds of operations.
    """

    namespaces: tuple[str, ...] = ()
    operator_namespace: str = "default"
    shards: int = 4
    lease: LeaseTimes = field(default_factory=LeaseTimes)
    workers: int = 32
    relist_seconds: float = 300.0
    bind_host: str = "127.0.0.1"
    bind_port: int = 8080
    log_level: str = "INFO"
    plain_logs: bool = False
    per_topic_metrics: bool = True
    times: ReconcileTimes = field(default_factory=ReconcileTimes)
    operations: OperationSettings = field(default_factory=OperationSettings)


def _positive(text: str) -> float:
    value = float(text)
    if not value >= 0:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds, 0 or more")
    return value


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 512:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 512")
    return value


def _lease(text: str) -> float:
    value = float(text)
    if not 1 <= value <= 600:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 600 seconds")
    return value


def parse_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> OperatorSettings:
    """Read flags; each may also be given as `SCALABLE_TOPICS_<FLAG>`. Exits with a message on bad ones."""

    def default(flag: str, fallback: str) -> str:
        return environment.get("SCALABLE_TOPICS_" + flag.upper().replace("-", "_"), fallback)

    parser = argparse.ArgumentParser(
        prog="scalable-topics-operator",
        description="Brings scalable topics to Apache Pulsar on Kubernetes.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )

    def option(flag: str, fallback: str, kind: type | object, help_text: str) -> None:
        parser.add_argument(f"--{flag}", default=default(flag, fallback), type=kind, help=help_text)  # type: ignore[arg-type]

    option("namespaces", "", str, "namespaces to watch, separated by commas; all if empty")
    option("operator-namespace", "default", str, "where the installation's record and the Leases are kept")
    option("shards", "4", _count, "parts the topics are divided into among replicas; the same in all of them")
    option("lease-seconds", "15", _lease, "others take over what was not renewed for so long")
    option("workers", "32", _count, "objects worked on at a time, connections apart")
    option("relist-seconds", "300", _positive, "between two complete lists of the objects")
    option("bind-host", "127.0.0.1", str, "address of the metrics and health page")
    option("bind-port", "8080", int, "its port; 0 takes a free one")
    option("log-level", "INFO", str, "DEBUG, INFO, WARNING or ERROR")
    option("log-format", "json", str, "json or plain")
    option("per-topic-metrics", "true", str, "whether metrics carry topic names")
    option("drift-seconds", "300", _positive, "between two comparisons of a topic with its brokers")
    option("prune-seconds", "60", _positive, "between two looks for prunable segments")
    option("settle-window-seconds", "600", _positive, "how long sealed segments stay for unknown sends")
    option("force-delete-after-seconds", "300", _positive, "how long deletes of segments wait for clients")
    options = parser.parse_args(arguments)
    return OperatorSettings(
        namespaces=tuple(name.strip() for name in options.namespaces.split(",") if name.strip()),
        operator_namespace=options.operator_namespace,
        shards=options.shards,
        lease=LeaseTimes(options.lease_seconds),
        workers=options.workers,
        relist_seconds=options.relist_seconds,
        bind_host=options.bind_host,
        bind_port=options.bind_port,
        log_level=options.log_level,
        plain_logs=options.log_format == "plain",
        per_topic_metrics=options.per_topic_metrics.lower() == "true",
        times=ReconcileTimes(drift_seconds=options.drift_seconds, prune_seconds=options.prune_seconds),
        operations=OperationSettings(
            settle_window_seconds=options.settle_window_seconds,
            force_delete_after_seconds=options.force_delete_after_seconds,
        ),
    )
