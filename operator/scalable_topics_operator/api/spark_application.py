"""How the load pipeline is run as a SparkApplication, as a connection's `spec.load.sparkApplication` says (R34)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from scalable_topics_operator.api.common import ApiModel, ObjectName, SecretRef
from scalable_topics_operator.api.schema_extra import LIST_ATOMIC, LIST_SET, SchemaExtra, rule, rules

OWN_SPARK_SETTINGS = (
    "spark.app.name",
    "spark.driver.cores",
    "spark.driver.extraJavaOptions",
    "spark.driver.memory",
    "spark.dynamicAllocation.enabled",
    "spark.dynamicAllocation.initialExecutors",
    "spark.dynamicAllocation.maxExecutors",
    "spark.dynamicAllocation.minExecutors",
    "spark.executor.cores",
    "spark.executor.instances",
    "spark.executor.memory",
    "spark.kubernetes.authenticate.driver.serviceAccountName",
    "spark.kubernetes.container.image",
    "spark.kubernetes.container.image.pullPolicy",
    "spark.kubernetes.container.image.pullSecrets",
    "spark.kubernetes.driver.limit.cores",
    "spark.kubernetes.driver.pod.name",
    "spark.kubernetes.driver.podTemplateFile",
    "spark.kubernetes.executor.limit.cores",
    "spark.kubernetes.executor.podTemplateFile",
    "spark.kubernetes.namespace",
    "spark.master",
    "spark.python.sql.dataFrameDebugging.enabled",
    "spark.sql.session.timeZone",
    "spark.submit.deployMode",
)
"""Settings that other fields or the pipeline itself decide."""

_MEMORY = r"^[1-9][0-9]*[kmgt]$"
_CPU = r"^[1-9][0-9]*m?$"
_FOLDER = r"^([a-z][a-z0-9+.-]*://[^\s]+|/[^\s]*)$"
_CREDENTIAL = "(?i)(secret|password|token|access[.]?key|(account|shared)[.]?key([.]|$)|(^|[.])sas([.]|$))"
# In a value: of a signed address, of an address with a password, of an option of the JVM, of a connection string.
_CREDENTIAL_WITHIN = (
    "(?i)((^|[?&;])sig=|://[^/@]*:[^/@]*@|(secret|password|passwd|token|(access|account|secret)[._-]?key)=|PRIVATE KEY)"
)
_SIGNED = "(?i)[?&](sig|[a-z-]*(token|secret|signature|password))="

ImageName = Annotated[str, Field(max_length=512, pattern=r"^\S+$")]
Memory = Annotated[str, Field(max_length=16, pattern=_MEMORY)]
CpuLimit = Annotated[str, Field(max_length=16, pattern=_CPU)]
SettingValue = Annotated[str, Field(max_length=1024)]
LabelText = Annotated[str, Field(max_length=63)]
ExecutorCount = Annotated[int, Field(ge=1, le=256)]
Folder = Annotated[
    str,
    Field(max_length=1024, pattern=_FOLDER),
    SchemaExtra(
        rules(
            rule(
                "!self.startsWith('file:') && !self.contains('/..') && !self.matches('://[^/@]*:[^/@]*@') && "
                f"!self.matches('{_SIGNED}')",
                "must be seen by driver and executors alike, hold no .. and no credentials: "
                "an address such as s3a://bucket/load, or a path on volumeClaim such as /load",
            )
        )
    ),
]
_SPARK_CONF = SchemaExtra(
    rules(
        rule("self.all(name, name.startsWith('spark.'))", "names begin with spark. as in spark.ui.enabled"),
        rule(
            f"self.all(name, !(name in {list(OWN_SPARK_SETTINGS)}))",
            "holds a setting that other fields of sparkApplication or the pipeline itself decide; "
            "more options for the driver's JVM go into spark.driver.defaultJavaOptions",
        ),
        rule(
            f"self.all(name, !name.matches('{_CREDENTIAL}') && !self[name].matches('{_CREDENTIAL_WITHIN}'))",
            "must not hold credentials; put them into a Secret and name it in environmentSecretRef",
        ),
    )
)


class SparkPod(ApiModel):
    """What a driver or an executor may use."""

    cores: Annotated[int, Field(ge=1, le=64)] = 1
    """Tasks at a time, and the CPUs asked for."""
    memory: Memory = "1g"
    """Heap of its JVM, such as 2g; Spark asks for two fifths more, for Python."""
    cpu_limit: CpuLimit | None = None
    """Most CPU it may use, such as 2 or 1500m; no limit if left out."""


class SparkExecutors(SparkPod):
    """What executors may use, and how many there are."""

    cores: Annotated[int, Field(ge=1, le=64)] = 2
    """Brokers asked at a time, and the CPUs asked for."""
    instances: ExecutorCount = 1
    """How many there are without dynamicAllocation."""


class SparkDynamicAllocation(ApiModel):
    """Executors that come and go with the work."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule("self.minExecutors <= self.maxExecutors", "minExecutors must not be greater than maxExecutors")
        )
    )

    enabled: bool = True
    """Whether they do."""
    min_executors: ExecutorCount = 1
    """Fewest."""
    max_executors: ExecutorCount = 4
    """Most."""


