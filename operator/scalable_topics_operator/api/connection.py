"""ScalableTopicConnection: a Pulsar cluster and the right to use it (DESIGN §5, R3)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

from scalable_topics_operator.api.common import (
    AGE,
    ApiModel,
    Backend,
    Column,
    Conditions,
    CustomResource,
    Definition,
    NamespaceName,
    PulsarNamespace,
    SecretKey,
    SecretKeyRef,
    SecretRef,
    condition_column,
)
from scalable_topics_operator.api.schema_extra import LIST_SET, SchemaExtra, list_map, rule, rules
from scalable_topics_operator.api.spark_application import SparkApplicationSettings

_HOST = r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?"

# A default is checked before those below it are filled in.
_EMBEDDED = "!has(self.runner) || self.runner != 'SparkApplication'"

MOST_ORPHANS_SHOWN = 20

HttpUrl = Annotated[
    str,
    Field(max_length=1024),
    SchemaExtra(
        rules(
            rule(
                r"self.matches('^https?://[^/?#\\s]+(/[^?#\\s]*)?$')",
                "must be an address that starts with http:// or https://, for example https://host.example.com:8443",
            ),
            rule(
                "!self.contains('@')",
                "must not contain credentials; name a Secret that holds them",
            ),
        )
    ),
]
ServiceUrl = Annotated[
    str,
    Field(max_length=1024),
    SchemaExtra(
        rules(
            rule(
                r"self.matches('^pulsar([+]ssl)?://[^/?#\\s@]+/?$')",
                "must be an address that starts with pulsar:// or pulsar+ssl://, "
                "for example pulsar+ssl://pulsar.example.com:6651",
            )
        )
    ),
]
BrokerHost = Annotated[str, Field(max_length=261, pattern=f"^{_HOST}$")]
NamespacePattern = Annotated[str, Field(max_length=63, pattern=r"^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$")]
PulsarNamespacePattern = Annotated[str, Field(max_length=255, pattern=r"^[-=:.*?\w]+/[-=:.*?\w]+$")]
SpecialOperation = Literal["Adopt", "Migrate", "Delete"]


class TokenSecretRef(SecretKeyRef):
    """The key of a Secret that holds a token."""

    key: SecretKey = "token"
    """Key within the Secret."""


class CredentialsSecretRef(SecretKeyRef):
    """The key of a Secret that holds an OAuth 2.0 client's credentials."""

    key: SecretKey = "credentials.json"
    """Key within the Secret."""


class CaSecretRef(SecretKeyRef):
    """The key of a Secret that holds certificates in PEM form."""

    key: SecretKey = "ca.crt"
    """Key within the Secret."""


class TokenAuth(ApiModel):
    """A JSON Web Token."""

    secret_ref: TokenSecretRef
    """Where the token is; it is read again when the Secret changes."""


class BasicAuth(ApiModel):
    """User name and password."""

    secret_ref: SecretRef
    """Where both are."""
    username_key: SecretKey = "username"
    """Key of the user name."""
    password_key: SecretKey = "password"
    """Key of the password."""


class OAuth2Auth(ApiModel):
    """OAuth 2.0 client credentials."""

    issuer_url: HttpUrl
    """Address of the issuer."""
    audience: Annotated[str, Field(max_length=1024)] | None = None
    """Audience asked for."""
    scope: Annotated[str, Field(max_length=1024)] | None = None
    """Scopes asked for, separated by blanks."""
    credentials_secret_ref: CredentialsSecretRef
    """Where the client's credentials are: a JSON object with client_id and client_secret."""


class MutualTlsAuth(ApiModel):
    """A client certificate."""

    secret_ref: SecretRef
    """A Secret of type kubernetes.io/tls."""


class Auth(ApiModel):
    """How the operator proves who it is; nothing set means anonymous."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "[has(self.token), has(self.basic), has(self.oauth2), has(self.mtls)]"
                ".filter(present, present).size() <= 1",
                "at most one of token, basic, oauth2 and mtls can be set",
            )
        )
    )

    token: TokenAuth | None = None
    """A JSON Web Token."""
    basic: BasicAuth | None = None
    """User name and password."""
    oauth2: OAuth2Auth | None = None
    """OAuth 2.0 client credentials."""
    mtls: MutualTlsAuth | None = None
    """A client certificate."""


class Tls(ApiModel):
    """How the cluster's certificates are checked."""

    ca_secret_ref: CaSecretRef | None = None
    """Authorities to trust; those of the operator's image if left out."""
    verify_hostname: bool = True
    """Whether a certificate must name the host it comes from."""


