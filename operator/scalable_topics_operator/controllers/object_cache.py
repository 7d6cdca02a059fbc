"""The objects the operator watches, as last seen: fed by watch events, by lists and by our own writes (R39)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Set

from scalable_topics_operator.cluster.compact_body import compact
from scalable_topics_operator.cluster.kube_client import Body, Resource
from scalable_topics_operator.cluster.object_key import ObjectKey, key_of

IndexFunction = Callable[[Body], str | None]

Listener = Callable[[ObjectKey, Body | None], None]
"""Told of an object's key and what it is now, None once it is gone. Raises nothing, is quick, and changes no cache."""


class ObjectCache:
    """Objects by key, with lookups by index.

    An object is replaced only by a newer one of the same uid (resource versions are comparable numbers), so
    a late watch event never undoes what our own write already told us.
    """

    def __init__(self) -> None:
        # By kind, so that a look at the few connections does not go through all topics.
        self._kinds: defaultdict[str, dict[ObjectKey, Body]] = defaultdict(dict)
        self._indexes: dict[str, tuple[str, IndexFunction, defaultdict[str, set[ObjectKey]]]] = {}
        self._synced: set[str] = set()
        self._changes: Counter[str] = Counter()
        self._listeners: defaultdict[str, list[Listener]] = defaultdict(list)

    def add_index(self, name: str, resource: Resource, function: IndexFunction) -> None:
        """Look objects of a kind up by `function(body)`; None leaves an object out."""
        self._indexes[name] = (resource.plural, function, defaultdict(set))

    def listen(self, resource: Resource, listener: Listener) -> None:
        """Have a listener told of everything of a kind that is taken in, replaced or taken out from now on.

        It is told at once and in order, by whatever the cache is fed: a replacement by an object of another uid is one
        change.
        """
        self._listeners[resource.plural].append(listener)

    def get(self, key: ObjectKey) -> Body | None:
        """The object, or None."""
        return self._kinds[key.plural].get(key)

    def all(self, resource: Resource) -> Iterator[tuple[ObjectKey, Body]]:
        """All objects of a kind, as they are now."""
        return iter(list(self._kinds[resource.plural].items()))

    def count(self, resource: Resource) -> int:
        """How many objects of a kind there are."""
        return len(self._kinds[resource.plural])

    def find(self, index: str, value: str) -> list[tuple[ObjectKey, Body]]:
        """Objects whose index function gives `value`."""
        objects = self._kinds[self._indexes[index][0]]
        return [(key, objects[key]) for key in sorted(self.keys(index, value), key=str)]

    def keys(self, index: str, value: str) -> Set[ObjectKey]:
        """Keys of the objects whose index function gives `value`, in no order; good until the cache changes."""
        return self._indexes[index][2].get(value, frozenset())

    def observe(self, resource: Resource, body: Body) -> bool:
        """Take in an object; answers whether it is news."""
        key = key_of(resource, body)
        known = self.get(key)
        if known is not None and known["metadata"]["uid"] == body["metadata"]["uid"] and not _newer(body, known):
            return False
        self._drop(key)
        body = self._kinds[key.plural][key] = compact(body)
        self._changes[key.plural] += 1
        for plural, function, entries in self._indexes.values():
            if plural == key.plural and (value := function(body)) is not None:
                entries[value].add(key)
        self._tell(key, body)
        return True

    def remove(self, key: ObjectKey, uid: str | None = None) -> bool:
        """Take out an object, if it is the one with `uid`; answers whether it was there."""
        known = self.get(key)
        if known is None or (uid is not None and known["metadata"]["uid"] != uid):
            return False
        self._drop(key)
        self._tell(key, None)
        return True

    def drop_unlisted(
        self, resource: Resource, namespace: str | None, listed: Set[ObjectKey], list_version: str
    ) -> list[ObjectKey]:
        """Take out what a complete list does not have; answers those keys (missed deletes).

        Args:
            resource: the kind listed.
            namespace: the namespace listed; None for all.
            listed: keys of the whole list.
            list_version: its resource version; an object made since is not taken for gone.
        """
        gone = [
            key
            for key, body in self.all(resource)
            if key not in listed
            and namespace in (None, key.namespace)
            and not _newer_than(body["metadata"]["resourceVersion"], list_version)
        ]
        for key in gone:
            self._drop(key)
            self._tell(key, None)
        return gone

    def changes(self, resource: Resource) -> int:
        """Another number than before whenever an object of the kind was taken in, replaced or taken out."""
        return self._changes[resource.plural]

    def mark_synced(self, resource: Resource) -> None:
        """Note that the kind has been listed completely."""
        self._synced.add(resource.plural)

    def synced(self, resource: Resource) -> bool:
        """Whether a complete list of the kind was seen."""
        return resource.plural in self._synced

    def _tell(self, key: ObjectKey, body: Body | None) -> None:
        for listener in self._listeners[key.plural]:
            listener(key, body)

    def _drop(self, key: ObjectKey) -> None:
        known = self._kinds[key.plural].pop(key, None)
        if known is None:
            return
        self._changes[key.plural] += 1
        for plural, function, entries in self._indexes.values():
            if plural == key.plural and (value := function(known)) is not None:
                entries[value].discard(key)
                if not entries[value]:
                    del entries[value]


def _newer(body: Body, known: Body) -> bool:
    return _newer_than(body["metadata"]["resourceVersion"], known["metadata"]["resourceVersion"])


def _newer_than(version: str, other: str) -> bool:
    if version.isdecimal() and other.isdecimal():
        return int(version) > int(other)
    return version != other
