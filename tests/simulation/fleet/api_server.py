"""A Kubernetes API server in memory: objects, versions, finalizers, subresources, watches.

What it does is compared with a real one by `tests/integration/contract`; what is not asked of it, it does not have:
no schemas, no rights, no managed fields.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from scalable_topics_operator.cluster.object_key import ObjectKey
from scalable_topics_operator.cluster.resources import NAMESPACES

Body = dict[str, Any]
# A PUT makes what is missing, whatever version it names.
_MADE_BY_REPLACING = frozenset({"leases"})
_NO_SPEC_GENERATION = frozenset({"leases", "configmaps", "secrets", "events", "namespaces"})


@dataclass(frozen=True, slots=True)
class Event:
    """What a watch tells.

    Args:
        kind: `ADDED`, `MODIFIED` or `DELETED`.
        key: of the object.
        text: the object as JSON, so that nobody changes what another one sees.
    """

    kind: str
    key: ObjectKey
    text: str


class Refused(Exception):
    """An answer other than success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class _Place:
    plural: str
    namespace: str
    name: str
    subresource: str

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.plural, self.namespace, self.name)


class ModelApiServer:
    """An API server. It has the namespace kube-system from the beginning, by which installations are told apart.

    Args:
        timestamp: the present time as Kubernetes writes it.
    """

    def __init__(self, timestamp: Callable[[], str]) -> None:
        self._timestamp = timestamp
        # By kind: a look at a few Leases does not go through all topics.
        self._kinds: defaultdict[str, dict[ObjectKey, str]] = defaultdict(dict)
        self._version = 0
        self._uids = 0
        self._watchers: list[Callable[[Event], None]] = []
        self._judges: list[Callable[[ObjectKey, Body | None, Body | None], None]] = []
        system = {"apiVersion": NAMESPACES.api_version, "kind": NAMESPACES.kind, "metadata": {"name": "kube-system"}}
        self.user("POST", NAMESPACES.path(), system)

    # For those around it

    def watch(self, tell: Callable[[Event], None]) -> Callable[[], None]:
        """Tell of every change from now on, until what is answered is called."""
        self._watchers.append(tell)
        return lambda: self._watchers.remove(tell)

    def judge(self, judge: Callable[[ObjectKey, Body | None, Body | None], None]) -> None:
        """Call with every object before and after each change, in the moment it takes effect."""
        self._judges.append(judge)

    def all(self, plural: str) -> Iterator[Body]:
        """All objects of a kind, by name."""
        for _, text in self._sorted(plural):
            yield json.loads(text)

    def get(self, key: ObjectKey) -> Body | None:
        """An object."""
        text = self._kinds[key.plural].get(key)
        return json.loads(text) if text is not None else None

    def _sorted(self, plural: str) -> list[tuple[ObjectKey, str]]:
        return sorted(self._kinds[plural].items(), key=lambda item: str(item[0]))

    # What it answers

    def user(self, method: str, path: str, body: Body | None = None) -> Body:
        """A request of somebody else than replicas, which always arrives. Raises AssertionError when it is refused."""
        status, text = self.request(method, path, {}, json.dumps(body) if body is not None else None)
        assert status < 300, f"{method} {path}: {status} {text}"
        answer: Body = json.loads(text)
        return answer

    def request(
        self, method: str, path: str, params: Mapping[str, str] | None = None, data: str | None = None
    ) -> tuple[int, str]:
        """Answer one request; answers its status and the text of the answer."""
        place = _parse(path)
        body = json.loads(data) if data else {}
        try:
            if method == "GET":
                answer = self._list(place, params or {}) if not place.name else self._read(place)
            else:
                answer = {"POST": self._create, "PUT": self._replace, "PATCH": self._patch, "DELETE": self._delete}[
                    method
                ](place, body)
        except Refused as refused:
            return refused.status, json.dumps({"message": str(refused)})
        return 201 if method == "POST" else 200, json.dumps(answer)

    def _list(self, place: _Place, params: Mapping[str, str]) -> Body:
        selector = params.get("labelSelector", "")
        items = [
            body
            for body in self.all(place.plural)
            if place.namespace in ("", body["metadata"].get("namespace", ""))
            and (not selector or selector in (body["metadata"].get("labels") or {}))
        ]
        return {"items": items, "metadata": {"resourceVersion": str(self._version)}}

    def _read(self, place: _Place) -> Body:
        return json.loads(self._text(place))  # type: ignore[no-any-return]

    def _create(self, place: _Place, body: Body) -> Body:
        for field in ("apiVersion", "kind"):
            if field not in body:
                raise Refused(400, f"{place.plural}: the body has no {field}")
        name = body["metadata"]["name"]
        key = ObjectKey(place.plural, place.namespace, name)
        if key in self._kinds[key.plural]:
            raise Refused(409, f"{place.plural} {name!r} already exists")
        self._uids += 1
        metadata = {
            **{name: value for name, value in body["metadata"].items() if name != "resourceVersion"},
            "uid": f"uid-{self._uids}",
            "creationTimestamp": self._timestamp(),
        }
        if place.namespace:
            metadata["namespace"] = place.namespace
        if place.plural not in _NO_SPEC_GENERATION:
            metadata["generation"] = 1
            # Of kinds with a status subresource nobody sets the status otherwise.
            body = {name: value for name, value in body.items() if name != "status"}
        return self._put(key, None, {**body, "metadata": metadata})

    def _replace(self, place: _Place, body: Body) -> Body:
        uid = body["metadata"].get("uid", "")
        if place.plural in _MADE_BY_REPLACING and place.key not in self._kinds[place.plural] and not uid:
            return self._create(place, body)
        before = self.get(place.key)
        if uid and uid != (before["metadata"]["uid"] if before is not None else ""):
            raise Refused(409, f"{place.plural} {place.name!r} is not {uid}")
        before = self._read(place)
        self._require_same(place, before, body.get("metadata") or {})
        return self._change(place, before, body)

    def _patch(self, place: _Place, patch: Body) -> Body:
        before = self._read(place)
        self._require_same(place, before, patch.get("metadata") or {})
        return self._change(place, before, merged(before, patch))

    def _change(self, place: _Place, before: Body, wanted: Body) -> Body:
        """Write what the subresource may write; a change that changes nothing is none."""
        kept = before["metadata"]
        if place.subresource == "status":
            after = {**before, "status": wanted.get("status")}
            if after["status"] is None:
                del after["status"]
        else:
            given = {name: value for name, value in (wanted.get("metadata") or {}).items() if value is not None}
            fixed = ("uid", "name", "namespace", "creationTimestamp", "deletionTimestamp", "generation")
            after = {
                **wanted,
                "metadata": {**given, **{name: kept[name] for name in fixed if name in kept}},
            }
            if not after["metadata"].get("finalizers"):
                after["metadata"].pop("finalizers", None)
            if place.plural not in _NO_SPEC_GENERATION:
                after.pop("status", None)
                if "status" in before:
                    after["status"] = before["status"]
                if after.get("spec") != before.get("spec"):
                    after["metadata"]["generation"] = kept["generation"] + 1
        after["metadata"] = {**after["metadata"], "resourceVersion": kept["resourceVersion"]}
        if after == before:
            return before
        if after["metadata"].get("deletionTimestamp") and not after["metadata"].get("finalizers"):
            return self._remove(place.key, after)
        return self._put(place.key, before, after)

    def _delete(self, place: _Place, options: Body) -> Body:
        before = self._read(place)
        for name, wanted in (options.get("preconditions") or {}).items():
            if wanted != before["metadata"][name]:
                raise Refused(409, f"{place.plural} {place.name!r}: the precondition {name} fails")
        key = place.key
        if not before["metadata"].get("finalizers"):
            self._remove(key, before)
            return {"status": "Success"}
        if before["metadata"].get("deletionTimestamp"):
            return before
        metadata = {**before["metadata"], "deletionTimestamp": self._timestamp()}
        metadata["generation"] = metadata.get("generation", 0) + 1
        return self._put(key, before, {**before, "metadata": metadata})

    def _put(self, key: ObjectKey, before: Body | None, after: Body) -> Body:
        self._version += 1
        after = {**after, "metadata": {**after["metadata"], "resourceVersion": str(self._version)}}
        text = self._kinds[key.plural][key] = json.dumps(after)
        self._tell("MODIFIED" if before is not None else "ADDED", key, before, after, text)
        return after

    def _remove(self, key: ObjectKey, last: Body) -> Body:
        self._version += 1
        before = json.loads(self._kinds[key.plural].pop(key))
        last = {**last, "metadata": {**last["metadata"], "resourceVersion": str(self._version)}}
        self._tell("DELETED", key, before, None, json.dumps(last))
        self._collect(last["metadata"]["uid"])
        return last

    def _collect(self, owner: str) -> None:
        """Delete what belonged to an object that is gone."""
        for plural in sorted(self._kinds):
            for key, text in self._sorted(plural):
                owners = json.loads(text)["metadata"].get("ownerReferences") or ()
                if any(one["uid"] == owner for one in owners):
                    self._delete(_Place(key.plural, key.namespace, key.name, ""), {})

    def _tell(self, kind: str, key: ObjectKey, before: Body | None, after: Body | None, text: str) -> None:
        for judge in self._judges:
            judge(key, before, after)
        for tell in list(self._watchers):
            tell(Event(kind, key, text))

    def _text(self, place: _Place) -> str:
        text = self._kinds[place.plural].get(place.key)
        if text is None:
            raise Refused(404, f"{place.plural} {place.name!r} not found")
        return text

    def _require_same(self, place: _Place, body: Body, wanted: Mapping[str, Any]) -> None:
        """A write is for the version that it names, and for the object, unless it is one to its status."""
        version, uid = body["metadata"]["resourceVersion"], body["metadata"]["uid"]
        if wanted.get("resourceVersion") not in (None, "", version):
            raise Refused(
                409, f"{place.plural} {place.name!r} is at version {version}, not {wanted['resourceVersion']}"
            )
        if place.subresource != "status" and wanted.get("uid") not in (None, "", uid):
            raise Refused(422, f"{place.plural} {place.name!r}: its uid is {uid}, not {wanted['uid']}")


def merged(body: Any, patch: Any) -> Any:
    """What a JSON merge patch makes of a body (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(body) if isinstance(body, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def _parse(path: str) -> _Place:
    parts = path.strip("/").split("/")
    parts = parts[3:] if parts[0] == "apis" else parts[2:]
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2:
        namespace, parts = parts[1], parts[2:]
    plural, name, subresource = (*parts, "", "")[:3]
    return _Place(plural, namespace, name, subresource)
