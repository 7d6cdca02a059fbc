"""Waiting for what the operator cannot begin without."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from scalable_topics_operator.cluster.kube_errors import KubeUnavailable

logger = logging.getLogger(__name__)

T = TypeVar("T")

_RETRY_SECONDS = 2.0


async def reached(find: Callable[[], Awaitable[T]]) -> T:
    """The API server may come up after us: wait for it, but not for a refusal."""
    while True:
        try:
            return await find()
        except KubeUnavailable as error:
            logger.warning("%s; again in %.0f s", error, _RETRY_SECONDS)
            await asyncio.sleep(_RETRY_SECONDS)


async def unless(stop: asyncio.Event, work: Coroutine[None, None, T]) -> T | None:
    """The result of `work`, or None if `stop` is set first."""
    working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
    done, pending = await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return working.result() if working in done else None