class Limits(ApiModel):
    """How hard the operator may press on the admin API."""

    max_concurrent_requests: Annotated[int, Field(ge=1, le=256)] = 16
    """Requests in flight at a time."""
    request_timeout_seconds: Annotated[int, Field(ge=1, le=120)] = 10
    """How long one request may take."""
    max_retries: Annotated[int, Field(ge=0, le=10)] = 3
    """How often a repeatable request is sent again."""


class Allow(ApiModel):
    """Who may use the connection, and for what (R3). Left empty, only its own namespace may."""

    namespaces: Annotated[tuple[NamespacePattern, ...], Field(max_length=256), LIST_SET] = ()
    """Other Kubernetes namespaces whose topics may use it; * stands for any characters."""
    pulsar_namespaces: Annotated[tuple[PulsarNamespacePattern, ...], Field(max_length=256), LIST_SET] = ()
    """Pulsar namespaces it may be used for, such as public/* or acme/orders; empty means all."""
    operations: Annotated[tuple[SpecialOperation, ...], LIST_SET] = ()
    """What topics of those other namespaces may do besides the ordinary: take over a name that is not theirs,
    migrate existing topics, delete data."""


RecordsTopic = Annotated[str, Field(max_length=512, pattern=r"^persistent://[-=:.\w]+/[-=:.\w]+/[^/\s]+$")]


class LoadHistory(ApiModel):
    """Where raw load records are kept for reports and backtests."""

    path: Annotated[str, Field(min_length=1, max_length=1024)]
    """Folder or object store address."""
    retention_days: Annotated[int, Field(ge=1, le=3650)] = 30
    """Age in days at which records are dropped."""


class Load(ApiModel):
    """How the load of segments is measured (DESIGN §8, R34)."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                f"{_EMBEDDED} || has(self.sparkApplication)",
                "runner SparkApplication needs sparkApplication: at least image, serviceAccount and folder",
            ),
            rule(
                f"{_EMBEDDED} || !has(self.history) || self.history.path.contains('://') || "
                "(self.history.path.startsWith('/') && has(self.sparkApplication) && "
                "has(self.sparkApplication.volumeClaim))",
                "with runner SparkApplication, history.path is an address such as s3a://bucket/history, or a path "
                "that starts with / on sparkApplication.volumeClaim",
            ),
        )
    )

    source: Literal["Direct", "Pipeline"] = "Direct"
    """Direct: the operator asks the brokers. Pipeline: Spark does."""
    runner: Literal["Embedded", "SparkApplication"] = "Embedded"
    """Where the pipeline runs: beside the operator, or as a SparkApplication."""
    interval_seconds: Annotated[int, Field(ge=1, le=3600)] = 10
    """Time between two samples."""
    records_topic: RecordsTopic | None = None
    """Topic of the pipeline's records, persistent://tenant/namespace/topic; one of its own in scalable-topics/load if
    left out. Only the pipeline may write to it."""
    history: LoadHistory | None = None
    """Where raw records are kept; nowhere if left out."""
    spark_application: SparkApplicationSettings | None = None
    """The SparkApplication; needed by that runner."""


class PulsarNamespaceMapping(ApiModel):
    """Where the REST interface makes the objects for topics of a Pulsar namespace (R32)."""

    pulsar_namespace: PulsarNamespace
    """Pulsar tenant and namespace, such as acme/orders."""
    namespace: NamespaceName
    """Kubernetes namespace."""


class ScalableTopicConnectionSpec(ApiModel):
    """A Pulsar cluster, how to reach it and who may use it."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            rule(
                "!has(self.auth) || !has(self.auth.mtls) || self.adminUrl.startsWith('https://')",
                "auth.mtls needs an adminUrl that starts with https://",
            ),
            rule(
                "!has(self.superuserAuth) || !has(self.superuserAuth.mtls) || self.adminUrl.startsWith('https://')",
                "superuserAuth.mtls needs an adminUrl that starts with https://",
            ),
        )
    )

    admin_url: HttpUrl
    """Address of the admin API."""
    service_url: ServiceUrl | None = None
    """Address for clients; asked of the brokers if left out."""
    auth: Auth | None = None
    """How the operator proves who it is; anonymous if left out."""
    superuser_auth: Auth | None = None
    """How it proves that it is a superuser, for the calls that take one: the list of brokers and their statistics, and
    single segments on the Native backend. As `auth` if left out."""
    tls: Tls = Tls()
    """How the cluster's certificates are checked."""
    limits: Limits = Limits()
    """How hard the operator may press on the admin API."""
    trusted_brokers: Annotated[tuple[BrokerHost, ...], Field(max_length=256), LIST_SET] = ()
    """Hosts, or hosts with ports, that may be sent credentials on a redirect besides those the cluster
    lists."""
    backend: Literal["Auto", "Classic", "Native"] = "Auto"
    """Who owns the layout of new topics: the operator (Classic) or the brokers (Native)."""
    inactive_topic_protection: Literal["Topic", "Namespace"] = "Topic"
    """Level of the policy that keeps idle segments from being deleted by brokers (R27)."""
    probe_interval_seconds: Annotated[int, Field(ge=5, le=600)] = 30
    """Time between two looks at the cluster."""
    allow: Allow = Allow()
    """Who may use the connection, and for what."""
    load: Load = Load()
    """How the load of segments is measured."""
    pulsar_namespace_mappings: Annotated[
        tuple[PulsarNamespaceMapping, ...], Field(max_length=256), list_map("pulsarNamespace")
    ] = ()
    """Kubernetes namespaces in which the REST interface makes topics."""


