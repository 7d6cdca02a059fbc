"""What an uninstalled operator would leave behind: run before the chart is uninstalled.

`python -m scalable_topics_operator.uninstall_check [--namespaces a,b] [--mode Warn|Refuse]`
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from scalable_topics_operator.cluster.kube_client import Body, KubeClient, Resource
from scalable_topics_operator.cluster.kube_errors import KubeError, KubeNotFound
from scalable_topics_operator.cluster.kube_login import NoKubernetes
from scalable_topics_operator.cluster.resources import CONNECTIONS, FINALIZER, TOPICS

SHOWN = 20
WARN, REFUSE = "Warn", "Refuse"
_SECONDS = 40.0
_CALL_SECONDS = 15.0
_PAST_IT = "To uninstall without this check: helm uninstall --no-hooks, or uninstall.check: Off."

Names = Mapping[str, Sequence[str]]
_Counts = Callable[[Body], bool]


@dataclass(frozen=True, slots=True)
class Left:
    """What stays, by namespace.

    Args:
        topics: ScalableTopics that cannot be deleted without the operator.
        pipelines: connections whose pipelines run by themselves, as SparkApplications.
    """

    topics: Names = field(default_factory=dict)
    pipelines: Names = field(default_factory=dict)


def report(left: Left) -> str:
    """What to know of it and how to go on. Pure."""
    parts = []
    if left.topics:
        parts += [
            f"{_count(left.topics)} ScalableTopic(s) are there, which cannot be deleted without the operator "
            f"(finalizer {FINALIZER}):",
            *_lines(left.topics),
            "Uninstalled, the operator leaves them and their data as they are. Clients go on with the last layouts; "
            "nothing splits or merges any more.",
            "To keep them, go on: an operator that is installed in this namespace later takes them up again.",
            "To be rid of them, delete them first and uninstall then: kubectl -n NAMESPACE delete scalabletopic NAME "
            "(its deletionPolicy says whether its data goes, too).",
        ]
    if left.pipelines:
        parts += [
            f"{_count(left.pipelines)} connection(s) have a SparkApplication as load pipeline, which goes on running:",
            *_lines(left.pipelines),
            "To end one, set spec.load.source: Direct before, or delete the SparkApplication afterwards.",
        ]
    return "\n".join(parts) or "Nothing is left that needs the operator."


async def look(kube: KubeClient, namespaces: Sequence[str]) -> Left:
    """Find what would stay. Raises KubeError.

    Args:
        kube: the API server.
        namespaces: where to look; empty for everywhere.
    """
    topics = await _names(kube, TOPICS, namespaces, _holds)
    return Left(topics, await _names(kube, CONNECTIONS, namespaces, _runs_by_itself))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the check; answers 1 where the uninstallation is to stop."""
    parser = argparse.ArgumentParser(description="Say what an uninstalled operator would leave behind.")
    parser.add_argument("--namespaces", default="", help="where to look, separated by commas; everywhere if empty")
    parser.add_argument("--mode", choices=(WARN, REFUSE), default=WARN, help="whether to stop the uninstallation")
    options = parser.parse_args(arguments)
    namespaces = [name for name in options.namespaces.split(",") if name]
    refusing = options.mode == REFUSE
    try:
        left = asyncio.run(_look_in_time(namespaces))
    except (KubeError, NoKubernetes, TimeoutError) as error:
        print(f"What would be left behind cannot be told: {error or 'the API server takes too long'}\n{_PAST_IT}")
        return 1 if refusing else 0
    print(report(left))
    if not (refusing and left.topics):
        return 0
    print(f"Refused (uninstall.check: Refuse). {_PAST_IT}")
    return 1


async def _look_in_time(namespaces: Sequence[str]) -> Left:
    async with asyncio.timeout(_SECONDS), KubeClient(timeout_seconds=_CALL_SECONDS, tries=2) as kube:
        return await look(kube, namespaces)


async def _names(kube: KubeClient, resource: Resource, namespaces: Sequence[str], counts: _Counts) -> Names:
    found: dict[str, list[str]] = {}
    places: Sequence[str | None] = list(namespaces) or [None]
    for namespace in places:
        try:
            async for page, _ in kube.list_pages(resource, namespace):
                for metadata in (body["metadata"] for body in page if counts(body)):
                    found.setdefault(metadata["namespace"], []).append(metadata["name"])
        except KubeNotFound:
            # Without the definition there are no objects.
            return {}
    return {namespace: sorted(names) for namespace, names in sorted(found.items())}


def _holds(topic: Body) -> bool:
    return FINALIZER in (topic["metadata"].get("finalizers") or ())


def _runs_by_itself(connection: Body) -> bool:
    load = connection.get("spec", {}).get("load") or {}
    return load.get("source") == "Pipeline" and load.get("runner") == "SparkApplication"


def _count(names: Names) -> int:
    return sum(map(len, names.values()))


def _lines(names: Names) -> list[str]:
    return [
        f"  namespace {namespace}, {len(found)}: {', '.join(found[:SHOWN])}"
        + (f" and {len(found) - SHOWN} more" if len(found) > SHOWN else "")
        for namespace, found in names.items()
    ]


if __name__ == "__main__":
    sys.exit(main())
