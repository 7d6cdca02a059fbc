"""Runs pipelines as SparkApplications, which a Spark operator of the cluster looks after (R34)."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from scalable_topics_operator.api.common import GROUP
from scalable_topics_operator.api.connection import ScalableTopicConnection, ScalableTopicConnectionSpec
from scalable_topics_operator.backends.admin.credentials import Credentials
from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeConflict, KubeForbidden, KubeInvalid, KubeNotFound
from scalable_topics_operator.cluster.merge_diff import merge_diff
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONFIG_MAPS, CONNECTIONS, SPARK_APPLICATIONS
from scalable_topics_operator.load.fitting_thresholds import fitting_thresholds
from scalable_topics_operator.load.pipeline_job import PipelineJob, RunnerPhase, RunnerState, auth_unsupported
from scalable_topics_operator.load.repeat_pauses import RepeatPauses
from scalable_topics_operator.load.spark_application import (
    MANAGER,
    MANAGER_LABEL,
    OWNER_KIND,
    application_name,
    metadata_patch,
    owned_metadata,
    render,
    thresholds_name,
    why_another,
)
from scalable_topics_operator.load.spark_application_state import Seen, seen_state
from scalable_topics_operator.load.spark_pods import THRESHOLDS_KEY

logger = logging.getLogger(__name__)

_RECHECK_SECONDS = 60.0
_GOING_SECONDS = 120.0


@dataclass(slots=True)
class _Memory:
    """What this process knows of one connection's pipeline besides what the API server has.

    Args:
        uid: of the connection.
        only_kind: `apiVersion` of the SparkApplication that is known to be the only one.
        published: digest of the thresholds last found in the ConfigMap.
        published_at: when that was.
        replacing: uid of the SparkApplication that was deleted to be made anew at once.
    """

    uid: str
    only_kind: str = ""
    published: str = ""
    published_at: float = 0.0
    replacing: str = ""
    pauses: RepeatPauses = field(default_factory=RepeatPauses)


class _Taken(Exception):
    """An object of the name is somebody else's; the message says which and what to do."""


