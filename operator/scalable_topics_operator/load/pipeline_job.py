"""What one pipeline is to do, and how it is told: the arguments of `segment_load stream` (R34, R35). Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass

ACCEPT_ANY_HOSTNAME = "--accept-any-hostname"


@dataclass(frozen=True, slots=True)
class PipelineJob:
    """The pipeline of one connection.

    Args:
        namespace: of the connection.
        name: of the connection.
        uid: of the connection.
        admin_url: of its brokers.
        service_url: of its brokers, for clients.
        records_topic: full name of the topic of records.
        interval_seconds: between two batches.
        timeout_seconds: bound of one call to a broker.
        history_path: where samples are kept for reports; empty for nowhere.
        history_retention_days: after how many days they go.
        verify_hostname: False accepts a broker's certificate of another name; the chain is still checked.
    """

    namespace: str
    name: str
    uid: str
    admin_url: str
    service_url: str
    records_topic: str
    interval_seconds: int
    timeout_seconds: int
    history_path: str = ""
    history_retention_days: int = 30
    verify_hostname: bool = True


@dataclass(frozen=True, slots=True)
class JobFiles:
    """Where the pipeline finds what it needs besides; an empty path where it needs none.

    Args:
        folder: for checkpoint and state, of any Hadoop file system.
        token_file: a superuser's token.
        ca_file: certificates that brokers are checked against.
        certificate_file: client certificate, PEM.
        key_file: its key, PEM.
        thresholds_file: thresholds of topics.
    """

    folder: str
    token_file: str = ""
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    thresholds_file: str = ""


class RunnerPhase(enum.Enum):
    """How a pipeline stands."""

    STARTING = "Starting"
    RUNNING = "Running"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class RunnerState:
    """How a pipeline stands and why.

    Args:
        phase: the short form.
        reason: a code, as conditions have it.
        message: for people; holds no secret.
    """

    phase: RunnerPhase
    reason: str
    message: str = ""


def auth_unsupported(used: str) -> RunnerState:
    """That a pipeline cannot prove itself as its connection does; `used` is the field of `spec.auth`."""
    return RunnerState(
        RunnerPhase.FAILED,
        "PipelineAuthUnsupported",
        f"the pipeline cannot prove itself with auth.{used}: give the connection auth.token or auth.mtls, or set "
        "spec.load.source to Direct",
    )


def stream_arguments(job: PipelineJob, files: JobFiles) -> tuple[str, ...]:
    """Arguments of `python -m segment_load`, without a Spark master."""
    named = {
        "--admin-url": job.admin_url,
        "--service-url": job.service_url,
        "--records-topic": job.records_topic,
        "--folder": files.folder,
        "--token-file": files.token_file,
        "--ca-file": files.ca_file,
        "--certificate-file": files.certificate_file,
        "--key-file": files.key_file,
        "--thresholds-file": files.thresholds_file,
        "--interval-seconds": str(job.interval_seconds),
        "--timeout-seconds": str(job.timeout_seconds),
        "--history-path": job.history_path,
        "--history-retention-days": str(job.history_retention_days) if job.history_path else "",
    }
    # In one word each, so that no value is taken for an option.
    arguments = ("stream", *(f"{name}={value}" for name, value in named.items() if value))
    return arguments if job.verify_hostname else (*arguments, ACCEPT_ANY_HOSTNAME)
