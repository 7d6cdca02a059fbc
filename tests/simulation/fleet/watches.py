"""What kopf tells a replica: events that come late, twice, or not at all, and listings after a gap."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scalable_topics_operator.cluster.kube_client import Resource
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of
from scalable_topics_operator.controllers.object_cache import ObjectCache
from scalable_topics_operator.controllers.watching import take_event
from scalable_topics_operator.operator_process import WATCHED
from tests.simulation.fleet.api_server import Event, ModelApiServer
from tests.simulation.fleet.network import Sender
from tests.simulation.fleet.virtual_time import VirtualLoop

_KINDS: Mapping[str, Resource] = {resource.plural: resource for resource in WATCHED}
_SOON_SECONDS = (0.001, 0.03)
_LATE_SECONDS = (0.5, 15.0)
_AWAKE_LOOK_SECONDS = 0.1


@dataclass(slots=True)
class WatchFaults:
    """What may happen to an event.

    Args:
        late: chance that it comes late, and all after it, 0..1.
        twice: chance that it comes twice.
        never: chance that it does not come.
    """

    late: float = 0.0
    twice: float = 0.0
    never: float = 0.0


class Watch:
    """One replica's watches of all kinds.

    Args:
        server: the API server.
        sender: the replica.
        cache: it feeds.
        on_change: called with the key of each object that is news or gone.
        on_listing: called when everything is listed again.
        loop: the time.
        chances: draw what goes wrong.
        faults: what may.
    """

    def __init__(
        self,
        server: ModelApiServer,
        sender: Sender,
        cache: ObjectCache,
        on_change: Callable[[ObjectKey], None],
        on_listing: Callable[[], None],
        loop: VirtualLoop,
        chances: random.Random,
        faults: WatchFaults,
    ) -> None:
        self._server = server
        self.sender = sender
        self._cache = cache
        self._on_change = on_change
        self._on_listing = on_listing
        self._loop = loop
        self._chances = chances
        self._faults = faults
        self._last_due: dict[str, float] = {}
        self._held: list[tuple[str | None, ObjectKey, str]] = []
        self._is_broken = False
        self._is_closed = False
        self._unwatch = server.watch(self._heard)
        self._list()

    def close(self) -> None:
        """Watch no more."""
        if not self._is_closed:
            self._is_closed = True
            self._unwatch()

    def break_for(self, seconds: float) -> None:
        """Hear nothing for so long; then everything is listed."""
        if self._is_broken or self._is_closed:
            return
        self._is_broken = True
        self._loop.call_later(seconds, self._again)

    def _again(self) -> None:
        self._is_broken = False
        if not self._is_closed:
            self._list()

    def _list(self) -> None:
        for plural, resource in _KINDS.items():
            for body in self._server.all(plural):
                self._tell_later(None, key_of(resource, body), json.dumps(body))

    def _heard(self, event: Event) -> None:
        if event.key.plural not in _KINDS or self._is_broken or self._chances.random() < self._faults.never:
            return
        self._tell_later(event.kind, event.key, event.text)
        if self._chances.random() < self._faults.twice:
            self._tell_later(event.kind, event.key, event.text)

    def _tell_later(self, kind: str | None, key: ObjectKey, text: str) -> None:
        late = self._chances.random() < self._faults.late
        delay_seconds = self._chances.uniform(*(_LATE_SECONDS if late else _SOON_SECONDS))
        # One stream a kind keeps its order.
        due = max(self._last_due.get(key.plural, 0.0), self._loop.time() + delay_seconds)
        self._last_due[key.plural] = due
        self._loop.call_at(due, self._tell, kind, key, text)

    def _tell(self, kind: str | None, key: ObjectKey, text: str) -> None:
        if self._is_closed:
            return
        if self.sender.is_stopped or self._held:
            # It reads on when it is awake, in the order of what came.
            if not self._held:
                self._loop.call_later(_AWAKE_LOOK_SECONDS, self._read_on)
            self._held.append((kind, key, text))
            return
        self._take(kind, key, text)

    def _read_on(self) -> None:
        if self._is_closed:
            return
        if self.sender.is_stopped:
            self._loop.call_later(_AWAKE_LOOK_SECONDS, self._read_on)
            return
        held, self._held = self._held, []
        for one in held:
            self._take(*one)

    def _take(self, kind: str | None, key: ObjectKey, text: str) -> None:
        take_event(kind, json.loads(text), _KINDS[key.plural], self._cache, self._on_change, self._on_listing)
