"""A connection whose pipeline is kept as a SparkApplication on a real API server; tests are its Spark operator."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from scalable_topics_operator.api.connection import ScalableTopicConnection
from scalable_topics_operator.backends.admin.credentials import Credentials, Token
from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeNotFound
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.cluster.resources import CONFIG_MAPS, CONNECTIONS, SPARK_APPLICATIONS
from scalable_topics_operator.load.pipeline_job import PipelineJob, RunnerState
from scalable_topics_operator.load.spark_application_runner import SparkApplicationRunner
from tests.support.waiting import eventually

TOKEN = "a-token-that-nobody-must-see"
APPLICATION, THRESHOLDS = "load-main", "load-main-thresholds"
# The garbage collector learns of a new kind every half minute.
GOING_SECONDS = 90.0


@dataclass(slots=True)
class Clock:
    """The time at which it was made, and what it was put forward by."""

    ahead_seconds: float = 0.0
    made_at: float = field(default_factory=time.time)

    def __call__(self) -> float:
        return self.made_at + self.ahead_seconds


@dataclass(slots=True)
class KeptApplication:
    """One connection and its SparkApplication.

    Args:
        kube: an administrator's client, strict about fields.
        connection: as the API server has it.
    """

    kube: KubeClient
    connection: Body
    thresholds: dict[str, Any] = field(default_factory=dict)
    clock: Clock = field(default_factory=Clock)
    runner: SparkApplicationRunner = field(init=False)

    def __post_init__(self) -> None:
        self.runner = self.new_runner()

    @classmethod
    async def make(cls, kube: KubeClient, namespace: str, application: dict[str, Any], **spec: Any) -> KeptApplication:
        """Create the connection, named `main`."""
        load = {"source": "Pipeline", "runner": "SparkApplication", "sparkApplication": application}
        body = {
            "apiVersion": CONNECTIONS.api_version,
            "kind": CONNECTIONS.kind,
            "metadata": {"name": "main"},
            "spec": {"adminUrl": "https://pulsar.example.com:8443", "load": load, **spec},
        }
        return cls(kube, await kube.create(CONNECTIONS, namespace, body))

    @property
    def namespace(self) -> str:
        """Where it is."""
        return str(self.connection["metadata"]["namespace"])

    @property
    def key(self) -> ObjectKey:
        """Of the connection."""
        return key_of(CONNECTIONS, self.connection)

    @property
    def resource(self) -> Resource:
        """The kind of SparkApplication that the connection asks for."""
        spec = ScalableTopicConnection.model_validate(self.connection).spec
        assert spec.load.spark_application is not None
        return next(one for one in SPARK_APPLICATIONS if one.api_version == spec.load.spark_application.api_version)

    def new_runner(self, kube: KubeClient | None = None, **options: Any) -> SparkApplicationRunner:
        """A runner that knows nothing yet, as of another replica."""
        return SparkApplicationRunner(kube or self.kube, clock=self.clock, **options)

    async def keep(self, runner: SparkApplicationRunner | None = None) -> RunnerState:
        """What the leader asks for every few seconds."""
        spec = ScalableTopicConnection.model_validate(self.connection).spec
        job = PipelineJob(
            namespace=self.namespace,
            name="main",
            uid=self.connection["metadata"]["uid"],
            admin_url=spec.admin_url,
            service_url="pulsar+ssl://pulsar.example.com:6651",
            records_topic="persistent://public/default/load",
            interval_seconds=spec.load.interval_seconds,
            timeout_seconds=5,
            history_path=spec.load.history.path if spec.load.history else "",
        )
        thresholds = json.dumps(self.thresholds).encode()
        return await (runner or self.runner).keep(self.connection, job, Credentials(Token(TOKEN)), thresholds)

    async def change(self, application: dict[str, Any] | None = None, **spec: Any) -> None:
        """Change the connection, as a person does."""
        patch = {**spec, **({"load": {"sparkApplication": application}} if application else {})}
        self.connection = await self.kube.merge_patch(CONNECTIONS, self.namespace, "main", {"spec": patch})

    async def application(self, resource: Resource | None = None) -> Body:
        """The SparkApplication. Raises KubeNotFound."""
        return await self.kube.get(resource or self.resource, self.namespace, APPLICATION)

    async def edit(self, patch: Body) -> Body:
        """Change the SparkApplication behind the runner's back."""
        return await self.kube.merge_patch(self.resource, self.namespace, APPLICATION, patch)

    async def config_map(self) -> Body:
        """The ConfigMap of thresholds. Raises KubeNotFound."""
        return await self.kube.get(CONFIG_MAPS, self.namespace, THRESHOLDS)

    async def tell(self, state: str, message: str = "") -> None:
        """Write a status as the Spark operator does."""
        if self.resource.group == "sparkoperator.k8s.io":
            told = {"state": state, "errorMessage": message}
            status: Body = {"applicationState": told, "driverInfo": {"podName": f"{APPLICATION}-driver"}}
        else:
            status = {"currentState": {"currentStateSummary": state, "message": message}}
        patch = {"status": status}
        await self.kube.merge_patch(self.resource, self.namespace, APPLICATION, patch, subresource="status")

    async def until_made_anew(self, uid: str) -> Body:
        """Keep it until it is another object than one was; answers that."""

        async def made() -> Body | None:
            await self.keep()
            try:
                found = await self.application()
            except KubeNotFound:
                return None
            return None if found["metadata"]["uid"] == uid else found

        found = await eventually(made, what=f"{self.resource.kind} is made anew", within_seconds=GOING_SECONDS)
        assert found is not None
        return found

    async def version(self) -> tuple[str, str]:
        """Resource versions of all that was made."""
        bodies = [await self.application(), await self.config_map()]
        first, second = (str(body["metadata"]["resourceVersion"]) for body in bodies)
        return first, second
