"""`stopics watch`: a topic's layout, or the list of topics, as they change."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

import typer
from rich.console import Console, RenderableType
from rich.live import Live

from scalable_topics_operator.cli.api_server import ApiServer, WatchExpired
from scalable_topics_operator.cli.faults import BadUsage, Refused
from scalable_topics_operator.cli.gateway_access import GatewayOptions
from scalable_topics_operator.cli.get_command import topics_table
from scalable_topics_operator.cli.kubernetes import api_server, find_object, ref_of
from scalable_topics_operator.cli.layout_command import LayoutOptions, layout_json, layout_view, no_layout_json
from scalable_topics_operator.cli.options import Output
from scalable_topics_operator.cli.printing import people, tell
from scalable_topics_operator.cli.segment_facts import FactsSource, TopicFacts, facts_source
from scalable_topics_operator.cli.tables import plain
from scalable_topics_operator.cli.topic_view import TopicView
from scalable_topics_operator.cluster.kube_client import Body
from scalable_topics_operator.cluster.kube_errors import KubeUnavailable
from scalable_topics_operator.cluster.resources import TOPICS

_AGAIN_SECONDS = 1.0
_EPOCHS = 12

Draw = Callable[[RenderableType], None]
Key = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What is watched.

    Args:
        name: of one topic; None for all of a namespace.
        namespace: of the objects; None for the kubeconfig's.
        all_namespaces: whether `namespace` is all there are.
        output: a picture for people, or a JSON object a line.
        interval_seconds: between two looks at load and backlog.
        for_seconds: how long; None until it is ended.
    """

    name: str | None
    namespace: str | None
    all_namespaces: bool
    output: Output
    interval_seconds: float
    for_seconds: float | None

    def check(self) -> None:
        """Raises BadUsage for what does not go together."""
        if self.output is Output.YAML:
            raise BadUsage("watch shows a picture, or with -o json a JSON object a line")
        if self.all_namespaces and (self.name is not None or self.namespace is not None):
            raise BadUsage("--all-namespaces is for the list of topics, without a name and without --namespace")


async def watch(options: WatchOptions, access: GatewayOptions | None) -> None:
    """Show what changes until it is ended. Raises CliError."""
    options.check()
    shown = _watch_one(options, access) if options.name is not None else _watch_all(options)
    try:
        async with asyncio.timeout(options.for_seconds):
            await shown
    except TimeoutError:
        return


async def _watch_one(options: WatchOptions, access: GatewayOptions | None) -> None:
    async with api_server() as kube, facts_source(access) as source:
        metadata = (await find_object(kube, options.name or "", options.namespace))["metadata"]
        screen = _Topic(options, source)
        with screen.live():
            refreshing = asyncio.create_task(screen.refresh())
            try:
                async for changes in _changes(kube, metadata["namespace"], metadata["name"]):
                    for kind, changed in changes:
                        if kind == "DELETED":
                            raise Refused(f"ScalableTopic {metadata['namespace']}/{metadata['name']} was deleted")
                        await screen.take(changed)
            finally:
                refreshing.cancel()


async def _watch_all(options: WatchOptions) -> None:
    bodies: dict[Key, Body] = {}
    async with api_server() as kube:
        where = None if options.all_namespaces else options.namespace or kube.default_namespace
        with _drawing(people(), options) as draw:
            async for changes in _changes(kube, where, None):
                for kind, changed in changes:
                    bodies[_key(changed)] = changed
                    if kind == "DELETED":
                        del bodies[_key(changed)]
                    if options.output is Output.JSON:
                        typer.echo(json.dumps({"type": kind, "object": changed}))
                if options.output is not Output.JSON:
                    draw(_fleet(options, bodies))


def _fleet(options: WatchOptions, bodies: Mapping[Key, Body]) -> RenderableType:
    ordered = [bodies[key] for key in sorted(bodies)]
    wide = options.output is Output.WIDE
    return topics_table(ordered, wide=wide, with_namespace=options.all_namespaces, now=datetime.now(UTC))


