"""Growth on paper, and the control plane of a fleet in virtual time beside it: `make growth`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from pathlib import Path

import pytest

from bench.growth import Costs, Fleet
from bench.growth_costs import HistoryCosts, SampleCosts, TopicCosts, measure_history, measure_sample, measure_topics
from bench.growth_formulas import FORMULAS
from bench.growth_limits import PLANS, first_limits, sealed_that_fit
from scalable_topics_operator.settings import OperatorSettings
from tests.simulation.fleet.api_server import Body
from tests.simulation.fleet.virtual_time import VirtualLoop, run_virtually
from tests.simulation.growth.counting import Counted, count_calls
from tests.simulation.growth.scenarios import Story, tell
from tests.simulation.growth.whole import TopicShape, WholeFleet
from tests.support.evidence import Evidence, table

# Topics, replicas, shards.
_FLEETS = tuple(
    tuple(int(number) for number in one.split("/"))
    for one in os.environ.get("GROWTH_FLEETS", "1000/3/12,5000/3/12,10000/4/16").split(",")
)
_MOST_SECONDS = float(os.environ.get("GROWTH_SECONDS", "600"))
_SHAPES = (TopicShape(1, 2), TopicShape(4, 2), TopicShape(10, 2))
_COPIES = 3_000
_ROOT = Path(__file__).parents[2]
_FOUND, _RESULTS, _LIMITS = "What comes of it", "Needs", "First limits"
_COMPARED, _HAPPENED = "Paper and simulation", "What happens to a fleet"
_COSTS, _COUNTED, _MEASURED, _FORMULAS = "Costs", "Calls, counted", "Process, measured", "Formulas"
_PARTS = (_FOUND, _RESULTS, _LIMITS, _COMPARED, _HAPPENED, _COSTS, _COUNTED, _MEASURED, _FORMULAS)


@pytest.fixture(scope="module")
def evidence() -> Iterator[Evidence]:
    page = Evidence("growth.md", "Growth on paper and in virtual time", "make growth", _PARTS)
    yield page
    page.write()


@pytest.mark.timeout(3600)
def test_what_a_million_topics_need(evidence: Evidence, tmp_path: Path) -> None:
    costs = Costs().with_report(_ROOT / "docs" / "benchmarks.json")
    counted = {shape: count_calls(1, shape) for shape in _SHAPES}
    body = run_virtually(0, _body(_SHAPES[-1]))
    measured = measure_topics(body, _COPIES), measure_sample(), measure_history(tmp_path)
    began = time.monotonic()
    stories: list[Story] = []
    for topics, replicas, shards in _FLEETS:
        if stories and time.monotonic() - began > _MOST_SECONDS / 2:
            # Each is larger than all before it: on a busy machine a smaller one has to do.
            break
        stories.append(tell(Fleet(topics, replicas=replicas, shards=shards), costs))
    for story in stories:
        assert all(0.5 < one.ratio < 2.0 for one in story.compared), story.compared
    evidence.show(_FOUND, *_found_lines(costs, stories))
    evidence.show(_RESULTS, *_result_lines(costs))
    evidence.show(_LIMITS, *_limit_lines(costs))
    evidence.show(_COMPARED, *_compared_lines(stories))
    evidence.show(_HAPPENED, *_seen_lines(stories))
    evidence.show(_COSTS, *_cost_lines(costs))
    evidence.show(_COUNTED, *_counted_lines(counted))
    evidence.show(_MEASURED, *_process_lines(*measured))
    evidence.show(_FORMULAS, *_formula_lines())


async def _body(shape: TopicShape) -> Body:
    """A topic as the operator has made and split it."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    fleet = WholeFleet(loop, OperatorSettings(), shape)
    fleet.start_replica()
    fleet.make_topics(1)
    await fleet.until_ready()
    fleet.request("t0", "Split", "split", segment=0)
    await fleet.until(lambda: next(fleet.topics())["status"]["segments"]["sealed"] == 1, "it is split")
    body = next(fleet.topics())
    await fleet.stop()
    return body


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2g}" if value < 1 else f"{value:.1f}"


def _found_lines(costs: Costs, stories: list[Story]) -> list[str]:
    ratios = [one.ratio for story in stories for one in story.compared]
    largest = stories[-1].fleet
    first, topics = first_limits(costs, Fleet(1))[0]
    return [
        f"- Of all that was compared, up to {largest.topics:,} topics under {largest.replicas} replicas, the "
        f"simulation comes to {min(ratios):.2f} to {max(ratios):.2f} times what is on paper. Beyond that size nothing "
        "was run.",
        f"- With default settings and three replicas the first limit is met at {topics:,} topics of 10 segments: "
        f"{first.what}.",
        "- Every replica keeps all topics that its installation watches, whoever leads them: memory, lists and watch "
        "events do not shrink with more replicas. What grows beyond one installation is split by `--namespaces`.",
        f"- An object holds {sealed_that_fit(costs):,} sealed segments before etcd refuses it; the operator stops "
        "changing a topic by itself at 410 records.",
    ]


