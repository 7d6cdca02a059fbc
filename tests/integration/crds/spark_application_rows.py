"""Rules of a connection's spec.load.sparkApplication."""

from __future__ import annotations

from typing import Any

from tests.integration.crds import common_rows
from tests.integration.crds.rows import Table

_PATH = "spec.load.sparkApplication"
_LEAST = {"image": "segment-load", "serviceAccount": "spark", "folder": "s3a://bucket/load"}
_ON_CLAIM = {**_LEAST, "folder": "/load", "volumeClaim": "load"}
_MEMORY = r"^[1-9][0-9]*[kmgt]$"
_CPU = r"^[1-9][0-9]*m?$"
_FOLDER = r"^([a-z][a-z0-9+.-]*://[^\s]+|/[^\s]*)$"


def add_to(table: Table) -> None:
    """Add the rows."""
    _of_load(table)
    _of_the_application(table)
    _of_pods(table)
    _of_settings(table)
    _of_nodes(table)


def _of_load(table: Table) -> None:
    table.rule(
        "spec.load",
        "runner SparkApplication needs sparkApplication: at least image, serviceAccount and folder",
        [
            {},
            {"source": "Pipeline"},
            {"runner": "SparkApplication", "sparkApplication": _LEAST},
            {"runner": "Embedded", "sparkApplication": _LEAST},
        ],
        [{"runner": "SparkApplication"}, {"source": "Pipeline", "runner": "SparkApplication"}],
    )

    def kept(path: str, **application: Any) -> dict[str, Any]:
        return {"runner": "SparkApplication", "history": {"path": path}, "sparkApplication": application}

    table.rule(
        "spec.load",
        "with runner SparkApplication, history.path is an address such as s3a://bucket/history, or a path "
        "that starts with / on sparkApplication.volumeClaim",
        [
            kept("s3a://bucket/history", **_LEAST),
            kept("s3a://bucket/history", **_ON_CLAIM),
            kept("/history", **_ON_CLAIM),
            {"history": {"path": "/var/lib/history"}},
            {"history": {"path": "history"}},
        ],
        [kept("/history", **_LEAST), kept("history", **_LEAST), kept("history", **_ON_CLAIM)],
    )


def _of_the_application(table: Table) -> None:
    table.one_of(f"{_PATH}.apiVersion", "sparkoperator.k8s.io/v1beta2", "spark.apache.org/v1")
    table.required(f"{_PATH}.image", f"{_PATH}.serviceAccount", f"{_PATH}.folder")
    table.longest(f"{_PATH}.image", 512)
    table.pattern(f"{_PATH}.image", r"^\S+$", ["segment-load", "r.example.com:5000/a/b@sha256:0"], ["", "two words"])
    table.one_of(f"{_PATH}.imagePullPolicy", "Always", "IfNotPresent", "Never")
    table.most_entries(f"{_PATH}.imagePullSecrets", 8, "registry-{}".format)
    table.unique(f"{_PATH}.imagePullSecrets", ["a", "b", "a"])
    common_rows.object_name(table, f"{_PATH}.imagePullSecrets[]")
    common_rows.object_name(table, f"{_PATH}.serviceAccount")
    common_rows.object_name(table, f"{_PATH}.volumeClaim")
    table.longest(f"{_PATH}.folder", 1024, lambda size: "/".ljust(size, "a"))
    table.pattern(f"{_PATH}.folder", _FOLDER, ["/", "/load"], ["", "load", "s3a:bucket", "/two words", "s3a://"])
    table.rule(
        f"{_PATH}.folder",
        "must be seen by driver and executors alike, hold no .. and no credentials: "
        "an address such as s3a://bucket/load, or a path on volumeClaim such as /load",
        ["/load/a.b"],
        ["/load/../others", "/..", "file:///load", "s3a://key:secret@bucket/load", "abfss://c@a/load?sig=x"],
    )
    table.rule(
        _PATH,
        "a folder that starts with / is a path on the PersistentVolumeClaim that volumeClaim names; "
        "any other needs none",
        [
            _LEAST,
            _ON_CLAIM,
            {**_LEAST, "folder": "hdfs://name-node:8020/load"},
            {**_LEAST, "folder": "abfss://container@account.dfs.core.windows.net/load"},
        ],
        [{**_LEAST, "folder": "/load"}, {**_ON_CLAIM, "folder": "s3a://bucket/load"}],
    )
    table.between(f"{_PATH}.ttlSeconds", 60, 604800)


