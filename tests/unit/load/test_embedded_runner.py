"""What the operator writes for the supervisor beside it, and what it makes of the answer (R34)."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

from scalable_topics_operator.backends.admin.credentials import Basic, ClientCertificate, Credentials, Token
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.pipeline_lease import HELD_SECONDS, LEASE_SECONDS
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.load.embedded_runner import EmbeddedRunner
from scalable_topics_operator.load.pipeline_job import PipelineJob, RunnerPhase
from scalable_topics_operator.load.supervised_job import END_SECONDS, UNTOUCHED_SECONDS

KEY = ObjectKey(CONNECTIONS.plural, "shop", "pulsar")
BODY: dict[str, Any] = {"metadata": {"namespace": "shop", "name": "pulsar", "uid": "u-1"}}
JOB = PipelineJob("shop", "pulsar", "u-1", "http://b:8080", "pulsar://b:6650", "persistent://a/b/c", 10, 5)
TOKEN = Credentials(Token("secret"))


def tell(folder: Path, phase: str) -> None:
    (folder / "u-1" / "state.json").write_text(json.dumps({"phase": phase, "reason": "Reason", "message": "why"}))


async def test_files_say_what_to_run_and_secrets_are_in_files_of_their_own(tmp_path: Path) -> None:
    runner = EmbeddedRunner(str(tmp_path))
    state = await runner.keep(BODY, JOB, TOKEN, b"{}")
    assert state.phase is RunnerPhase.STARTING
    folder = tmp_path / "u-1"
    arguments = json.loads((folder / "job.json").read_text())["arguments"]
    assert arguments[0] == "stream"
    assert f"--token-file={folder / 'token'}" in arguments
    assert f"--thresholds-file={folder / 'thresholds.json'}" in arguments
    assert not any("secret" in one or "--ca-file" in one for one in arguments)
    assert (folder / "token").read_text() == "secret"
    assert stat.S_IMODE((folder / "token").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_files_follow_what_changes_and_the_job_is_touched_each_time(tmp_path: Path) -> None:
    runner = EmbeddedRunner(str(tmp_path))
    await runner.keep(BODY, JOB, TOKEN, b"{}")
    job, thresholds = tmp_path / "u-1" / "job.json", tmp_path / "u-1" / "thresholds.json"
    os.utime(job, ns=(1, 1))
    os.utime(thresholds, ns=(1, 1))
    certificate = ClientCertificate(b"chain", b"key")
    await runner.keep(BODY, JOB, Credentials(None, certificate, b"ca"), b"{}")
    assert job.stat().st_mtime_ns > 1
    assert thresholds.stat().st_mtime_ns == 1, "written only if it differs"
    assert not (tmp_path / "u-1" / "token").exists()
    assert (tmp_path / "u-1" / "tls.key").read_bytes() == b"key"
    arguments = json.loads(job.read_text())["arguments"]
    assert f"--ca-file={tmp_path / 'u-1' / 'ca.crt'}" in arguments


async def test_the_state_is_what_the_supervisor_says(tmp_path: Path) -> None:
    runner = EmbeddedRunner(str(tmp_path))
    await runner.keep(BODY, JOB, TOKEN, b"{}")
    tell(tmp_path, "Running")
    assert (await runner.keep(BODY, JOB, TOKEN, b"{}")).phase is RunnerPhase.RUNNING
    tell(tmp_path, "Failed")
    state = await runner.keep(BODY, JOB, TOKEN, b"{}")
    assert (state.phase, state.reason, state.message) == (RunnerPhase.FAILED, "Reason", "why")


async def test_release_waits_for_the_end_of_what_runs(tmp_path: Path) -> None:
    runner = EmbeddedRunner(str(tmp_path))
    await runner.keep(BODY, JOB, TOKEN, b"{}")
    tell(tmp_path, "Running")
    (tmp_path / "u-1" / "state.json").unlink()
    assert await runner.release(KEY)
    assert not (tmp_path / "u-1" / "job.json").exists()
    assert await runner.release(KEY), "there is nothing to release any more"


async def test_where_there_is_no_supervisor_or_no_way_to_prove_oneself_it_says_so(tmp_path: Path) -> None:
    state = await EmbeddedRunner("").keep(BODY, JOB, TOKEN, b"{}")
    assert (state.phase, state.reason) == (RunnerPhase.FAILED, "NoEmbeddedRunner")
    state = await EmbeddedRunner(str(tmp_path)).keep(BODY, JOB, Credentials(Basic("a", "b")), b"{}")
    assert (state.phase, state.reason) == (RunnerPhase.FAILED, "PipelineAuthUnsupported")


def test_whoever_takes_the_lease_over_finds_nothing_at_work_any_more() -> None:
    """A holder goes on for a while, its last touch counts for a while, and its pipeline takes a while to end."""
    assert HELD_SECONDS + UNTOUCHED_SECONDS + END_SECONDS < LEASE_SECONDS
