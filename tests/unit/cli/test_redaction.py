"""What is taken out of a support bundle: secrets in every place where people put them, and nothing that is needed."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalable_topics_operator.cli.bundle import Bundle
from scalable_topics_operator.cli.redacted_text import LEFT_OUT, redacted_text
from scalable_topics_operator.cli.redaction import redacted

SECRET = "hunter2-0123456789abcdef"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJzdXBlcnVzZXIifQ.c2lnbmF0dXJl"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{SECRET}\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {SECRET}",
        f"authorization: pulsar {SECRET}",
        f'{{"headers": {{"Authorization": "Basic {SECRET}"}}}}',
        f"https://admin:{SECRET}@pulsar:8443/admin",
        f"pulsar+ssl://:{SECRET}@h",
        f"token={SECRET}&x=1",
        f"--api-key={SECRET}",
        f"clientSecret: {SECRET}",
        f"password = '{SECRET}'",
        f'{{"access_key": "{SECRET}"}}',
        f'{{"message": "{{\\"db_password\\": \\"{SECRET}\\"}}"}}',
        f"spark.hadoop.fs.s3a.secret.key={SECRET}",
        f"SESSION_COOKIE={SECRET}",
        f"key file:\n{PEM}",
        f"cut off: -----BEGIN PRIVATE KEY-----\n{SECRET}",
        f"Set-Cookie: a=b; c={SECRET}",
        f"password=abc,{SECRET}",
        f"password=abc;{SECRET} next",
        f"password=abc&{SECRET}",
        f"password=[abc{SECRET}",
        f'{{"message": "refused with password=abc,{SECRET}"}}',
        f'"password": "two {SECRET}"',
        f"password: 'it''s {SECRET}'",
        f'"password": "a \\"quoted\\" {SECRET}"',
        f'{{"message": "{{\\"db_password\\": \\"two {SECRET}\\"}}"}}',
        f"{{'password': b'two {SECRET}'}}",
        f'"password": "cut off {SECRET}',
        f'{{"passwords": ["a1", "{SECRET}"], "x": 1}}',
        f'{{"credentials": {{"user": "a", "pw": "{SECRET}"}}}}',
        f"connect --password {SECRET}",
        f"connect --password 'two {SECRET}'",
        f'run ["connect", "--password", "two {SECRET}"]',
        f"args:\n- --password\n- {SECRET}",
        f"pulsar+ssl://user:p@{SECRET}@host",
        f"https://user:p/{SECRET}@host/admin",
        f"https://alice@example.com:{SECRET}@host",
        f"https://{SECRET}@host/admin",
        f"https://store/x?sv=2024&sig={SECRET}&se=2026",
        f"https://store/x?X-Amz-Signature={SECRET}",
        f"spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net={SECRET}",
        f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={SECRET};EndpointSuffix=core.windows.net",
        f"SharedKey: {SECRET}",
        f"spark.hadoop.fs.azure.sas.container.store.blob.core.windows.net={SECRET}",
        f'"spark.hadoop.fs.azure.sas.c.s.blob.core.windows.net": "sv=2024&sr=c&sig={SECRET}"',
        f"sv=2024&sr=c&sig={SECRET}",
    ],
)
def test_credentials_in_texts_are_left_out(text: str) -> None:
    found = redacted_text(text)
    assert SECRET not in found
    assert LEFT_OUT in found
    assert redacted_text(found) == found, "a second look takes nothing more"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("token=abc,def and more", f"token={LEFT_OUT} and more"),
        ('{"message": "password=abc,def", "x": 1}', f'{{"message": "password={LEFT_OUT}", "x": 1}}'),
        ('{"token":123,"x":"y"}', f'{{"token":{LEFT_OUT},"x":"y"}}'),
        ('"password": "two words", "x": "y"', f'"password": "{LEFT_OUT}", "x": "y"'),
        ("https://user:p@ss@host:8443/a", f"https://{LEFT_OUT}@host:8443/a"),
        ("https://t0ken@host:8443/a", f"https://{LEFT_OUT}@host:8443/a"),
        ("GET /x?sig=a%2Fb&se=2026 answered 403", f"GET /x?sig={LEFT_OUT}&se=2026 answered 403"),
        ("by AKIAIOSFODNN7EXAMPLE, refused", f"by {LEFT_OUT}, refused"),
        ("connect --password two --verbose", f"connect --password {LEFT_OUT} --verbose"),
    ],
)
def test_what_stands_around_a_credential_stays(text: str, found: str) -> None:
    assert redacted_text(text) == found


def test_web_tokens_are_left_out_wherever_they_stand() -> None:
    assert redacted_text(f"broker said: 401 for {JWT}, again") == f"broker said: 401 for {LEFT_OUT}, again"


@pytest.mark.parametrize(
    "text",
    [
        "topic://public/default/orders split segment 0 into [1, 2] at 2026-01-01T00:00:00Z",
        "https://pulsar:8443/admin/v2 answered 503",
        "subscription billing has not drained it (12 entries left)",
        "secretName: pulsar-admin",
        "connectionRef:\n  name: pulsar\ndeletionPolicy: Retain",
        "switch automatic creation off in the Pulsar namespace, or use basic authentication",
        "the Pulsar namespace acme/shop is not allowed",
        "name: pulsar\n  deletionPolicy: Retain",
        "tokenExpirationSeconds: 600",
        'scalable_topics_operations_total{kind="Split",result="Succeeded"} 3.0',
        "imageID: docker-pullable://nginx@sha256:0123456789abcdef",
        "pulsar://a:6650,b:6650/me@home",
        "Key_Shared: 3 consumers of design-1",
        "spark.hadoop.fs.azure.account.keyprovider.store: org.example.KeyProvider",
        "connect --token-file /run/token --use-token --verbose",
        '"token": "", "password": \'\'',
        '"token": {\n  "secretRef": {"name": "pulsar-admin", "key": "token"}',
    ],
)
def test_what_explains_a_fault_stays(text: str) -> None:
    assert redacted_text(text) == text


def test_a_long_run_of_characters_takes_no_longer_than_it_is() -> None:
    colons = "://a:b" * 20_000
    for run in (
        "a" * 200_000,
        "token" * 40_000,
        "://" + "x" * 200_000,
        "eyJ" + "x" * 200_000,
        colons,
        "-pass" * 40_000,
    ):
        assert redacted_text(run) == run


def test_objects_keep_their_sense_and_lose_what_their_users_wrote() -> None:
    connection: dict[str, Any] = {
        "kind": "ScalableTopicConnection",
        "metadata": {
            "name": "pulsar",
            "managedFields": [{"manager": "kubectl"}],
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": json.dumps({"token": SECRET, "x": SECRET}),
                "scalabletopics.io/term": "3",
            },
        },
        "spec": {
            "adminUrl": "https://pulsar:8443",
            "auth": {"basic": {"secretRef": {"name": "pulsar-admin"}, "passwordKey": "password"}},
            "load": {"sparkApplication": {"sparkConf": {"fs.s3a.secret.key": SECRET, "spark.executor.cores": "2"}}},
        },
    }
    found = redacted(connection)
    assert found["metadata"] == {
        "name": "pulsar",
        "annotations": {
            "kubectl.kubernetes.io/last-applied-configuration": LEFT_OUT,
            "scalabletopics.io/term": "3",
        },
    }
    assert found["spec"]["auth"] == connection["spec"]["auth"], "names of Secrets and their keys are none"
    assert found["spec"]["load"]["sparkApplication"]["sparkConf"] == {
        "fs.s3a.secret.key": LEFT_OUT,
        "spark.executor.cores": "2",
    }
    topic = redacted({"spec": {"properties": {"team": SECRET}, "topic": "topic://a/b/c"}, "status": {"epoch": 3}})
    assert topic == {"spec": {"properties": {"team": LEFT_OUT}, "topic": "topic://a/b/c"}, "status": {"epoch": 3}}


def test_environments_of_pods_keep_names_and_where_values_come_from() -> None:
    container: dict[str, Any] = {
        "env": [
            {"name": "PLAIN", "value": SECRET},
            {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "args": ["--workers=8", f"--peer-token={SECRET}"],
    }
    found = redacted({"spec": {"containers": [container]}})["spec"]["containers"][0]
    assert found["env"] == [{"name": "PLAIN", "value": LEFT_OUT}, container["env"][1]]
    assert found["args"] == ["--workers=8", f"--peer-token={LEFT_OUT}"]


def test_arguments_lose_what_follows_a_secret_flag_and_nothing_else() -> None:
    arguments = [
        "--password",
        SECRET,
        "--use-token",
        "--token-file",
        "/run/token",
        f"--db-password=two {SECRET}",
        "run",
    ]
    found = redacted({"spec": {"template": {"spec": {"containers": [{"args": arguments}]}}}})
    assert found["spec"]["template"]["spec"]["containers"][0]["args"] == [
        *("--password", LEFT_OUT, "--use-token", "--token-file", "/run/token", f"--db-password={LEFT_OUT}", "run"),
    ]


def test_a_subscription_may_be_called_as_credentials_are() -> None:
    stats = {"subscriptions": {"token-reader": {"msgBacklog": 3}}}
    assert redacted(stats) == stats


def test_templates_of_pods_lose_their_annotations_too() -> None:
    metadata = {"annotations": {"vault/inject": SECRET}, "labels": {"app": "x"}, "managedFields": [{"manager": "x"}]}
    found = redacted({"spec": {"template": {"metadata": metadata}, "items": [{"metadata": metadata}]}})
    kept = {"annotations": {"vault/inject": LEFT_OUT}, "labels": {"app": "x"}}
    assert found == {"spec": {"template": {"metadata": kept}, "items": [{"metadata": kept}]}}


def test_all_beneath_a_secret_field_is_left_out_but_where_it_is_kept() -> None:
    pod = {
        "volumes": [
            {"secret": {"secretName": "tls", "defaultMode": 420, "items": [{"key": "ca.crt", "path": "ca"}]}},
            {"serviceAccountToken": {"audience": "pulsar", "expirationSeconds": 600, "path": "token"}},
        ],
        "imagePullSecrets": [{"name": "registry"}],
        "automountServiceAccountToken": False,
        "auth": {"token": {"secretRef": {"name": "pulsar-admin", "key": "token"}}},
        "load": {"sparkApplication": {"imagePullSecrets": ["registry"]}},
    }
    assert redacted({"spec": pod}) == {"spec": pod}
    found = redacted(
        {
            "passwords": [SECRET, {"key": SECRET}],
            "credentials": {"name": "db", "user": SECRET, "more": {"pin": 1234, "words": [SECRET]}},
            "sparkConf": {"spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net": SECRET},
        }
    )
    assert found == {
        "passwords": [LEFT_OUT, {"key": LEFT_OUT}],
        "credentials": {"name": "db", "user": LEFT_OUT, "more": {"pin": LEFT_OUT, "words": [LEFT_OUT]}},
        "sparkConf": {"spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net": LEFT_OUT},
    }


def test_a_bundle_is_its_users_alone_and_still_readable_yaml(tmp_path: Path) -> None:
    place = tmp_path / "report.tar.gz"
    body = {"spec": {"auth": {"token": {"secretRef": {"name": "x", "key": "token"}}}, "clientSecret": SECRET}}
    with Bundle(place, "report") as bundle:
        bundle.add("objects/one.yaml", yaml.safe_dump(redacted(body)))
        bundle.add("logs/a.log", f"Bearer {SECRET}\n")
        bundle.failed("metrics of a", f"refused\nwith password={SECRET}")
        bundle.add_errors()
    assert place.stat().st_mode & 0o777 == 0o600
    with tarfile.open(place) as tar:
        texts = {one.name: (tar.extractfile(one) or place.open("rb")).read().decode() for one in tar.getmembers()}
    assert list(texts) == ["report/objects/one.yaml", "report/logs/a.log", "report/errors.txt"]
    assert not [name for name, text in texts.items() if SECRET in text]
    assert yaml.safe_load(texts["report/objects/one.yaml"])["spec"]["auth"] == body["spec"]["auth"]
    assert texts["report/errors.txt"].startswith("metrics of a: refused with ")


def test_a_bundle_that_fails_leaves_nothing_and_writes_over_nothing(tmp_path: Path) -> None:
    place = tmp_path / "report.tar.gz"
    with pytest.raises(RuntimeError), Bundle(place, "report"):
        raise RuntimeError
    assert not place.exists()
    place.write_text("mine")
    with pytest.raises(FileExistsError):
        Bundle(place, "report")
    assert place.read_text() == "mine"
