"""How a SparkApplication stands, as its Spark operator wrote it into the status (R34). Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scalable_topics_operator.load.pipeline_job import RunnerPhase, RunnerState

UNNOTICED_SECONDS = 60.0

_LONGEST_GIST = 300
_STARTING, _RUNNING, _FAILED = RunnerPhase.STARTING, RunnerPhase.RUNNING, RunnerPhase.FAILED
_TELLING = re.compile(r"exception|error|denied|forbidden|exceeded|refused", re.IGNORECASE)

_BEGUN, _FAILS = "SparkApplicationSubmitted", "SparkApplicationFailed"
_AGAIN = "SparkApplicationRestarting"
_SUSPENDED = "SparkApplicationSuspended"
_RUNS = "SparkApplicationRunning"

_KUBEFLOW: Mapping[str, tuple[RunnerPhase, str]] = {
    "SUBMITTED": (_STARTING, _BEGUN),
    "RUNNING": (_RUNNING, _RUNS),
    "PENDING_RERUN": (_STARTING, _AGAIN),
    "INVALIDATING": (_STARTING, _AGAIN),
    "RESUMING": (_STARTING, _AGAIN),
    "SUBMISSION_FAILED": (_FAILED, "SparkSubmissionFailed"),
    "SUCCEEDING": (_FAILED, _FAILS),
    "COMPLETED": (_FAILED, _FAILS),
    "FAILING": (_FAILED, _FAILS),
    "FAILED": (_FAILED, _FAILS),
    "SUSPENDING": (_FAILED, _SUSPENDED),
    "SUSPENDED": (_FAILED, _SUSPENDED),
}
_APACHE: Mapping[str, tuple[RunnerPhase, str]] = {
    "Submitted": (_STARTING, _BEGUN),
    "DriverRequested": (_STARTING, _BEGUN),
    "DriverStarted": (_STARTING, _BEGUN),
    "DriverReady": (_STARTING, _BEGUN),
    "InitializedBelowThresholdExecutors": (_STARTING, _BEGUN),
    "ScheduledToRestart": (_STARTING, _AGAIN),
    "RunningHealthy": (_RUNNING, _RUNS),
    "RunningWithPartialCapacity": (_RUNNING, _RUNS),
    "RunningWithBelowThresholdExecutors": (_RUNNING, _RUNS),
    "SchedulingFailure": (_FAILED, "SparkSubmissionFailed"),
    "DriverStartTimedOut": (_FAILED, _FAILS),
    "DriverReadyTimedOut": (_FAILED, _FAILS),
    "ExecutorsStartTimedOut": (_FAILED, _FAILS),
    "DriverEvicted": (_FAILED, _FAILS),
    "Succeeded": (_FAILED, _FAILS),
    "Failed": (_FAILED, _FAILS),
    "ResourceReleased": (_FAILED, _FAILS),
    "TerminatedWithoutReleaseResources": (_FAILED, _FAILS),
}
_ENDED = frozenset({"COMPLETED", "FAILED", "ResourceReleased", "TerminatedWithoutReleaseResources"})


@dataclass(frozen=True, slots=True)
class Seen:
    """What a SparkApplication shows.

    Args:
        state: how the pipeline stands.
        ended: whether its Spark operator does nothing about it any more.
    """

    state: RunnerState
    ended: bool = False


def seen_state(application: Mapping[str, Any], age_seconds: float) -> Seen:
    """How a SparkApplication of either kind stands.

    Args:
        application: the object.
        age_seconds: since it was made.
    """
    word, driver, message = _told(application.get("status") or {})
    metadata = application["metadata"]
    where = f"{metadata['namespace']}/{metadata['name']}"
    if not word:
        return Seen(_unnoticed(application, where, age_seconds))
    phase, reason = {**_KUBEFLOW, **_APACHE}.get(word, (_FAILED, "SparkApplicationUnknown"))
    text = f"SparkApplication {where} is {word}"
    if driver:
        text += f", driver pod {driver}"
    if message:
        text += f": {_gist(message)}"
    elif reason == _SUSPENDED:
        text += ": somebody has set its spec.suspend; take that away to have it run"
    return Seen(RunnerState(phase, reason, text), word in _ENDED)


def _told(status: Mapping[str, Any]) -> tuple[str, str, str]:
    """The word for the state, the driver's pod and what is said about it."""
    if "applicationState" in status:
        told = status["applicationState"]
        driver = (status.get("driverInfo") or {}).get("podName", "")
        return told.get("state", ""), driver, told.get("errorMessage", "")
    told = status.get("currentState") or {}
    message = told.get("message") or (told.get("lastObservedDriverStatus") or {}).get("message") or ""
    return told.get("currentStateSummary", ""), "", message


def _unnoticed(application: Mapping[str, Any], where: str, age_seconds: float) -> RunnerState:
    if age_seconds <= UNNOTICED_SECONDS:
        return RunnerState(_STARTING, "SparkApplicationCreated", f"SparkApplication {where} waits for its operator")
    return RunnerState(
        _FAILED,
        "SparkOperatorMissing",
        f"no Spark operator has looked at SparkApplication {where} for {age_seconds:.0f} s: have one run that serves "
        f"{application['apiVersion']} and watches namespace {application['metadata']['namespace']}",
    )


def _gist(message: str) -> str:
    """The line of a log that tells most, shortened."""
    lines = [" ".join(line.split()) for line in message.splitlines() if line.strip()]
    line = next((line for line in lines if _TELLING.search(line)), lines[0] if lines else "")
    return line if len(line) <= _LONGEST_GIST else line[: _LONGEST_GIST - 1] + "…"
