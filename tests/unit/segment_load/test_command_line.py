"""What the operator tells a pipeline is what the pipeline understands."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scalable_topics_operator.load.pipeline_job import JobFiles, PipelineJob, stream_arguments
from segment_load.__main__ import parse

_JOB = PipelineJob(
    *("ns", "pulsar", "uid", "https://b:8443", "pulsar+ssl://b:6651", "persistent://t/n/load", 10, 5),
    history_path="s3a://load/pulsar",
    history_retention_days=7,
    verify_hostname=False,
)
_FILES = JobFiles("/state", "/token", "/ca.pem", "/tls.crt", "/tls.key", "/thresholds.json")


def test_all_that_the_operator_says_is_understood() -> None:
    found = vars(parse(stream_arguments(_JOB, _FILES)))
    expected = {
        "admin_url": "https://b:8443",
        "service_url": "pulsar+ssl://b:6651",
        "records_topic": "persistent://t/n/load",
        "folder": "/state",
        "token_file": "/token",
        "ca_file": "/ca.pem",
        "certificate_file": "/tls.crt",
        "key_file": "/tls.key",
        "thresholds_file": "/thresholds.json",
        "interval_seconds": 10.0,
        "timeout_seconds": 5.0,
        "history_path": "s3a://load/pulsar",
        "history_retention_days": 7,
        "accept_any_hostname": True,
    }
    assert {name: found[name] for name in expected} == expected
    assert not parse(stream_arguments(replace(_JOB, verify_hostname=True), _FILES)).accept_any_hostname


def test_a_retention_of_no_days_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([*stream_arguments(_JOB, _FILES), "--history-retention-days", "0"])
    assert "must be 1 or more" in capsys.readouterr().err


def test_reports_take_times_and_topics_as_people_write_them(capsys: pytest.CaptureFixture[str]) -> None:
    shared = ["capacity-report", "--history-path", "/h", "--out", "/o"]
    options = parse([*shared, "--from", "2023-11-14", "--to", "2023-11-14T22:00", "--topic", "t/n/a"])
    assert (options.from_ms, options.to_ms) == (1_699_920_000_000, 1_699_999_200_000)
    assert options.topic == "topic://t/n/a"
    for wrong in (["--from", "soon"], ["--topic", "segment://t/n/a/0000-ffff-1"]):
        with pytest.raises(SystemExit):
            parse([*shared, *wrong])
    errors = capsys.readouterr().err
    assert "'soon' is no time such as 2026-11-28" in errors
    assert "is a segment of a scalable topic" in errors
