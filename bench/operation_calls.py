"""How many calls an operation takes: of the brokers' admin API, and writes to the API server, counted by proxies."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

from bench.function_calls import CallCounter
from bench.measurement import Better, Group, Measured, Measurement
from bench.section import Run, Section, Servers
from bench.stage import Stage, stage
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import CONNECTIONS, TOPICS
from scalable_topics_operator.controllers.topic_reconciler import TopicReconciler
from tests.support import manifests
from tests.support.operator_in_process import operator_in_process
from tests.support.proxied_operator import ProxiedOperator, proxied_operator
from tests.support.waiting import eventually
from tests.support.world import phase
from tests.support.world_making import create_namespace, make_world, random_name

_FEW, _MANY = 4, 16
_SUBSCRIPTIONS = ("billing", "audit")
_QUIET_SECONDS = 1.0
# Of time there is enough: only calls count here.
_MOST_SECONDS = 240.0
# Nothing happens but what is asked for.
_LATER = tuple(f"--{what}-seconds=3600" for what in ("relist", "drift", "observe", "prune", "settle-window"))
_FLAGS = (*_LATER, "--log-level=INFO", "--lease-seconds=15")


@dataclass(frozen=True, slots=True)
class _Calls:
    """What was called about one topic.

    Args:
        admin_reads: calls of the brokers that only read.
        admin_writes: all others.
        api_writes: writes to the API server, but for Leases.
    """

    admin_reads: int
    admin_writes: int
    api_writes: int


class _Counted:
    """An operator behind proxies, and what operations on its topics take."""

    def __init__(self, bench: ProxiedOperator) -> None:
        self._bench = bench
        self._world = bench.world

    async def life(self, segments: int) -> dict[str, _Calls]:
        """Of one topic of two or more segments, from its creation to its deletion, by operation."""
        name, world = random_name("counted"), self._world
        manifest = manifests.topic(
            name,
            str(world.topic_name(name)),
            initial=segments,
            bucketBudget=4 * segments,
            subscriptions=_SUBSCRIPTIONS,
            deletionPolicy="Delete",
        )

        async def created() -> None:
            await world.apply(manifest)
            await world.until_ready(name, within_seconds=_MOST_SECONDS)

        async def changed(kind: str, **block: Any) -> None:
            ended = await world.operate(name, kind, within_seconds=_MOST_SECONDS, **block)
            assert phase(ended) == "Succeeded", ended["status"]

        async def deleted() -> None:
            await world.delete(TOPICS, name)
            await world.until_gone(TOPICS, name, within_seconds=_MOST_SECONDS)

        works: dict[str, Callable[[], Awaitable[None]]] = {
            "create": created,
            "split": partial(changed, "Split", segment=0),
            "merge": partial(changed, "Merge", segments=[segments, segments + 1]),
            "rebucket": partial(changed, "Rebucket", segment=1, buckets=8),
            "delete": deleted,
        }
        return {kind: await self._calls(name, work) for kind, work in works.items()}

    async def _calls(self, name: str, work: Callable[[], Awaitable[None]]) -> _Calls:
        kube, admin = self._bench.kube, self._bench.admin
        kube_from, admin_from = len(kube.seen), len(admin.seen)

        def of_brokers() -> list[bool]:
            return [call.is_write for call in admin.seen[admin_from:] if name in call.path]

        def of_objects() -> int:
            return sum(name in call.path or name in call.body for call in kube.writes(kube_from))

        await work()
        seen: list[int] = []

        async def is_quiet() -> bool:
            seen.append(len(of_brokers()) + of_objects())
            return len(seen) > 1 and seen[-1] == seen[-2]

        await eventually(
            is_quiet, what="calls have come to an end", within_seconds=_MOST_SECONDS, every_seconds=_QUIET_SECONDS
        )
        brokers = of_brokers()
        return _Calls(len(brokers) - sum(brokers), sum(brokers), of_objects())


async def _measure(run: Run) -> Measured:
    few: list[dict[str, _Calls]] = []
    many: list[dict[str, _Calls]] = []
    async with stage() as on:
        async with proxied_operator(on.pulsar, on.folder, _FLAGS) as bench:
            await bench.start()
            await bench.world.until_reason("pulsar", "Reconciled", resource=CONNECTIONS)
            counted = _Counted(bench)
            # The first topic of a namespace has the namespace looked at.
            await counted.life(2)
            for _ in range(run.rounds):
                few.append(await counted.life(_FEW))
                many.append(await counted.life(_MANY))
        reconcile = await _reconcile_calls(on)
    return Measured((*_groups(few, many), Group("Function calls", (reconcile,))))


SECTION = Section(
    "operation-calls",
    "What operations take, in calls",
    f"Calls that an operator sends about a topic with {len(_SUBSCRIPTIONS)} subscriptions and without clients, until "
    "no more follow; everything that is done now and then is put off. What a topic takes and what each of its segments "
    f"does is reckoned from topics of {_FEW} and of {_MANY} segments. A split makes two of one segment, and a merge "
    "one of the two. The round with the fewest calls counts. Last, the functions of Python and of C that are called "
    "when a topic is reconciled of which nothing has changed and no look is due.",
    _measure,
    Servers.CLASSIC,
)


def _groups(few: list[dict[str, _Calls]], many: list[dict[str, _Calls]]) -> Iterator[Group]:
    for title, part in (
        ("Writes to the API server", "api_writes"),
        ("Calls of the brokers that change something", "admin_writes"),
        ("Calls of the brokers that read", "admin_reads"),
    ):
        rows = []
        for kind in few[0]:
            # What was sent again, because a server was busy, is none of what an operation takes.
            less, more = (min(getattr(life[kind], part) for life in lives) for lives in (few, many))
            if kind not in ("create", "delete"):
                rows.append(_row(kind, less))
                continue
            each = (more - less) / (_MANY - _FEW)
            rows += [_row(f"{kind}, each topic", less - _FEW * each), _row(f"{kind}, each segment", each)]
        yield Group(title, tuple(rows))


def _row(name: str, value: float) -> Measurement:
    return Measurement(name, "calls", (value,), Better.LOWER, is_exact=True)


async def _reconcile_calls(on: Stage) -> Measurement:
    """Of a reconcile of a topic that is as it shall be, by the operator's own code with all its parts."""
    namespace, name = random_name("counted"), "unchanged"
    await create_namespace(on.kube, namespace)
    found: dict[str, tuple[TopicReconciler, ObjectKey]] = {}
    original = TopicReconciler.reconcile

    async def seen(reconciler: TopicReconciler, key: ObjectKey) -> float | None:
        found[key.name] = reconciler, key
        return await original(reconciler, key)

    world = await make_world(on.kube, on.view, on.pulsar, namespace)
    with patch.object(TopicReconciler, "reconcile", seen):
        async with operator_in_process(namespace):
            manifest = manifests.topic(
                name, str(world.topic_name(name)), initial=_FEW, subscriptions=_SUBSCRIPTIONS, deletionPolicy="Delete"
            )
            await world.apply(manifest)
            await world.until_ready(name)
            counts = [await _reconciled(*found[name]) for _ in range(3)]
            await world.delete(TOPICS, name)
            await world.until_gone(TOPICS, name)
    return _row("reconcile of an unchanged topic", min(counts))


async def _reconciled(reconciler: TopicReconciler, key: ObjectKey) -> int:
    """The calls of one reconcile that neither waited for anything nor found anything to do."""

    async def counted() -> int:
        counter = CallCounter()
        await counter.along(reconciler.reconcile(key))
        return counter.calls if counter.waits == 0 else 0

    return await eventually(counted, what=f"{key.name} has nothing to be done")