def _result_lines(costs: Costs) -> list[str]:
    settings: list[tuple[str, Callable[[Fleet], str]]] = [
        ("brokers", lambda f: f"{f.brokers:,}"),
        ("Kubernetes clusters", lambda f: f"{f.kubernetes}"),
        ("installations, each with a Pulsar cluster", lambda f: f"{f.installations}"),
        ("replicas, `--shards` of each", lambda f: f"{f.replicas}, {f.shards}"),
        ("`--relist-seconds`, `--drift-seconds`", lambda f: f"{f.relist_seconds:g}, {f.drift_seconds:g}"),
        ("`spec.load.intervalSeconds`", lambda f: f"{f.load_seconds:g}"),
        ("splits and merges, other changes, a topic and day", lambda f: f"{f.splits_a_day:g}, {f.changes_a_day:g}"),
        ("watch sessions", lambda f: f"{f.sessions:,}"),
    ]
    rows: list[tuple[object, ...]] = [(name, *(show(plan) for plan in PLANS.values())) for name, show in settings]
    rows += [
        (f"{one.part}: {one.name}", *(_number(one.value(costs, plan)) for plan in PLANS.values())) for one in FORMULAS
    ]
    return [
        "10 active segments and 2 subscriptions a topic. The first rows are what was chosen, all others follow.",
        "",
        *table(("", *PLANS), rows),
    ]


def _limit_lines(costs: Costs) -> list[str]:
    three, many = Fleet(1), Fleet(1, brokers=1_000)
    beyond = {limit.what: topics for limit, topics in first_limits(costs, many)}
    rows = [
        (f"{topics:,}", f"{beyond[limit.what]:,}", limit.what, limit.remedy)
        for limit, topics in first_limits(costs, three)
    ]
    return [
        "One installation with default settings and three replicas; how many topics of 10 segments it may have.",
        "",
        *table(("10 brokers", "1,000 brokers", "until", "then"), rows),
    ]


def _compared_lines(stories: list[Story]) -> list[str]:
    rows = []
    for index, one in enumerate(stories[0].compared):
        cells = [
            f"{_number(same.paper)} / {_number(same.simulated)} / {same.ratio:.2f}"
            for same in (story.compared[index] for story in stories)
        ]
        rows.append((one.what, *cells))
    return [
        "Elections, shards, caches, lists, watch handling and work queues are the operator's own code; servers, and "
        "what a reconcile asks of them, are numbers. Paper / simulated / ratio.",
        "",
        *table(("", *map(_title, stories)), rows),
    ]


def _seen_lines(stories: list[Story]) -> list[str]:
    lines = []
    for story in stories:
        rows = [
            (
                seen.what,
                f"{seen.seconds:.0f} s" if seen.seconds else "-",
                f"{seen.most_waiting:,}",
                f"{seen.longest_unseen_seconds:.0f} s",
                f"{seen.api_calls_a_second:,}",
                f"{seen.broker_calls_a_second:,.0f}",
            )
            for seen in story.seen
        ]
        header = (
            *(_title(story), "until all is looked after", "longest queue of a replica", "longest without a look"),
            *("API calls, busiest second", "admin calls a second, mean"),
        )
        lines += [
            *table(header, rows),
            "",
            f"A change is in the status after {story.median_latency:.2f} s, 99 of 100 after "
            f"{story.late_latency:.2f} s.",
            "",
        ]
    return [
        *lines,
        "At rest each topic is decided on every 60 s. The first start ever takes longer: who makes the installation's "
        "record takes all shards, and offers them to others after two leases.",
    ]


def _title(story: Story) -> str:
    fleet = story.fleet
    return f"{fleet.topics:,} topics, {fleet.replicas} replicas, {fleet.shards} shards"


def _cost_lines(costs: Costs) -> list[str]:
    rows = []
    for one in fields(Costs):
        where = one.metadata["where"].replace("](evidence/", "](").replace("](growth.md", "](#process-measured")
        value = getattr(costs, one.name)
        shown = f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
        rows.append((f"`{one.name}`", shown, one.metadata["unit"], where, one.metadata["spread"]))
    return table(("", "value", "unit", "from", "uncertain"), rows)


def _counted_lines(counted: dict[TopicShape, Counted]) -> list[str]:
    names = (("create", "made"), ("take_over", "taken over"), ("drift_look", "compared"), ("split", "split"))
    rows: list[tuple[object, ...]] = []
    for name, what in names:
        calls = [getattr(one, name) for one in counted.values()]
        rows.append(
            (
                f"a topic is {what}: admin calls, reads, writes",
                *(f"{c.broker:g}, {c.reads:g}, {c.writes:g}" for c in calls),
            )
        )
    rows += [
        (what, *(f"{getattr(one, name):,.0f}" for one in counted.values()))
        for name, what in (
            ("object_bytes", "bytes of JSON, just made"),
            ("object_bytes_with_history", "after 24 changes, sealed segments pruned"),
            ("sealed_bytes", "of each sealed segment that waits"),
        )
    ]
    return [
        "The whole operator on model brokers that take as many requests as the real ones; 2 subscriptions a topic.",
        "",
        *table(("", *(f"{shape.segments} segments" for shape in counted)), rows),
    ]


def _process_lines(*measured: TopicCosts | SampleCosts | HistoryCosts) -> list[str]:
    rows = [(f"`{name}`", f"{value:.3g}") for costs in measured for name, value in asdict(costs).items()]
    return [
        f"{_COPIES:,} copies of a topic of 11 active segments, taken in by the process's own cache and indexes, "
        "without kopf; seconds of a core, bytes resident or written.",
        "",
        *table(("", "measured"), rows),
    ]


def _formula_lines() -> list[str]:
    return table(("", "formula"), [(f"{one.part}: {one.name}", f"`{one.text}`") for one in FORMULAS])
