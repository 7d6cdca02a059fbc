"""How a SparkApplication stands, by the status its operator writes (R34)."""

from __future__ import annotations

from typing import Any

import pytest

from scalable_topics_operator.load.pipeline_job import RunnerPhase
from scalable_topics_operator.load.spark_application import APACHE, KUBEFLOW
from scalable_topics_operator.load.spark_application_state import Seen, seen_state
from tests.support.crds import spark_crds


def kubeflow(state: str, error: str = "", pod: str = "load-main-driver") -> dict[str, Any]:
    told = {"state": state, **({"errorMessage": error} if error else {})}
    return {"applicationState": told, "driverInfo": {"podName": pod}}


def apache(state: str, message: str = "") -> dict[str, Any]:
    return {"currentState": {"currentStateSummary": state, "message": message}}


def seen(status: dict[str, Any] | None, age_seconds: float = 5.0, api_version: str = KUBEFLOW) -> Seen:
    application: dict[str, Any] = {
        "apiVersion": api_version,
        "metadata": {"namespace": "pulsar", "name": "load-main"},
    }
    return seen_state({**application, **({} if status is None else {"status": status})}, age_seconds)


@pytest.mark.parametrize(
    ("status", "phase", "reason", "ended"),
    [
        (kubeflow("SUBMITTED"), "Starting", "SparkApplicationSubmitted", False),
        (kubeflow("RUNNING"), "Running", "SparkApplicationRunning", False),
        (kubeflow("PENDING_RERUN"), "Starting", "SparkApplicationRestarting", False),
        (kubeflow("FAILING"), "Failed", "SparkApplicationFailed", False),
        (kubeflow("SUBMISSION_FAILED"), "Failed", "SparkSubmissionFailed", False),
        (kubeflow("FAILED"), "Failed", "SparkApplicationFailed", True),
        (kubeflow("COMPLETED"), "Failed", "SparkApplicationFailed", True),
        (kubeflow("SUSPENDED"), "Failed", "SparkApplicationSuspended", False),
        (kubeflow("UNKNOWN"), "Failed", "SparkApplicationUnknown", False),
        (apache("DriverRequested"), "Starting", "SparkApplicationSubmitted", False),
        (apache("RunningHealthy"), "Running", "SparkApplicationRunning", False),
        (apache("RunningWithBelowThresholdExecutors"), "Running", "SparkApplicationRunning", False),
        (apache("ScheduledToRestart"), "Starting", "SparkApplicationRestarting", False),
        (apache("SchedulingFailure"), "Failed", "SparkSubmissionFailed", False),
        (apache("DriverEvicted"), "Failed", "SparkApplicationFailed", False),
        (apache("ResourceReleased"), "Failed", "SparkApplicationFailed", True),
    ],
)
def test_each_state_is_told(status: dict[str, Any], phase: str, reason: str, ended: bool) -> None:
    found = seen(status)
    assert (found.state.phase, found.state.reason, found.ended) == (RunnerPhase(phase), reason, ended)
    assert "SparkApplication pulsar/load-main" in found.state.message


def test_every_state_that_the_apache_operator_may_write_is_known() -> None:
    (definition,) = [one for one in spark_crds() if one["spec"]["group"] == "spark.apache.org"]
    version = next(one for one in definition["spec"]["versions"] if one["name"] == "v1")
    status = version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
    for state in status["currentState"]["properties"]["currentStateSummary"]["enum"]:
        assert seen(apache(state), api_version=APACHE).state.reason != "SparkApplicationUnknown", state


def test_the_driver_and_the_line_that_tells_most_are_named() -> None:
    log = "failed to run spark-submit: 10:00 INFO begin\n\n10:01 ERROR pods is forbidden: no quota\n\tat org.apache.X"
    message = seen(kubeflow("SUBMISSION_FAILED", log)).state.message
    assert message.startswith("SparkApplication pulsar/load-main is SUBMISSION_FAILED, driver pod load-main-driver: ")
    assert message.endswith("10:01 ERROR pods is forbidden: no quota")
    assert len(seen(kubeflow("FAILING", "error " * 1000)).state.message) < 450


@pytest.mark.parametrize("status", [None, {}, kubeflow("", pod="")])
def test_one_that_nobody_looks_at_lacks_an_operator_after_a_minute(status: dict[str, Any] | None) -> None:
    """Hazard C56."""
    assert seen(status, 59.0).state.phase is RunnerPhase.STARTING
    found = seen(status, 61.0).state
    assert (found.phase, found.reason) == (RunnerPhase.FAILED, "SparkOperatorMissing")
    assert "watches namespace pulsar" in found.message
    assert KUBEFLOW in found.message


def test_a_suspended_one_says_how_to_go_on() -> None:
    assert "take that away" in seen(kubeflow("SUSPENDED")).state.message
