"""What is taken out of a support bundle: secrets in every place where people put them, and nothing that is needed."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from scalable_topics_operator.cli.bundle import Bundle
from scalable_topics_operator.cli.redaction import LEFT_OUT, redacted, redacted_text

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
    ],
)
def test_credentials_in_texts_are_left_out(text: str) -> None:
    found = redacted_text(text)
    assert SECRET not in found
    assert LEFT_OUT in found
    assert redacted_text(found) == found, "a second look takes nothing more"


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
    ],
)
def test_what_explains_a_fault_stays(text: str) -> None:
    assert redacted_text(text) == text


def test_a_long_run_of_characters_takes_no_longer_than_it_is() -> None:
    for run in ("a" * 200_000, "token" * 40_000, "://" + "x" * 200_000, "eyJ" + "x" * 200_000):
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
