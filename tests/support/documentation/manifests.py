"""Manifests in the pages: whole ones as they are, parts of one completed, and values of the chart."""

from __future__ import annotations

import copy
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.documentation.pages import all_fences
from tests.support.examples import EXAMPLES
from tests.support.manifests import API_VERSION, merged

_TABLE = Path(__file__).with_name("parts.toml")
# The least that each kind must say.
_LEAST: dict[str, dict[str, Any]] = {
    "ScalableTopicConnection": {"adminUrl": "http://broker:8080"},
    "ScalableTopic": {"topic": "topic://public/default/orders", "connectionRef": {"name": "pulsar"}},
}
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sample:
    """YAML in a page.

    Args:
        place: of its block, for people.
        documents: whole manifests; of values of the chart, these values.
    """

    place: str
    documents: tuple[Document, ...]


@dataclass(frozen=True, slots=True)
class Samples:
    """All YAML of the pages.

    Args:
        manifests: what an API server takes.
        values: what the chart takes.
        unknown: places of blocks that are neither, and are not in `parts.toml`.
        unused: entries of `parts.toml` that no block is under.
    """

    manifests: tuple[Sample, ...]
    values: tuple[Sample, ...]
    unknown: tuple[str, ...]
    unused: tuple[str, ...]


def read_samples() -> Samples:
    """Read all pages."""
    table: dict[str, dict[str, Any]] = tomllib.loads(_TABLE.read_text())["part"]
    manifests, values, unknown, used = [], [], [], set()
    for fence in all_fences():
        if fence.language not in ("yaml", "yml"):
            continue
        documents = [one for one in yaml.safe_load_all(fence.text) if one is not None]
        key = f"{fence.page}#{fence.heading}"
        if all(isinstance(one, dict) and "kind" in one for one in documents):
            manifests.append(Sample(fence.place, tuple(map(completed, documents))))
            continue
        known = table.get(key, {})
        used.add(key)
        match known.get("is"):
            case "values":
                values.append(Sample(fence.place, tuple(documents)))
            case "spec":
                content = documents[0].get("spec", documents[0])
                manifests.append(Sample(fence.place, (completed({"kind": known["of"], "spec": content}),)))
            case "other" if known.get("reason"):
                pass
            case _:
                unknown.append(fence.place)
    return Samples(tuple(manifests), tuple(values), tuple(unknown), tuple(sorted(table.keys() - used)))


def read_examples() -> list[Sample]:
    """The manifests in `examples/`, but for those that kustomize completes."""
    found = []
    for file in sorted((*EXAMPLES.glob("*.yaml"), *EXAMPLES.glob("gitops/argocd/*"), *EXAMPLES.glob("gitops/flux/*"))):
        documents = [one for one in yaml.safe_load_all(file.read_text()) if one is not None]
        found.append(Sample(file.relative_to(EXAMPLES.parent).as_posix(), tuple(documents)))
    return found


def completed(document: Document) -> Document:
    """A manifest with a name and what its kind must say, if it is a part of one of ours."""
    made = copy.deepcopy(document)
    made.setdefault("metadata", {}).setdefault("name", "a-part")
    if "apiVersion" not in made:
        made["apiVersion"] = API_VERSION
        made["spec"] = merged(_LEAST[made["kind"]], made.get("spec", {}))
    return made
