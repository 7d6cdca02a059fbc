"""`stopics report`: a bundle for whoever is asked for help, without secrets."""

from __future__ import annotations

import json
import platform
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from typing import Any

import aiohttp
import typer
import yaml
from rich.console import Console

from scalable_topics_operator.cli.api_server import ApiServer
from scalable_topics_operator.cli.bundle import Bundle
from scalable_topics_operator.cli.doctor_command import Patient, examine, show_findings
from scalable_topics_operator.cli.faults import BadUsage, CliError
from scalable_topics_operator.cli.gateway_access import GatewayOptions, gateway
from scalable_topics_operator.cli.kubernetes import api_server, ref_of
from scalable_topics_operator.cli.port_forward import forwarded
from scalable_topics_operator.cli.progress import Steps, steps
from scalable_topics_operator.cli.redaction import redacted
from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.kube_errors import KubeError
from scalable_topics_operator.cluster.resources import EVENTS, GROUP, TOPICS

_DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
_METRICS_PORT = "metrics"
_METRICS_SECONDS = 10.0
_TOPICS_ASKED = 20
# Messages stay in one piece, for whoever searches them.
_LINE_COLUMNS = 10_000
_README = """\
Made by stopics report on {at} (UTC), stopics {version}.

doctor.txt, doctor.json   what stopics doctor found
objects/                  objects of scalable topics, by kind and namespace
events/                   Events about them, by namespace
operator/                 what is in the operator's namespace of its own: Leases, pods, Deployments, installation
logs/                     logs of the operator's pods, by container; previous.log is of the life before
metrics/                  metrics of the operator's pods
gateway/                  statistics, last decision and effective policy of the first topics
errors.txt                what could not be had, and why

No Secret was read. Left out are values of topics' properties, of annotations, of environment variables, and whatever
looks like a credential. Names of topics, subscriptions, consumers, roles, hosts and namespaces are in it: look through
it before you pass it on.
"""


async def report(namespace: str | None, file: Path | None, log_lines: int, access: GatewayOptions) -> None:
    """Write a bundle. Raises CliError.

    Args:
        namespace: of the objects; all there are if None, where the user may see them.
        file: the bundle; named by the time if None.
        log_lines: of each container's log, the last ones.
        access: how the gateway is reached.
    """
    now = datetime.now(UTC)
    name = f"stopics-report-{now:%Y%m%d-%H%M%S}"
    place = file or Path(f"{name}.tar.gz")
    if place.exists():
        raise BadUsage(f"{place} is there already")
    try:
        bundle = Bundle(place, name)
    except OSError as error:
        raise BadUsage(f"{place} cannot be written: {error.strerror}") from None
    with bundle, steps("gathering") as told:
        async with api_server() as kube:
            bundle.add("README.txt", _README.format(at=f"{now:%Y-%m-%d %H:%M:%S}", version=version("scalable-topics")))
            told.tell("looking at the installation, as stopics doctor does")
            patient = await examine(kube, namespace, access)
            _add_findings(bundle, patient)
            await _add_objects(kube, bundle, patient)
            await _add_operator(kube, bundle, patient, log_lines, told)
        await _add_views(bundle, patient, access, told)
        bundle.add_errors()
    typer.echo(str(place))


def _add_findings(bundle: Bundle, patient: Patient) -> None:
    text = StringIO()
    show_findings(Console(file=text, width=200, highlight=False, markup=False), patient.found)
    bundle.add("doctor.txt", text.getvalue())
    bundle.add("doctor.json", json.dumps([one.as_json() for one in patient.found], indent=2))
    versions = {"stopics": version("scalable-topics"), "python": platform.python_version(), "system": platform.system()}
    bundle.add("versions.json", json.dumps(versions, indent=2))


async def _add_objects(kube: ApiServer, bundle: Bundle, patient: Patient) -> None:
    namespaces: set[str] = set()
    for plural, bodies in patient.objects.items():
        for body in bodies:
            metadata = body["metadata"]
            namespaces.add(metadata["namespace"])
            _add_object(bundle, f"objects/{plural}/{metadata['namespace']}/{metadata['name']}.yaml", body)
    for namespace in sorted(namespaces):
        events = await _attempt(bundle, f"Events of {namespace}", partial(kube.list_all, EVENTS, namespace))
        ours = [one for one in events or () if _is_ours(one)]
        if ours:
            _add_objects_of(bundle, f"events/{namespace}.yaml", ours)


