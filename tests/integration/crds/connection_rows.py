"""Rules of ScalableTopicConnection."""

from __future__ import annotations

from typing import Any

from tests.integration.crds import common_rows, spark_application_rows
from tests.integration.crds.rows import Table

_TABLE = Table("ScalableTopicConnection")
_HOST = r"^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?)(:[0-9]{1,5})?$"
_URL = "must be an address that starts with http:// or https://, for example https://host.example.com:8443"
_CREDENTIALS = "must not contain credentials; name a Secret that holds them"
_SERVICE_URL = (
    "must be an address that starts with pulsar:// or pulsar+ssl://, for example pulsar+ssl://pulsar.example.com:6651"
)


def _http_url(path: str) -> None:
    _TABLE.longest(path, 1024, lambda size: "https://host/".ljust(size, "a"))
    _TABLE.rule(
        path,
        _URL,
        ["http://localhost:8080", "https://pulsar.example.com", "https://proxy/pulsar/admin/", "http://[::1]:8080"],
        ["", "pulsar.example.com:8080", "pulsar://host:6650", "https://", "http://host:80?x=1", "http://a b"],
    )
    _TABLE.rule(path, _CREDENTIALS, ["https://host:8443"], ["https://admin:secret@host:8443"])


_TABLE.required("spec", "spec.adminUrl")
_http_url("spec.adminUrl")
_TABLE.longest("spec.serviceUrl", 1024, lambda size: "pulsar://".ljust(size, "a"))
_TABLE.rule(
    "spec.serviceUrl",
    _SERVICE_URL,
    ["pulsar://localhost:6650", "pulsar+ssl://a:6651", "pulsar://a:6650,b:6650/"],
    ["", "http://host:8080", "localhost:6650", "pulsar://", "pulsar://host/path", "pulsar://user@host:6650"],
)

_ONE_KIND_OF_AUTH = "at most one of token, basic, oauth2 and mtls can be set"
_NAMED = {"secretRef": {"name": "credentials"}}
_OAUTH2 = {"issuerUrl": "https://issuer", "credentialsSecretRef": {"name": "client"}}
for _auth in ("auth", "superuserAuth"):
    _TABLE.rule(
        f"spec.{_auth}",
        _ONE_KIND_OF_AUTH,
        [{}, {"token": _NAMED}, {"basic": _NAMED}, {"oauth2": _OAUTH2}, {"mtls": _NAMED}],
        [
            {"token": _NAMED, "basic": _NAMED},
            {"basic": _NAMED, "oauth2": _OAUTH2},
            {"oauth2": _OAUTH2, "mtls": _NAMED},
            {"mtls": _NAMED, "token": _NAMED},
        ],
    )
    _TABLE.rule(
        "spec",
        f"{_auth}.mtls needs an adminUrl that starts with https://",
        [
            {"adminUrl": "https://host", _auth: {"mtls": _NAMED}},
            {"adminUrl": "http://host", _auth: {"token": _NAMED}},
            {"adminUrl": "http://host"},
        ],
        [{"adminUrl": "http://host", _auth: {"mtls": _NAMED}}],
    )
    for _reference in ("token.secretRef", "basic.secretRef", "mtls.secretRef"):
        _TABLE.required(f"spec.{_auth}.{_reference}", f"spec.{_auth}.{_reference}.name")
        common_rows.object_name(_TABLE, f"spec.{_auth}.{_reference}.name")
    for _key in ("token.secretRef.key", "basic.usernameKey", "basic.passwordKey"):
        common_rows.secret_key(_TABLE, f"spec.{_auth}.{_key}")
    _TABLE.required(f"spec.{_auth}.oauth2.issuerUrl", f"spec.{_auth}.oauth2.credentialsSecretRef")
    _TABLE.required(f"spec.{_auth}.oauth2.credentialsSecretRef.name")
    _http_url(f"spec.{_auth}.oauth2.issuerUrl")
    _TABLE.longest(f"spec.{_auth}.oauth2.audience", 1024)
    _TABLE.longest(f"spec.{_auth}.oauth2.scope", 1024)
    common_rows.object_name(_TABLE, f"spec.{_auth}.oauth2.credentialsSecretRef.name")
    common_rows.secret_key(_TABLE, f"spec.{_auth}.oauth2.credentialsSecretRef.key")
common_rows.secret_key(_TABLE, "spec.tls.caSecretRef.key")
_TABLE.required("spec.tls.caSecretRef.name")
common_rows.object_name(_TABLE, "spec.tls.caSecretRef.name")

