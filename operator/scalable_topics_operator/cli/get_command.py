"""`stopics get` and `stopics describe`: what objects say, as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from rich.table import Table

from scalable_topics_operator.api.scalable_topic import ScalableTopic
from scalable_topics_operator.cli.columns import shown, value
from scalable_topics_operator.cli.description import show_description
from scalable_topics_operator.cli.faults import BadUsage
from scalable_topics_operator.cli.kubernetes import api_server, find_object, list_of
from scalable_topics_operator.cli.options import Output
from scalable_topics_operator.cli.printing import as_allowed, for_machines, people, tell
from scalable_topics_operator.cli.tables import cells, table
from scalable_topics_operator.cluster.kube_client import Body, KubeClient
from scalable_topics_operator.cluster.resources import EVENTS, SEGMENT_OPERATIONS, SUBSCRIPTIONS, TOPICS


@dataclass(frozen=True, slots=True)
class GetOptions:
    """What `stopics get` was asked for.

    Args:
        names: of objects or topics; all if empty.
        namespace: of the objects; None for the kubeconfig's.
        selector: their labels; None for any.
        all_namespaces: whether `namespace` is all there are.
        output: how they are shown.
    """

    names: tuple[str, ...]
    namespace: str | None
    selector: str | None
    all_namespaces: bool
    output: Output

    def check(self) -> None:
        """Raises BadUsage for what does not go together."""
        if self.names and (self.selector is not None or self.all_namespaces):
            raise BadUsage("--selector and --all-namespaces choose among all topics; leave them out, or the names")
        if self.all_namespaces and self.namespace is not None:
            raise BadUsage("--all-namespaces and --namespace exclude each other")


@dataclass(frozen=True, slots=True)
class Described:
    """A ScalableTopic and what is about it.

    Args:
        topic: the object.
        operations: its SegmentOperations, newest first.
        subscriptions: its ScalableTopicSubscriptions, by name.
        events: about it, oldest first.
    """

    topic: Body
    operations: Sequence[Body]
    subscriptions: Sequence[Body]
    events: Sequence[Body]

    def as_json(self) -> Mapping[str, Any]:
        """For machines."""
        return {
            "scalableTopic": self.topic,
            "operations": list(self.operations),
            "subscriptions": list(self.subscriptions),
            "events": list(self.events),
        }


async def get(options: GetOptions) -> None:
    """List topics. Raises CliError."""
    options.check()
    async with api_server() as kube:
        where = None if options.all_namespaces else options.namespace or kube.default_namespace
        bodies = await _chosen(kube, options, where)
    if not options.output.is_for_people:
        if len(options.names) == 1:
            return for_machines(options.output, bodies[0])
        return for_machines(options.output, {"apiVersion": "v1", "kind": "List", "items": bodies})
    if not bodies:
        return tell(f"no ScalableTopics in {where or 'any namespace'}")
    wide = options.output is Output.WIDE
    return people().print(topics_table(bodies, wide=wide, with_namespace=options.all_namespaces, now=_now()))


def topics_table(bodies: Sequence[Body], *, wide: bool, with_namespace: bool, now: datetime) -> Table:
    """Topics as a table.

    Args:
        bodies: the objects.
        wide: with all columns.
        with_namespace: with a column for that.
        now: for ages.
    """
    columns = shown(ScalableTopic.definition.columns, wide=wide)
    made = table(*(["namespace"] if with_namespace else []), "name", *(column.name.lower() for column in columns))
    for body in bodies:
        metadata = body["metadata"]
        place = (metadata["namespace"], metadata["name"]) if with_namespace else (metadata["name"],)
        made.add_row(*cells(*place, *(value(body, column, now) for column in columns)))
    return made


async def describe(name: str, namespace: str | None, output: Output) -> None:
    """Show one topic and what is about it. Raises CliError."""
    async with api_server() as kube:
        found = await find_described(kube, name, namespace)
    if output.is_for_people:
        show_description(
            people(),
            found.topic,
            found.operations,
            found.subscriptions,
            found.events,
            _now(),
            wide=output is Output.WIDE,
        )
    else:
        for_machines(output, found.as_json())


async def find_described(kube: KubeClient, name: str, namespace: str | None) -> Described:
    """A topic and what is about it. Raises CliError, KubeError."""
    body = await find_object(kube, name, namespace)
    where = body["metadata"]["namespace"]
    operations = await as_allowed(list_of(kube, SEGMENT_OPERATIONS, body))
    subscriptions = await as_allowed(list_of(kube, SUBSCRIPTIONS, body))
    events = [
        event
        for event in await as_allowed(kube.list_all(EVENTS, where))
        if (event.get("involvedObject") or {}).get("uid") == body["metadata"]["uid"]
    ]
    return Described(
        body,
        sorted(operations, key=lambda one: str(one["metadata"].get("creationTimestamp")), reverse=True),
        sorted(subscriptions, key=lambda one: str(one["spec"].get("subscription"))),
        sorted(events, key=lambda one: str(one.get("lastTimestamp") or one["metadata"].get("creationTimestamp"))),
    )


async def _chosen(kube: KubeClient, options: GetOptions, where: str | None) -> list[Body]:
    if options.names:
        return [await find_object(kube, name, where) for name in options.names]
    pages = kube.list_pages(TOPICS, where, label_selector=options.selector or "")
    return [body async for page, _ in pages for body in page]


def _now() -> datetime:
    return datetime.now(UTC)