async def _add_operator(kube: ApiServer, bundle: Bundle, patient: Patient, log_lines: int, told: Steps) -> None:
    where = patient.namespace
    if not where:
        return bundle.failed("the operator", "not found")
    if patient.leases:
        _add_objects_of(bundle, "operator/leases.yaml", patient.leases)
    if patient.installation:
        _add_object(bundle, "operator/installation.yaml", patient.installation)
    deployments = await _attempt(bundle, "Deployments", partial(kube.list_all, _DEPLOYMENTS, where))
    if ours := [one for one in deployments or () if _is_part(one)]:
        _add_objects_of(bundle, "operator/deployments.yaml", ours)
    if patient.pods:
        _add_objects_of(bundle, "operator/pods.yaml", patient.pods)
    for pod in patient.pods:
        told.tell(f"logs and metrics of pod {where}/{pod['metadata']['name']}")
        await _add_logs(kube, bundle, pod, log_lines)
        await _add_metrics(kube, bundle, pod)
    return None


async def _add_logs(kube: ApiServer, bundle: Bundle, pod: Body, lines: int) -> None:
    metadata = pod["metadata"]
    where, name = metadata["namespace"], metadata["name"]
    restarted = {
        one["name"] for one in (pod.get("status") or {}).get("containerStatuses") or () if one.get("restartCount")
    }
    for container in (one["name"] for one in pod["spec"]["containers"]):
        for previous in (False, True) if container in restarted else (False,):
            what = f"log of {name}/{container}{', previous' if previous else ''}"

            async def read(container: str = container, previous: bool = previous) -> str:
                return await kube.pod_log(where, name, container, lines=lines, previous=previous)

            text = await _attempt(bundle, what, read)
            if text is not None:
                bundle.add(f"logs/{name}/{container}{'.previous' if previous else ''}.log", text)


async def _add_metrics(kube: ApiServer, bundle: Bundle, pod: Body) -> None:
    metadata = pod["metadata"]
    ports = [
        port["containerPort"]
        for container in pod["spec"]["containers"]
        for port in container.get("ports") or ()
        if port.get("name") == _METRICS_PORT
    ]
    for port in ports:

        async def read(port: int = port) -> str:
            async with (
                forwarded(kube, metadata["namespace"], metadata["name"], port) as forwarding,
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_METRICS_SECONDS)) as session,
            ):
                try:
                    async with session.get(f"http://127.0.0.1:{forwarding.port}/metrics") as response:
                        return await response.text()
                except (aiohttp.ClientError, TimeoutError) as error:
                    raise forwarding.error or KubeError("metrics", 0, type(error).__name__) from None

        text = await _attempt(bundle, f"metrics of {metadata['name']}", read)
        if text is not None:
            bundle.add(f"metrics/{metadata['name']}.txt", text)


async def _add_views(bundle: Bundle, patient: Patient, access: GatewayOptions, told: Steps) -> None:
    topics = [body for body in patient.objects.get(TOPICS.plural, ()) if (body.get("status") or {}).get("layout")]
    if not topics:
        return
    told.tell("asking the gateway")
    try:
        async with gateway(access) as asked:
            for body in topics[:_TOPICS_ASKED]:
                ref, metadata = ref_of(body), body["metadata"]
                for what in ("stats", "autoScale/explain", "autoScalePolicy/effective"):
                    label = f"{what} of {metadata['namespace']}/{metadata['name']}"
                    answer = await _attempt(bundle, label, partial(asked.ask, ref, what))
                    if answer is not None:
                        place = f"gateway/{metadata['namespace']}/{metadata['name']}/{what.replace('/', '-')}.json"
                        bundle.add(place, json.dumps(redacted(answer), indent=2))
    except CliError as error:
        bundle.failed("the gateway", str(error))


async def _attempt(bundle: Bundle, what: str, look: Callable[[], Awaitable[Any]]) -> Any:
    """What is found; None, and a line in the bundle, where it cannot be had."""
    try:
        return await look()
    except (KubeError, CliError) as error:
        bundle.failed(what, str(error))
        return None


def _add_object(bundle: Bundle, place: str, body: Body) -> None:
    bundle.add(place, yaml.safe_dump(redacted(body), sort_keys=False, width=_LINE_COLUMNS))


def _add_objects_of(bundle: Bundle, place: str, bodies: list[Body]) -> None:
    bundle.add(place, yaml.safe_dump_all([redacted(body) for body in bodies], sort_keys=False, width=_LINE_COLUMNS))


def _is_ours(event: Body) -> bool:
    return str((event.get("involvedObject") or {}).get("apiVersion", "")).startswith(f"{GROUP}/")


def _is_part(body: Body) -> bool:
    return (body["metadata"].get("labels") or {}).get("app.kubernetes.io/part-of") == "scalable-topics"