class Rights(ApiModel):
    """What the connection's credentials may do."""

    superuser: bool = False
    """Whether they are a superuser's, as the brokers' list and statistics need."""
    missing: tuple[str, ...] = ()
    """Rights that are needed and lacking."""


class NamespacePolicy(ApiModel):
    """A Pulsar namespace whose auto-scale policy at the brokers is the operator's (Native)."""

    pulsar_namespace: str
    """Pulsar tenant and namespace."""
    problem: str | None = None
    """Why the brokers do not have it as policies here say."""


class OrphanedTopic(ApiModel):
    """A scalable topic on the brokers whose ScalableTopic is gone without having let go of it."""

    topic: str
    """Its name, `topic://tenant/namespace/name`."""
    segments: int
    """How many segments it has."""
    owner: str
    """Namespace and name of the ScalableTopic it belonged to."""


class ScalableTopicConnectionStatus(ApiModel):
    """What was found at the other end."""

    observed_generation: int | None = None
    """metadata.generation this status was found for."""
    conditions: Conditions = ()
    """Ready, Reconciling, Stalled, LoadFresh."""
    version: str | None = None
    """Version of the brokers."""
    cluster_name: str | None = None
    """Name of the Pulsar cluster."""
    cluster_id: str | None = None
    """What tells this Pulsar cluster from others, whatever connection leads to it (R1)."""
    backend: Backend | None = None
    """Who owns the layout of topics made now."""
    brokers: tuple[str, ...] = ()
    """Brokers the cluster lists."""
    rights: Rights | None = None
    """What the credentials may do."""
    namespace_policies: Annotated[tuple[NamespacePolicy, ...], list_map("pulsarNamespace")] = ()
    """Pulsar namespaces that policies of scope PulsarNamespace are stored with at brokers that own layouts."""
    orphans: Annotated[tuple[OrphanedTopic, ...], Field(max_length=MOST_ORPHANS_SHOWN), list_map("topic")] = ()
    """Topics of this operator that were left behind; the first of them by name."""


class ScalableTopicConnection(CustomResource):
    """A Pulsar cluster that holds scalable topics."""

    definition: ClassVar[Definition] = Definition(
        plural="scalabletopicconnections",
        short_name="stconn",
        columns=(
            condition_column("Ready", "Ready", "status"),
            Column("Backend", ".status.backend"),
            Column("Version", ".status.version"),
            Column("Cluster", ".status.clusterName", priority=1),
            Column("Admin URL", ".spec.adminUrl", priority=1),
            condition_column("Reason", "Ready", "reason", priority=1),
            AGE,
        ),
    )

    kind: Literal["ScalableTopicConnection"] = "ScalableTopicConnection"
    spec: ScalableTopicConnectionSpec
    status: ScalableTopicConnectionStatus = ScalableTopicConnectionStatus()
