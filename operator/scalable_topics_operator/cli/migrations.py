"""ScalableTopics as migrations see them, and the operation that migrates one (pip-475)."""

from __future__ import annotations

from dataclasses import dataclass

from scalable_topics_operator.cli.kubernetes import find_object
from scalable_topics_operator.cli.operations import Ended, Tell, Wanted, run_operation
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.resources import TOPICS


@dataclass(frozen=True, slots=True, order=True)
class DeclaredTopic:
    """A ScalableTopic.

    Args:
        namespace: of the object.
        name: of the object.
        topic: as its spec has it.
        is_scalable: whether it has a layout.
    """

    namespace: str
    name: str
    topic: str
    is_scalable: bool

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


async def find_declared(kube: KubeClient, name: str, namespace: str) -> DeclaredTopic:
    """The ScalableTopic that a user means. Raises CliError, KubeError.

    Args:
        kube: the API server.
        name: of the object, or of its topic.
        namespace: of the object.
    """
    missing = "apply one, with spec.migrateFrom if it is to be migrated at once"
    return _declared(await find_object(kube, name, namespace, missing))


async def list_declared(kube: KubeClient, namespace: str | None, selector: str) -> list[DeclaredTopic]:
    """The ScalableTopics of a namespace, or of all, that have labels; sorted. Raises KubeError."""
    pages = kube.list_pages(TOPICS, namespace, label_selector=selector)
    return sorted([_declared(body) async for page, _ in pages for body in page])


async def run_migration(
    kube: KubeClient, topic: DeclaredTopic, *, force: bool, dry_run: bool, timeout_seconds: float, tell: Tell
) -> Ended:
    """Have a topic migrated, or only looked at, and wait for the end of it.

    Args:
        kube: the API server.
        topic: which one.
        force: whether clients that do not know scalable topics are cut off.
        dry_run: whether nothing is changed.
        timeout_seconds: how long it is waited for; it goes on afterwards.
        tell: told of each step.
    """
    wanted = Wanted(topic.namespace, topic.name, "Migrate", {"force": force}, dry_run)
    return await run_operation(kube, wanted, timeout_seconds=timeout_seconds, tell=tell)


def _declared(body: Body) -> DeclaredTopic:
    metadata = body["metadata"]
    layout = (body.get("status") or {}).get("layout")
    return DeclaredTopic(metadata["namespace"], metadata["name"], body["spec"]["topic"], bool(layout))
