"""Whatever is asked, the gateway answers as its own document says: schemathesis asks, with a time to do it in.

A real operator, API server and broker stand behind it, so that what is made of the questions is made.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.election import LeaseTimes
from scalable_topics_operator.cluster.kube_client import KubeClient
from scalable_topics_operator.cluster.lease_record import GATEWAY_ANNOTATION, LEASES
from scalable_topics_operator.cluster.resources import CONNECTIONS, SEGMENT_OPERATIONS
from tests.support import manifests
from tests.support.callers import OUR_KINDS, make_caller
from tests.support.operator_in_process import operator_in_process
from tests.support.pulsar_view import PulsarView
from tests.support.waiting import eventually
from tests.support.world import phase
from tests.support.world_making import create_namespace, make_world, random_name

_SECONDS = 45
_LEAST_CASES = 200
# What its schema allows may still not be possible, and while a topic changes one has to come again.
_CONFIGURATION = """\
headers = {{ Authorization = "Bearer {token}" }}

[parameters]
tenant = "{tenant}"
namespace = "{namespace}"
topic = "asked"
connection = "{name}/pulsar"
subscription = "declared"
into = 2

[checks]
positive_data_acceptance.enabled = false
not_a_server_error.expected-statuses = ["2xx", "3xx", "4xx", 503]
negative_data_rejection.expected-statuses = ["4xx", 503]
"""
_OPTIONS = (
    *("--no-color", "--continue-on-failure", "--generation-database=none", "--phases=coverage,fuzzing"),
    *("--seed=1", "--max-examples=20", f"--max-time={_SECONDS}", "--request-timeout=40"),
    # Names with a pattern are rare among what is generated, and how many are enough depends on the machine's pace.
    "--suppress-health-check=filter_too_much,too_slow,data_too_large",
    # Another replica's, with its own token.
    "--exclude-operation-id=load",
)


async def test_the_gateway_answers_as_its_document_says(
    kube: KubeClient, view: PulsarView, pulsar: PulsarAccess, tmp_path: Path
) -> None:
    name = random_name("fuzz")
    await create_namespace(kube, name)
    world = await make_world(kube, view, pulsar, name)
    tenant, _, namespace = world.pulsar_namespace.partition("/")
    mapping = {"pulsarNamespace": world.pulsar_namespace, "namespace": name}
    await world.change(CONNECTIONS, "pulsar", {"pulsarNamespaceMappings": [mapping]})
    token = await make_caller(kube, name, "asks", ["*"], resources=OUR_KINDS)
    configuration = tmp_path / "schemathesis.toml"
    configuration.write_text(_CONFIGURATION.format(name=name, token=token, tenant=tenant, namespace=namespace))
    # Nobody takes over from it, so a busy machine shall not make it lose its Leases.
    async with operator_in_process(name, lease=LeaseTimes(15.0)):
        # Retain: it cannot be deleted through REST, so that there is something to ask about.
        topic = manifests.topic("asked", f"{world.pulsar_namespace}/asked", initial=2, subscriptions=["declared"])
        await world.apply(topic)
        await world.until_ready("asked", within_seconds=120)
        gateway = await _gateway_address(kube, name)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(configuration)),
            *("run", f"http://{gateway}/openapi.json", *_OPTIONS),
            cwd=tmp_path,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        output, _ = await process.communicate()
        said = output.decode(errors="replace")
        assert process.returncode == 0, said
        passed = re.search(r"([0-9]+) generated, \1 passed", said)
        assert passed is not None, said
        assert int(passed[1]) > _LEAST_CASES, said
        await world.until_ready("asked", within_seconds=120)
        operations = await kube.list_all(SEGMENT_OPERATIONS, name)
        assert "Succeeded" in {phase(one) for one in operations}, "what was asked for was done"


async def _gateway_address(kube: KubeClient, namespace: str) -> str:
    """Host and port of the replica that keeps its Leases in a namespace, as soon as it has them."""

    async def told() -> str:
        leases = await kube.list_all(LEASES, namespace)
        found = (str((lease["metadata"].get("annotations") or {}).get(GATEWAY_ANNOTATION, "")) for lease in leases)
        return next(filter(None, found), "")

    return await eventually(told, what="the gateway has an address")
