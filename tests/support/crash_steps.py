"""Every write that an operation makes, to the API server and to the brokers, in order: where an operator may die."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from tests.support.fault_proxy import SeenCall, is_call

_SEGMENT = r"-segment-[0-9a-f]{4}-[0-9a-f]{4}-\d+"
_TOPIC = r"/scalabletopics/{name}"
_RECONCILED = '^(?!.*"subscriptions": )(?!.*"operation": ).*"observedGeneration": 2'
_OPERATION = r"/segmentoperations/{name}-[^/]+/status$"


class Server(StrEnum):
    """Whom a write goes to."""

    KUBERNETES = "kubernetes"
    PULSAR = "pulsar"


class Kind(StrEnum):
    """What the operator is busy with when it dies."""

    CREATE = "create"
    SPLIT = "split"
    MERGE = "merge"
    REBUCKET = "rebucket"
    MIGRATE = "migrate"
    ROLLBACK = "rollback"
    PRUNE = "prune"
    SUBSCRIBE = "subscribe"
    UNSUBSCRIBE = "unsubscribe"
    SEEK = "seek"
    SKIP_ALL = "skip-all"
    RESTORE = "restore"
    DELETE = "delete"


class Death(StrEnum):
    """What becomes of the write at which the operator dies.

    `BEFORE`: it never reaches the server. `AFTER`: it takes effect and the reply finds nobody. `LATE`: it reaches
    the server only after the next process has finished the work.
    """

    BEFORE = "before"
    AFTER = "after"
    LATE = "late"


@dataclass(frozen=True, slots=True)
class Step:
    """One write of an operation.

    Args:
        name: what it is for.
        server: whom it goes to.
        method: HTTP method.
        path: regular expression, in which `{name}` stands for the topic's (and object's) name.
        body: regular expression for the body, likewise.
        number: which of several such writes, from 0.
    """

    name: str
    server: Server
    method: str
    path: str
    body: str = ""
    number: int = 0

    def for_topic(self, name: str) -> Step:
        """This step with the name filled in."""
        path, body = (text.replace("{name}", re.escape(name)) for text in (self.path, self.body))
        return replace(self, path=path, body=body)

    def is_like(self, call: SeenCall) -> bool:
        """Whether a call is this step or one of its kind."""
        return is_call(call, self.method, self.path, self.body)


def _topic(name: str, body: str) -> Step:
    return Step(name, Server.KUBERNETES, "PATCH", _TOPIC + "/status$", body)


def _finalizer(name: str, body: str) -> Step:
    return Step(name, Server.KUBERNETES, "PATCH", _TOPIC + "$", body)


def _operation(name: str, phase: str) -> Step:
    return Step(name, Server.KUBERNETES, "PATCH", _OPERATION, f'"phase": "{phase}"')


def _event(name: str) -> Step:
    return Step(name, Server.KUBERNETES, "POST", "/events$", '"name": "{name}-')


def _pulsar(name: str, method: str, path: str, number: int = 0) -> Step:
    return Step(name, Server.PULSAR, method, path, number=number)


def _segment(name: str, method: str, rest: str, number: int = 0) -> Step:
    return _pulsar(name, method, "/{name}" + _SEGMENT + rest, number)


def _published(name: str, number: int = 0) -> Step:
    return _pulsar(name, "POST", "/topics/persistent/.*/{name}-layout$", number)


def _create_segments(count: int, cursors: int) -> tuple[Step, ...]:
    """The writes that make `count` segments with `cursors` cursors in all; the first and the last of each kind."""
    numbers = {"first": 0} if count == 1 else {"first": 0, "last": count - 1}
    return (
        *(_segment(f"{which} segment made", "PUT", "$", number) for which, number in numbers.items()),
        *(_segment(f"{w} segment protected", "POST", "/inactiveTopicPolicies$", n) for w, n in numbers.items()),
        *(_segment(f"{which} segment granted", "POST", "/permissions/", number) for which, number in numbers.items()),
        _segment("first cursor made", "PUT", "/subscription/"),
        _segment("last cursor made", "PUT", "/subscription/", cursors - 1),
    )


def _reshape(kind: str, *, parents: int, children: int) -> tuple[Step, ...]:
    numbers = {"first": 0} if parents == 1 else {"first": 0, "last": parents - 1}
    return (
        _topic("journal opened", f'"kind": "{kind}", "step": "Creating"'),
        _operation("shown as running", "Running"),
        *_create_segments(children, cursors=2 * children),
        _topic("seal announced", r'"operation": \{[^}]*"step": "Announcing"'),
        _published("announcement published"),
        _topic("point of no return", r'"operation": \{[^}]*"step": "Sealing"'),
        *(_segment(f"{which} parent sealed", "POST", "/terminate$", number) for which, number in numbers.items()),
        _topic("layout committed", '"operation": null'),
        _published("layout published", 1),
        _event("event posted"),
        _operation("shown as done", "Succeeded"),
    )


def _move(kind: str, rest: str) -> tuple[Step, ...]:
    return (
        _topic("journal opened", f'"kind": "{kind}", "step": "Releasing"'),
        _operation("shown as running", "Running"),
        _topic("consumers have let go", r'"operation": \{[^}]*"step": "Moving"'),
        _segment("first cursor moved", "POST", f"/subscription/declared/{rest}$"),
        _segment("last cursor moved", "POST", f"/subscription/declared/{rest}$", 1),
        _topic("journal closed", '"operation": null'),
        _event("event posted"),
        _operation("shown as done", "Succeeded"),
    )


_LAYOUT_TOPIC = (
    _pulsar("layout topic made", "PUT", "/{name}-layout$"),
    _pulsar("layout topic protected", "POST", "/{name}-layout/inactiveTopicPolicies$"),
    _pulsar("layout topic kept", "POST", "/{name}-layout/retention$"),
    _pulsar("layout topic given its schema", "POST", "/{name}-layout/schema$"),
)

STEPS: Mapping[Kind, tuple[Step, ...]] = {
    Kind.CREATE: (
        _finalizer("finalizer added", r'"finalizers": \["'),
        _topic("journal opened", '"kind": "Create"'),
        _pulsar("claim made", "PUT", "/{name}$"),
        _pulsar("claim sealed", "POST", "/{name}/terminate$"),
        _pulsar("claim protected", "POST", "/{name}/inactiveTopicPolicies$"),
        *_create_segments(2, cursors=2),
        _topic("layout committed", '"operation": null'),
        *_LAYOUT_TOPIC,
        _published("layout published"),
        _topic("shown what is managed", '"managedPermissions"'),
    ),
    Kind.SPLIT: _reshape("Split", parents=1, children=2),
    Kind.MERGE: _reshape("Merge", parents=2, children=1),
    Kind.REBUCKET: _reshape("Rebucket", parents=1, children=1),
    Kind.MIGRATE: (
        _finalizer("finalizer added", r'"finalizers": \["'),
        _topic("journal opened", '"kind": "Migrate", "step": "Creating"'),
        _pulsar("claim made", "PUT", "/{name}/properties$"),
        _pulsar("old topic protected", "POST", "/{name}/inactiveTopicPolicies$"),
        _pulsar("partitions completed", "POST", "/{name}/createMissedPartitions$"),
        *_create_segments(2, cursors=4),
        *_LAYOUT_TOPIC,
        _topic("seal announced", r'"operation": \{[^}]*"step": "Announcing"'),
        _published("announcement published"),
        _topic("point of no return", r'"operation": \{[^}]*"step": "Sealing"'),
        _pulsar("first partition sealed", "POST", r"/{name}-partition-\d+/terminate$"),
        _pulsar("last partition sealed", "POST", r"/{name}-partition-\d+/terminate$", 1),
        _topic("layout committed", '"operation": null'),
        _published("layout published", 1),
        _topic("shown what is managed", '"managedPermissions"'),
    ),
    Kind.ROLLBACK: (
        _topic("turning back", '"step": "RollingBack"'),
        _segment("first child deleted", "DELETE", "$"),
        _segment("last child deleted", "DELETE", "$", 1),
        _topic("journal closed", '"operation": null.*"result": "RolledBack"'),
    ),
    Kind.PRUNE: (
        _topic("segment left the layout", r'"deleting": \['),
        _event("event posted"),
        _operation("shown as done", "Succeeded"),
        _segment("segment deleted", "DELETE", "$"),
        _topic("deletion noted", '"deleting": null'),
        _published("layout published", 2),
    ),
    Kind.SUBSCRIBE: (
        _topic("subscription noted", '"phase": "Creating"'),
        _segment("first cursor made", "PUT", "/subscription/"),
        _segment("last cursor made", "PUT", "/subscription/", 1),
        _topic("subscription complete", '"subscriptions": (?!.*"phase": "Creating")'),
        _topic("shown as reconciled", _RECONCILED),
    ),
    Kind.UNSUBSCRIBE: (
        _topic("deletion noted", '"phase": "Deleting"'),
        _segment("first cursor deleted", "DELETE", "/subscription/"),
        _segment("last cursor deleted", "DELETE", "/subscription/", 1),
        _topic("deletion complete", '"subscriptions": (?!.*"phase": "Deleting")'),
        _topic("shown as reconciled", _RECONCILED),
    ),
    Kind.SEEK: _move("Seek", "resetcursor"),
    Kind.SKIP_ALL: _move("SkipAll", "skip_all"),
    Kind.RESTORE: _move("Restore", "resetcursor"),
    Kind.DELETE: (
        _topic("journal opened", '"kind": "Delete"'),
        _segment("first segment deleted", "DELETE", "$"),
        _segment("last segment deleted", "DELETE", "$", 1),
        _pulsar("layout topic deleted", "DELETE", "/{name}-layout$"),
        _pulsar("claim deleted", "DELETE", "/{name}$"),
        _finalizer("finalizer removed", r'"finalizers": \[\]'),
    ),
}
"""The writes of each operation, on a topic of two segments (a split one: of one) or partitions, with two
subscriptions."""
