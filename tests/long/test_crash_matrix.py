"""kill -9 of the operator at every write of every kind of work, three ways (R8, R9): `make show-crash-matrix`."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.crash_scenarios import survive
from tests.support.crash_steps import STEPS, Death, Kind
from tests.support.evidence import Evidence, table
from tests.support.proxied_operator import ProxiedOperator

pytestmark = pytest.mark.asyncio(loop_scope="module")

_SUMMARY, _STEPS = "Cases", "Steps"
_LATE_SECONDS = 60.0
CASES = [(kind, death) for kind in STEPS for death in Death]


@pytest.fixture(scope="module")
def seconds_of() -> Iterator[dict[tuple[Kind, Death], float]]:
    """How long each case took that ended well; written down if these are all there are."""
    evidence = Evidence(
        "crash-matrix.md", "kill -9 at every step of every kind of work", "make show-crash-matrix", (_SUMMARY, _STEPS)
    )
    seconds: dict[tuple[Kind, Death], float] = {}
    yield seconds
    if seconds.keys() == set(CASES):
        evidence.show(_SUMMARY, *_summary(seconds))
        evidence.show(_STEPS, *(f"- **{kind}**: {', '.join(step.name for step in STEPS[kind])}" for kind in STEPS))
        evidence.write()


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("kind", "death"), CASES)
async def test_work_survives_the_death_of_the_operator_at_every_step(
    bench: ProxiedOperator, seconds_of: dict[tuple[Kind, Death], float], kind: Kind, death: Death
) -> None:
    started = time.monotonic()
    await survive(bench, [(kind, step) for step in STEPS[kind]], death, late_seconds=_LATE_SECONDS)
    seconds_of[kind, death] = time.monotonic() - started


def _summary(seconds: dict[tuple[Kind, Death], float]) -> list[str]:
    rows = [(kind, len(STEPS[kind]), *(f"{seconds[kind, death]:.0f} s" for death in Death)) for kind in STEPS]
    deaths = len(Death) * sum(len(steps) for steps in STEPS.values())
    return [
        f"All {deaths} cases ended well. The operator reaches the API server and the brokers only through proxies.",
        "On one topic for each step of a kind of work, the write of that step is held; when all are, the operator is",
        "killed with SIGKILL and another process is started. *before*: the held writes never arrive. *after*: they",
        "take effect and their replies find nobody. *late*: they arrive only after the next process has finished,",
        f"{_LATE_SECONDS:.0f} s after the death or later.",
        "",
        "Checked for each: the SegmentOperation has succeeded (the topic is Ready, or gone), once, under the ids its",
        "journal reserved; brokers and record hold the same segments in the same states; every segment has every",
        "cursor, declared and found; no segment id was used by two operations; late status writes are refused.",
        "",
        "Times are of a whole row of steps, from the first topic made to the last one checked.",
        "",
        *table(("work", "steps", *Death), rows),
    ]
