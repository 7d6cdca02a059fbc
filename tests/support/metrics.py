"""What an operator's metrics page says."""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from tests.support.promtool import run_promtool
from tests.support.running_operator import RunningOperator
from tests.support.waiting import eventually


async def read_metric(operator: RunningOperator, series: str) -> float | None:
    """The value of the first series whose line starts with `series`; None if there is none."""
    text = await read_page(operator)
    return next((float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(series)), None)


async def until_metric(
    operator: RunningOperator, series: str, holds: Callable[[float | None], bool], *, within_seconds: float = 20.0
) -> float | None:
    """Wait until a series is as wanted."""
    return await eventually(
        lambda: read_metric(operator, series), holds, what=f"metric {series}", within_seconds=within_seconds
    )


async def read_page(operator: RunningOperator) -> str:
    """All of an operator's metrics page."""
    async with aiohttp.ClientSession() as session, session.get(f"{operator.metrics_url}/metrics") as response:
        return await response.text()


def sampled(page: str) -> dict[str, float]:
    """The highest value of all series of each name on a page; of histograms, names with `_bucket` and its like."""
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            found[sample.name] = max(sample.value, found.get(sample.name, sample.value))
    return found


def naming_problems(page: str) -> str:
    """What `promtool check metrics`, which knows the naming practice of Prometheus, has to say of a page."""
    done = run_promtool("check", "metrics", given=page)
    return done.stdout + done.stderr
