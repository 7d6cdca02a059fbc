"""An adapter that serves an operator's metrics to HorizontalPodAutoscalers, as the Prometheus adapter would.

It answers `external.metrics.k8s.io` behind the real API server's aggregation, by the rule of docs/autoscaling.md: the
sum of a series over the topics whose `scalable_topics_topic_info` has the labels that are asked for.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from dev.pki import Authority
from scalable_topics_operator.cluster.kube_client import KubeClient, Resource
from scalable_topics_operator.controllers.timestamps import timestamp_now
from tests.support.running_operator import RunningOperator

GROUP, VERSION = "external.metrics.k8s.io", "v1beta1"
API_SERVICES = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService")
SERVICES = Resource("", "v1", "services", "Service")
_SERVICE = "external-metrics"
_INFO = "scalable_topics_topic_info"


@asynccontextmanager
async def external_metrics(kube: KubeClient, operator: RunningOperator, folder: Path) -> AsyncIterator[None]:
    """Serve the metrics of an operator's namespace while entered. One at a time in a cluster."""
    namespace = operator.namespace
    authority = Authority(folder / "external-metrics")
    authority.create()
    pair = authority.server(_SERVICE, f"DNS:{_SERVICE}.{namespace}.svc")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    runner = web.AppRunner(_app(operator))
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        port = runner.addresses[0][1]
        await kube.create(SERVICES, namespace, _service(port))
        await kube.create(API_SERVICES, None, _api_service(namespace, port, authority.pair.certificate.read_bytes()))
        try:
            yield
        finally:
            # Before its server goes: whoever lists the cluster's resources would fail on one that does not answer.
            await kube.delete(API_SERVICES, None, f"{VERSION}.{GROUP}")
    finally:
        await runner.cleanup()


def _app(operator: RunningOperator) -> web.Application:
    async def resources(request: web.Request) -> web.Response:
        answer = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}", "resources": []}
        return web.json_response(answer)

    async def values(request: web.Request) -> web.Response:
        name, selector = request.match_info["metric"], request.query.get("labelSelector", "")
        wanted = dict(one.split("=", 1) for one in selector.split(",") if one)
        async with aiohttp.ClientSession() as session, session.get(f"{operator.metrics_url}/metrics") as response:
            series = _read(await response.text())
        topics = {labels["topic"] for labels, _ in series.get(_INFO, ()) if labels.items() >= wanted.items()}
        found = [value for labels, value in series.get(name, ()) if labels.get("topic") in topics]
        item = {"metricName": name, "metricLabels": wanted, "timestamp": timestamp_now(), "value": f"{sum(found):.0f}"}
        items = [item] if found else []
        return web.json_response(
            {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}
        )

    app = web.Application()
    app.router.add_get(f"/apis/{GROUP}/{VERSION}", resources)
    app.router.add_get(f"/apis/{GROUP}/{VERSION}/namespaces/{{namespace}}/{{metric}}", values)
    return app


def _read(text: str) -> dict[str, list[tuple[Mapping[str, str], float]]]:
    series: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            series.setdefault(sample.name, []).append((sample.labels, sample.value))
    return series


def _service(port: int) -> dict[str, Any]:
    # By its name, as endpoints may not lie on the loopback address.
    spec = {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": _SERVICE}, "spec": spec}


def _api_service(namespace: str, port: int, certificate: bytes) -> dict[str, Any]:
    return {
        "apiVersion": API_SERVICES.api_version,
        "kind": API_SERVICES.kind,
        "metadata": {"name": f"{VERSION}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "version": VERSION,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "service": {"namespace": namespace, "name": _SERVICE, "port": port},
            "caBundle": base64.b64encode(certificate).decode(),
        },
    }
