"""`stopics layout`: a topic's ring over its epochs, with load and backlog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.text import Text

from scalable_topics.layout import Segment, SegmentLayout
from scalable_topics_operator.cli.gateway_access import GatewayOptions
from scalable_topics_operator.cli.kubernetes import api_server, find_object, ref_of
from scalable_topics_operator.cli.layout_picture import (
    epoch_rows,
    glyphs_for,
    hidden,
    legend,
    picture,
)
from scalable_topics_operator.cli.options import Output
from scalable_topics_operator.cli.printing import for_machines, people
from scalable_topics_operator.cli.segment_facts import ALL_SEGMENTS, SegmentFacts, TopicFacts, facts_source
from scalable_topics_operator.cli.segment_table import segments_table
from scalable_topics_operator.cli.tables import plain
from scalable_topics_operator.cli.topic_view import TopicView, age, amount, ids

_MARGIN, _NARROWEST, _WIDEST = 34, 16, 128


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """What is shown of a layout.

    Args:
        epochs: how many of the newest; 0 for all.
        wide: all sealed segments are in the table.
    """

    epochs: int
    wide: bool


async def layout(
    name: str, namespace: str | None, output: Output, options: LayoutOptions, access: GatewayOptions | None
) -> None:
    """Show a topic's layout. Raises CliError.

    Args:
        name: of the ScalableTopic, or its topic's.
        namespace: of the object; None for the kubeconfig's.
        output: how it is shown.
        options: what is shown.
        access: how the gateway is reached; None if it is not to be asked.
    """
    async with api_server() as kube:
        view = TopicView(await find_object(kube, name, namespace))
    found, ref = view.layout(), ref_of(view.body)
    async with facts_source(access) as source:
        facts = await source.look(ref, found)
    if output.is_for_people:
        console = people()
        console.print(layout_view(view, found, facts, options, console))
    else:
        for_machines(output, layout_json(view, found, facts))


def layout_view(
    view: TopicView, found: SegmentLayout, facts: TopicFacts, options: LayoutOptions, console: Console
) -> RenderableType:
    """The picture and what belongs to it, as wide as the console."""
    glyphs = glyphs_for(console.encoding)
    width = max(_NARROWEST, min(_WIDEST, console.width - _MARGIN))
    rows = epoch_rows(found)
    shown = rows[-options.epochs :] if options.epochs else rows
    parts: list[RenderableType] = [_head(view, found), _load_line(facts)]
    if len(rows) > len(shown):
        parts.append(Text(f"{len(rows) - len(shown)} older epochs: --epochs 0 shows all", "dim"))
    parts += picture(shown, facts, width, glyphs)
    if narrow := hidden(shown[-1], width):
        parts.append(Text(f"{narrow} segments are too narrow for this picture; they are in the table", "yellow"))
    if any(one.ratio is not None for one in facts.segments.values()):
        parts.append(Text(legend(glyphs), "dim"))
    parts += [Text(), segments_table(found, facts, wide=options.wide)]
    return Group(*parts)


def layout_json(view: TopicView, found: SegmentLayout, facts: TopicFacts) -> Mapping[str, Any]:
    """The same for machines."""
    return {
        "scalableTopic": f"{view.namespace}/{view.name}",
        "topic": view.topic,
        "epoch": found.epoch,
        "nextSegmentId": found.next_segment_id,
        "operation": view.status.get("operation"),
        "load": {"known": not facts.why, "why": facts.why, "ageSeconds": facts.load_age_seconds},
        "backlog": dict(facts.backlog),
        "backlogOf": facts.backlog_of,
        "epochs": [
            {"epoch": row.epoch, "sinceMs": row.at_ms, "segments": [one.segment_id for one in row.segments]}
            for row in epoch_rows(found)
        ],
        "segments": [_segment_json(one, facts.of(one.segment_id)) for one in found.segments.values()],
    }


def no_layout_json(view: TopicView, problem: str) -> Mapping[str, Any]:
    """The same of a topic without one, which has no epoch.

    Args:
        view: the topic.
        problem: why it has none.
    """
    return {
        "scalableTopic": f"{view.namespace}/{view.name}",
        "topic": view.topic,
        "epoch": None,
        "problem": problem,
    }


def _segment_json(segment: Segment, known: SegmentFacts) -> Mapping[str, Any]:
    return {
        "id": segment.segment_id,
        "range": segment.hash_range.descriptor,
        "state": segment.state.value,
        "buckets": segment.buckets,
        "mergeDepth": segment.merge_depth,
        "createdBy": segment.created_by.value,
        "createdAtEpoch": segment.created_at_epoch,
        "sealedAtEpoch": None if segment.is_active else segment.sealed_at_epoch,
        "parents": list(segment.parent_ids),
        "children": list(segment.child_ids),
        "rates": None if known.rates is None else dict(known.rates),
        "loadRatio": known.ratio,
        "backlog": None if known.backlog is None else dict(known.backlog),
    }


def _head(view: TopicView, found: SegmentLayout) -> Text:
    head = Text.assemble((plain(view.topic), "bold"))
    head.append(f"  epoch {found.epoch}, {len(found.active)} active, {len(found.sealed)} sealed segments")
    if operation := view.status.get("operation"):
        made = ids(child["id"] for child in operation.get("children") or ())
        head.append(
            f"  {plain(operation.get('kind'))} of {ids(operation.get('parents') or ())} into {made}: ", "yellow"
        )
        head.append(plain(operation.get("step")), "yellow")
    return head


def _load_line(facts: TopicFacts) -> Text:
    if facts.why:
        return Text.assemble(("load and backlog: ", "bold"), (f"not known: {plain(facts.why)}", "yellow"))
    line = Text.assemble(("load: ", "bold"), f"{age(facts.load_age_seconds)} old")
    if facts.load_age_seconds is None:
        line = Text.assemble(("load: ", "bold"), ("not measured yet", "yellow"))
    where = "" if facts.backlog_of == ALL_SEGMENTS else f" in {facts.backlog_of}"
    for name, messages in facts.backlog.items():
        line.append_text(Text.assemble((f"  backlog of {plain(name)}{where}", "bold"), f": {amount(messages)}"))
    return line
