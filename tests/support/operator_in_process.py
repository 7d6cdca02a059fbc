"""The operator inside the test's own process, where a test can feed what has no port to the outside yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from scalable_topics_operator.cluster.election import LeaseTimes
from scalable_topics_operator.controllers.reconcile_times import ReconcileTimes
from scalable_topics_operator.operator_process import OperatorProcess
from scalable_topics_operator.settings import OperatorSettings

_FAST = OperatorSettings(
    # Nobody takes over from it.
    lease=LeaseTimes(15.0),
    bind_port=0,
    gateway_port=0,
    times=ReconcileTimes(drift_seconds=3.0, drift_per_second=1000.0, prune_seconds=1.0),
)


@asynccontextmanager
async def operator_in_process(namespace: str, **settings: object) -> AsyncIterator[OperatorProcess]:
    """A running operator for one Kubernetes namespace, which KUBECONFIG leads to; stopped cleanly in the end."""
    everything = {"namespaces": (namespace,), "operator_namespace": namespace, **settings}
    operator = OperatorProcess(replace(_FAST, **everything))  # type: ignore[arg-type]
    stop = asyncio.Event()
    task = asyncio.create_task(operator.run(stop))
    try:
        yield operator
    finally:
        stop.set()
        await asyncio.wait_for(task, 20)