def _of_pods(table: Table) -> None:
    for pod in ("driver", "executor"):
        table.between(f"{_PATH}.{pod}.cores", 1, 64)
        table.longest(f"{_PATH}.{pod}.memory", 16, lambda size: "1" * (size - 1) + "m")
        table.pattern(
            f"{_PATH}.{pod}.memory", _MEMORY, ["1g", "512m", "4096k", "1t"], ["", "1", "1Gi", "1G", "0g", "1.5g"]
        )
        table.longest(f"{_PATH}.{pod}.cpuLimit", 16, "1".__mul__)
        table.pattern(f"{_PATH}.{pod}.cpuLimit", _CPU, ["1", "1500m"], ["", "0", "1.5", "m", "-1"])
    table.between(f"{_PATH}.executor.instances", 1, 256)
    path = f"{_PATH}.dynamicAllocation"
    table.at_least(f"{path}.minExecutors", 1)
    table.at_most(f"{path}.minExecutors", 256, accepted=[8])
    table.at_least(f"{path}.maxExecutors", 1, accepted=[2])
    table.at_most(f"{path}.maxExecutors", 256)
    table.rule(
        path,
        "minExecutors must not be greater than maxExecutors",
        [{}, {"minExecutors": 4}, {"minExecutors": 3, "maxExecutors": 3}],
        [{"minExecutors": 5}, {"minExecutors": 3, "maxExecutors": 2}],
    )


def _of_settings(table: Table) -> None:
    path = f"{_PATH}.sparkConf"
    table.most_keys(path, 64, "spark.x.{}".format)
    table.longest(f"{path}.*", 1024)
    table.rule(
        path,
        "names begin with spark. as in spark.ui.enabled",
        [{}, {"spark.executor.memoryOverhead": "1g", "spark.hadoop.fs.s3a.endpoint": "http://store:9000"}],
        [{"executor.memory": "1g"}, {"spark.a": "1", "sparkling": "2"}],
    )
    table.rule(
        path,
        "holds a setting that other fields of sparkApplication or the pipeline itself decide; "
        "more options for the driver's JVM go into spark.driver.defaultJavaOptions",
        [{"spark.driver.defaultJavaOptions": "-Da=b", "spark.dynamicAllocation.executorIdleTimeout": "60s"}],
        [{"spark.driver.extraJavaOptions": "-Da=b"}, {"spark.a": "1", "spark.kubernetes.container.image": "other"}],
    )
    table.rule(
        path,
        "must not hold credentials; put them into a Secret and name it in environmentSecretRef",
        [
            {"spark.hadoop.fs.s3a.aws.credentials.provider": "org.example.Provider"},
            {"spark.hadoop.fs.azure.account.keyprovider.store.dfs.core.windows.net": "org.example.KeyProvider"},
            {"spark.driver.defaultJavaOptions": "-Dtoken.file=/run/token -Dsas.provider=a.B -Dpasswords=3"},
        ],
        [
            {"spark.hadoop.fs.s3a.secret.key": "x"},
            {"spark.hadoop.fs.s3a.access.key": "x"},
            {"spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net": "x"},
            {"spark.hadoop.fs.azure.account.key": "x"},
            {"spark.sharedKey": "x"},
            {"spark.ssl.keyPassword": "x"},
            {"spark.sessionTOKEN": "x"},
            {"spark.hadoop.fs.azure.sas.container.store.blob.core.windows.net": "sv=2024&sr=c&sig=x"},
            {"spark.hadoop.fs.azure.sas": "x"},
            {"spark.a": "https://store/c?sv=2024&sig=x"},
            {"spark.a": "sig=x&sv=2024"},
            {"spark.jars.repositories": "https://user:pw@repository/maven"},
            {"spark.driver.defaultJavaOptions": "-Djavax.net.ssl.trustStorePassword=x"},
            {"spark.a": "DefaultEndpointsProtocol=https;AccountKey=x"},
            {"spark.a": "-----BEGIN PRIVATE KEY-----"},
        ],
    )
    table.required(f"{_PATH}.environmentSecretRef.name")
    common_rows.object_name(table, f"{_PATH}.environmentSecretRef.name")


def _of_nodes(table: Table) -> None:
    table.most_keys(f"{_PATH}.nodeSelector", 16)
    table.longest(f"{_PATH}.nodeSelector.*", 63)
    path = f"{_PATH}.tolerations"
    table.most_entries(path, 16, lambda index: {"key": f"taint-{index}"})
    table.longest(f"{path}[].key", 317)
    table.one_of(f"{path}[].operator", "Exists", "Equal")
    table.longest(f"{path}[].value", 63)
    table.one_of(f"{path}[].effect", "NoSchedule", "PreferNoSchedule", "NoExecute")
