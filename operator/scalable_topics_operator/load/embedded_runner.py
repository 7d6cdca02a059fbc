"""Pipelines beside the operator: files that `python -m segment_load supervise` works by (R34)."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

from scalable_topics.layout.json_fields import MALFORMED
from scalable_topics_operator.backends.admin.credentials import Basic, Credentials, Token
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.cluster.resources import CONNECTIONS
from scalable_topics_operator.load.pipeline_job import (
    JobFiles,
    PipelineJob,
    RunnerPhase,
    RunnerState,
    auth_unsupported,
    stream_arguments,
)
from scalable_topics_operator.load.private_file import write_private
from scalable_topics_operator.load.supervised_job import (
    END_SECONDS,
    JOB_FILE,
    STATE_FILE,
    UNTOUCHED_SECONDS,
    decode_state,
    encode_job,
)

logger = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2


@dataclass(slots=True)
class _Supervised:
    """The supervisor's last answer.

    Args:
        stamp: modification time of its file; 0 while there is none.
        since_seconds: monotonic time since when it is that.
    """

    stamp: float
    since_seconds: float


class EmbeddedRunner:
    """Has pipelines run by a supervisor that shares a folder with this process.

    Args:
        folder: shared with the supervisor alone, as it holds secrets; empty where there is no supervisor.
    """

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._supervised: dict[str, _Supervised] = {}
        self._uids: dict[ObjectKey, str] = {}

    async def keep(
        self, connection: Body, job: PipelineJob, credentials: Credentials, thresholds: bytes
    ) -> RunnerState:
        """See `PipelineRunner.keep`. Raises OSError."""
        if not self._folder:
            return RunnerState(
                RunnerPhase.FAILED,
                "NoEmbeddedRunner",
                "this operator runs no pipelines itself: start it with --pipeline-folder, or set "
                "spec.load.runner to SparkApplication or spec.load.source to Direct",
            )
        if isinstance(credentials.authorization, Basic):
            return auth_unsupported("basic")
        metadata = connection["metadata"]
        self._uids[key_of(CONNECTIONS, connection)] = metadata["uid"]
        return await asyncio.to_thread(self._keep, job, credentials, thresholds)

    async def release(self, connection: ObjectKey) -> bool:
        """See `PipelineRunner.release`."""
        uid = self._uids.pop(connection, None)
        if uid is None or not self._folder:
            return True
        self._supervised.pop(uid, None)
        folder = Path(self._folder, uid)
        (folder / JOB_FILE).unlink(missing_ok=True)
        deadline = time.monotonic() + END_SECONDS
        while (folder / STATE_FILE).exists():
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_LOOK_SECONDS)
        return True

    async def remove(self, connection: ObjectKey) -> None:
        """See `PipelineRunner.remove`."""
        await self.release(connection)

    def _keep(self, job: PipelineJob, credentials: Credentials, thresholds: bytes) -> RunnerState:
        folder = Path(self._folder, job.uid)
        certificate = credentials.certificate
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        files = JobFiles(
            folder=str(folder / "work"),
            token_file=_kept(folder / "token", _token(credentials)),
            ca_file=_kept(folder / "ca.crt", credentials.trusted_ca_pem),
            certificate_file=_kept(folder / "tls.crt", certificate.chain_pem if certificate is not None else None),
            key_file=_kept(folder / "tls.key", certificate.key_pem if certificate is not None else None),
            thresholds_file=_kept(folder / "thresholds.json", thresholds),
        )
        _kept(folder / JOB_FILE, encode_job(stream_arguments(job, files)).encode())
        os.utime(folder / JOB_FILE)
        return self._state(folder, job.uid)

    def _state(self, folder: Path, uid: str) -> RunnerState:
        try:
            stamp = (folder / STATE_FILE).stat().st_mtime
            state = decode_state((folder / STATE_FILE).read_text(encoding="utf-8"))
        except (OSError, *MALFORMED):
            stamp = 0.0
            state = RunnerState(RunnerPhase.STARTING, "PipelineStarting", "")
        now = time.monotonic()
        known = self._supervised.get(uid)
        if known is None or known.stamp != stamp:
            known = self._supervised[uid] = _Supervised(stamp, now)
        if now - known.since_seconds > UNTOUCHED_SECONDS:
            return RunnerState(
                RunnerPhase.FAILED,
                "SupervisorMissing",
                "nothing runs the pipelines of this operator; is `python -m segment_load supervise` at work beside it?",
            )
        return state


def _token(credentials: Credentials) -> bytes | None:
    return credentials.authorization.value.encode() if isinstance(credentials.authorization, Token) else None


def _kept(file: Path, content: bytes | None) -> str:
    """Have a file say this, whole at any time; without content there is none, and its path is empty."""
    if content is None:
        file.unlink(missing_ok=True)
        return ""
    try:
        if file.read_bytes() == content:
            return str(file)
    except FileNotFoundError:
        pass
    draft = file.with_name(f".{file.name}")
    write_private(draft, content)
    draft.replace(file)
    return str(file)
