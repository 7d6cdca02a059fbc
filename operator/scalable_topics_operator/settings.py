"""The operator's own settings: flags with environment variables behind them."""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scalable_topics_operator.autoscale.policy import Level
from scalable_topics_operator.cluster.election import LeaseTimes
from scalable_topics_operator.cluster.peers import is_address
from scalable_topics_operator.controllers.coordinator import SessionTimes
from scalable_topics_operator.controllers.reconcile_times import ReconcileTimes
from scalable_topics_operator.operations.context import OperationSettings

AUTO_SCALE_FLAG = "auto-scale-enabled"


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
        per_segment_metrics: the rates of each segment besides.
        times: how often topics are looked at without an event.
        operations: times and bounds of operations.
        auto_scale_enabled: whether topics change by themselves where no policy says otherwise.
        auto_scale_interval_seconds: between two decisions on a topic, 5 or more.
        gateway_host: address at which the gateway listens.
        gateway_port: its port; 0 takes a free one.
        gateway_address: host and port at which other replicas reach it; where it listens, if empty.
        gateway_tls_cert: PEM file of its certificate; empty for plain HTTP.
        gateway_tls_key: PEM file of the certificate's key.
        gateway_writes: whether callers of the admin REST may write, as themselves.
        console: whether the gateway serves a page for people.
        sessions: how long ordered consumers are waited for.
        gateway_sessions: WebSocket sessions that one replica serves at most.
        gateway_sessions_per_caller: of them, those of one caller.
        pipeline_folder: shared with the supervisor of load pipelines beside this replica; empty for none.
        pipeline_command: of that supervisor, if it is to be a child of this process.
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
    per_segment_metrics: bool = False
    times: ReconcileTimes = field(default_factory=ReconcileTimes)
    operations: OperationSettings = field(default_factory=OperationSettings)
    auto_scale_enabled: bool = True
    auto_scale_interval_seconds: float = 60.0
    gateway_host: str = "127.0.0.1"
    gateway_port: int = 8081
    gateway_address: str = ""
    gateway_tls_cert: str = ""
    gateway_tls_key: str = ""
    gateway_writes: bool = True
    console: bool = True
    sessions: SessionTimes = field(default_factory=SessionTimes)
    gateway_sessions: int = 20_000
    gateway_sessions_per_caller: int = 1_000
    pipeline_folder: str = ""
    pipeline_command: str = ""

    @property
    def policy_defaults(self) -> Level | None:
        """The operator's own knobs, below all policies; None if they are the defaults anyway."""
        return None if self.auto_scale_enabled else Level(f"--{AUTO_SCALE_FLAG}", {"enabled": False})


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag of the operator's command.

    Args:
        name: without the dashes before it.
        default: as one would write it.
        parse: makes the value of a text; raises ValueError or argparse.ArgumentTypeError.
        meaning: for `--help` and the reference.
        broker: the brokers' setting that it mirrors (R37); empty where they have none.
    """

    name: str
    default: str
    parse: Callable[[str], Any]
    meaning: str
    broker: str = ""

    @property
    def variable(self) -> str:
        """The environment variable that may stand for it."""
        return "SCALABLE_TOPICS_" + self.name.upper().replace("-", "_")


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


def _sessions(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a number of sessions, 1 or more")
    return value


def _lease(text: str) -> float:
    value = float(text)
    if not 1 <= value <= 600:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and 600 seconds")
    return value


def _interval(text: str) -> float:
    value = float(text)
    if not (value >= 5 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds, 5 or more")
    return value


def _switch(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise argparse.ArgumentTypeError(f"{text} is neither true nor false")
    return text.lower() == "true"


def _address(text: str) -> str:
    if text and not is_address(text):
        raise argparse.ArgumentTypeError(f"{text} is not host:port")
    return text


FLAGS = (
    Flag("namespaces", "", str, "namespaces to watch, separated by commas; all if empty"),
    Flag("operator-namespace", "default", str, "where the installation's record and the Leases are kept"),
    Flag("shards", "4", _count, "parts the topics are divided into among replicas; the same in all of them"),
    Flag("lease-seconds", "15", _lease, "others take over what was not renewed for so long"),
    Flag("workers", "32", _count, "objects worked on at a time, connections apart"),
    Flag("relist-seconds", "300", _positive, "between two complete lists of the objects"),
    Flag("bind-host", "127.0.0.1", str, "address of the metrics and health page; several separated by commas"),
    Flag("bind-port", "8080", int, "its port; 0 takes a free one"),
    Flag("log-level", "INFO", str, "DEBUG, INFO, WARNING or ERROR"),
    Flag("log-format", "json", str, "json or plain"),
    Flag("per-topic-metrics", "true", _switch, "whether metrics carry topic names"),
    Flag("per-segment-metrics", "false", _switch, "whether metrics carry the rates of each segment, too"),
    Flag("drift-seconds", "300", _positive, "between two comparisons of a topic with its brokers"),
    Flag(
        "drift-per-second",
        "5",
        _positive,
        "topics that a replica compares with their brokers in a second at most; if it leads many, less often than "
        "--drift-seconds says",
    ),
    Flag("observe-seconds", "60", _positive, "between two looks at a layout that brokers own"),
    Flag("prune-seconds", "60", _positive, "between two looks for prunable segments"),
    Flag("settle-window-seconds", "600", _positive, "how long sealed segments stay for unknown sends"),
    Flag("force-delete-after-seconds", "300", _positive, "how long deletes of segments wait for clients"),
    Flag(
        AUTO_SCALE_FLAG,
        "true",
        _switch,
        "whether topics split, merge and rebucket by themselves where no policy says otherwise",
        "scalableTopicAutoScaleEnabled",
    ),
    Flag(
        "auto-scale-interval-seconds",
        "60",
        _interval,
        "between two decisions on a topic, 5 or more",
        "scalableTopicAutoScaleInterval",
    ),
    Flag("gateway-host", "127.0.0.1", str, "address at which the gateway listens; several separated by commas"),
    Flag("gateway-port", "8081", int, "its port; 0 takes a free one"),
    Flag("gateway-address", "", _address, "host:port at which other replicas reach it; where it listens, if empty"),
    Flag("gateway-tls-cert", "", str, "PEM file of its certificate, the same for all replicas; plain HTTP if empty"),
    Flag("gateway-tls-key", "", str, "PEM file of the certificate's key"),
    Flag("gateway-sessions", "20000", _sessions, "WebSocket sessions that one replica serves at most"),
    Flag("gateway-sessions-per-caller", "1000", _sessions, "of them, those of one caller"),
    Flag(
        "gateway-writes",
        "true",
        _switch,
        "whether callers of the admin REST may write; the operator impersonates them at the API server",
    ),
    Flag("console", "true", _switch, "whether the gateway serves a page for people, at /console/"),
    Flag(
        "consumer-session-grace-seconds",
        "60",
        _positive,
        "how long an ordered consumer without a session keeps its segments",
        "scalableTopicConsumerSessionGracePeriodSeconds",
    ),
    Flag(
        "handover-seconds",
        "30",
        _positive,
        "how long an ordered consumer may take to let go of a segment before it is disconnected",
    ),
    Flag(
        "migration-enabled",
        "true",
        _switch,
        "whether ordinary topics may be migrated; dry runs are answered all the same",
        "enableScalableTopicMigration",
    ),
    Flag(
        "pipeline-folder",
        "",
        str,
        "folder shared with `segment_load supervise`, which runs load pipelines beside this replica; none if empty",
    ),
    Flag(
        "pipeline-command",
        "",
        str,
        "command of that supervisor, started as a child of this process; empty where it runs elsewhere",
    ),
)
"""All flags, in the order people see them."""


def parse_settings(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> OperatorSettings:
    """Read flags; each may also be given as `SCALABLE_TOPICS_<FLAG>`. Exits with a message on bad ones."""
    parser = argparse.ArgumentParser(
        prog="scalable-topics-operator",
        description="Brings scalable topics to Apache Pulsar on Kubernetes.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    for flag in FLAGS:
        parser.add_argument(
            f"--{flag.name}", default=environment.get(flag.variable, flag.default), type=flag.parse, help=flag.meaning
        )
    options = parser.parse_args(arguments)
    if options.pipeline_command and not options.pipeline_folder:
        parser.error("--pipeline-command needs --pipeline-folder")
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
        per_topic_metrics=options.per_topic_metrics,
        per_segment_metrics=options.per_segment_metrics,
        times=ReconcileTimes(
            drift_seconds=options.drift_seconds,
            drift_per_second=options.drift_per_second,
            prune_seconds=options.prune_seconds,
            observe_seconds=options.observe_seconds,
        ),
        operations=OperationSettings(
            settle_window_seconds=options.settle_window_seconds,
            force_delete_after_seconds=options.force_delete_after_seconds,
            migration_enabled=options.migration_enabled,
        ),
        auto_scale_enabled=options.auto_scale_enabled,
        auto_scale_interval_seconds=options.auto_scale_interval_seconds,
        gateway_host=options.gateway_host,
        gateway_port=options.gateway_port,
        gateway_address=options.gateway_address,
        gateway_tls_cert=options.gateway_tls_cert,
        gateway_tls_key=options.gateway_tls_key,
        gateway_writes=options.gateway_writes,
        console=options.console,
        sessions=SessionTimes(options.consumer_session_grace_seconds, options.handover_seconds),
        gateway_sessions=options.gateway_sessions,
        gateway_sessions_per_caller=options.gateway_sessions_per_caller,
        pipeline_folder=options.pipeline_folder,
        pipeline_command=options.pipeline_command,
    )