_TABLE.between("spec.limits.maxConcurrentRequests", 1, 256)
_TABLE.between("spec.limits.requestTimeoutSeconds", 1, 120)
_TABLE.between("spec.limits.maxRetries", 0, 10)
_TABLE.most_entries("spec.trustedBrokers", 256, "broker-{}".format)
_TABLE.unique("spec.trustedBrokers", ["a", "b", "a"])
_TABLE.longest("spec.trustedBrokers[]", 261)
_TABLE.pattern(
    "spec.trustedBrokers[]",
    _HOST,
    ["broker", "broker-0.example.com:8443", "10.0.0.1:8080", "[2001:db8::1]", "[::1]:8443"],
    ["", "https://broker", "broker:", "broker:123456", "*.example.com", "user@broker", "broker/path"],
)
_TABLE.one_of("spec.backend", "Auto", "Classic", "Native")
_TABLE.one_of("spec.inactiveTopicProtection", "Topic", "Namespace")
_TABLE.between("spec.probeIntervalSeconds", 5, 600)

_TABLE.most_entries("spec.allow.namespaces", 256, "team-{}".format)
_TABLE.unique("spec.allow.namespaces", ["a", "b", "b"])
_TABLE.longest("spec.allow.namespaces[]", 63)
_TABLE.pattern(
    "spec.allow.namespaces[]", r"^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$", ["shop", "*", "eu-*"], ["", "Shop", "a.b", "-a"]
)
_TABLE.most_entries("spec.allow.pulsarNamespaces", 256, "acme/orders-{}".format)
_TABLE.unique("spec.allow.pulsarNamespaces", ["a/b", "a/*", "a/b"])
_TABLE.longest("spec.allow.pulsarNamespaces[]", 255, lambda size: "acme/" + "n" * (size - 5))
_TABLE.pattern(
    "spec.allow.pulsarNamespaces[]",
    r"^[-=:.*?\w]+/[-=:.*?\w]+$",
    ["acme/orders", "acme/*", "*/*", "team-?/x"],
    ["", "*", "acme", "a/b/c", "a/b c"],
)
_TABLE.unique("spec.allow.operations", ["Adopt", "Delete", "Adopt"])
_TABLE.one_of("spec.allow.operations[]", "Adopt", "Migrate", "Delete", accepted=["Adopt", "Delete"])

_TABLE.one_of("spec.load.source", "Direct", "Pipeline")
_TABLE.one_of("spec.load.runner", "Embedded", "SparkApplication")
_TABLE.between("spec.load.intervalSeconds", 1, 3600)
_TABLE.longest("spec.load.recordsTopic", 512, lambda size: "persistent://a/b/" + "c" * (size - 17))
_TABLE.pattern(
    "spec.load.recordsTopic",
    r"^persistent://[-=:.\w]+/[-=:.\w]+/[^/\s]+$",
    ["persistent://acme/load/records", "persistent://scalable-topics/load/shop.pulsar.0a1b2c3d"],
    [
        "",
        "acme/load/records",
        "non-persistent://acme/load/records",
        "persistent://acme/records",
        "persistent://a/b/c d",
    ],
)
_TABLE.required("spec.load.history.path")
_TABLE.not_empty("spec.load.history.path", "s3a://history")
_TABLE.longest("spec.load.history.path", 1024, lambda size: "s3a://history/".ljust(size, "a"))
_TABLE.between("spec.load.history.retentionDays", 1, 3650)

spark_application_rows.add_to(_TABLE)

_MAPPINGS = "spec.pulsarNamespaceMappings"


def _mapping(pulsar_namespace: str) -> dict[str, str]:
    return {"pulsarNamespace": pulsar_namespace, "namespace": "shop"}


_TABLE.most_entries(_MAPPINGS, 256, lambda index: _mapping(f"acme/orders-{index}"))
_TABLE.unique(_MAPPINGS, [_mapping("a/b"), _mapping("a/c"), _mapping("a/b")], "pulsarNamespace")
_TABLE.required(f"{_MAPPINGS}[].pulsarNamespace", f"{_MAPPINGS}[].namespace")
common_rows.pulsar_namespace(_TABLE, f"{_MAPPINGS}[].pulsarNamespace")
common_rows.namespace_name(_TABLE, f"{_MAPPINGS}[].namespace")

common_rows.conditions(_TABLE)
_TABLE.one_of("status.backend", "Classic", "Native")


def _orphan(name: str) -> dict[str, Any]:
    return {"topic": f"topic://acme/shop/{name}", "segments": 1, "owner": "shop/orders"}


_TABLE.most_entries("status.orphans", 20, lambda index: _orphan(f"left-{index}"))
_TABLE.unique("status.orphans", [_orphan("a"), _orphan("b"), _orphan("a")], "topic")
_TABLE.required(*(f"status.orphans[].{name}" for name in ("topic", "segments", "owner")))

_TABLE.required("status.namespacePolicies[].pulsarNamespace")
_TABLE.unique(
    "status.namespacePolicies",
    [{"pulsarNamespace": "a/b"}, {"pulsarNamespace": "a/c"}, {"pulsarNamespace": "a/b", "problem": "x"}],
    "pulsarNamespace",
)

ROWS = _TABLE.rows
