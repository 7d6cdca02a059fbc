"""The operator may do what it does and nothing else, by the API server's own word."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dev.access import KubernetesAccess, PulsarAccess
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.kube_errors import KubeForbidden
from scalable_topics_operator.cluster.kube_login import load_endpoint
from scalable_topics_operator.cluster.resources import FINALIZER, TOPICS
from scalable_topics_operator.cluster.reviews import AUDIENCE, SERVICE_ACCOUNTS, review_token
from tests.integration.chart.cluster import RIGHTS, account_of, apply, kubeconfig_for, may
from tests.integration.chart.conftest import make_namespace
from tests.integration.chart.rendering import Document, documents, of_kind, template, values_of
from tests.support import manifests
from tests.support.callers import token_for
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import RunningOperator
from tests.support.waiting import eventually
from tests.support.world_making import make_world, random_name

_KINDS = (
    "scalabletopicconnections",
    "scalabletopics",
    "segmentautoscalepolicies",
    "scalabletopicsubscriptions",
    "segmentoperations",
)
_G = "scalabletopics.io"
WATCHED = [
    *((verb, f"{kind}.{_G}") for kind in _KINDS for verb in ("get", "list", "watch")),
    *(("patch", f"{kind}/status.{_G}") for kind in _KINDS),
    ("patch", f"scalabletopics.{_G}"),
    ("delete", f"segmentoperations.{_G}"),
    *((verb, f"scalabletopicsubscriptions.{_G}") for verb in ("create", "delete")),
    ("get", "secrets"),
    ("create", "events"),
]
OWN = [
    ("create", "configmaps"),
    *((verb, "leases.coordination.k8s.io") for verb in ("get", "list", "create", "update", "delete")),
    ("create", "secrets"),
]
PIPELINES = [(verb, "leases.coordination.k8s.io") for verb in ("get", "create", "update")]
APPLICATIONS = [
    (verb, what)
    for what in ("sparkapplications.sparkoperator.k8s.io", "sparkapplications.spark.apache.org", "configmaps")
    for verb in ("get", "create", "patch", "delete")
]
IMPERSONATING = [
    *(("impersonate", what) for what in ("users", "groups", "serviceaccounts", "uids.authentication.k8s.io")),
]
CLUSTER = [
    ("create", "tokenreviews.authentication.k8s.io"),
    ("create", "subjectaccessreviews.authorization.k8s.io"),
]
NEVER = [
    *((verb, "secrets") for verb in ("list", "watch", "update", "patch", "delete")),
    *((verb, "pods") for verb in ("get", "list", "create", "delete")),
    *((verb, "pods/exec") for verb in ("create", "get")),
    *((verb, f"{kind}.{_G}") for kind in _KINDS for verb in ("update", "deletecollection")),
    *(("create", f"{kind}.{_G}") for kind in _KINDS if kind != "scalabletopicsubscriptions"),
    *(("patch", f"{kind}.{_G}") for kind in _KINDS if kind != "scalabletopics"),
    *(("delete", f"{kind}.{_G}") for kind in _KINDS if kind not in ("segmentoperations", "scalabletopicsubscriptions")),
    ("update", "configmaps"),
    ("list", "configmaps"),
    ("deletecollection", "leases.coordination.k8s.io"),
    ("list", "namespaces"),
    ("create", "serviceaccounts/token"),
    ("create", "deployments.apps"),
    ("impersonate", "userextras/scopes.authentication.k8s.io"),
    ("escalate", "clusterroles.rbac.authorization.k8s.io"),
    ("create", "rolebindings.rbac.authorization.k8s.io"),
    ("list", "customresourcedefinitions.apiextensions.k8s.io"),
    ("*", "*.*"),
]


@dataclass(frozen=True, slots=True)
class Installed:
    """Rights of a rendered operator.

    Args:
        user: who it is.
        own: its namespace.
        shop: one that it watches.
        other: one that it may not watch where it watches only some.
        documents: all that was rendered.
    """

    user: str
    own: str
    shop: str
    other: str
    documents: list[Document]


async def _install(access: KubernetesAccess, kube: KubeClient, own: str, *values: str) -> Installed:
    shop, other = random_name("chart-shop"), random_name("chart-other")
    for name in (shop, other):
        await make_namespace(kube, name)
    found = documents(template(*(value.replace("SHOP", shop) for value in values), namespace=own))
    apply(access, of_kind(found, *RIGHTS))
    return Installed(f"system:serviceaccount:{own}:{account_of(found)}", own, shop, other, found)


@pytest.fixture
async def everywhere(api_server: KubernetesAccess, kube: KubeClient, namespace: str) -> Installed:
    return await _install(api_server, kube, namespace, *values_of("default"))


@pytest.fixture
async def in_shop(api_server: KubernetesAccess, kube: KubeClient, namespace: str) -> Installed:
    return await _install(api_server, kube, namespace, "--set", "watchNamespaces={SHOP}")


async def _refused(kube: KubeClient, user: str, rights: list[tuple[str, str]], namespace: str) -> list[tuple[str, str]]:
    answers = await asyncio.gather(*(may(kube, user, verb, what, namespace) for verb, what in rights))
    return [right for right, answer in zip(rights, answers, strict=True) if not answer]


async def test_watching_everything(kube: KubeClient, everywhere: Installed) -> None:
    user = everywhere.user
    await eventually(lambda: may(kube, user, "create", CLUSTER[0][1]), what="rights are known")
    assert await _refused(kube, user, [*CLUSTER, *IMPERSONATING], "") == []
    for namespace in ("", everywhere.shop, everywhere.own):
        assert await _refused(kube, user, WATCHED, namespace) == []
        assert await _refused(kube, user, NEVER, namespace) == NEVER
    assert await _refused(kube, user, OWN, everywhere.own) == []
    for rights in (PIPELINES, APPLICATIONS, OWN):
        assert await _refused(kube, user, rights, everywhere.shop) == rights
    assert await may(kube, user, "get", "namespaces", name="kube-system")
    assert not await may(kube, user, "get", "namespaces", name="default")
    for resource, name in (("configmaps", "scalable-topics-installation"), ("secrets", "scalable-topics-peers")):
        assert await may(kube, user, "get", resource, everywhere.own, name)
    assert not await may(kube, user, "patch", "configmaps", everywhere.own, "another")


async def test_a_rest_that_only_reads_impersonates_nobody(
    api_server: KubernetesAccess, kube: KubeClient, namespace: str
) -> None:
    reading = await _install(api_server, kube, namespace, "--set", "gateway.writes.enabled=false")
    await eventually(lambda: may(kube, reading.user, "get", "secrets", reading.shop), what="rights are known")
    assert await _refused(kube, reading.user, IMPERSONATING, "") == IMPERSONATING
    assert "--gateway-writes=false" in _arguments(reading)


async def test_r32_the_operator_acts_as_a_service_account_and_as_nobody_of_another_kind(
    api_server: KubernetesAccess,
    kube: KubeClient,
    everywhere: Installed,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With all that the account's own token carries; what another authenticator adds needs `userExtras`."""
    reader = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader"}}
    await kube.create(SERVICE_ACCOUNTS, everywhere.shop, reader)
    token = await token_for(kube, everywhere.shop, "reader", AUDIENCE)
    caller = await review_token(kube, token)
    assert caller is not None
    assert caller.extra, "tokens of service accounts carry what was used to make them"
    account = everywhere.user.rpartition(":")[2]
    kubeconfig = kubeconfig_for(api_server, await token_for(kube, everywhere.own, account), tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    async with KubeClient(load_endpoint()) as operator:
        with pytest.raises(KubeForbidden, match=f'User "{caller.name}" cannot list resource'):
            await operator.acting_as(caller).list_all(TOPICS, everywhere.shop)
        stranger = replace(caller, extra={**caller.extra, "example.com/team": ["shop"]})
        with pytest.raises(KubeForbidden, match="cannot impersonate"):
            await operator.acting_as(stranger).list_all(TOPICS, everywhere.shop)


async def test_watching_some_namespaces(kube: KubeClient, in_shop: Installed) -> None:
    user = in_shop.user
    await eventually(lambda: may(kube, user, "get", "secrets", in_shop.shop), what="rights are known")
    assert await _refused(kube, user, WATCHED, in_shop.shop) == []
    assert await _refused(kube, user, CLUSTER, "") == []
    assert await _refused(kube, user, OWN, in_shop.own) == []
    for namespace in ("", in_shop.other):
        assert await _refused(kube, user, WATCHED, namespace) == WATCHED
    for namespace in ("", in_shop.other, in_shop.shop, in_shop.own):
        assert await _refused(kube, user, NEVER, namespace) == NEVER
    assert not await may(kube, user, "get", "secrets", in_shop.own, "another")


async def test_pipelines_need_more(api_server: KubernetesAccess, kube: KubeClient, namespace: str) -> None:
    spark = await _install(api_server, kube, namespace, *values_of("spark"), "--set", "watchNamespaces={SHOP}")
    await eventually(lambda: may(kube, spark.user, "get", "secrets", spark.shop), what="rights are known")
    assert await _refused(kube, spark.user, [*PIPELINES, *APPLICATIONS, *WATCHED], spark.shop) == []
    assert await _refused(kube, spark.user, APPLICATIONS, spark.other) == APPLICATIONS
    never = [right for right in NEVER if right not in APPLICATIONS]
    assert await _refused(kube, spark.user, never, spark.shop) == never


async def test_the_operator_works_with_them_and_the_hooks_do(
    api_server: KubernetesAccess,
    kube: KubeClient,
    pulsar: PulsarAccess,
    view: PulsarView,
    in_shop: Installed,
    tmp_path: Path,
) -> None:
    """The rendered arguments, as the rendered account, on a topic's whole life; what `helm test` and the hook ask."""
    account = in_shop.user.rpartition(":")[2]
    kubeconfig = kubeconfig_for(api_server, await token_for(kube, in_shop.own, account), tmp_path)
    operator = RunningOperator(kubeconfig, in_shop.shop, tmp_path / "log", (*_arguments(in_shop), "--lease-seconds=3"))
    await asyncio.to_thread(operator.start)
    try:
        world = await make_world(kube, view, pulsar, in_shop.shop)
        await world.apply(manifests.topic("orders", str(world.topic_name("orders")), deletionPolicy="Delete"))
        await world.until_ready("orders")
        assert FINALIZER in (await world.get(TOPICS, "orders"))["metadata"]["finalizers"]
        token = tmp_path / "token"
        token.write_text(await token_for(kube, in_shop.own, account, AUDIENCE))
        asks = (f"--metrics={operator.metrics_url}", f"--gateway={operator.gateway_url}", f"--token-file={token}")
        there = f"--namespaces={in_shop.shop}"
        works, warned, refused, forbidden = await asyncio.gather(
            _run(kubeconfig, "release_check", *asks, there),
            _run(kubeconfig, "uninstall_check", there),
            _run(kubeconfig, "uninstall_check", there, "--mode=Refuse"),
            _run(kubeconfig, "uninstall_check", "--mode=Refuse"),
        )
        assert works.returncode == 0, works.stdout + works.stderr
        assert f"1 ScalableTopic(s) in {in_shop.shop}" in works.stdout
        for check, code in ((warned, 0), (refused, 1)):
            assert (check.returncode, check.stderr) == (code, "")
            assert f"  namespace {in_shop.shop}, 1: orders" in check.stdout
        assert forbidden.returncode == 1
        assert "cannot be told: list scalabletopics: 403" in forbidden.stdout
        await world.delete(TOPICS, "orders")
        await world.until_gone(TOPICS, "orders")
        check = await _run(kubeconfig, "uninstall_check", there, "--mode=Refuse")
        assert (check.returncode, check.stdout) == (0, "Nothing is left that needs the operator.\n")
    finally:
        await asyncio.to_thread(operator.stop)
    assert "orbidden" not in operator.log_text()


def _arguments(installed: Installed) -> list[str]:
    """The operator's arguments as rendered, but for its address and its ports, which it shares with others here."""
    (deployment,) = of_kind(installed.documents, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    given = [argument.replace("$(POD_IP),", "") for argument in container["args"]]
    return [argument for argument in given if not argument.startswith(("--bind-port", "--gateway-port"))]


async def _run(kubeconfig: Path, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", f"scalable_topics_operator.{module}", *arguments]
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig)}
    return await asyncio.to_thread(
        subprocess.run, command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