class SparkApplicationRunner:
    """Keeps one SparkApplication a connection.

    Args:
        kube: the API server.
        clock: seconds since the epoch.
        recheck_seconds: how often the ConfigMap of thresholds is looked at while they stay the same.
    """

    def __init__(
        self, kube: KubeClient, *, clock: Callable[[], float] = time.time, recheck_seconds: float = _RECHECK_SECONDS
    ) -> None:
        self._kube = kube
        self._clock = clock
        self._recheck_seconds = recheck_seconds
        self._memories: dict[ObjectKey, _Memory] = {}

    async def keep(
        self, connection: Body, job: PipelineJob, credentials: Credentials, thresholds: bytes
    ) -> RunnerState:
        """Have the SparkApplication be there as described, and say how it stands; see PipelineRunner.

        Raises KubeUnavailable, and KubeError for what nobody but the API server can mend.
        """
        key = ObjectKey(CONNECTIONS.plural, job.namespace, job.name)
        spec = ScalableTopicConnection.model_validate(connection).spec
        refusal = _refusal(spec)
        if refusal is not None:
            # It would go on with what the connection does not say any more.
            await self.remove(key)
            return refusal
        memory = self._memories.get(key)
        if memory is None or memory.uid != job.uid:
            memory = self._memories[key] = _Memory(job.uid)
        fitting = fitting_thresholds(thresholds)
        try:
            await self._publish(memory, job, fitting.text)
            state = await self._keep(memory, spec, job)
        except _Taken as taken:
            return RunnerState(RunnerPhase.FAILED, "NameTaken", str(taken))
        except KubeForbidden as error:
            why = f"{error}; the rules that the operator needs are in docs/spark-application.md"
            return RunnerState(RunnerPhase.FAILED, "SparkApplicationForbidden", why)
        except KubeInvalid as error:
            return RunnerState(RunnerPhase.FAILED, "SparkApplicationRefused", str(error))
        except (KubeConflict, KubeNotFound) as error:
            return RunnerState(RunnerPhase.STARTING, "SparkApplicationChanging", f"looked at again soon: {error}")
        remarks = [text for text in (_without(state.message, credentials.secrets()), fitting.remark()) if text]
        return replace(state, message="; ".join(remarks))

    async def release(self, connection: ObjectKey) -> bool:
        """Let the next leader go on with it: forget what it may change meanwhile. It is nobody's own."""
        self._memories.pop(connection, None)
        return True

    async def remove(self, connection: ObjectKey) -> None:
        """Delete what was made for a connection, if it is ours. Raises KubeError."""
        self._memories.pop(connection, None)
        names = {resource: application_name(connection.name) for resource in SPARK_APPLICATIONS}
        for resource, name in {**names, CONFIG_MAPS: thresholds_name(connection.name)}.items():
            live = await self._find_ours(resource, connection.namespace, name)
            if live is not None and _is_made_for(live, connection.name):
                await self._kube.delete(resource, connection.namespace, name, uid=live["metadata"]["uid"])

    async def _keep(self, memory: _Memory, spec: ScalableTopicConnectionSpec, job: PipelineJob) -> RunnerState:
        settings = spec.load.spark_application
        assert settings is not None
        wanted = render(spec, settings, job)
        resource = next(one for one in SPARK_APPLICATIONS if one.api_version == settings.api_version)
        if memory.only_kind != settings.api_version:
            for other in SPARK_APPLICATIONS:
                going = None if other == resource else await self._end_other(other, job)
                if going is not None:
                    return going
            memory.only_kind = settings.api_version
        live = await self._find(resource, job.namespace, wanted["metadata"]["name"])
        if live is None:
            return await self._make(memory, resource, wanted)
        _ensure_owned(live, job)
        if live["metadata"].get("deletionTimestamp"):
            return self._going(live)
        why = why_another(live, wanted)
        seen = seen_state(live, self._clock() - _seconds(live["metadata"]["creationTimestamp"]))
        if why or seen.ended:
            return await self._replace(memory, resource, live, seen, why)
        patch = metadata_patch(live, wanted)
        if patch:
            patch["resourceVersion"] = live["metadata"]["resourceVersion"]
            await self._kube.merge_patch(resource, job.namespace, live["metadata"]["name"], {"metadata": patch})
        return seen.state

    async def _make(self, memory: _Memory, resource: Resource, wanted: Body) -> RunnerState:
        namespace, name = wanted["metadata"]["namespace"], wanted["metadata"]["name"]
        now = self._clock()
        wait_seconds = 0.0 if memory.replacing else memory.pauses.left_seconds(now)
        if wait_seconds:
            why = f"SparkApplication {namespace}/{name} was deleted again and again; made anew in {wait_seconds:.0f} s"
            return RunnerState(RunnerPhase.FAILED, "SparkApplicationDeleted", why)
        try:
            await self._kube.create(resource, namespace, wanted)
        except KubeNotFound as error:
            return RunnerState(
                RunnerPhase.FAILED,
                "SparkOperatorMissing",
                f"the cluster has no SparkApplication of {resource.api_version} ({error.message}): install that Spark "
                "operator with its CRDs, or set spec.load.runner to Embedded",
            )
        if not memory.replacing:
            memory.pauses.made(now)
        memory.replacing = ""
        logger.info("made SparkApplication %s/%s", namespace, name)
        return RunnerState(
            RunnerPhase.STARTING,
            "SparkApplicationCreated",
            f"SparkApplication {namespace}/{name} waits for its operator",
        )

    async def _replace(self, memory: _Memory, resource: Resource, live: Body, seen: Seen, why: str) -> RunnerState:
        """Delete one that cannot be mended in place: its Spark operator may miss a change of it, or heeds none."""
        metadata = live["metadata"]
        now = self._clock()
        wait_seconds = memory.pauses.left_seconds(now)
        if wait_seconds:
            text = f"{seen.state.message}; made anew in {wait_seconds:.0f} s" + (f", as {why}" if why else "")
            return replace(seen.state, message=text)
        memory.pauses.made(now)
        memory.replacing = metadata["uid"]
        # What it owns, its driver, goes before its successor is made: the two would share a checkpoint.
        await self._kube.delete(
            resource, metadata["namespace"], metadata["name"], uid=metadata["uid"], propagation="Foreground"
        )
        logger.info("replacing SparkApplication %s/%s: %s", metadata["namespace"], metadata["name"], why or "it ended")
        if why:
            text = f"SparkApplication {metadata['namespace']}/{metadata['name']} is made anew: {why}"
            return RunnerState(RunnerPhase.STARTING, "SparkApplicationReplacing", text)
        return replace(seen.state, message=f"{seen.state.message}; made anew now")

    async def _end_other(self, resource: Resource, job: PipelineJob) -> RunnerState | None:
        """End the connection's SparkApplication of another kind; answers how that stands, None if there is none."""
        live = await self._find_ours(resource, job.namespace, application_name(job.name))
        if live is None or not _is_owned(live, job):
            return None
        metadata = live["metadata"]
        if not metadata.get("deletionTimestamp"):
            await self._kube.delete(
                resource, job.namespace, metadata["name"], uid=metadata["uid"], propagation="Foreground"
            )
        return self._going(live)

    def _going(self, live: Body) -> RunnerState:
        metadata = live["metadata"]
        where = f"SparkApplication {metadata['namespace']}/{metadata['name']} of {live['apiVersion']}"
        since = metadata.get("deletionTimestamp")
        going_seconds = self._clock() - _seconds(since) if since else 0.0
        if going_seconds <= _GOING_SECONDS:
            text = f"{where} is being deleted with its driver, before the next one is made"
            return RunnerState(RunnerPhase.STARTING, "SparkApplicationReplacing", text)
        holders = ", ".join(metadata.get("finalizers") or ())
        text = (
            f"{where} has been deleted for {going_seconds:.0f} s and is still there; see to its finalizers ({holders})"
        )
        return RunnerState(RunnerPhase.FAILED, "SparkApplicationTerminating", text + " and to its driver pod")

    async def _publish(self, memory: _Memory, job: PipelineJob, text: str) -> None:
        """Have the ConfigMap hold the thresholds. Raises _Taken, KubeError."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        now = self._clock()
        if memory.published == digest and now - memory.published_at < self._recheck_seconds:
            return
        wanted: Body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": owned_metadata(job, thresholds_name(job.name)),
            "data": {THRESHOLDS_KEY: text},
        }
        name = wanted["metadata"]["name"]
        live = await self._find(CONFIG_MAPS, job.namespace, name)
        if live is None:
            await self._kube.create(CONFIG_MAPS, job.namespace, wanted)
        else:
            _ensure_owned(live, job)
            patch = merge_diff({"data": live.get("data") or {}}, {"data": wanted["data"]})
            metadata = metadata_patch(live, wanted)
            if patch or metadata:
                patch["metadata"] = {**metadata, "resourceVersion": live["metadata"]["resourceVersion"]}
                await self._kube.merge_patch(CONFIG_MAPS, job.namespace, name, patch)
        memory.published, memory.published_at = digest, now

    async def _find(self, resource: Resource, namespace: str, name: str) -> Body | None:
        try:
            return await self._kube.get(resource, namespace, name)
        except KubeNotFound:
            return None

    async def _find_ours(self, resource: Resource, namespace: str, name: str) -> Body | None:
        """The same for what is not needed now: where the operator may not even look, it has made nothing."""
        try:
            return await self._find(resource, namespace, name)
        except KubeForbidden:
            return None


def _refusal(spec: ScalableTopicConnectionSpec) -> RunnerState | None:
    """Why no pipeline can run for this spec."""
    if spec.load.spark_application is None:
        why = "spec.load.runner SparkApplication needs spec.load.sparkApplication: image, serviceAccount and folder"
        return RunnerState(RunnerPhase.FAILED, "SparkApplicationUndescribed", why)
    used = "basic" if spec.auth and spec.auth.basic else "oauth2" if spec.auth and spec.auth.oauth2 else ""
    if used:
        return auth_unsupported(used)
    return None


def _ensure_owned(live: Body, job: PipelineJob) -> None:
    """Raises _Taken for what does not belong to the connection, of which nothing is ever overwritten."""
    if not _is_owned(live, job):
        metadata = live["metadata"]
        raise _Taken(
            f"{live['kind']} {metadata['namespace']}/{metadata['name']} does not belong to this connection (its "
            "metadata.ownerReferences say so) and is left alone: delete it or give it another name"
        )


def _is_owned(live: Body, job: PipelineJob) -> bool:
    return _owner(live).get("uid") == job.uid


def _is_made_for(live: Body, connection: str) -> bool:
    """Whether an object was made for a connection of this name, which may be gone."""
    owner = _owner(live)
    return (
        owner.get("kind") == OWNER_KIND
        and owner.get("name") == connection
        and owner.get("apiVersion", "").startswith(f"{GROUP}/")
        and (live["metadata"].get("labels") or {}).get(MANAGER_LABEL) == MANAGER
    )


def _owner(live: Body) -> Mapping[str, Any]:
    references = live["metadata"].get("ownerReferences") or ()
    return next((reference for reference in references if reference.get("controller")), {})


def _seconds(timestamp: str) -> float:
    return datetime.fromisoformat(timestamp).timestamp()


def _without(message: str, secrets: tuple[str, ...]) -> str:
    """A message that came from elsewhere, without what must not be shown."""
    for secret in secrets:
        message = message.replace(secret, "…")
    return message
