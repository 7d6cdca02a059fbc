"""Asynchronous client of the Pulsar admin API."""

from scalable_topics_operator.backends.admin.cluster_api import ClusterProbe
from scalable_topics_operator.backends.admin.credentials import (
    Basic,
    ClientCertificate,
    Credentials,
    CredentialSource,
    FixedCredentials,
    Token,
)
from scalable_topics_operator.backends.admin.http import AdminHttp, HttpSettings, Observe
from scalable_topics_operator.backends.admin.pulsar_admin import PulsarAdmin
from scalable_topics_operator.backends.admin.retry import RetryPolicy

__all__ = [
    "AdminHttp",
    "Basic",
    "ClientCertificate",
    "ClusterProbe",
    "CredentialSource",
    "Credentials",
    "FixedCredentials",
    "HttpSettings",
    "Observe",
    "PulsarAdmin",
    "RetryPolicy",
    "Token",
]
