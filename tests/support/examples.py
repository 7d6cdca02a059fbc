"""Runs the programs in `examples/`, and applies its manifests."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import yaml

from scalable_topics_operator.cluster.kube_client import KubeClient, Resource
from tests.support.manifests import Manifest

EXAMPLES = Path(__file__).parents[2] / "examples"


async def run_example(name: str, *arguments: str, **environment: str) -> list[str]:
    """Run an example; answers the lines it prints."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / name),
        *arguments,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0
    return output.decode().splitlines()


async def apply_example(kube: KubeClient, namespace: str, name: str) -> dict[str, Manifest]:
    """Create all objects of a file as they are, each a namespaced one; answers what the file says, by kind."""
    documents = [one for one in yaml.safe_load_all((EXAMPLES / name).read_text()) if one]
    for document in documents:
        group, _, version = document["apiVersion"].rpartition("/")
        resource = Resource(group, version, document["kind"].lower() + "s", document["kind"])
        await kube.create(resource, namespace, document)
    return {document["kind"]: document for document in documents}
