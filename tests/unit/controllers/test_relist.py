"""Lists of everything cost a page of memory, not a fleet of it (R39)."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

from scalable_topics_operator.cluster.kube_client import LIST_CHUNK, Resource
from scalable_topics_operator.cluster.kube_errors import KubeUnavailable
from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import TOPICS
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.relist import Relister
from scalable_topics_operator.controllers.watching import _make_settings

_PAGE, _PAGES = 10, 8


class _Part(dict[str, Any]):
    """Part of an object; a plain dictionary cannot be asked whether it is still there."""


class _PagedServer:
    """Answers lists page by page, each time with objects of its own.

    Args:
        fails_at: the page that is not answered; none if negative.
    """

    def __init__(self, fails_at: int = -1) -> None:
        self.fails_at = fails_at
        self.names = [f"t{number}" for number in range(_PAGE * _PAGES)]
        self.made: list[weakref.ref[_Part]] = []
        self.most_alive = 0

    async def list_pages(
        self, resource: Resource, namespace: str | None = None
    ) -> AsyncIterator[tuple[list[dict[str, Any]], str]]:
        for page in range(_PAGES):
            if page == self.fails_at:
                raise KubeUnavailable("list", 503, "")
            yield [self._made(name) for name in self.names[page * _PAGE : (page + 1) * _PAGE]], "9"
            gc.collect()
            self.most_alive = max(self.most_alive, sum(one() is not None for one in self.made))

    def _made(self, name: str) -> dict[str, Any]:
        part = _Part()
        self.made.append(weakref.ref(part))
        return {"metadata": {"namespace": "ns", "name": name, "uid": name, "resourceVersion": "5"}, "spec": part}


def _relister(server: _PagedServer, cache: ObjectCache, told: list[ObjectKey]) -> Relister:
    return Relister(server, cache, (TOPICS,), (), 300.0, told.append)  # type: ignore[arg-type]


async def test_an_unchanged_fleet_is_never_in_memory_twice() -> None:
    """`bodies` of the whole list beside the cache doubled the memory of a replica every five minutes."""
    server, cache, told = _PagedServer(), ObjectCache(), list[ObjectKey]()
    relister = _relister(server, cache, told)
    assert await relister.round()
    assert len(told) == _PAGE * _PAGES
    told.clear()
    # The kept ones and at most one page beside them.
    server.most_alive = 0
    assert await relister.round()
    assert told == []
    assert server.most_alive <= _PAGE * _PAGES + _PAGE


async def test_what_a_page_tells_is_known_even_if_the_next_one_fails_but_nothing_is_taken_for_gone() -> None:
    """Hazard C30: a list that is not complete says nothing of what is not on it."""
    server, cache, told = _PagedServer(), ObjectCache(), list[ObjectKey]()
    relister = _relister(server, cache, told)
    assert await relister.round()
    told.clear()
    server.names = [f"new-{number}" for number in range(_PAGE)] + server.names[2 * _PAGE :]
    server.fails_at = 3
    assert not await relister.round()
    assert {key.name for key in told} == {f"new-{number}" for number in range(_PAGE)}
    assert cache.count(TOPICS) == _PAGE * _PAGES + _PAGE
    server.fails_at = -1
    assert await relister.round()
    assert cache.count(TOPICS) == len(server.names)


def test_kopf_lists_in_pages_too() -> None:
    assert _make_settings().watching.chunk_size == LIST_CHUNK