class _Topic:
    """One topic on the screen, drawn again when it or its load changes."""

    def __init__(self, options: WatchOptions, source: FactsSource) -> None:
        self._options = options
        self._source = source
        self._console = people()
        self._facts = TopicFacts()
        self._view: TopicView | None = None
        self._draw: Draw = self._console.print

    @contextmanager
    def live(self) -> Iterator[None]:
        """Have the screen."""
        with _drawing(self._console, self._options) as self._draw:
            yield

    async def take(self, body: Body) -> None:
        """Show a new state of the object, with load of its segments."""
        is_news = self._view is None or self._view.status.get("layout") != (body.get("status") or {}).get("layout")
        self._view = TopicView(body)
        if is_news:
            await self._look()
        self._show()

    async def refresh(self) -> None:
        """Look at load and backlog again and again."""
        while True:
            await asyncio.sleep(self._options.interval_seconds)
            await self._look()
            self._show()

    async def _look(self) -> None:
        if self._view is None:
            return
        try:
            found, ref = self._view.layout(), ref_of(self._view.body)
        except Refused:
            # Shown instead of a picture.
            return
        self._facts = await self._source.look(ref, found)

    def _show(self) -> None:
        if self._view is None:
            return None
        try:
            found = self._view.layout()
        except Refused as refusal:
            if self._options.output is Output.JSON:
                return typer.echo(json.dumps(no_layout_json(self._view, str(refusal))))
            return self._draw(plain(refusal))
        if self._options.output is Output.JSON:
            return typer.echo(json.dumps(layout_json(self._view, found, self._facts)))
        options = LayoutOptions(_EPOCHS, self._options.output is Output.WIDE)
        return self._draw(layout_view(self._view, found, self._facts, options, self._console))


@contextmanager
def _drawing(console: Console, options: WatchOptions) -> Iterator[Draw]:
    """A place that is drawn over on a terminal; anywhere else one drawing comes after the other."""
    if not console.is_terminal or not options.output.is_for_people:
        yield console.print
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        yield lambda drawn: live.update(drawn, refresh=True)


async def _changes(kube: ApiServer, namespace: str | None, name: str | None) -> AsyncIterator[list[tuple[str, Body]]]:
    """What there is, and from then on what happens to it, over watches that end or break.

    Args:
        kube: the API server.
        namespace: of the topics; None for all.
        name: of the only one; None for all.
    """
    known: dict[Key, Body] = {}
    version = ""
    while True:
        began = time.monotonic()
        try:
            if not version:
                listed, version = await _listed(kube, namespace, name)
                yield _differences(known, listed)
                known = listed
            async for kind, changed in kube.watch(TOPICS, namespace, version, name):
                version = str(changed["metadata"]["resourceVersion"])
                if kind == "BOOKMARK":
                    continue
                known[_key(changed)] = changed
                if kind == "DELETED":
                    del known[_key(changed)]
                yield [(kind, changed)]
        except WatchExpired:
            version = ""
        except KubeUnavailable as error:
            tell(f"stopics: the Kubernetes API server: {error}; trying again")
        await asyncio.sleep(max(0.0, _AGAIN_SECONDS - (time.monotonic() - began)))


async def _listed(kube: ApiServer, namespace: str | None, name: str | None) -> tuple[dict[Key, Body], str]:
    found: dict[Key, Body] = {}
    version = ""
    only = f"metadata.name={name}" if name is not None else ""
    async for page, listed_at in kube.list_pages(TOPICS, namespace, field_selector=only):
        found |= {_key(body): body for body in page}
        version = listed_at
    return found, version


def _differences(before: Mapping[Key, Body], now: Mapping[Key, Body]) -> list[tuple[str, Body]]:
    gone = [("DELETED", body) for key, body in before.items() if key not in now]
    news = [
        ("MODIFIED" if key in before else "ADDED", body)
        for key, body in now.items()
        if key not in before or before[key]["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"]
    ]
    return gone + news


def _key(body: Body) -> Key:
    return body["metadata"]["namespace"], body["metadata"]["name"]
