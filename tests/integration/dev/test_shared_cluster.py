"""The cluster other tests run on is as strict and as hostile as production."""

import base64
import json
import secrets
import ssl
import subprocess
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pulsar as pulsar_client
import pytest
import yaml

from dev import artifacts
from dev.access import KubernetesAccess, PulsarAccess
from dev.pulsar_admin import Answer, PulsarAdmin
from dev.tokens import issue


def unique(prefix: str) -> str:
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def eventually(condition: Callable[[], bool], timeout_seconds: float = 60) -> None:
    deadline = time.monotonic() + timeout_seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_seconds} s"
        time.sleep(0.5)


class Brokers:
    """Admin calls that reach whichever broker owns the topic."""

    def __init__(self, access: PulsarAccess, token: str | None) -> None:
        self._admins = [PulsarAdmin(url, token) for url in access.broker_admin_urls]
        self._urls = access.broker_admin_urls

    def ask(self, method: str, path: str, body: object = None) -> Answer:
        admin = self._admins[0]
        for _ in range(4):
            answer = admin.ask(method, path, body)
            if answer.location is None:
                return answer
            admin = next(a for a, url in zip(self._admins, self._urls, strict=True) if url in answer.location)
            path = answer.location.partition("/admin/v2/")[2]
        raise AssertionError(f"redirected in circles to {answer.location}")


def test_unprotected_idle_topic_is_deleted_and_one_with_a_subscription_is_not(pulsar: PulsarAccess) -> None:
    """R27: what segments have to survive really happens here, within seconds."""
    superuser = Brokers(pulsar, pulsar.superuser_token)
    idle, subscribed = (f"persistent/tests/default/{unique(name)}" for name in ("idle", "subscribed"))
    for topic in (idle, subscribed):
        assert superuser.ask("PUT", topic).status == 204
    assert superuser.ask("PUT", f"{subscribed}/subscription/s").status == 204
    eventually(lambda: superuser.ask("GET", f"{idle}/stats").status == 404)
    assert superuser.ask("GET", f"{subscribed}/stats").status == 200
    superuser.ask("DELETE", f"{subscribed}?force=true")


def test_unknown_topic_is_created_by_a_producer_that_names_it(pulsar: PulsarAccess) -> None:
    """R1, R19: auto-creation is on, so a deleted topic can be resurrected by a client."""
    topic = unique("typo")
    authentication = pulsar_client.AuthenticationToken(pulsar.client_token)
    client = pulsar_client.Client(pulsar.service_url, authentication=authentication)
    try:
        client.create_producer(f"persistent://team/apps/{topic}").send(b"x")
        superuser = Brokers(pulsar, pulsar.superuser_token)
        assert superuser.ask("GET", f"persistent/team/apps/{topic}/partitions").json()["partitions"] == 0
    finally:
        client.close()


def test_namespace_admin_administers_its_tenant_and_nothing_else(pulsar: PulsarAccess) -> None:
    namespace_admin = Brokers(pulsar, pulsar.namespace_admin_token)
    topic = f"persistent/team/apps/{unique('mine')}"
    assert namespace_admin.ask("PUT", topic).status == 204
    assert namespace_admin.ask("DELETE", topic).status == 204
    tenant = {"adminRoles": [], "allowedClusters": ["local"]}
    assert namespace_admin.ask("PUT", f"tenants/{unique('stolen')}", tenant).status == 401
    assert namespace_admin.ask("PUT", f"persistent/public/default/{unique('foreign')}").status == 403


def test_client_produces_and_consumes_but_cannot_administer(pulsar: PulsarAccess) -> None:
    topic = f"persistent://team/apps/{unique('data')}"
    authentication = pulsar_client.AuthenticationToken(pulsar.client_token)
    client = pulsar_client.Client(pulsar.service_url, authentication=authentication)
    try:
        consumer = client.subscribe(topic, "s")
        client.create_producer(topic).send(b"payload")
        assert consumer.receive(timeout_millis=20_000).data() == b"payload"
    finally:
        client.close()
    administrator = Brokers(pulsar, pulsar.client_token)
    assert administrator.ask("PUT", f"persistent/team/apps/{unique('own')}").status == 403
    assert administrator.ask("GET", "namespaces/team").status in {401, 403}


def test_no_token_and_a_token_signed_by_another_key_are_refused(pulsar: PulsarAccess) -> None:
    forged = issue(secrets.token_bytes(32), "superuser")
    for token in (None, forged):
        assert PulsarAdmin(pulsar.admin_url, token).ask("GET", "clusters").status == 401


def test_credentials_are_readable_by_their_owner_only(kubernetes: KubernetesAccess, pulsar: PulsarAccess) -> None:
    files = [kubernetes.kubeconfig, pulsar.superuser_token_file, pulsar.client_token_file]
    files.append(pulsar.namespace_admin_token_file)
    assert [oct(file.stat().st_mode & 0o777) for file in files] == ["0o600"] * 4


def test_tokens_say_who_their_bearer_is_and_no_more(pulsar: PulsarAccess) -> None:
    claims = pulsar.client_token.split(".")[1]
    assert json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))) == {"sub": "client"}


def test_api_server_lets_the_administrator_in_and_nobody_else(kubernetes: KubernetesAccess, tmp_path: Path) -> None:
    config = yaml.safe_load(kubernetes.kubeconfig.read_text())
    user = config["users"][0]["user"]
    certificate, key = tmp_path / "certificate", tmp_path / "key"
    certificate.write_bytes(base64.b64decode(user["client-certificate-data"]))
    key.write_bytes(base64.b64decode(user["client-key-data"]))
    authority = base64.b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    anonymous = ssl.create_default_context(cadata=authority)
    administrator = ssl.create_default_context(cadata=authority)
    administrator.load_cert_chain(certificate, key)
    namespaces = f"{kubernetes.url}/api/v1/namespaces"
    with urlopen(namespaces, context=administrator, timeout=20) as response:
        names = {item["metadata"]["name"] for item in json.load(response)["items"]}
    assert "default" in names
    with pytest.raises(HTTPError) as caught:
        urlopen(namespaces, context=anonymous, timeout=20)
    assert caught.value.code == 403
    caught.value.close()


def test_namespace_deletion_is_carried_out(kubernetes: KubernetesAccess) -> None:
    """The controllers run: a deleted namespace takes its objects along and goes."""
    name = unique("short-lived")
    kubectl = [str(artifacts.kube_programs() / "kubectl"), "--kubeconfig", str(kubernetes.kubeconfig)]
    for arguments in (
        ["create", "namespace", name],
        ["create", "configmap", "inside", "--namespace", name],
        ["delete", "namespace", name, "--wait", "--timeout=50s"],
    ):
        subprocess.run([*kubectl, *arguments], check=True, capture_output=True, timeout=60)
    get = ["get", "namespace", name, "--ignore-not-found", "-o", "name"]
    assert subprocess.run([*kubectl, *get], check=True, capture_output=True, timeout=60).stdout == b""
