"""`stopics doctor`: is all of it well, and what to do about what is not."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version

from rich.console import Console

from scalable_topics_operator.cli import findings
from scalable_topics_operator.cli.api_server import PODS, ApiServer
from scalable_topics_operator.cli.faults import CliError, Refused
from scalable_topics_operator.cli.findings import Finding, Level
from scalable_topics_operator.cli.gateway_access import GatewayOptions, gateway, why
from scalable_topics_operator.cli.gateway_client import Gateway
from scalable_topics_operator.cli.kubernetes import api_server, ref_of
from scalable_topics_operator.cli.options import Output
from scalable_topics_operator.cli.printing import for_machines, people
from scalable_topics_operator.cli.progress import steps
from scalable_topics_operator.cli.tables import cells, table
from scalable_topics_operator.cluster.installation import CONFIG_MAP_NAME
from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.kube_errors import KubeError, KubeForbidden, KubeNotFound
from scalable_topics_operator.cluster.lease_record import LEASES
from scalable_topics_operator.cluster.object_key import connection_of, key_of
from scalable_topics_operator.cluster.resources import (
    CONFIG_MAPS,
    CONNECTIONS,
    POLICIES,
    SEGMENT_OPERATIONS,
    SUBSCRIPTIONS,
    TOPICS,
)
from scalable_topics_operator.cluster.reviews import SERVICE_ACCOUNTS

_KINDS = (CONNECTIONS, TOPICS, SUBSCRIPTIONS, SEGMENT_OPERATIONS, POLICIES)
_LEASE_LOOK_SECONDS = 1.0
_TOPICS_ASKED, _ASKED_AT_A_TIME = 20, 5
_STYLES = {Level.OK: "green", Level.WARN: "yellow", Level.FAIL: "bold red"}
_RIGHTS = (
    ("list", TOPICS, "", "get, watch"),
    ("create", SEGMENT_OPERATIONS, "", "split, merge, rebucket, migrate, drain"),
    ("list", SUBSCRIPTIONS, "", "describe, subscriptions"),
    ("list", CONNECTIONS, "", "doctor, report"),
)
_OPERATOR_RIGHTS = (
    ("list", LEASES, "", "finding the gateway"),
    ("get", PODS, "portforward", "reaching the gateway in a pod"),
    ("create", PODS, "portforward", "the same"),
    ("create", SERVICE_ACCOUNTS, "token", "a token for the gateway; or bring one"),
    ("get", PODS, "log", "report"),
)


@dataclass(slots=True)
class Patient:
    """What was seen of an installation.

    Args:
        namespace: of the operator; empty if it was not found.
        leases: in it.
        pods: in it, of the operator.
        objects: of our kinds, by plural; without the kinds that were not shown.
        found: what was found.
        installation: the operator's record of itself; None if it was not found.
    """

    namespace: str = ""
    leases: list[Body] = field(default_factory=list)
    pods: list[Body] = field(default_factory=list)
    objects: dict[str, list[Body]] = field(default_factory=dict)
    found: list[Finding] = field(default_factory=list)
    installation: Body | None = None


async def doctor(namespace: str | None, output: Output, access: GatewayOptions) -> None:
    """Look at everything and show what was found. Raises CliError, also where something does not work.

    Args:
        namespace: of the objects; all there are if None, where the user may see them.
        output: how it is shown.
        access: how the gateway is reached.
    """
    with steps("looking"):
        async with api_server() as kube:
            patient = await examine(kube, namespace, access)
    if output.is_for_people:
        show_findings(people(), patient.found)
    else:
        for_machines(output, {"findings": [one.as_json() for one in patient.found]})
    if failed := [one for one in patient.found if one.level is Level.FAIL]:
        raise Refused(f"{len(failed)} of {len(patient.found)} checks failed")


async def examine(kube: ApiServer, namespace: str | None, access: GatewayOptions) -> Patient:
    """Look at everything. Raises KubeUnavailable if there is no API server."""
    patient = Patient()
    patient.found.append(findings.judge_server(await kube.version()))
    where = namespace
    if namespace is None and not await kube.may("list", TOPICS, None):
        where = kube.default_namespace
    patient.found += await _rights(kube, where)
    for kind in _KINDS:
        if (listed := await _listed(kube, patient, kind, where)) is not None:
            patient.objects[kind.plural] = listed
    await _add_referenced(kube, patient)
    await _look_at_operator(kube, patient, access)
    patient.found += _judge(patient.objects, where, datetime.now(UTC))
    await _ask_gateway(patient, access)
    return patient


def show_findings(console: Console, found: Sequence[Finding]) -> None:
    """Findings as lines, each with what to do."""
    shown = table("", "what", "found", "do")
    for one in found:
        level, *rest = cells(one.level.value, one.about, one.message, one.advice)
        level.stylize(_STYLES[one.level])
        shown.add_row(level, *rest)
    console.print(shown)


async def _rights(kube: ApiServer, namespace: str | None) -> list[Finding]:
    lacking = [
        f"{verb} {kind.plural} ({what})"
        for verb, kind, subresource, what in _RIGHTS
        if not await kube.may(verb, kind, namespace, subresource)
    ]
    where = f"in namespace {namespace}" if namespace is not None else "everywhere"
    if lacking:
        return [findings.warn("rights", f"not yours {where}: {', '.join(lacking)}", "ask whoever gives out roles")]
    return [findings.ok("rights", f"all that stopics takes, {where}")]


async def _listed(kube: ApiServer, patient: Patient, kind: Resource, namespace: str | None) -> list[Body] | None:
    """The objects of a kind; None, and a line that says so, where nobody can say which there are."""
    try:
        return await kube.list_all(kind, namespace)
    except KubeNotFound:
        patient.found.append(findings.missing_kind(kind.plural))
    except KubeForbidden as error:
        patient.found.append(findings.warn(kind.plural, f"not shown to you: {error.message}", "get list on them"))
    return None


async def _add_referenced(kube: ApiServer, patient: Patient) -> None:
    """Look at the connections of topics that are in none of the namespaces that were listed."""
    known = {key_of(CONNECTIONS, body) for body in patient.objects.get(CONNECTIONS.plural, ())}
    references = {connection_of(body) for body in patient.objects.get(TOPICS.plural, ())}
    for key in sorted(references - known, key=lambda one: (one.namespace, one.name)):
        try:
            body = await kube.get(CONNECTIONS, key.namespace, key.name)
        except KubeNotFound:
            # Its topics are not ready, and say why.
            continue
        except KubeForbidden as error:
            about = f"connection {key.namespace}/{key.name}"
            patient.found.append(findings.warn(about, f"not shown to you: {error.message}", "ask for get on it"))
            continue
        patient.objects.setdefault(CONNECTIONS.plural, []).append(body)


def _judge(objects: Mapping[str, Sequence[Body]], namespace: str | None, now: datetime) -> list[Finding]:
    """What there is to say of the objects; of kinds that were not shown, nothing.

    Args:
        objects: of our kinds, by plural.
        namespace: that they were looked for in; None for all.
        now: for ages.
    """
    found: list[Finding] = []
    connections = objects.get(CONNECTIONS.plural)
    # Where only one namespace was looked at, all may be in others.
    if connections or (connections is not None and namespace is None):
        found += findings.judge_connections(connections)
    if TOPICS.plural in objects:
        found += findings.judge_topics(objects[TOPICS.plural], now)
    found += findings.judge_subscriptions(objects.get(SUBSCRIPTIONS.plural, ()))
    found += findings.judge_operations(objects.get(SEGMENT_OPERATIONS.plural, ()), now)
    return found


async def _look_at_operator(kube: ApiServer, patient: Patient, access: GatewayOptions) -> None:
    for namespace in access.namespaces:
        try:
            record = await kube.get(CONFIG_MAPS, namespace, CONFIG_MAP_NAME)
        except KubeNotFound:
            continue
        except KubeError as error:
            patient.found.append(findings.warn("operator", str(error), f"get configmaps in namespace {namespace}"))
            continue
        patient.namespace, patient.installation = namespace, record
        shards = (record.get("data") or {}).get("shards", "")
        await _look_at_leases(kube, patient, int(shards) if shards.isdecimal() else None)
        return
    searched = " and ".join(access.namespaces)
    advice = "set --operator-namespace, or install it: docs/installing.md"
    patient.found.append(findings.fail("operator", f"not found in namespace {searched}", advice))


async def _look_at_leases(kube: ApiServer, patient: Patient, shards: int | None) -> None:
    where = patient.namespace
    try:
        first = await kube.list_all(LEASES, where)
        patient.leases, renewed = await _second_look(kube, where, first)
        patient.found += findings.judge_leases(patient.leases, shards, datetime.now(UTC), renewed)
        patient.pods = [pod for pod in await kube.list_all(PODS, where) if _is_operators(pod)]
        patient.found += findings.judge_pods(patient.pods)
    except KubeForbidden as error:
        patient.found.append(findings.warn("operator", f"not shown to you: {error}", f"rights in namespace {where}"))
        return
    lacking = [
        f"{verb} {kind.plural}{'/' if subresource else ''}{subresource} ({what})"
        for verb, kind, subresource, what in _OPERATOR_RIGHTS
        if not await kube.may(verb, kind, where, subresource)
    ]
    if lacking:
        advice = "ask for them, or use --gateway and a token of your own"
        patient.found.append(findings.warn("rights", f"not yours in namespace {where}: {', '.join(lacking)}", advice))


async def _second_look(kube: ApiServer, namespace: str, first: list[Body]) -> tuple[list[Body], frozenset[str]]:
    """The Leases again if some look stale: clocks may differ, and one that changes is held."""
    unsure = findings.unsure_leases(first, datetime.now(UTC))
    found, renewed = first, set[str]()
    seconds = max((record.duration_seconds for record in unsure.values()), default=0.0)
    deadline = asyncio.get_running_loop().time() + seconds
    while unsure.keys() - renewed and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(_LEASE_LOOK_SECONDS)
        found = await kube.list_all(LEASES, namespace)
        versions = {body["metadata"]["name"]: body["metadata"]["resourceVersion"] for body in found}
        renewed = {name for name, before in unsure.items() if versions.get(name, before.version) != before.version}
    return found, frozenset(renewed)


async def _ask_gateway(patient: Patient, access: GatewayOptions) -> None:
    if not patient.namespace and access.url is None:
        return
    try:
        async with gateway(access) as asked:
            theirs = await asked.version()
            patient.found.append(findings.ok("gateway", "reached"))
            patient.found.append(findings.judge_versions(theirs, version("scalable-topics")))
            patient.found += await _load_ages(patient, asked)
    except CliError as error:
        advice = "what objects say is shown without it; explain, policy, load and backlog are not"
        patient.found.append(findings.warn("gateway", why(error), advice))


async def _load_ages(patient: Patient, asked: Gateway) -> list[Finding]:
    room = asyncio.Semaphore(_ASKED_AT_A_TIME)
    intervals = {
        _name(body): float((body["spec"].get("load") or {}).get("intervalSeconds") or 0)
        for body in patient.objects.get(CONNECTIONS.plural, ())
    }
    refused: list[Finding] = []
    ages: dict[str, float | None] = {}
    of_topics: dict[str, float] = {}

    async def look(body: Body) -> None:
        name = _name(body)
        try:
            ref = ref_of(body)
            async with room:
                stats = await asked.ask(ref, "stats")
        except CliError as error:
            refused.append(findings.warn(f"load of {name}", why(error), "it may be known in a moment: look again"))
            return
        ages[name] = (stats.get("scaling") or {}).get("loadAgeSeconds")
        if ref.connection in intervals:
            of_topics[name] = intervals[ref.connection]

    measured = [
        body
        for body in patient.objects.get(TOPICS.plural, ())
        if (body.get("status") or {}).get("layout") and not body["spec"].get("paused")
    ]
    await asyncio.gather(*map(look, measured[:_TOPICS_ASKED]))
    return [*refused, *findings.judge_load_ages(ages, of_topics)]


def _name(body: Body) -> str:
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def _is_operators(pod: Body) -> bool:
    labels = pod["metadata"].get("labels") or {}
    return labels.get("app.kubernetes.io/component") == "operator" and any(
        port.get("name") == "gateway"
        for container in (pod.get("spec") or {}).get("containers") or ()
        for port in container.get("ports") or ()
    )
