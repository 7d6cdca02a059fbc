"""An operator that runs its pipelines as children of its own, and a connection whose load they tell."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path

from dev.access import PulsarAccess
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.resources import CONNECTIONS
from tests.integration.operator.conftest import MakeOperator
from tests.support.pulsar_view import PulsarView
from tests.support.running_operator import FAST_FLAGS, RunningOperator
from tests.support.world import World, condition
from tests.support.world_making import make_world

FOLLOWED = ("True", "PipelineFollowed")
"""The condition LoadFresh while the operator follows a pipeline."""
_SUPERVISOR = shlex.join((sys.executable, "-m", "segment_load", "supervise", "--master", "local[1]"))


def pipeline_flags(folder: Path) -> tuple[str, ...]:
    """Flags of such an operator.

    Args:
        folder: for the pipelines of one replica.
    """
    return f"--pipeline-folder={folder}", f"--pipeline-command={_SUPERVISOR}"


def load_fresh(connection: Body) -> tuple[str, str]:
    """Status and reason of a connection's condition LoadFresh; empty while there is none."""
    found = condition(connection, "LoadFresh")
    return found.get("status", ""), found.get("reason", "")


async def piped_world(
    own_operator: MakeOperator,
    kube: KubeClient,
    view: PulsarView,
    pulsar: PulsarAccess,
    folder: Path,
    *flags: str,
    **load: object,
) -> tuple[RunningOperator, World]:
    """A started operator, and a world whose connection `pulsar` it already follows by its pipeline.

    Args:
        own_operator: makes operators.
        kube: an administrator's client.
        view: a superuser's view of the brokers.
        pulsar: the brokers.
        folder: for the pipeline.
        flags: of the operator, besides.
        load: of the connection's `spec.load`, besides the source.
    """
    operator = await own_operator((*FAST_FLAGS, *pipeline_flags(folder), *flags))
    world = await make_world(kube, view, pulsar, operator.namespace, load={"source": "Pipeline", **load})
    await asyncio.to_thread(operator.start)
    await until_followed(world)
    return operator, world


async def until_followed(world: World) -> Body:
    """Wait until the operator follows the pipeline of the connection `pulsar`; answers the connection."""
    return await world.until(
        CONNECTIONS,
        "pulsar",
        lambda body: load_fresh(body) == FOLLOWED,
        what="follows its pipeline",
        within_seconds=300,
    )
