"""`python -m dev e2e`: the end-to-end tests, on a node of this machine, on kind, or on a cluster that is given."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from dev import chart_tools
from dev.images.base import LOCAL, local_base
from dev.images.command import FIRST_OWN_STEP, megabytes
from dev.images.engine import Engine
from dev.images.project import tree_image
from dev.images.pulsar_image import pulsar_image
from dev.instance import LocalCluster, Shape
from dev.kind import Kind, helm, kind_images, kubectl
from dev.kstatus_tool import kstatus
from dev.node.artifacts import policy_enforcer
from dev.run import run_with_own_cluster

REPOSITORY = Path(__file__).parents[1]
NEXT_TAG = "next"


@dataclass(frozen=True, slots=True)
class Images:
    """What pods of the tests run.

    Attributes:
        operator: the operator.
        next_operator: the same under another tag, for an upgrade.
        pulsar: a broker.
        spark: the pipeline; empty where the short form runs without it.
    """

    operator: str
    next_operator: str
    pulsar: str
    spark: str

    @classmethod
    def from_environment(cls) -> Self:
        """Read what `environment` describes; what is not named is empty."""
        return cls(*(os.environ.get(f"E2E_{each.name.upper()}_IMAGE", "") for each in fields(cls)))

    def environment(self) -> dict[str, str]:
        """Return the variables that name them."""
        return {f"E2E_{each.name.upper()}_IMAGE": getattr(self, each.name) for each in fields(self)}

    def names(self) -> list[str]:
        """Return the names of those that there are."""
        return [name for each in fields(self) if (name := getattr(self, each.name))]


def run_on_node(arguments: Sequence[str], *, short: bool) -> int:
    """Run the tests on a node of this machine and return the exit code. It takes root.

    Args:
        arguments: for pytest.
        short: leave out what takes minutes: the pipeline on Spark, what enforces network policies, and everything
            marked `whole`.
    """
    engine = Engine.found()
    images = _built(engine, local_base(engine), short=short)
    programs = [chart_tools.helm().parent, kstatus().parent]
    enforcer = None if short else policy_enforcer()

    def prepare(cluster: LocalCluster) -> dict[str, str]:
        if enforcer:
            with cluster.inside():
                cluster.node.enforce_policies(enforcer, cluster.kubernetes)
        for name in images.names():
            cluster.node.load(engine, name)
        return {
            **images.environment(),
            "E2E_IMAGE_SIZES": json.dumps(_sizes(engine, images)),
            "E2E_AUDIT_LOG": str(cluster.kubernetes.audit_log),
            "PATH": _path((*programs, cluster.kubernetes.kubectl.parent)),
        }

    command = _pytest(arguments, "not whole" if short else "")
    return run_with_own_cluster(command, Shape(brokers=0, node=True, spark=not short), prepare)


def run_on_kind(arguments: Sequence[str], *, short: bool, base: str | None, node_image: str | None) -> int:
    """Run the tests on a cluster by kind, which goes afterwards, and return the exit code.

    Args:
        arguments: for pytest.
        short: as in `run_on_node`.
        base: of the images; `local` makes one here, and an image of Pulsar with it.
        node_image: of Kubernetes; kind's own if None.
    """
    engine = Engine.found()
    kind = Kind.found(engine, node_image)
    operator, pulsar = kind_images(engine, base)
    following = _next(engine, operator)
    spark = "" if short else tree_image(engine, "spark", local_base(engine) if base == LOCAL else base)
    images = Images(operator, following, pulsar.name, spark)
    programs = [helm().parent, kstatus().parent, kubectl().parent]
    try:
        kind.create()
        for name in (operator, following, *pulsar.built, *([spark] if spark else [])):
            kind.load(name)
        variables = images.environment() | {"KUBECONFIG": str(kind.kubeconfig)}
        return _run(_pytest(arguments, _elsewhere(short=short)), variables, programs)
    finally:
        kind.delete()


def run_on_given(arguments: Sequence[str], images: Images, *, short: bool) -> int:
    """Run the tests on the cluster of KUBECONFIG, whose nodes have or can pull the images; returns the exit code."""
    programs = [helm().parent, kstatus().parent, kubectl().parent]
    return _run(_pytest(arguments, _elsewhere(short=short)), images.environment(), programs)


def _sizes(engine: Engine, images: Images) -> list[dict[str, object]]:
    named = [("operator", images.operator), *([("spark", images.spark)] if images.spark else [])]
    return [
        {
            "target": target,
            "whole": megabytes(engine.size_bytes(name)),
            "own": megabytes(engine.size_above_bytes(name, FIRST_OWN_STEP)),
        }
        for target, name in named
    ]


def _next(engine: Engine, operator: str) -> str:
    following = f"{operator.rpartition(':')[0]}:{NEXT_TAG}"
    engine.tag(operator, following)
    return following


def _built(engine: Engine, base: str, *, short: bool) -> Images:
    operator = tree_image(engine, "operator", base)
    spark = "" if short else tree_image(engine, "spark", base)
    return Images(operator, _next(engine, operator), pulsar_image(engine, base), spark)


def _elsewhere(*, short: bool) -> str:
    """What can be tried on a cluster whose audit log cannot be read, and that has nothing of ours besides."""
    ours = ("audited", "spark_operator", "network_policies")
    return " and ".join((*(["not whole"] if short else []), *(f"not {mark}" for mark in ours)))


def _pytest(arguments: Sequence[str], chosen: str) -> list[str]:
    # One cluster, which the tests change for each other: in the order in which they are written, one at a time.
    options = ["-p", "no:randomly", "-n", "0", "-m", chosen]
    return [sys.executable, "-m", "pytest", "tests/e2e", *options, *arguments]


def _path(programs: Sequence[Path]) -> str:
    return os.pathsep.join((*map(str, programs), os.environ["PATH"]))


def _run(command: Sequence[str], variables: Mapping[str, str], programs: Sequence[Path]) -> int:
    environment = os.environ | dict(variables) | {"PATH": _path(programs)}
    return subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode
