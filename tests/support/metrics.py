"""What an operator's metrics page says."""

from __future__ import annotations

from collections.abc import Callable

import aiohttp

from tests.support.running_operator import RunningOperator
from tests.support.waiting import eventually


async def read_metric(operator: RunningOperator, series: str) -> float | None:
    """The value of the first series whose line starts with `series`; None if there is none."""
    async with aiohttp.ClientSession() as session, session.get(f"{operator.metrics_url}/metrics") as response:
        text = await response.text()
    return next((float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(series)), None)


async def until_metric(
    operator: RunningOperator, series: str, holds: Callable[[float | None], bool], *, within_seconds: float = 20.0
) -> float | None:
    """Wait until a series is as wanted."""
    return await eventually(
        lambda: read_metric(operator, series), holds, what=f"metric {series}", within_seconds=within_seconds
    )