class SparkToleration(ApiModel):
    """A taint of nodes that does not matter, as in Kubernetes' core/v1."""

    key: Annotated[str, Field(max_length=317)] | None = None
    """Key of the taint; any if left out."""
    operator: Literal["Exists", "Equal"] | None = None
    """Whether the value counts."""
    value: LabelText | None = None
    """Value of the taint."""
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None
    """Effect of the taint; any if left out."""
    toleration_seconds: int | None = None
    """How long NoExecute is tolerated; for ever if left out."""


class SparkApplicationSettings(ApiModel):
    """The SparkApplication that a Spark operator of the cluster is to run."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "has(self.volumeClaim) == self.folder.startsWith('/')",
                "a folder that starts with / is a path on the PersistentVolumeClaim that volumeClaim names; "
                "any other needs none",
            )
        )
    )

    api_version: Literal["sparkoperator.k8s.io/v1beta2", "spark.apache.org/v1"] = "sparkoperator.k8s.io/v1beta2"
    """Whose SparkApplication: Kubeflow's Spark operator, or Apache Spark's."""
    image: ImageName
    """Image with Spark and the pipeline."""
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = "IfNotPresent"
    """When it is pulled."""
    image_pull_secrets: Annotated[tuple[ObjectName, ...], Field(max_length=8), LIST_SET] = ()
    """Secrets for its registry."""
    service_account: ObjectName
    """Service account of driver and executors; it may make pods, services and ConfigMaps here."""
    folder: Folder
    """For checkpoint and state: an address of a file system that Hadoop knows, or a path on volumeClaim."""
    volume_claim: ObjectName | None = None
    """A PersistentVolumeClaim that pods on several nodes can write to."""
    driver: SparkPod = SparkPod()
    """What the driver may use."""
    executor: SparkExecutors = SparkExecutors()
    """What executors may use."""
    dynamic_allocation: SparkDynamicAllocation | None = None
    """Executors that come and go with the work; a fixed number if left out."""
    spark_conf: Annotated[Mapping[str, SettingValue], Field(max_length=64), _SPARK_CONF] = {}
    """More of Spark's settings."""
    environment_secret_ref: SecretRef | None = None
    """A Secret whose keys are environment variables of driver and executors, such as AWS_ACCESS_KEY_ID."""
    node_selector: Annotated[Mapping[str, LabelText], Field(max_length=16)] = {}
    """Labels of the nodes for driver and executors."""
    tolerations: Annotated[tuple[SparkToleration, ...], Field(max_length=16), LIST_ATOMIC] = ()
    """Taints of nodes that do not matter."""
    ttl_seconds: Annotated[int, Field(ge=60, le=604800)] = 3600
    """How long one that has ended for good is kept while nobody makes it anew."""
